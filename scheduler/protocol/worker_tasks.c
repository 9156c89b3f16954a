#include <string.h>

#include "base/planted.h"
#include "scheduler/protocol/worker_state.h"

pen_worker_action *pen_worker_act(pen_worker_core *core, pen_worker_action_kind kind) {
    PEN_ASSERT(core->actions != NULL);
    PEN_ASSERT(core->action_count < core->action_limit);
    pen_worker_action *action = &core->actions[core->action_count++];
    *action = (pen_worker_action){.kind = kind, .generation = core->generation};
    return action;
}

void pen_worker_act_on_frame(pen_worker_core *core, pen_worker_action_kind kind, uint32_t form,
                             uint32_t channel, uint64_t sequence) {
    PEN_ASSERT(kind == PEN_WORKER_ACTION_SEND || kind == PEN_WORKER_ACTION_GRANT ||
               kind == PEN_WORKER_ACTION_READ);
    PEN_ASSERT(channel < core->table->forms[form].channel_count);
    pen_worker_action *action = pen_worker_act(core, kind);
    action->form = form;
    action->channel = channel;
    action->sequence = sequence;
}

worker_round *pen_worker_find_round(pen_worker_core *core, uint64_t number) {
    PEN_ASSERT(core->first_round <= core->end_round);
    PEN_ASSERT(core->end_round - core->first_round <= PEN_WORKER_ROUND_LIMIT);
    if (number < core->first_round || number >= core->end_round) return NULL;
    return &core->rounds[number % PEN_WORKER_ROUND_LIMIT];
}

static const pen_run_task *worker_task(const pen_worker_core *core, const worker_device *device,
                                       uint32_t form) {
    const pen_run_device *tasks = &core->table->forms[form].devices[device->number];
    PEN_ASSERT(tasks->worker == core->worker);
    PEN_ASSERT(device->position <= tasks->task_end - tasks->task_first);
    if (device->position == tasks->task_end - tasks->task_first) return NULL;
    uint32_t position = device->position;
    if (PEN_PLANTED(arrival_order) && device->swap_end > 0) { // of the two before it
        if (device->swap_end == position + 2) {
            position += 1;
        } else if (device->swap_end == position + 1) {
            position -= 1;
        }
    }
    return &core->table->forms[form].tasks[tasks->task_first + position];
}

void pen_worker_rewind(const pen_worker_core *core, worker_device *device) {
    PEN_ASSERT(!device->is_running);
    PEN_ASSERT(device->turns != NULL);
    device->position = 0;
    device->swap_end = 0;
    memset(device->turns, 0,
           (size_t)core->stage_limit * PEN_TASK_KIND_COUNT * sizeof *device->turns);
}

// A task is done: each comes once, and those of a kind and stage in the order of their microbatches
// (the phases of updates may be left out), so that gradients are added in that order.
static void worker_count_task(const pen_worker_core *core, const worker_device *device,
                              const worker_round *round, const pen_run_task *task) {
    const pen_run_form *form = &core->table->forms[round->form];
    uint32_t *turns = &device->turns[core->places[round->form][task - form->tasks]];
    const worker_range *range = &core->ranges[round->form][task - form->tasks];
    const pen_task *work = &task->task;
    const uint32_t turn = turns[work->kind] == 0 ? range->first : turns[work->kind];
    PEN_ASSERT(work->kind == PEN_TASK_UPDATE ? work->microbatch >= turns[work->kind]
                                             : work->microbatch == turn);
    PEN_ASSERT(work->kind == PEN_TASK_UPDATE || work->microbatch < round->count);
    turns[work->kind] = work->microbatch + 1;
    if (work->kind != PEN_TASK_UPDATE) return;
    // an update has the gradients of all the stage's microbatches
    const uint32_t end = range->end < round->count ? range->end : round->count;
    const uint32_t last = end > range->first ? end : 0;
    const pen_task_kind kinds[] = {PEN_TASK_BACKWARD, PEN_TASK_BACKWARD_WEIGHT};
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        PEN_ASSERT(turns[kinds[i]] == 0 || turns[kinds[i]] == last);
    }
}

static bool worker_is_skipped(const worker_round *round, const pen_run_task *task) {
    PEN_ASSERT(round->count > 0);
    PEN_ASSERT(task->task.kind < PEN_TASK_KIND_COUNT);
    return pen_run_task_is_skipped(task, round->count, round->updates);
}

static uint64_t worker_sequence(const pen_run_form *form, uint32_t channel, uint64_t round,
                                const pen_run_task *task) {
    PEN_ASSERT(channel < form->channel_count);
    PEN_ASSERT(form->channels[channel].is_per_step || task->task.kind != PEN_TASK_UPDATE);
    return pen_run_sequence(form, &form->channels[channel], round, task->task.microbatch);
}

// A frame that a task waits for, or one it has no place for. False: none.
static bool worker_find_missing(const pen_worker_core *core, uint32_t form_number, uint64_t round,
                                const pen_run_task *task, pen_worker_wait *out_wait) {
    const pen_run_form *form = &core->table->forms[form_number];
    const worker_channel *channels = core->channels[form_number];
    PEN_ASSERT(task->receive_end <= form->ref_count);
    PEN_ASSERT(task->send_end <= form->ref_count);
    for (uint32_t i = task->receive_first; i < task->receive_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint64_t sequence = worker_sequence(form, channel, round, task);
        if (pen_frame_target_has(&channels[channel].target, sequence)) continue;
        out_wait->needs_frame = true;
        out_wait->channel = channel;
        out_wait->sequence = sequence;
        return true;
    }
    for (uint32_t i = task->send_first; i < task->send_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint64_t sequence = worker_sequence(form, channel, round, task);
        const bool has_place =
            form->channels[channel].is_shared
                ? pen_frame_target_check(&channels[channel].target, sequence) == PEN_FRAME_FITS
                : pen_frame_source_has_place(&channels[channel].source, sequence);
        if (has_place) continue;
        out_wait->needs_frame = false;
        out_wait->channel = channel;
        out_wait->sequence = sequence;
        return true;
    }
    return false;
}

void pen_worker_grant(pen_worker_core *core, uint32_t form, uint32_t channel, uint64_t sequence) {
    worker_channel *ends = &core->channels[form][channel];
    PEN_ASSERT(ends->is_target);
    if (!ends->is_read) {
        pen_worker_act_on_frame(core, PEN_WORKER_ACTION_GRANT, form, channel, sequence);
        return;
    }
    const bool was_read = pen_frame_source_credit(&ends->feed.source, sequence);
    PEN_ASSERT(was_read);
}

void pen_worker_send_waiting(pen_worker_core *core, uint32_t form, uint32_t channel) {
    worker_channel *ends = &core->channels[form][channel];
    PEN_ASSERT(ends->is_source);
    PEN_ASSERT(core->state == WORKER_RUNNING);
    uint64_t sequence;
    while (pen_frame_source_take(&ends->source, &sequence)) {
        core->lent_count += 1;
        pen_worker_act_on_frame(core, PEN_WORKER_ACTION_SEND, form, channel, sequence);
    }
}

// What a task made is handed over or sent, what it read last is released, and the credit for it
// granted.
void pen_worker_complete(pen_worker_core *core, worker_device *device, worker_round *round) {
    const pen_run_task *task = worker_task(core, device, round->form);
    PEN_ASSERT(task != NULL);
    const pen_run_form *form = &core->table->forms[round->form];
    worker_channel *channels = core->channels[round->form];
    PEN_ASSERT(!device->is_running);
    PEN_ASSERT(task->task.kind != PEN_TASK_UPDATE || round->may_update);
    worker_count_task(core, device, round, task);
    for (uint32_t i = task->send_first; i < task->send_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint64_t sequence = worker_sequence(form, channel, device->round, task);
        if (form->channels[channel].is_shared) {
            pen_frame_target_put(&channels[channel].target, sequence);
            continue;
        }
        pen_frame_source_make(&channels[channel].source, sequence);
        round->out_count += 1;
        pen_worker_send_waiting(core, round->form, channel);
    }
    for (uint32_t i = task->release_first; i < task->release_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint64_t sequence = worker_sequence(form, channel, device->round, task);
        pen_frame_target_release(&channels[channel].target, sequence);
        if (form->channels[channel].is_shared) continue;
        pen_worker_grant(core, round->form, channel, sequence + 1);
    }
    if (task->makes_loss) {
        pen_worker_action *action = pen_worker_act(core, PEN_WORKER_ACTION_LOSS);
        action->device = device->number;
        action->task = (uint32_t)(task - form->tasks);
        action->round = device->round;
        action->form = round->form;
    }
    if (task->makes_gradient) {
        pen_worker_action *action = pen_worker_act(core, PEN_WORKER_ACTION_GRADIENT);
        action->task = (uint32_t)(task - form->tasks);
        action->round = device->round;
        action->form = round->form;
    }
    device->position += 1;
}

// The device is through its tasks of the round: frames that no task released are consumed.
static void worker_leave_round(pen_worker_core *core, worker_device *device,
                               const worker_round *round) {
    const pen_run_form *form = &core->table->forms[round->form];
    PEN_ASSERT(!device->is_running);
    PEN_ASSERT(device->round < core->end_round);
    for (uint32_t i = 0; i < form->channel_count; i++) {
        const pen_run_channel *channel = &form->channels[i];
        if (channel->target_device != device->number) continue;
        pen_frame_target *target = &core->channels[round->form][i].target;
        const uint64_t end = (device->round + 1) * target->slots;
        if (!pen_frame_target_release_below(target, end) || channel->is_shared) continue;
        pen_worker_grant(core, round->form, i, target->consumed);
    }
    device->round += 1;
    pen_worker_rewind(core, device);
}

// A mistake that tests plant: of two tasks of a kind and stage whose frames are here, that which
// came last is taken first.
static const pen_run_task *worker_take_newest(const pen_worker_core *core, worker_device *device,
                                              const worker_round *round, const pen_run_task *task) {
    const pen_run_form *form = &core->table->forms[round->form];
    const pen_run_task *next = task + 1;
    const bool has_next = task + 1 < form->tasks + form->devices[device->number].task_end;
    pen_worker_wait wait;
    if (device->swap_end > device->position || !has_next || next->task.kind != task->task.kind ||
        next->task.stage != task->task.stage || worker_is_skipped(round, next) ||
        worker_find_missing(core, round->form, device->round, next, &wait)) {
        return task;
    }
    device->swap_end = device->position + 2;
    return next;
}

// Takes a device one task further. False: it waits, or computes.
static bool worker_advance_device(pen_worker_core *core, worker_device *device) {
    PEN_ASSERT(core->state == WORKER_RUNNING);
    PEN_ASSERT(device->round >= core->first_round);
    if (device->is_running) return false;
    worker_round *round = pen_worker_find_round(core, device->round);
    if (round == NULL) return false;
    const pen_run_task *task = worker_task(core, device, round->form);
    if (task == NULL) {
        worker_leave_round(core, device, round);
        return true;
    }
    if (worker_is_skipped(round, task)) {
        device->position += 1;
        return true;
    }
    if (task->task.kind == PEN_TASK_UPDATE && !round->may_update) return false;
    if (PEN_PLANTED(arrival_order)) task = worker_take_newest(core, device, round, task);
    pen_worker_wait wait;
    if (worker_find_missing(core, round->form, device->round, task, &wait)) return false;
    if (task->list == PEN_RUN_LIST_NONE) {
        pen_worker_complete(core, device, round);
        return true;
    }
    device->is_running = true;
    core->running_count += 1;
    pen_worker_action *action = pen_worker_act(core, PEN_WORKER_ACTION_RUN);
    action->device = device->number;
    action->task = (uint32_t)(task - core->table->forms[round->form].tasks);
    action->round = device->round;
    action->form = round->form;
    return false;
}

// Asks for the next frame that this worker reads, if it has a place. False: it has none, or there
// is none to be read.
static bool worker_read_next(pen_worker_core *core, pen_frame_feed *feed) {
    pen_frame_feed_begin(feed, core->first_round);
    worker_round *round = pen_worker_find_round(core, feed->round);
    if (round == NULL) return false;
    const pen_fed_round asked = {round->form, round->count, round->updates};
    uint32_t microbatch;
    uint64_t sequence;
    const pen_feed_step step =
        pen_frame_feed_next(feed, core->table, &asked, &microbatch, &sequence);
    if (step != PEN_FEED_SENDS) return step == PEN_FEED_SKIPPED;
    round->out_count += 1;
    core->lent_count += 1;
    pen_worker_act_on_frame(core, PEN_WORKER_ACTION_READ, feed->form, feed->channel, sequence);
    core->actions[core->action_count - 1].round = feed->round;
    return true;
}

static void worker_read(pen_worker_core *core) {
    if (core->first_round == core->end_round) return;
    const uint32_t form = pen_worker_find_round(core, core->first_round)->form;
    for (uint32_t i = 0; i < core->table->forms[form].channel_count; i++) {
        worker_channel *channel = &core->channels[form][i];
        if (!channel->is_read) continue;
        while (worker_read_next(core, &channel->feed)) {
        }
    }
}

static bool worker_is_round_done(const pen_worker_core *core, const worker_round *round) {
    PEN_ASSERT(core->first_round < core->end_round);
    PEN_ASSERT(round == &core->rounds[core->first_round % PEN_WORKER_ROUND_LIMIT]);
    if (round->out_count > 0) return false;
    for (uint32_t i = 0; i < core->device_count; i++) {
        if (core->devices[i].round <= core->first_round) return false;
    }
    return true;
}

// Until every device waits or computes. Devices that share memory set each other free.
void pen_worker_advance(pen_worker_core *core) {
    PEN_ASSERT(core->running_count <= core->device_count);
    PEN_ASSERT(core->actions != NULL);
    if (core->state != WORKER_RUNNING) return;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < core->device_count; i++) {
            while (worker_advance_device(core, &core->devices[i])) {
                moved = true;
            }
        }
    }
    while (core->first_round < core->end_round) {
        const worker_round *round = pen_worker_find_round(core, core->first_round);
        if (!worker_is_round_done(core, round)) break;
        pen_worker_act(core, PEN_WORKER_ACTION_ROUND_DONE)->round = core->first_round;
        core->first_round += 1;
    }
    worker_read(core);
}

// What a device is waiting for, found from the state as it is, so that nothing has to be kept for
// it.
pen_worker_wait pen_worker_core_get_wait(const pen_worker_core *core, uint32_t number) {
    const worker_device *device = NULL;
    for (uint32_t i = 0; i < core->device_count; i++) {
        if (core->devices[i].number == number) device = &core->devices[i];
    }
    PEN_ASSERT(device != NULL);
    pen_worker_wait wait = {.is_idle = true, .round = device->round, .channel = UINT32_MAX};
    if (core->state != WORKER_RUNNING || device->round >= core->end_round) return wait;
    const worker_round *round = &core->rounds[device->round % PEN_WORKER_ROUND_LIMIT];
    const pen_run_task *task = worker_task(core, device, round->form);
    PEN_ASSERT(task != NULL || device->is_running == false);
    if (task == NULL) return wait;
    wait.is_idle = false;
    wait.is_running = device->is_running;
    wait.task = task->task;
    wait.form = round->form;
    if (wait.is_running) return wait;
    wait.needs_go = task->task.kind == PEN_TASK_UPDATE && !round->may_update;
    if (!wait.needs_go) worker_find_missing(core, round->form, device->round, task, &wait);
    return wait;
}
