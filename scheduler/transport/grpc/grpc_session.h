// What a link over gRPC keeps while the streams that carry it come and go: what waits to be sent
// or to be acknowledged, and the frame that is being received. See link_session.h.
//
// It belongs to a link, and moves to another one when the peer has opened a new stream.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_SESSION_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_SESSION_H

#include <grpc/grpc.h>
#include <stdatomic.h>

#include "base/system/callers.h"
#include "scheduler/transport/frame_intake.h"
#include "scheduler/transport/link_session.h"
#include "scheduler/transport/ring/ring_lanes.h"
#include "scheduler/transport/transport.h"
#include "scheduler/transport/wire_format.h"

// A frame that waits to be sent or acknowledged, or whose memory gRPC may still read.
typedef struct pen_grpc_loan {
    pen_link_item item; // first
    struct pen_grpc_loan *next;
    struct pen_grpc *transport;
    uint32_t peer;
    pen_ring_loan lent;
    uint64_t token;
    _Atomic uint32_t use_count; // chunks that gRPC has, and 1 as long as it is not acknowledged
} pen_grpc_loan;

typedef struct pen_grpc_letter { // a message that waits likewise
    pen_link_item item;          // first
    struct pen_grpc_letter *next;
    grpc_slice slice;
} pen_grpc_letter;

typedef struct pen_grpc_session {
    // the I/O thread's
    pen_link_session core; // once it is open
    uint64_t drawn;        // by us; 0: the link ends with its stream
    uint64_t drawn_there;
    pen_frame_intake intake;
    pen_caller caller;        // of who has called: the connection of its stream
    pen_wire_ring ring_there; // where the other end takes rings

    // guarded by the transport's lock
    bool is_open; // the link has been up; written by the I/O thread alone
    pen_grpc_letter *letters, **letters_end;
    pen_grpc_loan *loans, **loans_end;
    pen_ring_lane *lane; // of the frames; NULL: they go over the stream. Written likewise
} pen_grpc_session;

// `resumes`: it may outlive a stream. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_grpc_session_create(bool resumes, pen_grpc_session **out_session);
// Accepts NULL. Nothing is kept any more.
void pen_grpc_session_destroy(pen_grpc_session *session);

// The first stream stands. `drawn_there`: what the other end drew.
void pen_grpc_session_open(pen_grpc_session *session, bool is_caller, uint64_t drawn_there);
bool pen_grpc_session_may_resume(const pen_grpc_session *session);

// What the introduction says of it.
pen_wire_stream pen_grpc_session_stream(const pen_grpc_session *session);

uint64_t pen_grpc_session_now(void); // of the core's clock

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_SESSION_H
