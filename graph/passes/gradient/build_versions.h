// Updates of asynchronous lanes: several versions of each parameter in a step.
//
// Which lanes' gradients make which version, graph/arrivals.h says; what a version's gradient is,
// graph/ops/training/version_op.c. A step may have as many versions as lanes, one after the other,
// each an update by the optimizer; those that it does not have leave all as it is.
//
// A parameter has further states: "PARAMETER/lanes", as each lane has it, "PARAMETER/arrivals", how
// the lanes stand, and "PARAMETER/square" where lambda is adaptive. So a checkpoint has all that
// the next step depends on.
#ifndef PEN_GRAPH_PASSES_GRADIENT_BUILD_VERSIONS_H
#define PEN_GRAPH_PASSES_GRADIENT_BUILD_VERSIONS_H

#include "graph/passes/gradient/update_parts.h"

#define PEN_ARRIVALS_SUFFIX "/arrivals"

// Adds the update nodes, and a node lane_parameter for each parameter. The forward and backward
// nodes still read the parameter itself: pen_read_lanes changes that. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_build_versions(updates_builder *builder,
                                            const pen_gradients *gradients);

// Forward and backward nodes read each parameter as the lane of the microbatch has it.
PEN_NODISCARD pen_status pen_read_lanes(const pen_graph *graph, uint32_t kept_count,
                                        const pen_value_id *kept, pen_graph **out_graph,
                                        const pen_value_id **out_map);

#endif // PEN_GRAPH_PASSES_GRADIENT_BUILD_VERSIONS_H
