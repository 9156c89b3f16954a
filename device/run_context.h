// What a run is told of where it stands in its step.
//
// Threads: pure.
#ifndef PEN_DEVICE_RUN_CONTEXT_H
#define PEN_DEVICE_RUN_CONTEXT_H

#include "device/device.h"
#include "graph/graph.h"
#include "graph/lanes.h"

// Says of microbatch `microbatch`, counted over a step that has `microbatch_count` of them, where
// it stands. Leaves seed and step.
void pen_run_context_place(pen_run_context *run, const pen_lanes *lanes, uint64_t microbatch,
                           uint64_t microbatch_count);
// The same of the update of such a step, to which lanes came one after the other.
void pen_run_context_place_update(pen_run_context *run, const pen_lanes *lanes,
                                  uint64_t microbatch_count);

// Whether the device adds what the node makes to what its outputs hold.
bool pen_run_adds(const pen_node *node, const pen_run_context *run);

#endif // PEN_DEVICE_RUN_CONTEXT_H
