// An HDF5 file in memory as libhdf5 reads it. May crash: for a process of its own (hdf5_serve).
//
// Lifetime: a reader and what it gives are never released; their process ends.
// Threads:  none.
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_READER_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/import/keras/hdf5_library.h"

typedef struct pen_hdf5_reader {
    const pen_hdf5_library *h5;
    const char *name; // for messages
    const uint8_t *bytes;
    size_t length;
    pen_arena *arena;
    hid_t file;
} pen_hdf5_reader;

// CORRUPT, NOT_FOUND (no libhdf5), OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hdf5_reader_open(const char *name, const void *bytes, size_t length,
                                              pen_hdf5_reader *out_reader);

// What libhdf5 complains of, about the object at `path`. CORRUPT
PEN_NODISCARD pen_status pen_hdf5_reader_error(const pen_hdf5_reader *reader, const char *path);

// The names of the attributes of an open object.
PEN_NODISCARD pen_status pen_hdf5_reader_list_attributes(const pen_hdf5_reader *reader,
                                                         hid_t object, const char *path,
                                                         uint32_t *out_count, char ***out_names);

// The texts of an attribute: one when it is a scalar. INVALID_INPUT, CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hdf5_reader_read_texts(const pen_hdf5_reader *reader, hid_t object,
                                                    const char *attribute, uint32_t *out_count,
                                                    const char ***out_texts);

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_READER_H
