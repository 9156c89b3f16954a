// When somebody was lost: who takes part from now on, and the generation that they make.

#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/interrupt.h"
#include "scheduler/engine/pipeline_kinds.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/transport/grpc/address_answer.h"

#define RECOVERY_LINK_SECONDS 5.0    // for all who answer to be linked and ready to load
#define RECOVERY_ANSWER_SECONDS 0.3  // for somebody to answer
#define RECOVERY_PAUSE_SECONDS 0.05  // between two looks at who is there
#define RECOVERY_SAY_SECONDS 10.0    // between two lines about who is waited for
#define RECOVERY_RESTART_SECONDS 1.0 // between two tries to start a process
#define RECOVERY_UNFIT_SECONDS 5.0   // behind the grace, in which who does not take part is missing
#define RECOVERY_LOOK_SECONDS 1.0    // between two looks for those who may take part again

bool pen_pipeline_is_failed(pen_engine *engine) {
    const pipeline_engine *p = pipeline_of(engine);
    return p->coordinator == NULL || pen_coordinator_is_failed(p->coordinator);
}

static uint64_t recovery_now(void) {
    return (uint64_t)(pen_clock_seconds() * 1e9);
}

// The policy speaks of seats, the workers of the job's own plan: who sits there may change.
pen_status pen_pipeline_begin_policy(pipeline_engine *p) {
    const pen_job_recovery *recovery = &p->options.job->recovery;
    static const pen_recovery_on_loss on_loss[] = {
        [PEN_JOB_ON_LOSS_WAIT] = PEN_RECOVERY_ON_LOSS_WAIT,
        [PEN_JOB_ON_LOSS_SPARE] = PEN_RECOVERY_ON_LOSS_SPARE,
        [PEN_JOB_ON_LOSS_REPLAN] = PEN_RECOVERY_ON_LOSS_REPLAN,
        [PEN_JOB_ON_LOSS_STOP] = PEN_RECOVERY_ON_LOSS_STOP,
    };
    const pen_recovery_options options = {.on_loss = on_loss[recovery->on_loss],
                                          .grace = (uint64_t)(recovery->grace_seconds * 1e9),
                                          .attempts = (uint32_t)recovery->attempts,
                                          .worker_count = p->workers.count};
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        p->members[d].worker = p->workers.worker_of_device[d];
    }
    p->seat_count = p->workers.count;
    PEN_TRY(PEN_NEW(p->arena, (size_t)p->seat_count + 1, &p->is_present));
    PEN_TRY(PEN_NEW(p->arena, (size_t)p->seat_count + 1, &p->was_missing));
    PEN_TRY(PEN_NEW(p->arena, recovery->spares.count, &p->is_spare_taken));
    PEN_TRY(PEN_NEW(p->arena, recovery->spares.count, &p->is_spare_free));
    return pen_recovery_new(&options, p->arena, &p->recovery);
}

// ---- who is there

static const char *recovery_spare(const pipeline_engine *p, uint32_t index) {
    return ((const char *const *)p->options.job->recovery.spares.items)[index];
}

// Processes that were started here are started again at once, and so are there, unless the system
// starts none, or they end at once.
static bool recovery_restart(pipeline_engine *p, pipeline_member *member) {
    char end[128];
    const bool is_alive = pen_launched_is_alive(p->launched, member->launched, end, sizeof end);
    if (is_alive && !p->was_missing[member->worker]) return true;
    if (pen_clock_seconds() < member->failed_at + RECOVERY_RESTART_SECONDS) return false;
    pen_log(PEN_LOG_NOTE, "worker %u (%s) %s: started again", member->worker,
            pen_launched_address(p->launched, member->launched), is_alive ? "did not answer" : end);
    const pen_status status = pen_launched_restart(p->launched, member->launched);
    p->was_missing[member->worker] = status != PEN_OK;
    member->failed_at = status == PEN_OK ? 0 : pen_clock_seconds();
    if (status == PEN_OK) return true;
    pen_log(PEN_LOG_WARNING, "%s; tried again", pen_status_message(status));
    pen_status_ignore(status, "said; it is missing until it is there");
    return false;
}

static bool recovery_is_there(pipeline_engine *p, pipeline_member *member) {
    if (member->launched != PIPELINE_NOT_LAUNCHED) return recovery_restart(p, member);
    if (member->host == NULL || !p->is_present[member->worker])
        return p->is_present[member->worker];
    return pen_clock_seconds() >= member->unfit_until &&
           pen_address_answers(member->host, RECOVERY_ANSWER_SECONDS);
}

// Asks all, those who were given up too.
static void recovery_look(pipeline_engine *p, pen_recovery_situation *out_situation) {
    const uint32_t count = p->options.job->cluster.device_count;
    const uint32_t spare_count = p->options.job->recovery.spares.count;
    pen_pipeline_look_for_tasks(p);
    for (uint32_t w = 0; w <= p->seat_count; w++) {
        p->is_present[w] = true;
    }
    for (uint32_t d = 0; d < count; d++) {
        pipeline_member *member = &p->members[d];
        p->is_present[member->worker] = recovery_is_there(p, member);
    }
    for (uint32_t i = 0; i < spare_count; i++) {
        p->is_spare_free[i] = !p->is_spare_taken[i] &&
                              pen_address_answers(recovery_spare(p, i), RECOVERY_ANSWER_SECONDS);
    }
    *out_situation = (pen_recovery_situation){.now = recovery_now(),
                                              .is_present = p->is_present,
                                              .spare_count = spare_count,
                                              .spare_is_free = p->is_spare_free};
}

// Who failed or did not come, as seats of the job's own plan.
static void recovery_find_missing(pipeline_engine *p) {
    for (uint32_t w = 0; w <= p->seat_count; w++) {
        p->was_missing[w] = false;
    }
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        if (!p->is_missing[p->workers.worker_of_device[d]]) continue;
        p->was_missing[p->members[p->member_of_device[d]].worker] = true;
    }
}

// ---- what is done about those who are not

static void recovery_use_spare(pipeline_engine *p, const pen_recovery_decision *decision) {
    const char *spare = recovery_spare(p, decision->spare);
    p->is_spare_taken[decision->spare] = true;
    for (uint32_t d = 0; d < p->options.job->cluster.device_count; d++) {
        if (p->members[d].worker == decision->worker) p->members[d].host = spare;
    }
    pen_log(PEN_LOG_WARNING, "worker %u is not there: the spare %s takes its place",
            decision->worker, spare);
}

// Those who take part are those that the policy has not left out.
static void recovery_set_members(pipeline_engine *p) {
    for (uint32_t d = 0; d < p->options.job->cluster.device_count; d++) {
        pipeline_member *member = &p->members[d];
        const bool is_lost = pen_recovery_is_left_out(p->recovery, member->worker);
        const char *name = p->options.job->cluster.devices[d].name;
        if (is_lost && !member->is_lost) {
            pen_log(PEN_LOG_WARNING, "goes on without device '%s'", name);
        } else if (member->is_lost && !is_lost) {
            pen_log(PEN_LOG_NOTE, "device '%s' takes part again", name);
        }
        member->is_returning = member->is_lost && !is_lost;
        member->is_lost = is_lost;
    }
}

// Whether somebody was taken back, or left out, since the work was placed: a planned recovery that
// did not come about.
static bool recovery_is_misplaced(const pipeline_engine *p) {
    bool is_misplaced = false;
    for (uint32_t d = 0; d < p->options.job->cluster.device_count; d++) {
        const pipeline_member *member = &p->members[d];
        if (member->is_lost != pen_recovery_is_left_out(p->recovery, member->worker)) {
            is_misplaced = true;
        }
    }
    return is_misplaced;
}

// For somebody who asks (SIGUSR1) between two runs.
static void recovery_answer_question(void) {
    if (!pen_interrupt_take_question()) return;
    pen_log(PEN_LOG_NOTE, "no run is under way: waiting for workers that are lost");
}

// Waits until the policy takes somebody back: those who are left do not suffice.
static pen_status recovery_park(pipeline_engine *p, pen_status take_status) {
    pen_recovery_situation situation;
    pen_log(PEN_LOG_WARNING, "%s; waiting for those that are lost",
            pen_status_message(take_status));
    pen_status_ignore(take_status, "said: it waits");
    do {
        if (pen_interrupt_wished(p->options.cancel))
            return pen_error(PEN_CANCELLED, "stopped meanwhile");
        recovery_answer_question();
        pen_clock_pause(RECOVERY_PAUSE_SECONDS);
        recovery_look(p, &situation);
    } while (!pen_recovery_takes_back(p->recovery, &situation));
    return PEN_OK;
}

// Whether nodes go to devices of another kind, though the devices of theirs do not suffice; an
// error where the job does not allow it.
static pen_status recovery_cross(const pipeline_engine *p, const char *why,
                                 pen_status take_status) {
    const pipeline_crossing crossing = {.why = why, .failure = take_status};
    const pen_status refusal = pen_pipeline_cross_kinds(p, &crossing);
    pen_status_ignore(take_status, "its message is in the other, or other kinds are taken");
    return refusal;
}

// Places anew those who take part; `why`: who is lost, for an error. Nodes stay with the kind of
// device that they began on, if the devices of it that are left suffice.
static pen_status recovery_place(pipeline_engine *p, const char *why) {
    bool crosses = false;
    PEN_TRY(pen_pipeline_note_kinds(p));
    for (;;) {
        recovery_set_members(p);
        const pipeline_crossing crossing = {.why = why, .gone = pen_pipeline_find_gone_kind(p)};
        if (crossing.gone != NULL) PEN_TRY(pen_pipeline_cross_kinds(p, &crossing));
        const bool holds = p->kept != NULL && crossing.gone == NULL && !crosses;
        if (p->kept != NULL) p->kept->holds = holds;
        pen_pipeline_unplace(p);
        pen_status status = pen_pipeline_place(p);
        const pen_status_code code = pen_status_get_code(status);
        if (code != PEN_DOES_NOT_FIT && code != PEN_UNAVAILABLE) return status;
        crosses = holds && code == PEN_DOES_NOT_FIT;
        PEN_TRY(crosses ? recovery_cross(p, why, status) : recovery_park(p, status));
    }
}

static void recovery_say(pipeline_engine *p, const char *text) {
    const double now = pen_clock_seconds();
    if (now < p->said_at + RECOVERY_SAY_SECONDS) return;
    p->said_at = now;
    pen_log(PEN_LOG_NOTE, "%s", text);
}

// A placement anew moves nodes between devices. Of replicas on devices of several kinds it is not
// known which lanes would go where.
static pen_status recovery_replan(pipeline_engine *p, const pen_recovery_decision *decision) {
    const bool is_mixed = pen_cluster_spec_other_kind(&p->options.job->cluster) != NULL;
    const pipeline_crossing crossing = {.why = decision->text};
    PEN_TRY(pen_pipeline_note_kinds(p));
    if (is_mixed && p->kept == NULL) PEN_TRY(pen_pipeline_cross_kinds(p, &crossing));
    return recovery_place(p, decision->text);
}

// Waits, and has spares take places, until the policy says how to go on, or not to. Leaves a
// placement of those who take part.
static pen_status recovery_settle(pipeline_engine *p) {
    bool has_changed = false;
    for (;;) {
        pen_recovery_situation situation;
        pen_recovery_decision decision;
        recovery_look(p, &situation);
        pen_recovery_decide(p->recovery, &situation, &decision);
        switch (decision.kind) {
        case PEN_RECOVERY_WAIT:
            if (pen_interrupt_wished(p->options.cancel))
                return pen_error(PEN_CANCELLED, "stopped meanwhile");
            if (decision.worker > 0) recovery_say(p, decision.text);
            recovery_answer_question();
            pen_clock_pause(RECOVERY_PAUSE_SECONDS);
            break;
        case PEN_RECOVERY_USE_SPARE:
            recovery_use_spare(p, &decision);
            has_changed = true;
            break;
        case PEN_RECOVERY_RESTART:
            return has_changed || recovery_is_misplaced(p) ? recovery_place(p, "") : PEN_OK;
        case PEN_RECOVERY_REPLAN:
            return recovery_replan(p, &decision);
        case PEN_RECOVERY_STOP:
            return pen_error(PEN_UNAVAILABLE, "%s", decision.text);
        }
    }
}

// Whether a generation that did not begin may do so another time.
static bool recovery_may_try(pen_status status) {
    switch (pen_status_get_code(status)) {
    case PEN_UNAVAILABLE:
    case PEN_DEADLINE:
    case PEN_CORRUPT:
    case PEN_IO: // of the log
    case PEN_NO_STORAGE:
        return true;
    default:
        return false;
    }
}

static void recovery_give_up_for_now(pipeline_engine *p, pipeline_member *member) {
    member->unfit_until =
        pen_clock_seconds() + p->options.job->recovery.grace_seconds + RECOVERY_UNFIT_SECONDS;
}

// Some answer and cannot take part: they are of another build, have too little memory, write
// elsewhere, or, of those who were to take part again, serve somebody else. They are as good as
// missing. False: it was not for them.
static bool recovery_give_unfit_up(pipeline_engine *p, bool is_planned, pen_status_code code) {
    bool is_any = false;
    for (uint32_t d = 0; d < p->plan->device_count; d++) { // who was refused
        if (!p->is_refused[p->workers.worker_of_device[d]]) continue;
        if (code != PEN_CANCELLED && code != PEN_DOES_NOT_FIT && code != PEN_INVALID_INPUT) {
            continue;
        }
        recovery_give_up_for_now(p, &p->members[p->member_of_device[d]]);
        is_any = true;
    }
    for (uint32_t d = 0; is_planned && d < p->options.job->cluster.device_count; d++) {
        pipeline_member *member = &p->members[d];
        if (!member->is_returning || !p->was_missing[member->worker]) continue;
        recovery_give_up_for_now(p, member);
        is_any = is_any || code == PEN_INVALID_INPUT;
    }
    return is_any;
}

// How long the first generation may take to begin, until those that were started here are looked
// after, and tasks are asked again where they are.
static double recovery_first_seconds(const pipeline_engine *p, double left) {
    const bool looks = p->launched != NULL || p->options.tasks != NULL;
    return looks && left > RECOVERY_LINK_SECONDS ? RECOVERY_LINK_SECONDS : left;
}

// Whether another process began the training. An earlier one in the same folder is not this one.
static bool recovery_is_begun(const pipeline_engine *p) {
    const pen_engine_log *log = p->options.log;
    return log != NULL && !log->is_anew && log->next_generation(log->context) > 1;
}

// Whether those that have not come to the first generation may be lost for good: the training was
// begun by another process, which would have gone on without them; or they are tasks, of which it
// is sure that they were started. Elsewhere an address may be wrong.
static bool recovery_goes_without(const pipeline_engine *p) {
    const pen_job_on_loss on_loss = p->options.job->recovery.on_loss;
    return (on_loss == PEN_JOB_ON_LOSS_SPARE || on_loss == PEN_JOB_ON_LOSS_REPLAN) &&
           (recovery_is_begun(p) || p->options.tasks != NULL);
}

// Whether a task has said where it is.
static bool recovery_has_task_come(const pipeline_engine *p, uint32_t member) {
    const pen_engine_tasks *tasks = p->options.tasks;
    const pen_cluster_device_spec *device = &p->options.job->cluster.devices[member];
    return tasks != NULL && device->per == PEN_CLUSTER_PER_TASK &&
           tasks->has_come(tasks->context, device->task);
}

// Whether somebody who had come to the first generation is missing: that is a loss like any other.
// Those that were started here are started again at once.
static bool recovery_has_loss(const pipeline_engine *p) {
    bool has_loss = false;
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        const uint32_t m = p->member_of_device[d], worker = p->workers.worker_of_device[d];
        if (p->members[m].launched != PIPELINE_NOT_LAUNCHED || p->members[m].host == NULL) continue;
        if (!p->is_missing[worker]) continue;
        has_loss = has_loss || p->was_there[worker] || recovery_has_task_come(p, m);
    }
    return has_loss;
}

// Whether workers that others start are missing, and nobody else: they may yet come, and are no
// failure until the deadline.
static bool recovery_is_only_late(const pipeline_engine *p) {
    bool is_late = false;
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        const pipeline_member *member = &p->members[p->member_of_device[d]];
        if (!p->is_missing[p->workers.worker_of_device[d]]) continue;
        if (member->launched != PIPELINE_NOT_LAUNCHED || member->host == NULL) return false;
        is_late = true;
    }
    return is_late;
}

// Tries the first generation again until the rendezvous ends; processes that were started here are
// looked after in between. False: somebody was lost, or is missing and the job may go on without.
static pen_status recovery_gather(pipeline_engine *p, bool goes_without, bool *out_is_there) {
    const pen_job_recovery *recovery = &p->options.job->recovery;
    const double deadline = p->rendezvous.end;
    pen_recovery_situation situation;
    int64_t failure_count = 0;
    *out_is_there = true;
    for (;;) {
        const double left = fmax(deadline - pen_clock_seconds(), 0.1);
        const pen_status status = pen_pipeline_begin_generation(p, recovery_first_seconds(p, left));
        if (status == PEN_OK) return PEN_OK;
        const bool has_loss = recovery_has_loss(p);
        const bool is_for_policy = has_loss && recovery->on_loss != PEN_JOB_ON_LOSS_STOP;
        const bool is_late = recovery_is_only_late(p) && !has_loss;
        if (!is_late) failure_count += 1;
        const bool is_over = pen_clock_seconds() >= deadline || is_for_policy ||
                             failure_count > recovery->attempts ||
                             (failure_count > 0 && recovery->on_loss == PEN_JOB_ON_LOSS_STOP);
        if (!recovery_may_try(status) || (is_over && !goes_without && !is_for_policy)) {
            return status;
        }
        if (!is_late || !p->rendezvous.is_said) {
            pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
        }
        p->rendezvous.is_said = p->rendezvous.is_said || is_late;
        pen_status_ignore(status, "tried again");
        *out_is_there = !is_over;
        if (is_over) return PEN_OK;
        pen_pipeline_end_generation(p);
        recovery_find_missing(p);
        recovery_look(p, &situation);
    }
}

// Where another process has begun the training, the rendezvous takes `grace` alone. Who is missing
// then is lost, where the job may go on without.
pen_status pen_pipeline_start(pipeline_engine *p) {
    const pen_job *job = p->options.job;
    const bool goes_without = recovery_goes_without(p);
    const double most = job->pipeline.rendezvous_timeout_seconds;
    const double grace = fmax(job->recovery.grace_seconds, RECOVERY_ANSWER_SECONDS);
    const bool is_begun = goes_without && recovery_is_begun(p);
    const double began =
        p->options.tasks == NULL ? pen_clock_seconds() : p->options.tasks->waited_since;
    bool is_there;
    pen_interrupt_set_stage(NULL); // who waits answers
    p->rendezvous = (pen_coordinator_rendezvous){
        .began = began, .end = began + (is_begun ? fmin(grace, most) : most)};
    const pen_status status = recovery_gather(p, goes_without, &is_there);
    p->rendezvous.end = 0;
    if (status != PEN_OK || is_there) return status;
    return pen_pipeline_recover(&p->engine, &(pen_engine_loss){0});
}

// Ends the generation, asks the policy who takes part, places anew, and begins the next one, until
// one begins or the policy says stop.
pen_status pen_pipeline_recover(pen_engine *engine, const pen_engine_loss *loss) {
    pipeline_engine *p = pipeline_of(engine);
    uint64_t step = loss->step;
    bool is_planned = loss->is_planned, is_blameless = loss->is_blameless;
    p->said_at = 0;
    for (;;) {
        pen_pipeline_end_generation(p);
        if (is_planned) {
            PEN_TRY(recovery_place(p, ""));
        } else if (!is_blameless) {
            recovery_find_missing(p);
            pen_recovery_note_failure(p->recovery, recovery_now(), step, p->was_missing);
            PEN_TRY(recovery_settle(p));
        }
        const pen_status status = pen_pipeline_begin_generation(p, RECOVERY_LINK_SECONDS);
        if (status == PEN_OK) return PEN_OK;
        recovery_find_missing(p);
        const bool is_unfit = recovery_give_unfit_up(p, is_planned, pen_status_get_code(status));
        if (!is_unfit && !recovery_may_try(status)) return status;
        pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
        pen_status_ignore(status, "tried again, as the policy says");
        is_planned = is_blameless = false;
        step = 0;
    }
}

bool pen_pipeline_may_rejoin(pen_engine *engine) {
    pipeline_engine *p = pipeline_of(engine);
    pen_recovery_situation situation;
    bool is_any = false;
    for (uint32_t d = 0; d < p->options.job->cluster.device_count; d++) {
        is_any = is_any || p->members[d].is_lost;
    }
    const double now = pen_clock_seconds();
    if (!is_any || now < p->looked_at + RECOVERY_LOOK_SECONDS) return false;
    p->looked_at = now;
    recovery_look(p, &situation);
    return pen_recovery_takes_back(p->recovery, &situation);
}
