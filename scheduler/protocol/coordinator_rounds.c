#include "scheduler/protocol/coordinator_state.h"

#include <string.h>

#include "base/planted.h"
// ---- setting up

static pen_status coordinator_form_init(const pen_run_table *table, uint32_t number,
                                        pen_arena *arena, coordinator_form *out_form) {
    const pen_run_form *form = &table->forms[number];
    PEN_ASSERT(form->microbatch_count > 0);
    PEN_ASSERT(out_form->feed_count == 0);
    PEN_TRY(PEN_NEW(arena, form->channel_count, &out_form->feeds));
    for (uint32_t i = 0; i < form->channel_count; i++) {
        if (form->channels[i].source_worker != 0) continue;
        pen_frame_feed *feed = &out_form->feeds[out_form->feed_count++];
        PEN_TRY(pen_frame_feed_init(feed, table, number, i, arena));
    }
    PEN_TRY(PEN_NEW(arena, form->task_count, &out_form->losses.items));
    return PEN_NEW(arena, form->task_count, &out_form->gradients.items);
}

static coordinator_reporter *coordinator_find_reporter(coordinator_reporters *reporters,
                                                       uint32_t stage) {
    for (uint32_t i = reporters->count; i > 0; i--) { // mostly the last
        if (reporters->items[i - 1].stage == stage) return &reporters->items[i - 1];
    }
    return NULL;
}

// A stage's reports come by microbatch.
static void coordinator_note_reporter(coordinator_reporters *reporters, const pen_task *task,
                                      uint32_t worker) {
    coordinator_reporter *reporter = coordinator_find_reporter(reporters, task->stage);
    if (reporter == NULL) {
        reporter = &reporters->items[reporters->count++];
        *reporter = (coordinator_reporter){
            .stage = task->stage, .worker = worker, .first = task->microbatch};
    }
    reporter->end = task->microbatch + 1;
}

// The stages whose tasks make losses, or gradients, in the order of the table.
static void coordinator_find_reporters(const pen_run_table *table, const pen_run_form *form,
                                       coordinator_form *out_form) {
    PEN_ASSERT(out_form->losses.items != NULL);
    for (uint32_t d = 0; d < table->device_count; d++) {
        for (uint32_t t = form->devices[d].task_first; t < form->devices[d].task_end; t++) {
            const pen_run_task *task = &form->tasks[t];
            const uint32_t worker = form->devices[d].worker;
            if (task->makes_loss) coordinator_note_reporter(&out_form->losses, &task->task, worker);
            if (!task->makes_gradient) continue;
            coordinator_note_reporter(&out_form->gradients, &task->task, worker);
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
    uint32_t reporter_limit = 0, gradient_limit = 0, feed_limit = 0;
    for (uint32_t f = 0; f < table->form_count; f++) {
        coordinator_form *form = &core->forms[f];
        PEN_TRY(coordinator_form_init(table, f, arena, form));
        coordinator_find_reporters(table, &table->forms[f], form);
        uint32_t feed_count = 0;
        for (uint32_t i = 0; i < form->feed_count; i++) {
            feed_count += form->feeds[i].source.copies;
        }
        if (feed_count > feed_limit) feed_limit = feed_count;
        if (form->losses.count > reporter_limit) reporter_limit = form->losses.count;
        if (form->gradients.count > gradient_limit) gradient_limit = form->gradients.count;
        if (table->forms[f].microbatch_count > core->microbatch_limit) {
            core->microbatch_limit = table->forms[f].microbatch_count;
        }
    }
    for (uint32_t i = 0; i < PEN_COORDINATOR_ROUND_LIMIT; i++) {
        const size_t count = (size_t)reporter_limit * core->microbatch_limit;
        PEN_TRY(PEN_NEW(arena, count, &core->rounds[i].has_loss));
        PEN_TRY(PEN_NEW(arena, count, &core->rounds[i].losses));
        PEN_TRY(PEN_NEW(arena, (size_t)gradient_limit * core->microbatch_limit,
                        &core->rounds[i].has_gradient));
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

static void coordinator_forget(bool *has, const coordinator_reporters *reporters,
                               uint32_t microbatch_limit) {
    if (reporters->count == 0) return;
    memset(has, 0, (size_t)reporters->count * microbatch_limit * sizeof *has);
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
    const coordinator_form *reports = &core->forms[event->form];
    coordinator_forget(round->has_loss, &reports->losses, core->microbatch_limit);
    coordinator_forget(round->has_gradient, &reports->gradients, core->microbatch_limit);
    *round = (coordinator_round){.number = number,
                                 .form = event->form,
                                 .count = event->count,
                                 .updates = event->updates,
                                 .first_microbatch = event->microbatch,
                                 .given = event->order,
                                 .has_loss = round->has_loss,
                                 .losses = round->losses,
                                 .has_gradient = round->has_gradient};
    if (core->first_round == core->end_round) core->progressed_at = core->now;
    core->end_round += 1;
}

static bool coordinator_is_finite(uint64_t bits) {
    return (bits >> 52 & 0x7ff) != 0x7ff; // the exponent of a double
}

// The place of a report; -1: nobody should make it.
static int64_t coordinator_report_index(const pen_coordinator_core *core,
                                        const coordinator_reporters *reporters,
                                        const coordinator_round *round,
                                        const pen_coordinator_event *event) {
    const uint32_t microbatch = event->microbatch, stage = event->stage, worker = event->worker;
    PEN_ASSERT(round->count <= core->microbatch_limit);
    PEN_ASSERT(worker <= core->table->worker_count);
    if (microbatch >= round->count) return -1;
    for (uint32_t i = 0; i < reporters->count; i++) {
        const coordinator_reporter *reporter = &reporters->items[i];
        if (reporter->stage != stage || microbatch < reporter->first) continue;
        if (microbatch >= reporter->end || (worker != 0 && reporter->worker != worker)) continue;
        return (int64_t)i * core->microbatch_limit + microbatch;
    }
    return -1;
}

// The round that a loss or a gradient is of, and the place of the report in it. NULL: there is
// nothing to note, because the round is long over, or because nobody should make this report, which
// ends the training.
static coordinator_round *coordinator_find_report(pen_coordinator_core *core,
                                                  const pen_coordinator_event *event,
                                                  int64_t *out_index) {
    const bool is_loss = event->kind == PEN_COORDINATOR_EVENT_LOSS;
    PEN_ASSERT(is_loss || event->kind == PEN_COORDINATOR_EVENT_GRADIENT);
    PEN_ASSERT(event->generation == core->options.generation);
    coordinator_round *round = coordinator_find_round(core, event->round);
    if (round == NULL && event->round < core->first_round) return NULL; // again, long ago
    *out_index = -1;
    if (round != NULL && event->round < core->announced_round) {
        const coordinator_form *form = &core->forms[round->form];
        *out_index = coordinator_report_index(core, is_loss ? &form->losses : &form->gradients,
                                              round, event);
    }
    if (*out_index >= 0) return round;
    pen_coordinator_fail(core, PEN_COORDINATOR_REASON_LOSS, event->worker);
    return NULL;
}

// A loss that comes again must have the same bits. One that is not finite, in training, ends the
// updates: no `go` is given any more. Not so where updates skip such a step by themselves.
void pen_coordinator_take_loss(pen_coordinator_core *core, const pen_coordinator_event *event) {
    int64_t index;
    PEN_ASSERT(event->kind == PEN_COORDINATOR_EVENT_LOSS);
    coordinator_round *round = coordinator_find_report(core, event, &index);
    if (round == NULL) return;
    if (round->has_loss[index]) { // again
        if (memcmp(&round->losses[index], &event->loss, sizeof event->loss) == 0) return;
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_LOSS, event->worker);
        return;
    }
    round->has_loss[index] = true;
    round->losses[index] = event->loss;
    round->loss_count += 1;
    core->progressed_at = core->now;
    const pen_run_form *form = &core->table->forms[round->form];
    if (!form->trains || form->skips || core->is_not_finite ||
        coordinator_is_finite(event->loss.value))
        return;
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
    const pen_coordinator_event asked = {.microbatch = microbatch, .stage = stage};
    const int64_t index =
        coordinator_report_index(core, &core->forms[round->form].losses, round, &asked);
    return index >= 0 && round->has_loss[index] ? &round->losses[index] : NULL;
}

// ---- the order of lanes

// That the step has in the rounds up to this.
static uint32_t coordinator_count_lanes(const pen_coordinator_core *core,
                                        const coordinator_round *round) {
    return pen_lane_count(&core->options.lanes, (uint64_t)round->first_microbatch + round->count);
}

static void coordinator_expect_gradient(coordinator_round *round, const pen_lanes *lanes,
                                        uint32_t microbatch) {
    pen_arrivals_expect(&round->tally,
                        pen_lane_of(lanes, (uint64_t)round->first_microbatch + microbatch));
}

// What a round is to tell of, beside what those before it in the step have told, and will tell.
// Where a round follows in the step, what it begins with is missing until then.
static void coordinator_expect_gradients(pen_coordinator_core *core, coordinator_round *round) {
    const pen_lanes *lanes = &core->options.lanes;
    const coordinator_reporters *gradients = &core->forms[round->form].gradients;
    if (gradients->count == 0) return;
    if (round->first_microbatch > 0) {
        const coordinator_round *before =
            round->number == 0 ? NULL : coordinator_find_round(core, round->number - 1);
        if (before != NULL && !PEN_PLANTED(forgets_who_came)) round->tally = before->tally;
    }
    for (uint32_t i = 0; i < gradients->count; i++) {
        const coordinator_reporter *reporter = &gradients->items[i];
        for (uint32_t m = reporter->first; m < reporter->end && m < round->count; m++) {
            coordinator_expect_gradient(round, lanes, m);
        }
    }
    if (!round->updates) coordinator_expect_gradient(round, lanes, round->count);
    if (round->first_microbatch > 0) {
        pen_arrivals_tell(&round->tally, pen_lane_of(lanes, round->first_microbatch));
    }
    pen_arrivals_settle(&round->tally, coordinator_count_lanes(core, round));
}

// A gradient of a lane, for the round and those that go on with its step.
static void coordinator_tell_lane(pen_coordinator_core *core, const coordinator_round *from,
                                  uint32_t lane) {
    for (uint64_t number = from->number; number < core->announced_round; number++) {
        coordinator_round *round = coordinator_find_round(core, number);
        if (number > from->number && round->first_microbatch == 0) return;
        pen_arrivals_tell(&round->tally, lane);
    }
}

// One that is told again counts once. With the last of a lane, the lane has come.
void pen_coordinator_take_gradient(pen_coordinator_core *core, const pen_coordinator_event *event) {
    int64_t index;
    PEN_ASSERT(event->kind == PEN_COORDINATOR_EVENT_GRADIENT);
    coordinator_round *round = coordinator_find_report(core, event, &index);
    if (round == NULL) return;
    if (round->has_gradient[index]) return; // again
    round->has_gradient[index] = true;
    core->progressed_at = core->now;
    const uint64_t microbatch = (uint64_t)round->first_microbatch + event->microbatch;
    coordinator_tell_lane(core, round, pen_lane_of(&core->options.lanes, microbatch));
}

// Whether it is known in which order lanes came, or does not matter.
static bool coordinator_has_order(const pen_coordinator_core *core,
                                  const coordinator_round *round) {
    if (core->forms[round->form].gradients.count == 0 || round->given != 0) return true;
    if (PEN_PLANTED(go_without_order)) return true;
    return round->tally.count == coordinator_count_lanes(core, round);
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

static pen_frame_feed *coordinator_find_feed(pen_coordinator_core *core, uint32_t form,
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
    pen_frame_feed *feed = coordinator_find_feed(core, event->form, event->channel);
    const bool is_right =
        feed != NULL &&
        core->table->forms[event->form].channels[feed->channel].target_worker == event->worker &&
        pen_frame_source_credit(&feed->source, event->sequence);
    if (!is_right) pen_coordinator_fail(core, PEN_COORDINATOR_REASON_CREDIT, event->worker);
}

// Our own driver says so: what does not fit is our own mistake.
void pen_coordinator_let_go(pen_coordinator_core *core, const pen_coordinator_event *event) {
    pen_frame_feed *feed = coordinator_find_feed(core, event->form, event->channel);
    PEN_ASSERT(feed != NULL);
    const bool was_lent = pen_frame_source_let_go(&feed->source, event->sequence);
    PEN_ASSERT(was_lent);
    coordinator_round *round = coordinator_find_round(core, event->sequence / feed->source.slots);
    PEN_ASSERT(round != NULL && round->fed_count > 0);
    round->fed_count -= 1;
}

// The next frame of a channel, if it may be sent. False: it may not, or there is none.
static bool coordinator_feed_next(pen_coordinator_core *core, pen_frame_feed *feed) {
    PEN_ASSERT(core->state == PEN_COORDINATOR_RUN);
    pen_frame_feed_begin(feed, core->first_round);
    if (feed->round >= core->announced_round) return false;
    coordinator_round *round = coordinator_find_round(core, feed->round);
    PEN_ASSERT(round != NULL);
    const pen_fed_round asked = {round->form, round->count, round->updates};
    uint32_t microbatch;
    uint64_t sequence;
    const pen_feed_step step =
        pen_frame_feed_next(feed, core->table, &asked, &microbatch, &sequence);
    if (step != PEN_FEED_SENDS) return step == PEN_FEED_SKIPPED;
    round->fed_count += 1;
    pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_FEED);
    action->worker = core->table->forms[feed->form].channels[feed->channel].target_worker;
    action->form = feed->form;
    action->channel = feed->channel;
    action->round = feed->round;
    action->microbatch = microbatch;
    action->sequence = sequence;
    return true;
}

// ---- going on

// Rounds of one form may be under way together.
static void coordinator_announce(pen_coordinator_core *core) {
    PEN_ASSERT(core->announced_round <= core->end_round);
    PEN_ASSERT(core->first_round <= core->announced_round);
    while (core->announced_round < core->end_round) {
        coordinator_round *round = coordinator_find_round(core, core->announced_round);
        const coordinator_round *oldest = coordinator_find_round(core, core->first_round);
        if (round->form != oldest->form) return;
        coordinator_expect_gradients(core, round);
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
    const bool is_given = round->given != 0 && !PEN_PLANTED(replays_nothing);
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_GO);
        action->worker = i;
        action->round = round->number;
        action->order = is_given ? round->given : round->tally.order;
        if (PEN_PLANTED(an_order_for_each) && round->tally.count > 1 && i > 1) {
            action->order = pen_arrivals_order_of_one(round->tally.count);
        }
    }
}

static uint32_t coordinator_count_losses(const pen_coordinator_core *core,
                                         const coordinator_round *round) {
    const coordinator_reporters *losses = &core->forms[round->form].losses;
    uint32_t count = 0;
    for (uint32_t i = 0; i < losses->count; i++) {
        const coordinator_reporter *reporter = &losses->items[i];
        const uint32_t end = reporter->end < round->count ? reporter->end : round->count;
        if (end > reporter->first) count += end - reporter->first;
    }
    return count;
}

// Losses are complete in the order of rounds.
static void coordinator_judge_losses(pen_coordinator_core *core) {
    PEN_ASSERT(core->losses_round >= core->first_round);
    PEN_ASSERT(core->losses_round <= core->announced_round);
    while (core->losses_round < core->announced_round) {
        coordinator_round *round = coordinator_find_round(core, core->losses_round);
        const uint32_t expected = coordinator_count_losses(core, round);
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
    }
}

// In the order of rounds, when their losses are finite, and the order of their lanes is known.
static void coordinator_say_goes(pen_coordinator_core *core) {
    for (uint64_t number = core->first_round; number < core->losses_round; number++) {
        coordinator_round *round = coordinator_find_round(core, number);
        if (!round->updates || round->has_gone) continue;
        if (!coordinator_has_order(core, round)) return;
        coordinator_say_go(core, round);
    }
}

static void coordinator_end_rounds(pen_coordinator_core *core) {
    PEN_ASSERT(core->first_round <= core->losses_round);
    PEN_ASSERT(core->losses_round <= core->end_round);
    while (core->first_round < core->losses_round) {
        const coordinator_round *round = coordinator_find_round(core, core->first_round);
        if (round->worker_count < core->table->worker_count || round->fed_count > 0) return;
        if (round->updates && !round->has_gone) return; // it was not done, whatever they say
        PEN_ASSERT(round->has_losses);
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
    coordinator_say_goes(core);
    coordinator_end_rounds(core);
    coordinator_announce(core);
    coordinator_judge_losses(core); // of forms that have none
    coordinator_say_goes(core);
    if (core->first_round == core->announced_round) return;
    const uint32_t form = coordinator_find_round(core, core->first_round)->form;
    for (uint32_t i = 0; i < core->forms[form].feed_count; i++) {
        while (coordinator_feed_next(core, &core->forms[form].feeds[i])) {
        }
    }
}
