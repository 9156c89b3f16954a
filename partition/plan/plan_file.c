#include "partition/plan/plan_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/quantity.h"
#include "base/format/yaml_reader.h"
#include "base/format/yaml_writer.h"
#include "base/name_map.h"
#include "base/system/file.h"
#include "base/text.h"
#include "partition/plan/plan_table.h"

#define FILE_HASH_DIGITS 16

// A plan while it is made from what was read.
typedef struct file_reader {
    const plan_file *file;
    const pen_option_source *source;
    pen_arena *arena;
    pen_plan *plan;
    pen_name_map devices; // by name
} file_reader;

static pen_status file_blame(const file_reader *r, const void *field, pen_status status) {
    return pen_option_blame(r->source, field, status);
}

static pen_status file_parse_hash(const file_reader *r, const char *const *text,
                                  uint64_t *out_hash) {
    if (strlen(*text) == FILE_HASH_DIGITS &&
        strspn(*text, "0123456789abcdef") == FILE_HASH_DIGITS) {
        *out_hash = strtoull(*text, NULL, 16);
        return PEN_OK;
    }
    return file_blame(r, text,
                      pen_error(PEN_INVALID_INPUT,
                                "hash: found \"%.40s\", expected %d hexadecimal digits", *text,
                                FILE_HASH_DIGITS));
}

// A value of the objective: bytes of traffic, else a time. NULL is 0.
static pen_status file_parse_value(const file_reader *r, const char *const *text,
                                   double *out_value) {
    const pen_unit unit =
        r->file->objective == PEN_OBJECTIVE_TRAFFIC ? PEN_UNIT_BYTES : PEN_UNIT_SECONDS;
    *out_value = 0.0;
    if (*text == NULL) return PEN_OK;
    if (pen_quantity_parse(*text, unit, out_value) && *out_value < INFINITY) return PEN_OK;
    return file_blame(r, text,
                      pen_error(PEN_INVALID_INPUT,
                                "found \"%.40s\", expected a number with one of the units %s",
                                *text, pen_unit_names(unit)));
}

static pen_status file_check_stage(const file_reader *r, const int64_t *stage) {
    if (*stage < (int64_t)r->file->stages.count) return PEN_OK;
    return file_blame(r, stage,
                      pen_error(PEN_INVALID_INPUT,
                                "stage %" PRId64 " is not there: the plan has %u, from 0", *stage,
                                r->file->stages.count));
}

// All devices say where they are, or none does.
static pen_status file_take_seats(file_reader *r) {
    const file_device *items = r->file->devices.items;
    const uint32_t count = r->file->devices.count;
    pen_device_seat *seats;
    PEN_TRY(PEN_NEW(r->arena, count, &seats));
    for (uint32_t d = 0; d < count; d++) {
        if (items[d].has_process != items[0].has_process) {
            return file_blame(r, &items[d].name,
                              pen_error(PEN_INVALID_INPUT,
                                        "device '%.100s': expected a `process` for all devices or "
                                        "for none",
                                        items[d].name));
        }
        if (items[d].host >= count || items[d].process >= count) {
            return file_blame(r, &items[d].process,
                              pen_error(PEN_INVALID_INPUT,
                                        "device '%.100s': found host %" PRId64
                                        " and process %" PRId64 ", expected numbers below %u",
                                        items[d].name, items[d].host, items[d].process, count));
        }
        seats[d] = (pen_device_seat){
            .host = (uint32_t)items[d].host,
            .process = (uint32_t)items[d].process,
            .out_rate = items[d].line_out > 0 ? items[d].line_out : INFINITY,
            .in_rate = items[d].line_in > 0 ? items[d].line_in : INFINITY,
        };
    }
    r->plan->stages.seats = items[0].has_process ? seats : NULL;
    return PEN_OK;
}

// Where tasks were written is kept: they are parsed later, and errors in them name the line.
static pen_status file_take_devices(file_reader *r) {
    const file_device *items = r->file->devices.items;
    const uint32_t count = r->file->devices.count;
    pen_plan_device *devices;
    double *limits;
    PEN_TRY(PEN_NEW(r->arena, count, &devices));
    PEN_TRY(PEN_NEW(r->arena, count, &limits));
    for (uint32_t d = 0; d < count; d++) {
        devices[d] = (pen_plan_device){.name = items[d].name,
                                       .memory = items[d].memory,
                                       .load_seconds = items[d].load,
                                       .slowness = items[d].slowness,
                                       .node_count = (uint32_t)items[d].nodes,
                                       .tasks = items[d].tasks};
        limits[d] = items[d].has_limit ? (double)items[d].limit : INFINITY;
    }
    for (uint32_t d = 0; d < count; d++) {
        const pen_yaml_node *node = pen_option_find_node(r->source, &items[d].tasks);
        if (items[d].tasks == NULL || node == NULL) continue;
        devices[d].tasks_file = node->file;
        devices[d].tasks_line = node->line;
    }
    pen_name_map_init(&r->devices, r->arena);
    for (uint32_t d = 0; d < count; d++) {
        if (pen_name_map_find(&r->devices, devices[d].name) != PEN_NAME_MAP_NONE) continue;
        PEN_TRY(pen_name_map_add(&r->devices, devices[d].name, d));
    }
    r->plan->device_count = count;
    r->plan->devices = devices;
    r->plan->stages.device_count = count;
    r->plan->stages.bytes_limit = limits;
    return file_take_seats(r);
}

static pen_status file_find_device(const file_reader *r, const char *const *name,
                                   uint32_t *out_device) {
    const char **names;
    pen_text text;
    *out_device = pen_name_map_find(&r->devices, *name);
    if (*out_device != PEN_NAME_MAP_NONE) return PEN_OK;
    PEN_TRY(PEN_NEW(r->arena, r->plan->device_count, &names));
    for (uint32_t d = 0; d < r->plan->device_count; d++) {
        names[d] = r->plan->devices[d].name;
    }
    pen_text_init(&text, r->arena);
    pen_text_print(&text, "device '%.100s' is none of the plan's: ", *name);
    pen_text_add_names(&text, *name, names, r->plan->device_count, 8);
    return file_blame(r, name, pen_text_error(&text, PEN_INVALID_INPUT));
}

// Devices are named in the file, so that it can be edited; a stage has a list of them with one
// entry today.
static pen_status file_take_stages(file_reader *r) {
    const file_stage *items = r->file->stages.items;
    const uint32_t count = r->file->stages.count;
    pen_stage *stages;
    pen_plan_stage *figures;
    PEN_TRY(PEN_NEW(r->arena, count, &stages));
    PEN_TRY(PEN_NEW(r->arena, count, &figures));
    for (uint32_t s = 0; s < count; s++) {
        const file_stage *item = &items[s];
        uint32_t device = 0;
        PEN_TRY(file_find_device(r, (const char *const *)item->devices.items, &device));
        stages[s] = (pen_stage){.device = device,
                                .has_backward = item->has_backward,
                                .has_update = item->has_update,
                                .is_recomputed = item->recompute,
                                .forward_seconds = item->forward,
                                .backward_input_seconds = item->backward_input,
                                .backward_weight_seconds = item->backward_weight,
                                .update_seconds = item->update,
                                .fixed_bytes = (double)item->fixed,
                                .workspace_bytes = (double)item->workspace,
                                .activation_bytes = (double)item->activations,
                                .halved_bytes = (double)item->halved};
        figures[s] = (pen_plan_stage){.node_count = (uint32_t)item->nodes,
                                      .in_flight = (uint32_t)item->in_flight,
                                      .parameter_bytes = item->parameters};
        PEN_TRY(pen_arena_format(r->arena, &figures[s].name, "stage %u", s));
    }
    r->plan->stages.stage_count = count;
    r->plan->stages.stages = stages;
    r->plan->stage_figures = figures;
    return PEN_OK;
}

// Ends are checked here, with the line; that stages are in order is part of the check of any plan.
static pen_status file_take_edges(file_reader *r) {
    const file_edge *items = r->file->edges.items;
    const uint32_t count = r->file->edges.count;
    pen_stage_edge *edges;
    PEN_TRY(PEN_NEW(r->arena, count, &edges));
    for (uint32_t e = 0; e < count; e++) {
        PEN_TRY(file_check_stage(r, &items[e].from));
        PEN_TRY(file_check_stage(r, &items[e].to));
        edges[e] = (pen_stage_edge){.source = (uint32_t)items[e].from,
                                    .target = (uint32_t)items[e].to,
                                    .forward_bytes = (double)items[e].forward_bytes,
                                    .has_gradient = items[e].has_gradient,
                                    .backward_bytes = (double)items[e].backward_bytes,
                                    .forward_seconds = items[e].forward,
                                    .backward_seconds = items[e].backward,
                                    .forward_handling = items[e].forward_handling,
                                    .backward_handling = items[e].backward_handling};
    }
    r->plan->stages.edge_count = count;
    r->plan->stages.edges = edges;
    return PEN_OK;
}

// Ends are checked here, as those of edges are.
static pen_status file_take_step_edges(file_reader *r) {
    const file_step_edge *items = r->file->step_edges.items;
    const uint32_t count = r->file->step_edges.count;
    pen_stage_step_edge *edges;
    PEN_TRY(PEN_NEW(r->arena, count, &edges));
    for (uint32_t e = 0; e < count; e++) {
        PEN_TRY(file_check_stage(r, &items[e].from));
        PEN_TRY(file_check_stage(r, &items[e].to));
        edges[e] = (pen_stage_step_edge){.source = (uint32_t)items[e].from,
                                         .target = (uint32_t)items[e].to,
                                         .phase = (uint32_t)items[e].phase,
                                         .bytes = (double)items[e].bytes,
                                         .seconds = items[e].seconds,
                                         .handling = items[e].handling};
    }
    r->plan->stages.update_phase_count = (uint32_t)r->file->update_phases;
    r->plan->stages.step_edge_count = count;
    r->plan->stages.step_edges = edges;
    return PEN_OK;
}

// What travels between stages: for people, and for the check that a plan is of this model.
static pen_status file_take_transfers(file_reader *r) {
    const file_transfer *items = r->file->transfers.items;
    const uint32_t count = r->file->transfers.count;
    pen_plan_transfer *transfers;
    PEN_TRY(PEN_NEW(r->arena, count, &transfers));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(file_check_stage(r, &items[i].from));
        PEN_TRY(file_check_stage(r, &items[i].to));
        transfers[i] = (pen_plan_transfer){.value = items[i].value,
                                           .source = (uint32_t)items[i].from,
                                           .target = (uint32_t)items[i].to,
                                           .bytes = items[i].bytes,
                                           .seconds = items[i].seconds,
                                           .is_backward = items[i].when == FILE_WHEN_BACKWARD,
                                           .is_per_step = items[i].when == FILE_WHEN_EACH_STEP};
    }
    r->plan->transfer_count = count;
    r->plan->transfers = transfers;
    return PEN_OK;
}

static pen_status file_take_nodes(file_reader *r) {
    const file_node *items = r->file->nodes.items;
    const uint32_t count = r->file->nodes.count;
    pen_plan_node *nodes;
    PEN_TRY(PEN_NEW(r->arena, count, &nodes));
    for (uint32_t n = 0; n < count; n++) {
        PEN_TRY(file_check_stage(r, &items[n].stage));
        nodes[n] = (pen_plan_node){.name = items[n].name,
                                   .stage = (uint32_t)items[n].stage,
                                   .seconds = items[n].seconds,
                                   .source = items[n].source,
                                   .bytes = items[n].bytes,
                                   .reason = items[n].reason == NULL ? "" : items[n].reason};
    }
    r->plan->node_count = count;
    r->plan->nodes = nodes;
    return PEN_OK;
}

// From the mapping as it was read to a plan; later parts look up devices and stages of earlier
// ones.
static pen_status file_take(file_reader *r) {
    const plan_file *file = r->file;
    pen_plan *plan = r->plan;
    *plan = (pen_plan){.job = file->job,
                       .model = file->model.file,
                       .costs = file->costs,
                       .seed = (uint64_t)file->seed,
                       .strategy = file->strategy,
                       .objective = pen_objective_names[file->objective],
                       .schedule = file->schedule,
                       .microbatch_count = (uint32_t)file->microbatches,
                       .microbatch_size = (uint64_t)file->microbatch_size,
                       .step_seconds = file->predicted.step,
                       .bubble = file->predicted.bubble,
                       .process_bytes = file->predicted.process,
                       .measured_count = (uint32_t)file->predicted.measured,
                       .stated_count = (uint32_t)file->predicted.stated,
                       .assumed_count = (uint32_t)file->predicted.assumed};
    plan->stages.microbatch_count = plan->microbatch_count;
    PEN_TRY(file_parse_hash(r, &file->model.hash, &plan->model_hash));
    PEN_TRY(file_parse_hash(r, &file->cluster.hash, &plan->cluster_hash));
    PEN_TRY(file_parse_value(r, &file->predicted.value, &plan->value));
    PEN_TRY(file_parse_value(r, &file->predicted.lower_bound, &plan->lower_bound));
    PEN_TRY(file_take_devices(r));
    PEN_TRY(file_take_stages(r));
    PEN_TRY(file_take_edges(r));
    PEN_TRY(file_take_step_edges(r));
    PEN_TRY(file_take_transfers(r));
    return file_take_nodes(r);
}

// What was predicted of an edited plan no longer holds; what is to be worked out anew is left out.
static void file_drop_figures(pen_plan *plan) {
    pen_plan_device *devices;
    memcpy(&devices, &plan->devices, sizeof devices); // made in file_take_devices
    for (uint32_t d = 0; d < plan->device_count; d++) {
        devices[d].memory = (pen_device_memory){0};
        devices[d].tasks = NULL;
    }
    plan->stages.edge_count = 0;
    plan->stages.step_edge_count = 0;
    plan->transfer_count = 0;
}

pen_status pen_plan_parse(const char *path, const char *bytes, size_t length, bool is_edited,
                          pen_arena *arena, pen_plan **out_plan) {
    const pen_yaml_limits limits = {.bytes = PEN_PLAN_BYTES_LIMIT, .nodes = PEN_PLAN_NODES_LIMIT};
    const pen_option_settings settings = {.file = path};
    const pen_yaml_node *root;
    plan_file *file;
    file_reader reader = {.arena = arena};
    PEN_TRY(pen_yaml_parse_within(path, bytes, length, limits, arena, &root));
    PEN_TRY(PEN_NEW(arena, 1, &file));
    PEN_TRY(PEN_NEW(arena, 1, &reader.plan));
    PEN_TRY(pen_option_read(&pen_plan_table, root, &settings, arena, file, &reader.source));
    reader.file = file;
    PEN_TRY(file_take(&reader));
    if (is_edited) file_drop_figures(reader.plan);
    PEN_TRY(pen_status_add_context(pen_plan_check(reader.plan, is_edited, arena), "in %s", path));
    *out_plan = reader.plan;
    return PEN_OK;
}

static pen_status file_read(const char *path, bool is_edited, pen_arena *arena,
                            pen_plan **out_plan) {
    const char *bytes;
    size_t length;
    PEN_TRY(pen_file_read(path, PEN_PLAN_BYTES_LIMIT, arena, &bytes, &length));
    return pen_plan_parse(path, bytes, length, is_edited, arena, out_plan);
}

pen_status pen_plan_read(const char *path, pen_arena *arena, pen_plan **out_plan) {
    return file_read(path, false, arena, out_plan);
}

pen_status pen_plan_read_edited(const char *path, pen_arena *arena, pen_plan **out_plan) {
    return file_read(path, true, arena, out_plan);
}

// ---- writing

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

// A comment at the top says what the file is and how it is edited.
static void write_head(const pen_plan *plan, pen_text *text) {
    const pen_unit unit = strcmp(plan->objective, pen_objective_names[PEN_OBJECTIVE_TRAFFIC]) == 0
                              ? PEN_UNIT_BYTES
                              : PEN_UNIT_SECONDS;
    pen_text_add(
        text, "# A plan of Penstock: which device runs each node of a model, and what a step is\n"
              "# predicted to take. To move a node change its stage; `penstock plan --from` "
              "then\n# works out the figures anew.\nversion: 1\n");
    if (plan->job != NULL) write_text(text, "job", plan->job);
    write_text(text, plan->job != NULL ? "\nmodel: {file" : "model: {file", plan->model);
    pen_text_print(text, ", hash: \"%016" PRIx64 "\"}\ncluster: {hash: \"%016" PRIx64 "\"}\n",
                   plan->model_hash, plan->cluster_hash);
    if (plan->costs != NULL) {
        write_text(text, "costs", plan->costs);
        pen_text_add(text, "\n");
    }
    write_text(text, "strategy", plan->strategy);
    pen_text_print(text, "\nobjective: %s\nseed: %" PRIu64 "\n", plan->objective, plan->seed);
    write_text(text, "schedule", plan->schedule);
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
