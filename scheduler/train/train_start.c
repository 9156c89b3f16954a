// What a training begins with: data, engine, folders of checkpoints, and where it stands.
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/job/job_level.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/plan/plan_forms.h"
#include "scheduler/train/train_state.h"

// An average that begins behind the last step is none, which nothing else would tell.
static void train_warn_average(const pen_trainer *trainer) {
    const pen_optimizer_average average = pen_job_get_average(trainer->job, trainer->epoch_steps);
    if (!trainer->job->train.has_average || average.from < trainer->step_count) return;
    pen_log(PEN_LOG_WARNING,
            "train.average.from is %llu steps, and the training ends after %llu: the average is "
            "the parameters themselves; a smaller `from` averages",
            (unsigned long long)average.from, (unsigned long long)trainer->step_count);
}

// Their number says how many steps there are, and so which rate each has.
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
    train_warn_average(trainer);
    if (options->rates == NULL) {
        return pen_job_get_learning_rate(job, trainer->epoch_steps, &trainer->learning_rate);
    }
    trainer->learning_rate = *options->rates;
    return pen_learning_rate_check(options->rates);
}

// Evaluations are planned with it, so that their forms fit beside those of the training.
static pen_status train_create_engine(pen_trainer *trainer, const pen_trainer_options *options) {
    const pen_plan_form_sizes sizes = pen_plan_form_sizes_of(
        trainer->job, trainer->info, trainer->step_count,
        options->evaluated == NULL ? NULL : pen_dataset_get_info(options->evaluated));
    const pen_engine_options engine = {
        .job = trainer->job,
        .info = trainer->info,
        .dataset = trainer->dataset,
        .rest = sizes.rest,
        .evaluate_batch = sizes.evaluate_batch,
        .evaluate_rest = sizes.evaluate_rest,
        .trace = options->trace,
        .no_memory_check = options->no_memory_check,
        .insecure = options->insecure,
        .worker_program = options->worker_program,
        .tasks = options->tasks,
        .plan = options->plan,
        .log = trainer->keeper == NULL ? NULL : pen_train_keeper_log(trainer->keeper),
        .as_reference = options->as_reference,
        .cancel = options->cancel};
    return pen_engine_create(&engine, &trainer->engine);
}

static pen_status train_open_keeper(pen_trainer *trainer, const pen_trainer_options *options) {
    if (options->checkpoints == NULL) return PEN_OK;
    const pen_train_keeper_options keeper = {.job = trainer->job,
                                             .example_count = trainer->info->example_count,
                                             .folder = options->checkpoints,
                                             .mirror = options->mirror,
                                             .every = options->every,
                                             .mtbf_seconds = trainer->job->checkpoint.mtbf_seconds,
                                             .continues = options->continues,
                                             .overwrites = options->overwrites};
    return pen_train_keeper_create(&keeper, &trainer->keeper);
}

static pen_status train_open_order(pen_trainer *trainer, const pen_trainer_options *options) {
    const pen_train_order_options order = {.job = trainer->job,
                                           .example_count = trainer->info->example_count,
                                           .step_count = trainer->step_count,
                                           .replay = options->replay,
                                           .book = options->orders,
                                           .is_kept = options->checkpoints != NULL};
    return pen_train_order_begin(&order, trainer->arena, &trainer->order);
}

// What is gone on from decides: its numbers were made so.
static pen_status train_settle_level(pen_trainer *trainer, const pen_trainer_options *options) {
    const char *folder = options->continues ? options->checkpoints : options->resume;
    pen_job_level_before before = {.plan = options->plan == NULL ? PEN_KERNEL_LEVEL_AUTO
                                                                 : options->plan->level};
    if (folder != NULL) {
        const char *mirror = options->continues ? options->mirror : NULL;
        PEN_TRY(pen_train_keeper_read_level(folder, mirror, trainer->arena, &before.checkpoint));
    }
    return pen_job_level_settle(trainer->job, &before);
}

static void train_stand_at(pen_trainer *trainer, const pen_checkpoint *checkpoint) {
    trainer->steps_done = checkpoint->step;
    trainer->steps_begun = checkpoint->step;
    trainer->next = checkpoint->next;
    trainer->loss = checkpoint->loss;
    trainer->scale = checkpoint->scale;
    const pen_job_numerics *numerics = &trainer->job->numerics;
    if (trainer->scale.scale == 0 && numerics->precision == PEN_PRECISION_FLOAT16) {
        trainer->scale = pen_loss_scale_start(&numerics->loss_scale);
    }
    trainer->rate_steps_before = checkpoint->rate_steps;
    trainer->rate_before = checkpoint->rate;
    trainer->rate_steps = pen_max_u64(trainer->rate_steps, checkpoint->rate_steps);
    pen_train_judge_stand_at(&trainer->judge, &checkpoint->evaluated);
    pen_train_losses_rewind(&trainer->losses, checkpoint->step, checkpoint->losses_hash);
    trainer->changed_step = checkpoint->changed_step;
}

// What records cannot have is left out of what the engine says: a driver may name a GPU so.
static pen_status train_ask_arithmetic(const pen_trainer *trainer, char *out_text) {
    pen_arena *scratch;
    const char *text;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = trainer->engine->kind->arithmetic(trainer->engine, scratch, &text);
    size_t count = 0;
    for (; status == PEN_OK && *text != '\0' && count < PEN_COMMIT_ARITHMETIC_BYTES - 1; text++) {
        out_text[count++] = *text;
        if (*text < ' ' || *text > '~') out_text[count - 1] = '?';
    }
    pen_arena_destroy(scratch);
    return status;
}

// Where the devices that go on do not compute the bits of those that made the checkpoint, it is
// said, and so do the next checkpoints. Steps that are done again by others may have other losses.
static pen_status train_note_arithmetic(pen_trainer *trainer, const pen_checkpoint *checkpoint) {
    char now[PEN_COMMIT_ARITHMETIC_BYTES] = "";
    const char *before =
        checkpoint->arithmetic[0] == '\0' ? TRAIN_ARITHMETIC_OF_CPU : checkpoint->arithmetic;
    PEN_TRY(train_ask_arithmetic(trainer, now));
    const bool is_known = trainer->arithmetic[0] != '\0';
    if (is_known && strcmp(trainer->arithmetic, now) != 0) {
        pen_train_losses_forget(&trainer->losses);
    }
    memcpy(trainer->arithmetic, now, sizeof now);
    if (checkpoint->step == 0 || strcmp(before, now) == 0) return PEN_OK;
    trainer->changed_step = checkpoint->step;
    pen_log(PEN_LOG_WARNING,
            "the checkpoint of step %llu was computed on '%s', and this goes on with '%s': from "
            "here on, the last bits are not those that there would have been",
            (unsigned long long)checkpoint->step, before, now);
    return PEN_OK;
}

// The beginning, where nothing is kept: a checkpoint of another folder, a file, or the model's own.
static pen_status train_stand_at_start(pen_trainer *trainer) {
    pen_checkpoint start = {.loss = NAN};
    if (trainer->resume != NULL) {
        const pen_checkpoint_subject subject = {.job = trainer->job,
                                                .example_count = trainer->info->example_count};
        PEN_TRY(pen_train_keeper_load_from(trainer->resume, &subject, pen_trainer_tensors(trainer),
                                           &start));
    } else if (trainer->parameters != NULL) {
        PEN_TRY(pen_parameter_file_load(trainer->parameters, pen_trainer_tensors(trainer)));
    }
    train_stand_at(trainer, &start);
    return train_note_arithmetic(trainer, &start);
}

pen_status pen_trainer_load(pen_trainer *trainer) {
    pen_checkpoint checkpoint;
    bool is_found = false;
    if (trainer->keeper != NULL) {
        PEN_TRY(pen_train_keeper_load(trainer->keeper, trainer->engine, &checkpoint, &is_found));
    }
    if (!is_found) return train_stand_at_start(trainer);
    train_stand_at(trainer, &checkpoint);
    return train_note_arithmetic(trainer, &checkpoint);
}

// Batches from where the training stands. Labels that cannot be balanced are the fault of the key.
pen_status pen_trainer_read_ahead(pen_trainer *trainer) {
    const pen_engine_kind *kind = trainer->engine->kind;
    const pen_job_train *train = &trainer->job->train;
    const uint32_t ahead = trainer->runs_ahead && trainer->engine->kind->begin != NULL;
    const pen_batches_options options = {.batch_size = (uint64_t)train->batch,
                                         .shuffle = train->shuffle,
                                         .balances = trainer->job->data.balance != 0,
                                         .drop_last = train->drop_last,
                                         // of one step or two, and one being read
                                         .buffer_count = ahead + 2,
                                         .held_count = ahead + 1,
                                         .labels_only = kind->reads_elsewhere != NULL &&
                                                        kind->reads_elsewhere(trainer->engine),
                                         .is_training = true,
                                         .seed = (uint64_t)train->seed,
                                         .start = trainer->next};
    const pen_status status = pen_batches_create(trainer->dataset, &options, &trainer->batches);
    if (!options.balances) return status;
    return pen_job_blame(trainer->job, &trainer->job->data.balance, status);
}

double pen_trainer_rate(const pen_trainer *trainer, uint64_t steps_before) {
    return pen_train_judge_rate(
        &trainer->judge,
        pen_learning_rate_at(&trainer->learning_rate, steps_before, trainer->rate_steps));
}

// Another lr, schedule or length than before is seen by the last step that was done.
static void train_say_rate(const pen_trainer *trainer) {
    const double before = trainer->rate_before;
    const double now = pen_trainer_rate(trainer, trainer->steps_done - 1);
    if (before <= 0 || fabs(now - before) <= 1e-9 * before) return; // of another libm, even
    pen_log(PEN_LOG_NOTE,
            "the learning rate is another than before: step %llu had %.6g, and this job has %.6g "
            "for it",
            (unsigned long long)trainer->steps_done, before, now);
}

// Where it goes on, with which learning rate, and what of it is not as the job alone would have it.
static void train_say_start(const pen_trainer *trainer) {
    const pen_job_train *train = &trainer->job->train;
    const unsigned long long done = trainer->steps_done, whole = trainer->rate_steps;
    if (done == 0) return;
    if (pen_train_judge_is_over(&trainer->judge)) {
        pen_log(PEN_LOG_NOTE,
                "nothing is left to do: evaluations ended the training after step %llu; more "
                "evaluation.patience goes on",
                done);
        return;
    }
    if (trainer->steps_done >= trainer->step_count) {
        pen_log(PEN_LOG_NOTE, "nothing is left to do: step %llu of %llu is done already%s", done,
                whole, done < whole ? "" : "; more train.epochs, or train.steps, go on from there");
        return;
    }
    pen_log(PEN_LOG_NOTE, "goes on after step %llu of %llu, with the learning rate %.6g", done,
            whole, pen_trainer_rate(trainer, trainer->steps_done));
    if (trainer->rate_steps_before > 0 && trainer->rate_steps_before < trainer->rate_steps) {
        pen_log(PEN_LOG_NOTE,
                "it was to have %llu steps and has %llu now, which a learning rate with a schedule "
                "follows",
                (unsigned long long)trainer->rate_steps_before, whole);
    }
    const double decided = trainer->judge.verdict.plateau.rate;
    if (train->learning_rate.kind != PEN_LEARNING_RATE_PLATEAU || decided <= 0) {
        train_say_rate(trainer);
        return;
    }
    if (decided == train->optimizer.lr) return;
    pen_log(PEN_LOG_NOTE,
            "the plateau's learning rate is %.6g, as evaluations left it, and not the lr %.6g of "
            "the job",
            decided, train->optimizer.lr);
}

// What can be wrong with files comes before devices are started; where it stands, behind it.
static pen_status train_start(pen_trainer *trainer, const pen_trainer_options *options) {
    const pen_job *job = trainer->job;
    PEN_TRY(train_open_data(trainer, options));
    PEN_TRY(train_open_order(trainer, options));
    PEN_TRY(train_open_keeper(trainer, options));
    PEN_TRY(train_settle_level(trainer, options));
    PEN_TRY(train_create_engine(trainer, options));
    PEN_TRY(pen_job_check_data(job, PEN_DATASET_PART_TRAIN, pen_trainer_program(trainer),
                               trainer->dataset));
    PEN_TRY(pen_train_judge_init(
        &trainer->judge, job, options->evaluated, pen_trainer_program(trainer),
        pen_job_get_step_count(job, trainer->epoch_steps), trainer->keeper != NULL));
    trainer->parameters = options->parameters;
    trainer->resume = options->resume;
    trainer->runs_ahead = options->runs_ahead;
    trainer->watch = options->watch;
    PEN_TRY(pen_trainer_load(trainer));
    const bool is_kept = pen_trainer_step_kept(trainer) > 0;
    const pen_train_order_folders kept = {options->checkpoints, options->mirror};
    const pen_train_order_folders resumed = {options->resume, NULL};
    PEN_TRY(pen_train_order_go_on(&trainer->order, is_kept ? &kept : &resumed, trainer->steps_done,
                                  &kept, trainer->keeper));
    trainer->steps_reported = trainer->steps_done;
    train_say_start(trainer);
    return pen_trainer_read_ahead(trainer);
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
    // a checkpoint that is being published borrows from the engine
    if (trainer->keeper != NULL) pen_train_keeper_abandon(trainer->keeper);
    pen_engine_destroy(trainer->engine); // which may have batches lent, and uses the keeper's log
    pen_train_keeper_destroy(trainer->keeper);
    pen_train_order_end(&trainer->order);
    pen_train_losses_deinit(&trainer->losses);
    pen_batches_destroy(trainer->batches);
    pen_status_ignore(trainer->ahead.error, "nobody asked for the step");
    pen_dataset_close(trainer->dataset);
    pen_arena_destroy(trainer->arena);
    pen_memory_free(trainer);
}
