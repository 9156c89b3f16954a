// Whether a folder that another process has named is one that this process sees, too, and where.
//
// Paths do not say that: two machines may have mounted one share behind different links, or each
// have a folder of its own under one name. So whoever names the folder makes a file in it, a mark,
// whose name nobody can guess; the other looks for that in its own folders, under every end of the
// path: of /mnt/a/run/shards beneath /srv in `a/run/shards`, `run/shards`, `shards` and /srv
// itself.
//
// Threads: any.
#ifndef PEN_SCHEDULER_STORE_SHARED_FOLDER_H
#define PEN_SCHEDULER_STORE_SHARED_FOLDER_H

#include "scheduler/store/disk.h"

#define PEN_SHARED_FOLDER_LIMIT 2 // that a process writes beneath

// The folders beneath which a process writes.
typedef struct pen_shared_folders {
    pen_disk_beneath folders[PEN_SHARED_FOLDER_LIMIT];
    uint32_t count;
} pen_shared_folders;

// Adds one, which need not be there yet. As pen_disk_beneath_init
PEN_NODISCARD pen_status pen_shared_folders_add(pen_shared_folders *folders, const char *folder);

// Makes the folder and the mark in it, which need not survive anything. As make_folder and create
PEN_NODISCARD pen_status pen_shared_folder_mark(const char *folder, uint64_t mark);
// Removes the mark, if it is there.
void pen_shared_folder_unmark(const char *folder, uint64_t mark);

// Removes all marks from a folder that nobody else marks now: those of processes that were killed
// before they could.
void pen_shared_folder_sweep(const char *folder);

// Looks for the folder that somebody else calls `path` and has put the mark into. *out_name: what
// it is called beneath *out_disk, which is one of `folders`; in `out_name`, [size]. Reads nothing,
// and leads over no link. False: it is not seen here.
bool pen_shared_folders_find(pen_shared_folders *folders, const char *path, uint64_t mark,
                             pen_disk **out_disk, char *out_name, size_t size);

#endif // PEN_SCHEDULER_STORE_SHARED_FOLDER_H
