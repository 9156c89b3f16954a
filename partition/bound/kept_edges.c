#include "partition/bound/kept_edges.h"

// Whether a forward node of group `reader` reads one of group `owner`.
static bool kept_edges_is_after(const pen_problem *problem, uint32_t owner, uint32_t reader) {
    uint32_t low = problem->after.first[owner], high = problem->after.first[owner + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (problem->after.ids[middle] == reader) return true;
        if (problem->after.ids[middle] < reader) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

// Whether the group's backward nodes are in a stage that is no higher than that of forward readers:
// they go with the last of the group's stages, which then is that of `sink`.
pen_status pen_kept_edges_find(const pen_problem *problem, pen_arena *arena,
                               pen_kept_edges *out_kept) {
    uint32_t *sink; // [group_count] the last of its forward nodes, or PEN_PROBLEM_ANY
    const pen_problem_given *given = &problem->given;
    *out_kept = (pen_kept_edges){.problem = problem};
    PEN_TRY(PEN_NEW(arena, problem->group_count, &sink));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &out_kept->gathers));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        sink[g] = PEN_PROBLEM_ANY;
        out_kept->gathers[g] = true;
    }
    for (uint32_t v = 0; v < given->node_count; v++) {
        const uint32_t g = problem->group_of_node[v];
        bool is_last = true, is_read = false; // within the group, by others
        if (!pen_problem_is_forward(given, v)) continue;
        for (uint32_t e = problem->successors.first[v]; e < problem->successors.first[v + 1]; e++) {
            const uint32_t w = problem->successors.ids[e];
            if (!pen_problem_is_forward(given, w)) continue;
            if (problem->group_of_node[w] == g) is_last = false;
            if (problem->group_of_node[w] != g) is_read = true;
        }
        if (is_last && sink[g] != PEN_PROBLEM_ANY) out_kept->gathers[g] = false;
        if (is_last) sink[g] = v;
        if (!is_last && is_read) out_kept->gathers[g] = false;
    }
    return PEN_OK;
}

// Whether the stages of every right placement make node v wait for node u, which it reads. Groups
// of one group are in one stage, but that forward nodes of a problem that is not contiguous may be
// in lower ones.
bool pen_kept_edges_has(const pen_kept_edges *kept, uint32_t u, uint32_t v) {
    const pen_problem *problem = kept->problem;
    const pen_role source = problem->given.nodes[u].role, target = problem->given.nodes[v].role;
    const uint32_t owner = problem->group_of_node[u], reader = problem->group_of_node[v];
    const bool is_moved = problem->given.nodes[u].transfer > 0.0;
    const bool is_contiguous = problem->given.is_contiguous;
    switch (target) {
    case PEN_ROLE_FORWARD:
        return source == PEN_ROLE_FORWARD;
    case PEN_ROLE_BACKWARD_INPUT:
    case PEN_ROLE_BACKWARD_WEIGHT:
        if (source == PEN_ROLE_FORWARD) return owner == reader || is_moved;
        if (source == PEN_ROLE_BACKWARD_INPUT) {
            return owner == reader || (is_moved && (is_contiguous || kept->gathers[reader]) &&
                                       kept_edges_is_after(problem, reader, owner));
        }
        return source == target && owner == reader; // weight after weight
    case PEN_ROLE_UPDATE:
        return owner == reader && (source != PEN_ROLE_FORWARD || is_contiguous);
    case PEN_ROLE_TRANSFER:
        break;
    }
    PEN_NEVER("problems have no transfer nodes");
}
