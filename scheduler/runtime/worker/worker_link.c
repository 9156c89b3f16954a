// What comes to a worker from the transport: links, messages, frames.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/runtime/run/peer_code.h"
#include "scheduler/runtime/worker/worker_answer.h"
#include "scheduler/runtime/worker/worker_inside.h"

#define WORKER_BLOB_LIMIT ((uint64_t)1 << 32)
#define WORKER_BEATS 20             // in a lease
#define WORKER_BEAT_MOST 250000000u // nanoseconds
#define WORKER_BEAT_LEAST 25000000u

// ---- from the transport

// Whether a frame from `peer` is being written: until then its memory stays. With the lock.
static void worker_note_arrival(pen_worker *worker, uint32_t peer, bool is_arriving) {
    if (worker->is_arriving[peer] == is_arriving) return;
    worker->is_arriving[peer] = is_arriving;
    worker->arriving_count += is_arriving ? 1 : UINT32_MAX;
    if (worker->arriving_count == 0) pen_condition_broadcast(&worker->changed);
}

pen_worker_run *pen_worker_use_run(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    pen_worker_run *run = worker->run;
    if (run != NULL) worker->callback_count += 1;
    pen_mutex_unlock(&worker->lock);
    return run;
}

pen_worker_survey *pen_worker_use_survey(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    pen_worker_survey *survey = worker->survey;
    if (survey != NULL) worker->callback_count += 1;
    pen_mutex_unlock(&worker->lock);
    return survey;
}

void pen_worker_release_run(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    worker->callback_count -= 1;
    if (worker->callback_count == 0 && worker->member.state == PEN_MEMBER_LEAVING) {
        pen_condition_broadcast(&worker->changed);
    }
    pen_mutex_unlock(&worker->lock);
}

// The highest generation of the job that is known here.
static uint64_t worker_highest(const pen_worker *worker, const char *job) {
    for (uint32_t i = 0; i < PEN_MEMBER_JOB_LIMIT; i++) {
        const pen_member_job *known = &worker->member.jobs[i];
        if (strcmp(known->name, job) == 0) return known->generation;
    }
    return 0;
}

// Holds the lock. What is said is retried by the caller where it is UNAVAILABLE.
static pen_status worker_answer(const pen_worker *worker, pen_member_answer answer,
                                const pen_introduction *who, const char *job) {
    switch (answer) {
    case PEN_MEMBER_TAKE:
        if (who->peer == 0 || worker->run != NULL || worker->survey != NULL) return PEN_OK;
        break; // it is being loaded
    case PEN_MEMBER_BUSY:
        return pen_error(PEN_UNAVAILABLE, "this worker serves another coordinator");
    case PEN_MEMBER_SUPERSEDED:
        return pen_error(PEN_CANCELLED, PEN_WORKER_SUPERSEDED " %llu",
                         (unsigned long long)worker_highest(worker, job));
    case PEN_MEMBER_NO_RUN:
        break;
    }
    return pen_error(PEN_UNAVAILABLE, "this worker is not in generation %llu yet",
                     (unsigned long long)who->generation);
}

// Somebody calls. The member core judges whether it may; the link is pending until the transport
// says that it is up.
static pen_status worker_accept(void *context, const pen_introduction *introduction,
                                const char *address) {
    pen_worker *worker = context;
    pen_member_action actions[PEN_MEMBER_ACTION_LIMIT];
    uint32_t count = 0;
    bool leaves = false;
    char job[PEN_MESSAGE_JOB_BYTES];
    (void)address;
    snprintf(job, sizeof job, "%s", introduction->job == NULL ? "" : introduction->job);
    if (introduction->peer >= WORKER_PEERS) {
        return pen_error(PEN_CORRUPT, "there is no worker %u", introduction->peer);
    }
    pen_mutex_lock(&worker->lock);
    const pen_member_answer answer =
        worker->is_closed
            ? PEN_MEMBER_BUSY
            : pen_member_core_judge(&worker->member, introduction->peer, job,
                                    introduction->generation, introduction->incarnation, &leaves);
    const pen_status status = worker_answer(worker, answer, introduction, job);
    const bool is_taken = status == PEN_OK && !introduction->is_misled;
    if (is_taken && introduction->peer == 0) {
        const pen_member_event call = {.kind = PEN_MEMBER_EVENT_CALL,
                                       .now = pen_worker_now(),
                                       .generation = introduction->generation,
                                       .incarnation = introduction->incarnation,
                                       .job = job};
        memcpy(worker->job, job, sizeof worker->job);
        worker->level = introduction->level;
        pen_member_core_step(&worker->member, &call, actions, &count);
    } else if (leaves && !introduction->is_misled) {
        pen_member_core_supersede(&worker->member, actions, &count);
    }
    if (is_taken) worker->links[introduction->peer] = WORKER_LINK_PENDING;
    pen_worker_note(worker, actions, count);
    pen_mutex_unlock(&worker->lock);
    pen_worker_carry_out(worker, actions, count);
    return status;
}

static void worker_up(void *context, uint32_t peer) {
    pen_worker *worker = context;
    const pen_member_event up = {.kind = PEN_MEMBER_EVENT_UP};
    pen_mutex_lock(&worker->lock);
    worker->links[peer] = WORKER_LINK_UP;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
    if (peer == 0) pen_worker_step(worker, &up);
}

// A link that ends is a peer that is lost; what its bytes had wrong stays what it is.
static pen_status worker_blame_peer(uint32_t peer, pen_status take_reason) {
    if (pen_peer_code_is_plain((uint32_t)pen_status_get_code(take_reason))) {
        return pen_status_add_context(take_reason, "lost the link to worker %u", peer);
    }
    const pen_status lost = pen_error(PEN_UNAVAILABLE, "lost the link to worker %u: %s", peer,
                                      pen_status_message(take_reason));
    pen_status_ignore(take_reason, "its text is in the error");
    return lost;
}

// A link that another worker ends is the end of the run or survey; one that the coordinator ends is
// the member core's to judge.
static void worker_down(void *context, uint32_t peer, pen_status take_reason) {
    pen_worker *worker = context;
    const pen_member_event down = {.kind = PEN_MEMBER_EVENT_DOWN};
    pen_worker_run *run = pen_worker_use_run(worker);
    pen_mutex_lock(&worker->lock);
    worker->links[peer] = WORKER_LINK_NONE;
    worker_note_arrival(worker, peer, false);
    if (peer == 0) worker->wants_disconnect = false;
    const bool is_expected = worker->member.state == PEN_MEMBER_LEAVING || worker->is_closed;
    const bool ends_survey = peer != 0 && worker->survey != NULL && !is_expected;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
    if (peer == 0) pen_worker_step(worker, &down);
    if (peer != 0 && run != NULL && !is_expected) {
        pen_worker_run_fail(run, worker_blame_peer(peer, take_reason));
    } else if (ends_survey) {
        pen_worker_fail(worker, worker_blame_peer(peer, take_reason));
    } else {
        pen_status_ignore(take_reason, "the coordinator says what went wrong, or nothing did");
    }
    if (run != NULL) pen_worker_release_run(worker);
}

// A sign of life of the coordinator. Holds the lock.
static void worker_hear(pen_worker *worker) {
    const pen_member_event heard = {.kind = PEN_MEMBER_EVENT_HEARD, .now = pen_worker_now()};
    pen_member_action actions[PEN_MEMBER_ACTION_LIMIT];
    uint32_t count = 0;
    pen_member_core_step(&worker->member, &heard, actions, &count);
    PEN_ASSERT(count == 0);
}

// Nothing runs here: a run that failed was left, or the worker itself ends, which nobody expects.
static pen_status worker_refuse_late(pen_worker *worker, const char *what) {
    pen_mutex_lock(&worker->lock);
    const bool is_closed = worker->is_closed;
    pen_mutex_unlock(&worker->lock);
    return pen_error(PEN_UNAVAILABLE, "a %s came while %s", what,
                     is_closed ? "this worker ends" : PEN_WORKER_LEFT);
}

// The description comes when it was asked for, or late: its run was left while it was on its way.
static pen_status worker_begin_blob(pen_worker *worker, uint32_t peer, const pen_frame *frame,
                                    pen_memory_place *out_place) {
    pen_mutex_lock(&worker->lock);
    const pen_member_core *member = &worker->member;
    const bool is_asked = peer == 0 && member->state == PEN_MEMBER_PULLING &&
                          !worker->is_blob_begun && frame->bytes == worker->blob_bytes &&
                          frame->generation == member->generation && frame->offset == 0 &&
                          worker->blob != NULL;
    const bool is_late = peer == 0 && frame->generation == member->generation &&
                         (member->state == PEN_MEMBER_LEAVING || member->has_left);
    if (is_asked) {
        *out_place = pen_memory_place_at(worker->blob);
        worker->is_blob_begun = true;
        worker_note_arrival(worker, peer, true);
    }
    pen_mutex_unlock(&worker->lock);
    if (is_asked) return PEN_OK;
    if (is_late) return worker_refuse_late(worker, "description");
    return pen_error(PEN_CORRUPT, "a description of %llu bytes that was not asked for",
                     (unsigned long long)frame->bytes);
}

// To a survey, or to nothing.
static pen_status worker_begin_survey(pen_worker *worker, uint32_t peer, const pen_frame *frame,
                                      pen_memory_place *out_place) {
    pen_worker_survey *survey = pen_worker_use_survey(worker);
    if (survey == NULL) return worker_refuse_late(worker, "tensor");
    const pen_status status = pen_worker_survey_begin(survey, peer, frame, out_place);
    if (status == PEN_OK) {
        pen_mutex_lock(&worker->lock);
        worker_note_arrival(worker, peer, true);
        pen_mutex_unlock(&worker->lock);
    }
    pen_worker_release_run(worker);
    return status;
}

static pen_status worker_begin(void *context, uint32_t peer, const pen_frame *frame,
                               pen_memory_place *out_place) {
    pen_worker *worker = context;
    if (frame->kind == PEN_FRAME_BLOB) return worker_begin_blob(worker, peer, frame, out_place);
    pen_worker_run *run = pen_worker_use_run(worker);
    if (run == NULL) return worker_begin_survey(worker, peer, frame, out_place);
    const pen_status status = pen_worker_run_begin(run, peer, frame, out_place);
    if (status == PEN_OK) {
        pen_mutex_lock(&worker->lock);
        if (peer == 0) worker_hear(worker);
        worker_note_arrival(worker, peer, true);
        pen_mutex_unlock(&worker->lock);
    }
    pen_worker_release_run(worker);
    return status;
}

static void worker_end_blob(pen_worker *worker, const uint32_t *checksums, uint64_t bytes) {
    const pen_member_event described = {.kind = PEN_MEMBER_EVENT_DESCRIBED};
    pen_mutex_lock(&worker->lock);
    memcpy(worker->blob_checksums, checksums,
           pen_frame_chunk_count(bytes) * sizeof *worker->blob_checksums);
    worker_note_arrival(worker, 0, false);
    worker_hear(worker);
    pen_mutex_unlock(&worker->lock);
    pen_worker_step(worker, &described);
}

// A whole frame is handed to what it began in, which stays until it has ended.
static void worker_end(void *context, uint32_t peer, const pen_frame *frame,
                       const uint32_t *checksums, bool is_compared) {
    pen_worker *worker = context;
    if (frame->kind == PEN_FRAME_BLOB) {
        worker_end_blob(worker, checksums, frame->bytes);
        return;
    }
    pen_worker_run *run = pen_worker_use_run(worker);
    if (run != NULL) { // either waits for what arrives
        pen_worker_run_end(run, frame, checksums, is_compared);
    } else {
        pen_worker_survey *survey = pen_worker_use_survey(worker);
        PEN_ASSERT(survey != NULL);
        pen_worker_survey_end(survey, peer, checksums, is_compared);
    }
    pen_mutex_lock(&worker->lock);
    if (peer == 0) worker_hear(worker);
    worker_note_arrival(worker, peer, false);
    pen_mutex_unlock(&worker->lock);
    pen_worker_release_run(worker);
}

// A survey has no use for it.
static void worker_summed(void *context, uint32_t peer, uint64_t token) {
    pen_worker *worker = context;
    (void)peer;
    pen_worker_run *run = pen_worker_use_run(worker);
    if (run == NULL) return;
    pen_worker_run_summed(run, token);
    pen_worker_release_run(worker);
}

static void worker_let_go(void *context, uint32_t peer, uint64_t token) {
    pen_worker *worker = context;
    (void)peer;
    pen_worker_run *run = pen_worker_use_run(worker);
    if (run != NULL) { // either waits for what it has lent
        pen_worker_run_let_go(run, token);
    } else {
        pen_worker_survey *survey = pen_worker_use_survey(worker);
        PEN_ASSERT(survey != NULL);
        pen_worker_survey_let_go(survey, token);
    }
    pen_worker_release_run(worker);
}

// ---- messages

// Room for the description. Holds the lock.
static pen_status worker_expect_blob(pen_worker *worker, uint64_t bytes) {
    const uint32_t chunks = pen_frame_chunk_count(bytes);
    if (worker->options.spec != NULL) return PEN_OK;
    if (bytes == 0 || bytes > WORKER_BLOB_LIMIT) {
        return pen_error(PEN_CORRUPT, "a description of %llu bytes", (unsigned long long)bytes);
    }
    PEN_ASSERT(worker->blob == NULL);
    // The checksums follow the description. The system gives the pages as the bytes come.
    worker->blob = pen_memory_allocate_lazily(bytes + (uint64_t)chunks * 4 + 64, 1);
    if (worker->blob == NULL) return pen_error_out_of_memory();
    worker->blob_bytes = bytes;
    worker->is_blob_begun = false;
    worker->blob_checksums = (uint32_t *)(void *)((char *)worker->blob + (bytes + 63) / 64 * 64);
    return PEN_OK;
}

// The assignment sets the lease that this worker keeps, and the size of the description to expect,
// before it is pulled.
static pen_status worker_assign(pen_worker *worker, const pen_message *message) {
    const pen_member_event assign = {.kind = PEN_MEMBER_EVENT_ASSIGN,
                                     .now = pen_worker_now(),
                                     .generation = message->generation,
                                     .incarnation = message->target_incarnation,
                                     .worker = message->worker};
    pen_member_action actions[PEN_MEMBER_ACTION_LIMIT];
    uint32_t count = 0;
    pen_status status = PEN_OK;
    pen_mutex_lock(&worker->lock);
    pen_member_core_step(&worker->member, &assign, actions, &count);
    pen_worker_note(worker, actions, count);
    if (count > 0) { // to be pulled; an assignment that means nothing to us has no action
        const double lease = (double)message->clock;
        worker->member.options.lease = message->clock;
        worker->member.options.beat =
            (uint64_t)(lease > 0 && lease < WORKER_BEAT_MOST * WORKER_BEATS ? lease / WORKER_BEATS
                                                                            : WORKER_BEAT_MOST);
        if (worker->member.options.beat < WORKER_BEAT_LEAST) {
            worker->member.options.beat = WORKER_BEAT_LEAST;
        }
        memcpy(worker->sought, message->text, sizeof worker->sought);
        worker->sought_mark = message->mark;
        pen_condition_signal(&worker->ticked);
        status = worker_expect_blob(worker, message->byte_count);
    }
    pen_mutex_unlock(&worker->lock);
    if (status == PEN_OK) pen_worker_carry_out(worker, actions, count);
    return status;
}

static pen_status worker_on_round(pen_worker_run *run, const pen_message *message) {
    pen_run_round round = {.round = message->round,
                           .form = message->form,
                           .count = message->count,
                           .updates = message->updates,
                           .step = message->step,
                           .update = message->update,
                           .first_microbatch = message->first_microbatch,
                           .epoch = message->epoch,
                           .first_example = message->first_example,
                           .step_microbatches = message->step_microbatches};
    memcpy(&round.loss_weight, &message->value, sizeof round.loss_weight);
    memcpy(&round.learning_rate, &message->learning_rate, sizeof round.learning_rate);
    memcpy(&round.unscale, &message->unscale, sizeof round.unscale);
    return pen_worker_run_add_round(run, &round);
}

static pen_status worker_on_pull(pen_worker_run *run, const pen_message *message) {
    const pen_tensor_piece piece = {.device = message->number / PEN_RUN_TENSOR_VALUES,
                                    .value = message->number % PEN_RUN_TENSOR_VALUES,
                                    .form = message->form,
                                    .offset = message->offset,
                                    .bytes = message->byte_count,
                                    .sequence = message->sequence};
    return pen_worker_run_send_piece(run, &piece);
}

// Of a run; `event` is what the core is told.
static pen_status worker_on_run_message(pen_worker *worker, pen_worker_run *run,
                                        const pen_message *message) {
    pen_worker_event event = {.generation = message->generation,
                              .round = message->round,
                              .form = message->form,
                              .channel = message->channel,
                              .sequence = message->sequence};
    switch (message->kind) {
    case PEN_MESSAGE_START:
        event.kind = PEN_WORKER_EVENT_START;
        return pen_worker_run_feed(run, &event);
    case PEN_MESSAGE_GO:
        return pen_worker_run_go(run, message->round, message->order);
    case PEN_MESSAGE_CREDIT:
        event.kind = PEN_WORKER_EVENT_CREDIT;
        return pen_worker_run_feed(run, &event);
    case PEN_MESSAGE_ROUND:
        return worker_on_round(run, message);
    case PEN_MESSAGE_PULL:
        return worker_on_pull(run, message);
    case PEN_MESSAGE_ASK:
        return pen_worker_answer(run, worker->transport, message);
    case PEN_MESSAGE_COMMITTED:
        pen_worker_run_note_committed(run, message->step);
        return PEN_OK;
    case PEN_MESSAGE_AUDIT:
        return pen_worker_run_note(run, &(pen_run_note){message->round, message->device,
                                                        message->stage, message->microbatch});
    case PEN_MESSAGE_HELLO:
    case PEN_MESSAGE_REFUSED:
    case PEN_MESSAGE_ASSIGN:
    case PEN_MESSAGE_READY:
    case PEN_MESSAGE_LOSS:
    case PEN_MESSAGE_ROUND_DONE:
    case PEN_MESSAGE_OFFER:
    case PEN_MESSAGE_PART:
    case PEN_MESSAGE_PING:
    case PEN_MESSAGE_PONG:
    case PEN_MESSAGE_FAIL:
    case PEN_MESSAGE_STOP:
    case PEN_MESSAGE_STOPPED:
    case PEN_MESSAGE_TAKEN:
    case PEN_MESSAGE_BEAT:
    case PEN_MESSAGE_SNAPSHOT:
    case PEN_MESSAGE_SNAPPED:
    case PEN_MESSAGE_SHARD:
    case PEN_MESSAGE_SURVEY:
    case PEN_MESSAGE_SURVEYED:
    case PEN_MESSAGE_GRADIENT:
    case PEN_MESSAGE_RECOMPUTE:
    case PEN_MESSAGE_RECOMPUTED:
    case PEN_MESSAGE_SEEN:
        break;
    }
    return pen_error(PEN_CORRUPT, "a message of the kind %s, which no worker is sent",
                     pen_message_kind_name(message->kind));
}

// What is waited for is told when the run is left. A device that computes may never end: then it is
// told at once.
static void worker_stop(pen_worker *worker, const pen_message *message) {
    const pen_member_event stop = {
        .kind = message->kind == PEN_MESSAGE_STOP ? PEN_MEMBER_EVENT_STOP : PEN_MEMBER_EVENT_FAILED,
        .generation = message->generation};
    bool computes;
    (void)pen_worker_keep_waits(worker, &computes); // or it was when the run was left
    if (computes) {
        pen_message stopped = {
            .kind = PEN_MESSAGE_STOPPED, .generation = message->generation, .number = 1};
        pen_mutex_lock(&worker->lock);
        memcpy(stopped.text, worker->waits, sizeof stopped.text);
        pen_mutex_unlock(&worker->lock);
        pen_worker_tell(worker, 0, &stopped);
    }
    pen_worker_step(worker, &stop);
}

// The worker's thread saves. An order that comes twice is told by its number, for a step may be
// saved again when it could not be before.
static void worker_on_snapshot(pen_worker *worker, const pen_message *message) {
    pen_mutex_lock(&worker->lock);
    if (message->sequence > worker->save_sequence) {
        worker->wants_save = true;
        worker->save_sequence = message->sequence;
        worker->save_step = message->step;
        worker->save_is_local = message->is_local;
        worker->save_mark = message->mark;
        memcpy(worker->save_folder, message->text, sizeof worker->save_folder);
        pen_condition_broadcast(&worker->changed);
    }
    pen_mutex_unlock(&worker->lock);
}

// The worker's thread measures. One order at a time: the next comes when the last is answered.
static pen_status worker_on_survey(pen_worker *worker, const pen_message *message) {
    const double seconds = (double)message->clock * 1e-9;
    pen_status status = PEN_OK;
    pen_mutex_lock(&worker->lock);
    if (worker->survey == NULL || worker->wants_survey || seconds > PEN_SURVEY_SECONDS_LIMIT) {
        status = pen_error(PEN_CORRUPT, "asked to measure for %.3g s while %s", seconds,
                           worker->survey == NULL ? "this is no survey"
                           : worker->wants_survey ? "the last order waits"
                                                  : "at most a minute goes");
    } else {
        worker->wants_survey = true;
        worker->order = (pen_survey_order){.kind = (pen_survey_kind)message->number,
                                           .device = message->device,
                                           .node = message->node,
                                           .peer = message->worker,
                                           .count = message->count,
                                           .seconds = seconds};
        worker->order_sequence = message->sequence;
        pen_condition_broadcast(&worker->changed);
    }
    pen_mutex_unlock(&worker->lock);
    return status;
}

// Credit is all that a survey is told beside orders; without one the run was given up meanwhile.
static pen_status worker_on_survey_message(pen_worker *worker, uint32_t peer,
                                           const pen_message *message) {
    pen_worker_survey *survey = pen_worker_use_survey(worker);
    pen_status status = PEN_OK;
    if (survey == NULL) return PEN_OK;
    if (message->kind == PEN_MESSAGE_CREDIT) {
        status = pen_worker_survey_take_credit(survey, peer, message->sequence);
    }
    pen_worker_release_run(worker);
    return status;
}

static void worker_answer_ping(pen_worker *worker, const pen_message *ping) {
    pen_message pong = {.kind = PEN_MESSAGE_PONG,
                        .sequence = ping->sequence,
                        .clock = ping->clock,
                        .clock_here = (uint64_t)(pen_clock_seconds() * 1e9)};
    pen_worker_tell(worker, 0, &pong);
}

// Messages of another generation are dropped; other workers may only grant credit. Everything that
// needs the run holds it while it is used.
static pen_status worker_take_message(pen_worker *worker, uint32_t peer,
                                      const pen_message *message) {
    pen_mutex_lock(&worker->lock);
    const bool is_current = message->generation == worker->member.generation;
    if (peer == 0) worker_hear(worker);
    pen_mutex_unlock(&worker->lock);
    if (!is_current) return PEN_OK; // of another run
    if (peer != 0 && message->kind != PEN_MESSAGE_CREDIT) {
        return pen_error(PEN_CORRUPT, "worker %u sent a message of the kind %s", peer,
                         pen_message_kind_name(message->kind));
    }
    if (message->kind == PEN_MESSAGE_BEAT) return PEN_OK; // heard
    if (message->kind == PEN_MESSAGE_ASSIGN) return worker_assign(worker, message);
    if (message->kind == PEN_MESSAGE_STOP || message->kind == PEN_MESSAGE_FAIL) {
        worker_stop(worker, message);
        return PEN_OK;
    }
    if (message->kind == PEN_MESSAGE_REFUSED) {
        pen_log(PEN_LOG_WARNING, "the coordinator does not take this worker: %s", message->text);
        return PEN_OK;
    }
    if (message->kind == PEN_MESSAGE_PING) {
        worker_answer_ping(worker, message);
        return PEN_OK;
    }
    if (message->kind == PEN_MESSAGE_SNAPSHOT) {
        worker_on_snapshot(worker, message);
        return PEN_OK;
    }
    if (message->kind == PEN_MESSAGE_SURVEY) return worker_on_survey(worker, message);
    if (message->kind == PEN_MESSAGE_RECOMPUTE) return pen_worker_recompute(worker, message);
    if (message->kind == PEN_MESSAGE_START) {
        const pen_member_event started = {.kind = PEN_MEMBER_EVENT_STARTED,
                                          .generation = message->generation};
        pen_worker_step(worker, &started);
    }
    pen_worker_run *run = pen_worker_use_run(worker);
    if (run == NULL) return worker_on_survey_message(worker, peer, message);
    const pen_status status = worker_on_run_message(worker, run, message);
    pen_worker_release_run(worker);
    return status;
}

static void worker_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    pen_worker *worker = context;
    pen_message message;
    pen_status status = pen_message_decode(bytes, (size_t)count, &message);
    if (status == PEN_OK) status = worker_take_message(worker, peer, &message);
    if (status != PEN_OK) pen_worker_fail(worker, status);
}

pen_transport_events pen_worker_events(pen_worker *worker) {
    return (pen_transport_events){.context = worker,
                                  .accept = worker_accept,
                                  .up = worker_up,
                                  .down = worker_down,
                                  .message = worker_message,
                                  .begin = worker_begin,
                                  .end = worker_end,
                                  .summed = worker_summed,
                                  .let_go = worker_let_go};
}
