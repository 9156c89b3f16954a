// What the member core says is what the worker does: which coordinator it listens to, when it
// loads, beats and leaves. And what the coordinator is told of a run.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system/build.h"
#include "base/system/failpoint.h"
#include "scheduler/runtime/worker/worker_inside.h"
#include "scheduler/store/commit_record.h"

uint64_t pen_worker_now(void) {
    return (uint64_t)(pen_clock_seconds() * 1e9);
}

// Messages are encoded on the stack, but for the few that are longer. One that cannot be sent is
// dropped: the coordinator notices by its lease.
void pen_worker_tell(pen_worker *worker, uint32_t peer, pen_message *message) {
    uint8_t room[2 * PEN_MESSAGE_ROOM];
    uint8_t *bytes = room, *heap = NULL;
    size_t size = PEN_MESSAGE_ROOM + message->bytes_length;
    message->protocol = PEN_PROTOCOL_VERSION;
    message->incarnation = worker->incarnation;
    pen_mutex_lock(&worker->lock);
    if (message->generation == 0) message->generation = worker->member.generation;
    memcpy(message->job, worker->job, sizeof message->job);
    pen_mutex_unlock(&worker->lock);
    if (size > sizeof room) { // of shards, and of rounds with very many devices
        bytes = heap = pen_memory_allocate(size, 1);
        if (heap == NULL) return; // the coordinator will miss it
    }
    const size_t length = pen_message_encode(message, bytes, size);
    PEN_ASSERT(length <= size);
    pen_status_ignore(worker->transport->kind->send_message(worker->transport, peer, bytes, length),
                      "a link that is down is told of by `down`");
    pen_memory_free(heap);
}

// ---- the core

void pen_worker_note(pen_worker *worker, const pen_member_action *actions, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (actions[i].kind == PEN_MEMBER_ACTION_LOAD) worker->wants_load = true;
        if (actions[i].kind == PEN_MEMBER_ACTION_LEAVE) worker->wants_leave = true;
        if (actions[i].kind != PEN_MEMBER_ACTION_DISCONNECT) continue;
        worker->wants_disconnect = true;
        pen_condition_signal(&worker->ticked);
    }
    pen_condition_broadcast(&worker->changed);
}

// What this machine's kernels are at the level that the coordinator wants; or why they cannot be,
// which is another text than the coordinator's, so that it refuses us and shows both.
static void member_describe_numerics(pen_worker *worker, char out_text[PEN_MESSAGE_NAME_BYTES]) {
    pen_arena *arena = NULL;
    const char *text = "";
    pen_mutex_lock(&worker->lock);
    const uint32_t level = worker->level;
    pen_mutex_unlock(&worker->lock);
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK && level >= PEN_KERNEL_LEVEL_COUNT) {
        status = pen_error(PEN_UNSUPPORTED, "kernel level %u is not known here", level);
    }
    if (status == PEN_OK) {
        status = pen_worker_describe_numerics((pen_kernel_level)level, arena, &text);
    }
    if (status != PEN_OK) text = pen_status_message(status);
    snprintf(out_text, PEN_MESSAGE_NAME_BYTES, "%s", text);
    pen_status_ignore(status, "the coordinator shows it");
    pen_arena_destroy(arena);
}

// A worker of the coordinator's own process leaves the cores to those who began that.
static void member_greet(pen_worker *worker, uint64_t generation) {
    pen_message message = {
        .kind = PEN_MESSAGE_HELLO, .generation = generation, .memory_bytes = worker->memory_bytes};
    if (worker->options.spec == NULL) message.count = worker->core_count;
    snprintf(message.build, sizeof message.build, "%s", pen_build_name());
    if (worker->stores.count > 0) {
        snprintf(message.text, sizeof message.text, "%s", worker->stores.folders[0].root);
    }
    member_describe_numerics(worker, message.isa);
    snprintf(message.address, sizeof message.address, "%s", worker->address);
    pen_worker_tell(worker, 0, &message);
}

// Asks for the description, or goes on with that which is at hand.
static void member_pull(pen_worker *worker, uint64_t generation) {
    const pen_member_event described = {.kind = PEN_MEMBER_EVENT_DESCRIBED};
    (void)PEN_FAILPOINT("worker.assigned");
    if (worker->options.spec != NULL) {
        pen_worker_step(worker, &described);
        return;
    }
    pen_mutex_lock(&worker->lock);
    pen_message pull = {.kind = PEN_MESSAGE_PULL,
                        .generation = generation,
                        .frame_kind = PEN_FRAME_BLOB,
                        .byte_count = worker->blob_bytes};
    pen_mutex_unlock(&worker->lock);
    pen_worker_tell(worker, 0, &pull);
}

static void member_beat(pen_worker *worker, uint64_t generation) {
    pen_message beat = {.kind = PEN_MESSAGE_BEAT, .generation = generation};
    pen_run_pulse pulse = {0};
    pen_worker_run *run = pen_worker_use_run(worker);
    if (run != NULL) {
        pulse = pen_worker_run_get_pulse(run);
        pen_worker_release_run(worker);
    }
    pen_mutex_lock(&worker->lock);
    beat.state = worker->member.state;
    pen_mutex_unlock(&worker->lock);
    beat.step = pulse.step;
    beat.step_nanoseconds = (uint64_t)(pulse.step_seconds * 1e9);
    beat.clock = (uint64_t)(pulse.task_seconds * 1e9);
    pen_worker_tell(worker, 0, &beat);
}

static void member_tell_stopped(pen_worker *worker, uint64_t generation) {
    pen_message message = {.kind = PEN_MESSAGE_STOPPED, .generation = generation};
    pen_mutex_lock(&worker->lock);
    memcpy(message.text, worker->waits, sizeof message.text);
    worker->waits[0] = '\0';
    pen_mutex_unlock(&worker->lock);
    pen_worker_tell(worker, 0, &message);
}

// The run is given up because something did not come, which the coordinator is told.
static void member_give_up(pen_worker *worker, const pen_member_action *action) {
    const pen_member_options *options = &worker->member.options;
    pen_status status = pen_error(PEN_DEADLINE, "%s within %.4g s",
                                  pen_member_wait_text(action->wait), (double)options->load * 1e-9);
    pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
    pen_worker_fail(worker, status);
}

static void member_note_stuck(pen_worker *worker, const pen_member_action *action) {
    char computed[PEN_MESSAGE_TEXT_BYTES];
    pen_mutex_lock(&worker->lock);
    worker->is_stuck = true;
    memcpy(computed, worker->computed, sizeof computed);
    pen_mutex_unlock(&worker->lock);
    pen_log(PEN_LOG_ERROR, "this worker cannot go on: %s%s%s", pen_member_wait_text(action->wait),
            computed[0] == '\0' ? "" : "; when it was to be, ", computed);
}

bool pen_worker_keep_waits(pen_worker *worker, bool *out_computes) {
    char waits[PEN_MESSAGE_TEXT_BYTES];
    pen_worker_run *run = pen_worker_use_run(worker);
    *out_computes = false;
    if (run == NULL) return false;
    pen_worker_run_describe_waits(run, waits, sizeof waits, out_computes);
    pen_worker_release_run(worker);
    pen_mutex_lock(&worker->lock);
    memcpy(worker->waits, waits, sizeof waits);
    const size_t length = *out_computes ? strcspn(waits, "\n") : 0;
    snprintf(worker->computed, sizeof worker->computed, "%.*s", (int)length, waits);
    pen_mutex_unlock(&worker->lock);
    return true;
}

// Loading and leaving take long and are done by the worker's own thread; the rest is a message
// each.
void pen_worker_carry_out(pen_worker *worker, const pen_member_action *actions, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        switch (actions[i].kind) {
        case PEN_MEMBER_ACTION_HELLO:
            member_greet(worker, actions[i].generation);
            break;
        case PEN_MEMBER_ACTION_PULL:
            member_pull(worker, actions[i].generation);
            break;
        case PEN_MEMBER_ACTION_BEAT:
            member_beat(worker, actions[i].generation);
            break;
        case PEN_MEMBER_ACTION_STOPPED:
            member_tell_stopped(worker, actions[i].generation);
            break;
        case PEN_MEMBER_ACTION_LATE:
            member_give_up(worker, &actions[i]);
            break;
        case PEN_MEMBER_ACTION_STUCK:
            member_note_stuck(worker, &actions[i]);
            break;
        case PEN_MEMBER_ACTION_LOAD: // noted
        case PEN_MEMBER_ACTION_LEAVE:
        case PEN_MEMBER_ACTION_DISCONNECT:
            break;
        }
    }
}

void pen_worker_step(pen_worker *worker, const pen_member_event *event) {
    pen_member_action actions[PEN_MEMBER_ACTION_LIMIT];
    pen_member_event now = *event;
    uint32_t count = 0;
    pen_mutex_lock(&worker->lock);
    now.now = pen_worker_now();
    pen_member_core_step(&worker->member, &now, actions, &count);
    if (event->kind != PEN_MEMBER_EVENT_TICK || count > 0) {
        pen_worker_note(worker, actions, count);
    }
    pen_mutex_unlock(&worker->lock);
    pen_worker_carry_out(worker, actions, count);
}

// The coordinator is told first, with what this worker waited for; then the member core decides how
// to leave the run.
void pen_worker_fail(pen_worker *worker, pen_status take_status) {
    const pen_member_event failed = {.kind = PEN_MEMBER_EVENT_FAILED};
    pen_message message = {.kind = PEN_MESSAGE_FAIL,
                           .code = (uint32_t)pen_status_get_code(take_status)};
    bool computes;
    pen_status_format(take_status, message.text, sizeof message.text);
    pen_worker_tell(worker, 0, &message);
    const bool has_run = pen_worker_keep_waits(worker, &computes);
    pen_mutex_lock(&worker->lock);
    if (!has_run) worker->waits[0] = '\0';
    if (worker->options.is_once) {
        worker->result = pen_status_join(worker->result, take_status);
    } else {
        pen_status_ignore(take_status, "the coordinator was told");
    }
    pen_mutex_unlock(&worker->lock);
    pen_worker_step(worker, &failed);
}

void pen_worker_keep_time(void *context) {
    pen_worker *worker = context;
    const pen_member_event tick = {.kind = PEN_MEMBER_EVENT_TICK};
    pen_mutex_lock(&worker->lock);
    while (!worker->is_over || !worker->is_closed) {
        const double beat = (double)worker->member.options.beat * 1e-9;
        (void)pen_condition_wait_for(&worker->ticked, &worker->lock, beat);
        const bool disconnects = worker->wants_disconnect;
        worker->wants_disconnect = false;
        pen_mutex_unlock(&worker->lock);
        if (disconnects) worker->transport->kind->disconnect(worker->transport, 0);
        pen_worker_step(worker, &tick);
        pen_mutex_lock(&worker->lock);
    }
    pen_mutex_unlock(&worker->lock);
}

// ---- what happens in a run

static void member_on_loss(void *context, uint64_t round, uint32_t microbatch, uint32_t stage,
                           const pen_run_loss *loss) {
    pen_message message = {.kind = PEN_MESSAGE_LOSS,
                           .round = round,
                           .microbatch = microbatch,
                           .stage = stage,
                           .correct_count = loss->correct_count,
                           .term_count = loss->term_count,
                           .made = loss->made};
    memcpy(&message.value, &loss->sum, sizeof loss->sum);
    memcpy(message.terms, loss->terms, sizeof message.terms);
    pen_worker_tell(context, 0, &message);
    (void)PEN_FAILPOINT("worker.loss_sent");
}

static void member_on_seen(void *context, uint64_t round, uint32_t microbatch,
                           const pen_run_seen *seen) {
    for (uint64_t at = 0; at < seen->byte_count; at += PEN_MESSAGE_PART_LIMIT) {
        pen_message message = {
            .kind = PEN_MESSAGE_SEEN,
            .round = round,
            .microbatch = microbatch,
            .number = seen->number,
            .offset = at,
            .byte_count = seen->byte_count,
            .bytes = (const char *)seen->bytes + at,
            .bytes_length = (size_t)pen_min_u64(seen->byte_count - at, PEN_MESSAGE_PART_LIMIT)};
        pen_worker_tell(context, 0, &message);
    }
}

static void member_on_gradient(void *context, uint64_t round, uint32_t microbatch, uint32_t stage) {
    pen_message message = {
        .kind = PEN_MESSAGE_GRADIENT, .round = round, .microbatch = microbatch, .stage = stage};
    pen_worker_tell(context, 0, &message);
}

static void member_on_round_done(void *context, uint64_t round, const unsigned char *figures,
                                 size_t length) {
    pen_message message = {
        .kind = PEN_MESSAGE_ROUND_DONE, .round = round, .bytes = figures, .bytes_length = length};
    pen_worker_tell(context, 0, &message);
}

static void member_on_credit(void *context, uint32_t peer, uint32_t form, uint32_t channel,
                             uint64_t sequence) {
    pen_message message = {
        .kind = PEN_MESSAGE_CREDIT, .form = form, .channel = channel, .sequence = sequence};
    pen_worker_tell(context, peer, &message);
}

static void member_on_ready(void *context) {
    pen_worker *worker = context;
    pen_message message = {.kind = PEN_MESSAGE_READY, .number = worker->seen};
    char lacks[PEN_MESSAGE_TEXT_BYTES] = "";
    pen_mutex_lock(&worker->lock);
    const pen_worker_run *run = worker->run;
    pen_mutex_unlock(&worker->lock);
    if (run != NULL) {
        pen_worker_run_identify(run, message.text, sizeof message.text);
        pen_worker_run_lacks(run, lacks, sizeof lacks);
    }
    message.bytes = lacks;
    message.bytes_length = strlen(lacks);
    pen_worker_tell(worker, 0, &message);
}

static void member_on_piece_taken(void *context, uint64_t sequence) {
    pen_message message = {.kind = PEN_MESSAGE_TAKEN, .sequence = sequence};
    pen_worker_tell(context, 0, &message);
}

static void member_on_failed(void *context, pen_status take_status) {
    pen_worker_fail(context, take_status);
}

static void member_on_snapped(void *context, const pen_run_saved *saved) {
    pen_message message = {.kind = PEN_MESSAGE_SNAPPED,
                           .generation = saved->generation,
                           .sequence = saved->order,
                           .step = saved->step};
    pen_worker_tell(context, 0, &message);
    (void)PEN_FAILPOINT("worker.snapped");
}

// `summary` NULL and no error: there was nothing to be written.
static void member_on_shard(void *context, const pen_run_saved *saved, pen_status take_status,
                            const pen_shard_summary *summary) {
    pen_message message = {.kind = PEN_MESSAGE_SHARD,
                           .generation = saved->generation,
                           .sequence = saved->order,
                           .step = saved->step};
    pen_status status = take_status;
    pen_arena *arena = NULL;
    const char *bytes = NULL;
    uint64_t count = 0;
    if (status == PEN_OK) status = pen_arena_create(&arena);
    if (status == PEN_OK && summary != NULL) {
        status = pen_shard_summary_encode(summary, arena, &bytes, &count);
    }
    if (status == PEN_OK && count > PEN_MESSAGE_PART_LIMIT) {
        status = pen_error(PEN_DOES_NOT_FIT, "shard '%s' has too many bytes for one: %llu",
                           summary->file, (unsigned long long)summary->bytes);
    }
    if (status != PEN_OK) {
        message.code = (uint32_t)pen_status_get_code(status);
        snprintf(message.text, sizeof message.text, "%s", pen_status_message(status));
        pen_log(PEN_LOG_WARNING, "the checkpoint of step %llu is not written here: %s",
                (unsigned long long)saved->step, pen_status_message(status));
        pen_status_ignore(status, "the coordinator is told");
        count = 0;
    }
    message.bytes = bytes;
    message.bytes_length = (size_t)count;
    pen_worker_tell(context, 0, &message);
    pen_arena_destroy(arena);
    (void)PEN_FAILPOINT("worker.shard_told");
}

pen_worker_run_events pen_worker_run_listeners(pen_worker *worker) {
    return (pen_worker_run_events){.context = worker,
                                   .loss = member_on_loss,
                                   .seen = member_on_seen,
                                   .gradient = member_on_gradient,
                                   .round_done = member_on_round_done,
                                   .credit = member_on_credit,
                                   .ready = member_on_ready,
                                   .piece_taken = member_on_piece_taken,
                                   .failed = member_on_failed,
                                   .snapped = member_on_snapped,
                                   .shard = member_on_shard};
}

// ---- what happens in a survey

static void member_on_survey_credit(void *context, uint32_t peer, uint64_t sequence) {
    member_on_credit(context, peer, 0, 0, sequence);
}

static bool member_is_over(void *context) {
    pen_worker *worker = context;
    pen_mutex_lock(&worker->lock);
    const bool is_over = worker->wants_leave || worker->is_closed;
    pen_mutex_unlock(&worker->lock);
    return is_over;
}

pen_worker_survey_options pen_worker_survey_listeners(pen_worker *worker) {
    return (pen_worker_survey_options){.context = worker,
                                       .credit = member_on_survey_credit,
                                       .failed = member_on_failed,
                                       .is_over = member_is_over};
}
