// What a run says of the costs that it was planned with: devices that compute slower or faster, and
// links over which values come later or sooner.
//
// Plan and run are compared by means over whole steps and over transfers, from the second round on:
// the first touches its memory for the first time. What a run did not do, or what was not planned,
// is not known.
//
// Lifetime: in the arena. Threads: pure.
#ifndef PEN_SCHEDULER_TRACE_TRACE_SEEN_H
#define PEN_SCHEDULER_TRACE_TRACE_SEEN_H

#include "scheduler/trace/trace.h"

// From a device to another, of each microbatch or once a step.
typedef struct pen_seen_link {
    uint32_t source;
    uint32_t target;
    bool is_per_step;
    uint64_t count;         // transfers seen; what goes together is one
    double seconds;         // mean, from the end of the task that made them until all were there
    double planned_seconds; // the same as planned
    double latency_seconds; // what the plan reckoned with as the link's latency
} pen_seen_link;

typedef struct pen_trace_seen {
    uint32_t device_count;
    const double *slowness; // [device_count] how many times as long as the costs say its computing
                            // takes, with what the plan reckoned with already; 0: not known
    uint32_t link_count;
    const pen_seen_link *links; // by source, then target, then of each microbatch first
} pen_trace_seen;

// INVALID_INPUT: the trace does not say what was planned; CORRUPT: it contradicts itself;
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_trace_see(const pen_trace *trace, pen_arena *arena,
                                       pen_trace_seen *out_seen);

// What was seen of a link; NULL: nothing.
const pen_seen_link *pen_trace_seen_find(const pen_trace_seen *seen, uint32_t source,
                                         uint32_t target, bool is_per_step);

#endif // PEN_SCHEDULER_TRACE_TRACE_SEEN_H
