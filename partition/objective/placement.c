#include "partition/objective/placement.h"

#include <math.h>
#include <string.h>

#include "base/sets/components.h"
#include "partition/objective/latency.h"
#include "partition/objective/step_time.h"
#include "partition/problem/problem_lists.h"

// What moving a result over a link adds to the load of each end.
static double placement_link_cost(const pen_problem_given *given, double transfer, uint32_t from,
                                  uint32_t to) {
    const uint64_t at = (uint64_t)from * given->device_count + to;
    const bool has_latency = given->link_latency != NULL && transfer > 0.0;
    return transfer * given->link[at] + (has_latency ? given->link_latency[at] : 0.0);
}

// Loads, bytes and traffic, from the nodes alone.
static pen_status placement_sum(const pen_problem *problem, pen_arena *arena,
                                pen_placement *placement) {
    const pen_problem_given *given = &problem->given;
    const uint32_t *device_of_node = placement->device_of_node;
    double *load = placement->load;
    uint32_t *read_on; // of each device: 1 + the last node that it was charged for
    PEN_TRY(PEN_NEW(arena, given->device_count, &read_on));
    for (uint32_t u = 0; u < given->node_count; u++) {
        const pen_problem_node *node = &given->nodes[u];
        const uint32_t home = device_of_node[u];
        const pen_problem_device *device = &given->devices[home];
        bool is_sent = false;
        load[home] +=
            given->compute[(uint64_t)device->kind * given->node_count + u] * device->slowness;
        placement->bytes[home] += node->bytes + node->bytes_in_flight * device->microbatches;
        for (uint32_t e = problem->successors.first[u]; e < problem->successors.first[u + 1]; e++) {
            const uint32_t there = device_of_node[problem->successors.ids[e]];
            if (there == home || read_on[there] == u + 1) continue;
            read_on[there] = u + 1;
            is_sent = true;
            placement->traffic += node->transfer;
            load[there] += node->transfer * given->devices[there].receive;
            if (given->link == NULL) continue;
            const double moved = placement_link_cost(given, node->transfer, home, there);
            load[there] += moved;
            load[home] += moved;
        }
        if (is_sent) load[home] += node->transfer * device->send;
    }
    return PEN_OK;
}

static double placement_worst_load(const pen_placement *placement) {
    double worst = 0.0;
    for (uint32_t d = 0; d < placement->device_count; d++)
        worst = fmax(worst, placement->load[d]);
    return worst;
}

// The one place that says what each objective is.
static pen_status placement_evaluate(const pen_problem *problem, pen_arena *arena,
                                     pen_placement *placement) {
    pen_latency *latency;
    pen_step_time *step;
    const pen_step_prediction *prediction;
    switch (problem->given.objective) {
    case PEN_OBJECTIVE_THROUGHPUT:
        placement->value = placement_worst_load(placement);
        return PEN_OK;
    case PEN_OBJECTIVE_LATENCY:
        PEN_TRY(pen_latency_new(problem, arena, &latency));
        placement->value = pen_latency_evaluate(latency, placement->device_of_node, NULL);
        return PEN_OK;
    case PEN_OBJECTIVE_STEP_TIME:
        PEN_TRY(pen_step_time_new(problem, arena, &step));
        PEN_TRY(pen_step_time_evaluate(step, placement->device_of_node, &prediction));
        placement->value = pen_step_time_value(step);
        return PEN_OK;
    case PEN_OBJECTIVE_TRAFFIC:
        placement->value = placement->traffic;
        return PEN_OK;
    }
    PEN_NEVER("an objective is one of the enum");
}

// Figures from nodes and devices as they were given, independent of what the search reckoned with.
pen_status pen_placement_new(const pen_problem *problem, const uint32_t *device_of_node,
                             pen_arena *arena, pen_placement **out_placement) {
    pen_placement *placement;
    bool *is_used; // [device_count]
    const uint32_t device_count = problem->given.device_count;
    PEN_TRY(PEN_NEW(arena, 1, &placement));
    placement->node_count = problem->given.node_count;
    placement->device_count = device_count;
    PEN_TRY(PEN_NEW(arena, placement->node_count, &placement->device_of_node));
    PEN_TRY(PEN_NEW(arena, device_count, &placement->load));
    PEN_TRY(PEN_NEW(arena, device_count, &placement->bytes));
    PEN_TRY(PEN_NEW(arena, device_count, &is_used));
    memcpy(placement->device_of_node, device_of_node,
           placement->node_count * sizeof *device_of_node);
    for (uint32_t v = 0; v < placement->node_count; v++) {
        PEN_ASSERT(device_of_node[v] < device_count);
        if (!is_used[device_of_node[v]]) placement->used_count += 1;
        is_used[device_of_node[v]] = true;
    }
    PEN_TRY(placement_sum(problem, arena, placement));
    PEN_TRY(placement_evaluate(problem, arena, placement));
    *out_placement = placement;
    return PEN_OK;
}

// Every node is placed, can run where it is, is where it is pinned, and shares its device with its
// group.
static pen_status placement_check_nodes(const pen_problem *problem,
                                        const uint32_t *device_of_node) {
    const pen_problem_given *given = &problem->given;
    char name[PEN_PROBLEM_NAME_BYTES], other[PEN_PROBLEM_NAME_BYTES];
    char device[PEN_PROBLEM_NAME_BYTES];
    for (uint32_t v = 0; v < given->node_count; v++) {
        const uint32_t d = device_of_node[v];
        if (d >= given->device_count) {
            return pen_error(PEN_INVALID_INPUT, "node %s is not placed",
                             pen_problem_node_name(given, v, name));
        }
        const uint64_t row = (uint64_t)given->devices[d].kind * given->node_count;
        if (!(given->compute[row + v] < PEN_PROBLEM_COST_LIMIT)) {
            return pen_error(PEN_INVALID_INPUT, "node %s cannot run on device %s",
                             pen_problem_node_name(given, v, name),
                             pen_problem_device_name(given, d, device));
        }
        if (given->nodes[v].pin != PEN_PROBLEM_ANY && given->nodes[v].pin != d) {
            return pen_error(PEN_INVALID_INPUT, "node %s is not on the device it is pinned to, %s",
                             pen_problem_node_name(given, v, name),
                             pen_problem_device_name(given, given->nodes[v].pin, device));
        }
        const uint32_t g = problem->group_of_node[v];
        const uint32_t first = problem->members.ids[problem->members.first[g]];
        if (device_of_node[first] == d) continue;
        return pen_error(PEN_INVALID_INPUT, "node %s is not on the device of node %s",
                         pen_problem_node_name(given, v, name),
                         pen_problem_node_name(given, first, other));
    }
    return PEN_OK;
}

static pen_status placement_check_bytes(const pen_problem *problem, const double *bytes) {
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        if (bytes[d] <= pen_problem_bytes_limit(problem, d)) continue;
        char name[PEN_PROBLEM_NAME_BYTES];
        return pen_error(PEN_DOES_NOT_FIT, "device %s would hold %.15g of %.15g bytes",
                         pen_problem_device_name(&problem->given, d, name), bytes[d],
                         problem->given.devices[d].bytes_limit);
    }
    return PEN_OK;
}

static pen_status placement_check_used(const pen_problem *problem, uint32_t used_count) {
    const pen_problem_given *given = &problem->given;
    if (used_count < given->devices_used_minimum) {
        return pen_error(PEN_INVALID_INPUT, "%u devices are used, at least %u must be", used_count,
                         given->devices_used_minimum);
    }
    if (given->devices_used_maximum > 0 && used_count > given->devices_used_maximum) {
        return pen_error(PEN_INVALID_INPUT, "%u devices are used, at most %u may be", used_count,
                         given->devices_used_maximum);
    }
    return PEN_OK;
}

// Devices as nodes, with an edge where a forward value goes from one to the other: acyclic where
// every component is one device.
pen_status pen_placement_is_acyclic(const pen_problem *problem, const uint32_t *device_of_node,
                                    pen_arena *arena, bool *out_is_acyclic) {
    const pen_problem_given *given = &problem->given;
    pen_problem_edge *edges;
    pen_problem_lists after;
    uint32_t edge_count = 0;
    PEN_TRY(PEN_NEW(arena, problem->successors.first[given->node_count], &edges));
    for (uint32_t u = 0; u < given->node_count; u++) {
        if (!pen_problem_is_forward(given, u)) continue;
        for (uint32_t e = problem->successors.first[u]; e < problem->successors.first[u + 1]; e++) {
            const uint32_t v = problem->successors.ids[e];
            const pen_problem_edge edge = {device_of_node[u], device_of_node[v]};
            if (edge.source != edge.target && pen_problem_is_forward(given, v)) {
                edges[edge_count++] = edge;
            }
        }
    }
    uint32_t *component, component_count;
    PEN_TRY(pen_problem_lists_build(given->device_count, edges, edge_count, false, arena, &after));
    PEN_TRY(PEN_NEW(arena, given->device_count, &component));
    PEN_TRY(pen_components_find(given->device_count, after.first, after.ids, arena, component,
                                &component_count));
    *out_is_acyclic = component_count == given->device_count;
    return PEN_OK;
}

// Sums in another order may differ by this much of themselves.
#define PLACEMENT_TOLERANCE 1e-9

static bool placement_same(double a, double b) {
    return fabs(a - b) <= PLACEMENT_TOLERANCE * (1.0 + fabs(b));
}

// `again` is the placement, added up anew.
static pen_status placement_check_figures(const pen_problem *problem,
                                          const pen_placement *placement,
                                          const pen_placement *again) {
    char name[PEN_PROBLEM_NAME_BYTES];
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        if (!placement_same(placement->load[d], again->load[d])) {
            return pen_error(PEN_INVALID_INPUT, "the load of device %s is %.17g, not %.17g",
                             pen_problem_device_name(&problem->given, d, name), again->load[d],
                             placement->load[d]);
        }
        if (!placement_same(placement->bytes[d], again->bytes[d])) {
            return pen_error(PEN_INVALID_INPUT, "device %s holds %.17g bytes, not %.17g",
                             pen_problem_device_name(&problem->given, d, name), again->bytes[d],
                             placement->bytes[d]);
        }
    }
    if (!placement_same(placement->value, again->value)) {
        return pen_error(PEN_INVALID_INPUT, "the value is %.17g, not %.17g", again->value,
                         placement->value);
    }
    return PEN_OK;
}

pen_status pen_placement_weigh(const pen_problem *problem, const uint32_t *device_of_group,
                               pen_arena *arena, double *out_value) {
    uint32_t *device_of_node;
    pen_placement *placement;
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &device_of_node));
    pen_problem_place_nodes(problem, device_of_group, device_of_node);
    const pen_status status = pen_placement_new(problem, device_of_node, arena, &placement);
    *out_value = status == PEN_OK ? placement->value : INFINITY;
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
    pen_status_ignore(status, "another placement may fit");
    return PEN_OK;
}

// Works all figures out again: a strategy that reckons wrongly is found out here, before anything
// runs.
pen_status pen_placement_check(const pen_problem *problem, const pen_placement *placement) {
    pen_arena *scratch = NULL;
    pen_placement *again;
    bool is_acyclic = true;
    PEN_TRY(placement_check_nodes(problem, placement->device_of_node));
    pen_status status = pen_arena_create(&scratch);
    if (status != PEN_OK) goto done;
    status = pen_placement_new(problem, placement->device_of_node, scratch, &again);
    if (status != PEN_OK) goto done;
    status = placement_check_bytes(problem, again->bytes);
    if (status != PEN_OK) goto done;
    status = placement_check_used(problem, again->used_count);
    if (status != PEN_OK) goto done;
    status = placement_check_figures(problem, placement, again);
    if (status != PEN_OK) goto done;
    if (problem->given.is_contiguous) {
        status = pen_placement_is_acyclic(problem, placement->device_of_node, scratch, &is_acyclic);
    }
    if (status == PEN_OK && !is_acyclic) {
        status = pen_error(PEN_INVALID_INPUT,
                           "forward nodes make the devices wait for each other in a circle");
    }
done:
    pen_arena_destroy(scratch);
    return status;
}
