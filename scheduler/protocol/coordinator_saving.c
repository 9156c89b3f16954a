#include "base/planted.h"
#include "scheduler/protocol/coordinator_state.h"

bool pen_coordinator_core_can_save(const pen_coordinator_core *core) {
    const bool is_quiet = core->first_round == core->end_round || PEN_PLANTED(snapshot_not_quiet);
    return core->state == PEN_COORDINATOR_RUN && core->save_state == PEN_COORDINATOR_SAVE_NONE &&
           is_quiet;
}

pen_coordinator_save_state pen_coordinator_core_save_state(const pen_coordinator_core *core,
                                                           uint64_t *out_step) {
    *out_step = core->save_step;
    return core->save_state;
}

static bool coordinator_may_save(pen_coordinator_save_state from, pen_coordinator_save_state to) {
    switch (to) {
    case PEN_COORDINATOR_SAVE_NONE:
        return from == PEN_COORDINATOR_SAVE_WRITING || from == PEN_COORDINATOR_SAVE_PUBLISHING;
    case PEN_COORDINATOR_SAVE_SNAPPING:
        return from == PEN_COORDINATOR_SAVE_NONE;
    case PEN_COORDINATOR_SAVE_WRITING:
        return from == PEN_COORDINATOR_SAVE_SNAPPING;
    case PEN_COORDINATOR_SAVE_PUBLISHING:
        return from == PEN_COORDINATOR_SAVE_WRITING;
    }
    PEN_NEVER("a state of a save");
}

static void coordinator_save_transition(pen_coordinator_core *core, pen_coordinator_save_state to) {
    PEN_ASSERT(core->state == PEN_COORDINATOR_RUN);
    PEN_ASSERT(coordinator_may_save(core->save_state, to));
    core->save_state = to;
}

static void coordinator_tell_all(pen_coordinator_core *core, pen_coordinator_action_kind kind) {
    PEN_ASSERT(core->save_number > 0);
    PEN_ASSERT(core->save_state != PEN_COORDINATOR_SAVE_NONE);
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        pen_coordinator_action *action = pen_coordinator_act(core, kind);
        action->worker = i;
        action->incarnation = core->workers[i].incarnation;
        action->step = core->save_step;
        action->sequence = core->save_number;
    }
}

void pen_coordinator_begin_save(pen_coordinator_core *core, const pen_coordinator_event *event) {
    PEN_ASSERT(event->kind == PEN_COORDINATOR_EVENT_SAVE);
    PEN_ASSERT(pen_coordinator_core_can_save(core));
    core->save_number += 1;
    core->save_step = event->step;
    core->save_is_failed = false;
    core->save_at = core->now;
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        core->workers[i].has_snapped = false;
        core->workers[i].has_shard = false;
    }
    coordinator_save_transition(core, PEN_COORDINATOR_SAVE_SNAPPING);
    coordinator_tell_all(core, PEN_COORDINATOR_ACTION_SNAPSHOT);
}

// Whether an event is of the save under way. One of a save before is passed over, also where that
// was of the same step and failed; one of a save that was never asked for ends the run.
static bool coordinator_is_of_save(pen_coordinator_core *core, const pen_coordinator_event *event) {
    PEN_ASSERT(event->worker > 0 && event->worker <= core->table->worker_count);
    PEN_ASSERT(event->kind == PEN_COORDINATOR_EVENT_SNAPPED ||
               event->kind == PEN_COORDINATOR_EVENT_SHARD);
    const bool is_last = event->sequence == core->save_number;
    if (event->sequence == 0 || event->sequence > core->save_number ||
        (is_last && event->step != core->save_step)) {
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_SAVE, event->worker);
        return false;
    }
    return is_last && core->save_state != PEN_COORDINATOR_SAVE_NONE;
}

static void coordinator_fail_save(pen_coordinator_core *core, uint32_t worker) {
    PEN_ASSERT(core->save_state != PEN_COORDINATOR_SAVE_NONE);
    PEN_ASSERT(!core->save_is_failed);
    core->save_is_failed = true;
    pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_SAVE_FAILED);
    action->worker = worker;
    action->step = core->save_step;
}

void pen_coordinator_take_snapped(pen_coordinator_core *core, const pen_coordinator_event *event) {
    if (!coordinator_is_of_save(core, event)) return;
    core->workers[event->worker].has_snapped = true;
}

void pen_coordinator_take_shard(pen_coordinator_core *core, const pen_coordinator_event *event) {
    if (!coordinator_is_of_save(core, event)) return;
    coordinator_worker *worker = &core->workers[event->worker];
    if (worker->has_shard) return; // again
    worker->has_snapped = true;    // or it never will, which comes to the same
    worker->has_shard = true;
    if (core->save_state == PEN_COORDINATOR_SAVE_WRITING) core->save_at = core->now;
    if (event->code != 0 && !core->save_is_failed) coordinator_fail_save(core, event->worker);
}

void pen_coordinator_take_published(pen_coordinator_core *core,
                                    const pen_coordinator_event *event) {
    PEN_ASSERT(core->save_state == PEN_COORDINATOR_SAVE_PUBLISHING);
    PEN_ASSERT(event->step == core->save_step);
    if (event->code == PEN_CANCELLED) {
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_SUPERSEDED, 0);
        return;
    }
    if (event->code != 0) {
        coordinator_fail_save(core, 0);
    } else if (!PEN_PLANTED(early_durable_ack)) {
        coordinator_tell_all(core, PEN_COORDINATOR_ACTION_COMMITTED);
    }
    coordinator_save_transition(core, PEN_COORDINATOR_SAVE_NONE);
}

// From copied to written to published, each step when all workers have reached it. A save that
// failed ends only when every worker is done with its part.
void pen_coordinator_advance_save(pen_coordinator_core *core) {
    PEN_ASSERT(core->state == PEN_COORDINATOR_RUN);
    PEN_ASSERT(core->save_number > 0 || core->save_state == PEN_COORDINATOR_SAVE_NONE);
    uint32_t snapped_count = 0, shard_count = 0;
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        if (core->workers[i].has_snapped) snapped_count++;
        if (core->workers[i].has_shard) shard_count++;
    }
    PEN_ASSERT(shard_count <= snapped_count);
    if (core->save_state == PEN_COORDINATOR_SAVE_SNAPPING &&
        snapped_count == core->table->worker_count) {
        coordinator_save_transition(core, PEN_COORDINATOR_SAVE_WRITING);
        core->save_at = core->now;
        pen_coordinator_act(core, PEN_COORDINATOR_ACTION_SNAPPED)->step = core->save_step;
    }
    if (core->save_state != PEN_COORDINATOR_SAVE_WRITING) return;
    const bool is_whole = shard_count == core->table->worker_count ||
                          (PEN_PLANTED(partial_manifest) && shard_count > 0);
    if (!is_whole) return;
    if (core->save_is_failed) {
        coordinator_save_transition(core, PEN_COORDINATOR_SAVE_NONE);
        return;
    }
    coordinator_save_transition(core, PEN_COORDINATOR_SAVE_PUBLISHING);
    core->save_at = core->now;
    pen_coordinator_act(core, PEN_COORDINATOR_ACTION_PUBLISH)->step = core->save_step;
    if (PEN_PLANTED(early_durable_ack)) {
        coordinator_tell_all(core, PEN_COORDINATOR_ACTION_COMMITTED);
    }
}
