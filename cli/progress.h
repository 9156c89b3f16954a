// Progress on standard error: one line that is rewritten on a terminal, a plain line now and then
// elsewhere. On a terminal the line is cut to its width: a line that wraps cannot be rewritten. The
// loss has a colour where messages have colours. A message begins below the line.
#ifndef PEN_CLI_PROGRESS_H
#define PEN_CLI_PROGRESS_H

#include <stdbool.h>

#include "scheduler/train/metrics.h"
#include "scheduler/train/train.h"

typedef struct pen_progress {
    bool is_terminal;
    bool is_quiet;
    double shown_seconds; // when the last line was written
    pen_metrics metrics;  // of the epoch
    uint64_t step_count;
} pen_progress;

void pen_progress_init(pen_progress *progress, bool is_quiet);
// After a step: counts it, and shows it if it is time to, with what `engine` knows of its devices.
void pen_progress_step(pen_progress *progress, const pen_training_size *size,
                       const pen_step_report *report, const pen_engine *engine);
// Ends the line that is being rewritten, if there is one.
void pen_progress_end(pen_progress *progress);

#endif // PEN_CLI_PROGRESS_H
