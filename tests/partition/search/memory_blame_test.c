#include "partition/problem/problem_build.h"
#include "partition/search/memory_blame.h"

#include <math.h>

#include "partition/strategies/strategies.h"
#include "tests/support/check.h"

#define NODES_MOST 16

typedef struct memory_case {
    pen_problem_node nodes[NODES_MOST];
    pen_problem_device devices[4];
    double compute[NODES_MOST];
    pen_problem_edge edges[NODES_MOST];
    pen_problem_given given;
} memory_case;

// Nodes with those bytes and devices with those limits, the nodes in a chain when contiguous.
static void memory_case_init(memory_case *c, const double *bytes, uint32_t node_count,
                             const double *limits, uint32_t device_count) {
    memset(c, 0, sizeof *c);
    for (uint32_t v = 0; v < node_count; v++) {
        c->nodes[v] = (pen_problem_node){
            .bytes = bytes[v], .color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY, .transfer = 1.0};
        c->compute[v] = 1.0;
        c->edges[v] = (pen_problem_edge){v, v + 1};
    }
    for (uint32_t d = 0; d < device_count; d++)
        c->devices[d] = (pen_problem_device){.slowness = 1.0, .bytes_limit = limits[d]};
    c->given = (pen_problem_given){.device_count = device_count,
                                   .kind_count = 1,
                                   .node_count = node_count,
                                   .edge_count = node_count - 1,
                                   .devices = c->devices,
                                   .nodes = c->nodes,
                                   .edges = c->edges,
                                   .compute = c->compute};
}

static pen_status memory_case_place(const memory_case *c, const char *name, pen_arena *arena) {
    pen_problem *problem;
    const pen_strategy *strategy;
    pen_placement *placement;
    const pen_strategy_options options = {.seed = 1, .time_limit_seconds = 0.05, .thread_count = 1};
    CHECK_OK(pen_problem_build(&c->given, arena, &problem));
    CHECK_OK(pen_strategy_find(name, arena, &strategy));
    return pen_place(problem, strategy, &options, arena, &placement);
}

// Each strategy gives the same proof.
static void check_told(const memory_case *c, const char *text) {
    for (const pen_strategy *const *s = pen_strategies; *s != NULL; s++) {
        pen_arena *arena = check_arena();
        if (strcmp((*s)->name, "dynamic_programming") == 0 || strcmp((*s)->name, "metis") == 0) {
            const pen_status status = memory_case_place(c, (*s)->name, arena);
            CHECK(pen_status_get_code(status) == PEN_DOES_NOT_FIT, "%s", (*s)->name);
            pen_status_ignore(status, "in words of its own");
        } else {
            CHECK_ERROR(memory_case_place(c, (*s)->name, arena), PEN_DOES_NOT_FIT, text);
        }
        pen_arena_destroy(arena);
    }
}

static void tells_that_all_is_too_much(void **state) {
    (void)state;
    memory_case c;
    memory_case_init(&c, (double[]){6, 6, 6}, 3, (double[]){8, 8}, 2);
    check_told(&c, "all nodes need 18 bytes and the 2 devices that may be used have 16 together");
}

static void tells_that_too_much_is_pinned(void **state) {
    (void)state;
    memory_case c;
    memory_case_init(&c, (double[]){6, 6, 1}, 3, (double[]){8, 80}, 2);
    c.nodes[0].pin = c.nodes[1].pin = 0;
    check_told(&c, "the nodes pinned to device 0 need 12 bytes, it has 8");
}

static void tells_the_nearest_miss(void **state) {
    (void)state;
    memory_case c;
    memory_case_init(&c, (double[]){5, 5, 5, 1}, 4, (double[]){8, 8}, 2);
    check_told(&c, "the smallest memory found is 10 bytes on device");
    check_told(&c, "2 more than it has; the largest nodes there are");
}

static void tells_that_memory_is_not_in_the_way(void **state) {
    (void)state;
    memory_case c;
    memory_case_init(&c, (double[]){6, 2, 6, 2}, 4, (double[]){12, 4}, 2);
    c.given.is_contiguous = true; // the chain would have to be cut twice
    check_told(&c, "the order that the devices must have stands in the way");
}

// Largest first leaves 12 and 10; an exchange makes both full.
static void packs_tightly(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    memory_case c;
    pen_problem *problem;
    uint32_t device_of_group[6];
    double excess;
    memory_case_init(&c, (double[]){5, 4, 4, 3, 3, 3}, 6, (double[]){11, 11}, 2);
    CHECK_OK(pen_problem_build(&c.given, arena, &problem));
    CHECK_OK(pen_memory_pack(problem, arena, device_of_group, &excess));
    CHECK(excess <= 0.0, "%g bytes over", excess);
    double held[2] = {0};
    for (uint32_t g = 0; g < 6; g++)
        held[device_of_group[g]] += c.nodes[g].bytes;
    assert_true(held[0] == 11.0 && held[1] == 11.0);
    pen_arena_destroy(arena);
}

// Memory in flight counts where the microbatches are.
static void packs_what_is_in_flight(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    memory_case c;
    pen_problem *problem;
    uint32_t device_of_group[2];
    double excess;
    memory_case_init(&c, (double[]){0, 0}, 2, (double[]){8, 8}, 2);
    c.nodes[0].bytes_in_flight = 4;
    c.nodes[1].bytes_in_flight = 2;
    c.devices[0].microbatches = 4;
    c.devices[1].microbatches = 2;
    CHECK_OK(pen_problem_build(&c.given, arena, &problem));
    CHECK_OK(pen_memory_pack(problem, arena, device_of_group, &excess));
    CHECK(excess <= 0.0, "%g bytes over", excess);
    assert_int_equal(device_of_group[0], 1);
    assert_int_equal(device_of_group[1], 0);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(tells_that_all_is_too_much),
              cmocka_unit_test(tells_that_too_much_is_pinned),
              cmocka_unit_test(tells_the_nearest_miss),
              cmocka_unit_test(tells_that_memory_is_not_in_the_way),
              cmocka_unit_test(packs_tightly), cmocka_unit_test(packs_what_is_in_flight))
