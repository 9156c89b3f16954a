// The contract of recurrent layers: what they have in common, options, weights, nodes.
//
// Lifetime, threads: as the builder.
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_RECURRENT_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_RECURRENT_H

#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_sequence.h"
#include "graph/ops/product/recurrent_geometry.h"

typedef struct pen_recurrent_options {
    pen_layer_common common;
    int64_t units;
    pen_layer_activation activation;
    pen_layer_activation recurrent_activation;
    bool use_bias;
    pen_layer_weight_options kernel;
    pen_layer_weight_options recurrent;
    pen_layer_weight_options bias;
    bool unit_forget_bias;
    bool return_sequences;
    bool return_state;
    bool go_backwards;
    bool reset_after;
    bool zero_output_for_mask;
    double dropout;
    double recurrent_dropout;
} pen_recurrent_options;

// One net: its layer, its kind, and how many directions it has.
typedef struct pen_recurrent_net {
    const pen_recurrent_options *options;
    pen_recurrent_kind kind;
    uint32_t directions;
    const char *op;
    uint32_t gates;
} pen_recurrent_net;

// Of lstm, gru or simple_rnn and its options, in one direction.
pen_recurrent_net pen_recurrent_net_of(const pen_layer *layer, const void *options);

// Sets w, r and b of the operands; b is PEN_VALUE_NONE without biases.
PEN_NODISCARD pen_status pen_recurrent_weights(const pen_layer_call *call,
                                               const pen_recurrent_net *net,
                                               pen_value_id *out_operands);

// What a net gives: all steps, (batch, steps, directions, units), packed where there is a mask, and
// the last states, (batch, directions, units).
typedef struct pen_recurrent_run {
    pen_value_id outputs[PEN_RECURRENT_OUTPUT_COUNT];
    bool is_masked;
    pen_layer_sequence sequence; // of its mask
} pen_recurrent_run;

// Adds the net with its weights to the graph.
PEN_NODISCARD pen_status pen_recurrent_add(const pen_layer_call *call, const pen_recurrent_net *net,
                                           pen_recurrent_run *out_run);

// Step by step, with nodes for each, for nets that drop what goes from step to step. Operands are
// those of the op. *out_outputs as of pen_recurrent_run (layer_recurrent_steps.c).
PEN_NODISCARD pen_status pen_recurrent_add_steps(const pen_layer_call *call,
                                                 const pen_recurrent_net *net,
                                                 const pen_value_id *operands,
                                                 pen_value_id *out_outputs);

// All steps of one direction, (batch, steps, units), at their own places.
PEN_NODISCARD pen_status pen_recurrent_steps(const pen_layer_call *call,
                                             const pen_recurrent_net *net,
                                             const pen_recurrent_run *run, uint32_t direction,
                                             pen_layer_tensor *out_tensor);

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_RECURRENT_H
