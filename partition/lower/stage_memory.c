#include "partition/lower/stage_memory.h"

#include "base/integer.h"
#include "graph/analysis/memory_plan.h"
#include "graph/graph.h"

// How the nodes of a stage read a value.
typedef enum extra_use {
    EXTRA_FORWARD = 1,
    EXTRA_LATER = 2,
    EXTRA_WEIGHT = 4,
} extra_use;

static unsigned extra_use_of(pen_role role) {
    switch (role) {
    case PEN_ROLE_FORWARD:
    case PEN_ROLE_TRANSFER:
        return EXTRA_FORWARD;
    case PEN_ROLE_BACKWARD_WEIGHT:
        return EXTRA_LATER | EXTRA_WEIGHT;
    case PEN_ROLE_BACKWARD_INPUT:
    case PEN_ROLE_UPDATE:
        return EXTRA_LATER;
    }
    PEN_NEVER("a node has one of the roles");
}

// Adds what stage `s`, that uses the root in ways of `uses`, keeps of it.
static void extra_add(pen_stage_extra *extra, pen_role maker_role, bool is_own, unsigned uses,
                      uint64_t bytes) {
    if (maker_role == PEN_ROLE_BACKWARD_INPUT) {
        if ((uses & EXTRA_WEIGHT) != 0) extra->halved += bytes;
        return;
    }
    const bool is_forward = maker_role == PEN_ROLE_FORWARD || maker_role == PEN_ROLE_TRANSFER;
    if (is_forward && !is_own && uses == EXTRA_FORWARD) extra->received_again += bytes;
}

// Values that the half for inputs leaves for the half for weights: they live longer than with whole
// backward tasks.
pen_status pen_stage_memory_extra(const pen_planned_graph *planned,
                                  const pen_forward_owners *owners, const pen_stage_split *split,
                                  pen_arena *arena, pen_stage_extra **out_extra) {
    pen_stage_extra *extra;
    uint8_t *uses; // [stage_count] of the root at hand
    PEN_TRY(PEN_NEW(arena, split->stage_count, &extra));
    PEN_TRY(PEN_NEW(arena, split->stage_count, &uses));
    for (uint32_t v = 0; v < owners->value_count; v++) {
        const pen_value *value = pen_graph_value(owners->graph, (pen_value_id){v});
        const bool is_made = pen_node_is(value->producer);
        if (owners->root[v] != v || (!is_made && value->kind != PEN_VALUE_INPUT)) continue;
        const pen_role role =
            is_made ? pen_graph_node(owners->graph, value->producer)->role : PEN_ROLE_FORWARD;
        const uint32_t maker = is_made ? split->stage_of_node[value->producer.index] : PEN_ID_NONE;
        const uint64_t bytes = pen_align_up(planned->bytes_of_value[v], PEN_MEMORY_ALIGNMENT);
        for (uint32_t u = owners->user_first[v]; u < owners->user_first[v + 1]; u++) {
            const pen_node_id user = {owners->user_nodes[u]};
            const uint32_t s = split->stage_of_node[user.index];
            uses[s] = (uint8_t)(uses[s] | extra_use_of(pen_graph_node(owners->graph, user)->role));
        }
        for (uint32_t u = owners->user_first[v]; u < owners->user_first[v + 1]; u++) {
            const uint32_t s = split->stage_of_node[owners->user_nodes[u]];
            if (uses[s] != 0) extra_add(&extra[s], role, s == maker, uses[s], bytes);
            uses[s] = 0;
        }
    }
    *out_extra = extra;
    return PEN_OK;
}

pen_stage_memory pen_stage_memory_recomputed(const pen_stage_memory *memory,
                                             const pen_stage_extra *extra) {
    pen_stage_memory recomputed = *memory;
    recomputed.workspace += memory->activations;
    recomputed.activations = 0;
    recomputed.received_kept += extra->received_again;
    recomputed.received_passing -= pen_min_u64(memory->received_passing, extra->received_again);
    return recomputed;
}
