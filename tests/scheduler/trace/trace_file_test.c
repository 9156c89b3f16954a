#include "scheduler/trace/trace_file.h"

#include <jansson.h>
#include <math.h>

#include "base/system/file.h"
#include "tests/support/check.h"
#include "tests/support/made_trace.h"
#include "tests/support/scratch.h"

static const char *text_of(const pen_trace *trace, pen_arena *arena, size_t *out_length) {
    const char *path = scratch_path("trace.json");
    const char *bytes;
    CHECK_OK(pen_trace_file_write(trace, path, arena));
    CHECK_OK(pen_file_read(path, PEN_TRACE_FILE_BYTES_LIMIT, arena, &bytes, out_length));
    return bytes;
}

static void keeps_the_rules_of_the_format(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    size_t length;
    text_of(made_trace(arena, 3), arena, &length);
    char command[512];
    snprintf(command, sizeof command,
             "/usr/bin/python3 tests/end_to_end/check_trace.py %s \""
             "sorted(processes.values()) == ['worker 1', 'worker 2'] and "
             "sorted(rows.values()) == ['a compute', 'a receive', 'a send', 'b compute', "
             "'b receive', 'b send'] and len(arrows) == 12 and len(counters) == 4 and "
             "min(s['ts'] for s in spans) == 0 and sum(s['cat'] == 'compute' for s in spans) == 30 "
             "and max(s['ts'] + s['dur'] for s in spans) == 34e6\"",
             scratch_path("trace.json"));
    assert_int_equal(system(command), 0);
    pen_arena_destroy(arena);
}

static void gives_overlapping_sends_rows_of_their_own(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_trace trace = *made_trace(arena, 1);
    pen_trace_worker worker = {.name = "w\"<", .process = 1};
    pen_trace_event sends[4];
    for (uint32_t i = 0; i < 4; i++) {
        sends[i] = (pen_trace_event){.kind = PEN_TRACE_SEND,
                                     .device = i == 3 ? PEN_TRACE_HOST : 0,
                                     .channel = 0,
                                     .sequence = i,
                                     .bytes = 64,
                                     .start_seconds = i,
                                     .end_seconds = i + 1.5};
    }
    const uint32_t worker_of_device[] = {0, 0};
    worker.events = sends;
    worker.event_count = 4;
    trace.workers = &worker;
    trace.worker_count = 1;
    trace.worker_of_device = worker_of_device;
    size_t length;
    text_of(&trace, arena, &length);
    char command[512];
    snprintf(command, sizeof command,
             "/usr/bin/python3 tests/end_to_end/check_trace.py %s \"sorted(rows.values()) == "
             "['a send', 'a send 2', 'inputs send'] and not arrows and processes[1] == 'w\\\"<'\"",
             scratch_path("trace.json"));
    assert_int_equal(system(command), 0);
    pen_arena_destroy(arena);
}

static void leaves_arrows_backwards_out(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_trace *made = made_trace(arena, 2);
    pen_trace trace = *made;
    pen_trace_worker workers[2] = {made->workers[0], made->workers[1]};
    workers[1].clock_seconds -= 1; // what 'b' receives, it received before it was sent
    trace.workers = workers;
    size_t length;
    text_of(&trace, arena, &length);
    char command[512];
    snprintf(command, sizeof command,
             "/usr/bin/python3 tests/end_to_end/check_trace.py %s \"len(arrows) == 4\"",
             scratch_path("trace.json"));
    assert_int_equal(system(command), 0);
    pen_arena_destroy(arena);
}

static void comes_back(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    size_t length, again_length;
    const pen_trace *read;
    const char *text = text_of(made_trace(arena, 3), arena, &length);
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    json_decref(root);
    CHECK_OK(pen_trace_file_parse("trace.json", text, length, arena, &read));
    assert_int_equal(read->worker_count, 2);
    assert_int_equal(read->workers[1].event_count, made_trace(arena, 3)->workers[1].event_count);
    assert_string_equal(read->channels[1].value, "gradients");
    assert_true(read->channels[1].is_backward);
    const char *again = text_of(read, arena, &again_length);
    // but for the clocks, which are one
    const char *events = strstr(text, "\"traceEvents\"");
    const char *again_events = strstr(again, "\"traceEvents\"");
    assert_non_null(events);
    assert_string_equal(events, again_events);
    CHECK_OK(pen_trace_file_read(scratch_path("trace.json"), arena, &read));
    CHECK_ERROR(pen_trace_file_read(scratch_path("none.json"), arena, &read), PEN_NOT_FOUND,
                "none.json");
    pen_arena_destroy(arena);
}

// Replaces the first `from` of the file.
static void check_edited(const char *from, const char *to, pen_status_code code,
                         const char *message) {
    pen_arena *arena = check_arena();
    size_t length;
    const pen_trace *read;
    const char *text = text_of(made_trace(arena, 1), arena, &length);
    const char *at = strstr(text, from);
    CHECK(at != NULL, "'%s' is not in the file", from);
    const char *edited;
    CHECK_OK(pen_arena_format(arena, &edited, "%.*s%s%s", (int)(at - text), text, to,
                              at + strlen(from)));
    CHECK_ERROR(pen_trace_file_parse("f.json", edited, strlen(edited), arena, &read), code,
                message);
    pen_arena_destroy(arena);
}

static void trusts_no_file(void **state) {
    (void)state;
    check_edited("{", "", PEN_INVALID_INPUT, "no JSON");
    check_edited("penstock/trace/1", "penstock/trace/2", PEN_INVALID_INPUT,
                 "f.json: no trace of penstock's");
    check_edited("\"penstock\"", "\"other\"", PEN_INVALID_INPUT, "no trace of penstock's");
    check_edited("\"device\": 0,", "\"device\": 9,", PEN_CORRUPT, "in f.json");
    check_edited("\"worker\": 1", "\"worker\": 2", PEN_CORRUPT,
                 "device 'b' of a trace is of worker 2");
    check_edited("\"worker\": 1", "\"worker\": -1", PEN_INVALID_INPUT,
                 "device 1: 'worker' is not an integer of 0 to");
    check_edited("\"to\": 1", "\"to\": 2", PEN_CORRUPT, "between devices 0 and 2");
    check_edited("\"dur\": 1000000", "\"dur\": -1000000", PEN_CORRUPT, "time");
    check_edited("\"dur\": 1000000", "\"dur\": null", PEN_INVALID_INPUT, "'dur' is not a number");
    check_edited("\"task\": \"forward\"", "\"task\": \"sideways\"", PEN_INVALID_INPUT,
                 "'task' is not a kind of task");
    check_edited("\"cat\": \"compute\"", "\"cat\": \"fun\"", PEN_INVALID_INPUT,
                 "'cat' is not a kind of event");
    check_edited("\"channels\": [", "\"channels\": 3, \"_\": [", PEN_INVALID_INPUT,
                 "'channels' is not a list");
    check_edited("\"frame\": 0", "\"frame\": 0.5", PEN_INVALID_INPUT, "'frame'");
    check_edited("\"activation_bytes\": 10", "\"activation_bytes\": \"10\"", PEN_INVALID_INPUT,
                 "stage 0: 'activation_bytes' is not a number");
}

PEN_TEST_MAIN(cmocka_unit_test(keeps_the_rules_of_the_format),
              cmocka_unit_test(gives_overlapping_sends_rows_of_their_own),
              cmocka_unit_test(leaves_arrows_backwards_out), cmocka_unit_test(comes_back),
              cmocka_unit_test(trusts_no_file))
