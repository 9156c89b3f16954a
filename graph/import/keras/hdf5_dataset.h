// A dataset of an HDF5 file as libhdf5 reads it: what it is, where it lies, and its rows. May
// crash: for a process of its own (hdf5_serve).
//
// Threads: none.
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_DATASET_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_DATASET_H

#include <stdint.h>

#include "base/status.h"
#include "graph/import/keras/hdf5_reader.h"
#include "graph/tensor_type.h"

typedef struct pen_hdf5_dataset {
    const pen_hdf5_reader *reader;
    const char *path;
    hid_t id, type, space, creation;
    hid_t memory; // the type of its elements here; libhdf5's own, not closed
    pen_tensor_type tensor;
    uint64_t bytes;
    uint64_t offset; // in the file, or PEN_HDF5_STREAM_ON_REQUEST: not in one piece, or otherwise
    uint64_t row_count, row_bytes; // of the outermost dimension
    uint64_t rows_at_once;         // what is best read together
} pen_hdf5_dataset;

// Opens and describes it. `path` is borrowed. Close it whatever comes of it.
//   UNSUPPORTED    elements that Penstock does not have; external or virtual storage; filters
//   INVALID_INPUT  too large
//   CORRUPT
PEN_NODISCARD pen_status pen_hdf5_dataset_open(const pen_hdf5_reader *reader, const char *path,
                                               pen_hdf5_dataset *out_dataset);
void pen_hdf5_dataset_close(pen_hdf5_dataset *dataset);

// Reads `count` rows from `first` on into `rows`. CORRUPT
PEN_NODISCARD pen_status pen_hdf5_dataset_read(const pen_hdf5_dataset *dataset, uint64_t first,
                                               uint64_t count, void *rows);

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_DATASET_H
