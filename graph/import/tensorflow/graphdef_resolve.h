// Which nodes a TensorFlow model's outputs depend on, in an order in which each can be computed.
//
// Switch and Merge on constant predicates are decided here: a Merge reads its one input that is
// alive, a Switch passes its data on; predicates, and what only must run before, fall away.
//
// Lifetime: in the arena.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_RESOLVE_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_RESOLVE_H

#include <stdint.h>

#include "base/status.h"
#include "graph/import/tensorflow/graphdef_flatten.h"

typedef struct pen_graphdef_order {
    uint32_t count;
    uint32_t *nodes;  // [count], of the flat list; what they read stands before them
    uint32_t *merged; // [flat's count], of a Merge: the input it takes; UINT32_MAX: undecided
} pen_graphdef_order;

//   INVALID_INPUT  a node reads what no node makes
//   UNSUPPORTED    a loop
PEN_NODISCARD pen_status pen_graphdef_resolve(pen_graphdef_flat *flat,
                                              const pen_graphdef_input *outputs,
                                              uint32_t output_count, pen_graphdef_order *out_order);

// Inputs of a node that carry data: those before the first that only orders.
uint32_t pen_graphdef_data_inputs(const pen_graphdef_node *node);

// Whether the node reads only its first input: what else it has steers, and was looked at here.
bool pen_graphdef_reads_first(const pen_graphdef_node *node);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_RESOLVE_H
