// What comes to a worker from the transport: links, messages, frames.

#include <stdio.h>
#include <string.h>

#include "base/build.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/runtime/run_inquiry.h"
#include "scheduler/runtime/worker_inside.h"

#define WORKER_BLOB_LIMIT ((uint64_t)1 << 32)

// ---- from the transport

// Whether a frame from `peer` is being written: until then its memory stays. With the lock.
static void worker_note_arrival(pen_worker *worker, uint32_t peer, bool is_arriving) {
    if (worker->is_arriving[peer] == is_arriving) return;
    worker->is_arriving[peer] = is_arriving;
    worker->arriving_count += is_arriving ? 1 : UINT32_MAX;
    if (worker->arriving_count == 0) pen_condition_broadcast(&worker->changed);
}

// The run, which stays until worker_release_run; NULL: there is none.
static pen_worker_run *worker_use_run(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    pen_worker_run *run = worker->run;
    if (run != NULL) worker->callback_count += 1;
    pen_mutex_unlock(&worker->lock);
    return run;
}

static void worker_release_run(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    worker->callback_count -= 1;
    if (worker->callback_count == 0 && worker->state == WORKER_LEAVING) {
        pen_condition_broadcast(&worker->changed);
    }
    pen_mutex_unlock(&worker->lock);
}

static pen_status worker_accept(void *context, const pen_introduction *introduction,
                                const char *address) {
    pen_worker *worker = context;
    pen_status status = PEN_OK;
    (void)address;
    pen_mutex_lock(&worker->lock);
    if (worker->is_closed) {
        status = pen_error(PEN_CANCELLED, "this worker ends");
    } else if (introduction->peer == 0 && worker->state != WORKER_IDLE) {
        status = pen_error(PEN_UNAVAILABLE, "this worker serves another coordinator");
    } else if (introduction->peer >= WORKER_PEERS) {
        status = pen_error(PEN_CORRUPT, "there is no worker %u", introduction->peer);
    } else if (introduction->peer != 0 &&
               (worker->run == NULL || worker->generation != introduction->generation)) {
        status = pen_error(PEN_UNAVAILABLE, "this worker is not in generation %llu yet",
                           (unsigned long long)introduction->generation);
    } else if (introduction->peer == 0) {
        worker->generation = introduction->generation;
        snprintf(worker->job, sizeof worker->job, "%s",
                 introduction->job == NULL ? "" : introduction->job);
    }
    pen_mutex_unlock(&worker->lock);
    return status;
}

static void worker_greet(pen_worker *worker) {
    pen_message message = {.kind = PEN_MESSAGE_HELLO};
    snprintf(message.build, sizeof message.build, "%s", pen_build_name());
    snprintf(message.isa, sizeof message.isa, "%s", worker->numerics);
    snprintf(message.address, sizeof message.address, "%s", worker->address);
    pen_worker_tell(worker, 0, &message);
}
static void worker_up(void *context, uint32_t peer) {
    pen_worker *worker = context;
    pen_mutex_lock(&worker->lock);
    worker->is_up[peer] = true;
    if (peer == 0) worker->state = WORKER_GREETED;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
    if (peer == 0) worker_greet(worker);
}

// A link that ends is a peer that is lost; what its bytes had wrong stays what it is.
static pen_status worker_blame_peer(uint32_t peer, pen_status take_reason) {
    if (pen_status_get_code(take_reason) != PEN_CANCELLED) {
        return pen_status_add_context(take_reason, "lost the link to worker %u", peer);
    }
    const pen_status lost = pen_error(PEN_UNAVAILABLE, "lost the link to worker %u: %s", peer,
                                      pen_status_message(take_reason));
    pen_status_ignore(take_reason, "its text is in the error");
    return lost;
}

static void worker_down(void *context, uint32_t peer, pen_status take_reason) {
    pen_worker *worker = context;
    pen_worker_run *run = worker_use_run(worker);
    pen_mutex_lock(&worker->lock);
    worker->is_up[peer] = false;
    worker_note_arrival(worker, peer, false);
    const bool is_expected = worker->state == WORKER_LEAVING || worker->is_closed;
    if (peer == 0 && worker->state != WORKER_IDLE) worker->wants_leave = true;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
    if (peer != 0 && run != NULL && !is_expected) {
        pen_worker_run_fail(run, worker_blame_peer(peer, take_reason));
    } else {
        pen_status_ignore(take_reason, "the coordinator says what went wrong, or nothing did");
    }
    if (run != NULL) worker_release_run(worker);
}

static pen_status worker_begin(void *context, uint32_t peer, const pen_frame *frame,
                               void **out_memory) {
    pen_worker *worker = context;
    if (frame->kind == PEN_FRAME_BLOB) {
        pen_mutex_lock(&worker->lock);
        const bool is_asked = peer == 0 && worker->state == WORKER_PULLING &&
                              !worker->is_blob_begun && frame->bytes == worker->blob_bytes &&
                              frame->offset == 0;
        *out_memory = worker->blob;
        if (is_asked) {
            worker->is_blob_begun = true;
            worker_note_arrival(worker, peer, true);
        }
        pen_mutex_unlock(&worker->lock);
        if (is_asked) return PEN_OK;
        return pen_error(PEN_CORRUPT, "a description of %llu bytes that was not asked for",
                         (unsigned long long)frame->bytes);
    }
    pen_worker_run *run = worker_use_run(worker);
    if (run == NULL) return pen_error(PEN_UNAVAILABLE, "a tensor came while nothing runs here");
    const pen_status status = pen_worker_run_begin(run, peer, frame, out_memory);
    if (status == PEN_OK) {
        pen_mutex_lock(&worker->lock);
        worker_note_arrival(worker, peer, true);
        pen_mutex_unlock(&worker->lock);
    }
    worker_release_run(worker);
    return status;
}

static void worker_end_blob(pen_worker *worker, const uint32_t *checksums, uint64_t bytes) {
    pen_mutex_lock(&worker->lock);
    memcpy(worker->blob_checksums, checksums,
           pen_frame_chunk_count(bytes) * sizeof *worker->blob_checksums);
    worker->wants_load = true;
    worker_note_arrival(worker, 0, false);
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
}

static void worker_end(void *context, uint32_t peer, const pen_frame *frame,
                       const uint32_t *checksums) {
    pen_worker *worker = context;
    if (frame->kind == PEN_FRAME_BLOB) {
        worker_end_blob(worker, checksums, frame->bytes);
        return;
    }
    pen_worker_run *run = worker_use_run(worker);
    PEN_ASSERT(run != NULL); // it waits for what arrives
    pen_worker_run_end(run, peer, frame, checksums);
    pen_mutex_lock(&worker->lock);
    worker_note_arrival(worker, peer, false);
    pen_mutex_unlock(&worker->lock);
    worker_release_run(worker);
}

static void worker_let_go(void *context, uint32_t peer, uint64_t token) {
    pen_worker *worker = context;
    (void)peer;
    pen_worker_run *run = worker_use_run(worker);
    PEN_ASSERT(run != NULL); // it waits for what it has lent
    pen_worker_run_let_go(run, token);
    worker_release_run(worker);
}

// ---- messages

// Asks for the description, or goes on with that which is at hand.
static pen_status worker_assign(pen_worker *worker, const pen_message *message) {
    const uint32_t chunks = pen_frame_chunk_count(message->byte_count);
    pen_status status = PEN_OK;
    const bool is_local = worker->options.spec != NULL;
    pen_mutex_lock(&worker->lock);
    if (worker->state != WORKER_GREETED) {
        status = pen_error(PEN_CORRUPT, "assigned twice");
    } else if (!is_local && (message->byte_count == 0 || message->byte_count > WORKER_BLOB_LIMIT)) {
        status = pen_error(PEN_CORRUPT, "a description of %llu bytes",
                           (unsigned long long)message->byte_count);
    } else if (!is_local) {
        // the checksums follow the description
        worker->blob = pen_memory_allocate(message->byte_count + (uint64_t)chunks * 4 + 64, 1);
        if (worker->blob == NULL) status = pen_error_out_of_memory();
    }
    if (status == PEN_OK) {
        const uint64_t place = (message->byte_count + 63) / 64 * 64;
        worker->blob_bytes = message->byte_count;
        worker->is_blob_begun = false;
        if (!is_local) worker->blob_checksums = (uint32_t *)(void *)((char *)worker->blob + place);
        worker->number = message->worker;
        worker->generation = message->generation;
        worker->state = WORKER_PULLING;
        worker->wants_load = is_local;
        pen_condition_broadcast(&worker->changed);
    }
    pen_mutex_unlock(&worker->lock);
    if (status != PEN_OK || is_local) return status;
    pen_message pull = {
        .kind = PEN_MESSAGE_PULL, .frame_kind = PEN_FRAME_BLOB, .byte_count = message->byte_count};
    pen_worker_tell(worker, 0, &pull);
    return PEN_OK;
}

static pen_status worker_on_round(pen_worker_run *run, const pen_message *message) {
    pen_run_round round = {.round = message->round,
                           .form = message->form,
                           .count = message->count,
                           .updates = message->updates,
                           .step = message->step,
                           .first_microbatch = message->first_microbatch};
    memcpy(&round.loss_weight, &message->value, sizeof round.loss_weight);
    memcpy(&round.learning_rate, &message->learning_rate, sizeof round.learning_rate);
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
        event.kind = PEN_WORKER_EVENT_GO;
        return pen_worker_run_feed(run, &event);
    case PEN_MESSAGE_CREDIT:
        event.kind = PEN_WORKER_EVENT_CREDIT;
        return pen_worker_run_feed(run, &event);
    case PEN_MESSAGE_ROUND:
        return worker_on_round(run, message);
    case PEN_MESSAGE_PULL:
        return worker_on_pull(run, message);
    case PEN_MESSAGE_ASK:
        return pen_run_inquiry_answer(run, worker->transport, message);
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
    case PEN_MESSAGE_COMMITTED:
        break;
    }
    return pen_error(PEN_CORRUPT, "a message of the kind %s, which no worker is sent",
                     pen_message_kind_name(message->kind));
}

static void worker_stop(pen_worker *worker, bool tells) {
    pen_worker_run *run = worker_use_run(worker);
    bool is_running;
    worker->waits[0] = '\0';
    if (run != NULL) {
        pen_worker_run_describe_waits(run, worker->waits, sizeof worker->waits, &is_running);
        worker_release_run(worker);
    }
    pen_mutex_lock(&worker->lock);
    worker->wants_leave = true;
    worker->sends_stopped = tells;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
}

static void worker_answer_ping(pen_worker *worker, const pen_message *ping) {
    pen_message pong = {.kind = PEN_MESSAGE_PONG,
                        .sequence = ping->sequence,
                        .clock = ping->clock,
                        .clock_here = (uint64_t)(pen_clock_seconds() * 1e9)};
    pen_worker_tell(worker, 0, &pong);
}

static pen_status worker_take_message(pen_worker *worker, uint32_t peer,
                                      const pen_message *message) {
    if (message->generation != worker->generation) return PEN_OK; // of another run
    if (peer != 0 && message->kind != PEN_MESSAGE_CREDIT) {
        return pen_error(PEN_CORRUPT, "worker %u sent a message of the kind %s", peer,
                         pen_message_kind_name(message->kind));
    }
    if (message->kind == PEN_MESSAGE_ASSIGN) return worker_assign(worker, message);
    if (message->kind == PEN_MESSAGE_STOP || message->kind == PEN_MESSAGE_FAIL) {
        worker_stop(worker, message->kind == PEN_MESSAGE_STOP);
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
    pen_worker_run *run = worker_use_run(worker);
    if (run == NULL) return PEN_OK; // given up meanwhile
    const pen_status status = worker_on_run_message(worker, run, message);
    worker_release_run(worker);
    return status;
}

static void worker_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    pen_worker *worker = context;
    pen_message message;
    pen_status status = pen_message_decode(bytes, (size_t)count, &message);
    if (status == PEN_OK) status = worker_take_message(worker, peer, &message);
    if (status == PEN_OK) return;
    pen_worker_tell_failure(worker, status);
    pen_mutex_lock(&worker->lock);
    worker->result = pen_status_join(worker->result, status);
    pen_mutex_unlock(&worker->lock);
    worker_stop(worker, false);
}

pen_transport_events pen_worker_events(pen_worker *worker) {
    return (pen_transport_events){.context = worker,
                                  .accept = worker_accept,
                                  .up = worker_up,
                                  .down = worker_down,
                                  .message = worker_message,
                                  .begin = worker_begin,
                                  .end = worker_end,
                                  .let_go = worker_let_go};
}
