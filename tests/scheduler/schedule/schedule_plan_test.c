// The schedule of a plan that was read is the one that was planned with.
#include "base/yaml_writer.h"
#include "partition/plan_file.h"
#include "scheduler/schedule/schedule_check.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/stage_chain.h"

#define GRAPH_COUNT 200

// Seconds that are no whole numbers, as costs of stages are: of any size, rounded as
// pen_stage_split_costs does.
static void draw_seconds(dice *d, double *seconds) {
    const double scale = (double)dice_between(d, 1, 1000000) * 1e-9;
    *seconds = pen_yaml_round_seconds(*seconds * scale * 1.2345678901);
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

static void rounding_is_what_a_file_does(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    dice d = {.seed = 5};
    for (int i = 0; i < 20000; i++) {
        const double seconds =
            (double)dice_between(&d, 0, 1000000) * (i % 3 == 0 ? 1.1e-3 : 7.7e-12);
        const double rounded = pen_yaml_round_seconds(seconds);
        CHECK(rounded >= seconds * (1 - 5.1e-5) && rounded <= seconds * (1 + 5.1e-5), "%.17g",
              seconds);
        CHECK(pen_yaml_round_seconds(rounded) == rounded, "%.17g", seconds);
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
              cmocka_unit_test(rounding_is_what_a_file_does))
