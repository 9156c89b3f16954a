// From a cut and a schedule to what the protocol runs: the form's tasks in order of each device,
// what each waits for, sends and releases, and the channels with their capacities.
//
// Lifetime: in the arena it was made with; borrows nothing of the request.
// Threads:  immutable once returned.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_FORM_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_FORM_H

#include "scheduler/protocol/run_table.h"
#include "scheduler/runtime/run/part_buffers.h"
#include "scheduler/schedule/schedule.h"

// Bytes of a value as a device holds it.
typedef uint64_t (*pen_value_bytes_fn)(const void *context, const pen_graph *graph,
                                       pen_value_id value);

typedef struct pen_run_form_request {
    const pen_cut *cut;
    const pen_schedule *schedule; // of the cut's devices and stages, for at least microbatch_count
    uint32_t first_microbatch; // of those of the schedule that the form has; it is its microbatch
                               // 0
    uint32_t microbatch_count; // that it has: tasks of others are left out
    uint64_t microbatch_size;  // examples
    bool trains;
    bool skips;                       // as in run_table.h
    bool tells_gradients;             // to the coordinator, when they are made
    const uint32_t *worker_of_device; // [device_count], counted from 1
    const uint32_t *field_of_channel; // [channel_count of the cut] what the target's worker reads
                                      // itself (run_data.h); NULL: nothing
    pen_value_bytes_fn value_bytes;
    const void *value_bytes_context;
} pen_run_form_request;

typedef struct pen_run_form_built {
    pen_run_form form;
    const pen_part_buffers *buffers; // [device_count] copies as the form's channels need them
} pen_run_form_built;

// Where a device's memory is not the host's, what its channels carry lies in the host's memory on
// its way, aligned so.
#define PEN_RUN_STAGING_ALIGNMENT 64u

// How many frames of a channel do, in the process of such a device: at its source, until they are
// let go, and where they arrive from another process, or from a device whose memory is the host's.
// Between two such devices of one process, the maker's end is enough: its place is free when the
// reader is done with it.
static inline uint32_t pen_run_channel_staged(const pen_run_channel *channel, bool is_source,
                                              bool is_target, bool has_such_source) {
    return (is_source ? channel->copies : 0) +
           (is_target && !(channel->is_shared && has_such_source) ? channel->capacity : 0);
}

// Where the places that pen_part_buffers_plan counts would let devices wait for each other's places
// in a circle, the channels concerned get more.
//
// Updates that the schedule does not list run last, by phase and stage.
//   INTERNAL  lists and tasks do not go together
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_form_build(const pen_run_form_request *request, pen_arena *arena,
                                            pen_run_form_built *out_built);

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_FORM_H
