// Runs the nodes of one graph on one device: kernels prepared, memory planned and bound once, then
// two lists run any number of times: one for each microbatch, one for the update of a step.
//
// Lifetime: the graph and the device outlive the executor; so does an executor that it shares
//           parameters with.
// Threads:  one thread at a time, the device's compute thread.
#ifndef PEN_SCHEDULER_RUNTIME_EXECUTOR_H
#define PEN_SCHEDULER_RUNTIME_EXECUTOR_H

#include "base/status.h"
#include "device/device.h"
#include "graph/graph.h"

typedef struct pen_executor pen_executor;

typedef struct pen_executor_spec {
    pen_device *device;
    const pen_graph *graph;   // typed, layouts final
    const pen_node_id *order; // every node that runs, in order
    uint32_t order_count;
    uint32_t update_first;    // position in `order` of the first node of the update list
    const pen_value_id *kept; // computed values to be read by pen_executor_read
    uint32_t kept_count;
    void (*loaded)(
        const void *context);   // called when first contents have been copied to the device,
    const void *loaded_context; // before memory for activations is taken; or NULL
    pen_executor *shared;       // parameters and states are those of this one, by name; or NULL
} pen_executor_spec;

typedef struct pen_executor_memory {
    uint64_t persistent_bytes; // parameters, states, accumulated gradients, inputs
    uint64_t arena_bytes;      // activations, gradients, workspace
    uint64_t live_bytes_peak;  // the least that any plan of the arena could take
    uint32_t in_place_count;
    uint64_t owned_bytes; // of the two, what is not a shared executor's
} pen_executor_memory;

// Prepares everything and writes the first contents of parameters and states.
//   UNSUPPORTED   the device lacks a kernel; names the node
//   DOES_NOT_FIT  above the device's memory
PEN_NODISCARD pen_status pen_executor_create(const pen_executor_spec *spec,
                                             pen_executor **out_executor);
// Accepts NULL.
void pen_executor_destroy(pen_executor *executor);

// `bytes` must be those of the value in the plain layout. Fed and persistent values can be
// written; those and kept ones read. An input or scalar that no node uses is written to nowhere.
PEN_NODISCARD pen_status pen_executor_write(pen_executor *executor, pen_value_id value,
                                            const void *host, uint64_t bytes);
PEN_NODISCARD pen_status pen_executor_read(pen_executor *executor, pen_value_id value, void *host,
                                           uint64_t bytes);
// `bytes` from byte `first` on of a value that has a place in memory.
PEN_NODISCARD pen_status pen_executor_read_part(pen_executor *executor, pen_value_id value,
                                                uint64_t first, void *host, uint64_t bytes);
PEN_NODISCARD pen_status pen_executor_write_part(pen_executor *executor, pen_value_id value,
                                                 uint64_t first, const void *host, uint64_t bytes);
// Whether the value has a place in memory: inputs that no node reads have none.
bool pen_executor_holds(const pen_executor *executor, pen_value_id value);

// Errors name the node.
PEN_NODISCARD pen_status pen_executor_run_microbatch(pen_executor *executor,
                                                     const pen_run_context *run);
PEN_NODISCARD pen_status pen_executor_run_update(pen_executor *executor,
                                                 const pen_run_context *run);

// From now on adds the seconds of every node to `seconds` ([order_count], by position in the order;
// borrowed), waiting for the device after each; NULL: no longer. Costs nothing when off.
void pen_executor_time_nodes(pen_executor *executor, double *seconds);

pen_executor_memory pen_executor_get_memory(const pen_executor *executor);

#endif // PEN_SCHEDULER_RUNTIME_EXECUTOR_H
