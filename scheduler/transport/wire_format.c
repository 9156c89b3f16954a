#include "scheduler/transport/wire_format.h"

#include <string.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/text.h"
#include "scheduler/transport/wire_code.h"

// Rows stand in the order in which fields are written: what holds the most bytes comes last.

#define INTRODUCTION(kind, number, name, member, ...)                                              \
    PEN_RECORD_ROW(kind, number, name, pen_wire_introduction, member, __VA_ARGS__)
#define FRAME(kind, number, member, ...)                                                           \
    PEN_RECORD_ROW(kind, number, #member, pen_frame, member, __VA_ARGS__)
#define CHUNK(kind, number, member, ...)                                                           \
    PEN_RECORD_ROW(kind, number, #member, pen_wire_chunk, member, __VA_ARGS__)
#define FAREWELL(kind, number, member, ...)                                                        \
    PEN_RECORD_ROW(kind, number, #member, pen_wire_farewell, member, __VA_ARGS__)
#define ENVELOPE(kind, number, name, member, ...)                                                  \
    PEN_RECORD_ROW(kind, number, name, pen_wire_envelope, member, __VA_ARGS__)
#define MESSAGES lanes[PEN_LINK_MESSAGES].number
#define FRAMES lanes[PEN_LINK_FRAMES].number
#define PIECES lanes[PEN_LINK_FRAMES].pieces

static const pen_record_field introduction_fields[] = {
    INTRODUCTION(NUMBER, 1, "version", version, "of this file: 2"),
    INTRODUCTION(NUMBER, 2, "peer", peer, "who speaks; 4294967295: waits to be told"),
    INTRODUCTION(NUMBER, 3, "callee", callee, "whom the caller wants to reach"),
    INTRODUCTION(NUMBER, 4, "generation", generation, "grows with each new start of the job",
                 .limit = PEN_GENERATION_LIMIT),
    INTRODUCTION(FIXED, 5, "incarnation", incarnation, "drawn when the process started"),
    INTRODUCTION(FIXED, 7, "session", stream.session,
                 "drawn for this link; 0: it ends with the stream"),
    INTRODUCTION(FIXED, 8, "resumes", stream.resumes,
                 "the other end's session, when the link was there before"),
    INTRODUCTION(NUMBER, 9, "messages_received", stream.received.MESSAGES,
                 "likewise: what has come"),
    INTRODUCTION(NUMBER, 10, "frames_received", stream.received.FRAMES, NULL),
    INTRODUCTION(NUMBER, 11, "pieces_received", stream.received.PIECES, NULL),
    INTRODUCTION(FIXED, 12, "ring_host", ring.host,
                 "where frames may go through shared memory: on this host,"),
    INTRODUCTION(FIXED, 13, "ring_socket", ring.socket, "at the socket of this name,"),
    INTRODUCTION(FIXED, 14, "ring_token", ring.token, "with this word; all 0: they may not"),
    INTRODUCTION(NUMBER, 15, "level", level,
                 "of the kernels that the caller wants: 1 base, 2 v2, 3 v3, 4 v4; 0: any"),
    INTRODUCTION(SPAN, 6, "job", job, "both sides must name the same one",
                 .limit = PEN_WIRE_TEXT_LIMIT, .is_text = true),
};
static const pen_record introduction_record = {.name = "Introduction",
                                               PEN_RECORD_FIELDS(introduction_fields)};

static const char *const frame_kinds[] = {"VALUE", "TENSOR", "BLOB", NULL};
static const char *const element_types[PEN_ELEMENT_TYPE_COUNT + 1] = {
    "UNKNOWN", "FLOAT32", "FLOAT64", "FLOAT16", "BFLOAT16", "INT8",   "INT16",
    "INT32",   "INT64",   "UINT8",   "UINT16",  "UINT32",   "UINT64", "BOOL"};

static const pen_record_field frame_fields[] = {
    FRAME(NUMBER, 1, kind,
          "VALUE: an activation or a gradient; TENSOR: bytes of a parameter or of an optimizer's\n"
          "state; BLOB: bytes of a description of a part",
          .choices = frame_kinds, .choices_name = "Kind"),
    FRAME(NUMBER, 2, generation, NULL, .limit = PEN_GENERATION_LIMIT),
    FRAME(FIXED, 3, incarnation, "of the sender"),
    FRAME(NUMBER, 4, step, "VALUE: the round", .limit = PEN_COUNTER_LIMIT),
    FRAME(NUMBER, 5, form, "which of the part's forms: sizes and modes it was compiled for"),
    FRAME(NUMBER, 6, microbatch, "VALUE: its number in the round"),
    FRAME(NUMBER, 7, channel, "which value, parameter or description"),
    FRAME(NUMBER, 8, layout, "how the elements lie: 0 is row-major"),
    PEN_RECORD_ROW(NUMBER, 9, "element", pen_frame, type.element, "VALUE; little endian",
                   .choices = element_types, .choices_name = "ElementType"),
    PEN_RECORD_LIST_ROW(ARRAY, NUMBER, 10, "shape", pen_frame, type.shape.dims, type.shape.rank,
                        "VALUE; outermost first", .limit = PEN_RANK_LIMIT, .item_limit = INT64_MAX,
                        .is_packed = true),
    FRAME(NUMBER, 11, sequence, NULL, .limit = PEN_COUNTER_LIMIT),
    FRAME(NUMBER, 12, offset, "TENSOR, BLOB: of these bytes in the whole",
          .limit = PEN_COUNTER_LIMIT),
    FRAME(NUMBER, 13, bytes, "of all chunks of this frame", .limit = PEN_TENSOR_BYTES_LIMIT),
};
static const pen_record frame_record = {
    .name = "Frame",
    .help = "A tensor, or part of one, or of a description. The receiver compares all of it with\n"
            "its plan.",
    PEN_RECORD_FIELDS(frame_fields)};

static const pen_record_field chunk_fields[] = {
    CHUNK(MESSAGE, 1, frame, "with the first chunk of a frame, not with others",
          .record = &frame_record, PEN_RECORD_PRESENT(pen_wire_chunk, has_frame)),
    CHUNK(NUMBER, 2, position, "bytes of the frame before these"),
    CHUNK(FIXED, 3, checksum, "CRC32C of the payload"),
    CHUNK(SPAN, 4, payload, NULL, .limit = PEN_TRANSPORT_CHUNK_BYTES),
};
static const pen_record chunk_record = {
    .name = "Chunk",
    .help =
        "A piece of a frame: 1 MiB of its bytes, or what is left. The chunks of a frame follow\n"
        "each other in order, with nothing but messages between them. A frame without bytes\n"
        "has one empty chunk.",
    PEN_RECORD_FIELDS(chunk_fields)};

static const pen_record_field farewell_fields[] = {
    FAREWELL(NUMBER, 1, code, NULL),
    FAREWELL(SPAN, 2, reason, NULL, .is_text = true),
};
static const pen_record farewell_record = {
    .name = "Farewell",
    .help = "Why the caller ends the stream. Codes are those of gRPC's statuses; 0: all is done.",
    PEN_RECORD_FIELDS(farewell_fields)};

#define CHOICE(value) .is_choice = true, .chosen = PEN_WIRE_##value
#define ACK PEN_RECORD_PRESENT(pen_wire_envelope, has_ack)

static const pen_record_field envelope_fields[] = {
    ENVELOPE(NUMBER, 5, "number", number,
             "of the message, or of the frame that the chunk belongs to; from 1 on"),
    ENVELOPE(NUMBER, 6, "messages_received", ack.MESSAGES,
             "What has come from the other end: all messages and frames up to these numbers, and\n"
             "chunks of the frame after. Every envelope may have them, and one that has nothing\n"
             "else acknowledges. What is not acknowledged is kept; the sender of much that is not\n"
             "ends the link.",
             ACK),
    ENVELOPE(NUMBER, 7, "frames_received", ack.FRAMES, NULL, ACK),
    ENVELOPE(NUMBER, 8, "pieces_received", ack.PIECES, NULL, ACK),
    ENVELOPE(MESSAGE, 1, "introduction", introduction, NULL, .record = &introduction_record,
             CHOICE(INTRODUCTION)),
    ENVELOPE(SPAN, 2, "message", message,
             "of the protocol between coordinator and workers; at most 1 MiB",
             .limit = PEN_TRANSPORT_MESSAGE_LIMIT, CHOICE(MESSAGE)),
    ENVELOPE(MESSAGE, 3, "chunk", chunk, NULL, .record = &chunk_record, CHOICE(CHUNK)),
    ENVELOPE(MESSAGE, 4, "farewell", farewell, NULL, .record = &farewell_record, CHOICE(FAREWELL)),
};
const pen_record pen_wire_envelope_record = {
    .name = "Envelope",
    PEN_RECORD_FIELDS(envelope_fields),
    .chosen_offset = offsetof(pen_wire_envelope, kind),
};

// The envelope up to the `count` bytes that follow it from elsewhere.
static size_t wire_write(const pen_wire_envelope *envelope, uint64_t count, uint8_t *out_head) {
    return pen_record_encode(&pen_wire_envelope_record, envelope, out_head, PEN_WIRE_HEAD_LIMIT) -
           count;
}

size_t pen_wire_write_numbers(uint64_t number, const pen_link_ack *ack, uint8_t *out_head) {
    return wire_write(&(pen_wire_envelope){.number = number, .has_ack = true, .ack = *ack}, 0,
                      out_head);
}

size_t pen_wire_write_introduction(const pen_introduction *self, uint32_t callee,
                                   const pen_wire_stream *stream, const pen_wire_ring *ring,
                                   size_t job_bytes, uint8_t *out_head) {
    const pen_wire_envelope envelope = {.kind = PEN_WIRE_INTRODUCTION,
                                        .introduction = {.version = PEN_WIRE_VERSION,
                                                         .peer = self->peer,
                                                         .callee = callee,
                                                         .generation = self->generation,
                                                         .incarnation = self->incarnation,
                                                         .level = self->level,
                                                         .job.count = job_bytes,
                                                         .stream = *stream,
                                                         .ring = *ring}};
    return wire_write(&envelope, job_bytes, out_head);
}

size_t pen_wire_write_message(uint64_t count, uint8_t *out_head) {
    return wire_write(&(pen_wire_envelope){.kind = PEN_WIRE_MESSAGE, .message.count = count}, count,
                      out_head);
}

size_t pen_wire_write_chunk(const pen_frame *frame, uint64_t position, uint32_t checksum,
                            uint64_t count, uint8_t *out_head) {
    pen_wire_envelope envelope = {
        .kind = PEN_WIRE_CHUNK,
        .chunk = {.position = position, .checksum = checksum, .payload.count = count}};
    envelope.chunk.has_frame = frame != NULL;
    if (frame != NULL) envelope.chunk.frame = *frame;
    return wire_write(&envelope, count, out_head);
}

size_t pen_wire_write_farewell(pen_status_code code, size_t reason_bytes, uint8_t *out_head) {
    const pen_wire_envelope envelope = {
        .kind = PEN_WIRE_FAREWELL,
        .farewell = {.code = pen_wire_code(code), .reason.count = reason_bytes}};
    return wire_write(&envelope, reason_bytes, out_head);
}

pen_status pen_wire_read(pen_wire_pieces pieces, pen_wire_envelope *out_envelope) {
    pen_protobuf_reader reader;
    uint64_t length = 0;
    for (size_t i = 0; i < pieces.count; i++) {
        length += pieces.pieces[i].count;
    }
    if (length > PEN_WIRE_ENVELOPE_LIMIT) {
        return pen_error(PEN_CORRUPT, "an envelope of %llu bytes is too long",
                         (unsigned long long)length);
    }
    *out_envelope = (pen_wire_envelope){.kind = PEN_WIRE_NOTHING};
    pen_protobuf_init_pieces(&reader, pieces.pieces, length);
    return pen_status_add_context(
        pen_record_read(&pen_wire_envelope_record, &reader, NULL, out_envelope),
        "while reading an envelope");
}

void pen_wire_copy(pen_wire_pieces pieces, pen_wire_span span, void *out_bytes) {
    uint8_t *out = out_bytes;
    size_t piece = 0;
    while (span.count != 0 && span.offset >= pieces.pieces[piece].count) {
        span.offset -= pieces.pieces[piece++].count;
    }
    for (; span.count != 0; piece++) {
        const uint64_t here = pen_min_u64(span.count, pieces.pieces[piece].count - span.offset);
        memcpy(out, pieces.pieces[piece].bytes + span.offset, here);
        out += here;
        span.count -= here;
        span.offset = 0;
    }
}

const uint8_t *pen_wire_find(pen_wire_pieces pieces, pen_wire_span span) {
    for (size_t i = 0; i < pieces.count; i++) {
        const pen_wire_piece *piece = &pieces.pieces[i];
        if (span.offset < piece->count) {
            return span.count <= piece->count - span.offset ? piece->bytes + span.offset : NULL;
        }
        span.offset -= piece->count;
    }
    return NULL;
}

void pen_wire_copy_text(pen_wire_pieces pieces, pen_wire_span span, char *out_text, size_t size) {
    span.count = pen_min_u64(span.count, size - 1);
    pen_wire_copy(pieces, span, out_text);
    out_text[span.count] = '\0';
    for (char *at = out_text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) *at = ' ';
    }
    (void)pen_text_clean(out_text, false);
}
