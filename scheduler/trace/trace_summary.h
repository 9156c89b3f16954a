// What a trace comes to: steps, bubble, traffic, and what each stage's tasks really took.
//
// Of the rounds of form 0, the training of whole microbatches: a round is a step. A step of which
// tasks are missing (overwritten, or its batch was short) does not count, nor does the first of
// those that are left, in which memory is touched for the first time, unless it is the only one.
//
// Lifetime: in the arena it was made with. Threads: pure.
#ifndef PEN_SCHEDULER_TRACE_TRACE_SUMMARY_H
#define PEN_SCHEDULER_TRACE_TRACE_SUMMARY_H

#include "scheduler/trace/trace.h"

typedef struct pen_trace_step {
    uint64_t round;
    uint64_t step;        // of the training
    double start_seconds; // of its first task, as pen_trace_merge counts
    double end_seconds;   // of its last
    double own_seconds;   // to its end, from its start or from the end of the step before if that
                          // is later: steps may overlap
    double bubble;        // share of own_seconds of the devices that compute, in which they do not
    double *busy_seconds; // [device_count]
    double *wait_seconds; // [device_count] for a frame, a place or the word to update
} pen_trace_step;

// What goes from a device to another, or from or to PEN_TRACE_HOST.
typedef struct pen_trace_link {
    uint32_t source;
    uint32_t target;
    double bytes;   // of a step
    double frames;  // of a step
    double seconds; // of a step, in which at least one is under way
} pen_trace_link;

// What a task takes: of a kind, of a stage.
typedef struct pen_trace_cost {
    pen_task_kind kind;
    uint32_t stage;
    uint32_t device;
    uint64_t count;
    double seconds; // median
} pen_trace_cost;

typedef struct pen_trace_summary {
    uint32_t device_count;
    uint32_t step_count; // those that count
    const pen_trace_step *steps;
    double step_seconds;  // median of own_seconds; 0 without steps, as all below
    double bubble;        // mean over steps
    double *busy_seconds; // [device_count] of a step, mean
    double *wait_seconds; // [device_count]
    double *sent_bytes;   // [device_count]
    bool has_slowest;
    uint32_t slowest_stage; // of those whose tasks take longest in a step
    uint32_t slowest_device;
    double slowest_seconds; // of a step
    uint32_t link_count;
    const pen_trace_link *links; // by source, then target
    uint32_t cost_count;
    const pen_trace_cost *costs; // by stage, then kind
    uint64_t lost_count;         // events overwritten
} pen_trace_summary;

// Checks the trace first. CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_trace_summarize(const pen_trace *trace, pen_arena *arena,
                                             const pen_trace_summary **out_summary);

// The median of what `kind` takes on `stage`; negative when it never ran.
double pen_trace_summary_cost(const pen_trace_summary *summary, pen_task_kind kind, uint32_t stage);

#endif // PEN_SCHEDULER_TRACE_TRACE_SUMMARY_H
