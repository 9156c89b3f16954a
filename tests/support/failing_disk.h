// The disk of this machine, one call of which goes wrong: for trying every call of a piece of work.
#ifndef PEN_TESTS_SUPPORT_FAILING_DISK_H
#define PEN_TESTS_SUPPORT_FAILING_DISK_H

#include "scheduler/store/disk.h"

typedef enum failing_disk_mode {
    FAILING_DISK_ONCE,  // the call fails, and nothing else
    FAILING_DISK_SHORT, // as above, but of what is appended half is there
    FAILING_DISK_DEAD,  // the call does half of what it should, and nothing works afterwards
    FAILING_DISK_LATE,  // the call does what it should, and says that it failed
} failing_disk_mode;
#define FAILING_DISK_MODES 4

typedef struct failing_disk {
    pen_disk disk;
    uint64_t call;    // so far
    uint64_t fail_at; // counted from 1; 0: none fails
    failing_disk_mode mode;
} failing_disk;

void failing_disk_init(failing_disk *disk, uint64_t fail_at, failing_disk_mode mode);
// Whether the call that was to fail came.
bool failing_disk_has_failed(const failing_disk *disk);

#endif // PEN_TESTS_SUPPORT_FAILING_DISK_H
