// The schedule of a plan that was read is the one that was planned with.
#include "base/format/yaml_writer.h"
#include "partition/lower/stage_costs.h"
#include "partition/plan/plan_file.h"
#include "partition/plan/plan_writer.h"
#include "scheduler/plan/plan_schedule.h"
#include "scheduler/schedule/auto_schedule.h"
#include "scheduler/schedule/schedule_check.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/stage_chain.h"

#define GRAPH_COUNT 200

// The generator that searches takes its time, and has tests of its own.
static bool is_left_out(size_t generator, uint64_t seed) {
    return strcmp(pen_schedule_generators[generator]->name, "auto") == 0 && seed % 10 != 0;
}

// Seconds that are no whole numbers, as costs of stages are: of any size, rounded as
// pen_stage_split_costs does.
static void draw_seconds(dice *d, double *seconds) {
    const double scale = (double)dice_between(d, 1, 1000000) * 1e-9;
    *seconds = pen_yaml_round(*seconds * scale * 1.2345678901, PEN_UNIT_SECONDS);
}

static pen_stage_graph *draw_graph(pen_arena *arena, uint64_t seed) {
    pen_stage_graph *graph = stage_graph_random(arena, seed);
    dice d = {.seed = seed ^ 0xf11e};
    pen_stage *stages;
    pen_stage_edge *edges;
    pen_stage_step_edge *step_edges;
    CHECK_OK(PEN_NEW(arena, graph->stage_count, &stages));
    CHECK_OK(PEN_NEW(arena, graph->edge_count, &edges));
    CHECK_OK(PEN_NEW(arena, graph->step_edge_count, &step_edges));
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        stages[s] = graph->stages[s];
        draw_seconds(&d, &stages[s].forward_seconds);
        draw_seconds(&d, &stages[s].backward_input_seconds);
        draw_seconds(&d, &stages[s].backward_weight_seconds);
        draw_seconds(&d, &stages[s].update_seconds);
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        edges[e] = graph->edges[e];
        draw_seconds(&d, &edges[e].forward_seconds);
        draw_seconds(&d, &edges[e].backward_seconds);
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        step_edges[e] = graph->step_edges[e];
        draw_seconds(&d, &step_edges[e].seconds);
    }
    graph->stages = stages;
    graph->edges = edges;
    graph->step_edges = step_edges;
    return graph;
}

// A plan of these stages: a node in each, as many devices as there are.
static pen_plan *plan_of(const pen_stage_graph *graph, pen_arena *arena) {
    pen_plan *plan;
    pen_plan_device *devices;
    pen_plan_stage *figures;
    pen_plan_node *nodes;
    pen_plan_transfer *transfers;
    CHECK_OK(PEN_NEW(arena, 1, &plan));
    CHECK_OK(PEN_NEW(arena, graph->device_count, &devices));
    CHECK_OK(PEN_NEW(arena, graph->stage_count, &figures));
    CHECK_OK(PEN_NEW(arena, graph->stage_count, &nodes));
    CHECK_OK(PEN_NEW(arena, 2 * (size_t)graph->edge_count, &transfers));
    for (uint32_t d = 0; d < graph->device_count; d++) {
        CHECK_OK(pen_arena_format(arena, &devices[d].name, "d%u", d));
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        CHECK_OK(pen_arena_format(arena, &nodes[s].name, "n%u", s));
        nodes[s].stage = s;
        nodes[s].reason = "";
        figures[s] = (pen_plan_stage){.name = "stage", .node_count = 1, .in_flight = 1};
        devices[graph->stages[s].device].node_count += 1;
    }
    uint32_t count = 0;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        transfers[count++] = (pen_plan_transfer){.value = "a",
                                                 .source = edge->source,
                                                 .target = edge->target,
                                                 .bytes = (uint64_t)edge->forward_bytes};
        transfers[count++] = (pen_plan_transfer){.value = "g",
                                                 .source = edge->target,
                                                 .target = edge->source,
                                                 .bytes = (uint64_t)edge->backward_bytes,
                                                 .is_backward = true};
    }
    *plan = (pen_plan){.model = "m.onnx",
                       .strategy = "manual",
                       .objective = "throughput",
                       .schedule = "1f1b",
                       .microbatch_count = graph->microbatch_count,
                       .microbatch_size = 1,
                       .device_count = graph->device_count,
                       .devices = devices,
                       .stages = *graph,
                       .stage_figures = figures,
                       .transfer_count = count,
                       .transfers = transfers,
                       .node_count = graph->stage_count,
                       .nodes = nodes};
    return plan;
}

static void reading_a_plan_changes_no_schedule(void **state) {
    (void)state;
    uint32_t task_count = 0;
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = draw_graph(arena, seed);
        const char *text;
        pen_plan *read;
        CHECK_OK(pen_plan_format(plan_of(graph, arena), arena, &text));
        CHECK_OK(pen_plan_parse("plan.yaml", text, strlen(text), false, arena, &read));
        for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
            if (is_left_out(i, seed)) continue;
            const pen_schedule *made, *again;
            CHECK_OK(pen_schedule_generators[i]->generate(graph, arena, &made));
            CHECK_OK(pen_schedule_generators[i]->generate(&read->stages, arena, &again));
            CHECK_OK(pen_schedule_check(&read->stages, made, arena));
            CHECK(made->task_count == again->task_count, "%u, %u", made->task_count,
                  again->task_count);
            for (uint32_t t = 0; t < made->task_count; t++) {
                CHECK(made->tasks[t].kind == again->tasks[t].kind &&
                          made->tasks[t].stage == again->tasks[t].stage &&
                          made->tasks[t].microbatch == again->tasks[t].microbatch,
                      "graph %llu, %s, task %u", (unsigned long long)seed,
                      pen_schedule_generators[i]->name, t);
            }
            task_count += made->task_count;
        }
        pen_arena_destroy(arena);
    }
    CHECK(task_count > 10000, "%u", task_count);
}

// A plan that lists its tasks has the schedule that it was made with, whatever the generator does.
static void listed_tasks_are_the_schedule(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = draw_graph(arena, seed);
        const pen_auto_options options = {.seed = seed, .work_limit = 20000};
        const pen_schedule *made, *again;
        pen_plan_device *devices;
        const char *text;
        pen_plan *read;
        CHECK_OK(pen_auto_schedule(graph, &options, arena, &made, NULL));
        pen_plan *plan = plan_of(graph, arena);
        CHECK_OK(PEN_NEW(arena, graph->device_count, &devices));
        for (uint32_t d = 0; d < graph->device_count; d++) {
            devices[d] = plan->devices[d];
            CHECK_OK(pen_schedule_format_device(made, d, arena, &devices[d].tasks));
        }
        plan->devices = devices;
        plan->schedule = "auto";
        CHECK_OK(pen_plan_format(plan, arena, &text));
        CHECK_OK(pen_plan_parse("plan.yaml", text, strlen(text), false, arena, &read));
        CHECK_OK(pen_plan_schedule(read, arena, &again));
        CHECK(made->task_count == again->task_count, "%u, %u", made->task_count, again->task_count);
        for (uint32_t d = 0; d <= graph->device_count; d++) {
            CHECK(made->first_task[d] == again->first_task[d], "device %u", d);
        }
        CHECK(memcmp(made->tasks, again->tasks, made->task_count * sizeof *made->tasks) == 0,
              "graph %llu", (unsigned long long)seed);
        pen_arena_destroy(arena);
    }
}

static void texts_that_are_no_tasks_are_refused(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_schedule *schedule;
    static const char *const good[] = {" F0.0  I0.0 W0.0 U0.1 ", ""};
    CHECK_OK(pen_schedule_parse(good, 2, arena, &schedule));
    assert_int_equal(schedule->task_count, 4);
    assert_int_equal(schedule->first_task[2], 4);
    assert_int_equal(schedule->tasks[3].kind, PEN_TASK_UPDATE);
    assert_int_equal(schedule->tasks[3].microbatch, 1);
    static const char *const bad[] = {"G0.0",    "F",        "F0",    "F0.",   "F.0",
                                      "F0.0,F1", "F0.0F1.0", "F-1.0", "F0.1x", "F1234567.0",
                                      "f0.0",    "F0.0 x",   "F 0.0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *const texts[] = {"F0.0", bad[i]};
        CHECK_ERROR(pen_schedule_parse(texts, 2, arena, &schedule), PEN_INVALID_INPUT,
                    "tasks of device 1: found '");
    }
    const pen_stage_graph *graph = stage_chain(arena, 2, 1, 1, 1, 0);
    pen_plan *plan = plan_of(graph, arena);
    pen_plan_device devices[2] = {plan->devices[0], plan->devices[1]};
    plan->devices = devices;
    devices[0].tasks = "F0.0 B0.0 U0.0";
    CHECK_ERROR(pen_plan_schedule(plan, arena, &schedule), PEN_INVALID_INPUT,
                "the task 'forward of stage 1, microbatch 0' is missing");
    devices[1].tasks = "F1.0 B1.0 U1.0";
    CHECK_OK(pen_plan_schedule(plan, arena, &schedule));
    devices[1].tasks = "F1.0 U1.0 B1.0";
    CHECK_ERROR(pen_plan_schedule(plan, arena, &schedule), PEN_INVALID_INPUT,
                "updates of a stage come last");
    pen_arena_destroy(arena);
}

static void rounding_is_what_a_file_does(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    dice d = {.seed = 5};
    for (int i = 0; i < 20000; i++) {
        const double seconds =
            (double)dice_between(&d, 0, 1000000) * (i % 3 == 0 ? 1.1e-3 : 7.7e-12);
        const double rounded = pen_yaml_round(seconds, PEN_UNIT_SECONDS);
        CHECK(rounded >= seconds * (1 - 5.1e-5) && rounded <= seconds * (1 + 5.1e-5), "%.17g",
              seconds);
        CHECK(pen_yaml_round(rounded, PEN_UNIT_SECONDS) == rounded, "%.17g", seconds);
        pen_text text;
        const char *written;
        double read = -1;
        pen_text_init(&text, arena);
        pen_yaml_add_quantity(&text, rounded, PEN_UNIT_SECONDS);
        CHECK_OK(pen_text_finish(&text, &written));
        CHECK(pen_quantity_parse(written, PEN_UNIT_SECONDS, &read) && read == rounded, "%s",
              written);
    }
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(reading_a_plan_changes_no_schedule),
              cmocka_unit_test(listed_tasks_are_the_schedule),
              cmocka_unit_test(texts_that_are_no_tasks_are_refused),
              cmocka_unit_test(rounding_is_what_a_file_does))
