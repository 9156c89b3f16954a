#include "partition/problem/problem_build.h"
#include "partition/search/large_search.h"

#include <math.h>

#include "base/sanitizer.h"
#include "partition/strategies/strategies.h"
#include "tests/support/check.h"
#include "tests/support/giant_graph.h"

#define NODE_COUNT 20000
#define NODE_COUNT_MORE 60000
#define SECONDS (PEN_IS_SANITIZED ? 12.0 : 1.5)
#define SECONDS_PLENTY 100.0 // the search of large problems ends long before

static pen_problem *make_problem(pen_problem_given *given, pen_arena *arena) {
    pen_problem *problem;
    CHECK_OK(pen_problem_build(given, arena, &problem));
    return problem;
}

static pen_placement *place(const pen_problem *problem, const char *name, double seconds,
                            pen_arena *arena) {
    const pen_strategy *strategy;
    pen_placement *placement;
    const pen_strategy_options options = {
        .seed = 3, .time_limit_seconds = seconds, .thread_count = 2};
    CHECK_OK(pen_strategy_find(name, arena, &strategy));
    CHECK_OK(pen_place(problem, strategy, &options, arena, &placement));
    return placement;
}

static pen_problem_given make_giant(giant_graph_kind kind, uint32_t node_count,
                                    uint32_t device_count, bool is_contiguous, pen_arena *arena) {
    pen_problem_given given;
    const giant_graph_options options = {.kind = kind,
                                         .node_count = node_count,
                                         .device_count = device_count,
                                         .seed = 5,
                                         .is_contiguous = is_contiguous,
                                         .is_unequal = true,
                                         .room = 2.5};
    CHECK_OK(giant_graph_make(&options, arena, &given));
    assert_true(given.node_count >= node_count && given.node_count < node_count + 2000);
    return given;
}

// pen_place has checked memory, colours and the order of devices.
static void check_within(giant_graph_kind kind, uint32_t device_count, bool is_contiguous,
                         double gap) {
    pen_arena *arena = check_arena();
    pen_problem_given given = make_giant(kind, NODE_COUNT_MORE, device_count, is_contiguous, arena);
    const pen_problem *problem = make_problem(&given, arena);
    assert_true(pen_problem_is_large(problem));
    const pen_placement *placement = place(problem, "auto", SECONDS_PLENTY, arena);
    CHECK(placement->value <= (1.0 + gap) * placement->lower_bound, "%g is more than %g above %g",
          placement->value, gap, placement->lower_bound);
    pen_arena_destroy(arena);
}

static void equal_seeds_give_equal_placements(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_given given = make_giant(GIANT_BRANCHING, NODE_COUNT, 160, false, arena);
    const pen_problem *problem = make_problem(&given, arena);
    const pen_placement *first = place(problem, "auto", SECONDS_PLENTY, arena);
    const pen_placement *second = place(problem, "auto", SECONDS_PLENTY, arena);
    assert_memory_equal(second->device_of_node, first->device_of_node,
                        given.node_count * sizeof *first->device_of_node);
    pen_arena_destroy(arena);
}

static void transformers_are_near_the_bound(void **state) {
    (void)state;
    check_within(GIANT_TRANSFORMER, 48, false, 0.05);
}

static void branching_networks_are_near_the_bound(void **state) {
    (void)state;
    check_within(GIANT_BRANCHING, 48, true, 0.15); // transfers take the rest
}

// More devices than groups each could fill, and outputs times devices beyond any table.
static void very_many_devices_do(void **state) {
    (void)state;
    check_within(GIANT_TRANSFORMER, 3000, true, 40.0);
}

static void pins_and_refused_devices_are_kept(void **state) {
    (void)state;
    for (int is_contiguous = 0; is_contiguous < 2; is_contiguous++) {
        pen_arena *arena = check_arena();
        pen_problem_given given =
            make_giant(GIANT_TRANSFORMER, NODE_COUNT, 64, is_contiguous == 1, arena);
        pen_problem_node *nodes;
        pen_problem_device *devices;
        double *compute;
        CHECK_OK(PEN_NEW(arena, given.node_count, &nodes));
        CHECK_OK(PEN_NEW(arena, given.device_count, &devices));
        CHECK_OK(PEN_NEW(arena, 2 * (size_t)given.node_count, &compute));
        memcpy(devices, given.devices, given.device_count * sizeof *devices);
        for (uint32_t d = 0; d < given.device_count; d += 2)
            devices[d].kind = 1;
        for (uint32_t v = 0; v < given.node_count; v++) {
            nodes[v] = given.nodes[v];
            nodes[v].color = PEN_PROBLEM_ANY;
            compute[v] = given.compute[v];
            compute[given.node_count + v] = 3.0 * given.compute[v];
            // strewn over the graph where no order is asked for, else at its beginning
            const bool is_special = is_contiguous ? v == 0 : v % 500 == 0;
            if (is_special) nodes[v].pin = is_contiguous ? 5 : v / 500 % given.device_count;
            if (!is_contiguous && v % 500 == 250) compute[v] = INFINITY;
        }
        given.kind_count = 2;
        given.devices = devices;
        given.compute = compute;
        given.nodes = nodes;
        const pen_problem *problem = make_problem(&given, arena);
        assert_true(pen_problem_is_large(problem));
        const pen_placement *placement = place(problem, "auto", SECONDS, arena);
        for (uint32_t v = 0; v < given.node_count; v++) {
            const uint32_t device = placement->device_of_node[v];
            if (nodes[v].pin != PEN_PROBLEM_ANY) assert_int_equal(device, nodes[v].pin);
            assert_true(compute[devices[device].kind * given.node_count + v] < INFINITY);
        }
        CHECK(placement->value < 3.0 * placement->lower_bound, "%g, bound %g", placement->value,
              placement->lower_bound);
        pen_arena_destroy(arena);
    }
}

static void too_little_memory_is_told(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_given given;
    const pen_strategy *strategy;
    pen_placement *placement;
    const giant_graph_options options = {.kind = GIANT_TRANSFORMER,
                                         .node_count = NODE_COUNT,
                                         .device_count = 40,
                                         .seed = 5,
                                         .room = 0.98};
    CHECK_OK(giant_graph_make(&options, arena, &given));
    const pen_problem *problem = make_problem(&given, arena);
    const pen_strategy_options limits = {.seed = 3, .time_limit_seconds = 2.0, .thread_count = 2};
    CHECK_OK(pen_strategy_find("auto", arena, &strategy));
    CHECK_ERROR(pen_place(problem, strategy, &limits, arena, &placement), PEN_DOES_NOT_FIT,
                "bytes");
    pen_arena_destroy(arena);
}

static void metis_refines_large_graphs(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_given given = make_giant(GIANT_TRANSFORMER, NODE_COUNT, 48, false, arena);
    const pen_placement *placement = place(make_problem(&given, arena), "metis", 2.0, arena);
    CHECK(placement->value < 1.5 * placement->lower_bound, "%g, bound %g", placement->value,
          placement->lower_bound);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(transformers_are_near_the_bound),
              cmocka_unit_test(branching_networks_are_near_the_bound),
              cmocka_unit_test(equal_seeds_give_equal_placements),
              cmocka_unit_test(very_many_devices_do),
              cmocka_unit_test(pins_and_refused_devices_are_kept),
              cmocka_unit_test(too_little_memory_is_told),
              cmocka_unit_test(metis_refines_large_graphs))
