#include <string.h>

#include "base/planted.h"
#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/coordinator_state.h"

#define COORDINATOR_TASK_LIMITS 10 // of progress, that one task may run

static bool coordinator_may_go(pen_coordinator_state from, pen_coordinator_state to) {
    switch (to) {
    case PEN_COORDINATOR_RECRUIT:
        return from == PEN_COORDINATOR_FENCE;
    case PEN_COORDINATOR_FENCE:
        return from == PEN_COORDINATOR_RECRUIT;
    case PEN_COORDINATOR_ASSIGN:
        return from == PEN_COORDINATOR_RECRUIT || from == PEN_COORDINATOR_FENCE;
    case PEN_COORDINATOR_RUN:
        return from == PEN_COORDINATOR_ASSIGN;
    case PEN_COORDINATOR_DONE:
        return from != PEN_COORDINATOR_DONE;
    }
    PEN_NEVER("a state of the coordinator");
}

static void coordinator_transition(pen_coordinator_core *core, pen_coordinator_state to) {
    PEN_ASSERT(coordinator_may_go(core->state, to));
    PEN_ASSERT(core->options.generation > 0);
    core->state = to;
}

// Everything is sized from the run table here, the actions of a step included: a step allocates
// nothing.
pen_status pen_coordinator_core_new(const pen_run_table *table,
                                    const pen_coordinator_options *options, pen_arena *arena,
                                    pen_coordinator_core **out_core, uint32_t *out_action_limit) {
    PEN_ASSERT(options->generation > 0);
    PEN_ASSERT(table->form_count > 0);
    pen_coordinator_core *core;
    PEN_TRY(PEN_NEW(arena, 1, &core));
    core->table = table;
    core->options = *options;
    PEN_TRY(PEN_NEW(arena, (size_t)table->worker_count + 1, &core->workers));
    for (uint32_t i = 0; i <= table->worker_count; i++) {
        core->workers[i].done_round = options->first_round;
    }
    core->first_round = options->first_round;
    core->announced_round = options->first_round;
    core->end_round = options->first_round;
    core->losses_round = options->first_round;
    PEN_TRY(pen_coordinator_rounds_init(core, arena));
    *out_action_limit = core->action_limit;
    *out_core = core;
    return PEN_OK;
}

pen_coordinator_action *pen_coordinator_act(pen_coordinator_core *core,
                                            pen_coordinator_action_kind kind) {
    PEN_ASSERT(core->actions != NULL);
    PEN_ASSERT(core->action_count < core->action_limit);
    pen_coordinator_action *action = &core->actions[core->action_count++];
    *action = (pen_coordinator_action){.kind = kind, .generation = core->options.generation};
    return action;
}

static void coordinator_end(pen_coordinator_core *core) {
    PEN_ASSERT(core->actions != NULL);
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        if (!core->workers[i].is_present) continue;
        pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_STOP);
        action->worker = i;
        action->incarnation = core->workers[i].incarnation;
    }
    coordinator_transition(core, PEN_COORDINATOR_DONE);
}

void pen_coordinator_fail(pen_coordinator_core *core, pen_coordinator_reason reason,
                          uint32_t worker) {
    PEN_ASSERT(reason != PEN_COORDINATOR_REASON_NONE);
    PEN_ASSERT(worker <= core->table->worker_count);
    pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_FAIL);
    action->reason = reason;
    action->worker = worker;
    if (worker > 0) core->workers[worker].is_blamed = true;
    coordinator_end(core);
}

// ---- recruiting

// Whether a worker may take part. Another build or instruction set is refused, for its numbers
// would differ.
static pen_coordinator_refusal coordinator_judge(const pen_coordinator_core *core, uint32_t worker,
                                                 const pen_coordinator_identity *identity) {
    const pen_coordinator_identity *self = &core->options.self;
    PEN_ASSERT(identity != NULL);
    PEN_ASSERT(core->state != PEN_COORDINATOR_DONE);
    if (worker == 0 || worker > core->table->worker_count) return PEN_REFUSAL_WORKER;
    if (identity->protocol != self->protocol) return PEN_REFUSAL_PROTOCOL;
    if (!core->options.allows_other_build &&
        strncmp(identity->build, self->build, sizeof self->build) != 0) {
        return PEN_REFUSAL_BUILD;
    }
    if (!core->options.allows_other_isa &&
        strncmp(identity->isa, self->isa, sizeof self->isa) != 0) {
        return PEN_REFUSAL_ISA;
    }
    if (identity->plan_hash != 0 && identity->plan_hash != self->plan_hash) {
        return PEN_REFUSAL_PLAN;
    }
    uint32_t device_count = 0;
    for (uint32_t i = 0; i < core->table->device_count; i++) {
        if (core->table->forms[0].devices[i].worker == worker) device_count++;
    }
    if (identity->device_count != 0 && identity->device_count < device_count) {
        return PEN_REFUSAL_DEVICES;
    }
    if (identity->memory_bytes != 0 && identity->needed_bytes > identity->memory_bytes) {
        return PEN_REFUSAL_MEMORY;
    }
    if (core->workers[worker].is_present || core->state != PEN_COORDINATOR_RECRUIT) {
        return PEN_REFUSAL_TAKEN;
    }
    return PEN_REFUSAL_NONE;
}

// Goes on from RECRUIT and FENCE as far as that goes.
static void coordinator_assign(pen_coordinator_core *core) {
    PEN_ASSERT(core->options.needs_fence || !core->is_fence_asked);
    PEN_ASSERT(core->is_fence_asked || !core->is_fenced);
    if (core->state != PEN_COORDINATOR_RECRUIT && core->state != PEN_COORDINATOR_FENCE) return;
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        if (!core->workers[i].is_present) return;
    }
    if (core->options.needs_fence && !core->is_fenced) {
        if (core->state == PEN_COORDINATOR_RECRUIT) {
            coordinator_transition(core, PEN_COORDINATOR_FENCE);
        }
        if (!core->is_fence_asked) {
            pen_coordinator_act(core, PEN_COORDINATOR_ACTION_FENCE);
            core->fence_at = core->now;
        }
        core->is_fence_asked = true;
        if (!PEN_PLANTED(generation_not_durable)) return;
    }
    coordinator_transition(core, PEN_COORDINATOR_ASSIGN);
    core->assigned_at = core->now;
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        core->workers[i].heard_at = core->now; // from here on leases count
        pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_ASSIGN);
        action->worker = i;
        action->incarnation = core->workers[i].incarnation;
    }
}

// HELLO may come twice, over two links; from a process that takes part already it changes nothing.
static void coordinator_welcome(pen_coordinator_core *core, const pen_coordinator_event *event) {
    PEN_ASSERT(core->actions != NULL);
    PEN_ASSERT(event->identity != NULL);
    const bool is_numbered = event->worker > 0 && event->worker <= core->table->worker_count;
    if (is_numbered && core->workers[event->worker].is_present &&
        core->workers[event->worker].incarnation == event->incarnation) {
        return; // again
    }
    const pen_coordinator_refusal refusal = coordinator_judge(core, event->worker, event->identity);
    if (refusal != PEN_REFUSAL_NONE) {
        pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_REFUSE);
        action->worker = event->worker;
        action->incarnation = event->incarnation;
        action->refusal = refusal;
        return;
    }
    core->workers[event->worker].is_present = true;
    core->workers[event->worker].incarnation = event->incarnation;
    core->workers[event->worker].heard_at = core->now;
    coordinator_assign(core);
}

// What became of the fence. It may be that a worker was lost meanwhile.
static void coordinator_take_fence(pen_coordinator_core *core, uint32_t code) {
    PEN_ASSERT(core->is_fence_asked);
    PEN_ASSERT(!core->is_fenced);
    if (code == PEN_CANCELLED) {
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_SUPERSEDED, 0);
        return;
    }
    if (code != 0) {
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_STORE, 0);
        return;
    }
    core->is_fenced = true;
    coordinator_assign(core);
}

static void coordinator_take_ready(pen_coordinator_core *core, uint32_t worker) {
    PEN_ASSERT(worker > 0 && worker <= core->table->worker_count);
    PEN_ASSERT(core->workers[worker].is_present);
    if (core->state != PEN_COORDINATOR_ASSIGN) return; // again
    core->workers[worker].is_ready = true;
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        if (!core->workers[i].is_ready) return;
    }
    coordinator_transition(core, PEN_COORDINATOR_RUN);
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        pen_coordinator_act(core, PEN_COORDINATOR_ACTION_START)->worker = i;
    }
    pen_coordinator_act(core, PEN_COORDINATOR_ACTION_RUNNING);
}

static void coordinator_lose(pen_coordinator_core *core, uint32_t worker) {
    PEN_ASSERT(worker > 0 && worker <= core->table->worker_count);
    PEN_ASSERT(core->workers[worker].is_present);
    core->workers[worker].is_present = false;
    if (core->state == PEN_COORDINATOR_RECRUIT) return; // it may come again
    if (core->state == PEN_COORDINATOR_FENCE) {
        coordinator_transition(core, PEN_COORDINATOR_RECRUIT);
        return;
    }
    pen_coordinator_fail(core, PEN_COORDINATOR_REASON_LOST, worker);
}

// ---- deadlines

static bool coordinator_is_over(const pen_coordinator_core *core, uint64_t since, uint64_t limit) {
    PEN_ASSERT(since <= core->now);
    PEN_ASSERT(core->state != PEN_COORDINATOR_DONE);
    return limit > 0 && core->now - since >= limit;
}

// All who are silent are to blame; the one that is so for longest is named.
static bool coordinator_check_leases(pen_coordinator_core *core) {
    PEN_ASSERT(core->state != PEN_COORDINATOR_DONE);
    uint32_t silent = 0;
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        coordinator_worker *worker = &core->workers[i];
        PEN_ASSERT(worker->is_present);
        if (!coordinator_is_over(core, worker->heard_at, core->options.lease)) continue;
        if (PEN_PLANTED(lease_never_expires)) continue;
        worker->is_blamed = true;
        if (silent == 0 || worker->heard_at < core->workers[silent].heard_at) silent = i;
    }
    if (silent > 0) pen_coordinator_fail(core, PEN_COORDINATOR_REASON_LEASE, silent);
    return silent == 0;
}

static bool coordinator_is_done(const pen_coordinator_core *core,
                                const coordinator_worker *worker) {
    if (core->state == PEN_COORDINATOR_ASSIGN) return worker->is_ready;
    return core->save_state == PEN_COORDINATOR_SAVE_SNAPPING ? worker->has_snapped
                                                             : worker->has_shard;
}

// All who are not ready, have not copied their tensors, or not written them, are to blame; the
// first is named.
static void coordinator_fail_late(pen_coordinator_core *core, pen_coordinator_reason reason) {
    PEN_ASSERT(core->state == PEN_COORDINATOR_ASSIGN || core->state == PEN_COORDINATOR_RUN);
    uint32_t late = 0;
    for (uint32_t i = core->table->worker_count; i > 0; i--) {
        if (coordinator_is_done(core, &core->workers[i])) continue;
        core->workers[i].is_blamed = true;
        late = i;
    }
    PEN_ASSERT(late > 0);
    pen_coordinator_fail(core, reason, late);
}

// The deadlines of a save, by how far it is. That of the manifest has nobody to blame.
static bool coordinator_check_save(pen_coordinator_core *core) {
    const pen_coordinator_options *options = &core->options;
    PEN_ASSERT(core->state == PEN_COORDINATOR_RUN);
    switch (core->save_state) {
    case PEN_COORDINATOR_SAVE_NONE:
        return true;
    case PEN_COORDINATOR_SAVE_SNAPPING:
        if (PEN_PLANTED(waits_for_copies)) return true;
        if (!coordinator_is_over(core, core->save_at, options->load)) return true;
        coordinator_fail_late(core, PEN_COORDINATOR_REASON_LOAD);
        return false;
    case PEN_COORDINATOR_SAVE_WRITING:
        if (PEN_PLANTED(waits_for_shards)) return true;
        if (!coordinator_is_over(core, core->save_at, options->write)) return true;
        coordinator_fail_late(core, PEN_COORDINATOR_REASON_WRITE);
        return false;
    case PEN_COORDINATOR_SAVE_PUBLISHING:
        if (PEN_PLANTED(waits_for_manifest)) return true;
        if (!coordinator_is_over(core, core->save_at, options->write)) return true;
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_STORE, 0);
        return false;
    }
    PEN_NEVER("a state of a save");
}

// All who owe a piece for too long are to blame; the one that does so for longest is named.
static bool coordinator_check_pieces(pen_coordinator_core *core) {
    PEN_ASSERT(core->state == PEN_COORDINATOR_RUN);
    uint32_t late = 0;
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        coordinator_worker *worker = &core->workers[i];
        if (worker->owed_count <= 0 || PEN_PLANTED(waits_for_pieces)) continue;
        if (!coordinator_is_over(core, worker->owed_at, core->options.load)) continue;
        worker->is_blamed = true;
        if (late == 0 || worker->owed_at < core->workers[late].owed_at) late = i;
    }
    if (late > 0) pen_coordinator_fail(core, PEN_COORDINATOR_REASON_PIECE, late);
    return late == 0;
}

static void coordinator_check_rounds(pen_coordinator_core *core) {
    PEN_ASSERT(core->state == PEN_COORDINATOR_RUN);
    if (core->first_round == core->end_round || core->is_not_finite) return;
    if (PEN_PLANTED(waits_for_rounds)) return;
    if (!coordinator_is_over(core, core->progressed_at, core->options.progress)) return;
    pen_coordinator_fail(core, PEN_COORDINATOR_REASON_PROGRESS, 0);
}

// The deadlines of each state. Those that links notice come as events of their own.
static void coordinator_tick(pen_coordinator_core *core) {
    const pen_coordinator_options *options = &core->options;
    PEN_ASSERT(core->actions != NULL);
    switch (core->state) {
    case PEN_COORDINATOR_RECRUIT:
        if (options->deadline == 0 || core->now < options->deadline) break;
        if (PEN_PLANTED(waits_for_workers)) break;
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_MISSING, 0);
        break;
    case PEN_COORDINATOR_FENCE:
        if (PEN_PLANTED(waits_for_fence)) break;
        if (!coordinator_is_over(core, core->fence_at, options->write)) break;
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_STORE, 0);
        break;
    case PEN_COORDINATOR_ASSIGN:
        if (!coordinator_check_leases(core) || PEN_PLANTED(waits_for_ready)) break;
        if (coordinator_is_over(core, core->assigned_at, options->load)) {
            coordinator_fail_late(core, PEN_COORDINATOR_REASON_LOAD);
        }
        break;
    case PEN_COORDINATOR_RUN:
        if (!coordinator_check_leases(core) || !coordinator_check_save(core)) break;
        if (coordinator_check_pieces(core)) coordinator_check_rounds(core);
        break;
    case PEN_COORDINATOR_DONE:
        PEN_NEVER("a deadline of a run that is over");
    }
}

// ---- events

// Whether an event comes from a worker as it is here, in this generation. Its being here is noted,
// whatever generation it speaks of.
static bool coordinator_hears(pen_coordinator_core *core, const pen_coordinator_event *event) {
    PEN_ASSERT(event->kind > PEN_COORDINATOR_EVENT_HELLO);
    PEN_ASSERT(event->kind < PEN_COORDINATOR_EVENT_LET_GO);
    if (event->worker == 0 || event->worker > core->table->worker_count) return false;
    coordinator_worker *worker = &core->workers[event->worker];
    if (!worker->is_present) return false;
    if (worker->incarnation != event->incarnation && !PEN_PLANTED(no_incarnation)) return false;
    worker->heard_at = core->now;
    return event->kind >= PEN_COORDINATOR_EVENT_COMPUTES ||
           event->generation == core->options.generation || PEN_PLANTED(accept_stale_generation);
}

// Pieces are counted up and down by two threads of the driver, in any order. Those of shards show
// that a checkpoint gets on, and those of nobody that nobody is at the commit log yet.
static void coordinator_take_owed(pen_coordinator_core *core, const pen_coordinator_event *event) {
    PEN_ASSERT(event->kind == PEN_COORDINATOR_EVENT_OWED);
    if (core->save_state == PEN_COORDINATOR_SAVE_PUBLISHING) core->save_at = core->now;
    if (event->worker == 0 || event->worker > core->table->worker_count) return;
    const uint64_t there = event->sequence < UINT32_MAX ? event->sequence : UINT32_MAX;
    core->workers[event->worker].owed_count += (int64_t)event->count - (int64_t)there;
    core->workers[event->worker].owed_at = core->now;
}

// Events of workers are heard only when they are of this generation and incarnation; after the end
// only memory that is let go counts.
static void coordinator_take(pen_coordinator_core *core, const pen_coordinator_event *event) {
    PEN_ASSERT(core->action_count == 0);
    PEN_ASSERT(core->first_round <= core->end_round);
    const bool is_of_worker =
        event->kind > PEN_COORDINATOR_EVENT_HELLO && event->kind < PEN_COORDINATOR_EVENT_LET_GO;
    if (is_of_worker && !coordinator_hears(core, event)) return;
    if (core->state == PEN_COORDINATOR_DONE && event->kind != PEN_COORDINATOR_EVENT_LET_GO) return;
    switch (event->kind) {
    case PEN_COORDINATOR_EVENT_HELLO:
        coordinator_welcome(core, event);
        break;
    case PEN_COORDINATOR_EVENT_READY:
        coordinator_take_ready(core, event->worker);
        break;
    case PEN_COORDINATOR_EVENT_LOSS:
        pen_coordinator_take_loss(core, event);
        break;
    case PEN_COORDINATOR_EVENT_GRADIENT:
        pen_coordinator_take_gradient(core, event);
        break;
    case PEN_COORDINATOR_EVENT_ROUND_DONE:
        pen_coordinator_end_round(core, event);
        break;
    case PEN_COORDINATOR_EVENT_CREDIT:
        pen_coordinator_take_credit(core, event);
        break;
    case PEN_COORDINATOR_EVENT_SNAPPED:
        pen_coordinator_take_snapped(core, event);
        break;
    case PEN_COORDINATOR_EVENT_SHARD:
        pen_coordinator_take_shard(core, event);
        break;
    case PEN_COORDINATOR_EVENT_COMPUTES:
        if (event->sequence / COORDINATOR_TASK_LIMITS < core->options.progress) {
            core->progressed_at = core->now;
        }
        break;
    case PEN_COORDINATOR_EVENT_HEARD:
        break;
    case PEN_COORDINATOR_EVENT_FAILED:
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_FAILED, event->worker);
        break;
    case PEN_COORDINATOR_EVENT_LOST:
        coordinator_lose(core, event->worker);
        break;
    case PEN_COORDINATOR_EVENT_LET_GO:
        pen_coordinator_let_go(core, event);
        break;
    case PEN_COORDINATOR_EVENT_FENCED:
        coordinator_take_fence(core, event->code);
        break;
    case PEN_COORDINATOR_EVENT_BEGIN:
        pen_coordinator_begin(core, event);
        break;
    case PEN_COORDINATOR_EVENT_SAVE:
        pen_coordinator_begin_save(core, event);
        break;
    case PEN_COORDINATOR_EVENT_PUBLISHED:
        pen_coordinator_take_published(core, event);
        break;
    case PEN_COORDINATOR_EVENT_TICK:
        coordinator_tick(core);
        break;
    case PEN_COORDINATOR_EVENT_STOP:
        coordinator_end(core);
        break;
    case PEN_COORDINATOR_EVENT_OWED:
        coordinator_take_owed(core, event);
        break;
    }
}

void pen_coordinator_core_step(pen_coordinator_core *core, const pen_coordinator_event *event,
                               pen_coordinator_action *out_actions, uint32_t *out_action_count) {
    PEN_ASSERT(core->actions == NULL); // not from within itself
    core->actions = out_actions;
    core->action_count = 0;
    if (event->now > core->now) core->now = event->now;
    coordinator_take(core, event);
    if (core->state == PEN_COORDINATOR_RUN) pen_coordinator_advance(core);
    if (core->state == PEN_COORDINATOR_RUN) pen_coordinator_advance_save(core);
    *out_action_count = core->action_count;
    core->actions = NULL;
    PEN_ASSERT(core->first_round <= core->announced_round);
    PEN_ASSERT(core->announced_round <= core->end_round);
}

bool pen_coordinator_core_can_begin(const pen_coordinator_core *core, uint64_t *out_round) {
    PEN_ASSERT(core->first_round <= core->end_round);
    PEN_ASSERT(core->end_round - core->first_round <= PEN_COORDINATOR_ROUND_LIMIT);
    *out_round = core->end_round;
    const bool is_copying = core->save_state == PEN_COORDINATOR_SAVE_SNAPPING;
    return core->state == PEN_COORDINATOR_RUN && (!is_copying || PEN_PLANTED(snapshot_not_quiet)) &&
           core->end_round - core->first_round < PEN_COORDINATOR_ROUND_LIMIT;
}

bool pen_coordinator_core_is_quiet(const pen_coordinator_core *core) {
    return core->first_round == core->end_round;
}

bool pen_coordinator_core_is_present(const pen_coordinator_core *core, uint32_t worker) {
    PEN_ASSERT(worker > 0 && worker <= core->table->worker_count);
    return core->workers[worker].is_present;
}

bool pen_coordinator_core_is_missing(const pen_coordinator_core *core, uint32_t worker) {
    return !pen_coordinator_core_is_present(core, worker) || core->workers[worker].is_blamed;
}

pen_coordinator_state pen_coordinator_core_state(const pen_coordinator_core *core) {
    return core->state;
}
