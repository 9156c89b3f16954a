// Envelopes that arrive: frames are copied once, from where gRPC has them to where they belong.
#include <grpc/byte_buffer.h>
#include <inttypes.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/system/called.h"
#include "scheduler/transport/grpc/grpc_gate.h"
#include "scheduler/transport/grpc/grpc_link.h"
#include "scheduler/transport/grpc/grpc_server.h"
#include "scheduler/transport/wire_code.h"

// Makes room for `count` elements; what was there is lost.
static pen_status receive_reserve(void **memory, size_t count, size_t size) {
    pen_memory_free(*memory);
    *memory = pen_memory_allocate(count, size);
    return *memory != NULL ? PEN_OK : pen_error_out_of_memory();
}

static pen_status receive_list_pieces(pen_grpc_link *link, pen_wire_pieces *out_pieces) {
    const grpc_slice_buffer *slices = &link->incoming->data.raw.slice_buffer;
    if (link->piece_limit < slices->count) {
        void *memory = link->pieces;
        const size_t limit = 2 * slices->count + 64;
        const pen_status status = receive_reserve(&memory, limit, sizeof *link->pieces);
        link->pieces = memory;
        link->piece_limit = status == PEN_OK ? limit : 0;
        PEN_TRY(status);
    }
    for (size_t i = 0; i < slices->count; i++) {
        link->pieces[i] = (pen_wire_piece){GRPC_SLICE_START_PTR(slices->slices[i]),
                                           GRPC_SLICE_LENGTH(slices->slices[i])};
    }
    *out_pieces = (pen_wire_pieces){link->pieces, slices->count};
    return PEN_OK;
}

// Tells the session of an envelope; `head` has what content it has.
static pen_status receive_judge(pen_grpc_link *link, const pen_wire_envelope *envelope,
                                pen_link_head *head) {
    pen_link_session *core = &link->session->core;
    head->id = core->options.id;
    head->number = envelope->number;
    head->ack = envelope->has_ack ? envelope->ack : pen_link_acked(core);
    const pen_link_verdict verdict = pen_link_arrived(core, pen_grpc_session_now(), head);
    pen_grpc_send_forget_acknowledged(link);
    if (!pen_link_is_error(verdict)) return PEN_OK;
    return pen_error(PEN_CORRUPT, "envelope with number %" PRIu64 " %s", envelope->number,
                     pen_link_verdict_text(verdict));
}

// A message may lie in several pieces of gRPC's buffer; only then it is put together, in memory
// that is kept for the next.
static pen_status receive_message(pen_grpc_link *link, pen_wire_pieces pieces,
                                  const pen_wire_envelope *envelope) {
    pen_grpc *transport = link->transport;
    const pen_wire_span message = envelope->message;
    pen_link_head head = {
        .has_content = true, .lane = PEN_LINK_MESSAGES, .piece_count = 1, .bytes = message.count};
    PEN_TRY(receive_judge(link, envelope, &head));
    const uint8_t *bytes = pen_wire_find(pieces, message);
    if (bytes == NULL && message.count != 0) {
        if (link->scratch_limit < message.count) {
            void *memory = link->scratch;
            const uint64_t limit = pen_max_u64(4096, 2 * message.count);
            const pen_status status = receive_reserve(&memory, limit, 1);
            link->scratch = memory;
            link->scratch_limit = status == PEN_OK ? limit : 0;
            PEN_TRY(status);
        }
        pen_wire_copy(pieces, message, link->scratch);
        bytes = link->scratch;
    }
    transport->events.message(transport->events.context, link->peer, bytes, message.count);
    return PEN_OK;
}

// The one copy, from gRPC's slice to where the reader wants it. What has come of a frame lasts over
// streams: one that breaks off goes on where it was.
static pen_status receive_chunk(pen_grpc_link *link, pen_wire_pieces pieces,
                                const pen_wire_envelope *envelope) {
    pen_grpc *transport = link->transport;
    pen_frame_intake *intake = &link->session->intake;
    const pen_wire_chunk *chunk = &envelope->chunk;
    const uint64_t count = chunk->payload.count;
    const pen_frame *frame;
    PEN_TRY(pen_frame_intake_judge(intake, chunk, count, PEN_TRANSPORT_CHUNK_BYTES, &frame));
    pen_link_head head = {.has_content = true,
                          .lane = PEN_LINK_FRAMES,
                          .piece = (uint32_t)(chunk->position / PEN_TRANSPORT_CHUNK_BYTES),
                          .piece_count =
                              (uint32_t)pen_max_u64(pen_frame_chunk_count(frame->bytes), 1),
                          .bytes = frame->bytes};
    PEN_TRY(receive_judge(link, envelope, &head));
    if (chunk->has_frame) {
        PEN_TRY(pen_frame_intake_begin(intake, &transport->events, link->peer, frame));
    }
    if (count != 0) pen_wire_copy(pieces, chunk->payload, pen_frame_intake_memory(intake));
    atomic_fetch_add_explicit(&transport->bytes_received, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&transport->bytes_copied, count, memory_order_relaxed);
    if (!pen_frame_intake_add(intake, count, chunk->checksum)) return PEN_OK;
    atomic_fetch_add_explicit(&transport->frames_received, 1, memory_order_relaxed);
    transport->events.end(transport->events.context, link->peer, &intake->frame, intake->checksums,
                          false);
    return PEN_OK;
}

// The called one has said who it is, and so takes the link.
static pen_status receive_answer(pen_grpc_link *link, const pen_wire_introduction *introduction) {
    char address[PEN_ADDRESS_TEXT_LIMIT];
    if (introduction->version != PEN_WIRE_VERSION) {
        return pen_error(PEN_UNSUPPORTED, "peer %u at %s speaks version %u, not %u", link->peer,
                         link->address, introduction->version, PEN_WIRE_VERSION);
    }
    if (introduction->peer != link->peer && introduction->peer != PEN_TRANSPORT_ANY_PEER) {
        return pen_error(PEN_INVALID_INPUT, "at %s is peer %u, not %u", link->address,
                         introduction->peer, link->peer);
    }
    const pen_wire_stream *stream = &introduction->stream;
    pen_grpc_session *session = link->session;
    PEN_TRY(pen_grpc_tls_check_role(link->call, &link->transport->options.tls, link->peer));
    PEN_TRY(pen_grpc_tls_check_revoked(&link->transport->credentials, link->call));
    PEN_TRY(pen_grpc_pass_check(link));
    pen_grpc_server_get_address(link->call, address, sizeof address);
    pen_called_is_known(address);
    if (!session->is_open) {
        pen_grpc_session_open(session, true, stream->session);
        pen_grpc_ring_decide(link, &introduction->ring);
        pen_grpc_link_up(link);
        return PEN_OK;
    }
    if (stream->session != session->drawn_there || stream->resumes != session->drawn) {
        return pen_error(PEN_UNAVAILABLE, "peer %u at %s is another process now", link->peer,
                         link->address);
    }
    return pen_grpc_link_resumed(link, &stream->received);
}

static pen_status receive_introduction(pen_grpc_link *link, pen_wire_pieces pieces,
                                       const pen_wire_introduction *introduction) {
    if (link->state != PEN_GRPC_CALLING) {
        return pen_error(PEN_CORRUPT, "a second introduction");
    }
    if (link->is_caller) return receive_answer(link, introduction);
    return pen_grpc_server_introduce(link, introduction, pieces);
}

// An error ends the link, and is told.
static pen_status receive_envelope(pen_grpc_link *link) {
    pen_wire_pieces pieces;
    pen_wire_envelope envelope;
    PEN_TRY(receive_list_pieces(link, &pieces));
    PEN_TRY(pen_wire_read(pieces, &envelope));
    if (link->state == PEN_GRPC_CALLING && envelope.kind != PEN_WIRE_INTRODUCTION) {
        return pen_error(PEN_CORRUPT, "the first envelope is no introduction");
    }
    switch (envelope.kind) {
    case PEN_WIRE_NOTHING: {
        pen_link_head head = {.has_content = false};
        return receive_judge(link, &envelope, &head);
    }
    case PEN_WIRE_INTRODUCTION:
        return receive_introduction(link, pieces, &envelope.introduction);
    case PEN_WIRE_MESSAGE:
        return receive_message(link, pieces, &envelope);
    case PEN_WIRE_CHUNK:
        return receive_chunk(link, pieces, &envelope);
    case PEN_WIRE_FAREWELL: {
        char reason[PEN_WIRE_TEXT_LIMIT];
        pen_wire_copy_text(pieces, envelope.farewell.reason, reason, sizeof reason);
        pen_grpc_link_down(link,
                           pen_error(pen_wire_code_read(envelope.farewell.code),
                                     "peer %u closed the link: %s", link->peer, reason),
                           true);
        return PEN_OK;
    }
    }
    PEN_NEVER("an envelope is of one kind");
}

// The stream of the other end is over. A caller hears the reason from the status that follows.
static void receive_end(pen_grpc_link *link) {
    if (link->is_caller || (link->state != PEN_GRPC_CALLING && link->state != PEN_GRPC_UP)) return;
    if (grpc_call_failed_before_recv_message(link->call) != 0) {
        return; // it broke: that the call is over follows, too
    }
    pen_grpc_link_down(link, pen_error(PEN_UNAVAILABLE, "peer %u closed the link", link->peer),
                       true);
}

// What cannot be understood ends the link with a reason that both ends hear. The next read starts
// when this one is done with.
static void receive_done(void *owner, bool success) {
    pen_grpc_link *link = owner;
    if (!success || link->incoming == NULL) {
        receive_end(link);
        return;
    }
    // a link that ends still takes what comes, or its end would not come through
    if (link->state == PEN_GRPC_CALLING || link->state == PEN_GRPC_UP) {
        const pen_status status = receive_envelope(link);
        if (status == PEN_OK && link->state == PEN_GRPC_UP && link->session != NULL) {
            pen_caller_was_heard(link->session->caller);
        } else if (status != PEN_OK) {
            const pen_grpc_state state = link->state;
            // who comes too early comes again: nothing for people to see
            if (state == PEN_GRPC_CALLING && !link->is_caller &&
                pen_status_get_code(status) != PEN_UNAVAILABLE) {
                pen_grpc_server_count_refusal(link->transport, link->address, link->who,
                                              pen_status_message(status));
            }
            pen_grpc_link_down(link, status, true);
        }
    }
    grpc_byte_buffer_destroy(link->incoming);
    link->incoming = NULL;
    pen_grpc_receive_start(link);
}

void pen_grpc_receive_start(pen_grpc_link *link) {
    if (link->is_over) return;
    link->received = (pen_grpc_tag){receive_done, link, link};
    grpc_op batch = {.op = GRPC_OP_RECV_MESSAGE};
    batch.data.recv_message.recv_message = &link->incoming;
    pen_grpc_link_batch(link, &batch, 1, &link->received);
}
