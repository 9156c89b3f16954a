#include <math.h>

#include "graph/graph.h"
#include "partition/plan/plan_build.h"
#include "partition/plan/plan_explain.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"

#define LENET_IN_TWO                                                                               \
    PLANNED_FOUR_DEVICES                                                                           \
    "pipeline: {schedule: 1f1b}\n"                                                                 \
    "placement: {strategy: manual, contiguous: %s, forbid: [{nodes: /fc1/Gemm, on: c}], pin: "     \
    "[{nodes: \"^/(conv|Sigmoid$|Pad|Aver|Max|Tanh$|Resh)\", to: a}, {nodes: \"^/(fc3)\", to: "    \
    "b}]}\n"

typedef struct explained {
    pen_arena *arena;
    pen_plan_job *plan_job;
    pen_planner *planner;
    pen_plan *plan;
} explained;

static explained explained_start(const char *contiguous) {
    explained x = {.arena = check_arena()};
    const char *rest;
    CHECK_OK(pen_arena_format(x.arena, &rest, LENET_IN_TWO, contiguous));
    x.plan_job = planned_start(planned_reference(x.arena, "lenet", 4, rest));
    x.plan = planned_place(x.plan_job, x.arena);
    x.planner = planned_planner(x.plan_job, x.arena);
    return x;
}

static void explained_end(explained *x) {
    pen_plan_job_destroy(x->plan_job);
    pen_arena_destroy(x->arena);
}

// The figures of a device are those of the plan with the node there, worked out from nothing.
static void alternatives_are_worked_out(void **state) {
    (void)state;
    explained x = explained_start("false");
    pen_plan_explanation found;
    CHECK_OK(pen_plan_explain(x.planner, x.plan, "/fc1/Gemm", x.arena, &found));
    pen_plan_solution now;
    CHECK_OK(pen_plan_solve_given(x.planner, x.plan, x.arena, &now));
    const uint32_t node = planned_node(x.planner, "/fc1/Gemm");
    const uint32_t color = x.planner->constraints.color[node];
    assert_int_equal(found.here, now.device_of_node[node]);
    assert_true(found.devices[found.here].is_here);
    assert_true(fabs(found.devices[found.here].step_seconds - x.plan->step_seconds) <=
                1e-9 * x.plan->step_seconds);
    uint32_t *devices;
    CHECK_OK(PEN_NEW(x.arena, x.planner->owners->node_count, &devices));
    for (uint32_t d = 0; d < 4; d++) {
        for (uint32_t n = 0; n < x.planner->owners->node_count; n++) {
            devices[n] = x.planner->constraints.color[n] == color ? d : now.device_of_node[n];
        }
        pen_plan_solution there;
        CHECK_OK(pen_plan_solve(x.planner, devices, x.arena, &there));
        const pen_plan_alternative *a = &found.devices[d];
        CHECK(fabs(a->step_seconds - there.prediction.step_seconds) <=
                  1e-9 * there.prediction.step_seconds,
              "device %u: %g s, expected %g", d, a->step_seconds, there.prediction.step_seconds);
        assert_int_equal(a->memory_total, there.device_memory[d].total);
        assert_true(a->node_seconds > 0.0);
    }
    assert_non_null(strstr(found.devices[2].why_not, "forbidden"));
    assert_true(found.devices[3].why_not == NULL);
    // b computes twice as fast as a, c half as fast
    assert_true(found.devices[1].node_seconds <= found.devices[0].node_seconds);
    assert_true(found.devices[0].node_seconds <= found.devices[2].node_seconds);
    explained_end(&x);
}

static void pins_are_named(void **state) {
    (void)state;
    explained x = explained_start("false");
    pen_plan_explanation found;
    CHECK_OK(pen_plan_explain(x.planner, x.plan, "/conv1/Conv", x.arena, &found));
    assert_int_equal(found.here, 0);
    assert_string_equal(found.node->reason, "pinned to 'a'");
    for (uint32_t d = 1; d < 4; d++) {
        assert_string_equal(found.devices[d].why_not, "pinned to 'a'");
    }
    explained_end(&x);
}

// In a line of devices a node cannot jump over its neighbours.
static void circles_are_named(void **state) {
    (void)state;
    explained x = explained_start("true");
    pen_plan_explanation found;
    CHECK_OK(pen_plan_explain(x.planner, x.plan, "/fc2/Gemm", x.arena, &found));
    uint32_t circles = 0;
    for (uint32_t d = 0; d < 4; d++) {
        if (found.devices[d].why_not == NULL) continue;
        circles += strstr(found.devices[d].why_not, "in a circle") != NULL;
    }
    CHECK(circles >= 1, "%u circles", circles);
    explained_end(&x);
}

static void near_names_are_listed(void **state) {
    (void)state;
    explained x = explained_start("false");
    pen_plan_explanation found;
    CHECK_ERROR(pen_plan_explain(x.planner, x.plan, "/fc1/Gem", x.arena, &found), PEN_NOT_FOUND,
                "near: /fc1/Gemm");
    CHECK_ERROR(pen_plan_explain(x.planner, x.plan, "gemm", x.arena, &found), PEN_NOT_FOUND,
                "near: /fc1/Gemm, /fc2/Gemm, /fc3/Gemm");
    CHECK_ERROR(pen_plan_explain(x.planner, x.plan, "quite another", x.arena, &found),
                PEN_NOT_FOUND, "possible: ");
    x.plan->model_hash++;
    CHECK_ERROR(pen_plan_explain(x.planner, x.plan, "/fc1/Gemm", x.arena, &found),
                PEN_INVALID_INPUT, "the model has changed");
    explained_end(&x);
}

// All that has a name is explained by the node it goes with: parameters, values, and every node of
// the graph, those of the backward pass and changes of layout too.
static void what_goes_with_a_node_is_known(void **state) {
    (void)state;
    explained x = explained_start("false");
    const pen_forward_owners *owners = x.planner->owners;
    pen_plan_explanation found;
    CHECK_OK(pen_plan_explain(x.planner, x.plan, "fc1.weight", x.arena, &found));
    assert_string_equal(found.node->name, "/fc1/Gemm");
    assert_string_equal(found.asked, "fc1.weight");
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const char *name = pen_node_name(owners->graph, (pen_node_id){n});
        CHECK_OK(pen_plan_explain(x.planner, x.plan, name, x.arena, &found));
        CHECK(strcmp(found.node->name,
                     pen_node_name(owners->graph, (pen_node_id){owners->listed[n]})) == 0,
              "'%s' is explained by '%s'", name, found.node->name);
    }
    explained_end(&x);
}

// What a file says of the reason is not believed.
static void reasons_are_worked_out(void **state) {
    (void)state;
    explained x = explained_start("false");
    pen_plan_explanation found;
    CHECK_OK(pen_plan_explain(x.planner, x.plan, "/fc1/Gemm", x.arena, &found));
    const char *reason = found.reason;
    assert_string_equal(reason, found.node->reason);
    pen_plan_node *nodes;
    memcpy(&nodes, &x.plan->nodes, sizeof nodes);
    for (uint32_t n = 0; n < x.plan->node_count; n++) {
        nodes[n].reason = "the only device";
    }
    CHECK_OK(pen_plan_explain(x.planner, x.plan, "/fc1/Gemm", x.arena, &found));
    assert_string_equal(found.reason, reason);
    explained_end(&x);
}

static void memory_that_is_missing_is_named(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "mlp", 4,
        "devices: [{name: a, memory: 1GiB, threads: 1}, {name: b, memory: 20KiB, threads: 1}]\n"
        "placement: {strategy: greedy, time_limit: 100ms}\n"));
    pen_plan *plan = planned_place(plan_job, arena);
    pen_plan_explanation found;
    CHECK_OK(
        pen_plan_explain(planned_planner(plan_job, arena), plan, "/layers.0/Gemm", arena, &found));
    assert_int_equal(found.here, 0);
    assert_non_null(found.devices[1].why_not);
    CHECK(strstr(found.devices[1].why_not, "does not fit: 'b' would hold") != NULL &&
              strstr(found.devices[1].why_not, "optimizer state") != NULL,
          "said: %s", found.devices[1].why_not);
    pen_text text;
    const char *whole;
    pen_text_init(&text, arena);
    pen_plan_explanation_dump(&found, &text);
    CHECK_OK(pen_text_finish(&text, &whole));
    CHECK(strstr(whole, "node         /layers.0/Gemm") != NULL && strstr(whole, "here") != NULL,
          "%s", whole);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Of a plan for latency, what is compared is latency.
static void latency_is_compared(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "branching_cnn", 4,
        PLANNED_FOUR_DEVICES "placement: {objective: latency, contiguous: false, time_limit: "
                             "100ms}\n"));
    const pen_planner *planner = planned_planner(plan_job, arena);
    const pen_plan *plan = planned_place(plan_job, arena);
    pen_plan_explanation found;
    CHECK_OK(pen_plan_explain(planner, plan, plan->nodes[0].name, arena, &found));
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const pen_plan_alternative *a = &found.devices[d];
        if (a->is_here) {
            CHECK(fabs(a->latency_seconds - plan->value) <= 1e-9 * plan->value, "%g s, not %g",
                  a->latency_seconds, plan->value);
        }
        CHECK(a->latency_seconds >= plan->lower_bound * (1.0 - 1e-9) &&
                  a->latency_seconds < a->step_seconds,
              "device %u: %g s", d, a->latency_seconds);
    }
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(latency_is_compared), cmocka_unit_test(alternatives_are_worked_out),
              cmocka_unit_test(pins_are_named), cmocka_unit_test(circles_are_named),
              cmocka_unit_test(near_names_are_listed),
              cmocka_unit_test(what_goes_with_a_node_is_known),
              cmocka_unit_test(reasons_are_worked_out),
              cmocka_unit_test(memory_that_is_missing_is_named))
