#include "partition/bound/step_bound.h"

#include <math.h>

#include "graph/graph.h"
#include "partition/bound/least_costs.h"
#include "partition/bound/load_bound.h"

// Whether a forward node of group `reader` reads one of group `owner`.
static bool step_bound_is_after(const pen_problem *problem, uint32_t owner, uint32_t reader) {
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

// Whether the stages of every right placement make node v wait for node u, which it reads. Groups
// of one group are in one stage, but that forward nodes of a problem that is not contiguous may be
// in lower ones.
static bool step_bound_keeps(const pen_problem *problem, uint32_t u, uint32_t v) {
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
            return owner == reader ||
                   (is_moved && is_contiguous && step_bound_is_after(problem, reader, owner));
        }
        return source == target && owner == reader; // weight after weight
    case PEN_ROLE_UPDATE:
        return owner == reader && (source != PEN_ROLE_FORWARD || is_contiguous);
    case PEN_ROLE_TRANSFER:
        break;
    }
    PEN_NEVER("problems have no transfer nodes");
}

// Two bounds: the longest path of one microbatch, and for each group the time until it can begin
// and then all its work for all microbatches on one device.
static pen_status step_bound_paths(const pen_problem *problem, pen_arena *arena,
                                   double *out_bound) {
    const pen_problem_given *given = &problem->given;
    double *least, *finish; // of nodes
    double *ready, *work;   // of groups: when its forward nodes begin, and what it has to do
    bool *is_forward;       // of groups: has a forward node
    double bound = 0.0;
    PEN_TRY(PEN_NEW(arena, given->node_count, &least));
    PEN_TRY(PEN_NEW(arena, given->node_count, &finish));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &ready));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &work));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &is_forward));
    PEN_TRY(pen_bound_least_costs(problem, arena, least));
    for (uint32_t i = 0; i < given->node_count; i++) {
        const uint32_t v = problem->node_order[i], g = problem->group_of_node[v];
        double begin = 0.0, begin_group = 0.0; // the latter after other groups alone
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e];
            if (!step_bound_keeps(problem, u, v)) continue;
            begin = fmax(begin, finish[u]);
            if (problem->group_of_node[u] != g) begin_group = fmax(begin_group, finish[u]);
        }
        finish[v] = begin + least[v];
        bound = fmax(bound, finish[v]);
        const bool is_once = given->nodes[v].role == PEN_ROLE_UPDATE;
        work[g] += least[v] * (is_once ? 1.0 : given->microbatch_count);
        if (given->nodes[v].role != PEN_ROLE_FORWARD) continue;
        // a group that is not contiguous may be several stages: only its first nodes wait
        ready[g] = !is_forward[g]         ? begin_group
                   : given->is_contiguous ? fmax(ready[g], begin_group)
                                          : fmin(ready[g], begin_group);
        is_forward[g] = true;
    }
    for (uint32_t g = 0; g < problem->group_count; g++)
        bound = fmax(bound, (is_forward[g] ? ready[g] : 0.0) + work[g]);
    *out_bound = bound;
    return PEN_OK;
}

pen_status pen_step_bound(const pen_problem *problem, pen_arena *arena, double *out_bound) {
    const pen_problem *loads;
    double load, path;
    PEN_TRY(pen_problem_as_throughput(problem, arena, &loads));
    PEN_TRY(pen_load_bound(loads, arena, &load));
    PEN_TRY(step_bound_paths(problem, arena, &path));
    *out_bound = fmax(load * problem->given.microbatch_count, path);
    return PEN_OK;
}
