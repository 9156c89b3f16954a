#include "partition/search/region.h"

pen_status pen_region_init(pen_region *region, const pen_problem *problem, const uint32_t *line,
                           const uint32_t *device_of_group, pen_random_sequence *random,
                           pen_arena *arena) {
    *region = (pen_region){.problem = problem,
                           .line = line,
                           .device_of_group = device_of_group,
                           .random = random,
                           .mark_last = 1};
    PEN_TRY(PEN_NEW(arena, problem->group_count, &region->line_at));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &region->mark));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &region->rank));
    for (uint32_t i = 0; i < problem->group_count; i++)
        region->line_at[line[i]] = i;
    return PEN_OK;
}

static uint32_t region_before_or_after(pen_region *region, uint32_t group) {
    const pen_problem *problem = region->problem;
    const uint32_t before = problem->before.first[group + 1] - problem->before.first[group];
    const uint32_t after = problem->after.first[group + 1] - problem->after.first[group];
    if (before + after == 0) return group;
    const uint32_t i = pen_region_below(region, before + after);
    return i < before ? problem->before.ids[problem->before.first[group] + i]
                      : problem->after.ids[problem->after.first[group] + i - before];
}

// Draws among the outputs that the group makes and reads, all alike, so that a group with many ties
// to another meets it often.
uint32_t pen_region_neighbour(pen_region *region, uint32_t group) {
    const pen_problem *problem = region->problem;
    if (region->ties == PEN_REGION_EDGES) return region_before_or_after(region, group);
    const uint32_t own_count = problem->own_first[group + 1] - problem->own_first[group];
    const uint32_t read_count = problem->reads.first[group + 1] - problem->reads.first[group];
    if (own_count + read_count == 0) return group;
    const uint32_t i = pen_region_below(region, own_count + read_count);
    uint32_t output;
    if (i < own_count) {
        output = problem->own_first[group] + i;
    } else {
        output = problem->reads.ids[problem->reads.first[group] + i - own_count];
        if (region->ties == PEN_REGION_OWNERS || (pen_random_next(region->random) & 3) != 0) {
            return problem->output_owner[output];
        }
    }
    const uint32_t first = problem->readers.first[output];
    return problem->readers
        .ids[first + pen_region_below(region, problem->readers.first[output + 1] - first)];
}

uint32_t pen_region_device(pen_region *region, uint32_t group) {
    if ((pen_random_next(region->random) & 3) == 0) {
        return pen_region_below(region, region->problem->given.device_count);
    }
    return region->device_of_group[pen_region_neighbour(region, group)];
}

void pen_region_add_cluster(pen_region *region, uint32_t group, uint32_t device, uint32_t size) {
    const uint32_t home = region->device_of_group[group];
    pen_region_add(region, group, device);
    for (uint32_t tries = 0; tries < 3 * size && region->count < size; tries++) {
        const uint32_t from = region->group[pen_region_below(region, region->count)];
        const uint32_t next = pen_region_neighbour(region, from);
        if (region->device_of_group[next] == home) pen_region_add(region, next, device);
    }
}

void pen_region_add_stretch(pen_region *region, uint32_t group, uint32_t device, uint32_t size,
                            uint32_t passed_limit) {
    const uint32_t home = region->device_of_group[group];
    const uint32_t step = pen_random_next(region->random) & 1 ? 1 : UINT32_MAX;
    uint32_t passed = 0;
    for (uint32_t at = region->line_at[group];
         at < region->problem->group_count && region->count < size; at += step) {
        const uint32_t next = region->line[at];
        if (region->device_of_group[next] == home) {
            pen_region_add(region, next, device);
        } else if (++passed > passed_limit) {
            return;
        }
    }
}

bool pen_region_close(pen_region *region, uint32_t group, uint32_t device, uint32_t limit) {
    const pen_problem *problem = region->problem;
    const double there = region->rank[device];
    const bool is_down = there < region->rank[region->device_of_group[group]];
    const pen_problem_lists *lists = is_down ? &problem->before : &problem->after;
    pen_region_add(region, group, device);
    for (uint32_t i = 0; i < region->count; i++) {
        const uint32_t g = region->group[i];
        for (uint32_t e = lists->first[g]; e < lists->first[g + 1]; e++) {
            const uint32_t next = lists->ids[e];
            const double rank = region->rank[region->device_of_group[next]];
            const bool is_right = is_down ? rank <= there : rank >= there;
            if (is_right || region->mark[next] == region->mark_last) continue;
            if (region->count == limit) return false;
            pen_region_add(region, next, device);
        }
    }
    return true;
}

bool pen_region_rank(pen_region *region) {
    return pen_rank_devices(region->problem, region->device_of_group, region->rank);
}

// A rank is the length of the longest path of edges to the device, in steps of device_count, and
// the device's own number. As many rounds as there are devices settle the lengths, if no path
// comes back.
bool pen_rank_devices(const pen_problem *problem, const uint32_t *device_of_group,
                      double *out_rank) {
    const uint32_t device_count = problem->given.device_count;
    for (uint32_t d = 0; d < device_count; d++)
        out_rank[d] = 0.0;
    bool is_changed = true;
    for (uint32_t round = 0; is_changed && round <= device_count; round++) {
        is_changed = false;
        for (uint32_t g = 0; g < problem->group_count; g++) {
            const uint32_t from = device_of_group[g];
            for (uint32_t e = problem->after.first[g]; e < problem->after.first[g + 1]; e++) {
                const uint32_t to = device_of_group[problem->after.ids[e]];
                if (from == to || out_rank[to] >= out_rank[from] + device_count) continue;
                out_rank[to] = out_rank[from] + device_count;
                is_changed = true;
            }
        }
    }
    for (uint32_t d = 0; d < device_count; d++)
        out_rank[d] += d;
    return !is_changed;
}
