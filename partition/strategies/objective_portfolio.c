#include "partition/strategies/objective_portfolio.h"

#include <string.h>

#include "base/clock.h"
#include "partition/objective/placement.h"
#include "partition/strategies/limited_place.h"
#include "partition/strategies/strategies.h"

#define PORTFOLIO_CELL_SECONDS 60e-9 // nominal, for each tie or group and each device

static double portfolio_run_seconds(const pen_problem *problem) {
    const double ties = problem->output_count + problem->reads.first[problem->group_count];
    return 1e-3 +
           PORTFOLIO_CELL_SECONDS * (ties + problem->group_count) * problem->given.device_count;
}

// Whether a strategy that failed so may be done without.
static bool portfolio_forgives(pen_status status) {
    const pen_status_code code = pen_status_get_code(status);
    return code == PEN_DOES_NOT_FIT || code == PEN_UNSUPPORTED;
}

static pen_status portfolio_try(const pen_problem *problem, const pen_strategy *strategy,
                                const pen_strategy_options *options, pen_arena *arena,
                                pen_initial_placement *io_start) {
    pen_strategy_result result = {0};
    double value;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &result.device_of_group));
    PEN_TRY(pen_limited_place(problem, strategy, options, arena, &result));
    PEN_TRY(pen_placement_weigh(problem, result.device_of_group, arena, &value));
    if (value >= io_start->value) return PEN_OK;
    io_start->value = value;
    memcpy(io_start->device_of_group, result.device_of_group,
           problem->group_count * sizeof *result.device_of_group);
    return PEN_OK;
}

// Fewer devices may be better if links are slow, which greedy placement on ever fewer of them finds
// out.
pen_status pen_objective_portfolio(const pen_problem *problem, const pen_strategy_options *options,
                                   double deadline, double *work, pen_arena *arena,
                                   pen_initial_placement *io_start) {
    const pen_strategy *strategy;
    pen_problem fewer = *problem; // on which fewer devices may be used
    uint32_t least, most;
    pen_problem_devices_used(problem, &least, &most);
    PEN_TRY(pen_strategy_find("greedy", arena, &strategy));
    for (uint32_t count = most; count >= least; count = count - 1 - count / 8) {
        if (*work <= 0.0) return PEN_OK;
        *work -= portfolio_run_seconds(problem);
        io_start->is_cut = io_start->is_cut || pen_clock_seconds() >= deadline;
        if (io_start->is_cut) return PEN_OK;
        pen_arena *scratch;
        PEN_TRY(pen_arena_create(&scratch));
        fewer.given.devices_used_maximum = count;
        const pen_status status = portfolio_try(&fewer, strategy, options, scratch, io_start);
        pen_arena_destroy(scratch);
        if (status != PEN_OK && !portfolio_forgives(status)) return status;
        pen_status_ignore(status, "the start is there without it");
    }
    return PEN_OK;
}
