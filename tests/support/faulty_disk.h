// A disk in memory that loses, tears, refuses and forgets as real ones do, by seed.
//
// What was appended is safe from a loss of power only when it was synced, a name only when its
// folder was. A folder is a name, too: it is made durable when it is made, unless its maker dies
// within the call; with a folder goes what is in it. After a failed sync the bytes that were not
// safe before are never made safe, though a second sync says that all is well. A process that
// crashes at a call (faulty_disk_crash_at) sees IO from it and from all calls after it, of which
// nothing was done, or the beginning.
//
// Several processes share a disk: each looks at it through a view, which is the pen_disk that it is
// handed. Files belong to the disk and stay when the view's process is gone.
//
// Lifetime: in the arena it was made with, as all that is written to it.
// Threads:  one.
#ifndef PEN_TESTS_SUPPORT_FAULTY_DISK_H
#define PEN_TESTS_SUPPORT_FAULTY_DISK_H

#include "scheduler/store/disk.h"

#define FAULTY_DISK_ANY UINT32_MAX

// In how many of a million calls.
typedef struct faulty_disk_rates {
    uint32_t no_space;   // creates and appends: ENOSPC; of an append, some bytes were written
    uint32_t write;      // appends, publishes, renames: EIO, nothing done
    uint32_t sync;       // of files and folders: EIO
    uint32_t read;       // EIO
    uint32_t flip;       // reads in which one bit comes out wrong, once
    uint32_t done_after; // publishes and renames that say EIO and were done nevertheless
} faulty_disk_rates;

typedef struct faulty_disk_counts {
    uint64_t calls;
    uint64_t failures;   // that were injected
    uint64_t flips;      // bits that were read wrong
    uint64_t rotten;     // bits of files that were turned for good
    uint64_t lost_bytes; // appended and not there after a loss of power
    uint64_t torn_files; // of which a part came through
    uint64_t lost_names; // operations on folders that were undone
    uint64_t crashed_in; // processes that ended in a call
    uint64_t paused_in;  // processes that were held in a call
} faulty_disk_counts;

typedef struct faulty_disk faulty_disk;

// What a disk says it did, and did not: as if the caller had forgotten to ask for it.
typedef enum faulty_disk_lie {
    FAULTY_DISK_IS_HONEST,
    FAULTY_DISK_LOSES_FILES,        // that files were synced
    FAULTY_DISK_LOSES_NAMES,        // that folders were
    FAULTY_DISK_LOSES_MADE_FOLDERS, // that a folder that was made is durable
} faulty_disk_lie;

typedef struct faulty_view {
    pen_disk base;
    faulty_disk *disk;
    uint32_t owner; // a number of the process
    uint64_t call_count;
    uint64_t crash_at; // the call in which its process ends; 0: none
    uint64_t pause_at; // the call before which `pause` is called; 0: none
    bool has_crashed;
    void (*pause)(void *context);
    void *context;
} faulty_view;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status faulty_disk_new(uint64_t seed, pen_arena *arena, faulty_disk **out_disk);
PEN_NODISCARD pen_status faulty_view_new(faulty_disk *disk, uint32_t owner, faulty_view **out_view);

void faulty_disk_set_rates(faulty_disk *disk, const faulty_disk_rates *rates);
// From now on a file that is not synced is also torn by sectors (512 bytes): each comes through or
// not, in any order, and what did not is zeros or what was there before.
void faulty_disk_tear_sectors(faulty_disk *disk);
void faulty_disk_tell_lie(faulty_disk *disk, faulty_disk_lie lie);
const faulty_disk_counts *faulty_disk_get_counts(const faulty_disk *disk);

// The power of the machine of process `owner` goes (FAULTY_DISK_ANY: of all): what it did and was
// not synced is lost, there in part, or there.
void faulty_disk_lose_power(faulty_disk *disk, uint32_t owner);

// Turns one bit of a file, for good. False: there is no such file, or it is empty.
bool faulty_disk_rot(faulty_disk *disk, const char *path);

// What is there now, and what would be there if the power of all machines went and nothing came
// through that is not safe. NULL: no such file. `is_safe` picks the latter.
const uint8_t *faulty_disk_look(const faulty_disk *disk, const char *path, bool is_safe,
                                uint64_t *out_count);

// Names of files, one after the other; NULL: no more.
const char *faulty_disk_name(const faulty_disk *disk, uint32_t index);

#endif // PEN_TESTS_SUPPORT_FAULTY_DISK_H
