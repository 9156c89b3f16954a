#include "partition/bound/replica_bound.h"

#include <math.h>

#include "partition/bound/kept_edges.h"

// What a node takes on a device. Pins bind in one replica only: any device may run it in another.
static double replica_cost(const pen_problem_given *given, uint32_t node, uint32_t device) {
    const pen_problem_device *d = &given->devices[device];
    return given->compute[(uint64_t)d->kind * given->node_count + node] * d->slowness;
}

static bool replica_is_repeated(const pen_problem_given *given, uint32_t node) {
    return given->nodes[node].role != PEN_ROLE_UPDATE;
}

// Of devices that are alike, one is asked: `first` [device_count] is the lowest.
static pen_status replica_find_alike(const pen_problem_given *given, pen_arena *arena,
                                     uint32_t **out_first) {
    uint32_t *first;
    PEN_TRY(PEN_NEW(arena, given->device_count, &first));
    for (uint32_t d = 0; d < given->device_count; d++) {
        while (given->devices[first[d]].kind != given->devices[d].kind ||
               given->devices[first[d]].slowness != given->devices[d].slowness)
            first[d]++;
    }
    *out_first = first;
    return PEN_OK;
}

// Least costs by node, and the weights of devices: what of a microbatch each does in a second.
static double replica_work(const pen_problem_given *given, const uint32_t *first, double *weight,
                           double *least) {
    double all_weight = 0.0, work = 0.0;
    for (uint32_t d = 0; d < given->device_count; d++) {
        double seconds = 0.0;
        for (uint32_t n = 0; n < given->node_count && first[d] == d; n++) {
            const double cost = replica_cost(given, n, d);
            if (replica_is_repeated(given, n) && cost < PEN_PROBLEM_COST_LIMIT) seconds += cost;
        }
        if (first[d] == d) weight[d] = seconds > 0.0 ? 1.0 / seconds : 0.0;
        if (first[d] != d) weight[d] = weight[first[d]];
        all_weight += weight[d];
    }
    for (uint32_t n = 0; n < given->node_count; n++) {
        double weighed = INFINITY;
        least[n] = INFINITY;
        for (uint32_t d = 0; d < given->device_count; d++) {
            if (first[d] != d) continue;
            least[n] = fmin(least[n], replica_cost(given, n, d));
            weighed = fmin(weighed, weight[d] * replica_cost(given, n, d));
        }
        if (replica_is_repeated(given, n)) work += weighed;
    }
    return all_weight > 0.0 ? given->microbatch_count * work / all_weight : 0.0;
}

// The longest way of a microbatch, each node at its cheapest.
static pen_status replica_path(const pen_problem *problem, const double *least, pen_arena *arena,
                               double *out_longest) {
    const pen_problem_given *given = &problem->given;
    pen_kept_edges kept;
    double *finish, longest = 0.0;
    PEN_TRY(pen_kept_edges_find(problem, arena, &kept));
    PEN_TRY(PEN_NEW(arena, given->node_count, &finish));
    for (uint32_t i = 0; i < given->node_count; i++) {
        const uint32_t v = problem->node_order[i];
        double ready = 0.0;
        if (!replica_is_repeated(given, v)) continue;
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e];
            if (pen_kept_edges_has(&kept, u, v)) ready = fmax(ready, finish[u]);
        }
        finish[v] = ready + least[v];
        longest = fmax(longest, finish[v]);
    }
    *out_longest = longest;
    return PEN_OK;
}

pen_status pen_replica_bound(const pen_problem *problem, pen_arena *arena, double *out_bound) {
    const pen_problem_given *given = &problem->given;
    double *weight, *least, path;
    uint32_t *first;
    PEN_TRY(PEN_NEW(arena, given->device_count, &weight));
    PEN_TRY(PEN_NEW(arena, given->node_count, &least));
    PEN_TRY(replica_find_alike(given, arena, &first));
    const double work = replica_work(given, first, weight, least);
    PEN_TRY(replica_path(problem, least, arena, &path));
    const double bound = fmax(work, path);
    *out_bound = bound < PEN_PROBLEM_COST_LIMIT ? bound : 0.0;
    return PEN_OK;
}
