// The user's own placement: what is wished for is kept as if it were pinned, the rest goes where
// there is room.

#include <string.h>

#include "partition/search/fitting.h"
#include "partition/search/initial_placement.h"
#include "partition/search/linear_orders.h"
#include "partition/strategies/strategy.h"

#define MANUAL_FITTING_VISITS 200000 // some milliseconds

// Pins node `v`, and so its group, to the device wished for.
static pen_status manual_pin(pen_problem *pinned, pen_problem_node *nodes, uint32_t v,
                             uint32_t wished) {
    const pen_problem_given *given = &pinned->given;
    const uint32_t group = pinned->group_of_node[v];
    const uint32_t pin = pinned->group_pin[group];
    char name[PEN_PROBLEM_NAME_BYTES], device[PEN_PROBLEM_NAME_BYTES];
    char other[PEN_PROBLEM_NAME_BYTES];
    const char *node = pen_problem_node_name(given, v, name);
    if (wished >= given->device_count) {
        return pen_error(PEN_INVALID_INPUT, "node %s cannot be on device %u, there are %u devices",
                         node, wished, given->device_count);
    }
    if (pin != PEN_PROBLEM_ANY && pin != wished) {
        return pen_error(PEN_INVALID_INPUT,
                         "node %s cannot be on device %s: it, or what must share its device, is to "
                         "be on device %s",
                         node, pen_problem_device_name(given, wished, device),
                         pen_problem_device_name(given, pin, other));
    }
    if (!pen_problem_allows(pinned, group, wished)) {
        return pen_error(PEN_INVALID_INPUT,
                         "node %s cannot be on device %s, which cannot run it or what must share "
                         "its device",
                         node, pen_problem_device_name(given, wished, device));
    }
    pinned->group_pin[group] = wished;
    nodes[v].pin = wished;
    return PEN_OK;
}

// The problem with what is wished for pinned.
static pen_status manual_pin_all(const pen_problem *problem, const uint32_t *device_of_node,
                                 pen_arena *arena, pen_problem **out_pinned) {
    const pen_problem_given *given = &problem->given;
    pen_problem *pinned;
    pen_problem_node *nodes;
    PEN_TRY(PEN_NEW(arena, 1, &pinned));
    PEN_TRY(PEN_NEW(arena, given->node_count, &nodes));
    *pinned = *problem;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &pinned->group_pin));
    for (uint32_t v = 0; v < given->node_count; v++)
        nodes[v] = given->nodes[v];
    memcpy(pinned->group_pin, problem->group_pin, problem->group_count * sizeof *pinned->group_pin);
    pinned->given.nodes = nodes;
    for (uint32_t v = 0; device_of_node != NULL && v < given->node_count; v++) {
        if (device_of_node[v] == PEN_PROBLEM_ANY) continue;
        PEN_TRY(manual_pin(pinned, nodes, v, device_of_node[v]));
    }
    *out_pinned = pinned;
    return PEN_OK;
}

// Whether as many devices are used as may be and must be.
static pen_status manual_count(const pen_problem *problem, const uint32_t *device_of_group,
                               pen_arena *arena, bool *out_is_right) {
    const pen_problem_given *given = &problem->given;
    bool *is_used;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, given->device_count, &is_used));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        count += !is_used[device_of_group[g]];
        is_used[device_of_group[g]] = true;
    }
    *out_is_right = count >= given->devices_used_minimum &&
                    (given->devices_used_maximum == 0 || count <= given->devices_used_maximum);
    return PEN_OK;
}

// What is wished for becomes pins, and the rest is put where it fits.
static pen_status manual_place(const pen_problem *problem, const pen_strategy_options *options,
                               pen_arena *arena, pen_strategy_result *out_result) {
    pen_problem *pinned;
    uint32_t *line;
    bool is_right;
    PEN_TRY(manual_pin_all(problem, options->device_of_node, arena, &pinned));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &line));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        line[g] = g;
        out_result->device_of_group[g] = pinned->group_pin[g];
    }
    if (problem->given.is_contiguous) PEN_TRY(pen_linear_order(problem, 0, 0, arena, line));
    PEN_TRY(pen_initial_repair(pinned, line, arena, out_result->device_of_group));
    PEN_TRY(manual_count(pinned, out_result->device_of_group, arena, &is_right));
    if (is_right) return PEN_OK;
    pen_fitting fitting;
    PEN_TRY(pen_fitting_find(pinned, MANUAL_FITTING_VISITS, arena, out_result->device_of_group,
                             &fitting));
    if (fitting.is_found) return PEN_OK;
    return pen_error(PEN_DOES_NOT_FIT,
                     "no placement was found that keeps what is wished for and uses as many "
                     "devices as it must");
}

extern const pen_strategy pen_strategy_manual;
const pen_strategy pen_strategy_manual = {
    .name = "manual",
    .summary = "as pinned, or as in a placement that is given",
    .counts_devices = true,
    .place = manual_place,
};
