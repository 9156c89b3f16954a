// Sequences of which a mask leaves out steps.
//
// What counts is moved to the front, in its order, so that a recurrent net sees sequences of
// different lengths; what it gives is then put where the steps stood. This holds for masks of any
// form: padding in front, behind, and in between.
//
// Lifetime, threads: as the builder.
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_SEQUENCE_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_SEQUENCE_H

#include "graph/keras_layers/layer_build.h"

typedef struct pen_layer_sequence {
    int64_t steps;
    pen_value_id counts;  // (batch, steps), int64: 1 where a step counts, else 0
    pen_value_id before;  // (batch, steps), int64: how many count before each step
    pen_value_id lengths; // (batch, 1), int64: how many count
    pen_value_id offsets; // (batch, 1), int64: an example's first row among those of all
} pen_layer_sequence;

// Of the mask of `tensor`, which has two dimensions.
PEN_NODISCARD pen_status pen_layer_sequence_open(const pen_layer_call *call,
                                                 const pen_layer_tensor *tensor,
                                                 pen_layer_sequence *out_sequence);

// (batch, steps, numbers) with the steps that count in front.
PEN_NODISCARD pen_status pen_layer_sequence_pack(const pen_layer_call *call,
                                                 const pen_layer_sequence *sequence,
                                                 const pen_layer_tensor *x,
                                                 pen_value_id *out_value);

// The lengths as recurrent nodes want them: int32, (batch).
PEN_NODISCARD pen_status pen_layer_sequence_lengths(const pen_layer_call *call,
                                                    const pen_layer_sequence *sequence,
                                                    pen_value_id *out_value);

typedef enum pen_layer_filler {
    PEN_LAYER_FILL_BEFORE, // a step left out has what the last before it has that counts
    PEN_LAYER_FILL_BEHIND, // the first behind it
    PEN_LAYER_FILL_ZEROS,
} pen_layer_filler;

// (batch, steps, numbers), packed, at the steps' own places.
PEN_NODISCARD pen_status pen_layer_sequence_unpack(const pen_layer_call *call,
                                                   const pen_layer_sequence *sequence,
                                                   const pen_layer_tensor *packed,
                                                   pen_layer_filler filler,
                                                   pen_value_id *out_value);

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_SEQUENCE_H
