#include "scheduler/trace/trace.h"

#include <math.h>

#include "base/memory.h"
#include "tests/support/check.h"

static pen_trace_event event_at(uint32_t device, uint32_t number) {
    return (pen_trace_event){.kind = PEN_TRACE_TASK,
                             .task = {PEN_TASK_BACKWARD, 3, number},
                             .device = device,
                             .channel = PEN_TRACE_NO_CHANNEL,
                             .round = number / 4,
                             .start_seconds = number,
                             .end_seconds = number + 0.5};
}

static void keeps_the_newest(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_trace_recorder *recorder;
    const pen_trace_event *events;
    uint32_t count;
    uint64_t lost;
    CHECK_OK(pen_trace_recorder_create(2, 4, &recorder));
    const uint64_t calls = pen_memory_call_count();
    for (uint32_t i = 0; i < 10; i++) {
        const pen_trace_event event = event_at(0, i);
        pen_trace_record(recorder, 0, &event);
    }
    const pen_trace_event other = event_at(1, 7);
    pen_trace_record(recorder, 1, &other);
    pen_trace_record(recorder, 2, &other); // no such row
    pen_trace_record(NULL, 0, &other);
    assert_int_equal(pen_memory_call_count(), calls);
    CHECK_OK(pen_trace_recorder_read(recorder, arena, &events, &count, &lost));
    assert_int_equal(count, 5);
    assert_int_equal(lost, 6);
    const uint32_t numbers[] = {6, 7, 7, 8, 9};
    for (uint32_t i = 0; i < count; i++) {
        CHECK(events[i].start_seconds == numbers[i], "event %u at %g", i, events[i].start_seconds);
    }
    assert_int_equal(events[1].device, 0);
    assert_int_equal(events[2].device, 1);
    pen_trace_recorder_destroy(recorder);
    CHECK_OK(pen_trace_recorder_read(NULL, arena, &events, &count, &lost));
    assert_int_equal(count, 0);
    pen_arena_destroy(arena);
}

static void comes_back_from_bytes(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_trace_event events[] = {
        {.kind = PEN_TRACE_RECEIVE,
         .task = {PEN_TASK_UPDATE, 1, 2},
         .device = 3,
         .channel = 0xFFFFFFFE,
         .form = 5,
         .round = UINT64_MAX - 1,
         .step = 1ull << 50,
         .sequence = 1ull << 40,
         .bytes = 123456789012345,
         .start_seconds = -1.25e-9,
         .end_seconds = 1e9 / 3},
        event_at(1, 2),
    };
    const void *bytes;
    uint64_t byte_count;
    const pen_trace_event *read;
    uint32_t count;
    CHECK_OK(pen_trace_encode(events, 2, arena, &bytes, &byte_count));
    assert_int_equal(byte_count, PEN_TRACE_HEAD_BYTES + 2 * PEN_TRACE_EVENT_BYTES);
    CHECK_OK(pen_trace_decode(bytes, byte_count, arena, &read, &count));
    assert_int_equal(count, 2);
    const void *again;
    uint64_t again_count;
    CHECK_OK(pen_trace_encode(read, 2, arena, &again, &again_count));
    assert_int_equal(again_count, byte_count);
    assert_memory_equal(again, bytes, byte_count);
    CHECK(read[0].end_seconds == events[0].end_seconds && read[0].bytes == events[0].bytes, "%g",
          read[0].end_seconds);
    pen_arena_destroy(arena);
}

static void refuses_bytes_that_are_none(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_trace_event event = event_at(0, 1);
    const void *bytes;
    uint64_t byte_count;
    const pen_trace_event *read;
    uint32_t count;
    CHECK_OK(pen_trace_encode(&event, 1, arena, &bytes, &byte_count));
    uint8_t changed[PEN_TRACE_HEAD_BYTES + PEN_TRACE_EVENT_BYTES];
    for (uint64_t length = 0; length < byte_count; length++) {
        pen_status status = pen_trace_decode(bytes, length, arena, &read, &count);
        assert_int_equal(pen_status_get_code(status), PEN_CORRUPT);
        pen_status_ignore(status, "as expected");
    }
    const struct {
        uint32_t place;
        uint8_t value;
        const char *message;
    } cases[] = {{0, 'X', "unknown kind or version"}, {4, 9, "unknown kind or version"},
                 {8, 2, "2 events has 88 bytes"},     {11, 0xFF, "events has 88 bytes"},
                 {12, 4, "unknown kind 4"},           {16, 200, "task 200"},
                 {87, 0xFF, "ends before"},           {79, 0x7F, "ends before"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(changed, bytes, sizeof changed);
        changed[cases[i].place] = cases[i].value;
        CHECK_ERROR(pen_trace_decode(changed, sizeof changed, arena, &read, &count), PEN_CORRUPT,
                    cases[i].message);
    }
    pen_arena_destroy(arena);
}

static void finds_what_is_not_there(void **state) {
    (void)state;
    pen_trace_event event = event_at(0, 1);
    const pen_trace_worker worker = {.name = "worker 1", .events = &event, .event_count = 1};
    const char *name = "a";
    uint32_t worker_of_device = 0;
    pen_trace_channel channel = {.value = "v", .source_device = 0, .target_device = PEN_TRACE_HOST};
    pen_trace trace = {.worker_count = 1,
                       .workers = &worker,
                       .device_count = 1,
                       .device_names = &name,
                       .worker_of_device = &worker_of_device,
                       .channel_count = 1,
                       .channels = &channel};
    CHECK_OK(pen_trace_check(&trace));
    event.device = 1;
    CHECK_ERROR(pen_trace_check(&trace), PEN_CORRUPT,
                "event 0 of the trace of worker 1 has a device");
    event.device = PEN_TRACE_HOST;
    CHECK_ERROR(pen_trace_check(&trace), PEN_CORRUPT, "device");
    event.kind = PEN_TRACE_SEND;
    CHECK_ERROR(pen_trace_check(&trace), PEN_CORRUPT, "channel");
    event.channel = 0;
    CHECK_OK(pen_trace_check(&trace));
    event.channel = 1;
    CHECK_ERROR(pen_trace_check(&trace), PEN_CORRUPT, "channel");
    event.form = 1; // whose channels are not told
    CHECK_OK(pen_trace_check(&trace));
    event.form = PEN_TRACE_FORM_LIMIT;
    CHECK_ERROR(pen_trace_check(&trace), PEN_CORRUPT, "form");
    event = event_at(0, 1);
    event.end_seconds = NAN;
    CHECK_ERROR(pen_trace_check(&trace), PEN_CORRUPT, "time");
    event = event_at(0, 1);
    channel.target_device = 4;
    CHECK_ERROR(pen_trace_check(&trace), PEN_CORRUPT,
                "'v' of a trace moves between devices 0 and 4");
    channel.target_device = 0;
    worker_of_device = 1;
    CHECK_ERROR(pen_trace_check(&trace), PEN_CORRUPT, "device 'a' of a trace is of worker 1");
}

PEN_TEST_MAIN(cmocka_unit_test(keeps_the_newest), cmocka_unit_test(comes_back_from_bytes),
              cmocka_unit_test(refuses_bytes_that_are_none),
              cmocka_unit_test(finds_what_is_not_there))
