// What a batcher counts, and how Prometheus reads it.
//
// Lifetime: the batcher's. Threads: one at a time; the batcher's lock guards them.
#ifndef PEN_SCHEDULER_SERVE_BATCHER_FIGURES_H
#define PEN_SCHEDULER_SERVE_BATCHER_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

#define PEN_BATCHER_CODES (PEN_NO_STORAGE + 1)
#define PEN_BATCHER_BOUNDS 12 // of the histogram of latencies

typedef struct pen_batcher_figures {
    uint64_t answered[PEN_BATCHER_CODES]; // requests, by code
    uint64_t latencies[PEN_BATCHER_BOUNDS + 1];
    double latency_sum; // seconds
    uint64_t batches;
    uint64_t rows;
    uint64_t recoveries; // after a lost worker, or a wrong value that ended a run over several
    uint64_t reloads;
    uint64_t failed_reloads;
} pen_batcher_figures;

// A request that was answered with `code`, `seconds` after it came.
void pen_batcher_figures_note(pen_batcher_figures *figures, pen_status_code code, double seconds);
// Counters and gauges in Prometheus' text form. queued: requests that wait now.
void pen_batcher_figures_print(const pen_batcher_figures *figures, uint64_t queued, bool is_ready,
                               pen_text *text);

#endif // PEN_SCHEDULER_SERVE_BATCHER_FIGURES_H
