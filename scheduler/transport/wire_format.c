#include "scheduler/transport/wire_format.h"

#include <string.h>

#include "base/integer.h"

// Fields of penstock.proto.
enum {
    ENVELOPE_INTRODUCTION = 1,
    ENVELOPE_MESSAGE = 2,
    ENVELOPE_CHUNK = 3,
    ENVELOPE_FAREWELL = 4,
    ENVELOPE_NUMBER = 5,
    ENVELOPE_MESSAGES_RECEIVED = 6,
    ENVELOPE_FRAMES_RECEIVED = 7,
    ENVELOPE_PIECES_RECEIVED = 8,

    INTRODUCTION_VERSION = 1,
    INTRODUCTION_PEER = 2,
    INTRODUCTION_CALLEE = 3,
    INTRODUCTION_GENERATION = 4,
    INTRODUCTION_INCARNATION = 5,
    INTRODUCTION_JOB = 6,
    INTRODUCTION_SESSION = 7,
    INTRODUCTION_RESUMES = 8,
    INTRODUCTION_MESSAGES_RECEIVED = 9,
    INTRODUCTION_FRAMES_RECEIVED = 10,
    INTRODUCTION_PIECES_RECEIVED = 11,

    CHUNK_FRAME = 1,
    CHUNK_POSITION = 2,
    CHUNK_CHECKSUM = 3,
    CHUNK_PAYLOAD = 4,

    FRAME_KIND = 1,
    FRAME_GENERATION = 2,
    FRAME_INCARNATION = 3,
    FRAME_STEP = 4,
    FRAME_FORM = 5,
    FRAME_MICROBATCH = 6,
    FRAME_CHANNEL = 7,
    FRAME_LAYOUT = 8,
    FRAME_ELEMENT = 9,
    FRAME_SHAPE = 10,
    FRAME_SEQUENCE = 11,
    FRAME_OFFSET = 12,
    FRAME_BYTES = 13,

    FAREWELL_CODE = 1,
    FAREWELL_REASON = 2,
};

typedef enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
} wire_type;

// ---- writing

typedef struct wire_writer {
    uint8_t *out;
    size_t count;
} wire_writer;

static void wire_put_varint(wire_writer *writer, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        writer->out[writer->count++] = (uint8_t)(value | 0x80);
    writer->out[writer->count++] = (uint8_t)value;
}

static void wire_put_key(wire_writer *writer, uint32_t field, wire_type type) {
    wire_put_varint(writer, field << 3 | (uint32_t)type);
}

// As proto3 has it, what is 0 is left out.
static void wire_put_number(wire_writer *writer, uint32_t field, uint64_t value) {
    if (value == 0) return;
    wire_put_key(writer, field, WIRE_VARINT);
    wire_put_varint(writer, value);
}

static void wire_put_fixed(wire_writer *writer, uint32_t field, uint64_t value, size_t bytes) {
    if (value == 0) return;
    wire_put_key(writer, field, bytes == 8 ? WIRE_FIXED64 : WIRE_FIXED32);
    for (size_t i = 0; i < bytes; i++)
        writer->out[writer->count++] = (uint8_t)(value >> 8 * i);
}

static void wire_put_head(wire_writer *writer, uint32_t field, uint64_t bytes) {
    wire_put_key(writer, field, WIRE_BYTES);
    wire_put_varint(writer, bytes);
}

static void wire_put_all(wire_writer *writer, uint32_t field, const wire_writer *inner) {
    wire_put_head(writer, field, inner->count);
    memcpy(writer->out + writer->count, inner->out, inner->count);
    writer->count += inner->count;
}

// An envelope of one field: what was written of it, and `more` bytes that will follow.
static size_t wire_wrap(uint32_t field, const wire_writer *inner, uint64_t more,
                        uint8_t *out_head) {
    wire_writer writer = {.out = out_head};
    wire_put_head(&writer, field, inner->count + more);
    memcpy(writer.out + writer.count, inner->out, inner->count);
    return writer.count + inner->count;
}

// Marks of the two lanes: three fields that follow each other.
static void wire_put_ack(wire_writer *writer, uint32_t field, const pen_link_ack *ack) {
    wire_put_number(writer, field, ack->lanes[PEN_LINK_MESSAGES].number);
    wire_put_number(writer, field + 1, ack->lanes[PEN_LINK_FRAMES].number);
    wire_put_number(writer, field + 2, ack->lanes[PEN_LINK_FRAMES].pieces);
}

size_t pen_wire_write_numbers(uint64_t number, const pen_link_ack *ack, uint8_t *out_head) {
    wire_writer writer = {.out = out_head};
    wire_put_number(&writer, ENVELOPE_NUMBER, number);
    wire_put_ack(&writer, ENVELOPE_MESSAGES_RECEIVED, ack);
    return writer.count;
}

size_t pen_wire_write_introduction(const pen_introduction *self, uint32_t callee,
                                   const pen_wire_stream *stream, size_t job_bytes,
                                   uint8_t *out_head) {
    uint8_t bytes[PEN_WIRE_HEAD_LIMIT];
    wire_writer inner = {.out = bytes};
    wire_put_number(&inner, INTRODUCTION_VERSION, PEN_WIRE_VERSION);
    wire_put_number(&inner, INTRODUCTION_PEER, self->peer);
    wire_put_number(&inner, INTRODUCTION_CALLEE, callee);
    wire_put_number(&inner, INTRODUCTION_GENERATION, self->generation);
    wire_put_fixed(&inner, INTRODUCTION_INCARNATION, self->incarnation, 8);
    wire_put_fixed(&inner, INTRODUCTION_SESSION, stream->session, 8);
    wire_put_fixed(&inner, INTRODUCTION_RESUMES, stream->resumes, 8);
    wire_put_ack(&inner, INTRODUCTION_MESSAGES_RECEIVED, &stream->received);
    wire_put_head(&inner, INTRODUCTION_JOB, job_bytes);
    return wire_wrap(ENVELOPE_INTRODUCTION, &inner, job_bytes, out_head);
}

size_t pen_wire_write_message(uint64_t count, uint8_t *out_head) {
    wire_writer writer = {.out = out_head};
    wire_put_head(&writer, ENVELOPE_MESSAGE, count);
    return writer.count;
}

static void wire_put_shape(wire_writer *writer, const pen_shape *shape) {
    uint8_t bytes[10 * PEN_RANK_LIMIT];
    wire_writer inner = {.out = bytes};
    for (uint32_t i = 0; i < shape->rank; i++)
        wire_put_varint(&inner, (uint64_t)shape->dims[i]);
    if (shape->rank != 0) wire_put_all(writer, FRAME_SHAPE, &inner);
}

static void wire_put_frame(wire_writer *writer, const pen_frame *frame) {
    uint8_t bytes[PEN_WIRE_HEAD_LIMIT];
    wire_writer inner = {.out = bytes};
    wire_put_number(&inner, FRAME_KIND, frame->kind);
    wire_put_number(&inner, FRAME_GENERATION, frame->generation);
    wire_put_fixed(&inner, FRAME_INCARNATION, frame->incarnation, 8);
    wire_put_number(&inner, FRAME_STEP, frame->step);
    wire_put_number(&inner, FRAME_FORM, frame->form);
    wire_put_number(&inner, FRAME_MICROBATCH, frame->microbatch);
    wire_put_number(&inner, FRAME_CHANNEL, frame->channel);
    wire_put_number(&inner, FRAME_LAYOUT, frame->layout);
    wire_put_number(&inner, FRAME_ELEMENT, frame->type.element);
    wire_put_shape(&inner, &frame->type.shape);
    wire_put_number(&inner, FRAME_SEQUENCE, frame->sequence);
    wire_put_number(&inner, FRAME_OFFSET, frame->offset);
    wire_put_number(&inner, FRAME_BYTES, frame->bytes);
    wire_put_all(writer, CHUNK_FRAME, &inner);
}

size_t pen_wire_write_chunk(const pen_frame *frame, uint64_t position, uint32_t checksum,
                            uint64_t count, uint8_t *out_head) {
    uint8_t bytes[PEN_WIRE_HEAD_LIMIT];
    wire_writer inner = {.out = bytes};
    if (frame != NULL) wire_put_frame(&inner, frame);
    wire_put_number(&inner, CHUNK_POSITION, position);
    wire_put_fixed(&inner, CHUNK_CHECKSUM, checksum, 4);
    wire_put_head(&inner, CHUNK_PAYLOAD, count);
    return wire_wrap(ENVELOPE_CHUNK, &inner, count, out_head);
}

size_t pen_wire_write_farewell(pen_status_code code, size_t reason_bytes, uint8_t *out_head) {
    uint8_t bytes[PEN_WIRE_HEAD_LIMIT];
    wire_writer inner = {.out = bytes};
    wire_put_number(&inner, FAREWELL_CODE, pen_wire_code(code));
    wire_put_head(&inner, FAREWELL_REASON, reason_bytes);
    return wire_wrap(ENVELOPE_FAREWELL, &inner, reason_bytes, out_head);
}

// ---- reading

typedef struct wire_reader {
    const pen_wire_piece *pieces;
    size_t piece_count;
    size_t piece; // where we are: in this piece
    uint64_t at;  // at this byte of it
    uint64_t position;
    uint64_t end; // of the message that is read
} wire_reader;

typedef struct wire_field {
    uint32_t number;
    wire_type type;
    uint64_t value;     // of a number
    pen_wire_span span; // of bytes
} wire_field;

static pen_status wire_error(const char *what) {
    return pen_error(PEN_CORRUPT, "envelope: %s", what);
}

static void wire_settle(wire_reader *reader) { // steps over pieces that are used up
    while (reader->piece < reader->piece_count &&
           reader->at == reader->pieces[reader->piece].count) {
        reader->piece += 1;
        reader->at = 0;
    }
}

static bool wire_take_byte(wire_reader *reader, uint8_t *out_byte) {
    if (reader->position == reader->end) return false;
    wire_settle(reader);
    *out_byte = reader->pieces[reader->piece].bytes[reader->at];
    reader->at += 1;
    reader->position += 1;
    return true;
}

static bool wire_skip(wire_reader *reader, uint64_t count) {
    if (count > reader->end - reader->position) return false;
    reader->position += count;
    while (count != 0) {
        wire_settle(reader);
        const uint64_t here = pen_min_u64(count, reader->pieces[reader->piece].count - reader->at);
        reader->at += here;
        count -= here;
    }
    return true;
}

static pen_status wire_take_varint(wire_reader *reader, uint64_t *out_value) {
    uint64_t value = 0;
    for (uint32_t shift = 0;; shift += 7) {
        uint8_t byte;
        if (!wire_take_byte(reader, &byte)) return wire_error("a number is cut short");
        if (shift == 63 && byte > 1) return wire_error("a number has more than 64 bits");
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out_value = value;
            return PEN_OK;
        }
    }
}

static pen_status wire_take_fixed(wire_reader *reader, uint32_t byte_count, uint64_t *out_value) {
    *out_value = 0;
    for (uint32_t i = 0; i < byte_count; i++) {
        uint8_t byte;
        if (!wire_take_byte(reader, &byte)) return wire_error("a number is cut short");
        *out_value |= (uint64_t)byte << 8 * i;
    }
    return PEN_OK;
}

// The next field, of which bytes are stepped over.
static pen_status wire_take_field(wire_reader *reader, wire_field *out_field) {
    uint64_t key, length;
    PEN_TRY(wire_take_varint(reader, &key));
    if (key > UINT32_MAX || key >> 3 == 0) return wire_error("a field has no such number");
    *out_field = (wire_field){.number = (uint32_t)(key >> 3), .type = (wire_type)(key & 7)};
    switch ((uint32_t)(key & 7)) {
    case WIRE_VARINT:
        return wire_take_varint(reader, &out_field->value);
    case WIRE_FIXED64:
        return wire_take_fixed(reader, 8, &out_field->value);
    case WIRE_FIXED32:
        return wire_take_fixed(reader, 4, &out_field->value);
    case WIRE_BYTES:
        PEN_TRY(wire_take_varint(reader, &length));
        out_field->span = (pen_wire_span){reader->position, length};
        return wire_skip(reader, length) ? PEN_OK : wire_error("a field is cut short");
    default:
        return wire_error("a field has a wire type that is not known");
    }
}

// A reader of the bytes of a field that was just taken, begun from `before` it.
static wire_reader wire_within(const wire_reader *before, pen_wire_span span) {
    wire_reader inner = *before;
    if (!wire_skip(&inner, span.offset - inner.position)) PEN_NEVER("a field lies behind its key");
    inner.end = span.offset + span.count;
    return inner;
}

static pen_status wire_want(const wire_field *field, wire_type type, uint64_t limit) {
    if (field->type != type) return wire_error("a field has another wire type than it should");
    if (type != WIRE_BYTES && field->value > limit) return wire_error("a number is too large");
    if (type == WIRE_BYTES && field->span.count > limit) return wire_error("a field is too long");
    return PEN_OK;
}

static pen_status wire_read_u32(const wire_field *field, uint32_t *out_value) {
    PEN_TRY(wire_want(field, WIRE_VARINT, UINT32_MAX));
    *out_value = (uint32_t)field->value;
    return PEN_OK;
}

static pen_status wire_read_u64(const wire_field *field, wire_type type, uint64_t *out_value) {
    PEN_TRY(wire_want(field, type, UINT64_MAX));
    *out_value = field->value;
    return PEN_OK;
}

static pen_status wire_read_ack(const wire_field *field, uint32_t first, pen_link_ack *out) {
    if (field->number == first) {
        return wire_read_u64(field, WIRE_VARINT, &out->lanes[PEN_LINK_MESSAGES].number);
    }
    if (field->number == first + 1) {
        return wire_read_u64(field, WIRE_VARINT, &out->lanes[PEN_LINK_FRAMES].number);
    }
    return wire_read_u32(field, &out->lanes[PEN_LINK_FRAMES].pieces);
}

static pen_status wire_read_introduction(wire_reader *reader, pen_wire_introduction *out) {
    *out = (pen_wire_introduction){0};
    while (reader->position != reader->end) {
        wire_field field;
        PEN_TRY(wire_take_field(reader, &field));
        switch (field.number) {
        case INTRODUCTION_VERSION:
            PEN_TRY(wire_read_u32(&field, &out->version));
            break;
        case INTRODUCTION_PEER:
            PEN_TRY(wire_read_u32(&field, &out->peer));
            break;
        case INTRODUCTION_CALLEE:
            PEN_TRY(wire_read_u32(&field, &out->callee));
            break;
        case INTRODUCTION_GENERATION:
            PEN_TRY(wire_read_u64(&field, WIRE_VARINT, &out->generation));
            break;
        case INTRODUCTION_INCARNATION:
            PEN_TRY(wire_read_u64(&field, WIRE_FIXED64, &out->incarnation));
            break;
        case INTRODUCTION_JOB:
            PEN_TRY(wire_want(&field, WIRE_BYTES, PEN_WIRE_TEXT_LIMIT));
            out->job = field.span;
            break;
        case INTRODUCTION_SESSION:
            PEN_TRY(wire_read_u64(&field, WIRE_FIXED64, &out->stream.session));
            break;
        case INTRODUCTION_RESUMES:
            PEN_TRY(wire_read_u64(&field, WIRE_FIXED64, &out->stream.resumes));
            break;
        case INTRODUCTION_MESSAGES_RECEIVED:
        case INTRODUCTION_FRAMES_RECEIVED:
        case INTRODUCTION_PIECES_RECEIVED:
            PEN_TRY(wire_read_ack(&field, INTRODUCTION_MESSAGES_RECEIVED, &out->stream.received));
            break;
        default:
            break;
        }
    }
    return PEN_OK;
}

static pen_status wire_add_dim(pen_shape *shape, uint64_t dim) {
    if (shape->rank == PEN_RANK_LIMIT) return wire_error("a shape has too many dimensions");
    if (dim > INT64_MAX) return wire_error("a dimension is too large");
    shape->dims[shape->rank++] = (int64_t)dim;
    return PEN_OK;
}

// Repeated numbers come packed, or each as a field.
static pen_status wire_read_shape(const wire_reader *before, const wire_field *field,
                                  pen_shape *shape) {
    if (field->type == WIRE_VARINT) return wire_add_dim(shape, field->value);
    PEN_TRY(wire_want(field, WIRE_BYTES, (uint64_t)10 * PEN_RANK_LIMIT));
    wire_reader inner = wire_within(before, field->span);
    while (inner.position != inner.end) {
        uint64_t dim;
        PEN_TRY(wire_take_varint(&inner, &dim));
        PEN_TRY(wire_add_dim(shape, dim));
    }
    return PEN_OK;
}

static pen_status wire_read_enums(const wire_field *field, pen_frame *out) {
    if (field->number == FRAME_KIND) {
        PEN_TRY(wire_want(field, WIRE_VARINT, PEN_FRAME_BLOB));
        out->kind = (pen_frame_kind)field->value;
    } else if (field->number == FRAME_LAYOUT) {
        PEN_TRY(wire_want(field, WIRE_VARINT, UINT16_MAX));
        out->layout = (uint16_t)field->value;
    } else {
        PEN_TRY(wire_want(field, WIRE_VARINT, PEN_ELEMENT_TYPE_COUNT - 1));
        out->type.element = (pen_element_type)field->value;
    }
    return PEN_OK;
}

static pen_status wire_read_frame_field(const wire_reader *before, const wire_field *field,
                                        pen_frame *out) {
    switch (field->number) {
    case FRAME_KIND:
    case FRAME_LAYOUT:
    case FRAME_ELEMENT:
        return wire_read_enums(field, out);
    case FRAME_GENERATION:
        return wire_read_u64(field, WIRE_VARINT, &out->generation);
    case FRAME_INCARNATION:
        return wire_read_u64(field, WIRE_FIXED64, &out->incarnation);
    case FRAME_STEP:
        return wire_read_u64(field, WIRE_VARINT, &out->step);
    case FRAME_FORM:
        return wire_read_u32(field, &out->form);
    case FRAME_MICROBATCH:
        return wire_read_u32(field, &out->microbatch);
    case FRAME_CHANNEL:
        return wire_read_u32(field, &out->channel);
    case FRAME_SHAPE:
        return wire_read_shape(before, field, &out->type.shape);
    case FRAME_SEQUENCE:
        return wire_read_u64(field, WIRE_VARINT, &out->sequence);
    case FRAME_OFFSET:
        return wire_read_u64(field, WIRE_VARINT, &out->offset);
    case FRAME_BYTES:
        PEN_TRY(wire_want(field, WIRE_VARINT, PEN_TENSOR_BYTES_LIMIT));
        out->bytes = field->value;
        return PEN_OK;
    default:
        return PEN_OK;
    }
}

static pen_status wire_read_frame(wire_reader *reader, pen_frame *out) {
    *out = (pen_frame){0};
    while (reader->position != reader->end) {
        wire_field field;
        const wire_reader before = *reader;
        PEN_TRY(wire_take_field(reader, &field));
        PEN_TRY(wire_read_frame_field(&before, &field, out));
    }
    return PEN_OK;
}

static pen_status wire_read_chunk(wire_reader *reader, pen_wire_chunk *out) {
    *out = (pen_wire_chunk){0};
    while (reader->position != reader->end) {
        wire_field field;
        wire_reader before = *reader;
        PEN_TRY(wire_take_field(reader, &field));
        switch (field.number) {
        case CHUNK_FRAME:
            PEN_TRY(wire_want(&field, WIRE_BYTES, UINT64_MAX));
            before = wire_within(&before, field.span);
            PEN_TRY(wire_read_frame(&before, &out->frame));
            out->has_frame = true;
            break;
        case CHUNK_POSITION:
            PEN_TRY(wire_read_u64(&field, WIRE_VARINT, &out->position));
            break;
        case CHUNK_CHECKSUM:
            PEN_TRY(wire_want(&field, WIRE_FIXED32, UINT32_MAX));
            out->checksum = (uint32_t)field.value;
            break;
        case CHUNK_PAYLOAD:
            PEN_TRY(wire_want(&field, WIRE_BYTES, PEN_TRANSPORT_CHUNK_BYTES));
            out->payload = field.span;
            break;
        default:
            break;
        }
    }
    return PEN_OK;
}

static pen_status wire_read_farewell(wire_reader *reader, pen_wire_envelope *out) {
    out->farewell.code = 0;
    out->farewell.reason = (pen_wire_span){0};
    while (reader->position != reader->end) {
        wire_field field;
        PEN_TRY(wire_take_field(reader, &field));
        if (field.number == FAREWELL_CODE) {
            PEN_TRY(wire_read_u32(&field, &out->farewell.code));
        } else if (field.number == FAREWELL_REASON) {
            PEN_TRY(wire_want(&field, WIRE_BYTES, UINT64_MAX));
            out->farewell.reason = field.span;
        }
    }
    return PEN_OK;
}

static pen_status wire_read_content(const wire_reader *before, const wire_field *field,
                                    pen_wire_envelope *out) {
    if (field->number > ENVELOPE_PIECES_RECEIVED) return PEN_OK;
    if (field->number == ENVELOPE_NUMBER) return wire_read_u64(field, WIRE_VARINT, &out->number);
    if (field->number > ENVELOPE_NUMBER) {
        out->has_ack = true;
        return wire_read_ack(field, ENVELOPE_MESSAGES_RECEIVED, &out->ack);
    }
    PEN_TRY(wire_want(field, WIRE_BYTES, UINT64_MAX));
    wire_reader inner = wire_within(before, field->span);
    switch (field->number) {
    case ENVELOPE_INTRODUCTION:
        out->kind = PEN_WIRE_INTRODUCTION;
        return wire_read_introduction(&inner, &out->introduction);
    case ENVELOPE_MESSAGE:
        out->kind = PEN_WIRE_MESSAGE;
        out->message = field->span;
        return wire_want(field, WIRE_BYTES, PEN_TRANSPORT_MESSAGE_LIMIT);
    case ENVELOPE_CHUNK:
        out->kind = PEN_WIRE_CHUNK;
        return wire_read_chunk(&inner, &out->chunk);
    default:
        out->kind = PEN_WIRE_FAREWELL;
        return wire_read_farewell(&inner, out);
    }
}

pen_status pen_wire_read(pen_wire_pieces pieces, pen_wire_envelope *out_envelope) {
    wire_reader reader = {.pieces = pieces.pieces, .piece_count = pieces.count};
    for (size_t i = 0; i < pieces.count; i++)
        reader.end += pieces.pieces[i].count;
    if (reader.end > PEN_WIRE_ENVELOPE_LIMIT) return wire_error("it is too long");
    out_envelope->kind = PEN_WIRE_NOTHING;
    out_envelope->number = 0;
    out_envelope->has_ack = false;
    out_envelope->ack = (pen_link_ack){0};
    while (reader.position != reader.end) {
        wire_field field;
        const wire_reader before = reader;
        PEN_TRY(wire_take_field(&reader, &field));
        PEN_TRY(wire_read_content(&before, &field, out_envelope));
    }
    return PEN_OK;
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
}
