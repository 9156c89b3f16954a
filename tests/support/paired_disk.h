// What one process sees of two disks: paths that begin with "one/" are on the first, "two/" on the
// second. It counts the calls to both, and ends in one of them.
//
// Lifetime: in the arena of the first disk.
// Threads:  one.
#ifndef PEN_TESTS_SUPPORT_PAIRED_DISK_H
#define PEN_TESTS_SUPPORT_PAIRED_DISK_H

#include "tests/support/faulty_disk.h"

typedef struct paired_disk {
    pen_disk base;
    pen_arena *arena;
    faulty_view *views[2];
    uint64_t call_count;
    uint64_t crash_at; // the call in which its process ends; 0: none
    uint64_t fail_at;  // the call from which on disk `fail_disk` does nothing any more; 0: none
    uint32_t fail_disk;
} paired_disk;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status paired_disk_new(faulty_disk *const disks[2], uint32_t owner,
                                         pen_arena *arena, paired_disk **out_disk);
bool paired_disk_has_crashed(const paired_disk *disk);

#endif // PEN_TESTS_SUPPORT_PAIRED_DISK_H
