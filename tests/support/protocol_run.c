#include "tests/support/protocol_run.h"

#include <inttypes.h>

#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/message.h"
#include "scheduler/protocol/worker_core.h"
#include "scheduler/transport/simulated_transport.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"

#define RUN_GENERATION 4

typedef struct run_peer run_peer;

typedef struct run_device {
    run_peer *peer;
    uint32_t number;
    uint32_t round; // of the options, where its next task is sought
    uint32_t position;
    uint32_t task; // that runs
    uint64_t task_round;
    uint32_t task_form;
} run_device;

struct run_peer {
    struct protocol_runner *runner;
    uint32_t number;
    pen_transport *transport;
    uint16_t port;
    uint32_t up_count;
    pen_worker_core *core; // of a worker
    pen_worker_action *actions;
    bool has_stopped;
};

// Places are words that hold which frame is in them.
typedef struct run_channel {
    uint64_t *source; // [copies]
    uint64_t *target; // [capacity]; of a shared one the source's
    bool *is_lent;    // [copies]
} run_channel;

typedef struct protocol_runner {
    const pen_run_table *table;
    const protocol_run_options *options;
    protocol_run_result *result;
    pen_arena *arena;
    dice d;
    pen_simulated_network *network;
    const pen_transport_kind *kind;
    run_peer *peers; // [worker_count + 1]
    pen_coordinator_core *coordinator;
    pen_coordinator_action *actions;
    run_device *devices;     // [device_count]
    run_channel **channels;  // [form_count][channel_count]
    uint32_t *loss_counts;   // [round_count] sent
    uint32_t *update_counts; // [round_count] updates begun
    uint32_t begun_count;
    uint32_t done_count;
    bool is_over;
} protocol_runner;

#define RUN_WRONG(runner, ...)                                                                     \
    do {                                                                                           \
        if ((runner)->result->wrong[0] == 0) {                                                     \
            snprintf((runner)->result->wrong, sizeof(runner)->result->wrong, __VA_ARGS__);         \
        }                                                                                          \
    } while (0)

static void run_digest(protocol_runner *r, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t words[] = {pen_simulated_network_now(r->network), a, b, c};
    for (uint32_t i = 0; i < 4; i++) {
        r->result->digest = (r->result->digest ^ words[i]) * 0x9e3779b97f4a7c15u;
        r->result->digest ^= r->result->digest >> 29;
    }
}

static uint64_t run_word(uint32_t form, uint32_t channel, uint64_t sequence) {
    return (uint64_t)form << 56 | (uint64_t)(channel + 1) << 40 | sequence;
}

static uint32_t run_place(const pen_run_form *form, uint32_t channel, uint64_t sequence,
                          uint32_t places) {
    return (uint32_t)(sequence % pen_run_slots(form, &form->channels[channel])) % places;
}

static void worker_event(run_peer *peer, pen_worker_event event);
static void coordinator_event(protocol_runner *r, pen_coordinator_event event);

// ---- messages

static void run_send(run_peer *from, uint32_t to, pen_message message) {
    protocol_runner *r = from->runner;
    uint8_t bytes[PEN_MESSAGE_ROOM];
    message.protocol = PEN_PROTOCOL_VERSION;
    message.generation = RUN_GENERATION;
    message.incarnation = from->number + 1;
    const size_t length = pen_message_encode(&message, bytes, sizeof bytes);
    const bool is_repeated = r->options->repeats && dice_between(&r->d, 0, 9) == 0;
    for (uint32_t i = 0; i < (is_repeated ? 2 : 1); i++) {
        const pen_status status = r->kind->send_message(from->transport, to, bytes, length);
        if (status != PEN_OK) RUN_WRONG(r, "no message: %s", pen_status_message(status));
        pen_status_ignore(status, "judged");
    }
}

static void run_take_worker_message(run_peer *peer, const pen_message *m) {
    pen_worker_event event = {.generation = m->generation,
                              .round = m->round,
                              .form = m->form,
                              .count = m->count,
                              .updates = m->updates,
                              .channel = m->channel,
                              .sequence = m->sequence};
    if (m->kind == PEN_MESSAGE_ASSIGN) {
        event.kind = PEN_WORKER_EVENT_ASSIGN;
    } else if (m->kind == PEN_MESSAGE_START) {
        event.kind = PEN_WORKER_EVENT_START;
    } else if (m->kind == PEN_MESSAGE_ROUND) {
        event.kind = PEN_WORKER_EVENT_ROUND;
    } else if (m->kind == PEN_MESSAGE_GO) {
        event.kind = PEN_WORKER_EVENT_GO;
    } else if (m->kind == PEN_MESSAGE_CREDIT) {
        event.kind = PEN_WORKER_EVENT_CREDIT;
    } else if (m->kind == PEN_MESSAGE_STOP) {
        event.kind = PEN_WORKER_EVENT_STOP;
    } else {
        RUN_WRONG(peer->runner, "worker %u was told %s", peer->number,
                  pen_message_kind_name(m->kind));
        return;
    }
    worker_event(peer, event);
}

static void run_take_coordinator_message(protocol_runner *r, uint32_t from, const pen_message *m) {
    const pen_coordinator_identity identity = {.protocol = m->protocol};
    pen_coordinator_event event = {.worker = from,
                                   .incarnation = m->incarnation,
                                   .generation = m->generation,
                                   .round = m->round,
                                   .form = m->form,
                                   .channel = m->channel,
                                   .sequence = m->sequence,
                                   .microbatch = m->microbatch,
                                   .stage = m->stage,
                                   .loss = {.value = m->value},
                                   .identity = &identity};
    if (m->kind == PEN_MESSAGE_HELLO) {
        event.kind = PEN_COORDINATOR_EVENT_HELLO;
    } else if (m->kind == PEN_MESSAGE_READY) {
        event.kind = PEN_COORDINATOR_EVENT_READY;
    } else if (m->kind == PEN_MESSAGE_LOSS) {
        event.kind = PEN_COORDINATOR_EVENT_LOSS;
    } else if (m->kind == PEN_MESSAGE_ROUND_DONE) {
        event.kind = PEN_COORDINATOR_EVENT_ROUND_DONE;
    } else if (m->kind == PEN_MESSAGE_CREDIT) {
        event.kind = PEN_COORDINATOR_EVENT_CREDIT;
    } else {
        RUN_WRONG(r, "the coordinator was told %s", pen_message_kind_name(m->kind));
        return;
    }
    coordinator_event(r, event);
}

// ---- what transports call back

static pen_status run_accept(void *context, const pen_introduction *who, const char *address) {
    (void)context;
    (void)who;
    (void)address;
    return PEN_OK;
}

static void run_up(void *context, uint32_t peer) {
    (void)peer;
    ((run_peer *)context)->up_count += 1;
}

static void run_down(void *context, uint32_t peer, pen_status take_reason) {
    run_peer *self = context;
    if (!self->runner->is_over) RUN_WRONG(self->runner, "link to %u down", peer);
    pen_status_ignore(take_reason, "expected at the end alone");
}

static void run_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    run_peer *self = context;
    pen_message message;
    CHECK_OK(pen_message_decode(bytes, count, &message));
    run_digest(self->runner, message.kind, peer, self->number);
    if (self->number == 0) {
        run_take_coordinator_message(self->runner, peer, &message);
    } else {
        run_take_worker_message(self, &message);
    }
}

static pen_worker_event run_frame_event(const pen_frame *frame) {
    return (pen_worker_event){.kind = PEN_WORKER_EVENT_FRAME,
                              .generation = frame->generation,
                              .form = frame->form,
                              .channel = frame->channel,
                              .sequence = frame->sequence};
}

static pen_status run_begin(void *context, uint32_t peer, const pen_frame *frame,
                            void **out_memory) {
    run_peer *self = context;
    protocol_runner *r = self->runner;
    const pen_worker_event event = run_frame_event(frame);
    bool is_seen;
    const pen_worker_fault fault = pen_worker_core_check_frame(self->core, &event, &is_seen);
    if (fault != PEN_WORKER_FAULT_NONE || is_seen) {
        RUN_WRONG(r, "worker %u refuses frame %" PRIu64 " of channel %u from %u: %s", self->number,
                  frame->sequence, frame->channel, peer, pen_worker_fault_text(fault));
        return pen_error(PEN_CORRUPT, "refused");
    }
    const pen_run_form *form = &r->table->forms[frame->form];
    const uint32_t place =
        run_place(form, frame->channel, frame->sequence, form->channels[frame->channel].capacity);
    *out_memory = &r->channels[frame->form][frame->channel].target[place];
    return PEN_OK;
}

static void run_end(void *context, uint32_t peer, const pen_frame *frame,
                    const uint32_t *checksums) {
    run_peer *self = context;
    (void)checksums;
    run_digest(self->runner, frame->channel, frame->sequence, peer);
    worker_event(self, run_frame_event(frame));
}

static void run_let_go(void *context, uint32_t peer, uint64_t token) {
    run_peer *self = context;
    protocol_runner *r = self->runner;
    (void)peer;
    const uint32_t form = (uint32_t)(token >> 56);
    const uint32_t channel = (uint32_t)(token >> 40 & 0xffff) - 1;
    const uint64_t sequence = token & (((uint64_t)1 << 40) - 1);
    const pen_run_form *in = &r->table->forms[form];
    const uint32_t place = run_place(in, channel, sequence, in->channels[channel].copies);
    run_channel *ends = &r->channels[form][channel];
    if (!ends->is_lent[place] || ends->source[place] != token) {
        RUN_WRONG(r, "channel %u was let go of what was not lent", channel);
    }
    ends->is_lent[place] = false;
    if (self->number == 0) {
        coordinator_event(r, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_LET_GO,
                                                     .form = form,
                                                     .channel = channel,
                                                     .sequence = sequence});
    } else {
        worker_event(self, (pen_worker_event){.kind = PEN_WORKER_EVENT_LET_GO,
                                              .form = form,
                                              .channel = channel,
                                              .sequence = sequence});
    }
}

// ---- frames

static void run_send_frame(run_peer *from, uint32_t form_number, uint32_t channel,
                           uint64_t sequence) {
    protocol_runner *r = from->runner;
    const pen_run_form *form = &r->table->forms[form_number];
    run_channel *ends = &r->channels[form_number][channel];
    const uint32_t place = run_place(form, channel, sequence, form->channels[channel].copies);
    const uint64_t word = run_word(form_number, channel, sequence);
    static const uint32_t checksum = 0;
    if (ends->source[place] != word || ends->is_lent[place]) {
        RUN_WRONG(r, "channel %u: frame %" PRIu64 " is not in its place to be sent", channel,
                  sequence);
    }
    ends->is_lent[place] = true;
    const pen_frame frame = {.kind = PEN_FRAME_VALUE,
                             .generation = RUN_GENERATION,
                             .form = form_number,
                             .channel = channel,
                             .sequence = sequence,
                             .bytes = sizeof word};
    const pen_status status = r->kind->send_frame(
        from->transport, form->channels[channel].target_worker, &frame, &ends->source[place],
        &checksum, word);
    if (status != PEN_OK) RUN_WRONG(r, "no frame: %s", pen_status_message(status));
    pen_status_ignore(status, "judged");
}

// Writes what a task, or the host, makes.
static void run_make(protocol_runner *r, uint32_t form_number, uint32_t channel,
                     uint64_t sequence) {
    const pen_run_form *form = &r->table->forms[form_number];
    run_channel *ends = &r->channels[form_number][channel];
    const uint32_t place = run_place(form, channel, sequence, form->channels[channel].copies);
    if (ends->is_lent[place]) {
        RUN_WRONG(r, "channel %u: frame %" PRIu64 " is made where memory is lent", channel,
                  sequence);
    }
    ends->source[place] = run_word(form_number, channel, sequence);
}

static void run_check_inputs(protocol_runner *r, const run_device *device, const char *when) {
    const pen_run_form *form = &r->table->forms[device->task_form];
    const pen_run_task *task = &form->tasks[device->task];
    for (uint32_t i = task->receive_first; i < task->receive_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint64_t sequence = pen_run_sequence(form, &form->channels[channel],
                                                   device->task_round, task->task.microbatch);
        const uint32_t place = run_place(form, channel, sequence, form->channels[channel].capacity);
        if (r->channels[device->task_form][channel].target[place] ==
            run_word(device->task_form, channel, sequence)) {
            continue;
        }
        RUN_WRONG(r, "device %u, round %" PRIu64 ", task %u: channel %u lacks frame %" PRIu64 " %s",
                  device->number, device->task_round, device->task, channel, sequence, when);
    }
}

// ---- tasks

static bool run_is_skipped(const protocol_round *round, const pen_run_task *task) {
    return task->task.kind == PEN_TASK_UPDATE ? !round->updates
                                              : task->task.microbatch >= round->count;
}

// Frames of tasks that compute nothing are made without a RUN: when they are due, or before.
static void run_make_outputs(protocol_runner *r, const pen_run_form *form, uint32_t form_number,
                             uint64_t round, const pen_run_task *task) {
    for (uint32_t i = task->send_first; i < task->send_end; i++) {
        const uint32_t channel = form->refs[i];
        run_make(r, form_number, channel,
                 pen_run_sequence(form, &form->channels[channel], round, task->task.microbatch));
    }
}

// Moves the device's own account to its next task that computes; those that do not are passed
// over, as the core must have. False: there is none in the rounds begun.
static bool run_find_next(protocol_runner *r, run_device *device) {
    while (device->round < r->begun_count) {
        const protocol_round *round = &r->options->rounds[device->round];
        const pen_run_form *form = &r->table->forms[round->form];
        const pen_run_device *tasks = &form->devices[device->number];
        for (; tasks->task_first + device->position < tasks->task_end; device->position++) {
            const pen_run_task *task = &form->tasks[tasks->task_first + device->position];
            if (!run_is_skipped(round, task) && task->list != PEN_RUN_LIST_NONE) return true;
        }
        device->round += 1;
        device->position = 0;
    }
    return false;
}

static void run_task_over(void *context) {
    run_device *device = context;
    protocol_runner *r = device->peer->runner;
    const pen_run_form *form = &r->table->forms[device->task_form];
    run_check_inputs(r, device, "at its end");
    run_make_outputs(r, form, device->task_form, device->task_round, &form->tasks[device->task]);
    worker_event(device->peer,
                 (pen_worker_event){.kind = PEN_WORKER_EVENT_TASK_DONE, .device = device->number});
}

static void run_task(protocol_runner *r, const pen_worker_action *action) {
    run_device *device = &r->devices[action->device];
    const pen_run_form *form = &r->table->forms[action->form];
    const bool has_next = run_find_next(r, device);
    const uint32_t expected = form->devices[action->device].task_first + device->position;
    if (!has_next || device->round != action->round || expected != action->task) {
        RUN_WRONG(r, "device %u runs task %u of round %" PRIu64 ", not %u of %u", action->device,
                  action->task, action->round, expected, device->round);
        return;
    }
    device->position += 1;
    device->task = action->task;
    device->task_round = action->round;
    device->task_form = action->form;
    const pen_run_task *task = &form->tasks[action->task];
    const uint32_t losses =
        pen_run_form_makes_loss(form) ? r->options->rounds[action->round].count : 0;
    if (task->task.kind == PEN_TASK_UPDATE && r->loss_counts[action->round] < losses) {
        RUN_WRONG(r, "device %u updates before all losses of round %" PRIu64, action->device,
                  action->round);
    }
    r->result->task_count += 1;
    run_check_inputs(r, device, "at its start");
    const uint64_t most = dice_between(&r->d, 0, 3) == 0 ? 3000000 : 1000;
    CHECK_OK(pen_simulated_network_call_in(
        r->network, (uint64_t)dice_between(&r->d, 0, (int64_t)most), run_task_over, device));
}

// ---- what the cores want done

static void run_do_worker(run_peer *peer, const pen_worker_action *action) {
    protocol_runner *r = peer->runner;
    const pen_run_form *form = &r->table->forms[action->form];
    run_digest(r, 100 + (uint64_t)action->kind, action->sequence + action->round, peer->number);
    switch (action->kind) {
    case PEN_WORKER_ACTION_LOAD:
        worker_event(peer, (pen_worker_event){.kind = PEN_WORKER_EVENT_LOADED,
                                              .generation = action->generation});
        break;
    case PEN_WORKER_ACTION_READY:
        run_send(peer, 0, (pen_message){.kind = PEN_MESSAGE_READY});
        break;
    case PEN_WORKER_ACTION_RUN:
        run_task(r, action);
        break;
    case PEN_WORKER_ACTION_SEND: {
        // a task that computes nothing makes its frames when they go
        const uint32_t place = run_place(form, action->channel, action->sequence,
                                         form->channels[action->channel].copies);
        const uint64_t word = run_word(action->form, action->channel, action->sequence);
        run_channel *ends = &r->channels[action->form][action->channel];
        if (ends->source[place] != word) {
            run_make(r, action->form, action->channel, action->sequence);
        }
        run_send_frame(peer, action->form, action->channel, action->sequence);
        break;
    }
    case PEN_WORKER_ACTION_GRANT:
        run_send(peer, form->channels[action->channel].source_worker,
                 (pen_message){.kind = PEN_MESSAGE_CREDIT,
                               .form = action->form,
                               .channel = action->channel,
                               .sequence = action->sequence});
        break;
    case PEN_WORKER_ACTION_LOSS: {
        const pen_task *task = &form->tasks[action->task].task;
        r->loss_counts[action->round] += 1;
        run_send(peer, 0,
                 (pen_message){.kind = PEN_MESSAGE_LOSS,
                               .round = action->round,
                               .microbatch = task->microbatch,
                               .stage = task->stage,
                               .value = 0x3ff0000000000000});
        break;
    }
    case PEN_WORKER_ACTION_ROUND_DONE:
        run_send(peer, 0, (pen_message){.kind = PEN_MESSAGE_ROUND_DONE, .round = action->round});
        break;
    case PEN_WORKER_ACTION_STOPPED:
        peer->has_stopped = true;
        break;
    }
}

static void worker_event(run_peer *peer, pen_worker_event event) {
    if (peer->runner->is_over) return;
    uint32_t count;
    pen_worker_action actions[4096];
    const pen_worker_fault fault = pen_worker_core_step(peer->core, &event, peer->actions, &count);
    if (fault != PEN_WORKER_FAULT_NONE) {
        RUN_WRONG(peer->runner, "worker %u: event %u: %s", peer->number, (unsigned)event.kind,
                  pen_worker_fault_text(fault));
    }
    CHECK(count <= 4096, "%u actions", count);
    memcpy(actions, peer->actions, count * sizeof *actions); // carrying out may step again
    for (uint32_t i = 0; i < count; i++) {
        run_do_worker(peer, &actions[i]);
    }
}

static void run_do_coordinator(protocol_runner *r, const pen_coordinator_action *action) {
    run_peer *self = &r->peers[0];
    run_digest(r, 200 + (uint64_t)action->kind, action->round + action->sequence, action->worker);
    pen_message message = {.round = action->round,
                           .form = action->form,
                           .count = action->count,
                           .updates = action->updates};
    switch (action->kind) {
    case PEN_COORDINATOR_ACTION_ASSIGN:
        message.kind = PEN_MESSAGE_ASSIGN;
        break;
    case PEN_COORDINATOR_ACTION_START:
        message.kind = PEN_MESSAGE_START;
        break;
    case PEN_COORDINATOR_ACTION_ROUND:
        message.kind = PEN_MESSAGE_ROUND;
        break;
    case PEN_COORDINATOR_ACTION_GO:
        message.kind = PEN_MESSAGE_GO;
        break;
    case PEN_COORDINATOR_ACTION_STOP:
        message.kind = PEN_MESSAGE_STOP;
        break;
    case PEN_COORDINATOR_ACTION_FEED:
        run_make(r, action->form, action->channel, action->sequence);
        run_send_frame(self, action->form, action->channel, action->sequence);
        return;
    case PEN_COORDINATOR_ACTION_ROUND_DONE:
        if (action->round != r->done_count) RUN_WRONG(r, "rounds end out of order");
        r->done_count += 1;
        return;
    case PEN_COORDINATOR_ACTION_RUNNING:
    case PEN_COORDINATOR_ACTION_LOSSES:
        return;
    case PEN_COORDINATOR_ACTION_NOT_FINITE:
    case PEN_COORDINATOR_ACTION_REFUSE:
    case PEN_COORDINATOR_ACTION_FAIL:
        RUN_WRONG(r, "the coordinator gives up: %s", pen_coordinator_reason_text(action->reason));
        return;
    }
    run_send(self, action->worker, message);
}

static void coordinator_event(protocol_runner *r, pen_coordinator_event event) {
    if (r->is_over) return;
    uint32_t count;
    pen_coordinator_action actions[4096];
    pen_coordinator_core_step(r->coordinator, &event, r->actions, &count);
    CHECK(count <= 4096, "%u actions", count);
    memcpy(actions, r->actions, count * sizeof *actions);
    for (uint32_t i = 0; i < count; i++) {
        run_do_coordinator(r, &actions[i]);
    }
}

// ---- the whole

static void run_new_channels(protocol_runner *r) {
    CHECK_OK(PEN_NEW(r->arena, r->table->form_count, &r->channels));
    for (uint32_t f = 0; f < r->table->form_count; f++) {
        const pen_run_form *form = &r->table->forms[f];
        CHECK_OK(PEN_NEW(r->arena, form->channel_count, &r->channels[f]));
        for (uint32_t c = 0; c < form->channel_count; c++) {
            run_channel *ends = &r->channels[f][c];
            CHECK_OK(PEN_NEW(r->arena, form->channels[c].copies, &ends->source));
            CHECK_OK(PEN_NEW(r->arena, form->channels[c].copies, &ends->is_lent));
            CHECK_OK(PEN_NEW(r->arena, form->channels[c].capacity, &ends->target));
            if (form->channels[c].is_shared) ends->target = ends->source;
        }
    }
}

static void run_new_peer(protocol_runner *r, uint32_t number) {
    run_peer *peer = &r->peers[number];
    *peer = (run_peer){.runner = r, .number = number};
    const pen_transport_options options = {.self = {.job = "run", .peer = number},
                                           .network = r->network};
    const pen_transport_events events = {.context = peer,
                                         .accept = run_accept,
                                         .up = run_up,
                                         .down = run_down,
                                         .message = run_message,
                                         .begin = run_begin,
                                         .end = run_end,
                                         .let_go = run_let_go};
    CHECK_OK(r->kind->create(&options, &events, &peer->transport));
    CHECK_OK(r->kind->listen(peer->transport, "127.0.0.1:0", &peer->port));
    if (number == 0) return;
    uint32_t limit;
    CHECK_OK(pen_worker_core_new(r->table, number, r->arena, &peer->core, &limit));
    CHECK_OK(PEN_NEW(r->arena, limit, &peer->actions));
}

static void run_link_all(protocol_runner *r) {
    const uint32_t count = r->table->worker_count + 1;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = i + 1; j < count; j++) {
            char address[64];
            snprintf(address, sizeof address, "127.0.0.1:%u", r->peers[j].port);
            CHECK_OK(r->kind->connect(r->peers[i].transport, j, address, 1));
        }
    }
    while (pen_simulated_network_step(r->network)) {
    }
    for (uint32_t i = 0; i < count; i++) {
        CHECK(r->peers[i].up_count == count - 1, "peer %u has %u links", i, r->peers[i].up_count);
    }
}

static void run_new(protocol_runner *r) {
    const pen_run_table *table = r->table;
    const pen_simulated_options network = {
        .seed = r->options->seed,
        .latency_min = 0,
        .latency_max = (uint64_t)dice_between(&r->d, 0, 1) * 2000000 + 1,
        .bytes_per_second = (double)dice_between(&r->d, 0, 2) * 1e5};
    const pen_coordinator_options options = {
        .generation = RUN_GENERATION,
        .self = {.protocol = PEN_PROTOCOL_VERSION},
    };
    uint32_t limit;
    CHECK_OK(pen_simulated_network_create(&network, &r->network));
    CHECK_OK(pen_transport_kind_find("simulated", &r->kind));
    CHECK_OK(pen_coordinator_core_new(table, &options, r->arena, &r->coordinator, &limit));
    CHECK_OK(PEN_NEW(r->arena, limit, &r->actions));
    CHECK_OK(PEN_NEW(r->arena, (size_t)table->worker_count + 1, &r->peers));
    CHECK_OK(PEN_NEW(r->arena, table->device_count, &r->devices));
    CHECK_OK(PEN_NEW(r->arena, r->options->round_count, &r->loss_counts));
    run_new_channels(r);
    for (uint32_t i = 0; i <= table->worker_count; i++) {
        run_new_peer(r, i);
    }
    for (uint32_t d = 0; d < table->device_count; d++) {
        r->devices[d] =
            (run_device){.peer = &r->peers[table->forms[0].devices[d].worker], .number = d};
    }
    run_link_all(r);
}

// Begins rounds as far ahead as the dice say.
static void run_begin_rounds(protocol_runner *r) {
    uint64_t number;
    while (r->begun_count < r->options->round_count &&
           pen_coordinator_core_can_begin(r->coordinator, &number) &&
           (r->begun_count == r->done_count || dice_between(&r->d, 0, 3) == 0)) {
        const protocol_round *round = &r->options->rounds[r->begun_count++];
        coordinator_event(r, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_BEGIN,
                                                     .form = round->form,
                                                     .count = round->count,
                                                     .updates = round->updates});
    }
}

static void run_stop(protocol_runner *r) {
    for (uint32_t d = 0; d < r->table->device_count; d++) {
        if (run_find_next(r, &r->devices[d])) RUN_WRONG(r, "device %u left tasks", d);
    }
    coordinator_event(r, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_STOP});
    while (pen_simulated_network_step(r->network)) {
    }
    for (uint32_t i = 1; i <= r->table->worker_count; i++) {
        if (!r->peers[i].has_stopped) RUN_WRONG(r, "worker %u does not stop", i);
    }
}

void protocol_run(const pen_run_table *table, const protocol_run_options *options,
                  protocol_run_result *out_result) {
    *out_result = (protocol_run_result){0};
    protocol_runner r = {.table = table,
                         .options = options,
                         .result = out_result,
                         .arena = check_arena(),
                         .d = {.seed = options->seed ^ 0x9a7e}};
    run_new(&r);
    for (uint32_t i = 1; i <= table->worker_count; i++) {
        run_send(&r.peers[i], 0, (pen_message){.kind = PEN_MESSAGE_HELLO, .worker = i});
    }
    while (out_result->wrong[0] == 0 && pen_simulated_network_step(r.network)) {
        run_begin_rounds(&r);
    }
    out_result->finished = r.done_count == options->round_count;
    out_result->duration = pen_simulated_network_now(r.network);
    if (out_result->finished && out_result->wrong[0] == 0) run_stop(&r);
    r.is_over = true;
    for (uint32_t i = 0; i <= table->worker_count; i++) {
        r.kind->close(r.peers[i].transport);
    }
    const bool is_wrong = out_result->wrong[0] != 0;
    for (uint32_t i = 0; i <= table->worker_count && !is_wrong; i++) {
        r.kind->destroy(r.peers[i].transport);
    }
    if (!is_wrong) { // what is left of a run that broke a rule cannot go on to its end
        pen_simulated_network_destroy(r.network);
        pen_arena_destroy(r.arena);
    }
}
