// What Keras' JSON says a model is: layers, and which reads which.
//
// Sequential and functional models are one thing here, and so are models that are layers of others:
// a layer with a `model` of its own. Both ways in which Keras writes who reads whom are read, that
// of Keras 2 (lists of names) and that of Keras 3 (objects).
//
// Lifetime: all lives in the arena given, and borrows the JSON.
// Threads:  one at a time.
#ifndef PEN_GRAPH_IMPORT_KERAS_KERAS_CONFIG_H
#define PEN_GRAPH_IMPORT_KERAS_KERAS_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/keras_layers/layer.h"

// A result of a call of a layer.
typedef struct pen_keras_reference {
    uint32_t layer; // of the same model
    uint32_t call;
    uint32_t tensor;
} pen_keras_reference;

// One application of a layer.
typedef struct pen_keras_call {
    uint32_t input_count;
    pen_keras_reference *inputs; // [input_count]
    const json_t *arguments;     // by name, besides tensors; NULL: none
    bool is_masked;
    pen_keras_reference mask; // its argument "mask"
} pen_keras_call;

typedef struct pen_keras_model pen_keras_model;

typedef struct pen_keras_layer {
    const char *name;
    const char *class_name; // "Conv2D"
    const json_t *config;   // an object
    const json_t *shape;    // of an input: a list, with the batch; else NULL
    bool is_input;
    bool is_trainable;
    bool is_mask; // Keras' note of which steps an Embedding with mask_zero reads no 0 at: nothing
                  // reads it but as a mask
    uint32_t call_count;
    pen_keras_call *calls;  // [call_count]
    pen_keras_model *model; // of a model that is a layer; else NULL

    // What builds it, of all that are neither inputs nor models (keras_options.h).
    const pen_layer *builds;
    const void *options; // the struct of builds->options

    // Which weights of the builder are its own, once it was applied (keras_build.h).
    bool is_built;
    uint32_t weight_first;
    uint32_t weight_count;
} pen_keras_layer;

struct pen_keras_model {
    const char *name;
    bool is_sequential;
    uint32_t layer_count;
    pen_keras_layer *layers; // [layer_count], as in the file; first an input, of a sequential model
    uint32_t input_count;
    pen_keras_reference *inputs; // [input_count], of layers that are inputs
    uint32_t output_count;
    pen_keras_reference *outputs; // [output_count]
};

// Reads {"class_name": "Sequential", "config": …}.
//   INVALID_INPUT  says what is missing, or refers to what there is not, by the layer's name
//   UNSUPPORTED    a model of the user's own class
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_keras_config_read(const json_t *root, pen_arena *arena,
                                               pen_keras_model **out_model);

#endif // PEN_GRAPH_IMPORT_KERAS_KERAS_CONFIG_H
