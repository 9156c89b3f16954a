// Links over gRPC: what conformance does not ask of every transport.
#include <inttypes.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "tests/support/check.h"
#include "tests/support/station.h"

#define MIB ((uint64_t)1 << 20)

static const pen_transport_options of_zero = {
    .self = {.job = "test", .peer = 0, .generation = 3, .incarnation = 77}};
static const pen_transport_options of_one = {
    .self = {.job = "test", .peer = 1, .generation = 3, .incarnation = 78}};

static void open_pair(station *zero, station *one, uint64_t memory_bytes) {
    CHECK_OK(station_open(one, "grpc", &of_one, "127.0.0.1:0", memory_bytes));
    CHECK_OK(station_open(zero, "grpc", &of_zero, NULL, memory_bytes));
    assert_true(station_link(zero, one, 0, 1));
}

static void send_text(station *s, uint32_t peer, const char *text) {
    CHECK_OK(s->kind->send_message(s->transport, peer, text, strlen(text)));
}

static void messages_go_both_ways(void **state) {
    (void)state;
    station zero, one;
    open_pair(&zero, &one, 0);
    assert_string_equal(one.introduction,
                        "job 'test' peer 0 generation 3 incarnation 77 certificate 'none'");
    send_text(&zero, 1, "hello");
    assert_true(station_wait(&one, &one.message_count, 1));
    assert_string_equal(one.last_message, "hello");
    send_text(&one, 0, "");
    send_text(&one, 0, "and back");
    assert_true(station_wait(&zero, &zero.message_count, 2));
    assert_string_equal(zero.last_message, "and back");
    char *large = malloc(MIB);
    memset(large, 'x', MIB);
    CHECK_OK(zero.kind->send_message(zero.transport, 1, large, MIB));
    assert_true(station_wait(&one, &one.message_count, 2));
    assert_int_equal(one.message_bytes, MIB + 5);
    CHECK_ERROR(zero.kind->send_message(zero.transport, 1, large, MIB + 1), PEN_INTERNAL,
                "at most");
    CHECK_ERROR(zero.kind->send_message(zero.transport, 2, large, 1), PEN_UNAVAILABLE,
                "no link to peer 2");
    free(large);
    station_close(&zero);
    station_close(&one);
    assert_int_equal(zero.down_count[1], 1);
    assert_int_equal(one.down_count[0], 1);
    CHECK(strstr(one.down_text, "peer 0 closed the link") != NULL, "%s", one.down_text);
}

static void frames_arrive_whole(void **state) {
    (void)state;
    static const uint64_t sizes[] = {0,       1, 63, 4096, MIB - 1, MIB, MIB + 1, 5 * MIB + 12345,
                                     33 * MIB};
    const size_t count = sizeof sizes / sizeof *sizes;
    station zero, one;
    open_pair(&zero, &one, 33 * MIB);
    uint8_t *bytes = malloc(33 * MIB);
    for (uint64_t i = 0; i < 33 * MIB; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
    uint32_t checksums[9][33];
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        pen_checksum_chunks(bytes, sizes[i], checksums[i]);
        const pen_frame frame = {.kind = PEN_FRAME_VALUE,
                                 .generation = 3,
                                 .incarnation = 77,
                                 .step = 5,
                                 .form = 1,
                                 .microbatch = 2,
                                 .channel = 9,
                                 .layout = 4,
                                 .type = pen_tensor_type_make(PEN_FLOAT32, 2, (int64_t[]){3, 4}),
                                 .sequence = i,
                                 .bytes = sizes[i]};
        CHECK_OK(zero.kind->send_frame(zero.transport, 1, &frame, pen_memory_place_at(bytes),
                                       checksums[i], 100 + i));
        sum += sizes[i];
    }
    assert_true(station_wait(&one, &one.frame_count, count));
    assert_int_equal(one.wrong_count, 0);
    assert_int_equal(one.frame_bytes, sum);
    assert_int_equal(one.last_frame.layout, 4);
    assert_int_equal(one.last_frame.type.shape.dims[1], 4);
    assert_true(station_wait(&zero, &zero.let_go_count, count));
    assert_int_equal(zero.token_sum, 100 * count + 36);
    const pen_transport_counters sent = zero.kind->counters(zero.transport);
    const pen_transport_counters got = one.kind->counters(one.transport);
    assert_int_equal(sent.bytes_sent, sum);
    assert_int_equal(sent.frames_sent, count);
    assert_int_equal(sent.bytes_copied, 0);
    assert_int_equal(got.bytes_received, sum);
    assert_int_equal(got.bytes_copied, sum);
    station_close(&zero);
    station_close(&one);
    free(bytes);
}

static void nobody_listens(void **state) {
    (void)state;
    station one, zero;
    CHECK_OK(station_open(&one, "grpc", &of_one, "127.0.0.1:0", 0));
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", one.port);
    station_close(&one);
    CHECK_OK(station_open(&zero, "grpc", &of_zero, NULL, 0));
    const double start = pen_clock_seconds();
    CHECK_OK(zero.kind->connect(zero.transport, 1, address, 0.5));
    CHECK_ERROR(zero.kind->connect(zero.transport, 1, address, 0.5), PEN_INVALID_INPUT, "already");
    assert_true(station_wait_down(&zero, 1, 1));
    assert_true(pen_clock_seconds() - start >= 0.45);
    assert_true(pen_clock_seconds() - start < 10);
    CHECK(strstr(zero.down_text, "within 0.5 s: connection refused") != NULL, "%s", zero.down_text);
    assert_int_equal(zero.down_code, PEN_UNAVAILABLE);
    station_close(&zero);
    assert_int_equal(zero.up_count[1], 0);
    assert_int_equal(zero.down_count[1], 1);
}

PEN_TEST_MAIN(cmocka_unit_test(messages_go_both_ways), cmocka_unit_test(frames_arrive_whole),
              cmocka_unit_test(nobody_listens))
