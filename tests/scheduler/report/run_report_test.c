#include "scheduler/report/run_report.h"

#include "tests/support/check.h"
#include "tests/support/golden.h"

static const pen_engine_device_report run_devices[] = {
    {.name = "first",
     .worker = "127.0.0.1:40001",
     .busy_seconds_predicted = 0.120,
     .busy_seconds = 0.132,
     .wait_seconds = 0.02,
     .bytes_predicted = 100 << 20,
     .bytes = 100 << 20,
     .process_bytes_predicted = 150 << 20,
     .process_bytes = 147 << 20,
     .sent_bytes_predicted = 4 << 20,
     .sent_bytes = 4 << 20},
    {.name = "zweites Gerät",
     .worker = "127.0.0.1:40002",
     .busy_seconds_predicted = 0.100,
     .busy_seconds = 0.09,
     .wait_seconds = 0.06,
     .bytes_predicted = 3e9,
     .bytes = 3e9,
     .process_bytes_predicted = 3.1e9,
     .process_bytes = -1,
     .sent_bytes_predicted = 0,
     .sent_bytes = 0},
};

static const pen_engine_report run_report = {.device_count = 2,
                                             .devices = run_devices,
                                             .step_seconds_predicted = 0.15,
                                             .step_seconds = 0.165,
                                             .bubble_predicted = 0.125,
                                             .bubble = 0.142};

static void makes_a_table(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *text;
    CHECK_OK(pen_run_report_text(&run_report, arena, &text));
    CHECK_GOLDEN("run_report.txt", text);
    // of one process, and without what nobody knows
    pen_engine_device_report devices[] = {run_devices[0], run_devices[1]};
    pen_engine_report report = run_report;
    report.devices = devices;
    report.bubble = -1;
    for (int d = 0; d < 2; d++) {
        devices[d].worker = "this process";
        devices[d].process_bytes_predicted = -1;
        devices[d].process_bytes = -1;
        devices[d].busy_seconds = -1;
    }
    CHECK_OK(pen_run_report_text(&report, arena, &text));
    CHECK_GOLDEN("run_report_here.txt", text);
    report.device_count = 0;
    CHECK_OK(pen_run_report_text(&report, arena, &text));
    assert_string_equal(text, "");
    pen_arena_destroy(arena);
}

static void says_it_in_json(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *sides[2];
    for (int side = 0; side < 2; side++) {
        pen_text text;
        pen_json_writer json;
        pen_text_init(&text, arena);
        pen_json_init_text(&json, &text, 0);
        pen_json_begin_object(&json);
        pen_run_report_json(&json, &run_report, (pen_run_report_side)side);
        pen_json_end_object(&json);
        CHECK_OK(pen_json_finish(&json));
        CHECK_OK(pen_text_finish(&text, &sides[side]));
    }
    CHECK(strstr(sides[0], "\"bubble\": 0.125, \"devices\": [{\"name\": \"first\", "
                           "\"busy_seconds\": 0.12, ") != NULL,
          "%s", sides[0]);
    CHECK(strstr(sides[1], "\"wait_seconds\": 0.059999999999999998, \"bytes\": 3000000000, "
                           "\"sent_bytes\": 0}]}") != NULL,
          "%s", sides[1]);
    assert_null(strstr(sides[0], "worker"));
    pen_arena_destroy(arena);
}

static void says_it_in_a_line(void **state) {
    (void)state;
    char line[PEN_RUN_REPORT_LINE_BYTES];
    pen_engine_pulse pulse = {
        .bubble = 0.123, .has_slowest = true, .slowest_stage = 2, .slowest_device = "c"};
    assert_string_equal(pen_run_report_line(&pulse, line), "bubble 12 %, slowest stage 2 on 'c'");
    pulse.slowest_device = "0123456789012345678901234567890123456789ä";
    assert_string_equal(
        pen_run_report_line(&pulse, line),
        "bubble 12 %, slowest stage 2 on '0123456789012345678901234567890123456789'");
    pulse.slowest_device = "012345678901234567890123456789012345678ä";
    assert_string_equal(
        pen_run_report_line(&pulse, line),
        "bubble 12 %, slowest stage 2 on '012345678901234567890123456789012345678'");
    pulse = (pen_engine_pulse){.bubble = -1, .has_slowest = true, .slowest_device = "a"};
    assert_string_equal(pen_run_report_line(&pulse, line), "slowest stage 0 on 'a'");
    pulse = (pen_engine_pulse){.bubble = 0};
    assert_string_equal(pen_run_report_line(&pulse, line), "bubble 0 %");
    pulse.bubble = -1;
    assert_string_equal(pen_run_report_line(&pulse, line), "");
}

PEN_TEST_MAIN(cmocka_unit_test(makes_a_table), cmocka_unit_test(says_it_in_json),
              cmocka_unit_test(says_it_in_a_line))
