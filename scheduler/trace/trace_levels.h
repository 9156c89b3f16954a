// How many microbatches a device holds at each moment of a trace, and the bytes that makes.
//
// A stage holds a microbatch from the start of its forward task to the end of its backward or
// backward_weight task; one without a backward pass, only while its forward task runs. The bytes
// are what the plan says such a microbatch takes, with all that is fixed: what the device would
// need at that moment, at the times at which things really happened.
//
// Threads: pure.
#ifndef PEN_SCHEDULER_TRACE_TRACE_LEVELS_H
#define PEN_SCHEDULER_TRACE_TRACE_LEVELS_H

#include "scheduler/trace/trace.h"

typedef struct pen_trace_level {
    uint32_t device;
    double seconds; // from here on; on the clock of the entries
    uint32_t in_flight;
    double bytes; // 0 when the trace does not tell the plan's figures
} pen_trace_level;

// In order of time. `entries` are the trace's, merged. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_trace_levels(const pen_trace *trace, const pen_trace_entry *entries,
                                          uint32_t entry_count, pen_arena *arena,
                                          const pen_trace_level **out_levels, uint32_t *out_count);

#endif // PEN_SCHEDULER_TRACE_TRACE_LEVELS_H
