#include "partition/replicas/replica_owners.h"

#include "base/sets/disjoint_sets.h"
#include "graph/graph.h"

// Joins listed nodes between whose updates tensors go: sums of several uses. Norms and scales go
// to everybody and join nothing.
static pen_status owners_join(const pen_planned_graph *planned, const pen_forward_owners *owners,
                              pen_arena *arena, pen_disjoint_sets *out_sets) {
    PEN_TRY(pen_disjoint_sets_new(owners->node_count, arena, out_sets));
    for (uint32_t p = 0; p < planned->order_count; p++) {
        const pen_node_id id = planned->order[p];
        const pen_node *node = pen_graph_node(owners->graph, id);
        if (node->role != PEN_ROLE_UPDATE) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_value *value = pen_graph_value(owners->graph, node->inputs[i]);
            if (!pen_node_is(value->producer) || value->type.shape.rank == 0) continue;
            pen_disjoint_sets_join(out_sets, owners->listed[id.index],
                                   owners->listed[value->producer.index]);
        }
    }
    return PEN_OK;
}

// The largest goes first, to the owner that has least.
pen_status pen_replica_owners_choose(const pen_planned_graph *planned,
                                     const pen_forward_owners *owners, uint32_t count,
                                     pen_arena *arena, const uint32_t **out_owner) {
    const uint32_t node_count = owners->node_count;
    pen_disjoint_sets sets;
    uint64_t *bytes, *had;
    uint32_t *owner;
    PEN_TRY(owners_join(planned, owners, arena, &sets));
    PEN_TRY(PEN_NEW(arena, node_count, &bytes));
    PEN_TRY(PEN_NEW(arena, node_count, &owner));
    PEN_TRY(PEN_NEW(arena, count, &had));
    for (uint32_t v = 0; v < owners->value_count; v++) {
        const pen_value *value = pen_graph_value(owners->graph, (pen_value_id){v});
        if (!pen_node_is(value->producer) || !pen_value_is(value->replaces)) continue;
        if (pen_graph_node(owners->graph, value->producer)->role != PEN_ROLE_UPDATE) continue;
        const uint32_t node = owners->listed[value->producer.index];
        bytes[pen_disjoint_sets_find(&sets, node)] += planned->bytes_of_value[v];
    }
    for (;;) {
        uint32_t largest = node_count, least = 0;
        for (uint32_t n = 0; n < node_count; n++) {
            if (bytes[n] > 0 && (largest == node_count || bytes[n] > bytes[largest])) largest = n;
        }
        if (largest == node_count) break;
        for (uint32_t r = 1; r < count; r++) {
            if (had[r] < had[least]) least = r;
        }
        owner[largest] = least;
        had[least] += bytes[largest];
        bytes[largest] = 0;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        owner[n] = owner[pen_disjoint_sets_find(&sets, n)];
    }
    *out_owner = owner;
    return PEN_OK;
}

pen_status pen_replica_owners_check(const pen_planned_graph *planned,
                                    const pen_forward_owners *owners, const uint32_t *owner,
                                    const uint32_t *stage, pen_arena *arena) {
    pen_disjoint_sets sets;
    PEN_TRY(owners_join(planned, owners, arena, &sets));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const uint32_t with = owners->listed[pen_disjoint_sets_find(&sets, n)];
        if (!owners->is_listed[n] || owner[n] == owner[with]) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' is updated in stage %u and '%s' in stage %u, but they share a "
                         "parameter: expected one owner",
                         pen_node_name(owners->graph, (pen_node_id){n}), stage[n],
                         pen_node_name(owners->graph, (pen_node_id){with}), stage[with]);
    }
    return PEN_OK;
}
