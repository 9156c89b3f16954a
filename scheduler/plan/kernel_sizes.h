// Bytes of values and of kernels' workspaces on a device, for planning: kernels that do equal work
// take equal workspaces, so each kind is prepared once.
//
// Lifetime: in the arena it was made with; the device outlives it.
// Threads:  one, that of the device.
#ifndef PEN_SCHEDULER_PLAN_KERNEL_SIZES_H
#define PEN_SCHEDULER_PLAN_KERNEL_SIZES_H

#include "base/arena.h"
#include "device/device.h"
#include "graph/graph_types.h"

typedef struct pen_kernel_sizes pen_kernel_sizes;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_kernel_sizes_new(pen_device *device, pen_arena *arena,
                                              pen_kernel_sizes **out_sizes);

// `context` is a pen_kernel_sizes * const *: these two are a pen_value_bytes_fn and a
// pen_node_workspace_fn. The second: as the device's prepare.
uint64_t pen_kernel_sizes_of_value(const void *context, const pen_graph *graph, pen_value_id value);
PEN_NODISCARD pen_status pen_kernel_sizes_of_node(const void *context, const pen_graph *graph,
                                                  pen_node_id node, uint64_t *out_bytes);

// Both for a whole graph, in the arena of `sizes`: the second for the nodes of `order`, without
// those that are views. A plan is exact because the device that runs it was asked.
PEN_NODISCARD pen_status pen_kernel_sizes_of_all(pen_kernel_sizes *sizes, const pen_graph *graph,
                                                 const pen_node_id *order, uint32_t order_count,
                                                 uint64_t **out_bytes, uint64_t **out_workspace);

#endif // PEN_SCHEDULER_PLAN_KERNEL_SIZES_H
