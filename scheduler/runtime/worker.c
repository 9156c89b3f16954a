#include "scheduler/runtime/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "device/device.h"
#include "scheduler/protocol/message.h"
#include "scheduler/runtime/run_inquiry.h"
#include "scheduler/runtime/worker_run.h"
#include "scheduler/transport/checksum.h"

#define WORKER_PEERS 4097 // that may be linked
#define WORKER_LINK_SECONDS 60.0
#define WORKER_DRAIN_SECONDS 30.0
#define WORKER_BLOB_LIMIT ((uint64_t)1 << 32)

typedef enum worker_state {
    WORKER_IDLE,
    WORKER_GREETED, // the coordinator is linked
    WORKER_PULLING, // the description is on its way
    WORKER_LOADING,
    WORKER_RUNNING,
    WORKER_LEAVING, // what ran is given up
} worker_state;

struct pen_worker {
    pen_worker_options options;
    pen_transport *transport;
    pen_thread *thread;
    uint64_t incarnation;
    char address[PEN_MESSAGE_NAME_BYTES];
    pen_arena *numerics_arena;
    const char *numerics;
    pen_arena *arena; // of the run

    pen_mutex lock;
    pen_condition changed;
    // guarded by lock
    worker_state state;
    bool wants_load;
    bool wants_leave;
    bool is_closed;
    bool is_over;            // nothing will run any more
    bool sends_stopped;      // the coordinator asked to stop and is to be told
    uint32_t callback_count; // of the transport, that use the run now
    pen_worker_run *run;
    bool is_up[WORKER_PEERS];
    char job[PEN_MESSAGE_JOB_BYTES]; // of the coordinator
    uint64_t generation;
    uint32_t number; // among the workers of the run
    void *blob;
    uint64_t blob_bytes;
    uint32_t *blob_checksums;
    pen_status result; // of the only run
};

// ---- telling the coordinator and others

static void worker_tell(pen_worker *worker, uint32_t peer, pen_message *message) {
    uint8_t bytes[PEN_MESSAGE_ROOM];
    message->protocol = PEN_PROTOCOL_VERSION;
    message->incarnation = worker->incarnation;
    if (message->generation == 0) message->generation = worker->generation;
    snprintf(message->job, sizeof message->job, "%s", worker->job);
    const size_t length = pen_message_encode(message, bytes, sizeof bytes);
    PEN_ASSERT(length <= sizeof bytes);
    pen_status_ignore(worker->transport->kind->send_message(worker->transport, peer, bytes, length),
                      "a link that is down is told of by `down`");
}

static void worker_tell_failure(pen_worker *worker, pen_status status) {
    pen_message message = {.kind = PEN_MESSAGE_FAIL, .code = (uint32_t)pen_status_get_code(status)};
    pen_status_format(status, message.text, sizeof message.text);
    worker_tell(worker, 0, &message);
}

static void worker_greet(pen_worker *worker) {
    pen_message message = {.kind = PEN_MESSAGE_HELLO};
    snprintf(message.build, sizeof message.build, "%s", PEN_VERSION);
    snprintf(message.isa, sizeof message.isa, "%s", worker->numerics);
    snprintf(message.address, sizeof message.address, "%s", worker->address);
    worker_tell(worker, 0, &message);
}

// ---- what happens in a run

static void worker_on_loss(void *context, uint64_t round, uint32_t microbatch, uint32_t stage,
                           double loss, int64_t correct) {
    pen_message message = {.kind = PEN_MESSAGE_LOSS,
                           .round = round,
                           .microbatch = microbatch,
                           .stage = stage,
                           .correct_count = (uint64_t)correct};
    memcpy(&message.value, &loss, sizeof loss);
    worker_tell(context, 0, &message);
}

static void worker_on_round_done(void *context, uint64_t round, const pen_round_figures *figures,
                                 uint32_t figure_count) {
    pen_message message = {.kind = PEN_MESSAGE_ROUND_DONE, .round = round};
    message.bytes = figures;
    message.bytes_length = figure_count * sizeof *figures;
    worker_tell(context, 0, &message);
}

static void worker_on_credit(void *context, uint32_t peer, uint32_t form, uint32_t channel,
                             uint64_t sequence) {
    pen_message message = {
        .kind = PEN_MESSAGE_CREDIT, .form = form, .channel = channel, .sequence = sequence};
    worker_tell(context, peer, &message);
}

static void worker_on_ready(void *context) {
    pen_message message = {.kind = PEN_MESSAGE_READY};
    worker_tell(context, 0, &message);
}

static void worker_on_piece_taken(void *context, uint64_t sequence) {
    pen_message message = {.kind = PEN_MESSAGE_TAKEN, .sequence = sequence};
    worker_tell(context, 0, &message);
}

static void worker_on_failed(void *context, pen_status take_status) {
    pen_worker *worker = context;
    worker_tell_failure(worker, take_status);
    pen_mutex_lock(&worker->lock);
    worker->result = pen_status_join(worker->result, take_status);
    pen_mutex_unlock(&worker->lock);
}

// ---- loading and leaving, on the worker's thread

static bool worker_needs_peer(const pen_run_table *table, uint32_t me, uint32_t peer) {
    for (uint32_t f = 0; f < table->form_count; f++) {
        const pen_run_form *form = &table->forms[f];
        for (uint32_t c = 0; c < form->channel_count; c++) {
            const pen_run_channel *channel = &form->channels[c];
            const uint32_t source = channel->source_worker, target = channel->target_worker;
            if ((source == me && target == peer) || (source == peer && target == me)) return true;
        }
    }
    return false;
}

// Waits until `peer` is linked or all is over.
static pen_status worker_await_link(pen_worker *worker, const pen_run_spec *spec, uint32_t peer) {
    const double deadline = pen_clock_seconds() + WORKER_LINK_SECONDS;
    pen_status status = PEN_OK;
    pen_mutex_lock(&worker->lock);
    while (!worker->is_up[peer] && !worker->wants_leave && !worker->is_closed) {
        const double left = deadline - pen_clock_seconds();
        if (left <= 0) break;
        (void)pen_condition_wait_for(&worker->changed, &worker->lock, left);
    }
    if (!worker->is_up[peer]) {
        status = pen_error(PEN_DEADLINE, "no link to %s within %.0f s", spec->workers[peer].name,
                           WORKER_LINK_SECONDS);
    }
    pen_mutex_unlock(&worker->lock);
    return status;
}

static pen_status worker_link(pen_worker *worker, const pen_run_spec *spec) {
    const pen_run_table *table = spec->table;
    const uint32_t me = worker->number;
    const pen_introduction self = {.job = worker->job,
                                   .peer = me,
                                   .generation = worker->generation,
                                   .incarnation = worker->incarnation};
    PEN_TRY(worker->transport->kind->introduce(worker->transport, &self));
    for (uint32_t peer = me + 1; peer <= table->worker_count; peer++) {
        if (!worker_needs_peer(table, me, peer)) continue;
        PEN_TRY(worker->transport->kind->connect(worker->transport, peer,
                                                 spec->workers[peer].address, WORKER_LINK_SECONDS));
    }
    for (uint32_t peer = 1; peer <= table->worker_count; peer++) {
        if (peer == me || !worker_needs_peer(table, me, peer)) continue;
        PEN_TRY(worker_await_link(worker, spec, peer));
    }
    return PEN_OK;
}

static pen_status worker_read_spec(pen_worker *worker, const pen_run_spec **out_spec) {
    *out_spec = worker->options.spec;
    if (worker->options.spec != NULL) return PEN_OK;
    const uint32_t chunks = pen_frame_chunk_count(worker->blob_bytes);
    if (pen_checksum_find_difference(worker->blob, worker->blob_bytes, worker->blob_checksums) !=
        chunks) {
        return pen_error(PEN_CORRUPT, "the description was damaged on the way");
    }
    PEN_TRY(pen_run_spec_decode(worker->blob, worker->blob_bytes, worker->arena, out_spec));
    if ((*out_spec)->table->worker_count >= worker->number && worker->number > 0) return PEN_OK;
    return pen_error(PEN_CORRUPT, "assigned as worker %u of %u", worker->number,
                     (*out_spec)->table->worker_count);
}

static pen_status worker_load(pen_worker *worker) {
    const pen_run_spec *spec;
    pen_worker_run *run;
    PEN_TRY(worker_read_spec(worker, &spec));
    const pen_worker_run_options options = {.spec = spec,
                                            .worker = worker->number,
                                            .generation = worker->generation,
                                            .incarnation = worker->incarnation,
                                            .defer_contents = worker->options.spec == NULL,
                                            .loaded = worker->options.loaded,
                                            .model = worker->options.model,
                                            .transport = worker->transport,
                                            .events = {worker, worker_on_loss, worker_on_round_done,
                                                       worker_on_credit, worker_on_ready,
                                                       worker_on_piece_taken, worker_on_failed}};
    PEN_TRY(pen_worker_run_create(&options, &run));
    pen_status status = pen_worker_run_load(run);
    if (status != PEN_OK) {
        pen_worker_run_destroy(run);
        return status;
    }
    pen_mutex_lock(&worker->lock);
    worker->run = run;
    worker->state = WORKER_RUNNING;
    pen_mutex_unlock(&worker->lock);
    PEN_TRY(worker_link(worker, spec));
    return pen_worker_run_set_ready(run);
}

// Takes the run away from the transport's thread; waits until the transport reads none of its
// memory. NULL: there was none.
static pen_worker_run *worker_take_run(pen_worker *worker) {
    const double deadline = pen_clock_seconds() + WORKER_DRAIN_SECONDS;
    pen_mutex_lock(&worker->lock);
    pen_worker_run *run = worker->run;
    pen_mutex_unlock(&worker->lock);
    if (run == NULL) return NULL;
    pen_worker_run_close(run);
    for (uint32_t peer = 1; peer < WORKER_PEERS; peer++) {
        pen_mutex_lock(&worker->lock);
        const bool is_up = worker->is_up[peer];
        pen_mutex_unlock(&worker->lock);
        if (is_up) worker->transport->kind->disconnect(worker->transport, peer);
    }
    while (pen_worker_run_lent_count(run) > 0 && pen_clock_seconds() < deadline) {
        pen_mutex_lock(&worker->lock);
        (void)pen_condition_wait_for(&worker->changed, &worker->lock, 0.01);
        pen_mutex_unlock(&worker->lock);
    }
    PEN_ASSERT(pen_worker_run_lent_count(run) == 0); // the transport lets go of all, or has failed
    pen_mutex_lock(&worker->lock);
    worker->run = NULL;
    while (worker->callback_count > 0) {
        pen_condition_wait(&worker->changed, &worker->lock);
    }
    pen_mutex_unlock(&worker->lock);
    return run;
}

static void worker_leave(pen_worker *worker) {
    const pen_introduction nobody = {.peer = PEN_TRANSPORT_ANY_PEER,
                                     .incarnation = worker->incarnation};
    pen_worker_run_destroy(worker_take_run(worker));
    pen_status_ignore(worker->transport->kind->introduce(worker->transport, &nobody),
                      "no name is too long");
    if (worker->arena != NULL) pen_arena_reset(worker->arena);
    pen_mutex_lock(&worker->lock);
    pen_memory_free(worker->blob);
    worker->blob = NULL;
    worker->state = worker->is_up[0] ? WORKER_GREETED : WORKER_IDLE;
    const bool tells = worker->sends_stopped && worker->is_up[0];
    worker->sends_stopped = false;
    worker->wants_leave = false;
    if (worker->options.is_once) worker->is_over = true;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
    pen_message message = {.kind = PEN_MESSAGE_STOPPED};
    if (tells) worker_tell(worker, 0, &message);
}

static void worker_try_load(pen_worker *worker) {
    pen_status status = worker_load(worker);
    if (status == PEN_OK) return;
    worker_tell_failure(worker, status);
    pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
    pen_mutex_lock(&worker->lock);
    worker->result = pen_status_join(worker->result, status);
    worker->wants_leave = true;
    pen_mutex_unlock(&worker->lock);
}

static void worker_main(void *context) {
    pen_worker *worker = context;
    pen_mutex_lock(&worker->lock);
    for (;;) {
        if (worker->wants_leave || (worker->is_closed && worker->state != WORKER_LEAVING)) {
            worker->state = WORKER_LEAVING;
            worker->wants_load = false;
            pen_mutex_unlock(&worker->lock);
            worker_leave(worker);
            pen_mutex_lock(&worker->lock);
            if (worker->is_closed) break;
        } else if (worker->wants_load) {
            worker->wants_load = false;
            worker->state = WORKER_LOADING;
            pen_mutex_unlock(&worker->lock);
            worker_try_load(worker);
            pen_mutex_lock(&worker->lock);
        } else {
            pen_condition_wait(&worker->changed, &worker->lock);
        }
    }
    worker->is_over = true;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
}

// ---- from the transport

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

static void worker_up(void *context, uint32_t peer) {
    pen_worker *worker = context;
    pen_mutex_lock(&worker->lock);
    worker->is_up[peer] = true;
    if (peer == 0) worker->state = WORKER_GREETED;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
    if (peer == 0) worker_greet(worker);
}

static void worker_down(void *context, uint32_t peer, pen_status take_reason) {
    pen_worker *worker = context;
    pen_worker_run *run = worker_use_run(worker);
    pen_mutex_lock(&worker->lock);
    worker->is_up[peer] = false;
    const bool is_expected = worker->state == WORKER_LEAVING || worker->is_closed;
    if (peer == 0 && worker->state != WORKER_IDLE) worker->wants_leave = true;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
    if (peer != 0 && run != NULL && !is_expected) {
        pen_worker_run_fail(
            run, pen_status_add_context(take_reason, "lost the link to worker %u", peer));
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
                              frame->bytes == worker->blob_bytes && frame->offset == 0;
        *out_memory = worker->blob;
        pen_mutex_unlock(&worker->lock);
        if (is_asked) return PEN_OK;
        return pen_error(PEN_CORRUPT, "a description of %llu bytes that was not asked for",
                         (unsigned long long)frame->bytes);
    }
    pen_worker_run *run = worker_use_run(worker);
    if (run == NULL) return pen_error(PEN_UNAVAILABLE, "a tensor came while nothing runs here");
    const pen_status status = pen_worker_run_begin(run, peer, frame, out_memory);
    worker_release_run(worker);
    return status;
}

static void worker_end_blob(pen_worker *worker, const uint32_t *checksums, uint64_t bytes) {
    pen_mutex_lock(&worker->lock);
    memcpy(worker->blob_checksums, checksums,
           pen_frame_chunk_count(bytes) * sizeof *worker->blob_checksums);
    worker->wants_load = true;
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
    if (run == NULL) return; // given up meanwhile
    pen_worker_run_end(run, peer, frame, checksums);
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
    worker_tell(worker, 0, &pull);
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
        break;
    }
    return pen_error(PEN_CORRUPT, "a message of the kind %s, which no worker is sent",
                     pen_message_kind_name(message->kind));
}

static void worker_stop(pen_worker *worker, bool tells) {
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
    worker_tell(worker, 0, &pong);
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
    worker_tell_failure(worker, status);
    pen_mutex_lock(&worker->lock);
    worker->result = pen_status_join(worker->result, status);
    pen_mutex_unlock(&worker->lock);
    worker_stop(worker, false);
}

// ---- making

pen_status pen_worker_describe_numerics(pen_arena *arena, const char **out_text) {
    const pen_device_kind *kind;
    pen_device *device;
    const char *text;
    PEN_TRY(pen_device_kind_find("cpu", &kind));
    const pen_device_options options = {.name = "", .thread_count = 1};
    PEN_TRY(kind->open(&options, &device));
    const pen_status status = kind->describe(device, arena, &text);
    kind->close(device);
    PEN_TRY(status);
    const char *level = strstr(text, "kernel level");
    *out_text = level == NULL ? text : level;
    return PEN_OK;
}

static pen_status worker_start(pen_worker *worker, uint16_t *out_port) {
    const pen_worker_options *options = &worker->options;
    PEN_TRY(pen_arena_create(&worker->arena));
    PEN_TRY(pen_arena_create(&worker->numerics_arena));
    PEN_TRY(pen_worker_describe_numerics(worker->numerics_arena, &worker->numerics));
    const pen_transport_options transport_options = {
        .self = {.peer = PEN_TRANSPORT_ANY_PEER, .incarnation = worker->incarnation},
        .tls = options->tls,
        .is_insecure = options->is_insecure};
    const pen_transport_events events = {.context = worker,
                                         .accept = worker_accept,
                                         .up = worker_up,
                                         .down = worker_down,
                                         .message = worker_message,
                                         .begin = worker_begin,
                                         .end = worker_end,
                                         .let_go = worker_let_go};
    PEN_TRY(options->transport->create(&transport_options, &events, &worker->transport));
    PEN_TRY(pen_thread_create("worker", worker_main, worker, &worker->thread));
    PEN_TRY(options->transport->listen(worker->transport, options->address, out_port));
    snprintf(worker->address, sizeof worker->address, "%s", options->address);
    return PEN_OK;
}

pen_status pen_worker_create(const pen_worker_options *options, pen_worker **out_worker,
                             uint16_t *out_port) {
    pen_worker *worker = pen_memory_allocate(1, sizeof *worker);
    if (worker == NULL) return pen_error_out_of_memory();
    worker->options = *options;
    worker->incarnation = pen_random_incarnation();
    pen_mutex_init(&worker->lock);
    pen_condition_init(&worker->changed);
    const pen_status status = worker_start(worker, out_port);
    if (status != PEN_OK) {
        pen_worker_destroy(worker);
        return status;
    }
    *out_worker = worker;
    return PEN_OK;
}

pen_status pen_worker_join(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    while (!worker->is_over) {
        pen_condition_wait(&worker->changed, &worker->lock);
    }
    pen_status result = PEN_OK;
    if (worker->options.is_once) {
        result = worker->result;
        worker->result = PEN_OK;
    }
    pen_mutex_unlock(&worker->lock);
    return result;
}

void pen_worker_close(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    worker->is_closed = true;
    pen_condition_broadcast(&worker->changed);
    pen_mutex_unlock(&worker->lock);
}

void pen_worker_destroy(pen_worker *worker) {
    if (worker == NULL) return;
    pen_worker_close(worker);
    pen_thread_join(worker->thread);
    if (worker->transport != NULL) {
        const pen_transport_kind *kind = worker->transport->kind;
        kind->close(worker->transport);
        kind->stop(worker->transport);
        kind->destroy(worker->transport);
    }
    pen_status_ignore(worker->result, "the coordinator was told");
    pen_memory_free(worker->blob);
    pen_arena_destroy(worker->arena);
    pen_arena_destroy(worker->numerics_arena);
    pen_condition_deinit(&worker->changed);
    pen_mutex_deinit(&worker->lock);
    pen_memory_free(worker);
}
