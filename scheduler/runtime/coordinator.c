#include "scheduler/runtime/coordinator.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "scheduler/runtime/coordinator_link.h"
#include "scheduler/runtime/worker.h"
#include "scheduler/transport/checksum.h"

#define COORDINATOR_PATIENCE_SECONDS 20.0 // without anything moving, before workers are asked
#define COORDINATOR_ANSWER_SECONDS 5.0
#define COORDINATOR_TICK_SECONDS 0.1
#define COORDINATOR_PIECE_TOKEN ((uint64_t)1 << 40)

static uint64_t coordinator_now(void) {
    return (uint64_t)(pen_clock_seconds() * 1e3) + 1;
}

// ---- waiting

// Whether a device computes, as workers say. Without the lock.
static bool coordinator_is_computing(pen_coordinator *c) {
    bool is_computing = false;
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (!pen_coordinator_ask(c, w, PEN_RUN_INQUIRY_WAITS, 0, COORDINATOR_ANSWER_SECONDS)) {
            continue;
        }
        if (c->part_length > 0 && *(const char *)c->part == 'r') is_computing = true;
    }
    return is_computing;
}

static pen_status coordinator_give_up(pen_coordinator *c) {
    pen_mutex_lock(&c->lock);
    c->is_failed = true;
    c->reason = PEN_COORDINATOR_REASON_NONE;
    pen_mutex_unlock(&c->lock);
    return pen_coordinator_explain(c);
}

// Nothing moved for a while: that is right where a device computes for long.
static pen_status coordinator_look_around(pen_coordinator *c, uint64_t moved_before) {
    if (coordinator_is_computing(c)) return PEN_OK;
    pen_mutex_lock(&c->lock);
    const bool has_moved = c->moved_count != moved_before || c->is_failed;
    pen_mutex_unlock(&c->lock);
    return has_moved ? PEN_OK : coordinator_give_up(c);
}

pen_status pen_coordinator_await(pen_coordinator *c, pen_coordinator_test is_done,
                                 uint64_t argument) {
    uint64_t moved = c->moved_count;
    double patient_until = pen_clock_seconds() + COORDINATOR_PATIENCE_SECONDS;
    pen_status status = PEN_OK;
    while (status == PEN_OK && !is_done(c, argument)) {
        if (c->is_failed) {
            pen_mutex_unlock(&c->lock);
            status = pen_coordinator_explain(c);
            pen_mutex_lock(&c->lock);
            break;
        }
        if (c->moved_count != moved) {
            moved = c->moved_count;
            patient_until = pen_clock_seconds() + COORDINATOR_PATIENCE_SECONDS;
        }
        const double left = patient_until - pen_clock_seconds();
        if (left > 0) {
            (void)pen_condition_wait_for(&c->changed, &c->lock, left);
            continue;
        }
        pen_mutex_unlock(&c->lock);
        status = coordinator_look_around(c, moved);
        pen_mutex_lock(&c->lock);
        patient_until = pen_clock_seconds() + COORDINATOR_PATIENCE_SECONDS;
    }
    return status;
}

// ---- asking

static bool coordinator_is_answered(const pen_coordinator *c) {
    return c->is_answered || !c->workers[c->asked_worker].is_up;
}

bool pen_coordinator_ask(pen_coordinator *c, uint32_t worker, pen_run_inquiry what, uint64_t offset,
                         double seconds) {
    const double deadline = pen_clock_seconds() + seconds;
    pen_message ask = {.kind = PEN_MESSAGE_ASK, .number = (uint32_t)what, .offset = offset};
    pen_mutex_lock(&c->lock);
    c->asked_worker = worker;
    c->asked_what = (uint32_t)what;
    c->asked_offset = offset;
    c->is_answered = false;
    c->part_length = 0;
    pen_mutex_unlock(&c->lock);
    pen_coordinator_tell(c, worker, &ask);
    pen_mutex_lock(&c->lock);
    while (!coordinator_is_answered(c)) {
        const double left = deadline - pen_clock_seconds();
        if (left <= 0) break;
        (void)pen_condition_wait_for(&c->changed, &c->lock, left);
    }
    const bool is_answered = c->is_answered;
    pen_mutex_unlock(&c->lock);
    return is_answered;
}

pen_status pen_coordinator_inquire(pen_coordinator *coordinator, uint32_t worker,
                                   pen_run_inquiry what, pen_arena *arena, const void **out_bytes,
                                   uint64_t *out_count) {
    pen_coordinator *c = coordinator;
    char *bytes = NULL;
    uint64_t count = 0, total = 0;
    do {
        if (!pen_coordinator_ask(c, worker, what, count, COORDINATOR_ANSWER_SECONDS)) {
            return pen_error(PEN_UNAVAILABLE, "%s does not answer", c->spec->workers[worker].name);
        }
        if (bytes == NULL) {
            total = c->part_total;
            PEN_TRY(PEN_NEW(arena, total, &bytes));
        }
        if (c->part_total != total || c->part_length > total - count ||
            (c->part_length == 0 && total > 0)) {
            return pen_error(PEN_CORRUPT, "%s answers with parts that do not go together",
                             c->spec->workers[worker].name);
        }
        memcpy(bytes + count, c->part, c->part_length);
        count += c->part_length;
    } while (count < total);
    *out_bytes = bytes;
    *out_count = total;
    return PEN_OK;
}

pen_status pen_coordinator_compare_clocks(pen_coordinator *coordinator, uint32_t worker,
                                          double *out_seconds) {
    pen_coordinator *c = coordinator;
    double least = 0;
    *out_seconds = 0;
    for (uint32_t i = 0; i < 5; i++) { // the quickest answer says most
        pen_mutex_lock(&c->lock);
        c->ping_sequence += 1;
        c->is_ponged = false;
        pen_message ping = {.kind = PEN_MESSAGE_PING, .sequence = c->ping_sequence};
        pen_mutex_unlock(&c->lock);
        const double sent = pen_clock_seconds();
        pen_coordinator_tell(c, worker, &ping);
        pen_mutex_lock(&c->lock);
        while (!c->is_ponged && pen_clock_seconds() < sent + COORDINATOR_ANSWER_SECONDS) {
            (void)pen_condition_wait_for(&c->changed, &c->lock, COORDINATOR_TICK_SECONDS);
        }
        const bool is_ponged = c->is_ponged;
        const double there = (double)c->pong_here * 1e-9;
        pen_mutex_unlock(&c->lock);
        const double took = pen_clock_seconds() - sent;
        if (!is_ponged) {
            return pen_error(PEN_UNAVAILABLE, "%s does not answer", c->spec->workers[worker].name);
        }
        if (i > 0 && took >= least) continue;
        least = took;
        *out_seconds = sent + took / 2 - there;
    }
    return PEN_OK;
}

// ---- why it failed

static const char *coordinator_stages_of(const pen_coordinator *c, uint32_t worker, char *text,
                                         size_t size) {
    const pen_run_form *form = &c->table->forms[0];
    size_t used = 0;
    uint32_t last = UINT32_MAX;
    text[0] = '\0';
    for (uint32_t t = 0; t < form->task_count && used + 16 < size; t++) {
        uint32_t device = 0;
        while (device + 1 < c->table->device_count &&
               !(form->devices[device].task_first <= t && t < form->devices[device].task_end)) {
            device++;
        }
        const pen_task *task = &form->tasks[t].task;
        if (form->devices[device].worker != worker || task->kind != PEN_TASK_FORWARD ||
            task->microbatch != 0 || task->stage == last) {
            continue;
        }
        used +=
            (size_t)snprintf(text + used, size - used, "%s%u", used == 0 ? "" : ", ", task->stage);
        last = task->stage;
    }
    return text;
}

// What each worker that is still there waits for.
static pen_status coordinator_add_waits(pen_coordinator *c, pen_status status) {
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        pen_mutex_lock(&c->lock);
        const bool is_up = c->workers[w].is_up;
        pen_mutex_unlock(&c->lock);
        if (!is_up || !pen_coordinator_ask(c, w, PEN_RUN_INQUIRY_WAITS, 0, 1.0)) continue;
        const char *text = c->part;
        const char *const end = text + c->part_length;
        for (text += c->part_length > 0; text < end;) {
            const char *line = memchr(text, '\n', (size_t)(end - text));
            const size_t length = (size_t)((line == NULL ? end : line) - text);
            status = pen_status_add_context(status, "%s: %.*s", c->spec->workers[w].name,
                                            (int)length, text);
            text += length + 1;
        }
    }
    return status;
}

static pen_status coordinator_explain_missing(pen_coordinator *c) {
    pen_text text;
    pen_arena *arena;
    const char *names;
    PEN_TRY(pen_arena_create(&arena));
    pen_text_init(&text, arena);
    pen_mutex_lock(&c->lock);
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (pen_coordinator_core_is_present(c->core, w)) continue;
        pen_text_print(&text, "%s%s at %s", text.length == 0 ? "" : ", ", c->spec->workers[w].name,
                       c->spec->workers[w].address);
    }
    pen_mutex_unlock(&c->lock);
    pen_status status = pen_text_finish(&text, &names);
    if (status == PEN_OK) {
        status = pen_error(PEN_UNAVAILABLE, "not there after %.4g s: %s",
                           c->setup.rendezvous_seconds, names);
    }
    pen_arena_destroy(arena);
    pen_mutex_lock(&c->lock);
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (c->workers[w].failure == PEN_OK) continue;
        status = pen_status_join(status, c->workers[w].failure);
        c->workers[w].failure = PEN_OK;
    }
    pen_mutex_unlock(&c->lock);
    return status;
}

static pen_status coordinator_explain_worker(pen_coordinator *c, uint32_t w, bool is_lost) {
    char stages[128];
    const char *name = c->spec->workers[w].name;
    coordinator_stages_of(c, w, stages, sizeof stages);
    pen_mutex_lock(&c->lock);
    pen_status said = c->workers[w].failure;
    c->workers[w].failure = PEN_OK;
    pen_mutex_unlock(&c->lock);
    if (said != PEN_OK && !is_lost) {
        return pen_status_add_context(said, "%s, stages %s", name, stages);
    }
    pen_status status =
        pen_error(PEN_UNAVAILABLE, "lost %s, which runs stages %s: %s", name, stages,
                  said == PEN_OK ? "its link is down" : pen_status_message(said));
    pen_status_ignore(said, "its text is in the error");
    return coordinator_add_waits(c, status);
}

pen_status pen_coordinator_explain(pen_coordinator *c) {
    const uint32_t w = c->failed_worker;
    switch (c->reason) {
    case PEN_COORDINATOR_REASON_MISSING:
        return coordinator_explain_missing(c);
    case PEN_COORDINATOR_REASON_LOST:
        return coordinator_explain_worker(c, w, true);
    case PEN_COORDINATOR_REASON_FAILED:
        return coordinator_explain_worker(c, w, false);
    case PEN_COORDINATOR_REASON_NONE:
        return coordinator_add_waits(c, pen_error(PEN_DEADLINE,
                                                  "nothing moved for %.0f s and no device computes",
                                                  COORDINATOR_PATIENCE_SECONDS));
    case PEN_COORDINATOR_REASON_LOSS:
    case PEN_COORDINATOR_REASON_CREDIT:
    case PEN_COORDINATOR_REASON_ROUND:
        break;
    }
    return pen_error(PEN_CORRUPT, "%s: %s", c->spec->workers[w].name,
                     pen_coordinator_reason_text(c->reason));
}

// ---- rounds

static bool coordinator_can_begin(const pen_coordinator *c, uint64_t argument) {
    uint64_t round;
    (void)argument;
    return pen_coordinator_core_can_begin(c->core, &round);
}

static bool coordinator_has_losses(const pen_coordinator *c, uint64_t round) {
    return c->losses_end > round || c->is_not_finite;
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
        const uint32_t count = channel->is_per_step ? 1 : round->count;
        announced->feeds[i] = round->feeds[i];
        announced->first_check[i] = first;
        for (uint32_t m = 0; m < count; m++) {
            pen_checksum_chunks((const char *)round->feeds[i] + m * channel->bytes, channel->bytes,
                                announced->checksums + first);
            first += chunks;
        }
    }
}

pen_status pen_coordinator_begin_round(pen_coordinator *coordinator,
                                       const pen_coordinator_round *round, uint64_t *out_round) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    const pen_status status = pen_coordinator_await(c, coordinator_can_begin, 0);
    if (status == PEN_OK) {
        PEN_ASSERT(pen_coordinator_core_can_begin(c->core, out_round));
    }
    pen_mutex_unlock(&c->lock);
    PEN_TRY(status);
    coordinator_prepare(c, round, &c->announced[*out_round % COORDINATOR_ROUNDS]);
    const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_BEGIN,
                                         .form = round->form,
                                         .count = round->count,
                                         .updates = round->updates};
    pen_coordinator_step(c, &event);
    return PEN_OK;
}

// Of all stages that report on the microbatch: one has the loss, one, or the same, the hits.
static void coordinator_sum_reports(const pen_coordinator *c, uint64_t round, uint32_t microbatch,
                                    double *out_loss, uint64_t *out_correct) {
    const pen_run_form *form =
        &c->table->forms[c->announced[round % COORDINATOR_ROUNDS].round.form];
    *out_loss = 0;
    *out_correct = 0;
    for (uint32_t t = 0; t < form->task_count; t++) {
        const pen_run_task *task = &form->tasks[t];
        if (!task->makes_loss || task->task.microbatch != microbatch) continue;
        const pen_coordinator_loss *report =
            pen_coordinator_core_find_loss(c->core, round, microbatch, task->task.stage);
        double value;
        if (report == NULL) continue;
        memcpy(&value, &report->value, sizeof value);
        *out_loss += value;
        *out_correct += report->correct_count;
    }
}

pen_status pen_coordinator_await_losses(pen_coordinator *coordinator, uint64_t round,
                                        double *out_losses, uint64_t *out_correct) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    const pen_status status = pen_coordinator_await(c, coordinator_has_losses, round);
    if (status == PEN_OK) {
        const uint32_t count = c->announced[round % COORDINATOR_ROUNDS].round.count;
        for (uint32_t m = 0; m < count; m++) {
            coordinator_sum_reports(c, round, m, &out_losses[m], &out_correct[m]);
        }
    }
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

// ---- tensors

static uint32_t coordinator_worker_of(const pen_coordinator *c, uint32_t device) {
    return c->table->forms[0].devices[device].worker;
}

static bool coordinator_is_piece_free(const pen_coordinator *c, uint64_t index) {
    return !c->pieces[index].is_lent && c->pieces[index].is_taken;
}

static bool coordinator_has_read(const pen_coordinator *c, uint64_t argument) {
    (void)argument;
    return c->is_read;
}

pen_status pen_coordinator_write(pen_coordinator *coordinator, const pen_tensor_piece *piece,
                                 const void *memory) {
    pen_coordinator *c = coordinator;
    const uint64_t sequence = ++c->piece_sequence;
    const uint64_t index = sequence % COORDINATOR_PIECES;
    pen_mutex_lock(&c->lock);
    const pen_status status = pen_coordinator_await(c, coordinator_is_piece_free, index);
    if (status == PEN_OK) c->pieces[index] = (coordinator_piece){.is_lent = true};
    pen_mutex_unlock(&c->lock);
    PEN_TRY(status);
    pen_checksum_chunks(memory, piece->bytes, &c->pieces[index].checksum);
    const pen_frame frame = {.kind = PEN_FRAME_TENSOR,
                             .generation = c->generation,
                             .incarnation = c->incarnation,
                             .channel =
                                 pen_run_tensor_number(piece->device, (pen_value_id){piece->value}),
                             .sequence = sequence,
                             .offset = piece->offset,
                             .bytes = piece->bytes};
    const pen_status sent = c->transport->kind->send_frame(
        c->transport, coordinator_worker_of(c, piece->device), &frame, memory,
        &c->pieces[index].checksum, COORDINATOR_PIECE_TOKEN + index);
    if (sent == PEN_OK) return PEN_OK;
    pen_mutex_lock(&c->lock);
    c->pieces[index] = (coordinator_piece){.is_taken = true};
    pen_mutex_unlock(&c->lock);
    return sent;
}

pen_status pen_coordinator_flush(pen_coordinator *coordinator) {
    pen_coordinator *c = coordinator;
    pen_status status = PEN_OK;
    pen_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < COORDINATOR_PIECES && status == PEN_OK; i++) {
        status = pen_coordinator_await(c, coordinator_is_piece_free, i);
    }
    pen_mutex_unlock(&c->lock);
    return status;
}

pen_status pen_coordinator_read(pen_coordinator *coordinator, const pen_tensor_piece *piece,
                                void *memory) {
    pen_coordinator *c = coordinator;
    pen_message pull = {.kind = PEN_MESSAGE_PULL,
                        .frame_kind = PEN_FRAME_TENSOR,
                        .number =
                            pen_run_tensor_number(piece->device, (pen_value_id){piece->value}),
                        .offset = piece->offset,
                        .byte_count = piece->bytes};
    pen_mutex_lock(&c->lock);
    c->read_sequence += 1;
    c->read_memory = memory;
    c->read_bytes = piece->bytes;
    c->is_read = false;
    pull.sequence = c->read_sequence;
    pen_mutex_unlock(&c->lock);
    pen_coordinator_tell(c, coordinator_worker_of(c, piece->device), &pull);
    pen_mutex_lock(&c->lock);
    const pen_status status = pen_coordinator_await(c, coordinator_has_read, 0);
    c->read_memory = NULL;
    pen_mutex_unlock(&c->lock);
    PEN_TRY(status);
    if (pen_checksum_find_difference(memory, piece->bytes, &c->read_checksum) ==
        pen_frame_chunk_count(piece->bytes)) {
        return PEN_OK;
    }
    return pen_error(PEN_CORRUPT, "a piece of a tensor was damaged on the way");
}

// ---- making

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
            checksums += pen_frame_chunk_count(channel->bytes) * form->microbatch_count;
        }
        if (checksums > checksum_limit) checksum_limit = checksums;
        if (form->channel_count > c->channel_limit) c->channel_limit = form->channel_count;
    }
    PEN_TRY(PEN_NEW(c->arena, c->frame_count, &c->frames));
    for (uint32_t r = 0; r < COORDINATOR_ROUNDS; r++) {
        coordinator_announced *announced = &c->announced[r];
        PEN_TRY(PEN_NEW(c->arena, c->channel_limit, &announced->feeds));
        PEN_TRY(PEN_NEW(c->arena, c->channel_limit, &announced->first_check));
        PEN_TRY(PEN_NEW(c->arena, checksum_limit, &announced->checksums));
        PEN_TRY(PEN_NEW(c->arena, table->device_count, &c->figures[r]));
        c->figures_round[r] = UINT64_MAX;
    }
    for (uint32_t i = 0; i < COORDINATOR_PIECES; i++) {
        c->pieces[i].is_taken = true;
    }
    return PEN_OK;
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

static pen_status coordinator_make_core(pen_coordinator *c) {
    const char *numerics;
    uint32_t action_limit;
    pen_coordinator_options options = {.generation = c->generation,
                                       .deadline = coordinator_now() +
                                                   (uint64_t)(c->setup.rendezvous_seconds * 1e3)};
    PEN_TRY(pen_worker_describe_numerics(c->arena, &numerics));
    options.self.protocol = PEN_PROTOCOL_VERSION;
    snprintf(options.self.build, sizeof options.self.build, "%s", PEN_VERSION);
    snprintf(options.self.isa, sizeof options.self.isa, "%s", numerics);
    PEN_TRY(pen_coordinator_core_new(c->table, &options, c->arena, &c->core, &action_limit));
    char *part;
    PEN_TRY(PEN_NEW(c->arena, PEN_MESSAGE_PART_LIMIT, &part));
    c->part = part;
    return PEN_NEW(c->arena, action_limit, &c->actions);
}

static pen_status coordinator_connect(pen_coordinator *c) {
    const pen_transport_options options = {.self = {.job = c->setup.job,
                                                    .peer = 0,
                                                    .generation = c->generation,
                                                    .incarnation = c->incarnation},
                                           .tls = c->setup.tls,
                                           .is_insecure = c->setup.is_insecure};
    const pen_transport_events events = pen_coordinator_events(c);
    PEN_TRY(c->setup.transport->create(&options, &events, &c->transport));
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        PEN_TRY(c->transport->kind->connect(c->transport, w, c->spec->workers[w].address,
                                            c->setup.rendezvous_seconds));
    }
    return PEN_OK;
}

// Waits until all are ready; the clock is the core's.
static pen_status coordinator_recruit(pen_coordinator *c) {
    pen_mutex_lock(&c->lock);
    while (!c->is_running && !c->is_failed) {
        (void)pen_condition_wait_for(&c->changed, &c->lock, COORDINATOR_TICK_SECONDS);
        pen_mutex_unlock(&c->lock);
        const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_TICK,
                                             .now = coordinator_now()};
        pen_coordinator_step(c, &event);
        pen_mutex_lock(&c->lock);
    }
    const bool is_failed = c->is_failed;
    pen_mutex_unlock(&c->lock);
    return is_failed ? pen_coordinator_explain(c) : PEN_OK;
}

static pen_status coordinator_start(pen_coordinator *c) {
    PEN_TRY(pen_arena_create(&c->arena));
    PEN_TRY(coordinator_prepare_frames(c));
    PEN_TRY(coordinator_describe(c));
    PEN_TRY(coordinator_make_core(c));
    PEN_TRY(coordinator_connect(c));
    return coordinator_recruit(c);
}

pen_status pen_coordinator_create(const pen_coordinator_setup *setup,
                                  pen_coordinator **out_coordinator) {
    pen_coordinator *c = pen_memory_allocate(1, sizeof *c);
    if (c == NULL) return pen_error_out_of_memory();
    c->setup = *setup;
    c->spec = setup->spec;
    c->table = setup->spec->table;
    c->generation = 1;
    c->incarnation = pen_random_incarnation();
    pen_mutex_init(&c->lock);
    pen_condition_init(&c->changed);
    const pen_status status = coordinator_start(c);
    if (status != PEN_OK) {
        pen_coordinator_destroy(c);
        return status;
    }
    *out_coordinator = c;
    return PEN_OK;
}

void pen_coordinator_destroy(pen_coordinator *coordinator) {
    pen_coordinator *c = coordinator;
    if (c == NULL) return;
    if (c->transport != NULL) {
        const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_STOP};
        pen_coordinator_step(c, &event);
        pen_mutex_lock(&c->lock);
        c->is_closed = true;
        pen_mutex_unlock(&c->lock);
        const pen_transport_kind *kind = c->transport->kind;
        kind->close(c->transport);
        kind->stop(c->transport);
        kind->destroy(c->transport);
    }
    for (uint32_t w = 1; c->workers != NULL && w <= c->table->worker_count; w++) {
        pen_status_ignore(c->workers[w].failure, "the first failure was told");
    }
    pen_condition_deinit(&c->changed);
    pen_mutex_deinit(&c->lock);
    pen_arena_destroy(c->arena);
    pen_memory_free(c);
}
