#include "partition/bound/bounds.h"

#include <math.h>

#include "partition/bound/least_costs.h"
#include "partition/bound/load_bound.h"
#include "partition/bound/step_bound.h"
#include "partition/bound/traffic_bound.h"

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
