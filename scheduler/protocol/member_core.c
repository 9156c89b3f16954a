#include "scheduler/protocol/member_core.h"

#include <string.h>

#include "base/planted.h"
#include "base/status.h"

typedef struct member_step {
    pen_member_action *actions;
    uint32_t count;
} member_step;

void pen_member_core_init(pen_member_core *core, const pen_member_options *options) {
    PEN_ASSERT(options->incarnation != 0);
    *core = (pen_member_core){.options = *options};
}

static bool member_may_go(pen_member_state from, pen_member_state to) {
    switch (to) {
    case PEN_MEMBER_IDLE:
        return from == PEN_MEMBER_GREETED || from == PEN_MEMBER_LEAVING;
    case PEN_MEMBER_GREETED:
        return from == PEN_MEMBER_IDLE || from == PEN_MEMBER_LEAVING;
    case PEN_MEMBER_PULLING:
        return from == PEN_MEMBER_GREETED;
    case PEN_MEMBER_LOADING:
        return from == PEN_MEMBER_PULLING;
    case PEN_MEMBER_RUNNING:
        return from == PEN_MEMBER_LOADING;
    case PEN_MEMBER_LEAVING:
        return from == PEN_MEMBER_PULLING || from == PEN_MEMBER_LOADING ||
               from == PEN_MEMBER_RUNNING;
    }
    PEN_NEVER("a state of a member");
}

static void member_transition(pen_member_core *core, pen_member_state to) {
    PEN_ASSERT(member_may_go(core->state, to));
    PEN_ASSERT(to != PEN_MEMBER_GREETED || core->is_linked);
    core->state = to;
}

static void member_act(const pen_member_core *core, member_step *step,
                       pen_member_action_kind kind) {
    PEN_ASSERT(step->actions != NULL);
    PEN_ASSERT(step->count < PEN_MEMBER_ACTION_LIMIT);
    step->actions[step->count++] =
        (pen_member_action){.kind = kind, .generation = core->generation, .worker = core->worker};
}

static bool member_has_run(const pen_member_core *core) {
    return core->state == PEN_MEMBER_PULLING || core->state == PEN_MEMBER_LOADING ||
           core->state == PEN_MEMBER_RUNNING;
}

// ---- who calls

// PEN_MEMBER_JOB_LIMIT: it is not known.
static uint32_t member_find_job(const pen_member_core *core, const char *name) {
    PEN_ASSERT(name != NULL);
    PEN_ASSERT(core->job < PEN_MEMBER_JOB_LIMIT);
    for (uint32_t i = 0; i < PEN_MEMBER_JOB_LIMIT; i++) {
        const pen_member_job *job = &core->jobs[i];
        if (job->used_at > 0 && strncmp(job->name, name, sizeof job->name - 1) == 0) return i;
    }
    return PEN_MEMBER_JOB_LIMIT;
}

// Whether the call is of the job that we listen to.
static bool member_is_own_job(const pen_member_core *core, uint32_t job) {
    PEN_ASSERT(job <= PEN_MEMBER_JOB_LIMIT);
    PEN_ASSERT(core->call_count > 0 || core->state == PEN_MEMBER_IDLE);
    return core->call_count > 0 && job == core->job;
}

// Another worker may link only for the run that both are in.
static pen_member_answer member_judge_worker(const pen_member_core *core, uint32_t job,
                                             uint64_t generation) {
    PEN_ASSERT(job <= PEN_MEMBER_JOB_LIMIT);
    PEN_ASSERT(core->generation > 0 || core->state == PEN_MEMBER_IDLE);
    if (job < PEN_MEMBER_JOB_LIMIT && generation < core->jobs[job].generation) {
        return PEN_MEMBER_SUPERSEDED;
    }
    if (!member_is_own_job(core, job) || generation != core->generation) return PEN_MEMBER_NO_RUN;
    switch (core->state) {
    case PEN_MEMBER_LOADING:
    case PEN_MEMBER_RUNNING:
        return PEN_MEMBER_TAKE;
    case PEN_MEMBER_IDLE:
    case PEN_MEMBER_GREETED:
    case PEN_MEMBER_PULLING:
        return PEN_MEMBER_NO_RUN;
    case PEN_MEMBER_LEAVING:
        return PEN_MEMBER_BUSY;
    }
    PEN_NEVER("a state of a member");
}

// Which of several coordinators to listen to: the one with the highest generation of a job. While
// another job's run is going on, and while an old run is being left, callers are asked to come
// again.
pen_member_answer pen_member_core_judge(const pen_member_core *core, uint32_t peer, const char *job,
                                        uint64_t generation, uint64_t incarnation,
                                        bool *out_leaves) {
    PEN_ASSERT(job != NULL);
    PEN_ASSERT(!core->is_disconnecting || core->is_linked);
    const uint32_t found = member_find_job(core, job);
    *out_leaves = false;
    if (peer != 0) return member_judge_worker(core, found, generation);
    const uint64_t highest = found < PEN_MEMBER_JOB_LIMIT ? core->jobs[found].generation : 1;
    if (generation < highest && (generation == 0 || !PEN_PLANTED(accept_stale_generation))) {
        return PEN_MEMBER_SUPERSEDED;
    }
    // of two of the same generation one could not make it durable
    const bool is_same = member_is_own_job(core, found) && generation == core->generation &&
                         incarnation == core->coordinator;
    if (found < PEN_MEMBER_JOB_LIMIT && generation == core->jobs[found].assigned && !is_same) {
        return PEN_MEMBER_SUPERSEDED;
    }
    const bool is_free = core->state == PEN_MEMBER_IDLE && !core->is_linked;
    if (is_free && !core->is_called) return PEN_MEMBER_TAKE;
    if (!member_is_own_job(core, found)) return PEN_MEMBER_BUSY;
    const bool has_begun = member_has_run(core) || core->state == PEN_MEMBER_LEAVING;
    // it has lost the link, of which we do not know yet
    if (is_same && !has_begun && !core->has_left) return PEN_MEMBER_TAKE;
    *out_leaves = generation > core->generation && !is_free;
    return PEN_MEMBER_BUSY;
}

// ---- giving up

static void member_leave(pen_member_core *core, member_step *step) {
    PEN_ASSERT(member_has_run(core));
    PEN_ASSERT(!core->has_left);
    member_transition(core, PEN_MEMBER_LEAVING);
    if (PEN_PLANTED(member_keeps_old_run)) {
        member_transition(core, core->is_linked ? PEN_MEMBER_GREETED : PEN_MEMBER_IDLE);
        return;
    }
    member_act(core, step, PEN_MEMBER_ACTION_LEAVE);
}

static void member_disconnect(pen_member_core *core, member_step *step) {
    if (core->is_linked && !core->is_disconnecting) {
        core->is_disconnecting = true;
        member_act(core, step, PEN_MEMBER_ACTION_DISCONNECT);
    }
    core->sends_stopped = false;
    if (member_has_run(core)) member_leave(core, step);
}

void pen_member_core_supersede(pen_member_core *core, pen_member_action *out_actions,
                               uint32_t *out_action_count) {
    member_step step = {.actions = out_actions};
    member_disconnect(core, &step);
    *out_action_count = step.count;
}

// ---- events

// The highest generation seen of each job is remembered, for a limited number of jobs; the one not
// used for longest makes room.
static void member_take_call(pen_member_core *core, const pen_member_event *event) {
    uint32_t job = member_find_job(core, event->job);
    PEN_ASSERT(core->state == PEN_MEMBER_IDLE || core->state == PEN_MEMBER_GREETED);
    PEN_ASSERT(event->generation > 0 && core->call_count < UINT64_MAX);
    if (job == PEN_MEMBER_JOB_LIMIT) { // in place of that which was not used for longest
        job = 0;
        for (uint32_t i = 1; i < PEN_MEMBER_JOB_LIMIT; i++) {
            if (core->jobs[i].used_at < core->jobs[job].used_at) job = i;
        }
        core->jobs[job] = (pen_member_job){0};
        const size_t length = strnlen(event->job, sizeof core->jobs[job].name - 1);
        memcpy(core->jobs[job].name, event->job, length);
    }
    core->call_count += 1;
    core->job = job;
    core->jobs[job].used_at = core->call_count;
    core->jobs[job].generation = event->generation;
    core->generation = event->generation;
    core->coordinator = event->incarnation;
    core->has_left = false;
    core->is_called = true;
    core->is_dropped = false;
    core->heard_at = event->now;
}

static void member_take_down(pen_member_core *core, member_step *step) {
    if (!core->is_linked) {
        core->is_called = false; // instead of UP
        core->is_dropped = false;
        return;
    }
    core->is_linked = false;
    core->is_disconnecting = false;
    core->sends_stopped = false;
    if (member_has_run(core)) {
        member_leave(core, step);
    } else if (core->state == PEN_MEMBER_GREETED) {
        member_transition(core, PEN_MEMBER_IDLE);
    }
}

static void member_take_up(pen_member_core *core, uint64_t now, member_step *step) {
    if (!core->is_called || core->is_linked || core->state != PEN_MEMBER_IDLE) return;
    if (core->is_dropped) return; // DOWN follows
    core->is_called = false;
    core->is_linked = true;
    core->heard_at = now;
    core->beat_at = now;
    member_transition(core, PEN_MEMBER_GREETED);
    member_act(core, step, PEN_MEMBER_ACTION_HELLO);
}

static void member_take_assign(pen_member_core *core, const pen_member_event *event,
                               member_step *step) {
    if (core->state != PEN_MEMBER_GREETED || core->is_disconnecting || core->has_left) return;
    const bool is_for_us =
        event->incarnation == core->options.incarnation || PEN_PLANTED(no_incarnation);
    const bool is_current =
        event->generation == core->generation || PEN_PLANTED(accept_stale_generation);
    const bool is_new =
        event->generation > core->jobs[core->job].assigned || PEN_PLANTED(accept_stale_generation);
    if (!is_for_us || !is_current || !is_new) return;
    core->worker = event->worker;
    core->generation = event->generation;
    core->jobs[core->job].assigned = event->generation;
    core->is_started = false;
    member_transition(core, PEN_MEMBER_PULLING);
    member_act(core, step, PEN_MEMBER_ACTION_PULL);
}

static void member_take_stop(pen_member_core *core, uint64_t generation, member_step *step) {
    if (!core->is_linked || core->is_disconnecting || generation != core->generation) return;
    if (member_has_run(core)) {
        core->sends_stopped = true;
        member_leave(core, step);
    } else if (core->state == PEN_MEMBER_LEAVING) {
        core->sends_stopped = true;
    } else {
        core->has_left = true;
        member_act(core, step, PEN_MEMBER_ACTION_STOPPED);
    }
}

static void member_take_left(pen_member_core *core, member_step *step) {
    if (core->state != PEN_MEMBER_LEAVING) return;
    PEN_ASSERT(!core->sends_stopped || core->is_linked);
    core->has_left = true;
    if (core->sends_stopped) member_act(core, step, PEN_MEMBER_ACTION_STOPPED);
    core->sends_stopped = false;
    member_transition(core, core->is_linked ? PEN_MEMBER_GREETED : PEN_MEMBER_IDLE);
}

// ---- deadlines

// What is waited for follows from the state, so that no wait is forgotten.
static pen_member_wait member_find_wait(const pen_member_core *core) {
    PEN_ASSERT(core->is_called || !core->is_dropped);
    PEN_ASSERT(core->is_linked || !core->is_disconnecting);
    if (core->state == PEN_MEMBER_LEAVING) return PEN_MEMBER_WAIT_LEFT;
    if (core->is_disconnecting || core->is_dropped) return PEN_MEMBER_WAIT_DOWN;
    switch (core->state) {
    case PEN_MEMBER_IDLE:
        return core->is_called ? PEN_MEMBER_WAIT_LINK : PEN_MEMBER_WAIT_NONE;
    case PEN_MEMBER_GREETED:
        return core->has_left ? PEN_MEMBER_WAIT_END : PEN_MEMBER_WAIT_ASSIGNMENT;
    case PEN_MEMBER_PULLING:
        return PEN_MEMBER_WAIT_DESCRIPTION;
    case PEN_MEMBER_LOADING:
        return PEN_MEMBER_WAIT_LOADED;
    case PEN_MEMBER_RUNNING:
        return core->is_started ? PEN_MEMBER_WAIT_NONE : PEN_MEMBER_WAIT_START;
    case PEN_MEMBER_LEAVING:
        break;
    }
    PEN_NEVER("a state of a member");
}

// 0: it may last for ever.
static uint64_t member_find_limit(const pen_member_core *core) {
    const pen_member_options *options = &core->options;
    switch (core->wait) {
    case PEN_MEMBER_WAIT_NONE:
        return 0;
    case PEN_MEMBER_WAIT_LINK:
        return PEN_PLANTED(member_waits_for_link) ? 0 : options->link;
    case PEN_MEMBER_WAIT_ASSIGNMENT:
        return PEN_PLANTED(member_waits_for_assignment) ? 0 : options->assign;
    case PEN_MEMBER_WAIT_DESCRIPTION:
        return PEN_PLANTED(member_waits_for_description) ? 0 : options->load;
    case PEN_MEMBER_WAIT_LOADED:
        return PEN_PLANTED(member_waits_for_loading) ? 0 : options->load;
    case PEN_MEMBER_WAIT_START:
        return PEN_PLANTED(member_waits_for_start) ? 0 : options->load;
    case PEN_MEMBER_WAIT_LEFT:
        return PEN_PLANTED(member_waits_for_leaving) ? 0 : options->leave;
    case PEN_MEMBER_WAIT_END:
        return PEN_PLANTED(member_waits_for_end) ? 0 : options->assign;
    case PEN_MEMBER_WAIT_DOWN:
        return PEN_PLANTED(member_waits_for_down) ? 0 : options->link;
    }
    PEN_NEVER("a wait of a member");
}

// What is waited for has not come in time. A process that cannot leave, or is not rid of a link, is
// told of again and again: it is of no use to anybody.
static void member_end_wait(pen_member_core *core, uint64_t now, member_step *step) {
    const pen_member_wait wait = core->wait;
    PEN_ASSERT(wait != PEN_MEMBER_WAIT_NONE);
    PEN_ASSERT(now >= core->wait_at);
    switch (wait) {
    case PEN_MEMBER_WAIT_NONE:
        break;
    case PEN_MEMBER_WAIT_LINK:
        core->is_dropped = true;
        member_act(core, step, PEN_MEMBER_ACTION_DISCONNECT);
        break;
    case PEN_MEMBER_WAIT_ASSIGNMENT:
    case PEN_MEMBER_WAIT_END:
        member_disconnect(core, step);
        break;
    case PEN_MEMBER_WAIT_DESCRIPTION:
    case PEN_MEMBER_WAIT_LOADED:
    case PEN_MEMBER_WAIT_START:
        member_act(core, step, PEN_MEMBER_ACTION_LATE);
        step->actions[step->count - 1].wait = wait;
        member_leave(core, step);
        break;
    case PEN_MEMBER_WAIT_LEFT:
    case PEN_MEMBER_WAIT_DOWN:
        core->wait_at = now;
        member_act(core, step, PEN_MEMBER_ACTION_STUCK);
        step->actions[step->count - 1].wait = wait;
        break;
    }
}

// For people: what the coordinator and the log are told.
const char *pen_member_wait_text(pen_member_wait wait) {
    switch (wait) {
    case PEN_MEMBER_WAIT_NONE:
        return "nothing is waited for";
    case PEN_MEMBER_WAIT_LINK:
        return "the link that was taken did not come up";
    case PEN_MEMBER_WAIT_ASSIGNMENT:
        return "nothing was assigned";
    case PEN_MEMBER_WAIT_DESCRIPTION:
        return "the description of the run did not come";
    case PEN_MEMBER_WAIT_LOADED:
        return "the run was not loaded, or not linked";
    case PEN_MEMBER_WAIT_START:
        return "the run did not start";
    case PEN_MEMBER_WAIT_LEFT:
        return "the run could not be left";
    case PEN_MEMBER_WAIT_END:
        return "the run that is over was not taken down";
    case PEN_MEMBER_WAIT_DOWN:
        return "the link did not go down";
    }
    PEN_NEVER("a wait of a member");
}

static void member_tick(pen_member_core *core, uint64_t now, member_step *step) {
    const uint64_t limit = member_find_limit(core);
    if (limit > 0 && now > core->wait_at && now - core->wait_at >= limit) {
        member_end_wait(core, now, step);
        return;
    }
    if (!core->is_linked || core->is_disconnecting) return;
    const uint64_t lease = core->options.lease;
    const bool is_over = lease > 0 && now > core->heard_at && now - core->heard_at >= lease;
    if (is_over && !PEN_PLANTED(lease_never_expires)) {
        member_disconnect(core, step);
        return;
    }
    if (now < core->beat_at || now - core->beat_at < core->options.beat) return;
    core->beat_at = now;
    member_act(core, step, PEN_MEMBER_ACTION_BEAT);
}

// Events that come too late for a state are passed over: they are of a run that is over.
static void member_take(pen_member_core *core, const pen_member_event *event, member_step *step) {
    switch (event->kind) {
    case PEN_MEMBER_EVENT_CALL:
        member_take_call(core, event);
        break;
    case PEN_MEMBER_EVENT_UP:
        member_take_up(core, event->now, step);
        break;
    case PEN_MEMBER_EVENT_DOWN:
        member_take_down(core, step);
        break;
    case PEN_MEMBER_EVENT_HEARD:
        break;
    case PEN_MEMBER_EVENT_ASSIGN:
        member_take_assign(core, event, step);
        break;
    case PEN_MEMBER_EVENT_DESCRIBED:
        if (core->state != PEN_MEMBER_PULLING) break;
        member_transition(core, PEN_MEMBER_LOADING);
        member_act(core, step, PEN_MEMBER_ACTION_LOAD);
        break;
    case PEN_MEMBER_EVENT_LOADED:
        if (core->state == PEN_MEMBER_LOADING) member_transition(core, PEN_MEMBER_RUNNING);
        break;
    case PEN_MEMBER_EVENT_STARTED: // it may be noted before the loading is
        if (event->generation == core->generation) core->is_started = true;
        break;
    case PEN_MEMBER_EVENT_FAILED:
        if (member_has_run(core)) member_leave(core, step);
        break;
    case PEN_MEMBER_EVENT_STOP:
        member_take_stop(core, event->generation, step);
        break;
    case PEN_MEMBER_EVENT_LEFT:
        member_take_left(core, step);
        break;
    case PEN_MEMBER_EVENT_TICK:
        member_tick(core, event->now, step);
        break;
    }
}

// The clock of a wait starts with the event that began it, or with the next one, where it began
// outside of a step.
void pen_member_core_step(pen_member_core *core, const pen_member_event *event,
                          pen_member_action *out_actions, uint32_t *out_action_count) {
    member_step step = {.actions = out_actions};
    const bool is_heard = event->kind == PEN_MEMBER_EVENT_HEARD ||
                          event->kind == PEN_MEMBER_EVENT_ASSIGN ||
                          event->kind == PEN_MEMBER_EVENT_STOP;
    if (is_heard && event->now > core->heard_at) core->heard_at = event->now;
    if (member_find_wait(core) != core->wait) { // since somebody was judged
        core->wait = member_find_wait(core);
        core->wait_at = event->now;
    }
    member_take(core, event, &step);
    if (member_find_wait(core) != core->wait) {
        core->wait = member_find_wait(core);
        core->wait_at = event->now;
    }
    *out_action_count = step.count;
    PEN_ASSERT(core->is_linked || core->state != PEN_MEMBER_GREETED);
    PEN_ASSERT(!core->is_disconnecting || core->is_linked);
    PEN_ASSERT(!member_has_run(core) || (core->is_linked && !core->is_disconnecting));
}
