#include "scheduler/transport/grpc/grpc_session.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"

// Word of what came goes back at once when that is much: credit of the protocol does not wait for
// it, but memory of frames that were sent is lent until then.
static const pen_link_session_options session_options = {
    .is_stream = true,
    .ack_delay = 1000000,
    .ack_messages = 64,
    .ack_frames = 4,
    .ack_bytes = (uint64_t)4 << 20,
    .windows = {1u << 16, 1u << 12},
    .message_bytes_limit = (uint64_t)256 << 20,
};

pen_status pen_grpc_session_create(bool resumes, pen_grpc_session **out_session) {
    pen_grpc_session *session = pen_memory_allocate(1, sizeof *session);
    if (session == NULL) return pen_error_out_of_memory();
    session->drawn = resumes ? pen_random_incarnation() : 0;
    session->letters_end = &session->letters;
    session->loans_end = &session->loans;
    *out_session = session;
    return PEN_OK;
}

void pen_grpc_session_destroy(pen_grpc_session *session) {
    if (session == NULL) return;
    PEN_ASSERT(session->letters == NULL && session->loans == NULL);
    PEN_ASSERT(!session->is_open || session->core.released == NULL);
    pen_ring_lane_close(session->lane);
    pen_frame_intake_deinit(&session->intake);
    pen_memory_free(session);
}

void pen_grpc_session_open(pen_grpc_session *session, bool is_caller, uint64_t drawn_there) {
    pen_link_session_options options = session_options;
    PEN_ASSERT(!session->is_open);
    session->drawn_there = drawn_there;
    options.id.caller = is_caller ? session->drawn : drawn_there;
    options.id.callee = is_caller ? drawn_there : session->drawn;
    pen_link_init(&session->core, &options);
}

bool pen_grpc_session_may_resume(const pen_grpc_session *session) {
    return session->is_open && session->drawn != 0 && session->drawn_there != 0;
}

pen_wire_stream pen_grpc_session_stream(const pen_grpc_session *session) {
    pen_wire_stream stream = {.session = session->drawn};
    if (!session->is_open) return stream;
    stream.resumes = session->drawn_there;
    stream.received = pen_link_received(&session->core);
    return stream;
}

uint64_t pen_grpc_session_now(void) {
    return (uint64_t)(pen_clock_seconds() * 1e9);
}
