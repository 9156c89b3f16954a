#include "partition/objective/load_state.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"
#include "tests/support/random_case.h"

#define DEVICES 5

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-6 * (1.0 + fabs(a) + fabs(b));
}

static void check_state(const pen_load_state *state, const char *when, uint64_t seed) {
    const pen_problem_given *given = &state->problem->given;
    pen_arena *arena = check_arena();
    const uint32_t *devices = placement_case_spread(state->problem, state->device_of_group, arena);
    double load[DEVICES], bytes[DEVICES], worst = 0.0;
    placement_judge_loads(given, devices, load, bytes);
    uint32_t total[DEVICES] = {0};
    for (uint32_t g = 0; g < state->problem->group_count; g++)
        total[state->device_of_group[g]] += 1;
    for (uint32_t d = 0; d < given->device_count; d++) {
        CHECK(near(load[d], state->load[d]), "seed %llu, %s: load %.17g, judged %.17g",
              (unsigned long long)seed, when, state->load[d], load[d]);
        assert_true(near(bytes[d], state->bytes[d]));
        assert_int_equal(total[d], state->group_total[d]);
        worst = fmax(worst, state->load[d]);
    }
    assert_true(worst == pen_load_state_worst(state));
    pen_arena_destroy(arena);
}

// Weighs and makes a random move; what was weighed must be what came of it.
static void move_once(pen_load_state *state, random_case *random) {
    const pen_problem *problem = state->problem;
    const uint32_t g = (uint32_t)random_between(random, 0, problem->group_count - 1);
    const uint32_t d = (uint32_t)random_between(random, 0, problem->given.device_count - 1);
    double before[DEVICES], change[DEVICES] = {0.0};
    if (d == state->device_of_group[g] || !pen_problem_allows(problem, g, d)) return;
    memcpy(before, state->load, problem->given.device_count * sizeof *before);
    pen_load_state_weigh(state, g, d);
    for (uint32_t i = 0; i < state->touched_count; i++)
        change[state->touched[i]] = state->change[state->touched[i]];
    assert_memory_equal(before, state->load, problem->given.device_count * sizeof *before);
    if (random_chance(random, 30)) return; // another is weighed instead
    pen_load_state_move(state, g, d);
    for (uint32_t i = 0; i < problem->given.device_count; i++)
        assert_true(near(before[i] + change[i], state->load[i]));
}

static void follows_thousands_of_moves(void **state) {
    (void)state;
    uint64_t seed = 40000;
    for (int i = 0; i < 60; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = 25, .device_count_most = DEVICES};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        random_case random = {.seed = seed};
        uint32_t devices[25];
        pen_load_state *loads;
        placement_case_scatter(problem, seed, devices);
        CHECK_OK(pen_load_state_new(problem, devices, arena, &loads));
        check_state(loads, "at first", seed);
        for (int move = 0; move < 3000; move++) {
            move_once(loads, &random);
            if (move % 500 == 0) check_state(loads, "moving", seed);
        }
        check_state(loads, "at last", seed);
        pen_load_state_refresh(loads);
        check_state(loads, "refreshed", seed);
        pen_load_state_set(loads, loads->device_of_group);
        check_state(loads, "set to itself", seed);
        pen_load_state_set(loads, devices);
        check_state(loads, "set back", seed);
        assert_memory_equal(devices, loads->device_of_group,
                            problem->group_count * sizeof *devices);
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(follows_thousands_of_moves))
