// HDF5 files in memory: what Keras keeps models and weights in.
//
// libhdf5 reads the file, in a process of its own (hdf5_process.h), which says what is in it; here
// is what it said. Only what lies in the bytes given is looked at: links to other places, external
// and virtual storage, and filters that would be loaded from a plugin are refused. Sizes that the
// file states are checked before anything is allocated for them.
//
// Paths are absolute within the file, with '/': "/model_weights/dense/dense/kernel:0".
//
// Lifetime: a file borrows its bytes until it is closed, and owns its process until then. Names and
//           texts live as long as the file; the contents of datasets are borrowed from the bytes
//           where they are stored in one piece, at any alignment, and live in the arena otherwise.
// Threads:  a file, one at a time.
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_FILE_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/import/keras/hdf5_stream.h"
#include "graph/tensor_type.h"

typedef struct pen_hdf5 pen_hdf5;

// `name` stands for the file in messages, and is borrowed.
//   CORRUPT        it is no HDF5 file, or a damaged one: libhdf5 crashes on it, or does not end
//   INVALID_INPUT  beyond the limits on HDF5 of base/limits.h
//   NOT_FOUND      there is no libhdf5
//   UNAVAILABLE    the system refused another process
//   DEADLINE       the process says nothing
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hdf5_open(const char *name, const void *bytes, size_t length,
                                       pen_hdf5 **out_file);
// The same of what `source` says, which is borrowed, with all that its functions need.
PEN_NODISCARD pen_status pen_hdf5_open_stream(const char *name, const void *bytes, size_t length,
                                              const pen_hdf5_source *source, pen_hdf5 **out_file);
// Accepts NULL.
void pen_hdf5_close(pen_hdf5 *file);

pen_hdf5_kind pen_hdf5_find(const pen_hdf5 *file, const char *path);

// What is in the group at `path`, in order of names. NOT_FOUND  there is no group
typedef struct pen_hdf5_entry {
    const char *name;
    pen_hdf5_kind kind;
} pen_hdf5_entry;
PEN_NODISCARD pen_status pen_hdf5_list(const pen_hdf5 *file, const char *path, pen_arena *arena,
                                       uint32_t *out_count, const pen_hdf5_entry **out_entries);

// The texts of attribute `attribute` of the group at `path`: one when it is a scalar. NULL, and
// none, when there is no such attribute.
//   NOT_FOUND      there is no such group
//   INVALID_INPUT  the attribute is no text, or beyond PEN_HDF5_TEXTS_LIMIT, PEN_HDF5_TEXT_LIMIT
//   CORRUPT
PEN_NODISCARD pen_status pen_hdf5_read_texts(const pen_hdf5 *file, const char *path,
                                             const char *attribute, uint32_t *out_count,
                                             const char *const **out_texts);

// The type of the dataset at `path`, as pen_hdf5_read_dataset, which takes memory for contents that
// are packed.
PEN_NODISCARD pen_status pen_hdf5_find_type(const pen_hdf5 *file, const char *path,
                                            pen_tensor_type *out_type);

// Type and contents of the dataset at `path`, little endian.
//   NOT_FOUND      there is none
//   UNSUPPORTED    elements that Penstock does not have; external or virtual storage; filters; more
//                  than is unpacked of a file of its size (base/format/unpack.h)
//   INVALID_INPUT  too large
//   CORRUPT, DEADLINE, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hdf5_read_dataset(pen_hdf5 *file, const char *path, pen_arena *arena,
                                               pen_tensor_type *out_type, const void **out_data);

// Where in the file the contents of the dataset at `path` lie, little endian, in one piece.
// PEN_HDF5_STREAM_ON_REQUEST: they do not, or there is no such dataset.
uint64_t pen_hdf5_find_offset(const pen_hdf5 *file, const char *path);

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_FILE_H
