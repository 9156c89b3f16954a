#include "partition/search/candidate.h"

#include <math.h>
#include <string.h>

// The best placement begins as the given one, so that a search that finds nothing gives it back.
pen_status pen_candidate_init(pen_candidate *candidate, const pen_problem *problem,
                              const uint32_t *line, uint32_t *device_of_group, pen_arena *arena) {
    candidate->problem = problem;
    candidate->device_of_group = device_of_group;
    candidate->best_value = INFINITY;
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &candidate->device_of_node));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &candidate->bytes));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &candidate->group_total));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &candidate->best));
    memcpy(candidate->best, device_of_group, problem->group_count * sizeof *candidate->best);
    pen_problem_place_nodes(problem, device_of_group, candidate->device_of_node);
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const uint32_t d = device_of_group[g];
        candidate->bytes[d] += pen_problem_bytes(problem, g, d);
        if (candidate->group_total[d]++ == 0) candidate->used_count += 1;
    }
    PEN_TRY(pen_region_init(&candidate->region, problem, line, device_of_group,
                            &candidate->annealing.random, arena));
    if (problem->given.is_contiguous) (void)pen_region_rank(&candidate->region);
    return PEN_OK;
}

void pen_candidate_put(pen_candidate *candidate, uint32_t group, uint32_t device) {
    const pen_problem *problem = candidate->problem;
    const uint32_t from = candidate->device_of_group[group];
    candidate->bytes[from] -= pen_problem_bytes(problem, group, from);
    candidate->bytes[device] += pen_problem_bytes(problem, group, device);
    if (--candidate->group_total[from] == 0) candidate->used_count -= 1;
    if (candidate->group_total[device]++ == 0) candidate->used_count += 1;
    candidate->device_of_group[group] = device;
    for (uint32_t m = problem->members.first[group]; m < problem->members.first[group + 1]; m++)
        candidate->device_of_node[problem->members.ids[m]] = device;
}

// Whether groups before `group` are on devices of lower ranks than its own, or there; with `sign`
// -1, groups after it on devices of higher ones.
static bool candidate_keeps_order(const pen_candidate *candidate, const pen_problem_lists *lists,
                                  uint32_t group, double sign) {
    const uint32_t here = candidate->device_of_group[group];
    const double rank = candidate->region.rank[here];
    for (uint32_t e = lists->first[group]; e < lists->first[group + 1]; e++) {
        const uint32_t there = candidate->device_of_group[lists->ids[e]];
        if (there != here && sign * (candidate->region.rank[there] - rank) >= 0.0) return false;
    }
    return true;
}

bool pen_candidate_is_right(const pen_candidate *candidate) {
    const pen_problem *problem = candidate->problem;
    const pen_region *region = &candidate->region;
    for (uint32_t i = 0; i < region->count; i++) {
        const uint32_t g = region->group[i], d = candidate->device_of_group[g];
        if (!pen_problem_allows(problem, g, d)) return false;
        if (candidate->bytes[d] > pen_problem_bytes_limit(problem, d)) return false;
        if (problem->given.is_contiguous &&
            (!candidate_keeps_order(candidate, &problem->before, g, 1.0) ||
             !candidate_keeps_order(candidate, &problem->after, g, -1.0))) {
            return false;
        }
    }
    return true;
}

void pen_candidate_note(pen_candidate *candidate, double value) {
    if (value >= candidate->best_value) return;
    candidate->best_value = value;
    memcpy(candidate->best, candidate->device_of_group,
           candidate->problem->group_count * sizeof *candidate->best);
}
