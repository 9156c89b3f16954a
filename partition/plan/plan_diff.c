#include "partition/plan/plan_diff.h"

#include <string.h>

#include "base/format/text_columns.h"
#include "base/name_map.h"
#include "partition/plan/plan_dump.h"
#include "partition/plan/replica_check.h"

#define DIFF_NODES_SHOWN 50

// The devices of a node: with replicas, that of each.
static pen_status diff_device(const pen_plan *plan, uint32_t node, pen_arena *arena,
                              const char **out_device) {
    const uint32_t replicas = plan->replica_count > 0 ? plan->replica_count : 1;
    const uint32_t each = plan->node_count / replicas;
    pen_text text;
    if (plan->replica_count == 0) {
        *out_device = plan->devices[plan->stages.stages[plan->nodes[node].stage].device].name;
        return PEN_OK;
    }
    pen_text_init(&text, arena);
    for (uint32_t r = 0; r < replicas; r++) {
        const uint32_t stage = plan->nodes[r * each + node].stage;
        pen_text_print(&text, "%s%s in replica %u", r > 0 ? ", " : "",
                       plan->devices[plan->stages.stages[stage].device].name, r);
    }
    return pen_text_finish(&text, out_device);
}

// Nodes of a plan: with replicas, those of the first, since all have the same.
static uint32_t diff_node_count(const pen_plan *plan) {
    return plan->replica_count > 0 ? plan->node_count / plan->replica_count : plan->node_count;
}

// Nodes are the same when they are called the same: ids differ between two runs of the compiler.
static pen_status diff_nodes(const pen_plan *before, const pen_plan *after, pen_arena *arena,
                             pen_plan_diff *diff) {
    pen_name_map in_before, in_after;
    pen_plan_node_change *changes;
    pen_name_map_init(&in_before, arena);
    pen_name_map_init(&in_after, arena);
    PEN_TRY(PEN_NEW(arena, (size_t)before->node_count + after->node_count, &changes));
    for (uint32_t n = 0; n < diff_node_count(before); n++) {
        PEN_TRY(pen_name_map_add(&in_before, before->nodes[n].name, n));
    }
    for (uint32_t n = 0; n < diff_node_count(after); n++) {
        PEN_TRY(pen_name_map_add(&in_after, after->nodes[n].name, n));
    }
    for (uint32_t n = 0; n < diff_node_count(before); n++) {
        const uint32_t other = pen_name_map_find(&in_after, before->nodes[n].name);
        const char *from, *to = NULL;
        PEN_TRY(diff_device(before, n, arena, &from));
        if (other != PEN_NAME_MAP_NONE) PEN_TRY(diff_device(after, other, arena, &to));
        if (to != NULL && strcmp(from, to) == 0) continue;
        changes[diff->node_count++] = (pen_plan_node_change){before->nodes[n].name, from, to};
    }
    for (uint32_t n = 0; n < diff_node_count(after); n++) {
        const char *to;
        if (pen_name_map_find(&in_before, after->nodes[n].name) != PEN_NAME_MAP_NONE) continue;
        PEN_TRY(diff_device(after, n, arena, &to));
        changes[diff->node_count++] = (pen_plan_node_change){after->nodes[n].name, NULL, to};
    }
    diff->nodes = changes;
    return PEN_OK;
}

static pen_status diff_devices(const pen_plan *before, const pen_plan *after, pen_arena *arena,
                               pen_plan_diff *diff) {
    pen_name_map map;
    pen_plan_device_change *changes;
    pen_name_map_init(&map, arena);
    PEN_TRY(PEN_NEW(arena, (size_t)before->device_count + after->device_count, &changes));
    for (uint32_t d = 0; d < before->device_count; d++) {
        PEN_TRY(pen_name_map_add(&map, before->devices[d].name, diff->device_count));
        changes[diff->device_count++].before = &before->devices[d];
    }
    for (uint32_t d = 0; d < after->device_count; d++) {
        uint32_t at = pen_name_map_find(&map, after->devices[d].name);
        if (at == PEN_NAME_MAP_NONE) at = diff->device_count++;
        changes[at].after = &after->devices[d];
    }
    diff->devices = changes;
    return PEN_OK;
}

pen_status pen_plan_diff_build(const pen_plan *before, const pen_plan *after, pen_arena *arena,
                               pen_plan_diff *out_diff) {
    pen_plan_diff diff = {.before = before,
                          .after = after,
                          .is_same_model = before->model_hash == after->model_hash,
                          .is_same_cluster = before->cluster_hash == after->cluster_hash};
    PEN_TRY(diff_nodes(before, after, arena, &diff));
    PEN_TRY(diff_devices(before, after, arena, &diff));
    *out_diff = diff;
    return PEN_OK;
}

static double diff_percent(double before, double after) {
    return before > 0.0 ? 100.0 * (after / before - 1.0) : 0.0;
}

static void diff_dump_seconds(const char *what, double before, double after, pen_text *text) {
    char from[PEN_QUANTITY_TEXT_BYTES], to[PEN_QUANTITY_TEXT_BYTES];
    pen_text_print(text, "%-12s %s, then %s (%+.1f%%)\n", what, pen_seconds_format(before, from),
                   pen_seconds_format(after, to), diff_percent(before, after));
}

static uint64_t diff_traffic(const pen_plan *plan) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->transfer_count; i++) {
        bytes += plan->transfers[i].bytes;
    }
    return bytes;
}

// "replicas", or each device with the bytes of its parameters.
static void diff_dump_owners_of(const pen_plan *plan, pen_text *text) {
    char bytes[PEN_QUANTITY_TEXT_BYTES];
    if (plan->owner_count == 0) pen_text_add(text, "replicas");
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        const pen_plan_stage *stage = &plan->stage_figures[pen_plan_owner_stage(plan) + i];
        pen_text_print(text, "%s%s (%s)", i > 0 ? ", " : "", plan->devices[plan->owners[i]].name,
                       pen_bytes_format(stage->parameter_bytes, bytes));
    }
}

static void diff_dump_owners(const pen_plan *before, const pen_plan *after, pen_text *text) {
    if (before->owner_count == 0 && after->owner_count == 0) return;
    pen_text_add(text, "owners       ");
    diff_dump_owners_of(before, text);
    pen_text_add(text, ", then ");
    diff_dump_owners_of(after, text);
    pen_text_add(text, "\n");
}

// What is equal in both plans is not said, but for the figures.
static void diff_dump_summary(const pen_plan_diff *diff, pen_text *text) {
    const pen_plan *before = diff->before, *after = diff->after;
    char from[PEN_QUANTITY_TEXT_BYTES], to[PEN_QUANTITY_TEXT_BYTES];
    if (!diff->is_same_model) {
        pen_text_print(text,
                       "The plans are of different models, so their figures say little of each "
                       "other.\nmodel        %s, then %s\n",
                       before->model, after->model);
    }
    if (!diff->is_same_cluster) pen_text_add(text, "cluster      not the same\n");
    if (strcmp(before->strategy, after->strategy) != 0) {
        pen_text_print(text, "strategy     %s, then %s\n", before->strategy, after->strategy);
    }
    if (strcmp(before->objective, after->objective) != 0) {
        pen_text_print(text, "objective    %s, then %s\n", before->objective, after->objective);
    }
    if (strcmp(before->schedule, after->schedule) != 0) {
        pen_text_print(text, "schedule     %s, then %s\n", before->schedule, after->schedule);
    }
    if (before->precision != after->precision) {
        pen_text_print(text, "precision    %s, then %s\n", pen_precision_names[before->precision],
                       pen_precision_names[after->precision]);
    }
    if (before->lane_count != after->lane_count) {
        pen_text_print(text, "lanes %u, then %u\n", before->lane_count, after->lane_count);
    }
    if (before->microbatch_count != after->microbatch_count ||
        before->microbatch_size != after->microbatch_size) {
        pen_text_print(text, "microbatches %u of %llu, then %u of %llu\n", before->microbatch_count,
                       (unsigned long long)before->microbatch_size, after->microbatch_count,
                       (unsigned long long)after->microbatch_size);
    }
    diff_dump_seconds("step", before->step_seconds, after->step_seconds, text);
    pen_text_print(text, "bubble       %.1f%%, then %.1f%%\n", 100.0 * before->bubble,
                   100.0 * after->bubble);
    if (before->replica_count != after->replica_count) {
        pen_text_print(text, "replicas     %u, then %u\n",
                       before->replica_count > 0 ? before->replica_count : 1,
                       after->replica_count > 0 ? after->replica_count : 1);
    }
    diff_dump_owners(before, after, text);
    pen_text_print(text, "stages       %u, then %u\n", before->stages.stage_count,
                   after->stages.stage_count);
    pen_text_print(text, "traffic      %s, then %s\n", pen_bytes_format(diff_traffic(before), from),
                   pen_bytes_format(diff_traffic(after), to));
}

// Devices of both plans, matched by name; those that only one of them has show zeros in the other.
void pen_plan_diff_dump(const pen_plan_diff *diff, pen_text *text) {
    diff_dump_summary(diff, text);
    size_t width = pen_plan_device_columns(diff->before);
    if (pen_plan_device_columns(diff->after) > width) width = pen_plan_device_columns(diff->after);
    pen_text_add(text, "\n");
    pen_text_add_column(text, "device", width);
    pen_text_print(text, " %7s %7s %11s %11s %11s %11s\n", "nodes", "then", "memory", "then",
                   "load", "then");
    for (uint32_t d = 0; d < diff->device_count; d++) {
        static const pen_plan_device none = {.name = ""};
        const pen_plan_device *before = diff->devices[d].before, *after = diff->devices[d].after;
        const char *name = before != NULL ? before->name : "";
        char cells[4][PEN_QUANTITY_TEXT_BYTES];
        if (after != NULL) name = after->name;
        if (before == NULL) before = &none;
        if (after == NULL) after = &none;
        pen_text_add_column(text, name, width);
        pen_text_print(text, " %7u %7u %11s %11s %11s %11s\n", before->node_count,
                       after->node_count, pen_bytes_format(before->memory.total, cells[0]),
                       pen_bytes_format(after->memory.total, cells[1]),
                       pen_seconds_format(before->load_seconds, cells[2]),
                       pen_seconds_format(after->load_seconds, cells[3]));
    }
    pen_text_print(text, "\n%u node%s moved\n", diff->node_count, diff->node_count == 1 ? "" : "s");
    for (uint32_t n = 0; n < diff->node_count && n < DIFF_NODES_SHOWN; n++) {
        const pen_plan_node_change *change = &diff->nodes[n];
        pen_text_print(text, "  %-40s %s, then %s\n", change->name,
                       change->device_before == NULL ? "nowhere" : change->device_before,
                       change->device_after == NULL ? "nowhere" : change->device_after);
    }
    if (diff->node_count > DIFF_NODES_SHOWN) {
        pen_text_print(text, "  and %u more\n", diff->node_count - DIFF_NODES_SHOWN);
    }
}

// The figures that a script compares, under the keys that `plan --json` has.
static void diff_json_plan(const pen_plan *plan, pen_json_writer *json) {
    pen_json_begin_object(json);
    pen_json_key_text(json, "strategy", plan->strategy);
    pen_json_key_text(json, "objective", plan->objective);
    pen_json_key_text(json, "schedule", plan->schedule);
    pen_json_key_number(json, "value", plan->value);
    pen_json_key_number(json, "step_seconds", plan->step_seconds);
    pen_json_key_number(json, "bubble", plan->bubble);
    pen_json_key_unsigned(json, "stages", plan->stages.stage_count);
    pen_json_key_unsigned(json, "traffic_bytes", diff_traffic(plan));
    pen_json_key_array(json, "devices");
    for (uint32_t d = 0; d < plan->device_count; d++) {
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", plan->devices[d].name);
        pen_json_key_unsigned(json, "nodes", plan->devices[d].node_count);
        pen_json_key_unsigned(json, "memory_total", plan->devices[d].memory.total);
        pen_json_key_number(json, "load_seconds", plan->devices[d].load_seconds);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}

// A node that only one plan has lacks "before" or "after".
void pen_plan_diff_write_json(const pen_plan_diff *diff, pen_json_writer *json) {
    pen_json_key_bool(json, "same_model", diff->is_same_model);
    pen_json_key_bool(json, "same_cluster", diff->is_same_cluster);
    pen_json_key(json, "before");
    diff_json_plan(diff->before, json);
    pen_json_key(json, "after");
    diff_json_plan(diff->after, json);
    pen_json_key_array(json, "moved");
    for (uint32_t n = 0; n < diff->node_count; n++) {
        const pen_plan_node_change *change = &diff->nodes[n];
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", change->name);
        if (change->device_before != NULL) {
            pen_json_key_text(json, "before", change->device_before);
        }
        if (change->device_after != NULL) pen_json_key_text(json, "after", change->device_after);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}
