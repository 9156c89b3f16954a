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
#include "partition/plan/plan_check.h"
#include "partition/plan/plan_file_replicas.h"
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

static pen_plan_file_finder file_finder(const file_reader *r) {
    return (pen_plan_file_finder){
        .plan = r->plan, .devices = &r->devices, .source = r->source, .arena = r->arena};
}

// Devices are named in the file, so that it can be edited; a stage has a list of them with one
// entry today.
static pen_status file_take_stages(file_reader *r) {
    const file_stage *items = r->file->stages.items;
    const uint32_t count = r->file->stages.count;
    const pen_plan_file_finder finder = file_finder(r);
    pen_stage *stages;
    pen_plan_stage *figures;
    PEN_TRY(PEN_NEW(r->arena, count, &stages));
    PEN_TRY(PEN_NEW(r->arena, count, &figures));
    for (uint32_t s = 0; s < count; s++) {
        const file_stage *item = &items[s];
        uint32_t device = 0;
        const char *const *names = item->devices.items;
        PEN_TRY(pen_plan_file_device(&finder, &names[0], &device));
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

// With replicas, the stage that updates a node's parameters stands beside its own.
static pen_status file_take_nodes(file_reader *r) {
    const file_node *items = r->file->nodes.items;
    const uint32_t count = r->file->nodes.count;
    pen_plan_node *nodes;
    PEN_TRY(PEN_NEW(r->arena, count, &nodes));
    for (uint32_t n = 0; n < count; n++) {
        PEN_TRY(file_check_stage(r, &items[n].stage));
        if (items[n].has_updates) PEN_TRY(file_check_stage(r, &items[n].updates));
        nodes[n] = (pen_plan_node){
            .name = items[n].name,
            .stage = (uint32_t)items[n].stage,
            .update_stage = (uint32_t)(items[n].has_updates ? items[n].updates : items[n].stage),
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
                       .settings = file->settings.items,
                       .setting_count = file->settings.count,
                       .model = file->model.file,
                       .costs = file->costs,
                       .seed = (uint64_t)file->seed,
                       .strategy = file->strategy,
                       .objective = pen_objective_names[file->objective],
                       .schedule = file->schedule,
                       .level = file->numerics.level,
                       .precision = file->numerics.precision,
                       .lane_count = (uint32_t)file->numerics.lanes,
                       .microbatch_count = (uint32_t)file->microbatches,
                       .microbatch_size = (uint64_t)file->microbatch_size,
                       .step_seconds = file->predicted.step,
                       .bubble = file->predicted.bubble,
                       .process_bytes = file->predicted.process,
                       .measured_count = (uint32_t)file->predicted.measured,
                       .stated_count = (uint32_t)file->predicted.stated,
                       .assumed_count = (uint32_t)file->predicted.assumed};
    plan->stages.microbatch_count = plan->microbatch_count;
    plan->stages.exchange = file->exchange;
    PEN_TRY(file_parse_hash(r, &file->model.hash, &plan->model_hash));
    PEN_TRY(file_parse_hash(r, &file->cluster.hash, &plan->cluster_hash));
    PEN_TRY(file_parse_value(r, &file->predicted.value, &plan->value));
    PEN_TRY(file_parse_value(r, &file->predicted.lower_bound, &plan->lower_bound));
    PEN_TRY(file_take_devices(r));
    PEN_TRY(file_take_stages(r));
    const pen_plan_file_finder finder = file_finder(r);
    PEN_TRY(pen_plan_file_replicas(&finder, file, plan));
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

// What else people give where a plan is expected: says what it is, and what makes a plan of it.
static pen_status file_explain_kind(const char *path, const pen_yaml_node *root,
                                    pen_status status) {
    if (status == PEN_OK || root->kind != PEN_YAML_MAPPING) return status;
    if (pen_yaml_find(root, "train") != NULL && pen_yaml_find(root, "stages") == NULL) {
        return pen_status_add_context(
            status, "it is a job, and no plan: `penstock plan %s -o PLAN` makes one", path);
    }
    if (pen_yaml_find(root, "traceEvents") != NULL) {
        return pen_status_add_context(
            status, "it is a trace: `penstock plan JOB --from-run %s -o PLAN` plans by it", path);
    }
    return status;
}

// A file of another kind, as a job or a trace, is said to be that.
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
    PEN_TRY(file_explain_kind(
        path, root,
        pen_option_read(&pen_plan_table, root, &settings, arena, file, &reader.source)));
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
