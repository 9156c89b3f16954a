// The weights of a Keras model in its HDF5 file: where Keras keeps them, and into which parameters
// they go.
//
// There are two ways. Files of whole models (.h5), and of weights alone, have a group for each
// layer with the list of its weights' names. Files within .keras archives have a group for each
// layer by its class and place, and weights by number.
//
// Threads: one at a time.
#ifndef PEN_GRAPH_IMPORT_KERAS_KERAS_WEIGHTS_H
#define PEN_GRAPH_IMPORT_KERAS_KERAS_WEIGHTS_H

#include "base/arena.h"
#include "graph/graph_types.h"
#include "graph/import/keras/hdf5_file.h"
#include "graph/import/keras/keras_config.h"
#include "graph/import/keras/keras_export.h"

typedef struct pen_keras_weights {
    pen_hdf5 *file;
    const char *root; // the group that has all of them: "/model_weights", "/"
    bool is_by_place; // the second way
    const pen_graph *graph;
    pen_layer_builder *builder;
    pen_arena *arena;
} pen_keras_weights;

// Sets the contents of all weights of a model that was built, and tells where they lie in the file.
//   INVALID_INPUT  lists every weight that is not there, is too much, or has another shape
//   CORRUPT, UNSUPPORTED, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_keras_weights_load(const pen_keras_weights *weights,
                                                const pen_keras_model *model,
                                                pen_keras_origin *origin);

#endif // PEN_GRAPH_IMPORT_KERAS_KERAS_WEIGHTS_H
