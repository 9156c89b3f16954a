#include "scheduler/protocol/message.h"

#include <string.h>

#include "base/format/protobuf_reader.h"

typedef enum message_type {
    MESSAGE_U32,
    MESSAGE_U64,
    MESSAGE_BOOL,
    MESSAGE_DOUBLE, // its bits
    MESSAGE_TEXT,
    MESSAGE_BYTES,
} message_type;

typedef struct message_field {
    uint32_t number; // in the kind's protobuf message; 0 ends a list
    message_type type;
    size_t offset;
    size_t size; // of a text's array
} message_field;

#define FIELD(number, type, name)                                                                  \
    { number, MESSAGE_##type, offsetof(pen_message, name), sizeof((pen_message *)0)->name }
#define FIELD_LIMIT 10

typedef struct message_shape {
    const char *name;
    uint32_t number; // in ControlMessage
    message_field fields[FIELD_LIMIT];
} message_shape;

#define HEADER_PROTOCOL 1
#define HEADER_JOB 2
#define HEADER_GENERATION 3
#define HEADER_INCARNATION 4

static const message_shape message_shapes[PEN_MESSAGE_KIND_COUNT] = {
    [PEN_MESSAGE_HELLO] = {"hello",
                           10,
                           {FIELD(1, U32, worker), FIELD(2, TEXT, build), FIELD(3, TEXT, isa),
                            FIELD(4, U64, plan_hash), FIELD(5, U32, device_count),
                            FIELD(6, TEXT, address)}},
    [PEN_MESSAGE_REFUSED] = {"refused", 11, {FIELD(1, U32, code), FIELD(2, TEXT, text)}},
    [PEN_MESSAGE_ASSIGN] = {"assign",
                            12,
                            {FIELD(1, U32, worker), FIELD(2, U64, target_incarnation),
                             FIELD(3, U64, plan_hash), FIELD(4, U64, byte_count),
                             FIELD(5, U64, clock)}},
    [PEN_MESSAGE_READY] = {"ready", 13, {{0}}},
    [PEN_MESSAGE_START] = {"start", 14, {{0}}},
    [PEN_MESSAGE_ROUND] = {"round",
                           15,
                           {FIELD(1, U64, round), FIELD(2, U32, form), FIELD(3, U32, count),
                            FIELD(4, BOOL, updates), FIELD(5, BOOL, continues), FIELD(6, U64, step),
                            FIELD(7, DOUBLE, learning_rate), FIELD(8, U64, first_microbatch),
                            FIELD(9, DOUBLE, value)}},
    [PEN_MESSAGE_GO] = {"go", 16, {FIELD(1, U64, round)}},
    [PEN_MESSAGE_LOSS] = {"loss",
                          17,
                          {FIELD(1, U64, round), FIELD(2, U32, form), FIELD(3, U32, microbatch),
                           FIELD(4, U32, stage), FIELD(5, U32, device), FIELD(6, DOUBLE, value),
                           FIELD(7, U64, correct_count), FIELD(8, U64, target_count)}},
    [PEN_MESSAGE_ROUND_DONE] = {"round_done", 18, {FIELD(1, U64, round), FIELD(2, BYTES, bytes)}},
    [PEN_MESSAGE_CREDIT] = {"credit",
                            19,
                            {FIELD(1, U32, form), FIELD(2, U32, channel), FIELD(3, U64, sequence)}},
    [PEN_MESSAGE_PULL] = {"pull",
                          20,
                          {FIELD(1, U32, frame_kind), FIELD(2, U32, number), FIELD(3, U64, offset),
                           FIELD(4, U64, byte_count), FIELD(5, U64, sequence)}},
    [PEN_MESSAGE_OFFER] = {"offer",
                           21,
                           {FIELD(1, U32, frame_kind), FIELD(2, U32, number), FIELD(3, U64, offset),
                            FIELD(4, U64, byte_count)}},
    [PEN_MESSAGE_ASK] = {"ask", 22, {FIELD(1, U32, number), FIELD(2, U64, offset)}},
    [PEN_MESSAGE_PART] = {"part",
                          23,
                          {FIELD(1, U32, number), FIELD(2, U64, offset), FIELD(3, U64, byte_count),
                           FIELD(4, BYTES, bytes)}},
    [PEN_MESSAGE_PING] = {"ping", 24, {FIELD(1, U64, sequence), FIELD(2, U64, clock)}},
    [PEN_MESSAGE_PONG] =
        {"pong", 25, {FIELD(1, U64, sequence), FIELD(2, U64, clock), FIELD(3, U64, clock_here)}},
    [PEN_MESSAGE_FAIL] = {"fail",
                          26,
                          {FIELD(1, U32, code), FIELD(2, TEXT, text), FIELD(3, U32, device)}},
    [PEN_MESSAGE_STOP] = {"stop", 27, {{0}}},
    [PEN_MESSAGE_STOPPED] = {"stopped", 28, {FIELD(1, TEXT, text)}},
    [PEN_MESSAGE_TAKEN] = {"taken", 29, {FIELD(1, U64, sequence)}},
    [PEN_MESSAGE_BEAT] = {"beat",
                          30,
                          {FIELD(1, U32, state), FIELD(2, U64, step),
                           FIELD(3, U64, step_nanoseconds), FIELD(4, U64, clock)}},
    [PEN_MESSAGE_SNAPSHOT] = {"snapshot",
                              31,
                              {FIELD(1, U64, step), FIELD(2, U32, worker), FIELD(3, TEXT, text),
                               FIELD(4, BOOL, is_local)}},
    [PEN_MESSAGE_SNAPPED] = {"snapped", 32, {FIELD(1, U64, step)}},
    [PEN_MESSAGE_SHARD] = {"shard",
                           33,
                           {FIELD(1, U64, step), FIELD(2, U32, code), FIELD(3, TEXT, text),
                            FIELD(4, BYTES, bytes)}},
    [PEN_MESSAGE_COMMITTED] = {"committed", 34, {FIELD(1, U64, step)}},
};

const char *pen_message_kind_name(pen_message_kind kind) {
    PEN_ASSERT((uint32_t)kind < PEN_MESSAGE_KIND_COUNT);
    return message_shapes[kind].name;
}

// ---- writing

typedef struct message_writer {
    uint8_t *bytes;
    size_t size;
    size_t length; // also beyond the size
} message_writer;

static void message_put(message_writer *writer, const void *bytes, size_t count) {
    if (writer->length < writer->size) {
        const size_t room = writer->size - writer->length;
        memcpy(writer->bytes + writer->length, bytes, count < room ? count : room);
    }
    writer->length += count;
}

static void message_put_varint(message_writer *writer, uint64_t integer) {
    uint8_t bytes[10];
    size_t count = 0;
    do {
        const uint8_t more = integer > 0x7f ? 0x80 : 0;
        bytes[count++] = (uint8_t)((integer & 0x7f) | more);
        integer >>= 7;
    } while (integer != 0);
    message_put(writer, bytes, count);
}

static void message_put_key(message_writer *writer, uint32_t number, pen_protobuf_wire wire) {
    message_put_varint(writer, ((uint64_t)number << 3) | (uint64_t)wire);
}

static void message_put_integer(message_writer *writer, uint32_t number, uint64_t integer) {
    if (integer == 0) return; // as protobuf has it
    message_put_key(writer, number, PEN_PROTOBUF_VARINT);
    message_put_varint(writer, integer);
}

static void message_put_block(message_writer *writer, uint32_t number, const void *bytes,
                              size_t length) {
    if (length == 0) return;
    message_put_key(writer, number, PEN_PROTOBUF_BYTES);
    message_put_varint(writer, length);
    message_put(writer, bytes, length);
}

static void message_put_field(message_writer *writer, const pen_message *message,
                              const message_field *field) {
    const char *at = (const char *)message + field->offset;
    uint32_t integer = 0;
    uint64_t wide = 0;
    bool flag = false;
    switch (field->type) {
    case MESSAGE_U32:
        memcpy(&integer, at, sizeof integer);
        message_put_integer(writer, field->number, integer);
        break;
    case MESSAGE_U64:
        memcpy(&wide, at, sizeof wide);
        message_put_integer(writer, field->number, wide);
        break;
    case MESSAGE_BOOL:
        memcpy(&flag, at, sizeof flag);
        message_put_integer(writer, field->number, flag);
        break;
    case MESSAGE_DOUBLE: {
        memcpy(&wide, at, sizeof wide);
        if (wide == 0) break;
        uint8_t bytes[8];
        for (uint32_t i = 0; i < 8; i++) {
            bytes[i] = (uint8_t)(wide >> (8 * i));
        }
        message_put_key(writer, field->number, PEN_PROTOBUF_FIXED64);
        message_put(writer, bytes, sizeof bytes);
        break;
    }
    case MESSAGE_TEXT:
        message_put_block(writer, field->number, at, strnlen(at, field->size - 1));
        break;
    case MESSAGE_BYTES:
        message_put_block(writer, field->number, message->bytes, message->bytes_length);
        break;
    }
}

static void message_put_body(message_writer *writer, const pen_message *message,
                             const message_shape *shape) {
    for (uint32_t i = 0; i < FIELD_LIMIT && shape->fields[i].number != 0; i++) {
        message_put_field(writer, message, &shape->fields[i]);
    }
}

size_t pen_message_encode(const pen_message *message, void *out_bytes, size_t size) {
    PEN_ASSERT((uint32_t)message->kind < PEN_MESSAGE_KIND_COUNT);
    PEN_ASSERT(message->bytes_length == 0 || message->bytes != NULL);
    const message_shape *shape = &message_shapes[message->kind];
    message_writer writer = {.bytes = out_bytes, .size = size};
    message_put_integer(&writer, HEADER_PROTOCOL, message->protocol);
    message_put_block(&writer, HEADER_JOB, message->job,
                      strnlen(message->job, sizeof message->job - 1));
    message_put_integer(&writer, HEADER_GENERATION, message->generation);
    message_put_integer(&writer, HEADER_INCARNATION, message->incarnation);
    message_writer counter = {0};
    message_put_body(&counter, message, shape);
    message_put_key(&writer, shape->number, PEN_PROTOBUF_BYTES);
    message_put_varint(&writer, counter.length);
    message_put_body(&writer, message, shape);
    return writer.length;
}

// ---- reading

static pen_status message_read_text(const pen_protobuf_reader *reader,
                                    const pen_protobuf_field *field, size_t size, char *out_text) {
    const uint8_t *bytes;
    size_t length;
    PEN_TRY(pen_protobuf_bytes(reader, field, &bytes, &length));
    if (length >= size) {
        return pen_protobuf_error(reader, "a text of %zu bytes, at most %zu can be", length,
                                  size - 1);
    }
    if (length > 0 && memchr(bytes, 0, length) != NULL) {
        return pen_protobuf_error(reader, "a text with a zero byte");
    }
    if (length > 0) memcpy(out_text, bytes, length);
    out_text[length] = 0;
    return PEN_OK;
}

static pen_status message_read_integer(const pen_protobuf_reader *reader,
                                       const pen_protobuf_field *field, pen_protobuf_wire wire,
                                       uint64_t limit) {
    if (field->wire != wire) {
        return pen_protobuf_error(reader, "field %u has wire type %u, expected %u", field->number,
                                  (unsigned)field->wire, (unsigned)wire);
    }
    if (field->integer > limit) {
        return pen_protobuf_error(reader, "field %u is %llu, at most %llu can be", field->number,
                                  (unsigned long long)field->integer, (unsigned long long)limit);
    }
    return PEN_OK;
}

static pen_status message_read_field(const pen_protobuf_reader *reader,
                                     const pen_protobuf_field *field, const message_field *known,
                                     pen_message *message) {
    char *at = (char *)message + known->offset;
    switch (known->type) {
    case MESSAGE_U32: {
        PEN_TRY(message_read_integer(reader, field, PEN_PROTOBUF_VARINT, UINT32_MAX));
        const uint32_t integer = (uint32_t)field->integer;
        memcpy(at, &integer, sizeof integer);
        return PEN_OK;
    }
    case MESSAGE_U64:
        PEN_TRY(message_read_integer(reader, field, PEN_PROTOBUF_VARINT, UINT64_MAX));
        memcpy(at, &field->integer, sizeof field->integer);
        return PEN_OK;
    case MESSAGE_BOOL: {
        PEN_TRY(message_read_integer(reader, field, PEN_PROTOBUF_VARINT, 1));
        const bool flag = field->integer != 0;
        memcpy(at, &flag, sizeof flag);
        return PEN_OK;
    }
    case MESSAGE_DOUBLE:
        PEN_TRY(message_read_integer(reader, field, PEN_PROTOBUF_FIXED64, UINT64_MAX));
        memcpy(at, &field->integer, sizeof field->integer);
        return PEN_OK;
    case MESSAGE_TEXT:
        return message_read_text(reader, field, known->size, at);
    case MESSAGE_BYTES: {
        const uint8_t *bytes;
        PEN_TRY(pen_protobuf_bytes(reader, field, &bytes, &message->bytes_length));
        message->bytes = bytes;
        if (message->bytes_length <= PEN_MESSAGE_PART_LIMIT) return PEN_OK;
        return pen_protobuf_error(reader, "a part of %zu bytes, at most %zu can be",
                                  message->bytes_length, PEN_MESSAGE_PART_LIMIT);
    }
    }
    PEN_NEVER("a type of a field");
}

static pen_status message_read_body(pen_protobuf_reader *reader, const message_shape *shape,
                                    pen_message *message) {
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(reader, &field));
        if (field.number == 0) return PEN_OK;
        for (uint32_t i = 0; i < FIELD_LIMIT && shape->fields[i].number != 0; i++) {
            if (shape->fields[i].number != field.number) continue;
            PEN_TRY(message_read_field(reader, &field, &shape->fields[i], message));
        }
    }
}

static pen_status message_read_header(const pen_protobuf_reader *reader,
                                      const pen_protobuf_field *field, pen_message *message) {
    static const message_field header[] = {
        FIELD(HEADER_PROTOCOL, U32, protocol),
        FIELD(HEADER_JOB, TEXT, job),
        FIELD(HEADER_GENERATION, U64, generation),
        FIELD(HEADER_INCARNATION, U64, incarnation),
    };
    for (uint32_t i = 0; i < sizeof header / sizeof *header; i++) {
        if (header[i].number == field->number) {
            return message_read_field(reader, field, &header[i], message);
        }
    }
    return PEN_OK;
}

// The body's kind, PEN_MESSAGE_KIND_COUNT: the field is none.
static uint32_t message_find_kind(uint32_t number) {
    uint32_t kind = 0;
    while (kind < PEN_MESSAGE_KIND_COUNT && message_shapes[kind].number != number) {
        kind++;
    }
    return kind;
}

static pen_status message_read(pen_protobuf_reader *reader, pen_message *message) {
    uint32_t found = PEN_MESSAGE_KIND_COUNT;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(reader, &field));
        if (field.number == 0) break;
        PEN_TRY(message_read_header(reader, &field, message));
        const uint32_t kind = message_find_kind(field.number);
        if (kind == PEN_MESSAGE_KIND_COUNT) continue;
        if (found != PEN_MESSAGE_KIND_COUNT) {
            return pen_protobuf_error(reader, "a message that is %s and %s",
                                      message_shapes[found].name, message_shapes[kind].name);
        }
        found = kind;
        pen_protobuf_reader body;
        PEN_TRY(pen_protobuf_open(reader, &field, &body));
        PEN_TRY(message_read_body(&body, &message_shapes[kind], message));
    }
    if (message->protocol != PEN_PROTOCOL_VERSION) {
        const uint32_t protocol = message->protocol;
        *message = (pen_message){.protocol = protocol};
        return pen_error(PEN_UNSUPPORTED, "a message of protocol version %u, here is %u", protocol,
                         PEN_PROTOCOL_VERSION);
    }
    if (found == PEN_MESSAGE_KIND_COUNT) {
        return pen_protobuf_error(reader, "a message that says nothing");
    }
    message->kind = (pen_message_kind)found;
    return PEN_OK;
}

pen_status pen_message_decode(const void *bytes, size_t length, pen_message *out_message) {
    pen_protobuf_reader reader;
    pen_protobuf_init(&reader, bytes, length);
    *out_message = (pen_message){0};
    return pen_status_add_context(message_read(&reader, out_message),
                                  "while reading a control message of %zu bytes", length);
}
