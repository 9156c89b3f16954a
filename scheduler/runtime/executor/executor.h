// The contract of this folder towards its users, defined in executor_*.c.
//
// Runs the nodes of one graph on one device: kernels prepared, memory planned and bound once, then
// lists of nodes run any number of times: on one device one list for each microbatch and one for
// the update of a step; as part of a pipeline one for each task of each stage.
//
// Copies: a value that one list makes or receives and another reads may have several places, so
// that several microbatches are under way at once. They are used in turn: microbatch m of a round
// has place m mod copies (scheduler/protocol/run_table.h). A node is bound once for each
// combination of its operands' places.
//
//   persistent   parameters, states, accumulated sums, scalars; what is fed, unless it has copies
//   working      values with copies, then what lives within one list: there lists overlap
//   lent         values that lie where another device's executor made them
//
// Lifetime: the graph and the device outlive the executor; so do executors that it shares
//           parameters with, or that lend it values.
// Threads:  one thread at a time, the device's compute thread. pen_executor_place, _address,
//           _copies and _bytes: any thread, once it is bound.
#ifndef PEN_SCHEDULER_RUNTIME_EXECUTOR_EXECUTOR_H
#define PEN_SCHEDULER_RUNTIME_EXECUTOR_EXECUTOR_H

#include "base/status.h"
#include "device/device.h"
#include "graph/graph_types.h"

typedef struct pen_executor pen_executor;

// Where the caller gives no lists: all before update_first, and all from there on.
#define PEN_EXECUTOR_MICROBATCH 0u
#define PEN_EXECUTOR_UPDATE 1u

// Positions in `order`.
typedef struct pen_executor_list {
    uint32_t first;
    uint32_t end;
} pen_executor_list;

// Everything borrowed: `graph`, `order` and `device` for the executor's life, the rest for the
// call.
typedef struct pen_executor_spec {
    pen_device *device;
    const pen_graph *graph;   // typed, layouts final
    const pen_node_id *order; // every node that runs, in order, list by list
    uint32_t order_count;
    uint32_t update_first;          // without `lists`: position of the first node of the update
    const pen_executor_list *lists; // [list_count], in order and without gaps; NULL: the two above
    uint32_t list_count;
    const uint32_t *copies_of_value; // [value_count], 0: none; NULL: none; see
                                     // scheduler/runtime/run/part_buffers.h
    const pen_value_id *lent;        // [lent_count]: pen_executor_lend says where, before bind
    uint32_t lent_count;
    const pen_value_id *kept; // computed values to be read by pen_executor_read; with lists, those
    uint32_t kept_count;      // without copies are there until the next list runs
    bool defer_contents;      // parameters and states are written by the caller, all of them
    void (*loaded)(
        const void *context);   // called when first contents have been copied to the device,
    const void *loaded_context; // before memory for activations is taken; or NULL
    pen_executor *shared; // parameters, states and accumulated sums are those of this one, by name,
                          // and its working memory serves both if large enough: the two never run
                          // at once; or NULL
} pen_executor_spec;

typedef struct pen_executor_memory {
    uint64_t persistent_bytes; // parameters, states, accumulated gradients, inputs without copies
    uint64_t copies_bytes;     // values with copies
    uint64_t arena_bytes;      // activations, gradients, workspace
    uint64_t live_bytes_peak;  // the least that any plan of the arena could take
    uint32_t in_place_count;
    uint64_t owned_bytes; // of the three, what is not a shared executor's
    uint64_t table_bytes; // of the host: kernels, launches, the plan
} pen_executor_memory;

// Prepares everything and writes the first contents of parameters and states; binds, unless values
// are lent.
//   UNSUPPORTED   the device lacks a kernel; names the node
//   DOES_NOT_FIT  above the device's memory
//   INTERNAL      a value without copies is read by another list than makes it
PEN_NODISCARD pen_status pen_executor_create(const pen_executor_spec *spec,
                                             pen_executor **out_executor);
// Accepts NULL.
void pen_executor_destroy(pen_executor *executor);

// `value`, one of `lent`, lies where `maker` has its value `from`, which has at least as many
// bytes, and has as many copies.
//   UNSUPPORTED  the two devices are of different memory domains
PEN_NODISCARD pen_status pen_executor_lend(pen_executor *executor, pen_value_id value,
                                           const pen_executor *maker, pen_value_id from);
// Needed once where values are lent; all must have been.
PEN_NODISCARD pen_status pen_executor_bind(pen_executor *executor);

// `bytes` must be those of the value in the plain layout. Fed, received and persistent values can
// be written; those and kept ones read. An input or scalar that no node uses is written to nowhere.
// `microbatch`, of a round, matters for values with copies.
PEN_NODISCARD pen_status pen_executor_write(pen_executor *executor, pen_value_id value,
                                            uint64_t microbatch, const void *host, uint64_t bytes);
PEN_NODISCARD pen_status pen_executor_read(pen_executor *executor, pen_value_id value,
                                           uint64_t microbatch, void *host, uint64_t bytes);
// As read, but `host` has it when pen_executor_finish returns.
PEN_NODISCARD pen_status pen_executor_fetch(pen_executor *executor, pen_value_id value,
                                            uint64_t microbatch, void *host, uint64_t bytes);
// A scalar of float32 or float64 that is on its way: 0 until pen_executor_finish returns.
typedef struct pen_executor_number {
    bool is_wide;
    float single;
    double wide;
} pen_executor_number;
PEN_NODISCARD pen_status pen_executor_fetch_number(pen_executor *executor, pen_value_id value,
                                                   uint64_t microbatch,
                                                   pen_executor_number *out_number);
static inline double pen_executor_number_of(const pen_executor_number *number) {
    return number->is_wide ? number->wide : (double)number->single;
}
// `bytes` from byte `first` on of a value that has a place in memory; of its copies, the first.
PEN_NODISCARD pen_status pen_executor_write_part(pen_executor *executor, pen_value_id value,
                                                 uint64_t first, const void *host, uint64_t bytes);
PEN_NODISCARD pen_status pen_executor_read_part(pen_executor *executor, pen_value_id value,
                                                uint64_t first, void *host, uint64_t bytes);
// The first `bytes` of a value that has a place, for this microbatch, as they lie there. On a
// device with queues of copies they are enqueued there, and fences keep order: as its kind's
// members of these names. On others it is done.
PEN_NODISCARD pen_status pen_executor_copy_in(pen_executor *executor, pen_value_id value,
                                              uint64_t microbatch, const void *host,
                                              uint64_t bytes);
PEN_NODISCARD pen_status pen_executor_copy_out(pen_executor *executor, pen_value_id value,
                                               uint64_t microbatch, void *host, uint64_t bytes);
// Likewise from a value of another executor, whose device this one reaches.
PEN_NODISCARD pen_status pen_executor_copy_across(pen_executor *executor, pen_value_id value,
                                                  uint64_t microbatch, const pen_executor *maker,
                                                  pen_value_id from, uint64_t bytes);
// Whether the value has a place in memory: inputs that no node reads have none.
bool pen_executor_holds(const pen_executor *executor, pen_value_id value);
// Where the value lies for this microbatch, in its layout; at NULL of the host: nowhere.
pen_memory_place pen_executor_place(const pen_executor *executor, pen_value_id value,
                                    uint64_t microbatch);
// The same as an address; NULL: nowhere, or not in the host's memory.
void *pen_executor_address(const pen_executor *executor, pen_value_id value, uint64_t microbatch);
// Bytes at that address.
uint64_t pen_executor_bytes(const pen_executor *executor, pen_value_id value);
// Places that the value has: 0 nowhere, 1 without copies.
uint32_t pen_executor_copies(const pen_executor *executor, pen_value_id value);

// Runs a list without waiting for it, if the device has a queue of its own. Errors name the node;
// those of such a device come with pen_executor_finish, or with any later call. No heap call of
// ours, but when a list runs for the first times.
PEN_NODISCARD pen_status pen_executor_enqueue(pen_executor *executor, uint32_t list,
                                              uint64_t microbatch, const pen_run_context *run);
// Waits until all that was enqueued on the device is done.
//   NOT_FINITE  a guard found it, and updates after it were not applied
PEN_NODISCARD pen_status pen_executor_finish(pen_executor *executor);
// Both.
PEN_NODISCARD pen_status pen_executor_run(pen_executor *executor, uint32_t list,
                                          uint64_t microbatch, const pen_run_context *run);

// From now on adds the seconds of every node to `seconds` ([order_count], by position in the order;
// borrowed), by the device's clock, or waiting for the device after each; NULL: no longer. Costs
// nothing when off.
void pen_executor_time_nodes(pen_executor *executor, double *seconds);

pen_executor_memory pen_executor_get_memory(const pen_executor *executor);

#endif // PEN_SCHEDULER_RUNTIME_EXECUTOR_EXECUTOR_H
