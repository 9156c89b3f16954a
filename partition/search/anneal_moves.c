// The moves of annealing. A problem's line makes runs: stretches of one device. Many good
// placements differ in runs only, which no sequence of good small moves leads across.

#include "partition/search/anneal_state.h"

#define ANNEAL_PICK_TRIES 12

static bool anneal_try_region(pen_anneal *anneal, uint32_t device) {
    for (uint32_t i = 0; i < anneal->region_count; i++)
        anneal->goal[i] = device;
    return pen_anneal_try_goals(anneal);
}

// A group; every other time one of the worst device, if a few tries find one.
static uint32_t anneal_pick(pen_anneal *anneal) {
    const uint32_t count = anneal->problem->group_count;
    uint32_t group = pen_anneal_below(anneal, count);
    if (pen_anneal_random(anneal) & 1) return group;
    for (int i = 0; i < ANNEAL_PICK_TRIES; i++) {
        if (anneal->state->device_of_group[group] == anneal->worst_device) break;
        group = pen_anneal_below(anneal, count);
    }
    return group;
}

// A group that `group` reads from, is read by, or shares an input with; or itself.
static uint32_t anneal_pick_neighbour(pen_anneal *anneal, uint32_t group) {
    const pen_problem *problem = anneal->problem;
    const uint32_t own_count = problem->own_first[group + 1] - problem->own_first[group];
    const uint32_t read_count = problem->reads.first[group + 1] - problem->reads.first[group];
    if (own_count + read_count == 0) return group;
    const uint32_t i = pen_anneal_below(anneal, own_count + read_count);
    uint32_t output;
    if (i < own_count) {
        output = problem->own_first[group] + i;
    } else {
        output = problem->reads.ids[problem->reads.first[group] + i - own_count];
        if (pen_anneal_random(anneal) & 3) return problem->output_owner[output];
    }
    const uint32_t first = problem->readers.first[output];
    return problem->readers
        .ids[first + pen_anneal_below(anneal, problem->readers.first[output + 1] - first)];
}

static uint32_t anneal_pick_device(pen_anneal *anneal, uint32_t group) {
    if (pen_anneal_random(anneal) & 3) {
        return anneal->state->device_of_group[anneal_pick_neighbour(anneal, group)];
    }
    return pen_anneal_below(anneal, anneal->state->device_count);
}

// Fills the region with groups of one device that hang together, from `group` on.
static void anneal_grow_region(pen_anneal *anneal, uint32_t group, uint32_t size) {
    const uint32_t device = anneal->state->device_of_group[group];
    anneal->mark_last += 1;
    anneal->mark[group] = anneal->mark_last;
    anneal->region[0] = group;
    anneal->region_count = 1;
    for (uint32_t tries = 0; tries < 3 * size && anneal->region_count < size; tries++) {
        const uint32_t from = anneal->region[pen_anneal_below(anneal, anneal->region_count)];
        const uint32_t next = anneal_pick_neighbour(anneal, from);
        if (anneal->mark[next] == anneal->mark_last) continue;
        if (anneal->state->device_of_group[next] != device) continue;
        anneal->mark[next] = anneal->mark_last;
        anneal->region[anneal->region_count++] = next;
    }
}

// Fills the region with groups of one device that follow each other on the line, from `group` on.
static void anneal_take_stretch(pen_anneal *anneal, uint32_t group, uint32_t size) {
    const uint32_t device = anneal->state->device_of_group[group];
    const uint32_t count = anneal->problem->group_count;
    const bool is_up = pen_anneal_random(anneal) & 1;
    anneal->region_count = 0;
    for (uint32_t at = anneal->line_at[group]; at < count && anneal->region_count < size;
         at += is_up ? 1 : UINT32_MAX) {
        const uint32_t next = anneal->line[at];
        if (anneal->state->device_of_group[next] != device) break;
        anneal->region[anneal->region_count++] = next;
    }
}

static uint32_t anneal_on_line(const pen_anneal *anneal, uint32_t at) {
    return anneal->state->device_of_group[anneal->line[at]];
}

// First position of the run that holds position `at`.
static uint32_t anneal_run_begin(const pen_anneal *anneal, uint32_t at) {
    const uint32_t device = anneal_on_line(anneal, at);
    while (at > 0 && anneal_on_line(anneal, at - 1) == device)
        at--;
    return at;
}

// Position behind it.
static uint32_t anneal_run_end(const pen_anneal *anneal, uint32_t at) {
    const uint32_t device = anneal_on_line(anneal, at);
    while (at < anneal->problem->group_count && anneal_on_line(anneal, at) == device)
        at++;
    return at;
}

static void anneal_join(pen_anneal *anneal, uint32_t begin, uint32_t end, uint32_t device) {
    for (uint32_t at = begin; at < end && anneal->region_count < PEN_ANNEAL_REGION_LIMIT; at++) {
        anneal->region[anneal->region_count] = anneal->line[at];
        anneal->goal[anneal->region_count++] = device;
    }
}

static uint32_t anneal_length(pen_anneal *anneal) {
    return 1 + pen_anneal_below(anneal, 1u << (1 + pen_anneal_below(anneal, 6)));
}

// An end of a run moves: into the run, or into its neighbour.
static void anneal_move_border(pen_anneal *anneal, uint32_t group) {
    const uint32_t count = anneal->problem->group_count;
    const uint32_t at = anneal->line_at[group];
    const uint32_t length = anneal_length(anneal);
    const uint32_t dice = pen_anneal_random(anneal);
    anneal->region_count = 0;
    const uint32_t border = dice & 1 ? anneal_run_end(anneal, at) : anneal_run_begin(anneal, at);
    if (border == 0 || border == count) return;
    const uint32_t below = anneal_on_line(anneal, border - 1),
                   above = anneal_on_line(anneal, border);
    if (dice & 2) {
        for (uint32_t i = border; i < count && i < border + length; i++) {
            if (anneal_on_line(anneal, i) != above) break;
            anneal_join(anneal, i, i + 1, below);
        }
    } else {
        for (uint32_t i = border; i > 0 && i + length > border; i--) {
            if (anneal_on_line(anneal, i - 1) != below) break;
            anneal_join(anneal, i - 1, i, above);
        }
    }
    pen_anneal_try_goals(anneal);
}

// A whole run moves: to a device beside it or to any.
static void anneal_move_run(pen_anneal *anneal, uint32_t group) {
    const uint32_t at = anneal->line_at[group];
    const uint32_t begin = anneal_run_begin(anneal, at), end = anneal_run_end(anneal, at);
    const uint32_t dice = pen_anneal_random(anneal);
    uint32_t device = pen_anneal_below(anneal, anneal->state->device_count);
    if ((dice & 3) == 0 && begin > 0) device = anneal_on_line(anneal, begin - 1);
    if ((dice & 3) == 1 && end < anneal->problem->group_count) device = anneal_on_line(anneal, end);
    if (device == anneal_on_line(anneal, at)) return;
    anneal->region_count = 0;
    anneal_join(anneal, begin, end, device);
    pen_anneal_try_goals(anneal);
}

// Two runs exchange their devices.
static void anneal_swap_runs(pen_anneal *anneal, uint32_t group) {
    const uint32_t other = pen_anneal_below(anneal, anneal->problem->group_count);
    const uint32_t here = anneal->state->device_of_group[group];
    const uint32_t there = anneal->state->device_of_group[other];
    if (here == there) return;
    anneal->region_count = 0;
    uint32_t at = anneal->line_at[group];
    anneal_join(anneal, anneal_run_begin(anneal, at), anneal_run_end(anneal, at), there);
    at = anneal->line_at[other];
    anneal_join(anneal, anneal_run_begin(anneal, at), anneal_run_end(anneal, at), here);
    pen_anneal_try_goals(anneal);
}

// In a stretch of the line two devices exchange what they have.
static void anneal_swap_window(pen_anneal *anneal, uint32_t group, uint32_t device) {
    const uint32_t count = anneal->problem->group_count;
    const uint32_t here = anneal->state->device_of_group[group];
    const uint32_t at = anneal->line_at[group];
    const uint32_t dice = pen_anneal_random(anneal);
    uint32_t begin = 0, end = count;
    if ((dice & 3) != 0) {
        const uint32_t length = 2 * anneal_length(anneal);
        begin = dice & 4 ? at : at > length ? at - length : 0;
        end = begin + length < count ? begin + length : count;
    } else if (dice & 4) {
        begin = at;
    } else {
        end = at + 1;
    }
    anneal->region_count = 0;
    for (uint32_t i = begin; i < end && anneal->region_count < PEN_ANNEAL_REGION_LIMIT; i++) {
        const uint32_t d = anneal_on_line(anneal, i);
        if (d == here) anneal_join(anneal, i, i + 1, device);
        if (d == device) anneal_join(anneal, i, i + 1, here);
    }
    pen_anneal_try_goals(anneal);
}

// Exchanges the group with one of `device`, if a few tries find one.
static void anneal_swap_with(pen_anneal *anneal, uint32_t group, uint32_t device) {
    for (int i = 0; i < ANNEAL_PICK_TRIES; i++) {
        const uint32_t other = pen_anneal_below(anneal, anneal->problem->group_count);
        if (anneal->state->device_of_group[other] != device) continue;
        pen_anneal_try_swap(anneal, group, other);
        return;
    }
}

static void anneal_step_free(pen_anneal *anneal) {
    const uint32_t group = anneal_pick(anneal);
    const uint32_t kind = pen_anneal_below(anneal, 64);
    if (kind < 2) {
        anneal_move_border(anneal, group);
        return;
    }
    if (kind < 3) {
        anneal_move_run(anneal, group);
        return;
    }
    if (kind < 4) {
        anneal_swap_runs(anneal, group);
        return;
    }
    const uint32_t device = anneal_pick_device(anneal, group);
    if (anneal->state->device_of_group[group] == device) return;
    if (kind < 5) {
        anneal_swap_window(anneal, group, device);
    } else if (kind < 48) {
        pen_anneal_try_move(anneal, group, device);
    } else if (kind < 52) {
        anneal_swap_with(anneal, group, device);
    } else {
        const uint32_t size = 2 + pen_anneal_below(anneal, 1u << (1 + pen_anneal_below(anneal, 5)));
        if (kind < 58) {
            anneal_grow_region(anneal, group, size);
        } else {
            anneal_take_stretch(anneal, group, size);
        }
        anneal_try_region(anneal, device);
    }
}

// ---- contiguous: devices have ranks, and no forward edge leads to a smaller one

// Fills the region with `group` and all that must come along to `device`. False when too many.
static bool anneal_close_region(pen_anneal *anneal, uint32_t group, uint32_t device) {
    const pen_problem *problem = anneal->problem;
    const uint32_t *device_of_group = anneal->state->device_of_group;
    const bool is_down = anneal->rank[device] < anneal->rank[device_of_group[group]];
    const pen_problem_lists *lists = is_down ? &problem->before : &problem->after;
    anneal->mark_last += 1;
    anneal->mark[group] = anneal->mark_last;
    anneal->region[0] = group;
    anneal->region_count = 1;
    for (uint32_t i = 0; i < anneal->region_count; i++) {
        const uint32_t g = anneal->region[i];
        for (uint32_t e = lists->first[g]; e < lists->first[g + 1]; e++) {
            const uint32_t next = lists->ids[e];
            const uint32_t rank = anneal->rank[device_of_group[next]];
            const bool is_right =
                is_down ? rank <= anneal->rank[device] : rank >= anneal->rank[device];
            if (is_right || anneal->mark[next] == anneal->mark_last) continue;
            if (anneal->region_count == PEN_ANNEAL_REGION_LIMIT) return false;
            anneal->mark[next] = anneal->mark_last;
            anneal->region[anneal->region_count++] = next;
        }
    }
    return true;
}

static void anneal_step_contiguous(pen_anneal *anneal) {
    const uint32_t group = anneal_pick(anneal);
    const uint32_t device = anneal_pick_device(anneal, group);
    if (anneal->state->device_of_group[group] == device) return;
    if (!anneal_close_region(anneal, group, device)) return;
    if (anneal->region_count == 1) {
        pen_anneal_try_move(anneal, group, device);
    } else {
        anneal_try_region(anneal, device);
    }
}

void pen_anneal_step(pen_anneal *anneal) {
    if (anneal->problem->given.is_contiguous) {
        anneal_step_contiguous(anneal);
    } else {
        anneal_step_free(anneal);
    }
}
