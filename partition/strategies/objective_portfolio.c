#include "partition/strategies/objective_portfolio.h"

#include <string.h>

#include "base/clock.h"
#include "partition/strategies/limited_place.h"

static const char *const portfolio_names[] = {"greedy"};

#define PORTFOLIO_NAME_COUNT (sizeof portfolio_names / sizeof *portfolio_names)

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
                                pen_start *io_start) {
    pen_strategy_result result = {0};
    uint32_t *device_of_node;
    pen_placement *placement;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &result.device_of_group));
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &device_of_node));
    PEN_TRY(pen_limited_place(problem, strategy, options, arena, &result));
    pen_problem_place_nodes(problem, result.device_of_group, device_of_node);
    PEN_TRY(pen_placement_new(problem, device_of_node, arena, &placement));
    if (placement->value >= io_start->value) return PEN_OK;
    io_start->value = placement->value;
    memcpy(io_start->device_of_group, result.device_of_group,
           problem->group_count * sizeof *result.device_of_group);
    return PEN_OK;
}

pen_status pen_judged_portfolio(const pen_problem *problem, const pen_strategy_options *options,
                                double deadline, double *work, pen_arena *arena,
                                pen_start *io_start) {
    const pen_problem_given *given = &problem->given;
    pen_problem fewer = *problem; // on which fewer devices may be used
    uint32_t most = given->device_count;
    uint32_t least = given->devices_used_minimum > 1 ? given->devices_used_minimum : 1;
    if (given->devices_used_maximum > 0 && given->devices_used_maximum < most) {
        most = given->devices_used_maximum;
    }
    if (most > problem->group_count && problem->group_count > least) most = problem->group_count;
    for (size_t i = 0; i < PORTFOLIO_NAME_COUNT; i++) {
        const pen_strategy *strategy;
        PEN_TRY(pen_strategy_find(portfolio_names[i], arena, &strategy));
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
            if (count == 0) break;
        }
    }
    return PEN_OK;
}
