// Dynamic programming over chains of down-sets: exact for contiguous problems whose down-sets are
// few, else the best over the segments of several linear orders taken together. Problems that need
// not be contiguous are placed as if they were.

#include <string.h>

#include "base/clock.h"
#include "partition/search/initial_placement.h"
#include "partition/strategies/strategy.h"

#define DYNAMIC_ORDER_COUNT 24
#define DYNAMIC_SET_LIMIT 200000

// Along one order, so the bound holds only if devices must not wait for each other anyway.
static pen_status dynamic_place(const pen_problem *problem, const pen_strategy_options *options,
                                pen_arena *arena, pen_strategy_result *out_result) {
    pen_initial_placement start;
    double bound;
    double work = options->time_limit_seconds;
    const bool has_cut = options->is_counted && options->cut_seconds > 0.0;
    const pen_initial_options start_options = {
        .seed = options->seed,
        .order_count = DYNAMIC_ORDER_COUNT,
        .deadline =
            pen_clock_seconds() + (has_cut ? options->cut_seconds : options->time_limit_seconds),
        .work = options->is_counted ? &work : NULL,
        .set_limit = DYNAMIC_SET_LIMIT,
    };
    PEN_TRY(pen_initial_segments(problem, &start_options, arena, &start, &bound));
    out_result->is_cut = start.is_cut;
    if (!start.is_found) { // what fits may need devices to wait for each other
        for (uint32_t g = 0; g < problem->group_count; g++)
            out_result->device_of_group[g] = PEN_PROBLEM_ANY;
        return pen_initial_repair(problem, start.line, arena, out_result->device_of_group);
    }
    memcpy(out_result->device_of_group, start.device_of_group,
           problem->group_count * sizeof *start.device_of_group);
    out_result->lower_bound = problem->given.is_contiguous ? bound : 0.0;
    return PEN_OK;
}

extern const pen_strategy pen_strategy_dynamic_programming;
const pen_strategy pen_strategy_dynamic_programming = {
    .name = "dynamic_programming",
    .summary = "best chain of down-sets: exact where they are few, else along many orders",
    .place = dynamic_place,
};
