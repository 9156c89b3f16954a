#include "partition/lower/stage_costs.h"
#include "partition/lower/stage_split.h"

#include <math.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/planned.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"

#define RANDOM_PLACEMENTS 30

// A placement of colours by `choose`, solved.
static pen_plan_solution solve(const pen_planner *planner, pen_arena *arena,
                               const uint32_t *device_of_color) {
    const uint32_t node_count = planner->owners->node_count;
    uint32_t *devices;
    pen_plan_solution solution;
    CHECK_OK(PEN_NEW(arena, node_count, &devices));
    for (uint32_t n = 0; n < node_count; n++) {
        devices[n] = device_of_color[planner->constraints.color[n]];
    }
    CHECK_OK(pen_plan_solve(planner, devices, arena, &solution));
    return solution;
}

// The value that node `n` reads as operand `i`, if it is a gradient of another stage.
static pen_value_id gradient_from_afar(const pen_forward_owners *owners,
                                       const pen_stage_split *split, uint32_t n, uint32_t i) {
    const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
    if (i >= node->input_count || !pen_value_is(node->inputs[i])) return PEN_VALUE_NONE;
    const pen_node_id producer = pen_graph_value(owners->graph, node->inputs[i])->producer;
    if (!pen_node_is(producer) || !pen_role_is_backward(node->role)) return PEN_VALUE_NONE;
    if (!pen_role_is_backward(pen_graph_node(owners->graph, producer)->role)) return PEN_VALUE_NONE;
    const bool is_near = split->stage_of_node[producer.index] == split->stage_of_node[n];
    return is_near ? PEN_VALUE_NONE : node->inputs[i];
}

// What a node's gradient is made from does not come twice, under two shapes.
static void check_views(const pen_forward_owners *owners, const pen_stage_split *split) {
    for (uint32_t n = 0; n < owners->node_count; n++) {
        for (uint32_t m = n + 1; m < owners->node_count; m++) {
            const pen_node_id of = pen_graph_node(owners->graph, (pen_node_id){n})->gradient_of;
            if (!pen_node_is(of)) break;
            if (pen_graph_node(owners->graph, (pen_node_id){m})->gradient_of.index != of.index)
                continue;
            const pen_value_id a = gradient_from_afar(owners, split, n, 0);
            const pen_value_id b = gradient_from_afar(owners, split, m, 0);
            const pen_value_id c = gradient_from_afar(owners, split, m, 1);
            if (!pen_value_is(a)) break;
            if (pen_value_is(b) && owners->root[a.index] == owners->root[b.index])
                assert_int_equal(a.index, b.index);
            if (pen_value_is(c) && owners->root[a.index] == owners->root[c.index])
                assert_int_equal(a.index, c.index);
        }
    }
}

// Every forward tensor goes up, every node is in a stage of its device, and goes with its home.
static void check_split(const pen_planner *planner, const pen_plan_solution *solution) {
    const pen_forward_owners *owners = planner->owners;
    const pen_stage_split *split = &solution->split;
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
        const uint32_t stage = split->stage_of_node[n];
        CHECK(stage < split->stage_count, "'%s' is in stage %u", node->name, stage);
        CHECK(split->device_of_stage[stage] == solution->device_of_node[n],
              "'%s' is in a stage of another device", node->name);
        CHECK(stage == split->stage_of_node[owners->home[n]], "'%s' is not with its home",
              node->name);
        for (uint32_t i = 0; node->role == PEN_ROLE_FORWARD && i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id producer = pen_graph_value(owners->graph, node->inputs[i])->producer;
            if (!pen_node_is(producer)) continue;
            CHECK(split->stage_of_node[producer.index] <= stage, "'%s' reads of a later stage",
                  node->name);
        }
    }
    for (uint32_t e = 0; e < solution->stages.edge_count; e++) {
        const pen_stage_edge *edge = &solution->stages.edges[e];
        CHECK(edge->source < edge->target && edge->target < split->stage_count, "edge %u", e);
    }
}

// Costs of stages add up to the costs of all nodes, each on its device.
static void check_costs(const pen_planner *planner, const pen_plan_solution *solution) {
    const pen_plan_request *request = planner->request;
    double expected = 0.0, found = 0.0, per_step = 0.0, on_edges = 0.0;
    for (uint32_t p = 0; p < request->planned->order_count; p++) {
        const pen_node_id node = request->planned->order[p];
        expected +=
            pen_cost_model_at(request->costs, solution->device_of_node[node.index], node)->seconds;
    }
    for (uint32_t s = 0; s < solution->stages.stage_count; s++) {
        const pen_stage *stage = &solution->stages.stages[s];
        found += stage->forward_seconds + stage->backward_input_seconds +
                 stage->backward_weight_seconds + stage->update_seconds;
    }
    for (uint32_t i = 0; i < solution->transfers.count; i++) {
        const pen_stage_transfer *transfer = &solution->transfers.items[i];
        if (transfer->is_per_step) per_step += transfer->seconds;
    }
    for (uint32_t e = 0; e < solution->stages.step_edge_count; e++) {
        on_edges += solution->stages.step_edges[e].seconds;
    }
    // rounded to five digits
    CHECK(fabs(found - expected) <= 1e-4 * expected, "%g seconds, expected %g", found, expected);
    CHECK(fabs(on_edges - per_step) <= 1e-4 * per_step, "%g seconds, expected %g", on_edges,
          per_step);
}

static void check_random_placements(const pen_job *job, pen_arena *arena) {
    pen_plan_job *plan_job = planned_start(job);
    const pen_planner *planner = planned_planner(plan_job, arena);
    uint32_t *device_of_color;
    CHECK_OK(PEN_NEW(arena, planner->owners->node_count, &device_of_color));
    dice d = {.seed = 7};
    for (uint32_t round = 0; round < RANDOM_PLACEMENTS; round++) {
        for (uint32_t n = 0; n < planner->owners->node_count; n++) {
            device_of_color[n] = (uint32_t)dice_between(&d, 0, round % 4);
        }
        const pen_plan_solution solution = solve(planner, arena, device_of_color);
        check_split(planner, &solution);
        check_views(planner->owners, &solution.split);
        check_costs(planner, &solution);
    }
    pen_plan_job_destroy(plan_job);
}

static void random_placements_split_well(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        pen_arena *arena = check_arena();
        check_random_placements(
            planned_reference(arena, planned_models[m], 3, PLANNED_FOUR_DEVICES), arena);
        pen_arena_destroy(arena);
    }
}

// A view of what is fed may be all that its device does before the first that waits for others; a
// layer of three dimensions reads its gradient under two shapes.
static void views_take_no_ways_of_their_own(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *data = tiny_data_write("views", 12, 3);
    const char *text, *path;
    CHECK_OK(pen_arena_format(arena, &text,
                              "version: 1\n"
                              "model:\n"
                              "  inputs: {a: {shape: [6]}, b: {shape: [6]}}\n"
                              "  layers:\n"
                              "    - dense: {name: h1, from: a, units: 4}\n"
                              "    - dense: {name: h2, units: 4}\n"
                              "    - dense: {name: h3, units: 6}\n"
                              "    - reshape: {name: pairs, target_shape: [3, 2]}\n"
                              "    - dense: {name: deep, units: 2}\n"
                              "    - reshape: {name: view, from: b, target_shape: [3, 2]}\n"
                              "    - add: {name: sum, from: [deep, view]}\n"
                              "    - flatten: {name: flat}\n"
                              "    - dense: {name: y, units: 3}\n"
                              "data: {train: {format: npy, inputs: {a: %s_x.npy, b: %s_x.npy}, "
                              "labels: %s_y.npy}}\n"
                              "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, "
                              "batch: 12, microbatches: 3, steps: 1}\n"
                              "%s",
                              data, data, data, PLANNED_FOUR_DEVICES));
    path = scratch_file("views.yaml", text, strlen(text));
    const pen_job *job = NULL;
    CHECK_OK(pen_job_parse(path, text, strlen(text), arena, &job));
    check_random_placements(job, arena);
    pen_arena_destroy(arena);
}

// What crosses is named once for each stage that reads it, with its bytes and the link's time.
static void transfers_are_what_crosses(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job =
        planned_start(planned_reference(arena, "lenet", 3, PLANNED_FOUR_DEVICES));
    const pen_planner *planner = planned_planner(plan_job, arena);
    uint32_t *device_of_color;
    CHECK_OK(PEN_NEW(arena, planner->owners->node_count, &device_of_color));
    const uint32_t first_late = planned_node(planner, "/fc2/Gemm");
    for (uint32_t n = 0; n < planner->owners->node_count; n++) {
        device_of_color[n] = n >= first_late;
    }
    const pen_plan_solution solution = solve(planner, arena, device_of_color);
    assert_int_equal(solution.split.stage_count, 2);
    assert_int_equal(solution.transfers.count, 2); // an activation there, its gradient back
    const pen_stage_transfer *there = &solution.transfers.items[0];
    assert_string_equal(pen_value_name(planner->owners->graph, there->value), "/Tanh_1_output_0");
    assert_int_equal(there->bytes, 4 * 40 * 4); // a microbatch of 4
    assert_false(there->is_backward);
    assert_true(fabs(there->seconds - 640.0 / 2e9) < 1e-12);
    assert_true(fabs(there->handling.latency_seconds - 20e-6) < 1e-12);
    const pen_stage_transfer *back = &solution.transfers.items[1];
    assert_true(back->is_backward && back->source == 1 && back->target == 0);
    assert_int_equal(back->bytes, there->bytes);
    assert_int_equal(solution.stages.edge_count, 1);
    assert_true(solution.stages.edges[0].forward_bytes == 640.0);
    assert_true(solution.stages.edges[0].backward_bytes == 640.0);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Stages that someone drew must have an order.
static void circles_are_refused(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job =
        planned_start(planned_reference(arena, "lenet", 3, PLANNED_FOUR_DEVICES));
    const pen_planner *planner = planned_planner(plan_job, arena);
    const uint32_t node_count = planner->owners->node_count;
    uint32_t *stages, *devices;
    CHECK_OK(PEN_NEW(arena, node_count, &stages));
    CHECK_OK(PEN_NEW(arena, node_count, &devices));
    devices[1] = 1;
    stages[planned_node(planner, "/Tanh_1")] = 1; // between fc1 and fc2
    pen_stage_split split = {.stage_count = 2, .device_of_stage = devices, .stage_of_node = stages};
    CHECK_ERROR(pen_stage_split_order(planner->owners, &split), PEN_INVALID_INPUT,
                "wait for each other");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Numbers of stages follow from the graph, whatever they were called; empty ones go.
static void stages_are_numbered_in_order(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job =
        planned_start(planned_reference(arena, "lenet", 3, PLANNED_FOUR_DEVICES));
    const pen_planner *planner = planned_planner(plan_job, arena);
    const uint32_t node_count = planner->owners->node_count;
    uint32_t *stages, *devices;
    CHECK_OK(PEN_NEW(arena, node_count, &stages));
    CHECK_OK(PEN_NEW(arena, node_count, &devices));
    const uint32_t first_late = planned_node(planner, "/fc2/Gemm");
    for (uint32_t n = 0; n < node_count; n++) {
        stages[n] = n >= first_late ? 0 : 2; // late nodes have the lower number; 1 is empty
    }
    devices[0] = 3;
    devices[1] = 1;
    devices[2] = 2;
    pen_stage_split split = {.stage_count = 3, .device_of_stage = devices, .stage_of_node = stages};
    CHECK_OK(pen_stage_split_order(planner->owners, &split));
    assert_int_equal(split.stage_count, 2);
    assert_int_equal(split.device_of_stage[0], 2);
    assert_int_equal(split.device_of_stage[1], 3);
    assert_int_equal(split.stage_of_node[first_late], 1);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(random_placements_split_well),
              cmocka_unit_test(views_take_no_ways_of_their_own),
              cmocka_unit_test(transfers_are_what_crosses), cmocka_unit_test(circles_are_refused),
              cmocka_unit_test(stages_are_numbered_in_order))
