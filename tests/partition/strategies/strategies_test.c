// Every strategy on random problems: what it returns is right by the judge's code, never better
// than the best there is, and DOES_NOT_FIT is only said when nothing fits. PEN_LONG=1 in the
// environment tries ten times as many.
#include "partition/strategies/strategies.h"

#include <math.h>

#include "base/sanitizer.h"
#include "partition/bound/bounds.h"
#include "partition/problem/problem_build.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

static uint64_t case_count(uint64_t usual) {
    if (PEN_IS_SANITIZED) usual = usual / 4 + 1;
    return getenv("PEN_LONG") != NULL ? usual * 10 : usual;
}

static const pen_strategy *find(const char *name) {
    pen_arena *arena = check_arena();
    const pen_strategy *strategy;
    CHECK_OK(pen_strategy_find(name, arena, &strategy));
    pen_arena_destroy(arena);
    return strategy;
}

#define UNKNOWN (-1.0)

typedef struct trial {
    uint64_t seed;
    pen_arena *arena;
    const pen_problem *problem;
    pen_strategy_options options;
    double best; // of `exhaustive`; INFINITY: nothing fits; or UNKNOWN
} trial;

static void check_placement(const trial *t, const char *name, const pen_placement *placement) {
    const pen_problem_given *given = &t->problem->given;
    const unsigned long long seed = t->seed;
    const char *fault = placement_judge_fault(given, placement->device_of_node);
    CHECK(fault == NULL, "seed %llu, %s: %s", seed, name, fault);
    // the judge takes too long for the latency of large graphs
    const bool is_large = given->objective == PEN_OBJECTIVE_LATENCY && given->node_count > 50;
    const double value = is_large
                             ? placement->value
                             : placement_judge_value(given, placement->device_of_node, t->arena);
    CHECK(placement_judge_same(value, placement->value), "seed %llu, %s: says %.17g, is %.17g",
          seed, name, placement->value, value);
    double bound;
    CHECK_OK(pen_bound(t->problem, t->arena, &bound));
    CHECK(bound <= value * (1.0 + 1e-9), "seed %llu, %s: the bound %.17g is above %.17g", seed,
          name, bound, value);
    CHECK(value >= t->best * (1.0 - 1e-9), "seed %llu, %s: %.17g is better than the best, %.17g",
          seed, name, value, t->best);
    CHECK(t->best == UNKNOWN || placement->lower_bound <= t->best * (1.0 + 1e-9),
          "seed %llu, %s: the bound %.17g is above the best, %.17g", seed, name,
          placement->lower_bound, t->best);
}

// Runs one strategy; returns the value, INFINITY when it says that nothing fits.
static double run_strategy(const trial *t, const pen_strategy *strategy) {
    pen_placement *placement;
    const pen_status status = pen_place(t->problem, strategy, &t->options, t->arena, &placement);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        CHECK(t->best == UNKNOWN || isinf(t->best),
              "seed %llu: %s says that nothing fits, but %.17g is possible: %s",
              (unsigned long long)t->seed, strategy->name, t->best, pen_status_message(status));
        pen_status_ignore(status, "as it is");
        return INFINITY;
    }
    if (pen_status_get_code(status) == PEN_UNSUPPORTED && strategy == find("metis")) {
        pen_status_ignore(status, "METIS may refuse");
        return INFINITY;
    }
    if (status != PEN_OK) fprintf(stderr, "seed %llu:\n", (unsigned long long)t->seed);
    CHECK_OK(status);
    check_placement(t, strategy->name, placement);
    return placement->value;
}

static trial trial_begin(uint64_t seed, const placement_wish *wish) {
    trial t = {.arena = check_arena(),
               .best = UNKNOWN,
               .options = {.seed = seed, .time_limit_seconds = 0.02, .thread_count = 1}};
    t.seed = seed;
    t.problem = placement_case_build(&t.seed, wish, t.arena);
    t.seed -= 1; // the one that was built
    return t;
}

// All strategies on one small problem. Returns whether something fits.
static bool try_small(uint64_t seed, const placement_wish *wish) {
    trial t = trial_begin(seed, wish);
    const double best = run_strategy(&t, find("exhaustive"));
    t.best = best;
    // the time must not matter to what is this small: auto tries all placements
    t.options.time_limit_seconds = 5.0;
    const double found = run_strategy(&t, find("auto"));
    CHECK(placement_judge_same(found, best), "seed %llu: auto found %.17g, the best is %.17g",
          (unsigned long long)t.seed, found, best);
    t.options.time_limit_seconds = 0.002;
    for (const pen_strategy *const *s = pen_strategies; *s != NULL; s++) {
        if (*s == find("exhaustive") || *s == find("auto")) continue;
        if (strcmp((*s)->name, "metis") == 0 && seed % 5 != 0) continue; // takes long
        run_strategy(&t, *s);
    }
    pen_arena_destroy(t.arena);
    return best < INFINITY;
}

static void try_small_cases(pen_objective objective, bool is_contiguous, double placements,
                            uint64_t seed) {
    const placement_wish wish = {.is_plain = true,
                                 .node_count_most = 12,
                                 .device_count_most = 5,
                                 .placement_count_most = placements,
                                 .objective = objective,
                                 .is_contiguous = is_contiguous,
                                 .has_used_bounds = true};
    const uint64_t count = case_count(250);
    uint64_t fitting = 0;
    for (uint64_t i = 0; i < count; i++)
        fitting += try_small(seed + i * 1001, &wish);
    CHECK(fitting > count / 2 && fitting < count, "%llu of %llu fit", (unsigned long long)fitting,
          (unsigned long long)count);
}

static void small_throughput(void **state) {
    (void)state;
    try_small_cases(PEN_OBJECTIVE_THROUGHPUT, false, 2e6, 1);
}

static void small_contiguous_throughput(void **state) {
    (void)state;
    try_small_cases(PEN_OBJECTIVE_THROUGHPUT, true, 2e6, 2);
}

static void small_latency(void **state) {
    (void)state;
    try_small_cases(PEN_OBJECTIVE_LATENCY, false, 1e4, 3);
}

static void small_contiguous_latency(void **state) {
    (void)state;
    try_small_cases(PEN_OBJECTIVE_LATENCY, true, 1e4, 4);
}

static void small_traffic(void **state) {
    (void)state;
    try_small_cases(PEN_OBJECTIVE_TRAFFIC, false, 2e5, 5);
    try_small_cases(PEN_OBJECTIVE_TRAFFIC, true, 2e5, 6);
}

// ---- larger ones

static void try_large(uint64_t seed, const placement_wish *wish) {
    trial t = trial_begin(seed, wish);
    t.options.thread_count = 2;
    for (const pen_strategy *const *s = pen_strategies; *s != NULL; s++) {
        if (*s == find("exhaustive")) continue;
        if (*s == find("metis") && seed % 3 != 0) continue; // takes long
        run_strategy(&t, *s);
    }
    pen_arena_destroy(t.arena);
}

static void large_problems(void **state) {
    (void)state;
    const uint64_t count = case_count(6);
    for (uint64_t i = 0; i < count; i++) {
        for (int kind = 0; kind < 4; kind++) {
            const placement_wish wish = {.is_plain = true,
                                         .node_count_most = 300,
                                         .device_count_most = 12,
                                         .objective = kind % 2 == 0 ? PEN_OBJECTIVE_THROUGHPUT
                                                                    : PEN_OBJECTIVE_LATENCY,
                                         .is_contiguous = kind >= 2};
            try_large(500000 + i * 1000, &wish);
        }
    }
}

// ---- same seed, same placement

static void check_repeats(const trial *t, const pen_strategy *strategy) {
    pen_placement *first, *second;
    const pen_status status = pen_place(t->problem, strategy, &t->options, t->arena, &first);
    if (status != PEN_OK) {
        pen_status_ignore(status, "it does not fit, or is too large");
        return;
    }
    CHECK_OK(pen_place(t->problem, strategy, &t->options, t->arena, &second));
    assert_memory_equal(first->device_of_node, second->device_of_node,
                        first->node_count * sizeof *first->device_of_node);
    assert_true(first->value == second->value && first->lower_bound == second->lower_bound);
}

// Where no clock enters: strategies without a search, and searches that end before their time.
static void equal_seeds_give_equal_placements(void **state) {
    (void)state;
    for (uint64_t i = 0; i < case_count(4); i++) {
        for (int kind = 0; kind < 4; kind++) {
            const placement_wish wish = {.is_plain = true,
                                         .node_count_most = kind < 2 ? 40 : 10,
                                         .device_count_most = 4,
                                         .placement_count_most = kind < 2 ? 0 : 1e5,
                                         .is_contiguous = kind % 2 == 0};
            trial t = trial_begin(900000 + i * 1000, &wish);
            t.options.time_limit_seconds = 60.0;
            t.options.thread_count = 2;
            for (const pen_strategy *const *s = pen_strategies; *s != NULL; s++) {
                const bool searches = *s == find("auto") || *s == find("local_search");
                if (kind < 2 && (searches || *s == find("exhaustive"))) continue;
                if (*s == find("local_search")) continue; // takes all its time
                check_repeats(&t, *s);
            }
            pen_arena_destroy(t.arena);
        }
    }
}

static void different_seeds_differ_at_random(void **state) {
    (void)state;
    const placement_wish wish = {
        .node_count_most = 60, .device_count_most = 6, .is_unconstrained = true};
    uint64_t differing = 0;
    for (uint64_t i = 0; i < 10; i++) {
        trial t = trial_begin(77000 + i, &wish);
        pen_placement *first, *second;
        CHECK_OK(pen_place(t.problem, find("random"), &t.options, t.arena, &first));
        t.options.seed += 1;
        CHECK_OK(pen_place(t.problem, find("random"), &t.options, t.arena, &second));
        differing += memcmp(first->device_of_node, second->device_of_node,
                            first->node_count * sizeof *first->device_of_node) != 0;
        pen_arena_destroy(t.arena);
    }
    assert_true(differing > 5);
}

// ---- wishes

// What is wished for is kept, or it is said that it cannot be: then no placement has it.
static void try_wishes(bool is_contiguous) {
    const placement_wish wish = {.node_count_most = 7,
                                 .device_count_most = 3,
                                 .placement_count_most = 2500,
                                 .is_contiguous = is_contiguous,
                                 .has_used_bounds = true};
    int kept = 0, refused = 0;
    for (uint64_t i = 0; i < 200; i++) {
        trial t = trial_begin(600000 + i * 100, &wish);
        const pen_problem_given *given = &t.problem->given;
        uint32_t scattered[7], wished[7];
        placement_case_scatter(t.problem, t.seed, scattered);
        for (uint32_t v = 0; v < given->node_count; v++) {
            const bool is_wished = (t.seed >> v & 1) != 0;
            wished[v] = is_wished ? scattered[t.problem->group_of_node[v]] : PEN_PROBLEM_ANY;
        }
        t.options.device_of_node = wished;
        pen_placement *placement;
        const pen_status status =
            pen_place(t.problem, find("manual"), &t.options, t.arena, &placement);
        if (status == PEN_OK) {
            check_placement(&t, "manual", placement);
            for (uint32_t v = 0; v < given->node_count; v++) {
                if (wished[v] == PEN_PROBLEM_ANY) continue;
                assert_int_equal(placement->device_of_node[v], wished[v]);
            }
            kept++;
        } else {
            const pen_status_code code = pen_status_get_code(status);
            CHECK(code == PEN_INVALID_INPUT || code == PEN_DOES_NOT_FIT, "seed %llu: code %d",
                  (unsigned long long)t.seed, (int)code);
            pen_problem_given pinned = *given; // pins say the same
            pen_problem_node nodes[7];
            memcpy(nodes, given->nodes, given->node_count * sizeof *nodes);
            for (uint32_t v = 0; v < given->node_count; v++) {
                if (wished[v] != PEN_PROBLEM_ANY) nodes[v].pin = wished[v];
            }
            pinned.nodes = nodes;
            CHECK(isinf(placement_judge_best(&pinned, t.arena)), "seed %llu: %s",
                  (unsigned long long)t.seed, pen_status_message(status));
            refused++;
            pen_status_ignore(status, "as the judge says");
        }
        pen_arena_destroy(t.arena);
    }
    CHECK(kept > 60 && refused > 10, "%d kept, %d refused", kept, refused);
}

static void wishes_are_kept(void **state) {
    (void)state;
    try_wishes(false);
    try_wishes(true);
}

// ---- the list

static void unknown_names_are_answered(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_strategy *strategy;
    CHECK_ERROR(pen_strategy_find("greedi", arena, &strategy), PEN_NOT_FOUND,
                "unknown strategy 'greedi', possible: ");
    CHECK_ERROR(pen_strategy_find("", arena, &strategy), PEN_NOT_FOUND, "dynamic_programming");
    for (const pen_strategy *const *s = pen_strategies; *s != NULL; s++) {
        CHECK_OK(pen_strategy_find((*s)->name, arena, &strategy));
        assert_ptr_equal(strategy, *s);
        assert_true((*s)->summary[0] != '\0' && strlen((*s)->summary) < 90);
    }
    pen_arena_destroy(arena);
}

// A graph without nodes, and one whose costs are all 0.
static void nothing_to_do(void **state) {
    (void)state;
    static const pen_problem_device devices[2] = {
        {.slowness = 1.0, .send = 1.0, .receive = 1.0, .bytes_limit = 4.0},
        {.slowness = 1.0, .send = 1.0, .receive = 1.0, .bytes_limit = 4.0}};
    static const pen_problem_node nodes[3] = {{.color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY},
                                              {.color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY},
                                              {.color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY}};
    static const pen_problem_edge edges[2] = {{0, 1}, {1, 2}};
    static const double compute[3] = {0.0, 0.0, 0.0};
    for (int kind = 0; kind < 8; kind++) {
        trial t = {.arena = check_arena(),
                   .best = UNKNOWN,
                   .options = {.seed = 1, .time_limit_seconds = 0.01, .thread_count = 2}};
        const pen_problem_given given = {.objective = kind % 2 == 0 ? PEN_OBJECTIVE_THROUGHPUT
                                                                    : PEN_OBJECTIVE_LATENCY,
                                         .is_contiguous = kind / 2 % 2 == 0,
                                         .device_count = 2,
                                         .kind_count = 1,
                                         .node_count = kind < 4 ? 3 : 0,
                                         .edge_count = kind < 4 ? 2 : 0,
                                         .devices = devices,
                                         .nodes = nodes,
                                         .edges = edges,
                                         .compute = compute};
        pen_problem *problem;
        CHECK_OK(pen_problem_build(&given, t.arena, &problem));
        t.problem = problem;
        for (const pen_strategy *const *s = pen_strategies; *s != NULL; s++) {
            pen_placement *placement;
            CHECK_OK(pen_place(problem, *s, &t.options, t.arena, &placement));
            assert_true(placement->value == 0.0 && placement->lower_bound == 0.0);
        }
        pen_arena_destroy(t.arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(small_throughput), cmocka_unit_test(small_contiguous_throughput),
              cmocka_unit_test(small_latency), cmocka_unit_test(small_contiguous_latency),
              cmocka_unit_test(small_traffic), cmocka_unit_test(large_problems),
              cmocka_unit_test(equal_seeds_give_equal_placements),
              cmocka_unit_test(different_seeds_differ_at_random), cmocka_unit_test(wishes_are_kept),
              cmocka_unit_test(unknown_names_are_answered), cmocka_unit_test(nothing_to_do))
