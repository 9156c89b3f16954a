// What is kept on disk is written and read through these few calls, so that tests can put a disk in
// their place that loses, tears and refuses (tests/support/faulty_disk.h).
//
// What was appended is safe from a crash of the machine only when the file was synced, and its name
// only when its folder was, after it got that name. After a failed sync the contents are lost: the
// file is given up, never synced again.
//
// Threads: a file belongs to one thread at a time; the other calls may come from any.
#ifndef PEN_SCHEDULER_STORE_DISK_H
#define PEN_SCHEDULER_STORE_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_disk_file pen_disk_file;

typedef struct pen_disk {
    const struct pen_disk_kind *kind;
} pen_disk;

// Errors name the path and the system's reason, with the codes of base/system/file.h: NOT_FOUND,
// NO_STORAGE, IO.
typedef struct pen_disk_kind {
    const char *name;
    // A new, empty file, one of that name is replaced.
    PEN_NODISCARD pen_status (*create)(pen_disk *disk, const char *path, pen_disk_file **out_file);
    // All bytes, or an error.
    PEN_NODISCARD pen_status (*append)(pen_disk_file *file, const void *bytes, uint64_t count);
    PEN_NODISCARD pen_status (*sync)(pen_disk_file *file);
    void (*close)(pen_disk_file *file); // accepts NULL; syncs nothing
    // Gives a file a second name, unless there is a file of that name: *out_is_taken, and then
    // nothing was done. Of several processes that try one has it (link(2)).
    PEN_NODISCARD pen_status (*publish)(pen_disk *disk, const char *from, const char *to,
                                        bool *out_is_taken);
    // Over a file of that name.
    PEN_NODISCARD pen_status (*rename)(pen_disk *disk, const char *from, const char *to);
    PEN_NODISCARD pen_status (*remove)(pen_disk *disk, const char *path);
    // Opens and syncs a file or folder that is there already.
    PEN_NODISCARD pen_status (*sync_path)(pen_disk *disk, const char *path);
    PEN_NODISCARD pen_status (*size)(pen_disk *disk, const char *path, uint64_t *out_bytes);
    // Exactly `count` bytes of a regular file. CORRUPT: the file ends before.
    PEN_NODISCARD pen_status (*read)(pen_disk *disk, const char *path, uint64_t offset, void *out,
                                     uint64_t count);
    // Names in a folder, sorted, in `arena`; at most `limit` (more: CORRUPT).
    PEN_NODISCARD pen_status (*list)(pen_disk *disk, const char *folder, uint32_t limit,
                                     pen_arena *arena, const char *const **out_names,
                                     uint32_t *out_count);
    // And those that it is in. They may be there; those that are made are durable.
    PEN_NODISCARD pen_status (*make_folder)(pen_disk *disk, const char *path);
} pen_disk_kind;

// Whether an error is the disk's, or the place's that was there before: one of these.
bool pen_disk_is_at_fault(pen_status status);

// The disk of this machine.
pen_disk *pen_disk_of_machine(void);

#define PEN_DISK_ROOT_BYTES 1000

// What lies beneath one folder of this machine, for whoever does what others ask: paths are names
// beneath it ("." is itself). A name that leads out of it is INVALID_INPUT: an absolute one, one
// with "..", one that leads over a symbolic link. make_folder makes the folder, too.
typedef struct pen_disk_beneath {
    pen_disk disk;
    char root[PEN_DISK_ROOT_BYTES]; // resolved
} pen_disk_beneath;

// The folder need not be there yet. INVALID_INPUT: its path is too long; IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_disk_beneath_init(pen_disk_beneath *disk, const char *folder);

#endif // PEN_SCHEDULER_STORE_DISK_H
