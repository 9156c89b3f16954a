// The text by which the cost of a node is found.
#ifndef PEN_PARTITION_COSTS_COST_KEY_H
#define PEN_PARTITION_COSTS_COST_KEY_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph_types.h"

// What of a node decides how long it runs: types, sizes and layouts of operands, attributes,
// whether it accumulates, and the contents of constants that steer it. Equal texts, equal work.
//   float32[8,16,12,12] float32[6,16,3,3] -> float32[8,6,10,10]; pads=0,0,0,0 strides=1,1
// A layout that is not plain follows its type as "@2", contents of a constant as "=1,0,2", and an
// operand left out is "-". Bytes that are not printable ASCII are written "\xNN"; a text that
// would be longer than PEN_COST_KEY_BYTES_LIMIT ends in a hash of what was cut. OUT_OF_MEMORY
#define PEN_COST_KEY_BYTES_LIMIT 1024
PEN_NODISCARD pen_status pen_cost_key(const pen_graph *graph, pen_node_id node, pen_arena *arena,
                                      const char **out_shape);

#endif // PEN_PARTITION_COSTS_COST_KEY_H
