#include "partition/bound/least_costs.h"

#include <math.h>

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
