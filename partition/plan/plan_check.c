#include "partition/plan/plan_check.h"

#include <math.h>
#include <string.h>

#include "base/name_map.h"
#include "partition/plan/replica_check.h"
#include "partition/problem/problem.h"

#define PLAN_ROUNDING 1e-6 // of figures in text

static bool plan_is_amount(double number) {
    return number >= 0.0 && number < INFINITY;
}

// A plan may have been edited: memory must be the sum of its kinds and within the limit.
static pen_status plan_check_devices(const pen_plan *plan, pen_arena *arena) {
    pen_name_map map;
    pen_name_map_init(&map, arena);
    if (plan->device_count == 0) return pen_error(PEN_INVALID_INPUT, "the plan has no device");
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const pen_plan_device *device = &plan->devices[d];
        const pen_device_memory *m = &device->memory;
        if (pen_name_map_find(&map, device->name) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT, "two devices are called '%s'", device->name);
        }
        PEN_TRY(pen_name_map_add(&map, device->name, d));
        const double sum = pen_device_memory_sum(m);
        if ((double)m->total != sum) {
            return pen_error(PEN_INVALID_INPUT,
                             "device '%s': its memory is %llu bytes in total, but its kinds sum up "
                             "to %.0f",
                             device->name, (unsigned long long)m->total, sum);
        }
        if ((double)m->total > plan->stages.bytes_limit[d]) {
            return pen_error(PEN_DOES_NOT_FIT,
                             "device '%s' would hold %llu bytes, and may use %.0f", device->name,
                             (unsigned long long)m->total, plan->stages.bytes_limit[d]);
        }
        if (!plan_is_amount(device->load_seconds)) {
            return pen_error(PEN_INVALID_INPUT, "device '%s': its load is not a time",
                             device->name);
        }
    }
    return PEN_OK;
}

// Edges lead to later stages only, so stages cannot wait for each other; gradients go where both
// ends have a backward pass.
static pen_status plan_check_edges(const pen_stage_graph *stages) {
    for (uint32_t e = 0; e < stages->edge_count; e++) {
        const pen_stage_edge *edge = &stages->edges[e];
        if (edge->source >= edge->target || edge->target >= stages->stage_count) {
            return pen_error(PEN_INVALID_INPUT,
                             "an edge leads from stage %u to stage %u: stages must be in order",
                             edge->source, edge->target);
        }
        if (!plan_is_amount(edge->forward_bytes) || !plan_is_amount(edge->backward_bytes) ||
            !plan_is_amount(edge->forward_seconds) || !plan_is_amount(edge->backward_seconds)) {
            return pen_error(PEN_INVALID_INPUT,
                             "the edge from stage %u to %u has no times or sizes", edge->source,
                             edge->target);
        }
        const bool has_ends =
            stages->stages[edge->source].has_backward && stages->stages[edge->target].has_backward;
        if (edge->has_gradient ? has_ends : edge->backward_bytes == 0.0) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "the edge from stage %u to %u carries gradients, but `has_gradient` or "
                         "the `has_backward` of a stage is not set",
                         edge->source, edge->target);
    }
    for (uint32_t e = 0; e < stages->step_edge_count; e++) {
        const pen_stage_step_edge *edge = &stages->step_edges[e];
        if (edge->source < stages->stage_count && edge->target < stages->stage_count &&
            edge->source != edge->target && edge->phase < pen_stage_graph_phases(stages) - 1 &&
            stages->stages[edge->source].has_update && stages->stages[edge->target].has_update &&
            plan_is_amount(edge->bytes) && plan_is_amount(edge->seconds)) {
            continue;
        }
        return pen_error(
            PEN_INVALID_INPUT,
            "a step edge leads from stage %u to stage %u with phase %u of %u: expected "
            "two stages with updates, a phase below the last, times and sizes",
            edge->source, edge->target, edge->phase, pen_stage_graph_phases(stages));
    }
    return PEN_OK;
}

// Every figure is finite and not negative, and a stage has times only for what it does.
static pen_status plan_check_stages(const pen_plan *plan) {
    const pen_stage_graph *stages = &plan->stages;
    if (stages->stage_count == 0) return pen_error(PEN_INVALID_INPUT, "the plan has no stage");
    if (stages->microbatch_count != plan->microbatch_count || plan->microbatch_count == 0 ||
        stages->device_count != plan->device_count) {
        return pen_error(PEN_INVALID_INPUT,
                         "the plan has no microbatches, or its stages are for other devices");
    }
    for (uint32_t s = 0; s < stages->stage_count; s++) {
        const pen_stage *stage = &stages->stages[s];
        if (stage->device >= plan->device_count) {
            return pen_error(PEN_INVALID_INPUT, "stage %u is on device %u of %u", s, stage->device,
                             plan->device_count);
        }
        const double figures[] = {stage->forward_seconds,
                                  stage->backward_input_seconds,
                                  stage->backward_weight_seconds,
                                  stage->update_seconds,
                                  stage->fixed_bytes,
                                  stage->workspace_bytes,
                                  stage->activation_bytes,
                                  stage->halved_bytes};
        for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
            if (plan_is_amount(figures[i])) continue;
            return pen_error(PEN_INVALID_INPUT, "stage %u: %g is no time or size", s, figures[i]);
        }
        const double backward = stage->backward_input_seconds + stage->backward_weight_seconds;
        if ((backward > 0.0 && !stage->has_backward) ||
            (stage->update_seconds > 0.0 && !stage->has_update) ||
            (stage->is_recomputed && !stage->has_backward)) {
            return pen_error(PEN_INVALID_INPUT,
                             "stage %u: it says what a backward pass or an update takes, but that "
                             "it has none: `has_backward`, `has_update`",
                             s);
        }
        if (plan->stage_figures[s].in_flight > plan->microbatch_count) {
            return pen_error(PEN_INVALID_INPUT,
                             "stage %u: %u microbatches in flight, but a step has %u", s,
                             plan->stage_figures[s].in_flight, plan->microbatch_count);
        }
    }
    return plan_check_edges(stages);
}

// `count` [stage_count] of the nodes that are listed.
static pen_status plan_check_counts(const pen_plan *plan, const uint32_t *count, pen_arena *arena) {
    uint32_t *on_device;
    PEN_TRY(PEN_NEW(arena, plan->device_count, &on_device));
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        if (count[s] > 0 || plan->stages.stages[s].is_owner) continue;
        return pen_error(PEN_INVALID_INPUT, "%s has no node", plan->stage_figures[s].name);
    }
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        const pen_plan_stage *figures = &plan->stage_figures[s];
        if (count[s] != figures->node_count) {
            return pen_error(PEN_INVALID_INPUT,
                             "%s: its nodes are said to be %u, but %u are in it; "
                             "`penstock plan --from` works out an edited plan anew",
                             figures->name, figures->node_count, count[s]);
        }
        if (figures->in_flight == 0 && !plan->stages.stages[s].is_owner) {
            return pen_error(PEN_INVALID_INPUT,
                             "%s: 0 microbatches in flight, but it has nodes to run: expected 1 to "
                             "%u",
                             figures->name, plan->microbatch_count);
        }
        on_device[plan->stages.stages[s].device] += count[s];
    }
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const pen_plan_device *device = &plan->devices[d];
        if (on_device[d] == device->node_count) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "device '%s': its nodes are said to be %u, but its stages have %u",
                         device->name, device->node_count, on_device[d]);
    }
    return PEN_OK;
}

// Each node once, in a stage that is there. The counts of an edited plan are made anew and not
// compared.
static pen_status plan_check_nodes(const pen_plan *plan, bool is_edited, pen_arena *arena) {
    pen_name_map map;
    uint32_t *count;
    pen_name_map_init(&map, arena);
    PEN_TRY(PEN_NEW(arena, plan->stages.stage_count, &count));
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        if (node->stage >= plan->stages.stage_count) {
            return pen_error(PEN_INVALID_INPUT, "node '%s' is in stage %u, but there are %u",
                             node->name, node->stage, plan->stages.stage_count);
        }
        const bool is_known = pen_name_map_find(&map, node->name) != PEN_NAME_MAP_NONE;
        if (is_known && plan->replica_count == 0) {
            return pen_error(PEN_INVALID_INPUT, "node '%s' is in the plan twice", node->name);
        }
        if (!plan_is_amount(node->seconds)) {
            return pen_error(PEN_INVALID_INPUT, "node '%s': %g is no time", node->name,
                             node->seconds);
        }
        if (!is_known) PEN_TRY(pen_name_map_add(&map, node->name, n));
        count[node->stage]++;
    }
    PEN_TRY(pen_replica_check_nodes(plan, arena));
    if (!is_edited) PEN_TRY(plan_check_counts(plan, count, arena));
    for (uint32_t i = 0; i < plan->transfer_count; i++) {
        const pen_plan_transfer *transfer = &plan->transfers[i];
        if (transfer->source < plan->stages.stage_count &&
            transfer->target < plan->stages.stage_count && transfer->source != transfer->target &&
            plan_is_amount(transfer->seconds)) {
            continue;
        }
        return pen_error(PEN_INVALID_INPUT, "value '%s' goes from stage %u to stage %u of %u",
                         transfer->value, transfer->source, transfer->target,
                         plan->stages.stage_count);
    }
    return PEN_OK;
}

typedef struct plan_moved {
    double forward; // bytes of a microbatch
    double backward;
} plan_moved;

static pen_status plan_edge_name(uint32_t source, uint32_t target, pen_arena *arena,
                                 const char **out_name) {
    return pen_arena_format(arena, out_name, "%u %u", source, target);
}

// Adds up the transfers along each edge.
static pen_status plan_sum_transfers(const pen_plan *plan, pen_arena *arena, plan_moved *moved) {
    const pen_stage_graph *stages = &plan->stages;
    const char *name;
    pen_name_map map;
    pen_name_map_init(&map, arena);
    for (uint32_t e = 0; e < stages->edge_count; e++) {
        const pen_stage_edge *edge = &stages->edges[e];
        PEN_TRY(plan_edge_name(edge->source, edge->target, arena, &name));
        if (pen_name_map_find(&map, name) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT, "two edges lead from stage %u to stage %u",
                             edge->source, edge->target);
        }
        PEN_TRY(pen_name_map_add(&map, name, e));
    }
    for (uint32_t i = 0; i < plan->transfer_count; i++) {
        const pen_plan_transfer *transfer = &plan->transfers[i];
        const bool is_up = transfer->source < transfer->target;
        if (transfer->is_per_step) continue;
        PEN_TRY(plan_edge_name(is_up ? transfer->source : transfer->target,
                               is_up ? transfer->target : transfer->source, arena, &name));
        const uint32_t e = pen_name_map_find(&map, name);
        if (e == PEN_NAME_MAP_NONE || is_up == transfer->is_backward) {
            return pen_error(PEN_INVALID_INPUT,
                             "value '%s' goes %s from stage %u to stage %u, along no edge",
                             transfer->value, transfer->is_backward ? "backward" : "forward",
                             transfer->source, transfer->target);
        }
        *(is_up ? &moved[e].forward : &moved[e].backward) += (double)transfer->bytes;
    }
    return PEN_OK;
}

// Edges between devices carry the bytes of their transfers.
static pen_status plan_check_transfers(const pen_plan *plan, pen_arena *arena) {
    const pen_stage_graph *stages = &plan->stages;
    plan_moved *moved;
    PEN_TRY(PEN_NEW(arena, stages->edge_count, &moved));
    PEN_TRY(plan_sum_transfers(plan, arena, moved));
    for (uint32_t e = 0; e < stages->edge_count; e++) {
        const pen_stage_edge *edge = &stages->edges[e];
        if (stages->stages[edge->source].device == stages->stages[edge->target].device) continue;
        if (moved[e].forward == edge->forward_bytes && moved[e].backward == edge->backward_bytes) {
            continue;
        }
        return pen_error(PEN_INVALID_INPUT,
                         "the edge from stage %u to stage %u carries %.0f bytes forward and %.0f "
                         "back, but its transfers sum up to %.0f and %.0f",
                         edge->source, edge->target, edge->forward_bytes, edge->backward_bytes,
                         moved[e].forward, moved[e].backward);
    }
    return PEN_OK;
}

static pen_status plan_check_value(const pen_plan *plan) {
    const bool is_step_time =
        strcmp(plan->objective, pen_objective_names[PEN_OBJECTIVE_STEP_TIME]) == 0;
    if (plan->lower_bound > plan->value * (1.0 + PLAN_ROUNDING)) {
        return pen_error(PEN_INVALID_INPUT,
                         "the value %g is below %g, which is said to be its lower bound",
                         plan->value, plan->lower_bound);
    }
    if (is_step_time && fabs(plan->value - plan->step_seconds) > PLAN_ROUNDING * plan->value) {
        return pen_error(PEN_INVALID_INPUT, "the value is %g seconds, but a step takes %g",
                         plan->value, plan->step_seconds);
    }
    return PEN_OK;
}

pen_status pen_plan_check(const pen_plan *plan, bool is_edited, pen_arena *arena) {
    PEN_TRY(plan_check_stages(plan));
    PEN_TRY(plan_check_devices(plan, arena));
    PEN_TRY(pen_replica_check(plan, arena));
    PEN_TRY(plan_check_nodes(plan, is_edited, arena));
    const double figures[] = {plan->value, plan->lower_bound, plan->step_seconds, plan->bubble};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        if (plan_is_amount(figures[i])) continue;
        return pen_error(PEN_INVALID_INPUT, "%g is no time or share", figures[i]);
    }
    if (is_edited) return PEN_OK;
    PEN_TRY(plan_check_transfers(plan, arena));
    return plan_check_value(plan);
}
