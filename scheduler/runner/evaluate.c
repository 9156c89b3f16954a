#include "scheduler/runner/evaluate.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/system/interrupt.h"
#include "graph/graph.h"
#include "scheduler/runner/feed.h"

// What is done with a microbatch that has run.
typedef pen_status (*evaluate_take)(void *context, const pen_runner_form *form,
                                    const pen_batch *batch, uint64_t first);

typedef struct evaluate_walk {
    pen_runner *runner;
    pen_dataset *dataset;
    uint64_t batch_size;
    evaluate_take take;
    void *context;
} evaluate_walk;

static pen_status evaluate_batch(const evaluate_walk *walk, const pen_batch *batch,
                                 uint64_t first) {
    const pen_runner_form *form;
    PEN_TRY(pen_runner_get(walk->runner, PEN_COMPILE_EVALUATE, batch->count, false, &form));
    PEN_TRY(pen_feed_microbatch(form, pen_dataset_get_info(walk->dataset), batch, 0));
    const pen_run_context run = {.first_microbatch = true};
    PEN_TRY(pen_executor_run(form->executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
    return walk->take(walk->context, form, batch, first);
}

static pen_status evaluate_batches(const evaluate_walk *walk, pen_batches *batches) {
    for (uint64_t first = 0;;) {
        const pen_batch *batch;
        PEN_TRY(pen_batches_next(batches, &batch));
        if (batch == NULL) return PEN_OK;
        PEN_TRY(evaluate_batch(walk, batch, first));
        first += batch->count;
    }
}

static pen_status evaluate_run(const evaluate_walk *walk) {
    const pen_batches_options options = {
        .batch_size = walk->batch_size, .epoch_count = 1, .is_whole = true};
    pen_batches *batches;
    PEN_TRY(pen_batches_create(walk->dataset, &options, &batches));
    const pen_status status = evaluate_batches(walk, batches);
    pen_batches_destroy(batches);
    return status;
}

// ---- sums

double pen_evaluation_value(const pen_evaluation *evaluation, pen_metric metric) {
    const double targets = (double)pen_max_u64(evaluation->target_count, 1); // 0: all are ignored
    if (metric == PEN_METRIC_LOSS) return evaluation->loss;
    if (metric == PEN_METRIC_ACCURACY) return (double)evaluation->correct_count / targets;
    return evaluation->values[metric];
}

static pen_metric_setup evaluation_setup(const pen_program *program, uint64_t example_count) {
    return (pen_metric_setup){.choice = program->metrics.choice,
                              .classes = program->metrics.classes,
                              .numbers = program->metrics.numbers,
                              .example_count = example_count};
}

static const void *evaluation_labels(const pen_dataset_info *info,
                                     const pen_evaluation_batch *batch, uint32_t loss) {
    uint32_t index = 0;
    if (loss == PEN_METRIC_NO_LOSS) return NULL;
    pen_status_ignore(
        pen_dataset_find_labels(info, batch->program->losses[loss].label_name, &index),
        "what the loss was fed is there");
    return batch->batch->labels[index];
}

static pen_status evaluation_tally(pen_evaluation_sums *sums, const pen_evaluation_batch *batch) {
    const pen_dataset_info *info = pen_dataset_get_info(sums->dataset);
    const pen_metric_choice *choice = &batch->program->metrics.choice;
    pen_metric_batch tallied = {
        .example_count = batch->batch->count,
        .class_labels = evaluation_labels(info, batch, choice->classes_loss),
        .number_labels = evaluation_labels(info, batch, choice->numbers_loss)};
    sums->program = batch->program;
    if (choice->metrics == 0) return PEN_OK;
    if (sums->tally == NULL) {
        const pen_metric_setup setup = evaluation_setup(batch->program, info->example_count);
        PEN_TRY(pen_metric_tally_create(&setup, &sums->tally));
    }
    memcpy(tallied.seen, batch->seen, sizeof tallied.seen);
    return pen_metric_tally_add(sums->tally, &tallied);
}

// Whoever wants to stop has what was trained by then. A bad loss is blamed on an example that is no
// number, if there is one, and else on the model.
pen_status pen_evaluation_add(pen_evaluation_sums *sums, const pen_evaluation_batch *batch) {
    pen_evaluation *so_far = &sums->so_far;
    const pen_batch *examples = batch->batch;
    const double count = (double)examples->count;
    if (pen_interrupt_requested()) {
        return pen_error(PEN_CANCELLED, "stopped after %llu examples",
                         (unsigned long long)so_far->example_count);
    }
    if (!isfinite(batch->loss)) {
        const uint64_t first = so_far->example_count;
        PEN_TRY(pen_dataset_check_finite(sums->dataset, examples->indices, examples->count,
                                         examples->inputs, examples->labels));
        return pen_error(PEN_NOT_FINITE, "the loss of examples %llu to %llu is %s",
                         (unsigned long long)first,
                         (unsigned long long)(first + examples->count - 1),
                         isnan(batch->loss) ? "not a number" : "infinite");
    }
    so_far->loss += batch->loss * count;
    for (uint32_t i = 0; i < PEN_TERMS_LIMIT; i++) {
        so_far->terms[i] += batch->terms[i] * count;
    }
    so_far->example_count += examples->count;
    so_far->correct_count += batch->correct_count;
    so_far->target_count += batch->target_count;
    return evaluation_tally(sums, batch);
}

// The cross-entropy is the loss, or one of the losses. Where it has a mask, the program tells what
// the mean over targets is made of.
static double evaluation_entropy(const pen_program *program, const pen_evaluation *result) {
    for (uint32_t i = 0; i < program->told_count; i++) {
        if (program->told[i].metric != PEN_METRIC_PERPLEXITY) continue;
        return pen_program_get_mean(program, i, result->terms);
    }
    const uint32_t index = program->metrics.choice.entropy_loss;
    return program->term_count == 0 ? result->loss : result->terms[index];
}

// Right answers that no program counts are those of the tally.
static pen_status evaluation_take_metrics(pen_evaluation_sums *sums, pen_evaluation *result) {
    pen_metric_sums *tallied;
    if (sums->tally == NULL) return PEN_OK;
    const pen_metric_choice *choice = &sums->program->metrics.choice;
    PEN_TRY(pen_metric_tally_finish(sums->tally, &tallied));
    tallied->loss = result->loss;
    if (choice->entropy_loss != PEN_METRIC_NO_LOSS) {
        tallied->entropy = evaluation_entropy(sums->program, result);
    }
    result->metrics = choice->metrics & ~PEN_METRIC_BIT(PEN_METRIC_ACCURACY);
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, result->metrics)) continue;
        result->values[metric] = pen_metric_value(metric, tallied);
    }
    if (!pen_metric_is_in(PEN_METRIC_ACCURACY, choice->metrics)) return PEN_OK;
    result->target_count = tallied->judged;
    result->correct_count = tallied->at_place[0];
    return PEN_OK;
}

pen_status pen_evaluation_finish(pen_evaluation_sums *sums, pen_status take_status,
                                 pen_evaluation *out_evaluation) {
    pen_evaluation result = sums->so_far;
    const double count = (double)result.example_count;
    if (result.example_count > 0) result.loss /= count;
    for (uint32_t i = 0; result.example_count > 0 && i < PEN_TERMS_LIMIT; i++) {
        result.terms[i] /= count;
    }
    if (take_status == PEN_OK) take_status = evaluation_take_metrics(sums, &result);
    pen_metric_tally_destroy(sums->tally);
    sums->tally = NULL;
    PEN_TRY(pen_status_add_context(take_status, "while evaluating"));
    result.seconds = pen_clock_seconds() - sums->started_seconds;
    *out_evaluation = result;
    return PEN_OK;
}

// ---- on one device

typedef struct evaluate_state {
    pen_evaluation_sums sums;
    pen_feed_seen seen;
} evaluate_state;

static pen_status evaluate_count(void *context, const pen_runner_form *form, const pen_batch *batch,
                                 uint64_t first) {
    evaluate_state *state = context;
    const pen_program *program = form->program;
    pen_evaluation_batch passed = {.program = program, .batch = batch};
    (void)first;
    PEN_TRY(pen_feed_read_number(form, program->loss, &passed.loss));
    for (uint32_t i = 0; i < pen_program_term_count(program); i++) {
        PEN_TRY(pen_feed_read_term(form, i, &passed.terms[i]));
    }
    passed.target_count = pen_feed_target_count(program, batch, passed.terms);
    if (pen_value_is(program->accuracy)) { // int64, and not below 0
        PEN_TRY(pen_executor_read(form->executor, program->accuracy, 0, &passed.correct_count,
                                  sizeof passed.correct_count));
    }
    PEN_TRY(pen_feed_see(form, &state->seen, passed.seen));
    return pen_evaluation_add(&state->sums, &passed);
}

pen_status pen_evaluate(pen_runner *runner, pen_dataset *dataset, uint64_t batch_size,
                        pen_evaluation *out_evaluation) {
    evaluate_state state = {.sums = {.dataset = dataset, .started_seconds = pen_clock_seconds()}};
    const evaluate_walk walk = {.runner = runner,
                                .dataset = dataset,
                                .batch_size = batch_size,
                                .take = evaluate_count,
                                .context = &state};
    const pen_status status = evaluate_run(&walk);
    pen_feed_forget_seen(&state.seen);
    return pen_evaluation_finish(&state.sums, status, out_evaluation);
}
