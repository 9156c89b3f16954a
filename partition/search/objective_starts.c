#include "partition/search/objective_starts.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "partition/bound/traffic_bound.h"
#include "partition/objective/placement.h"
#include "partition/problem/problem_build.h"
#include "partition/search/memory_blame.h"
#include "partition/search/objective_anneal.h"
#include "partition/search/reduced_problem.h"
#include "partition/search/region.h"
#include "partition/search/required_devices.h"

#define STARTS_WEIGHINGS 4 // steps of the search that weighing a candidate takes as long as

typedef struct objective_starts {
    const pen_problem *problem;
    const pen_problem *reduced;
    const pen_initial_options *options;
    pen_initial_placement *start;
    uint32_t *device_of_group; // [group_count] the candidate
    uint32_t *devices;         // [PEN_DEVICE_TASTE_COUNT][device_count] choices of those it may use
    pen_arena *scratch;
    pen_status missed; // why the last candidate was none
} objective_starts;

static bool objective_starts_is_in_time(const objective_starts *starts) {
    const pen_initial_options *options = starts->options;
    return !starts->start->is_found || (pen_clock_seconds() < options->deadline &&
                                        (options->work == NULL || *options->work > 0.0));
}

// Weighs the candidate, a right placement but for the number of devices, and keeps it when it is
// the best.
static pen_status objective_starts_judge(objective_starts *starts, const uint32_t *line) {
    const pen_problem *problem = starts->problem;
    double *work = starts->options->work;
    if (work != NULL) *work -= STARTS_WEIGHINGS * pen_objective_anneal_step_seconds(problem);
    const pen_status spread =
        pen_use_required_devices(problem, starts->scratch, starts->device_of_group);
    if (pen_status_get_code(spread) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(starts->missed, "the next candidate's reason is as good");
        starts->missed = spread;
        return PEN_OK;
    }
    if (spread != PEN_OK) return spread;
    double value; // INFINITY: the search begins from what does not fit if it must
    PEN_TRY(pen_placement_weigh(problem, starts->device_of_group, starts->scratch, &value));
    if (starts->start->is_found && value >= starts->start->value) return PEN_OK;
    starts->start->is_found = true;
    starts->start->value = value;
    memcpy(starts->start->device_of_group, starts->device_of_group,
           problem->group_count * sizeof *starts->device_of_group);
    memcpy(starts->start->line, line, problem->group_count * sizeof *line);
    return PEN_OK;
}

// Segments on the devices that are chosen.
static pen_status objective_starts_try_on(objective_starts *starts, const uint32_t *devices,
                                          uint32_t count) {
    const pen_problem *some;
    pen_initial_placement found;
    double bound;
    const uint32_t group_count = starts->problem->group_count;
    PEN_TRY(pen_reduced_problem_on(starts->reduced, devices, count, starts->scratch, &some));
    pen_status status =
        pen_initial_segments(some, starts->options, starts->scratch, &found, &bound);
    if (status == PEN_OK && !found.is_found) {
        for (uint32_t g = 0; g < group_count; g++)
            found.device_of_group[g] = PEN_PROBLEM_ANY;
        status = starts->start->is_found
                     ? pen_error(PEN_DOES_NOT_FIT, "there is a start already")
                     : pen_initial_repair(some, found.line, starts->scratch, found.device_of_group);
    }
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(starts->missed, "the next candidate's reason is as good");
        starts->missed = status;
        return PEN_OK;
    }
    if (status != PEN_OK) return status;
    for (uint32_t g = 0; g < group_count; g++)
        starts->device_of_group[g] = devices[found.device_of_group[g]];
    return objective_starts_judge(starts, found.line);
}

static pen_status objective_starts_try_count(objective_starts *starts, uint32_t count) {
    uint32_t choice_count;
    pen_arena_reset(starts->scratch);
    PEN_TRY(pen_reduced_problem_choices(starts->reduced, count, starts->scratch, starts->devices,
                                        &choice_count));
    for (uint32_t i = 0; i < choice_count && objective_starts_is_in_time(starts); i++) {
        pen_arena_reset(starts->scratch);
        PEN_TRY(objective_starts_try_on(starts, starts->devices + (size_t)i * count, count));
    }
    return PEN_OK;
}

#define STARTS_COUNTS_ALL 8 // up to so many devices all numbers are tried

// Numbers of devices from `most` down to `least`: all, or some where there are many. Traffic wants
// few, step time many, and each the time that there is.
static pen_status objective_starts_try_counts(objective_starts *starts, uint32_t least,
                                              uint32_t most) {
    uint32_t counts[64];
    uint32_t filled = 0;
    for (uint32_t count = most; filled < 63;) {
        counts[filled++] = count;
        if (count == least) break;
        const uint32_t next = count <= STARTS_COUNTS_ALL ? count - 1 : count - count / 4;
        count = next < least ? least : next;
    }
    const bool is_upward = starts->problem->given.objective == PEN_OBJECTIVE_TRAFFIC;
    for (uint32_t i = 0; i < filled; i++) {
        const double before = starts->start->value;
        PEN_TRY(objective_starts_try_count(starts, counts[is_upward ? filled - 1 - i : i]));
        if (is_upward && starts->start->is_found && starts->start->value >= before) break;
    }
    return PEN_OK;
}

// Traffic: all groups that outputs tie together go to one device, where they all fit.
static pen_status objective_starts_try_parts(objective_starts *starts) {
    const pen_problem *problem = starts->problem;
    uint32_t *part_of_group, *device_of_merged, *line, part_count;
    uint32_t *group_total;
    double *rank;
    pen_problem *merged;
    double excess;
    pen_arena_reset(starts->scratch);
    PEN_TRY(PEN_NEW(starts->scratch, problem->group_count, &line));
    PEN_TRY(PEN_NEW(starts->scratch, problem->group_count, &part_of_group));
    PEN_TRY(PEN_NEW(starts->scratch, problem->given.device_count, &rank));
    PEN_TRY(PEN_NEW(starts->scratch, problem->given.device_count, &group_total));
    PEN_TRY(pen_traffic_parts(problem, starts->scratch, part_of_group, &part_count));
    const pen_status status = pen_problem_merge(
        problem, part_of_group, problem->given.is_contiguous, starts->scratch, &merged);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT ||
        pen_status_get_code(status) == PEN_INVALID_INPUT) { // pinned to two devices
        pen_status_ignore(status, "a part has to be cut");
        return PEN_OK;
    }
    if (status != PEN_OK) return status;
    PEN_TRY(PEN_NEW(starts->scratch, merged->group_count, &device_of_merged));
    PEN_TRY(pen_memory_pack(merged, starts->scratch, device_of_merged, &excess));
    if (excess > 0.0) return PEN_OK;
    uint32_t used_count = 0;
    for (uint32_t v = 0; v < problem->given.node_count; v++) {
        const uint32_t g = problem->group_of_node[v];
        starts->device_of_group[g] = device_of_merged[merged->group_of_node[v]];
        line[g] = g;
    }
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (group_total[starts->device_of_group[g]]++ == 0) used_count += 1;
    }
    const uint32_t most = problem->given.devices_used_maximum;
    if ((most > 0 && used_count > most) ||
        (problem->given.is_contiguous &&
         !pen_rank_devices(problem, starts->device_of_group, rank))) {
        return PEN_OK;
    }
    return objective_starts_judge(starts, line);
}

static pen_status objective_starts_run(objective_starts *starts) {
    const pen_problem_given *given = &starts->problem->given;
    uint32_t least, most;
    pen_problem_devices_used(starts->problem, &least, &most);
    if (given->objective == PEN_OBJECTIVE_TRAFFIC) PEN_TRY(objective_starts_try_parts(starts));
    if (starts->start->is_found && starts->start->value <= 0.0) return PEN_OK;
    PEN_TRY(objective_starts_try_counts(starts, least, most));
    if (starts->start->is_found || most == given->device_count) return PEN_OK;
    return given->devices_used_maximum > 0
               ? PEN_OK
               : objective_starts_try_count(starts, given->device_count);
}

// Starts come from a reduced problem that dynamic programming can solve; the true objective chooses
// among them.
pen_status pen_objective_start(const pen_problem *problem, const pen_initial_options *options,
                               pen_arena *arena, pen_initial_placement *out_start) {
    objective_starts starts = {.problem = problem, .options = options, .start = out_start};
    *out_start = (pen_initial_placement){.value = INFINITY};
    PEN_TRY(pen_arena_create_within(arena, &starts.scratch));
    PEN_TRY(pen_reduced_problem_new(problem, arena, &starts.reduced));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &out_start->device_of_group));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &out_start->line));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &starts.device_of_group));
    PEN_TRY(PEN_NEW(arena, (size_t)PEN_DEVICE_TASTE_COUNT * problem->given.device_count,
                    &starts.devices));
    const pen_status status = objective_starts_run(&starts);
    if (status != PEN_OK) return pen_status_join(status, starts.missed);
    out_start->is_cut = pen_clock_seconds() >= options->deadline;
    if (out_start->is_found) {
        pen_status_ignore(starts.missed, "another candidate is right");
        return PEN_OK;
    }
    return starts.missed != PEN_OK
               ? starts.missed
               : pen_memory_blame(problem, "more devices are pinned to than may be used", arena);
}
