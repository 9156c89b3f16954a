#include "scheduler/data/file_list.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/reserve.h"
#include "base/system/file.h"

typedef struct file_list {
    pen_dataset_input *files;
    uint32_t count;
    uint32_t capacity;
    pen_arena *arena;
} file_list;

static pen_status file_list_add(file_list *list, const pen_dataset_input *file) {
    if (list->count == PEN_DATA_FILES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "'%s' and others are more than %u files", file->path,
                         PEN_DATA_FILES_LIMIT);
    }
    PEN_TRY(PEN_RESERVE(list->arena, &list->files, list->count, &list->capacity, 16));
    list->files[list->count++] = *file;
    return PEN_OK;
}

static int file_list_compare(const void *left, const void *right) {
    const pen_dataset_input *a = left;
    const pen_dataset_input *b = right;
    return strcmp(a->path, b->path);
}

// Adds what matches in a folder, in the order in which the system has it.
static pen_status file_list_match(file_list *list, DIR *folder, const pen_dataset_input *pattern) {
    const char *name = pen_path_name(pattern->path);
    const int length = (int)(name - pattern->path); // of the folder, with what separates it
    for (;;) {
        pen_dataset_input file = *pattern;
        errno = 0;
        const struct dirent *entry = readdir(folder); // one thread has `folder`
        if (entry == NULL) break;
        if (fnmatch(name, entry->d_name, FNM_PERIOD) != 0) continue;
        PEN_TRY(pen_arena_format(list->arena, &file.path, "%.*s%s", length, pattern->path,
                                 entry->d_name));
        PEN_TRY(file_list_add(list, &file));
    }
    if (errno == 0) return PEN_OK;
    return pen_error(PEN_IO, "cannot read the folder of '%s': %s", pattern->path, strerror(errno));
}

static pen_status file_list_open(const char *pattern, pen_arena *arena, DIR **out_folder) {
    const size_t length = (size_t)(pen_path_name(pattern) - pattern);
    const char *path = ".";
    if (length > 0) PEN_TRY(pen_arena_copy_text(arena, pattern, length, &path));
    *out_folder = opendir(path);
    if (*out_folder != NULL) return PEN_OK;
    if (strpbrk(path, "*?[") != NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': a pattern may stand in the name of a file, not in that of a folder",
                         pattern);
    }
    const pen_status_code code = errno == ENOENT ? PEN_NOT_FOUND : PEN_IO;
    return pen_error(code, "cannot open the folder '%s': %s", path, strerror(errno));
}

static pen_status file_list_add_pattern(file_list *list, const pen_dataset_input *pattern) {
    const uint32_t first = list->count;
    DIR *folder;
    PEN_TRY(file_list_open(pattern->path, list->arena, &folder));
    const pen_status status = file_list_match(list, folder, pattern);
    closedir(folder);
    PEN_TRY(status);
    if (list->count == first) {
        return pen_error(PEN_NOT_FOUND, "no file is called as '%s' says", pattern->path);
    }
    qsort(list->files + first, list->count - first, sizeof *list->files, file_list_compare);
    return PEN_OK;
}

pen_status pen_file_list_expand(const pen_dataset_input *files, uint32_t count, pen_arena *arena,
                                const pen_dataset_input **out_files, uint32_t *out_count) {
    file_list list = {.arena = arena};
    for (uint32_t i = 0; i < count; i++) {
        const bool is_pattern =
            strpbrk(files[i].path, "*?[") != NULL && access(files[i].path, F_OK) != 0;
        PEN_TRY(is_pattern ? file_list_add_pattern(&list, &files[i])
                           : file_list_add(&list, &files[i]));
    }
    *out_files = list.files;
    *out_count = list.count;
    return PEN_OK;
}
