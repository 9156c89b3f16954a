// The contract of worker_times.c about what it keeps of a device with a clock of its own.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_KEPT_TIMES_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_KEPT_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/trace/trace.h"

// A task, or a wait, of a device with a clock of its own.
typedef struct worker_time {
    pen_trace_event event;
    bool is_seen;      // it has the times at which the host saw it
    bool is_marked;    // it lies between two marks, or goes on there
    uint32_t from, to; // of the device
} worker_time;

// What such a device did and is not noted yet.
typedef struct worker_times {
    worker_time *kept; // [limit]
    uint32_t limit, count;
    uint32_t mark_count;    // that are used
    pen_trace_event task;   // that is enqueued now
    uint32_t started, held; // marks before what it computes, and before a fence
    double noted_until;     // the end of the last that was told
    pen_trace_event wait;   // told, but perhaps not over
    bool is_waiting;        // there is such a wait
} worker_times;

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_KEPT_TIMES_H
