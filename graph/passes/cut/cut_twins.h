// Undoes what the compiler shares between stages of the backward pass that do not wait for each
// other.
//
// One node may stand for the gradients of several forward nodes, or lay a gradient out anew for
// several readers, and be in the stage of one of them. A reader in a later stage would wait for an
// earlier stage's backward pass. It gets a twin of the node, in its own stage: what the twin reads
// is there, since the reader's own gradient was to be made from it.
#ifndef PEN_GRAPH_PASSES_CUT_CUT_TWINS_H
#define PEN_GRAPH_PASSES_CUT_CUT_TWINS_H

#include "graph/passes/cut/cut_state.h"

// Where twins are needed, `twinned` becomes the plan's request about a graph with them, which is in
// the arena of the old one. Nodes keep their names; twins are called "<node>/twin". The plan has
// its classes. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cut_twins_make(const cut_plan *plan, pen_cut_request *twinned,
                                            uint32_t *out_twin_count);

#endif // PEN_GRAPH_PASSES_CUT_CUT_TWINS_H
