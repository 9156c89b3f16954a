// Every objective on small random problems: `exhaustive` against a walk over all placements, every
// strategy against `exhaustive`, and the lower bounds against both. PEN_LONG=1 in the environment
// tries ten times as many.
#include <math.h>

#include "partition/bound/bounds.h"
#include "partition/problem/problem_build.h"
#include "partition/strategies/strategies.h"
#include "scheduler/schedule/schedule_step_time.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

// A small problem of one objective, or NULL where none can be built.
typedef struct objective_case {
    pen_arena *arena;
    pen_problem *problem;
    pen_problem_given given; // what it was made from
    pen_schedule_step_time_context *schedule;
} objective_case;

static bool case_begin(uint64_t seed, const placement_wish *wish, objective_case *out_case) {
    objective_case c = {.arena = check_arena()};
    placement_case_make(seed, wish, c.arena, &c.given);
    if (wish->objective == PEN_OBJECTIVE_STEP_TIME) {
        CHECK_OK(pen_schedule_step_time_create(seed % 2 == 0 ? "1f1b" : "gpipe", &c.schedule));
        c.given.step_time = pen_schedule_step_time;
        c.given.step_time_context = c.schedule;
        c.given.microbatch_count = 1 + (uint32_t)(seed % 5);
    }
    const pen_status status = pen_problem_build(&c.given, c.arena, &c.problem);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the next seed may do");
        pen_schedule_step_time_destroy(c.schedule);
        pen_arena_destroy(c.arena);
        return false;
    }
    *out_case = c;
    return true;
}

static void case_end(objective_case *c) {
    pen_schedule_step_time_destroy(c->schedule);
    pen_arena_destroy(c->arena);
}

// The value of a placement of groups, INFINITY when it is not right.
static double case_value(const objective_case *c, const uint32_t *device_of_group) {
    pen_arena *arena = check_arena();
    pen_placement *placement;
    double value = INFINITY;
    uint32_t *device_of_node = placement_case_spread(c->problem, device_of_group, arena);
    pen_status status = pen_placement_new(c->problem, device_of_node, arena, &placement);
    if (status == PEN_OK) status = pen_placement_check(c->problem, placement);
    if (status == PEN_OK) value = placement->value;
    pen_status_ignore(status, "some placements are not right");
    pen_arena_destroy(arena);
    return value;
}

// The best value of all placements of the groups, one by one.
static double case_best(const objective_case *c) {
    const uint32_t count = c->problem->group_count, devices = c->problem->given.device_count;
    uint32_t device_of_group[16] = {0};
    double best = INFINITY;
    CHECK(count <= 16, "%u groups", count);
    for (;;) {
        best = fmin(best, case_value(c, device_of_group));
        uint32_t g = 0;
        while (g < count && ++device_of_group[g] == devices)
            device_of_group[g++] = 0;
        if (g == count) return best;
    }
}

static double case_run(const objective_case *c, const char *name, double seconds) {
    const pen_strategy *strategy;
    pen_placement *placement;
    const pen_strategy_options options = {
        .seed = 7, .time_limit_seconds = seconds, .cut_seconds = 60.0, .thread_count = 1};
    CHECK_OK(pen_strategy_find(name, c->arena, &strategy));
    const pen_status status = pen_place(c->problem, strategy, &options, c->arena, &placement);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "as it is");
        return INFINITY;
    }
    CHECK_OK(status);
    double bound;
    CHECK_OK(pen_bound(c->problem, c->arena, &bound));
    CHECK(bound <= placement->value * (1.0 + 1e-9), "%s: the bound is above", name);
    const char *fault = placement_judge_fault(&c->given, placement->device_of_node);
    CHECK(fault == NULL, "%s: %s", name, fault);
    if (c->given.objective != PEN_OBJECTIVE_STEP_TIME) { // which the schedule alone knows
        const double value = placement_judge_value(&c->given, placement->device_of_node, c->arena);
        CHECK(placement_judge_same(value, placement->value), "%s: says %.17g, is %.17g", name,
              placement->value, value);
    }
    return placement->value;
}

static void check_small(uint64_t seed, const placement_wish *wish, int *io_fitting) {
    objective_case c;
    if (!case_begin(seed, wish, &c)) return;
    const unsigned long long number = seed;
    const double best = case_best(&c);
    const double found = case_run(&c, "exhaustive", 10.0);
    CHECK(found == best || fabs(found - best) <= 1e-9 * (1.0 + best),
          "seed %llu: exhaustive finds %.17g, the best is %.17g", number, found, best);
    double bound;
    CHECK_OK(pen_bound(c.problem, c.arena, &bound));
    CHECK(bound <= best * (1.0 + 1e-9), "seed %llu: bound %.17g above the best, %.17g", number,
          bound, best);
    const double portfolio = case_run(&c, "auto", 10.0);
    CHECK(portfolio == best || fabs(portfolio - best) <= 1e-9 * (1.0 + best),
          "seed %llu: auto finds %.17g, the best is %.17g", number, portfolio, best);
    for (const pen_strategy *const *s = pen_strategies; *s != NULL; s++) {
        if (strcmp((*s)->name, "auto") == 0 || strcmp((*s)->name, "exhaustive") == 0) continue;
        if (strcmp((*s)->name, "metis") == 0 && seed % 7 != 0) continue; // takes long
        const double value = case_run(&c, (*s)->name, 0.003);
        CHECK(value >= best * (1.0 - 1e-9), "seed %llu: %s finds %.17g, the best is %.17g", number,
              (*s)->name, value, best);
    }
    if (best < INFINITY) *io_fitting += 1;
    case_end(&c);
}

static void check_objective(pen_objective objective, bool is_contiguous, uint64_t seed) {
    const placement_wish wish = {.node_count_most = 8,
                                 .device_count_most = 4,
                                 .placement_count_most = 1500,
                                 .objective = objective,
                                 .is_contiguous = is_contiguous,
                                 .has_used_bounds = true};
    const uint64_t count = getenv("PEN_LONG") != NULL ? 400 : 40;
    int fitting = 0;
    for (uint64_t i = 0; i < count; i++)
        check_small(seed + i, &wish, &fitting);
    CHECK(fitting > (int)count / 4, "%d of %d cases fit", fitting, (int)count);
}

static void throughput(void **state) {
    (void)state;
    check_objective(PEN_OBJECTIVE_THROUGHPUT, false, 100);
    check_objective(PEN_OBJECTIVE_THROUGHPUT, true, 1100);
}

static void latency(void **state) {
    (void)state;
    check_objective(PEN_OBJECTIVE_LATENCY, false, 2100);
    check_objective(PEN_OBJECTIVE_LATENCY, true, 3100);
}

static void step_time(void **state) {
    (void)state;
    check_objective(PEN_OBJECTIVE_STEP_TIME, false, 4100);
    check_objective(PEN_OBJECTIVE_STEP_TIME, true, 5100);
}

// Too large to be looked at whole, so that both search. In counted steps, however long it takes.
static void auto_finds_no_less_than_local_search(void **state) {
    (void)state;
    uint32_t fitting = 0;
    for (uint64_t seed = 8100; seed < 8160; seed++) {
        const placement_wish wish = {.node_count_most = 40,
                                     .device_count_most = 5,
                                     .objective = PEN_OBJECTIVE_STEP_TIME,
                                     .is_contiguous = seed % 3 == 0};
        objective_case c;
        if (!case_begin(seed, &wish, &c)) continue;
        const double found = case_run(&c, "auto", 0.1), local = case_run(&c, "local_search", 0.1);
        CHECK(found <= local, "seed %llu: auto finds %.17g, local_search %.17g",
              (unsigned long long)seed, found, local);
        fitting += local < INFINITY;
        case_end(&c);
    }
    CHECK(fitting > 20, "%u cases fit", fitting);
}

// No placement has a shorter step than the bound under any schedule, found or not.
static void no_step_is_below_its_bound(void **state) {
    (void)state;
    const uint64_t count = getenv("PEN_LONG") != NULL ? 20000 : 1000;
    double shares = 0.0;
    int fitting = 0;
    for (uint64_t seed = 700000; seed < 700000 + count; seed++) {
        const placement_wish wish = {.node_count_most = 9,
                                     .device_count_most = 4,
                                     .placement_count_most = 300,
                                     .objective = PEN_OBJECTIVE_STEP_TIME,
                                     .is_contiguous = seed % 3 == 0,
                                     .has_used_bounds = true,
                                     .is_unconstrained = seed % 4 < 2};
        objective_case c;
        double bound;
        if (!case_begin(seed, &wish, &c)) continue;
        if (seed % 5 == 4) {
            pen_schedule_step_time_destroy(c.schedule);
            CHECK_OK(pen_schedule_step_time_create("zero_bubble", &c.schedule));
            c.problem->given.step_time_context = c.schedule;
        }
        const double best = case_best(&c);
        CHECK_OK(pen_bound(c.problem, c.arena, &bound));
        CHECK(bound <= best * (1.0 + 1e-9), "seed %llu: bound %.17g above the best, %.17g",
              (unsigned long long)seed, bound, best);
        if (best > 0.0 && best < INFINITY) {
            shares += bound / best;
            fitting++;
        }
        case_end(&c);
    }
    CHECK(fitting > (int)count / 4, "%d of %d cases fit", fitting, (int)count);
    CHECK(shares / fitting > 0.6, "bounds are %.4f of the best in the mean", shares / fitting);
}

static void traffic(void **state) {
    (void)state;
    check_objective(PEN_OBJECTIVE_TRAFFIC, false, 6100);
    check_objective(PEN_OBJECTIVE_TRAFFIC, true, 7100);
}

PEN_TEST_MAIN(cmocka_unit_test(throughput), cmocka_unit_test(latency), cmocka_unit_test(step_time),
              cmocka_unit_test(auto_finds_no_less_than_local_search),
              cmocka_unit_test(no_step_is_below_its_bound), cmocka_unit_test(traffic))
