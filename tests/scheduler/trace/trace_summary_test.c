#include "scheduler/trace/trace_summary.h"

#include <math.h>

#include "scheduler/trace/trace_levels.h"
#include "tests/support/check.h"
#include "tests/support/made_trace.h"

#define NEAR(a, b) (fabs((a) - (b)) < 1e-9)

static const pen_trace_summary *summary_of(const pen_trace *trace, pen_arena *arena) {
    const pen_trace_summary *summary;
    CHECK_OK(pen_trace_summarize(trace, arena, &summary));
    return summary;
}

static void says_what_a_step_is(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_trace_summary *summary = summary_of(made_trace(arena, 4), arena);
    assert_int_equal(summary->step_count, 3);
    assert_int_equal(summary->steps[0].round, 1);
    assert_int_equal(summary->steps[0].step, 2);
    CHECK(NEAR(summary->step_seconds, 10), "%g", summary->step_seconds);
    CHECK(NEAR(summary->bubble, 0.35), "%g", summary->bubble);
    for (uint32_t d = 0; d < 2; d++) {
        CHECK(NEAR(summary->busy_seconds[d], 6.5), "%u: %g", d, summary->busy_seconds[d]);
        CHECK(NEAR(summary->wait_seconds[d], d == 0 ? 3.5 : 1.25), "%g", summary->wait_seconds[d]);
        CHECK(NEAR(summary->sent_bytes[d], d == 0 ? 128 : 64), "%g", summary->sent_bytes[d]);
    }
    assert_true(summary->has_slowest);
    CHECK(NEAR(summary->slowest_seconds, 6.5), "%g", summary->slowest_seconds);
    assert_int_equal(summary->lost_count, 0);
    // the only step counts, though it is the first
    summary = summary_of(made_trace(arena, 1), arena);
    assert_int_equal(summary->step_count, 1);
    CHECK(NEAR(summary->step_seconds, 12), "%g", summary->step_seconds);
    CHECK(NEAR(summary->bubble, 1 - 13.0 / 24), "%g", summary->bubble);
    summary = summary_of(made_trace(arena, 0), arena);
    assert_int_equal(summary->step_count, 0);
    assert_false(summary->has_slowest);
    pen_arena_destroy(arena);
}

static void says_what_tasks_and_links_take(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_trace_summary *summary = summary_of(made_trace(arena, 3), arena);
    assert_int_equal(summary->cost_count, 6);
    for (uint32_t s = 0; s < 2; s++) {
        CHECK(NEAR(pen_trace_summary_cost(summary, PEN_TASK_FORWARD, s), 1), "stage %u", s);
        CHECK(NEAR(pen_trace_summary_cost(summary, PEN_TASK_BACKWARD, s), 2), "stage %u", s);
        CHECK(NEAR(pen_trace_summary_cost(summary, PEN_TASK_UPDATE, s), 0.5), "stage %u", s);
    }
    CHECK(pen_trace_summary_cost(summary, PEN_TASK_BACKWARD_INPUT, 0) < 0, "never ran");
    CHECK(pen_trace_summary_cost(summary, PEN_TASK_FORWARD, 2) < 0, "not there");
    assert_int_equal(summary->costs[0].count, 4);
    assert_int_equal(summary->link_count, 2);
    const pen_trace_link *link = summary->links;
    assert_true(link[0].source == 0 && link[0].target == 1 && link[1].source == 1);
    CHECK(NEAR(link[0].bytes, 128) && NEAR(link[1].bytes, 64), "%g %g", link[0].bytes,
          link[1].bytes);
    CHECK(NEAR(link[0].frames, 2) && NEAR(link[0].seconds, 0.5), "%g", link[0].seconds);
    pen_arena_destroy(arena);
}

// A device that begins the next step while others end this one is not idle.
static void counts_no_time_twice(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_trace_event events[12];
    for (uint32_t i = 0; i < 12; i++) { // both compute without a break, 'b' a second later
        const uint32_t round = i / 2, second = 4 * round + i % 2;
        events[i] = (pen_trace_event){.kind = PEN_TRACE_TASK,
                                      .device = i % 2,
                                      .channel = PEN_TRACE_NO_CHANNEL,
                                      .round = round,
                                      .start_seconds = second,
                                      .end_seconds = second + 4};
    }
    const pen_trace_worker worker = {.name = "w", .events = events, .event_count = 12};
    const uint32_t worker_of_device[] = {0, 0};
    pen_trace trace = *made_trace(arena, 0);
    trace.workers = &worker;
    trace.worker_count = 1;
    trace.worker_of_device = worker_of_device;
    const pen_trace_summary *summary = summary_of(&trace, arena);
    assert_int_equal(summary->step_count, 5);
    CHECK(NEAR(summary->step_seconds, 4), "%g", summary->step_seconds);
    CHECK(NEAR(summary->bubble, 0), "%g", summary->bubble);
    pen_arena_destroy(arena);
}

// Steps of which the ring has lost the beginning, and other forms, do not count.
static void leaves_out_what_is_not_whole(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_trace *made = made_trace(arena, 4);
    pen_trace trace = *made;
    pen_trace_worker workers[2] = {made->workers[0], made->workers[1]};
    trace.workers = workers;
    workers[0].events += 12; // the first step, and two tasks of the second
    workers[0].event_count -= 12;
    workers[0].lost_count = 12;
    const pen_trace_summary *summary = summary_of(&trace, arena);
    assert_int_equal(summary->step_count, 1);
    assert_int_equal(summary->steps[0].round, 3);
    assert_int_equal(summary->lost_count, 12);
    pen_trace_event *events;
    workers[0] = made->workers[0];
    CHECK_OK(PEN_NEW(arena, workers[0].event_count, &events));
    for (uint32_t i = 0; i < workers[0].event_count; i++) {
        events[i] = workers[0].events[i];
        if (events[i].round == 3) events[i].form = 1;
    }
    workers[0].events = events;
    summary = summary_of(&trace, arena);
    assert_int_equal(summary->step_count, 2);
    CHECK(NEAR(summary->bubble, 0.35), "%g", summary->bubble);
    pen_arena_destroy(arena);
}

static void says_what_is_held_when(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_trace *trace = made_trace(arena, 2);
    const pen_trace_entry *entries;
    const pen_trace_level *levels;
    uint32_t count, level_count, most[2] = {0};
    double bytes[2] = {0};
    CHECK_OK(pen_trace_merge(trace, arena, &entries, &count));
    CHECK_OK(pen_trace_levels(trace, entries, count, arena, &levels, &level_count));
    assert_int_equal(level_count, 16);
    double last[2] = {-1, -1};
    for (uint32_t i = 0; i < level_count; i++) {
        const uint32_t d = levels[i].device;
        CHECK(levels[i].seconds > last[d], "level %u", i);
        last[d] = levels[i].seconds;
        if (levels[i].in_flight > most[d]) most[d] = levels[i].in_flight;
        bytes[d] = fmax(bytes[d], levels[i].bytes);
    }
    assert_int_equal(most[0], 2);
    assert_int_equal(most[1], 2);
    CHECK(bytes[0] == 120 && bytes[1] == 240, "%g %g", bytes[0], bytes[1]);
    assert_int_equal(levels[level_count - 1].in_flight, 0);
    CHECK(levels[level_count - 1].bytes == 100, "%g", levels[level_count - 1].bytes);
    CHECK(NEAR(levels[0].seconds, 0) && NEAR(levels[1].seconds, 1), "%g", levels[1].seconds);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(says_what_a_step_is),
              cmocka_unit_test(says_what_tasks_and_links_take),
              cmocka_unit_test(counts_no_time_twice),
              cmocka_unit_test(leaves_out_what_is_not_whole),
              cmocka_unit_test(says_what_is_held_when))
