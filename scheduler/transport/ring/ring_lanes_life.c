#include "scheduler/transport/ring/ring_lanes.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "scheduler/transport/ring/ring_lanes_inside.h"

// ---- all lanes of a transport

static void lanes_release(pen_ring_lanes *lanes) {
    lanes_leave_place(lanes);
    if (lanes->bell >= 0) close(lanes->bell);
    pen_condition_deinit(&lanes->changed);
    pen_mutex_deinit(&lanes->lock);
    pen_memory_free(lanes);
}

static pen_status lanes_set_up(pen_ring_lanes *lanes) {
    PEN_TRY(lanes_find_place(lanes));
    lanes->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lanes->bell < 0) return pen_error(PEN_UNAVAILABLE, "no eventfd: %s", strerror(errno));
    return pen_thread_create("penstock-rings", lanes_run, lanes, &lanes->thread);
}

pen_status pen_ring_lanes_create(const pen_ring_lane_events *events, double spin_seconds,
                                 pen_ring_lanes **out_lanes) {
    pen_ring_lanes *lanes = pen_memory_allocate(1, sizeof *lanes);
    if (lanes == NULL) return pen_error_out_of_memory();
    lanes->events = *events;
    lanes->name = pen_random_incarnation();
    lanes->spin_seconds = spin_seconds;
    lanes->bell = lanes->listener = -1;
    pen_mutex_init(&lanes->lock);
    pen_condition_init(&lanes->changed);
    const pen_status status = lanes_set_up(lanes);
    if (status != PEN_OK) {
        lanes_release(lanes);
        return status;
    }
    *out_lanes = lanes;
    return PEN_OK;
}

// With the lock held. Wakes the thread, or has it look again before it sleeps. A bell that rings
// already rings.
static void lanes_wake(pen_ring_lanes *lanes) {
    const uint64_t one = 1;
    lanes->has_news = true;
    if (!lanes->is_asleep) return;
    lanes->is_asleep = false;
    const ssize_t count = write(lanes->bell, &one, sizeof one);
    (void)count;
}

void pen_ring_lanes_destroy(pen_ring_lanes *lanes) {
    if (lanes == NULL) return;
    pen_mutex_lock(&lanes->lock);
    lanes->is_ending = true;
    lanes_wake(lanes);
    pen_mutex_unlock(&lanes->lock);
    pen_thread_join(lanes->thread);
    PEN_ASSERT(lanes->first == NULL);
    lanes_release(lanes);
}

// Both the writer and the reader of a ring copy each byte once.
void pen_ring_lanes_count(const pen_ring_lanes *lanes, pen_transport_counters *counters) {
    const uint64_t sent = atomic_load_explicit(&lanes->bytes_sent, memory_order_relaxed);
    const uint64_t received = atomic_load_explicit(&lanes->bytes_received, memory_order_relaxed);
    counters->bytes_sent += sent;
    counters->bytes_received += received;
    counters->bytes_copied += sent + received;
    counters->frames_sent += atomic_load_explicit(&lanes->frames_sent, memory_order_relaxed);
    counters->frames_received +=
        atomic_load_explicit(&lanes->frames_received, memory_order_relaxed);
}

// ---- one lane

pen_status pen_ring_lane_create(pen_ring_lanes *lanes, pen_ring_lane **out_lane) {
    pen_ring_lane *lane = pen_memory_allocate(1, sizeof *lane);
    if (lane == NULL) return pen_error_out_of_memory();
    lane->lanes = lanes;
    lane->token = pen_random_incarnation();
    lane->out.socket = lane->in.socket = -1;
    lane->loans_end = &lane->loans;
    pen_mutex_lock(&lanes->lock);
    lane->next = lanes->first;
    lanes->first = lane;
    pen_mutex_unlock(&lanes->lock);
    *out_lane = lane;
    return PEN_OK;
}

pen_wire_ring pen_ring_lane_offer(const pen_ring_lane *lane) {
    return (pen_wire_ring){
        .host = lanes_host(lane->lanes), .socket = lane->lanes->name, .token = lane->token};
}

bool pen_ring_lane_reaches(const pen_ring_lane *lane, const pen_wire_ring *theirs) {
    return theirs->socket != 0 && theirs->host == lanes_host(lane->lanes);
}

void pen_ring_lane_open(pen_ring_lane *lane, uint32_t peer, const pen_wire_ring *theirs) {
    pen_mutex_lock(&lane->lanes->lock);
    PEN_ASSERT(!lane->is_opened && !lane->is_closed);
    lane->is_opened = true;
    lane->peer = peer;
    lane->theirs = *theirs;
    lanes_wake(lane->lanes);
    pen_mutex_unlock(&lane->lanes->lock);
}

void pen_ring_lane_send(pen_ring_lane *lane, pen_ring_loan *loan) {
    pen_ring_lanes *lanes = lane->lanes;
    pen_mutex_lock(&lanes->lock);
    PEN_ASSERT(!lane->is_closed);
    loan->next = NULL;
    loan->position = 0;
    *lane->loans_end = loan;
    lane->loans_end = &loan->next;
    atomic_store_explicit(&lane->has_loans, true, memory_order_relaxed);
    lanes_wake(lanes);
    pen_mutex_unlock(&lanes->lock);
}

pen_ring_lane_state pen_ring_lane_look(pen_ring_lane *lane, pen_status *out_failure,
                                       bool *out_is_gone) {
    pen_mutex_lock(&lane->lanes->lock);
    const pen_ring_lane_state state = lane->state;
    *out_is_gone = lane->is_gone;
    *out_failure =
        state == PEN_RING_LANE_BROKEN ? pen_error(lane->failure_code, "%s", lane->failure) : PEN_OK;
    pen_mutex_unlock(&lane->lanes->lock);
    return state;
}

pen_ring_loan *pen_ring_lane_take_back(pen_ring_lane *lane) {
    pen_mutex_lock(&lane->lanes->lock);
    PEN_ASSERT(lane->state == PEN_RING_LANE_REFUSED);
    pen_ring_loan *loans = lane->loans;
    lane->loans = NULL;
    lane->loans_end = &lane->loans;
    atomic_store_explicit(&lane->has_loans, false, memory_order_relaxed);
    pen_mutex_unlock(&lane->lanes->lock);
    return loans;
}

// The thread lets a lane go when it sees that it is closed; here is only waited for what it does
// for it just now.
void pen_ring_lane_close(pen_ring_lane *lane) {
    if (lane == NULL) return;
    pen_ring_lanes *lanes = lane->lanes;
    pen_mutex_lock(&lanes->lock);
    PEN_ASSERT(!lane->is_closed);
    lane->is_closed = true;
    lanes_wake(lanes);
    while (lanes->current == lane)
        pen_condition_wait(&lanes->changed, &lanes->lock);
    pen_mutex_unlock(&lanes->lock);
}
