// The inside of faulty_disk: what files and names there are, and which of it is on the medium.
//
// Lifetime: in the disk's arena. Threads: one.
#ifndef PEN_TESTS_SUPPORT_FAULTY_MEDIUM_H
#define PEN_TESTS_SUPPORT_FAULTY_MEDIUM_H

#include "tests/support/chance.h"
#include "tests/support/faulty_disk.h"

#define FAULTY_NAME_BYTES 128
#define FAULTY_OPERATIONS 512

// A file's contents. Several names may lead to it.
typedef struct disk_node {
    uint8_t *bytes;
    uint64_t count;
    uint64_t room;
    uint8_t *safe; // what is on the medium
    uint64_t safe_count;
    uint64_t given_up; // bytes below were not written when a sync failed, and never will be
    uint32_t owner;    // who wrote last
    bool is_dirty;
    bool is_folder; // which has no contents of its own
} disk_node;

typedef struct disk_name {
    uint32_t hash; // of the path
    char path[FAULTY_NAME_BYTES];
    disk_node *node; // NULL: not there
    disk_node *safe; // on the medium
} disk_name;

// What was done to names and is not on the medium. `to` gets the node, `from` loses it.
typedef struct disk_operation {
    disk_name *to;   // NULL: removed
    disk_name *from; // NULL: a new name
    disk_node *node;
    uint32_t owner;
} disk_operation;

struct faulty_disk {
    pen_arena *arena;
    chance dice;
    faulty_disk_rates rates;
    faulty_disk_counts counts;
    bool tears_sectors;
    faulty_disk_lie lie;
    disk_name **names; // [name_room]
    uint32_t name_count;
    uint32_t name_room;
    disk_operation operations[FAULTY_OPERATIONS];
    uint32_t operation_count;
};

// ---- names

// NULL: never heard of. Interned names stay, whether a file has them or not.
disk_name *faulty_medium_find(const faulty_disk *disk, const char *path);
disk_name *faulty_medium_intern(faulty_disk *disk, const char *path);
bool faulty_medium_is_in(const disk_name *name, const char *folder, size_t length);
// The folder that a name is in; "" for one beside the root.
void faulty_medium_parent(const char *path, char out_folder[FAULTY_NAME_BYTES]);
// Does it, but not on the medium.
void faulty_medium_note(faulty_disk *disk, disk_operation operation);
// Makes what was done to names of a folder safe.
void faulty_medium_sync_folder(faulty_disk *disk, const char *folder);

// ---- contents

pen_status faulty_medium_make(faulty_disk *disk, uint32_t owner, disk_node **out_node);
// Room for so many bytes in all.
pen_status faulty_medium_reserve(faulty_disk *disk, disk_node *node, uint64_t room);
void faulty_medium_sync(faulty_disk *disk, disk_node *node);

#endif // PEN_TESTS_SUPPORT_FAULTY_MEDIUM_H
