#include "scheduler/audit/audit_core.h"

#include <string.h>

#include "base/planted.h"

typedef enum audit_state {
    AUDIT_IDLE,
    AUDIT_NOTING,
    AUDIT_ASKING,
} audit_state;

typedef struct audit_opinion {
    uint32_t worker;
    uint64_t digest;
} audit_opinion;

struct pen_audit_core {
    const pen_run_table *table;
    pen_audit_options options;
    audit_state state;
    uint64_t waits_since;
    pen_audit_action subject; // what is looked at; worker: who computed it
    uint32_t asked_worker;
    uint32_t asked;                             // questions so far, of all audits
    audit_opinion opinions[PEN_AUDIT_OPINIONS]; // 0: of who computed it
    uint32_t opinion_count;
    bool *has_declined; // [worker_count + 1] in this audit
    pen_audit_action *actions;
    uint32_t action_count;
};

pen_status pen_audit_core_new(const pen_run_table *table, const pen_audit_options *options,
                              pen_arena *arena, pen_audit_core **out_core) {
    pen_audit_core *core;
    PEN_TRY(PEN_NEW(arena, 1, &core));
    PEN_TRY(PEN_NEW(arena, (size_t)table->worker_count + 1, &core->has_declined));
    core->table = table;
    core->options = *options;
    *out_core = core;
    return PEN_OK;
}

static uint32_t audit_worker_of(const pen_audit_core *core, uint32_t device) {
    return core->table->forms[0].devices[device].worker;
}

static bool audit_has_room(const pen_audit_core *core, uint32_t device, uint32_t worker) {
    return core->options.has_room[(size_t)device * (core->table->worker_count + 1) + worker];
}

// Whether somebody else could compute what a device does.
static bool audit_is_judged(const pen_audit_core *core, uint32_t device) {
    for (uint32_t w = 1; w <= core->table->worker_count; w++) {
        if (w != audit_worker_of(core, device) && audit_has_room(core, device, w)) return true;
    }
    return false;
}

bool pen_audit_core_is_on(const pen_audit_core *core) {
    for (uint32_t d = 0; d < core->table->device_count && core->options.every > 0; d++) {
        if (audit_is_judged(core, d)) return true;
    }
    return false;
}

bool pen_audit_core_is_busy(const pen_audit_core *core) {
    return core->state != AUDIT_IDLE;
}

bool pen_audit_core_is_due(const pen_audit_core *core, uint64_t step) {
    return core->options.every > 0 && step % core->options.every == 0;
}

static pen_audit_action *audit_act(pen_audit_core *core, pen_audit_action_kind kind) {
    PEN_ASSERT(core->action_count < PEN_AUDIT_ACTIONS);
    pen_audit_action *action = &core->actions[core->action_count++];
    *action = core->subject;
    action->kind = kind;
    return action;
}

static void audit_end(pen_audit_core *core, pen_audit_action_kind kind, uint32_t worker,
                      uint32_t other) {
    pen_audit_action *action = audit_act(core, kind);
    action->worker = worker;
    action->other = other;
    core->state = AUDIT_IDLE;
}

// ---- drawing

static uint64_t audit_draw(uint64_t seed, uint64_t step) {
    uint64_t drawn = seed * 0x9e3779b97f4a7c15u + step;
    for (int i = 0; i < 3; i++) {
        drawn = (drawn ^ drawn >> 31) * 0xbf58476d1ce4e5b9u;
    }
    return drawn ^ drawn >> 29;
}

// The `wanted`th forward task that somebody could judge; each stage has one for each microbatch.
// Returns how many there are; `wanted` beyond that: nothing is found.
static uint64_t audit_find_task(pen_audit_core *core, uint32_t count, uint64_t wanted) {
    const pen_run_form *form = &core->table->forms[0];
    uint64_t found = 0;
    for (uint32_t d = 0; d < core->table->device_count; d++) {
        const pen_run_device *device = &form->devices[d];
        if (!audit_is_judged(core, d)) continue;
        for (uint32_t t = device->task_first; t < device->task_end; t++) {
            const pen_task *task = &form->tasks[t].task;
            if (task->kind != PEN_TASK_FORWARD || task->microbatch >= count) continue;
            if (form->tasks[t].list == PEN_RUN_LIST_NONE) continue;
            if (found++ != wanted) continue;
            core->subject.worker = device->worker;
            core->subject.device = d;
            core->subject.stage = task->stage;
            core->subject.microbatch = task->microbatch;
        }
    }
    return found;
}

static void audit_begin(pen_audit_core *core, const pen_audit_event *event) {
    if (core->state != AUDIT_IDLE || !pen_audit_core_is_due(core, event->step)) return;
    core->subject = (pen_audit_action){.step = event->step};
    const uint64_t task_count = audit_find_task(core, event->count, UINT64_MAX);
    if (task_count == 0) return;
    const uint64_t drawn = audit_draw(core->options.seed, event->step) % task_count;
    (void)audit_find_task(core, event->count, PEN_PLANTED(draws_one) ? 0 : drawn);
    memset(core->has_declined, 0, core->table->worker_count + 1);
    core->opinion_count = 0;
    core->waits_since = event->now;
    core->state = AUDIT_NOTING;
    (void)audit_act(core, PEN_AUDIT_ACTION_NOTE);
}

// ---- asking

static bool audit_has_spoken(const pen_audit_core *core, uint32_t worker) {
    for (uint32_t i = 0; i < core->opinion_count; i++) {
        if (core->opinions[i].worker == worker) return true;
    }
    return false;
}

// The next after the one that computed it who may be asked and was not; 0: there is none.
static uint32_t audit_find_other(const pen_audit_core *core) {
    const uint32_t worker_count = core->table->worker_count;
    const uint32_t first = core->subject.worker;
    if (PEN_PLANTED(asks_itself)) return first;
    for (uint32_t i = 1; i < worker_count; i++) {
        const uint32_t worker = 1 + (first - 1 + i) % worker_count;
        if (core->has_declined[worker] || audit_has_spoken(core, worker)) continue;
        if (audit_has_room(core, core->subject.device, worker)) return worker;
    }
    return 0;
}

static void audit_ask(pen_audit_core *core, uint32_t worker, uint64_t now) {
    core->state = AUDIT_ASKING;
    core->waits_since = now;
    core->asked_worker = worker;
    core->asked += 1;
    pen_audit_action *action = audit_act(core, PEN_AUDIT_ACTION_ASK);
    action->worker = worker;
    action->asked = core->asked;
}

// Two differ, and there is no third who could judge: they compute it again themselves, the first,
// then the second.
static void audit_ask_again(pen_audit_core *core, uint64_t now) {
    const uint32_t again = core->opinions[core->opinion_count - 2].worker;
    if (!core->has_declined[again] && audit_has_room(core, core->subject.device, again)) {
        audit_ask(core, again, now);
        return;
    }
    audit_end(core, PEN_AUDIT_ACTION_DIVIDED, core->opinions[0].worker, core->opinions[1].worker);
}

// ---- judging

static void audit_blame(pen_audit_core *core, uint32_t worker, bool is_repeat) {
    const uint32_t first = core->opinions[0].worker, second = core->opinions[1].worker;
    audit_end(core, PEN_AUDIT_ACTION_BLAME, worker, worker == first ? second : first);
    core->actions[core->action_count - 1].is_repeat = is_repeat;
}

// A third opinion, of a worker that has not spoken yet.
static void audit_judge_by_third(pen_audit_core *core) {
    const audit_opinion *o = core->opinions;
    if (o[2].digest == o[1].digest || PEN_PLANTED(blames_the_first)) {
        audit_blame(core, o[0].worker, false);
    } else if (o[2].digest == o[0].digest) {
        audit_blame(core, o[1].worker, false);
    } else {
        audit_end(core, PEN_AUDIT_ACTION_DIVIDED, o[0].worker, o[1].worker);
    }
}

// A third and fourth opinion are of the same two. Who comes to something else than before is wrong.
static void audit_judge_repeats(pen_audit_core *core, uint64_t now) {
    const audit_opinion *o = core->opinions;
    const audit_opinion *last = &o[core->opinion_count - 1], *before = last - 2;
    if (last->digest != before->digest) {
        audit_blame(core, last->worker, true);
    } else if (core->opinion_count < PEN_AUDIT_OPINIONS) {
        audit_ask_again(core, now);
    } else {
        audit_end(core, PEN_AUDIT_ACTION_DIVIDED, o[0].worker, o[1].worker);
    }
}

// Two opinions that agree are enough; else others are asked until somebody is outvoted.
static void audit_judge(pen_audit_core *core, uint64_t now) {
    const audit_opinion *o = core->opinions;
    if (core->opinion_count == 2) {
        if (o[0].digest == o[1].digest || PEN_PLANTED(passes_all)) {
            audit_end(core, PEN_AUDIT_ACTION_PASS, o[0].worker, o[1].worker);
            return;
        }
        const uint32_t third = audit_find_other(core);
        if (third != 0) {
            audit_ask(core, third, now);
        } else {
            audit_ask_again(core, now);
        }
        return;
    }
    if (core->opinion_count == 3 && o[2].worker != o[0].worker) {
        audit_judge_by_third(core);
    } else {
        audit_judge_repeats(core, now);
    }
}

static void audit_add_opinion(pen_audit_core *core, const pen_audit_event *event) {
    PEN_ASSERT(core->opinion_count < PEN_AUDIT_OPINIONS);
    core->opinions[core->opinion_count++] = (audit_opinion){event->worker, event->digest};
}

// Who was asked says nothing: the next one, while there is one.
static void audit_pass_over(pen_audit_core *core, uint64_t now) {
    core->has_declined[core->asked_worker] = true;
    const bool is_repeat = audit_has_spoken(core, core->asked_worker);
    const uint32_t other = is_repeat ? 0 : audit_find_other(core);
    if (other != 0) {
        audit_ask(core, other, now);
    } else if (core->opinion_count < 2) {
        audit_end(core, PEN_AUDIT_ACTION_GIVE_UP, core->subject.worker, 0);
    } else if (is_repeat) {
        audit_end(core, PEN_AUDIT_ACTION_DIVIDED, core->opinions[0].worker,
                  core->opinions[1].worker);
    } else {
        audit_ask_again(core, now);
    }
}

static void audit_take_evidence(pen_audit_core *core, const pen_audit_event *event) {
    if (core->state != AUDIT_NOTING || event->step != core->subject.step ||
        event->worker != core->subject.worker) {
        return;
    }
    if (event->kind == PEN_AUDIT_EVENT_NO_EVIDENCE) {
        audit_end(core, PEN_AUDIT_ACTION_GIVE_UP, core->subject.worker, 0);
        return;
    }
    audit_add_opinion(core, event);
    const uint32_t other = audit_find_other(core);
    PEN_ASSERT(other != 0); // it was drawn so
    audit_ask(core, other, event->now);
}

// Only the answer to the last question counts.
static void audit_take_opinion(pen_audit_core *core, const pen_audit_event *event) {
    const bool is_asked = event->asked == core->asked && event->worker == core->asked_worker;
    if (core->state != AUDIT_ASKING || (!is_asked && !PEN_PLANTED(hears_anybody))) return;
    if (event->kind == PEN_AUDIT_EVENT_NO_OPINION) {
        audit_pass_over(core, event->now);
        return;
    }
    audit_add_opinion(core, event);
    audit_judge(core, event->now);
}

static void audit_tick(pen_audit_core *core, const pen_audit_event *event) {
    const bool is_late = event->now - core->waits_since > core->options.deadline;
    if (core->state == AUDIT_IDLE || !is_late || PEN_PLANTED(waits_for_ever)) return;
    if (core->state == AUDIT_NOTING) {
        audit_end(core, PEN_AUDIT_ACTION_GIVE_UP, core->subject.worker, 0);
    } else {
        audit_pass_over(core, event->now);
    }
}

// What does not fit the state changes nothing.
void pen_audit_core_step(pen_audit_core *core, const pen_audit_event *event,
                         pen_audit_action *out_actions, uint32_t *out_action_count) {
    core->actions = out_actions;
    core->action_count = 0;
    switch (event->kind) {
    case PEN_AUDIT_EVENT_STEP:
        audit_begin(core, event);
        break;
    case PEN_AUDIT_EVENT_EVIDENCE:
    case PEN_AUDIT_EVENT_NO_EVIDENCE:
        audit_take_evidence(core, event);
        break;
    case PEN_AUDIT_EVENT_OPINION:
    case PEN_AUDIT_EVENT_NO_OPINION:
        audit_take_opinion(core, event);
        break;
    case PEN_AUDIT_EVENT_TICK:
        audit_tick(core, event);
        break;
    case PEN_AUDIT_EVENT_FORGET:
        core->state = AUDIT_IDLE;
        break;
    }
    *out_action_count = core->action_count;
}
