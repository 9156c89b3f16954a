// Who made a run fail, where the worker that was heard first only misses its link to another.

#include "base/clock.h"
#include "base/system/interrupt.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

#define CAUSE_SECONDS 1.0 // for another's words, or for its link to go down
#define CAUSE_TICK_SECONDS 0.05

bool pen_coordinator_is_messenger(const coordinator_worker *worker) {
    return !worker->is_unjust && pen_status_get_code(worker->failure) == PEN_UNAVAILABLE;
}

bool pen_coordinator_has_own_fault(const coordinator_worker *worker) {
    return worker->has_said && !pen_coordinator_is_messenger(worker);
}

// The first of the others that said what went wrong there, or else that is lost. 0: nobody.
static uint32_t cause_find_other(const pen_coordinator *c, uint32_t failed) {
    uint32_t lost = 0;
    for (uint32_t w = c->table->worker_count; w > 0; w--) {
        if (w != failed && c->workers[w].is_lost) lost = w;
    }
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        if (w != failed && pen_coordinator_has_own_fault(&c->workers[w])) return w;
    }
    return lost;
}

// What a worker says comes in order, and it says that it failed before it lets go of its links to
// others: an answer to this ping comes behind that. Returns its number. Without the lock.
static uint64_t cause_ask(pen_coordinator *c, uint32_t failed) {
    pen_mutex_lock(&c->lock);
    const uint64_t sequence = ++c->ping_sequence;
    pen_mutex_unlock(&c->lock);
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        pen_message ping = {.kind = PEN_MESSAGE_PING, .sequence = sequence};
        if (w != failed) pen_coordinator_tell(c, w, &ping);
    }
    return sequence;
}

// Whether one of the others may still say why: it is there, has neither said that it failed nor
// left the run, nor answered that ping. With the lock.
static bool cause_may_come(const pen_coordinator *c, uint32_t failed, uint64_t sequence) {
    for (uint32_t w = 1; w <= c->table->worker_count; w++) {
        const coordinator_worker *worker = &c->workers[w];
        if (w == failed || !worker->is_up || worker->has_said || worker->is_stopped) continue;
        if (worker->ponged < sequence) return true;
    }
    return false;
}

// All have a second: who has answered, left or said that it misses a link may be about to fail or
// to end as well. One that has done none of these is slow, or will be lost: it has a lease, unless
// somebody wishes to stop.
uint32_t pen_coordinator_find_cause(pen_coordinator *c, uint32_t failed) {
    const double began = pen_clock_seconds();
    uint32_t cause = 0;
    pen_mutex_lock(&c->lock);
    const bool is_messenger = pen_coordinator_is_messenger(&c->workers[failed]);
    pen_mutex_unlock(&c->lock);
    if (!is_messenger) return 0;
    const uint64_t sequence = cause_ask(c, failed);
    pen_mutex_lock(&c->lock);
    while (pen_coordinator_is_messenger(&c->workers[failed])) {
        const double waited = pen_clock_seconds() - began;
        const bool may_wait = waited < CAUSE_SECONDS || (waited < c->setup.lease_seconds &&
                                                         !pen_interrupt_wished(c->setup.cancel) &&
                                                         cause_may_come(c, failed, sequence));
        cause = cause_find_other(c, failed);
        if (cause != 0 || !may_wait) break;
        (void)pen_condition_wait_for(&c->changed, &c->lock, CAUSE_TICK_SECONDS);
        pen_mutex_unlock(&c->lock);
        pen_coordinator_look_for_gone(c);
        pen_mutex_lock(&c->lock);
    }
    pen_mutex_unlock(&c->lock);
    return cause;
}
