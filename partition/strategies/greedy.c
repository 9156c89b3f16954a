// Greedy placement by earliest finish: groups along a line, each on the device where it would end
// first. A device is busy with what it computes and moves; an input counts once for each device
// that reads it, and once for the device that holds it. Memory is looked ahead for: a device that
// is so full that what is left could not be placed elsewhere is avoided by the repair at the end.
// O(groups · devices + reads).
//
// A contiguous problem is cut along the line instead: the smallest load is sought below which
// filling one device after another reaches the end. Others are tried so too, unless latency counts.

#include <math.h>
#include <string.h>

#include "partition/objective/load_state.h"
#include "partition/problem/device_classes.h"
#include "partition/search/initial_placement.h"
#include "partition/search/line_fill.h"
#include "partition/search/linear_orders.h"
#include "partition/strategies/strategy.h"

// ---- earliest finish

typedef struct greedy_state {
    const pen_problem *problem;
    uint32_t *device_of_group;
    double *load;  // [device_count]
    double *bytes; // [device_count]
} greedy_state;

// Whether device `d` already reads output `o`.
static bool greedy_has(const greedy_state *state, uint32_t o, uint32_t d) {
    const pen_problem *problem = state->problem;
    if (state->device_of_group[problem->output_owner[o]] == d) return true;
    for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
        if (state->device_of_group[problem->readers.ids[r]] == d) return true;
    }
    return false;
}

// When `group` would end on device `d`.
static double greedy_finish(const greedy_state *state, uint32_t group, uint32_t d) {
    const pen_problem *problem = state->problem;
    const pen_problem_given *given = &problem->given;
    double moved = 0.0;
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        const uint32_t home = state->device_of_group[problem->output_owner[o]];
        if (home == PEN_PROBLEM_ANY || greedy_has(state, o, d)) continue;
        moved += problem->output_cost[o] * (given->devices[d].receive + given->devices[home].send);
        if (given->link == NULL) continue;
        moved += 2.0 * pen_problem_link_cost(problem, o, home, d);
    }
    return state->load[d] + moved + pen_problem_compute(problem, group, d);
}

static void greedy_take(greedy_state *state, uint32_t group, uint32_t d) {
    const pen_problem *problem = state->problem;
    const pen_problem_given *given = &problem->given;
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++) {
        const uint32_t o = problem->reads.ids[r];
        const uint32_t home = state->device_of_group[problem->output_owner[o]];
        if (home == PEN_PROBLEM_ANY || greedy_has(state, o, d)) continue;
        state->load[d] += problem->output_cost[o] * given->devices[d].receive;
        state->load[home] += problem->output_cost[o] * given->devices[home].send;
    }
    state->load[d] += pen_problem_compute(problem, group, d);
    state->bytes[d] += pen_problem_bytes(problem, group, d);
    state->device_of_group[group] = d;
}

// Each group goes where it would be done first among the devices that have room.
static pen_status greedy_place_free(const pen_problem *problem, const uint32_t *line,
                                    pen_arena *arena, uint32_t *device_of_group) {
    const uint32_t device_count = problem->given.device_count;
    greedy_state state = {.problem = problem, .device_of_group = device_of_group};
    PEN_TRY(PEN_NEW(arena, device_count, &state.load));
    PEN_TRY(PEN_NEW(arena, device_count, &state.bytes));
    for (uint32_t g = 0; g < problem->group_count; g++)
        device_of_group[g] = PEN_PROBLEM_ANY;
    for (uint32_t i = 0; i < problem->group_count; i++) {
        const uint32_t g = line[i];
        uint32_t best = PEN_PROBLEM_ANY;
        double first = INFINITY;
        for (uint32_t d = 0; d < device_count; d++) {
            if (!pen_problem_allows(problem, g, d)) continue;
            if (state.bytes[d] + pen_problem_bytes(problem, g, d) >
                pen_problem_bytes_limit(problem, d)) {
                continue;
            }
            const double finish = greedy_finish(&state, g, d);
            if (finish >= first) continue;
            first = finish;
            best = d;
        }
        if (best != PEN_PROBLEM_ANY) greedy_take(&state, g, best);
    }
    return pen_initial_repair(problem, line, arena, device_of_group);
}

// ---- filling along a line

#define GREEDY_PRECISION 0.001

// Of a contiguous problem. False when filling finds nothing.
static pen_status greedy_fill(const pen_problem *problem, const uint32_t *line, pen_arena *arena,
                              uint32_t *device_of_group, bool *out_is_found) {
    pen_device_classes *classes;
    pen_line_fill_result result;
    PEN_TRY(pen_device_classes_new(problem, 0, arena, &classes));
    const pen_line_fill_options options = {.classes = classes,
                                           .value_limit = INFINITY,
                                           .precision = GREEDY_PRECISION,
                                           .deadline = INFINITY};
    PEN_TRY(pen_line_fill(problem, line, &options, arena, device_of_group, &result));
    *out_is_found = result.is_found;
    return PEN_OK;
}

// Along the line of the problem made ready for one. False also when that cannot be.
static pen_status greedy_fill_chained(const pen_problem *problem, pen_arena *arena,
                                      uint32_t *device_of_group, bool *out_is_found) {
    const pen_problem *chained;
    uint32_t *order, *device_of_chained;
    *out_is_found = false;
    const pen_status status = pen_initial_chain(problem, arena, &chained);
    const pen_status_code code = pen_status_get_code(status);
    if (code == PEN_DOES_NOT_FIT || code == PEN_INVALID_INPUT) { // of groups put together
        pen_status_ignore(status, "there are other ways");
        return PEN_OK;
    }
    PEN_TRY(status);
    PEN_TRY(PEN_NEW(arena, chained->group_count, &order));
    PEN_TRY(PEN_NEW(arena, chained->group_count, &device_of_chained));
    PEN_TRY(pen_linear_order(chained, 0, 0, arena, order));
    PEN_TRY(greedy_fill(chained, order, arena, device_of_chained, out_is_found));
    for (uint32_t v = 0; v < problem->given.node_count && *out_is_found; v++) {
        device_of_group[problem->group_of_node[v]] = device_of_chained[chained->group_of_node[v]];
    }
    return PEN_OK;
}

static pen_status greedy_place_contiguous(const pen_problem *problem, const uint32_t *line,
                                          pen_arena *arena, uint32_t *device_of_group) {
    bool is_found;
    PEN_TRY(greedy_fill_chained(problem, arena, device_of_group, &is_found));
    if (is_found) return PEN_OK;
    PEN_TRY(greedy_fill(problem, line, arena, device_of_group, &is_found));
    if (is_found) return PEN_OK;
    for (uint32_t g = 0; g < problem->group_count; g++)
        device_of_group[g] = PEN_PROBLEM_ANY;
    return pen_initial_repair(problem, line, arena, device_of_group);
}

static pen_status greedy_worst(const pen_problem *problem, const uint32_t *device_of_group,
                               pen_arena *arena, double *out_worst) {
    pen_load_state *state;
    PEN_TRY(pen_load_state_new(problem, device_of_group, arena, &state));
    *out_worst = pen_load_state_worst(state);
    return PEN_OK;
}

// Where what finishes first pays for too many transfers, stretches of a line may do better.
static pen_status greedy_prefer_fill(const pen_problem *problem, pen_arena *arena,
                                     uint32_t *device_of_group) {
    uint32_t *filled;
    double worst, worst_filled;
    bool is_found;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &filled));
    PEN_TRY(greedy_fill_chained(problem, arena, filled, &is_found));
    if (!is_found) return PEN_OK;
    PEN_TRY(greedy_worst(problem, device_of_group, arena, &worst));
    PEN_TRY(greedy_worst(problem, filled, arena, &worst_filled));
    if (worst_filled >= worst) return PEN_OK;
    memcpy(device_of_group, filled, problem->group_count * sizeof *filled);
    return PEN_OK;
}

// In the order in which nodes run; devices that must not wait for each other are filled one after
// the other.
static pen_status greedy_place(const pen_problem *problem, const pen_strategy_options *options,
                               pen_arena *arena, pen_strategy_result *out_result) {
    uint32_t *line;
    (void)options;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &line));
    if (problem->given.is_contiguous) {
        PEN_TRY(pen_linear_order(problem, 0, 0, arena, line));
        return greedy_place_contiguous(problem, line, arena, out_result->device_of_group);
    }
    bool *is_met;
    uint32_t filled = 0;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &is_met));
    for (uint32_t i = 0; i < problem->given.node_count; i++) {
        const uint32_t g = problem->group_of_node[problem->node_order[i]];
        if (is_met[g]) continue;
        is_met[g] = true;
        line[filled++] = g;
    }
    PEN_TRY(greedy_place_free(problem, line, arena, out_result->device_of_group));
    if (problem->given.objective == PEN_OBJECTIVE_LATENCY) return PEN_OK;
    return greedy_prefer_fill(problem, arena, out_result->device_of_group);
}

extern const pen_strategy pen_strategy_greedy;
const pen_strategy pen_strategy_greedy = {
    .name = "greedy",
    .summary = "earliest finish, group by group, or one device after another, filled evenly",
    .place = greedy_place,
};
