#include "partition/search/segment_plan.h"

#include <math.h>

#include "partition/search/linear_orders.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

#define GROUPS 8

typedef struct line_search {
    const pen_problem *problem;
    const uint32_t *line;
    uint32_t device_of_group[GROUPS];
    bool is_used[4];
    double best;
} line_search;

// Every cut of a line, every device for each segment.
static void try_cuts(line_search *search, uint32_t begin) {
    const pen_problem *problem = search->problem;
    if (begin == problem->group_count) {
        pen_arena *arena = check_arena();
        const uint32_t *devices = placement_case_spread(problem, search->device_of_group, arena);
        if (placement_judge_fault(&problem->given, devices) == NULL) {
            search->best =
                fmin(search->best, placement_judge_value(&problem->given, devices, arena));
        }
        pen_arena_destroy(arena);
        return;
    }
    for (uint32_t end = begin + 1; end <= problem->group_count; end++) {
        for (uint32_t d = 0; d < problem->given.device_count; d++) {
            if (search->is_used[d]) continue;
            search->is_used[d] = true;
            for (uint32_t i = begin; i < end; i++)
                search->device_of_group[search->line[i]] = d;
            try_cuts(search, end);
            search->is_used[d] = false;
        }
    }
}

static pen_segment_plan find_plan(const pen_problem *problem, const pen_down_sets *sets,
                                  double limit, pen_arena *arena) {
    pen_device_classes *classes;
    pen_segment_plan plan;
    const pen_segment_plan_options options = {.value_limit = limit, .deadline = INFINITY};
    CHECK_OK(pen_device_classes_new(problem, 0, arena, &classes));
    assert_false(classes->is_sequence);
    CHECK_OK(pen_segment_plan_find(problem, classes, sets, &options, arena, &plan));
    assert_true(plan.is_finished);
    return plan;
}

static void check_plan(const pen_problem *problem, const pen_down_sets *sets, double best,
                       pen_arena *arena) {
    const pen_segment_plan plan = find_plan(problem, sets, INFINITY, arena);
    if (isinf(best)) {
        assert_false(plan.is_found);
        return;
    }
    assert_true(plan.is_found);
    CHECK(placement_judge_same(plan.value, best), "found %.17g, best is %.17g", plan.value, best);
    const uint32_t *devices = placement_case_spread(problem, plan.device_of_group, arena);
    const char *fault = placement_judge_fault(&problem->given, devices);
    CHECK(fault == NULL, "%s", fault);
    assert_true(placement_judge_same(placement_judge_value(&problem->given, devices, arena), best));
    // below a limit: the same if it is above the best, else nothing
    assert_true(find_plan(problem, sets, best * 1.001 + 1e-9, arena).is_found);
    assert_false(find_plan(problem, sets, best * 0.999, arena).is_found);
}

static void cuts_of_a_line_are_the_best(void **state) {
    (void)state;
    uint64_t seed = 70000;
    for (int i = 0; i < 80; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = GROUPS,
                                     .device_count_most = 3,
                                     .is_contiguous = true,
                                     .is_plain = true,
                                     .has_no_links = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        uint32_t line[GROUPS];
        pen_down_sets *sets;
        CHECK_OK(pen_linear_order(problem, 1, (uint32_t)i % 6, arena, line));
        line_search search = {.problem = problem, .line = line, .best = INFINITY};
        try_cuts(&search, 0);
        CHECK_OK(pen_down_sets_of_orders(problem, line, 1, arena, &sets));
        check_plan(problem, sets, search.best, arena);
        pen_arena_destroy(arena);
    }
}

// Over all down-sets: the best of all contiguous placements whose groups have an order.
static void all_down_sets_give_the_best(void **state) {
    (void)state;
    uint64_t seed = 71000;
    for (int i = 0; i < 80; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = 7,
                                     .device_count_most = 3,
                                     .placement_count_most = 2500,
                                     .is_contiguous = true,
                                     .is_plain = true,
                                     .has_no_links = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        pen_down_sets *sets;
        CHECK_OK(pen_down_sets_all(problem, &problem->after, 1000, arena, &sets));
        assert_non_null(sets);
        check_plan(problem, sets, placement_judge_best(&problem->given, arena), arena);
        pen_arena_destroy(arena);
    }
}

static void a_deadline_that_is_past_cuts_short(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    uint64_t seed = 72000;
    const placement_wish wish = {.node_count_most = 8,
                                 .device_count_most = 3,
                                 .is_contiguous = true,
                                 .is_unconstrained = true};
    const pen_problem *problem = placement_case_build(&seed, &wish, arena);
    uint32_t line[GROUPS];
    pen_down_sets *sets;
    pen_device_classes *classes;
    pen_segment_plan plan;
    const pen_segment_plan_options options = {.value_limit = INFINITY, .deadline = -1.0};
    CHECK_OK(pen_linear_order(problem, 1, 0, arena, line));
    CHECK_OK(pen_down_sets_of_orders(problem, line, 1, arena, &sets));
    CHECK_OK(pen_device_classes_new(problem, 0, arena, &classes));
    CHECK_OK(pen_segment_plan_find(problem, classes, sets, &options, arena, &plan));
    assert_false(plan.is_finished || plan.is_found);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(cuts_of_a_line_are_the_best),
              cmocka_unit_test(all_down_sets_give_the_best),
              cmocka_unit_test(a_deadline_that_is_past_cuts_short))
