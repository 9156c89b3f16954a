// The inside of the pipeline engine, for its files.
#ifndef PEN_SCHEDULER_PIPELINE_STATE_H
#define PEN_SCHEDULER_PIPELINE_STATE_H

#include "scheduler/engine.h"
#include "scheduler/pipeline_forms.h"
#include "scheduler/plan_job.h"
#include "scheduler/runtime/coordinator.h"
#include "scheduler/runtime/launch.h"
#include "scheduler/runtime/worker.h"

#define PIPELINE_STEPS_AHEAD 2 // begun and not finished

// Where a tensor lies.
typedef struct pipeline_tensor {
    pen_value_id value;  // in the program of form 0
    uint32_t first_home; // of homes
    uint32_t home_count; // 0: no device has it, so that it stays as the model has it
    char *copy;          // of a tensor that no device has and that was written
} pipeline_tensor;

typedef struct pipeline_home {
    uint32_t device;
    pen_value_id value; // in its part of form 0
} pipeline_home;

// What a round was for, until its figures come.
#define PIPELINE_NOTES 16
typedef struct coordinator_round_note {
    bool trains;
    bool ends_step;
    bool is_counted; // of a step after the first
} coordinator_round_note;

typedef struct pipeline_rounds {
    uint32_t count;     // of the step, 1 or 2
    uint64_t number[2]; // of the rounds
    uint32_t form[2];
    uint32_t microbatches[2];
    double weight[2];
    uint64_t step;
} pipeline_rounds;

typedef struct pipeline_engine {
    pen_engine engine; // first: an engine is its owner
    pen_engine_options options;
    const pen_job *job;
    const pen_dataset_info *info;
    pen_arena *arena;
    pen_plan_job *plan_job;
    const pen_plan *plan;
    const pen_plan_request *request; // the cluster
    const pen_schedule *schedule;
    pen_device *device; // whose layouts are used
    pen_run_spec_device *devices;
    pen_run_spec_worker *workers; // [worker_count + 1]
    uint32_t worker_count;
    uint32_t *worker_of_device;
    uint32_t local_worker;  // 0: none
    pen_launched *launched; // processes; NULL: none
    pen_pipeline_forms forms;
    pen_worker *worker;
    pen_coordinator *coordinator;

    pipeline_rounds begun[PIPELINE_STEPS_AHEAD];
    uint32_t begun_first;
    uint32_t begun_count;
    const void **feeds; // [channels of the largest form]
    double *losses;     // [microbatch_count]
    uint64_t *correct;

    pen_tensor_store tensors;
    pipeline_tensor *tensor_places;
    pipeline_home *homes;

    // measured, over rounds of steps after the first
    pen_round_figures *figures; // [device_count]
    double *clocks;             // [worker_count + 1] to be added to a worker's times
    coordinator_round_note notes[PIPELINE_NOTES]; // by round
    uint64_t first_step;                          // that was run
    uint64_t figures_next;                        // the round to come
    uint64_t rounds_begun;
    double *busy; // [device_count]
    double bubble_sum;
    uint64_t bubble_count;
    double last_round_end;
    double *step_seconds; // [step_limit] ring of the last
    uint64_t step_count;
    double last_end;
} pipeline_engine;

#define PIPELINE_STEPS_KEPT 1024 // of which the median is taken

static inline pipeline_engine *pipeline_of(pen_engine *engine) {
    return (pipeline_engine *)(void *)engine;
}

// Plans, cuts, starts workers, and sends them their parameters.
PEN_NODISCARD pen_status pen_pipeline_set_up(pipeline_engine *p);
void pen_pipeline_take_down(pipeline_engine *p);

// Lists the tensors and where they lie.
PEN_NODISCARD pen_status pen_pipeline_list_tensors(pipeline_engine *p);
// Sends the model's own contents to the devices of other processes.
PEN_NODISCARD pen_status pen_pipeline_send_model(pipeline_engine *p);

// Takes in what rounds that are done took.
void pen_pipeline_note_rounds(pipeline_engine *p);
void pen_pipeline_pulse(const pen_engine *engine, pen_engine_pulse *out_pulse);
PEN_NODISCARD pen_status pen_pipeline_memory(pen_engine *engine, pen_engine_memory *out_memory);
PEN_NODISCARD pen_status pen_pipeline_report(pen_engine *engine, pen_arena *arena,
                                             const pen_engine_report **out_report);
PEN_NODISCARD pen_status pen_pipeline_trace(pen_engine *engine, pen_arena *arena,
                                            const pen_trace **out_trace);

#endif // PEN_SCHEDULER_PIPELINE_STATE_H
