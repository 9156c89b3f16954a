// What a builder of layers keeps. For graph/layers/ alone.
//
// Lifetime, threads: as the builder (graph/keras_layers/layer.h).
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_BUILDER_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_BUILDER_H

#include "base/name_map.h"
#include "graph/keras_layers/layer_build.h"
#include "graph/tensor_type.h"

typedef struct pen_layer_record {
    pen_layer_weight weight;
    float *contents; // of the whole parameter
} pen_layer_record;

struct pen_layer_builder {
    pen_graph *graph;
    pen_arena *arena; // the graph's
    uint64_t seed;
    pen_layer_record **weights; // [weight_capacity]
    uint32_t weight_count;
    uint32_t weight_capacity;
    pen_name_map weight_names;     // "<layer>/<weight>" to its index
    pen_name_map layer_names;      // layers applied, to the index of their table entry
    pen_tensor_type *output_types; // [output_capacity], of the model's outputs
    pen_value_id *output_masks;    // [output_capacity]
    uint32_t output_capacity;
    uint64_t steps_written;  // of recurrent layers that are written out step by step
    pen_value_id *penalties; // [penalty_capacity], numbers
    uint32_t penalty_count;
    uint32_t penalty_capacity;
    uint32_t *name_counts;   // [pen_layer_count()], names thought up for each layer
    uint64_t contents_bytes; // of weights so far
    bool is_dry;             // weights get no contents
    bool is_again;           // the layer being built was applied before
    bool trains;             // it is trainable
    bool expects_contents;   // they are given, and no more than bytes_limit
    uint64_t bytes_limit;
};

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_BUILDER_H
