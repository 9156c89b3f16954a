#include "tests/support/faulty_disk.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/chance.h"

#define DISK_NAMES 64 // that there is room for at first
#define DISK_OPERATIONS 512
#define DISK_NAME_BYTES 128

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
} disk_node;

typedef struct disk_name {
    uint32_t hash; // of the path
    char path[DISK_NAME_BYTES];
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
    disk_name **names; // [name_room]
    uint32_t name_count;
    uint32_t name_room;
    disk_operation operations[DISK_OPERATIONS];
    uint32_t operation_count;
};

struct pen_disk_file {
    faulty_view *view;
    disk_node *node;
    bool is_given_up;
};

static bool disk_happens(faulty_disk *disk, uint32_t rate) {
    if (rate == 0 || chance_below(&disk->dice, 1000000) >= rate) return false;
    disk->counts.failures += 1;
    return true;
}

static pen_status disk_refuse(const char *what, const char *path) {
    return pen_error(PEN_NO_STORAGE, "cannot %s '%s': injected", what, path);
}

// Every call begins here. False: the process is dead, or dies now.
static bool disk_enter(faulty_view *view, bool *out_dies) {
    *out_dies = false;
    if (view->has_crashed) return false;
    view->call_count += 1;
    view->disk->counts.calls += 1;
    if (view->pause_at == view->call_count && view->pause != NULL) {
        view->disk->counts.paused_in += 1;
        view->pause(view->context);
        if (view->has_crashed) return false;
    }
    if (view->crash_at == view->call_count) {
        view->has_crashed = true;
        view->disk->counts.crashed_in += 1;
        *out_dies = true;
        return false;
    }
    return true;
}

static faulty_view *disk_view(pen_disk *disk) {
    return (faulty_view *)(void *)disk;
}

// ---- names

static uint32_t disk_hash(const char *path) {
    uint32_t hash = 2166136261u; // FNV-1a
    for (; *path != '\0'; path++) {
        hash = (hash ^ (uint8_t)*path) * 16777619u;
    }
    return hash;
}

static disk_name *disk_find(const faulty_disk *disk, const char *path) {
    const uint32_t hash = disk_hash(path);
    for (uint32_t i = disk->name_count; i-- > 0;) {
        disk_name *name = disk->names[i];
        if (name->hash == hash && strcmp(name->path, path) == 0) return name;
    }
    return NULL;
}

static disk_name *disk_intern(faulty_disk *disk, const char *path) {
    disk_name *name = disk_find(disk, path);
    if (name != NULL) return name;
    const size_t length = strlen(path);
    PEN_ASSERT(length < DISK_NAME_BYTES);
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

static bool disk_is_in(const disk_name *name, const char *folder, size_t length) {
    return strncmp(name->path, folder, length) == 0 && name->path[length] == '/' &&
           strchr(name->path + length + 1, '/') == NULL;
}

static void disk_apply(disk_operation *operation) {
    if (operation->to != NULL) operation->to->safe = operation->node;
    if (operation->from != NULL) operation->from->safe = NULL;
}

static void disk_note(faulty_disk *disk, disk_operation operation) {
    if (disk->operation_count == DISK_OPERATIONS) { // the oldest have long come through
        disk_apply(&disk->operations[0]);
        memmove(disk->operations, disk->operations + 1,
                (DISK_OPERATIONS - 1) * sizeof *disk->operations);
        disk->operation_count -= 1;
    }
    disk->operations[disk->operation_count++] = operation;
    if (operation.to != NULL) operation.to->node = operation.node;
    if (operation.from != NULL) operation.from->node = NULL;
}

// Makes what was done to names of a folder safe.
static void disk_sync_folder(faulty_disk *disk, const char *folder) {
    const size_t length = strlen(folder);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->operation_count; i++) {
        disk_operation *operation = &disk->operations[i];
        const disk_name *name = operation->to != NULL ? operation->to : operation->from;
        if (disk_is_in(name, folder, length)) {
            disk_apply(operation);
        } else {
            disk->operations[kept++] = *operation;
        }
    }
    disk->operation_count = kept;
}

// ---- contents

static pen_status disk_node_new(faulty_disk *disk, uint32_t owner, disk_node **out_node) {
    PEN_TRY(PEN_NEW(disk->arena, 1, out_node));
    (*out_node)->owner = owner;
    return PEN_OK;
}

static pen_status disk_node_reserve(faulty_disk *disk, disk_node *node, uint64_t room) {
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

static void disk_node_sync(faulty_disk *disk, disk_node *node) {
    if (!node->is_dirty) return;
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

// What is left of a file that was not synced.
static void disk_node_tear(faulty_disk *disk, disk_node *node) {
    if (!node->is_dirty && node->given_up == 0) return;
    uint64_t kept = node->safe_count;
    const uint64_t way = node->is_dirty ? chance_below(&disk->dice, 4) : 0;
    if (way == 1) kept = node->count;
    if (way >= 2 && node->count > kept) {
        kept += chance_below(&disk->dice, node->count - kept + 1);
        disk->counts.torn_files += 1;
    }
    uint8_t *bytes;
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
    disk->counts.lost_bytes += node->count > kept ? node->count - kept : 0;
    *node = (disk_node){.bytes = bytes,
                        .count = kept,
                        .room = kept + 1,
                        .safe = bytes,
                        .safe_count = kept,
                        .owner = node->owner};
}

// ---- the calls

static pen_status disk_create(pen_disk *self, const char *path, pen_disk_file **out_file) {
    faulty_view *view = disk_view(self);
    faulty_disk *disk = view->disk;
    bool dies;
    if (!disk_enter(view, &dies) || disk_happens(disk, disk->rates.no_space) ||
        disk_happens(disk, disk->rates.write)) {
        return disk_refuse("create", path);
    }
    disk_node *node;
    pen_disk_file *file;
    PEN_TRY(disk_node_new(disk, view->owner, &node));
    PEN_TRY(PEN_NEW(disk->arena, 1, &file));
    *file = (pen_disk_file){.view = view, .node = node};
    disk_note(disk,
              (disk_operation){.to = disk_intern(disk, path), .node = node, .owner = view->owner});
    *out_file = file;
    return PEN_OK;
}

static pen_status disk_append(pen_disk_file *file, const void *bytes, uint64_t count) {
    faulty_disk *disk = file->view->disk;
    bool dies;
    uint64_t written = count;
    const bool lives = disk_enter(file->view, &dies);
    if (!lives && !dies) return disk_refuse("append to", "a file");
    const bool is_full = lives && disk_happens(disk, disk->rates.no_space);
    if (lives && !is_full && disk_happens(disk, disk->rates.write)) {
        return disk_refuse("append to", "a file");
    }
    if (dies || is_full) written = chance_below(&disk->dice, count + 1);
    disk_node *node = file->node;
    PEN_TRY(disk_node_reserve(disk, node, node->count + written));
    if (written > 0) memcpy(node->bytes + node->count, bytes, written);
    node->count += written;
    node->is_dirty = true;
    node->owner = file->view->owner;
    return dies || is_full ? disk_refuse("append to", "a file") : PEN_OK;
}

static pen_status disk_sync_node(faulty_view *view, disk_node *node, const char *path) {
    faulty_disk *disk = view->disk;
    bool dies;
    const bool lives = disk_enter(view, &dies);
    if (dies && chance_below(&disk->dice, 2) == 0) disk_node_sync(disk, node);
    if (!lives) return disk_refuse("sync", path);
    if (disk_happens(disk, disk->rates.sync)) {
        if (node->is_dirty) node->given_up = node->count;
        return disk_refuse("sync", path);
    }
    disk_node_sync(disk, node);
    return PEN_OK;
}

static pen_status disk_sync(pen_disk_file *file) {
    return disk_sync_node(file->view, file->node, "a file");
}

static void disk_close(pen_disk_file *file) {
    (void)file; // the arena has it
}

static pen_status disk_publish(pen_disk *self, const char *from, const char *to,
                               bool *out_is_taken) {
    faulty_view *view = disk_view(self);
    faulty_disk *disk = view->disk;
    bool dies;
    *out_is_taken = false;
    const bool lives = disk_enter(view, &dies);
    if (!lives && !(dies && chance_below(&disk->dice, 2) == 0)) return disk_refuse("publish", to);
    if (lives && disk_happens(disk, disk->rates.write)) return disk_refuse("publish", to);
    const disk_name *source = disk_find(disk, from);
    if (source == NULL || source->node == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no file '%s'", from);
    }
    disk_name *target = disk_intern(disk, to);
    if (target->node != NULL) {
        *out_is_taken = lives;
        return lives ? PEN_OK : disk_refuse("publish", to);
    }
    disk_note(disk, (disk_operation){.to = target, .node = source->node, .owner = view->owner});
    if (!lives || disk_happens(disk, disk->rates.done_after)) return disk_refuse("publish", to);
    return PEN_OK;
}

static pen_status disk_rename(pen_disk *self, const char *from, const char *to) {
    faulty_view *view = disk_view(self);
    faulty_disk *disk = view->disk;
    bool dies;
    const bool lives = disk_enter(view, &dies);
    if (!lives && !(dies && chance_below(&disk->dice, 2) == 0)) return disk_refuse("rename", from);
    if (lives && disk_happens(disk, disk->rates.write)) return disk_refuse("rename", from);
    disk_name *source = disk_find(disk, from);
    if (source == NULL || source->node == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no file '%s'", from);
    }
    disk_note(disk, (disk_operation){.to = disk_intern(disk, to),
                                     .from = source,
                                     .node = source->node,
                                     .owner = view->owner});
    if (!lives || disk_happens(disk, disk->rates.done_after)) return disk_refuse("rename", from);
    return PEN_OK;
}

static pen_status disk_remove(pen_disk *self, const char *path) {
    faulty_view *view = disk_view(self);
    faulty_disk *disk = view->disk;
    bool dies;
    const bool lives = disk_enter(view, &dies);
    if (!lives && !(dies && chance_below(&disk->dice, 2) == 0)) return disk_refuse("remove", path);
    if (lives && disk_happens(disk, disk->rates.write)) return disk_refuse("remove", path);
    disk_name *name = disk_find(disk, path);
    if (name == NULL || name->node == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no file '%s'", path);
    }
    disk_note(disk, (disk_operation){.from = name, .owner = view->owner});
    return lives ? PEN_OK : disk_refuse("remove", path);
}

static pen_status disk_sync_path(pen_disk *self, const char *path) {
    faulty_view *view = disk_view(self);
    faulty_disk *disk = view->disk;
    const disk_name *name = disk_find(disk, path);
    if (name != NULL && name->node != NULL) return disk_sync_node(view, name->node, path);
    bool dies;
    const bool lives = disk_enter(view, &dies);
    if (dies && chance_below(&disk->dice, 2) == 0) disk_sync_folder(disk, path);
    if (!lives || disk_happens(disk, disk->rates.sync)) return disk_refuse("sync", path);
    disk_sync_folder(disk, path);
    return PEN_OK;
}

static pen_status disk_size(pen_disk *self, const char *path, uint64_t *out_bytes) {
    faulty_view *view = disk_view(self);
    bool dies;
    if (!disk_enter(view, &dies)) return disk_refuse("look at", path);
    const disk_name *name = disk_find(view->disk, path);
    if (name == NULL || name->node == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no file '%s'", path);
    }
    *out_bytes = name->node->count;
    return PEN_OK;
}

static pen_status disk_read(pen_disk *self, const char *path, uint64_t offset, void *out,
                            uint64_t count) {
    faulty_view *view = disk_view(self);
    faulty_disk *disk = view->disk;
    bool dies;
    if (!disk_enter(view, &dies) || disk_happens(disk, disk->rates.read)) {
        return disk_refuse("read", path);
    }
    const disk_name *name = disk_find(disk, path);
    if (name == NULL || name->node == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no file '%s'", path);
    }
    if (offset > name->node->count || count > name->node->count - offset) {
        return pen_error(PEN_CORRUPT, "'%s' ends too early", path);
    }
    if (count == 0) return PEN_OK;
    memcpy(out, name->node->bytes + offset, count);
    if (disk_happens(disk, disk->rates.flip)) {
        disk->counts.flips += 1;
        ((uint8_t *)out)[chance_below(&disk->dice, count)] ^=
            (uint8_t)(1u << chance_below(&disk->dice, 8));
    }
    return PEN_OK;
}

static int disk_compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static pen_status disk_list(pen_disk *self, const char *folder, uint32_t limit, pen_arena *arena,
                            const char *const **out_names, uint32_t *out_count) {
    faulty_view *view = disk_view(self);
    const faulty_disk *disk = view->disk;
    bool dies;
    if (!disk_enter(view, &dies) || disk_happens(view->disk, disk->rates.read)) {
        return disk_refuse("list", folder);
    }
    const size_t length = strlen(folder);
    const char **names;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, disk->name_count, &names));
    for (uint32_t i = 0; i < disk->name_count; i++) {
        const disk_name *name = disk->names[i];
        if (name->node == NULL || !disk_is_in(name, folder, length)) continue;
        PEN_TRY(pen_arena_copy_text(arena, name->path + length + 1, strlen(name->path + length + 1),
                                    &names[count++]));
    }
    if (count > limit) return pen_error(PEN_CORRUPT, "too many files in '%s'", folder);
    qsort(names, count, sizeof *names, disk_compare);
    *out_names = names;
    *out_count = count;
    return PEN_OK;
}

static pen_status disk_make_folder(pen_disk *self, const char *path) {
    bool dies;
    return disk_enter(disk_view(self), &dies) ? PEN_OK : disk_refuse("make", path);
}

static const pen_disk_kind disk_kind = {.name = "faulty",
                                        .create = disk_create,
                                        .append = disk_append,
                                        .sync = disk_sync,
                                        .close = disk_close,
                                        .publish = disk_publish,
                                        .rename = disk_rename,
                                        .remove = disk_remove,
                                        .sync_path = disk_sync_path,
                                        .size = disk_size,
                                        .read = disk_read,
                                        .list = disk_list,
                                        .make_folder = disk_make_folder};

// ---- the whole

pen_status faulty_disk_new(uint64_t seed, pen_arena *arena, faulty_disk **out_disk) {
    PEN_TRY(PEN_NEW(arena, 1, out_disk));
    (*out_disk)->arena = arena;
    (*out_disk)->dice.state = seed;
    return PEN_OK;
}

pen_status faulty_view_new(faulty_disk *disk, uint32_t owner, faulty_view **out_view) {
    PEN_TRY(PEN_NEW(disk->arena, 1, out_view));
    **out_view = (faulty_view){.base = {&disk_kind}, .disk = disk, .owner = owner};
    return PEN_OK;
}

void faulty_disk_set_rates(faulty_disk *disk, const faulty_disk_rates *rates) {
    disk->rates = *rates;
}

const faulty_disk_counts *faulty_disk_get_counts(const faulty_disk *disk) {
    return &disk->counts;
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
    for (uint32_t i = 0; i < disk->name_count; i++) {
        disk_node *node = disk->names[i]->node;
        if (node == NULL || (owner != FAULTY_DISK_ANY && node->owner != owner)) continue;
        disk_node_tear(disk, node);
    }
}

bool faulty_disk_rot(faulty_disk *disk, const char *path) {
    const disk_name *name = disk_find(disk, path);
    if (name == NULL || name->node == NULL || name->node->count == 0) return false;
    disk_node *node = name->node;
    const uint64_t at = chance_below(&disk->dice, node->count);
    const uint8_t bit = (uint8_t)(1u << chance_below(&disk->dice, 8));
    node->bytes[at] ^= bit;
    if (node->safe != node->bytes && at < node->safe_count) node->safe[at] ^= bit;
    disk->counts.rotten += 1;
    return true;
}

const uint8_t *faulty_disk_look(const faulty_disk *disk, const char *path, bool is_safe,
                                uint64_t *out_count) {
    const disk_name *name = disk_find(disk, path);
    const disk_node *node = name == NULL ? NULL : is_safe ? name->safe : name->node;
    if (node == NULL) return NULL;
    *out_count = is_safe ? node->safe_count : node->count;
    return is_safe ? node->safe : node->bytes;
}

const char *faulty_disk_name(const faulty_disk *disk, uint32_t index) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < disk->name_count; i++) {
        if (disk->names[i]->node == NULL) continue;
        if (count++ == index) return disk->names[i]->path;
    }
    return NULL;
}
