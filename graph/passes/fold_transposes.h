// Lets products read transposed matrices as they lie: where an operand of matmul or gemm is a
// transpose that swaps the last two dimensions, the product takes what was transposed, and its
// attribute transA or transB is turned. Weights come that way from exporters, and are large.
//
// Run it before gradients are built: those of the operands then come out as they lie, too.
#ifndef PEN_GRAPH_PASSES_FOLD_TRANSPOSES_H
#define PEN_GRAPH_PASSES_FOLD_TRANSPOSES_H

#include "graph/graph_types.h"

// Changes nodes of a typed graph; transposes that nobody reads any more stay, for remove_dead.
void pen_fold_transposes(pen_graph *graph);

#endif // PEN_GRAPH_PASSES_FOLD_TRANSPOSES_H
