// The contract of this folder: layers, which are the vocabulary of Keras, one entry of one table
// each. The table is in layer.c, building in layer_builder.c, weights are in layer_weight.c.
//
// A layer has a name ("conv2d"), Keras' class ("Conv2D"), options with Keras' defaults, and a
// function that adds its nodes and weights to a graph. What is written for it (a mapping of YAML,
// or an object of JSON, graph/keras_layers/layer_json.h) becomes a tree of YAML nodes, which the
// layer's option table (base/option/option.h) reads into its struct: so there is one reader of
// options, with one way to say what is wrong. Adding a layer: an entry in its family's file, and a
// line in layer_list.h.
//
// Shapes are the user's: the first dimension is the batch, PEN_LAYER_BATCH, and channels are last,
// as `data_format` says by default. Kernels want channels second; so a tensor of rank 3 to 5 may
// lie with its channels second though its shape has them last (`is_moved`), and is brought back
// only where that is seen: by a layer that mixes dimensions, and in outputs.
//
// Weights are named "<layer>/<weight>" as in Keras ("conv2d/kernel"). Their first contents come
// from the layer's initialisers, as numbers of a stream that the seed and the weight's name choose,
// so they depend on nothing else in the model. A layer that is applied twice under one name has its
// weights once.
//
// Lifetime: all that is made lives in the graph's arena.
// Threads:  a builder belongs to one thread; the table is immutable.
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option/option.h"
#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/keras_layers/layer_choices.h"
#include "graph/tensor_type.h"

#define PEN_LAYER_BATCH ((int64_t)-1) // the first dimension of every shape
#define PEN_LAYER_OUTPUT_LIMIT 5u     // results of one layer
#define PEN_LAYER_BLOCK_LIMIT 4u      // gates of a recurrent layer

// What layers take and give.
typedef struct pen_layer_tensor {
    pen_value_id value;
    pen_element_type element;
    pen_shape shape; // as the user sees it; dims[0] is PEN_LAYER_BATCH, the others are numbers
    bool is_moved;   // the value has the last dimension of `shape` second
    // Which elements of its first `mask_rank` dimensions count: (batch, steps) of a sequence; bool.
    // No mask, and all count: 0.
    uint32_t mask_rank;
    pen_value_id mask;
} pen_layer_tensor;

// What the options of every layer begin with.
typedef struct pen_layer_common {
    const char *name;     // NULL: thought up
    pen_option_list from; // of const char *: layers or inputs that it reads; none: the one before
    bool trainable;
    pen_layer_regularizer activity_regularizer;
} pen_layer_common;

typedef struct pen_layer_builder pen_layer_builder;
typedef struct pen_layer pen_layer;

// One application of a layer. Borrowed for the call.
typedef struct pen_layer_call {
    pen_layer_builder *builder; // set by pen_layer_apply
    const pen_layer *layer;
    const char *name;    // of the layer; its nodes and weights are named after it
    const void *options; // the struct of layer->options
    const pen_layer_tensor *inputs;
    uint32_t input_count;
    pen_source source; // for the nodes made
} pen_layer_call;

typedef struct pen_layer_result {
    pen_layer_tensor tensors[PEN_LAYER_OUTPUT_LIMIT];
    uint32_t count; // at least 1 of a layer that succeeded
} pen_layer_result;

struct pen_layer {
    const char *name;                // as in YAML: "conv2d"
    const char *class_name;          // Keras': "Conv2D"
    const char *summary;             // one line
    const pen_option_table *options; // of a struct that begins with pen_layer_common
    uint32_t input_rank;             // dimensions of its inputs, with the batch; 0: any
    uint32_t input_min;
    uint32_t input_max; // UINT32_MAX: any number

    // Adds the layer's nodes. Inputs are as many as allowed. Writes count and tensors.
    //   INVALID_INPUT  shapes that do not suit it, options that contradict each other
    PEN_NODISCARD pen_status (*build)(const pen_layer_call *call, pen_layer_result *out_result);
};

// ---- the table

uint32_t pen_layer_count(void);
const pen_layer *pen_layer_at(uint32_t index);
// By name, or by Keras' class. NOT_FOUND lists the nearest names there are.
PEN_NODISCARD pen_status pen_layer_find(const char *name, const pen_layer **out_layer);
PEN_NODISCARD pen_status pen_layer_find_class(const char *class_name, const pen_layer **out_layer);

// Reads what is written for a layer into its struct of options: a mapping, or nothing, which is
// all defaults. INVALID_INPUT with position, found and possible; OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_layer_read_options(const pen_layer *layer, const pen_yaml_node *node,
                                                pen_arena *arena, const void **out_options);

// ---- building a graph of layers

// For a graph that has no nodes yet. `seed` chooses the first contents of weights. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_layer_builder_new(pen_graph *graph, uint64_t seed,
                                               pen_layer_builder **out_builder);

// From now on weights get no contents: for finding out whether layers go together.
void pen_layer_builder_set_dry(pen_layer_builder *builder);

// First contents will be given by pen_layer_weight_fill: initialisers are not run, and weights of
// more than `bytes_limit` in all are refused.
void pen_layer_builder_expect_contents(pen_layer_builder *builder, uint64_t bytes_limit);

// Adds an input of the model. `shape` is without the batch.
//   INVALID_INPUT  a dimension below 1, too many of them, the name is taken
PEN_NODISCARD pen_status pen_layer_add_input(pen_layer_builder *builder, const char *name,
                                             pen_element_type element, const pen_shape *shape,
                                             pen_source source, pen_layer_tensor *out_tensor);

// Applies a layer, and checks the number of its inputs before. Errors begin with the layer and its
// name: "conv2d 'stem': …". A name that is none yet makes its weights, another one must be of a
// layer with the same weights.
PEN_NODISCARD pen_status pen_layer_apply(pen_layer_builder *builder, const pen_layer_call *call,
                                         pen_layer_result *out_result);

// Makes a tensor an output of the model, in the user's shape.
PEN_NODISCARD pen_status pen_layer_add_output(pen_layer_builder *builder,
                                              const pen_layer_tensor *tensor, const char *name);

// After all layers and outputs: what the loss needs besides the outputs, as names of values.
// *out_penalty is what regularizers add, NULL where there are none; *out_masks has, for each
// output, which of its targets count: NULL where all do, and is NULL where they do of every output.
PEN_NODISCARD pen_status pen_layer_builder_finish(pen_layer_builder *builder,
                                                  const char **out_penalty,
                                                  const char *const **out_masks);

// The types of the outputs, in their order, as the user sees them: the batch is a symbol.
const pen_tensor_type *pen_layer_output_types(const pen_layer_builder *builder);

// The name Keras would give to a layer without one: "conv2d", "conv2d_1", … OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_layer_make_name(pen_layer_builder *builder, const pen_layer *layer,
                                             const char **out_name);

// ---- weights

// One weight as Keras has it, which is a part of a parameter or state of the graph: element
// [i, j, …] of it is element `offset` + i * strides[0] + j * strides[1] + … of that. Along
// `block_axis` the weight has block_count blocks (gates) of equal length, and block b stands where
// block block_order[b] would.
typedef struct pen_layer_weight {
    const char *layer;  // the layer's name
    const char *name;   // Keras': "kernel", "moving_mean"; of a wrapped layer "forward/kernel"
    pen_shape shape;    // Keras'
    pen_value_id value; // the parameter or state of the graph, float32
    int64_t offset;
    int64_t strides[PEN_RANK_LIMIT];
    uint32_t block_axis;
    uint32_t block_count; // 1 where there are none
    uint32_t block_order[PEN_LAYER_BLOCK_LIMIT];
} pen_layer_weight;

// All weights, those of a layer together, in the order in which Keras lists them (and saves them
// in files): trainable ones, then states.
uint32_t pen_layer_weight_count(const pen_layer_builder *builder);
const pen_layer_weight *pen_layer_weight_at(const pen_layer_builder *builder, uint32_t index);

// Sets the first contents of a weight. `numbers` has the elements of its shape in Keras' order, at
// any alignment, and is copied.
void pen_layer_weight_fill(pen_layer_builder *builder, const pen_layer_weight *weight,
                           const void *numbers);
// The other way: the elements of a weight in Keras' order, from `contents` of its parameter. Both
// may have any alignment.
void pen_layer_weight_read(const pen_layer_weight *weight, const void *contents, void *numbers);

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_H
