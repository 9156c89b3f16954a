#include "partition/strategies/limited_place.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "partition/objective/placement.h"
#include "partition/search/large_search.h"
#include "partition/search/memory_blame.h"
#include "partition/search/reduced_problem.h"
#include "partition/search/required_devices.h"
#include "partition/strategies/exhaustive.h"

// Whether load searches see another problem than this one.
static bool limited_is_judged(const pen_problem *problem) {
    return problem->given.objective == PEN_OBJECTIVE_STEP_TIME ||
           problem->given.objective == PEN_OBJECTIVE_TRAFFIC;
}

typedef struct limited_choice {
    const pen_problem *problem;
    const pen_problem *seen; // what the strategy sees of it
    const pen_strategy *strategy;
    pen_strategy_options options;
    uint32_t count;
    uint32_t *devices; // [PEN_DEVICE_TASTE_COUNT][count]
    uint32_t *device_of_group;
    double value;
    bool is_found;
    bool is_cut;
    pen_status missed;
} limited_choice;

// A choice that does not fit is no error as long as another one fits.
static pen_status limited_try(limited_choice *choice, const uint32_t *devices, pen_arena *arena) {
    const uint32_t group_count = choice->problem->group_count;
    const pen_problem *some;
    pen_strategy_result result = {0};
    double value;
    PEN_TRY(PEN_NEW(arena, group_count, &result.device_of_group));
    PEN_TRY(pen_reduced_problem_on(choice->seen, devices, choice->count, arena, &some));
    pen_status status = choice->strategy->place(some, &choice->options, arena, &result);
    choice->is_cut = choice->is_cut || result.is_cut;
    for (uint32_t g = 0; status == PEN_OK && g < group_count; g++)
        result.device_of_group[g] = devices[result.device_of_group[g]];
    if (status == PEN_OK)
        status = pen_use_required_devices(choice->problem, arena, result.device_of_group);
    if (status != PEN_OK) {
        if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
        pen_status_ignore(choice->missed, "the next choice's reason is as good");
        choice->missed = status;
        return PEN_OK;
    }
    PEN_TRY(pen_placement_weigh(choice->problem, result.device_of_group, arena, &value));
    if (choice->is_found && value >= choice->value) return PEN_OK;
    choice->is_found = true;
    choice->value = value;
    memcpy(choice->device_of_group, result.device_of_group,
           group_count * sizeof *result.device_of_group);
    return PEN_OK;
}

// The time is shared out evenly between the choices of devices.
static pen_status limited_place_on_some(const pen_problem *problem, const pen_problem *seen,
                                        const pen_strategy *strategy,
                                        const pen_strategy_options *options, pen_arena *arena,
                                        pen_strategy_result *out_result) {
    limited_choice choice = {.problem = problem,
                             .seen = seen,
                             .strategy = strategy,
                             .options = *options,
                             .count = problem->given.devices_used_maximum,
                             .device_of_group = out_result->device_of_group};
    uint32_t choice_count;
    PEN_TRY(PEN_NEW(arena, (size_t)PEN_DEVICE_TASTE_COUNT * choice.count, &choice.devices));
    PEN_TRY(pen_reduced_problem_choices(seen, choice.count, arena, choice.devices, &choice_count));
    if (choice_count == 0) {
        return pen_error(PEN_DOES_NOT_FIT,
                         "nodes are pinned to more than the %u devices that may be used",
                         choice.count);
    }
    choice.options.time_limit_seconds /= choice_count;
    for (uint32_t i = 0; i < choice_count; i++) {
        const pen_status status =
            limited_try(&choice, choice.devices + (size_t)i * choice.count, arena);
        if (status != PEN_OK) return pen_status_join(status, choice.missed);
    }
    out_result->is_cut = out_result->is_cut || choice.is_cut;
    if (!choice.is_found) return choice.missed;
    pen_status_ignore(choice.missed, "another choice of devices fits");
    return PEN_OK;
}

#define LIMITED_SMALL_GROUPS 14
#define LIMITED_SMALL_SHARE 0.5 // of the time, for trying all placements

// A small problem, by trying every placement. Returns whether that came to an end.
static pen_status limited_try_all(const pen_problem *problem, const pen_strategy_options *options,
                                  pen_arena *arena, pen_strategy_result *out_result,
                                  bool *out_is_done) {
    double value = INFINITY;
    const pen_exhaustive_options search = {
        .visit_limit = UINT64_MAX,
        .deadline = pen_clock_seconds() + LIMITED_SMALL_SHARE * options->time_limit_seconds};
    PEN_TRY(pen_exhaustive_search(problem, &search, arena, out_result->device_of_group, &value,
                                  out_is_done));
    if (!*out_is_done) {
        out_result->is_cut = true;
        return PEN_OK;
    }
    if (!(value < INFINITY)) {
        return pen_memory_blame(problem, "of all placements none is right", arena);
    }
    out_result->lower_bound = value * (1.0 - 1e-12);
    return PEN_OK;
}

// What a strategy cannot do itself is done around it: counting devices, and judging by step time or
// traffic.
pen_status pen_limited_place(const pen_problem *problem, const pen_strategy *strategy,
                             const pen_strategy_options *options, pen_arena *arena,
                             pen_strategy_result *out_result) {
    const pen_problem_given *given = &problem->given;
    const bool is_judged = limited_is_judged(problem);
    // judging very many nodes takes long: even loads must do for their step time
    const bool judges = strategy->judges_all && !(pen_problem_is_large(problem) &&
                                                  given->objective == PEN_OBJECTIVE_STEP_TIME);
    const pen_problem *seen = problem;
    bool is_done = false;
    if (is_judged && !judges) PEN_TRY(pen_reduced_problem_new(problem, arena, &seen));
    const bool has_most =
        given->devices_used_maximum > 0 && given->devices_used_maximum < given->device_count;
    const bool has_bounds = has_most || given->devices_used_minimum > 1;
    const bool counts = strategy->counts_devices || (is_judged && judges);
    if (has_bounds && !counts && strategy->tries_all_small &&
        problem->group_count <= LIMITED_SMALL_GROUPS) {
        PEN_TRY(limited_try_all(problem, options, arena, out_result, &is_done));
        if (is_done) return PEN_OK;
    }
    if (has_most && !counts) {
        PEN_TRY(limited_place_on_some(problem, seen, strategy, options, arena, out_result));
    } else {
        const bool is_cut = out_result->is_cut;
        PEN_TRY(strategy->place(seen, options, arena, out_result));
        out_result->is_cut = out_result->is_cut || is_cut;
        if (given->devices_used_minimum > 1 && !counts) {
            PEN_TRY(pen_use_required_devices(problem, arena, out_result->device_of_group));
        }
    }
    if (seen != problem || (has_most && !counts)) out_result->lower_bound = 0.0;
    return PEN_OK;
}
