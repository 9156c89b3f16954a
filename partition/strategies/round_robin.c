// Round robin, the other baseline: groups in turn on the devices; of a contiguous problem,
// stretches of an order with equally many groups.

#include "partition/search/initial_placement.h"
#include "partition/search/linear_orders.h"
#include "partition/strategies/strategy.h"

static pen_status round_robin_place(const pen_problem *problem, const pen_strategy_options *options,
                                    pen_arena *arena, pen_strategy_result *out_result) {
    const uint32_t device_count = problem->given.device_count;
    const uint64_t count = problem->group_count;
    uint32_t *line;
    (void)options;
    PEN_TRY(PEN_NEW(arena, count, &line));
    for (uint32_t g = 0; g < count; g++)
        line[g] = g;
    if (problem->given.is_contiguous) PEN_TRY(pen_linear_order(problem, 0, 0, arena, line));
    for (uint32_t i = 0; i < count; i++) {
        out_result->device_of_group[line[i]] = problem->given.is_contiguous
                                                   ? (uint32_t)(i * (uint64_t)device_count / count)
                                                   : i % device_count;
    }
    return pen_initial_repair(problem, line, arena, out_result->device_of_group);
}

extern const pen_strategy pen_strategy_round_robin;
const pen_strategy pen_strategy_round_robin = {
    .name = "round_robin",
    .summary = "devices in turn: a baseline",
    .place = round_robin_place,
};
