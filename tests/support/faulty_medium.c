#include "tests/support/faulty_medium.h"

#include <stdlib.h>
#include <string.h>

#define DISK_NAMES 64 // that there is room for at first
#define DISK_SECTOR_BYTES 512

// ---- names

static uint32_t disk_hash(const char *path) {
    uint32_t hash = 2166136261u; // FNV-1a
    for (; *path != '\0'; path++) {
        hash = (hash ^ (uint8_t)*path) * 16777619u;
    }
    return hash;
}

disk_name *faulty_medium_find(const faulty_disk *disk, const char *path) {
    const uint32_t hash = disk_hash(path);
    for (uint32_t i = disk->name_count; i-- > 0;) {
        disk_name *name = disk->names[i];
        if (name->hash == hash && strcmp(name->path, path) == 0) return name;
    }
    return NULL;
}

disk_name *faulty_medium_intern(faulty_disk *disk, const char *path) {
    disk_name *name = faulty_medium_find(disk, path);
    if (name != NULL) return name;
    const size_t length = strlen(path);
    PEN_ASSERT(length < FAULTY_NAME_BYTES);
    if (disk->name_count == disk->name_room) {
        const uint32_t room = disk->name_room == 0 ? DISK_NAMES : 2 * disk->name_room;
        disk_name **names;
        if (PEN_NEW(disk->arena, room, &names) != PEN_OK) abort();
        if (disk->name_count > 0) memcpy(names, disk->names, disk->name_count * sizeof *names);
        disk->names = names;
        disk->name_room = room;
    }
    if (PEN_NEW(disk->arena, 1, &name) != PEN_OK) abort();
    disk->names[disk->name_count++] = name;
    name->hash = disk_hash(path);
    memcpy(name->path, path, length + 1);
    return name;
}

bool faulty_medium_is_in(const disk_name *name, const char *folder, size_t length) {
    if (length == 0 && name->path[0] != '/') return strchr(name->path, '/') == NULL;
    return strncmp(name->path, folder, length) == 0 && name->path[length] == '/' &&
           strchr(name->path + length + 1, '/') == NULL;
}

// The folder that a name is in; "" for one beside the root.
void faulty_medium_parent(const char *path, char out_folder[FAULTY_NAME_BYTES]) {
    const char *slash = strrchr(path, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    memmove(out_folder, path, length);
    out_folder[length] = '\0';
}

static void disk_apply(disk_operation *operation) {
    if (operation->to != NULL) operation->to->safe = operation->node;
    if (operation->from != NULL) operation->from->safe = NULL;
}

void faulty_medium_note(faulty_disk *disk, disk_operation operation) {
    if (disk->operation_count == FAULTY_OPERATIONS) { // the oldest have long come through
        disk_apply(&disk->operations[0]);
        memmove(disk->operations, disk->operations + 1,
                (FAULTY_OPERATIONS - 1) * sizeof *disk->operations);
        disk->operation_count -= 1;
    }
    disk->operations[disk->operation_count++] = operation;
    if (operation.to != NULL) operation.to->node = operation.node;
    if (operation.from != NULL) operation.from->node = NULL;
}

// Makes what was done to names of a folder safe.
void faulty_medium_sync_folder(faulty_disk *disk, const char *folder) {
    if (disk->lie == FAULTY_DISK_LOSES_NAMES) return;
    const size_t length = strlen(folder);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->operation_count; i++) {
        disk_operation *operation = &disk->operations[i];
        const disk_name *name = operation->to != NULL ? operation->to : operation->from;
        if (faulty_medium_is_in(name, folder, length)) {
            disk_apply(operation);
        } else {
            disk->operations[kept++] = *operation;
        }
    }
    disk->operation_count = kept;
}

// ---- contents

pen_status faulty_medium_make(faulty_disk *disk, uint32_t owner, disk_node **out_node) {
    PEN_TRY(PEN_NEW(disk->arena, 1, out_node));
    (*out_node)->owner = owner;
    return PEN_OK;
}

pen_status faulty_medium_reserve(faulty_disk *disk, disk_node *node, uint64_t room) {
    if (room <= node->room) return PEN_OK;
    uint8_t *bytes;
    uint64_t size = node->room == 0 ? 256 : node->room;
    while (size < room) {
        size *= 2;
    }
    PEN_TRY(PEN_NEW(disk->arena, size, &bytes));
    if (node->count > 0) memcpy(bytes, node->bytes, node->count);
    node->bytes = bytes;
    node->room = size;
    return PEN_OK;
}

void faulty_medium_sync(faulty_disk *disk, disk_node *node) {
    if (!node->is_dirty || disk->lie == FAULTY_DISK_LOSES_FILES) return;
    uint8_t *safe;
    if (PEN_NEW(disk->arena, node->count, &safe) != PEN_OK) abort();
    if (node->count > 0) memcpy(safe, node->bytes, node->count);
    for (uint64_t i = 0; i < node->given_up && i < node->count; i++) {
        safe[i] = i < node->safe_count ? node->safe[i] : 0;
    }
    node->safe = safe;
    node->safe_count = node->count;
    node->is_dirty = false;
}

// From now on the file has these bytes, and they are safe.
static void disk_node_settle(faulty_disk *disk, disk_node *node, uint8_t *bytes, uint64_t count) {
    disk->counts.lost_bytes += node->count > count ? node->count - count : 0;
    *node = (disk_node){.bytes = bytes,
                        .count = count,
                        .room = count + 1,
                        .safe = bytes,
                        .safe_count = count,
                        .owner = node->owner};
}

// Of a file that grew, sectors come through in any order, or not at all: then zeros are there, or
// what the place had before. The bytes that were safe stay as they are.
static uint8_t *disk_tear_sectors(faulty_disk *disk, const disk_node *node, uint64_t *out_kept) {
    uint8_t *bytes;
    uint64_t kept = node->count;
    if (chance_below(&disk->dice, 2) == 0) {
        kept = node->safe_count + chance_below(&disk->dice, kept - node->safe_count + 1);
    }
    if (PEN_NEW(disk->arena, kept + 1, &bytes) != PEN_OK) abort();
    if (node->safe_count > 0) memcpy(bytes, node->safe, node->safe_count);
    for (uint64_t at = node->safe_count; at < kept;) {
        uint64_t end = at - at % DISK_SECTOR_BYTES + DISK_SECTOR_BYTES;
        if (end > kept) end = kept;
        const uint64_t way = chance_below(&disk->dice, 6); // 0 to 2: it came through
        const uint64_t written = way == 3  ? chance_below(&disk->dice, end - at)
                                 : way < 3 ? end - at
                                           : 0;
        if (written > 0) memcpy(bytes + at, node->bytes + at, written);
        for (uint64_t i = at + written; i < end; i++) {
            bytes[i] = way == 4 ? (uint8_t)chance_next(&disk->dice) : 0;
        }
        at = end;
    }
    disk->counts.torn_files += 1;
    *out_kept = kept;
    return bytes;
}

// What is left of a file that was not synced.
static void disk_node_tear(faulty_disk *disk, disk_node *node) {
    if (!node->is_dirty && node->given_up == 0) return;
    uint64_t kept = node->safe_count;
    uint8_t *bytes;
    if (disk->tears_sectors && node->is_dirty && node->given_up == 0 &&
        chance_below(&disk->dice, 2) == 0) {
        bytes = disk_tear_sectors(disk, node, &kept);
        disk_node_settle(disk, node, bytes, kept);
        return;
    }
    const uint64_t way = node->is_dirty ? chance_below(&disk->dice, 4) : 0;
    if (way == 1) kept = node->count;
    if (way >= 2 && node->count > kept) {
        kept += chance_below(&disk->dice, node->count - kept + 1);
        disk->counts.torn_files += 1;
    }
    if (PEN_NEW(disk->arena, kept + 1, &bytes) != PEN_OK) abort();
    if (kept > 0) {
        const uint64_t common = kept < node->count ? kept : node->count;
        memcpy(bytes, node->bytes, common);
        const uint64_t safe = node->safe_count < kept ? node->safe_count : kept;
        const bool keeps_old = way != 1 || node->given_up > 0;
        if (safe > 0 && keeps_old) memcpy(bytes, node->safe, safe);
        for (uint64_t i = safe; i < node->given_up && i < kept; i++) {
            bytes[i] = 0;
        }
        if (way == 3 && kept > safe) { // the length came through before the bytes
            const uint64_t at = safe + chance_below(&disk->dice, kept - safe);
            memset(bytes + at, 0, kept - at);
        }
    }
    disk_node_settle(disk, node, bytes, kept);
}

// ---- a loss of power

// Whether a folder that a name lies in was made once and is not there.
static bool disk_is_lost(const faulty_disk *disk, const char *path) {
    char folder[FAULTY_NAME_BYTES];
    for (faulty_medium_parent(path, folder); folder[0] != '\0';
         faulty_medium_parent(folder, folder)) {
        const disk_name *name = faulty_medium_find(disk, folder);
        if (name != NULL && name->node == NULL) return true;
    }
    return false;
}

// With a folder goes what is in it.
static void disk_lose_folders(faulty_disk *disk) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->name_count; i++) {
        disk_name *name = disk->names[i];
        if (name->node == NULL || !disk_is_lost(disk, name->path)) continue;
        name->node = NULL;
        name->safe = NULL;
        disk->counts.lost_names += 1;
    }
    for (uint32_t i = 0; i < disk->operation_count; i++) {
        const disk_operation *operation = &disk->operations[i];
        const disk_name *name = operation->to != NULL ? operation->to : operation->from;
        if (!disk_is_lost(disk, name->path)) disk->operations[kept++] = *operation;
    }
    disk->operation_count = kept;
}

void faulty_disk_lose_power(faulty_disk *disk, uint32_t owner) {
    const bool in_order = chance_below(&disk->dice, 2) == 0; // as a journal has it
    bool has_lost = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->operation_count; i++) {
        disk_operation *operation = &disk->operations[i];
        if (owner != FAULTY_DISK_ANY && operation->owner != owner) {
            disk->operations[kept++] = *operation;
            continue;
        }
        const bool is_lost = (in_order && has_lost) || chance_below(&disk->dice, 2) == 0;
        has_lost = has_lost || is_lost;
        if (is_lost) {
            disk->counts.lost_names += 1;
        } else {
            disk_apply(operation);
        }
    }
    disk->operation_count = kept;
    for (uint32_t i = 0; i < disk->name_count; i++) {
        disk_name *name = disk->names[i];
        name->node = name->safe;
    }
    for (uint32_t i = 0; i < kept; i++) { // what others did is still there
        disk_operation *operation = &disk->operations[i];
        if (operation->to != NULL) operation->to->node = operation->node;
        if (operation->from != NULL) operation->from->node = NULL;
    }
    disk_lose_folders(disk);
    for (uint32_t i = 0; i < disk->name_count; i++) {
        disk_node *node = disk->names[i]->node;
        if (node == NULL || (owner != FAULTY_DISK_ANY && node->owner != owner)) continue;
        disk_node_tear(disk, node);
    }
}
