#include "scheduler/train.h"

#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "scheduler/feed.h"
#include "scheduler/job_runner.h"
#include "scheduler/parameter_file.h"
#include "scheduler/training/batches.h"
#include "scheduler/training/learning_rate.h"

struct pen_trainer {
    const pen_job *job;
    pen_arena *arena;
    pen_dataset *dataset;
    const pen_dataset_info *info;
    pen_batches *batches;
    pen_runner *runner;
    const pen_runner_form *whole; // the form of a whole microbatch
    pen_learning_rate_options learning_rate;
    uint64_t microbatch_size;
    bool accumulate;
    uint64_t epoch_steps;
    uint64_t step_count;
    uint64_t steps_done;
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
    if (options->step_limit > 0) trainer->step_count = options->step_limit;
    return pen_job_get_learning_rate(job, trainer->epoch_steps, &trainer->learning_rate);
}

// The microbatch that is left at the end of an epoch, if it will come: what is wrong with it is
// said now, and not after an epoch.
static pen_status train_compile_rest(pen_trainer *trainer) {
    const pen_job_train *train = &trainer->job->train;
    const uint64_t last = trainer->info->example_count % (uint64_t)train->batch;
    const pen_feed_split split = pen_feed_cut(last, trainer->microbatch_size);
    if (train->drop_last || split.rest == 0 || trainer->step_count < trainer->epoch_steps) {
        return PEN_OK;
    }
    const pen_runner_form *form;
    const pen_status status =
        pen_runner_get(trainer->runner, PEN_COMPILE_TRAIN, split.rest, trainer->accumulate, &form);
    return pen_status_add_context(pen_job_blame_memory(trainer->job, status),
                                  "for the last %llu examples of an epoch; drop_last: true leaves "
                                  "a batch that is not full out",
                                  (unsigned long long)split.rest);
}

static pen_status train_start(pen_trainer *trainer, const pen_trainer_options *options) {
    const pen_job *job = trainer->job;
    PEN_TRY(train_open_data(trainer, options));
    trainer->microbatch_size = (uint64_t)(job->train.batch / job->train.microbatches);
    trainer->accumulate = job->train.microbatches > 1;
    pen_runner_options runner_options;
    PEN_TRY(pen_job_runner_options(job, PEN_DATASET_PART_TRAIN, trainer->info, trainer->arena,
                                   &runner_options));
    PEN_TRY(pen_runner_create(&runner_options, &trainer->runner));
    PEN_TRY(pen_job_blame_memory(job, pen_runner_get(trainer->runner, PEN_COMPILE_TRAIN,
                                                     trainer->microbatch_size, trainer->accumulate,
                                                     &trainer->whole)));
    PEN_TRY(
        pen_job_check_data(job, PEN_DATASET_PART_TRAIN, trainer->whole->program, trainer->dataset));
    PEN_TRY(train_compile_rest(trainer));
    if (options->parameters != NULL) {
        PEN_TRY(pen_parameter_file_load(options->parameters, trainer->runner));
    }
    const pen_batches_options batches_options = {.batch_size = (uint64_t)job->train.batch,
                                                 .shuffle = job->train.shuffle,
                                                 .drop_last = job->train.drop_last,
                                                 .buffer_count = 2, // one in use, one being read
                                                 .seed = (uint64_t)job->train.seed};
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
    pen_batches_destroy(trainer->batches);
    pen_runner_destroy(trainer->runner);
    pen_dataset_close(trainer->dataset);
    pen_arena_destroy(trainer->arena);
    pen_memory_free(trainer);
}

// Runs one microbatch and adds its loss and hits to the report. The seed gradient of a microbatch
// is its share of the step's examples, so that gradients of microbatch means add up to the gradient
// of the step's mean.
static pen_status train_microbatch(pen_trainer *trainer, const pen_runner_form *form,
                                   const pen_batch *batch, uint64_t first, uint64_t microbatch,
                                   pen_step_report *report) {
    const pen_program *program = form->program;
    const double weight = (double)program->microbatch_size / (double)batch->count;
    PEN_TRY(pen_feed_microbatch(form, trainer->info, batch, first));
    PEN_TRY(pen_feed_scalar(form, program->loss_weight, weight));
    PEN_TRY(pen_feed_scalar(form, program->learning_rate, report->learning_rate));
    PEN_TRY(pen_feed_scalar(form, program->step, (double)report->step));
    const pen_run_context run = {.seed = (uint64_t)trainer->job->train.seed,
                                 .step = report->step,
                                 .microbatch = microbatch,
                                 .first_microbatch = microbatch == 0};
    PEN_TRY(pen_executor_run_microbatch(form->executor, &run));
    double loss;
    PEN_TRY(pen_feed_read_loss(form, &loss));
    report->loss += weight * loss;
    if (!pen_value_is(program->accuracy)) return PEN_OK;
    int64_t correct;
    PEN_TRY(pen_executor_read(form->executor, program->accuracy, &correct, sizeof correct));
    report->correct_count += (uint64_t)correct;
    report->target_count +=
        (uint64_t)pen_shape_element_count(&pen_value_type(program->graph, program->labels)->shape);
    return PEN_OK;
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

static pen_status train_microbatches(pen_trainer *trainer, const pen_batch *batch,
                                     pen_step_report *report) {
    const pen_feed_split split = pen_feed_cut(batch->count, trainer->microbatch_size);
    const pen_runner_form *form = trainer->whole;
    for (uint64_t m = 0; m < split.whole_count; m++) {
        PEN_TRY(train_microbatch(trainer, form, batch, m * split.size, m, report));
    }
    if (split.rest > 0) {
        PEN_TRY(pen_runner_get(trainer->runner, PEN_COMPILE_TRAIN, split.rest, trainer->accumulate,
                               &form));
        PEN_TRY(train_microbatch(trainer, form, batch, split.whole_count * split.size,
                                 split.whole_count, report));
    }
    if (!isfinite(report->loss)) return train_refuse_loss(trainer, batch, report);
    if (!trainer->accumulate) return PEN_OK; // updates ran inside
    const pen_run_context run = {.seed = (uint64_t)trainer->job->train.seed, .step = report->step};
    return pen_executor_run_update(form->executor, &run);
}

pen_status pen_trainer_step(pen_trainer *trainer, pen_step_report *out_report, bool *out_more) {
    *out_report = (pen_step_report){0};
    *out_more = trainer->steps_done < trainer->step_count;
    if (!*out_more) return PEN_OK;
    const double started = pen_clock_seconds();
    const pen_batch *batch;
    PEN_TRY(pen_batches_next(trainer->batches, &batch));
    const double ready = pen_clock_seconds();
    pen_step_report report = {
        .step = trainer->steps_done + 1,
        .epoch = batch->position.epoch + 1,
        .example_count = batch->count,
        .learning_rate =
            pen_learning_rate_at(&trainer->learning_rate, trainer->steps_done, trainer->step_count),
        .ends_epoch = batch->next.epoch != batch->position.epoch,
        .wait_seconds = ready - started};
    PEN_TRY(pen_status_add_context(train_microbatches(trainer, batch, &report), "in step %llu",
                                   (unsigned long long)report.step));
    report.seconds = pen_clock_seconds() - ready;
    trainer->steps_done += 1;
    *out_report = report;
    return PEN_OK;
}

pen_training_size pen_trainer_get_size(const pen_trainer *trainer) {
    return (pen_training_size){.example_count = trainer->info->example_count,
                               .epoch_steps = trainer->epoch_steps,
                               .step_count = trainer->step_count,
                               .warmup_steps = trainer->learning_rate.warmup,
                               .trainable_count = trainer->whole->program->trainable_count,
                               .trainable_elements = trainer->whole->program->trainable_elements,
                               .device_bytes = pen_runner_device_bytes(trainer->runner)};
}

pen_runner *pen_trainer_runner(pen_trainer *trainer) {
    return trainer->runner;
}

const pen_runner_form *pen_trainer_form(const pen_trainer *trainer) {
    return trainer->whole;
}

const pen_dataset_info *pen_trainer_data(const pen_trainer *trainer) {
    return trainer->info;
}
