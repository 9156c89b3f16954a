// What is said of an HDF5 file by the process that reads it (hdf5_serve.c) to the one that wants it
// (hdf5_file.c). Numbers are as they lie in the memory of both.
//
//   catalogue  what each object has, in order of their indices: the root is 0, and the entries of a
//              group get the next ones, in their order, once the group was described
//     group    'G'  u32 entries, each: u8 kind, name; in order of names
//                   u32 attributes, each: name, and 'T' u32 texts, each: u32 length, bytes
//                                              or 'E' error
//     dataset  'D'  u8 element, u8 rank, i64 each dimension, u64 where its contents lie in the file
//                   (all ones: they are sent when they are asked for)
//              'E'  error
//     others   nothing
//   'X' error       instead of an object: the file cannot be read
//   contents   asked for by a u32, the index of the dataset: pieces until all is there, each
//              u32 length, bytes; length 0: error
//   name       u16 length, bytes
//   error      u8 code, u16 length, bytes
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_STREAM_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define PEN_HDF5_STREAM_GROUP 'G'
#define PEN_HDF5_STREAM_DATASET 'D'
#define PEN_HDF5_STREAM_TEXTS 'T'
#define PEN_HDF5_STREAM_ERROR 'E'
#define PEN_HDF5_STREAM_FAILURE 'X'
#define PEN_HDF5_STREAM_ON_REQUEST UINT64_MAX
#define PEN_HDF5_STREAM_PACKING_LIMIT 1100 // deflate makes at most 1032 bytes of one
#define PEN_HDF5_STREAM_MESSAGE_LIMIT 1024 // bytes of an error's text
#define PEN_HDF5_STREAM_PIECE_LIMIT (4u << 20)

typedef enum pen_hdf5_kind {
    PEN_HDF5_ABSENT,
    PEN_HDF5_GROUP,
    PEN_HDF5_DATASET,
    PEN_HDF5_OTHER, // a link to somewhere else, or back to a group that this is in; a named type
} pen_hdf5_kind;

// Where the stream comes from. Errors are about the whole file: nothing is read after one.
typedef struct pen_hdf5_source {
    void *context;
    // All `length` bytes, or an error.
    pen_status (*read)(void *context, void *bytes, size_t length);
    // Asks for the contents of a dataset.
    pen_status (*ask)(void *context, uint32_t object);
    uint64_t catalogue_bytes; // that there can be
    uint64_t contents_bytes;  // that there can be of a dataset
} pen_hdf5_source;

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_STREAM_H
