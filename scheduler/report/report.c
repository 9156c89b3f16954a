#include "scheduler/report/report.h"

#include <math.h>
#include <string.h>

#include "base/format/json_writer.h"
#include "base/format/markup_writer.h"
#include "base/format/palette.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "partition/costs/cluster_build.h"
#include "partition/costs/device_memory.h"
#include "partition/plan/plan_dump.h"
#include "scheduler/report/page/page_text.h"
#include "scheduler/report/rate_curve.h"
#include "scheduler/report/report_run.h"

// Nothing is loaded from anywhere, save by a page that asks where it comes from how it goes on.
#define REPORT_POLICY                                                                              \
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "                  \
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'%s\"/>\n"

// What the nodes of a box come to.
typedef struct report_box {
    uint64_t flops;
    uint64_t bytes_moved; // by one run
    uint64_t parameter_bytes;
    bool is_planned;
    double seconds;
    pen_figure_source source; // the least sure
    uint64_t bytes;           // that they add to their device
} report_box;

static uint64_t report_parameter_bytes(const pen_graph *graph, const pen_node *node) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_value *value = pen_graph_value(graph, node->inputs[i]);
        if (value->kind == PEN_VALUE_PARAMETER) bytes += pen_tensor_type_bytes(&value->type);
    }
    return bytes;
}

// Adds up the nodes of each box: a box may stand for many. Of figures with different sources, the
// least sure is told.
static pen_status report_sum_up(const pen_report *report, pen_arena *arena,
                                report_box **out_boxes) {
    report_box *boxes;
    PEN_TRY(PEN_NEW(arena, report->drawing->box_count, &boxes));
    for (uint32_t n = 0; n < pen_graph_node_count(report->graph); n++) {
        if (report->drawing->box_of_node[n] == PEN_DRAWING_NONE) continue;
        const pen_node_id id = {n};
        report_box *box = &boxes[report->drawing->box_of_node[n]];
        box->flops += pen_node_flops(report->graph, id);
        box->bytes_moved += pen_node_bytes(report->graph, id);
        box->parameter_bytes +=
            report_parameter_bytes(report->graph, pen_graph_node(report->graph, id));
        if (report->plan == NULL || report->plan_node_of_node[n] == PEN_DRAWING_NONE) continue;
        const pen_plan_node *planned = &report->plan->nodes[report->plan_node_of_node[n]];
        if (!box->is_planned || planned->source < box->source) box->source = planned->source;
        box->is_planned = true;
        box->seconds += planned->seconds;
        box->bytes += planned->bytes;
    }
    *out_boxes = boxes;
    return PEN_OK;
}

// ---- as JSON

// Figures of the graph are there for each box, those of the plan only for what it runs.
static void report_box_json(pen_json_writer *json, const pen_report *report,
                            const pen_drawing_box *box, const report_box *sums) {
    char color[PEN_PALETTE_TEXT_BYTES];
    pen_json_begin_object(json);
    pen_json_key_text(json, "name", box->name);
    pen_json_key_text(json, "op", box->op);
    if (box->shape[0] != '\0') pen_json_key_text(json, "shape", box->shape);
    pen_json_key_array(json, "place");
    pen_json_integer(json, lround(box->x));
    pen_json_integer(json, lround(box->y));
    pen_json_integer(json, lround(box->width));
    pen_json_integer(json, lround(box->height));
    pen_json_end_array(json);
    if (box->node_count > 0) {
        const uint32_t number = pen_drawing_box_color(report->drawing, report->graph, box);
        pen_json_key_text(json, "color", pen_palette_series(number, color));
        if (box->node_count > 1) pen_json_key_unsigned(json, "nodes", box->node_count);
        pen_json_key_unsigned(json, "flops", sums->flops);
        pen_json_key_unsigned(json, "bytes_moved", sums->bytes_moved);
        pen_json_key_unsigned(json, "parameter_bytes", sums->parameter_bytes);
    }
    if (report->plan != NULL && sums->is_planned) {
        const uint32_t planned = report->plan_node_of_node[box->node];
        pen_json_key_number(json, "seconds", sums->seconds);
        pen_json_key_text(json, "source", pen_figure_source_name(sums->source));
        pen_json_key_unsigned(json, "bytes", sums->bytes);
        if (planned != PEN_DRAWING_NONE) {
            pen_json_key_unsigned(json, "stage", report->plan->nodes[planned].stage);
            if (box->node_count == 1) {
                pen_json_key_text(json, "reason", report->plan->nodes[planned].reason);
            }
        }
    }
    pen_json_end_object(json);
}

static void report_arrow_json(pen_json_writer *json, const pen_drawing *drawing,
                              const pen_drawing_arrow *arrow) {
    pen_json_begin_object(json);
    pen_json_key_unsigned(json, "from", arrow->source);
    pen_json_key_unsigned(json, "to", arrow->target);
    if (arrow->label[0] != '\0') pen_json_key_text(json, "shape", arrow->label);
    pen_json_key_array(json, "points");
    for (uint32_t p = 0; p < arrow->point_count; p++) {
        pen_json_integer(json, lround(drawing->points[arrow->point_first + p].x));
        pen_json_integer(json, lround(drawing->points[arrow->point_first + p].y));
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}

static void report_devices_json(pen_json_writer *json, const pen_plan *plan) {
    char color[PEN_PALETTE_TEXT_BYTES];
    pen_json_key_array(json, "devices");
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const pen_plan_device *device = &plan->devices[d];
        const double limit = plan->stages.bytes_limit[d];
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", device->name);
        pen_json_key_text(json, "color", pen_palette_series(d, color));
        pen_json_key_unsigned(json, "nodes", device->node_count);
        pen_json_key_number(json, "load_seconds", device->load_seconds);
        if (isfinite(limit)) pen_json_key_number(json, "bytes_limit", limit);
        pen_json_key(json, "memory");
        pen_device_memory_write_json(&device->memory, json);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// Stages and transfers are known by their numbers: boxes and the run refer to them so.
static void report_stages_json(pen_json_writer *json, const pen_plan *plan) {
    pen_json_key_array(json, "stages");
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        const pen_stage *stage = &plan->stages.stages[s];
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", plan->stage_figures[s].name);
        pen_json_key_unsigned(json, "device", stage->device);
        pen_json_key_number(json, "forward_seconds", stage->forward_seconds);
        pen_json_key_number(json, "backward_seconds",
                            stage->backward_input_seconds + stage->backward_weight_seconds);
        pen_json_key_number(json, "update_seconds", stage->update_seconds);
        pen_json_key_unsigned(json, "nodes", plan->stage_figures[s].node_count);
        pen_json_key_unsigned(json, "in_flight", plan->stage_figures[s].in_flight);
        pen_json_key_unsigned(json, "parameter_bytes", plan->stage_figures[s].parameter_bytes);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    pen_json_key_array(json, "transfers");
    for (uint32_t t = 0; t < plan->transfer_count; t++) {
        const pen_plan_transfer *transfer = &plan->transfers[t];
        pen_json_begin_object(json);
        pen_plan_write_transfer(transfer, json);
        pen_json_key_bool(json, "backward", transfer->is_backward);
        pen_json_key_bool(json, "once_a_step", transfer->is_per_step);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// What was set on the command line comes first: without it the rest cannot be made again.
static void report_plan_json(pen_json_writer *json, const pen_plan *plan) {
    pen_json_key_object(json, "plan");
    if (plan->setting_count > 0) {
        pen_json_key_array(json, "set");
        for (uint32_t i = 0; i < plan->setting_count; i++) {
            pen_json_text(json, plan->settings[i]);
        }
        pen_json_end_array(json);
    }
    pen_json_key_text(json, "strategy", plan->strategy);
    pen_json_key_text(json, "objective", plan->objective);
    pen_json_key_number(json, "value", plan->value);
    pen_json_key_number(json, "lower_bound", plan->lower_bound);
    pen_json_key_text(json, "schedule", plan->schedule);
    pen_json_key_unsigned(json, "microbatches", plan->microbatch_count);
    pen_json_key_unsigned(json, "microbatch_size", plan->microbatch_size);
    pen_json_key_number(json, "step_seconds", plan->step_seconds);
    pen_json_key_number(json, "bubble", plan->bubble);
    pen_json_key_unsigned(json, "measured", plan->measured_count);
    pen_json_key_unsigned(json, "stated", plan->stated_count);
    pen_json_key_unsigned(json, "assumed", plan->assumed_count);
    report_devices_json(json, plan);
    report_stages_json(json, plan);
    pen_json_end_object(json);
}

static pen_status report_drawing_json(pen_json_writer *json, const pen_report *report,
                                      pen_arena *arena) {
    const pen_drawing *drawing = report->drawing;
    report_box *sums;
    PEN_TRY(report_sum_up(report, arena, &sums));
    pen_json_key_number(json, "width", ceil(drawing->width));
    pen_json_key_number(json, "height", ceil(drawing->height));
    pen_json_key_array(json, "boxes");
    for (uint32_t b = 0; b < drawing->box_count; b++) {
        report_box_json(json, report, &drawing->boxes[b], &sums[b]);
    }
    pen_json_end_array(json);
    pen_json_key_array(json, "arrows");
    for (uint32_t a = 0; a < drawing->arrow_count; a++) {
        report_arrow_json(json, drawing, &drawing->arrows[a]);
    }
    pen_json_end_array(json);
    return PEN_OK;
}

// "modules" is a drawing like the one around it, and "module_of" says of each box there which box
// it is here; -1: it is an input or output.
static pen_status report_modules_json(pen_json_writer *json, const pen_report *report,
                                      pen_arena *arena) {
    pen_report inner = *report;
    inner.drawing = report->modules;
    pen_json_key_object(json, "modules");
    PEN_TRY(report_drawing_json(json, &inner, arena));
    pen_json_end_object(json);
    pen_json_key_array(json, "module_of");
    for (uint32_t b = 0; b < report->drawing->box_count; b++) {
        const pen_drawing_box *box = &report->drawing->boxes[b];
        const uint32_t module =
            box->node_count > 0 ? report->modules->box_of_node[box->node] : PEN_DRAWING_NONE;
        pen_json_integer(json, module == PEN_DRAWING_NONE ? -1 : (int64_t)module);
    }
    pen_json_end_array(json);
    return PEN_OK;
}

// The same data for the page, in one line, and for files, indented.
static pen_status report_json(const pen_report *report, uint32_t indent, pen_arena *arena,
                              const char **out_text) {
    const pen_drawing *drawing = report->drawing;
    pen_text text;
    pen_json_writer json;
    pen_text_init(&text, arena);
    pen_json_init_text(&json, &text, indent);
    pen_json_begin_object(&json);
    pen_json_key_text(&json, "schema", "penstock/picture/1");
    pen_json_key_text(&json, "title", drawing->title);
    if (report->notice != NULL) pen_json_key_text(&json, "notice", report->notice);
    if (report->is_live) pen_json_key_bool(&json, "is_live", true);
    if (report->plan != NULL) report_plan_json(&json, report->plan);
    PEN_TRY(pen_report_run_json(&json, report, arena));
    pen_training_history_write(report->history, &json);
    pen_rate_curve_write(report->search, &json);
    PEN_TRY(report_drawing_json(&json, report, arena));
    if (report->modules != NULL) PEN_TRY(report_modules_json(&json, report, arena));
    pen_json_end_object(&json);
    PEN_TRY(pen_json_finish(&json));
    return pen_text_finish(&text, out_text);
}

pen_status pen_report_json(const pen_report *report, pen_arena *arena, const char **out_text) {
    return report_json(report, 1, arena, out_text);
}

// ---- as a page

static void report_lines(pen_text *text, const char *const *lines) {
    for (size_t i = 0; lines[i] != NULL; i++) {
        pen_text_add(text, lines[i]);
        pen_text_add(text, "\n");
    }
}

// The page's frame has a line for each thing that is put into it.
pen_status pen_report_html(const pen_report *report, pen_arena *arena, const char **out_text) {
    const char *json;
    pen_text text;
    pen_markup_writer markup;
    PEN_TRY(report_json(report, 0, arena, &json));
    pen_text_init(&text, arena);
    pen_markup_init(&markup, &text);
    for (size_t i = 0; pen_page_frame[i] != NULL; i++) {
        const char *line = pen_page_frame[i];
        if (strcmp(line, "<title></title>") == 0) {
            pen_markup_element(&markup, "title", report->drawing->title);
            pen_markup_line(&markup);
        } else if (strcmp(line, "@policy") == 0) {
            pen_text_print(&text, REPORT_POLICY, report->is_live ? "; connect-src 'self'" : "");
        } else if (strcmp(line, "@style") == 0) {
            pen_palette_add_variables(&text);
            report_lines(&text, pen_page_style);
        } else if (strcmp(line, "@data") == 0) {
            pen_markup_json(&markup, json);
        } else if (strcmp(line, "@script") == 0) {
            report_lines(&text, pen_page_script);
        } else {
            pen_text_print(&text, "%s\n", line);
        }
    }
    return pen_text_finish(&text, out_text);
}
