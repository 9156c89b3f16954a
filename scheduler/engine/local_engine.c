#include "scheduler/engine/local_engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "device/run_context.h"
#include "graph/graph.h"
#include "scheduler/engine/diagnose_step.h"
#include "scheduler/engine/local_save.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/plan/plan_forms.h"
#include "scheduler/plan/process_memory.h"
#include "scheduler/runner/feed.h"

// What came of a microbatch of the step. It is here when the step has ended; on a device that the
// host's own threads are, as soon as the microbatch has run.
typedef struct local_made {
    double weight;
    pen_executor_number loss;
    pen_executor_number terms[PEN_TERMS_LIMIT];
    uint32_t term_count;
    int64_t correct_count;
} local_made;

typedef struct local_engine {
    pen_engine engine; // first: an engine is its owner
    const pen_job *job;
    const pen_dataset_info *info;
    pen_arena *arena;
    pen_runner *runner;
    const pen_runner_form *whole; // the form of a whole microbatch
    uint64_t microbatch_size;
    bool accumulate;
    pen_local_save *save; // NULL: no checkpoints are asked for
    uint64_t generation;
    local_made *made;            // [microbatches + 1] of the step
    double *losses;              // [microbatches + 1] of the step
    uint32_t loss_count;         // of those computed
    pen_executor_number applied; // of the step, where its loss is scaled
    bool is_lost;                // a step that went wrong had changed parameters
    pen_compile_mode mode;
    bool is_passing; // a pass is begun:
    pen_engine_passed passed;
    void **rows; // [output_count] of it; NULL: nothing is predicted
    pen_feed_seen seen;
} local_engine;

static local_engine *local_of(pen_engine *engine) {
    return (local_engine *)(void *)engine;
}

static void local_destroy(pen_engine *engine) {
    local_engine *local = local_of(engine);
    pen_local_save_destroy(local->save);
    pen_feed_forget_seen(&local->seen);
    pen_runner_destroy(local->runner);
    pen_arena_destroy(local->arena);
    pen_memory_free(local);
}

// Updates of the form stop before a gradient that is not finite; scaled ones need no guard. Where
// updates follow all microbatches, a loss is looked at here before, unless it is not here yet.
static pen_status local_guard(const local_engine *local, const pen_runner_form *form) {
    if (pen_value_is(form->program->applied)) return PEN_OK;
    if (pen_executor_is_guarded(form->executor)) return PEN_OK;
    const bool is_seen_here = local->accumulate && !pen_executor_is_late(form->executor);
    return pen_executor_guard(form->executor, is_seen_here ? PEN_VALUE_NONE : form->program->loss);
}

// Microbatch `microbatch` of the step; behind the last one comes the update.
static pen_run_context local_context(const local_engine *local, const pen_engine_step *step,
                                     uint64_t microbatch) {
    const pen_feed_split split = pen_feed_cut(step->batch->count, local->microbatch_size);
    const uint64_t count = split.whole_count + (split.rest > 0);
    const pen_lanes lanes = {(uint32_t)local->job->train.lanes,
                             (uint32_t)local->job->train.microbatches};
    pen_run_context run = {.seed = (uint64_t)local->job->train.seed, .step = step->step};
    if (microbatch < count) {
        pen_run_context_place(&run, &lanes, microbatch, count);
    } else {
        pen_run_context_place_update(&run, &lanes, count);
    }
    return run;
}

// The seed gradient of a microbatch is its share of the step's examples, so that gradients of
// microbatch means add up to the gradient of the step's mean; times the scale of the loss.
static pen_status local_feed(local_engine *local, const pen_runner_form *form,
                             const pen_engine_step *step, uint64_t index, double weight) {
    PEN_TRY(pen_feed_microbatch(form, local->info, step->batch, index * local->microbatch_size));
    const pen_feed_step fed = {weight, pen_loss_scale_factor(&step->scale),
                               pen_loss_scale_inverse(&step->scale), step->learning_rate,
                               (double)step->update};
    return pen_feed_numbers(form, &fed);
}

// Of a list that was enqueued, or awaited; a guard that stops it is no error.
static pen_status local_heed_guard(local_engine *local, const pen_runner_form *form,
                                   pen_status status, pen_engine_result *result) {
    if (pen_status_get_code(status) != PEN_NOT_FINITE) return status;
    pen_status_ignore(status, "the step is computed again to find out why");
    result->is_gradient_bad = true;
    if (pen_executor_has_updated(form->executor)) local->is_lost = true;
    return PEN_OK;
}

static pen_status local_run(local_engine *local, const pen_runner_form *form, uint32_t list,
                            const pen_run_context *run, pen_engine_result *result) {
    return local_heed_guard(local, form, pen_executor_enqueue(form->executor, list, 0, run),
                            result);
}

// Runs one microbatch, whose loss and hits are on their way then.
static pen_status local_microbatch(local_engine *local, const pen_runner_form *form,
                                   const pen_engine_step *step, uint64_t microbatch,
                                   pen_engine_result *result) {
    const pen_program *program = form->program;
    local_made *made = &local->made[microbatch];
    *made = (local_made){.weight = (double)program->microbatch_size / (double)step->batch->count,
                         .term_count = pen_program_term_count(program)};
    PEN_TRY(local_feed(local, form, step, microbatch, made->weight));
    const pen_run_context run = local_context(local, step, microbatch);
    PEN_TRY(local_run(local, form, PEN_EXECUTOR_MICROBATCH, &run, result));
    PEN_TRY(pen_executor_fetch_number(form->executor, program->loss, 0, &made->loss));
    for (uint32_t i = 0; i < made->term_count; i++) {
        PEN_TRY(pen_feed_fetch_term(form, i, &made->terms[i]));
    }
    if (!pen_value_is(program->accuracy)) return PEN_OK;
    return pen_executor_fetch(form->executor, program->accuracy, 0, &made->correct_count,
                              sizeof made->correct_count);
}

// Adds up losses and hits of microbatches, as far as they are here.
static void local_add_up(local_engine *local, uint64_t count, pen_engine_result *result) {
    for (uint64_t m = 0; m < count; m++) {
        const local_made *made = &local->made[m];
        const double loss = pen_executor_number_of(&made->loss);
        local->losses[m] = loss;
        result->loss += made->weight * loss;
        for (uint32_t i = 0; i < made->term_count; i++)
            result->terms[i] += made->weight * pen_executor_number_of(&made->terms[i]);
        result->correct_count += (uint64_t)made->correct_count;
    }
    local->loss_count = (uint32_t)count;
}

// Whether no loss that is here already forbids an update. Of scaled gradients their norm decides.
static bool local_may_update(local_engine *local, uint64_t count) {
    pen_engine_result result = {0};
    local_add_up(local, count, &result);
    return pen_value_is(local->whole->program->applied) || isfinite(result.loss);
}

// The form of a microbatch of the step.
static pen_status local_form(local_engine *local, const pen_feed_split *split, uint64_t microbatch,
                             const pen_runner_form **out_form) {
    *out_form = local->whole;
    if (microbatch < split->whole_count) return PEN_OK;
    PEN_TRY(
        pen_runner_get(local->runner, PEN_COMPILE_TRAIN, split->rest, local->accumulate, out_form));
    return local_guard(local, *out_form);
}

// Microbatch after microbatch, lane after lane; then the update, in the order of lanes that is
// given. All of it is enqueued, and awaited once.
static pen_status local_step(pen_engine *engine, const pen_engine_step *step,
                             pen_engine_result *out_result) {
    local_engine *local = local_of(engine);
    const pen_feed_split split = pen_feed_cut(step->batch->count, local->microbatch_size);
    const uint64_t count = split.whole_count + (split.rest > 0);
    const pen_runner_form *form = local->whole;
    pen_engine_result result = {0};
    for (uint64_t m = 0; m < count; m++) {
        PEN_TRY(local_form(local, &split, m, &form));
        PEN_TRY(local_microbatch(local, form, step, m, &result));
    }
    if (local->accumulate && !result.is_gradient_bad && local_may_update(local, count)) {
        pen_run_context run = local_context(local, step, count);
        if (step->order != 0) run.order = step->order;
        if (pen_job_get_asynchrony(local->job).is_free) result.order = run.order;
        PEN_TRY(local_run(local, form, PEN_EXECUTOR_UPDATE, &run, &result));
    }
    PEN_TRY(pen_feed_fetch_applied(form, &local->applied));
    PEN_TRY(local_heed_guard(local, form, pen_executor_finish(form->executor), &result));
    local_add_up(local, count, &result);
    result.is_skipped = pen_executor_number_of(&local->applied) < 0;
    result.target_count = pen_feed_target_count(form->program, step->batch, result.terms);
    *out_result = result;
    return PEN_OK;
}

// ---- what went wrong

typedef struct local_again {
    local_engine *local;
    const pen_engine_step *step;
    pen_feed_split split;
    const pen_runner_form *form;          // of the last part
    const pen_local_elsewhere *elsewhere; // NULL: it was computed here
    pen_arena *arena;                     //
    uint64_t *checksums; // [value_count of the form's graph] of the last microbatch; NULL: none yet
} local_again;

static pen_status local_prepare_checksums(local_again *again, pen_executor_inspection *inspection) {
    if (again->elsewhere == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(again->arena, pen_graph_value_count(again->form->program->graph),
                    &again->checksums));
    inspection->checksums = again->checksums;
    return PEN_OK;
}

// One microbatch of a bad step, or, after the last one, its update, run node by node under
// inspection.
static pen_status local_run_again(void *context, uint32_t part, pen_node_inspection *nodes,
                                  uint32_t *out_bad, double *out_loss) {
    local_again *again = context;
    local_engine *local = again->local;
    const uint64_t count = again->split.whole_count + (again->split.rest > 0);
    const pen_run_context run = local_context(local, again->step, part);
    pen_executor_inspection inspection = {.is_loss_finite = true, .nodes = nodes};
    const bool is_microbatch = part < count; // else norms
    if (is_microbatch) {
        PEN_TRY(local_form(local, &again->split, part, &again->form));
        const double weight =
            (double)again->form->program->microbatch_size / (double)again->step->batch->count;
        PEN_TRY(local_feed(local, again->form, again->step, part, weight));
        inspection.is_loss_finite = part < local->loss_count && isfinite(local->losses[part]);
        PEN_TRY(local_prepare_checksums(again, &inspection));
    }
    PEN_TRY(pen_executor_inspect(again->form->executor,
                                 is_microbatch ? PEN_EXECUTOR_MICROBATCH : PEN_EXECUTOR_UPDATE, 0,
                                 &run, &inspection));
    *out_bad = inspection.bad;
    if (!is_microbatch || *out_bad != UINT32_MAX) return PEN_OK;
    return pen_feed_read_number(again->form, again->form->program->loss, out_loss);
}

// Says which device it was, where that was not this one.
static pen_status local_add_device(const local_again *again, uint32_t position, pen_arena *arena,
                                   const char **text) {
    const pen_local_elsewhere *elsewhere = again->elsewhere;
    if (elsewhere == NULL) return PEN_OK;
    const pen_program *program = again->form->program;
    const char *device = elsewhere->find_device(
        elsewhere->context, pen_node_name(program->graph, program->order[position]));
    if (device == NULL) return PEN_OK;
    return pen_arena_format(arena, text, "%s (which %s runs)", *text, device);
}

static pen_status local_describe_bad(void *context, uint32_t part, uint32_t position,
                                     pen_arena *arena, const char **out_text) {
    const local_again *again = context;
    (void)part;
    PEN_TRY(pen_executor_describe_bad(again->form->executor, position, 0, arena, out_text));
    return local_add_device(again, position, arena, out_text);
}

static pen_status local_describe_node(void *context, uint32_t part, uint32_t position,
                                      pen_arena *arena, const char **out_text) {
    const local_again *again = context;
    (void)part;
    return pen_executor_describe_node(again->form->executor, position, arena, out_text);
}

// The first value in the order of the nodes that went from one worker to another with other bits;
// where all are the same, it was the device that made the loss of them.
static pen_status local_find_odd(void *context, uint32_t part, pen_arena *arena,
                                 const char **out_who, const char **out_what) {
    const local_again *again = context;
    const pen_local_elsewhere *elsewhere = again->elsewhere;
    const pen_program *program = again->form->program;
    bool is_any_same = false;
    for (uint32_t p = 0; p < program->order_count; p++) {
        const pen_node *node = pen_graph_node(program->graph, program->order[p]);
        for (uint32_t o = 0; o < node->output_count; o++) {
            const pen_value_id value = node->outputs[o];
            if (!pen_value_is(value) || again->checksums[value.index] == 0) continue;
            const char *name = pen_value_name(program->graph, value);
            const pen_local_seen seen =
                elsewhere->compare(elsewhere->context, part, name, again->checksums[value.index]);
            is_any_same = is_any_same || seen == PEN_LOCAL_SAME;
            if (seen != PEN_LOCAL_OTHER) continue;
            *out_who = elsewhere->find_device(elsewhere->context, node->name);
            return pen_arena_format(arena, out_what, "'%s'", name);
        }
    }
    if (!is_any_same) return PEN_OK;
    const pen_node_id loss = pen_graph_value(program->graph, program->loss)->producer;
    *out_who = elsewhere->find_device(elsewhere->context, pen_node_name(program->graph, loss));
    *out_what = "the loss";
    return PEN_OK;
}

static uint32_t local_node_limit(const local_engine *local) {
    uint32_t limit = 0;
    for (uint32_t f = 0; f < pen_runner_form_count(local->runner); f++) {
        const uint32_t count = pen_runner_form_at(local->runner, f)->program->order_count;
        if (count > limit) limit = count;
    }
    return limit;
}

// The same search serves a device of this process and the step of a pipeline that was computed
// elsewhere, whose checksums are compared instead.
static pen_status local_explain_as(local_engine *local, const pen_engine_step *step,
                                   const pen_local_elsewhere *elsewhere) {
    char device[160];
    local_again again = {
        .local = local, .step = step, .form = local->whole, .elsewhere = elsewhere};
    again.split = pen_feed_cut(step->batch->count, local->microbatch_size);
    const uint64_t count = again.split.whole_count + (again.split.rest > 0);
    snprintf(device, sizeof device, "device '%.100s'", local->job->cluster.devices[0].name);
    const pen_diagnosed_step inspected = {.step = step->step,
                                          .device = elsewhere == NULL ? device
                                                                      : "the coordinator's machine",
                                          .first = elsewhere == NULL ? NULL : elsewhere->where,
                                          .part_count = (uint32_t)count + local->accumulate,
                                          .loss_count = local->loss_count,
                                          .losses = local->losses,
                                          .node_limit = local_node_limit(local),
                                          .context = &again,
                                          .run = local_run_again,
                                          .describe_bad = local_describe_bad,
                                          .describe_node = local_describe_node,
                                          .find_odd = elsewhere == NULL ? NULL : local_find_odd};
    PEN_TRY(pen_arena_create(&again.arena));
    const pen_status status = pen_diagnose_step(&inspected);
    pen_arena_destroy(again.arena);
    return status;
}

pen_status pen_local_engine_explain(pen_engine *engine, const pen_engine_step *step,
                                    const pen_local_elsewhere *elsewhere) {
    local_engine *local = local_of(engine);
    PEN_ASSERT(elsewhere->loss_count <= (uint64_t)local->job->train.microbatches + 1);
    local->loss_count = elsewhere->loss_count;
    for (uint32_t m = 0; m < elsewhere->loss_count; m++) {
        local->losses[m] = elsewhere->losses[m];
    }
    return local_explain_as(local, step, elsewhere);
}

static pen_status local_explain(pen_engine *engine, const pen_engine_step *step) {
    local_engine *local = local_of(engine);
    if (local->is_lost) {
        const bool is_asynchronous = pen_job_get_asynchrony(local->job).is_asynchronous;
        return pen_error(PEN_NOT_FINITE,
                         "a gradient of step %llu is not finite; with %s, parameters are changed "
                         "as gradients come, so that the step cannot be computed again to find out "
                         "why",
                         (unsigned long long)step->step,
                         is_asynchronous ? "asynchronous lanes" : "one microbatch a step");
    }
    return local_explain_as(local, step, NULL);
}

// ---- forward passes

// One at a time: it is done when it has begun.
static uint32_t local_pass_limit(const pen_engine *engine) {
    (void)engine;
    return 1;
}

static pen_status local_read_losses(const pen_runner_form *form, pen_engine_passed *passed) {
    const pen_program *program = form->program;
    if (!pen_value_is(program->loss)) return PEN_OK;
    PEN_TRY(pen_feed_read_number(form, program->loss, &passed->loss));
    for (uint32_t i = 0; i < pen_program_term_count(program); i++) {
        PEN_TRY(pen_feed_read_term(form, i, &passed->terms[i]));
    }
    passed->target_count = pen_feed_target_count(program, passed->batch, passed->terms);
    if (!pen_value_is(program->accuracy)) return PEN_OK; // int64, and not below 0
    return pen_executor_read(form->executor, program->accuracy, 0, &passed->correct_count,
                             sizeof passed->correct_count);
}

static uint64_t local_output_bytes(const pen_program *program, uint32_t output) {
    return pen_tensor_type_bytes(pen_value_type(program->graph, program->outputs[output]));
}

// It runs at once, and what came of it is read before the next may change it.
static pen_status local_begin_pass(pen_engine *engine, const pen_dataset_info *info,
                                   const pen_batch *batch) {
    local_engine *local = local_of(engine);
    const pen_run_context run = {.first_microbatch = true};
    const pen_runner_form *form;
    PEN_ASSERT(!local->is_passing);
    PEN_TRY(pen_runner_get(local->runner, local->mode, batch->count, false, &form));
    PEN_TRY(pen_feed_microbatch(form, info, batch, 0));
    PEN_TRY(pen_executor_run(form->executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
    local->passed = (pen_engine_passed){.batch = batch, .program = form->program};
    PEN_TRY(pen_feed_see(form, &local->seen, local->passed.seen));
    PEN_TRY(local_read_losses(form, &local->passed));
    for (uint32_t i = 0; local->rows != NULL && i < form->program->output_count; i++) {
        PEN_TRY(pen_executor_read(form->executor, form->program->outputs[i], 0, local->rows[i],
                                  local_output_bytes(form->program, i)));
    }
    memcpy(&local->passed.rows, &local->rows, sizeof local->passed.rows);
    local->is_passing = true;
    return PEN_OK;
}

static pen_status local_end_pass(pen_engine *engine, pen_engine_passed *out_passed) {
    local_engine *local = local_of(engine);
    PEN_ASSERT(local->is_passing);
    local->is_passing = false;
    *out_passed = local->passed;
    return PEN_OK;
}

static pen_status local_evaluate(pen_engine *engine, pen_dataset *dataset, uint64_t batch,
                                 pen_evaluation *out_evaluation) {
    return pen_evaluate(local_of(engine)->runner, dataset, batch, out_evaluation);
}

static const pen_tensor_store *local_tensors(pen_engine *engine) {
    return pen_runner_tensors(local_of(engine)->runner);
}

static const pen_program *local_program(const pen_engine *engine) {
    return ((const local_engine *)(const void *)engine)->whole->program;
}

static pen_runner *local_runner(pen_engine *engine) {
    return local_of(engine)->runner;
}

// What the process takes besides the buffers of its device, with the pinned memory of a GPU.
static pen_status local_estimate_process(const local_engine *local, pen_arena *scratch,
                                         uint64_t *out_bytes) {
    const uint32_t count = pen_runner_form_count(local->runner);
    const pen_program **programs;
    PEN_TRY(PEN_NEW(scratch, count, &programs));
    for (uint32_t i = 0; i < count; i++) {
        programs[i] = pen_runner_form_at(local->runner, i)->program;
    }
    const pen_process_memory_request request = {.programs = programs,
                                                .program_count = count,
                                                .info = local->info,
                                                .batch = (uint64_t)local->job->train.batch,
                                                .buffer_bytes =
                                                    pen_runner_host_bytes(local->runner),
                                                .exports = local->job->outputs.export != NULL};
    uint64_t pinned;
    PEN_TRY(pen_runner_pinned_bytes(local->runner, &pinned));
    PEN_TRY(pen_process_memory_estimate(&request, scratch, out_bytes));
    *out_bytes += pinned;
    return PEN_OK;
}

static pen_status local_memory(pen_engine *engine, pen_engine_memory *out_memory) {
    const local_engine *local = local_of(engine);
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    uint64_t process_bytes = 0;
    const pen_status status = local_estimate_process(local, scratch, &process_bytes);
    pen_arena_destroy(scratch);
    const pen_executor_memory memory = pen_executor_get_memory(local->whole->executor);
    const uint64_t device_bytes = pen_runner_device_bytes(local->runner);
    *out_memory = (pen_engine_memory){.device_bytes = device_bytes,
                                      .persistent_bytes = memory.persistent_bytes,
                                      .arena_bytes = memory.arena_bytes,
                                      .live_bytes_peak = memory.live_bytes_peak,
                                      .resident_bytes_peak = pen_runner_host_bytes(local->runner) +
                                                             process_bytes +
                                                             pen_local_save_bytes(local->save)};
    return status;
}

static pen_status local_save(pen_engine *engine, uint64_t step, const char *folder) {
    const local_engine *local = local_of(engine);
    return pen_local_save_begin(local->save, local->generation, step, folder);
}

static pen_status local_poll_saved(pen_engine *engine, bool waits, pen_engine_saved *out_saved) {
    (void)waits; // the caller looks again
    pen_local_save_poll(local_of(engine)->save, out_saved);
    return PEN_OK;
}

static void local_published(pen_engine *engine, uint64_t step, pen_status_code code) {
    (void)engine;
    (void)step;
    (void)code;
}

// What keeps checkpoints, and the only generation of this process.
static pen_status local_take_over(local_engine *local, const pen_engine_log *log) {
    if (log == NULL) return PEN_OK;
    local->generation = log->next_generation(log->context);
    PEN_TRY(log->fence(log->context, local->generation));
    return pen_local_save_create(pen_runner_slices(local->runner), &local->save);
}

static pen_status local_arithmetic(pen_engine *engine, pen_arena *arena, const char **out_text) {
    return pen_runner_arithmetic(local_of(engine)->runner, arena, out_text);
}

static const pen_engine_kind local_kind = {
    .name = "local",
    .destroy = local_destroy,
    .step = local_step,
    .evaluate = local_evaluate,
    .pass_limit = local_pass_limit,
    .begin_pass = local_begin_pass,
    .end_pass = local_end_pass,
    .tensors = local_tensors,
    .program = local_program,
    .save = local_save,
    .poll_saved = local_poll_saved,
    .published = local_published,
    .memory = local_memory,
    .runner = local_runner,
    .explain = local_explain,
    .arithmetic = local_arithmetic,
};

// Says of memory that does not suffice where it was stated.
static pen_status local_blame(const pen_engine_options *options, pen_status status) {
    if (!options->as_reference) return pen_job_blame_memory(options->job, status);
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
    return pen_status_add_context(status, "on one device, to compare with: the whole memory of "
                                          "this machine is the limit there");
}

// The microbatch that is left at the end of an epoch: what is wrong with it is said now, and not
// after an epoch.
static pen_status local_compile_rest(local_engine *local, const pen_engine_options *options) {
    if (options->rest == 0) return PEN_OK;
    const pen_runner_form *form;
    const pen_status status =
        pen_runner_get(local->runner, PEN_COMPILE_TRAIN, options->rest, local->accumulate, &form);
    if (status == PEN_OK) return local_guard(local, form);
    return pen_plan_blame_rest(local_blame(options, status), options->rest);
}

// Of forward passes alone: over whole batches, and over the last one.
static pen_status local_start_passes(local_engine *local, const pen_engine_options *options) {
    const pen_runner_form *rest;
    PEN_TRY(local_blame(options, pen_runner_get(local->runner, local->mode, options->evaluate_batch,
                                                false, &local->whole)));
    if (options->evaluate_rest > 0) {
        PEN_TRY(local_blame(options, pen_runner_get(local->runner, local->mode,
                                                    options->evaluate_rest, false, &rest)));
    }
    const pen_program *program = local->whole->program;
    if (local->mode != PEN_COMPILE_PREDICT) return PEN_OK;
    PEN_TRY(PEN_NEW(local->arena, program->output_count, &local->rows));
    for (uint32_t i = 0; i < program->output_count; i++) {
        char *rows;
        PEN_TRY(PEN_NEW(local->arena, local_output_bytes(program, i), &rows));
        local->rows[i] = rows;
    }
    return PEN_OK;
}

// Opens the device and compiles what will be run.
static pen_status local_start(local_engine *local, const pen_engine_options *options) {
    const pen_job *job = local->job;
    pen_runner_options runner_options;
    const pen_dataset_part part = options->part;
    if (options->as_reference) {
        PEN_TRY(pen_job_reference_options(job, part, local->info, local->arena, &runner_options));
    } else {
        PEN_TRY(pen_job_runner_options(job, part, local->info, local->arena, &runner_options));
    }
    if (options->no_memory_check) runner_options.device.memory_bytes = 0; // no limit
    PEN_TRY(pen_runner_create(&runner_options, &local->runner));
    if (local->mode != PEN_COMPILE_TRAIN) return local_start_passes(local, options);
    PEN_TRY(local_blame(options,
                        pen_runner_get(local->runner, PEN_COMPILE_TRAIN, local->microbatch_size,
                                       local->accumulate, &local->whole)));
    PEN_TRY(local_guard(local, local->whole));
    PEN_TRY(PEN_NEW(local->arena, (size_t)job->train.microbatches + 1, &local->losses));
    PEN_TRY(PEN_NEW(local->arena, (size_t)job->train.microbatches + 1, &local->made));
    PEN_TRY(local_compile_rest(local, options));
    return local_take_over(local, options->log);
}

pen_status pen_local_engine_create(const pen_engine_options *options, pen_engine **out_engine) {
    local_engine *local = pen_memory_allocate(1, sizeof *local);
    if (local == NULL) return pen_error_out_of_memory();
    const pen_job_train *train = &options->job->train;
    local->engine.kind = &local_kind;
    local->job = options->job;
    local->info = options->info;
    local->mode = options->mode;
    local->microbatch_size = (uint64_t)(train->batch / train->microbatches);
    local->accumulate = train->microbatches > 1;
    pen_status status = pen_arena_create(&local->arena);
    if (status == PEN_OK) status = local_start(local, options);
    if (status == PEN_OK) *out_engine = &local->engine;
    if (status != PEN_OK) local_destroy(&local->engine);
    return status;
}
