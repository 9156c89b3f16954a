// What a log of `train --log` says of a run (cli/train_log.h writes it): how far it came, and how
// it went. Lines of other events, and lines that are cut short, are passed over.
//
// Threads: as its memory.
#ifndef PEN_SCHEDULER_REPORT_RUN_LOG_H
#define PEN_SCHEDULER_REPORT_RUN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/metric/metric.h"

typedef enum pen_run_outcome {
    PEN_RUN_NONE, // it has not ended, or was killed
    PEN_RUN_DONE,
    PEN_RUN_STOPPED,
    PEN_RUN_FAILED,
} pen_run_outcome;

typedef struct pen_run_means {
    double loss, accuracy; // NAN: not known
} pen_run_means;

typedef struct pen_run_log {
    uint64_t step;       // the last one done
    uint64_t step_count; // of the whole job
    double seconds;      // of its steps
    pen_run_means late;  // over the last tenth of the steps so far
    pen_run_means rung;  // over the last tenth of the first `rung` steps, when they are done
    bool has_evaluation; // of the last step
    double evaluation[PEN_METRIC_COUNT]; // NAN: not told
    pen_run_outcome outcome;             // the last
    bool ended_early;                    // done before its last step, as evaluations decided
    int64_t exit_code;                   // with it
    char hash[24];                       // of the parameters, when it is done; else ""
} pen_run_log;

// Reads a log; `rung` 0: none. A file that is not there is a run that has not begun. IO,
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_log_read(const char *path, uint64_t rung, pen_run_log *out_log);
// The same from memory. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_log_parse(const char *bytes, size_t length, uint64_t rung,
                                           pen_run_log *out_log);

#endif // PEN_SCHEDULER_REPORT_RUN_LOG_H
