#include "partition/search/reduced_problem.h"

#include <math.h>

#include "partition/bound/load_bound.h"
#include "partition/bound/traffic_bound.h"
#include "partition/objective/placement.h"
#include "partition/problem/problem_build.h"
#include "partition/search/required_devices.h"
#include "tests/support/check.h"

#define NODE_COUNT 6

// A chain of six nodes on four devices: rates 1:2:4:8, memory the other way round.
static const pen_problem_device devices[] = {
    {.slowness = 8, .bytes_limit = 400, .send = 1, .receive = 1},
    {.slowness = 4, .bytes_limit = 300, .send = 1, .receive = 1},
    {.slowness = 2, .bytes_limit = 200, .send = 1, .receive = 1},
    {.slowness = 1, .bytes_limit = 100, .send = 1, .receive = 1},
};
static const pen_problem_edge edges[] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}};
static const double compute[NODE_COUNT] = {1, 1, 1, 1, 1, 6};
static const double link_seconds[16] = {0, 1, 2, 3, 4, 0, 5, 6, 7, 8, 0, 9, 10, 11, 12, 0};

static void chain_nodes(pen_problem_node *nodes) {
    for (uint32_t v = 0; v < NODE_COUNT; v++) {
        nodes[v] = (pen_problem_node){
            .bytes = 10, .transfer = 1.0 + v, .color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY};
    }
}

static pen_problem_given chain_given(const pen_problem_node *nodes) {
    return (pen_problem_given){.device_count = 4,
                               .kind_count = 1,
                               .node_count = NODE_COUNT,
                               .edge_count = NODE_COUNT - 1,
                               .devices = devices,
                               .nodes = nodes,
                               .edges = edges,
                               .compute = compute,
                               .link = link_seconds,
                               .is_contiguous = true};
}

static void chooses_devices_by_taste(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_node nodes[NODE_COUNT];
    pen_problem *problem;
    uint32_t chosen[2];
    bool is_possible;
    chain_nodes(nodes);
    nodes[0].pin = 1;
    const pen_problem_given given = chain_given(nodes);
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(
        pen_reduced_problem_choose(problem, 2, PEN_DEVICE_TASTE_FAST, arena, chosen, &is_possible));
    assert_true(is_possible && chosen[0] == 1 && chosen[1] == 3);
    CHECK_OK(pen_reduced_problem_choose(problem, 2, PEN_DEVICE_TASTE_LARGE, arena, chosen,
                                        &is_possible));
    assert_true(is_possible && chosen[0] == 0 && chosen[1] == 1);
    nodes[1].pin = 2;
    nodes[2].pin = 3;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(
        pen_reduced_problem_choose(problem, 2, PEN_DEVICE_TASTE_FAST, arena, chosen, &is_possible));
    assert_false(is_possible);
    pen_arena_destroy(arena);
}

// A placement on some devices costs what it costs on all.
static void some_devices_cost_what_they_did(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_node nodes[NODE_COUNT];
    pen_problem *problem;
    const pen_problem *some;
    pen_placement *whole, *part;
    chain_nodes(nodes);
    nodes[5].pin = 3;
    const pen_problem_given given = chain_given(nodes);
    const uint32_t chosen[] = {1, 3};
    const uint32_t there[NODE_COUNT] = {0, 0, 0, 1, 1, 1};
    uint32_t here[NODE_COUNT];
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(pen_reduced_problem_on(problem, chosen, 2, arena, &some));
    assert_int_equal(some->given.device_count, 2);
    assert_int_equal(some->group_pin[5], 1);
    for (uint32_t v = 0; v < NODE_COUNT; v++)
        here[v] = chosen[there[v]];
    CHECK_OK(pen_placement_new(problem, here, arena, &whole));
    CHECK_OK(pen_placement_new(some, there, arena, &part));
    CHECK_OK(pen_placement_check(some, part));
    assert_true(part->value == whole->value);
    assert_true(part->load[0] == whole->load[1] && part->load[1] == whole->load[3]);
    pen_arena_destroy(arena);
}

// Updates count a share of their time; the traffic stand-in adds up what is received.
static void stands_in_for_step_time_and_traffic(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_node nodes[NODE_COUNT];
    pen_problem *problem;
    const pen_problem *other;
    pen_placement *placement;
    chain_nodes(nodes);
    nodes[5].role = PEN_ROLE_UPDATE;
    pen_problem_given given = chain_given(nodes);
    given.link = NULL;
    given.objective = PEN_OBJECTIVE_TRAFFIC;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(pen_reduced_problem_new(problem, arena, &other));
    const uint32_t device_of_node[NODE_COUNT] = {0, 0, 1, 1, 2, 3};
    CHECK_OK(pen_placement_new(other, device_of_node, arena, &placement));
    double received = 0.0;
    for (uint32_t d = 0; d < 4; d++)
        received += placement->load[d];
    assert_true(received == 2.0 + 4.0 + 5.0);
    assert_true(placement->traffic == received);
    problem->given.objective = PEN_OBJECTIVE_STEP_TIME;
    problem->given.microbatch_count = 3;
    CHECK_OK(pen_reduced_problem_new(problem, arena, &other));
    assert_int_equal(other->given.objective, PEN_OBJECTIVE_THROUGHPUT);
    assert_true(pen_problem_compute(other, 5, 3) == 2.0);
    assert_true(pen_problem_compute(other, 4, 3) == 1.0);
    pen_arena_destroy(arena);
}

static void spreads_over_as_many_devices_as_must_be(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_node nodes[NODE_COUNT];
    pen_problem *problem;
    pen_placement *placement;
    chain_nodes(nodes);
    pen_problem_given given = chain_given(nodes);
    given.devices_used_minimum = 4;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    uint32_t device_of_group[NODE_COUNT] = {0};
    CHECK_OK(pen_use_required_devices(problem, arena, device_of_group));
    CHECK_OK(pen_placement_new(problem, device_of_group, arena, &placement));
    CHECK_OK(pen_placement_check(problem, placement));
    assert_int_equal(placement->used_count, 4);
    nodes[0].pin = nodes[1].pin = nodes[2].pin = nodes[3].pin = nodes[4].pin = 0;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    uint32_t stuck[NODE_COUNT] = {0};
    CHECK_ERROR(pen_use_required_devices(problem, arena, stuck), PEN_DOES_NOT_FIT,
                "no placement was found that uses 4 devices, as is asked; 2 are the most");
    pen_arena_destroy(arena);
}

static void refuses_bounds_that_contradict(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_node nodes[NODE_COUNT];
    pen_problem *problem;
    pen_placement *placement;
    const uint32_t device_of_node[NODE_COUNT] = {0, 0, 1, 1, 2, 3};
    chain_nodes(nodes);
    pen_problem_given given = chain_given(nodes);
    given.devices_used_minimum = 5;
    CHECK_ERROR(pen_problem_build(&given, arena, &problem), PEN_INVALID_INPUT,
                "at least 5 devices are to be used, there are 4");
    given.devices_used_minimum = 3;
    given.devices_used_maximum = 2;
    CHECK_ERROR(pen_problem_build(&given, arena, &problem), PEN_INVALID_INPUT,
                "at least 3 devices are to be used, but at most 2 may be");
    given.devices_used_minimum = 0;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(pen_placement_new(problem, device_of_node, arena, &placement));
    CHECK_ERROR(pen_placement_check(problem, placement), PEN_INVALID_INPUT,
                "4 devices are used, at most 2 may be");
    pen_arena_destroy(arena);
}

// Memory for one node in six on the fast device: the bound must count the slow one.
static void memory_raises_the_bound(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_node nodes[NODE_COUNT];
    pen_problem *problem;
    double bound;
    const pen_problem_device two[] = {{.slowness = 1, .bytes_limit = 10},
                                      {.slowness = 100, .bytes_limit = 1000}};
    const double even[NODE_COUNT] = {1, 1, 1, 1, 1, 1};
    chain_nodes(nodes);
    pen_problem_given given = chain_given(nodes);
    given.devices = two;
    given.device_count = 2;
    given.link = NULL;
    given.compute = even;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(pen_load_bound(problem, arena, &bound));
    CHECK(bound <= 500.0 && bound > 480.0, "the bound is %.17g, five nodes take 500", bound);
    pen_arena_destroy(arena);
}

// Six nodes of 10 bytes where devices hold 30, 20 and 10: two cuts, the cheapest ones.
static void memory_forces_traffic(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_node nodes[NODE_COUNT];
    pen_problem *problem;
    double bound;
    const pen_problem_device three[] = {{.slowness = 1, .bytes_limit = 30},
                                        {.slowness = 1, .bytes_limit = 20},
                                        {.slowness = 1, .bytes_limit = 10}};
    chain_nodes(nodes);
    pen_problem_given given = chain_given(nodes);
    given.objective = PEN_OBJECTIVE_TRAFFIC;
    given.devices = three;
    given.device_count = 3;
    given.link = NULL;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(pen_traffic_bound(problem, arena, &bound));
    CHECK(fabs(bound - 3.0) < 1e-9, "the bound is %.17g, expected 1 + 2", bound);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(chooses_devices_by_taste),
              cmocka_unit_test(some_devices_cost_what_they_did),
              cmocka_unit_test(stands_in_for_step_time_and_traffic),
              cmocka_unit_test(spreads_over_as_many_devices_as_must_be),
              cmocka_unit_test(refuses_bounds_that_contradict),
              cmocka_unit_test(memory_raises_the_bound), cmocka_unit_test(memory_forces_traffic))
