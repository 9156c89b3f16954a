// Proves a graph sound before anything is built on it: what importers and passes must keep true.
//
//   - ids are within range; names are there and unique; node outputs and value producers agree
//   - operand counts fit the op; required operands and attributes are present
//   - every value is made before it is read; constants have their bytes
//   - operands that steer shapes are constants, once types are asked for
//   - roles go one way: forward, backward_input, backward_weight, update. Nothing reads a value of
//     a later role. `gradient_of` names an earlier forward node
//   - a value that replaces a parameter or state has its type, replaces it alone, and comes after
//     every reader of the old contents (or is made by that reader); it is no view
//
// Threads: reads the graph only.
#ifndef PEN_GRAPH_VERIFY_H
#define PEN_GRAPH_VERIFY_H

#include <stdbool.h>

#include "base/status.h"
#include "graph/graph_types.h"

typedef struct pen_verify_options {
    bool types; // every value must have a type without symbols: after pen_infer_shapes
} pen_verify_options;

// INTERNAL names the node and the value at fault, with the position in the user's model.
PEN_NODISCARD pen_status pen_graph_verify(const pen_graph *graph,
                                          const pen_verify_options *options);

#endif // PEN_GRAPH_VERIFY_H
