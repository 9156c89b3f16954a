#include "partition/lower/stage_costs.h"

#include <math.h>
#include <stdlib.h>

#include "base/format/yaml_writer.h"
#include "graph/graph.h"

static int transfer_compare(const void *left, const void *right) {
    const pen_stage_transfer *a = left, *b = right;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    return a->value.index < b->value.index ? -1 : a->value.index > b->value.index;
}

// What the visits of all values share.
typedef struct transfer_visits {
    const pen_planned_graph *planned;
    const pen_forward_owners *owners;
    const pen_stage_split *split;
    const uint32_t *updater; // [value_count] of parameters: the node that updates them, or none
    const uint32_t *phase;   // [node_count] of the updates
    uint32_t *stamp;         // [stage_count], value + 1 for stages that have it already
} transfer_visits;

// Who a value comes from when another stage reads it; none where each has it, or it travels as
// what it is a view of.
static pen_node_id transfer_maker(const transfer_visits *visits, uint32_t v) {
    const pen_forward_owners *owners = visits->owners;
    const pen_value_id value = {v}, source = pen_forward_owners_source(owners, value);
    if (!pen_value_is(source)) return (pen_node_id){visits->updater[v]};
    if (!pen_value_same(source, value)) return PEN_NODE_NONE;
    return pen_graph_value(owners->graph, value)->producer;
}

// Reader `i` of a value: of one that is computed whoever reads it through views, else whoever reads
// it itself. PEN_NODE_NONE: there are no more.
static pen_node_id transfer_reader(const pen_forward_owners *owners, uint32_t v, uint32_t i) {
    const pen_value_id root = {owners->root[v]};
    if (pen_node_is(pen_graph_value(owners->graph, root)->producer)) {
        const uint32_t u = owners->user_first[v] + i;
        if (u >= owners->user_first[v + 1]) return PEN_NODE_NONE;
        return (pen_node_id){owners->user_nodes[u]};
    }
    const uint32_t r = owners->readers.first[v] + i;
    return r < owners->readers.first[v + 1] ? owners->readers.nodes[r] : PEN_NODE_NONE;
}

// Lists the transfers of one value, or only counts them. Results go to who reads them; a parameter
// goes, once updated, to the other stages that hold a copy of it.
static uint32_t transfer_visit(const transfer_visits *visits, uint32_t v,
                               pen_stage_transfer *out_items) {
    const pen_forward_owners *owners = visits->owners;
    const pen_stage_split *split = visits->split;
    const pen_node_id maker = transfer_maker(visits, v);
    if (!pen_node_is(maker)) return 0;
    const uint32_t source = split->stage_of_node[maker.index];
    const pen_role role = pen_graph_node(owners->graph, maker)->role;
    const bool is_parameter =
        !pen_node_is(pen_graph_value(owners->graph, (pen_value_id){v})->producer);
    pen_node_id reader;
    uint32_t count = 0;
    visits->stamp[source] = v + 1;
    for (uint32_t i = 0; pen_node_is(reader = transfer_reader(owners, v, i)); i++) {
        const uint32_t target = split->stage_of_node[reader.index];
        if (visits->stamp[target] == v + 1) continue;
        visits->stamp[target] = v + 1;
        if (out_items != NULL) {
            out_items[count] =
                (pen_stage_transfer){.value = {v},
                                     .source = source,
                                     .target = target,
                                     .bytes = visits->planned->bytes_of_value[v],
                                     .is_backward = role != PEN_ROLE_FORWARD || target < source,
                                     .phase = visits->phase[maker.index],
                                     .is_per_step = is_parameter || pen_forward_owners_is_per_step(
                                                                        owners, (pen_value_id){v})};
        }
        count++;
    }
    return count;
}

static pen_status transfer_find_updaters(const pen_forward_owners *owners, pen_arena *arena,
                                         const uint32_t **out_updater) {
    uint32_t *updater;
    PEN_TRY(PEN_NEW(arena, owners->value_count, &updater));
    for (uint32_t v = 0; v < owners->value_count; v++) {
        updater[v] = PEN_ID_NONE;
    }
    for (uint32_t v = 0; v < owners->value_count; v++) {
        const pen_value *value = pen_graph_value(owners->graph, (pen_value_id){v});
        if (!pen_node_is(value->producer) || !pen_value_is(value->replaces)) continue;
        if (pen_graph_node(owners->graph, value->producer)->role != PEN_ROLE_UPDATE) continue;
        const pen_value *old = pen_graph_value(owners->graph, value->replaces);
        if (old->kind != PEN_VALUE_PARAMETER) continue;
        updater[value->replaces.index] = value->producer.index;
    }
    *out_updater = updater;
    return PEN_OK;
}

// The phase of each update: above that of what other stages pass on to it, not below that of what
// its own stage does. So for sums of gradients; all else is of phase 0.
static pen_status transfer_find_phases(const pen_planned_graph *planned,
                                       const pen_forward_owners *owners,
                                       const pen_stage_split *split, pen_arena *arena,
                                       uint32_t **out_phase) {
    uint32_t *phase;
    PEN_TRY(PEN_NEW(arena, owners->node_count, &phase));
    for (uint32_t p = 0; p < planned->order_count; p++) {
        const pen_node_id id = planned->order[p];
        const pen_node *node = pen_graph_node(owners->graph, id);
        if (node->role != PEN_ROLE_UPDATE && node->role != PEN_ROLE_BACKWARD_WEIGHT) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_value_id input = {owners->root[node->inputs[i].index]};
            const pen_node_id maker = pen_graph_value(owners->graph, input)->producer;
            if (!pen_node_is(maker) || !pen_forward_owners_is_per_step(owners, input)) continue;
            const bool is_own = split->stage_of_node[maker.index] == split->stage_of_node[id.index];
            const uint32_t least = phase[maker.index] + (is_own ? 0 : 1);
            if (least > phase[id.index]) phase[id.index] = least;
        }
    }
    *out_phase = phase;
    return PEN_OK;
}

// Counted, then filled: each value that another stage reads, once for each reading stage, with its
// time on the link between the devices.
pen_status pen_stage_transfers_find(const pen_planned_graph *planned,
                                    const pen_forward_owners *owners, const pen_cluster *cluster,
                                    const pen_stage_split *split, pen_arena *arena,
                                    pen_stage_transfers *out_transfers) {
    transfer_visits visits = {.planned = planned, .owners = owners, .split = split};
    uint32_t count = 0, phase_count = 1;
    pen_stage_transfer *items;
    uint32_t *phase;
    PEN_TRY(PEN_NEW(arena, split->stage_count, &visits.stamp));
    PEN_TRY(transfer_find_updaters(owners, arena, &visits.updater));
    PEN_TRY(transfer_find_phases(planned, owners, split, arena, &phase));
    visits.phase = phase;
    for (uint32_t v = 0; v < owners->value_count; v++) {
        count += transfer_visit(&visits, v, NULL);
    }
    for (uint32_t s = 0; s < split->stage_count; s++) {
        visits.stamp[s] = 0;
    }
    PEN_TRY(PEN_NEW(arena, count, &items));
    uint32_t filled = 0;
    for (uint32_t v = 0; v < owners->value_count; v++) {
        filled += transfer_visit(&visits, v, &items[filled]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].is_per_step && items[i].phase + 2 > phase_count) {
            phase_count = items[i].phase + 2;
        }
        const uint32_t from = split->device_of_stage[items[i].source];
        const uint32_t to = split->device_of_stage[items[i].target];
        if (from == to) continue;
        const pen_cluster_link *link = pen_cluster_link_at(cluster, from, to);
        const pen_link_handling handling = pen_link_ends(link);
        const double bytes = (double)items[i].bytes;
        items[i].seconds = bytes / link->bandwidth;
        pen_stage_handling_add(&items[i].handling, &handling, link->latency, bytes);
    }
    if (count > 0) qsort(items, count, sizeof *items, transfer_compare);
    *out_transfers = (pen_stage_transfers){items, count, phase_count};
    return PEN_OK;
}

// Roles decide which task of a stage a node belongs to.
static void costs_add_nodes(const pen_stage_costs_request *request, pen_stage *stages) {
    const pen_stage_split *split = request->split;
    for (uint32_t p = 0; p < request->planned->order_count; p++) {
        const pen_node_id id = request->planned->order[p];
        pen_stage *stage = &stages[split->stage_of_node[id.index]];
        const double seconds = pen_cost_model_at(request->costs, stage->device, id)->seconds;
        const pen_role role = pen_graph_node(request->planned->graph, id)->role;
        if (pen_role_is_backward(role)) stage->has_backward = true;
        if (role == PEN_ROLE_UPDATE) stage->has_update = true;
        switch (role) {
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

// Stages, edges and what finds them, while transfers are added.
typedef struct costs_builder {
    pen_stage *stages;
    pen_stage_edge *edges;
    uint32_t edge_count;
    uint32_t *table; // [stage_count][stage_count] of an edge: 1 + its index
    pen_stage_step_edge *step_edges;
    uint32_t step_edge_count;
} costs_builder;

// What goes together: the latency counts once.
static void costs_add_handling(pen_stage_handling *io_handling, const pen_stage_handling *other) {
    io_handling->latency_seconds = fmax(io_handling->latency_seconds, other->latency_seconds);
    io_handling->send_seconds += other->send_seconds;
    io_handling->receive_seconds += other->receive_seconds;
}

// Transfers come sorted by source and target, so those that share a step edge are not far apart.
static void costs_add_step_transfer(costs_builder *b, const pen_stage_transfer *transfer) {
    b->stages[transfer->source].has_update = true;
    b->stages[transfer->target].has_update = true;
    for (uint32_t e = b->step_edge_count; e-- > 0;) {
        pen_stage_step_edge *edge = &b->step_edges[e];
        if (edge->source != transfer->source || edge->target != transfer->target) break;
        if (edge->phase != transfer->phase) continue;
        edge->bytes += (double)transfer->bytes;
        edge->seconds += transfer->seconds;
        costs_add_handling(&edge->handling, &transfer->handling);
        return;
    }
    b->step_edges[b->step_edge_count++] = (pen_stage_step_edge){.source = transfer->source,
                                                                .target = transfer->target,
                                                                .phase = transfer->phase,
                                                                .bytes = (double)transfer->bytes,
                                                                .seconds = transfer->seconds,
                                                                .handling = transfer->handling};
}

// Activations flow up and gradients down the order of stages; a gradient that flows up would mean
// that stages wait for each other.
static pen_status costs_add_transfers(const pen_stage_costs_request *request, costs_builder *b) {
    const uint32_t stage_count = request->split->stage_count;
    for (uint32_t i = 0; i < request->transfers->count; i++) {
        const pen_stage_transfer *transfer = &request->transfers->items[i];
        const bool is_up = transfer->source < transfer->target;
        if (transfer->is_per_step) {
            costs_add_step_transfer(b, transfer);
            continue;
        }
        if (is_up && transfer->is_backward) {
            return pen_error(PEN_INTERNAL, "gradient '%s' flows from stage %u to stage %u",
                             pen_value_name(request->planned->graph, transfer->value),
                             transfer->source, transfer->target);
        }
        const uint32_t low = is_up ? transfer->source : transfer->target;
        const uint32_t high = is_up ? transfer->target : transfer->source;
        pen_stage_edge *edge =
            costs_edge(b->edges, &b->edge_count, b->table, stage_count, low, high);
        if (is_up) {
            edge->forward_bytes += (double)transfer->bytes;
            edge->forward_seconds += transfer->seconds;
            costs_add_handling(&edge->forward_handling, &transfer->handling);
        } else {
            edge->has_gradient = true;
            b->stages[low].has_backward = true;
            b->stages[high].has_backward = true;
            edge->backward_bytes += (double)transfer->bytes;
            edge->backward_seconds += transfer->seconds;
            costs_add_handling(&edge->backward_handling, &transfer->handling);
        }
    }
    return PEN_OK;
}

static void costs_round(double *seconds) {
    *seconds = pen_yaml_round(*seconds, PEN_UNIT_SECONDS);
}

static void costs_round_handling(pen_stage_handling *handling) {
    costs_round(&handling->latency_seconds);
    costs_round(&handling->send_seconds);
    costs_round(&handling->receive_seconds);
}

static void costs_round_all(costs_builder *b, uint32_t stage_count) {
    for (uint32_t s = 0; s < stage_count; s++) {
        costs_round(&b->stages[s].forward_seconds);
        costs_round(&b->stages[s].backward_input_seconds);
        costs_round(&b->stages[s].backward_weight_seconds);
        costs_round(&b->stages[s].update_seconds);
    }
    for (uint32_t e = 0; e < b->edge_count; e++) {
        costs_round(&b->edges[e].forward_seconds);
        costs_round(&b->edges[e].backward_seconds);
        costs_round_handling(&b->edges[e].forward_handling);
        costs_round_handling(&b->edges[e].backward_handling);
    }
    for (uint32_t e = 0; e < b->step_edge_count; e++) {
        costs_round(&b->step_edges[e].seconds);
        costs_round_handling(&b->step_edges[e].handling);
    }
}

// The numbers that schedules are made from: times, bytes and edges of stages. Rounded as they are
// in a plan's file, so that a plan that is read again gives the same schedule.
pen_status pen_stage_costs_find(const pen_stage_costs_request *request, pen_arena *arena,
                                pen_stage_graph *out_graph) {
    const pen_stage_split *split = request->split;
    const uint32_t stage_count = split->stage_count;
    costs_builder b = {0};
    PEN_TRY(PEN_NEW(arena, stage_count, &b.stages));
    PEN_TRY(PEN_NEW(arena, request->transfers->count, &b.edges));
    PEN_TRY(PEN_NEW(arena, request->transfers->count, &b.step_edges));
    PEN_TRY(PEN_NEW(arena, (size_t)stage_count * stage_count, &b.table));
    for (uint32_t s = 0; s < stage_count; s++) {
        const pen_stage_memory *memory = &request->memory[s];
        b.stages[s] =
            (pen_stage){.device = split->device_of_stage[s],
                        .fixed_bytes = (double)(memory->parameters + memory->gradients +
                                                memory->optimizer_state + memory->sent +
                                                memory->received_passing),
                        .workspace_bytes = (double)memory->workspace,
                        .activation_bytes = (double)(memory->activations + memory->received_kept),
                        .halved_bytes = (double)request->extra[s].halved};
    }
    costs_add_nodes(request, b.stages);
    PEN_TRY(costs_add_transfers(request, &b));
    for (uint32_t s = 0; s < stage_count; s++) {
        b.stages[s].is_recomputed = request->is_recomputed[s] && b.stages[s].has_backward;
    }
    costs_round_all(&b, stage_count);
    *out_graph = (pen_stage_graph){.stage_count = stage_count,
                                   .edge_count = b.edge_count,
                                   .device_count = request->cluster->device_count,
                                   .microbatch_count = request->planned->microbatch_count,
                                   .stages = b.stages,
                                   .edges = b.edges,
                                   .bytes_limit = request->bytes_limit,
                                   .seats = request->cluster->tables.seats,
                                   .update_phase_count = request->transfers->phase_count,
                                   .step_edge_count = b.step_edge_count,
                                   .step_edges = b.step_edges};
    return PEN_OK;
}
