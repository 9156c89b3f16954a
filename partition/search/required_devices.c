#include "partition/search/required_devices.h"

#include <math.h>

// Whether any of the groups listed for `group` is on its device.
static bool spread_is_tied(const pen_problem_lists *lists, const uint32_t *device_of_group,
                           uint32_t group) {
    for (uint32_t e = lists->first[group]; e < lists->first[group + 1]; e++) {
        if (device_of_group[lists->ids[e]] == device_of_group[group]) return true;
    }
    return false;
}

static double spread_cost(const pen_problem *problem, uint32_t group) {
    double cost = 0.0;
    for (uint32_t o = problem->own_first[group]; o < problem->own_first[group + 1]; o++)
        cost += problem->output_cost[o];
    for (uint32_t r = problem->reads.first[group]; r < problem->reads.first[group + 1]; r++)
        cost += problem->output_cost[problem->reads.ids[r]];
    return cost;
}

static uint32_t spread_find_room(const pen_problem *problem, const uint32_t *group_total,
                                 uint32_t group) {
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        if (group_total[d] == 0 && pen_problem_allows(problem, group, d) &&
            pen_problem_bytes(problem, group, d) <= pen_problem_bytes_limit(problem, d)) {
            return d;
        }
    }
    return PEN_PROBLEM_ANY;
}

// Each device that must be used gets the group that can be spared most cheaply.
pen_status pen_use_required_devices(const pen_problem *problem, pen_arena *arena,
                                    uint32_t *device_of_group) {
    const uint32_t least_count = problem->given.devices_used_minimum;
    uint32_t *group_total, used_count = 0;
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &group_total));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (group_total[device_of_group[g]]++ == 0) used_count += 1;
    }
    for (; used_count < least_count; used_count++) {
        uint32_t best = PEN_PROBLEM_ANY, best_device = 0;
        double best_cost = INFINITY;
        for (uint32_t g = 0; g < problem->group_count; g++) {
            if (group_total[device_of_group[g]] < 2) continue;
            const double cost = spread_cost(problem, g);
            if (cost >= best_cost) continue;
            if (problem->given.is_contiguous &&
                spread_is_tied(&problem->after, device_of_group, g) &&
                spread_is_tied(&problem->before, device_of_group, g)) {
                continue;
            }
            const uint32_t device = spread_find_room(problem, group_total, g);
            if (device == PEN_PROBLEM_ANY) continue;
            best = g;
            best_device = device;
            best_cost = cost;
        }
        if (best == PEN_PROBLEM_ANY) {
            return pen_error(PEN_DOES_NOT_FIT,
                             "no placement was found that uses %u devices, as is asked; %u are the "
                             "most",
                             least_count, used_count);
        }
        group_total[device_of_group[best]] -= 1;
        group_total[best_device] += 1;
        device_of_group[best] = best_device;
    }
    return PEN_OK;
}
