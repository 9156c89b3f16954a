#include "partition/plan/plan_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/quantity.h"
#include "base/format/yaml_writer.h"
#include "base/system/file.h"
#include "base/text.h"
#include "partition/costs/cluster_build.h"
#include "partition/plan/plan_file_replicas.h"

static void write_text(pen_text *text, const char *key, const char *value) {
    pen_text_print(text, "%s: ", key);
    pen_yaml_add_text(text, value);
}

static void write_seconds(pen_text *text, const char *key, double seconds) {
    pen_text_print(text, "%s: ", key);
    pen_yaml_add_quantity(text, seconds, PEN_UNIT_SECONDS);
}

static void write_bytes(pen_text *text, const char *key, double bytes) {
    pen_text_print(text, "%s: ", key);
    pen_yaml_add_quantity(text, bytes, PEN_UNIT_BYTES);
}

// What is as in every plan is left out.
static void write_numerics(pen_text *text, const pen_plan *plan) {
    const char *before = "numerics: {";
    if (plan->level != PEN_KERNEL_LEVEL_AUTO) {
        pen_text_print(text, "%slevel: %s", before, pen_kernel_level_names[plan->level]);
        before = ", ";
    }
    if (plan->precision != PEN_PRECISION_FLOAT32) {
        pen_text_print(text, "%sprecision: %s", before, pen_precision_names[plan->precision]);
        before = ", ";
    }
    if (plan->lane_count > 1) {
        pen_text_print(text, "%slanes: %u", before, plan->lane_count);
        before = ", ";
    }
    if (before[0] == ',') pen_text_add(text, "}\n");
}

static void write_settings(const pen_plan *plan, pen_text *text) {
    if (plan->setting_count == 0) return;
    pen_text_add(text, "set: [");
    for (uint32_t i = 0; i < plan->setting_count; i++) {
        if (i > 0) pen_text_add(text, ", ");
        pen_yaml_add_text(text, plan->settings[i]);
    }
    pen_text_add(text, "]\n");
}

// A comment at the top says what the file is and how it is edited.
static void write_head(const pen_plan *plan, pen_text *text) {
    const pen_unit unit = strcmp(plan->objective, pen_objective_names[PEN_OBJECTIVE_TRAFFIC]) == 0
                              ? PEN_UNIT_BYTES
                              : PEN_UNIT_SECONDS;
    pen_text_add(
        text, "# A plan of Penstock: which device runs each node of a model, and what a step is\n"
              "# predicted to take. To move a node change its stage; `penstock plan --from` "
              "then\n# works out the figures anew.\nversion: 1\n");
    if (plan->job != NULL) {
        write_text(text, "job", plan->job);
        pen_text_add(text, "\n");
    }
    write_settings(plan, text);
    write_text(text, "model: {file", plan->model);
    pen_text_print(text, ", hash: \"%016" PRIx64 "\"}\ncluster: {hash: \"%016" PRIx64 "\"}\n",
                   plan->model_hash, plan->cluster_hash);
    write_numerics(text, plan);
    if (plan->costs != NULL) {
        write_text(text, "costs", plan->costs);
        pen_text_add(text, "\n");
    }
    write_text(text, "strategy", plan->strategy);
    pen_text_print(text, "\nobjective: %s\nseed: %" PRIu64 "\n", plan->objective, plan->seed);
    write_text(text, "schedule", plan->schedule);
    if (plan->stages.exchange == PEN_EXCHANGE_OVERLAPPED) {
        pen_text_print(text, "\nexchange: %s", pen_exchange_names[plan->stages.exchange]);
    }
    if (pen_stage_graph_phases(&plan->stages) > 1) {
        pen_text_print(text, "\nupdate_phases: %u", plan->stages.update_phase_count);
    }
    pen_text_print(text, "\nmicrobatches: %u\nmicrobatch_size: %" PRIu64 "\npredicted:\n  value: ",
                   plan->microbatch_count, plan->microbatch_size);
    pen_yaml_add_quantity(text, plan->value, unit);
    if (plan->lower_bound > 0.0) {
        pen_text_add(text, "\n  lower_bound: ");
        pen_yaml_add_quantity(text, plan->lower_bound, unit);
    }
    write_seconds(text, "\n  step", plan->step_seconds);
    write_bytes(text, "\n  process", (double)plan->process_bytes);
    pen_text_print(text, "\n  bubble: %.4f\n  measured: %u\n  stated: %u\n  assumed: %u\n",
                   plan->bubble, plan->measured_count, plan->stated_count, plan->assumed_count);
}

static void write_handling(pen_text *text, const char *key, const pen_stage_handling *handling) {
    if (handling->latency_seconds + handling->send_seconds + handling->receive_seconds == 0) return;
    pen_text_print(text, "%s: {", key);
    write_seconds(text, "latency", handling->latency_seconds);
    write_seconds(text, ", send", handling->send_seconds);
    write_seconds(text, ", receive", handling->receive_seconds);
    pen_text_add(text, "}");
}

static void write_line(pen_text *text, const char *key, double rate) {
    if (!(rate < INFINITY)) return;
    pen_text_print(text, "%s: ", key);
    pen_yaml_add_quantity(text, rate, PEN_UNIT_BANDWIDTH);
}

static void write_seat(pen_text *text, const pen_device_seat *seat) {
    pen_text_print(text, ",\n     host: %u, process: %u", seat->host, seat->process);
    write_line(text, ", line_out", seat->out_rate);
    write_line(text, ", line_in", seat->in_rate);
}

// Quantities have units, and as many digits as give the same number back.
static void write_devices(const pen_plan *plan, pen_text *text) {
    pen_text_add(text, "devices:\n");
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const pen_plan_device *device = &plan->devices[d];
        const pen_device_memory *m = &device->memory;
        write_text(text, "  - {name", device->name);
        pen_text_print(text, ", nodes: %u", device->node_count);
        write_seconds(text, ", load", device->load_seconds);
        if (plan->stages.bytes_limit[d] < INFINITY) {
            write_bytes(text, ", limit", plan->stages.bytes_limit[d]);
        }
        if (device->slowness > 0) pen_text_print(text, ", slowness: %.5g", device->slowness);
        if (plan->stages.seats != NULL) write_seat(text, &plan->stages.seats[d]);
        write_bytes(text, ",\n     memory: {parameters", (double)m->parameters);
        write_bytes(text, ", gradients", (double)m->gradients);
        write_bytes(text, ", optimizer_state", (double)m->optimizer_state);
        write_bytes(text, ", activations", (double)m->activations);
        write_bytes(text, ",\n       receive_buffers", (double)m->receive_buffers);
        write_bytes(text, ", workspace", (double)m->workspace);
        if (m->saved > 0) write_bytes(text, ", saved", (double)m->saved);
        write_bytes(text, ", total", (double)m->total);
        pen_text_add(text, "}");
        if (device->tasks != NULL && device->tasks[0] != '\0')
            write_text(text, ",\n     tasks", device->tasks);
        pen_text_add(text, "}\n");
    }
}

// Stages, then the edges between them, which the schedule is made from: a plan can be simulated
// without its model.
static void write_stages(const pen_plan *plan, pen_text *text) {
    pen_text_add(text, "stages:\n");
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        const pen_stage *stage = &plan->stages.stages[s];
        const pen_plan_stage *figures = &plan->stage_figures[s];
        pen_text_add(text, "  - {devices: [");
        pen_yaml_add_text(text, plan->devices[stage->device].name);
        pen_text_print(text, "], nodes: %u, in_flight: %u", figures->node_count,
                       figures->in_flight);
        pen_text_print(text, ",\n     has_backward: %s, has_update: %s",
                       stage->has_backward ? "true" : "false",
                       stage->has_update ? "true" : "false");
        if (stage->is_recomputed) pen_text_add(text, ", recompute: true");
        write_bytes(text, ", parameters", (double)figures->parameter_bytes);
        write_seconds(text, ",\n     forward", stage->forward_seconds);
        write_seconds(text, ", backward_input", stage->backward_input_seconds);
        write_seconds(text, ", backward_weight", stage->backward_weight_seconds);
        write_seconds(text, ", update", stage->update_seconds);
        write_bytes(text, ",\n     fixed", stage->fixed_bytes);
        write_bytes(text, ", workspace", stage->workspace_bytes);
        write_bytes(text, ", activations", stage->activation_bytes);
        if (stage->halved_bytes > 0) write_bytes(text, ", halved", stage->halved_bytes);
        pen_text_add(text, "}\n");
    }
    if (plan->stages.edge_count > 0) pen_text_add(text, "edges:\n");
    for (uint32_t e = 0; e < plan->stages.edge_count; e++) {
        const pen_stage_edge *edge = &plan->stages.edges[e];
        pen_text_print(text, "  - {from: %u, to: %u", edge->source, edge->target);
        write_bytes(text, ", forward_bytes", edge->forward_bytes);
        write_seconds(text, ", forward", edge->forward_seconds);
        write_handling(text, ",\n     forward_handling", &edge->forward_handling);
        if (edge->has_gradient) pen_text_add(text, ",\n     has_gradient: true");
        write_bytes(text, ", backward_bytes", edge->backward_bytes);
        write_seconds(text, ", backward", edge->backward_seconds);
        write_handling(text, ",\n     backward_handling", &edge->backward_handling);
        pen_text_add(text, "}\n");
    }
    if (plan->stages.step_edge_count > 0) pen_text_add(text, "step_edges:\n");
    for (uint32_t e = 0; e < plan->stages.step_edge_count; e++) {
        const pen_stage_step_edge *edge = &plan->stages.step_edges[e];
        pen_text_print(text, "  - {from: %u, to: %u, phase: %u", edge->source, edge->target,
                       edge->phase);
        write_bytes(text, ", bytes", edge->bytes);
        write_seconds(text, ", seconds", edge->seconds);
        write_handling(text, ",\n     handling", &edge->handling);
        pen_text_add(text, "}\n");
    }
}

static void write_transfers(const pen_plan *plan, pen_text *text) {
    if (plan->transfer_count > 0) pen_text_add(text, "transfers:\n");
    for (uint32_t i = 0; i < plan->transfer_count; i++) {
        const pen_plan_transfer *transfer = &plan->transfers[i];
        const file_when when = transfer->is_per_step   ? FILE_WHEN_EACH_STEP
                               : transfer->is_backward ? FILE_WHEN_BACKWARD
                                                       : FILE_WHEN_FORWARD;
        write_text(text, "  - {value", transfer->value);
        pen_text_print(text, ", from: %u, to: %u, when: %s", transfer->source, transfer->target,
                       pen_plan_transfer_names[when]);
        write_bytes(text, ", bytes", (double)transfer->bytes);
        write_seconds(text, ", seconds", transfer->seconds);
        pen_text_add(text, "}\n");
    }
}

static void write_nodes(const pen_plan *plan, pen_text *text) {
    pen_text_add(text, "nodes:\n");
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        write_text(text, "  - {name", node->name);
        pen_text_print(text, ", stage: %u", node->stage);
        if (plan->replica_count > 0) pen_text_print(text, ", updates: %u", node->update_stage);
        write_seconds(text, ", seconds", node->seconds);
        pen_text_print(text, ", source: %s", pen_figure_source_name(node->source));
        write_bytes(text, ", bytes", (double)node->bytes);
        if (node->reason[0] != '\0') write_text(text, ",\n     reason", node->reason);
        pen_text_add(text, "}\n");
    }
}

pen_status pen_plan_format(const pen_plan *plan, pen_arena *arena, const char **out_text) {
    pen_text text;
    pen_text_init(&text, arena);
    write_head(plan, &text);
    write_devices(plan, &text);
    pen_plan_file_write_replicas(plan, &text);
    write_stages(plan, &text);
    write_transfers(plan, &text);
    write_nodes(plan, &text);
    return pen_text_finish(&text, out_text);
}

// `target` as it is seen from the folder of `path`: the rest of its absolute path where it lies in
// that folder, else the absolute path; as it is when the system knows neither.
static pen_status write_relative(const char *path, const char *target, pen_arena *arena,
                                 const char **out_relative) {
    *out_relative = target;
    if (target == NULL) return PEN_OK;
    const char *folder;
    PEN_TRY(pen_path_beside(arena, path, ".", &folder));
    char *folder_real = realpath(folder, NULL), *target_real = realpath(target, NULL);
    pen_status status = PEN_OK;
    if (folder_real != NULL && target_real != NULL) {
        const size_t length = strlen(folder_real);
        const bool is_within =
            strncmp(folder_real, target_real, length) == 0 && target_real[length] == '/';
        const char *relative = is_within ? target_real + length + 1 : target_real;
        status = pen_arena_copy_text(arena, relative, strlen(relative), out_relative);
    }
    free(folder_real);
    free(target_real);
    return status;
}

pen_status pen_plan_write(const pen_plan *plan, const char *path, pen_arena *arena) {
    pen_plan copy = *plan;
    const char *text;
    PEN_TRY(write_relative(path, plan->job, arena, &copy.job));
    PEN_TRY(write_relative(path, plan->model, arena, &copy.model));
    PEN_TRY(write_relative(path, plan->costs, arena, &copy.costs));
    PEN_TRY(pen_plan_format(&copy, arena, &text));
    return pen_file_write_text(path, text);
}
