#include "partition/costs/cluster_links.h"
#include "partition/plan/plan.h"

#include <math.h>

#include "partition/plan/plan_check.h"
#include "tests/support/check.h"

// A plan of two stages on two devices that is right, to be spoiled.
typedef struct small_plan {
    pen_plan plan;
    pen_plan_device devices[2];
    pen_stage stages[2];
    pen_plan_stage figures[2];
    pen_stage_edge edges[1];
    double limits[2];
    pen_plan_transfer transfers[1];
    pen_plan_node nodes[3];
} small_plan;

static void small_plan_init(small_plan *s) {
    *s = (small_plan){
        .devices = {{.name = "a",
                     .node_count = 1,
                     .memory = {.parameters = 6, .workspace = 4, .total = 10}},
                    {.name = "b", .node_count = 2, .memory = {.activations = 5, .total = 5}}},
        .stages = {{.device = 0, .forward_seconds = 1}, {.device = 1, .forward_seconds = 2}},
        .figures = {{.name = "stage 0", .node_count = 1, .in_flight = 2},
                    {.name = "stage 1", .node_count = 2, .in_flight = 1}},
        .edges = {{.source = 0, .target = 1, .forward_bytes = 8}},
        .limits = {10, INFINITY},
        .transfers = {{.value = "v", .source = 0, .target = 1, .bytes = 8}},
        .nodes = {{.name = "x", .stage = 0}, {.name = "y", .stage = 1}, {.name = "z", .stage = 1}}};
    s->plan = (pen_plan){.model = "m.onnx",
                         .strategy = "auto",
                         .objective = "step_time",
                         .schedule = "1f1b",
                         .microbatch_count = 2,
                         .microbatch_size = 4,
                         .device_count = 2,
                         .devices = s->devices,
                         .stages = {.stage_count = 2,
                                    .edge_count = 1,
                                    .device_count = 2,
                                    .microbatch_count = 2,
                                    .stages = s->stages,
                                    .edges = s->edges,
                                    .bytes_limit = s->limits},
                         .stage_figures = s->figures,
                         .transfer_count = 1,
                         .transfers = s->transfers,
                         .node_count = 3,
                         .nodes = s->nodes};
}

static void check_plan(const small_plan *s, pen_status_code code, const char *text) {
    pen_arena *arena = check_arena();
    const pen_status status = pen_plan_check(&s->plan, false, arena);
    if (text == NULL) {
        CHECK_OK(status);
    } else {
        CHECK_ERROR(status, code, text);
    }
    pen_arena_destroy(arena);
}

// Spoils one thing and checks what is said of it.
#define CHECK_SPOILED(assignment, code, text)                                                      \
    do {                                                                                           \
        small_plan s;                                                                              \
        small_plan_init(&s);                                                                       \
        assignment;                                                                                \
        check_plan(&s, code, text);                                                                \
    } while (0)

static void counts_are_of_what_is_there(void **state) {
    (void)state;
    CHECK_SPOILED(s.figures[1].node_count = 77, PEN_INVALID_INPUT,
                  "stage 1: its nodes are said to be 77, but 2 are in it");
    CHECK_SPOILED(s.devices[0].node_count = 77, PEN_INVALID_INPUT,
                  "device 'a': its nodes are said to be 77, but its stages have 1");
    CHECK_SPOILED(s.figures[0].in_flight = 0, PEN_INVALID_INPUT,
                  "stage 0: 0 microbatches in flight, but it has nodes to run: expected 1 to 2");
}

static void right_plans_pass(void **state) {
    (void)state;
    CHECK_SPOILED((void)0, PEN_CODE_OK, NULL);
}

static void stages_must_hold_together(void **state) {
    (void)state;
    CHECK_SPOILED(s.plan.stages.stage_count = 0, PEN_INVALID_INPUT, "no stage");
    CHECK_SPOILED(s.plan.microbatch_count = 3, PEN_INVALID_INPUT, "microbatches");
    CHECK_SPOILED(s.stages[1].device = 2, PEN_INVALID_INPUT, "stage 1 is on device 2 of 2");
    CHECK_SPOILED(s.stages[1].update_seconds = -1, PEN_INVALID_INPUT, "stage 1: -1");
    CHECK_SPOILED(s.stages[0].activation_bytes = NAN, PEN_INVALID_INPUT, "stage 0: ");
    CHECK_SPOILED(s.figures[0].in_flight = 3, PEN_INVALID_INPUT, "3 microbatches in flight");
    CHECK_SPOILED(s.edges[0].target = 0, PEN_INVALID_INPUT, "must be in order");
    CHECK_SPOILED(s.edges[0].target = 2, PEN_INVALID_INPUT, "must be in order");
    CHECK_SPOILED(s.edges[0].backward_seconds = INFINITY, PEN_INVALID_INPUT, "no times");
}

static void memory_must_add_up_and_fit(void **state) {
    (void)state;
    CHECK_SPOILED(s.devices[0].memory.total = 9, PEN_INVALID_INPUT, "sum up to 10");
    CHECK_SPOILED(s.limits[0] = 9, PEN_DOES_NOT_FIT, "device 'a' would hold 10 bytes");
    CHECK_SPOILED(s.devices[1].name = "a", PEN_INVALID_INPUT, "two devices are called 'a'");
    CHECK_SPOILED(s.devices[1].load_seconds = -1, PEN_INVALID_INPUT, "'b': its load");
    CHECK_SPOILED(s.plan.device_count = s.plan.stages.device_count = 0, PEN_INVALID_INPUT,
                  "device");
}

static void nodes_must_be_there_once(void **state) {
    (void)state;
    CHECK_SPOILED(s.nodes[2].stage = 2, PEN_INVALID_INPUT, "'z' is in stage 2, but there are 2");
    CHECK_SPOILED(s.nodes[2].name = "x", PEN_INVALID_INPUT, "'x' is in the plan twice");
    CHECK_SPOILED(s.nodes[0].stage = 1, PEN_INVALID_INPUT, "stage 0 has no node");
    CHECK_SPOILED(s.nodes[0].seconds = -2, PEN_INVALID_INPUT, "'x': -2");
    CHECK_SPOILED(s.transfers[0].target = 0, PEN_INVALID_INPUT, "'v' goes from stage 0 to stage 0");
    CHECK_SPOILED(s.plan.bubble = NAN, PEN_INVALID_INPUT, "is no time or share");
}

static void transfers_go_along_edges(void **state) {
    (void)state;
    CHECK_SPOILED(s.plan.transfer_count = 0, PEN_INVALID_INPUT, "carries 8 bytes forward");
    CHECK_SPOILED(s.transfers[0].bytes = 9, PEN_INVALID_INPUT, "sum up to 9 and 0");
    CHECK_SPOILED(s.transfers[0].is_backward = true, PEN_INVALID_INPUT, "'v' goes backward");
    CHECK_SPOILED(s.plan.stages.edge_count = 0, PEN_INVALID_INPUT, "along no edge");
    CHECK_SPOILED((s.stages[1].device = 0, s.devices[0].node_count = 3, s.devices[1].node_count = 0,
                   s.plan.transfer_count = 0),
                  PEN_CODE_OK, NULL);
}

static void values_are_not_below_their_bound(void **state) {
    (void)state;
    CHECK_SPOILED(s.plan.lower_bound = 1, PEN_INVALID_INPUT, "said to be its lower bound");
    CHECK_SPOILED(s.plan.step_seconds = 1, PEN_INVALID_INPUT, "but a step takes 1");
    CHECK_SPOILED((s.plan.step_seconds = 1, s.plan.objective = "traffic"), PEN_CODE_OK, NULL);
}

// Someone who edits a plan may empty a stage.
static void edited_plans_may_have_empty_stages(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    small_plan s;
    small_plan_init(&s);
    s.nodes[0].stage = 1;
    CHECK_OK(pen_plan_check(&s.plan, true, arena));
    pen_arena_destroy(arena);
}

// The hash is of what is stated, not of what is measured or assumed.
static void cluster_hashes_are_of_what_is_stated(void **state) {
    (void)state;
    const pen_cluster_link same = {.bandwidth = INFINITY};
    const pen_cluster_link link = {.bandwidth = 1e9,
                                   .latency = 1e-6,
                                   .latency_stated = 1e-6,
                                   .latency_source = PEN_FIGURE_STATED};
    const pen_cluster_link links[4] = {same, link, link, same};
    pen_cluster_link changed[4];
    memcpy(changed, links, sizeof links);
    pen_cluster_device devices[2] = {{.name = "a", .kind = "cpu", .threads = 1, .bytes_limit = 5},
                                     {.name = "b", .kind = "cpu", .threads = 1, .flops = 1e9}};
    static const uint32_t link_of_pair[4] = {0, 1, 2, 3};
    pen_cluster cluster = {.device_count = 2,
                           .link_count = 4,
                           .devices = devices,
                           .links = links,
                           .link_of_pair = link_of_pair};
    const uint64_t hash = pen_cluster_hash(&cluster);
    devices[0].bytes_limit = 6; // what the system grants
    changed[1].bandwidth = 2e9;
    cluster.links = changed;
    assert_true(pen_cluster_hash(&cluster) == hash);
    changed[1].latency = 3e-6; // measured in place of what is stated
    changed[1].latency_source = PEN_FIGURE_MEASURED;
    devices[1].flops = 2e9;
    assert_true(pen_cluster_hash(&cluster) == hash);
    devices[1].flops_stated = 2e9;
    assert_true(pen_cluster_hash(&cluster) != hash);
    devices[1].flops_stated = 0.0;
    changed[1].latency_stated = 2e-6;
    assert_true(pen_cluster_hash(&cluster) != hash);
    cluster.links = links;
    devices[0].bytes_source = PEN_FIGURE_STATED;
    assert_true(pen_cluster_hash(&cluster) != hash);
    devices[0].bytes_source = PEN_FIGURE_ASSUMED;
    devices[1].threads = 2; // the cores of another machine
    assert_true(pen_cluster_hash(&cluster) == hash);
    devices[1].threads_stated = 2;
    assert_true(pen_cluster_hash(&cluster) != hash);
    devices[1].threads_stated = 0;
    devices[1].host = "n1:7070";
    assert_true(pen_cluster_hash(&cluster) != hash);
    devices[1].host = NULL;
    assert_true(pen_cluster_hash(&cluster) == hash);
}

PEN_TEST_MAIN(cmocka_unit_test(right_plans_pass), cmocka_unit_test(counts_are_of_what_is_there),
              cmocka_unit_test(stages_must_hold_together),
              cmocka_unit_test(memory_must_add_up_and_fit),
              cmocka_unit_test(nodes_must_be_there_once),
              cmocka_unit_test(transfers_go_along_edges),
              cmocka_unit_test(values_are_not_below_their_bound),
              cmocka_unit_test(edited_plans_may_have_empty_stages),
              cmocka_unit_test(cluster_hashes_are_of_what_is_stated))
