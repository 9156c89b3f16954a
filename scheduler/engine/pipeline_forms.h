// From a plan to what the workers of a run are told: every form of the model that will be needed is
// compiled, cut along the plan's stages, and turned into tasks and channels.
//
// Lifetime: in the arena, but the programs, which pen_pipeline_forms_release releases.
// Threads:  one.
#ifndef PEN_SCHEDULER_ENGINE_PIPELINE_FORMS_H
#define PEN_SCHEDULER_ENGINE_PIPELINE_FORMS_H

#include "partition/plan/plan.h"
#include "scheduler/compile/compile.h"
#include "scheduler/compile/program_cut.h"
#include "scheduler/runtime/run/run_spec.h"
#include "scheduler/schedule/schedule.h"

// Numbers of forms, where there are such.
#define PEN_PIPELINE_FORM_LIMIT 4
#define PEN_PIPELINE_FORM_NONE UINT32_MAX

typedef struct pen_pipeline_form {
    const pen_program *program;
    pen_program_parts parts;
} pen_pipeline_form;

typedef struct pen_pipeline_forms {
    // 0: training, whole microbatches; of a pipeline of forward passes alone, one over a batch
    pen_pipeline_form forms[PEN_PIPELINE_FORM_LIMIT];
    uint32_t form_count;
    const pen_program *borrowed; // the request's
    uint32_t rest;               // training of the microbatch that is left at the end of an epoch
    uint32_t evaluate;           // evaluation of a batch, or prediction
    uint32_t evaluate_rest;      // and of the last one, that is short
    const pen_run_spec *spec;
} pen_pipeline_forms;

// Everything borrowed: plan and program as long as the forms, the rest for the call.
typedef struct pen_pipeline_request {
    const pen_plan *plan;
    const pen_schedule *schedule; // of the plan's stages
    pen_compile_mode mode;        // PREDICT: the plan has a device that collects (collector.h)
    const pen_program *program;   // that was planned: form 0 of a training
    const pen_compile_request *compile; // of all: mode, size, accumulate and device are not read
    pen_device *device;                 // whose layouts are used; NULL: the plain one
    const pen_run_spec_device *devices; // [device_count of the plan]
    const pen_run_spec_worker *workers; // [worker_count + 1]
    uint32_t worker_count;
    const uint32_t *worker_of_device; // [device_count]
    uint64_t rest;                    // examples; 0: no such form
    uint32_t rest_index;              // of that microbatch, in its step
    uint64_t evaluate_batch;          //
    uint64_t evaluate_rest;           //
    uint64_t seed;
    uint32_t trace_limit;
    bool shares_memory;           // frames between workers of one host
    const pen_run_data *data;     // that workers read by themselves for trainings; NULL: none
    const pen_dataset_info *info; // of what is trained on
} pen_pipeline_request;

// As pen_compile and pen_cut_stages. INVALID_INPUT: a node of the model that the plan does not have
PEN_NODISCARD pen_status pen_pipeline_forms_build(const pen_pipeline_request *request,
                                                  pen_arena *arena, pen_pipeline_forms *out_forms);
// Releases the programs of all forms but the request's. Accepts a zeroed one.
void pen_pipeline_forms_release(pen_pipeline_forms *forms);

#endif // PEN_SCHEDULER_ENGINE_PIPELINE_FORMS_H
