#include "tests/support/failing_disk.h"

#include <stdlib.h>

typedef struct failing_file {
    failing_disk *disk;
    pen_disk_file *inner;
} failing_file;

static pen_disk *failing_inner(void) {
    return pen_disk_of_machine();
}

static const pen_disk_kind *failing_kind(void) {
    return failing_inner()->kind;
}

static pen_status failing_error(void) {
    return pen_error(PEN_NO_STORAGE, "the disk fails, as the test wants it");
}

// What becomes of a call: whether it is done at all, and what it says.
typedef enum failing_fate {
    FAILING_DONE,
    FAILING_HALF,
    FAILING_NOT,
    FAILING_DONE_BUT,
} failing_fate;

static failing_fate failing_decide(pen_disk *disk) {
    failing_disk *failing = (failing_disk *)disk;
    failing->call += 1;
    if (failing->fail_at == 0 || failing->call < failing->fail_at) return FAILING_DONE;
    const bool is_it = failing->call == failing->fail_at;
    switch (failing->mode) {
    case FAILING_DISK_ONCE:
        return is_it ? FAILING_NOT : FAILING_DONE;
    case FAILING_DISK_SHORT:
        return is_it ? FAILING_HALF : FAILING_DONE;
    case FAILING_DISK_DEAD:
        return is_it ? FAILING_HALF : FAILING_NOT;
    case FAILING_DISK_LATE:
        return is_it ? FAILING_DONE_BUT : FAILING_DONE;
    }
    return FAILING_NOT;
}

static pen_status failing_finish(failing_fate fate, pen_status status) {
    if (fate == FAILING_DONE) return status;
    pen_status_ignore(status, "said in other words");
    return failing_error();
}

static pen_status failing_create(pen_disk *disk, const char *path, pen_disk_file **out_file) {
    const failing_fate fate = failing_decide(disk);
    if (fate == FAILING_NOT) return failing_error();
    failing_file *file = calloc(1, sizeof *file);
    if (file == NULL) return pen_error_out_of_memory();
    file->disk = (failing_disk *)disk;
    const pen_status status = failing_kind()->create(failing_inner(), path, &file->inner);
    if (status != PEN_OK || fate != FAILING_DONE) {
        if (status == PEN_OK) failing_kind()->close(file->inner);
        free(file);
        return failing_finish(fate, status);
    }
    *out_file = (pen_disk_file *)file;
    return PEN_OK;
}

static pen_status failing_append(pen_disk_file *handle, const void *bytes, uint64_t count) {
    failing_file *file = (failing_file *)handle;
    const failing_fate fate = failing_decide(&file->disk->disk);
    if (fate == FAILING_NOT) return failing_error();
    if (fate == FAILING_HALF) count /= 2;
    return failing_finish(fate, failing_kind()->append(file->inner, bytes, count));
}

static pen_status failing_sync(pen_disk_file *handle) {
    failing_file *file = (failing_file *)handle;
    const failing_fate fate = failing_decide(&file->disk->disk);
    if (fate == FAILING_NOT || fate == FAILING_HALF) return failing_error();
    return failing_finish(fate, failing_kind()->sync(file->inner));
}

static void failing_close(pen_disk_file *handle) {
    if (handle == NULL) return;
    failing_file *file = (failing_file *)handle;
    failing_kind()->close(file->inner);
    free(file);
}

static pen_status failing_publish(pen_disk *disk, const char *from, const char *to,
                                  bool *out_is_taken) {
    const failing_fate fate = failing_decide(disk);
    *out_is_taken = false;
    if (fate == FAILING_NOT || fate == FAILING_HALF) return failing_error();
    return failing_finish(fate, failing_kind()->publish(failing_inner(), from, to, out_is_taken));
}

// The calls with a path that are done or not.
#define FAILING_CALL(disk, call)                                                                   \
    const failing_fate fate = failing_decide(disk);                                                \
    if (fate == FAILING_NOT || fate == FAILING_HALF) return failing_error();                       \
    return failing_finish(fate, failing_kind()->call)

static pen_status failing_rename(pen_disk *disk, const char *from, const char *to) {
    FAILING_CALL(disk, rename(failing_inner(), from, to));
}

static pen_status failing_remove(pen_disk *disk, const char *path) {
    FAILING_CALL(disk, remove(failing_inner(), path));
}

static pen_status failing_sync_path(pen_disk *disk, const char *path) {
    FAILING_CALL(disk, sync_path(failing_inner(), path));
}

static pen_status failing_size(pen_disk *disk, const char *path, uint64_t *out_bytes) {
    FAILING_CALL(disk, size(failing_inner(), path, out_bytes));
}

static pen_status failing_read(pen_disk *disk, const char *path, uint64_t offset, void *out,
                               uint64_t count) {
    FAILING_CALL(disk, read(failing_inner(), path, offset, out, count));
}

static pen_status failing_list(pen_disk *disk, const char *folder, uint32_t limit, pen_arena *arena,
                               const char *const **out_names, uint32_t *out_count) {
    FAILING_CALL(disk, list(failing_inner(), folder, limit, arena, out_names, out_count));
}

static pen_status failing_make_folder(pen_disk *disk, const char *path) {
    FAILING_CALL(disk, make_folder(failing_inner(), path));
}

static const pen_disk_kind failing_disk_kind = {
    .name = "failing",
    .create = failing_create,
    .append = failing_append,
    .sync = failing_sync,
    .close = failing_close,
    .publish = failing_publish,
    .rename = failing_rename,
    .remove = failing_remove,
    .sync_path = failing_sync_path,
    .size = failing_size,
    .read = failing_read,
    .list = failing_list,
    .make_folder = failing_make_folder,
};

void failing_disk_init(failing_disk *disk, uint64_t fail_at, failing_disk_mode mode) {
    *disk = (failing_disk){.disk.kind = &failing_disk_kind, .fail_at = fail_at, .mode = mode};
}

bool failing_disk_has_failed(const failing_disk *disk) {
    return disk->fail_at != 0 && disk->call >= disk->fail_at;
}
