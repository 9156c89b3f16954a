// A graph as text, for people and for golden files: the same graph always gives the same text.
//
//   graph mlp
//   symbol batch
//   input x: float32[batch,784]
//   parameter fc.weight: float32[10,784]
//   constant fc/axes: int64[1] = 0
//   forward fc: gemm(x, fc.weight, _) alpha=1 beta=1 transA=0 transB=1
//     -> y: float32[32,10]
//   output y
//
// First the values that no node computes, then the nodes in order with what they make, then the
// outputs. A frozen parameter is said to be so; so is what a value replaces, a layout that is not
// plain, and a node that accumulates. "_" is an operand left out. Constants show their first
// elements. Names that are not plain words stand in quotes.
#ifndef PEN_GRAPH_DUMP_DUMP_TEXT_H
#define PEN_GRAPH_DUMP_DUMP_TEXT_H

#include "base/arena.h"
#include "graph/graph_types.h"

// The text lives in `arena`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_dump_text(const pen_graph *graph, pen_arena *arena,
                                       const char **out_text);

#endif // PEN_GRAPH_DUMP_DUMP_TEXT_H
