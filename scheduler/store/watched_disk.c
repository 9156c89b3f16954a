#include "scheduler/store/watched_disk.h"

static const pen_disk_kind *watched_kind(void) {
    return pen_disk_of_machine()->kind;
}

static pen_status watched_tell(pen_disk *disk, pen_status status) {
    const pen_watched_disk *watched = (const pen_watched_disk *)(const void *)disk;
    if (status == PEN_OK) watched->progress(watched->context);
    return status;
}

static pen_status watched_create(pen_disk *disk, const char *path, pen_disk_file **out_file) {
    return watched_tell(disk, watched_kind()->create(pen_disk_of_machine(), path, out_file));
}

static pen_status watched_append(pen_disk_file *file, const void *bytes, uint64_t count) {
    return watched_kind()->append(file, bytes, count);
}

static pen_status watched_sync(pen_disk_file *file) {
    return watched_kind()->sync(file);
}

static void watched_close(pen_disk_file *file) {
    watched_kind()->close(file);
}

static pen_status watched_publish(pen_disk *disk, const char *from, const char *to,
                                  bool *out_is_taken) {
    return watched_tell(disk,
                        watched_kind()->publish(pen_disk_of_machine(), from, to, out_is_taken));
}

static pen_status watched_rename(pen_disk *disk, const char *from, const char *to) {
    return watched_tell(disk, watched_kind()->rename(pen_disk_of_machine(), from, to));
}

static pen_status watched_remove(pen_disk *disk, const char *path) {
    return watched_tell(disk, watched_kind()->remove(pen_disk_of_machine(), path));
}

static pen_status watched_sync_path(pen_disk *disk, const char *path) {
    return watched_tell(disk, watched_kind()->sync_path(pen_disk_of_machine(), path));
}

static pen_status watched_size(pen_disk *disk, const char *path, uint64_t *out_bytes) {
    return watched_tell(disk, watched_kind()->size(pen_disk_of_machine(), path, out_bytes));
}

static pen_status watched_read(pen_disk *disk, const char *path, uint64_t offset, void *out,
                               uint64_t count) {
    return watched_tell(disk,
                        watched_kind()->read(pen_disk_of_machine(), path, offset, out, count));
}

static pen_status watched_list(pen_disk *disk, const char *folder, uint32_t limit, pen_arena *arena,
                               const char *const **out_names, uint32_t *out_count) {
    return watched_tell(disk, watched_kind()->list(pen_disk_of_machine(), folder, limit, arena,
                                                   out_names, out_count));
}

static pen_status watched_make_folder(pen_disk *disk, const char *path) {
    return watched_tell(disk, watched_kind()->make_folder(pen_disk_of_machine(), path));
}

static const pen_disk_kind watched_disk = {.name = "watched",
                                           .create = watched_create,
                                           .append = watched_append,
                                           .sync = watched_sync,
                                           .close = watched_close,
                                           .publish = watched_publish,
                                           .rename = watched_rename,
                                           .remove = watched_remove,
                                           .sync_path = watched_sync_path,
                                           .size = watched_size,
                                           .read = watched_read,
                                           .list = watched_list,
                                           .make_folder = watched_make_folder};

void pen_watched_disk_init(pen_watched_disk *disk, void (*progress)(void *context), void *context) {
    *disk =
        (pen_watched_disk){.disk.kind = &watched_disk, .progress = progress, .context = context};
}
