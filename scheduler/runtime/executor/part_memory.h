// What the executor of a part takes, without making one: the same plan of the same bytes.
//
// Threads: any.
#ifndef PEN_SCHEDULER_RUNTIME_EXECUTOR_PART_MEMORY_H
#define PEN_SCHEDULER_RUNTIME_EXECUTOR_PART_MEMORY_H

#include "device/device.h"
#include "graph/analysis/memory_plan.h"
#include "graph/passes/cut/cut_stages.h"
#include "partition/plan/plan.h"
#include "scheduler/runtime/run/run_form.h"

// Bytes of workspace of a node's kernel.
typedef pen_status (*pen_node_workspace_fn)(const void *context, const pen_graph *graph,
                                            pen_node_id node, uint64_t *out_bytes);

// Everything borrowed for the call.
typedef struct pen_part_memory_request {
    const pen_part *part;
    const uint32_t *copies_of_value; // [value_count] (scheduler/runtime/run/part_buffers.h)
    const pen_value_id *lent;        // [lent_count]: lie in another device's memory
    uint32_t lent_count;
    pen_value_bytes_fn value_bytes;
    pen_node_workspace_fn workspace;
    const void *context;    // of both
    pen_device *device;     // that runs the part; NULL: lists of launches take nothing of it
    pen_memory_slot *slots; // [value_count] where values lie is written there; NULL: nobody asks
} pen_part_memory_request;

// Of activations: what several tasks of the part use. Of receive buffers: what is fed or comes from
// other devices. Of workspace: what lives within a task.
//   INTERNAL  as pen_executor_create
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_part_memory_find(const pen_part_memory_request *request,
                                              pen_device_memory *out_memory);

#endif // PEN_SCHEDULER_RUNTIME_EXECUTOR_PART_MEMORY_H
