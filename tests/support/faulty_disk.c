#include "tests/support/faulty_disk.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/faulty_medium.h"

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
    PEN_TRY(faulty_medium_make(disk, view->owner, &node));
    PEN_TRY(PEN_NEW(disk->arena, 1, &file));
    *file = (pen_disk_file){.view = view, .node = node};
    faulty_medium_note(disk, (disk_operation){.to = faulty_medium_intern(disk, path),
                                              .node = node,
                                              .owner = view->owner});
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
    PEN_TRY(faulty_medium_reserve(disk, node, node->count + written));
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
    if (dies && chance_below(&disk->dice, 2) == 0) faulty_medium_sync(disk, node);
    if (!lives) return disk_refuse("sync", path);
    if (disk_happens(disk, disk->rates.sync)) {
        if (node->is_dirty) node->given_up = node->count;
        return disk_refuse("sync", path);
    }
    faulty_medium_sync(disk, node);
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
    const disk_name *source = faulty_medium_find(disk, from);
    if (source == NULL || source->node == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no file '%s'", from);
    }
    disk_name *target = faulty_medium_intern(disk, to);
    if (target->node != NULL) {
        *out_is_taken = lives;
        return lives ? PEN_OK : disk_refuse("publish", to);
    }
    faulty_medium_note(disk,
                       (disk_operation){.to = target, .node = source->node, .owner = view->owner});
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
    disk_name *source = faulty_medium_find(disk, from);
    if (source == NULL || source->node == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no file '%s'", from);
    }
    faulty_medium_note(disk, (disk_operation){.to = faulty_medium_intern(disk, to),
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
    disk_name *name = faulty_medium_find(disk, path);
    if (name == NULL || name->node == NULL) {
        return pen_error(PEN_NOT_FOUND, "there is no file '%s'", path);
    }
    faulty_medium_note(disk, (disk_operation){.from = name, .owner = view->owner});
    return lives ? PEN_OK : disk_refuse("remove", path);
}

static pen_status disk_sync_path(pen_disk *self, const char *path) {
    faulty_view *view = disk_view(self);
    faulty_disk *disk = view->disk;
    if (strcmp(path, ".") == 0 || strcmp(path, "/") == 0) path = "";
    const disk_name *name = faulty_medium_find(disk, path);
    const bool is_file = name != NULL && name->node != NULL && !name->node->is_folder;
    if (is_file) return disk_sync_node(view, name->node, path);
    bool dies;
    const bool lives = disk_enter(view, &dies);
    if (dies && chance_below(&disk->dice, 2) == 0) faulty_medium_sync_folder(disk, path);
    if (!lives || disk_happens(disk, disk->rates.sync)) return disk_refuse("sync", path);
    faulty_medium_sync_folder(disk, path);
    return PEN_OK;
}

static pen_status disk_size(pen_disk *self, const char *path, uint64_t *out_bytes) {
    faulty_view *view = disk_view(self);
    bool dies;
    if (!disk_enter(view, &dies)) return disk_refuse("look at", path);
    const disk_name *name = faulty_medium_find(view->disk, path);
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
    const disk_name *name = faulty_medium_find(disk, path);
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
        if (name->node == NULL || !faulty_medium_is_in(name, folder, length)) continue;
        PEN_TRY(pen_arena_copy_text(arena, name->path + length + 1, strlen(name->path + length + 1),
                                    &names[count++]));
    }
    if (count > limit) return pen_error(PEN_CORRUPT, "too many files in '%s'", folder);
    qsort(names, count, sizeof *names, disk_compare);
    *out_names = names;
    *out_count = count;
    return PEN_OK;
}

// One folder, made and made durable in the folder that it is in. One that is there is left alone:
// whoever made it may have died before it was durable.
static bool disk_make_one(faulty_view *view, const char *path, bool dies) {
    faulty_disk *disk = view->disk;
    disk_node *node;
    char parent[FAULTY_NAME_BYTES];
    const disk_name *name = faulty_medium_find(disk, path);
    if (name != NULL && name->node != NULL) return true;
    if (dies && chance_below(&disk->dice, 2) == 0) return false;
    if (faulty_medium_make(disk, view->owner, &node) != PEN_OK) abort();
    node->is_folder = true;
    faulty_medium_note(disk, (disk_operation){.to = faulty_medium_intern(disk, path),
                                              .node = node,
                                              .owner = view->owner});
    if (dies && chance_below(&disk->dice, 2) == 0) return false;
    faulty_medium_parent(path, parent);
    if (disk->lie != FAULTY_DISK_LOSES_MADE_FOLDERS) faulty_medium_sync_folder(disk, parent);
    return true;
}

static pen_status disk_make_folder(pen_disk *self, const char *path) {
    char part[FAULTY_NAME_BYTES];
    bool dies;
    const bool lives = disk_enter(disk_view(self), &dies);
    if (!lives && !dies) return disk_refuse("make", path);
    const size_t length = strlen(path);
    PEN_ASSERT(length < sizeof part);
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (!disk_make_one(disk_view(self), part, dies)) break;
    }
    return lives ? PEN_OK : disk_refuse("make", path);
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

void faulty_disk_tear_sectors(faulty_disk *disk) {
    disk->tears_sectors = true;
}

void faulty_disk_tell_lie(faulty_disk *disk, faulty_disk_lie lie) {
    disk->lie = lie;
}

const faulty_disk_counts *faulty_disk_get_counts(const faulty_disk *disk) {
    return &disk->counts;
}

bool faulty_disk_rot(faulty_disk *disk, const char *path) {
    const disk_name *name = faulty_medium_find(disk, path);
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
    const disk_name *name = faulty_medium_find(disk, path);
    const disk_node *node = name == NULL ? NULL : is_safe ? name->safe : name->node;
    if (node == NULL) return NULL;
    *out_count = is_safe ? node->safe_count : node->count;
    return is_safe ? node->safe : node->bytes;
}

const char *faulty_disk_name(const faulty_disk *disk, uint32_t index) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < disk->name_count; i++) {
        if (disk->names[i]->node == NULL || disk->names[i]->node->is_folder) continue;
        if (count++ == index) return disk->names[i]->path;
    }
    return NULL;
}
