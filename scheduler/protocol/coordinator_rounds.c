#include "scheduler/protocol/coordinator_state.h"

#include <string.h>

#include "base/planted.h"
// ---- setting up

static pen_status coordinator_form_init(const pen_run_form *form, pen_arena *arena,
                                        coordinator_form *out_form) {
    PEN_ASSERT(form->microbatch_count > 0);
    PEN_ASSERT(out_form->feed_count == 0);
    PEN_TRY(PEN_NEW(arena, form->channel_count, &out_form->feeds));
    for (uint32_t i = 0; i < form->channel_count; i++) {
        if (form->channels[i].source_worker != 0) continue;
        coordinator_feed *feed = &out_form->feeds[out_form->feed_count++];
        feed->channel = i;
        feed->is_for_updates = pen_run_channel_is_for_updates(form, i);
        PEN_TRY(pen_frame_source_init(&feed->source, form, &form->channels[i], arena));
    }
    PEN_TRY(PEN_NEW(arena, form->task_count, &out_form->stages));
    PEN_TRY(PEN_NEW(arena, form->task_count, &out_form->workers));
    return PEN_OK;
}

// The stages whose tasks make losses, in the order of the table.
static void coordinator_find_reporters(const pen_run_table *table, const pen_run_form *form,
                                       coordinator_form *out_form) {
    PEN_ASSERT(out_form->stages != NULL);
    PEN_ASSERT(out_form->workers != NULL);
    for (uint32_t d = 0; d < table->device_count; d++) {
        for (uint32_t t = form->devices[d].task_first; t < form->devices[d].task_end; t++) {
            const pen_run_task *task = &form->tasks[t];
            if (!task->makes_loss || task->task.microbatch > 0) continue;
            out_form->stages[out_form->reporter_count] = task->task.stage;
            out_form->workers[out_form->reporter_count] = form->devices[d].worker;
            out_form->reporter_count += 1;
        }
    }
}

// Room for the losses of all rounds that may be under way, of the form that has most.
pen_status pen_coordinator_rounds_init(pen_coordinator_core *core, pen_arena *arena) {
    const pen_run_table *table = core->table;
    PEN_ASSERT(core->forms == NULL);
    PEN_ASSERT(table->form_count > 0);
    PEN_TRY(PEN_NEW(arena, table->form_count, &core->forms));
    PEN_TRY(PEN_NEW(arena, PEN_COORDINATOR_ROUND_LIMIT, &core->rounds));
    uint32_t reporter_limit = 0, feed_limit = 0;
    for (uint32_t f = 0; f < table->form_count; f++) {
        coordinator_form *form = &core->forms[f];
        PEN_TRY(coordinator_form_init(&table->forms[f], arena, form));
        coordinator_find_reporters(table, &table->forms[f], form);
        uint32_t feed_count = 0;
        for (uint32_t i = 0; i < form->feed_count; i++) {
            feed_count += form->feeds[i].source.copies;
        }
        if (feed_count > feed_limit) feed_limit = feed_count;
        if (form->reporter_count > reporter_limit) reporter_limit = form->reporter_count;
        if (table->forms[f].microbatch_count > core->microbatch_limit) {
            core->microbatch_limit = table->forms[f].microbatch_count;
        }
    }
    for (uint32_t i = 0; i < PEN_COORDINATOR_ROUND_LIMIT; i++) {
        const size_t count = (size_t)reporter_limit * core->microbatch_limit;
        PEN_TRY(PEN_NEW(arena, count, &core->rounds[i].has_loss));
        PEN_TRY(PEN_NEW(arena, count, &core->rounds[i].losses));
        core->rounds[i].number = UINT64_MAX;
    }
    // ROUND and GO to each worker for each round, LOSSES and ROUND_DONE of each, a frame for each
    // place of the host; or FAIL and STOP to each
    core->action_limit = (2 * PEN_COORDINATOR_ROUND_LIMIT + 2) * table->worker_count + feed_limit +
                         3 * PEN_COORDINATOR_ROUND_LIMIT + 4;
    return PEN_OK;
}

// ---- what is asked for

static coordinator_round *coordinator_find_round(const pen_coordinator_core *core,
                                                 uint64_t number) {
    PEN_ASSERT(core->first_round <= core->end_round);
    PEN_ASSERT(core->end_round - core->first_round <= PEN_COORDINATOR_ROUND_LIMIT);
    coordinator_round *round = &core->rounds[number % PEN_COORDINATOR_ROUND_LIMIT];
    return number < core->end_round && round->number == number ? round : NULL;
}

// A round takes the slot of one that is done. The clock for progress starts when nothing was under
// way before.
void pen_coordinator_begin(pen_coordinator_core *core, const pen_coordinator_event *event) {
    uint64_t number;
    PEN_ASSERT(pen_coordinator_core_can_begin(core, &number));
    PEN_ASSERT(event->form < core->table->form_count);
    const pen_run_form *form = &core->table->forms[event->form];
    PEN_ASSERT(event->count > 0 && event->count <= form->microbatch_count);
    PEN_ASSERT(!event->updates || form->trains);
    PEN_ASSERT(number < PEN_RUN_ROUND_LIMIT);
    coordinator_round *round = &core->rounds[number % PEN_COORDINATOR_ROUND_LIMIT];
    memset(round->has_loss, 0,
           (size_t)core->forms[event->form].reporter_count * core->microbatch_limit *
               sizeof *round->has_loss);
    *round = (coordinator_round){.number = number,
                                 .form = event->form,
                                 .count = event->count,
                                 .updates = event->updates,
                                 .has_loss = round->has_loss,
                                 .losses = round->losses};
    if (core->first_round == core->end_round) core->progressed_at = core->now;
    core->end_round += 1;
}

static bool coordinator_is_finite(uint64_t bits) {
    return (bits >> 52 & 0x7ff) != 0x7ff; // the exponent of a double
}

// The place of a loss; -1: nobody should report it.
static int64_t coordinator_loss_index(const pen_coordinator_core *core,
                                      const coordinator_round *round, uint32_t microbatch,
                                      uint32_t stage, uint32_t worker) {
    const coordinator_form *form = &core->forms[round->form];
    PEN_ASSERT(round->count <= core->microbatch_limit);
    PEN_ASSERT(worker <= core->table->worker_count);
    if (microbatch >= round->count) return -1;
    for (uint32_t i = 0; i < form->reporter_count; i++) {
        if (form->stages[i] != stage) continue;
        if (worker != 0 && form->workers[i] != worker) continue;
        return (int64_t)i * core->microbatch_limit + microbatch;
    }
    return -1;
}

// A loss that comes again must have the same bits. One that is not finite, in training, ends the
// updates: no `go` is given any more.
void pen_coordinator_take_loss(pen_coordinator_core *core, const pen_coordinator_event *event) {
    PEN_ASSERT(event->kind == PEN_COORDINATOR_EVENT_LOSS);
    PEN_ASSERT(event->generation == core->options.generation);
    coordinator_round *round = coordinator_find_round(core, event->round);
    if (round == NULL && event->round < core->first_round) return; // again, long ago
    const int64_t index =
        round == NULL || event->round >= core->announced_round
            ? -1
            : coordinator_loss_index(core, round, event->microbatch, event->stage, event->worker);
    const bool is_again = index >= 0 && round->has_loss[index];
    if (index < 0 ||
        (is_again && memcmp(&round->losses[index], &event->loss, sizeof event->loss) != 0)) {
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_LOSS, event->worker);
        return;
    }
    if (is_again) return;
    round->has_loss[index] = true;
    round->losses[index] = event->loss;
    round->loss_count += 1;
    core->progressed_at = core->now;
    const bool trains = core->table->forms[round->form].trains;
    if (!trains || core->is_not_finite || coordinator_is_finite(event->loss.value)) return;
    core->is_not_finite = true;
    pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_NOT_FINITE);
    action->round = event->round;
    action->form = round->form;
    action->microbatch = event->microbatch;
    action->stage = event->stage;
}

const pen_coordinator_loss *pen_coordinator_core_find_loss(const pen_coordinator_core *core,
                                                           uint64_t number, uint32_t microbatch,
                                                           uint32_t stage) {
    PEN_ASSERT(core->losses_round <= core->end_round);
    PEN_ASSERT(core->microbatch_limit > 0);
    const coordinator_round *round = coordinator_find_round(core, number);
    if (round == NULL) return NULL;
    const int64_t index = coordinator_loss_index(core, round, microbatch, stage, 0);
    return index >= 0 && round->has_loss[index] ? &round->losses[index] : NULL;
}

// A worker ends its rounds in order.
void pen_coordinator_end_round(pen_coordinator_core *core, const pen_coordinator_event *event) {
    coordinator_worker *worker = &core->workers[event->worker];
    PEN_ASSERT(worker->is_present);
    PEN_ASSERT(worker->done_round >= core->first_round);
    if (event->round < worker->done_round) return; // again
    if (event->round > worker->done_round || event->round >= core->announced_round) {
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_ROUND, event->worker);
        return;
    }
    worker->done_round += 1;
    coordinator_round *round = coordinator_find_round(core, event->round);
    PEN_ASSERT(round != NULL);
    round->worker_count += 1;
    core->progressed_at = core->now;
    PEN_ASSERT(round->worker_count <= core->table->worker_count);
}

// ---- feeding

static coordinator_feed *coordinator_find_feed(pen_coordinator_core *core, uint32_t form,
                                               uint32_t channel) {
    PEN_ASSERT(core->forms != NULL);
    PEN_ASSERT(core->table->form_count > 0);
    if (form >= core->table->form_count) return NULL;
    for (uint32_t i = 0; i < core->forms[form].feed_count; i++) {
        if (core->forms[form].feeds[i].channel == channel) return &core->forms[form].feeds[i];
    }
    return NULL;
}

void pen_coordinator_take_credit(pen_coordinator_core *core, const pen_coordinator_event *event) {
    PEN_ASSERT(event->kind == PEN_COORDINATOR_EVENT_CREDIT);
    PEN_ASSERT(event->generation == core->options.generation);
    coordinator_feed *feed = coordinator_find_feed(core, event->form, event->channel);
    const bool is_right =
        feed != NULL &&
        core->table->forms[event->form].channels[feed->channel].target_worker == event->worker &&
        pen_frame_source_credit(&feed->source, event->sequence);
    if (!is_right) pen_coordinator_fail(core, PEN_COORDINATOR_REASON_CREDIT, event->worker);
}

// Our own driver says so: what does not fit is our own mistake.
void pen_coordinator_let_go(pen_coordinator_core *core, const pen_coordinator_event *event) {
    coordinator_feed *feed = coordinator_find_feed(core, event->form, event->channel);
    PEN_ASSERT(feed != NULL);
    const bool was_lent = pen_frame_source_let_go(&feed->source, event->sequence);
    PEN_ASSERT(was_lent);
    coordinator_round *round = coordinator_find_round(core, event->sequence / feed->source.slots);
    PEN_ASSERT(round != NULL && round->fed_count > 0);
    round->fed_count -= 1;
}

// The next frame of a channel, if it may be sent. False: it may not, or there is none.
static bool coordinator_feed_next(pen_coordinator_core *core, uint32_t form_number,
                                  coordinator_feed *feed) {
    const pen_run_form *form = &core->table->forms[form_number];
    const pen_run_channel *channel = &form->channels[feed->channel];
    PEN_ASSERT(core->state == PEN_COORDINATOR_RUN);
    if (feed->round < core->first_round) {
        feed->round = core->first_round;
        feed->microbatch = 0;
    }
    if (feed->round >= core->announced_round) return false;
    coordinator_round *round = coordinator_find_round(core, feed->round);
    PEN_ASSERT(round != NULL);
    const bool is_skipped = round->form != form_number || (feed->is_for_updates && !round->updates);
    if (is_skipped || feed->microbatch == (channel->is_per_step ? 1 : round->count)) {
        feed->round += 1;
        feed->microbatch = 0;
        return true;
    }
    const uint64_t sequence = pen_run_sequence(form, channel, feed->round, feed->microbatch);
    if (!pen_frame_source_can_send(&feed->source, sequence)) return false;
    pen_frame_source_make(&feed->source, sequence);
    uint64_t taken;
    const bool is_taken = pen_frame_source_take(&feed->source, &taken);
    PEN_ASSERT(is_taken && taken == sequence);
    round->fed_count += 1;
    pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_FEED);
    action->worker = channel->target_worker;
    action->form = form_number;
    action->channel = feed->channel;
    action->round = feed->round;
    action->microbatch = feed->microbatch;
    action->sequence = sequence;
    feed->microbatch += 1;
    return true;
}

// ---- going on

static void coordinator_announce(pen_coordinator_core *core) {
    PEN_ASSERT(core->announced_round <= core->end_round);
    PEN_ASSERT(core->first_round <= core->announced_round);
    while (core->announced_round < core->end_round) {
        const coordinator_round *round = coordinator_find_round(core, core->announced_round);
        const coordinator_round *oldest = coordinator_find_round(core, core->first_round);
        if (round->form != oldest->form) return;
        for (uint32_t i = 1; i <= core->table->worker_count; i++) {
            pen_coordinator_action *action =
                pen_coordinator_act(core, PEN_COORDINATOR_ACTION_ROUND);
            action->worker = i;
            action->round = round->number;
            action->form = round->form;
            action->count = round->count;
            action->updates = round->updates;
        }
        core->announced_round += 1;
    }
}

static void coordinator_say_go(pen_coordinator_core *core, coordinator_round *round) {
    PEN_ASSERT(round->updates);
    PEN_ASSERT(round->number < core->announced_round);
    if (round->has_gone) return;
    round->has_gone = true;
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_GO);
        action->worker = i;
        action->round = round->number;
    }
}

// Losses are complete in the order of rounds, so that a `go` covers all rounds before.
static void coordinator_judge_losses(pen_coordinator_core *core) {
    PEN_ASSERT(core->losses_round >= core->first_round);
    PEN_ASSERT(core->losses_round <= core->announced_round);
    while (core->losses_round < core->announced_round) {
        coordinator_round *round = coordinator_find_round(core, core->losses_round);
        const uint32_t expected = core->forms[round->form].reporter_count * round->count;
        PEN_ASSERT(round->loss_count <= expected);
        if (PEN_PLANTED(early_go) && round->updates && round->loss_count > 0) {
            coordinator_say_go(core, round);
        }
        if (round->loss_count < expected) return;
        const bool is_judged = core->table->forms[round->form].trains;
        if (is_judged && core->is_not_finite && !PEN_PLANTED(go_without_finite)) return;
        pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_LOSSES);
        action->round = round->number;
        action->form = round->form;
        round->has_losses = true;
        core->losses_round += 1;
        if (round->updates) coordinator_say_go(core, round);
    }
}

static void coordinator_end_rounds(pen_coordinator_core *core) {
    PEN_ASSERT(core->first_round <= core->losses_round);
    PEN_ASSERT(core->losses_round <= core->end_round);
    while (core->first_round < core->losses_round) {
        const coordinator_round *round = coordinator_find_round(core, core->first_round);
        if (round->worker_count < core->table->worker_count || round->fed_count > 0) return;
        PEN_ASSERT(round->has_losses && round->has_gone == round->updates);
        pen_coordinator_action *action =
            pen_coordinator_act(core, PEN_COORDINATOR_ACTION_ROUND_DONE);
        action->round = round->number;
        action->form = round->form;
        core->first_round += 1;
    }
}

void pen_coordinator_advance(pen_coordinator_core *core) {
    PEN_ASSERT(core->state == PEN_COORDINATOR_RUN);
    PEN_ASSERT(core->actions != NULL);
    coordinator_judge_losses(core);
    coordinator_end_rounds(core);
    coordinator_announce(core);
    coordinator_judge_losses(core); // of forms that have none
    if (core->first_round == core->announced_round) return;
    const uint32_t form = coordinator_find_round(core, core->first_round)->form;
    for (uint32_t i = 0; i < core->forms[form].feed_count; i++) {
        while (coordinator_feed_next(core, form, &core->forms[form].feeds[i])) {
        }
    }
}
