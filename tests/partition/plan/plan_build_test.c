#include <math.h>

#include "base/format/yaml_writer.h"
#include "base/name_map.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "partition/lower/stage_costs.h"
#include "partition/plan/plan_build.h"
#include "partition/plan/plan_check.h"
#include "partition/plan/plan_file.h"
#include "partition/plan/plan_value.h"
#include "partition/plan/plan_writer.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"

// The model's own forward nodes, each once, in the stage of a device that is there: counted from
// the program, not from what the plan was made from.
static void check_coverage(const pen_plan *plan, const pen_graph *graph, const char *what) {
    uint32_t expected = 0, *of_stage, *of_device, stage_sum = 0, device_sum = 0;
    pen_arena *arena = check_arena();
    pen_name_map map;
    pen_name_map_init(&map, arena);
    CHECK_OK(PEN_NEW(arena, plan->stages.stage_count, &of_stage));
    CHECK_OK(PEN_NEW(arena, plan->device_count, &of_device));
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        CHECK(pen_name_map_find(&map, node->name) == PEN_NAME_MAP_NONE, "%s: '%s' twice", what,
              node->name);
        CHECK_OK(pen_name_map_add(&map, node->name, n));
        CHECK(node->stage < plan->stages.stage_count, "%s: '%s' in stage %u", what, node->name,
              node->stage);
        CHECK(node->reason[0] != '\0', "%s: '%s' is there for no reason", what, node->name);
        of_stage[node->stage]++;
        of_device[plan->stages.stages[node->stage].device]++;
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->role != PEN_ROLE_FORWARD || strcmp(node->op->name, "reorder") == 0) continue;
        CHECK(pen_name_map_find(&map, node->name) != PEN_NAME_MAP_NONE, "%s: '%s' is missing", what,
              node->name);
        expected++;
    }
    CHECK(plan->node_count == expected, "%s: %u nodes of %u", what, plan->node_count, expected);
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        CHECK(of_stage[s] == plan->stage_figures[s].node_count && of_stage[s] > 0,
              "%s: stage %u has %u nodes", what, s, of_stage[s]);
        stage_sum += of_stage[s];
    }
    for (uint32_t d = 0; d < plan->device_count; d++) {
        CHECK(of_device[d] == plan->devices[d].node_count, "%s: device %u", what, d);
        CHECK((double)plan->devices[d].memory.total <= plan->stages.bytes_limit[d],
              "%s: device %u is over its memory", what, d);
        device_sum += of_device[d];
    }
    assert_int_equal(stage_sum, expected);
    assert_int_equal(device_sum, expected);
    pen_arena_destroy(arena);
}

static const char *const strategies[] = {"auto",   "greedy",      "metis",  "dynamic_programming",
                                         "random", "round_robin", "manual", "local_search"};

static void every_node_is_planned_once(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        double least = INFINITY, bound = 0.0;
        for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
            pen_arena *arena = check_arena();
            const char *rest;
            CHECK_OK(pen_arena_format(arena, &rest,
                                      "%splacement: {strategy: %s, time_limit: 100ms}\n",
                                      PLANNED_FOUR_DEVICES, strategies[i]));
            pen_plan_job *plan_job =
                planned_start(planned_reference(arena, planned_models[m], 4, rest));
            const pen_plan *plan = planned_place(plan_job, arena);
            const char *what;
            CHECK_OK(pen_arena_format(arena, &what, "%s by %s", planned_models[m], strategies[i]));
            check_coverage(plan, pen_plan_job_program(plan_job)->graph, what);
            CHECK_OK(pen_plan_check(plan, false, arena));
            CHECK(plan->step_seconds > 0.0 && plan->bubble >= 0.0 && plan->bubble < 1.0, "%s",
                  what);
            least = fmin(least, plan->value);
            bound = fmax(bound, plan->lower_bound);
            assert_string_equal(plan->strategy, strategies[i]);
            pen_plan_job_destroy(plan_job);
            pen_arena_destroy(arena);
        }
        CHECK(bound > 0.0 && bound <= least * (1.0 + 1e-9), "%s: bound %g, but there is %g",
              planned_models[m], bound, least);
    }
}

// A step is simulated with rounded costs, so it may take less than its parts do. What is said to
// bound it must not follow the value of the plan that it is said beside.
static void bounds_do_not_depend_on_the_plan(void **state) {
    (void)state;
    uint32_t below = 0;
    for (uint32_t rate = 11; rate < 31; rate++) {
        pen_arena *arena = check_arena();
        const char *rest;
        double beside, other;
        CHECK_OK(pen_arena_format(arena, &rest,
                                  "devices: [{name: a, threads: 1, memory: 1GiB, flops: %u00M, "
                                  "memory_bandwidth: 8GB/s}]\n",
                                  rate));
        pen_plan_job *plan_job = planned_start(planned_reference(arena, "lenet", 2, rest));
        const pen_plan *plan = planned_place(plan_job, arena);
        const pen_planner *planner = planned_planner(plan_job, arena);
        CHECK_OK(pen_plan_bound(planner, plan->value, 0.0, arena, &beside));
        CHECK_OK(pen_plan_bound(planner, 2.0 * plan->value, 0.0, arena, &other));
        assert_true(beside == other && other <= plan->value);
        CHECK(other > plan->value * (1.0 - 1.1e-4), "%g, but one device takes %g", other,
              plan->value);
        below += plan->value * (1.0 - PEN_YAML_ROUNDING) < other;
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
    CHECK(below > 0, "no step of 20 is rounded down");
}

// Four equal devices: the step by `strategy`, meaned over `seeds` seeds.
static double mean_step(const char *model, const char *placement, uint32_t seeds) {
    double sum = 0.0;
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        pen_arena *arena = check_arena();
        const char *rest;
        CHECK_OK(pen_arena_format(
            arena, &rest,
            "devices: [{name: \"d[1-4]\", memory: 1GiB, threads: 1, flops: 500M, memory_bandwidth: "
            "500MB/s}]\nlinks: [{between: [\"^.\", \"^.\"], bandwidth: 10Gbit/s, latency: 20us}]\n"
            "placement: {%s, time_limit: 300ms, seed: %u}\n",
            placement, seed));
        pen_plan_job *plan_job = planned_start(planned_reference(arena, model, 6, rest));
        sum += planned_place(plan_job, arena)->step_seconds;
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
    return sum / seeds;
}

// What planning is worth, on models so small that chance does not do badly: one device alone, and a
// random placement, take longer.
static void plans_beat_chance_and_one_device(void **state) {
    (void)state;
    static const char *const models[] = {"lenet", "branching_cnn", "batchnorm_cnn", "resnet18"};
    const size_t model_count = sizeof models / sizeof *models;
    double saved = 0.0;
    for (size_t m = 0; m < model_count; m++) {
        const double chance = mean_step(models[m], "strategy: random", 5);
        const double one =
            mean_step(models[m], "strategy: manual, pin: [{nodes: \"^.\", to: d1}]", 1);
        const double planned = mean_step(models[m], "strategy: auto", 1);
        CHECK(planned < one && planned < chance, "%s: %g s, on one device %g, by chance %g",
              models[m], planned, one, chance);
        saved += (1.0 - planned / chance) / (double)model_count;
    }
    CHECK(saved > 0.2, "%.1f %% saved over random placement", 100.0 * saved);
}

// A model with a weight used twice can be cut between the uses: its gradients meet once a
// step, and the new weight goes to the other user.
static void shared_weights_are_cut(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_tiny(
        arena, 3, PLANNED_FOUR_DEVICES "placement: {strategy: round_robin, time_limit: 100ms}\n"));
    const pen_planner *planner = planned_planner(plan_job, arena);
    const pen_forward_owners *owners = planner->owners;
    pen_value_id twice;
    CHECK_OK(pen_graph_find_value(owners->graph, "twice", &twice));
    uint32_t *devices, users[2], count = 0;
    CHECK_OK(PEN_NEW(arena, owners->node_count, &devices));
    for (uint32_t u = owners->user_first[twice.index]; u < owners->user_first[twice.index + 1];
         u++) {
        if (count < 2) users[count++] = owners->user_nodes[u];
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        devices[n] = planner->constraints.color[n] >= planner->constraints.color[users[1]];
    }
    pen_plan_solution solution;
    CHECK_OK(pen_plan_solve(planner, devices, arena, &solution));
    uint32_t per_step = 0, returned = 0;
    for (uint32_t i = 0; i < solution.transfers.count; i++) {
        const pen_stage_transfer *transfer = &solution.transfers.items[i];
        per_step += transfer->is_per_step;
        if (transfer->value.index != twice.index) continue;
        assert_true(transfer->is_per_step && transfer->seconds > 0.0);
        assert_int_equal(transfer->bytes, 5 * 5 * 4);
        assert_int_equal(transfer->target, solution.split.stage_of_node[users[1]]);
        returned++;
    }
    assert_int_equal(returned, 1);                       // the parameter, once updated
    assert_int_equal(per_step, 2);                       // and the gradient that it is updated with
    const uint64_t bytes = 64 * ((5 * 5 * 4 + 63) / 64); // float32[5,5], on both devices
    pen_plan_solution whole;
    uint32_t *zeros;
    CHECK_OK(PEN_NEW(arena, owners->node_count, &zeros));
    CHECK_OK(pen_plan_solve(planner, zeros, arena, &whole));
    assert_int_equal(solution.device_memory[0].parameters + solution.device_memory[1].parameters,
                     whole.device_memory[0].parameters + bytes);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// A plan's limits are what the job states.
static void limits_are_the_jobs(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "mlp", 3, "devices: [{name: a, memory: 1GiB}]\nplacement: {time_limit: 100ms}\n"));
    pen_plan *plan = planned_place(plan_job, arena);
    const pen_planner *planner = planned_planner(plan_job, arena);
    CHECK_OK(pen_plan_check_model(planner, plan, arena));
    double limit = 2e9;
    plan->stages.bytes_limit = &limit;
    CHECK_ERROR(pen_plan_check_model(planner, plan, arena), PEN_INVALID_INPUT,
                "device 'a': the plan's limit is 2000000000 bytes, but the job grants 1073741824");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

static uint32_t stage_of(const pen_plan *plan, const char *name) {
    for (uint32_t n = 0; n < plan->node_count; n++) {
        if (strcmp(plan->nodes[n].name, name) == 0) return plan->nodes[n].stage;
    }
    fail_msg("no node '%s'", name);
    return 0;
}

static void constraints_are_kept(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(
        planned_reference(arena, "lenet", 4,
                          PLANNED_FOUR_DEVICES
                          "placement: {time_limit: 100ms, pin: [{nodes: /conv1/Conv, to: c}], "
                          "forbid: [{nodes: \"^/fc\", on: \"^[cd]$\"}], stages: {minimum: 3}}\n"));
    const pen_plan *plan = planned_place(plan_job, arena);
    assert_int_equal(plan->stages.stages[stage_of(plan, "/conv1/Conv")].device, 2);
    assert_true(plan->stages.stages[stage_of(plan, "/fc1/Gemm")].device < 2);
    assert_true(plan->stages.stages[stage_of(plan, "/fc3/Gemm")].device < 2);
    uint32_t used = 0;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        used += plan->devices[d].node_count > 0;
    }
    assert_true(used >= 3);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Devices too small for any placement: what is missing where, by kind, and the nodes in the way.
static void too_little_memory_is_told(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(
        planned_reference(arena, "mlp", 4,
                          "devices: [{name: a, memory: 60KiB, threads: 1}, {name: b, memory: "
                          "60KiB, threads: 1}]\nplacement: {time_limit: 100ms}\n"));
    pen_plan *plan;
    const pen_status status = pen_plan_job_place(plan_job, arena, &plan);
    char text[2048];
    pen_status_format(status, text, sizeof text);
    CHECK(strstr(text, "'/layers.0/Gemm'") != NULL && strstr(text, "optimizer state") != NULL,
          "said: %s", text);
    CHECK_ERROR(status, PEN_DOES_NOT_FIT, "may use 60.0 KiB");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Little memory costs time, and is kept to.
static void memory_is_a_hard_limit(void **state) {
    (void)state;
    double before = 0.0;
    static const uint32_t kibibytes[] = {16384, 2900, 2500};
    for (size_t i = 0; i < sizeof kibibytes / sizeof *kibibytes; i++) {
        pen_arena *arena = check_arena();
        const char *rest;
        CHECK_OK(pen_arena_format(
            arena, &rest,
            "devices:\n"
            "  - {name: a, memory: %uKiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}\n"
            "  - {name: b, memory: %uKiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}\n"
            "placement: {time_limit: 300ms}\n",
            kibibytes[i], kibibytes[i]));
        pen_plan_job *plan_job = planned_start(planned_reference(arena, "branching_cnn", 1, rest));
        pen_plan *plan;
        const pen_status status = pen_plan_job_place(plan_job, arena, &plan);
        CHECK(status == PEN_OK || pen_status_get_code(status) == PEN_DOES_NOT_FIT, "%u KiB: %s",
              kibibytes[i], pen_status_message(status));
        if (status == PEN_OK) {
            for (uint32_t d = 0; d < 2; d++) {
                assert_true(plan->devices[d].memory.total <= kibibytes[i] * 1024ull);
            }
            CHECK(plan->step_seconds >= 0.99 * before, "%u KiB: %g s after %g s", kibibytes[i],
                  plan->step_seconds, before);
            before = plan->step_seconds;
        }
        CHECK(i > 0 || status == PEN_OK, "16 MiB are enough");
        pen_status_ignore(status, "looked at");
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
}

// ---- plans that are given

static pen_plan *edited_copy(const pen_plan *plan, pen_arena *arena) {
    const char *text;
    pen_plan *copy;
    CHECK_OK(pen_plan_format(plan, arena, &text));
    CHECK_OK(pen_plan_parse("plan.yaml", text, strlen(text), true, arena, &copy));
    return copy;
}

static pen_plan_node *writable_nodes(const pen_plan *plan) {
    pen_plan_node *nodes;
    memcpy(&nodes, &plan->nodes, sizeof nodes);
    return nodes;
}

static void a_plan_that_is_read_back_is_the_same(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "branching_cnn", 4, PLANNED_FOUR_DEVICES "placement: {time_limit: 100ms}\n"));
    const pen_plan *plan = planned_place(plan_job, arena);
    pen_plan *again;
    CHECK_OK(pen_plan_job_rebuild(plan_job, edited_copy(plan, arena), arena, &again));
    assert_true(fabs(again->step_seconds - plan->step_seconds) <= 1e-9 * plan->step_seconds);
    assert_int_equal(again->stages.stage_count, plan->stages.stage_count);
    for (uint32_t d = 0; d < plan->device_count; d++) {
        assert_memory_equal(&again->devices[d].memory, &plan->devices[d].memory,
                            sizeof(pen_device_memory));
    }
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Moves of nodes by hand: what is possible is worked out, the rest is refused by name.
static void edited_plans_are_judged(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "lenet", 4,
        PLANNED_FOUR_DEVICES
        "placement: {strategy: manual, pin: [{nodes: \"^/(conv|Sigmoid$|Pad|Aver|Max|Tanh$|Resh)\","
        " to: a}, {nodes: \"^/(fc|Tanh_1|Sigmoid_1)\", to: b}]}\n"));
    const pen_plan *plan = planned_place(plan_job, arena);
    const uint32_t first = stage_of(plan, "/conv1/Conv"), last = stage_of(plan, "/fc3/Gemm");
    assert_int_not_equal(first, last);
    pen_plan *given = edited_copy(plan, arena), *again;
    for (uint32_t n = 0; n < given->node_count; n++) {
        if (strcmp(given->nodes[n].name, "/fc3/Gemm") == 0) writable_nodes(given)[n].stage = first;
    }
    CHECK_ERROR(pen_plan_job_rebuild(plan_job, given, arena, &again), PEN_INVALID_INPUT,
                "wait for each other");
    given = edited_copy(plan, arena);
    for (uint32_t n = 0; n < given->node_count; n++) {
        if (strcmp(given->nodes[n].name, "/fc1/Gemm") == 0) writable_nodes(given)[n].stage = first;
    }
    CHECK_ERROR(pen_plan_job_rebuild(plan_job, given, arena, &again), PEN_INVALID_INPUT,
                "'/fc1/Gemm' is on device 'a', but pinned to 'b'");
    given = edited_copy(plan, arena);
    writable_nodes(given)[2].name = "/nowhere";
    CHECK_ERROR(pen_plan_job_rebuild(plan_job, given, arena, &again), PEN_INVALID_INPUT,
                "is in no stage of the plan");
    given = edited_copy(plan, arena);
    given->model_hash++;
    CHECK_ERROR(pen_plan_job_rebuild(plan_job, given, arena, &again), PEN_INVALID_INPUT,
                "the model has changed");
    given = edited_copy(plan, arena);
    given->cluster_hash++;
    CHECK_ERROR(pen_plan_job_rebuild(plan_job, given, arena, &again), PEN_INVALID_INPUT,
                "the cluster has changed");
    given = edited_copy(plan, arena);
    given->microbatch_count = given->stages.microbatch_count = 3;
    CHECK_ERROR(pen_plan_job_rebuild(plan_job, given, arena, &again), PEN_INVALID_INPUT,
                "3 microbatches of 3 examples");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// A move that nothing speaks against changes the figures.
static void moved_nodes_change_the_figures(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "lenet", 4,
        PLANNED_FOUR_DEVICES "placement: {strategy: round_robin, time_limit: 100ms}\n"));
    const pen_plan *plan = planned_place(plan_job, arena);
    assert_true(plan->stages.stage_count > 1);
    pen_plan *given = edited_copy(plan, arena), *again;
    for (uint32_t n = 0; n < given->node_count; n++) {
        writable_nodes(given)[n].stage = 0;
    }
    CHECK_OK(pen_plan_job_rebuild(plan_job, given, arena, &again));
    CHECK_OK(pen_plan_job_add_reasons(plan_job, again, arena));
    assert_int_equal(again->stages.stage_count, 1);
    assert_int_equal(again->transfer_count, 0);
    assert_true(again->step_seconds != plan->step_seconds);
    check_coverage(again, pen_plan_job_program(plan_job)->graph, "all on one");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

static void wishes_hold_for_plans_that_are_given(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "lenet", 4,
        PLANNED_FOUR_DEVICES "placement: {time_limit: 100ms, stages: {minimum: 2}}\n"));
    pen_plan *given = edited_copy(planned_place(plan_job, arena), arena), *again;
    for (uint32_t n = 0; n < given->node_count; n++) {
        writable_nodes(given)[n].stage = 0;
    }
    CHECK_ERROR(pen_plan_job_rebuild(plan_job, given, arena, &again), PEN_INVALID_INPUT,
                "uses 1 devices, but the job's `stages` asks for at least 2");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(every_node_is_planned_once),
              cmocka_unit_test(bounds_do_not_depend_on_the_plan),
              cmocka_unit_test(plans_beat_chance_and_one_device),
              cmocka_unit_test(shared_weights_are_cut), cmocka_unit_test(limits_are_the_jobs),
              cmocka_unit_test(constraints_are_kept), cmocka_unit_test(too_little_memory_is_told),
              cmocka_unit_test(memory_is_a_hard_limit),
              cmocka_unit_test(a_plan_that_is_read_back_is_the_same),
              cmocka_unit_test(edited_plans_are_judged),
              cmocka_unit_test(moved_nodes_change_the_figures),
              cmocka_unit_test(wishes_hold_for_plans_that_are_given))
