#include "partition/bound/bounds.h"

#include <math.h>

#include "partition/bound/load_bound.h"
#include "partition/bound/step_bound.h"
#include "partition/bound/traffic_bound.h"

// The least that a node can cost on any device that may have it: the fastest of each kind, or the
// one it is pinned to.
pen_status pen_bound_least_costs(const pen_problem *problem, pen_arena *arena, double *out_least) {
    const pen_problem_given *given = &problem->given;
    double *slowness; // [kind_count] least of the devices of the kind
    PEN_TRY(PEN_NEW(arena, given->kind_count, &slowness));
    for (uint32_t k = 0; k < given->kind_count; k++)
        slowness[k] = INFINITY;
    for (uint32_t d = 0; d < given->device_count; d++) {
        const pen_problem_device *device = &given->devices[d];
        slowness[device->kind] = fmin(slowness[device->kind], device->slowness);
    }
    for (uint32_t v = 0; v < given->node_count; v++) {
        const uint32_t g = problem->group_of_node[v];
        const uint32_t pin = problem->group_pin[g];
        out_least[v] = INFINITY;
        for (uint32_t k = 0; k < given->kind_count; k++) {
            if (pin != PEN_PROBLEM_ANY && given->devices[pin].kind != k) continue;
            if (slowness[k] == INFINITY) continue;
            if (!(problem->group_compute[(uint64_t)k * problem->group_count + g] <
                  PEN_PROBLEM_COST_LIMIT)) {
                continue;
            }
            const double factor =
                pin != PEN_PROBLEM_ANY ? given->devices[pin].slowness : slowness[k];
            out_least[v] =
                fmin(out_least[v], given->compute[(uint64_t)k * given->node_count + v] * factor);
        }
    }
    return PEN_OK;
}

static pen_status bound_latency(const pen_problem *problem, pen_arena *arena, double *out_bound) {
    const pen_problem_given *given = &problem->given;
    double *least, *finish, longest = 0.0;
    PEN_TRY(PEN_NEW(arena, given->node_count, &least));
    PEN_TRY(PEN_NEW(arena, given->node_count, &finish));
    PEN_TRY(pen_bound_least_costs(problem, arena, least));
    for (uint32_t i = 0; i < given->node_count; i++) {
        const uint32_t v = problem->node_order[i];
        double ready = 0.0;
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            ready = fmax(ready, finish[problem->predecessors.ids[e]]);
        }
        finish[v] = ready + least[v];
        longest = fmax(longest, finish[v]);
    }
    *out_bound = longest;
    return PEN_OK;
}

pen_status pen_bound(const pen_problem *problem, pen_arena *arena, double *out_bound) {
    switch (problem->given.objective) {
    case PEN_OBJECTIVE_THROUGHPUT:
        return pen_load_bound(problem, arena, out_bound);
    case PEN_OBJECTIVE_LATENCY:
        return bound_latency(problem, arena, out_bound);
    case PEN_OBJECTIVE_STEP_TIME:
        return pen_step_bound(problem, arena, out_bound);
    case PEN_OBJECTIVE_TRAFFIC:
        return pen_traffic_bound(problem, arena, out_bound);
    }
    PEN_NEVER("an objective is one of the enum");
}
