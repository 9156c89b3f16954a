#include "scheduler/report/report.h"

#include <math.h>

#include "graph/dump/layered_layout.h"
#include "scheduler/plan/planned_trace.h"
#include "scheduler/report/report_plan.h"
#include "tests/support/chain_graph.h"
#include "tests/support/check.h"

#define HOSTILE "</script><script>alert('x')</script>\" <!-- \xF0\x9F\x98\x80 "

static const char *hostile_name(uint32_t index, char *room) {
    snprintf(room, 256, "%s%u", HOSTILE, index);
    return room;
}

// A plan of a chain of four nodes in two stages.
typedef struct planned_chain {
    pen_graph *graph;
    pen_plan plan;
    pen_plan_device devices[2];
    pen_stage stages[2];
    pen_stage_edge edge;
    double bytes_limit[2];
    pen_plan_stage stage_figures[2];
    pen_plan_transfer transfer;
    pen_plan_node nodes[4];
} planned_chain;

static planned_chain *plan_chain(pen_arena *arena) {
    planned_chain *planned;
    CHECK_OK(PEN_NEW(arena, 1, &planned));
    planned->graph = chain_graph(arena, HOSTILE, 4, hostile_name);
    for (uint32_t i = 0; i < 2; i++) {
        planned->devices[i] =
            (pen_plan_device){.name = i == 0 ? HOSTILE : "b",
                              .memory = {.parameters = 100, .activations = 50, .total = 150},
                              .load_seconds = 3,
                              .node_count = 2};
        planned->stages[i] = (pen_stage){.device = i,
                                         .forward_seconds = 1,
                                         .has_backward = true,
                                         .has_update = true,
                                         .backward_input_seconds = 1,
                                         .backward_weight_seconds = 1,
                                         .activation_bytes = 10};
        planned->bytes_limit[i] = i == 0 ? 1000 : INFINITY;
        planned->stage_figures[i] =
            (pen_plan_stage){.name = i == 0 ? "stage 0" : HOSTILE, .node_count = 2};
    }
    planned->edge = (pen_stage_edge){
        .target = 1, .forward_bytes = 48, .has_gradient = true, .backward_bytes = 48};
    for (uint32_t n = 0; n < 4; n++) {
        planned->nodes[n] = (pen_plan_node){.name = pen_node_name(planned->graph, (pen_node_id){n}),
                                            .stage = n / 2,
                                            .seconds = 1.5,
                                            .source = PEN_FIGURE_MEASURED,
                                            .bytes = 25,
                                            .reason = HOSTILE};
    }
    planned->transfer = (pen_plan_transfer){.value = HOSTILE, .target = 1, .bytes = 48};
    planned->plan = (pen_plan){
        .model = HOSTILE,
        .strategy = HOSTILE,
        .objective = "step_time",
        .schedule = "1f1b",
        .microbatch_count = 3,
        .device_count = 2,
        .devices = planned->devices,
        .stages = {.stage_count = 2,
                   .edge_count = 1,
                   .device_count = 2,
                   .microbatch_count = 3,
                   .stages = planned->stages,
                   .edges = &planned->edge,
                   .bytes_limit = planned->bytes_limit},
        .stage_figures = planned->stage_figures,
        .transfer_count = 1,
        .transfers = &planned->transfer,
        .node_count = 4,
        .nodes = planned->nodes,
    };
    return planned;
}

static pen_report report_of(const planned_chain *planned, pen_arena *arena) {
    pen_report report;
    pen_drawing_options groups;
    pen_drawing *drawing;
    CHECK_OK(pen_report_plan(planned->graph, &planned->plan, arena, &report, &groups));
    CHECK_OK(pen_drawing_new(planned->graph, &groups, arena, &drawing));
    CHECK_OK(pen_layered_layout(drawing, arena));
    report.drawing = drawing;
    return report;
}

static size_t count_in(const char *text, const char *wanted) {
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++) {
        found++;
    }
    return found;
}

static void keeps_hostile_names_inside(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_report report = report_of(plan_chain(arena), arena);
    const char *text;
    CHECK_OK(pen_report_html(&report, arena, &text));
    // the data and the script, and no other
    CHECK(count_in(text, "<script") == 2, "%zu scripts", count_in(text, "<script"));
    CHECK(count_in(text, "</script>") == 2, "%zu ends of scripts", count_in(text, "</script>"));
    CHECK(count_in(text, "<!--") == 0, "a comment");
    CHECK(count_in(text, "</html>") == 1 && count_in(text, "</body>") == 1, "ends");
    CHECK(count_in(text, "\\u003c/script>") > 10, "names in the data");
    CHECK(count_in(text, "&lt;/script&gt;") > 0, "the title");
    // self-contained: nothing is loaded, and there are no addresses but the name of SVG
    CHECK(count_in(text, "://") == 1, "%zu addresses", count_in(text, "://"));
    CHECK(count_in(text, "src=") == 0 && count_in(text, "@import") == 0 &&
              count_in(text, "url(") == 0,
          "something is loaded");
    pen_arena_destroy(arena);
}

static void says_what_a_plan_says(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_report report = report_of(plan_chain(arena), arena);
    const char *text;
    CHECK_OK(pen_report_json(&report, arena, &text));
    CHECK(count_in(text, "\"source\": \"measured\"") == 4, "%s", text);
    CHECK(count_in(text, "\"reason\": ") == 4, "%s", text);
    CHECK(count_in(strstr(text, "\"boxes\": ["), "\"stage\": 1,") == 2, "%s", text);
    CHECK(count_in(text, "\"planned\": {") > 0 && count_in(text, "\"measured\": {") == 0, "%s",
          text);
    CHECK(count_in(text, "\"bytes_limit\": 1000") == 1, "%s", text);
    CHECK(count_in(text, "\"bytes_limit\"") == 1, "an infinite limit is none: %s", text);
    CHECK(report.timeline->step_seconds == 12, "%g", report.timeline->step_seconds);
    pen_arena_destroy(arena);
}

static const char *module_name(uint32_t index, char *room) {
    snprintf(room, 256, "block%u/node%u", index / 25, index);
    return room;
}

// A graph of few boxes has no modules. Of many, each box has its own.
static void large_graphs_have_modules(void **state) {
    (void)state;
    for (uint32_t count = 500; count <= 1000; count += 500) {
        pen_arena *arena = check_arena();
        const pen_graph *graph = chain_graph(arena, "chain", count, module_name);
        const pen_drawing_options options = {0};
        pen_report report = {.graph = graph};
        pen_drawing *drawing;
        const char *text;
        CHECK_OK(pen_drawing_new(graph, &options, arena, &drawing));
        CHECK_OK(pen_layered_layout(drawing, arena));
        report.drawing = drawing;
        CHECK_OK(pen_report_add_modules(&report, &options, arena));
        CHECK_OK(pen_report_json(&report, arena, &text));
        const size_t expected = count == 1000 ? 1 : 0;
        CHECK((report.modules != NULL) == (expected == 1), "%u nodes", count);
        CHECK(count_in(text, "\"modules\": {") == expected, "%u nodes", count);
        CHECK(count_in(text, "\"module_of\": [") == expected, "%u nodes", count);
        CHECK(count_in(text, "\"name\": \"block7/*\"") == expected, "%u nodes", count);
        if (report.modules != NULL) {
            const pen_drawing_box *boxes = report.modules->boxes;
            const uint32_t module = report.modules->box_of_node[180];
            CHECK(strcmp(boxes[module].name, "block7/*") == 0, "%s", boxes[module].name);
            CHECK(boxes[module].node_count == 25, "%u nodes", boxes[module].node_count);
        }
        pen_arena_destroy(arena);
    }
}

// A run that went as planned, of tensors and workers with hostile names.
static void puts_a_run_beside_the_plan(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const planned_chain *planned = plan_chain(arena);
    pen_report report = report_of(planned, arena);
    const char *text;
    CHECK_OK(pen_planned_trace(&planned->plan, report.timeline, arena, &report.trace));
    CHECK_OK(pen_report_json(&report, arena, &text));
    CHECK(count_in(text, "\"measured_figures\": {") == 1, "%s", text);
    CHECK(count_in(text, "\"with_measured_costs\": {") == 1, "%s", text);
    // both sides, both figures, and with measured costs
    CHECK(count_in(text, "\"step_seconds\": 12") == 5, "%s", text);
    CHECK_OK(pen_report_html(&report, arena, &text));
    CHECK(count_in(text, "<script") == 2 && count_in(text, "</script>") == 2, "scripts");
    pen_trace trace = *report.trace;
    const char *names[] = {"somebody", "else"};
    trace.device_names = names;
    report.trace = &trace;
    CHECK_ERROR(pen_report_html(&report, arena, &text), PEN_INVALID_INPUT,
                "device 0 is 'somebody' in the trace");
    pen_arena_destroy(arena);
}

static void refuses_plans_of_other_models(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    planned_chain *planned = plan_chain(arena);
    pen_report report;
    pen_drawing_options groups;
    planned->nodes[2].name = "nobody";
    CHECK_ERROR(pen_report_plan(planned->graph, &planned->plan, arena, &report, &groups),
                PEN_NOT_FOUND, "'nobody'");
    planned = plan_chain(arena);
    planned->plan.schedule = "2f2b";
    CHECK_ERROR(pen_report_plan(planned->graph, &planned->plan, arena, &report, &groups),
                PEN_NOT_FOUND, "unknown schedule '2f2b'");
    planned = plan_chain(arena);
    planned->stages[1].device = 7;
    CHECK_ERROR(pen_report_plan(planned->graph, &planned->plan, arena, &report, &groups),
                PEN_INVALID_INPUT, "7");
    pen_arena_destroy(arena);
}

static void shows_models_without_a_plan(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_drawing_options options = {0};
    pen_report report = {.graph = chain_graph(arena, "chain", 5, chain_flat_name)};
    pen_drawing *drawing;
    const char *text;
    CHECK_OK(pen_drawing_new(report.graph, &options, arena, &drawing));
    CHECK_OK(pen_layered_layout(drawing, arena));
    report.drawing = drawing;
    CHECK_OK(pen_report_html(&report, arena, &text));
    CHECK(count_in(text, "\"plan\"") == 0 && count_in(text, "id=\"timeline\"") == 0, "no plan");
    CHECK(count_in(text, "\"bytes_moved\"") == 5, "%s", strstr(text, "\"boxes\""));
    CHECK(count_in(text, "float32[4,3]") == 13, "%s", strstr(text, "\"boxes\""));
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(keeps_hostile_names_inside), cmocka_unit_test(says_what_a_plan_says),
              cmocka_unit_test(puts_a_run_beside_the_plan),
              cmocka_unit_test(refuses_plans_of_other_models),
              cmocka_unit_test(shows_models_without_a_plan),
              cmocka_unit_test(large_graphs_have_modules))
