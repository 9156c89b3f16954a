#include "scheduler/runner/evaluate.h"

#include <math.h>

#include "base/clock.h"
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

typedef struct evaluate_state {
    const pen_dataset *dataset;
    pen_evaluation evaluation;
} evaluate_state;

// Whoever wants to stop has what was trained by then. A bad loss is blamed on an example that is no
// number, if there is one, and else on the model.
pen_status pen_evaluation_add(pen_evaluation *evaluation, const pen_dataset *dataset,
                              const pen_batch *batch, const pen_evaluation *of_batch) {
    const double loss = of_batch->loss, count = (double)batch->count;
    if (pen_interrupt_requested()) {
        return pen_error(PEN_CANCELLED, "stopped after %llu examples",
                         (unsigned long long)evaluation->example_count);
    }
    if (!isfinite(loss)) {
        const uint64_t first = evaluation->example_count;
        PEN_TRY(pen_dataset_check_finite(dataset, batch->indices, batch->count, batch->inputs,
                                         batch->labels));
        return pen_error(PEN_NOT_FINITE, "the loss of examples %llu to %llu is %s",
                         (unsigned long long)first, (unsigned long long)(first + batch->count - 1),
                         isnan(loss) ? "not a number" : "infinite");
    }
    evaluation->loss += loss * count; // divided at the end, as the terms
    for (uint32_t i = 0; i < PEN_LOSSES_LIMIT; i++) {
        evaluation->terms[i] += of_batch->terms[i] * count;
    }
    evaluation->example_count += batch->count;
    evaluation->correct_count += of_batch->correct_count;
    evaluation->target_count += of_batch->target_count;
    return PEN_OK;
}

pen_evaluation pen_evaluation_finish(const pen_evaluation *evaluation, double started) {
    pen_evaluation result = *evaluation;
    const double count = (double)result.example_count;
    if (result.example_count > 0) result.loss /= count;
    for (uint32_t i = 0; result.example_count > 0 && i < PEN_LOSSES_LIMIT; i++) {
        result.terms[i] /= count;
    }
    result.seconds = pen_clock_seconds() - started;
    return result;
}

static pen_status evaluate_count(void *context, const pen_runner_form *form, const pen_batch *batch,
                                 uint64_t first) {
    evaluate_state *state = context;
    const pen_program *program = form->program;
    pen_evaluation of_batch = {.target_count = pen_feed_target_count(program, batch)};
    (void)first;
    PEN_TRY(pen_feed_read_number(form, program->loss, &of_batch.loss));
    for (uint32_t i = 0; i < program->term_count; i++) {
        PEN_TRY(pen_feed_read_number(form, program->losses[i].value, &of_batch.terms[i]));
    }
    if (pen_value_is(program->accuracy)) { // int64, and not below 0
        PEN_TRY(pen_executor_read(form->executor, program->accuracy, 0, &of_batch.correct_count,
                                  sizeof of_batch.correct_count));
    }
    return pen_evaluation_add(&state->evaluation, state->dataset, batch, &of_batch);
}

pen_status pen_evaluate(pen_runner *runner, pen_dataset *dataset, uint64_t batch_size,
                        pen_evaluation *out_evaluation) {
    evaluate_state state = {.dataset = dataset};
    const double started = pen_clock_seconds();
    const evaluate_walk walk = {.runner = runner,
                                .dataset = dataset,
                                .batch_size = batch_size,
                                .take = evaluate_count,
                                .context = &state};
    PEN_TRY(pen_status_add_context(evaluate_run(&walk), "while evaluating"));
    *out_evaluation = pen_evaluation_finish(&state.evaluation, started);
    return PEN_OK;
}
