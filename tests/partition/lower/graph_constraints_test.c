#include "partition/lower/graph_constraints.h"

#include "tests/support/check.h"
#include "tests/support/planned.h"

// The status of resolving `placement`, a line of YAML, on the branching model.
static pen_status resolve(const char *placement, pen_planner **out_planner,
                          pen_plan_job **out_plan_job, pen_arena *arena) {
    const char *rest;
    CHECK_OK(
        pen_arena_format(arena, &rest, "%splacement: {%s}\n", PLANNED_FOUR_DEVICES, placement));
    *out_plan_job = planned_start(planned_reference(arena, "lenet", 3, rest));
    return pen_planner_new(planned_request(*out_plan_job), arena, out_planner);
}

static void constraints_become_facts(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job;
    pen_planner *planner;
    CHECK_OK(resolve("pin: [{nodes: \"^/conv1/\", to: b}], colocate: [{nodes: [/fc1/Gemm, "
                     "/fc3/Gemm]}], forbid: [{nodes: /fc2/Gemm, on: \"^[ab]$\"}]",
                     &planner, &plan_job, arena));
    const pen_graph_constraints *found = &planner->constraints;
    assert_int_equal(found->pin[planned_node(planner, "/conv1/Conv")], 1);
    assert_int_equal(found->pin[planned_node(planner, "/conv2/Conv")], PEN_PROBLEM_ANY);
    assert_int_equal(found->color[planned_node(planner, "/fc1/Gemm")],
                     found->color[planned_node(planner, "/fc3/Gemm")]);
    assert_int_not_equal(found->color[planned_node(planner, "/fc1/Gemm")],
                         found->color[planned_node(planner, "/fc2/Gemm")]);
    assert_int_equal(found->forbidden_count, 2);
    assert_int_equal(found->forbidden[0].node, planned_node(planner, "/fc2/Gemm"));
    assert_int_equal(found->forbidden[0].device, 0);
    assert_int_equal(found->forbidden[1].device, 1);
    // what goes with a pinned node is pinned too
    const pen_forward_owners *owners = planner->owners;
    uint32_t followers = 0;
    for (uint32_t n = 0; n < owners->node_count; n++) {
        if (owners->home[n] != planned_node(planner, "/conv1/Conv")) continue;
        assert_int_equal(found->pin[n], 1);
        followers++;
    }
    assert_true(followers >= 3); // forward, backward, update
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// From the first fully connected layer to the last is one block, with what lies between.
static void blocks_hold_what_lies_between(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job;
    pen_planner *planner;
    CHECK_OK(resolve("no_split: [{nodes: \"^/fc[13]/\"}]", &planner, &plan_job, arena));
    const uint32_t *color = planner->constraints.color;
    const uint32_t block = color[planned_node(planner, "/fc1/Gemm")];
    assert_int_equal(color[planned_node(planner, "/fc2/Gemm")], block);
    assert_int_equal(color[planned_node(planner, "/fc3/Gemm")], block);
    assert_int_not_equal(color[planned_node(planner, "/conv2/Conv")], block);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Each node that is kept is forbidden on all devices of other kinds, and names that the model does
// not have mean nothing.
static void nodes_stay_with_their_kind(void **state) {
    (void)state;
    static const pen_constraint_keep kept[] = {
        {"/fc1/Gemm", "cpu"}, {"/nowhere", "cpu"}, {"/conv1/Conv", "reference"}};
    static const pen_constraint_keep alone[] = {{"/fc1/Gemm", "cuda"}};
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "lenet", 3,
        "devices: [{name: a, threads: 1}, {name: r, kind: reference, threads: 1}, "
        "{name: b, threads: 1}]\n"));
    const pen_plan_request *request = planned_request(plan_job);
    pen_planner *planner;
    pen_graph_constraints found;
    CHECK_OK(pen_planner_new(request, arena, &planner));
    pen_constraints given = {.kept = kept, .kept_count = 3};
    CHECK_OK(
        pen_graph_constraints_resolve(planner->owners, request->cluster, &given, arena, &found));
    assert_int_equal(found.forbidden_count, 3);
    assert_int_equal(found.forbidden[0].node, planned_node(planner, "/fc1/Gemm"));
    assert_int_equal(found.forbidden[0].device, 1);
    assert_int_equal(found.forbidden[1].node, planned_node(planner, "/conv1/Conv"));
    assert_int_equal(found.forbidden[1].device, 0);
    assert_int_equal(found.forbidden[2].device, 2);
    given = (pen_constraints){.kept = alone, .kept_count = 1};
    CHECK_ERROR(
        pen_graph_constraints_resolve(planner->owners, request->cluster, &given, arena, &found),
        PEN_INVALID_INPUT, "forbidden on all 3 devices");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

static void mistakes_are_told(void **state) {
    (void)state;
    static const struct {
        const char *placement;
        pen_status_code code;
        const char *text;
    } cases[] = {
        {"pin: [{nodes: /cnv1/Conv, to: b}]", PEN_NOT_FOUND, "/conv1/Conv"},
        {"pin: [{nodes: /conv1/Conv, to: e}]", PEN_NOT_FOUND, "device"},
        {"pin: [{nodes: /conv1/Conv, to: \"[ab]\"}]", PEN_INVALID_INPUT, "a pin needs one"},
        {"pin: [{nodes: /fc1/Gemm, to: a}, {nodes: /fc2/Gemm, to: b}], no_split: [{nodes: "
         "\"^/fc\"}]",
         PEN_INVALID_INPUT, "pinned to 'b'"},
        {"pin: [{nodes: /fc1/Gemm, to: a}], forbid: [{nodes: /fc1/Gemm, on: a}]", PEN_INVALID_INPUT,
         "both pinned to 'a' and forbidden"},
        {"forbid: [{nodes: /fc1/Gemm, on: \"^x\"}]", PEN_NOT_FOUND, "^x"},
        {"no_split: [{nodes: \"^/nothing/\"}]", PEN_NOT_FOUND, "^/nothing/"},
        {"colocate: [{nodes: [/fc1/Gemm, /fc9/Gemm]}]", PEN_NOT_FOUND, "/fc9/Gemm"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_arena *arena = check_arena();
        pen_plan_job *plan_job;
        pen_planner *planner;
        CHECK_ERROR(resolve(cases[i].placement, &planner, &plan_job, arena), cases[i].code,
                    cases[i].text);
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
}

// Errors say where in the job the entry stands.
static void mistakes_have_a_place(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job;
    pen_planner *planner;
    CHECK_ERROR(resolve("pin: [{nodes: /cnv1/Conv, to: b}]", &planner, &plan_job, arena),
                PEN_NOT_FOUND, "job.yaml:12:");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(constraints_become_facts),
              cmocka_unit_test(blocks_hold_what_lies_between),
              cmocka_unit_test(nodes_stay_with_their_kind), cmocka_unit_test(mistakes_are_told),
              cmocka_unit_test(mistakes_have_a_place))
