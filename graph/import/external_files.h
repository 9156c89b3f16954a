// The files of a model beside its own, each mapped once: external data of ONNX, shards of
// variables of TensorFlow.
//
// Their names come from the model and are not trusted: they lie in the model's folder, and are
// reached over no link.
//
// Lifetime: what is mapped stays so until pen_external_files_deinit; the list is in the arena.
// Threads:  one thread at a time; mappings may be read by all.
#ifndef PEN_GRAPH_IMPORT_EXTERNAL_FILES_H
#define PEN_GRAPH_IMPORT_EXTERNAL_FILES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/system/file.h"

typedef struct pen_external_file pen_external_file;
typedef struct pen_external_files {
    const char *folder; // the model's; NULL: external data is refused
    pen_arena *arena;
    pen_external_file *first;
    uint32_t count;
} pen_external_files;

void pen_external_files_init(pen_external_files *files, const char *folder, pen_arena *arena);

// Maps file `location` of the folder, if it is not yet.
//   INVALID_INPUT  its name is not allowed, there is no folder, or there are too many files
//   NOT_FOUND, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_external_files_open(pen_external_files *files, const char *location,
                                                 const pen_mapping **out_mapping);

// Lets the system drop what was read of them.
void pen_external_files_forget(const pen_external_files *files);
// Whether `path` is one of them.
bool pen_external_files_have(const pen_external_files *files, const char *path);
// Unmaps them all.
void pen_external_files_deinit(pen_external_files *files);

#endif // PEN_GRAPH_IMPORT_EXTERNAL_FILES_H
