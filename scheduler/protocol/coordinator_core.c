#include "scheduler/protocol/coordinator_core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/protocol/coordinator_state.h"

static bool coordinator_may_go(coordinator_state from, coordinator_state to) {
    switch (to) {
    case COORDINATOR_RECRUIT:
        return false;
    case COORDINATOR_ASSIGN:
        return from == COORDINATOR_RECRUIT;
    case COORDINATOR_RUN:
        return from == COORDINATOR_ASSIGN;
    case COORDINATOR_DONE:
        return from != COORDINATOR_DONE;
    }
    PEN_NEVER("a state of the coordinator");
}

static void coordinator_transition(pen_coordinator_core *core, coordinator_state to) {
    PEN_ASSERT(coordinator_may_go(core->state, to));
    PEN_ASSERT(core->options.generation > 0);
    core->state = to;
}

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
    coordinator_transition(core, COORDINATOR_DONE);
}

void pen_coordinator_fail(pen_coordinator_core *core, pen_coordinator_reason reason,
                          uint32_t worker) {
    PEN_ASSERT(reason != PEN_COORDINATOR_REASON_NONE);
    PEN_ASSERT(worker <= core->table->worker_count);
    pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_FAIL);
    action->reason = reason;
    action->worker = worker;
    coordinator_end(core);
}

// ---- recruiting

static pen_coordinator_refusal coordinator_judge(const pen_coordinator_core *core, uint32_t worker,
                                                 const pen_coordinator_identity *identity) {
    const pen_coordinator_identity *self = &core->options.self;
    PEN_ASSERT(identity != NULL);
    PEN_ASSERT(core->state != COORDINATOR_DONE);
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
    if (core->workers[worker].is_present || core->state != COORDINATOR_RECRUIT) {
        return PEN_REFUSAL_TAKEN;
    }
    return PEN_REFUSAL_NONE;
}

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
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        if (!core->workers[i].is_present) return;
    }
    coordinator_transition(core, COORDINATOR_ASSIGN);
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        pen_coordinator_action *action = pen_coordinator_act(core, PEN_COORDINATOR_ACTION_ASSIGN);
        action->worker = i;
        action->incarnation = core->workers[i].incarnation;
    }
}

static void coordinator_take_ready(pen_coordinator_core *core, uint32_t worker) {
    PEN_ASSERT(worker > 0 && worker <= core->table->worker_count);
    PEN_ASSERT(core->workers[worker].is_present);
    if (core->state != COORDINATOR_ASSIGN) return; // again
    core->workers[worker].is_ready = true;
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        if (!core->workers[i].is_ready) return;
    }
    coordinator_transition(core, COORDINATOR_RUN);
    for (uint32_t i = 1; i <= core->table->worker_count; i++) {
        pen_coordinator_act(core, PEN_COORDINATOR_ACTION_START)->worker = i;
    }
    pen_coordinator_act(core, PEN_COORDINATOR_ACTION_RUNNING);
}

static void coordinator_lose(pen_coordinator_core *core, uint32_t worker) {
    PEN_ASSERT(worker > 0 && worker <= core->table->worker_count);
    PEN_ASSERT(core->workers[worker].is_present);
    core->workers[worker].is_present = false;
    if (core->state == COORDINATOR_RECRUIT) return; // it may come again
    pen_coordinator_fail(core, PEN_COORDINATOR_REASON_LOST, worker);
}

static void coordinator_tick(pen_coordinator_core *core, uint64_t now) {
    PEN_ASSERT(core->actions != NULL);
    PEN_ASSERT(core->state != COORDINATOR_DONE);
    if (core->state != COORDINATOR_RECRUIT || core->options.deadline == 0) return;
    if (now >= core->options.deadline) {
        pen_coordinator_fail(core, PEN_COORDINATOR_REASON_MISSING, 0);
    }
}

// ---- events

// Whether an event comes from a worker as it is here, in this generation.
static bool coordinator_is_known(const pen_coordinator_core *core,
                                 const pen_coordinator_event *event) {
    PEN_ASSERT(event->kind > PEN_COORDINATOR_EVENT_HELLO);
    PEN_ASSERT(event->kind < PEN_COORDINATOR_EVENT_LET_GO);
    if (event->worker == 0 || event->worker > core->table->worker_count) return false;
    const coordinator_worker *worker = &core->workers[event->worker];
    if (!worker->is_present || worker->incarnation != event->incarnation) return false;
    return event->kind == PEN_COORDINATOR_EVENT_FAILED ||
           event->kind == PEN_COORDINATOR_EVENT_LOST ||
           event->generation == core->options.generation;
}

static void coordinator_take(pen_coordinator_core *core, const pen_coordinator_event *event) {
    PEN_ASSERT(core->action_count == 0);
    PEN_ASSERT(core->first_round <= core->end_round);
    const bool is_of_worker =
        event->kind > PEN_COORDINATOR_EVENT_HELLO && event->kind < PEN_COORDINATOR_EVENT_LET_GO;
    if (is_of_worker && !coordinator_is_known(core, event)) return;
    if (core->state == COORDINATOR_DONE && event->kind != PEN_COORDINATOR_EVENT_LET_GO) return;
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
    case PEN_COORDINATOR_EVENT_ROUND_DONE:
        pen_coordinator_end_round(core, event);
        break;
    case PEN_COORDINATOR_EVENT_CREDIT:
        pen_coordinator_take_credit(core, event);
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
    case PEN_COORDINATOR_EVENT_BEGIN:
        pen_coordinator_begin(core, event);
        break;
    case PEN_COORDINATOR_EVENT_TICK:
        coordinator_tick(core, event->now);
        break;
    case PEN_COORDINATOR_EVENT_STOP:
        coordinator_end(core);
        break;
    }
}

void pen_coordinator_core_step(pen_coordinator_core *core, const pen_coordinator_event *event,
                               pen_coordinator_action *out_actions, uint32_t *out_action_count) {
    PEN_ASSERT(core->actions == NULL); // not from within itself
    core->actions = out_actions;
    core->action_count = 0;
    coordinator_take(core, event);
    if (core->state == COORDINATOR_RUN) pen_coordinator_advance(core);
    *out_action_count = core->action_count;
    core->actions = NULL;
    PEN_ASSERT(core->first_round <= core->announced_round);
    PEN_ASSERT(core->announced_round <= core->end_round);
}

bool pen_coordinator_core_can_begin(const pen_coordinator_core *core, uint64_t *out_round) {
    PEN_ASSERT(core->first_round <= core->end_round);
    PEN_ASSERT(core->end_round - core->first_round <= PEN_COORDINATOR_ROUND_LIMIT);
    *out_round = core->end_round;
    return core->state == COORDINATOR_RUN &&
           core->end_round - core->first_round < PEN_COORDINATOR_ROUND_LIMIT;
}

bool pen_coordinator_core_is_quiet(const pen_coordinator_core *core) {
    return core->first_round == core->end_round;
}

bool pen_coordinator_core_is_present(const pen_coordinator_core *core, uint32_t worker) {
    PEN_ASSERT(worker > 0 && worker <= core->table->worker_count);
    return core->workers[worker].is_present;
}

// ---- for people

const char *pen_coordinator_reason_text(pen_coordinator_reason reason) {
    switch (reason) {
    case PEN_COORDINATOR_REASON_NONE:
        return "nothing is wrong";
    case PEN_COORDINATOR_REASON_MISSING:
        return "it did not come before the deadline";
    case PEN_COORDINATOR_REASON_LOST:
        return "its link is down";
    case PEN_COORDINATOR_REASON_FAILED:
        return "it cannot go on";
    case PEN_COORDINATOR_REASON_LOSS:
        return "it gave a loss twice, differently, or of no microbatch";
    case PEN_COORDINATOR_REASON_CREDIT:
        return "it gave a credit for what was not sent";
    case PEN_COORDINATOR_REASON_ROUND:
        return "it ended a round that it was not given";
    }
    PEN_NEVER("a reason of the coordinator");
}

void pen_coordinator_refusal_format(const pen_coordinator_core *core, uint32_t worker,
                                    pen_coordinator_refusal refusal,
                                    const pen_coordinator_identity *identity, char *out_text,
                                    size_t size) {
    const pen_coordinator_identity *self = &core->options.self;
    const int limit = PEN_COORDINATOR_NAME_BYTES;
    switch (refusal) {
    case PEN_REFUSAL_NONE:
        snprintf(out_text, size, "worker %" PRIu32 " is taken", worker);
        break;
    case PEN_REFUSAL_WORKER:
        snprintf(out_text, size, "there is no worker %" PRIu32 ", only 1 to %" PRIu32, worker,
                 core->table->worker_count);
        break;
    case PEN_REFUSAL_PROTOCOL:
        snprintf(out_text, size,
                 "worker %" PRIu32 " speaks protocol version %" PRIu32 ", the coordinator %" PRIu32,
                 worker, identity->protocol, self->protocol);
        break;
    case PEN_REFUSAL_BUILD:
        snprintf(out_text, size, "worker %" PRIu32 " runs build '%.*s', the coordinator '%.*s'",
                 worker, limit, identity->build, limit, self->build);
        break;
    case PEN_REFUSAL_ISA:
        snprintf(out_text, size,
                 "worker %" PRIu32 " computes with '%.*s', the coordinator with '%.*s': results "
                 "would differ in their last bits",
                 worker, limit, identity->isa, limit, self->isa);
        break;
    case PEN_REFUSAL_PLAN:
        snprintf(out_text, size,
                 "worker %" PRIu32 " has plan %016" PRIx64 ", the coordinator %016" PRIx64, worker,
                 identity->plan_hash, self->plan_hash);
        break;
    case PEN_REFUSAL_DEVICES:
        snprintf(out_text, size,
                 "worker %" PRIu32 " can run %" PRIu32 " devices, the plan needs more", worker,
                 identity->device_count);
        break;
    case PEN_REFUSAL_TAKEN:
        snprintf(out_text, size, "another process is worker %" PRIu32, worker);
        break;
    }
}
