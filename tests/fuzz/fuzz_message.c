// Changes of protobuf messages for fuzzers: what fuzz.h says of fuzz_change_message.
#include <string.h>

#include "base/format/protobuf_reader.h"
#include "base/random.h"
#include "tests/fuzz/fuzz.h"

#define MESSAGE_DEPTH_LIMIT 12
#define MESSAGE_FIELDS_LIMIT 512 // of one message that are looked at
#define MESSAGE_BYTES_LIMIT (1u << 20)

// libFuzzer's own changes of bytes; not there in readers_test, which changes nothing this way.
extern size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t limit) __attribute__((weak));

// A field in its message: its tag, its length where it has one, its contents.
typedef struct message_field {
    size_t start, contents, end;
    bool is_bytes;
} message_field;

// The contents of a message and of those around it, outermost first.
typedef struct message_path {
    size_t starts[MESSAGE_DEPTH_LIMIT], ends[MESSAGE_DEPTH_LIMIT];
    size_t tags[MESSAGE_DEPTH_LIMIT]; // where the field begins that holds it
    uint32_t depth;
} message_path;

typedef struct message_chance {
    pen_random_key key;
    uint64_t drawn;
} message_chance;

static uint32_t message_draw(message_chance *chance, uint32_t count) {
    return (uint32_t)pen_random_below(chance->key, chance->drawn++, count);
}

// The fields of bytes[from, to); 0 when they are no message.
static uint32_t message_fields(const uint8_t *bytes, size_t from, size_t to,
                               message_field *out_fields) {
    pen_protobuf_reader reader;
    pen_protobuf_field field;
    uint32_t count = 0;
    pen_protobuf_init(&reader, bytes + from, to - from);
    while (count < MESSAGE_FIELDS_LIMIT) {
        const size_t start = (size_t)(reader.cursor - bytes);
        const pen_status status = pen_protobuf_next(&reader, &field);
        if (status != PEN_OK) {
            pen_status_ignore(status, "these bytes are something else");
            return 0;
        }
        if (field.number == 0) break;
        const size_t end = (size_t)(reader.cursor - bytes);
        const bool is_bytes = field.wire == PEN_PROTOBUF_BYTES;
        out_fields[count++] =
            (message_field){start, is_bytes ? end - field.length : start, end, is_bytes};
    }
    return count;
}

static size_t message_put_varint(uint8_t *at, uint64_t number) {
    size_t count = 0;
    for (; number > 127; number >>= 7) {
        at[count++] = (uint8_t)(number | 0x80);
    }
    at[count++] = (uint8_t)number;
    return count;
}

// Puts `piece` in the place of bytes[from, to).
static size_t message_replace(uint8_t *bytes, size_t length, size_t from, size_t to,
                              const uint8_t *piece, size_t count) {
    memmove(bytes + from + count, bytes + to, length - to);
    if (count > 0) memmove(bytes + from, piece, count);
    return length - (to - from) + count;
}

// The length of each message of the path, after the innermost grew by `grown`.
static size_t message_repair(uint8_t *bytes, size_t length, const message_path *path,
                             ptrdiff_t grown) {
    for (uint32_t d = path->depth; d-- > 1;) {
        uint8_t text[10];
        size_t at = path->tags[d];
        while ((bytes[at] & 0x80) != 0) {
            at++; // the tag
        }
        at++;
        const size_t contents = (size_t)((ptrdiff_t)(path->ends[d] - path->starts[d]) + grown);
        const size_t count = message_put_varint(text, contents);
        const size_t had = path->starts[d] - at;
        length = message_replace(bytes, length, at, path->starts[d], text, count);
        grown += (ptrdiff_t)count - (ptrdiff_t)had;
    }
    return length;
}

// Goes down into fields until chance, or what is no message, ends it.
static uint32_t message_descend(const uint8_t *bytes, message_chance *chance, message_path *path,
                                message_field *fields) {
    uint32_t count = message_fields(bytes, path->starts[0], path->ends[0], fields);
    while (count > 0 && path->depth < MESSAGE_DEPTH_LIMIT) {
        static message_field inner[MESSAGE_FIELDS_LIMIT];
        const message_field *field = &fields[message_draw(chance, count)];
        if (!field->is_bytes || message_draw(chance, 6) == 0) break;
        const uint32_t d = path->depth;
        path->starts[d] = field->contents;
        path->ends[d] = field->end;
        path->tags[d] = field->start;
        path->depth++;
        count = message_fields(bytes, field->contents, field->end, inner);
        memcpy(fields, inner, count * sizeof *fields);
    }
    return count;
}

// Doubles, drops or moves a field of the innermost message, or takes one of another's place.
static size_t message_rearrange(uint8_t *bytes, size_t length, size_t limit, message_chance *chance,
                                const message_field *fields, uint32_t count) {
    static uint8_t piece[MESSAGE_BYTES_LIMIT];
    const message_field *from = &fields[message_draw(chance, count)];
    const message_field *to = &fields[message_draw(chance, count)];
    const size_t size = from->end - from->start;
    memcpy(piece, bytes + from->start, size);
    switch (message_draw(chance, 3)) {
    case 0: // drop
        return message_replace(bytes, length, from->start, from->end, NULL, 0);
    case 1: // once more, elsewhere
        if (length + size > limit) return length;
        return message_replace(bytes, length, to->start, to->start, piece, size);
    default: // in the place of another
        if (length + size - (to->end - to->start) > limit) return length;
        return message_replace(bytes, length, to->start, to->end, piece, size);
    }
}

size_t fuzz_change_message(uint8_t *bytes, size_t length, size_t limit, unsigned seed) {
    static message_field fields[MESSAGE_FIELDS_LIMIT];
    static uint8_t piece[MESSAGE_BYTES_LIMIT];
    static uint8_t work[MESSAGE_BYTES_LIMIT];
    const size_t room = limit < MESSAGE_BYTES_LIMIT / 2 ? limit : MESSAGE_BYTES_LIMIT / 2;
    message_chance chance = {.key = {seed, 0}};
    if (length >= room || message_draw(&chance, 8) == 0) {
        return LLVMFuzzerMutate(bytes, length, limit); // what is no message is tried as well
    }
    message_path path = {.starts = {0}, .ends = {length}, .depth = 1};
    memcpy(work, bytes, length);
    const uint32_t count = message_descend(work, &chance, &path, fields);
    const size_t from = path.starts[path.depth - 1], to = path.ends[path.depth - 1];
    size_t grown;
    if (count > 0 && message_draw(&chance, 3) == 0) {
        grown = message_rearrange(work, length, room, &chance, fields, count);
    } else {
        memcpy(piece, work + from, to - from);
        const size_t size = LLVMFuzzerMutate(piece, to - from, room - length + (to - from));
        grown = message_replace(work, length, from, to, piece, size);
    }
    grown = message_repair(work, grown, &path, (ptrdiff_t)grown - (ptrdiff_t)length);
    if (grown > limit || grown == 0) return LLVMFuzzerMutate(bytes, length, limit);
    memcpy(bytes, work, grown);
    return grown;
}
