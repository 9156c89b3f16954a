#include "scheduler/schedule/schedule_step_time.h"

#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "tests/support/check.h"
#include "tests/support/stage_chain.h"

static void predicts_a_uniform_chain(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_stage_graph *graph = stage_chain(arena, 8, 32, 1.0, 2.0, 0.0);
    pen_schedule_step_time_context *context;
    uint32_t in_flight[8];
    double bytes_peak[8];
    pen_step_prediction prediction = {.in_flight = in_flight, .bytes_peak = bytes_peak};
    CHECK_OK(pen_schedule_step_time_create("1f1b", &context));
    CHECK_OK(pen_schedule_step_time(context, graph, &prediction));
    CHECK(prediction.step_seconds == 39 * 3.0, "%g", prediction.step_seconds);
    CHECK(fabs(prediction.bubble - 7.0 / 39) < 1e-12, "%g", prediction.bubble);
    for (uint32_t s = 0; s < 8; s++) {
        CHECK(in_flight[s] == 8 - s, "stage %u holds %u", s, in_flight[s]);
    }
    pen_schedule_step_time_destroy(context);
    pen_arena_destroy(arena);
}

static void asks_for_no_memory_the_second_time(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_stage_graph *graph = stage_chain(arena, 8, 32, 1.0, 2.0, 0.25);
    pen_schedule_step_time_context *context;
    uint32_t in_flight[8];
    double bytes_peak[8];
    pen_step_prediction prediction = {.in_flight = in_flight, .bytes_peak = bytes_peak};
    CHECK_OK(pen_schedule_step_time_create("1f1b", &context));
    CHECK_OK(pen_schedule_step_time(context, graph, &prediction));
    const uint64_t calls = pen_memory_call_count();
    const double begin = pen_clock_seconds();
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(pen_schedule_step_time(context, graph, &prediction));
    }
    print_message("%.1f us a call\n", (pen_clock_seconds() - begin) * 1e3);
    CHECK(pen_memory_call_count() == calls, "%llu calls",
          (unsigned long long)(pen_memory_call_count() - calls));
    pen_schedule_step_time_destroy(context);
    pen_arena_destroy(arena);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_stage_graph graph = *stage_chain(arena, 2, 4, 1.0, 2.0, 0.0);
    const double bytes_limit[2] = {10, 1e9};
    graph.bytes_limit = bytes_limit;
    pen_schedule_step_time_context *context;
    uint32_t in_flight[2];
    double bytes_peak[2];
    pen_step_prediction prediction = {.in_flight = in_flight, .bytes_peak = bytes_peak};
    CHECK_OK(pen_schedule_step_time_create("gpipe", &context));
    CHECK_ERROR(pen_schedule_step_time(context, &graph, &prediction), PEN_DOES_NOT_FIT,
                "device 0 needs 510 bytes with 4 microbatches in flight, its limit is 10 bytes");
    pen_schedule_step_time_destroy(context);
    pen_arena_destroy(arena);
}

static void names_the_schedules(void **state) {
    (void)state;
    pen_schedule_step_time_context *context;
    CHECK_ERROR(pen_schedule_step_time_create("gpip", &context), PEN_NOT_FOUND,
                "unknown schedule 'gpip', possible: gpipe, 1f1b");
}

static void survives_refused_memory(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_stage_graph *graph = stage_chain(arena, 3, 4, 1.0, 2.0, 0.25);
    uint32_t in_flight[3];
    double bytes_peak[3];
    pen_step_prediction prediction = {.in_flight = in_flight, .bytes_peak = bytes_peak};
    bool done = false;
    uint64_t call = 1;
    for (; !done; call++) {
        CHECK(call < 10000, "still failing at call %llu", (unsigned long long)call);
        pen_schedule_step_time_context *context = NULL;
        pen_memory_fail_at(call, 0);
        pen_status status = pen_schedule_step_time_create("1f1b", &context);
        if (status == PEN_OK) status = pen_schedule_step_time(context, graph, &prediction);
        pen_memory_fail_at(0, 0);
        pen_schedule_step_time_destroy(context);
        done = status == PEN_OK;
        if (!done) CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "");
    }
    CHECK(call > 4, "memory was asked for only %llu times", (unsigned long long)call);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(predicts_a_uniform_chain),
              cmocka_unit_test(asks_for_no_memory_the_second_time),
              cmocka_unit_test(refuses_what_does_not_fit), cmocka_unit_test(names_the_schedules),
              cmocka_unit_test(survives_refused_memory))
