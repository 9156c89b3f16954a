// The way home: the `.keras` archive or `.h5` file that a model was read from, with the contents
// that its weights and statistics have now. All else stays as it is, byte for byte, but for the
// checksums of an archive; so `keras.models.load_model` takes it, and goes on from there.
//
// Keras stores weights in one piece each, as they are: they are written over where they lie, and
// nothing of HDF5 is written anew. An optimizer's state, if the file has one, stays as it is, too.
#ifndef PEN_GRAPH_IMPORT_KERAS_KERAS_EXPORT_H
#define PEN_GRAPH_IMPORT_KERAS_KERAS_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/import/export_contents.h"
#include "graph/import/import.h"

#define PEN_KERAS_WEIGHTS_MEMBER "model.weights.h5" // of an archive

// A dataset that a weight was read from.
typedef struct pen_keras_dataset {
    uint32_t weight; // of the model's layers
    const char *path;
    uint64_t offset; // in the HDF5 file; PEN_HDF5_STREAM_ON_REQUEST: it is not in one piece
} pen_keras_dataset;

// What a model remembers of the file that it came from. Lives in the model's arena.
typedef struct pen_keras_origin {
    const uint8_t *bytes; // [length], the file
    size_t length;
    bool is_archive;
    bool has_optimizer;                // that has a state, of the weights as they were
    const pen_keras_dataset *datasets; // [dataset_count]
    uint32_t dataset_count;
} pen_keras_origin;

typedef struct pen_keras_export_options {
    bool as_archive; // .keras is what is wanted; else .h5
    pen_export_contents contents;
} pen_keras_export_options;

// Writes `path`, atomically; NULL: only looks whether the model can be written.
//   UNSUPPORTED  the model did not come from such a file; its archive is compressed, or a dataset
//   CORRUPT      datasets lie over one another
//   IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_keras_export(const pen_model *model,
                                          const pen_keras_export_options *options,
                                          const char *path);

#endif // PEN_GRAPH_IMPORT_KERAS_KERAS_EXPORT_H
