// What a middleman changes: messages stay protobuf, heads of frames stay heads, and numbers become
// those that programs think least of.
#include <string.h>

#include "base/format/protobuf_reader.h"
#include "base/integer.h"
#include "base/thread.h"
#include "scheduler/transport/wire_format.h"
#include "tests/fuzz/fuzz.h"
#include "tests/hostile/middleman_inside.h"

#define CHANGE_FIELDS 64
#define CHANGE_FRAME_BYTES ((uint64_t)8 << 20) // longest that a frame becomes

// A number near one that limits are made of, or near what it was.
static uint64_t change_number(chance *c, uint64_t was) {
    static const uint64_t edges[] = {
        0, 1, 2, 3, 4095, 4096, UINT16_MAX, 1u << 20, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    switch (chance_below(c, 4)) {
    case 0:
        return was + chance_between(c, 1, 3);
    case 1:
        return was - chance_between(c, 1, 3);
    case 2:
        return was ^ (uint64_t)1 << chance_below(c, 64);
    default:
        return edges[chance_below(c, sizeof edges / sizeof *edges)];
    }
}

static size_t change_put_varint(uint8_t *at, uint64_t number) {
    size_t count = 0;
    for (; number > 127; number >>= 7) {
        at[count++] = (uint8_t)(number | 0x80);
    }
    at[count++] = (uint8_t)number;
    return count;
}

// A varint or fixed number among the fields of `bytes`, written anew. Returns the new length, 0:
// there is none.
static size_t change_a_number(chance *c, uint8_t *bytes, size_t length, size_t limit) {
    size_t starts[CHANGE_FIELDS], ends[CHANGE_FIELDS], tags[CHANGE_FIELDS];
    pen_protobuf_field fields[CHANGE_FIELDS];
    pen_protobuf_reader reader;
    uint32_t count = 0;
    uint8_t text[10];
    pen_protobuf_init(&reader, bytes, length);
    while (count < CHANGE_FIELDS) {
        starts[count] = (size_t)(reader.cursor - bytes);
        const pen_status status = pen_protobuf_next(&reader, &fields[count]);
        if (status != PEN_OK) {
            pen_status_ignore(status, "these bytes are no message");
            return 0;
        }
        if (fields[count].number == 0) break;
        ends[count] = (size_t)(reader.cursor - bytes);
        for (tags[count] = starts[count]; (bytes[tags[count]] & 0x80) != 0;) {
            tags[count]++;
        }
        count += fields[count].wire != PEN_PROTOBUF_BYTES;
    }
    if (count == 0) return 0;
    const uint32_t i = (uint32_t)chance_below(c, count);
    const size_t from = tags[i] + 1, had = ends[i] - from;
    const uint64_t number = change_number(c, fields[i].integer);
    size_t size = had;
    if (fields[i].wire == PEN_PROTOBUF_VARINT) {
        size = change_put_varint(text, number);
    } else {
        memcpy(text, &number, had);
    }
    if (length - had + size > limit) return 0;
    memmove(bytes + from + size, bytes + ends[i], length - ends[i]);
    memcpy(bytes + from, text, size);
    return length - had + size;
}

static pen_mutex change_lock = {PTHREAD_MUTEX_INITIALIZER};
static chance *change_chance; // guarded by change_lock

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t limit);

// How fuzz_change_message has the inside of a message changed: as libFuzzer's, which is not here.
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t limit) {
    chance *c = change_chance;
    if (length > 0 && chance_below(c, 4) != 0) {
        const size_t changed = change_a_number(c, bytes, length, limit);
        if (changed != 0) return changed;
    }
    switch (length == 0 ? 0 : chance_below(c, 4)) {
    case 0: { // longer
        const size_t more = chance_below(c, 8) + 1;
        if (length + more > limit) return length;
        for (size_t i = 0; i < more; i++) {
            bytes[length + i] = (uint8_t)chance_next(c);
        }
        return length + more;
    }
    case 1:
        return chance_below(c, length + 1); // shorter
    default:
        bytes[chance_below(c, length)] ^= (uint8_t)(1u << chance_below(c, 8));
        return length;
    }
}

// The folder that a message has workers write to, "": it has none.
static void change_find_folder(const uint8_t *bytes, uint64_t count, char *out_folder) {
    pen_message message;
    const pen_status status = pen_message_decode(bytes, (size_t)count, &message);
    const bool has_folder = status == PEN_OK && message.kind == PEN_MESSAGE_SNAPSHOT;
    pen_status_ignore(status, "whoever receives it says so, too");
    out_folder[0] = '\0';
    if (has_folder) memcpy(out_folder, message.text, sizeof message.text);
}

// The message in an envelope. False: there is none.
static bool change_open(const uint8_t *bytes, uint64_t count, pen_wire_envelope *out_envelope) {
    const pen_wire_piece piece = {bytes, count};
    const pen_status status = pen_wire_read((pen_wire_pieces){&piece, 1}, out_envelope);
    const bool has_message = status == PEN_OK && out_envelope->kind == PEN_WIRE_MESSAGE;
    pen_status_ignore(status, "whoever receives it says so, too");
    return has_message;
}

static void change_find(const uint8_t *bytes, uint64_t count, bool is_envelope, char *out_folder) {
    pen_wire_envelope envelope;
    out_folder[0] = '\0';
    if (!is_envelope) {
        change_find_folder(bytes, count, out_folder);
    } else if (change_open(bytes, count, &envelope)) {
        change_find_folder(bytes + envelope.message.offset, envelope.message.count, out_folder);
    }
}

// The folder that a worker is told to write to stays: a test writes nowhere else.
static uint64_t change_any(chance *c, const void *bytes, uint64_t count, uint8_t *out_bytes,
                           uint64_t limit, bool is_envelope) {
    char was[PEN_MESSAGE_TEXT_BYTES], is[PEN_MESSAGE_TEXT_BYTES];
    memcpy(out_bytes, bytes, count);
    const unsigned seed = (unsigned)chance_next(c);
    pen_mutex_lock(&change_lock);
    change_chance = c;
    const uint64_t length = fuzz_change_message(out_bytes, (size_t)count, (size_t)limit, seed);
    pen_mutex_unlock(&change_lock);
    change_find(out_bytes, length, is_envelope, is);
    change_find(bytes, count, is_envelope, was);
    if (is[0] == '\0' || strcmp(was, is) == 0) return length;
    memcpy(out_bytes, bytes, count);
    return count;
}

uint64_t middleman_change_message(chance *c, const void *bytes, uint64_t count, uint8_t *out_bytes,
                                  uint64_t limit) {
    return change_any(c, bytes, count, out_bytes, limit, false);
}

uint64_t middleman_change_envelope(chance *c, const void *bytes, uint64_t count, uint8_t *out_bytes,
                                   uint64_t limit) {
    return change_any(c, bytes, count, out_bytes, limit, true);
}

void middleman_change_frame(chance *c, pen_frame *frame) {
    uint64_t *const longs[] = {&frame->generation, &frame->incarnation, &frame->step,
                               &frame->sequence, &frame->offset};
    uint32_t *const shorts[] = {&frame->form, &frame->microbatch, &frame->channel};
    pen_shape *shape = &frame->type.shape;
    switch (chance_below(c, 6)) {
    case 0:
    case 1: {
        uint64_t *at = longs[chance_below(c, sizeof longs / sizeof *longs)];
        *at = change_number(c, *at);
        break;
    }
    case 2: {
        uint32_t *at = shorts[chance_below(c, sizeof shorts / sizeof *shorts)];
        *at = (uint32_t)change_number(c, *at);
        break;
    }
    case 3:
        frame->bytes = pen_min_u64(change_number(c, frame->bytes), CHANGE_FRAME_BYTES);
        break;
    case 4:
        frame->kind = (pen_frame_kind)chance_below(c, PEN_FRAME_BLOB + 1);
        break;
    default:
        frame->type.element = (pen_element_type)chance_below(c, PEN_ELEMENT_TYPE_COUNT);
        if (shape->rank > 0) {
            const int64_t dim = (int64_t)(change_number(c, (uint64_t)shape->dims[0]) >> 1);
            shape->dims[chance_below(c, shape->rank)] = dim;
        }
        break;
    }
}

void middleman_change_payload(chance *c, uint8_t *bytes, uint64_t count) {
    const uint64_t changes = count == 0 ? 0 : chance_between(c, 1, 4);
    for (uint64_t i = 0; i < changes; i++) {
        bytes[chance_below(c, count)] ^= (uint8_t)(1u << chance_below(c, 8));
    }
}

void middleman_change_introduction(chance *c, pen_introduction *who) {
    switch (chance_below(c, 5)) {
    case 0:
        who->peer = (uint32_t)change_number(c, who->peer) % PEN_TRANSPORT_PEER_LIMIT;
        break;
    case 1:
        who->generation = change_number(c, who->generation);
        break;
    case 2:
        who->incarnation = change_number(c, who->incarnation);
        break;
    case 3:
        who->level = (uint32_t)change_number(c, who->level);
        break;
    default:
        who->job = "another";
        break;
    }
}
