// Envelopes that arrive: frames are copied once, from where gRPC has them to where they belong.
#include <grpc/byte_buffer.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/transport/grpc_link.h"

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

static pen_status receive_message(pen_grpc_link *link, pen_wire_pieces pieces,
                                  pen_wire_span message) {
    pen_grpc *transport = link->transport;
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

static pen_status receive_begin(pen_grpc_link *link, const pen_frame *frame) {
    pen_grpc *transport = link->transport;
    void *memory = NULL;
    if (link->is_receiving) return pen_error(PEN_CORRUPT, "a frame begins within another");
    PEN_TRY(transport->events.begin(transport->events.context, link->peer, frame, &memory));
    const uint32_t chunk_count = pen_frame_chunk_count(frame->bytes);
    if (link->checksum_limit < chunk_count) {
        void *checksums = link->checksums;
        const pen_status status = receive_reserve(&checksums, chunk_count, sizeof *link->checksums);
        link->checksums = checksums;
        link->checksum_limit = status == PEN_OK ? chunk_count : 0;
        PEN_TRY(status);
    }
    link->is_receiving = true;
    link->frame = *frame;
    link->memory = memory;
    link->position = 0;
    return PEN_OK;
}

static pen_status receive_chunk(pen_grpc_link *link, pen_wire_pieces pieces,
                                const pen_wire_chunk *chunk) {
    pen_grpc *transport = link->transport;
    if (chunk->has_frame) PEN_TRY(receive_begin(link, &chunk->frame));
    if (!link->is_receiving) return pen_error(PEN_CORRUPT, "a chunk belongs to no frame");
    const uint64_t left = link->frame.bytes - link->position, count = chunk->payload.count;
    if (chunk->position != link->position ||
        count != pen_min_u64(left, PEN_TRANSPORT_CHUNK_BYTES)) {
        return pen_error(PEN_CORRUPT,
                         "a chunk has %" PRIu64 " bytes from %" PRIu64
                         " on, where the frame of %" PRIu64 " bytes is at %" PRIu64,
                         count, chunk->position, link->frame.bytes, link->position);
    }
    if (count != 0) {
        pen_wire_copy(pieces, chunk->payload, link->memory + link->position);
        link->checksums[link->position / PEN_TRANSPORT_CHUNK_BYTES] = chunk->checksum;
    }
    link->position += count;
    atomic_fetch_add_explicit(&transport->bytes_received, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&transport->bytes_copied, count, memory_order_relaxed);
    if (link->position == link->frame.bytes) {
        link->is_receiving = false;
        atomic_fetch_add_explicit(&transport->frames_received, 1, memory_order_relaxed);
        transport->events.end(transport->events.context, link->peer, &link->frame, link->checksums);
    }
    return PEN_OK;
}

// The called one has said who it is, and so takes the link.
static pen_status receive_answer(pen_grpc_link *link, const pen_wire_introduction *introduction) {
    if (introduction->version != PEN_WIRE_VERSION) {
        return pen_error(PEN_UNSUPPORTED, "peer %u at %s speaks version %u, not %u", link->peer,
                         link->address, introduction->version, PEN_WIRE_VERSION);
    }
    if (introduction->peer != link->peer && introduction->peer != PEN_TRANSPORT_ANY_PEER) {
        return pen_error(PEN_INVALID_INPUT, "at %s is peer %u, not %u", link->address,
                         introduction->peer, link->peer);
    }
    pen_grpc_link_up(link);
    return PEN_OK;
}

static pen_status receive_introduction(pen_grpc_link *link, pen_wire_pieces pieces,
                                       const pen_wire_introduction *introduction) {
    if (link->state != PEN_GRPC_CALLING) {
        return pen_error(PEN_CORRUPT, "a second introduction");
    }
    if (link->is_caller) return receive_answer(link, introduction);
    if (pen_grpc_server_introduce(link, introduction, pieces)) pen_grpc_link_up(link);
    return PEN_OK;
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
    case PEN_WIRE_NOTHING:
        return PEN_OK;
    case PEN_WIRE_INTRODUCTION:
        return receive_introduction(link, pieces, &envelope.introduction);
    case PEN_WIRE_MESSAGE:
        return receive_message(link, pieces, envelope.message);
    case PEN_WIRE_CHUNK:
        return receive_chunk(link, pieces, &envelope.chunk);
    case PEN_WIRE_FAREWELL: {
        char reason[PEN_WIRE_TEXT_LIMIT];
        pen_wire_copy_text(pieces, envelope.farewell.reason, reason, sizeof reason);
        link->is_half_closed = true;
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
    if (link->is_caller || link->state == PEN_GRPC_ENDING || link->state == PEN_GRPC_CLOSING)
        return;
    if (grpc_call_failed_before_recv_message(link->call) != 0) {
        return; // it broke: that the call is over follows, too
    }
    link->is_half_closed = true;
    pen_grpc_link_down(link, pen_error(PEN_UNAVAILABLE, "peer %u closed the link", link->peer),
                       true);
}

static void receive_done(void *owner, bool success) {
    pen_grpc_link *link = owner;
    if (!success || link->incoming == NULL) {
        receive_end(link);
        return;
    }
    // a link that ends still takes what comes, or its end would not come through
    if (link->state == PEN_GRPC_CALLING || link->state == PEN_GRPC_UP) {
        const pen_status status = receive_envelope(link);
        if (status != PEN_OK) {
            const pen_grpc_state state = link->state;
            if (state == PEN_GRPC_CALLING && !link->is_caller) {
                pen_grpc_server_count_refusal(link->transport, link->address,
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
