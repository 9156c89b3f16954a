#include "partition/problem/problem.h"
#include "partition/problem/problem_build.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/placement_generator.h"

// Four nodes on two devices, to be changed by each test.
typedef struct small_case {
    pen_problem_device devices[2];
    pen_problem_node nodes[4];
    pen_problem_edge edges[8];
    double compute[8]; // two kinds
    double link[4];
    double link_latency[4];
    pen_problem_given given;
} small_case;

static void small_case_make(small_case *c) {
    static const pen_problem_edge chain[3] = {{0, 1}, {1, 2}, {2, 3}};
    memset(c, 0, sizeof *c);
    for (int d = 0; d < 2; d++) {
        c->devices[d] = (pen_problem_device){
            .slowness = 1.0, .send = 1.0, .receive = 1.0, .bytes_limit = INFINITY};
    }
    for (int v = 0; v < 4; v++) {
        c->nodes[v] = (pen_problem_node){
            .bytes = 1.0, .transfer = 1.0, .color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY};
        c->compute[v] = c->compute[4 + v] = 1.0 + v;
    }
    memcpy(c->edges, chain, sizeof chain);
    c->given = (pen_problem_given){.device_count = 2,
                                   .kind_count = 2,
                                   .node_count = 4,
                                   .edge_count = 3,
                                   .devices = c->devices,
                                   .nodes = c->nodes,
                                   .edges = c->edges,
                                   .compute = c->compute};
}

static pen_problem *build(const small_case *c, pen_arena *arena) {
    pen_problem *problem;
    CHECK_OK(pen_problem_build(&c->given, arena, &problem));
    return problem;
}

static void refuse(const small_case *c, pen_status_code code, const char *text) {
    pen_arena *arena = check_arena();
    pen_problem *problem;
    CHECK_ERROR(pen_problem_build(&c->given, arena, &problem), code, text);
    pen_arena_destroy(arena);
}

static void groups_are_colours(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    small_case c;
    small_case_make(&c);
    c.nodes[0].color = c.nodes[3].color = 7;
    c.nodes[3].pin = 1;
    const pen_problem *problem = build(&c, arena);
    const uint32_t expected[4] = {0, 1, 2, 0};
    assert_memory_equal(problem->group_of_node, expected, sizeof expected);
    assert_int_equal(problem->group_count, 3);
    assert_true(problem->group_compute[0] == 5.0 && problem->group_bytes[0] == 2.0);
    assert_int_equal(problem->group_pin[0], 1);
    assert_int_equal(problem->group_pin[1], PEN_PROBLEM_ANY);
    assert_false(pen_problem_allows(problem, 0, 0));
    assert_true(pen_problem_allows(problem, 0, 1));
    pen_arena_destroy(arena);
}

// 0 and 3 share a device, so in a contiguous problem what lies between them does too.
static void cycles_of_groups_are_one_group(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    small_case c;
    small_case_make(&c);
    c.nodes[0].color = c.nodes[2].color = 0;
    c.given.is_contiguous = true;
    const pen_problem *problem = build(&c, arena);
    const uint32_t expected[4] = {0, 0, 0, 1};
    assert_memory_equal(problem->group_of_node, expected, sizeof expected);
    c.nodes[1].role = PEN_ROLE_BACKWARD_INPUT; // not judged
    problem = build(&c, arena);
    assert_int_equal(problem->group_count, 3);
    pen_arena_destroy(arena);
}

static void doubled_edges_and_loops_do_not_count(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    small_case c;
    small_case_make(&c);
    c.edges[3] = (pen_problem_edge){2, 2};
    c.edges[4] = (pen_problem_edge){0, 1};
    c.given.edge_count = 5;
    const pen_problem *problem = build(&c, arena);
    assert_int_equal(problem->successors.first[4], 3);
    assert_int_equal(problem->output_count, 3);
    pen_arena_destroy(arena);
}

static void forbidden_by_name_is_infinite(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    small_case c;
    static const pen_problem_forbidden forbidden[2] = {{2, 0}, {2, 0}};
    small_case_make(&c);
    c.given.forbidden = forbidden;
    c.given.forbidden_count = 2;
    const pen_problem *problem = build(&c, arena);
    for (uint32_t g = 0; g < 4; g++) {
        assert_int_equal(pen_problem_allows(problem, g, 0), g != 2);
        assert_true(pen_problem_allows(problem, g, 1));
    }
    pen_arena_destroy(arena);
}

static void mistakes_are_named(void **state) {
    (void)state;
    small_case c;
    small_case_make(&c);
    c.given.device_count = 0;
    refuse(&c, PEN_INVALID_INPUT, "there is no device");
    small_case_make(&c);
    c.devices[1].slowness = 0.0;
    refuse(&c, PEN_INVALID_INPUT, "device 1: its figures must be positive numbers");
    small_case_make(&c);
    c.devices[0].bytes_limit = NAN;
    refuse(&c, PEN_INVALID_INPUT, "device 0");
    small_case_make(&c);
    c.link[2] = -1.0;
    c.given.link = c.link;
    refuse(&c, PEN_INVALID_INPUT, "-1");
    small_case_make(&c);
    c.link_latency[1] = INFINITY;
    c.given.link = c.link;
    c.given.link_latency = c.link_latency;
    refuse(&c, PEN_INVALID_INPUT, "inf");
    small_case_make(&c);
    c.compute[5] = NAN;
    refuse(&c, PEN_INVALID_INPUT, "node 1: costs and bytes must be numbers");
    small_case_make(&c);
    c.nodes[3].bytes = -1.0;
    refuse(&c, PEN_INVALID_INPUT, "node 3");
    small_case_make(&c);
    c.nodes[2].transfer = c.nodes[3].transfer = 0.7e30;
    refuse(&c, PEN_INVALID_INPUT, "sums too");
    small_case_make(&c);
    c.edges[3] = (pen_problem_edge){3, 1};
    c.given.edge_count = 4;
    refuse(&c, PEN_INVALID_INPUT, "the graph has a cycle: node 1 waits for itself");
    small_case_make(&c);
    c.nodes[0].color = c.nodes[1].color = 3;
    c.nodes[0].pin = 0;
    c.nodes[1].pin = 1;
    refuse(&c, PEN_INVALID_INPUT, "node 1 is pinned to device 1, but nodes that must share its");
    small_case_make(&c);
    c.given.devices_used_minimum = 2;
    c.given.devices_used_maximum = 1;
    refuse(&c, PEN_INVALID_INPUT, "devices");
    small_case_make(&c);
    c.given.objective = PEN_OBJECTIVE_STEP_TIME;
    refuse(&c, PEN_INVALID_INPUT, "");
}

static void what_fits_nowhere_is_named(void **state) {
    (void)state;
    static const char *const names[4] = {"embed", "attend", "mlp", "loss"};
    small_case c;
    small_case_make(&c);
    c.given.names = names;
    c.compute[2] = c.compute[6] = INFINITY;
    refuse(&c, PEN_DOES_NOT_FIT, "no device can run node mlp");
    small_case_make(&c);
    c.given.names = names;
    c.devices[0].bytes_limit = c.devices[1].bytes_limit = 3.0;
    c.nodes[1].bytes = 5.0;
    refuse(&c, PEN_DOES_NOT_FIT, "attend");
    c.nodes[1].bytes = 1.0;
    c.nodes[1].bytes_in_flight = 4.0; // a microbatch in flight needs it too
    refuse(&c, PEN_DOES_NOT_FIT, "attend");
    small_case_make(&c);
    c.devices[1].kind = 1;
    c.compute[0] = INFINITY;
    c.compute[5] = INFINITY;
    c.nodes[0].color = c.nodes[1].color = 1;
    refuse(&c, PEN_DOES_NOT_FIT, "no device can run node 0");
}

// ---- random ones

static void check_groups(const pen_problem *problem) {
    const pen_problem_given *given = &problem->given;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        double bytes = 0.0;
        for (uint32_t v = 0; v < given->node_count; v++)
            bytes += problem->group_of_node[v] == g ? given->nodes[v].bytes : 0.0;
        assert_true(fabs(bytes - problem->group_bytes[g]) <= 1e-9 * bytes);
        for (uint32_t k = 0; k < given->kind_count; k++) {
            double compute = 0.0;
            for (uint32_t v = 0; v < given->node_count; v++) {
                if (problem->group_of_node[v] != g) continue;
                compute += given->compute[k * given->node_count + v];
            }
            const double found = problem->group_compute[k * problem->group_count + g];
            assert_true(compute == found || fabs(compute - found) <= 1e-9 * compute);
        }
    }
    for (uint32_t u = 0; u < given->node_count; u++) {
        for (uint32_t v = 0; v < u && given->nodes[u].color != PEN_PROBLEM_ANY; v++) {
            if (given->nodes[u].color != given->nodes[v].color) continue;
            assert_int_equal(problem->group_of_node[u], problem->group_of_node[v]);
        }
    }
}

static void check_order(const pen_problem *problem) {
    uint32_t position[40];
    for (uint32_t i = 0; i < problem->given.node_count; i++)
        position[problem->node_order[i]] = i;
    for (uint32_t e = 0; e < problem->given.edge_count; e++) {
        const pen_problem_edge edge = problem->given.edges[e];
        assert_true(position[edge.source] < position[edge.target]);
    }
}

// Merging classes of groups gives the problem that colours would have given.
static void check_merge(const pen_problem *problem, uint64_t seed, pen_arena *arena) {
    uint32_t class[40];
    pen_problem *merged, *colored;
    for (uint32_t g = 0; g < problem->group_count; g++)
        class[g] = (uint32_t)((seed >> (g % 20)) + g * 7) % problem->group_count;
    const pen_status status =
        pen_problem_merge(problem, class, problem->given.is_contiguous, arena, &merged);
    pen_problem_given given = problem->given;
    pen_problem_node nodes[40];
    memcpy(nodes, given.nodes, given.node_count * sizeof *nodes);
    for (uint32_t v = 0; v < given.node_count; v++)
        nodes[v].color = class[problem->group_of_node[v]];
    given.nodes = nodes;
    const pen_status expected = pen_problem_build(&given, arena, &colored);
    assert_int_equal(pen_status_get_code(status), pen_status_get_code(expected));
    if (status == PEN_OK) {
        assert_int_equal(merged->group_count, colored->group_count);
        assert_memory_equal(merged->group_of_node, colored->group_of_node,
                            given.node_count * sizeof *merged->group_of_node);
        assert_int_equal(merged->output_count, colored->output_count);
        assert_memory_equal(merged->output_cost, colored->output_cost,
                            merged->output_count * sizeof *merged->output_cost);
    }
    pen_status_ignore(status, "compared");
    pen_status_ignore(expected, "compared");
}

static void random_problems_are_grouped_rightly(void **state) {
    (void)state;
    uint64_t seed = 10000;
    for (int i = 0; i < 200; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {
            .node_count_most = 30, .device_count_most = 5, .is_contiguous = i % 2 == 0};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        check_groups(problem);
        check_order(problem);
        check_merge(problem, seed * 977, arena);
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(groups_are_colours),
              cmocka_unit_test(cycles_of_groups_are_one_group),
              cmocka_unit_test(doubled_edges_and_loops_do_not_count),
              cmocka_unit_test(forbidden_by_name_is_infinite), cmocka_unit_test(mistakes_are_named),
              cmocka_unit_test(what_fits_nowhere_is_named),
              cmocka_unit_test(random_problems_are_grouped_rightly))
