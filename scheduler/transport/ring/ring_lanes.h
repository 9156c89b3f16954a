// The contract of the ring_lanes_ sources: frames of links between processes of one host, over
// rings in shared memory (ring.h), which a thread copies them in and out of.
//
// A lane is a link's. It has a ring for each direction: who sends makes it and hands it over
// (ring_socket.h); so each end says where it takes rings, in an offer that goes over the link
// itself. Until the other end has taken the ring, frames wait in the lane. When it does not take
// it, they go back to the user, who sends them another way, and what else was sent meanwhile behind
// them. Frames of a lane keep their order.
//
//   WAITING ──taken──► OPEN ──the other end is gone, or wrong──► BROKEN
//      └──not taken within CALL seconds──► REFUSED                  ▲
//      └────────────────────────────────────────────────────────────┘
//
// A frame is let go (`sent`) when it was copied into the ring: the other process will read it from
// there, or is gone.
//
// Lifetime: lanes end, by pen_ring_lane_close, before what they belong to.
// Threads:  functions from any thread; no two about the life of one lane at once. Callbacks come
//           from the lanes' own thread, and no lock is held. pen_ring_lane_close waits for a
//           callback that is under way, so it must not be called from one.
#ifndef PEN_SCHEDULER_TRANSPORT_RING_RING_LANES_H
#define PEN_SCHEDULER_TRANSPORT_RING_RING_LANES_H

#include "scheduler/transport/ring/ring.h"
#include "scheduler/transport/ring/ring_door.h"
#include "scheduler/transport/transport.h"
#include "scheduler/transport/wire_format.h"

typedef struct pen_ring_lanes pen_ring_lanes; // of a transport
typedef struct pen_ring_lane pen_ring_lane;

// A frame that is sent; lent until `sent`.
typedef struct pen_ring_loan {
    struct pen_ring_loan *next; // the lane's
    uint64_t position;          // likewise
    pen_frame frame;
    const uint8_t *payload;
    const uint32_t *checksums;
    uint32_t *unmade; // the same, to be made while the payload is copied; NULL: they are made
} pen_ring_loan;

// Frames of one piece are in a cache of who made them, and soon in one of who reads them. These sum
// them up, so that the one thread of the lanes does not hold many small frames up.
static inline bool pen_ring_sums_up(const pen_frame *frame) {
    return frame->bytes > PEN_RING_PIECE_BYTES;
}

typedef struct pen_ring_lane_events {
    void *context;
    const pen_transport_events *user; // its begin and end are called
    // The checksums of a loan are made, and the other process does not have the frame yet.
    void (*summed)(void *context, pen_ring_loan *loan);
    // It was copied, or its lane was closed.
    void (*sent)(void *context, pen_ring_loan *loan);
    // The lane of a peer is REFUSED or BROKEN now.
    void (*changed)(void *context, uint32_t peer);
    // A process of this user wants to open a link: a token for it. False, or NULL: nobody gets one.
    bool (*admit)(void *context, uint8_t out_token[PEN_RING_TOKEN_BYTES]);
} pen_ring_lane_events;

typedef enum pen_ring_lane_state {
    PEN_RING_LANE_WAITING,
    PEN_RING_LANE_OPEN,
    PEN_RING_LANE_REFUSED,
    PEN_RING_LANE_BROKEN,
} pen_ring_lane_state;

// `spin_seconds`: how long the thread looks for more, at least, before it sleeps. UNAVAILABLE: this
// host has no shared memory for us, and why; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_ring_lanes_create(const pen_ring_lane_events *events,
                                               double spin_seconds, pen_ring_lanes **out_lanes);
// Accepts NULL. All lanes are closed.
void pen_ring_lanes_destroy(pen_ring_lanes *lanes);
// Links are taken at `host` and `port` from now on: who wants one may ask here for a token, until
// the lanes are destroyed. For some hosts, and one port. UNAVAILABLE
#define PEN_RING_LANES_DOORS 16u
PEN_NODISCARD pen_status pen_ring_lanes_open_door(pen_ring_lanes *lanes, const char *host,
                                                  uint16_t port);
// Adds what went over lanes.
void pen_ring_lanes_count(const pen_ring_lanes *lanes, pen_transport_counters *counters);

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_ring_lane_create(pen_ring_lanes *lanes, pen_ring_lane **out_lane);
// What the other end is to be told.
pen_wire_ring pen_ring_lane_offer(const pen_ring_lane *lane);
// Whether the other end can be reached, by its offer.
bool pen_ring_lane_reaches(const pen_ring_lane *lane, const pen_wire_ring *theirs);
// The link to `peer` is up: from now on frames are moved.
void pen_ring_lane_open(pen_ring_lane *lane, uint32_t peer, const pen_wire_ring *theirs);
// A lane that is refused keeps the loan until it is taken back, so that none overtakes another.
void pen_ring_lane_send(pen_ring_lane *lane, pen_ring_loan *loan);
// How it stands. BROKEN: *out_failure is a new error; *out_is_gone: because the other end has
// closed it, or its process has ended.
pen_ring_lane_state pen_ring_lane_look(pen_ring_lane *lane, pen_status *out_failure,
                                       bool *out_is_gone);
// REFUSED: the frames that waited, in their order.
pen_ring_loan *pen_ring_lane_take_back(pen_ring_lane *lane);
// Nothing arrives afterwards; what was lent comes back by `sent`. Accepts NULL.
void pen_ring_lane_close(pen_ring_lane *lane);

#endif // PEN_SCHEDULER_TRANSPORT_RING_RING_LANES_H
