#include "base/planted.h"
#include "scheduler/protocol/worker_core.h"
#include "scheduler/protocol/worker_state.h"

static bool worker_may_go(worker_state from, worker_state to) {
    switch (to) {
    case WORKER_IDLE:
        return false;
    case WORKER_DRAINING:
        return from != WORKER_DRAINING;
    case WORKER_LOADING:
        return true;
    case WORKER_READY:
        return from == WORKER_LOADING;
    case WORKER_RUNNING:
        return from == WORKER_READY;
    case WORKER_STOPPING:
        return from != WORKER_STOPPED;
    case WORKER_STOPPED:
        return from == WORKER_STOPPING;
    }
    PEN_NEVER("a state of a worker");
}

static void worker_transition(pen_worker_core *core, worker_state to) {
    PEN_ASSERT(worker_may_go(core->state, to));
    PEN_ASSERT(to != WORKER_LOADING || (core->running_count == 0 && core->lent_count == 0));
    core->state = to;
}

// The ends of channels that are here. What is read here has the host's end here, too.
static pen_status worker_channels_new(const pen_run_table *table, uint32_t number, uint32_t worker,
                                      pen_arena *arena, worker_channel **out_channels) {
    const pen_run_form *form = &table->forms[number];
    worker_channel *channels;
    PEN_TRY(PEN_NEW(arena, form->channel_count, &channels));
    for (uint32_t i = 0; i < form->channel_count; i++) {
        const pen_run_channel *channel = &form->channels[i];
        channels[i].is_read = channel->target_worker == worker && pen_run_channel_is_read(channel);
        channels[i].is_source =
            channel->source_worker == worker && !channel->is_shared && !channels[i].is_read;
        channels[i].is_target = channel->target_worker == worker;
        if (channels[i].is_source) {
            PEN_TRY(pen_frame_source_init(&channels[i].source, form, channel, arena));
        }
        if (channels[i].is_read) {
            PEN_TRY(pen_frame_feed_init(&channels[i].feed, table, number, i, arena));
        }
        if (channels[i].is_target) {
            PEN_TRY(pen_frame_target_init(&channels[i].target, form, channel, arena));
        }
    }
    *out_channels = channels;
    return PEN_OK;
}

// Numbers the stages of each device, so that what is done of each can be counted: *out_places
// [task_count]. *limit becomes the most stages of a device.
static pen_status worker_places_new(const pen_run_table *table, const pen_run_form *form,
                                    pen_arena *arena, uint32_t **out_places, uint32_t *limit) {
    uint32_t *places, *device_of_stage, *place_of_stage;
    uint32_t stage_count = 0;
    for (uint32_t t = 0; t < form->task_count; t++) {
        if (form->tasks[t].task.stage >= stage_count) stage_count = form->tasks[t].task.stage + 1;
    }
    PEN_TRY(PEN_NEW(arena, form->task_count, &places));
    PEN_TRY(PEN_NEW(arena, stage_count, &device_of_stage)); // + 1
    PEN_TRY(PEN_NEW(arena, stage_count, &place_of_stage));
    for (uint32_t d = 0; d < table->device_count; d++) {
        uint32_t count = 0;
        for (uint32_t t = form->devices[d].task_first; t < form->devices[d].task_end; t++) {
            const uint32_t stage = form->tasks[t].task.stage;
            if (device_of_stage[stage] != d + 1) {
                device_of_stage[stage] = d + 1;
                place_of_stage[stage] = count++;
            }
            places[t] = place_of_stage[stage] * PEN_TASK_KIND_COUNT;
        }
        if (count > *limit) *limit = count;
    }
    *out_places = places;
    return PEN_OK;
}

// Of each task the microbatches of its stage: *out_ranges [task_count].
static pen_status worker_ranges_new(const pen_run_form *form, pen_arena *arena,
                                    worker_range **out_ranges) {
    worker_range *ranges, *of_stage;
    uint32_t stage_count = 0;
    for (uint32_t t = 0; t < form->task_count; t++) {
        if (form->tasks[t].task.stage >= stage_count) stage_count = form->tasks[t].task.stage + 1;
    }
    PEN_TRY(PEN_NEW(arena, form->task_count, &ranges));
    PEN_TRY(PEN_NEW(arena, stage_count, &of_stage));
    for (uint32_t t = 0; t < form->task_count; t++) {
        const pen_task *task = &form->tasks[t].task;
        worker_range *range = &of_stage[task->stage];
        if (task->kind == PEN_TASK_UPDATE) continue;
        if (range->end == 0 || task->microbatch < range->first) range->first = task->microbatch;
        if (task->microbatch >= range->end) range->end = task->microbatch + 1;
    }
    for (uint32_t t = 0; t < form->task_count; t++) {
        ranges[t] = of_stage[form->tasks[t].task.stage];
    }
    *out_ranges = ranges;
    return PEN_OK;
}

// In one step each place of a channel gives at most one SEND, READ or GRANT, each device at most
// one RUN, and each round one LOSS for each microbatch that had a place, one GRADIENT for each task
// that tells of one, and one ROUND_DONE.
static uint32_t worker_action_limit(const pen_worker_core *core) {
    uint32_t most = 0;
    for (uint32_t f = 0; f < core->table->form_count; f++) {
        const pen_run_form *form = &core->table->forms[f];
        uint32_t places = PEN_WORKER_ROUND_LIMIT * form->microbatch_count;
        for (uint32_t t = 0; t < form->task_count; t++) {
            if (form->tasks[t].makes_gradient) places += PEN_WORKER_ROUND_LIMIT;
        }
        for (uint32_t i = 0; i < form->channel_count; i++) {
            const worker_channel *channel = &core->channels[f][i];
            if (channel->is_source) places += channel->source.copies;
            if (channel->is_read) places += channel->feed.source.copies;
            if (channel->is_target) places += channel->target.capacity;
        }
        if (places > most) most = places;
    }
    return most + core->device_count + PEN_WORKER_ROUND_LIMIT + 4;
}

// Channels and places of all forms, and the turn of each stage and kind of task, by which their
// order is asserted.
pen_status pen_worker_core_new(const pen_run_table *table, uint32_t worker, pen_arena *arena,
                               pen_worker_core **out_core, uint32_t *out_action_limit) {
    PEN_ASSERT(worker > 0);
    PEN_ASSERT(table->form_count > 0);
    pen_worker_core *core;
    PEN_TRY(PEN_NEW(arena, 1, &core));
    core->table = table;
    core->worker = worker;
    PEN_TRY(PEN_NEW(arena, table->device_count, &core->devices));
    for (uint32_t i = 0; i < table->device_count; i++) {
        if (table->forms[0].devices[i].worker != worker) continue;
        core->devices[core->device_count++].number = i;
    }
    PEN_TRY(PEN_NEW(arena, table->form_count, &core->channels));
    PEN_TRY(PEN_NEW(arena, table->form_count, &core->places));
    PEN_TRY(PEN_NEW(arena, table->form_count, &core->ranges));
    for (uint32_t f = 0; f < table->form_count; f++) {
        const pen_run_form *form = &table->forms[f];
        PEN_TRY(worker_channels_new(table, f, worker, arena, &core->channels[f]));
        PEN_TRY(worker_places_new(table, form, arena, &core->places[f], &core->stage_limit));
        PEN_TRY(worker_ranges_new(form, arena, &core->ranges[f]));
    }
    for (uint32_t i = 0; i < core->device_count; i++) {
        const size_t count = (size_t)core->stage_limit * PEN_TASK_KIND_COUNT;
        PEN_TRY(PEN_NEW(arena, count, &core->devices[i].turns));
    }
    core->action_limit = worker_action_limit(core);
    *out_action_limit = core->action_limit;
    *out_core = core;
    return PEN_OK;
}

uint64_t pen_worker_core_generation(const pen_worker_core *core) {
    return core->generation;
}

static void worker_reset(pen_worker_core *core) {
    PEN_ASSERT(core->running_count == 0);
    PEN_ASSERT(core->lent_count == 0);
    for (uint32_t f = 0; f < core->table->form_count; f++) {
        for (uint32_t i = 0; i < core->table->forms[f].channel_count; i++) {
            worker_channel *channel = &core->channels[f][i];
            if (channel->is_source) pen_frame_source_reset(&channel->source);
            if (channel->is_read) pen_frame_feed_reset(&channel->feed);
            if (channel->is_target) pen_frame_target_reset(&channel->target);
        }
    }
    for (uint32_t i = 0; i < core->device_count; i++) {
        core->devices[i].round = 0;
        pen_worker_rewind(core, &core->devices[i]);
    }
    core->first_round = 0;
    core->end_round = 0;
    core->has_round = false;
}

// Goes on with what had to wait for tasks and lent memory.
static void worker_drain(pen_worker_core *core) {
    PEN_ASSERT(core->generation > 0 || core->state != WORKER_DRAINING);
    PEN_ASSERT(core->running_count <= core->device_count);
    if (core->running_count > 0) return;
    if (core->state == WORKER_STOPPING) {
        worker_transition(core, WORKER_STOPPED);
        pen_worker_act(core, PEN_WORKER_ACTION_STOPPED);
    }
    if (core->state == WORKER_DRAINING && core->lent_count == 0) {
        worker_reset(core);
        worker_transition(core, WORKER_LOADING);
        pen_worker_act(core, PEN_WORKER_ACTION_LOAD);
    }
}

static void worker_assign(pen_worker_core *core, uint64_t generation) {
    PEN_ASSERT(core->actions != NULL);
    PEN_ASSERT(core->action_count == 0);
    if (generation == core->generation && core->state == WORKER_READY) {
        pen_worker_act(core, PEN_WORKER_ACTION_READY); // the coordinator did not hear it
    }
    if (generation <= core->generation) return;
    core->generation = generation;
    if (core->state != WORKER_DRAINING) worker_transition(core, WORKER_DRAINING);
    worker_drain(core);
}

// It was stopped: what is still said of rounds changes nothing.
static bool worker_is_over(const pen_worker_core *core) {
    return core->state == WORKER_STOPPING || core->state == WORKER_STOPPED;
}

// Whether what is said is of another generation.
static bool worker_is_foreign(const pen_worker_core *core, uint64_t generation) {
    if (PEN_PLANTED(accept_stale_generation) && generation < core->generation) return false;
    return generation != core->generation;
}

// A round is the next one, of a form that the run has, and only as many are announced as have
// slots. One that is known already changes nothing.
static pen_worker_fault worker_begin_round(pen_worker_core *core, const pen_worker_event *event) {
    PEN_ASSERT(core->first_round <= core->end_round);
    PEN_ASSERT(!worker_is_foreign(core, event->generation));
    if (core->has_round && event->round < core->end_round) return PEN_WORKER_FAULT_NONE;
    if (worker_is_over(core)) return PEN_WORKER_FAULT_NONE;
    if (core->state != WORKER_RUNNING || event->form >= core->table->form_count ||
        event->round >= PEN_RUN_ROUND_LIMIT ||
        (core->has_round && event->round != core->end_round) ||
        core->end_round - core->first_round == PEN_WORKER_ROUND_LIMIT) {
        return PEN_WORKER_FAULT_ROUND;
    }
    const pen_run_form *form = &core->table->forms[event->form];
    const worker_round *oldest = pen_worker_find_round(core, core->first_round);
    if (event->count == 0 || event->count > form->microbatch_count ||
        (event->updates && !form->trains) || (oldest != NULL && oldest->form != event->form)) {
        return PEN_WORKER_FAULT_ROUND;
    }
    if (!core->has_round) {
        core->has_round = true;
        core->first_round = event->round;
        for (uint32_t i = 0; i < core->device_count; i++) {
            core->devices[i].round = event->round;
        }
    }
    core->rounds[event->round % PEN_WORKER_ROUND_LIMIT] =
        (worker_round){.form = event->form, .count = event->count, .updates = event->updates};
    core->end_round = event->round + 1;
    return PEN_WORKER_FAULT_NONE;
}

static pen_worker_fault worker_go(pen_worker_core *core, uint64_t number) {
    PEN_ASSERT(core->first_round <= core->end_round);
    PEN_ASSERT(core->generation > 0);
    if (worker_is_over(core)) return PEN_WORKER_FAULT_NONE;
    if (core->state != WORKER_RUNNING || number >= core->end_round) return PEN_WORKER_FAULT_ROUND;
    worker_round *round = pen_worker_find_round(core, number);
    if (round == NULL) return PEN_WORKER_FAULT_NONE;
    if (!round->updates) return PEN_WORKER_FAULT_ROUND;
    round->may_update = true;
    return PEN_WORKER_FAULT_NONE;
}

// Asked before a frame's bytes are let in: whether it is for this worker, within the window, and
// not here already.
pen_worker_fault pen_worker_core_check_frame(const pen_worker_core *core,
                                             const pen_worker_event *event, bool *out_is_seen) {
    PEN_ASSERT(event->kind == PEN_WORKER_EVENT_FRAME);
    PEN_ASSERT(core->first_round <= core->end_round);
    *out_is_seen = worker_is_foreign(core, event->generation) || worker_is_over(core);
    if (*out_is_seen) return PEN_WORKER_FAULT_NONE;
    if (event->form >= core->table->form_count) return PEN_WORKER_FAULT_CHANNEL;
    const pen_run_form *form = &core->table->forms[event->form];
    if (event->channel >= form->channel_count || form->channels[event->channel].is_shared ||
        core->channels[event->form][event->channel].is_read ||
        !core->channels[event->form][event->channel].is_target) {
        return PEN_WORKER_FAULT_CHANNEL;
    }
    // the source may have heard of the start, and of a round, before us
    if (core->state != WORKER_READY && core->state != WORKER_RUNNING) {
        return PEN_WORKER_FAULT_WINDOW;
    }
    const pen_frame_target *target = &core->channels[event->form][event->channel].target;
    const pen_frame_check check = pen_frame_target_check(target, event->sequence);
    *out_is_seen = check == PEN_FRAME_SEEN;
    if (*out_is_seen) return PEN_WORKER_FAULT_NONE;
    const uint64_t number = event->sequence / target->slots;
    const worker_round *oldest = &core->rounds[core->first_round % PEN_WORKER_ROUND_LIMIT];
    const worker_round *own = &core->rounds[number % PEN_WORKER_ROUND_LIMIT];
    const bool is_early = core->first_round < core->end_round && oldest->form != event->form;
    const bool is_late = core->has_round && number < core->first_round;
    const bool is_known =
        core->has_round && number >= core->first_round && number < core->end_round;
    const bool is_beyond =
        is_known && !form->channels[event->channel].is_per_step &&
        pen_run_microbatch(form, &form->channels[event->channel], event->sequence) >= own->count;
    if (check == PEN_FRAME_REFUSED || is_early || is_late || is_beyond) {
        return PEN_WORKER_FAULT_WINDOW;
    }
    return PEN_WORKER_FAULT_NONE;
}

static pen_worker_fault worker_receive(pen_worker_core *core, const pen_worker_event *event) {
    PEN_ASSERT(!worker_is_foreign(core, event->generation));
    PEN_ASSERT(core->actions != NULL);
    bool is_seen;
    const pen_worker_fault fault = pen_worker_core_check_frame(core, event, &is_seen);
    if (fault != PEN_WORKER_FAULT_NONE || is_seen) return fault;
    pen_frame_target_put(&core->channels[event->form][event->channel].target, event->sequence);
    if (PEN_PLANTED(credit_on_receipt)) {
        pen_worker_act_on_frame(core, PEN_WORKER_ACTION_GRANT, event->form, event->channel,
                                event->sequence + 1);
    }
    return PEN_WORKER_FAULT_NONE;
}

static pen_worker_fault worker_credit(pen_worker_core *core, const pen_worker_event *event) {
    PEN_ASSERT(!worker_is_foreign(core, event->generation));
    PEN_ASSERT(core->actions != NULL);
    if (event->form >= core->table->form_count ||
        event->channel >= core->table->forms[event->form].channel_count ||
        !core->channels[event->form][event->channel].is_source) {
        return PEN_WORKER_FAULT_CHANNEL;
    }
    if (core->state != WORKER_RUNNING) return PEN_WORKER_FAULT_NONE;
    worker_channel *channel = &core->channels[event->form][event->channel];
    if (!pen_frame_source_credit(&channel->source, event->sequence)) return PEN_WORKER_FAULT_CREDIT;
    pen_worker_send_waiting(core, event->form, event->channel);
    return PEN_WORKER_FAULT_NONE;
}

// Our own driver says so: what does not fit is our own mistake.
static void worker_let_go(pen_worker_core *core, const pen_worker_event *event) {
    PEN_ASSERT(event->form < core->table->form_count);
    PEN_ASSERT(event->channel < core->table->forms[event->form].channel_count);
    pen_frame_source *source = &core->channels[event->form][event->channel].source;
    const bool was_lent = pen_frame_source_let_go(source, event->sequence);
    PEN_ASSERT(was_lent);
    PEN_ASSERT(core->lent_count > 0);
    core->lent_count -= 1;
    worker_round *round = pen_worker_find_round(core, event->sequence / source->slots);
    PEN_ASSERT(round != NULL && round->out_count > 0);
    round->out_count -= 1;
}

// Likewise. What is read after a stop is not needed any more.
static void worker_end_read(pen_worker_core *core, const pen_worker_event *event) {
    PEN_ASSERT(event->form < core->table->form_count);
    PEN_ASSERT(event->channel < core->table->forms[event->form].channel_count);
    worker_channel *channel = &core->channels[event->form][event->channel];
    PEN_ASSERT(channel->is_read);
    const bool was_asked = pen_frame_source_let_go(&channel->feed.source, event->sequence);
    PEN_ASSERT(was_asked);
    PEN_ASSERT(core->lent_count > 0);
    core->lent_count -= 1;
    worker_round *round = pen_worker_find_round(core, event->sequence / channel->target.slots);
    PEN_ASSERT(round != NULL && round->out_count > 0);
    round->out_count -= 1;
    const pen_frame_check check = pen_frame_target_check(&channel->target, event->sequence);
    PEN_ASSERT(check != PEN_FRAME_REFUSED);
    if (check == PEN_FRAME_FITS) pen_frame_target_put(&channel->target, event->sequence);
    if (PEN_PLANTED(read_over)) {
        (void)pen_frame_source_credit(&channel->feed.source, event->sequence + 1);
    }
}

static void worker_end_task(pen_worker_core *core, uint32_t number) {
    PEN_ASSERT(core->running_count > 0);
    worker_device *device = NULL;
    for (uint32_t i = 0; i < core->device_count; i++) {
        if (core->devices[i].number == number) device = &core->devices[i];
    }
    PEN_ASSERT(device != NULL);
    PEN_ASSERT(device->is_running);
    device->is_running = false;
    core->running_count -= 1;
    if (core->state != WORKER_RUNNING) return;
    worker_round *round = pen_worker_find_round(core, device->round);
    PEN_ASSERT(round != NULL);
    pen_worker_complete(core, device, round);
}

static void worker_stop(pen_worker_core *core) {
    PEN_ASSERT(core->running_count <= core->device_count);
    PEN_ASSERT(core->actions != NULL);
    if (core->state == WORKER_STOPPED || core->state == WORKER_STOPPING) return;
    worker_transition(core, WORKER_STOPPING);
}

// What comes from outside must be of this generation, but for ASSIGN, which may begin a higher one.
static pen_worker_fault worker_take(pen_worker_core *core, const pen_worker_event *event) {
    PEN_ASSERT(core->action_count == 0);
    const bool is_ours = event->kind == PEN_WORKER_EVENT_LET_GO ||
                         event->kind == PEN_WORKER_EVENT_TASK_DONE ||
                         event->kind == PEN_WORKER_EVENT_READ;
    PEN_ASSERT(is_ours || event->kind < PEN_WORKER_EVENT_LET_GO);
    if (!is_ours && event->kind != PEN_WORKER_EVENT_ASSIGN &&
        worker_is_foreign(core, event->generation)) {
        return PEN_WORKER_FAULT_NONE;
    }
    switch (event->kind) {
    case PEN_WORKER_EVENT_ASSIGN:
        worker_assign(core, event->generation);
        break;
    case PEN_WORKER_EVENT_LOADED:
        if (core->state != WORKER_LOADING) break;
        worker_transition(core, WORKER_READY);
        pen_worker_act(core, PEN_WORKER_ACTION_READY);
        break;
    case PEN_WORKER_EVENT_START:
        if (core->state == WORKER_READY) worker_transition(core, WORKER_RUNNING);
        break;
    case PEN_WORKER_EVENT_ROUND:
        return worker_begin_round(core, event);
    case PEN_WORKER_EVENT_GO:
        return worker_go(core, event->round);
    case PEN_WORKER_EVENT_FRAME:
        return worker_receive(core, event);
    case PEN_WORKER_EVENT_CREDIT:
        return worker_credit(core, event);
    case PEN_WORKER_EVENT_STOP:
        worker_stop(core);
        break;
    case PEN_WORKER_EVENT_LET_GO:
        worker_let_go(core, event);
        break;
    case PEN_WORKER_EVENT_TASK_DONE:
        worker_end_task(core, event->device);
        break;
    case PEN_WORKER_EVENT_READ:
        worker_end_read(core, event);
        break;
    }
    return PEN_WORKER_FAULT_NONE;
}

pen_worker_fault pen_worker_core_step(pen_worker_core *core, const pen_worker_event *event,
                                      pen_worker_action *out_actions, uint32_t *out_action_count) {
    PEN_ASSERT(core->actions == NULL); // not from within itself
    const uint64_t generation = core->generation;
    core->actions = out_actions;
    core->action_count = 0;
    const pen_worker_fault fault = worker_take(core, event);
    if (fault == PEN_WORKER_FAULT_NONE && event->kind != PEN_WORKER_EVENT_ASSIGN) {
        worker_drain(core);
        pen_worker_advance(core);
    }
    PEN_ASSERT(core->generation >= generation);
    PEN_ASSERT(fault == PEN_WORKER_FAULT_NONE || core->action_count == 0);
    *out_action_count = core->action_count;
    core->actions = NULL;
    return fault;
}

const char *pen_worker_fault_text(pen_worker_fault fault) {
    switch (fault) {
    case PEN_WORKER_FAULT_NONE:
        return "nothing wrong";
    case PEN_WORKER_FAULT_CHANNEL:
        return "no such channel here";
    case PEN_WORKER_FAULT_WINDOW:
        return "a frame beyond the credit given";
    case PEN_WORKER_FAULT_CREDIT:
        return "a credit for what was not sent";
    case PEN_WORKER_FAULT_ROUND:
        return "a round out of order";
    }
    PEN_NEVER("a fault of a worker");
}
