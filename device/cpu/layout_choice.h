// Which layouts the cpu device's kernels want: convolutions wish, what computes no elements of its
// own follows.
#ifndef PEN_DEVICE_CPU_LAYOUT_CHOICE_H
#define PEN_DEVICE_CPU_LAYOUT_CHOICE_H

#include "base/status.h"
#include "base/system/kernel_level.h"
#include "graph/graph_types.h"

// pen_layout_rules.choose for a device of kernel level `level`, with the team set that will run
// the kernels (libraries choose by it).
PEN_NODISCARD pen_status pen_cpu_layout_choose(pen_kernel_level level, const pen_graph *graph,
                                               pen_node_id node, pen_layout *inputs,
                                               pen_layout *outputs);

#endif // PEN_DEVICE_CPU_LAYOUT_CHOICE_H
