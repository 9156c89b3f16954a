// Links whose frames go through shared memory, where both ends are on one host and want it. All
// else of a link goes over gRPC, and so does what says where the memory is.
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/transport/grpc/grpc_link.h"

// How long gRPC may take to say why the other end has closed its memory.
#define RING_REASON_SECONDS 1.0

// ---- from the thread of the lanes

// The loan that has lent this to a lane.
static pen_grpc_loan *ring_loan_of(pen_ring_loan *lent) {
    return (pen_grpc_loan *)((char *)lent - offsetof(pen_grpc_loan, lent));
}

static void ring_summed(void *context, pen_ring_loan *lent) {
    const pen_grpc *transport = context;
    const pen_grpc_loan *loan = ring_loan_of(lent);
    const pen_transport_events *events = &transport->events;
    if (events->summed != NULL) events->summed(events->context, loan->peer, loan->token);
}

static void ring_sent(void *context, pen_ring_loan *lent) {
    pen_grpc *transport = context;
    pen_grpc_loan *loan = ring_loan_of(lent);
    const uint32_t peer = loan->peer;
    const uint64_t token = loan->token;
    transport->events.let_go(transport->events.context, peer, token);
    pen_mutex_lock(&transport->lock);
    transport->loan_count -= 1;
    pen_grpc_send_pool_loan(loan);
    // one that stops waits for it
    const bool is_sleeping = transport->is_closing && pen_grpc_io_needs_bell(transport);
    pen_mutex_unlock(&transport->lock);
    if (is_sleeping) pen_grpc_io_wake(transport);
}

// The I/O thread alone changes a link: it is told to look.
static void ring_changed(void *context, uint32_t peer) {
    pen_grpc *transport = context;
    pen_mutex_lock(&transport->lock);
    pen_grpc_link *link = peer < PEN_TRANSPORT_PEER_LIMIT ? transport->of_peer[peer] : NULL;
    const bool is_sleeping = link != NULL && pen_grpc_io_mark(link);
    pen_mutex_unlock(&transport->lock);
    if (is_sleeping) pen_grpc_io_wake(transport);
}

// By the thread of the lanes: a process of this user wants to call.
static bool ring_admit(void *context, uint8_t out_token[PEN_RING_TOKEN_BYTES]) {
    pen_grpc *transport = context;
    return pen_one_time_give(&transport->gate.tokens, pen_clock_seconds(), out_token);
}

// ---- life

// Without TLS the socket is wanted for tokens, also where no frame goes through memory.
void pen_grpc_ring_set_up(pen_grpc *transport) {
    const pen_ring_lane_events events = {.context = transport,
                                         .user = &transport->events,
                                         .summed = ring_summed,
                                         .sent = ring_sent,
                                         .changed = ring_changed,
                                         .admit = ring_admit};
    const bool shares = transport->options.self.shares_memory;
    if (!shares && pen_grpc_tls_is_used(&transport->options.tls)) return;
    const pen_status status =
        pen_ring_lanes_create(&events, transport->options.ring_spin_seconds, &transport->lanes);
    if (status == PEN_OK) return;
    snprintf(transport->gate.failure, sizeof transport->gate.failure, "%s",
             pen_status_message(status));
    if (shares)
        pen_log(PEN_LOG_WARNING, "frames between processes of this host go over gRPC: %s",
                pen_status_message(status));
    pen_status_ignore(status, "all goes over gRPC then");
}

pen_wire_ring pen_grpc_ring_offer(const pen_grpc_link *link, const pen_introduction *self) {
    const pen_ring_lane *lane = link->session->lane;
    if (lane == NULL || !self->shares_memory) return (pen_wire_ring){.socket = 0};
    return pen_ring_lane_offer(lane);
}

static pen_ring_lane *ring_take_lane(pen_grpc_link *link) {
    if (link->session == NULL) return NULL;
    pen_mutex_lock(&link->transport->lock);
    pen_ring_lane *lane = link->session->lane;
    link->session->lane = NULL;
    pen_mutex_unlock(&link->transport->lock);
    return lane;
}

void pen_grpc_ring_close(pen_grpc_link *link) {
    pen_ring_lane_close(ring_take_lane(link));
}

// Before the first frame can be queued: a lane that leads nowhere is none.
void pen_grpc_ring_decide(pen_grpc_link *link, const pen_wire_ring *theirs) {
    char job[PEN_WIRE_TEXT_LIMIT + 1];
    const pen_introduction self = pen_grpc_link_self(link->transport, job);
    const pen_ring_lane *lane = link->session->lane;
    if (lane == NULL) return;
    link->session->ring_there = *theirs;
    if (!self.shares_memory || !pen_ring_lane_reaches(lane, theirs)) pen_grpc_ring_close(link);
}

void pen_grpc_ring_open(pen_grpc_link *link) {
    pen_grpc_session *session = link->session;
    if (session == NULL || session->lane == NULL) return;
    pen_ring_lane_open(session->lane, link->peer, &session->ring_there);
}

// ---- while the link is up

// The frames that waited go to the stream. Nobody queues one meanwhile.
static void ring_fall_back(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    pen_grpc_session *session = link->session;
    pen_mutex_lock(&transport->lock);
    pen_ring_lane *lane = session->lane;
    pen_ring_loan *lent = pen_ring_lane_take_back(lane);
    while (lent != NULL) {
        pen_grpc_loan *loan = ring_loan_of(lent);
        lent = lent->next;
        *session->loans_end = loan;
        session->loans_end = &loan->next;
    }
    session->lane = NULL;
    pen_mutex_unlock(&transport->lock);
    pen_ring_lane_close(lane);
}

// A process that is gone is known by its memory before gRPC gives its stream up. One that merely
// closed the link says why over the stream.
static void ring_is_gone(pen_grpc_link *link, pen_status take_failure) {
    if (link->state != PEN_GRPC_UP || link->is_ring_overdue) {
        pen_grpc_link_down(link, take_failure, link->state == PEN_GRPC_UP);
        return;
    }
    pen_status_ignore(take_failure, "gRPC may have a better reason");
    if (!isinf(link->deadline)) return;
    pen_grpc_link_set_deadline(link, pen_clock_seconds() + RING_REASON_SECONDS);
}

// The thread of the lanes has said that something is another; what that is, is looked up here, by
// the thread that may change the link.
void pen_grpc_ring_look(pen_grpc_link *link) {
    pen_status failure;
    bool is_gone;
    const pen_grpc_session *session = link->session;
    if (session == NULL || session->lane == NULL || !session->is_open) return;
    if (link->state == PEN_GRPC_CLOSING || link->state == PEN_GRPC_ENDING) return;
    switch (pen_ring_lane_look(link->session->lane, &failure, &is_gone)) {
    case PEN_RING_LANE_WAITING:
    case PEN_RING_LANE_OPEN:
        break;
    case PEN_RING_LANE_REFUSED:
        ring_fall_back(link);
        break;
    case PEN_RING_LANE_BROKEN:
        if (is_gone) {
            ring_is_gone(link, failure);
        } else {
            pen_grpc_link_down(link, failure, true);
        }
        break;
    }
}
