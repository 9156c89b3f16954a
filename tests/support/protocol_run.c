#include "tests/support/protocol_run.h"

#include "tests/support/protocol_run_state.h"

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
    run_worker_event(device->peer, (pen_worker_event){.kind = PEN_WORKER_EVENT_TASK_DONE,
                                                      .device = device->number});
}

static bool run_makes_loss(const pen_run_form *form) {
    for (uint32_t i = 0; i < form->task_count; i++) {
        if (form->tasks[i].makes_loss) return true;
    }
    return false;
}

// Gradients that a round tells of.
static uint32_t run_count_gradients(const pen_run_form *form, uint32_t microbatches) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < form->task_count; i++) {
        const pen_run_task *task = &form->tasks[i];
        count += task->makes_gradient && task->task.microbatch < microbatches;
    }
    return count;
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
    const uint32_t losses = run_makes_loss(form) ? r->options->rounds[action->round].count : 0;
    if (task->task.kind == PEN_TASK_UPDATE && r->loss_counts[action->round] < losses) {
        RUN_WRONG(r, "device %u updates before all losses of round %" PRIu64, action->device,
                  action->round);
    }
    const uint32_t gradients = run_count_gradients(form, r->options->rounds[action->round].count);
    if (task->task.kind == PEN_TASK_UPDATE && r->gradient_counts[action->round] < gradients) {
        RUN_WRONG(r, "device %u updates before all gradients of round %" PRIu64, action->device,
                  action->round);
    }
    r->result->task_count += 1;
    run_check_inputs(r, device, "at its start");
    const uint64_t most = dice_between(&r->d, 0, 3) == 0 ? 3000000 : 1000;
    CHECK_OK(pen_simulated_network_call_in(
        r->network, (uint64_t)dice_between(&r->d, 0, (int64_t)most), run_task_over, device));
}

// What a worker reads by itself, and when it is there.
typedef struct run_reading {
    run_peer *peer;
    pen_worker_event event;
} run_reading;

static void run_read_over(void *context) {
    const run_reading *reading = context;
    const pen_worker_event *event = &reading->event;
    protocol_runner *r = reading->peer->runner;
    const pen_run_form *form = &r->table->forms[event->form];
    const uint32_t place =
        run_place(form, event->channel, event->sequence, form->channels[event->channel].capacity);
    r->channels[event->form][event->channel].target[place] =
        run_word(event->form, event->channel, event->sequence);
    run_worker_event(reading->peer, *event);
}

static void run_read(run_peer *peer, const pen_worker_action *action) {
    protocol_runner *r = peer->runner;
    run_reading *reading;
    CHECK_OK(PEN_NEW(r->arena, 1, &reading));
    *reading = (run_reading){peer,
                             {.kind = PEN_WORKER_EVENT_READ,
                              .form = action->form,
                              .channel = action->channel,
                              .sequence = action->sequence}};
    const uint64_t now = pen_simulated_network_now(r->network);
    if (peer->read_at < now) peer->read_at = now; // one after the other
    peer->read_at += (uint64_t)dice_between(&r->d, 1, 100000);
    CHECK_OK(
        pen_simulated_network_call_in(r->network, peer->read_at - now, run_read_over, reading));
}

// ---- what the cores want done

static void run_do_worker(run_peer *peer, const pen_worker_action *action) {
    protocol_runner *r = peer->runner;
    const pen_run_form *form = &r->table->forms[action->form];
    run_digest(r, 100 + (uint64_t)action->kind, action->sequence + action->round, peer->number);
    switch (action->kind) {
    case PEN_WORKER_ACTION_LOAD:
        run_worker_event(peer, (pen_worker_event){.kind = PEN_WORKER_EVENT_LOADED,
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
    case PEN_WORKER_ACTION_GRADIENT: {
        const pen_task *task = &form->tasks[action->task].task;
        r->gradient_counts[action->round] += 1;
        run_send(peer, 0,
                 (pen_message){.kind = PEN_MESSAGE_GRADIENT,
                               .round = action->round,
                               .microbatch = task->microbatch,
                               .stage = task->stage});
        break;
    }
    case PEN_WORKER_ACTION_ROUND_DONE:
        run_send(peer, 0, (pen_message){.kind = PEN_MESSAGE_ROUND_DONE, .round = action->round});
        break;
    case PEN_WORKER_ACTION_READ:
        run_read(peer, action);
        break;
    case PEN_WORKER_ACTION_STOPPED:
        peer->has_stopped = true;
        break;
    }
}

void run_worker_event(run_peer *peer, pen_worker_event event) {
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
    case PEN_COORDINATOR_ACTION_FENCE: // not asked for here
    case PEN_COORDINATOR_ACTION_SNAPSHOT:
    case PEN_COORDINATOR_ACTION_SNAPPED:
    case PEN_COORDINATOR_ACTION_PUBLISH:
    case PEN_COORDINATOR_ACTION_COMMITTED:
    case PEN_COORDINATOR_ACTION_SAVE_FAILED:
    case PEN_COORDINATOR_ACTION_NOT_FINITE:
    case PEN_COORDINATOR_ACTION_REFUSE:
    case PEN_COORDINATOR_ACTION_FAIL:
        RUN_WRONG(r, "the coordinator gives up: %s", pen_coordinator_reason_text(action->reason));
        return;
    }
    run_send(self, action->worker, message);
}

void run_coordinator_event(protocol_runner *r, pen_coordinator_event event) {
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
    pen_transport_events events = run_transport_events;
    events.context = peer;
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
    r->kind = &pen_transport_simulated;
    CHECK_OK(pen_coordinator_core_new(table, &options, r->arena, &r->coordinator, &limit));
    CHECK_OK(PEN_NEW(r->arena, limit, &r->actions));
    CHECK_OK(PEN_NEW(r->arena, (size_t)table->worker_count + 1, &r->peers));
    CHECK_OK(PEN_NEW(r->arena, table->device_count, &r->devices));
    CHECK_OK(PEN_NEW(r->arena, r->options->round_count, &r->loss_counts));
    CHECK_OK(PEN_NEW(r->arena, r->options->round_count, &r->gradient_counts));
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
        run_coordinator_event(r, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_BEGIN,
                                                         .form = round->form,
                                                         .count = round->count,
                                                         .updates = round->updates});
    }
}

static void run_stop(protocol_runner *r) {
    for (uint32_t d = 0; d < r->table->device_count; d++) {
        if (run_find_next(r, &r->devices[d])) RUN_WRONG(r, "device %u left tasks", d);
    }
    run_coordinator_event(r, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_STOP});
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
