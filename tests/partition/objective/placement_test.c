#include "partition/objective/placement.h"
#include "partition/problem/problem_build.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

static const pen_problem_device two_devices[2] = {
    {.slowness = 1.0, .send = 1.0, .receive = 1.0, .bytes_limit = 10.0},
    {.slowness = 2.0, .send = 1.0, .receive = 1.0, .bytes_limit = 10.0}};

// a -> b -> c, a -> c; what they cost is told apart by the digits.
typedef struct diamond {
    pen_problem_node nodes[3];
    pen_problem_device devices[2];
    double compute[3];
    pen_problem_given given;
} diamond;

static void diamond_make(diamond *c) {
    static const pen_problem_edge edges[3] = {{0, 1}, {1, 2}, {0, 2}};
    static const char *const names[3] = {"a", "b", "c"};
    static const char *const devices[2] = {"left", "right"};
    *c = (diamond){.compute = {1.0, 10.0, 100.0}};
    memcpy(c->devices, two_devices, sizeof two_devices);
    for (int v = 0; v < 3; v++) {
        c->nodes[v] = (pen_problem_node){
            .bytes = 4.0, .transfer = 0.25, .color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY};
    }
    c->given = (pen_problem_given){.device_count = 2,
                                   .kind_count = 1,
                                   .node_count = 3,
                                   .edge_count = 3,
                                   .devices = c->devices,
                                   .nodes = c->nodes,
                                   .edges = edges,
                                   .compute = c->compute,
                                   .names = names,
                                   .device_names = devices};
}

static pen_placement *place(const pen_problem *problem, const uint32_t *devices, pen_arena *arena) {
    pen_placement *placement;
    CHECK_OK(pen_placement_new(problem, devices, arena, &placement));
    return placement;
}

// a on the left, the others on the right: a is moved once, though two read it.
static void loads_are_as_defined(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    diamond c;
    pen_problem *problem;
    diamond_make(&c);
    CHECK_OK(pen_problem_build(&c.given, arena, &problem));
    const uint32_t devices[3] = {0, 1, 1};
    const pen_placement *placement = place(problem, devices, arena);
    assert_true(placement->load[0] == 1.25 && placement->load[1] == 220.25);
    assert_true(placement->bytes[0] == 4.0 && placement->bytes[1] == 8.0);
    assert_true(placement->value == 220.25 && placement->traffic == 0.25);
    assert_int_equal(placement->used_count, 2);
    CHECK_OK(pen_placement_check(problem, placement));
    pen_arena_destroy(arena);
}

// Each kind of wrong placement, by what the check says of it.
static void refuse(const diamond *c, const uint32_t *devices, pen_status_code code,
                   const char *text) {
    pen_arena *arena = check_arena();
    pen_problem *problem;
    CHECK_OK(pen_problem_build(&c->given, arena, &problem));
    CHECK_ERROR(pen_placement_check(problem, place(problem, devices, arena)), code, text);
    pen_arena_destroy(arena);
}

static void wrong_placements_are_refused(void **state) {
    (void)state;
    diamond c;
    diamond_make(&c);
    refuse(&c, (const uint32_t[]){0, 0, 0}, PEN_DOES_NOT_FIT,
           "device left would hold 12 of 10 bytes");
    c.given.is_contiguous = true;
    refuse(&c, (const uint32_t[]){0, 1, 0}, PEN_INVALID_INPUT, "wait for each other in a circle");
    diamond_make(&c);
    c.nodes[1].pin = 1;
    refuse(&c, (const uint32_t[]){1, 0, 0}, PEN_INVALID_INPUT,
           "node b is not on the device it is pinned to, right");
    diamond_make(&c);
    c.nodes[0].color = c.nodes[2].color = 5;
    refuse(&c, (const uint32_t[]){0, 1, 1}, PEN_INVALID_INPUT,
           "node c is not on the device of node a");
    diamond_make(&c);
    c.given.devices_used_maximum = 1;
    refuse(&c, (const uint32_t[]){0, 1, 1}, PEN_INVALID_INPUT, "at most 1 may be");
    diamond_make(&c);
    c.nodes[0].bytes = 1.0;
    c.given.devices_used_minimum = 2;
    refuse(&c, (const uint32_t[]){1, 1, 1}, PEN_INVALID_INPUT, "at least 2 must be");
    diamond_make(&c);
    static const pen_problem_forbidden forbidden = {2, 1};
    c.given.forbidden = &forbidden;
    c.given.forbidden_count = 1;
    refuse(&c, (const uint32_t[]){0, 0, 1}, PEN_INVALID_INPUT, "node c cannot run on device right");
}

static void wrong_kinds_are_refused(void **state) {
    (void)state;
    diamond c;
    diamond_make(&c);
    static const double compute[6] = {1.0, 1.0, 1.0, 1.0, INFINITY, 1.0};
    c.devices[1].kind = 1;
    c.given.kind_count = 2;
    c.given.compute = compute;
    refuse(&c, (const uint32_t[]){0, 1, 0}, PEN_INVALID_INPUT, "node b cannot run on device right");
}

static void wrong_figures_are_refused(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    diamond c;
    pen_problem *problem;
    diamond_make(&c);
    CHECK_OK(pen_problem_build(&c.given, arena, &problem));
    pen_placement *placement = place(problem, (const uint32_t[]){0, 0, 1}, arena);
    placement->value += 1.0;
    CHECK_ERROR(pen_placement_check(problem, placement), PEN_INVALID_INPUT, "the value is");
    placement->value -= 1.0;
    placement->load[0] += 1.0;
    CHECK_ERROR(pen_placement_check(problem, placement), PEN_INVALID_INPUT,
                "the load of device left is");
    placement->load[0] -= 1.0;
    placement->bytes[1] = 0.0;
    CHECK_ERROR(pen_placement_check(problem, placement), PEN_INVALID_INPUT,
                "device right holds 4 bytes");
    placement->bytes[1] = 4.0;
    CHECK_OK(pen_placement_check(problem, placement));
    placement->device_of_node[1] = 2;
    CHECK_ERROR(pen_placement_check(problem, placement), PEN_INVALID_INPUT, "node b is not placed");
    pen_arena_destroy(arena);
}

// Values and the verdict of the check are the judge's, on placements right and wrong.
static void agrees_with_the_judge(void **state) {
    (void)state;
    static const pen_objective objectives[] = {PEN_OBJECTIVE_THROUGHPUT, PEN_OBJECTIVE_LATENCY,
                                               PEN_OBJECTIVE_TRAFFIC};
    uint64_t seed = 30000;
    int right = 0;
    for (int i = 0; i < 600; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = i % 2 == 0 ? 5 : 20,
                                     .device_count_most = 4,
                                     .objective = objectives[i % 3],
                                     .is_contiguous = i / 3 % 2 == 0,
                                     .has_used_bounds = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        uint32_t devices[20];
        placement_case_scatter(problem, seed, devices);
        uint32_t *spread = placement_case_spread(problem, devices, arena);
        if (i % 5 == 0) spread[0] = (spread[0] + 1) % problem->given.device_count;
        const pen_placement *placement = place(problem, spread, arena);
        double load[4], bytes[4];
        placement_judge_loads(&problem->given, spread, load, bytes);
        for (uint32_t d = 0; d < problem->given.device_count; d++) {
            assert_true(placement_judge_same(load[d], placement->load[d]));
            assert_true(placement_judge_same(bytes[d], placement->bytes[d]));
        }
        const double value = placement_judge_value(&problem->given, spread, arena);
        CHECK(placement_judge_same(value, placement->value), "seed %llu: %.17g, judged %.17g",
              (unsigned long long)seed, placement->value, value);
        const char *fault = placement_judge_fault(&problem->given, spread);
        const pen_status status = pen_placement_check(problem, placement);
        CHECK((fault == NULL) == (status == PEN_OK), "seed %llu: judged '%s', found '%s'",
              (unsigned long long)seed, fault == NULL ? "right" : fault,
              status == PEN_OK ? "right" : pen_status_message(status));
        right += fault == NULL;
        pen_status_ignore(status, "as judged");
        pen_arena_destroy(arena);
    }
    CHECK(right > 100 && right < 500, "%d of 600 are right", right);
}

PEN_TEST_MAIN(cmocka_unit_test(loads_are_as_defined),
              cmocka_unit_test(wrong_placements_are_refused),
              cmocka_unit_test(wrong_kinds_are_refused),
              cmocka_unit_test(wrong_figures_are_refused), cmocka_unit_test(agrees_with_the_judge))
