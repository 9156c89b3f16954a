#include "tests/simulator/stuck.h"

#include <string.h>

#include "tests/simulator/coordinator_process.h"
#include "tests/simulator/links.h"
#include "tests/simulator/worker_process.h"

// A message that waits; it is sent over the link that it was meant for, or not at all.
typedef struct stuck_message {
    uint32_t peer;
    uint32_t count;
    const void *link;
    uint8_t bytes[];
} stuck_message;

static void stuck_send(process *p, void *context, uint64_t value) {
    const stuck_message *message = context;
    (void)value;
    p->held_message_count -= 1;
    if (link_identity(p, message->peer) != message->link) return;
    link_send_message(p, message->peer, message->bytes, message->count);
}

bool process_holds_message(process *p, uint32_t peer, const void *bytes, uint32_t count) {
    if (!p->is_stuck && p->held_message_count == 0) return false;
    p->held_message_count += 1; // those that come later wait behind them
    stuck_message *message = world_allocate(p->world, 1, sizeof *message + count);
    message->peer = peer;
    message->count = count;
    message->link = link_identity(p, peer);
    memcpy(message->bytes, bytes, count);
    world_work_in(p->world, 0, p, stuck_send, message, 0);
    return true;
}

// Workers tick where they have a link; this one does in any case.
static void stuck_tick(process *p, void *context, uint64_t value) {
    worker_process *worker = p->worker;
    (void)context;
    (void)value;
    p->is_stuck_ticking = p->is_stuck;
    if (!p->is_stuck) return;
    world_call_in(p->world, p->world->times.beat / 2, p, stuck_tick, NULL, 0);
    if (!worker->is_ticking) worker_tick_once(worker);
}

// Works are done in the order in which they came, as by one thread: those that come while others
// are still held, as all do that came to a frozen process, wait behind them.
static void process_work_off(process *p, void *context, uint64_t value) {
    world *w = p->world;
    (void)context;
    (void)value;
    const bool was_behind = p->is_behind;
    coordinator_process *c = p->coordinator;
    p->is_behind = p->held.count > 0;
    if (!p->is_behind) {
        const bool trains = was_behind && c != NULL && c->run != NULL && !c->run->is_over;
        if (trains) coordinator_train(c);
        return;
    }
    for (uint32_t i = 0; i < p->held.count; i++) {
        world_event event = p->held.items[i];
        event.is_work = false; // it has waited
        world_put(w, 0, event);
    }
    p->held.count = 0;
    world_call_in(w, 0, p, process_work_off, NULL, 0);
}

static void process_unstick(process *p, void *context, uint64_t value) {
    (void)context;
    if (p->sticks_until != value) return;
    p->is_stuck = false;
    WORLD_NOTE(p->world, p, "works again", 0, 0, 0);
    process_work_off(p, NULL, 0);
}

void process_stick(process *p, uint64_t nanoseconds) {
    world *w = p->world;
    if (p->is_behind) return; // it works what it was held with
    if (p->is_stuck && p->sticks_until >= w->now + nanoseconds) return;
    WORLD_NOTE(w, p, "is stuck", nanoseconds, 0, 0);
    p->is_stuck = true;
    p->sticks_until = w->now + nanoseconds;
    world_call_in(w, nanoseconds, p, process_unstick, NULL, p->sticks_until);
    if (p->worker != NULL && !p->is_stuck_ticking) stuck_tick(p, NULL, 0);
}
