// What layer, instance, group and root mean square normalisation have in common: rows of one
// length, each normalised by its own statistics, and weights that each belong to some of a row's
// elements. Shared by their shape rule and their kernels.
#ifndef PEN_GRAPH_OPS_REDUCTION_LAYER_NORM_GEOMETRY_H
#define PEN_GRAPH_OPS_REDUCTION_LAYER_NORM_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

// Element j of row r has the weight (r % classes) * segments + j / run % segments.
typedef struct pen_layer_norm {
    bool is_centred; // the mean is taken off; else only the root mean square is divided by
    int64_t rows;
    int64_t columns;      // elements of a row
    int64_t classes;      // of rows, by their weights
    int64_t segments;     // weights of a row
    int64_t run;          // elements next to each other that share a weight
    int64_t weight_count; // classes * segments
} pen_layer_norm;

static inline int64_t pen_layer_norm_weight(const pen_layer_norm *norm, int64_t r, int64_t j) {
    return r % norm->classes * norm->segments + j / norm->run % norm->segments;
}

// The geometry of `node`, a forward or backward op of the family, whose operand has shape `x` and
// whose weights have shape `weights` (NULL: it has none).
//   INVALID_INPUT  shapes that do not go together; does not name the node
PEN_NODISCARD pen_status pen_layer_norm_find(const pen_node *node, const pen_shape *x,
                                             const pen_shape *weights, pen_layer_norm *out_norm);

// The same for a node of `graph` that has been inferred.
void pen_layer_norm_of(const pen_graph *graph, const pen_node *node, pen_layer_norm *out_norm);

// Whether a node of the family is one of the backward ops.
bool pen_layer_norm_is_backward(const pen_node *node);

#endif // PEN_GRAPH_OPS_REDUCTION_LAYER_NORM_GEOMETRY_H
