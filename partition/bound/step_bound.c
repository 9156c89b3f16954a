#include "partition/bound/step_bound.h"

#include <math.h>

#include "base/sets/order.h"
#include "partition/bound/cut_bound.h"
#include "partition/bound/cut_path.h"
#include "partition/bound/kept_edges.h"
#include "partition/bound/least_costs.h"
#include "partition/bound/load_bound.h"

// What the bounds know of nodes and groups.
typedef struct step_bound {
    const pen_problem *problem;
    pen_kept_edges kept;
    double *least;      // [node_count] seconds at its cheapest
    double *begin;      // [node_count] before which no microbatch of it begins
    double *rest;       // [node_count] what is left of a step, at least, when it is done
    double *group_head; // [group_count] least `begin` of its forward nodes
    double *group_tail; // [group_count] least `rest` of its forward and backward-input nodes
} step_bound;

// The way of one microbatch up to each node, and what follows each. Returns the longest.
static double step_bound_walk(step_bound *bound) {
    const pen_problem *problem = bound->problem;
    const uint32_t count = problem->given.node_count;
    double longest = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = problem->node_order[i];
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e];
            if (!pen_kept_edges_has(&bound->kept, u, v)) continue;
            bound->begin[v] = fmax(bound->begin[v], bound->begin[u] + bound->least[u]);
        }
        longest = fmax(longest, bound->begin[v] + bound->least[v]);
    }
    for (uint32_t i = count; i-- > 0;) {
        const uint32_t v = problem->node_order[i];
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e];
            if (!pen_kept_edges_has(&bound->kept, u, v)) continue;
            bound->rest[u] = fmax(bound->rest[u], bound->least[v] + bound->rest[v]);
        }
    }
    return longest;
}

// When the group's first forward node can begin, after others' alone. A group that is not
// contiguous may be several stages: only its first nodes wait.
static double step_bound_ready(const step_bound *bound, uint32_t g) {
    const pen_problem *problem = bound->problem;
    double ready = 0.0;
    bool is_forward = false;
    for (uint32_t m = problem->members.first[g]; m < problem->members.first[g + 1]; m++) {
        const uint32_t v = problem->members.ids[m];
        double begin = 0.0;
        if (!pen_problem_is_forward(&problem->given, v)) continue;
        for (uint32_t e = problem->predecessors.first[v]; e < problem->predecessors.first[v + 1];
             e++) {
            const uint32_t u = problem->predecessors.ids[e];
            if (problem->group_of_node[u] == g || !pen_kept_edges_has(&bound->kept, u, v)) continue;
            begin = fmax(begin, bound->begin[u] + bound->least[u]);
        }
        ready = !is_forward                    ? begin
                : problem->given.is_contiguous ? fmax(ready, begin)
                                               : fmin(ready, begin);
        is_forward = true;
    }
    return ready;
}

// The time until a group can begin, all its work for all microbatches on one device, and what
// follows the last of its tasks. Fills head and tail of the group.
static double step_bound_group(step_bound *bound, uint32_t g) {
    const pen_problem *problem = bound->problem;
    const double microbatches = problem->given.microbatch_count;
    double head = INFINITY, tail = INFINITY, all = 0.0, early = 0.0;
    for (uint32_t m = problem->members.first[g]; m < problem->members.first[g + 1]; m++) {
        const uint32_t v = problem->members.ids[m];
        const pen_role role = problem->given.nodes[v].role;
        const double seconds = bound->least[v];
        all += seconds * (role == PEN_ROLE_UPDATE ? 1.0 : microbatches);
        if (role == PEN_ROLE_FORWARD) head = fmin(head, bound->begin[v]);
        if (role != PEN_ROLE_FORWARD && role != PEN_ROLE_BACKWARD_INPUT) continue;
        early += seconds * microbatches;
        tail = fmin(tail, bound->rest[v]);
    }
    bound->group_head[g] = head < INFINITY ? head : 0.0;
    bound->group_tail[g] = tail < INFINITY ? tail : 0.0;
    return step_bound_ready(bound, g) + fmax(all, early + bound->group_tail[g]);
}

// Work of all devices together, in seconds of the fastest. Devices of several kinds count as if
// each were the best for all.
static void step_bound_work(const step_bound *bound, double *out_all, double *out_early) {
    const pen_problem_given *given = &bound->problem->given;
    double slowness = INFINITY;
    for (uint32_t d = 0; d < given->device_count; d++)
        slowness = fmin(slowness, given->devices[d].slowness);
    *out_all = *out_early = 0.0;
    for (uint32_t v = 0; v < given->node_count; v++) {
        const pen_role role = given->nodes[v].role;
        const double unit = given->kind_count == 1 ? given->compute[v] * slowness : bound->least[v];
        const double seconds = unit * (role == PEN_ROLE_UPDATE ? 1.0 : given->microbatch_count);
        *out_all += seconds;
        if (role == PEN_ROLE_FORWARD || role == PEN_ROLE_BACKWARD_INPUT) *out_early += seconds;
    }
}

// The step in which so many devices as are best do the work, each after its head and before its
// tail. All arrays descend.
static double step_bound_fill(const step_bound *bound, const double *speeds, const double *heads,
                              const double *tails, double work) {
    const uint32_t groups = bound->problem->group_count;
    uint32_t least, most;
    double step = INFINITY, speed = 0.0, idle = 0.0;
    pen_problem_devices_used(bound->problem, &least, &most);
    for (uint32_t k = 0; k < most && k < groups; k++) {
        idle += speeds[k] * (heads[groups - 1 - k] + (tails ? tails[groups - 1 - k] : 0.0));
        speed += speeds[k];
        step = fmin(step, (work + idle) / speed);
    }
    return step < INFINITY ? step : 0.0;
}

// The window of each device: what it does not do while it fills and drains, others have to do.
static pen_status step_bound_windows(const step_bound *bound, pen_arena *arena, double *out_step) {
    const pen_problem_given *given = &bound->problem->given;
    double all, early, fastest = INFINITY, *speeds;
    PEN_TRY(PEN_NEW(arena, given->device_count, &speeds));
    for (uint32_t d = 0; d < given->device_count; d++)
        fastest = fmin(fastest, given->devices[d].slowness);
    for (uint32_t d = 0; d < given->device_count; d++) {
        const double slowness = given->devices[d].slowness;
        speeds[d] = given->kind_count == 1 && slowness > 0.0 ? fastest / slowness : 1.0;
    }
    pen_sort_numbers_down(speeds, given->device_count);
    pen_sort_numbers_down(bound->group_head, bound->problem->group_count);
    pen_sort_numbers_down(bound->group_tail, bound->problem->group_count);
    step_bound_work(bound, &all, &early);
    *out_step = 0.0;
    if (!(all < PEN_PROBLEM_COST_LIMIT) || !(fastest > 0.0)) return PEN_OK;
    *out_step = fmax(step_bound_fill(bound, speeds, bound->group_head, NULL, all),
                     step_bound_fill(bound, speeds, bound->group_head, bound->group_tail, early));
    return PEN_OK;
}

#define STEP_BOUND_ROUNDING 1e-12 // sums are rounded in another order

// Paths and windows are sums in another order than a schedule's, so rounding is taken off them.
pen_status pen_step_bound(const pen_problem *problem, pen_arena *arena, double *out_bound) {
    const pen_problem_given *given = &problem->given;
    const pen_problem *loads;
    step_bound bound = {.problem = problem};
    pen_cut_path path;
    double load, windows;
    PEN_TRY(PEN_NEW(arena, given->node_count, &bound.least));
    PEN_TRY(PEN_NEW(arena, given->node_count, &bound.begin));
    PEN_TRY(PEN_NEW(arena, given->node_count, &bound.rest));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &bound.group_head));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &bound.group_tail));
    PEN_TRY(pen_bound_least_costs(problem, arena, bound.least));
    PEN_TRY(pen_kept_edges_find(problem, arena, &bound.kept));
    double most = step_bound_walk(&bound);
    for (uint32_t g = 0; g < problem->group_count; g++)
        most = fmax(most, step_bound_group(&bound, g));
    PEN_TRY(step_bound_windows(&bound, arena, &windows));
    PEN_TRY(pen_problem_as_throughput(problem, arena, &loads));
    PEN_TRY(pen_load_bound(loads, arena, &load));
    most = fmax(fmax(most, windows), load * given->microbatch_count);
    PEN_TRY(pen_cut_path_find(&bound.kept, bound.least, bound.begin, arena, &path));
    PEN_TRY(pen_cut_bound(&path, given->microbatch_count, most, arena, &most));
    *out_bound = fmax(load * given->microbatch_count, most * (1.0 - STEP_BOUND_ROUNDING));
    return PEN_OK;
}
