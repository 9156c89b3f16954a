// What updates are built from besides gradients, and which fed values they read.
#ifndef PEN_GRAPH_PASSES_GRADIENT_UPDATE_TYPES_H
#define PEN_GRAPH_PASSES_GRADIENT_UPDATE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/arrivals.h"
#include "graph/graph_types.h"

typedef struct pen_updates {
    pen_value_id learning_rate; // scalar, float32: fed once a step
    pen_value_id step;          // scalar, float32, counted from 1; NONE where no update reads it
    pen_value_id unscale;       // scalar, of the type of gradients, which are multiplied by it
                                // first: fed once a step; NONE where they are not scaled
    pen_value_id applied;       // scalar: that updates multiply gradients by, below 0 where one of
                                // them is not finite: then nothing is applied; NONE likewise
    uint32_t updated_count;     // parameters
} pen_updates;

// What the microbatches of a step are, from which follows how many rows of an embedding they pick.
typedef struct pen_step_shape {
    uint32_t microbatches;     // of a step, at most
    uint64_t examples;         // of a microbatch of this graph: the first dimension of its inputs
    uint64_t most_examples;    // of any microbatch
    bool is_whole;             // the graph is not cut
    uint32_t lanes;            // that the microbatches form; 0 is 1
    pen_asynchrony asynchrony; // of several lanes
    bool is_scaled;            // gradients are multiples of those that are meant. Not asynchronous
} pen_step_shape;

#endif // PEN_GRAPH_PASSES_GRADIENT_UPDATE_TYPES_H
