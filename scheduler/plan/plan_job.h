// From a job to a plan: the model compiled as its devices would run it, costs of its
// nodes from the job's cost table or by estimate, and the schedule that judges placements.
//
// A plan may be made where the data is not: then the model's own input shapes are used.
//
// Lifetime: pen_plan_job_create to pen_plan_job_destroy; the job outlives it, plans made from it
//           live in their arena and are not to be used after it.
// Threads:  one.
#ifndef PEN_SCHEDULER_PLAN_PLAN_JOB_H
#define PEN_SCHEDULER_PLAN_PLAN_JOB_H

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"
#include "partition/replicas/plan_whole.h"
#include "scheduler/compile/compile.h"
#include "scheduler/data/dataset.h"
#include "scheduler/job/job.h"
#include "scheduler/plan/plan_forms.h"

typedef struct pen_plan_job pen_plan_job;

// What a command line says in place of the job.
typedef struct pen_plan_job_options {
    const char *strategy;      // NULL: the job's
    int32_t objective;         // a pen_objective; -1: the job's
    double time_limit_seconds; // 0: the job's
    int64_t seed;              // -1: the job's
    const char *cost_table;    // NULL: the job's
    const char *run;           // trace of a run whose figures count besides; NULL: none
    const pen_plan *given;     // whose devices' slowness counts, without `run`; NULL: none
    const char *schedule;      // NULL: the job's
    // Of data that is open already, and which data that is; NULL: the training data is opened.
    const pen_dataset_info *info;
    pen_dataset_part part;
    // What the model is compiled for: TRAIN, or forward passes alone, of `batch` examples at once,
    // without replicas, and under the objective throughput where the job's is the time of a step.
    pen_compile_mode mode;
    uint64_t batch;
    const pen_plan_form_sizes *sizes; // of further forms; NULL: those of a training of the job
} pen_plan_job_options;

// Compiles and prices. Errors have the position in the job.
//   NOT_FOUND, IO, CORRUPT, INVALID_INPUT, UNSUPPORTED  of the job's model, data and costs
//   DOES_NOT_FIT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_job_create(const pen_job *job,
                                             const pen_plan_job_options *options,
                                             pen_plan_job **out_plan_job);
// Accepts NULL.
void pen_plan_job_destroy(pen_plan_job *plan_job);

// Places, splits, schedules. Of several schedules (`auto`) the fastest that fits. As
// pen_plan_build.
PEN_NODISCARD pen_status pen_plan_job_place(pen_plan_job *plan_job, pen_arena *arena,
                                            pen_plan **out_plan);
// Figures for the stages of a plan that is given, under the objective and the schedule of the
// options or else the job: what the plan itself says of those is not looked at. As
// pen_plan_rebuild.
PEN_NODISCARD pen_status pen_plan_job_rebuild(pen_plan_job *plan_job, const pen_plan *given,
                                              pen_arena *arena, pen_plan **out_plan);

// Says of each node of a plan that was placed or rebuilt here why it is where it is. As
// pen_plan_add_reasons and pen_plan_job_use_plan.
PEN_NODISCARD pen_status pen_plan_job_add_reasons(pen_plan_job *plan_job, pen_plan *plan,
                                                  pen_arena *arena);

// For explanations: the request under the schedule of a plan, which outlives its use. As
// pen_plan_schedule.
PEN_NODISCARD pen_status pen_plan_job_use_plan(pen_plan_job *plan_job, const pen_plan *plan,
                                               const pen_plan_request **out_request);

// The same under the schedule called `schedule`. NOT_FOUND
PEN_NODISCARD pen_status pen_plan_job_get_request(pen_plan_job *plan_job, const char *schedule,
                                                  const pen_plan_request **out_request);

// Of a plan that was placed or rebuilt here: kinds of devices, and what GPUs leave to the host, as
// lines. As pen_plan_add_kinds.
PEN_NODISCARD pen_status pen_plan_job_add_kinds(const pen_plan_job *plan_job, const pen_plan *plan,
                                                pen_arena *arena, pen_text *text);

const pen_program *pen_plan_job_program(const pen_plan_job *plan_job);

#endif // PEN_SCHEDULER_PLAN_PLAN_JOB_H
