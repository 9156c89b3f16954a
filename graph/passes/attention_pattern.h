// Recognises softmax(q k^T * scale + mask) v in a graph. See fuse_attention.h.
#ifndef PEN_GRAPH_PASSES_ATTENTION_PATTERN_H
#define PEN_GRAPH_PASSES_ATTENTION_PATTERN_H

#include <stdbool.h>

#include "graph/analysis/readers.h"
#include "graph/graph.h"

// An attention that was found. Values of the graph.
typedef struct pen_attention_match {
    pen_value_id q, k, v;
    pen_value_id y;    // what the attention makes
    pen_node_id last;  // its producer, which the attention stands for
    pen_value_id mask; // added, or true where scores count; or NONE
    // Where this is a value, the mask is to be made: `where` this holds 0 and else `fill`, or, with
    // `filled_where_true`, the other way round.
    pen_value_id condition;
    pen_value_id fill;
    bool filled_where_true;
    bool causal;
    bool q_by_row, k_by_row, v_by_row, y_by_row;
    double scale;
} pen_attention_match;

// Whether the product `node` is the last of an attention. is_trained[v]: value v depends on
// parameters that are trained ([value count]).
bool pen_attention_find(const pen_graph *graph, const pen_readers *readers, const bool *is_trained,
                        pen_node_id node, pen_attention_match *out_match);

#endif // PEN_GRAPH_PASSES_ATTENTION_PATTERN_H
