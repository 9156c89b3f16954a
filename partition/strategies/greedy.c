// Greedy placement by earliest finish: groups along a line, each on the device where it would end
// first. A device is busy with what it computes and moves; an input counts once for each device
// that reads it, and once for the device that holds it. Memory is looked ahead for: a device that
// is so full that what is left could not be placed elsewhere is avoided by the repair at the end.
// O(groups · devices + reads).
//
// A contiguous problem is cut along the line instead: the smallest load is sought below which
// filling one device after another reaches the end.

#include <math.h>
#include <string.h>

#include "partition/bounds.h"
#include "partition/device_classes.h"
#include "partition/linear_orders.h"
#include "partition/segment_load.h"
#include "partition/starts.h"
#include "partition/strategies/strategies.h"

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
    return pen_start_repair(problem, line, arena, device_of_group);
}

// ---- filling along a line

typedef struct greedy_fill {
    const pen_problem *problem;
    const pen_device_classes *classes;
    const uint32_t *line;
    const uint32_t *sequence; // [device_count]
    pen_segment_load *segment;
    uint32_t *device_of_group;
} greedy_fill;

// How many groups from `begin` on device `device` takes: the longest stretch with a load below
// `limit`.
static uint32_t greedy_stretch(greedy_fill *fill, uint32_t begin, uint32_t device, double limit) {
    const pen_device_class *class = &fill->classes->classes[fill->classes->class_of_device[device]];
    pen_segment_load *segment = fill->segment;
    const uint32_t count = fill->problem->group_count;
    uint32_t taken = 0, end = begin;
    while (end < count) {
        pen_segment_load_add(segment, fill->line[end++]);
        if (!pen_segment_load_allows(segment, class) || !pen_segment_load_fits(segment, class) ||
            pen_segment_load_bound(segment, class) > limit) {
            break;
        }
        if (pen_segment_load_on(segment, class) <= limit) taken = end - begin;
    }
    while (end > begin)
        pen_segment_load_remove(segment, fill->line[--end]);
    return taken;
}

static bool greedy_fill_below(greedy_fill *fill, double limit) {
    const uint32_t count = fill->problem->group_count;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < fill->problem->given.device_count && begin < count; i++) {
        const uint32_t device = fill->sequence[i];
        const uint32_t taken = greedy_stretch(fill, begin, device, limit);
        for (uint32_t j = 0; j < taken; j++) {
            fill->device_of_group[fill->line[begin + j]] = device;
            pen_segment_load_advance(fill->segment, fill->line[begin + j]);
        }
        begin += taken;
    }
    for (uint32_t i = begin; i-- > 0;)
        pen_segment_load_retreat(fill->segment, fill->line[i]);
    return begin == count;
}

#define GREEDY_HALVINGS 14
#define GREEDY_DOUBLINGS 40

static pen_status greedy_place_contiguous(const pen_problem *problem, const uint32_t *line,
                                          pen_arena *arena, uint32_t *device_of_group) {
    pen_device_classes *classes;
    double low, high;
    greedy_fill fill = {.problem = problem, .line = line};
    uint32_t *sequence;
    PEN_TRY(pen_device_classes_new(problem, 0, arena, &classes));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &sequence));
    for (uint32_t d = 0; d < problem->given.device_count; d++)
        sequence[d] = d;
    PEN_TRY(pen_segment_load_new(problem, arena, &fill.segment));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &fill.device_of_group));
    fill.classes = classes;
    fill.sequence = sequence;
    PEN_TRY(pen_bound(problem, arena, &low));
    bool is_found = false;
    high = low > 0.0 ? low : 1e-9;
    for (int i = 0; i < GREEDY_DOUBLINGS && !is_found; i++) {
        is_found = greedy_fill_below(&fill, high);
        if (!is_found) {
            low = high;
            high *= 2.0;
        }
    }
    for (int i = 0; is_found && i <= GREEDY_HALVINGS; i++) {
        const double middle = i == GREEDY_HALVINGS ? high : (low + high) / 2.0;
        if (greedy_fill_below(&fill, middle)) {
            high = middle;
            memcpy(device_of_group, fill.device_of_group,
                   problem->group_count * sizeof *device_of_group);
        } else {
            low = middle;
        }
    }
    if (is_found) return PEN_OK;
    for (uint32_t g = 0; g < problem->group_count; g++)
        device_of_group[g] = PEN_PROBLEM_ANY;
    return pen_start_repair(problem, line, arena, device_of_group);
}

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
    return greedy_place_free(problem, line, arena, out_result->device_of_group);
}

extern const pen_strategy pen_strategy_greedy;
const pen_strategy pen_strategy_greedy = {
    .name = "greedy",
    .summary =
        "earliest finish, group by group; contiguous: one device after another, filled evenly",
    .place = greedy_place,
};
