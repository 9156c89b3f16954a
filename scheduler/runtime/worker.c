#include "scheduler/runtime/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/random.h"
#include "device/device.h"
#include "scheduler/runtime/worker_inside.h"
#include "base/checksum.h"

#define WORKER_LINK_SECONDS 60.0
#define WORKER_DRAIN_SECONDS 30.0
#define WORKER_ARRIVAL_SECONDS 2.0

// ---- telling the coordinator and others

void pen_worker_tell(pen_worker *worker, uint32_t peer, pen_message *message) {
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

void pen_worker_tell_failure(pen_worker *worker, pen_status status) {
    pen_message message = {.kind = PEN_MESSAGE_FAIL, .code = (uint32_t)pen_status_get_code(status)};
    pen_status_format(status, message.text, sizeof message.text);
    pen_worker_tell(worker, 0, &message);
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
    pen_worker_tell(context, 0, &message);
}

static void worker_on_round_done(void *context, uint64_t round, const pen_round_figures *figures,
                                 uint32_t figure_count) {
    pen_message message = {.kind = PEN_MESSAGE_ROUND_DONE, .round = round};
    message.bytes = figures;
    message.bytes_length = figure_count * sizeof *figures;
    pen_worker_tell(context, 0, &message);
}

static void worker_on_credit(void *context, uint32_t peer, uint32_t form, uint32_t channel,
                             uint64_t sequence) {
    pen_message message = {
        .kind = PEN_MESSAGE_CREDIT, .form = form, .channel = channel, .sequence = sequence};
    pen_worker_tell(context, peer, &message);
}

static void worker_on_ready(void *context) {
    pen_message message = {.kind = PEN_MESSAGE_READY};
    pen_worker_tell(context, 0, &message);
}

static void worker_on_piece_taken(void *context, uint64_t sequence) {
    pen_message message = {.kind = PEN_MESSAGE_TAKEN, .sequence = sequence};
    pen_worker_tell(context, 0, &message);
}

static void worker_on_failed(void *context, pen_status take_status) {
    pen_worker *worker = context;
    pen_worker_tell_failure(worker, take_status);
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
    pen_mutex_lock(&worker->lock);
    pen_memory_free(worker->blob); // what was decoded borrows nothing
    worker->blob = NULL;
    pen_mutex_unlock(&worker->lock);
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

// Waits until the transport reads none of the run's memory: a peer that no longer reads is left.
static void worker_drain(pen_worker *worker, pen_worker_run *run) {
    double deadline = pen_clock_seconds() + WORKER_DRAIN_SECONDS;
    while (pen_worker_run_lent_count(run) > 0) {
        if (pen_clock_seconds() > deadline) {
            pen_log(PEN_LOG_WARNING, "tensors are still being sent after %.0f s",
                    WORKER_DRAIN_SECONDS);
            worker->transport->kind->disconnect(worker->transport, 0);
            deadline = pen_clock_seconds() + WORKER_DRAIN_SECONDS;
        }
        pen_mutex_lock(&worker->lock);
        (void)pen_condition_wait_for(&worker->changed, &worker->lock, 0.01);
        pen_mutex_unlock(&worker->lock);
    }
}

// Waits until the transport writes none of the worker's memory: a frame from the coordinator may
// end first. Holds the lock.
static void worker_await_arrivals(pen_worker *worker) {
    const double deadline = pen_clock_seconds() + WORKER_ARRIVAL_SECONDS;
    bool is_left = false;
    while (worker->arriving_count > 0) {
        if (!is_left && pen_clock_seconds() > deadline) {
            is_left = true;
            pen_mutex_unlock(&worker->lock);
            worker->transport->kind->disconnect(worker->transport, 0);
            pen_mutex_lock(&worker->lock);
            continue;
        }
        (void)pen_condition_wait_for(&worker->changed, &worker->lock, 0.1);
    }
}

// Takes the run away from the transport's thread; waits until nobody else uses its memory. NULL:
// there was none.
static pen_worker_run *worker_take_run(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    pen_worker_run *run = worker->run;
    pen_mutex_unlock(&worker->lock);
    if (run != NULL) pen_worker_run_close(run);
    for (uint32_t peer = 1; peer < WORKER_PEERS && run != NULL; peer++) {
        pen_mutex_lock(&worker->lock);
        const bool is_up = worker->is_up[peer];
        pen_mutex_unlock(&worker->lock);
        if (is_up) worker->transport->kind->disconnect(worker->transport, peer);
    }
    if (run != NULL) {
        pen_worker_run_rest(run); // so that nothing more is lent
        worker_drain(worker, run);
    }
    pen_mutex_lock(&worker->lock);
    worker_await_arrivals(worker);
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
    memcpy(message.text, worker->waits, sizeof message.text);
    if (tells) pen_worker_tell(worker, 0, &message);
}

static void worker_try_load(pen_worker *worker) {
    pen_status status = worker_load(worker);
    if (status == PEN_OK) return;
    pen_worker_tell_failure(worker, status);
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
    const pen_transport_events events = pen_worker_events(worker);
    PEN_TRY(options->transport->create(&transport_options, &events, &worker->transport));
    PEN_TRY(pen_thread_create("worker", worker_main, worker, &worker->thread));
    snprintf(worker->address, sizeof worker->address, "%s", options->address);
    return options->transport->listen(worker->transport, options->address, out_port);
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

void pen_worker_set_spec(pen_worker *worker, const pen_run_spec *spec,
                         void (*loaded)(const void *model), const void *model) {
    pen_mutex_lock(&worker->lock);
    while (worker->state != WORKER_IDLE && !worker->is_over) {
        pen_condition_wait(&worker->changed, &worker->lock);
    }
    worker->options.spec = spec;
    worker->options.loaded = loaded;
    worker->options.model = model;
    pen_mutex_unlock(&worker->lock);
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

bool pen_worker_is_over(pen_worker *worker) {
    pen_mutex_lock(&worker->lock);
    const bool is_over = worker->is_over;
    pen_mutex_unlock(&worker->lock);
    return is_over;
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
