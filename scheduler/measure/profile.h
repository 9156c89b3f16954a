// The contract of profile.c and profile_targets.c.
//
// What the training program of a job costs on a device of this machine, operator by operator, and
// what it costs in a real step: so that predictions can be checked, and plans made anew.
//
// Operators are measured one at a time (device/measure_op.h), without the model's parameters in
// memory. Nodes whose cost keys are equal are one operator, measured once. Steps, in contrast, run
// the whole program, on made-up examples: only their time is of interest.
//
// Lifetime: pen_profiler_create to pen_profiler_destroy; what it returns lives as long. The job
//           outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_MEASURE_PROFILE_H
#define PEN_SCHEDULER_MEASURE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "device/measure_op.h"
#include "graph/passes/cut/cut.h"
#include "partition/costs/cluster.h"
#include "partition/costs/cost_table.h"
#include "scheduler/job/job.h"
#include "scheduler/measure/step_runner.h"
#include "scheduler/runtime/executor/executor.h"

// Devices of one machine that compute alike.
typedef struct pen_profile_target {
    const char *device; // the first of them: its name
    const char *kind;   // "cpu"
    uint32_t gpu;       // of kind cuda
    uint32_t threads;
    const char *model;     // of a GPU, as the job says; NULL: of others
    const char *cost_kind; // by which a cost table has it: "cpu", "cuda NVIDIA H200"
    uint32_t cost_threads;
    uint64_t memory_bytes; // 0: no limit
    uint32_t device_count; // how many of the job's devices are such
    uint32_t device_index; // of the first, in the cluster
    bool is_remote;        // on another machine: its worker measures
    const char *host_name; // of the machine, as costs are kept by; "": this one
} pen_profile_target;

typedef struct pen_profile_targets {
    const pen_cluster *cluster;
    uint32_t count;
    uint32_t remote_count;           // of them, behind those of this machine
    const pen_profile_target *items; // [count]
} pen_profile_targets;

// The kinds of device to measure: all of the job's, or only the one called `device_name`.
//   NOT_FOUND      no device has that name; near names are listed
//   INVALID_INPUT  the model of a GPU is not said, with the position
//   as pen_cluster_build
PEN_NODISCARD pen_status pen_profile_find_targets(const pen_job *job, const char *device_name,
                                                  pen_arena *arena, pen_profile_targets *out);

// One operator of the program.
typedef struct pen_profile_row {
    const char *op;
    const char *shape;      // pen_cost_key
    pen_node_id node;       // the first of its nodes
    uint32_t node_count;    // of the program
    double runs_per_step;   // of each node: microbatches, or 1 for updates
    bool is_measured;       // `seconds` is known
    bool is_fresh;          // measured now; else the table had it
    bool is_wanted;         // the table lacks it, or it is to be measured again
    double seconds;         // of one run, alone
    const char *failure;    // why it could not be measured; NULL otherwise
    double seconds_in_step; // mean over its nodes of their medians; 0: steps have not run
    uint64_t workspace_bytes;
} pen_profile_row;

typedef struct pen_profile_summary {
    uint32_t node_count; // that run
    uint32_t row_count;
    const pen_profile_row *rows; // [row_count], the most expensive in a step first
    uint32_t fresh_count;
    uint32_t kept_count; // the table had them
    uint32_t failed_count;
    uint32_t left_count;      // for lack of time
    double seconds_predicted; // of a step: the sum over measured rows
    // after pen_profiler_run_steps
    uint32_t step_count;
    double seconds_in_step; // the sum over the same rows, as they ran
    double step_seconds;    // of a whole step, median
    double error_weighted;  // sum of |predicted - in step| over nodes, divided by seconds_in_step
    double error_mean;      // mean of |predicted / in step - 1| over rows of at least 1 % of a step
    pen_executor_memory memory;
    uint64_t resident_bytes_peak; // of the process; 0: the system does not say
} pen_profile_summary;

typedef struct pen_profiler pen_profiler;

// Opens the device and compiles the training program. `info` describes the training data.
// As pen_job_compile_request and pen_compile.
PEN_NODISCARD pen_status pen_profiler_create(const pen_job *job, const pen_dataset_info *info,
                                             const pen_profile_target *target,
                                             pen_profiler **out_profiler);
// Accepts NULL.
void pen_profiler_destroy(pen_profiler *profiler);

// The program, as it is described to a worker that measures its nodes: in one list. Lives as long
// as the profiler. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_profiler_describe(pen_profiler *profiler, const pen_part **out_part);

// Who measures in this process's stead: it is asked for one thing, which is then awaited. A status
// ends the profile, what cannot be measured is a `failure`.
typedef struct pen_profile_meter {
    void *context;
    void (*ask_rates)(void *context);
    void (*ask_node)(void *context, pen_node_id node, double seconds);
    PEN_NODISCARD pen_status (*await_rates)(void *context, pen_device_rates *out_rates,
                                            pen_status *out_failure);
    PEN_NODISCARD pen_status (*await_node)(void *context, pen_op_measurement *out_measured,
                                           pen_status *out_failure);
} pen_profile_meter;

typedef struct pen_profile_options {
    const pen_profile_meter *meters; // one a profiler; NULL: their own devices measure
    bool repeat;                     // measure also what the table has
    double time_limit;               // seconds for all operators; 0: none
    double operator_time_limit;      // seconds of runs for each; 0: as pen_measure_options
    void (*progress)(void *context, const pen_profile_row *row, uint32_t done, uint32_t count);
    void *progress_context;
} pen_profile_options;

// Measures rates and operators that `table` lacks, and adds them to it: the meters of all profilers
// at the same time, one operator each. An operator that cannot be measured keeps its failure in its
// row. DOES_NOT_FIT: the table is full; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_profiler_measure(pen_profiler *const *profilers, uint32_t count,
                                              const pen_profile_options *options,
                                              pen_cost_table *table);

// Runs `step_count` steps, at most 1000, of the whole program after some that do not count, while
// the other devices [other_count] do the same.
// DOES_NOT_FIT: the model is larger than a device; what running returns
PEN_NODISCARD pen_status pen_profiler_run_steps(pen_profiler *profiler, uint32_t step_count,
                                                const pen_device_options *others,
                                                uint32_t other_count);
// Puts the times of operators in a step into `table`, in place of those of operators alone.
PEN_NODISCARD pen_status pen_profiler_store_steps(const pen_profiler *profiler,
                                                  pen_cost_table *table);

PEN_NODISCARD pen_status pen_profiler_summarize(pen_profiler *profiler,
                                                pen_profile_summary *out_summary);

#endif // PEN_SCHEDULER_MEASURE_PROFILE_H
