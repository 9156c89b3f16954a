// The thread of lanes: gives each its turn, makes and takes rings, and sleeps when there is nothing
// to do. What it waits for has a deadline, or an end that its socket tells.
#include <math.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/transport/ring/ring_lanes_inside.h"
#include "scheduler/transport/ring/ring_memory.h"

#define THREAD_CALL_SECONDS 2.0   // for the other end to take a ring
#define THREAD_RETRY_SECONDS 0.01 // while its backlog is full
#define THREAD_GREET_SECONDS 2.0  // for who calls to say why
#define THREAD_NAP_SECONDS 1.0    // the longest sleep
#define THREAD_BUSY_TURNS 32u     // before sockets are looked at all the same
// A wait that was shorter than this is followed by one that looks for so long before it sleeps.
#define THREAD_SPIN_SECONDS 1e-4
#define THREAD_TAKEN_SECONDS 1e-5 // a look that takes longer: another thread wanted the core
#define THREAD_SKIP_WAITS 100u

// ---- life of a lane

static void half_release(lane_half *half) {
    if (half->socket >= 0) close(half->socket);
    pen_ring_memory_close(half->memory);
    *half = (lane_half){.socket = -1};
}

static void lane_release(pen_ring_lane *lane) {
    pen_ring_lanes *lanes = lane->lanes;
    half_release(&lane->out);
    half_release(&lane->in);
    if (lane->sending != NULL) lanes->events.sent(lanes->events.context, lane->sending);
    while (lane->loans != NULL) {
        pen_ring_loan *loan = lane->loans;
        lane->loans = loan->next;
        lanes->events.sent(lanes->events.context, loan);
    }
    pen_frame_intake_deinit(&lane->intake);
    pen_memory_free(lane);
}

// Takes closed lanes out.
static void thread_sweep(pen_ring_lanes *lanes) {
    pen_ring_lane *closed = NULL;
    pen_mutex_lock(&lanes->lock);
    lanes->has_news = false;
    for (pen_ring_lane **at = &lanes->first; *at != NULL;) {
        pen_ring_lane *lane = *at;
        if (!lane->is_closed) {
            at = &lane->next;
            continue;
        }
        *at = lane->next;
        lane->next = closed;
        closed = lane;
    }
    pen_mutex_unlock(&lanes->lock);
    while (closed != NULL) {
        pen_ring_lane *lane = closed;
        closed = lane->next;
        lane_release(lane);
    }
}

// The open lane behind `lane`, or the first one, which the thread works for from now on; NULL:
// there is none, and it works for nobody.
static pen_ring_lane *thread_step(pen_ring_lanes *lanes, pen_ring_lane *lane) {
    pen_mutex_lock(&lanes->lock);
    lane = lane == NULL ? lanes->first : lane->next;
    while (lane != NULL && (lane->is_closed || !lane->is_opened))
        lane = lane->next;
    lanes->current = lane;
    pen_condition_broadcast(&lanes->changed);
    pen_mutex_unlock(&lanes->lock);
    return lane;
}

// ---- calling

static bool lane_is_waiting(pen_ring_lane *lane) {
    if (atomic_load(&lane->state) != PEN_RING_LANE_WAITING) return false;
    pen_mutex_lock(&lane->lanes->lock);
    const bool is_waiting = lane->is_opened && !lane->is_closed;
    pen_mutex_unlock(&lane->lanes->lock);
    return is_waiting;
}

// A ring is made when there is a first frame for it: most links of a coordinator carry few.
static bool lane_wants_ring(pen_ring_lane *lane) {
    return atomic_load(&lane->has_loans) && lane_is_waiting(lane);
}

static void call_refused(pen_ring_lane *lane, pen_status take_reason) {
    pen_log(PEN_LOG_DEBUG, "frames to peer %u go without shared memory: %s", lane->peer,
            pen_status_message(take_reason));
    pen_status_ignore(take_reason, "the user sends them another way");
    lane->is_calling = false;
    half_release(&lane->out);
    if (lane_is_waiting(lane)) lane_set_state(lane, PEN_RING_LANE_REFUSED);
}

// Makes a ring and hands it over to the process that listens; *out_is_later: that is busy.
static pen_status call_hand_over(pen_ring_lane *lane, bool *out_is_later) {
    int memory;
    PEN_TRY(pen_ring_call(&lane->lanes->meeting, lane->theirs.socket, &lane->out.socket));
    *out_is_later = lane->out.socket < 0;
    if (*out_is_later) return PEN_OK;
    PEN_TRY(pen_ring_memory_create(&lane->out.memory, &memory));
    pen_ring_init(&lane->out.ring, lane->out.memory);
    const pen_status status = pen_ring_hand_over(lane->out.socket, lane->theirs.token, memory);
    close(memory);
    return status;
}

static void lane_call(pen_ring_lane *lane, double now) {
    bool is_later;
    if (lane->call_until == 0) lane->call_until = now + THREAD_CALL_SECONDS;
    if (now >= lane->call_until) {
        call_refused(lane, pen_error(PEN_DEADLINE, "its process did not take it"));
        return;
    }
    if (lane->is_calling || now < lane->call_at) return;
    const pen_status status = call_hand_over(lane, &is_later);
    if (status != PEN_OK) {
        call_refused(lane, status);
        return;
    }
    lane->is_calling = !is_later;
    lane->call_at = now + THREAD_RETRY_SECONDS;
}

// ---- being called

static pen_ring_lane *caller_find_lane(pen_ring_lanes *lanes, uint64_t token) {
    pen_mutex_lock(&lanes->lock);
    pen_ring_lane *lane = lanes->first;
    while (lane != NULL && (lane->token != token || lane->is_closed || lane->in.socket >= 0))
        lane = lane->next;
    pen_mutex_unlock(&lanes->lock);
    return lane;
}

static pen_status caller_attach(pen_ring_lanes *lanes, int caller, uint64_t token, int descriptor) {
    void *memory;
    pen_ring_lane *lane = caller_find_lane(lanes, token);
    if (lane == NULL) return pen_error(PEN_UNAVAILABLE, "it is for a link that is not here");
    PEN_TRY(pen_ring_memory_open(descriptor, &memory));
    lane->in.socket = caller;
    lane->in.memory = memory;
    pen_ring_init(&lane->in.ring, memory);
    pen_ring_sound(caller);
    return PEN_OK;
}

// Who asks for a token is a process of this user: pen_ring_accept takes no other.
static void caller_admit(pen_ring_lanes *lanes, int caller) {
    uint8_t token[PEN_RING_TOKEN_BYTES];
    if (lanes->events.admit != NULL && lanes->events.admit(lanes->events.context, token)) {
        pen_ring_door_answer(caller, token);
    }
    close(caller);
}

// True: the caller is dealt with.
static bool caller_serve(pen_ring_lanes *lanes, int caller) {
    uint64_t token;
    int descriptor;
    bool asks;
    pen_status status = pen_ring_receive(caller, &token, &descriptor, &asks);
    if (status == PEN_OK && asks) {
        caller_admit(lanes, caller);
        return true;
    }
    if (status == PEN_OK && descriptor < 0) return false;
    if (status == PEN_OK) {
        status = caller_attach(lanes, caller, token, descriptor);
        close(descriptor);
    }
    if (status != PEN_OK) {
        // a link that is down by now, or who only looks whether somebody is here, is nothing
        // strange
        pen_log(pen_status_get_code(status) == PEN_CORRUPT ? PEN_LOG_WARNING : PEN_LOG_DEBUG,
                "refused a caller of this host: %s", pen_status_message(status));
        pen_status_ignore(status, "the caller sees that the socket was closed");
        close(caller);
    }
    return true;
}

static void thread_accept(pen_ring_lanes *lanes) {
    int caller;
    while ((caller = pen_ring_accept(lanes->listener)) >= 0) {
        if (lanes->caller_count == LANES_CALLER_LIMIT) {
            close(caller);
            continue;
        }
        lanes->callers[lanes->caller_count++] =
            (lane_caller){caller, pen_clock_seconds() + THREAD_GREET_SECONDS};
    }
}

// `events` of those that there were.
static void thread_serve_callers(pen_ring_lanes *lanes, const struct pollfd *events, double now) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < lanes->caller_count; i++) {
        const lane_caller caller = lanes->callers[i];
        if (events[i].revents != 0 && caller_serve(lanes, caller.socket)) continue;
        if (now >= caller.until) {
            close(caller.socket);
            continue;
        }
        lanes->callers[kept++] = caller;
    }
    lanes->caller_count = kept;
}

// ---- sockets

static pen_status lane_gone_error(const pen_ring_lane *lane) {
    return pen_error(PEN_UNAVAILABLE,
                     "shared memory: peer %u has closed it, or its process has ended", lane->peer);
}

static void lane_hear(pen_ring_lane *lane, lane_half *half) {
    const pen_ring_heard heard = pen_ring_hear(half->socket);
    if (heard == PEN_RING_BELL && half == &lane->out && lane->is_calling) {
        lane->is_calling = false;
        if (lane_is_waiting(lane)) lane_set_state(lane, PEN_RING_LANE_OPEN);
    }
    if (heard != PEN_RING_GONE) return;
    if (half == &lane->out && lane->is_calling) {
        call_refused(lane, pen_error(PEN_UNAVAILABLE, "its process refused it"));
        return;
    }
    half_release(half);
    pen_mutex_lock(&lane->lanes->lock);
    const bool is_known = lane->is_opened && !lane->is_closed;
    pen_mutex_unlock(&lane->lanes->lock);
    if (is_known) lane_fail(lane, lane_gone_error(lane), true);
}

static bool thread_watch(pen_ring_lanes *lanes, int socket) {
    if (socket < 0) return false;
    PEN_ASSERT(lanes->watched_count < lanes->watched_limit);
    lanes->watched[lanes->watched_count++] = (struct pollfd){.fd = socket, .events = POLLIN};
    return true;
}

static pen_ring_lane *thread_next(pen_ring_lanes *lanes, pen_ring_lane *lane) {
    pen_mutex_lock(&lanes->lock);
    lane = lane == NULL ? lanes->first : lane->next;
    pen_mutex_unlock(&lanes->lock);
    return lane;
}

// All sockets, and until when to wait for them: the bell, the listener, callers, lanes. False:
// there is no memory for the list.
static bool thread_list_sockets(pen_ring_lanes *lanes, double *out_until) {
    size_t needed = 2 + LANES_CALLER_LIMIT;
    double until = pen_clock_seconds() + THREAD_NAP_SECONDS;
    for (pen_ring_lane *lane = NULL; (lane = thread_next(lanes, lane)) != NULL;)
        needed += 2;
    if (needed > lanes->watched_limit) {
        pen_memory_free(lanes->watched);
        lanes->watched = pen_memory_allocate(2 * needed, sizeof *lanes->watched);
        lanes->watched_limit = lanes->watched != NULL ? 2 * needed : 0;
        if (lanes->watched == NULL) return false;
    }
    lanes->watched_count = 0;
    (void)thread_watch(lanes, lanes->bell);
    (void)thread_watch(lanes, lanes->listener);
    for (uint32_t i = 0; i < lanes->caller_count; i++) {
        (void)thread_watch(lanes, lanes->callers[i].socket);
        until = fmin(until, lanes->callers[i].until);
    }
    for (pen_ring_lane *lane = NULL; (lane = thread_next(lanes, lane)) != NULL;) {
        if (lanes->watched_count + 2 > lanes->watched_limit) break; // came meanwhile
        (void)thread_watch(lanes, lane->out.socket);
        (void)thread_watch(lanes, lane->in.socket);
        if (lane_wants_ring(lane)) {
            until = fmin(until, lane->is_calling ? lane->call_until : lane->call_at);
        }
    }
    *out_until = until;
    return true;
}

static void thread_serve_lanes(pen_ring_lanes *lanes, const struct pollfd *events) {
    const struct pollfd *end = lanes->watched + lanes->watched_count;
    for (pen_ring_lane *lane = NULL; (lane = thread_next(lanes, lane)) != NULL;) {
        lane_half *halves[2] = {&lane->out, &lane->in};
        for (uint32_t i = 0; i < 2; i++) {
            // those that came meanwhile have no socket yet
            if (halves[i]->socket < 0 || events == end) continue;
            PEN_ASSERT(events->fd == halves[i]->socket);
            if ((events++)->revents != 0) lane_hear(lane, halves[i]);
        }
    }
}

// Waits until something happens at a socket, or `until`; 0: only looks.
static void thread_look(pen_ring_lanes *lanes, bool waits) {
    double until;
    uint64_t bells;
    lanes_look_at_place(lanes);
    if (!thread_list_sockets(lanes, &until)) {
        pen_clock_pause(0.001); // without a list, nothing but the rings can be served
        return;
    }
    const double left = waits ? fmax(until - pen_clock_seconds(), 0) : 0;
    const int count = poll(lanes->watched, lanes->watched_count, (int)ceil(left * 1e3));
    pen_mutex_lock(&lanes->lock);
    lanes->is_asleep = false;
    pen_mutex_unlock(&lanes->lock);
    const double now = pen_clock_seconds();
    const struct pollfd *events = lanes->watched;
    const uint32_t caller_count = lanes->caller_count;
    if (count <= 0) return;
    if (events[0].revents != 0) {
        const ssize_t read_count = read(lanes->bell, &bells, sizeof bells);
        (void)read_count;
    }
    thread_serve_lanes(lanes, events + 2 + caller_count);
    thread_serve_callers(lanes, events + 2, now);
    if (events[1].revents != 0) thread_accept(lanes);
}

// ---- turns

static bool thread_turn(pen_ring_lanes *lanes) {
    bool has_moved = false;
    thread_sweep(lanes);
    for (pen_ring_lane *lane = NULL; (lane = thread_step(lanes, lane)) != NULL;) {
        if (lane_wants_ring(lane)) lane_call(lane, pen_clock_seconds());
        if (lane_move(lane)) has_moved = true;
    }
    return has_moved;
}

// Announces everywhere that the thread sleeps. False: there is something to do.
static bool thread_begin_to_sleep(pen_ring_lanes *lanes) {
    bool sleeps = true;
    for (pen_ring_lane *lane = NULL; (lane = thread_step(lanes, lane)) != NULL;) {
        if (!lane_sleep(lane)) sleeps = false;
    }
    pen_mutex_lock(&lanes->lock);
    if (lanes->has_news) sleeps = false;
    lanes->is_asleep = sleeps;
    pen_mutex_unlock(&lanes->lock);
    return sleeps;
}

static bool thread_is_over(pen_ring_lanes *lanes) {
    pen_mutex_lock(&lanes->lock);
    const bool is_over = lanes->is_ending && lanes->first == NULL;
    pen_mutex_unlock(&lanes->lock);
    return is_over;
}

// Whether to look for more before sleeping. That pays where two processes answer each other, since
// waking up takes longer than they do. It is of no use where one computes between, and it takes
// time from others where threads wait for the core.
typedef struct thread_patience {
    bool spins;
    uint32_t skip_count; // waits that are slept through at once
    double idle_since;   // -1: not idle
    double looked_at;
} thread_patience;

static void patience_end_wait(thread_patience *patience, double now) {
    const bool was_short = now - patience->idle_since < THREAD_SPIN_SECONDS;
    if (patience->skip_count > 0) patience->skip_count -= 1;
    patience->spins = was_short && patience->skip_count == 0;
    patience->idle_since = -1;
}

// Gives the core away, and asks how long it was away. False: it is time to sleep.
static bool patience_waits(thread_patience *patience, double now) {
    if (!patience->spins || now - patience->idle_since >= THREAD_SPIN_SECONDS) return false;
    if (now - patience->looked_at > THREAD_TAKEN_SECONDS) {
        patience->spins = false;
        patience->skip_count = THREAD_SKIP_WAITS;
        return false;
    }
    patience->looked_at = now;
    sched_yield();
    return true;
}

// Moves frames as long as there are some, then looks for more for a while, then sleeps.
void lanes_run(void *context) {
    pen_ring_lanes *lanes = context;
    thread_patience patience = {.idle_since = -1};
    uint32_t turns = 0;
    while (!thread_is_over(lanes)) {
        turns += 1;
        if (turns % THREAD_BUSY_TURNS == 0) thread_look(lanes, false);
        const bool has_moved = thread_turn(lanes);
        if (has_moved && patience.idle_since < 0) continue;
        const double now = pen_clock_seconds();
        if (has_moved) {
            patience_end_wait(&patience, now);
            continue;
        }
        if (patience.idle_since < 0) patience.idle_since = patience.looked_at = now;
        if (now - patience.idle_since < lanes->spin_seconds) continue;
        if (patience_waits(&patience, now)) continue;
        if (thread_begin_to_sleep(lanes)) thread_look(lanes, true);
    }
    for (uint32_t i = 0; i < lanes->caller_count; i++)
        close(lanes->callers[i].socket);
    pen_memory_free(lanes->watched);
}
