// Recognises softmax(q k^T * scale + mask) v in a graph. See fuse_attention.h.
#ifndef PEN_GRAPH_PASSES_FUSE_ATTENTION_PATTERN_H
#define PEN_GRAPH_PASSES_FUSE_ATTENTION_PATTERN_H

#include <stdbool.h>

#include "graph/analysis/readers.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

#define PEN_ATTENTION_MASKS 4

// A mask of the scores.
typedef struct pen_attention_mask {
    pen_value_id added; // to the scores; NONE: they are filled in
    // The scores count where this holds and else are filled in, or, with `filled_where_true`, the
    // other way round.
    pen_value_id condition;
    bool filled_where_true;
    // A constant that hides what comes behind each row.
    bool is_causal;
    double hidden; // what scores are filled with; of a causal mask also what is added
    uint32_t rank; // the dimensions that it keeps; those before them are 1
} pen_attention_mask;

// An attention that was found. Values of the graph.
typedef struct pen_attention_match {
    pen_value_id q, k, v;
    pen_value_id y;   // what the attention makes
    pen_node_id last; // its producer, which the attention stands for
    uint32_t mask_count;
    // To be added up or, if they are filled in, all to hold. Either all are added or none is.
    pen_attention_mask masks[PEN_ATTENTION_MASKS];
    double fill; // of masks that are filled in, else -inf
    bool causal;
    bool q_by_row, k_by_row, v_by_row, y_by_row;
    double scale;
    pen_node_id dropout; // of the probabilities; NONE without
    double ratio;
    // The scores, in the shape in which masks are added. Operands may have the first of its
    // dimensions in one.
    pen_shape scores;
    uint32_t kept; // the last dimensions of operands, which are as they are: heads or rows first
} pen_attention_match;

// Whether the product `node` is the last of an attention.
bool pen_attention_find(const pen_graph *graph, const pen_readers *readers, pen_node_id node,
                        pen_attention_match *out_match);

// The shape in which the attention takes an operand, `shape`, or makes its output.
pen_shape pen_attention_operand_shape(const pen_attention_match *match, const pen_shape *shape);

#endif // PEN_GRAPH_PASSES_FUSE_ATTENTION_PATTERN_H
