// The contract of train_loop.c and train_start.c.
//
// The training loop: batches in, microbatches through the program, parameters changed, losses out.
//
// The loss of a step is the mean over its examples: microbatches weigh by their size, so a last
// short batch counts right. Batch statistics and dropout masks are per microbatch.
//
// Lifetime: pen_trainer_create to pen_trainer_destroy; the job outlives it.
// Threads:  one uses the trainer; pen_trainer_create starts another that reads data ahead.
#ifndef PEN_SCHEDULER_TRAIN_TRAIN_H
#define PEN_SCHEDULER_TRAIN_TRAIN_H

#include <stdint.h>

#include "base/status.h"
#include "scheduler/checkpoint/order_book.h"
#include "scheduler/engine/engine.h"
#include "scheduler/job/job.h"
#include "scheduler/train/train_keeper.h"

typedef struct pen_trainer pen_trainer;

typedef struct pen_step_report {
    uint64_t step;                 // counted from 1
    uint64_t epoch;                // counted from 1
    double loss;                   // mean over the step's examples, before the update
    double terms[PEN_TERMS_LIMIT]; // [pen_program_term_count] likewise, of each loss by itself
    uint64_t example_count;
    uint64_t target_count;  // predictions judged; 0 when the loss is not over classes
    uint64_t correct_count; // of those
    pen_metric_set metrics; // that are told of the step, besides loss and accuracy
    double metric_values[PEN_METRIC_COUNT];
    double learning_rate;
    double loss_scale;   // with which its gradients were made; 0: none
    bool is_skipped;     // one was not finite, and nothing was updated
    double seconds;      // from the batch at hand to the update done
    double wait_seconds; // spent waiting for data before that
    bool ends_epoch;
    bool is_evaluated; // after it, as `evaluation` of the job says
    bool is_best;      // and that was the best so far
    bool ends;         // the training, since none was better for long
    pen_evaluation evaluation;
} pen_step_report;

// Hears of processes that are lost, between steps, on the thread that asked for one.
typedef struct pen_train_watch {
    void *context;
    void (*lost)(void *context, uint64_t step, const char *text); // the last step done; the error
    // After which it goes on, and after which what bits depend on became another; 0: never.
    void (*recovered)(void *context, uint64_t step, uint64_t changed_step);
} pen_train_watch;

typedef struct pen_trainer_options {
    uint64_t step_limit; // stop after so many steps of the training; 0: as the job says
    const pen_learning_rate_options *rates; // in place of the job's; NULL: its own. Copied
    const char *parameters;                 // safetensors file to start from; NULL: the model's own
    const char *resume;                     // folder of a checkpoint to start from; NULL: none
    const char *checkpoints;                // folder that they are kept in; NULL: none are
    const char *mirror;                     // second folder for them; NULL: none
    pen_interval every;                     // unless the job says a mean time between failures
    bool continues;                         // from what is in that folder, if there is something
    bool overwrites;                        // what is in that folder is forgotten
    const char *replay;         // record of the order of lanes, or a folder with one; NULL: none
    pen_order_book *orders;     // that others share, in place of one of its own; NULL: nobody does
    pen_dataset *evaluated;     // that will be evaluated on; outlives the trainer. NULL: none
    bool trace;                 // as pen_engine_options has them
    bool no_memory_check;       //
    bool insecure;              //
    bool as_reference;          //
    const char *worker_program; //
    const volatile int *cancel; //
    const pen_train_watch *watch;  // outlives the trainer; NULL: nobody asks
    const pen_plan *plan;          // that several devices run; NULL: one is made
    const pen_engine_tasks *tasks; // as the engine has them
    bool runs_ahead; // a step may begin before the one before it is reported: nothing is asked of
                     // the tensors unless pen_trainer_is_ahead says no
} pen_trainer_options;

typedef struct pen_training_size {
    uint64_t example_count; // in the training data
    uint64_t epoch_steps;
    uint64_t step_count;         // that will be run in all
    uint64_t warmup_steps;       // in which the learning rate rises
    uint32_t trainable_count;    // tensors
    uint64_t trainable_elements; // in them
} pen_training_size;

// Compiles, allocates, loads the parameters, and starts reading data. Errors carry the job's or
// the model's position.
PEN_NODISCARD pen_status pen_trainer_create(const pen_job *job, const pen_trainer_options *options,
                                            pen_trainer **out_trainer);
// What the training data are.
const pen_dataset_info *pen_trainer_data(const pen_trainer *trainer);

// Accepts NULL.
void pen_trainer_destroy(pen_trainer *trainer);

// One step. *out_more is false when all steps were done before; then the report is empty.
// What a lost peer takes along is done again from the newest checkpoint, or from the beginning:
// each step is reported once, and a loss that comes out with other bits is CORRUPT.
//   NOT_FINITE  the loss is. With several microbatches the parameters are those of before the
//               step; with one, updates are made as gradients come, and the parameters are lost
//   UNAVAILABLE, DEADLINE  a peer was lost, and the job's `recovery` knows no way on
//   CANCELLED   another coordinator has taken over
// *out_more is false, too, when evaluations were no better for as long as the job allows.
PEN_NODISCARD pen_status pen_trainer_step(pen_trainer *trainer, pen_step_report *out_report,
                                          bool *out_more);

// Whether the step after the one reported has begun. Not any more after pen_trainer_pause and one
// more step.
bool pen_trainer_is_ahead(const pen_trainer *trainer);
// No step begins from now on before the one before it is reported.
void pen_trainer_pause(pen_trainer *trainer);

// What was asked of the engine after the last step has failed with `take_status`: recovers, if that
// is possible, to where the last step is done, so that it may be asked again. Else returns it.
PEN_NODISCARD pen_status pen_trainer_recover(pen_trainer *trainer, pen_status take_status);

// Whether there is an average that takes the place of parameters (train_average.h).
bool pen_trainer_uses_average(const pen_trainer *trainer);

// As evaluate of the engine, in batches of pen_plan_evaluation_batch, with averages where the
// job uses them (train_average.h).
PEN_NODISCARD pen_status pen_trainer_evaluate(pen_trainer *trainer, pen_dataset *dataset,
                                              pen_evaluation *out_evaluation);

// Writes the model's parameters and running statistics to a safetensors file: those after the last
// step, or those of the best evaluation where `outputs: {from: best}` of the job says so and their
// checkpoint is there; where it is not, that is a warning. As pen_parameter_file_save
PEN_NODISCARD pen_status pen_trainer_save(pen_trainer *trainer, const char *path);
// The same of its adapters alone. As pen_adapter_file_save
PEN_NODISCARD pen_status pen_trainer_save_adapters(pen_trainer *trainer, const char *path);

// Whether evaluations have ended the training, since none was better for as long as the job says.
bool pen_trainer_is_over(const pen_trainer *trainer);
// What evaluations of the training have come to so far.
const pen_checkpoint_evaluated *pen_trainer_evaluated(const pen_trainer *trainer);

// How often it went back to a checkpoint, or the beginning, because somebody was lost or came back.
uint64_t pen_trainer_recovery_count(const pen_trainer *trainer);

// Keeps where the training stands, and waits until it is kept: after the last step, or before an
// end that comes early. Does nothing where nothing is kept, or no step was done since. NO_STORAGE:
// it cannot be written now; the training stands as it did.
PEN_NODISCARD pen_status pen_trainer_keep(pen_trainer *trainer);
// The step of the newest checkpoint that is kept; 0: none.
uint64_t pen_trainer_step_kept(const pen_trainer *trainer);
// Where that is.
pen_train_kept pen_trainer_get_kept(const pen_trainer *trainer);

pen_training_size pen_trainer_get_size(const pen_trainer *trainer);
// What runs the steps, and holds the parameters.
pen_engine *pen_trainer_engine(pen_trainer *trainer);
// What the last bits depend on besides build and kernel level, as the engine says, and after which
// step that became another; 0: never, as far as checkpoints tell.
const char *pen_trainer_arithmetic(const pen_trainer *trainer, uint64_t *out_changed_step);
const pen_tensor_store *pen_trainer_tensors(pen_trainer *trainer);
// The program of a whole microbatch as one device runs it: its warnings, graph and sizes.
const pen_program *pen_trainer_program(const pen_trainer *trainer);

#endif // PEN_SCHEDULER_TRAIN_TRAIN_H
