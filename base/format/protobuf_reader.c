#include "base/format/protobuf_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are read as they lie");

#define PROTOBUF_FIELD_NUMBER_LIMIT (1u << 29)

pen_status pen_protobuf_error_at(const char *file, int line, const pen_protobuf_reader *reader,
                                 const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return pen_error_at(file, line, PEN_CORRUPT, "at byte %zu: %s", pen_protobuf_position(reader),
                        text);
}

void pen_protobuf_init(pen_protobuf_reader *reader, const void *bytes, size_t length) {
    static const uint8_t nothing[1];
    const uint8_t *first = bytes != NULL ? bytes : nothing; // a field left out has no address
    *reader = (pen_protobuf_reader){.origin = first, .cursor = first, .end = first + length};
}

void pen_protobuf_init_pieces(pen_protobuf_reader *reader, const pen_protobuf_piece *pieces,
                              uint64_t length) {
    pen_protobuf_init(reader, NULL, 0);
    reader->next = pieces;
    reader->beyond = length;
}

size_t pen_protobuf_position(const pen_protobuf_reader *reader) {
    return (size_t)reader->before + (size_t)(reader->cursor - reader->origin);
}

static size_t protobuf_left(const pen_protobuf_reader *reader) {
    return (size_t)(reader->end - reader->cursor) + (size_t)reader->beyond;
}

// Whether a byte is left; goes on to the piece that has it.
static bool protobuf_has_byte(pen_protobuf_reader *reader) {
    while (reader->cursor == reader->end) {
        if (reader->beyond == 0) return false;
        const pen_protobuf_piece *piece = reader->next++;
        const uint64_t here = piece->count < reader->beyond ? piece->count : reader->beyond;
        if (here == 0) continue;
        reader->before += (uint64_t)(reader->end - reader->origin);
        reader->beyond -= here;
        reader->origin = piece->bytes;
        reader->cursor = piece->bytes;
        reader->end = piece->bytes + here;
    }
    return true;
}

// One byte is by far the most frequent case and comes first; the loop ends at ten bytes, whatever
// the data are.
static pen_status protobuf_varint(pen_protobuf_reader *reader, uint64_t *out_integer) {
    uint64_t integer = 0;
    if (reader->cursor != reader->end && *reader->cursor < 0x80) { // most are small
        *out_integer = *reader->cursor++;
        return PEN_OK;
    }
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (reader->cursor == reader->end && !protobuf_has_byte(reader)) {
            return pen_protobuf_error(reader, "the data ends inside a number");
        }
        const uint8_t byte = *reader->cursor++;
        if (shift == 63 && byte > 1) return pen_protobuf_error(reader, "a number is over 64 bits");
        integer |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *out_integer = integer;
            return PEN_OK;
        }
    }
    return pen_protobuf_error(reader, "a number is over ten bytes long");
}

static pen_status protobuf_fixed(pen_protobuf_reader *reader, size_t bytes, uint64_t *out_integer) {
    if (protobuf_left(reader) < bytes) {
        return pen_protobuf_error(reader, "a number of %zu bytes, but only %zu are left", bytes,
                                  protobuf_left(reader));
    }
    uint8_t number[8] = {0};
    for (size_t i = 0; i < bytes && protobuf_has_byte(reader); i++) {
        number[i] = *reader->cursor++;
    }
    memcpy(out_integer, number, sizeof number);
    return PEN_OK;
}

// Data may lie in several pieces: the field remembers where it begins, and the cursor moves behind
// it.
static pen_status protobuf_span(pen_protobuf_reader *reader, pen_protobuf_field *field) {
    uint64_t length;
    PEN_TRY(protobuf_varint(reader, &length));
    if (length > protobuf_left(reader)) {
        return pen_protobuf_error(reader, "field %u has %llu bytes, but only %zu are left",
                                  field->number, (unsigned long long)length, protobuf_left(reader));
    }
    if (length > 0 && !protobuf_has_byte(reader)) PEN_NEVER("bytes are left");
    const size_t here = (size_t)(reader->end - reader->cursor);
    field->bytes = reader->cursor;
    field->length = (size_t)length;
    field->position = pen_protobuf_position(reader);
    field->first = length < here ? (size_t)length : here;
    field->next = reader->next;
    reader->cursor += field->first;
    for (length -= field->first; length > 0;) {
        if (!protobuf_has_byte(reader)) PEN_NEVER("bytes are left");
        const size_t more = (size_t)(reader->end - reader->cursor);
        const size_t taken = length < more ? (size_t)length : more;
        reader->cursor += taken;
        length -= taken;
    }
    return PEN_OK;
}

// A reader of the bytes of a field that `reader` just passed.
static pen_protobuf_reader protobuf_within(const pen_protobuf_reader *reader,
                                           const pen_protobuf_field *field) {
    return (pen_protobuf_reader){.origin = field->bytes,
                                 .cursor = field->bytes,
                                 .end = field->bytes + field->first,
                                 .next = field->next,
                                 .beyond = field->length - field->first,
                                 .before = field->position,
                                 .depth = reader->depth};
}

// The next field of a message. Groups (wire types 3 and 4) are refused: they are deprecated, and no
// format that is read here has them.
pen_status pen_protobuf_next(pen_protobuf_reader *reader, pen_protobuf_field *out_field) {
    *out_field = (pen_protobuf_field){0};
    if (!protobuf_has_byte(reader)) return PEN_OK;
    uint64_t key;
    PEN_TRY(protobuf_varint(reader, &key));
    if (key >> 3 == 0 || key >> 3 >= PROTOBUF_FIELD_NUMBER_LIMIT) {
        return pen_protobuf_error(reader, "field number %llu is not possible",
                                  (unsigned long long)(key >> 3));
    }
    out_field->number = (uint32_t)(key >> 3);
    out_field->wire = (pen_protobuf_wire)(key & 7);
    switch (key & 7) {
    case PEN_PROTOBUF_VARINT:
        return protobuf_varint(reader, &out_field->integer);
    case PEN_PROTOBUF_FIXED64:
        return protobuf_fixed(reader, 8, &out_field->integer);
    case PEN_PROTOBUF_BYTES:
        return protobuf_span(reader, out_field);
    case PEN_PROTOBUF_FIXED32:
        return protobuf_fixed(reader, 4, &out_field->integer);
    default:
        return pen_protobuf_error(reader, "field %u has wire type %u; 0, 1, 2 and 5 are possible",
                                  out_field->number, (unsigned)(key & 7));
    }
}

pen_status pen_protobuf_count(const pen_protobuf_reader *reader, uint32_t limit,
                              uint32_t *out_counts) {
    pen_protobuf_reader walk = *reader;
    memset(out_counts, 0, limit * sizeof *out_counts);
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&walk, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number >= limit) continue;
        if (out_counts[field.number] == PEN_VALUE_COUNT_LIMIT) {
            return pen_protobuf_error(&walk, "field %u occurs more than %u times", field.number,
                                      PEN_VALUE_COUNT_LIMIT);
        }
        out_counts[field.number] += 1;
    }
}

static pen_status protobuf_expect(const pen_protobuf_reader *reader,
                                  const pen_protobuf_field *field, pen_protobuf_wire wire) {
    if (field->wire == wire) return PEN_OK;
    return pen_protobuf_error(reader, "field %u has wire type %d, expected %d", field->number,
                              (int)field->wire, (int)wire);
}

pen_status pen_protobuf_open(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                             pen_protobuf_reader *out_message) {
    PEN_TRY(protobuf_expect(reader, field, PEN_PROTOBUF_BYTES));
    if (reader->depth + 1 >= PEN_NESTING_LIMIT) {
        return pen_protobuf_error(reader, "messages nest deeper than %d", PEN_NESTING_LIMIT);
    }
    *out_message = protobuf_within(reader, field);
    out_message->depth += 1;
    return PEN_OK;
}

pen_status pen_protobuf_next_message(pen_protobuf_reader *reader, uint32_t number,
                                     pen_protobuf_reader *out_message, bool *out_more) {
    pen_protobuf_field field;
    do {
        PEN_TRY(pen_protobuf_next(reader, &field));
    } while (field.number != 0 && field.number != number);
    *out_more = field.number == number;
    return *out_more ? pen_protobuf_open(reader, &field, out_message) : PEN_OK;
}

pen_status pen_protobuf_int(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                            int64_t *out_integer) {
    PEN_TRY(protobuf_expect(reader, field, PEN_PROTOBUF_VARINT));
    memcpy(out_integer, &field->integer, sizeof *out_integer);
    return PEN_OK;
}

pen_status pen_protobuf_float(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                              float *out_number) {
    PEN_TRY(protobuf_expect(reader, field, PEN_PROTOBUF_FIXED32));
    memcpy(out_number, &field->integer, sizeof *out_number);
    return PEN_OK;
}

pen_status pen_protobuf_bytes(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                              const uint8_t **out_bytes, size_t *out_length) {
    PEN_TRY(protobuf_expect(reader, field, PEN_PROTOBUF_BYTES));
    *out_bytes = field->bytes;
    *out_length = field->length;
    return PEN_OK;
}

pen_status pen_protobuf_name(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                             pen_arena *arena, const char **out_name) {
    PEN_TRY(protobuf_expect(reader, field, PEN_PROTOBUF_BYTES));
    if (field->length > PEN_NAME_BYTES_LIMIT) {
        return pen_protobuf_error(reader, "a name has %zu bytes, at most %d are possible",
                                  field->length, PEN_NAME_BYTES_LIMIT);
    }
    if (memchr(field->bytes, 0, field->length) != NULL) {
        return pen_protobuf_error(reader, "a name has a zero byte in it");
    }
    return pen_arena_copy_text(arena, (const char *)field->bytes, field->length, out_name);
}

pen_status pen_protobuf_scalars_open(const pen_protobuf_reader *reader,
                                     const pen_protobuf_field *field, pen_protobuf_wire wire,
                                     pen_protobuf_scalars *out_scalars) {
    *out_scalars = (pen_protobuf_scalars){.reader = *reader, .wire = wire};
    if (field->wire != PEN_PROTOBUF_BYTES) {
        PEN_TRY(protobuf_expect(reader, field, wire));
        out_scalars->is_single = true;
        out_scalars->single = field->integer;
        return PEN_OK;
    }
    out_scalars->reader = protobuf_within(reader, field);
    return PEN_OK;
}

// How many numbers a packed field has, without reading them: the caller allocates once. Of varints
// the last byte alone has its high bit clear.
pen_status pen_protobuf_scalars_count(const pen_protobuf_scalars *scalars, uint64_t *out_count) {
    const size_t bytes = protobuf_left(&scalars->reader);
    if (scalars->is_single) {
        *out_count = 1;
        return PEN_OK;
    }
    if (scalars->wire == PEN_PROTOBUF_VARINT) {
        uint64_t count = 0;
        for (pen_protobuf_reader walk = scalars->reader; protobuf_has_byte(&walk);) {
            count += (*walk.cursor++ & 0x80) == 0; // the last byte of a number
        }
        *out_count = count;
        return PEN_OK;
    }
    const size_t size = scalars->wire == PEN_PROTOBUF_FIXED64 ? 8 : 4;
    if (bytes % size != 0) {
        return pen_protobuf_error(&scalars->reader,
                                  "%zu bytes are no whole count of %zu-byte "
                                  "numbers",
                                  bytes, size);
    }
    *out_count = bytes / size;
    return PEN_OK;
}

pen_status pen_protobuf_scalars_next(pen_protobuf_scalars *scalars, uint64_t *out_bits,
                                     bool *out_more) {
    pen_protobuf_reader *reader = &scalars->reader;
    if (scalars->is_single) {
        *out_bits = scalars->single;
        scalars->is_single = false;
        reader->cursor = reader->end;
        reader->beyond = 0;
        *out_more = true;
        return PEN_OK;
    }
    *out_more = protobuf_has_byte(reader);
    if (!*out_more) return PEN_OK;
    if (scalars->wire == PEN_PROTOBUF_VARINT) return protobuf_varint(reader, out_bits);
    return protobuf_fixed(reader, scalars->wire == PEN_PROTOBUF_FIXED64 ? 8 : 4, out_bits);
}
