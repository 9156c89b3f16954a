#include "scheduler/protocol/message.h"

#include "base/limits.h"
#include "tests/support/check.h"
#include "tests/support/record_bytes.h"

static pen_message full_message(pen_message_kind kind) {
    static const char bytes[] = "the bytes of a part";
    pen_message message = {.kind = kind,
                           .protocol = PEN_PROTOCOL_VERSION,
                           .generation = PEN_GENERATION_LIMIT,
                           .incarnation = 1,
                           .worker = 3,
                           .target_incarnation = (uint64_t)1 << 63,
                           .plan_hash = 0x1234567890abcdef,
                           .device_count = UINT32_MAX,
                           .round = 127,
                           .form = 128,
                           .count = 16384,
                           .updates = true,
                           .continues = true,
                           .step = 5,
                           .learning_rate = 0x3f50624dd2f1a9fc,
                           .microbatch = 6,
                           .stage = 7,
                           .device = 8,
                           .node = 18,
                           .value = 0x7ff8000000000001,
                           .correct_count = 9,
                           .target_count = 10,
                           .channel = 11,
                           .sequence = 12,
                           .frame_kind = 2,
                           .number = 13,
                           .offset = 14,
                           .byte_count = (uint64_t)1 << 40,
                           .clock = 15,
                           .clock_here = 16,
                           .mark = (uint64_t)1 << 63,
                           .state = 4,
                           .step_nanoseconds = (uint64_t)1 << 33,
                           .code = 17,
                           .memory_bytes = (uint64_t)1 << 34};
    memcpy(message.job, "job", 4);
    memset(message.build, 'b', sizeof message.build - 1);
    memcpy(message.isa, "isa", 4);
    memcpy(message.address, "127.0.0.1:80", 13);
    memset(message.text, 't', sizeof message.text - 1);
    if (kind == PEN_MESSAGE_PART || kind == PEN_MESSAGE_SHARD || kind == PEN_MESSAGE_RECOMPUTE) {
        message.bytes = bytes;
        message.bytes_length = sizeof bytes;
    }
    return message;
}

static size_t encode(const pen_message *message, uint8_t bytes[2 * PEN_MESSAGE_ROOM]) {
    const size_t length = pen_message_encode(message, bytes, 2 * PEN_MESSAGE_ROOM);
    CHECK(length <= PEN_MESSAGE_ROOM + message->bytes_length, "%zu bytes", length);
    return length;
}

// What a message has is read back: writing it again gives the same bytes.
static void reads_back_every_kind(void **state) {
    (void)state;
    uint8_t bytes[2 * PEN_MESSAGE_ROOM], again[2 * PEN_MESSAGE_ROOM];
    for (uint32_t kind = 0; kind < PEN_MESSAGE_KIND_COUNT; kind++) {
        const pen_message message = full_message((pen_message_kind)kind);
        const size_t length = encode(&message, bytes);
        pen_message read;
        CHECK_OK(pen_message_decode(bytes, length, &read));
        CHECK(read.kind == message.kind, "%s", pen_message_kind_name(message.kind));
        CHECK(read.generation == PEN_GENERATION_LIMIT && read.incarnation == 1, "the header");
        CHECK(strcmp(read.job, "job") == 0, "the job is '%s'", read.job);
        CHECK(encode(&read, again) == length && memcmp(bytes, again, length) == 0, "%s: others",
              pen_message_kind_name(message.kind));
        CHECK(pen_message_encode(&message, again, 3) == length, "a short buffer");
    }
}

static void reads_the_fields_of_some(void **state) {
    (void)state;
    uint8_t bytes[2 * PEN_MESSAGE_ROOM];
    pen_message read, message = full_message(PEN_MESSAGE_LOSS);
    CHECK_OK(pen_message_decode(bytes, encode(&message, bytes), &read));
    CHECK(read.value == message.value, "a loss that is not a number keeps its bits");
    CHECK(read.round == 127 && read.form == 128 && read.microbatch == 6, "where");
    CHECK(read.stage == 7 && read.device == 8 && read.correct_count == 9, "hits");
    CHECK(read.channel == 0 && read.text[0] == 0, "what a loss does not have");
    message = full_message(PEN_MESSAGE_ROUND);
    CHECK_OK(pen_message_decode(bytes, encode(&message, bytes), &read));
    CHECK(read.updates && read.continues && read.count == 16384 && read.step == 5, "round");
    CHECK(read.learning_rate == message.learning_rate, "learning rate");
    message = full_message(PEN_MESSAGE_PART);
    CHECK_OK(pen_message_decode(bytes, encode(&message, bytes), &read));
    CHECK(read.bytes_length == message.bytes_length &&
              memcmp(read.bytes, message.bytes, read.bytes_length) == 0,
          "part");
    message = full_message(PEN_MESSAGE_BEAT);
    CHECK_OK(pen_message_decode(bytes, encode(&message, bytes), &read));
    CHECK(read.state == 4 && read.step == 5 && read.step_nanoseconds == (uint64_t)1 << 33, "beat");
    message = full_message(PEN_MESSAGE_SNAPSHOT);
    CHECK_OK(pen_message_decode(bytes, encode(&message, bytes), &read));
    CHECK(read.step == 5 && read.worker == 3 && read.text[0] == 't', "snapshot");
    CHECK(read.mark == message.mark && read.sequence == 12, "which");
    message = full_message(PEN_MESSAGE_SURVEY);
    CHECK_OK(pen_message_decode(bytes, encode(&message, bytes), &read));
    CHECK(read.number == 13 && read.device == 8 && read.node == 18 && read.clock == 15, "survey");
    CHECK(read.worker == 3 && read.count == 16384 && read.sequence == 12, "whom it is sent to");
    message = full_message(PEN_MESSAGE_SURVEYED);
    message.terms[1] = 0x3f50624dd2f1a9fc;
    message.term_count = 2;
    CHECK_OK(pen_message_decode(bytes, encode(&message, bytes), &read));
    CHECK(read.term_count == 2 && read.terms[1] == 0x3f50624dd2f1a9fc, "figures");
    CHECK(read.sequence == 12 && read.code == 17 && read.text[0] == 't', "why there are none");
    message = full_message(PEN_MESSAGE_SHARD);
    CHECK_OK(pen_message_decode(bytes, encode(&message, bytes), &read));
    CHECK(read.step == 5 && read.code == 17 && read.bytes_length == message.bytes_length, "shard");
}

// Others count on from them: one more must be a number, too.
static void refuses_counters_near_their_end(void **state) {
    (void)state;
    uint8_t bytes[2 * PEN_MESSAGE_ROOM];
    pen_message read, message = full_message(PEN_MESSAGE_ASSIGN);
    message.generation = UINT64_MAX;
    CHECK_ERROR(pen_message_decode(bytes, encode(&message, bytes), &read), PEN_CORRUPT,
                "field 3 (generation) is 18446744073709551615, at most 999999999999 can be");
    message = full_message(PEN_MESSAGE_ROUND);
    message.round = UINT64_MAX - 1;
    CHECK_ERROR(pen_message_decode(bytes, encode(&message, bytes), &read), PEN_CORRUPT,
                "field 1 (round) is 18446744073709551614, at most 9007199254740992 can be");
    message = full_message(PEN_MESSAGE_BEAT);
    message.step = PEN_COUNTER_LIMIT + 1;
    CHECK_ERROR(pen_message_decode(bytes, encode(&message, bytes), &read), PEN_CORRUPT,
                "field 2 (step) is 9007199254740993");
    message = full_message(PEN_MESSAGE_CREDIT);
    message.sequence = PEN_COUNTER_LIMIT;
    CHECK_OK(pen_message_decode(bytes, encode(&message, bytes), &read));
    message.sequence = UINT64_MAX;
    CHECK_ERROR(pen_message_decode(bytes, encode(&message, bytes), &read), PEN_CORRUPT,
                "field 3 (sequence) is");
}

static void refuses_what_is_wrong(void **state) {
    (void)state;
    uint8_t bytes[2 * PEN_MESSAGE_ROOM];
    pen_message read, message = full_message(PEN_MESSAGE_HELLO);
    const size_t length = encode(&message, bytes);
    for (size_t cut = 0; cut < length; cut++) {
        const pen_status status = pen_message_decode(bytes, cut, &read);
        CHECK(status != PEN_OK, "cut at %zu", cut);
        pen_status_ignore(status, "meant");
    }
    const size_t twice = length + pen_message_encode(&message, bytes + length, PEN_MESSAGE_ROOM);
    CHECK_ERROR(pen_message_decode(bytes, twice, &read), PEN_CORRUPT, "hello and hello");
    message.protocol = 7;
    CHECK_ERROR(pen_message_decode(bytes, encode(&message, bytes), &read), PEN_UNSUPPORTED,
                "protocol version 7, here is 1");
    CHECK(read.protocol == 7, "it is told");
    static const uint8_t wide_form[] = {8, 1, 0x9a, 1, 6, 8, 0xff, 0xff, 0xff, 0xff, 0x1f};
    CHECK_ERROR(pen_message_decode(wide_form, sizeof wide_form, &read), PEN_CORRUPT,
                "field 1 (form) is 8589934591, at most 4294967295 can be");
    static const uint8_t zero_in_job[] = {8, 1, 0x12, 2, 'a', 0, 0x6a, 0};
    CHECK_ERROR(pen_message_decode(zero_in_job, sizeof zero_in_job, &read), PEN_CORRUPT,
                "zero byte");
    static const uint8_t fixed_form[] = {8, 1, 0x9a, 1, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8};
    CHECK_ERROR(pen_message_decode(fixed_form, sizeof fixed_form, &read), PEN_CORRUPT,
                "field 1 (form) has wire type 1, expected 0");
    uint8_t long_job[3 + PEN_MESSAGE_JOB_BYTES + 1] = {8, 1, 0x12, PEN_MESSAGE_JOB_BYTES};
    memset(long_job + 4, 'j', PEN_MESSAGE_JOB_BYTES);
    CHECK_ERROR(pen_message_decode(long_job, sizeof long_job, &read), PEN_CORRUPT,
                "field 2 (job) has 64 bytes, at most 63 can be");
    static uint8_t part[PEN_MESSAGE_PART_LIMIT + 1], encoded[sizeof part + PEN_MESSAGE_ROOM];
    message = full_message(PEN_MESSAGE_SHARD);
    message.bytes = part;
    message.bytes_length = sizeof part;
    const size_t size = pen_message_encode(&message, encoded, sizeof encoded);
    CHECK_ERROR(pen_message_decode(encoded, size, &read), PEN_CORRUPT,
                "field 4 (summary) has 524289 bytes, at most 524288 can be");
    static const uint8_t nothing[] = {8, 1};
    CHECK_ERROR(pen_message_decode(nothing, sizeof nothing, &read), PEN_CORRUPT, "says nothing");
    static const uint8_t unknown[] = {8, 1, 0x6a, 2, 0x48, 1, 0xd8, 7, 1};
    CHECK_OK(pen_message_decode(unknown, sizeof unknown, &read));
    CHECK(read.kind == PEN_MESSAGE_READY, "unknown fields are passed over");
}

// Not a byte on the wire changes unseen.
static void has_the_same_bytes_as_ever(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_text_init(&text, arena);
    for (uint32_t kind = 0; kind < PEN_MESSAGE_KIND_COUNT; kind++) {
        uint8_t bytes[2 * PEN_MESSAGE_ROOM];
        pen_message message = full_message((pen_message_kind)kind);
        message.generation = UINT64_MAX; // ten bytes
        message.first_microbatch = 300;
        message.step_microbatches = 301;
        message.is_local = true;
        memcpy(message.text, "a text", 7);
        const char *name = pen_message_kind_name(message.kind);
        record_bytes_add(&text, name, bytes, encode(&message, bytes));
        message = (pen_message){.kind = message.kind};
        record_bytes_add(&text, name, bytes, encode(&message, bytes));
    }
    record_bytes_check(&text, "message_bytes.txt");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(has_the_same_bytes_as_ever), cmocka_unit_test(reads_back_every_kind),
              cmocka_unit_test(reads_the_fields_of_some), cmocka_unit_test(refuses_what_is_wrong),
              cmocka_unit_test(refuses_counters_near_their_end))
