// What `train --metrics FILE` writes: how the training goes, in Prometheus' text format, for the
// textfile collector of its node exporter.
//
// The file is written beside and renamed into place, so a reader never sees half of one. That
// happens with the first event, then at most once a second, and at the end. What cannot be written
// is warned of once, and tried again.
//
// Each figure has a label `training`, the file's name without its end: in the collector's folder,
// files of several trainings have no line in common.
//
// Lifetime: open to close, in one place. One of zeros takes everything and writes nothing.
// Threads:  one.
#ifndef PEN_CLI_FOLLOW_GAUGE_FILE_H
#define PEN_CLI_FOLLOW_GAUGE_FILE_H

#include "base/arena.h"
#include "scheduler/train/train.h"

typedef struct pen_gauge_file {
    const char *path; // NULL: there is none
    const char *temporary;
    const char *training; // the label, escaped
    double written;       // when, by pen_clock_seconds; 0: not yet
    bool is_warned;
    bool is_running;
    bool has_step;
    pen_step_report last;
    uint64_t step, step_count, step_kept;
    uint64_t examples, lost, recoveries; // so far, in this process
    double seconds;                      // likewise
    uint64_t evaluated_step;             // 0: none was evaluated
    pen_evaluation evaluation;
} pen_gauge_file;

// `path` NULL: none. IO: no file can be there
PEN_NODISCARD pen_status pen_gauge_file_open(const char *path, pen_arena *arena,
                                             pen_gauge_file *out_gauges);
void pen_gauge_file_close(pen_gauge_file *gauges);

void pen_gauge_file_start(pen_gauge_file *gauges, uint64_t step_kept, uint64_t step_count);
void pen_gauge_file_step(pen_gauge_file *gauges, const pen_step_report *report);
void pen_gauge_file_checkpoint(pen_gauge_file *gauges, uint64_t step);
void pen_gauge_file_evaluation(pen_gauge_file *gauges, uint64_t step,
                               const pen_evaluation *evaluation);
void pen_gauge_file_lost(pen_gauge_file *gauges);
void pen_gauge_file_recovered(pen_gauge_file *gauges);

#endif // PEN_CLI_FOLLOW_GAUGE_FILE_H
