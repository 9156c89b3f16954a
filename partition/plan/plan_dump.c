#include "partition/plan/plan_dump.h"

#include <math.h>
#include <string.h>

#include "base/format/text_columns.h"
#include "partition/costs/cluster_build.h"
#include "partition/plan/plan_waiting.h"
#include "partition/plan/replica_check.h"
#include "partition/problem/problem.h"

#define DUMP_TRANSFERS_SHOWN 20
#define DUMP_NAME_COLUMNS 80 // of nodes; longer names stand out

// By how much the value is above its bound: 0.05 for 5 %; 0 without a bound.
static double dump_gap(const pen_plan *plan) {
    return plan->lower_bound > 0.0 ? plan->value / plan->lower_bound - 1.0 : 0.0;
}

static const char *dump_bytes(double bytes, char out_text[PEN_QUANTITY_TEXT_BYTES]) {
    if (!(bytes < INFINITY)) return "no limit";
    return pen_bytes_format((uint64_t)bytes, out_text);
}

// Columns of the widest device's name, at least as many as tables have by habit.
size_t pen_plan_device_columns(const pen_plan *plan) {
    size_t most = 16;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const size_t columns = pen_text_columns(plan->devices[d].name);
        if (columns > most) most = columns;
    }
    return most;
}

// What the plan is for, what it promises, and how far that can be from the best.
static void dump_summary(const pen_plan *plan, pen_text *text) {
    char seconds[PEN_QUANTITY_TEXT_BYTES], bound[PEN_QUANTITY_TEXT_BYTES];
    const bool is_bytes = strcmp(plan->objective, "traffic") == 0;
    pen_text_print(text, "model        %s\n", plan->model);
    if (plan->costs != NULL) pen_text_print(text, "costs        %s\n", plan->costs);
    pen_text_print(text, "strategy     %s, for %s, seed %llu\n", plan->strategy, plan->objective,
                   (unsigned long long)plan->seed);
    pen_text_print(text, "schedule     %s, %u microbatch%s of %llu\n", plan->schedule,
                   plan->microbatch_count, plan->microbatch_count == 1 ? "" : "es",
                   (unsigned long long)plan->microbatch_size);
    pen_text_print(text, "step         %s predicted, bubble %.1f%%\n",
                   pen_seconds_format(plan->step_seconds, seconds), 100.0 * plan->bubble);
    if (plan->lower_bound > 0.0) {
        pen_text_print(text, "%-12s %s; no placement is below %s, gap %.1f%%\n", plan->objective,
                       is_bytes ? pen_bytes_format((uint64_t)plan->value, seconds)
                                : pen_seconds_format(plan->value, seconds),
                       is_bytes ? pen_bytes_format((uint64_t)plan->lower_bound, bound)
                                : pen_seconds_format(plan->lower_bound, bound),
                       100.0 * dump_gap(plan));
    }
    if (plan->is_cut) {
        pen_text_add(text,
                     "             the time limit cut the search: another run may find another "
                     "plan\n");
    }
    if (plan->precision != PEN_PRECISION_FLOAT32) {
        pen_text_print(text, "products of  %s, summed in float32\n",
                       pen_precision_names[plan->precision]);
    }
    pen_text_print(text, "costs from   %u nodes measured, %u stated, %u assumed\n",
                   plan->measured_count, plan->stated_count, plan->assumed_count);
}

// The process that starts it, and what the devices' processes take, from least to most.
static void dump_process(const pen_plan *plan, pen_text *text) {
    char bytes[PEN_QUANTITY_TEXT_BYTES], least[PEN_QUANTITY_TEXT_BYTES];
    uint64_t low = UINT64_MAX, high = 0;
    if (plan->process_bytes == 0) return;
    pen_text_print(text,
                   "process      %s besides, in %s: the program, its libraries, batches read "
                   "ahead\n",
                   pen_bytes_format(plan->process_bytes, bytes),
                   plan->devices[0].process_bytes == 0 ? "each" : "the one that starts it");
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const uint64_t found = plan->devices[d].process_bytes;
        if (found == 0) return;
        if (found < low) low = found;
        if (found > high) high = found;
    }
    pen_text_print(text, "             ");
    if (low != high) pen_text_print(text, "%s to ", pen_bytes_format(low, least));
    pen_text_print(text, "%s in those of the devices\n", pen_bytes_format(high, bytes));
}

// A row for each device, its memory by kind, in the order in which the kinds are told everywhere;
// the last kind only where a device has it.
static void dump_devices(const pen_plan *plan, pen_text *text) {
    static const char *const titles[PEN_DEVICE_MEMORY_KINDS] = {
        "parameters", "gradients", "optimizer", "activation", "receive", "workspace", "saved"};
    const size_t width = pen_plan_device_columns(plan);
    uint32_t kinds = PEN_DEVICE_MEMORY_KINDS - 1;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if (plan->devices[d].memory.saved > 0) kinds = PEN_DEVICE_MEMORY_KINDS;
    }
    pen_text_add(text, "\n");
    pen_text_add_column(text, "device", width);
    pen_text_print(text, " %6s", "nodes");
    for (uint32_t k = 0; k < kinds; k++) {
        pen_text_print(text, " %10s", titles[k]);
    }
    pen_text_print(text, " %10s %10s %10s\n", "total", "limit", "load");
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const pen_plan_device *device = &plan->devices[d];
        const pen_device_memory *m = &device->memory;
        char cell[PEN_QUANTITY_TEXT_BYTES];
        pen_text_add_column(text, device->name, width);
        pen_text_print(text, " %6u", device->node_count);
        for (uint32_t k = 0; k < kinds; k++)
            pen_text_print(text, " %10s", pen_bytes_format(pen_device_memory_at(m, k), cell));
        pen_text_print(text, " %10s", pen_bytes_format(m->total, cell));
        pen_text_print(text, " %10s", dump_bytes(plan->stages.bytes_limit[d], cell));
        pen_text_print(text, " %10s\n", pen_seconds_format(device->load_seconds, cell));
    }
}

// Lanes, stages and devices of each replica, then who updates, if they do not.
static void dump_replicas(const pen_plan *plan, pen_text *text) {
    if (plan->replica_count == 0) return;
    pen_text_print(text, "\n%-10s %-12s %-12s %12s  %s\n", "replica", "lanes", "stages",
                   "microbatches", "devices");
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        const pen_plan_replica *replica = &plan->replicas[r];
        char lanes[32], stages[32];
        (void)snprintf(lanes, sizeof lanes, "%u to %u", replica->first_lane,
                       replica->first_lane + replica->lane_count - 1);
        (void)snprintf(stages, sizeof stages, "%u to %u", replica->first_stage,
                       replica->first_stage + replica->stage_count - 1);
        pen_text_print(text, "%-10u %-12s %-12s %12u  ", r, lanes, stages,
                       plan->stages.stages[replica->first_stage].microbatch_count);
        for (uint32_t i = 0; i < replica->device_count; i++) {
            pen_text_print(text, "%s%s", i > 0 ? ", " : "",
                           plan->devices[replica->devices[i]].name);
        }
        pen_text_add(text, "\n");
    }
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        const uint32_t s = pen_plan_owner_stage(plan) + i;
        char bytes[PEN_QUANTITY_TEXT_BYTES];
        pen_text_print(text, "%-10s %-12s %-12u %12s  %s: updates %s of parameters\n", "owner", "",
                       s, "", plan->devices[plan->owners[i]].name,
                       pen_bytes_format(plan->stage_figures[s].parameter_bytes, bytes));
    }
}

// Counted anew, from the stages that nodes are said to be in: the check of a plan has seen that no
// node is there twice.
static void dump_node_count(const pen_plan *plan, pen_text *text) {
    uint32_t placed = 0;
    for (uint32_t n = 0; n < plan->node_count; n++) {
        placed += plan->nodes[n].stage < plan->stages.stage_count;
    }
    const uint32_t replicas = plan->replica_count > 0 ? plan->replica_count : 1;
    pen_text_print(text, "%-10s %u of %u nodes of the model, each in exactly one stage%s\n", "all",
                   placed / replicas, plan->node_count / replicas,
                   replicas > 1 ? " of each replica" : "");
}

// The last line counts the nodes: every one of the model is in exactly one stage.
static void dump_stages(const pen_plan *plan, pen_text *text) {
    const size_t width = pen_plan_device_columns(plan);
    pen_text_print(text, "\n%-10s ", "stage");
    pen_text_add_column(text, "device", width);
    pen_text_print(text, " %6s %10s %10s %10s %10s %10s %9s\n", "nodes", "parameters", "forward",
                   "backward", "update", "kept", "in flight");
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        const pen_stage *stage = &plan->stages.stages[s];
        const pen_plan_stage *figures = &plan->stage_figures[s];
        char cell[PEN_QUANTITY_TEXT_BYTES];
        pen_text_print(text, "%-10s ", figures->name);
        pen_text_add_column(text, plan->devices[stage->device].name, width);
        pen_text_print(text, " %6u", figures->node_count);
        pen_text_print(text, " %10s", pen_bytes_format(figures->parameter_bytes, cell));
        pen_text_print(text, " %10s", pen_seconds_format(stage->forward_seconds, cell));
        pen_text_print(text, " %10s",
                       pen_seconds_format(pen_stage_backward_input_seconds(stage) +
                                              stage->backward_weight_seconds,
                                          cell));
        pen_text_print(text, " %10s", pen_seconds_format(stage->update_seconds, cell));
        pen_text_print(text, " %10s", dump_bytes(stage->activation_bytes, cell));
        pen_text_print(text, " %9u%s\n", figures->in_flight,
                       stage->is_recomputed ? " recomputed" : "");
    }
    dump_node_count(plan, text);
}

static const char *dump_direction(const pen_plan_transfer *transfer) {
    if (transfer->is_per_step) return "each step";
    return transfer->is_backward ? "backward" : "forward";
}

static void dump_transfers(const pen_plan *plan, pen_text *text) {
    if (plan->transfer_count == 0) return;
    pen_text_print(text, "\n%-12s %-16s %-16s %10s %10s  %s\n", "transfer", "from", "to", "bytes",
                   "time", "value");
    for (uint32_t i = 0; i < plan->transfer_count; i++) {
        const pen_plan_transfer *transfer = &plan->transfers[i];
        char bytes[PEN_QUANTITY_TEXT_BYTES], seconds[PEN_QUANTITY_TEXT_BYTES];
        if (i == DUMP_TRANSFERS_SHOWN) {
            pen_text_print(text, "and %u more\n", plan->transfer_count - i);
            return;
        }
        pen_text_print(text, "%-12s %-16s %-16s %10s %10s  %s\n", dump_direction(transfer),
                       plan->stage_figures[transfer->source].name,
                       plan->stage_figures[transfer->target].name,
                       pen_bytes_format(transfer->bytes, bytes),
                       pen_seconds_format(transfer->seconds, seconds), transfer->value);
    }
}

// Columns are as wide as the longest name, up to a limit; names are cut by what a terminal makes of
// them, not by bytes.
static void dump_nodes(const pen_plan *plan, pen_text *text) {
    const size_t width = pen_plan_device_columns(plan);
    size_t name_width = 40;
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const size_t columns = pen_text_columns(plan->nodes[n].name);
        if (columns > name_width) name_width = columns;
    }
    if (name_width > DUMP_NAME_COLUMNS) name_width = DUMP_NAME_COLUMNS;
    pen_text_add(text, "\n");
    pen_text_add_column(text, "node", name_width);
    pen_text_print(text, " %-10s ", "stage");
    pen_text_add_column(text, "device", width);
    pen_text_print(text, " %10s %-8s %10s  %s\n", "time", "", "memory", "why");
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        char bytes[PEN_QUANTITY_TEXT_BYTES], seconds[PEN_QUANTITY_TEXT_BYTES];
        pen_text_add_column(text, node->name, name_width);
        pen_text_print(text, " %-10s ", plan->stage_figures[node->stage].name);
        pen_text_add_column(text, plan->devices[plan->stages.stages[node->stage].device].name,
                            width);
        pen_text_print(text, " %10s %-8s %10s  %s\n", pen_seconds_format(node->seconds, seconds),
                       pen_figure_source_name(node->source), pen_bytes_format(node->bytes, bytes),
                       node->reason);
    }
}

void pen_plan_dump(const pen_plan *plan, bool nodes, pen_text *text) {
    dump_summary(plan, text);
    pen_plan_dump_waiting(plan, text);
    dump_process(plan, text);
    dump_replicas(plan, text);
    dump_devices(plan, text);
    dump_stages(plan, text);
    dump_transfers(plan, text);
    if (nodes) dump_nodes(plan, text);
}

// ---- JSON

static void json_hash(pen_json_writer *json, const char *key, uint64_t hash) {
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    pen_json_key_text(json, key, text);
}

static void json_devices(const pen_plan *plan, pen_json_writer *json) {
    pen_json_key_array(json, "devices");
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const pen_plan_device *device = &plan->devices[d];
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", device->name);
        pen_json_key_unsigned(json, "nodes", device->node_count);
        pen_json_key_number(json, "load_seconds", device->load_seconds);
        pen_json_key_number(json, "bytes_limit", plan->stages.bytes_limit[d]);
        pen_json_key(json, "memory");
        pen_device_memory_write_json(&device->memory, json);
        if (device->process_bytes > 0) {
            pen_json_key_unsigned(json, "process_bytes", device->process_bytes);
        }
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// Halves of the backward pass are told apart: schedules run them apart.
static void json_stages(const pen_plan *plan, pen_json_writer *json) {
    pen_json_key_array(json, "stages");
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        const pen_stage *stage = &plan->stages.stages[s];
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", plan->stage_figures[s].name);
        pen_json_key_text(json, "device", plan->devices[stage->device].name);
        pen_json_key_unsigned(json, "nodes", plan->stage_figures[s].node_count);
        pen_json_key_unsigned(json, "in_flight", plan->stage_figures[s].in_flight);
        pen_json_key_unsigned(json, "parameter_bytes", plan->stage_figures[s].parameter_bytes);
        pen_json_key_number(json, "forward_seconds", stage->forward_seconds);
        pen_json_key_number(json, "backward_input_seconds", stage->backward_input_seconds);
        pen_json_key_number(json, "backward_weight_seconds", stage->backward_weight_seconds);
        pen_json_key_number(json, "update_seconds", stage->update_seconds);
        pen_json_key_bool(json, "recompute", stage->is_recomputed);
        pen_json_key_number(json, "activation_bytes", stage->activation_bytes);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// Plans of one pipeline have neither key.
static void json_replicas(const pen_plan *plan, pen_json_writer *json) {
    if (plan->replica_count == 0) return;
    pen_json_key_array(json, "replicas");
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        const pen_plan_replica *replica = &plan->replicas[r];
        pen_json_begin_object(json);
        pen_json_key_unsigned(json, "first_lane", replica->first_lane);
        pen_json_key_unsigned(json, "lanes", replica->lane_count);
        pen_json_key_unsigned(json, "first_stage", replica->first_stage);
        pen_json_key_unsigned(json, "stages", replica->stage_count);
        pen_json_key_array(json, "devices");
        for (uint32_t i = 0; i < replica->device_count; i++) {
            pen_json_text(json, plan->devices[replica->devices[i]].name);
        }
        pen_json_end_array(json);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    if (plan->owner_count == 0) return;
    pen_json_key_array(json, "owners");
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        pen_json_text(json, plan->devices[plan->owners[i]].name);
    }
    pen_json_end_array(json);
}

void pen_plan_write_transfer(const pen_plan_transfer *transfer, pen_json_writer *json) {
    pen_json_key_text(json, "value", transfer->value);
    pen_json_key_unsigned(json, "from", transfer->source);
    pen_json_key_unsigned(json, "to", transfer->target);
    pen_json_key_unsigned(json, "bytes", transfer->bytes);
    pen_json_key_number(json, "seconds", transfer->seconds);
}

static void json_transfers(const pen_plan *plan, pen_json_writer *json) {
    pen_json_key_array(json, "transfers");
    for (uint32_t i = 0; i < plan->transfer_count; i++) {
        const pen_plan_transfer *transfer = &plan->transfers[i];
        pen_json_begin_object(json);
        pen_plan_write_transfer(transfer, json);
        pen_json_key_text(json, "when", dump_direction(transfer));
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// The keys are documented and scripts read them: they stay, and new ones are added.
void pen_plan_write_json(const pen_plan *plan, pen_json_writer *json) {
    pen_json_key_text(json, "model", plan->model);
    json_hash(json, "model_hash", plan->model_hash);
    json_hash(json, "cluster_hash", plan->cluster_hash);
    pen_json_key_text(json, "strategy", plan->strategy);
    pen_json_key_text(json, "objective", plan->objective);
    pen_json_key_unsigned(json, "seed", plan->seed);
    pen_json_key_number(json, "value", plan->value);
    pen_json_key_number(json, "lower_bound", plan->lower_bound);
    pen_json_key_number(json, "gap", dump_gap(plan));
    pen_json_key_bool(json, "cut", plan->is_cut);
    pen_json_key_text(json, "schedule", plan->schedule);
    pen_json_key_unsigned(json, "microbatches", plan->microbatch_count);
    pen_json_key_unsigned(json, "microbatch_size", plan->microbatch_size);
    pen_json_key_number(json, "step_seconds", plan->step_seconds);
    pen_json_key_number(json, "bubble", plan->bubble);
    pen_json_key_text(json, "precision", pen_precision_names[plan->precision]);
    pen_json_key_unsigned(json, "process_bytes", plan->process_bytes);
    pen_json_key_object(json, "costs");
    pen_json_key_unsigned(json, "measured", plan->measured_count);
    pen_json_key_unsigned(json, "stated", plan->stated_count);
    pen_json_key_unsigned(json, "assumed", plan->assumed_count);
    pen_json_end_object(json);
    json_devices(plan, json);
    json_replicas(plan, json);
    json_stages(plan, json);
    json_transfers(plan, json);
    pen_json_key_array(json, "nodes");
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", node->name);
        pen_json_key_unsigned(json, "stage", node->stage);
        if (plan->replica_count > 0) pen_json_key_unsigned(json, "updates", node->update_stage);
        pen_json_key_number(json, "seconds", node->seconds);
        pen_json_key_text(json, "source", pen_figure_source_name(node->source));
        pen_json_key_unsigned(json, "bytes", node->bytes);
        pen_json_key_text(json, "reason", node->reason);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}
