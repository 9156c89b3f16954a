// The contract of this folder: engine_create.c chooses among what implements it.
//
// What runs the steps of a training: on one device of this process (local_engine.c), or as a
// pipeline over several devices and machines (pipeline_engine.c). pen_trainer drives either.
//
// Lifetime: create to destroy; the options' job and info outlive it.
// Threads:  one.
#ifndef PEN_SCHEDULER_ENGINE_ENGINE_H
#define PEN_SCHEDULER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/arrivals.h"
#include "partition/plan/plan.h"
#include "scheduler/compile/compile.h"
#include "scheduler/data/batches.h"
#include "scheduler/data/dataset.h"
#include "scheduler/engine/engine_figures.h"
#include "scheduler/job/job.h"
#include "scheduler/runner/evaluate.h"
#include "scheduler/store/shard.h"
#include "scheduler/store/tensor_store.h"
#include "scheduler/trace/trace.h"

typedef struct pen_engine {
    const struct pen_engine_kind *kind;
} pen_engine;

// What keeps which generation of the processes is in force (scheduler/store/commit_log.h).
typedef struct pen_engine_log {
    void *context;
    const char *job;    // text of the links: the same in all generations
    const char *folder; // that is saved to
    const char *mirror; // or that; NULL: there is no other
    bool is_anew;       // this training begins, whatever another left in the folder
    // The generation after the one in force.
    uint64_t (*next_generation)(void *context);
    // From here on `generation` is in force, durably. CANCELLED: another coordinator was quicker
    PEN_NODISCARD pen_status (*fence)(void *context, uint64_t generation);
    // Whether there is a checkpoint, so that whoever asked for the engine, or for its recovery,
    // writes all tensors: then the model's own are not sent.
    bool (*has_checkpoint)(void *context);
} pen_engine_log;

// The tasks that devices `per: task` are in: each says itself where it is, and may come again
// elsewhere.
typedef struct pen_engine_tasks {
    void *context;
    double waited_since; // seconds of the clock
    // Learns anew what they say.
    void (*look)(void *context);
    // Whether a task has said where it is: if it is not there, it is lost.
    bool (*has_come)(void *context, uint32_t task);
    // What is known of a task. Its texts live as long as the engine.
    const pen_cluster_task *(*find)(void *context, uint32_t task);
} pen_engine_tasks;

// What an engine is made for. Borrowed for the call, but job and info.
typedef struct pen_engine_options {
    const pen_job *job;
    const pen_dataset_info *info; // of the data: what the model is compiled for
    pen_dataset_part part;        // which data that is, for messages
    pen_dataset *dataset; // itself, of which workers that read by themselves are told; NULL: they
                          // are fed
    // TRAIN; else forward passes alone, and what is said of steps does not apply.
    pen_compile_mode mode;
    // Examples of the short microbatch at the end of an epoch; 0: none will come.
    uint64_t rest;
    // Examples of a batch of the evaluations (or predictions) to come, and of their last batch when
    // that is short; 0: none.
    uint64_t evaluate_batch;
    uint64_t evaluate_rest;
    const pen_plan *plan;          // that the devices run; NULL: one is made
    const pen_engine_log *log;     // NULL: generations are counted in memory. Outlives the engine
    const pen_engine_tasks *tasks; // NULL: there are none. Outlives the engine
    bool trace;                    // record one
    bool no_memory_check;          // run what is planned not to fit
    bool insecure;                 // without TLS over networks
    // What `host: localhost` starts, as pen_worker_program_find takes it; NULL: it is looked for.
    const char *worker_program;
    // On one device of this process whatever devices the job has, with kind and threads of its
    // first, and all memory of the machine: what others are compared with.
    bool as_reference;
    // While the number is not 0, waits for workers end with CANCELLED (pen_interrupt_wished); steps
    // under way are finished. NULL: nobody may say so. Outlives the engine.
    const volatile int *cancel;
} pen_engine_options;

// Whether the job has one device, and that in this process.
bool pen_engine_is_local(const pen_job *job);

// One device of this process when the job has one without host; else the job's plan as a pipeline.
// Compiles, allocates, and loads the model's own parameters.
//   errors carry the job's or the model's position
PEN_NODISCARD pen_status pen_engine_create(const pen_engine_options *options,
                                           pen_engine **out_engine);
// Accepts NULL.
void pen_engine_destroy(pen_engine *engine);

typedef struct pen_engine_step {
    const pen_batch *batch; // lent for the call
    uint64_t step;          // counted from 1
    uint64_t update;        // likewise, of those that the optimizer makes
    double learning_rate;
    pen_loss_scale scale;     // of the loss; all zero: none
    pen_arrivals_order order; // of lanes, where it is free; 0: as they come
} pen_engine_step;

typedef struct pen_engine_result {
    double loss;                   // mean over the step's examples
    double terms[PEN_TERMS_LIMIT]; // [pen_program_term_count] likewise, of each loss by itself,
                                   // and of metrics that the program tells
    uint64_t target_count;         // 0 when the loss is not over classes
    uint64_t correct_count;
    bool is_gradient_bad;     // one is not finite, and was not applied
    bool is_skipped;          // with a scale: one is not finite, none was applied. Else all were
    pen_arrivals_order order; // in which lanes came, where it is free
} pen_engine_result;

#define PEN_ENGINE_PASSES_LIMIT 8 // that may be begun and not ended, at most
// What a forward pass over a batch came to.
typedef struct pen_engine_passed {
    const pen_batch *batch;
    const pen_program *program; // that it has passed
    // As long as rows: values of program->metrics, of one that evaluates.
    const void *seen[PEN_METRIC_SEEN_COUNT];
    // [output_count of program()] of an engine that predicts: rows of every output, until as many
    // passes later as may be under way.
    const void *const *rows;
    double loss; // this, and the rest, of one that evaluates
    double terms[PEN_TERMS_LIMIT];
    uint64_t target_count;
    uint64_t correct_count;
} pen_engine_passed;

// The same for an evaluation's sums.
pen_evaluation_batch pen_engine_evaluated(const pen_engine_passed *passed);

// A checkpoint that is written while training goes on.
typedef enum pen_engine_save_state {
    PEN_ENGINE_SAVE_NONE,
    PEN_ENGINE_SAVE_WRITING,
    PEN_ENGINE_SAVE_DURABLE, // all shards are: a manifest may name them
    PEN_ENGINE_SAVE_FAILED,
} pen_engine_save_state;

typedef struct pen_engine_saved {
    pen_engine_save_state state;
    uint64_t step;
    uint32_t shard_count; // DURABLE; valid until the next save
    const pen_shard_summary *shards;
    const char *failure; // FAILED: why
} pen_engine_saved;

// Why processes are to be looked after.
typedef struct pen_engine_loss {
    uint64_t step;     // the last that was done since the last time; 0: none was
    bool is_planned;   // nobody was lost: those that were may take part again
    bool is_blameless; // nobody was lost: data were wrong. The same devices begin again at once
} pen_engine_loss;

typedef struct pen_engine_kind {
    const char *name;
    bool waits_for_workers; // and then says itself for whom, when somebody asks (SIGUSR1)
    void (*destroy)(pen_engine *engine);
    // Begins the step after the last begun, so that devices need not wait between steps: two may be
    // begun and not done. The batch is lent until `step` has returned for it; until then nothing
    // but steps may be asked for. NULL member: steps begin when they are asked for.
    PEN_NODISCARD pen_status (*begin)(pen_engine *engine, const pen_engine_step *step);
    // One step. A loss or gradient that is not finite is no error: then nothing was updated, unless
    // updates come with gradients (one microbatch, one device, no scale), of which others were
    // first. With a scale gradients alone decide: a loss alone updates, and is not to be explained.
    //   UNAVAILABLE, DEADLINE, CANCELLED  a peer was lost, by name; INVALID_INPUT  data are wrong
    PEN_NODISCARD pen_status (*step)(pen_engine *engine, const pen_engine_step *step,
                                     pen_engine_result *out_result);
    // Loss and hits over a dataset, in batches of `batch`. As pen_evaluate
    PEN_NODISCARD pen_status (*evaluate)(pen_engine *engine, pen_dataset *dataset, uint64_t batch,
                                         pen_evaluation *out_evaluation);
    // Forward passes over batches of the evaluation's sizes, pass_limit under way at most, ended in
    // the order in which they were begun. `info` is of the batch's dataset; both are lent until the
    // pass has ended, or the engine recovers. As a step; UNSUPPORTED: of another size
    uint32_t (*pass_limit)(const pen_engine *engine);
    PEN_NODISCARD pen_status (*begin_pass)(pen_engine *engine, const pen_dataset_info *info,
                                           const pen_batch *batch);
    PEN_NODISCARD pen_status (*end_pass)(pen_engine *engine, pen_engine_passed *out_passed);
    // Parameters, running statistics and optimizer states, named as in the program of one device
    // and in its order, whatever the placement. Lives as long as the engine.
    const pen_tensor_store *(*tensors)(pen_engine *engine);
    // The program as one device would run it: warnings, sizes.
    const pen_program *(*program)(const pen_engine *engine);
    PEN_NODISCARD pen_status (*memory)(pen_engine *engine, pen_engine_memory *out_memory);
    // Begins a checkpoint of the tensors as they are between two steps, in the folder of shards:
    // when it returns they are copied aside, or will not be changed before they are written. One at
    // a time. Errors are those of a step, and IO; those of writing come with `poll_saved`, which
    // `waits` until something came of it, and whose own errors are those of a step. Only of
    // engines with a log, as the next two.
    PEN_NODISCARD pen_status (*save)(pen_engine *engine, uint64_t step, const char *folder);
    PEN_NODISCARD pen_status (*poll_saved)(pen_engine *engine, bool waits,
                                           pen_engine_saved *out_saved);
    // Whether all that write see the folder, one of the log's, as far as is known. NULL member:
    // yes.
    bool (*writes_to)(pen_engine *engine, const char *folder);
    // After DURABLE, on any thread: the checkpoint is being put into the log, and that gets on.
    // NULL member: it may take any time.
    void (*publishing)(pen_engine *engine);
    // After DURABLE: OK, the checkpoint of a step is in the log, nobody needs those before; else it
    // could not be put there, and the next one may be tried.
    void (*published)(pen_engine *engine, uint64_t step, pen_status_code code);
    // Whether an error is that of a peer, which another generation may not have. NULL member: no.
    bool (*is_failed)(pen_engine *engine);
    // After a step, or a save, that failed because of a peer: takes down what is left of the
    // generation and begins another, as the job's `recovery` says. Tensors are then to be written,
    // or are the model's own where the log has no checkpoint. NULL member: nobody can be lost.
    //   UNAVAILABLE, DOES_NOT_FIT  too few are left; CANCELLED: superseded
    PEN_NODISCARD pen_status (*recover)(pen_engine *engine, const pen_engine_loss *loss);
    // Whether somebody who was given up answers again, so that a planned recovery is worth it.
    // NULL member: no.
    bool (*may_rejoin)(pen_engine *engine);
    // NULL member: nothing was predicted.
    PEN_NODISCARD pen_status (*report)(pen_engine *engine, pen_arena *arena,
                                       const pen_engine_report **out_report);
    // NULL member, or *out_trace NULL: nothing was recorded.
    PEN_NODISCARD pen_status (*trace)(pen_engine *engine, pen_arena *arena,
                                      const pen_trace **out_trace);
    // NULL member: nothing is known. No I/O, no heap.
    void (*pulse)(const pen_engine *engine, pen_engine_pulse *out_pulse);
    // The plan that is run, of the nodes of program(). NULL member: none.
    const struct pen_plan *(*plan)(const pen_engine *engine);
    // What the last bits depend on besides build and kernel level, in one line: "cpu", or "cpu;
    // cuda: NVIDIA H200, …; nodes 1a2b3c4d", the kinds of devices that have nodes, with the class
    // of those that are of one, and of several kinds a hash of which nodes each has. In `arena`.
    PEN_NODISCARD pen_status (*arithmetic)(pen_engine *engine, pen_arena *arena,
                                           const char **out_text);
    // Whether inputs of trainings are read elsewhere: the batches of steps need labels alone. NULL
    // member: they are read here.
    bool (*reads_elsewhere)(const pen_engine *engine);
    // What runs the model on the only device, which is here: other forms that it is asked for share
    // the parameters. NULL member: the parameters are elsewhere.
    struct pen_runner *(*runner)(pen_engine *engine);
    // After a step whose loss or gradient is not finite: computes it again, and says why
    // (diagnose_step.h). Nothing but `destroy` may follow. Never PEN_OK. NULL member: not known.
    //   NOT_FINITE   names the node
    //   UNAVAILABLE  the hardware does not compute the same thing twice
    PEN_NODISCARD pen_status (*explain)(pen_engine *engine, const pen_engine_step *step);
} pen_engine_kind;

#endif // PEN_SCHEDULER_ENGINE_ENGINE_H
