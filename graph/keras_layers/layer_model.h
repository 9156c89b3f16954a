// A whole model of layers, as it is written:
//
//   inputs: {picture: {shape: [28, 28, 1]}}
//   layers:
//     - conv2d: {filters: 32, kernel_size: 3, activation: relu, name: stem}
//     - flatten
//     - dense: {units: 10}
//   outputs: [dense]
//   seed: 1
//
// A layer reads the one before it, or those that `from` names; so a list without `from` is Keras'
// Sequential, and one with it the functional form. A first layer `input: {shape: [28, 28, 1]}`
// stands for `inputs` of one. Without `outputs` the last layer is the output. A layer with several
// results has those behind the first called "name:1", "name:2".
//
// Lifetime: what was read lives in its arena.
// Threads:  the table is immutable.
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_MODEL_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_MODEL_H

#include <stddef.h>

#include "base/option/option.h"
#include "graph/keras_layers/layer.h"
#include "graph/keras_layers/layer_choices.h"

// One layer of the list.
typedef struct pen_layer_entry {
    unsigned chosen; // the index of the layer in the table
    _Alignas(max_align_t) unsigned char options[PEN_LAYER_OPTIONS_BYTES];
} pen_layer_entry;

typedef struct pen_layer_model {
    pen_option_list inputs;  // of pen_layer_model_input
    pen_option_list layers;  // of pen_layer_entry
    pen_option_list outputs; // of const char *
    int64_t seed;
    bool is_dry; // not read: set, weights get no contents
} pen_layer_model;

// The keys above, for pen_layer_model.
extern const pen_option_table pen_layer_model_table;

// Pieces for a table that has the keys beside others.
extern const pen_option_field pen_layer_model_input_item;
extern const pen_option_field pen_layer_entry_item;

#define PEN_LAYER_MODEL_FIELDS(type, member)                                                       \
    {.key = "inputs",                                                                              \
     .kind = PEN_OPTION_MAP,                                                                       \
     .offset = offsetof(type, member.inputs),                                                      \
     .item = &pen_layer_model_input_item,                                                          \
     .entry_bytes = PEN_LAYER_MODEL_INPUT_BYTES,                                                   \
     .count_minimum = 1,                                                                           \
     .help = "of a model of layers: its inputs"},                                                  \
        {.key = "layers",                                                                          \
         .kind = PEN_OPTION_LIST,                                                                  \
         .offset = offsetof(type, member.layers),                                                  \
         .item = &pen_layer_entry_item,                                                            \
         .count_minimum = 1,                                                                       \
         .help = "the model, layer by layer"},                                                     \
        {.key = "outputs",                                                                         \
         .kind = PEN_OPTION_LIST,                                                                  \
         .offset = offsetof(type, member.outputs),                                                 \
         .item = &pen_layer_text_item,                                                             \
         .is_list_optional = true,                                                                 \
         .count_minimum = 1,                                                                       \
         .help = "the layers that are its outputs; when left out, the last"},                      \
    {                                                                                              \
        .key = "seed", .kind = PEN_OPTION_INTEGER, .offset = offsetof(type, member.seed),          \
        .minimum = PEN_OPTION_FROM(0), .default_text = "0",                                        \
        .help = "decides the first contents of weights"                                            \
    }

typedef struct pen_layer_model_input {
    const char *key;
    pen_option_list shape;
    unsigned dtype;
} pen_layer_model_input;
#define PEN_LAYER_MODEL_INPUT_BYTES sizeof(pen_layer_model_input)

// Builds the model that `model` says into an empty graph. `source` is that of pen_option_read, for
// positions. *out_builder knows the weights. INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_layer_model_build(const pen_layer_model *model,
                                               const pen_option_source *source, pen_graph *graph,
                                               pen_layer_builder **out_builder);

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_MODEL_H
