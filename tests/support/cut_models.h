// Small graphs of a training step, as the compiler makes them, to be cut and run.
#ifndef PEN_TESTS_SUPPORT_CUT_MODELS_H
#define PEN_TESTS_SUPPORT_CUT_MODELS_H

#include "graph/graph.h"

typedef enum cut_model_kind {
    CUT_MODEL_RANDOM, // see random_graph.h
    CUT_MODEL_PERCEPTRON,
    CUT_MODEL_BRANCHES, // convolutions, normalizations, a residual, dropout
    CUT_MODEL_TIED,     // an embedding that is the last layer's weight, too; integers between
    CUT_MODEL_FROZEN,   // a trunk that does not train, and a head that does
    CUT_MODEL_COUNT,
} cut_model_kind;

typedef struct cut_model {
    pen_graph *graph;
    const pen_node_id *order; // [order_count]
    uint32_t order_count;
    uint32_t update_first;
    uint32_t kept_count;
    pen_value_id kept[2]; // loss, accuracy
    uint32_t fed_count;
    pen_value_id fed[3];
} cut_model;

// `seed` draws the first parameters, and what of the model is open. With `accumulate`, steps have
// several microbatches. Fails the test on error.
cut_model cut_model_make(pen_arena *arena, cut_model_kind kind, uint64_t seed, bool accumulate);

#endif // PEN_TESTS_SUPPORT_CUT_MODELS_H
