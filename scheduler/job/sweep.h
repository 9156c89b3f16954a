// What `penstock sweep` is asked for: a base job, and the values to try in it.
//
//   version: 1
//   job: job.yaml
//   dir: sweep1
//   grid: {train.optimizer.sgd.lr: [0.1, 0.01], train.batch: [32, 64]}   # each with each
//   list: [{train.seed: 1}, {train.seed: 2, model.unfreeze: "^head"}]     # each with each of the
//   grid parallel: 2 sort: accuracy stop: {worst: 0.5, at: 0.25}
//
// Paths and values are those of --set (pen_option_assign). A run's name has the last keys of its
// paths, and its values: "lr=0.1,batch=32". It does not depend on what else is tried, so that a
// sweep that was changed finds the runs that it has.
//
// Lifetime: a sweep lives in the arena it was read into.
// Threads:  immutable once returned.
#ifndef PEN_SCHEDULER_JOB_SWEEP_H
#define PEN_SCHEDULER_JOB_SWEEP_H

#include "base/arena.h"
#include "base/option/option.h"
#include "base/status.h"
#include "scheduler/metric/metric.h"

#define PEN_SWEEP_RUNS_LIMIT 10000

typedef struct pen_sweep_stop {
    double worst; // share of the runs that end early
    double at;    // share of their steps that all runs do
} pen_sweep_stop;

typedef struct pen_sweep_run {
    const char *name;            // a file name, one of its kind in the sweep
    const char *const *settings; // [setting_count] "train.batch=32"
    uint32_t setting_count;
} pen_sweep_run;

typedef struct pen_sweep {
    int64_t version;
    const char *job;  // path
    const char *dir;  // where the folders of runs are
    int64_t parallel; // runs at once
    pen_metric sort;  // what the best run has most or least of
    pen_sweep_stop stop;
    bool has_stop;
    pen_option_list grid; // of a path and a list of const char *
    pen_option_list list; // of lists of a path and a const char *
    pen_sweep_run *runs;  // [run_count]
    uint32_t run_count;
} pen_sweep;

// The keys of the file.
extern const pen_option_table pen_sweep_table;

// INVALID_INPUT with a position, NOT_FOUND, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_sweep_read(const char *path, pen_arena *arena, pen_sweep **out_sweep);
// The same from memory; `path` names it.
PEN_NODISCARD pen_status pen_sweep_parse(const char *path, const char *bytes, size_t length,
                                         pen_arena *arena, pen_sweep **out_sweep);

#endif // PEN_SCHEDULER_JOB_SWEEP_H
