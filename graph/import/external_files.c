#include "graph/import/external_files.h"

#include <string.h>

#include "base/limits.h"
#include "base/system/file_beneath.h"

struct pen_external_file {
    const char *location;
    pen_mapping mapping;
    pen_external_file *next;
};

void pen_external_files_init(pen_external_files *files, const char *folder, pen_arena *arena) {
    *files = (pen_external_files){.folder = folder, .arena = arena};
}

void pen_external_files_forget(const pen_external_files *files) {
    for (const pen_external_file *file = files->first; file != NULL; file = file->next) {
        pen_mapping_forget(&file->mapping);
    }
}

bool pen_external_files_have(const pen_external_files *files, const char *path) {
    for (const pen_external_file *file = files->first; file != NULL; file = file->next) {
        if (pen_mapping_is_of(&file->mapping, path)) return true;
    }
    return false;
}

void pen_external_files_deinit(pen_external_files *files) {
    for (pen_external_file *file = files->first; file != NULL; file = file->next) {
        pen_mapping_close(&file->mapping);
    }
    files->first = NULL;
}

// A file is mapped once, however many tensors lie in it, and only if it lies beneath the model's
// folder.
pen_status pen_external_files_open(pen_external_files *files, const char *location,
                                   const pen_mapping **out_mapping) {
    for (const pen_external_file *file = files->first; file != NULL; file = file->next) {
        if (strcmp(file->location, location) != 0) continue;
        *out_mapping = &file->mapping;
        return PEN_OK;
    }
    if (files->folder == NULL) {
        return pen_error(
            PEN_INVALID_INPUT,
            "its contents are in file '%s', but the model is no file and has no folder", location);
    }
    if (files->count == PEN_EXTERNAL_FILES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the contents are in more than %d files",
                         PEN_EXTERNAL_FILES_LIMIT);
    }
    pen_external_file *file;
    PEN_TRY(PEN_NEW(files->arena, 1, &file));
    PEN_TRY(pen_arena_copy_text(files->arena, location, strlen(location), &file->location));
    PEN_TRY(pen_mapping_open_beneath(files->folder, location, &file->mapping));
    file->next = files->first;
    files->first = file;
    files->count += 1;
    *out_mapping = &file->mapping;
    return PEN_OK;
}
