// Keeps gradients of embeddings, which are of few rows, from becoming tables:
//
//   add(sum, gather_backward(dy, indices)) → gather_backward(dy, indices, sum): a table that is the
//       weight of a layer as well; the rows are added to that layer's gradient where it lies
//   update(table, gather_backward(dy, indices), …) → update(table, dy, …, indices): the gradient is
//       never made; with plain SGD, rows that were not picked are not touched
//
// Run it when updates are built, and layouts are not assigned.
#ifndef PEN_GRAPH_PASSES_FUSE_FUSE_ROWS_H
#define PEN_GRAPH_PASSES_FUSE_FUSE_ROWS_H

#include <stdbool.h>

#include "base/status.h"
#include "graph/graph_types.h"

// A new graph in the same arena. `kept` are values to keep. With `into_updates`, updates take rows:
// not for graphs that are cut, whose updates read gradients of parameters alone. out_values[v] is
// the new id of value v of `graph`, PEN_VALUE_NONE where it went ([value count of graph]).
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_fuse_rows(const pen_graph *graph, uint32_t kept_count,
                                       const pen_value_id *kept, bool into_updates,
                                       pen_graph **out_graph, const pen_value_id **out_values);

#endif // PEN_GRAPH_PASSES_FUSE_FUSE_ROWS_H
