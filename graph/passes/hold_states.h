// Parts a state that the forward pass changes, a moving average say, from what is read of it.
//
// The change is made where the state lies, and for every microbatch. Backward passes come later,
// and the stages of other devices at times of their own: each must read what the state was, or
// became, when its microbatch came by. So readers get a copy, "<state>/held", and what is read of
// a change is not what lies in the state, which gets a copy of it, "<state>/changed".
//
// What reads a state for nothing but the change, a running statistic, reads it where it lies.
#ifndef PEN_GRAPH_PASSES_HOLD_STATES_H
#define PEN_GRAPH_PASSES_HOLD_STATES_H

#include "base/status.h"
#include "graph/graph_types.h"

// Before gradients are built; in the arena of the graph. An evaluation has the same copies, so that
// they lie where the training's do: there alone is what the state has become. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hold_states(const pen_graph *graph, uint32_t kept_count,
                                         const pen_value_id *kept, pen_graph **out_graph,
                                         const pen_value_id **out_map);

// Then, in an evaluation: states stay as they are. What the model reads of a change, it still
// reads.
PEN_NODISCARD pen_status pen_keep_states(pen_graph *graph);

#endif // PEN_GRAPH_PASSES_HOLD_STATES_H
