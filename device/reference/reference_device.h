// The reference kernels as a device: host memory, one thread, every op and element type.
#ifndef PEN_DEVICE_REFERENCE_REFERENCE_DEVICE_H
#define PEN_DEVICE_REFERENCE_REFERENCE_DEVICE_H

#include "device/device.h"
#include "device/reference/reference_kernel.h"

extern const pen_device_kind pen_reference_device_kind;

// A node with its operands described: what a device needs to run it on the reference kernel.
typedef struct pen_reference_node {
    const pen_graph *graph; // outlives it
    const pen_node *node;
    pen_tensor *inputs;  // [input_count], data NULL, but for operands in op->constant_inputs,
    pen_tensor *outputs; // [output_count]      which are copied from the graph
    pen_arena *scratch;  // of a run
} pen_reference_node;

// Describes a node of a typed graph. Everything in `arena`.
//   UNSUPPORTED  there is no reference kernel for the op, or an operand is not in plain layout;
//                names the node
PEN_NODISCARD pen_status pen_reference_node_make(const pen_graph *graph, pen_node_id node,
                                                 pen_arena *arena, pen_reference_node **out_node);

// Runs it, one thread at a time. The first run may allocate scratch in the arena. `inputs` and
// `outputs` have their data set.
PEN_NODISCARD pen_status pen_reference_node_run(const pen_reference_node *node,
                                                const pen_tensor *inputs, const pen_tensor *outputs,
                                                const pen_run_context *run, bool accumulate);

#endif // PEN_DEVICE_REFERENCE_REFERENCE_DEVICE_H
