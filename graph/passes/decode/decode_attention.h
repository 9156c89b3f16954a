// An attention of one position reads the k and v that were kept of earlier ones. What is kept of
// later ones is of no use: a mask hides it.
#ifndef PEN_GRAPH_PASSES_DECODE_DECODE_ATTENTION_H
#define PEN_GRAPH_PASSES_DECODE_DECODE_ATTENTION_H

#include "graph/passes/decode/position_copy.h"

// The inputs of the attention `node` for one position along `axis` of its output, [4], the last
// NONE without a mask.
//   UNSUPPORTED  a mask that cannot be told together with what hides later positions
PEN_NODISCARD pen_status pen_position_attention(pen_position_copy *c, pen_node_id node,
                                                uint32_t axis, pen_value_id inputs[4]);

#endif // PEN_GRAPH_PASSES_DECODE_DECODE_ATTENTION_H
