#include "scheduler/store/shared_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHARED_PARTS_LIMIT 32u // of a path's end that is looked for
#define SHARED_MARK_PREFIX ".penstock-"
#define SHARED_MARK_DIGITS 16
#define SHARED_MARK_FORMAT SHARED_MARK_PREFIX "%016" PRIx64
#define SHARED_FILES_LIMIT (1u << 20) // in a folder that is swept
#define SHARED_PATH_BYTES 4096

pen_status pen_shared_folders_add(pen_shared_folders *folders, const char *folder) {
    PEN_ASSERT(folders->count < PEN_SHARED_FOLDER_LIMIT);
    PEN_TRY(pen_disk_beneath_init(&folders->folders[folders->count], folder));
    folders->count += 1;
    return PEN_OK;
}

static pen_status shared_format(const char *folder, uint64_t mark, char out[SHARED_PATH_BYTES]) {
    const int length = snprintf(out, SHARED_PATH_BYTES, "%s/" SHARED_MARK_FORMAT, folder, mark);
    if (length > 0 && length < SHARED_PATH_BYTES) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "the path '%.60s…' is too long", folder);
}

pen_status pen_shared_folder_mark(const char *folder, uint64_t mark) {
    pen_disk *disk = pen_disk_of_machine();
    char path[SHARED_PATH_BYTES];
    pen_disk_file *file;
    PEN_TRY(shared_format(folder, mark, path));
    PEN_TRY(disk->kind->make_folder(disk, folder)); // each time: somebody may have removed it
    PEN_TRY(disk->kind->create(disk, path, &file));
    disk->kind->close(file);
    return PEN_OK;
}

void pen_shared_folder_unmark(const char *folder, uint64_t mark) {
    pen_disk *disk = pen_disk_of_machine();
    char path[SHARED_PATH_BYTES];
    pen_status status = shared_format(folder, mark, path);
    if (status == PEN_OK) status = disk->kind->remove(disk, path);
    pen_status_ignore(status, "it is empty, and nobody looks for it again");
}

static bool shared_is_mark(const char *name) {
    const size_t prefix = strlen(SHARED_MARK_PREFIX);
    return strncmp(name, SHARED_MARK_PREFIX, prefix) == 0 &&
           strspn(name + prefix, "0123456789abcdef") == SHARED_MARK_DIGITS &&
           name[prefix + SHARED_MARK_DIGITS] == '\0';
}

static pen_status shared_sweep(const char *folder, pen_arena *arena) {
    pen_disk *disk = pen_disk_of_machine();
    const char *const *names;
    uint32_t count;
    PEN_TRY(disk->kind->list(disk, folder, SHARED_FILES_LIMIT, arena, &names, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *path;
        if (!shared_is_mark(names[i])) continue;
        PEN_TRY(pen_arena_format(arena, &path, "%s/%s", folder, names[i]));
        PEN_TRY(disk->kind->remove(disk, path));
    }
    return PEN_OK;
}

void pen_shared_folder_sweep(const char *folder) {
    pen_arena *arena = NULL;
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) status = shared_sweep(folder, arena);
    pen_arena_destroy(arena);
    pen_status_ignore(status, "they are empty, and nobody looks for them again");
}

static bool shared_is_marked(pen_disk *disk, const char *name, uint64_t mark) {
    char path[SHARED_PATH_BYTES];
    uint64_t bytes;
    pen_status status = shared_format(name, mark, path);
    const char *in_root = path + strlen("./");
    if (status == PEN_OK) {
        status = disk->kind->size(disk, strcmp(name, ".") == 0 ? in_root : path, &bytes);
    }
    const bool is_marked = status == PEN_OK;
    pen_status_ignore(status, "then it is not there");
    return is_marked;
}

// Where the last `limit` parts of a path begin.
static const char *shared_find_end(const char *path, uint32_t limit) {
    const char *end = path + strlen(path);
    uint32_t count = 0;
    while (end > path) {
        if (end[-1] == '/' && ++count == limit) break;
        end -= 1;
    }
    return end;
}

// From the longest end of the path to the shortest, the folder itself.
static bool shared_find_beneath(pen_disk *disk, const char *path, uint64_t mark, char *out_name,
                                size_t size) {
    const char *end = shared_find_end(path, SHARED_PARTS_LIMIT);
    for (; *end != '\0'; end += strcspn(end, "/")) {
        end += strspn(end, "/");
        if (*end == '\0' || !shared_is_marked(disk, end, mark)) continue;
        const int length = snprintf(out_name, size, "%s", end);
        return length > 0 && (size_t)length < size;
    }
    (void)snprintf(out_name, size, ".");
    return shared_is_marked(disk, ".", mark);
}

bool pen_shared_folders_find(pen_shared_folders *folders, const char *path, uint64_t mark,
                             pen_disk **out_disk, char *out_name, size_t size) {
    for (uint32_t f = 0; f < folders->count; f++) {
        *out_disk = &folders->folders[f].disk;
        if (shared_find_beneath(*out_disk, path, mark, out_name, size)) return true;
    }
    return false;
}
