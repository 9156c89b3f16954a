// The user's own placement: what is wished for is kept, the rest goes where there is room.

#include "partition/linear_orders.h"
#include "partition/starts.h"
#include "partition/strategies/strategies.h"

static pen_status manual_check(const pen_problem *problem, const uint32_t *device_of_node,
                               const uint32_t *device_of_group) {
    char name[PEN_PROBLEM_NAME_BYTES], device[PEN_PROBLEM_NAME_BYTES];
    for (uint32_t v = 0; v < problem->given.node_count; v++) {
        const uint32_t wished = device_of_node[v];
        const uint32_t got = device_of_group[problem->group_of_node[v]];
        if (wished == PEN_PROBLEM_ANY || wished == got) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "node %s cannot be on device %s with all else as wished: its memory, the "
                         "nodes it must share a device with, or the order of devices forbid it",
                         pen_problem_node_name(&problem->given, v, name),
                         pen_problem_device_name(&problem->given, wished, device));
    }
    return PEN_OK;
}

static pen_status manual_place(const pen_problem *problem, const pen_strategy_options *options,
                               pen_arena *arena, pen_strategy_result *out_result) {
    uint32_t *line;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &line));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        line[g] = g;
        out_result->device_of_group[g] = problem->group_pin[g];
    }
    for (uint32_t v = 0; options->device_of_node != NULL && v < problem->given.node_count; v++) {
        if (options->device_of_node[v] == PEN_PROBLEM_ANY) continue;
        out_result->device_of_group[problem->group_of_node[v]] = options->device_of_node[v];
    }
    if (problem->given.is_contiguous) PEN_TRY(pen_linear_order(problem, 0, 0, arena, line));
    PEN_TRY(pen_start_repair(problem, line, arena, out_result->device_of_group));
    return options->device_of_node == NULL
               ? PEN_OK
               : manual_check(problem, options->device_of_node, out_result->device_of_group);
}

extern const pen_strategy pen_strategy_manual;
const pen_strategy pen_strategy_manual = {
    .name = "manual",
    .summary = "as pinned, or as in a placement that is given",
    .place = manual_place,
};
