// The contract of the pipeline_*.c of this folder.
//
// The inside of the pipeline engine, for its files.
#ifndef PEN_SCHEDULER_ENGINE_PIPELINE_STATE_H
#define PEN_SCHEDULER_ENGINE_PIPELINE_STATE_H

#include "base/thread.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/pipeline_forms.h"
#include "scheduler/plan/plan_job.h"
#include "scheduler/protocol/recovery_policy.h"
#include "scheduler/runtime/coordinator/coordinator.h"
#include "scheduler/runtime/run/launch.h"
#include "scheduler/runtime/run/run_workers.h"
#include "scheduler/runtime/worker/worker.h"

typedef struct pipeline_audit pipeline_audit; // pipeline_audit.h

#define PIPELINE_STEPS_AHEAD 2 // begun and not finished

// A forward pass under way.
typedef struct pipeline_pass {
    const pen_batch *batch;
    uint64_t round;
    uint32_t form;
} pipeline_pass;

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

// A device of the job, as recovery sees it.
typedef struct pipeline_member {
    const char *host;   // as in the job, or that of a spare
    uint32_t worker;    // of the job's own plan
    uint32_t launched;  // among the processes started here; PIPELINE_NOT_LAUNCHED: none of them
    bool is_lost;       // given up: placed without it
    bool is_returning;  // no longer, in the generation that is begun
    double unfit_until; // seconds of the clock: it answers, but did not take part
    double failed_at;   // when it could not be started again; 0: it could
} pipeline_member;
#define PIPELINE_NOT_LAUNCHED UINT32_MAX

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
    const pen_dataset_info *info;
    pen_arena *arena;

    // who takes part
    pipeline_member *members;   // [device_count of the options' job]
    pen_launched *launched;     // processes; NULL: none
    const pen_run_data *data;   // that workers read by themselves; NULL: they are fed
    pen_recovery *recovery;     // what to do about those who are lost
    uint32_t seat_count;        // workers of the job's own plan
    bool *is_present;           // [seat_count + 1]
    bool *was_missing;          // [seat_count + 1]
    bool *is_spare_taken;       // [spares of the job]
    bool *is_spare_free;        // [spares of the job]
    bool *is_refused;           // as is_missing
    uint64_t *needed_bytes;     // [workers.count + 1] that the plan takes; NULL: not to be checked
    bool *was_there;            // likewise
    bool *is_missing;           // [devices of the options' job + 2] workers, when a run fails
    struct pipeline_kept *kept; // kinds of devices that nodes began on; NULL: not noted
    uint64_t generation;        // 0: none yet
    uint64_t first_step;        // of the generation
    double said_at;             // who is waited for
    pen_coordinator_rendezvous rendezvous; // of the first generation; end 0: it is over
    pen_coordinator_told told;             // of devices of workers
    double looked_at;                      // for those who may take part again

    // a placement, in an arena of its own: what follows from the members
    pen_arena *placed;
    const pen_job *job; // with the devices of the members that take part
    uint32_t *member_of_device;
    pen_plan_job *plan_job;
    const pen_plan *plan;
    const pen_plan_request *request; // the cluster
    const pen_schedule *schedule;
    pen_device *device; // whose layouts are used; NULL: devices are of several kinds
    pen_run_spec_device *devices;
    pen_run_workers workers;
    pen_pipeline_forms forms;
    pipeline_audit *audit; // NULL: none is made

    // a generation
    pen_worker *worker;
    pen_coordinator *coordinator; // NULL: the generation has ended
    pen_mutex publishing;  // for who publishes a checkpoint, on another thread: the member above
    const char *links_job; // text that links of this training have

    pipeline_rounds begun[PIPELINE_STEPS_AHEAD];
    uint32_t begun_first;
    uint32_t begun_count;
    const void **feeds;   // [channels of the largest form]
    pen_run_loss *losses; // [microbatch_count]
    double *step_losses;  // [microbatches + 1] of the last step finished
    uint32_t step_loss_count;

    pipeline_pass passes[PEN_ENGINE_PASSES_LIMIT];
    uint64_t passes_begun;
    uint64_t passes_ended;
    void **collected[PEN_ENGINE_PASSES_LIMIT]; // [output_count] by round: of the passes under way

    pen_tensor_store tensors;
    const pen_tensor_store *joined; // the same without slices
    pipeline_tensor *tensor_places;
    pipeline_home *homes;

    // a checkpoint under way
    pen_arena *saving;
    uint32_t *homeless; // tensors that no device has
    bool has_homeless;
    pen_shard_summary homeless_summary;

    // measured, over rounds of steps after the first
    pen_round_figures *figures; // [device_count]
    double *clocks;             // [worker_count + 1] to be added to a worker's times
    coordinator_round_note notes[PIPELINE_NOTES]; // by round
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

static inline bool pipeline_is_forward(const pipeline_engine *p) {
    return p->options.mode != PEN_COMPILE_TRAIN;
}
// Whether outputs are brought here.
static inline bool pipeline_collects(const pipeline_engine *p) {
    return p->options.mode == PEN_COMPILE_PREDICT;
}

// ---- rounds (pipeline_engine.c)
// Where the channels from the host find what they are fed from example `first` of a batch on.
PEN_NODISCARD pen_status pen_pipeline_find_feeds(pipeline_engine *p, uint32_t form,
                                                 const pen_dataset_info *info,
                                                 const pen_batch *batch, uint64_t first);
void pen_pipeline_note_begun(pipeline_engine *p, uint64_t round,
                             const coordinator_round_note *note);

// ---- forward passes (pipeline_passes.c), as the engine's functions
uint32_t pen_pipeline_pass_limit(const pen_engine *engine);
PEN_NODISCARD pen_status pen_pipeline_begin_pass(pen_engine *engine, const pen_dataset_info *info,
                                                 const pen_batch *batch);
PEN_NODISCARD pen_status pen_pipeline_end_pass(pen_engine *engine, pen_engine_passed *out_passed);
PEN_NODISCARD pen_status pen_pipeline_evaluate(pen_engine *engine, pen_dataset *dataset,
                                               uint64_t batch, pen_evaluation *out_evaluation);
// Room for what is collected, and who takes it. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pipeline_prepare_passes(pipeline_engine *p);
pen_worker_collector pen_pipeline_collector(pipeline_engine *p);

// ---- what workers read by themselves (pipeline_data.c)
// Sets `data` as the job says. As pen_dataset_fingerprint; INVALID_INPUT
PEN_NODISCARD pen_status pen_pipeline_describe_data(pipeline_engine *p);
bool pen_pipeline_reads_elsewhere(const pen_engine *engine);

// Plans and cuts for the members that take part (pipeline_setup.c).
PEN_NODISCARD pen_status pen_pipeline_place(pipeline_engine *p);
void pen_pipeline_unplace(pipeline_engine *p);
// Where the workers are, and what they are called: those that were started here are there by now.
PEN_NODISCARD pen_status pen_pipeline_name_workers(pipeline_engine *p);

// Asks tasks where they are (pipeline_members.c).
void pen_pipeline_look_for_tasks(pipeline_engine *p);
// Starts the processes that the job wants started (pipeline_members.c).
PEN_NODISCARD pen_status pen_pipeline_find_members(pipeline_engine *p);
// The job with the devices that take part.
PEN_NODISCARD pen_status pen_pipeline_reduce_job(pipeline_engine *p);

// Links the workers, gives them their parts and parameters, and has them ready; waits for them as
// long as `seconds` (pipeline_generation.c).
PEN_NODISCARD pen_status pen_pipeline_begin_generation(pipeline_engine *p, double seconds);
void pen_pipeline_end_generation(pipeline_engine *p);
// Whether there is a generation. UNAVAILABLE: its workers were lost, and no other was begun
PEN_NODISCARD pen_status pen_pipeline_check_there(const pipeline_engine *p);
// And whether nothing is under way in it. As pen_coordinator_await_quiet
PEN_NODISCARD pen_status pen_pipeline_await_quiet(pipeline_engine *p);

// What recovery needs to know about the job's own plan.
PEN_NODISCARD pen_status pen_pipeline_begin_policy(pipeline_engine *p);

// The first generation; who is lost on the way is waited for.
PEN_NODISCARD pen_status pen_pipeline_start(pipeline_engine *p);

// Of the engine: pipeline_save.c, pipeline_recovery.c.
PEN_NODISCARD pen_status pen_pipeline_save(pen_engine *engine, uint64_t step, const char *folder);
bool pen_pipeline_writes_to(pen_engine *engine, const char *folder);
PEN_NODISCARD pen_status pen_pipeline_poll_saved(pen_engine *engine, bool waits,
                                                 pen_engine_saved *out_saved);
void pen_pipeline_publishing(pen_engine *engine);
void pen_pipeline_published(pen_engine *engine, uint64_t step, pen_status_code code);
bool pen_pipeline_is_failed(pen_engine *engine);
PEN_NODISCARD pen_status pen_pipeline_recover(pen_engine *engine, const pen_engine_loss *loss);
bool pen_pipeline_may_rejoin(pen_engine *engine);
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

// As the engine's explain (pipeline_explain.c).
PEN_NODISCARD pen_status pen_pipeline_explain(pen_engine *engine, const pen_engine_step *step);

#endif // PEN_SCHEDULER_ENGINE_PIPELINE_STATE_H
