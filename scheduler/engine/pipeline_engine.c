#include "scheduler/engine/pipeline_engine.h"

#include "base/clock.h"
#include "base/memory.h"
#include "scheduler/engine/pipeline_audit.h"
#include "scheduler/engine/pipeline_kinds.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/runner/feed.h"

static void pipeline_destroy(pen_engine *engine) {
    pipeline_engine *p = pipeline_of(engine);
    pen_pipeline_end_generation(p);
    pen_launched_end(p->launched);
    pen_pipeline_unplace(p);
    pen_arena_destroy(p->saving);
    pen_arena_destroy(p->placed);
    pen_arena_destroy(p->arena);
    pen_mutex_deinit(&p->publishing);
    pen_memory_free(p);
}

// ---- feeding

// Channels from the host have the names of what the model and its losses take.
pen_status pen_pipeline_find_feeds(pipeline_engine *p, uint32_t form, const pen_dataset_info *info,
                                   const pen_batch *batch, uint64_t first) {
    const pen_run_form *run = &p->forms.spec->table->forms[form];
    const pen_program *program = p->forms.forms[form].program;
    for (uint32_t c = 0; c < run->channel_count; c++) {
        const pen_run_channel *channel = &run->channels[c];
        if (channel->source_worker != 0) continue;
        const char *value = p->forms.spec->forms[form].channels[c].value;
        pen_feed_source source = {0};
        PEN_TRY(pen_feed_find(program, info, batch, value, &source));
        const uint64_t stride = source.field->bytes;
        if (stride * program->microbatch_size != channel->bytes) {
            return pen_error(PEN_INVALID_INPUT,
                             "the data gives %llu bytes an example for '%s', which takes %llu for "
                             "%llu examples",
                             (unsigned long long)stride, value, (unsigned long long)channel->bytes,
                             (unsigned long long)program->microbatch_size);
        }
        p->feeds[c] = (const char *)source.examples + first * stride;
    }
    return PEN_OK;
}

void pen_pipeline_note_begun(pipeline_engine *p, uint64_t round,
                             const coordinator_round_note *note) {
    if (p->rounds_begun == 0) p->figures_next = round;
    p->notes[round % PIPELINE_NOTES] = *note;
    p->rounds_begun = round + 1;
}

// The weight of a microbatch's loss is its share of the step's examples, so that a short last one
// counts less.
static pen_status pipeline_begin_round(pipeline_engine *p, const pen_engine_step *step,
                                       pen_coordinator_round *round, pipeline_rounds *rounds) {
    const pen_program *program = p->forms.forms[round->form].program;
    const uint32_t index = rounds->count;
    const uint64_t whole = p->forms.forms[0].program->microbatch_size;
    round->step = step->step;
    round->update = step->update;
    round->learning_rate = step->learning_rate;
    round->unscale = pen_loss_scale_inverse(&step->scale);
    round->order = step->order;
    const double weight = (double)program->microbatch_size / (double)step->batch->count;
    round->loss_weight = weight * pen_loss_scale_factor(&step->scale);
    round->continues = round->first_microbatch > 0;
    round->feeds = p->feeds;
    round->epoch = step->batch->position.epoch;
    round->first_example = step->batch->position.index * (uint64_t)p->options.job->train.batch +
                           round->first_microbatch * whole;
    PEN_TRY(pen_pipeline_find_feeds(p, round->form, p->info, step->batch,
                                    round->first_microbatch * whole));
    if (round->form == 0) PEN_TRY(pen_pipeline_begin_audit(p, step->step, round->count));
    PEN_TRY(pen_coordinator_begin_round(p->coordinator, round, &rounds->number[index]));
    pen_pipeline_note_begun(
        p, rounds->number[index],
        &(coordinator_round_note){true, round->updates, step->step != p->first_step});
    rounds->form[index] = round->form;
    rounds->microbatches[index] = round->count;
    rounds->weight[index] = weight;
    rounds->count = index + 1;
    return PEN_OK;
}

// ---- steps

// A step is one round, or two where the last microbatch is short: that has other shapes, so a form
// of its own. The second round has the update.
static pen_status pipeline_begin(pen_engine *engine, const pen_engine_step *step) {
    pipeline_engine *p = pipeline_of(engine);
    const pen_feed_split split =
        pen_feed_cut(step->batch->count, p->forms.forms[0].program->microbatch_size);
    const uint64_t count = split.whole_count + (split.rest > 0);
    PEN_ASSERT(p->begun_count < PIPELINE_STEPS_AHEAD);
    PEN_TRY(pen_pipeline_check_there(p));
    pipeline_rounds *rounds = &p->begun[(p->begun_first + p->begun_count) % PIPELINE_STEPS_AHEAD];
    *rounds = (pipeline_rounds){.step = step->step};
    if (p->first_step == 0) p->first_step = step->step;
    if (split.whole_count > 0) {
        pen_coordinator_round whole = {.form = 0,
                                       .count = (uint32_t)split.whole_count,
                                       .updates = split.rest == 0,
                                       .step_microbatches = count};
        PEN_TRY(pipeline_begin_round(p, step, &whole, rounds));
    }
    if (split.rest > 0) {
        if (p->forms.rest == PEN_PIPELINE_FORM_NONE ||
            p->forms.forms[p->forms.rest].program->microbatch_size != split.rest) {
            return pen_error(PEN_INTERNAL, "a microbatch of %llu examples was not planned for",
                             (unsigned long long)split.rest);
        }
        pen_coordinator_round rest = {.form = p->forms.rest,
                                      .count = 1,
                                      .updates = true,
                                      .first_microbatch = split.whole_count,
                                      .step_microbatches = count};
        PEN_TRY(pipeline_begin_round(p, step, &rest, rounds));
    }
    p->begun_count += 1;
    return PEN_OK;
}

// Where the loss is scaled, the next scale depends on what updates have found: on all devices the
// same, of which one tells.
static pen_status pipeline_find_skipped(pipeline_engine *p, uint64_t round, bool *out_is_skipped) {
    PEN_TRY(pen_coordinator_await_quiet(p->coordinator));
    if (!pen_coordinator_get_figures(p->coordinator, round, p->figures)) {
        return pen_error(PEN_INTERNAL, "figures of round %llu are not there",
                         (unsigned long long)round);
    }
    for (uint32_t d = 0; d < p->forms.spec->table->device_count; d++) {
        if (p->figures[d].applied < 0) *out_is_skipped = true;
    }
    return PEN_OK;
}

// Losses are added in the order of microbatches, as one device adds them: the sum has the same
// bits.
static pen_status pipeline_finish(pipeline_engine *p, const pen_batch *batch,
                                  pen_engine_result *out_result) {
    const pipeline_rounds rounds = p->begun[p->begun_first];
    pen_engine_result result = {0};
    p->begun_first = (p->begun_first + 1) % PIPELINE_STEPS_AHEAD;
    p->begun_count -= 1;
    p->step_loss_count = 0;
    for (uint32_t r = 0; r < rounds.count; r++) {
        PEN_TRY(pen_coordinator_await_losses(p->coordinator, rounds.number[r], p->losses));
        for (uint32_t m = 0; m < rounds.microbatches[r]; m++) {
            const pen_run_loss *loss = &p->losses[m];
            result.loss += rounds.weight[r] * loss->sum;
            p->step_losses[p->step_loss_count++] = loss->sum;
            result.correct_count += loss->correct_count;
            for (uint32_t i = 0; i < PEN_TERMS_LIMIT; i++) {
                result.terms[i] += rounds.weight[r] * loss->terms[i];
            }
        }
    }
    result.target_count = pen_feed_target_count(p->forms.forms[0].program, batch, result.terms);
    if (pen_job_get_asynchrony(p->options.job).is_free) {
        PEN_TRY(pen_coordinator_await_order(p->coordinator, rounds.number[rounds.count - 1],
                                            &result.order));
    }
    if (p->forms.spec->table->forms[0].skips) {
        PEN_TRY(pipeline_find_skipped(p, rounds.number[rounds.count - 1], &result.is_skipped));
    }
    pen_pipeline_note_rounds(p);
    *out_result = result;
    return pen_pipeline_advance_audit(p, 0);
}

static pen_status pipeline_step(pen_engine *engine, const pen_engine_step *step,
                                pen_engine_result *out_result) {
    pipeline_engine *p = pipeline_of(engine);
    if (p->begun_count == 0) PEN_TRY(pipeline_begin(engine, step));
    PEN_ASSERT(p->begun[p->begun_first].step == step->step);
    return pipeline_finish(p, step->batch, out_result);
}

// ---- what it is

static const pen_tensor_store *pipeline_tensors(pen_engine *engine) {
    return pipeline_of(engine)->joined;
}

// As it was planned: what collects outputs is added to forms of it.
static const pen_program *pipeline_program(const pen_engine *engine) {
    return pen_plan_job_program(((const pipeline_engine *)(const void *)engine)->plan_job);
}

static const pen_plan *pipeline_plan(const pen_engine *engine) {
    return ((const pipeline_engine *)(const void *)engine)->plan;
}

static const pen_engine_kind pipeline_kind = {
    .name = "pipeline",
    .waits_for_workers = true,
    .destroy = pipeline_destroy,
    .begin = pipeline_begin,
    .step = pipeline_step,
    .evaluate = pen_pipeline_evaluate,
    .pass_limit = pen_pipeline_pass_limit,
    .begin_pass = pen_pipeline_begin_pass,
    .end_pass = pen_pipeline_end_pass,
    .tensors = pipeline_tensors,
    .program = pipeline_program,
    .save = pen_pipeline_save,
    .writes_to = pen_pipeline_writes_to,
    .poll_saved = pen_pipeline_poll_saved,
    .publishing = pen_pipeline_publishing,
    .published = pen_pipeline_published,
    .explain = pen_pipeline_explain,
    .is_failed = pen_pipeline_is_failed,
    .recover = pen_pipeline_recover,
    .may_rejoin = pen_pipeline_may_rejoin,
    .memory = pen_pipeline_memory,
    .report = pen_pipeline_report,
    .trace = pen_pipeline_trace,
    .pulse = pen_pipeline_pulse,
    .plan = pipeline_plan,
    .reads_elsewhere = pen_pipeline_reads_elsewhere,
    .arithmetic = pen_pipeline_arithmetic,
};

// Members before placing: processes that are started here take a while to come up.
pen_status pen_pipeline_engine_create(const pen_engine_options *options, pen_engine **out_engine) {
    pipeline_engine *p = pen_memory_allocate(1, sizeof *p);
    if (p == NULL) return pen_error_out_of_memory();
    p->engine.kind = &pipeline_kind;
    pen_mutex_init(&p->publishing);
    p->options = *options;
    p->info = options->info;
    pen_status status = pen_arena_create(&p->arena);
    if (status == PEN_OK) status = pen_arena_create(&p->placed);
    if (status == PEN_OK) status = pen_arena_create(&p->saving);
    if (status == PEN_OK) status = pen_pipeline_describe_data(p);
    if (status == PEN_OK) status = pen_pipeline_find_members(p);
    if (status == PEN_OK) status = pen_pipeline_place(p);
    if (status == PEN_OK) status = pen_pipeline_begin_policy(p);
    if (status == PEN_OK) status = pen_pipeline_start(p);
    if (status != PEN_OK) {
        pipeline_destroy(&p->engine);
        return status;
    }
    *out_engine = &p->engine;
    return PEN_OK;
}
