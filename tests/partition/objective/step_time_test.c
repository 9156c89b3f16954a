#include "partition/objective/step_time.h"

#include <math.h>

#include "partition/objective/placement.h"
#include "partition/problem/problem_build.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"

#define MICROBATCHES 4

// A schedule of the simplest kind: everything one after another.
static pen_status one_by_one(const void *context, const pen_stage_graph *graph,
                             pen_step_prediction *out_prediction) {
    double seconds = 0.0;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        seconds +=
            graph->microbatch_count * (stage->forward_seconds + stage->backward_input_seconds +
                                       stage->backward_weight_seconds) +
            stage->update_seconds;
        out_prediction->in_flight[s] = 1;
        if (context != NULL && stage->fixed_bytes > *(const double *)context) {
            return pen_error(PEN_DOES_NOT_FIT, "stage %u is too large", s);
        }
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        seconds += graph->microbatch_count *
                   (graph->edges[e].forward_seconds + graph->edges[e].backward_seconds);
    }
    out_prediction->step_seconds = seconds;
    out_prediction->bubble = 0.0;
    return PEN_OK;
}

// a → b → loss, with backward halves and updates of a and b: nodes 0 1 2, 3 4 (b), 5 6 (a), 7 (b),
// 8 (a). Forward takes 1, 2, 4, backward twice that, updates 0.5.
enum { A, B, LOSS, B_INPUT, B_WEIGHT, A_INPUT, A_WEIGHT, B_UPDATE, A_UPDATE, NODE_COUNT };

static const pen_problem_node chain_nodes[NODE_COUNT] = {
    [A] = {.bytes = 10, .bytes_in_flight = 3, .transfer = 100, .color = 0, .pin = PEN_PROBLEM_ANY},
    [B] = {.bytes = 20, .bytes_in_flight = 5, .transfer = 200, .color = 1, .pin = PEN_PROBLEM_ANY},
    [LOSS] = {.workspace_bytes = 7, .transfer = 50, .color = 2, .pin = PEN_PROBLEM_ANY},
    [B_INPUT] = {.transfer = 30,
                 .color = 1,
                 .pin = PEN_PROBLEM_ANY,
                 .role = PEN_ROLE_BACKWARD_INPUT},
    [B_WEIGHT] = {.transfer = 1,
                  .color = 1,
                  .pin = PEN_PROBLEM_ANY,
                  .role = PEN_ROLE_BACKWARD_WEIGHT},
    [A_INPUT] = {.color = 0, .pin = PEN_PROBLEM_ANY, .role = PEN_ROLE_BACKWARD_INPUT},
    [A_WEIGHT] = {.transfer = 1,
                  .color = 0,
                  .pin = PEN_PROBLEM_ANY,
                  .role = PEN_ROLE_BACKWARD_WEIGHT},
    [B_UPDATE] = {.color = 1, .pin = PEN_PROBLEM_ANY, .role = PEN_ROLE_UPDATE},
    [A_UPDATE] = {.color = 0, .pin = PEN_PROBLEM_ANY, .role = PEN_ROLE_UPDATE},
};

static const pen_problem_edge chain_edges[] = {
    {A, B},
    {B, LOSS},
    {LOSS, B_INPUT},
    {LOSS, B_WEIGHT},
    {A, B_WEIGHT},
    {B_INPUT, A_INPUT},
    {B_INPUT, A_WEIGHT},
    {B_WEIGHT, B_UPDATE},
    {A_WEIGHT, A_UPDATE},
};

static const double chain_compute[NODE_COUNT] = {1, 2, 4, 3, 1, 1, 1, 0.5, 0.5};
static const double chain_link[] = {0, 0.001, 0.01, 0};
static const double chain_latency[] = {0, 0.5, 0.25, 0};
static const pen_link_handling chain_handling[] = {
    {.message = 0}, {0.002, 0.003, 0.1}, {0.02, 0.03, 0.2}, {.message = 0}};

static const uint32_t chain_handling_of_pair[] = {0, 1, 2, 3};
static const double chain_load[] = {0, 0.3, 0.6, 0}; // a message and the two back

static const pen_problem_device chain_devices[] = {
    {.slowness = 1, .bytes_limit = 1000},
    {.slowness = 2, .bytes_limit = 2000},
};

static pen_problem_given chain_given(void) {
    return (pen_problem_given){
        .objective = PEN_OBJECTIVE_STEP_TIME,
        .device_count = 2,
        .kind_count = 1,
        .node_count = NODE_COUNT,
        .edge_count = sizeof chain_edges / sizeof *chain_edges,
        .devices = chain_devices,
        .nodes = chain_nodes,
        .edges = chain_edges,
        .compute = chain_compute,
        .link = chain_link,
        .link_latency = chain_latency,
        .handling = chain_handling,
        .handling_of_pair = chain_handling_of_pair,
        .link_load = chain_load,
        .microbatch_count = MICROBATCHES,
        .step_time = one_by_one,
    };
}

static void check_number(double found, double expected, const char *what) {
    CHECK(fabs(found - expected) < 1e-12 * (1.0 + fabs(expected)), "%s is %.17g, expected %.17g",
          what, found, expected);
}

// a on device 0, all else on device 1.
static void sums_stages_by_role(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_problem_given given = chain_given();
    const uint32_t device_of_node[NODE_COUNT] = {0, 1, 1, 1, 1, 0, 0, 1, 0};
    pen_problem *problem;
    pen_step_time *step;
    const pen_stage_graph *graph;
    const uint32_t *stage_of_node;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(pen_step_time_new(problem, arena, &step));
    CHECK_OK(pen_step_time_stages(step, device_of_node, &graph, &stage_of_node));
    assert_int_equal(graph->stage_count, 2);
    assert_int_equal(graph->microbatch_count, MICROBATCHES);
    for (uint32_t v = 0; v < NODE_COUNT; v++)
        assert_int_equal(stage_of_node[v], device_of_node[v]);
    const pen_stage *first = &graph->stages[0], *second = &graph->stages[1];
    check_number(first->forward_seconds, 1, "first forward");
    check_number(second->forward_seconds, 12, "second forward");
    check_number(first->backward_input_seconds, 1, "first input half");
    check_number(second->backward_input_seconds, 6, "second input half");
    check_number(second->backward_weight_seconds, 2, "second weight half");
    check_number(first->update_seconds, 0.5, "first update");
    check_number(second->update_seconds, 1, "second update");
    check_number(first->fixed_bytes, 10 + 30, "first bytes: its own and a gradient's");
    check_number(second->fixed_bytes, 20, "second bytes");
    check_number(first->activation_bytes, 3, "first activations");
    check_number(second->activation_bytes, 5 + 100, "second activations: what it receives too");
    check_number(second->workspace_bytes, 7, "second workspace");
    assert_int_equal(graph->edge_count, 1);
    const pen_stage_edge *edge = &graph->edges[0];
    assert_int_equal(edge->source, 0);
    assert_int_equal(edge->target, 1);
    check_number(edge->forward_bytes, 100, "forward bytes"); // read twice, moved once
    check_number(edge->forward_seconds, 100 * 0.001, "forward seconds");
    check_number(edge->forward_handling.latency_seconds, 0.5, "forward latency");
    // one message there, and two back for it
    check_number(edge->forward_handling.send_seconds, 100 * 0.002 + 3 * 0.1, "forward send");
    check_number(edge->forward_handling.receive_seconds, 100 * 0.003 + 3 * 0.1, "forward receive");
    check_number(edge->backward_bytes, 30, "backward bytes");
    check_number(edge->backward_seconds, 30 * 0.01, "backward seconds");
    check_number(edge->backward_handling.latency_seconds, 0.25, "backward latency");
    check_number(edge->backward_handling.send_seconds, 30 * 0.02 + 3 * 0.2, "backward send");
    check_number(edge->backward_handling.receive_seconds, 30 * 0.03 + 3 * 0.2, "backward receive");
    pen_arena_destroy(arena);
}

// a and loss on device 0, b on device 1: device 0 has two stages.
static void cuts_circles_of_devices(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_problem_given given = chain_given();
    const uint32_t device_of_node[NODE_COUNT] = {0, 1, 0, 1, 1, 0, 0, 1, 0};
    const uint32_t expected[NODE_COUNT] = {0, 1, 2, 1, 1, 0, 0, 1, 0};
    pen_problem *problem;
    pen_step_time *step;
    const pen_stage_graph *graph;
    const uint32_t *stage_of_node;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(pen_step_time_new(problem, arena, &step));
    CHECK_OK(pen_step_time_stages(step, device_of_node, &graph, &stage_of_node));
    assert_int_equal(graph->stage_count, 3);
    for (uint32_t v = 0; v < NODE_COUNT; v++)
        assert_int_equal(stage_of_node[v], expected[v]);
    assert_int_equal(graph->stages[0].device, 0);
    assert_int_equal(graph->stages[1].device, 1);
    assert_int_equal(graph->stages[2].device, 0);
    assert_int_equal(graph->edge_count, 2);
    check_number(graph->edges[1].backward_bytes, 50, "gradient of the loss");
    pen_arena_destroy(arena);
}

static void asks_the_function(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_problem_given given = chain_given();
    const uint32_t device_of_node[NODE_COUNT] = {0};
    pen_problem *problem;
    pen_placement *placement;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(pen_placement_new(problem, device_of_node, arena, &placement));
    check_number(placement->value, MICROBATCHES * 13 + 1, "step");
    const double little = 29.0;
    given.step_time_context = &little;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_ERROR(pen_placement_new(problem, device_of_node, arena, &placement), PEN_DOES_NOT_FIT,
                "stage 0 is too large");
    given.step_time = NULL;
    CHECK_ERROR(pen_problem_build(&given, arena, &problem), PEN_INVALID_INPUT,
                "the objective step_time needs a schedule");
    given.step_time = one_by_one;
    given.microbatch_count = 0;
    CHECK_ERROR(pen_problem_build(&given, arena, &problem), PEN_INVALID_INPUT,
                "at least 1 microbatch");
    pen_arena_destroy(arena);
}

// Whatever the placement: forward edges go up, nothing is lost, each stage is on one device.
static void random_placements_keep_order_and_sums(void **state) {
    (void)state;
    const placement_wish wish = {.node_count_most = 40, .device_count_most = 6};
    uint64_t seed = 5000;
    uint32_t cut_count = 0;
    for (int i = 0; i < 200; i++) {
        pen_arena *arena = check_arena();
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        const pen_problem_given *given = &problem->given;
        uint32_t *device_of_group;
        pen_step_time *step;
        const pen_stage_graph *graph;
        const uint32_t *stage_of_node;
        CHECK_OK(PEN_NEW(arena, problem->group_count, &device_of_group));
        placement_case_scatter(problem, seed, device_of_group);
        const uint32_t *device_of_node = placement_case_spread(problem, device_of_group, arena);
        CHECK_OK(pen_step_time_new(problem, arena, &step));
        CHECK_OK(pen_step_time_stages(step, device_of_node, &graph, &stage_of_node));
        if (graph->stage_count > given->device_count) cut_count += 1;
        double bytes = 0.0, forward = 0.0, moved = 0.0;
        for (uint32_t v = 0; v < given->node_count; v++) {
            const uint32_t d = device_of_node[v];
            assert_int_equal(graph->stages[stage_of_node[v]].device, d);
            bytes += given->nodes[v].bytes_in_flight;
            if (!pen_problem_is_forward(given, v)) continue;
            forward += given->compute[given->devices[d].kind * given->node_count + v] *
                       given->devices[d].slowness;
            for (uint32_t e = problem->successors.first[v]; e < problem->successors.first[v + 1];
                 e++) {
                const uint32_t w = problem->successors.ids[e];
                if (!pen_problem_is_forward(given, w)) continue;
                assert_true(stage_of_node[v] <= stage_of_node[w]);
                if (device_of_node[v] != device_of_node[w]) {
                    assert_true(stage_of_node[v] < stage_of_node[w]);
                }
            }
        }
        for (uint32_t s = 0; s < graph->stage_count; s++) {
            bytes -= graph->stages[s].activation_bytes;
            forward -= graph->stages[s].forward_seconds;
        }
        for (uint32_t e = 0; e < graph->edge_count; e++) {
            const pen_stage_edge *edge = &graph->edges[e];
            assert_true(edge->source < edge->target);
            if (graph->stages[edge->source].device != graph->stages[edge->target].device) {
                moved += edge->forward_bytes;
            }
        }
        CHECK(fabs(forward) < 1e-6, "seed %llu: %g seconds lost", (unsigned long long)seed,
              forward);
        CHECK(fabs(bytes + moved) < 1e-6, "seed %llu: %g bytes lost", (unsigned long long)seed,
              bytes + moved);
        pen_arena_destroy(arena);
    }
    CHECK(cut_count > 20, "only %u placements had circles", cut_count);
}

PEN_TEST_MAIN(cmocka_unit_test(sums_stages_by_role), cmocka_unit_test(cuts_circles_of_devices),
              cmocka_unit_test(asks_the_function),
              cmocka_unit_test(random_placements_keep_order_and_sums))
