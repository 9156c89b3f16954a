// HDF5 files in memory, read with libhdf5: what Keras keeps models and weights in.
//
// Only what lies in the bytes given is looked at: links to other places, external and virtual
// storage, and filters that would be loaded from a plugin are refused. Sizes that the file states
// are checked before anything is allocated for them. libhdf5 prints nothing: what it complains of
// is in our errors.
//
// Paths are absolute within the file, with '/': "/model_weights/dense/dense/kernel:0".
//
// Lifetime: a file borrows its bytes until it is closed. What is read lives in the arena given; the
//           contents of datasets that are stored in one piece are borrowed from the bytes, at any
//           alignment.
// Threads:  any; libhdf5 is entered by one thread at a time.
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_FILE_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/tensor_type.h"

typedef struct pen_hdf5 pen_hdf5;

typedef enum pen_hdf5_kind {
    PEN_HDF5_ABSENT,
    PEN_HDF5_GROUP,
    PEN_HDF5_DATASET,
    PEN_HDF5_OTHER, // a link to somewhere else, a named type
} pen_hdf5_kind;

typedef struct pen_hdf5_child {
    const char *name;
    pen_hdf5_kind kind;
} pen_hdf5_child;

// `name` stands for the file in messages, and is borrowed.
//   CORRUPT        it is no HDF5 file, or a damaged one
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hdf5_open(const char *name, const void *bytes, size_t length,
                                       pen_hdf5 **out_file);
// Accepts NULL.
void pen_hdf5_close(pen_hdf5 *file);

// What is at `path`. CORRUPT
PEN_NODISCARD pen_status pen_hdf5_find(const pen_hdf5 *file, const char *path,
                                       pen_hdf5_kind *out_kind);

// What is in the group at `path`, in order of names.
//   NOT_FOUND      there is no group
//   INVALID_INPUT  it has more than PEN_HDF5_CHILDREN_LIMIT, or longer names than are allowed
//   CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hdf5_list(const pen_hdf5 *file, const char *path, pen_arena *arena,
                                       uint32_t *out_count, const pen_hdf5_child **out_children);

// The texts of attribute `attribute` of the object at `path`: one when it is a scalar. NULL, and
// none, when there is no such attribute.
//   NOT_FOUND      there is no such object
//   INVALID_INPUT  the attribute is no text, or beyond PEN_HDF5_TEXTS_LIMIT, PEN_HDF5_TEXT_LIMIT
//   CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hdf5_read_texts(const pen_hdf5 *file, const char *path,
                                             const char *attribute, pen_arena *arena,
                                             uint32_t *out_count, const char *const **out_texts);

// Type and contents of the dataset at `path`, little endian.
//   NOT_FOUND      there is none
//   UNSUPPORTED    elements that Penstock does not have; external or virtual storage; filters
//   INVALID_INPUT  too large
//   CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hdf5_read_dataset(const pen_hdf5 *file, const char *path,
                                               pen_arena *arena, pen_tensor_type *out_type,
                                               const void **out_data);

// Keeps all threads out of libhdf5 (hdf5_probe.c).
void pen_hdf5_enter(void);
void pen_hdf5_leave(void);

// The version of libhdf5: "1.10.8".
const char *pen_hdf5_version(void);

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_FILE_H
