// The contract of the ring_lanes_ sources among themselves: life, state, move and thread.
#ifndef PEN_SCHEDULER_TRANSPORT_RING_RING_LANES_INSIDE_H
#define PEN_SCHEDULER_TRANSPORT_RING_RING_LANES_INSIDE_H

#include <poll.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "scheduler/transport/frame_intake.h"
#include "scheduler/transport/ring/ring.h"
#include "scheduler/transport/ring/ring_door.h"
#include "scheduler/transport/ring/ring_lanes.h"
#include "scheduler/transport/ring/ring_socket.h"

#define LANES_CALLER_LIMIT 64u // processes that have called and not greeted yet

// One direction of a lane.
typedef struct lane_half {
    int socket;   // -1: none
    void *memory; // of the ring; NULL: none
    pen_ring ring;
} lane_half;

struct pen_ring_lane {
    pen_ring_lanes *lanes;
    uint64_t token;

    // the thread's
    lane_half out, in;
    double call_at;         // when to call next
    double call_until;      // 0: not yet begun
    bool is_calling;        // the other end has not answered yet
    pen_ring_loan *sending; // in part
    uint32_t sum;           // of what was sent of its chunk
    pen_frame_intake intake;

    // guarded by lock
    pen_ring_lane *next;
    _Atomic pen_ring_lane_state state; // written by the thread, under the lock
    _Atomic bool has_loans;            // `loans` is not NULL; may be read without the lock
    bool is_opened;
    bool is_closed;
    uint32_t peer;
    pen_wire_ring theirs;
    pen_status_code failure_code;
    char failure[PEN_WIRE_TEXT_LIMIT];
    bool is_gone;
    pen_ring_loan *loans, **loans_end;
};

typedef struct lane_caller {
    int socket;
    double until;
} lane_caller;

struct pen_ring_lanes {
    pen_ring_lane_events events;
    uint64_t name;
    double spin_seconds;
    pen_thread *thread;
    int bell; // an eventfd
    _Atomic uint64_t bytes_sent, bytes_received, frames_sent, frames_received;

    // the thread's
    lane_caller callers[LANES_CALLER_LIMIT];
    uint32_t caller_count;
    struct pollfd *watched; // [watched_limit]
    size_t watched_count, watched_limit;
    double place_look_at;

    // guarded by lock; the place changes by the thread alone, which reads it without
    pen_mutex lock;
    pen_ring_meeting meeting;
    int listener;
    char doors[PEN_RING_LANES_DOORS][PEN_RING_DOOR_HOST]; // the hosts that its doors name
    uint32_t door_count;
    uint16_t door_port;     // of all
    pen_condition changed;  // `current` is another
    pen_ring_lane *first;   // the thread alone takes them out
    pen_ring_lane *current; // that the thread works for
    bool is_asleep, has_news, is_ending;
};

// ---- ring_lanes_state.c
void lane_fail(pen_ring_lane *lane, pen_status take_failure, bool is_gone);
void lane_set_state(pen_ring_lane *lane, pen_ring_lane_state state);

// ---- ring_lanes_move.c: one lane's frames. By the thread.
// Copies some frames in, and some out. True: something was moved.
bool lane_move(pen_ring_lane *lane);
// What a record has to say of the frame that is received; its bytes go where they belong. As
// pen_frame_intake_judge and _begin; CORRUPT
PEN_NODISCARD pen_status lane_take_record(pen_frame_intake *intake,
                                          const pen_transport_events *user, uint32_t peer,
                                          const pen_ring_record *record, bool *out_is_whole);
// Announces at its rings that the thread sleeps. False: there is something to do.
bool lane_sleep(pen_ring_lane *lane);

// ---- ring_lanes_place.c
// UNAVAILABLE
PEN_NODISCARD pen_status lanes_find_place(pen_ring_lanes *lanes);
void lanes_leave_place(pen_ring_lanes *lanes);
// What the place is called in offers.
uint64_t lanes_host(pen_ring_lanes *lanes);
// Makes it again where it is gone. By the thread, between two lists of sockets.
void lanes_look_at_place(pen_ring_lanes *lanes);

// ---- ring_lanes_thread.c
void lanes_run(void *lanes);

#endif // PEN_SCHEDULER_TRANSPORT_RING_RING_LANES_INSIDE_H
