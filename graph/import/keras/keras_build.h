// A Keras model as a graph: each layer is applied by the layer table, in the order of who reads
// whom.
//
// Layers of a model that is a layer are named "<model>/<layer>".
//
// Threads: one at a time.
#ifndef PEN_GRAPH_IMPORT_KERAS_KERAS_BUILD_H
#define PEN_GRAPH_IMPORT_KERAS_KERAS_BUILD_H

#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/import/keras/keras_config.h"

typedef struct pen_keras_site {
    const char *file;                           // the model's name in messages
    const pen_import_input_shape *input_shapes; // [input_shape_count], of inputs, by name
    uint32_t input_shape_count;
} pen_keras_site;

// Adds inputs, nodes, weights and outputs of `model`, whose options were read, and sets which
// weights each layer has. *out_outputs has [output_count] entries.
//   INVALID_INPUT  layers read each other in a circle; shapes are not known or do not go together
//   UNSUPPORTED    too many layers, models within models unfolded
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_keras_build(pen_keras_model *model, const pen_keras_site *site,
                                         pen_layer_builder *builder, pen_arena *arena,
                                         const pen_layer_tensor **out_outputs);

#endif // PEN_GRAPH_IMPORT_KERAS_KERAS_BUILD_H
