#include "partition/replicas/replica_exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/yaml_writer.h"
#include "base/integer.h"
#include "graph/analysis/memory_plan.h"
#include "graph/graph.h"
#include "graph/lanes.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "partition/replicas/replica_view.h"

#define EXCHANGE_ADD_PASSES 3.0 // over memory, to add what came
#define EXCHANGE_COPY_PASSES 2.0

// A value on its way.
typedef struct exchange_item {
    uint32_t value;
    uint32_t source; // stages
    uint32_t target;
    uint32_t phase;
    uint64_t bytes;
} exchange_item;

typedef struct exchange_builder {
    const pen_replica_exchange_request *request;
    const pen_forward_owners *owners;
    const pen_planned_graph *planned;
    pen_arena *arena;
    exchange_item *items;
    uint32_t count;
    uint32_t capacity;
    uint32_t *update_stage; // [node_count]
    uint32_t *phase;        // [node_count]
    uint32_t *stamp;        // [stage_count], root + 1 for targets that have it already
    uint32_t *updater;      // [value_count], of parameters
    double *update_seconds;
    uint64_t *received;
    uint64_t *optimizer;
    uint64_t *updated;
} exchange_builder;

static const pen_node *exchange_node(const exchange_builder *b, uint32_t node) {
    return pen_graph_node(b->owners->graph, (pen_node_id){node});
}

static uint32_t exchange_update_stage(const exchange_builder *b, uint32_t node) {
    return b->update_stage[b->owners->listed[node]];
}

static uint32_t exchange_device(const exchange_builder *b, uint32_t stage) {
    return b->request->device_of_stage[stage];
}

// Lists what goes from stage to stage, with what the target's device does with it.
static pen_status exchange_add(exchange_builder *b, exchange_item item) {
    const uint32_t to = exchange_device(b, item.target);
    if (item.source == item.target || item.bytes == 0) return PEN_OK;
    if (b->count == b->capacity) {
        exchange_item *larger;
        b->capacity = b->capacity > 0 ? 2 * b->capacity : 64;
        PEN_TRY(PEN_NEW(b->arena, b->capacity, &larger));
        if (b->count > 0) memcpy(larger, b->items, b->count * sizeof *larger);
        b->items = larger;
    }
    b->items[b->count++] = item;
    if (exchange_device(b, item.source) == to) return PEN_OK;
    const double passes = item.phase == 0 ? EXCHANGE_ADD_PASSES : EXCHANGE_COPY_PASSES;
    b->update_seconds[item.target] +=
        passes * (double)item.bytes / b->request->whole->cluster->devices[to].memory_bandwidth;
    const pen_cluster_device *devices = b->request->whole->cluster->devices;
    if (devices[exchange_device(b, item.source)].process != devices[to].process) {
        b->received[to] += pen_align_up(item.bytes, PEN_MEMORY_ALIGNMENT);
    } // within a process the target reads it where it was made
    return PEN_OK;
}

// A state that the forward pass reads, as asynchronous lanes do, is with each reader too.
static void exchange_copy_state(exchange_builder *b, uint32_t state, uint32_t device,
                                uint64_t bytes) {
    const pen_forward_owners *owners = b->owners;
    for (uint32_t u = owners->user_first[state]; u < owners->user_first[state + 1]; u++) {
        const uint32_t user = owners->user_nodes[u];
        if (exchange_node(b, user)->role == PEN_ROLE_UPDATE) continue;
        for (uint32_t r = 0; r < b->request->replica_count; r++) {
            const uint32_t reader = exchange_device(b, b->request->stage_of_node[r][user]);
            if (reader != device) b->optimizer[reader] += bytes;
        }
    }
}

// The first stages of those that update; what each holds and takes.
static void exchange_place_updates(exchange_builder *b) {
    const pen_replica_exchange_request *request = b->request;
    for (uint32_t n = 0; n < b->owners->node_count; n++) {
        const uint32_t owner = request->owner_of_node[n];
        b->update_stage[n] = request->owner_stage != PEN_ID_NONE ? request->owner_stage + owner
                                                                 : request->stage_of_node[owner][n];
    }
    for (uint32_t p = 0; p < b->planned->order_count; p++) {
        const pen_node_id id = b->planned->order[p];
        const pen_node *node = exchange_node(b, id.index);
        if (node->role != PEN_ROLE_UPDATE) continue;
        const uint32_t stage = exchange_update_stage(b, id.index);
        const uint32_t device = exchange_device(b, stage);
        b->update_seconds[stage] += pen_cost_model_at(request->whole->costs, device, id)->seconds;
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            const pen_value_id old = pen_graph_value(b->owners->graph, node->outputs[i])->replaces;
            if (!pen_value_is(old)) continue;
            const pen_value *value = pen_graph_value(b->owners->graph, old);
            const uint64_t bytes =
                pen_align_up(b->planned->bytes_of_value[old.index], PEN_MEMORY_ALIGNMENT);
            b->updater[old.index] = id.index;
            if (value->kind == PEN_VALUE_PARAMETER) b->updated[device] += bytes;
            if (value->kind != PEN_VALUE_STATE || value->data != NULL) continue;
            b->optimizer[device] += bytes;
            exchange_copy_state(b, old.index, device, bytes);
        }
    }
}

// Sums are whole at their owner in phase 1; what comes from another stage is there a phase later.
static void exchange_find_phases(exchange_builder *b) {
    for (uint32_t p = 0; p < b->planned->order_count; p++) {
        const uint32_t n = b->planned->order[p].index;
        const pen_node *node = exchange_node(b, n);
        if (node->role != PEN_ROLE_UPDATE) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_value_id input = {b->owners->root[node->inputs[i].index]};
            const pen_node_id maker = pen_graph_value(b->owners->graph, input)->producer;
            if (!pen_node_is(maker) || !pen_forward_owners_is_per_step(b->owners, input)) continue;
            const bool is_update = exchange_node(b, maker.index)->role == PEN_ROLE_UPDATE;
            const bool is_own =
                exchange_update_stage(b, maker.index) == exchange_update_stage(b, n);
            const uint32_t least = (is_update ? b->phase[maker.index] : 1) + (is_own ? 0 : 1);
            if (least > b->phase[n]) b->phase[n] = least;
        }
    }
}

static uint32_t exchange_share(const exchange_builder *b, uint32_t replica) {
    const pen_plan_replica *r = &b->request->replicas[replica];
    return pen_replica_microbatch(b->request->whole, r->first_lane + r->lane_count) -
           pen_replica_microbatch(b->request->whole, r->first_lane);
}

// Bytes of a sum that a replica sends: blocks of lanes; of rows those of its microbatches.
static uint64_t exchange_sum_bytes(const exchange_builder *b, uint32_t root, uint32_t replica) {
    const pen_value *value = pen_graph_value(b->owners->graph, (pen_value_id){root});
    const pen_node *node = pen_graph_node(b->owners->graph, value->producer);
    const pen_plan_replica *r = &b->request->replicas[replica];
    pen_lane_block blocks[PEN_LANE_BLOCKS];
    uint64_t bytes = b->planned->bytes_of_value[root];
    if (node->op == PEN_OP(stack_rows)) {
        return bytes * exchange_share(b, replica) / b->planned->microbatch_count;
    }
    if (pen_replica_is_stack(b->owners->graph, value)) {
        bytes = b->planned->bytes_of_value[node->inputs[0].index];
        if (pen_replica_is_apart(b->owners->graph, value)) return bytes * r->lane_count;
    }
    return bytes * pen_lane_blocks(r->first_lane, r->first_lane + r->lane_count, blocks);
}

// From every replica to the owner, and on to other stages that read the total.
static pen_status exchange_sum(exchange_builder *b, uint32_t root, uint32_t maker) {
    const pen_forward_owners *owners = b->owners;
    const uint32_t owner = exchange_update_stage(b, maker);
    bool is_read = false;
    b->stamp[owner] = root + 1;
    for (uint32_t u = owners->user_first[root]; u < owners->user_first[root + 1]; u++) {
        const uint32_t user = owners->user_nodes[u];
        if (exchange_node(b, user)->role != PEN_ROLE_UPDATE) continue;
        const uint32_t target = exchange_update_stage(b, user);
        is_read = true;
        if (b->stamp[target] == root + 1) continue;
        b->stamp[target] = root + 1;
        PEN_TRY(exchange_add(
            b, (exchange_item){root, owner, target, 1, b->planned->bytes_of_value[root]}));
    }
    for (uint32_t r = 0; r < b->request->replica_count && is_read; r++) {
        const uint32_t source = b->request->stage_of_node[r][maker];
        PEN_TRY(exchange_add(
            b, (exchange_item){root, source, owner, 0, exchange_sum_bytes(b, root, r)}));
    }
    return PEN_OK;
}

// What updates pass on to each other: joined sums, norms, scales.
static pen_status exchange_between(exchange_builder *b, uint32_t root, uint32_t maker) {
    const pen_forward_owners *owners = b->owners;
    const uint32_t source = exchange_update_stage(b, maker);
    b->stamp[source] = root + 1;
    for (uint32_t u = owners->user_first[root]; u < owners->user_first[root + 1]; u++) {
        const uint32_t user = owners->user_nodes[u];
        if (exchange_node(b, user)->role != PEN_ROLE_UPDATE) continue;
        const uint32_t target = exchange_update_stage(b, user);
        if (b->stamp[target] == root + 1) continue;
        b->stamp[target] = root + 1;
        PEN_TRY(exchange_add(b, (exchange_item){root, source, target, b->phase[maker],
                                                b->planned->bytes_of_value[root]}));
    }
    return PEN_OK;
}

// A new value, to all stages that have a copy.
static pen_status exchange_parameter(exchange_builder *b, uint32_t root) {
    const pen_forward_owners *owners = b->owners;
    const uint32_t updater = b->updater[root];
    const uint32_t source = exchange_update_stage(b, updater);
    b->stamp[source] = root + 1;
    for (uint32_t u = owners->user_first[root]; u < owners->user_first[root + 1]; u++) {
        const uint32_t user = owners->user_nodes[u];
        if (exchange_node(b, user)->role == PEN_ROLE_UPDATE) continue;
        for (uint32_t r = 0; r < b->request->replica_count; r++) {
            const uint32_t target = b->request->stage_of_node[r][user];
            if (b->stamp[target] == root + 1) continue;
            b->stamp[target] = root + 1;
            PEN_TRY(exchange_add(b, (exchange_item){root, source, target, b->phase[updater],
                                                    b->planned->bytes_of_value[root]}));
        }
    }
    return PEN_OK;
}

// A running statistic: of every microbatch to the first replica, which evaluates with what they
// come to; the others do not read it.
static pen_status exchange_statistic(exchange_builder *b, uint32_t state, uint32_t changer) {
    const pen_node *node = exchange_node(b, changer);
    const uint32_t owner = b->request->stage_of_node[0][changer];
    const pen_tensor_type *type = pen_value_type(b->owners->graph, (pen_value_id){state});
    const uint64_t bytes = // rows are not rounded to the type of what they go into
        (uint64_t)pen_shape_element_count(&type->shape) * pen_element_bytes(PEN_FLOAT64);
    bool is_statistic = false;
    if (b->request->replica_count == 1) return PEN_OK;
    for (uint32_t i = 0; i < node->input_count && i < 64; i++) {
        if (node->inputs[i].index != state) continue;
        is_statistic = is_statistic || (node->op->statistics_inputs >> i & 1) != 0;
    }
    if (!is_statistic) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s' leaves a state to the next microbatch: replicas cannot run it",
                         pen_node_name(b->owners->graph, (pen_node_id){changer}));
    }
    for (uint32_t r = 0; r < b->request->replica_count; r++) {
        const uint32_t stage = b->request->stage_of_node[r][changer];
        PEN_TRY(
            exchange_add(b, (exchange_item){state, stage, owner, 0, bytes * exchange_share(b, r)}));
    }
    return PEN_OK;
}

static pen_status exchange_value(exchange_builder *b, uint32_t v) {
    const pen_value *value = pen_graph_value(b->owners->graph, (pen_value_id){v});
    if (b->owners->root[v] != v) return PEN_OK;
    if (!pen_node_is(value->producer)) {
        return b->updater[v] != PEN_ID_NONE ? exchange_parameter(b, v) : PEN_OK;
    }
    const uint32_t maker = value->producer.index;
    const pen_role role = exchange_node(b, maker)->role;
    if (role == PEN_ROLE_UPDATE) return exchange_between(b, v, maker);
    if (role == PEN_ROLE_FORWARD && pen_value_is(value->replaces)) {
        return exchange_statistic(b, value->replaces.index, maker);
    }
    if (!pen_forward_owners_is_per_step(b->owners, (pen_value_id){v})) return PEN_OK;
    return exchange_sum(b, v, maker);
}

static int exchange_compare(const void *left, const void *right) {
    const exchange_item *a = left, *b = right;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    if (a->phase != b->phase) return a->phase < b->phase ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

static void exchange_round(pen_stage_step_edge *edge) {
    edge->seconds = pen_yaml_round(edge->seconds, PEN_UNIT_SECONDS);
    edge->handling.latency_seconds =
        pen_yaml_round(edge->handling.latency_seconds, PEN_UNIT_SECONDS);
    edge->handling.send_seconds = pen_yaml_round(edge->handling.send_seconds, PEN_UNIT_SECONDS);
    edge->handling.receive_seconds =
        pen_yaml_round(edge->handling.receive_seconds, PEN_UNIT_SECONDS);
}

// Prices of links; what leaves together for one stage is an edge. Rounded as a plan's file has
// them.
static pen_status exchange_write(exchange_builder *b, pen_replica_exchange *out_exchange) {
    const pen_cluster *cluster = b->request->whole->cluster;
    pen_stage_step_edge *edges;
    pen_plan_transfer *transfers;
    uint32_t edge_count = 0, transfer_count = 0, phase_count = 1;
    PEN_TRY(PEN_NEW(b->arena, b->count, &edges));
    PEN_TRY(PEN_NEW(b->arena, b->count, &transfers));
    if (b->count > 0) qsort(b->items, b->count, sizeof *b->items, exchange_compare);
    for (uint32_t i = 0; i < b->count; i++) {
        const exchange_item *item = &b->items[i];
        const uint32_t from = exchange_device(b, item->source);
        const uint32_t to = exchange_device(b, item->target);
        pen_stage_step_edge *edge = edge_count > 0 ? &edges[edge_count - 1] : NULL;
        if (edge == NULL || edge->source != item->source || edge->target != item->target ||
            edge->phase != item->phase) {
            edge = &edges[edge_count++];
            *edge = (pen_stage_step_edge){
                .source = item->source, .target = item->target, .phase = item->phase};
        }
        edge->bytes += (double)item->bytes;
        if (item->phase + 2 > phase_count) phase_count = item->phase + 2;
        if (from == to) continue;
        const pen_cluster_link *link = pen_cluster_link_at(cluster, from, to);
        const pen_link_handling handling = pen_link_ends(link);
        const double seconds = (double)item->bytes / link->bandwidth;
        edge->seconds += seconds;
        pen_stage_handling_add(&edge->handling, &handling, link->latency, (double)item->bytes);
        transfers[transfer_count++] = (pen_plan_transfer){
            .value = pen_value_name(b->owners->graph, (pen_value_id){item->value}),
            .source = item->source,
            .target = item->target,
            .bytes = item->bytes,
            .seconds = seconds + link->latency,
            .is_backward = true,
            .is_per_step = true};
    }
    for (uint32_t e = 0; e < edge_count; e++) {
        exchange_round(&edges[e]);
    }
    *out_exchange = (pen_replica_exchange){.edge_count = edge_count,
                                           .edges = edges,
                                           .phase_count = phase_count,
                                           .transfer_count = transfer_count,
                                           .transfers = transfers,
                                           .update_stage = b->update_stage,
                                           .update_seconds = b->update_seconds,
                                           .received_bytes = b->received,
                                           .optimizer_bytes = b->optimizer,
                                           .updated_bytes = b->updated};
    return PEN_OK;
}

// Updates get their stages first, then phases; then every value is asked who else needs it.
pen_status pen_replica_exchange_find(const pen_replica_exchange_request *request, pen_arena *arena,
                                     pen_replica_exchange *out_exchange) {
    const pen_forward_owners *owners = request->owners;
    const uint32_t device_count = request->whole->cluster->device_count;
    exchange_builder b = {
        .request = request, .owners = owners, .planned = request->whole->planned, .arena = arena};
    PEN_TRY(PEN_NEW(arena, owners->node_count, &b.update_stage));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &b.phase));
    PEN_TRY(PEN_NEW(arena, request->stage_count, &b.stamp));
    PEN_TRY(PEN_NEW(arena, owners->value_count, &b.updater));
    PEN_TRY(PEN_NEW(arena, request->stage_count, &b.update_seconds));
    PEN_TRY(PEN_NEW(arena, device_count, &b.received));
    PEN_TRY(PEN_NEW(arena, device_count, &b.optimizer));
    PEN_TRY(PEN_NEW(arena, device_count, &b.updated));
    memset(b.updater, 0xff, owners->value_count * sizeof *b.updater);
    exchange_place_updates(&b);
    exchange_find_phases(&b);
    for (uint32_t v = 0; v < owners->value_count; v++) {
        PEN_TRY(exchange_value(&b, v));
    }
    return exchange_write(&b, out_exchange);
}
