#include "scheduler/train/train.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/plan/plan_forms.h"
#include "scheduler/protocol/recovery_policy.h"
#include "scheduler/runner/feed.h"
#include "scheduler/train/train_average.h"
#include "scheduler/train/train_state.h"

#define LOST_LEVEL "error: " // which it is not, if the training goes on

// What is wrong with a step. *out_help: what may help.
static const char *train_describe_wrong(const pen_step_report *report, const char **out_help) {
    *out_help = report->is_skipped ? "; a smaller learning rate may help, or precision bfloat16"
                                   : "; a smaller learning rate may help, or clip_norm";
    if (isfinite(report->loss)) return "finite, but a gradient is not";
    return isnan(report->loss) ? "not a number" : "infinite";
}

// Blames the data of a step, if that is not finite.
static pen_status train_check_data(const pen_trainer *trainer, const pen_batch *batch,
                                   const char *what) {
    PEN_TRY(pen_batches_complete(trainer->batches, batch));
    const pen_status data = pen_dataset_check_finite(trainer->dataset, batch->indices, batch->count,
                                                     batch->inputs, batch->labels);
    if (data == PEN_OK) return PEN_OK;
    return pen_status_add_context(
        pen_job_blame_data(trainer->job, PEN_DATASET_PART_TRAIN, PEN_JOB_DATA_INPUTS, data),
        "so that the loss is %s", what);
}

// The loss, or a gradient, is not finite: because the data is not, or because the training went
// wrong.
static pen_status train_refuse_loss(const pen_trainer *trainer, const pen_engine_step *step,
                                    const pen_step_report *report) {
    const pen_engine_kind *kind = trainer->engine->kind;
    const char *help;
    const char *what = train_describe_wrong(report, &help);
    PEN_TRY(train_check_data(trainer, step->batch, what));
    if (kind->explain != NULL) {
        const pen_status why = kind->explain(trainer->engine, step);
        const bool is_numbers = pen_status_get_code(why) == PEN_NOT_FINITE;
        return pen_status_add_context(why, "the loss of step %llu is %s%s",
                                      (unsigned long long)report->step, what,
                                      is_numbers ? help : "");
    }
    return pen_error(PEN_NOT_FINITE, "the loss of step %llu is %s%s",
                     (unsigned long long)report->step, what, help);
}

// The loss of a step is not finite, but all its scaled gradients are: then they have been applied.
// Parameters are others now, so the step is not computed again, as other bits would come of it and
// the hardware would be blamed.
static pen_status train_refuse_updated(const pen_trainer *trainer, const pen_engine_step *step,
                                       const pen_step_report *report) {
    const char *help;
    const char *what = train_describe_wrong(report, &help);
    PEN_TRY(train_check_data(trainer, step->batch, what));
    return pen_error(
        PEN_NOT_FINITE,
        "the loss of step %llu is %s, but all its gradients are finite: a number of "
        "the loss itself is beyond float32, as the sum over large labels is; smaller "
        "labels may help, or a smaller learning rate. The step has changed parameters, "
        "so it cannot be computed again to name the node",
        (unsigned long long)report->step, what);
}

static pen_engine_step train_describe_step(const pen_trainer *trainer, const pen_batch *batch,
                                           uint64_t steps_before) {
    return (pen_engine_step){.batch = batch,
                             .step = steps_before + 1,
                             .update = steps_before + 1 - trainer->scale.skipped,
                             .scale = trainer->scale,
                             .order = pen_train_order_find(&trainer->order, steps_before + 1),
                             .learning_rate = pen_trainer_rate(trainer, steps_before)};
}

static pen_status train_take_ahead_error(pen_trainer *trainer) {
    const pen_status error = trainer->ahead.error;
    trainer->ahead.error = PEN_OK;
    return error;
}

// Has the batch of the next step at hand.
static pen_status train_fetch(pen_trainer *trainer) {
    train_ahead *ahead = &trainer->ahead;
    PEN_TRY(train_take_ahead_error(trainer));
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
    if (kind->begin == NULL || !trainer->runs_ahead) return;
    if (trainer->scale.scale > 0) return; // the next one is not known yet
    if (trainer->is_due || trainer->is_judged) return;
    if (report->step >= trainer->step_count) return;
    ahead->error = train_fetch(trainer);
    if (ahead->error != PEN_OK) return;
    const pen_engine_step step = train_describe_step(trainer, ahead->batch, report->step);
    ahead->error = kind->begin(trainer->engine, &step);
}

// Whether the step has targets that a metric is told of. Labels that are ignored are counted with
// right answers, those that a mask leaves out have a share.
static bool train_has_told(const pen_program *program, uint32_t told,
                           const pen_step_report *report) {
    const pen_program_told *of = &program->told[told];
    const pen_value_id judged = program->losses[program->accuracy_loss].value;
    const bool is_counted = pen_metric_kinds[of->metric].source == PEN_METRIC_FROM_CLASSES ||
                            (pen_value_is(program->accuracy) && of->value.index == judged.index);
    if (is_counted && report->target_count == 0) return false;
    return pen_program_get_told_share(program, told, report->terms) > 0;
}

// Metrics of the step, from means over its examples. Times their number those of classes are whole
// numbers again, so that microbatches change no bit. Where nothing counts there are none.
static void train_tell(const pen_program *program, pen_step_report *report) {
    for (uint32_t i = 0; i < program->told_count; i++) {
        const pen_metric metric = program->told[i].metric;
        if (!train_has_told(program, i, report)) continue;
        double value = pen_program_get_mean(program, i, report->terms);
        if (pen_metric_kinds[metric].source == PEN_METRIC_FROM_CLASSES) {
            value = round(report->terms[program->term_count + i] * (double)report->example_count) /
                    (double)report->target_count;
        }
        if (metric == PEN_METRIC_ROOT_MEAN_SQUARED_ERROR) value = sqrt(value);
        if (metric == PEN_METRIC_PERPLEXITY) value = exp(value);
        report->metrics |= PEN_METRIC_BIT(metric);
        report->metric_values[metric] = value;
    }
}

// Why no smaller scale is tried.
static pen_status train_end_scaling(const pen_trainer *trainer, const pen_engine_step *step,
                                    const pen_step_report *report, pen_loss_scale_verdict verdict) {
    const pen_status why = train_refuse_loss(trainer, step, report);
    if (verdict == PEN_LOSS_SCALE_LOST) {
        return pen_status_add_context(
            why, "after %d steps in a row without a finite loss, which no scale changes",
            PEN_LOSS_SCALE_BAD_LIMIT);
    }
    return pen_status_add_context(why,
                                  "with a loss scale of %g: a smaller one would be below "
                                  "numerics.loss_scale.floor, which is %g",
                                  report->loss_scale, trainer->job->numerics.loss_scale.floor);
}

// What a step means for the next scale; PEN_OK where it counts. A step is skipped where a gradient
// is not finite, as it is mostly where the loss is not. Where the loss alone is not, or the data,
// no scale helps.
static pen_status train_scale_next(pen_trainer *trainer, const pen_engine_step *step,
                                   const pen_engine_result *result, pen_step_report *report) {
    const pen_loss_scale_options *options = &trainer->job->numerics.loss_scale;
    const char *help;
    const pen_loss_scale_step came = {.is_skipped = result->is_skipped,
                                      .is_loss_finite = isfinite(report->loss)};
    report->loss_scale = trainer->scale.scale;
    report->is_skipped = came.is_skipped;
    if (!came.is_skipped && !came.is_loss_finite) {
        return train_refuse_updated(trainer, step, report);
    }
    if (!came.is_loss_finite) {
        PEN_TRY(train_check_data(trainer, step->batch, train_describe_wrong(report, &help)));
    }
    const pen_loss_scale_verdict verdict = pen_loss_scale_advance(&trainer->scale, options, &came);
    if (verdict != PEN_LOSS_SCALE_GOES_ON) {
        return train_end_scaling(trainer, step, report, verdict);
    }
    if (!came.is_skipped) return PEN_OK;
    pen_log(PEN_LOG_NOTE,
            "step %llu is skipped: %s is not finite with a loss scale of %g, which is %g from here "
            "on",
            (unsigned long long)report->step, came.is_loss_finite ? "a gradient" : "the loss",
            report->loss_scale, trainer->scale.scale);
    return PEN_OK;
}

static pen_status train_batch(pen_trainer *trainer, const pen_engine_step *step,
                              pen_step_report *report) {
    pen_engine_result result;
    PEN_TRY(trainer->engine->kind->step(trainer->engine, step, &result));
    report->loss = isnan(result.loss) ? NAN : result.loss; // the same bits wherever it is computed
    memcpy(report->terms, result.terms, sizeof report->terms);
    report->target_count = result.target_count;
    report->correct_count = result.correct_count;
    train_tell(pen_trainer_program(trainer), report);
    if (step->scale.scale > 0) {
        PEN_TRY(train_scale_next(trainer, step, &result, report));
    } else if (!isfinite(result.loss) || result.is_gradient_bad) {
        return train_refuse_loss(trainer, step, report);
    }
    return pen_train_order_note(&trainer->order, step->step, step->batch->count, result.order);
}

static pen_checkpoint train_checkpoint(const pen_trainer *trainer) {
    const uint64_t last = trainer->steps_done > 0 ? trainer->steps_done - 1 : 0;
    pen_checkpoint checkpoint = {.step = trainer->steps_done,
                                 .next = trainer->next,
                                 .rate_steps = trainer->rate_steps,
                                 .loss = trainer->loss,
                                 .rate = pen_trainer_rate(trainer, last),
                                 .scale = trainer->scale,
                                 .losses_hash = pen_train_losses_hash(&trainer->losses),
                                 .evaluated = trainer->judge.verdict,
                                 .changed_step = trainer->changed_step};
    if (strcmp(trainer->arithmetic, TRAIN_ARITHMETIC_OF_CPU) != 0) {
        memcpy(checkpoint.arithmetic, trainer->arithmetic, sizeof checkpoint.arithmetic);
    }
    return checkpoint;
}

// The order of a checkpoint's steps is durable before it is. Where it cannot be, there is none.
static bool train_may_take(pen_trainer *trainer) {
    const pen_status status = pen_train_order_sync(&trainer->order);
    if (status == PEN_OK) return true;
    pen_log(PEN_LOG_WARNING, "the checkpoint of step %llu is given up: %s; the training goes on",
            (unsigned long long)trainer->steps_done, pen_status_message(status));
    pen_status_ignore(status, "said, and tried again with the next checkpoint");
    return false;
}

// A checkpoint, if there is to be one after the step; and what the one before still needs.
static pen_status train_keep(pen_trainer *trainer) {
    if (trainer->keeper == NULL) return PEN_OK;
    if (!trainer->is_due || !train_may_take(trainer)) {
        return pen_train_keeper_go_on(trainer->keeper, trainer->engine, false);
    }
    const pen_checkpoint checkpoint = train_checkpoint(trainer);
    return pen_train_keeper_take(trainer->keeper, trainer->engine, &checkpoint);
}

bool pen_trainer_uses_average(const pen_trainer *trainer) {
    return pen_train_uses_average(trainer->job) && trainer->steps_done > 0;
}

// Where averages are evaluated, tensors change: no checkpoint may read them then.
pen_status pen_trainer_evaluate(pen_trainer *trainer, pen_dataset *dataset,
                                pen_evaluation *out_evaluation) {
    const uint64_t batch = pen_plan_evaluation_batch(trainer->job, pen_dataset_get_info(dataset));
    const bool uses = pen_trainer_uses_average(trainer);
    if (trainer->keeper != NULL && uses) {
        PEN_TRY(pen_train_keeper_go_on(trainer->keeper, trainer->engine, true));
    }
    return pen_train_average_evaluate(uses, trainer->engine, dataset, batch, out_evaluation);
}

// The evaluation after a step, before its checkpoint, which has what came of it. The best one is
// kept, whether a checkpoint is due or not.
static pen_status train_judge(pen_trainer *trainer, pen_step_report *report) {
    pen_train_judge *judge = &trainer->judge;
    PEN_TRY(pen_status_add_context(
        pen_trainer_evaluate(trainer, judge->dataset, &report->evaluation),
        "in the evaluation after step %llu", (unsigned long long)report->step));
    report->is_evaluated = true;
    report->is_best = pen_train_judge_add(judge, report->step, &report->evaluation);
    report->ends = pen_train_judge_is_over(judge);
    if (report->is_best && judge->verdict.keeps_best) trainer->is_due = true;
    return PEN_OK;
}

// Why the run is over is told once, to whoever asks first: that may have been the step behind.
static pen_status train_add_ahead(pen_trainer *trainer, pen_status status) {
    const pen_engine_kind *kind = trainer->engine->kind;
    if (status == PEN_OK || kind->is_failed == NULL || !kind->is_failed(trainer->engine)) {
        return status;
    }
    return pen_status_join(train_take_ahead_error(trainer), status);
}

// A step, whatever becomes of the devices in it.
static pen_status train_try_step(pen_trainer *trainer, pen_step_report *out_report) {
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
    trainer->is_due =
        trainer->keeper != NULL &&
        pen_train_keeper_is_due(trainer->keeper, report.step, report.epoch, report.ends_epoch);
    trainer->is_judged =
        pen_train_judge_is_due(&trainer->judge, report.step, report.epoch, report.ends_epoch);
    const pen_engine_kind *kind = trainer->engine->kind;
    pen_status status = PEN_OK;
    if (kind->begin != NULL && !is_begun) status = kind->begin(trainer->engine, &step);
    if (status == PEN_OK) {
        train_begin_next(trainer, &report);
        status = train_add_ahead(trainer, train_batch(trainer, &step, &report));
    }
    PEN_TRY(pen_status_add_context(status, "in step %llu", (unsigned long long)report.step));
    report.seconds = pen_clock_seconds() - ready;
    trainer->steps_done += 1;
    trainer->next = batch->next;
    if (isfinite(report.loss)) trainer->loss = report.loss;
    PEN_TRY(pen_train_losses_add(&trainer->losses, report.step, report.loss));
    if (trainer->is_judged) PEN_TRY(train_judge(trainer, &report));
    *out_report = report;
    return PEN_OK;
}

// ---- when a peer is lost

static bool train_can_recover(const pen_trainer *trainer, pen_status status) {
    const pen_engine_kind *kind = trainer->engine->kind;
    return pen_recovery_may_help(pen_status_get_code(status)) && kind->is_failed != NULL &&
           kind->is_failed(trainer->engine) &&
           trainer->job->recovery.on_loss != PEN_JOB_ON_LOSS_STOP;
}

// What is said where the same step is tried too often. A link that is lost may follow from what
// another process did wrong, so that is kept of failures before the same step.
static void train_keep_lost(pen_trainer *trainer, pen_status status) {
    const bool is_new = trainer->lost[0] == '\0' || trainer->steps_reported > trainer->lost_after;
    if (!is_new && pen_status_get_code(status) == PEN_UNAVAILABLE) return;
    snprintf(trainer->lost, sizeof trainer->lost, "%s", pen_status_message(status));
    trainer->lost_after = trainer->steps_reported;
}

// The whole of it: who was lost, and who waited for whom.
static void train_say_lost(pen_trainer *trainer, pen_status take_status) {
    char text[4096];
    if (take_status == PEN_OK) return;
    pen_status_format(take_status, text, sizeof text);
    if (trainer->watch != NULL) {
        trainer->watch->lost(trainer->watch->context, trainer->steps_done,
                             pen_status_message(take_status));
    }
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        const size_t level =
            strncmp(line, LOST_LEVEL, strlen(LOST_LEVEL)) == 0 ? strlen(LOST_LEVEL) : 0;
        if (line[0] != '\0') pen_log(PEN_LOG_WARNING, "%s", line + level);
    }
    train_keep_lost(trainer, take_status);
    pen_status_ignore(take_status, "said, and looked after");
}

// The engine's processes are looked after. Where that ends, its reason names what failed.
static pen_status train_look_after(pen_trainer *trainer, const pen_engine_loss *loss) {
    const pen_status status = trainer->engine->kind->recover(trainer->engine, loss);
    if (status == PEN_OK || trainer->lost[0] == '\0') return status;
    return pen_status_add_context(status, "what failed: %s", trainer->lost);
}

// Goes back to the newest checkpoint, in a new generation; what is lost again meanwhile is looked
// after, as often as the engine finds right.
static pen_status train_recover(pen_trainer *trainer, bool is_planned, pen_status take_status) {
    train_say_lost(trainer, take_status);
    pen_status_ignore(trainer->ahead.error, "the step is begun again");
    trainer->ahead = (train_ahead){0};
    if (trainer->keeper != NULL) pen_train_keeper_abandon(trainer->keeper);
    for (;;) {
        const bool has_step = trainer->steps_done > trainer->steps_begun;
        const pen_engine_loss loss = {.step = has_step ? trainer->steps_done : 0,
                                      .is_planned = is_planned};
        PEN_TRY(train_look_after(trainer, &loss));
        trainer->steps_begun = trainer->steps_done; // none is done in the new generation
        pen_batches_destroy(trainer->batches);      // not before: the old generation had some lent
        trainer->batches = NULL;
        const pen_status status = pen_trainer_load(trainer);
        if (status == PEN_OK) break;
        if (!train_can_recover(trainer, status)) return status;
        train_say_lost(trainer, status);
        is_planned = false;
    }
    trainer->recovery_count += 1;
    if (trainer->watch != NULL) {
        trainer->watch->recovered(trainer->watch->context, trainer->steps_done,
                                  trainer->changed_step);
    }
    pen_log(PEN_LOG_NOTE, "goes on after step %llu", (unsigned long long)trainer->steps_done);
    return pen_trainer_read_ahead(trainer);
}

// Who was given up and is there again takes part from a checkpoint on: nothing is lost then.
static pen_status train_rejoin(pen_trainer *trainer) {
    const pen_engine_kind *kind = trainer->engine->kind;
    if (!trainer->is_due || kind->may_rejoin == NULL || !kind->may_rejoin(trainer->engine)) {
        return PEN_OK;
    }
    PEN_TRY(pen_train_keeper_go_on(trainer->keeper, trainer->engine, true));
    return train_recover(trainer, true, PEN_OK);
}

// A step with all that belongs to it. *out_is_new: it was not done before.
static pen_status train_advance(pen_trainer *trainer, pen_step_report *out_report,
                                bool *out_is_new) {
    pen_status status = train_try_step(trainer, out_report);
    *out_is_new = status == PEN_OK && out_report->step > trainer->steps_reported;
    if (*out_is_new) trainer->steps_reported = out_report->step;
    if (status == PEN_OK) status = train_add_ahead(trainer, train_keep(trainer));
    if (status == PEN_OK) status = train_rejoin(trainer);
    if (status == PEN_OK || !train_can_recover(trainer, status)) return status;
    return train_recover(trainer, false, status);
}

pen_status pen_trainer_step(pen_trainer *trainer, pen_step_report *out_report, bool *out_more) {
    bool is_new = false;
    *out_report = (pen_step_report){0};
    while (!is_new && trainer->steps_done < trainer->step_count &&
           !pen_train_judge_is_over(&trainer->judge)) {
        PEN_TRY(train_advance(trainer, out_report, &is_new));
    }
    *out_more = is_new;
    if (!is_new) *out_report = (pen_step_report){0};
    return PEN_OK;
}

// Does again what was done already.
static pen_status train_catch_up(pen_trainer *trainer) {
    pen_trainer_pause(trainer);
    while (trainer->steps_done < trainer->steps_reported) {
        pen_step_report report;
        bool is_new;
        PEN_TRY(train_advance(trainer, &report, &is_new));
    }
    return PEN_OK;
}

pen_status pen_trainer_recover(pen_trainer *trainer, pen_status take_status) {
    if (take_status == PEN_OK || !train_can_recover(trainer, take_status)) return take_status;
    PEN_TRY(train_recover(trainer, false, take_status));
    return train_catch_up(trainer);
}

bool pen_trainer_is_ahead(const pen_trainer *trainer) {
    return trainer->ahead.batch != NULL;
}

void pen_trainer_pause(pen_trainer *trainer) {
    trainer->runs_ahead = false;
}

pen_status pen_trainer_keep(pen_trainer *trainer) {
    if (trainer->keeper == NULL || trainer->steps_done == 0) return PEN_OK;
    PEN_TRY(pen_train_order_sync(&trainer->order));
    for (;;) {
        const pen_checkpoint last = train_checkpoint(trainer);
        const pen_status status =
            pen_train_keeper_take_last(trainer->keeper, trainer->engine, &last);
        if (status == PEN_OK || !train_can_recover(trainer, status)) return status;
        PEN_TRY(pen_trainer_recover(trainer, status));
    }
}

static pen_status train_save_last(pen_trainer *trainer, bool as_adapters, const char *path) {
    return pen_train_average_save(pen_trainer_uses_average(trainer), pen_trainer_tensors(trainer),
                                  as_adapters ? pen_adapter_file_save : pen_parameter_file_save,
                                  path);
}

// The tensors of the checkpoint of the best evaluation.
static pen_status train_save_best(pen_trainer *trainer, uint64_t step, bool as_adapters,
                                  const char *path) {
    PEN_TRY(pen_train_keeper_go_on(trainer->keeper, trainer->engine, true));
    const pen_checkpoint_export kind = {.what = as_adapters ? PEN_CHECKPOINT_EXPORT_ADAPTERS
                                                            : PEN_CHECKPOINT_EXPORT_MODEL,
                                        .averages = pen_train_uses_average(trainer->job)};
    const pen_status status = pen_train_keeper_export(trainer->keeper, step, kind, path);
    if (pen_status_get_code(status) != PEN_NOT_FOUND) return status;
    pen_log(PEN_LOG_WARNING, "%s, which had the best evaluation: '%s' gets the last parameters",
            pen_status_message(status), path);
    pen_status_ignore(status, "said");
    return train_save_last(trainer, as_adapters, path);
}

static pen_status train_save(pen_trainer *trainer, bool as_adapters, const char *path) {
    const pen_checkpoint_evaluated *evaluated = &trainer->judge.verdict;
    const bool is_best = trainer->job->outputs.from == PEN_JOB_OUTPUTS_BEST &&
                         evaluated->count > 0 && evaluated->best_step != trainer->steps_done;
    if (is_best && trainer->keeper != NULL) {
        return train_save_best(trainer, evaluated->best_step, as_adapters, path);
    }
    return train_save_last(trainer, as_adapters, path);
}

pen_status pen_trainer_save(pen_trainer *trainer, const char *path) {
    return train_save(trainer, false, path);
}

pen_status pen_trainer_save_adapters(pen_trainer *trainer, const char *path) {
    return train_save(trainer, true, path);
}

bool pen_trainer_is_over(const pen_trainer *trainer) {
    return pen_train_judge_is_over(&trainer->judge);
}

const pen_checkpoint_evaluated *pen_trainer_evaluated(const pen_trainer *trainer) {
    return &trainer->judge.verdict;
}

const char *pen_trainer_arithmetic(const pen_trainer *trainer, uint64_t *out_changed_step) {
    *out_changed_step = trainer->changed_step;
    return trainer->arithmetic;
}

uint64_t pen_trainer_recovery_count(const pen_trainer *trainer) {
    return trainer->recovery_count;
}

uint64_t pen_trainer_step_kept(const pen_trainer *trainer) {
    return pen_trainer_get_kept(trainer).step;
}

pen_train_kept pen_trainer_get_kept(const pen_trainer *trainer) {
    const pen_train_kept none = {0};
    return trainer->keeper == NULL ? none : *pen_train_keeper_kept(trainer->keeper);
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
