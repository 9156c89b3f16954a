#include "scheduler/runtime/run/run_wire.h"

#include "scheduler/protocol/message.h"
#include "scheduler/runtime/run/run_inquiry.h"
#include "tests/support/check.h"
#include "tests/support/record_bytes.h"

static void figures_have_the_same_bytes_as_ever(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_round_figures rounds[] = {{1, 0.5, 1.5, 0.25, -1}, {UINT32_MAX, -1, 0, 1e300, 0}};
    const pen_run_inquiry_figures figures = {1, 2, 3, UINT64_MAX};
    const pen_run_device_figures devices[] = {{7, (uint64_t)1 << 40, 0.125}, {8, 9, 2}};
    const pen_run_sent sent[] = {{1, 2, 3, 4, true}, {5, 6, (uint64_t)1 << 40, UINT64_MAX, true}};
    unsigned char bytes[2 * PEN_ROUND_FIGURES_BYTES];
    const void *made;
    uint64_t count;
    pen_text text;
    pen_text_init(&text, arena);
    pen_round_figures_encode(rounds, 2, bytes);
    record_bytes_add(&text, "rounds", bytes, sizeof bytes);
    CHECK_OK(pen_run_figures_encode(&figures, devices, 2, arena, &made, &count));
    record_bytes_add(&text, "figures", made, count);
    CHECK_OK(pen_run_sent_encode(sent, 2, arena, &made, &count));
    record_bytes_add(&text, "sent", made, count);
    record_bytes_check(&text, "figures_bytes.txt");
    pen_arena_destroy(arena);
}

static void figures_come_back(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_run_sent sent[] = {{1, 2, 3, 4, true}, {5, 6, 7, UINT64_MAX, true}}, *read;
    const void *made;
    uint64_t count;
    uint32_t read_count;
    CHECK_OK(pen_run_sent_encode(sent, 2, arena, &made, &count));
    CHECK_OK(pen_run_sent_decode(made, count, arena, &read, &read_count));
    assert_int_equal(read_count, 2);
    assert_true(read[1].form == 5 && read[1].channel == 6 && read[1].sequence == 7);
    assert_true(read[1].checksum == UINT64_MAX && read[1].is_sent);
    CHECK_ERROR(pen_run_sent_decode(made, count - 1, arena, &read, &read_count), PEN_CORRUPT,
                "of 47 bytes");
    pen_arena_destroy(arena);
}

// A clock may be behind the coordinator's: what its message says of it must pass as a counter.
static void clocks_differ_either_way(void **state) {
    (void)state;
    const int64_t known[] = {0, 1, -1, 1077, -1077, PEN_RUN_CLOCK_ZERO - 1, 1 - PEN_RUN_CLOCK_ZERO};
    const int64_t unknown[] = {INT64_MIN, INT64_MAX, PEN_RUN_CLOCK_ZERO, -PEN_RUN_CLOCK_ZERO};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint8_t bytes[256];
        pen_message read;
        const pen_message ask = {.protocol = PEN_PROTOCOL_VERSION,
                                 .kind = PEN_MESSAGE_ASK,
                                 .number = PEN_RUN_INQUIRY_DUMP,
                                 .offset = pen_run_clock_pack(known[i])};
        const size_t length = pen_message_encode(&ask, bytes, sizeof bytes);
        CHECK_OK(pen_message_decode(bytes, length, &read));
        assert_true(pen_run_clock_unpack(read.offset) == known[i]);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_true(pen_run_clock_unpack(pen_run_clock_pack(unknown[i])) == INT64_MIN);
}

PEN_TEST_MAIN(cmocka_unit_test(clocks_differ_either_way),
              cmocka_unit_test(figures_have_the_same_bytes_as_ever),
              cmocka_unit_test(figures_come_back))
