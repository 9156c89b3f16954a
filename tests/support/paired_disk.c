#include "tests/support/paired_disk.h"

#include <string.h>

struct paired_file {
    paired_disk *disk;
    uint32_t index;
    pen_disk_file *inner;
};

bool paired_disk_has_crashed(const paired_disk *disk) {
    return disk->views[0]->has_crashed || disk->views[1]->has_crashed;
}

// Every call begins here; false: the disk is dead by now. The process ends on both disks at once.
static bool paired_enter(paired_disk *disk, uint32_t index) {
    for (uint32_t d = 0; d < 2; d++) {
        disk->views[d]->has_crashed |= paired_disk_has_crashed(disk);
    }
    disk->call_count += 1;
    if (disk->crash_at == disk->call_count) {
        disk->views[index]->crash_at = disk->views[index]->call_count + 1;
    }
    return disk->fail_at == 0 || disk->call_count < disk->fail_at || disk->fail_disk != index ||
           paired_disk_has_crashed(disk) || disk->crash_at == disk->call_count;
}

static pen_status paired_dead(const char *path) {
    return pen_error(PEN_NO_STORAGE, "the disk of '%s' is dead", path);
}

static uint32_t paired_index(const char *path) {
    return strncmp(path, "two", 3) == 0;
}

// The view that a path is on, and its kind. Declares both; returns where the disk is dead.
#define PAIRED_ROUTE(self, path)                                                                   \
    paired_disk *pair = (paired_disk *)(void *)(self);                                             \
    const uint32_t index = paired_index(path);                                                     \
    if (!paired_enter(pair, index)) return paired_dead(path);                                      \
    pen_disk *inner = &pair->views[index]->base

static pen_status paired_create(pen_disk *self, const char *path, pen_disk_file **out_file) {
    struct paired_file *file;
    PAIRED_ROUTE(self, path);
    PEN_TRY(PEN_NEW(pair->arena, 1, &file));
    *file = (struct paired_file){.disk = pair, .index = index};
    PEN_TRY(inner->kind->create(inner, path, &file->inner));
    *out_file = (pen_disk_file *)(void *)file;
    return PEN_OK;
}

static pen_status paired_append(pen_disk_file *handle, const void *bytes, uint64_t count) {
    struct paired_file *file = (struct paired_file *)(void *)handle;
    if (!paired_enter(file->disk, file->index)) return paired_dead("a file");
    return file->disk->views[file->index]->base.kind->append(file->inner, bytes, count);
}

static pen_status paired_sync(pen_disk_file *handle) {
    struct paired_file *file = (struct paired_file *)(void *)handle;
    if (!paired_enter(file->disk, file->index)) return paired_dead("a file");
    return file->disk->views[file->index]->base.kind->sync(file->inner);
}

static void paired_close(pen_disk_file *handle) {
    (void)handle; // the arena has it
}

static pen_status paired_publish(pen_disk *self, const char *from, const char *to,
                                 bool *out_is_taken) {
    *out_is_taken = false;
    PAIRED_ROUTE(self, to);
    return inner->kind->publish(inner, from, to, out_is_taken);
}

static pen_status paired_rename(pen_disk *self, const char *from, const char *to) {
    PAIRED_ROUTE(self, to);
    return inner->kind->rename(inner, from, to);
}

static pen_status paired_remove(pen_disk *self, const char *path) {
    PAIRED_ROUTE(self, path);
    return inner->kind->remove(inner, path);
}

// Of the folder that both lie in nothing is known: they are there.
static pen_status paired_sync_path(pen_disk *self, const char *path) {
    if (strcmp(path, ".") == 0) return PEN_OK;
    PAIRED_ROUTE(self, path);
    return inner->kind->sync_path(inner, path);
}

static pen_status paired_size(pen_disk *self, const char *path, uint64_t *out_bytes) {
    PAIRED_ROUTE(self, path);
    return inner->kind->size(inner, path, out_bytes);
}

static pen_status paired_read(pen_disk *self, const char *path, uint64_t offset, void *out,
                              uint64_t count) {
    PAIRED_ROUTE(self, path);
    return inner->kind->read(inner, path, offset, out, count);
}

static pen_status paired_list(pen_disk *self, const char *folder, uint32_t limit, pen_arena *arena,
                              const char *const **out_names, uint32_t *out_count) {
    PAIRED_ROUTE(self, folder);
    return inner->kind->list(inner, folder, limit, arena, out_names, out_count);
}

static pen_status paired_make_folder(pen_disk *self, const char *path) {
    PAIRED_ROUTE(self, path);
    return inner->kind->make_folder(inner, path);
}

static const pen_disk_kind paired_kind = {.name = "paired",
                                          .create = paired_create,
                                          .append = paired_append,
                                          .sync = paired_sync,
                                          .close = paired_close,
                                          .publish = paired_publish,
                                          .rename = paired_rename,
                                          .remove = paired_remove,
                                          .sync_path = paired_sync_path,
                                          .size = paired_size,
                                          .read = paired_read,
                                          .list = paired_list,
                                          .make_folder = paired_make_folder};

pen_status paired_disk_new(faulty_disk *const disks[2], uint32_t owner, pen_arena *arena,
                           paired_disk **out_disk) {
    PEN_TRY(PEN_NEW(arena, 1, out_disk));
    (*out_disk)->base.kind = &paired_kind;
    (*out_disk)->arena = arena;
    for (uint32_t d = 0; d < 2; d++) {
        PEN_TRY(faulty_view_new(disks[d], owner, &(*out_disk)->views[d]));
    }
    return PEN_OK;
}
