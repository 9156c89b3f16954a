// Finds attention as exporters write it, and makes one op of it that does not store the scores:
//
//   softmax(q k^T * scale + mask) v → attention(q, k, v, mask)
//
// with the scale as a product or quotient by a number, of the scores, of q or of k; the mask added,
// or put in by `where`; and transposes between (…, rows, heads, numbers) and (…, heads, rows,
// numbers) before q, k and v and behind the result taken in. A constant mask that hides from each
// row what comes behind it becomes the attribute `causal`, or one more condition where masks of the
// data that are filled in might show such scores again.
//
// Left as they are: attentions whose scores or weights are read elsewhere, and such with a mask
// that is trained. Run it when shapes are inferred and constants folded, after fold_transposes, and
// before gradients are built.
#ifndef PEN_GRAPH_PASSES_FUSE_FUSE_ATTENTION_H
#define PEN_GRAPH_PASSES_FUSE_FUSE_ATTENTION_H

#include "base/status.h"
#include "graph/graph_types.h"

// A new graph in the same arena, in which nodes that lost their readers stay, for remove_dead.
// `kept` are values to keep. out_values[v] is the new id of value v of `graph`, PEN_VALUE_NONE
// where it went ([value count of graph]). OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_fuse_attention(const pen_graph *graph, uint32_t kept_count,
                                            const pen_value_id *kept, pen_graph **out_graph,
                                            const pen_value_id **out_values);

#endif // PEN_GRAPH_PASSES_FUSE_FUSE_ATTENTION_H
