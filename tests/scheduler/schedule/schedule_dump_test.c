#include "scheduler/schedule/schedule_dump.h"

#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/stage_chain.h"

static const pen_timeline *simulate(const pen_stage_graph *graph, pen_arena *arena) {
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    CHECK_OK(pen_schedule_generator_find("1f1b", arena, &generator));
    CHECK_OK(generator->generate(graph, arena, &schedule));
    CHECK_OK(pen_schedule_simulate(graph, schedule, arena, &timeline));
    return timeline;
}

static void draws_text(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *text;
    pen_stage_graph graph = *stage_chain(arena, 4, 8, 1, 2, 0);
    const double bytes_limit[] = {4096, 4096, 4096, 4096};
    graph.bytes_limit = bytes_limit;
    CHECK_OK(pen_schedule_dump_text(simulate(&graph, arena), NULL, arena, &text));
    CHECK_GOLDEN("schedule_chain.txt", text);
    pen_arena_destroy(arena);
}

static void draws_pictures(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *text;
    static const char *const names[] = {"a", "<b> & \"c\""};
    CHECK_OK(pen_schedule_dump_svg(simulate(stage_chain(arena, 2, 3, 1, 2, 0.5), arena), names,
                                   arena, &text));
    CHECK_GOLDEN("schedule_chain.svg", text);
    pen_arena_destroy(arena);
}

static size_t count(const char *text, const char *wanted) {
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++) {
        found++;
    }
    return found;
}

static void draws_every_task_that_takes_time(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        pen_arena *arena = check_arena();
        const pen_timeline *timeline = simulate(stage_graph_random(arena, seed), arena);
        const char *text;
        size_t wanted = 0;
        for (uint32_t t = 0; t < timeline->schedule->task_count; t++) {
            if (pen_task_seconds(timeline->graph, timeline->schedule->tasks[t]) > 0) wanted++;
        }
        for (uint32_t i = 0; i < timeline->times.transfer_count; i++) {
            const pen_transfer_time *transfer = &timeline->times.transfers[i];
            if (transfer->end_seconds > transfer->start_seconds) wanted++;
        }
        CHECK_OK(pen_schedule_dump_svg(timeline, NULL, arena, &text));
        CHECK(count(text, "<title>") == wanted + 1, "%zu, expected %zu", count(text, "<title>"),
              wanted + 1); // and that of the picture
        CHECK_OK(pen_schedule_dump_text(timeline, NULL, arena, &text));
        CHECK(count(text, "% busy") == timeline->graph->device_count + timeline->link_count, "%s",
              text);
        pen_arena_destroy(arena);
    }
}

// Forward passes and sends take a ten thousandth of a pixel.
static void shows_what_is_thinner_than_a_pixel(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *text;
    CHECK_OK(pen_schedule_dump_svg(simulate(stage_chain(arena, 2, 1, 1e-7, 2, 1e-7), arena), NULL,
                                   arena, &text));
    CHECK(count(text, "width=\"1\" height=\"22\" class=\"f\"") == 2, "%s", text);
    CHECK(count(text, "width=\"1\" height=\"5\" class=\"s\"") == 2, "%s", text);
    pen_arena_destroy(arena);
}

// Long names are cut between letters, and told whole to the mouse.
static void cuts_long_names(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    char longest[101] = "";
    const char *names[] = {"short", longest};
    const char *text;
    for (int i = 0; i < 50; i++) {
        memcpy(longest + 2 * i, "\u00e4", 2);
    }
    CHECK_OK(pen_schedule_dump_svg(simulate(stage_chain(arena, 2, 1, 1, 1, 0), arena), names, arena,
                                   &text));
    CHECK(count(text, "\u00e4\u2026<title>") == 1, "%s", text);
    CHECK(count(text, "\u00e4") == 97, "%zu", count(text, "\u00e4")); // 47 and all 50
    longest[96] = '\0';
    CHECK_OK(pen_schedule_dump_svg(simulate(stage_chain(arena, 2, 1, 1, 1, 0), arena), names, arena,
                                   &text));
    CHECK(count(text, "\u2026") == 0 && count(text, "\u00e4") == 48, "%s", text);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(cuts_long_names), cmocka_unit_test(draws_text),
              cmocka_unit_test(draws_pictures), cmocka_unit_test(draws_every_task_that_takes_time),
              cmocka_unit_test(shows_what_is_thinner_than_a_pixel))
