// The forms of a job's model that a training has besides that of whole microbatches: the smaller
// microbatch at the end of an epoch, an evaluation of a batch, and one of the last batch. Each has
// tables on a device of its own memory, inputs, and more working memory where it needs more.
//
// Lifetime: open to close.
// Threads:  one.
#ifndef PEN_SCHEDULER_PLAN_PLAN_FORMS_H
#define PEN_SCHEDULER_PLAN_PLAN_FORMS_H

#include "scheduler/compile/compile.h"
#include "scheduler/data/dataset.h"
#include "scheduler/job/job.h"

#define PEN_PLAN_FORMS_LIMIT 3

// Examples of each; 0: there is no such form.
typedef struct pen_plan_form_sizes {
    uint64_t rest;           // of the microbatch that is left at the end of an epoch
    uint64_t evaluate_batch; // of a batch of an evaluation
    uint64_t evaluate_rest;  // of the last one, where it is smaller
} pen_plan_form_sizes;

typedef struct pen_plan_form {
    const pen_program *program;
    bool trains;
    uint32_t first_microbatch; // the microbatch of a step that it is, of several replicas
} pen_plan_form;

typedef struct pen_plan_forms {
    pen_plan_form items[PEN_PLAN_FORMS_LIMIT]; // in the order in which executors are made
    uint32_t count;
} pen_plan_forms;

// What is asked of the compiler for each. Everything borrowed for the call.
typedef struct pen_plan_forms_request {
    const pen_job *job;
    const pen_compile_request *compile; // of whole microbatches, or of what passes alone
    uint64_t example_count;             // of the data that is trained on
    bool is_local;                      // one device of this process runs it
    pen_plan_form_sizes sizes;
} pen_plan_forms_request;

// Examples at once in evaluations of data of `info`.
uint64_t pen_plan_evaluation_batch(const pen_job *job, const pen_dataset_info *info);
// Of a training of so many steps. `evaluated` NULL: nothing is evaluated.
pen_plan_form_sizes pen_plan_form_sizes_of(const pen_job *job, const pen_dataset_info *trained,
                                           uint64_t step_count, const pen_dataset_info *evaluated);
// The same where nobody says how many steps there are: those of the job, and its data for
// evaluations, which is opened, since only that tells how many examples it has. Data that cannot be
// opened is a warning, and not evaluated: a training says what is wrong with it. `arena` is for
// scratch. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_form_sizes_find(const pen_job *job,
                                                  const pen_dataset_info *trained, pen_arena *arena,
                                                  pen_plan_form_sizes *out_sizes);

// Says of an error of the smaller microbatch what it is of, and what to do.
PEN_NODISCARD pen_status pen_plan_blame_rest(pen_status status, uint64_t rest);

// `out_forms` is zeroed before, and is closed by the caller, after an error too. As pen_compile
PEN_NODISCARD pen_status pen_plan_forms_open(const pen_plan_forms_request *request,
                                             pen_plan_forms *out_forms);
void pen_plan_forms_close(pen_plan_forms *forms);

#endif // PEN_SCHEDULER_PLAN_PLAN_FORMS_H
