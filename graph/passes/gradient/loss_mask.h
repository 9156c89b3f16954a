// The nodes that losses make of a mask, which says which targets count. All are as those of
// loss_nodes.h.
//
// Lifetime: nodes are the graph's.
// Threads:  one writer of the graph.
#ifndef PEN_GRAPH_PASSES_GRADIENT_LOSS_MASK_H
#define PEN_GRAPH_PASSES_GRADIENT_LOSS_MASK_H

#include "base/status.h"
#include "graph/graph_types.h"

// `value` where the mask is true, else the number `other`.
PEN_NODISCARD pen_status pen_loss_where(pen_graph *graph, pen_value_id mask, pen_value_id value,
                                        double other, pen_value_id *out_value);

// The mask under a shape of `rank` dimensions that goes with the output's: (2, 3) of an output
// (2, 3, 4) becomes (2, 3, 1) for a rank of 3.
//   INVALID_INPUT  it is not bool, or does not go with the output
PEN_NODISCARD pen_status pen_loss_shape_mask(pen_graph *graph, pen_value_id output, uint32_t rank,
                                             pen_value_id *io_mask);

// How many elements of `counts` are true, as float32.
PEN_NODISCARD pen_status pen_loss_count(pen_graph *graph, pen_value_id counts,
                                        pen_value_id *out_count);

// How many elements of the mask there are for each that counts, at most all.
PEN_NODISCARD pen_status pen_loss_mask_share(pen_graph *graph, pen_value_id mask,
                                             pen_value_id *out_share);

// The other way round: the share of elements that count.
PEN_NODISCARD pen_status pen_loss_find_counted(pen_graph *graph, pen_value_id counts,
                                               pen_value_id *out_counted);

#endif // PEN_GRAPH_PASSES_GRADIENT_LOSS_MASK_H
