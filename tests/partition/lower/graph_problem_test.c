#include <math.h>

#include "graph/graph.h"
#include "partition/lower/graph_problem.h"
#include "partition/lower/memory_model.h"
#include "partition/problem/problem_build.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"

// Lowers a job's graph for its cluster, with `microbatches` in flight everywhere.
static pen_problem_given lower(const pen_planner *planner, pen_arena *arena, uint32_t microbatches,
                               pen_objective objective) {
    const pen_plan_request *request = planner->request;
    const uint32_t device_count = request->cluster->device_count;
    uint32_t *in_flight;
    CHECK_OK(PEN_NEW(arena, device_count, &in_flight));
    for (uint32_t d = 0; d < device_count; d++) {
        in_flight[d] = microbatches;
    }
    const pen_graph_problem_request lowering = {.planned = request->planned,
                                                .owners = planner->owners,
                                                .constraints = &planner->constraints,
                                                .cluster = request->cluster,
                                                .costs = request->costs,
                                                .objective = objective,
                                                .bytes_limit = planner->bytes_limit,
                                                .microbatches = in_flight,
                                                .step_time = request->step_time,
                                                .step_time_context = request->step_time_context};
    pen_problem_given given;
    CHECK_OK(pen_graph_problem_build(&lowering, arena, &given));
    return given;
}

// What the problem counts more than once: each colour that reads a parameter has its own.
static double copies(const pen_planner *planner, pen_arena *arena) {
    const pen_forward_owners *owners = planner->owners;
    uint32_t *seen;
    double bytes = 0.0;
    CHECK_OK(PEN_NEW(arena, owners->node_count, &seen));
    for (uint32_t v = 0; v < owners->value_count; v++) {
        const pen_value *value = pen_graph_value(owners->graph, (pen_value_id){v});
        uint32_t colors = 0;
        if (value->kind == PEN_VALUE_COMPUTED || value->kind == PEN_VALUE_SCALAR) continue;
        for (uint32_t u = owners->user_first[v]; u < owners->user_first[v + 1]; u++) {
            uint32_t *color = &seen[planner->constraints.color[owners->user_nodes[u]]];
            colors += *color != v + 1;
            *color = v + 1;
        }
        if (colors < 2 || value->kind == PEN_VALUE_INPUT) continue;
        const uint64_t aligned = (planner->request->planned->bytes_of_value[v] + 63) / 64 * 64;
        bytes += (double)aligned * (colors - 1);
    }
    return bytes;
}

// The sums of the problem are the bytes that one device holds, by the memory model.
static void sums_are_what_one_device_holds(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        pen_arena *arena = check_arena();
        pen_plan_job *plan_job =
            planned_start(planned_reference(arena, planned_models[m], 3, PLANNED_FOUR_DEVICES));
        const pen_planner *planner = planned_planner(plan_job, arena);
        const pen_problem_given given = lower(planner, arena, 1, PEN_OBJECTIVE_THROUGHPUT);
        uint32_t *device_of_node;
        pen_plan_solution solution;
        CHECK_OK(PEN_NEW(arena, planner->owners->node_count, &device_of_node));
        CHECK_OK(pen_plan_solve(planner, device_of_node, arena, &solution));
        const pen_stage_memory *memory = &solution.stage_memory[0];
        double once = 0.0, in_flight = 0.0;
        for (uint32_t v = 0; v < given.node_count; v++) {
            once += given.nodes[v].bytes;
            in_flight += given.nodes[v].bytes_in_flight;
        }
        const double expected =
            (double)(memory->parameters + memory->gradients + memory->optimizer_state);
        once -= copies(planner, arena);
        CHECK(once == expected, "%s: %.0f bytes, expected %.0f", planned_models[m], once, expected);
        const double kept = (double)(memory->activations + memory->received_kept);
        CHECK(in_flight >= kept && in_flight <= kept + (double)memory->received_passing,
              "%s: %.0f bytes in flight, expected %.0f", planned_models[m], in_flight, kept);
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
}

static void the_problem_is_one(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        pen_arena *arena = check_arena();
        pen_plan_job *plan_job =
            planned_start(planned_reference(arena, planned_models[m], 3, PLANNED_FOUR_DEVICES));
        const pen_planner *planner = planned_planner(plan_job, arena);
        const pen_problem_given given = lower(planner, arena, 2, PEN_OBJECTIVE_STEP_TIME);
        pen_problem *problem;
        CHECK_OK(pen_problem_build(&given, arena, &problem));
        CHECK(given.node_count >= planner->owners->node_count, "%s", planned_models[m]);
        CHECK(problem->group_count > 4, "%s: %u groups", planned_models[m], problem->group_count);
        double seconds = 0.0;
        for (uint32_t v = 0; v < planner->owners->node_count; v++) {
            assert_string_equal(given.names[v],
                                pen_node_name(planner->owners->graph, (pen_node_id){v}));
            seconds += given.compute[v];
        }
        CHECK(seconds > 0.0, "%s costs nothing", planned_models[m]);
        for (uint32_t e = 0; e < given.edge_count; e++) {
            const pen_problem_edge edge = given.edges[e];
            CHECK(edge.source < given.node_count && edge.target < given.node_count, "%s: edge %u",
                  planned_models[m], e);
        }
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
}

// Updates count whole under step times, else by their share of a microbatch.
static void updates_are_shared_by_microbatches(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(arena, "mlp", 3, PLANNED_ONE_DEVICE));
    const pen_planner *planner = planned_planner(plan_job, arena);
    const pen_problem_given whole = lower(planner, arena, 1, PEN_OBJECTIVE_STEP_TIME);
    const pen_problem_given shared = lower(planner, arena, 1, PEN_OBJECTIVE_THROUGHPUT);
    uint32_t updates = 0;
    for (uint32_t n = 0; n < planner->owners->node_count; n++) {
        const double share = whole.nodes[n].role == PEN_ROLE_UPDATE ? 3.0 : 1.0;
        updates += share > 1.0;
        CHECK(fabs(whole.compute[n] - share * shared.compute[n]) <= 1e-12 * whole.compute[n],
              "node %u: %g and %g", n, whole.compute[n], shared.compute[n]);
    }
    CHECK(updates >= 4, "%u updates", updates);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// The hash tells models apart, and does not know of devices.
static void hashes_are_of_the_model(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    uint64_t hashes[4];
    const char *const models[4] = {"mlp", "lenet", "lenet", "lenet"};
    static const char *const rests[4] = {PLANNED_ONE_DEVICE, PLANNED_ONE_DEVICE,
                                         PLANNED_FOUR_DEVICES,
                                         "devices: [{name: r, kind: reference, threads: 1}]\n"};
    for (size_t i = 0; i < 4; i++) {
        pen_plan_job *plan_job = planned_start(planned_reference(arena, models[i], 3, rests[i]));
        hashes[i] = pen_graph_hash(planned_planner(plan_job, arena)->owners);
        pen_plan_job_destroy(plan_job);
    }
    assert_true(hashes[0] != hashes[1]);
    assert_true(hashes[1] == hashes[2]);
    assert_true(hashes[1] == hashes[3]); // other layouts, the same model
    pen_arena_destroy(arena);
}

static pen_value_id add_value(pen_graph *graph, const char *name, pen_value_kind kind,
                              const float *data) {
    const pen_value value = {.name = name,
                             .kind = kind,
                             .type = pen_tensor_type_make(PEN_FLOAT32, 2, (const int64_t[]){2, 2}),
                             .data = data,
                             .data_bytes = data == NULL ? 0 : 4 * sizeof *data};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    return id;
}

typedef struct variant {
    bool is_swapped;   // the product's operands
    int64_t transpose; // its attribute
    float number;      // in a constant
} variant;

static uint64_t hash_of_variant(const variant *v) {
    pen_arena *arena = check_arena();
    const float numbers[4] = {v->number, 2.0f, 3.0f, 4.0f};
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "variant", &graph));
    const pen_value_id x = add_value(graph, "x", PEN_VALUE_INPUT, NULL);
    const pen_value_id c = add_value(graph, "c", PEN_VALUE_CONSTANT, numbers);
    const pen_value_id operands[] = {v->is_swapped ? c : x, v->is_swapped ? x : c};
    const pen_attribute_given attribute = pen_attribute_int("transA", v->transpose);
    pen_node_spec spec = pen_node_spec_make("matmul", "product");
    spec.inputs = operands;
    spec.input_count = 2;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    pen_value_id product;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &product));
    const pen_forward_owners owners = {.graph = graph, .node_count = pen_graph_node_count(graph)};
    const uint64_t hash = pen_graph_hash(&owners);
    pen_arena_destroy(arena);
    return hash;
}

// Names, operators and shapes are alike in all of these.
static void hashes_are_of_wiring_too(void **state) {
    (void)state;
    const uint64_t hash = hash_of_variant(&(variant){.number = 1.0f});
    assert_true(hash == hash_of_variant(&(variant){.number = 1.0f}));
    assert_true(hash != hash_of_variant(&(variant){.number = 1.0f, .is_swapped = true}));
    assert_true(hash != hash_of_variant(&(variant){.number = 1.0f, .transpose = 1}));
    assert_true(hash != hash_of_variant(&(variant){.number = 1.5f}));
}

PEN_TEST_MAIN(cmocka_unit_test(sums_are_what_one_device_holds),
              cmocka_unit_test(the_problem_is_one),
              cmocka_unit_test(updates_are_shared_by_microbatches),
              cmocka_unit_test(hashes_are_of_the_model), cmocka_unit_test(hashes_are_of_wiring_too))
