// Random placement, the baseline: each group on a random device that may run it and has room; of a
// contiguous problem, random cuts of a random order.

#include "base/random.h"
#include "partition/search/initial_placement.h"
#include "partition/search/linear_orders.h"
#include "partition/strategies/strategy.h"

// Devices by chance, or cuts of a line by chance where devices must not wait for each other; then
// repaired like any placement.
static pen_status random_place(const pen_problem *problem, const pen_strategy_options *options,
                               pen_arena *arena, pen_strategy_result *out_result) {
    const pen_random_key key = {options->seed, pen_random_stream("random strategy", 0, 0)};
    const uint32_t device_count = problem->given.device_count;
    uint32_t *line;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &line));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        line[g] = g;
        out_result->device_of_group[g] = (uint32_t)pen_random_below(key, g, device_count);
    }
    if (problem->given.is_contiguous) {
        uint32_t *first; // of each device but the first: how many groups of the line come before
        PEN_TRY(pen_linear_order(problem, options->seed, 4, arena, line));
        PEN_TRY(PEN_NEW(arena, device_count, &first));
        for (uint32_t d = 1; d < device_count; d++) {
            first[d] = (uint32_t)pen_random_below(key, (1ull << 40) + d, problem->group_count + 1);
        }
        for (uint32_t i = 0; i < problem->group_count; i++) {
            uint32_t device = 0;
            for (uint32_t d = 1; d < device_count; d++)
                device += first[d] <= i;
            out_result->device_of_group[line[i]] = device;
        }
    }
    return pen_initial_repair(problem, line, arena, out_result->device_of_group);
}

extern const pen_strategy pen_strategy_random;
const pen_strategy pen_strategy_random = {
    .name = "random",
    .summary = "any device with room: a baseline",
    .place = random_place,
};
