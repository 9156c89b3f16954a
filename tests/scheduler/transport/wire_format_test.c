// Envelopes written and read again, however they are cut into pieces; and wrong ones.
#include "scheduler/transport/wire_format.h"

#include "base/limits.h"
#include "base/random.h"
#include "scheduler/transport/wire_code.h"
#include "tests/support/check.h"
#include "tests/support/record_bytes.h"

#define MIB ((uint64_t)1 << 20)

typedef struct envelope_bytes {
    uint8_t bytes[2048];
    size_t count;
} envelope_bytes;

// The pieces of `e`, cut at random; each lies in memory of its own, so that reading past one is
// seen by the address sanitizer.
static size_t cut(const envelope_bytes *e, pen_random_key key, uint64_t *draw,
                  pen_wire_piece *out_pieces) {
    size_t count = 0;
    for (size_t at = 0; at < e->count || count == 0; count++) {
        const size_t left = e->count - at;
        size_t here = pen_random_below(key, (*draw)++, 9);
        if (here > left || pen_random_below(key, (*draw)++, 4) == 0) here = left;
        uint8_t *memory = malloc(here + 1);
        memcpy(memory, e->bytes + at, here);
        memory = realloc(memory, here != 0 ? here : 1);
        out_pieces[count] = (pen_wire_piece){memory, here};
        at += here;
    }
    return count;
}

static void free_pieces(pen_wire_piece *pieces, size_t count) {
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)pieces[i].bytes);
}

static pen_frame random_frame(pen_random_key key, uint64_t *draw) {
    pen_frame frame = {
        .kind = (pen_frame_kind)pen_random_below(key, (*draw)++, 3),
        .generation = pen_random_below(key, (*draw)++, UINT64_MAX),
        .incarnation = pen_random_below(key, (*draw)++, UINT64_MAX),
        .step = pen_random_below(key, (*draw)++, 300),
        .form = (uint32_t)pen_random_below(key, (*draw)++, 5),
        .microbatch = (uint32_t)pen_random_below(key, (*draw)++, UINT32_MAX),
        .channel = (uint32_t)pen_random_below(key, (*draw)++, 1000),
        .layout = (uint16_t)pen_random_below(key, (*draw)++, UINT16_MAX),
        .sequence = pen_random_below(key, (*draw)++, UINT64_MAX),
        .offset = pen_random_below(key, (*draw)++, UINT64_MAX),
        .bytes = pen_random_below(key, (*draw)++, PEN_TENSOR_BYTES_LIMIT),
        .type.element = (pen_element_type)pen_random_below(key, (*draw)++, PEN_ELEMENT_TYPE_COUNT),
        .type.shape.rank = (uint32_t)pen_random_below(key, (*draw)++, PEN_RANK_LIMIT + 1),
    };
    for (uint32_t i = 0; i < frame.type.shape.rank; i++) {
        frame.type.shape.dims[i] = (int64_t)(pen_random_below(key, (*draw)++, UINT64_MAX) >> 1);
    }
    return frame;
}

static void check_frame(const pen_frame *a, const pen_frame *b) {
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->generation, b->generation);
    assert_int_equal(a->incarnation, b->incarnation);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->form, b->form);
    assert_int_equal(a->microbatch, b->microbatch);
    assert_int_equal(a->channel, b->channel);
    assert_int_equal(a->layout, b->layout);
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->bytes, b->bytes);
    assert_true(pen_tensor_type_equal(&a->type, &b->type));
}

static void chunks_come_back(void **state) {
    (void)state;
    const pen_random_key key = {5, pen_random_stream("wire", 0, 0)};
    uint64_t draw = 0;
    for (int trial = 0; trial < 2000; trial++) {
        envelope_bytes e;
        pen_wire_envelope read;
        pen_wire_piece pieces[2100];
        uint8_t payload[64], copy[64];
        pen_frame frame = random_frame(key, &draw);
        frame.generation %= PEN_GENERATION_LIMIT + 1;
        frame.sequence %= PEN_COUNTER_LIMIT + 1;
        frame.offset %= PEN_COUNTER_LIMIT + 1;
        const bool has_frame = trial % 3 != 0;
        const size_t count = pen_random_below(key, draw++, 64);
        const uint32_t checksum = (uint32_t)pen_random_below(key, draw++, UINT32_MAX);
        for (size_t i = 0; i < count; i++)
            payload[i] = (uint8_t)pen_random_below(key, draw++, 256);
        e.count =
            pen_wire_write_chunk(has_frame ? &frame : NULL, 7 * MIB, checksum, count, e.bytes);
        assert_true(e.count <= PEN_WIRE_HEAD_LIMIT);
        memcpy(e.bytes + e.count, payload, count);
        e.count += count;
        const size_t piece_count = cut(&e, key, &draw, pieces);
        const pen_wire_pieces all = {pieces, piece_count};
        CHECK_OK(pen_wire_read(all, &read));
        assert_int_equal(read.kind, PEN_WIRE_CHUNK);
        assert_int_equal(read.chunk.has_frame, has_frame);
        if (has_frame) check_frame(&read.chunk.frame, &frame);
        assert_int_equal(read.chunk.position, 7 * MIB);
        assert_int_equal(read.chunk.checksum, checksum);
        assert_int_equal(read.chunk.payload.count, count);
        pen_wire_copy(all, read.chunk.payload, copy);
        assert_memory_equal(copy, payload, count);
        const uint8_t *there = pen_wire_find(all, read.chunk.payload);
        if (there != NULL) assert_memory_equal(there, payload, count);
        free_pieces(pieces, piece_count);
    }
}

// Others count on from them: one more must be a number, too.
static void counters_near_their_end_are_refused(void **state) {
    (void)state;
    const pen_frame good = {.kind = PEN_FRAME_VALUE, .generation = PEN_GENERATION_LIMIT};
    pen_frame wrong[4] = {good, good, good, good};
    wrong[0].generation = UINT64_MAX;
    wrong[1].step = UINT64_MAX;
    wrong[2].sequence = UINT64_MAX;
    wrong[3].offset = UINT64_MAX;
    for (size_t i = 0; i < 5; i++) {
        envelope_bytes e;
        pen_wire_envelope read;
        e.count = pen_wire_write_chunk(i == 4 ? &good : &wrong[i], 0, 0, 0, e.bytes);
        const pen_wire_piece piece = {e.bytes, e.count};
        const pen_status status = pen_wire_read((pen_wire_pieces){&piece, 1}, &read);
        if (i == 4) CHECK_OK(status);
        if (i < 4) CHECK_ERROR(status, PEN_CORRUPT, "is 18446744073709551615, at most");
    }
}

static void heads_fit(void **state) {
    (void)state;
    uint8_t head[PEN_WIRE_HEAD_LIMIT];
    pen_frame frame = {PEN_FRAME_BLOB, UINT64_MAX, UINT64_MAX,
                       UINT64_MAX,     UINT32_MAX, UINT32_MAX,
                       UINT32_MAX,     UINT16_MAX, {PEN_BOOL, {PEN_RANK_LIMIT, {0}}},
                       UINT64_MAX,     UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < PEN_RANK_LIMIT; i++)
        frame.type.shape.dims[i] = -1; // ten bytes each
    assert_true(pen_wire_write_chunk(&frame, UINT64_MAX, UINT32_MAX, UINT64_MAX, head) <=
                PEN_WIRE_HEAD_LIMIT);
    const pen_introduction self = {.peer = UINT32_MAX,
                                   .generation = UINT64_MAX,
                                   .incarnation = UINT64_MAX,
                                   .level = UINT32_MAX,
                                   .shares_memory = true};
    const pen_wire_stream most = {
        UINT64_MAX, UINT64_MAX, {{{UINT64_MAX, UINT32_MAX}, {UINT64_MAX, UINT32_MAX}}}};
    const pen_wire_ring far = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    assert_true(pen_wire_write_numbers(UINT64_MAX, &most.received, head) <= PEN_WIRE_HEAD_LIMIT);
    assert_true(pen_wire_write_introduction(&self, UINT32_MAX, &most, &far, SIZE_MAX / 2, head) <=
                PEN_WIRE_HEAD_LIMIT);
}

static void others_come_back(void **state) {
    (void)state;
    envelope_bytes e;
    pen_wire_envelope read;
    char text[64];
    const pen_wire_piece piece = {e.bytes, 0};
    pen_wire_piece whole = piece;
    const pen_wire_pieces all = {&whole, 1};
    const pen_introduction self = {.job = "resnet",
                                   .peer = 3,
                                   .generation = 8,
                                   .incarnation = 0x1122334455667788,
                                   .shares_memory = true};
    static const pen_wire_stream stream = {
        .session = 0x99aabbccddeeff00,
        .resumes = 7,
        .received.lanes = {
            [PEN_LINK_MESSAGES] = {.number = 300}, [PEN_LINK_FRAMES] = {.number = 5, .pieces = 6}}};
    static const pen_wire_ring ring = {.host = 11, .socket = 12, .token = 0xfedcba9876543210};
    e.count = pen_wire_write_introduction(&self, 4, &stream, &ring, 6, e.bytes);
    memcpy(e.bytes + e.count, "resnet", 6);
    whole.count = e.count + 6;
    CHECK_OK(pen_wire_read(all, &read));
    assert_int_equal(read.kind, PEN_WIRE_INTRODUCTION);
    assert_int_equal(read.introduction.version, PEN_WIRE_VERSION);
    assert_memory_equal(&read.introduction.stream, &stream, sizeof stream);
    assert_memory_equal(&read.introduction.ring, &ring, sizeof ring);
    assert_false(read.has_ack);
    assert_int_equal(read.number, 0);
    pen_wire_envelope numbers;
    uint8_t head[PEN_WIRE_HEAD_LIMIT];
    const pen_wire_piece numbered = {head, pen_wire_write_numbers(12345, &stream.received, head)};
    CHECK_OK(pen_wire_read((pen_wire_pieces){&numbered, 1}, &numbers));
    assert_int_equal(numbers.kind, PEN_WIRE_NOTHING);
    assert_int_equal(numbers.number, 12345);
    assert_true(numbers.has_ack);
    assert_memory_equal(&numbers.ack, &stream.received, sizeof stream.received);
    assert_int_equal(read.introduction.peer, 3);
    assert_int_equal(read.introduction.callee, 4);
    assert_int_equal(read.introduction.generation, 8);
    assert_int_equal(read.introduction.incarnation, 0x1122334455667788);
    pen_wire_copy_text(all, read.introduction.job, text, sizeof text);
    assert_string_equal(text, "resnet");
    pen_wire_copy_text(all, read.introduction.job, text, 4);
    assert_string_equal(text, "res");

    e.count = pen_wire_write_farewell(PEN_CORRUPT, 7, e.bytes);
    memcpy(e.bytes + e.count, "bad\nsum", 7);
    whole.count = e.count + 7;
    CHECK_OK(pen_wire_read(all, &read));
    assert_int_equal(read.kind, PEN_WIRE_FAREWELL);
    assert_int_equal(pen_wire_code_read(read.farewell.code), PEN_CORRUPT);
    pen_wire_copy_text(all, read.farewell.reason, text, sizeof text);
    assert_string_equal(text, "bad sum"); // a line of a log stays a line

    e.count = pen_wire_write_message(0, e.bytes);
    whole.count = e.count;
    CHECK_OK(pen_wire_read(all, &read));
    assert_int_equal(read.kind, PEN_WIRE_MESSAGE);
    assert_int_equal(read.message.count, 0);
    whole.count = 0;
    CHECK_OK(pen_wire_read(all, &read));
    assert_int_equal(read.kind, PEN_WIRE_NOTHING);
}

static void codes_come_back(void **state) {
    (void)state;
    for (int code = PEN_CODE_OK; code <= PEN_INTERNAL; code++) {
        assert_int_equal(pen_wire_code_read(pen_wire_code((pen_status_code)code)), code);
    }
    assert_int_equal(pen_wire_code_read(16), PEN_INVALID_INPUT);
    assert_int_equal(pen_wire_code_read(999), PEN_UNAVAILABLE);
}

static pen_status read_text(const char *bytes, size_t count) {
    pen_wire_envelope read;
    const pen_wire_piece piece = {(const uint8_t *)bytes, count};
    return pen_wire_read((pen_wire_pieces){&piece, 1}, &read);
}
#define READ(text) read_text(text, sizeof text - 1)

static void wrong_ones_are_refused(void **state) {
    (void)state;
    CHECK_ERROR(READ("\x12"), PEN_CORRUPT, "ends inside a number");
    CHECK_ERROR(READ("\x12\x05ok"), PEN_CORRUPT, "field 2 has 5 bytes, but only 2 are left");
    CHECK_ERROR(READ("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), PEN_CORRUPT,
                "but only 0 are left");
    CHECK_ERROR(READ("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), PEN_CORRUPT, "64 bits");
    CHECK_ERROR(READ("\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"), PEN_CORRUPT, "64 bits");
    CHECK_ERROR(READ("\x02\x01x"), PEN_CORRUPT, "field number 0 is not possible");
    CHECK_ERROR(READ("\x13"), PEN_CORRUPT, "wire type"); // a group
    CHECK_ERROR(READ("\x10\x05"), PEN_CORRUPT, "field 2 (message) has wire type 0, expected 2");
    CHECK_ERROR(READ("\x1a\x04\x0a\x02\x08\x03"), PEN_CORRUPT,
                "field 1 (kind) is 3, at most 2 can be");
    CHECK_ERROR(READ("\x1a\x04\x0a\x02\x48\x0e"), PEN_CORRUPT,
                "field 9 (element) is 14, at most 13 can be");
    CHECK_ERROR(READ("\x1a\x0d\x0a\x0b\x52\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01"), PEN_CORRUPT,
                "field 10 (shape) has more than 8 items");
    CHECK_ERROR(READ("\x0a\x06\x08\x80\x80\x80\x80\x10"), PEN_CORRUPT,
                "field 1 (version) is 4294967296");
    // fields of a later version are stepped over
    CHECK_OK(READ("\x6a\x03xyz\x79"
                  "12345678"
                  "\x85\x01"
                  "1234"
                  "\x80\x02\x05\x12\x02hi"));
    char *large = calloc(1, PEN_WIRE_ENVELOPE_LIMIT + 1);
    CHECK_ERROR(read_text(large, PEN_WIRE_ENVELOPE_LIMIT + 1), PEN_CORRUPT, "too long");
    large[0] = 0x12; // a message of 1 MiB + 1
    large[1] = (char)0x81;
    large[2] = (char)0x80;
    large[3] = 0x40;
    CHECK_ERROR(read_text(large, MIB + 5), PEN_CORRUPT,
                "field 2 (message) has 1048577 bytes, at most 1048576 can be");
    large[1] = (char)0x80;
    CHECK_OK(read_text(large, MIB + 4));
    free(large);
}

static void heads_have_the_same_bytes_as_ever(void **state) {
    (void)state;
    const pen_random_key key = {5, pen_random_stream("wire", 1, 0)};
    pen_arena *arena = check_arena();
    pen_text text;
    uint8_t head[PEN_WIRE_HEAD_LIMIT];
    uint64_t draw = 0;
    pen_text_init(&text, arena);
    for (uint32_t i = 0; i < 12; i++) {
        const pen_frame frame = random_frame(key, &draw);
        record_bytes_add(&text, "chunk", head,
                         pen_wire_write_chunk(i % 4 == 3 ? NULL : &frame, i * MIB, i, i, head));
    }
    for (uint32_t i = 0; i < 3; i++) {
        const pen_introduction self = {.job = "resnet",
                                       .peer = 3 * i,
                                       .generation = 8 * i,
                                       .incarnation = 0x1122334455667788 * i};
        const pen_wire_stream stream = {
            .session = 0x99aabbccddeeff00 * i,
            .resumes = 7 * i,
            .received.lanes = {[PEN_LINK_MESSAGES] = {.number = 300 * i},
                               [PEN_LINK_FRAMES] = {.number = 5 * i, .pieces = 6 * i}}};
        const pen_wire_ring ring = {.host = 13 * i, .socket = 17 * i, .token = 19 * i};
        record_bytes_add(&text, "introduction", head,
                         pen_wire_write_introduction(&self, i, &stream, &ring, 6 * i, head));
        record_bytes_add(&text, "numbers", head,
                         pen_wire_write_numbers(9 * i, &stream.received, head));
        record_bytes_add(&text, "message", head, pen_wire_write_message(1000 * i, head));
        record_bytes_add(&text, "farewell", head,
                         pen_wire_write_farewell(i == 0 ? PEN_CODE_OK : PEN_CORRUPT, i, head));
    }
    record_bytes_check(&text, "envelope_bytes.txt");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(heads_have_the_same_bytes_as_ever),
              cmocka_unit_test(chunks_come_back),
              cmocka_unit_test(counters_near_their_end_are_refused), cmocka_unit_test(heads_fit),
              cmocka_unit_test(others_come_back), cmocka_unit_test(codes_come_back),
              cmocka_unit_test(wrong_ones_are_refused))
