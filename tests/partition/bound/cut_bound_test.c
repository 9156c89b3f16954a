// What cuts must send, against a walk over all placements of chains with ways around: forward
// nodes, gradients back, weights and updates, links that cost. PEN_LONG=1 tries twenty times as
// many.
#include "partition/bound/cut_bound.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/sanitizer.h"
#include "partition/bound/bounds.h"
#include "partition/objective/placement.h"
#include "partition/problem/problem_build.h"
#include "scheduler/schedule/schedule_step_time.h"
#include "tests/support/check.h"

#define CHAIN_MOST 6
#define DEVICE_MOST 3
#define ROLE_COUNT 4 // forward, backward for inputs and for weights, update

typedef struct chain_case {
    pen_arena *arena;
    pen_problem *problem;
    pen_schedule_step_time_context *schedule;
    uint32_t length;
} chain_case;

static const pen_role chain_roles[ROLE_COUNT] = {PEN_ROLE_FORWARD, PEN_ROLE_BACKWARD_INPUT,
                                                 PEN_ROLE_BACKWARD_WEIGHT, PEN_ROLE_UPDATE};

// Node of place `i` in a role.
static uint32_t chain_node(uint32_t length, uint32_t role, uint32_t i) {
    return role * length + i;
}

// An edge from place i to place j, and the gradient's way back.
static void chain_tie(pen_problem_given *given, pen_problem_edge *edges, uint32_t length,
                      uint32_t i, uint32_t j) {
    edges[given->edge_count++] =
        (pen_problem_edge){chain_node(length, 0, i), chain_node(length, 0, j)};
    edges[given->edge_count++] =
        (pen_problem_edge){chain_node(length, 1, j), chain_node(length, 1, i)};
}

static double chain_amount(pen_random_sequence *random) {
    return pen_random_next_below(random, 1000) / 1000.0;
}

// Devices of one kind, each as fast as the others or each slower than the one before, and links.
static void chain_connect(uint64_t seed, pen_random_sequence *random, pen_arena *arena,
                          pen_problem_given *given) {
    const uint32_t count = given->device_count;
    pen_problem_device *devices;
    double *link, *latency;
    CHECK_OK(PEN_NEW(arena, count, &devices));
    CHECK_OK(PEN_NEW(arena, count * count, &link));
    CHECK_OK(PEN_NEW(arena, count * count, &latency));
    for (uint32_t d = 0; d < count; d++) {
        devices[d].slowness = seed % 3 == 0 ? 1.0 + d : 1.0;
        devices[d].bytes_limit = INFINITY;
        for (uint32_t other = 0; other < count; other++) {
            if (other == d) continue;
            link[d * count + other] = seed % 2 == 0 ? 1.0 : 0.5 + chain_amount(random);
            latency[d * count + other] = 0.1;
        }
    }
    given->devices = devices;
    given->link = link;
    given->link_latency = latency;
}

// Nodes of all roles for each place, which share a colour, the edges between them, and ways around
// single places.
static void chain_fill(uint32_t length, pen_random_sequence *random, pen_arena *arena,
                       pen_problem_given *given) {
    const double way = chain_amount(random) * 4.0, around = 1.0 + 3.0 * chain_amount(random);
    pen_problem_node *nodes;
    pen_problem_edge *edges;
    double *compute;
    CHECK_OK(PEN_NEW(arena, given->node_count, &nodes));
    CHECK_OK(PEN_NEW(arena, given->node_count, &compute));
    CHECK_OK(PEN_NEW(arena, (size_t)given->node_count * length, &edges));
    for (uint32_t v = 0; v < given->node_count; v++) {
        const uint32_t role = v / length;
        nodes[v] = (pen_problem_node){.color = v % length,
                                      .pin = PEN_PROBLEM_ANY,
                                      .role = chain_roles[role],
                                      .transfer = role < 2 ? way * chain_amount(random) : 0.0};
        compute[v] = chain_amount(random) * (role == 3 ? 0.5 : 2.0);
    }
    for (uint32_t i = 0; i < length; i++) {
        if (i + 1 < length) chain_tie(given, edges, length, i, i + 1);
        if (i + 2 < length && pen_random_next_below(random, 3) == 0) {
            chain_tie(given, edges, length, i, i + 2);
            nodes[chain_node(length, 0, i)].transfer *= around;
            nodes[chain_node(length, 1, i + 2)].transfer *= around;
        }
        if (i + 3 < length && pen_random_next_below(random, 4) == 0) {
            chain_tie(given, edges, length, i, i + 3);
        }
        for (uint32_t r = 0; r + 1 < ROLE_COUNT; r++) {
            edges[given->edge_count++] =
                (pen_problem_edge){chain_node(length, r, i), chain_node(length, r + 1, i)};
        }
    }
    given->nodes = nodes;
    given->edges = edges;
    given->compute = compute;
}

static void chain_make(uint64_t seed, chain_case *out_case) {
    static const char *const schedules[] = {"1f1b", "gpipe", "zero_bubble", "auto"};
    chain_case c = {.arena = check_arena()};
    pen_problem_given *given;
    pen_random_sequence random = pen_random_sequence_of(pen_random_stream("chain", seed, 1));
    CHECK_OK(PEN_NEW(c.arena, 1, &given));
    CHECK_OK(pen_schedule_step_time_create(schedules[seed % 4], &c.schedule));
    c.length = 3 + pen_random_next_below(&random, CHAIN_MOST - 2);
    *given =
        (pen_problem_given){.objective = PEN_OBJECTIVE_STEP_TIME,
                            .is_contiguous = seed % 5 == 0,
                            .device_count = 2 + pen_random_next_below(&random, DEVICE_MOST - 1),
                            .kind_count = 1,
                            .node_count = ROLE_COUNT * c.length,
                            .microbatch_count = 1 + pen_random_next_below(&random, 6),
                            .step_time = pen_schedule_step_time,
                            .step_time_context = c.schedule};
    chain_connect(seed, &random, c.arena, given);
    chain_fill(c.length, &random, c.arena, given);
    CHECK_OK(pen_problem_build(given, c.arena, &c.problem));
    *out_case = c;
}

// The shortest step of all placements.
static double chain_best(const chain_case *c) {
    const uint32_t devices = c->problem->given.device_count;
    uint32_t device_of_place[CHAIN_MOST] = {0}, device_of_node[ROLE_COUNT * CHAIN_MOST];
    double best = INFINITY;
    for (;;) {
        pen_arena *arena = check_arena();
        pen_placement *placement;
        for (uint32_t v = 0; v < c->problem->given.node_count; v++)
            device_of_node[v] = device_of_place[v % c->length];
        pen_status status = pen_placement_new(c->problem, device_of_node, arena, &placement);
        if (status == PEN_OK) status = pen_placement_check(c->problem, placement);
        if (status == PEN_OK) best = fmin(best, placement->value);
        pen_status_ignore(status, "not all are right");
        pen_arena_destroy(arena);
        uint32_t i = 0;
        while (i < c->length && ++device_of_place[i] == devices)
            device_of_place[i++] = 0;
        if (i == c->length) return best;
    }
}

static void no_chain_is_below_its_bound(void **state) {
    (void)state;
    const uint64_t usual = PEN_IS_SANITIZED ? 30 : 300; // instrumented code is slow
    const uint64_t count = getenv("PEN_LONG") != NULL ? 20 * usual : usual;
    double shares = 0.0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        chain_case c;
        double bound;
        chain_make(seed, &c);
        const double best = chain_best(&c);
        CHECK_OK(pen_bound(c.problem, c.arena, &bound));
        CHECK(bound <= best * (1.0 + 1e-9), "seed %llu: bound %.17g above the best, %.17g",
              (unsigned long long)seed, bound, best);
        shares += bound / best;
        pen_schedule_step_time_destroy(c.schedule);
        pen_arena_destroy(c.arena);
    }
    CHECK(shares / (double)count > 0.5, "bounds are %.4f of the best", shares / (double)count);
    if (getenv("PEN_LONG") != NULL) print_message("mean share %.4f\n", shares / (double)count);
}

// Four places of one second each way, one microbatch: a cut takes 10 there and 10 back.
static void a_cut_counts_where_it_must_be(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cut_place places[4] = {0};
    for (uint32_t p = 0; p < 4; p++) {
        places[p] = (pen_cut_place){.head = p,
                                    .tail = p,
                                    .all = 20.0,
                                    .early = 2.0,
                                    .forward = 1.0,
                                    .backward = 1.0,
                                    .cut_there = p == 2 ? 10.0 : 1000.0,
                                    .cut_back = p == 2 ? 10.0 : 1000.0};
    }
    const pen_cut_path path = {.place_count = 4, .places = places, .seconds = 8.0};
    double bound;
    CHECK_OK(pen_cut_bound(&path, 10.0, 8.0, arena, &bound));
    // two runs of two places: the path takes 2 + 10 to the second, and as long back; 40 is to do
    CHECK(fabs(bound - 64.0) < 1e-3, "bound %.17g", bound);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(no_chain_is_below_its_bound),
              cmocka_unit_test(a_cut_counts_where_it_must_be))
