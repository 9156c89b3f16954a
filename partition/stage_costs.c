// What stages cost, and what moves between them.

#include <stdlib.h>

#include "partition/stage_split.h"

static int transfer_compare(const void *left, const void *right) {
    const pen_stage_transfer *a = left, *b = right;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    return a->value.index < b->value.index ? -1 : a->value.index > b->value.index;
}

// What the visits of all roots share.
typedef struct transfer_visits {
    const pen_planned_graph *planned;
    const pen_node_homes *homes;
    const pen_stage_split *split;
    const uint32_t *updater; // [value_count] of parameters: the node that updates them, or none
    uint32_t *stamp;         // [stage_count], root + 1 for stages that have it already
} transfer_visits;

// Lists the transfers of one root, or only counts them. Results go to who reads them; a parameter
// goes, once updated, to the other stages that hold a copy of it.
static uint32_t transfer_visit(const transfer_visits *visits, uint32_t root,
                               pen_stage_transfer *out_items) {
    const pen_node_homes *homes = visits->homes;
    const pen_stage_split *split = visits->split;
    uint32_t *stamp = visits->stamp;
    pen_node_id producer = pen_graph_value(homes->graph, (pen_value_id){root})->producer;
    const bool is_parameter = !pen_node_is(producer);
    if (is_parameter) producer.index = visits->updater[root];
    if (!pen_node_is(producer) || homes->root[root] != root) return 0;
    const uint32_t source = split->stage_of_node[producer.index];
    const bool is_forward = pen_graph_node(homes->graph, producer)->role == PEN_ROLE_FORWARD;
    uint32_t count = 0;
    stamp[source] = root + 1;
    for (uint32_t u = homes->user_first[root]; u < homes->user_first[root + 1]; u++) {
        const uint32_t target = split->stage_of_node[homes->user_nodes[u]];
        if (stamp[target] == root + 1) continue;
        stamp[target] = root + 1;
        if (out_items != NULL) {
            out_items[count] = (pen_stage_transfer){
                .value = {root},
                .source = source,
                .target = target,
                .bytes = visits->planned->bytes_of_value[root],
                .is_backward = !is_forward || target < source,
                .is_per_step =
                    is_parameter || pen_node_homes_is_per_step(homes, (pen_value_id){root})};
        }
        count++;
    }
    return count;
}

static pen_status transfer_find_updaters(const pen_node_homes *homes, pen_arena *arena,
                                         const uint32_t **out_updater) {
    uint32_t *updater;
    PEN_TRY(PEN_NEW(arena, homes->value_count, &updater));
    for (uint32_t v = 0; v < homes->value_count; v++) {
        updater[v] = PEN_ID_NONE;
    }
    for (uint32_t v = 0; v < homes->value_count; v++) {
        const pen_value *value = pen_graph_value(homes->graph, (pen_value_id){v});
        if (!pen_node_is(value->producer) || !pen_value_is(value->replaces)) continue;
        if (pen_graph_node(homes->graph, value->producer)->role != PEN_ROLE_UPDATE) continue;
        const pen_value *old = pen_graph_value(homes->graph, value->replaces);
        if (old->kind != PEN_VALUE_PARAMETER) continue;
        updater[value->replaces.index] = value->producer.index;
    }
    *out_updater = updater;
    return PEN_OK;
}

pen_status pen_stage_split_transfers(const pen_planned_graph *planned, const pen_node_homes *homes,
                                     const pen_cluster *cluster, const pen_stage_split *split,
                                     pen_arena *arena, pen_stage_transfers *out_transfers) {
    transfer_visits visits = {.planned = planned, .homes = homes, .split = split};
    uint32_t count = 0;
    pen_stage_transfer *items;
    PEN_TRY(PEN_NEW(arena, split->stage_count, &visits.stamp));
    PEN_TRY(transfer_find_updaters(homes, arena, &visits.updater));
    for (uint32_t v = 0; v < homes->value_count; v++) {
        count += transfer_visit(&visits, v, NULL);
    }
    for (uint32_t s = 0; s < split->stage_count; s++) {
        visits.stamp[s] = 0;
    }
    PEN_TRY(PEN_NEW(arena, count, &items));
    uint32_t filled = 0;
    for (uint32_t v = 0; v < homes->value_count; v++) {
        filled += transfer_visit(&visits, v, &items[filled]);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = split->device_of_stage[items[i].source];
        const uint32_t to = split->device_of_stage[items[i].target];
        if (from == to) continue;
        const pen_cluster_link *link = pen_cluster_link_at(cluster, from, to);
        items[i].seconds = (double)items[i].bytes / link->bandwidth + link->latency;
    }
    if (count > 0) qsort(items, count, sizeof *items, transfer_compare);
    *out_transfers = (pen_stage_transfers){items, count};
    return PEN_OK;
}

static void costs_add_nodes(const pen_stage_costs_request *request, pen_stage *stages) {
    const pen_stage_split *split = request->split;
    for (uint32_t p = 0; p < request->planned->order_count; p++) {
        const pen_node_id id = request->planned->order[p];
        pen_stage *stage = &stages[split->stage_of_node[id.index]];
        const double seconds = pen_cost_model_at(request->costs, stage->device, id)->seconds;
        switch (pen_graph_node(request->planned->graph, id)->role) {
        case PEN_ROLE_FORWARD:
        case PEN_ROLE_TRANSFER:
            stage->forward_seconds += seconds;
            break;
        case PEN_ROLE_BACKWARD_INPUT:
            stage->backward_input_seconds += seconds;
            break;
        case PEN_ROLE_BACKWARD_WEIGHT:
            stage->backward_weight_seconds += seconds;
            break;
        case PEN_ROLE_UPDATE:
            stage->update_seconds += seconds;
            break;
        }
    }
}

// The edge between two stages, made when it is not there. Transfers come sorted by source, but the
// gradients of an edge come from its target.
static pen_stage_edge *costs_edge(pen_stage_edge *edges, uint32_t *edge_count, uint32_t *table,
                                  uint32_t stage_count, uint32_t low, uint32_t high) {
    uint32_t *at = &table[(size_t)low * stage_count + high];
    if (*at == 0) {
        edges[(*edge_count)++] = (pen_stage_edge){.source = low, .target = high};
        *at = *edge_count;
    }
    return &edges[*at - 1];
}

static pen_status costs_add_transfers(const pen_stage_costs_request *request, pen_stage *stages,
                                      pen_stage_edge *edges, uint32_t *table, uint32_t *out_count) {
    const uint32_t stage_count = request->split->stage_count;
    uint32_t edge_count = 0;
    for (uint32_t i = 0; i < request->transfers->count; i++) {
        const pen_stage_transfer *transfer = &request->transfers->items[i];
        const bool is_up = transfer->source < transfer->target;
        if (transfer->is_per_step) {
            stages[transfer->target].update_seconds += transfer->seconds;
            continue;
        }
        if (is_up && transfer->is_backward) {
            return pen_error(PEN_INTERNAL, "gradient '%s' flows from stage %u to %u",
                             pen_value_name(request->planned->graph, transfer->value),
                             transfer->source, transfer->target);
        }
        const uint32_t low = is_up ? transfer->source : transfer->target;
        const uint32_t high = is_up ? transfer->target : transfer->source;
        pen_stage_edge *edge = costs_edge(edges, &edge_count, table, stage_count, low, high);
        if (is_up) {
            edge->forward_bytes += (double)transfer->bytes;
            edge->forward_seconds += transfer->seconds;
        } else {
            edge->backward_bytes += (double)transfer->bytes;
            edge->backward_seconds += transfer->seconds;
        }
    }
    *out_count = edge_count;
    return PEN_OK;
}

pen_status pen_stage_split_costs(const pen_stage_costs_request *request, pen_arena *arena,
                                 pen_stage_graph *out_graph) {
    const pen_stage_split *split = request->split;
    const uint32_t stage_count = split->stage_count;
    pen_stage *stages;
    pen_stage_edge *edges;
    uint32_t *table, edge_count;
    PEN_TRY(PEN_NEW(arena, stage_count, &stages));
    PEN_TRY(PEN_NEW(arena, request->transfers->count, &edges));
    PEN_TRY(PEN_NEW(arena, (size_t)stage_count * stage_count, &table));
    for (uint32_t s = 0; s < stage_count; s++) {
        const pen_stage_memory *memory = &request->memory[s];
        stages[s] =
            (pen_stage){.device = split->device_of_stage[s],
                        .fixed_bytes = (double)(memory->parameters + memory->gradients +
                                                memory->optimizer_state + memory->received_passing),
                        .workspace_bytes = (double)memory->workspace,
                        .activation_bytes = (double)(memory->activations + memory->received_kept)};
    }
    costs_add_nodes(request, stages);
    PEN_TRY(costs_add_transfers(request, stages, edges, table, &edge_count));
    *out_graph = (pen_stage_graph){.stage_count = stage_count,
                                   .edge_count = edge_count,
                                   .device_count = request->cluster->device_count,
                                   .microbatch_count = request->planned->microbatch_count,
                                   .stages = stages,
                                   .edges = edges,
                                   .bytes_limit = request->bytes_limit};
    return PEN_OK;
}
