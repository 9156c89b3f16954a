#include "partition/plan/plan_diff.h"

#include "partition/plan/plan_dump.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"

static const pen_plan *plan_with(const char *placement, pen_plan_job **out_plan_job,
                                 pen_arena *arena) {
    const char *rest;
    CHECK_OK(
        pen_arena_format(arena, &rest, "%splacement: {%s}\n", PLANNED_FOUR_DEVICES, placement));
    *out_plan_job = planned_start(planned_reference(arena, "mlp", 4, rest));
    return planned_place(*out_plan_job, arena);
}

static const char *dump(const pen_plan_diff *diff, pen_arena *arena) {
    pen_text text;
    const char *whole;
    pen_text_init(&text, arena);
    pen_plan_diff_dump(diff, &text);
    CHECK_OK(pen_text_finish(&text, &whole));
    return whole;
}

static void a_plan_does_not_differ_from_itself(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job;
    const pen_plan *plan = plan_with("strategy: greedy", &plan_job, arena);
    pen_plan_diff diff;
    CHECK_OK(pen_plan_diff_build(plan, plan, arena, &diff));
    assert_int_equal(diff.node_count, 0);
    assert_int_equal(diff.device_count, 4);
    assert_true(diff.is_same_model && diff.is_same_cluster);
    const char *text = dump(&diff, arena);
    CHECK(strstr(text, "0 nodes moved") != NULL && strstr(text, "strategy") == NULL, "%s", text);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

static void moved_nodes_are_listed(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *first_job, *second_job;
    const pen_plan *first =
        plan_with("strategy: manual, pin: [{nodes: \"^.\", to: a}]", &first_job, arena);
    const pen_plan *second = plan_with(
        "strategy: manual, pin: [{nodes: /layers.0/Gemm, to: b}, {nodes: /Flatten, to: b}]",
        &second_job, arena);
    pen_plan_diff diff;
    CHECK_OK(pen_plan_diff_build(first, second, arena, &diff));
    CHECK(diff.node_count >= 2, "%u nodes moved", diff.node_count);
    uint32_t to_b = 0;
    for (uint32_t n = 0; n < diff.node_count; n++) {
        assert_string_equal(diff.nodes[n].device_before, "a");
        assert_string_not_equal(diff.nodes[n].device_after, diff.nodes[n].device_before);
        to_b += strcmp(diff.nodes[n].name, "/layers.0/Gemm") == 0 &&
                strcmp(diff.nodes[n].device_after, "b") == 0;
    }
    assert_int_equal(to_b, 1);
    const char *text = dump(&diff, arena);
    CHECK(strstr(text, "/layers.0/Gemm") != NULL && strstr(text, "a, then b") != NULL, "%s", text);
    pen_plan_job_destroy(first_job);
    pen_plan_job_destroy(second_job);
    pen_arena_destroy(arena);
}

// Of other models and clusters it says what only one of them has.
static void strangers_are_compared_too(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *first_job, *second_job;
    const pen_plan *first = plan_with("strategy: greedy", &first_job, arena);
    second_job = planned_start(planned_reference(arena, "lenet", 4, PLANNED_ONE_DEVICE));
    const pen_plan *second = planned_place(second_job, arena);
    pen_plan_diff diff;
    CHECK_OK(pen_plan_diff_build(first, second, arena, &diff));
    assert_false(diff.is_same_model || diff.is_same_cluster);
    assert_int_equal(diff.device_count, 4);
    assert_null(diff.devices[1].after);
    uint32_t gone = 0, come = 0;
    for (uint32_t n = 0; n < diff.node_count; n++) {
        gone += diff.nodes[n].device_after == NULL;
        come += diff.nodes[n].device_before == NULL;
    }
    assert_true(gone > 0 && come > 0);
    const char *text = dump(&diff, arena);
    CHECK(strstr(text, "are of different models") != NULL && strstr(text, "nowhere") != NULL, "%s",
          text);
    pen_plan_job_destroy(first_job);
    pen_plan_job_destroy(second_job);
    pen_arena_destroy(arena);
}

// The table of a plan names devices, stages, transfers and where figures come from.
static void tables_say_what_there_is(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job;
    const pen_plan *plan = plan_with(
        "strategy: manual, pin: [{nodes: /layers.0/Gemm, to: b}, {nodes: /Flatten, to: b}, "
        "{nodes: /layers.2/Gemm, to: c}]",
        &plan_job, arena);
    pen_text text;
    const char *whole;
    pen_text_init(&text, arena);
    pen_plan_dump(plan, true, &text);
    CHECK_OK(pen_text_finish(&text, &whole));
    static const char *const expected[] = {
        "strategy     manual", "stage 0    b", "forward      stage 0",
        "backward     stage",  "64.0 MiB",     "0 nodes measured",
        "pinned to 'c'",       "process      "};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        CHECK(strstr(whole, expected[i]) != NULL, "no '%s' in:\n%s", expected[i], whole);
    }
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(a_plan_does_not_differ_from_itself),
              cmocka_unit_test(moved_nodes_are_listed),
              cmocka_unit_test(strangers_are_compared_too),
              cmocka_unit_test(tables_say_what_there_is))
