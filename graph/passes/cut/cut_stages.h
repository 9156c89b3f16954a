// Cuts a training graph along its stages into one graph for each device, with send and receive
// nodes where values cross.
//
// A part is what one device runs: a graph of its own with the nodes of all its stages, the
// parameters that they read, and a `receive` node for each value that comes from elsewhere, a
// `send` node for each that goes. Values keep their names, so that parts of one model cut alike at
// several microbatch sizes share parameters by name. Every node of `order` is in exactly one list
// of one part; nodes that the cut adds are send, receive and copy nodes, with recompute copies of
// forward nodes, named "<node>/recompute", and twins of backward nodes that the compiler shares
// between stages, named "<node>/twin" (cut_twins.h).
//
// A channel carries one value from one device to one other. What the model is fed comes from the
// host: whoever runs the steps.
//
//   per microbatch   an activation leaves with the forward task of its stage, a gradient with the
//                    backward task (of the halves: with the one that makes it)
//   per step         whatever updates exchange leaves with an update task of its source. A sum of
//                    gradients over microbatches leaves with phase 0 of its stage. An update that
//                    needs a value of another stage, on whatever device, is of a phase above the
//                    one in which that is made; sums are there in phase 0.
//   parameters       updated on one device and read on another: the new one is sent, and a `copy`
//                    node in the reader's next phase replaces the reader's own copy by it.
//   passing on       a view of a value that came from elsewhere leaves from a place of its own (a
//                    `copy` node), since what came is dropped when this device has read it.
//   recompute        the backward task of such a stage begins with its forward nodes, which keep
//                    nothing from their first run and touch no running statistics.
//
// Flows: activations go to the same or later stages, gradients to the same or earlier ones,
// whatever the devices; within a device, too, tasks must run in an order in which that holds.
//
// Lifetime: everything lives in the arena; names and tensor bytes are borrowed from the graph.
// Threads:  immutable once returned.
#ifndef PEN_GRAPH_PASSES_CUT_CUT_STAGES_H
#define PEN_GRAPH_PASSES_CUT_CUT_STAGES_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/passes/cut/cut.h"

//   INVALID_INPUT  a value would have to flow against the order of the stages; names it
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cut_stages(const pen_cut_request *request, pen_arena *arena,
                                        const pen_cut **out_cut);

#endif // PEN_GRAPH_PASSES_CUT_CUT_STAGES_H
