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

// What the first executor of a device has that those of further forms use, too
// (pen_executor_spec.shared). `slots` are the caller's, the rest is written.
typedef struct pen_part_first {
    const pen_graph *graph;
    pen_memory_slot *slots; // [value_count] where its values lie
    uint64_t working_bytes;
    uint64_t room_bytes; // of the device's room for lists, that all so far have taken
} pen_part_first;

// Everything borrowed for the call.
typedef struct pen_part_memory_request {
    const pen_part *part;
    const uint32_t *copies_of_value; // [value_count] (scheduler/runtime/run/part_buffers.h)
    const pen_value_id *lent;        // [lent_count]: lie in another device's memory
    uint32_t lent_count;
    pen_value_bytes_fn value_bytes;
    pen_node_workspace_fn workspace;
    const void *context; // of both
    pen_device *device;  // that runs the part; NULL: lists of launches take nothing of it
    bool is_whole;       // one device runs all: a microbatch and the update are its two lists
} pen_part_memory_request;

// Of activations: what several tasks of the part use. Of receive buffers: what is fed or comes from
// other devices. Of workspace: what lives within a task.
//   INTERNAL  as pen_executor_create
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_part_memory_find(const pen_part_memory_request *request,
                                              pen_device_memory *out_memory);
// The same, and what it has that further forms share. `first` is zero but for `slots`.
PEN_NODISCARD pen_status pen_part_memory_find_first(const pen_part_memory_request *request,
                                                    pen_part_first *first,
                                                    pen_device_memory *out_memory);
// What the executor of a further form takes beside the first and those asked for before, in the
// order in which they are made.
PEN_NODISCARD pen_status pen_part_memory_find_further(const pen_part_memory_request *request,
                                                      pen_part_first *first, uint64_t *out_bytes);

#endif // PEN_SCHEDULER_RUNTIME_EXECUTOR_PART_MEMORY_H
