// Forward passes over a pipeline: a batch is a round of one microbatch. Several are under way at
// once, so that all devices compute.

#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/runner/feed.h"

// ---- passes

// One for each device, and one that is fed or collected meanwhile.
uint32_t pen_pipeline_pass_limit(const pen_engine *engine) {
    const pipeline_engine *p = (const pipeline_engine *)(const void *)engine;
    return (uint32_t)pen_min_u64(p->plan->device_count + 1, PEN_ENGINE_PASSES_LIMIT);
}

// A size that was planned: whole batches, or the last one.
pen_status pen_pipeline_begin_pass(pen_engine *engine, const pen_dataset_info *info,
                                   const pen_batch *batch) {
    pipeline_engine *p = pipeline_of(engine);
    PEN_ASSERT(p->passes_begun - p->passes_ended < pen_pipeline_pass_limit(engine));
    pipeline_pass *pass = &p->passes[p->passes_begun % PEN_ENGINE_PASSES_LIMIT];
    uint32_t form = p->forms.evaluate;
    if (form != PEN_PIPELINE_FORM_NONE &&
        p->forms.forms[form].program->microbatch_size != batch->count) {
        form = p->forms.evaluate_rest;
    }
    if (form == PEN_PIPELINE_FORM_NONE ||
        p->forms.forms[form].program->microbatch_size != batch->count) {
        return pen_error(PEN_UNSUPPORTED, "a pass over %llu examples at once was not planned for",
                         (unsigned long long)batch->count);
    }
    const pen_coordinator_round round = {
        .form = form, .count = 1, .step = 1, .loss_weight = 1, .feeds = p->feeds};
    *pass = (pipeline_pass){.batch = batch, .form = form};
    PEN_TRY(pen_pipeline_check_there(p));
    PEN_TRY(pen_pipeline_find_feeds(p, form, info, batch, 0));
    PEN_TRY(pen_coordinator_begin_round(p->coordinator, &round, &pass->round));
    pen_pipeline_note_begun(p, pass->round, &(coordinator_round_note){0});
    p->passes_begun += 1;
    return PEN_OK;
}

// All that the stages sent is there with the losses.
pen_status pen_pipeline_end_pass(pen_engine *engine, pen_engine_passed *out_passed) {
    pipeline_engine *p = pipeline_of(engine);
    PEN_ASSERT(p->passes_ended < p->passes_begun);
    const pipeline_pass *pass = &p->passes[p->passes_ended % PEN_ENGINE_PASSES_LIMIT];
    const pen_program *program = p->forms.forms[pass->form].program;
    PEN_TRY(pen_coordinator_await_losses(p->coordinator, pass->round, p->losses));
    p->passes_ended += 1;
    *out_passed = (pen_engine_passed){
        .batch = pass->batch,
        .program = program,
        .loss = p->losses->sum,
        .correct_count = p->losses->correct_count,
        .target_count = pen_feed_target_count(program, pass->batch, p->losses->terms)};
    memcpy(out_passed->terms, p->losses->terms, sizeof out_passed->terms);
    void **rows = p->collected[pass->round % PEN_ENGINE_PASSES_LIMIT];
    memcpy(&out_passed->rows, &rows, sizeof out_passed->rows);
    const void *seen[PEN_RUN_SEEN_LIMIT];
    PEN_TRY(pen_coordinator_get_values(p->coordinator, pass->round, seen));
    memcpy(out_passed->seen, seen, sizeof out_passed->seen);
    return PEN_OK;
}

// ---- what is collected

static uint64_t passes_output_bytes(const pen_program *program, uint32_t output) {
    return pen_tensor_type_bytes(pen_value_type(program->graph, program->outputs[output]));
}

// By the thread of the collecting device: the caller's takes it when the round's losses are there,
// which is after that.
static pen_status passes_take(void *context, const pen_collected *collected) {
    const pipeline_engine *p = context;
    const pen_program *program = p->forms.forms[collected->form].program;
    void **rows = p->collected[collected->round % PEN_ENGINE_PASSES_LIMIT];
    for (uint32_t i = 0; i < program->output_count; i++) {
        pen_value_id value;
        PEN_TRY(pen_graph_find_value(collected->graph,
                                     pen_value_name(program->graph, program->outputs[i]), &value));
        PEN_TRY(pen_executor_read(collected->executor, value, collected->microbatch, rows[i],
                                  passes_output_bytes(program, i)));
    }
    return PEN_OK;
}

pen_worker_collector pen_pipeline_collector(pipeline_engine *p) {
    if (!pipeline_collects(p)) return (pen_worker_collector){0};
    return (pen_worker_collector){
        .take = passes_take, .context = p, .device = p->forms.spec->table->device_count - 1};
}

// The first form has the largest batches.
pen_status pen_pipeline_prepare_passes(pipeline_engine *p) {
    const pen_program *program = p->forms.forms[0].program;
    if (!pipeline_collects(p)) return PEN_OK;
    for (uint32_t slot = 0; slot < PEN_ENGINE_PASSES_LIMIT; slot++) {
        PEN_TRY(PEN_NEW(p->placed, program->output_count, &p->collected[slot]));
        for (uint32_t i = 0; i < program->output_count; i++) {
            char *rows;
            PEN_TRY(PEN_NEW(p->placed, passes_output_bytes(program, i), &rows));
            p->collected[slot][i] = rows;
        }
    }
    return PEN_OK;
}

// ---- evaluation

typedef struct passes_evaluation {
    pen_engine *engine;
    pen_dataset *dataset;
    pen_evaluation_sums sums;
} passes_evaluation;

// The oldest batch under way. An example that is not finite is blamed before the model is.
static pen_status passes_evaluate_end(passes_evaluation *e) {
    pen_engine_passed passed;
    PEN_TRY(pen_pipeline_end_pass(e->engine, &passed));
    const pen_evaluation_batch of_batch = pen_engine_evaluated(&passed);
    return pen_evaluation_add(&e->sums, &of_batch);
}

static pen_status passes_evaluate(passes_evaluation *e, pen_batches *batches) {
    const pipeline_engine *p = pipeline_of(e->engine);
    const pen_dataset_info *info = pen_dataset_get_info(e->dataset);
    const uint32_t limit = pen_pipeline_pass_limit(e->engine);
    for (;;) {
        const pen_batch *batch;
        if (p->passes_begun - p->passes_ended == limit) PEN_TRY(passes_evaluate_end(e));
        PEN_TRY(pen_batches_next(batches, &batch));
        if (batch == NULL) break;
        PEN_TRY(pen_pipeline_begin_pass(e->engine, info, batch));
    }
    while (p->passes_ended < p->passes_begun) {
        PEN_TRY(passes_evaluate_end(e));
    }
    return pen_coordinator_await_quiet(p->coordinator);
}

// After an error: nobody reads the batches any more.
static pen_status passes_evaluate_fail(pipeline_engine *p, pen_status status) {
    if (p->coordinator == NULL) return status; // it was lost before
    if (!pen_coordinator_is_failed(p->coordinator)) {
        status = pen_status_join(status, pen_coordinator_await_quiet(p->coordinator));
    }
    if (pen_coordinator_is_failed(p->coordinator)) pen_pipeline_end_generation(p);
    p->passes_ended = p->passes_begun;
    return status;
}

// Holds as many batches as passes are under way: their inputs are read until the workers have them.
pen_status pen_pipeline_evaluate(pen_engine *engine, pen_dataset *dataset, uint64_t batch,
                                 pen_evaluation *out_evaluation) {
    passes_evaluation e = {.engine = engine,
                           .dataset = dataset,
                           .sums = {.dataset = dataset, .started_seconds = pen_clock_seconds()}};
    const uint32_t limit = pen_pipeline_pass_limit(engine);
    const pen_batches_options options = {.batch_size = batch,
                                         .epoch_count = 1,
                                         .is_whole = true,
                                         .buffer_count = limit + 1,
                                         .held_count = limit};
    pen_batches *batches;
    PEN_TRY(pen_batches_create(dataset, &options, &batches));
    pen_status status = passes_evaluate(&e, batches);
    if (status != PEN_OK) status = passes_evaluate_fail(pipeline_of(engine), status);
    pen_batches_destroy(batches);
    return pen_evaluation_finish(&e.sums, status, out_evaluation);
}
