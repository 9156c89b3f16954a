// Measures what carries tensors between devices of one process: memory.
//
// A bandwidth is that of tensors of several MiB, a latency half the round trip of a small message
// between threads that sleep while they wait. Both are medians.
//
// Threads: each call starts and ends one of its own.
#ifndef PEN_SCHEDULER_MEASURE_LINK_PROBE_H
#define PEN_SCHEDULER_MEASURE_LINK_PROBE_H

#include "base/status.h"

typedef struct pen_link_probe {
    double bandwidth; // bytes a second
    double latency;   // seconds
} pen_link_probe;

// From one thread of this process to another: a copy in memory, and a condition that wakes.
// UNAVAILABLE: no thread; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_link_probe_memory(pen_link_probe *out_probe);

#endif // PEN_SCHEDULER_MEASURE_LINK_PROBE_H
