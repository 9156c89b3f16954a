#include "scheduler/runtime/coordinator/coordinator.h"

#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/system/build.h"
#include "base/system/failpoint.h"
#include "base/system/interrupt.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"
#include "scheduler/runtime/coordinator/coordinator_shards.h"
#include "scheduler/runtime/run/run_spec_wire.h"
#include "scheduler/runtime/worker/worker.h"

#define COORDINATOR_TICK_SECONDS 0.05
#define COORDINATOR_BEATS 20 // in a lease
#define COORDINATOR_BEAT_MOST 0.25
#define COORDINATOR_BEAT_LEAST 0.025

static uint64_t coordinator_nanoseconds(double seconds) {
    return (uint64_t)(seconds * 1e9);
}

// ---- rounds

static bool coordinator_can_begin(const pen_coordinator *c, uint64_t argument) {
    uint64_t round;
    (void)argument;
    return pen_coordinator_core_can_begin(c->core, &round);
}

// Frames of it may still be read then: what is sent again must not have changed.
static bool coordinator_has_losses(const pen_coordinator *c, uint64_t round) {
    if (c->is_not_finite) return true;
    return c->losses_end > round && c->announced[round % COORDINATOR_ROUNDS].lent_count == 0;
}

static bool coordinator_is_quiet(const pen_coordinator *c, uint64_t argument) {
    (void)argument;
    return pen_coordinator_core_is_quiet(c->core) || c->is_not_finite;
}

// What is fed, with checksums, for the transport's thread.
static void coordinator_prepare(pen_coordinator *c, const pen_coordinator_round *round,
                                coordinator_announced *announced) {
    const pen_run_form *form = &c->table->forms[round->form];
    uint32_t first = 0;
    announced->round = *round;
    for (uint32_t i = 0; i < form->channel_count; i++) {
        const pen_run_channel *channel = &form->channels[i];
        if (channel->source_worker != 0) continue;
        const uint32_t chunks = pen_frame_chunk_count(channel->bytes);
        const uint32_t count = pen_run_frame_count(form, channel, round->count);
        const uint32_t begin = channel->is_per_step ? 0 : channel->first_microbatch;
        announced->feeds[i] = round->feeds[i];
        announced->first_check[i] = first;
        for (uint32_t m = 0; m < count; m++) {
            const char *frame = (const char *)round->feeds[i] + (begin + m) * channel->bytes;
            pen_checksum_chunks(frame, channel->bytes, announced->checksums + first);
            first += chunks;
        }
    }
}

// What a round is fed is prepared without the lock, once there is a place for it.
pen_status pen_coordinator_begin_round(pen_coordinator *coordinator,
                                       const pen_coordinator_round *round, uint64_t *out_round) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    const pen_status status = pen_coordinator_await(c, coordinator_can_begin, 0);
    if (status == PEN_OK) {
        PEN_ASSERT(pen_coordinator_core_can_begin(c->core, out_round));
        c->has_begun = true;
        coordinator_announced *announced = &c->announced[*out_round % COORDINATOR_ROUNDS];
        announced->number = *out_round;
        memset(announced->seen_count, 0, sizeof announced->seen_count);
    }
    pen_mutex_unlock(&c->lock);
    PEN_TRY(status);
    coordinator_prepare(c, round, &c->announced[*out_round % COORDINATOR_ROUNDS]);
    const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_BEGIN,
                                         .form = round->form,
                                         .count = round->count,
                                         .updates = round->updates,
                                         .microbatch = (uint32_t)round->first_microbatch,
                                         .order = round->order};
    pen_coordinator_step(c, &event);
    if (PEN_FAILPOINT("coordinator.round_begun")) return pen_error(PEN_INTERNAL, "a failpoint");
    return PEN_OK;
}

// Of all stages that report on the microbatch: one has the sum, one, or the same, the hits. The
// terms came with the same reports.
static void coordinator_sum_reports(const pen_coordinator *c, uint64_t round, uint32_t microbatch,
                                    pen_run_loss *out_loss) {
    const coordinator_announced *announced = &c->announced[round % COORDINATOR_ROUNDS];
    const pen_run_form *form = &c->table->forms[announced->round.form];
    *out_loss = (pen_run_loss){0};
    for (uint32_t t = 0; t < form->task_count; t++) {
        const pen_run_task *task = &form->tasks[t];
        if (!task->makes_loss || task->task.microbatch != microbatch) continue;
        const pen_coordinator_loss *report =
            pen_coordinator_core_find_loss(c->core, round, microbatch, task->task.stage);
        double value;
        if (report == NULL) continue;
        memcpy(&value, &report->value, sizeof value);
        out_loss->sum += value;
        out_loss->correct_count += report->correct_count;
    }
    memcpy(out_loss->terms, announced->terms + (size_t)microbatch * PEN_TERMS_LIMIT,
           sizeof out_loss->terms);
}

pen_status pen_coordinator_await_losses(pen_coordinator *coordinator, uint64_t round,
                                        pen_run_loss *out_losses) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    const pen_status status = pen_coordinator_await(c, coordinator_has_losses, round);
    if (status == PEN_OK) {
        const uint32_t count = c->announced[round % COORDINATOR_ROUNDS].round.count;
        for (uint32_t m = 0; m < count; m++) {
            coordinator_sum_reports(c, round, m, &out_losses[m]);
        }
    }
    pen_mutex_unlock(&c->lock);
    (void)PEN_FAILPOINT("coordinator.losses");
    return status;
}

static bool coordinator_has_gone(const pen_coordinator *c, uint64_t round) {
    return c->is_not_finite || c->go_end > round;
}

pen_status pen_coordinator_await_order(pen_coordinator *coordinator, uint64_t round,
                                       pen_arrivals_order *out_order) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    const pen_status status = pen_coordinator_await(c, coordinator_has_gone, round);
    *out_order = c->go_end > round ? c->announced[round % COORDINATOR_ROUNDS].order : 0;
    pen_mutex_unlock(&c->lock);
    return status;
}

pen_status pen_coordinator_await_quiet(pen_coordinator *coordinator) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    const pen_status status = pen_coordinator_await(c, coordinator_is_quiet, 0);
    pen_mutex_unlock(&c->lock);
    return status;
}

bool pen_coordinator_get_figures(pen_coordinator *coordinator, uint64_t round,
                                 pen_round_figures *out_figures) {
    pen_coordinator *c = coordinator;
    const uint64_t slot = round % COORDINATOR_ROUNDS;
    pen_mutex_lock(&c->lock);
    const bool is_there = c->figures_round[slot] == round;
    memcpy(out_figures, c->figures[slot], c->table->device_count * sizeof *out_figures);
    pen_mutex_unlock(&c->lock);
    return is_there;
}

// ---- making

// Everything a round needs is taken before the first: places of frames, their checksums, and
// figures of rounds under way.
static pen_status coordinator_prepare_frames(pen_coordinator *c) {
    const pen_run_table *table = c->table;
    uint32_t checksum_limit = 1;
    PEN_TRY(PEN_NEW(c->arena, table->form_count, &c->first_frame));
    for (uint32_t f = 0; f < table->form_count; f++) {
        const pen_run_form *form = &table->forms[f];
        uint32_t checksums = 0;
        PEN_TRY(PEN_NEW(c->arena, form->channel_count, &c->first_frame[f]));
        for (uint32_t i = 0; i < form->channel_count; i++) {
            const pen_run_channel *channel = &form->channels[i];
            if (channel->source_worker != 0) continue;
            c->first_frame[f][i] = c->frame_count;
            c->frame_count += channel->copies;
            checksums += pen_frame_chunk_count(channel->bytes) * pen_run_slots(form, channel);
        }
        if (checksums > checksum_limit) checksum_limit = checksums;
        if (form->microbatch_count > c->microbatch_limit) {
            c->microbatch_limit = form->microbatch_count;
        }
        if (form->channel_count > c->channel_limit) c->channel_limit = form->channel_count;
    }
    PEN_TRY(PEN_NEW(c->arena, c->frame_count, &c->frames));
    for (uint32_t r = 0; r < COORDINATOR_ROUNDS; r++) {
        coordinator_announced *announced = &c->announced[r];
        PEN_TRY(PEN_NEW(c->arena, c->channel_limit, &announced->feeds));
        PEN_TRY(PEN_NEW(c->arena, c->channel_limit, &announced->first_check));
        PEN_TRY(PEN_NEW(c->arena, checksum_limit, &announced->checksums));
        PEN_TRY(
            PEN_NEW(c->arena, (size_t)c->microbatch_limit * PEN_TERMS_LIMIT, &announced->terms));
        PEN_TRY(PEN_NEW(c->arena, table->device_count, &c->figures[r]));
        c->figures_round[r] = UINT64_MAX;
    }
    return pen_coordinator_prepare_values(c);
}

static pen_status coordinator_describe(pen_coordinator *c) {
    PEN_TRY(PEN_NEW(c->arena, (size_t)c->table->worker_count + 1, &c->workers));
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        coordinator_worker *worker = &c->workers[w];
        if (w == c->setup.local_worker) continue;
        PEN_TRY(pen_run_spec_encode(c->spec, w, c->arena, &worker->blob, &worker->blob_bytes));
        PEN_TRY(
            PEN_NEW(c->arena, pen_frame_chunk_count(worker->blob_bytes), &worker->blob_checksums));
        pen_checksum_chunks(worker->blob, worker->blob_bytes, worker->blob_checksums);
    }
    return PEN_OK;
}

static pen_status coordinator_start_recorder(pen_coordinator *c,
                                             const pen_coordinator_options *options) {
    pen_flight_setup setup = {.table = c->table,
                              .generation = c->generation,
                              .incarnation = c->incarnation,
                              .options = options};
    PEN_TRY(pen_run_spec_name(c->spec, c->arena, &setup.worker_names, &setup.channel_names));
    return pen_flight_recorder_create(&setup, &c->recorder);
}

// Build and kernels are part of what workers are compared with: numbers would differ otherwise.
static pen_status coordinator_make_core(pen_coordinator *c) {
    const char *numerics;
    uint32_t action_limit;
    c->rendezvous_end = pen_clock_seconds() + c->setup.rendezvous_seconds;
    pen_coordinator_options options = {.generation = c->generation,
                                       .deadline = coordinator_nanoseconds(c->rendezvous_end),
                                       .lease = coordinator_nanoseconds(c->setup.lease_seconds),
                                       .progress =
                                           coordinator_nanoseconds(c->setup.progress_seconds),
                                       .load = coordinator_nanoseconds(c->setup.load_seconds),
                                       .write = coordinator_nanoseconds(c->setup.write_seconds),
                                       .needs_fence = c->setup.fence != NULL};
    if (c->spec->lanes.lanes <= PEN_ARRIVALS_LANES) options.lanes = c->spec->lanes;
    PEN_TRY(pen_worker_describe_numerics(PEN_KERNEL_LEVEL_AUTO, c->arena, &numerics));
    options.self.protocol = PEN_PROTOCOL_VERSION;
    snprintf(options.self.build, sizeof options.self.build, "%s", pen_build_name());
    snprintf(options.self.isa, sizeof options.self.isa, "%s", numerics);
    PEN_TRY(pen_coordinator_core_new(c->table, &options, c->arena, &c->core, &action_limit));
    PEN_TRY(coordinator_start_recorder(c, &options));
    char *part;
    PEN_TRY(PEN_NEW(c->arena, PEN_MESSAGE_PART_LIMIT, &part));
    c->part = part;
    return PEN_NEW(c->arena, action_limit, &c->actions);
}

// Workers are told the level of our kernels: theirs must round as ours do.
static pen_status coordinator_connect(pen_coordinator *c) {
    pen_kernel_level level; // that ours runs at
    PEN_TRY(pen_kernel_level_settle(PEN_KERNEL_LEVEL_AUTO, &level));
    const pen_transport_options options = {.self = {.job = c->setup.job,
                                                    .peer = 0,
                                                    .level = level,
                                                    .generation = c->generation,
                                                    .incarnation = c->incarnation,
                                                    .shares_memory = c->setup.shares_memory},
                                           .tls = c->setup.tls,
                                           .is_insecure = c->setup.is_insecure,
                                           .token_file = c->setup.token_file,
                                           .resume_seconds = c->setup.lease_seconds};
    const pen_transport_events events = pen_coordinator_events(c);
    PEN_TRY(c->setup.transport->create(&options, &events, &c->transport));
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        PEN_TRY(c->transport->kind->connect(c->transport, w, c->spec->workers[w].address,
                                            c->setup.rendezvous_seconds));
    }
    return PEN_OK;
}

// Ticks, and lets workers hear of us, whatever the caller's thread does.
static void coordinator_keep_time(void *context) {
    pen_coordinator *c = context;
    const pen_coordinator_event tick = {.kind = PEN_COORDINATOR_EVENT_TICK};
    bool is_said = false;
    pen_mutex_lock(&c->lock);
    while (!c->is_closed) {
        (void)pen_condition_wait_for(&c->ended, &c->lock, c->beat_seconds);
        const bool is_over = c->is_closed || c->is_failed;
        const bool is_stuck = c->is_failed && c->reason == PEN_COORDINATOR_REASON_STORE;
        pen_mutex_unlock(&c->lock);
        if (is_stuck && !is_said)
            pen_log(PEN_LOG_WARNING, "the commit log is not written: "
                                     "does the disk of checkpoints answer?");
        is_said = is_said || is_stuck;
        if (!is_over) pen_coordinator_hold_publishing(c);
        if (!is_over) pen_coordinator_step(c, &tick);
        for (uint32_t w = 1; w <= c->table->worker_count && !is_over; w++) {
            pen_message beat = {.kind = PEN_MESSAGE_BEAT};
            pen_coordinator_tell(c, w, &beat);
        }
        pen_mutex_lock(&c->lock);
    }
    pen_mutex_unlock(&c->lock);
}

static pen_status coordinator_start_clock(pen_coordinator *c) {
    c->beat_seconds = c->setup.lease_seconds > 0 ? c->setup.lease_seconds / COORDINATOR_BEATS
                                                 : COORDINATOR_BEAT_MOST;
    if (c->beat_seconds > COORDINATOR_BEAT_MOST) c->beat_seconds = COORDINATOR_BEAT_MOST;
    if (c->beat_seconds < COORDINATOR_BEAT_LEAST) c->beat_seconds = COORDINATOR_BEAT_LEAST;
    return pen_thread_create("coordinator", coordinator_keep_time, c, &c->clock);
}

// The core asked for the generation to be made durable.
static void coordinator_fence(pen_coordinator *c) {
    pen_mutex_lock(&c->lock);
    const bool wants_fence = c->wants_fence;
    c->wants_fence = false;
    pen_mutex_unlock(&c->lock);
    if (!wants_fence) return;
    const pen_status status = c->setup.fence(c->setup.fence_context, c->generation);
    const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_FENCED,
                                         .generation = c->generation,
                                         .code = (uint32_t)pen_status_get_code(status)};
    if (status == PEN_OK) pen_coordinator_mark_folders(c);
    pen_mutex_lock(&c->lock);
    c->fence_failure = pen_status_join(c->fence_failure, status);
    pen_mutex_unlock(&c->lock);
    (void)PEN_FAILPOINT("coordinator.fenced");
    pen_coordinator_step(c, &event);
}

// Calls workers again whose links went down before all were there.
static void coordinator_link_again(pen_coordinator *c) {
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        const double left = c->rendezvous_end - pen_clock_seconds();
        pen_mutex_lock(&c->lock);
        const bool wants_link = c->workers[w].wants_link;
        c->workers[w].wants_link = false;
        pen_mutex_unlock(&c->lock);
        if (!wants_link || left <= 0) continue;
        pen_status_ignore(
            c->transport->kind->connect(c->transport, w, c->spec->workers[w].address, left),
            "it is missed at the deadline");
    }
}

// Waits until all are ready; the clock is the core's.
static pen_status coordinator_recruit(pen_coordinator *c) {
    bool is_cancelled = false;
    pen_mutex_lock(&c->lock);
    while (!c->is_running && !c->is_failed && !is_cancelled) {
        (void)pen_condition_wait_for(&c->changed, &c->lock, COORDINATOR_TICK_SECONDS);
        pen_mutex_unlock(&c->lock);
        coordinator_fence(c);
        coordinator_link_again(c);
        pen_coordinator_say_late(c);
        pen_coordinator_look_for_gone(c);
        if (pen_interrupt_take_question()) pen_coordinator_answer_question(c);
        is_cancelled = pen_interrupt_wished(c->setup.cancel);
        pen_mutex_lock(&c->lock);
    }
    const bool is_failed = c->is_failed;
    is_cancelled = is_cancelled && !c->is_running && !is_failed;
    pen_mutex_unlock(&c->lock);
    if (is_cancelled) return pen_error(PEN_CANCELLED, "stopped while waiting for workers");
    (void)PEN_FAILPOINT("coordinator.started");
    return is_failed ? pen_coordinator_explain(c) : PEN_OK;
}

static pen_status coordinator_start(pen_coordinator *c) {
    PEN_TRY(pen_arena_create(&c->arena));
    PEN_TRY(coordinator_prepare_frames(c));
    PEN_TRY(pen_coordinator_prepare_save(c));
    PEN_TRY(coordinator_describe(c));
    PEN_TRY(coordinator_make_core(c));
    PEN_TRY(coordinator_connect(c));
    PEN_TRY(coordinator_start_clock(c));
    return coordinator_recruit(c);
}

// Returns when all workers are ready, or when the generation has failed.
pen_status pen_coordinator_create(const pen_coordinator_setup *setup,
                                  pen_coordinator **out_coordinator) {
    PEN_ASSERT(setup->generation > 0);
    pen_coordinator *c = pen_memory_allocate(1, sizeof *c);
    if (c == NULL) return pen_error_out_of_memory();
    c->setup = *setup;
    c->spec = setup->spec;
    c->table = setup->spec->table;
    c->generation = setup->generation;
    c->incarnation = pen_random_incarnation();
    pen_mutex_init(&c->lock);
    pen_condition_init(&c->changed);
    pen_condition_init(&c->stepped);
    pen_condition_init(&c->ended);
    const pen_status status = coordinator_start(c);
    pen_coordinator_unmark_folders(c);
    if (status == PEN_OK) pen_coordinator_say_unseen(c);
    if (status != PEN_OK) {
        pen_coordinator_destroy(c);
        return status;
    }
    *out_coordinator = c;
    return PEN_OK;
}

static void coordinator_take_links_down(pen_coordinator *c) {
    const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_STOP};
    pen_coordinator_step(c, &event);
    pen_mutex_lock(&c->lock);
    c->is_closed = true;
    pen_condition_broadcast(&c->ended);
    pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
    pen_thread_join(c->clock);
    pen_coordinator_end_copy(c);
    const pen_transport_kind *kind = c->transport->kind;
    kind->close(c->transport);
    kind->stop(c->transport);
    kind->destroy(c->transport);
}

void pen_coordinator_destroy(pen_coordinator *coordinator) {
    pen_coordinator *c = coordinator;
    if (c == NULL) return;
    if (c->transport != NULL) coordinator_take_links_down(c);
    for (uint32_t w = 1; c->workers != NULL && w <= c->table->worker_count; w++) {
        pen_status_ignore(c->workers[w].failure, "the first failure was told");
        pen_status_ignore(c->workers[w].survey_failure, "nobody waited for it");
    }
    pen_status_ignore(c->fence_failure, "it was told");
    pen_condition_deinit(&c->changed);
    pen_condition_deinit(&c->stepped);
    pen_condition_deinit(&c->ended);
    pen_mutex_deinit(&c->lock);
    pen_flight_recorder_destroy(c->recorder);
    pen_arena_destroy(c->save.arena);
    pen_arena_destroy(c->arena);
    pen_memory_free(c);
}

bool pen_coordinator_is_failed(pen_coordinator *coordinator) {
    pen_mutex_lock(&coordinator->lock);
    const bool is_failed = coordinator->is_failed;
    pen_mutex_unlock(&coordinator->lock);
    return is_failed;
}
