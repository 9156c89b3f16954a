#include "scheduler/train.h"

#include <math.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/checkpoint.h"
#include "scheduler/feed.h"
#include "scheduler/job_runner.h"
#include "scheduler/parameter_file.h"
#include "scheduler/training/batches.h"
#include "scheduler/training/learning_rate.h"

// The step that comes next, where its batch is at hand already.
typedef struct train_ahead {
    const pen_batch *batch; // NULL: it is not
    double wait_seconds;    // that it took to come
    pen_status error;       // why it is not, to be told in its turn
} train_ahead;

struct pen_trainer {
    const pen_job *job;
    pen_arena *arena;
    pen_dataset *dataset;
    const pen_dataset_info *info;
    pen_batches *batches;
    pen_engine *engine;
    pen_learning_rate_options learning_rate;
    uint64_t rate_steps; // over which the learning rate runs its course
    uint64_t epoch_steps;
    uint64_t step_count; // after which it is over
    uint64_t steps_done;
    pen_batches_position next; // of the batch to come
    double loss;               // of the last step
    train_ahead ahead;
    bool (*pauses)(const void *context, const pen_step_report *report);
    const void *pauses_context;
};

static pen_status train_open_data(pen_trainer *trainer, const pen_trainer_options *options) {
    const pen_job *job = trainer->job;
    PEN_TRY(pen_job_open_dataset(job, PEN_DATASET_PART_TRAIN, trainer->arena, &trainer->dataset));
    trainer->info = pen_dataset_get_info(trainer->dataset);
    trainer->epoch_steps = pen_batches_count(trainer->info->example_count,
                                             (uint64_t)job->train.batch, job->train.drop_last);
    if (trainer->epoch_steps == 0) {
        return pen_job_blame(job, &job->train.batch,
                             pen_error(PEN_INVALID_INPUT,
                                       "batch is %lld, but there are %llu examples to train on, "
                                       "and drop_last leaves out a batch that is not full",
                                       (long long)job->train.batch,
                                       (unsigned long long)trainer->info->example_count));
    }
    trainer->step_count = pen_job_get_step_count(job, trainer->epoch_steps);
    trainer->rate_steps = pen_max_u64(trainer->step_count, options->step_limit);
    if (options->step_limit > 0) trainer->step_count = options->step_limit;
    return pen_job_get_learning_rate(job, trainer->epoch_steps, &trainer->learning_rate);
}

// Examples of the microbatch that is left at the end of an epoch; 0: it does not come.
static uint64_t train_rest(const pen_trainer *trainer) {
    const pen_job_train *train = &trainer->job->train;
    if (train->drop_last || trainer->step_count < trainer->epoch_steps) return 0;
    const uint64_t last = trainer->info->example_count % (uint64_t)train->batch;
    return pen_feed_cut(last, (uint64_t)(train->batch / train->microbatches)).rest;
}

uint64_t pen_trainer_evaluation_batch(const pen_job *job, const pen_dataset_info *info) {
    return pen_min_u64((uint64_t)job->train.batch, info->example_count);
}

static pen_status train_create_engine(pen_trainer *trainer, const pen_trainer_options *options) {
    pen_engine_options engine = {.job = trainer->job,
                                 .info = trainer->info,
                                 .rest = train_rest(trainer),
                                 .trace = options->trace,
                                 .no_memory_check = options->no_memory_check,
                                 .insecure = options->insecure,
                                 .plan = options->plan,
                                 .as_reference = options->as_reference};
    if (options->evaluated != NULL) {
        engine.evaluate_batch = pen_trainer_evaluation_batch(trainer->job, options->evaluated);
        engine.evaluate_rest = options->evaluated->example_count % engine.evaluate_batch;
    }
    return pen_engine_create(&engine, &trainer->engine);
}

static pen_checkpoint_subject train_subject(pen_trainer *trainer) {
    return (pen_checkpoint_subject){.job = trainer->job,
                                    .example_count = trainer->info->example_count,
                                    .store = pen_trainer_tensors(trainer)};
}

static pen_status train_resume(pen_trainer *trainer, const char *folder) {
    const pen_checkpoint_subject subject = train_subject(trainer);
    pen_checkpoint checkpoint;
    PEN_TRY(pen_checkpoint_load(folder, &subject, &checkpoint));
    trainer->steps_done = checkpoint.step;
    trainer->next = checkpoint.next;
    trainer->loss = checkpoint.loss;
    trainer->rate_steps = pen_max_u64(trainer->rate_steps, checkpoint.rate_steps);
    return PEN_OK;
}

pen_status pen_trainer_save(pen_trainer *trainer, const char *folder) {
    const pen_checkpoint_subject subject = train_subject(trainer);
    const pen_checkpoint checkpoint = {.step = trainer->steps_done,
                                       .next = trainer->next,
                                       .rate_steps = trainer->rate_steps,
                                       .loss = trainer->loss};
    PEN_ASSERT(trainer->steps_done > 0);
    return pen_checkpoint_save(folder, &subject, &checkpoint);
}

uint64_t pen_trainer_steps_done(const pen_trainer *trainer) {
    return trainer->steps_done;
}

static pen_status train_start(pen_trainer *trainer, const pen_trainer_options *options) {
    const pen_job *job = trainer->job;
    PEN_TRY(train_open_data(trainer, options));
    PEN_TRY(train_create_engine(trainer, options));
    PEN_TRY(pen_job_check_data(job, PEN_DATASET_PART_TRAIN, pen_trainer_program(trainer),
                               trainer->dataset));
    if (options->parameters != NULL) {
        PEN_TRY(pen_parameter_file_load(options->parameters, pen_trainer_tensors(trainer)));
    }
    if (options->resume != NULL) PEN_TRY(train_resume(trainer, options->resume));
    trainer->pauses = options->pauses;
    trainer->pauses_context = options->pauses_context;
    const uint32_t ahead = options->pauses != NULL && trainer->engine->kind->begin != NULL;
    const pen_batches_options batches_options = {.batch_size = (uint64_t)job->train.batch,
                                                 .shuffle = job->train.shuffle,
                                                 .drop_last = job->train.drop_last,
                                                 // of one step or two, and one being read
                                                 .buffer_count = ahead + 2,
                                                 .held_count = ahead + 1,
                                                 .seed = (uint64_t)job->train.seed,
                                                 .start = trainer->next};
    return pen_batches_create(trainer->dataset, &batches_options, &trainer->batches);
}

pen_status pen_trainer_create(const pen_job *job, const pen_trainer_options *options,
                              pen_trainer **out_trainer) {
    pen_trainer *trainer = pen_memory_allocate(1, sizeof *trainer);
    if (trainer == NULL) return pen_error_out_of_memory();
    trainer->job = job;
    pen_status status = pen_arena_create(&trainer->arena);
    if (status == PEN_OK) status = train_start(trainer, options);
    if (status != PEN_OK) {
        pen_trainer_destroy(trainer);
        return status;
    }
    *out_trainer = trainer;
    return PEN_OK;
}

void pen_trainer_destroy(pen_trainer *trainer) {
    if (trainer == NULL) return;
    pen_engine_destroy(trainer->engine); // which may have batches lent
    pen_batches_destroy(trainer->batches);
    pen_status_ignore(trainer->ahead.error, "nobody asked for the step");
    pen_dataset_close(trainer->dataset);
    pen_arena_destroy(trainer->arena);
    pen_memory_free(trainer);
}

// The loss is not finite: because the data is not, or because the training went wrong.
static pen_status train_refuse_loss(const pen_trainer *trainer, const pen_batch *batch,
                                    const pen_step_report *report) {
    const char *what = isnan(report->loss) ? "not a number" : "infinite";
    const pen_status data = pen_dataset_check_finite(trainer->dataset, batch->indices, batch->count,
                                                     batch->inputs, batch->labels);
    if (data != PEN_OK) {
        return pen_status_add_context(
            pen_job_blame_data(trainer->job, PEN_DATASET_PART_TRAIN, PEN_JOB_DATA_INPUTS, data),
            "so that the loss is %s", what);
    }
    return pen_error(PEN_NOT_FINITE,
                     "the loss of step %llu is %s; a smaller learning rate may help, or clip_norm",
                     (unsigned long long)report->step, what);
}

static pen_engine_step train_describe_step(const pen_trainer *trainer, const pen_batch *batch,
                                           uint64_t steps_before) {
    return (pen_engine_step){.batch = batch,
                             .step = steps_before + 1,
                             .learning_rate = pen_learning_rate_at(
                                 &trainer->learning_rate, steps_before, trainer->rate_steps)};
}

// Has the batch of the next step at hand.
static pen_status train_fetch(pen_trainer *trainer) {
    train_ahead *ahead = &trainer->ahead;
    const pen_status error = ahead->error;
    ahead->error = PEN_OK;
    PEN_TRY(error);
    if (ahead->batch != NULL) return PEN_OK;
    const double started = pen_clock_seconds();
    PEN_TRY(pen_batches_next(trainer->batches, &ahead->batch));
    ahead->wait_seconds = pen_clock_seconds() - started;
    return PEN_OK;
}

// The step behind the one that is under way, so that devices need not wait for it. What goes wrong
// is told when it is its turn.
static void train_begin_next(pen_trainer *trainer, const pen_step_report *report) {
    const pen_engine_kind *kind = trainer->engine->kind;
    train_ahead *ahead = &trainer->ahead;
    if (kind->begin == NULL || trainer->pauses == NULL) return;
    if (report->step >= trainer->step_count) return;
    if (trainer->pauses(trainer->pauses_context, report)) return;
    ahead->error = train_fetch(trainer);
    if (ahead->error != PEN_OK) return;
    const pen_engine_step step = train_describe_step(trainer, ahead->batch, report->step);
    ahead->error = kind->begin(trainer->engine, &step);
}

static pen_status train_batch(pen_trainer *trainer, const pen_engine_step *step,
                              pen_step_report *report) {
    pen_engine_result result;
    PEN_TRY(trainer->engine->kind->step(trainer->engine, step, &result));
    report->loss = result.loss;
    report->target_count = result.target_count;
    report->correct_count = result.correct_count;
    return isfinite(result.loss) ? PEN_OK : train_refuse_loss(trainer, step->batch, report);
}

pen_status pen_trainer_step(pen_trainer *trainer, pen_step_report *out_report, bool *out_more) {
    *out_report = (pen_step_report){0};
    *out_more = trainer->steps_done < trainer->step_count;
    if (!*out_more) return PEN_OK;
    const bool is_begun = trainer->ahead.batch != NULL;
    PEN_TRY(train_fetch(trainer));
    const pen_batch *batch = trainer->ahead.batch;
    const double ready = pen_clock_seconds();
    const pen_engine_step step = train_describe_step(trainer, batch, trainer->steps_done);
    pen_step_report report = {.step = step.step,
                              .epoch = batch->position.epoch + 1,
                              .example_count = batch->count,
                              .learning_rate = step.learning_rate,
                              .ends_epoch = batch->next.epoch != batch->position.epoch,
                              .wait_seconds = trainer->ahead.wait_seconds};
    trainer->ahead = (train_ahead){0};
    const pen_engine_kind *kind = trainer->engine->kind;
    pen_status status = PEN_OK;
    if (kind->begin != NULL && !is_begun) status = kind->begin(trainer->engine, &step);
    if (status == PEN_OK) {
        train_begin_next(trainer, &report);
        status = train_batch(trainer, &step, &report);
    }
    PEN_TRY(pen_status_add_context(status, "in step %llu", (unsigned long long)report.step));
    report.seconds = pen_clock_seconds() - ready;
    trainer->steps_done += 1;
    trainer->next = batch->next;
    trainer->loss = report.loss;
    *out_report = report;
    return PEN_OK;
}

pen_training_size pen_trainer_get_size(const pen_trainer *trainer) {
    const pen_program *program = pen_trainer_program(trainer);
    return (pen_training_size){.example_count = trainer->info->example_count,
                               .epoch_steps = trainer->epoch_steps,
                               .step_count = trainer->step_count,
                               .warmup_steps = trainer->learning_rate.warmup,
                               .trainable_count = program->trainable_count,
                               .trainable_elements = program->trainable_elements};
}

pen_engine *pen_trainer_engine(pen_trainer *trainer) {
    return trainer->engine;
}

const pen_tensor_store *pen_trainer_tensors(pen_trainer *trainer) {
    return trainer->engine->kind->tensors(trainer->engine);
}

const pen_program *pen_trainer_program(const pen_trainer *trainer) {
    return trainer->engine->kind->program(trainer->engine);
}

const pen_dataset_info *pen_trainer_data(const pen_trainer *trainer) {
    return trainer->info;
}
