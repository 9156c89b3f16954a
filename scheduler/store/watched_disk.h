// The disk of this machine for somebody who wants to hear of each call to it that went well: that a
// long work on it gets on, and is not stuck.
//
// Lifetime: as long as its user's.
// Threads:  as those of a disk; `progress` is called on them.
#ifndef PEN_SCHEDULER_STORE_WATCHED_DISK_H
#define PEN_SCHEDULER_STORE_WATCHED_DISK_H

#include "scheduler/store/disk.h"

typedef struct pen_watched_disk {
    pen_disk disk; // first
    void (*progress)(void *context);
    void *context;
} pen_watched_disk;

// Calls to a file that is open are not told: they come with others.
void pen_watched_disk_init(pen_watched_disk *disk, void (*progress)(void *context), void *context);

#endif // PEN_SCHEDULER_STORE_WATCHED_DISK_H
