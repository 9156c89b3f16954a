// Searches leave right placements, no worse than what they began with, say their true value, find
// the best of small problems, and do the same when asked the same.
#include "partition/problem/problem_build.h"
#include "partition/search/load_anneal.h"

#include <math.h>

#include "partition/search/initial_placement.h"
#include "partition/search/latency_anneal.h"
#include "partition/search/multilevel.h"
#include "partition/search/region.h"
#include "partition/strategies/exhaustive.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

#define NODES 60

typedef enum search_kind { ANNEAL, MULTILEVEL, LATENCY } search_kind;

static double run_search(search_kind kind, const pen_problem *problem, const uint32_t *line,
                         uint64_t steps, uint32_t *devices) {
    double value = 0.0;
    const pen_annealing_options options = {.seed = 5,
                                           .step_count = steps,
                                           .deadline = INFINITY,
                                           .warmth_first = 0.05,
                                           .warmth_last = 0.0005};
    const pen_multilevel_options levels = {
        .run = options, .warmth_least = 0.003, .group_target = 8};
    switch (kind) {
    case ANNEAL:
        CHECK_OK(pen_load_anneal(problem, line, &options, devices, &value));
        break;
    case MULTILEVEL:
        CHECK_OK(pen_multilevel_cycle(problem, line, &levels, devices, &value));
        break;
    case LATENCY:
        CHECK_OK(pen_latency_anneal(problem, line, &options, devices, &value));
        break;
    }
    return value;
}

// A right placement, and a line; false when none was found.
static bool begin_search(const pen_problem *problem, pen_arena *arena, uint32_t *line,
                         uint32_t *devices) {
    for (uint32_t g = 0; g < problem->group_count; g++)
        line[g] = devices[g] = PEN_PROBLEM_ANY;
    pen_initial_placement start;
    double bound;
    const pen_initial_options options = {.seed = 1, .order_count = 1, .deadline = INFINITY};
    CHECK_OK(pen_initial_segments(problem, &options, arena, &start, &bound));
    memcpy(line, start.line, problem->group_count * sizeof *line);
    const pen_status status = pen_initial_repair(problem, line, arena, devices);
    const bool is_right = status == PEN_OK;
    pen_status_ignore(status, "a case that cannot be placed");
    return is_right;
}

static void try_search(search_kind kind, uint64_t first_seed, int count) {
    uint64_t seed = first_seed;
    for (int i = 0; i < count; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = kind == LATENCY ? 25 : NODES,
                                     .device_count_most = 6,
                                     .objective = kind == LATENCY ? PEN_OBJECTIVE_LATENCY
                                                                  : PEN_OBJECTIVE_THROUGHPUT,
                                     .is_contiguous = i % 2 == 0};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        uint32_t line[NODES], devices[NODES], again[NODES];
        const uint64_t steps = kind == LATENCY ? 2000 : 20000;
        if (begin_search(problem, arena, line, devices)) {
            const uint32_t *spread = placement_case_spread(problem, devices, arena);
            const double before = placement_judge_value(&problem->given, spread, arena);
            memcpy(again, devices, sizeof again);
            const double value = run_search(kind, problem, line, steps, devices);
            spread = placement_case_spread(problem, devices, arena);
            const char *fault = placement_judge_fault(&problem->given, spread);
            CHECK(fault == NULL, "seed %llu: %s", (unsigned long long)seed, fault);
            const double after = placement_judge_value(&problem->given, spread, arena);
            CHECK(placement_judge_same(after, value) || fabs(after - value) < 1e-6,
                  "seed %llu: says %.17g, is %.17g", (unsigned long long)seed, value, after);
            assert_true(after <= before * (1.0 + 1e-9) + 1e-9);
            assert_true(run_search(kind, problem, line, steps, again) == value);
            assert_memory_equal(again, devices, problem->group_count * sizeof *devices);
        }
        pen_arena_destroy(arena);
    }
}

static void annealing_is_right(void **state) {
    (void)state;
    try_search(ANNEAL, 130000, 60);
}

static void cycles_of_levels_are_right(void **state) {
    (void)state;
    try_search(MULTILEVEL, 131000, 60);
}

static void searches_for_latency_are_right(void **state) {
    (void)state;
    try_search(LATENCY, 132000, 40);
}

// Of small problems with room, long searches find the best nearly always.
static void small_optima_are_found(void **state) {
    (void)state;
    for (int kind = ANNEAL; kind <= LATENCY; kind++) {
        uint64_t seed = 133000;
        int found = 0;
        for (int i = 0; i < 30; i++) {
            pen_arena *arena = check_arena();
            const placement_wish wish = {.node_count_most = 8,
                                         .device_count_most = 3,
                                         .objective = kind == LATENCY ? PEN_OBJECTIVE_LATENCY
                                                                      : PEN_OBJECTIVE_THROUGHPUT,
                                         .is_unconstrained = true};
            const pen_problem *problem = placement_case_build(&seed, &wish, arena);
            uint32_t line[NODES], devices[NODES], best_devices[NODES];
            assert_true(begin_search(problem, arena, line, devices));
            double best = INFINITY;
            bool is_complete;
            const pen_exhaustive_options all = {.visit_limit = UINT64_MAX, .deadline = INFINITY};
            CHECK_OK(
                pen_exhaustive_search(problem, &all, arena, best_devices, &best, &is_complete));
            assert_true(is_complete);
            const double value = run_search((search_kind)kind, problem, line, 20000, devices);
            assert_true(value >= best * (1.0 - 1e-9));
            found += value <= best * (1.0 + 1e-9) + 1e-12;
            pen_arena_destroy(arena);
        }
        CHECK(found >= 22, "search %d: %d of 30 optima", kind, found);
    }
}

#define LOAD_NODES 120

// Accelerators that have nothing to do but what their memory holds are filled with what is dearest
// elsewhere for its bytes: memory that may be exceeded on the way is no home for the rest.
static void memory_is_filled_well(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_node nodes[LOAD_NODES] = {0};
    double compute[2 * LOAD_NODES], bytes_total = 0.0, bound = 0.0;
    for (uint32_t v = 0; v < LOAD_NODES; v++) {
        const double dear = 1.0 + v % 11; // for each byte, on the core
        nodes[v].bytes = 5.0 + v * 37 % 20;
        nodes[v].color = nodes[v].pin = PEN_PROBLEM_ANY;
        compute[v] = 0.01 * dear * nodes[v].bytes;
        compute[LOAD_NODES + v] = dear * nodes[v].bytes;
        bytes_total += nodes[v].bytes;
    }
    double room = 0.6 * bytes_total; // of both together: what is left is the cheapest, at best
    const pen_problem_device devices[3] = {
        {.slowness = 1.0, .send = 1.0, .receive = 1.0, .bytes_limit = 0.5 * room},
        {.slowness = 1.0, .send = 1.0, .receive = 1.0, .bytes_limit = 0.5 * room},
        {.kind = 1, .slowness = 1.0, .bytes_limit = INFINITY}};
    for (int dear = 11; dear > 0; dear--) {
        for (uint32_t v = (uint32_t)dear - 1; v < LOAD_NODES; v += 11) {
            const double held = fmin(room, nodes[v].bytes);
            room -= held;
            bound += dear * (nodes[v].bytes - held);
        }
    }
    const pen_problem_given given = {.device_count = 3,
                                     .kind_count = 2,
                                     .node_count = LOAD_NODES,
                                     .devices = devices,
                                     .nodes = nodes,
                                     .compute = compute};
    pen_problem *problem;
    double value;
    uint32_t line[LOAD_NODES], placed[LOAD_NODES];
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    for (uint32_t g = 0; g < LOAD_NODES; g++) {
        line[g] = g;
        placed[g] = 2;
    }
    const pen_annealing_options options = {.seed = 5,
                                           .step_count = 300000,
                                           .deadline = INFINITY,
                                           .warmth_first = 0.05,
                                           .warmth_last = 0.0005};
    CHECK_OK(pen_load_anneal(problem, line, &options, placed, &value));
    CHECK(value >= bound * (1.0 - 1e-9) && value <= bound * 1.1, "%g, bound %g", value, bound);
    pen_arena_destroy(arena);
}

// Ranks of devices rise along forward edges, or there is a circle.
static void ranks_rise(void **state) {
    (void)state;
    uint64_t seed = 134000;
    int ranked = 0;
    for (int i = 0; i < 300; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {
            .node_count_most = 12, .device_count_most = 4, .is_contiguous = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        uint32_t devices[12];
        double rank[4];
        placement_case_scatter(problem, seed, devices);
        const uint32_t *spread = placement_case_spread(problem, devices, arena);
        pen_problem_given free = problem->given; // of constraints but the order
        pen_problem_device roomy[4];
        for (uint32_t d = 0; d < free.device_count; d++) {
            roomy[d] = free.devices[d];
            roomy[d].bytes_limit = INFINITY;
        }
        free.devices = roomy;
        const bool is_ranked = pen_rank_devices(problem, devices, rank);
        assert_int_equal(is_ranked, placement_judge_fault(&free, spread) == NULL);
        for (uint32_t g = 0; g < problem->group_count && is_ranked; g++) {
            for (uint32_t e = problem->after.first[g]; e < problem->after.first[g + 1]; e++)
                assert_true(rank[devices[g]] <= rank[devices[problem->after.ids[e]]]);
        }
        ranked += is_ranked;
        pen_arena_destroy(arena);
    }
    assert_true(ranked > 50 && ranked < 290);
}

PEN_TEST_MAIN(cmocka_unit_test(annealing_is_right), cmocka_unit_test(cycles_of_levels_are_right),
              cmocka_unit_test(searches_for_latency_are_right),
              cmocka_unit_test(small_optima_are_found), cmocka_unit_test(memory_is_filled_well),
              cmocka_unit_test(ranks_rise))
