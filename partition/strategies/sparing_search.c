#include "partition/strategies/sparing_search.h"

#include <math.h>

#include "base/clock.h"
#include "partition/objective/placement.h"
#include "partition/search/linear_orders.h"
#include "partition/strategies/local_search.h"

#define SPARING_ENOUGH 0.125 // of what is enough for the shortest step: it begins from that

// From the placement that is given, along the line that it is in.
static pen_status sparing_run(const pen_problem *problem, const pen_sparing_options *options,
                              pen_arena *arena, uint32_t *device_of_node) {
    uint32_t *line, *device_of_group;
    double value, found;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &line));
    PEN_TRY(PEN_NEW(arena, problem->group_count, &device_of_group));
    PEN_TRY(pen_first_line(problem, arena, line));
    for (uint32_t v = 0; v < problem->given.node_count; v++)
        device_of_group[problem->group_of_node[v]] = device_of_node[v];
    PEN_TRY(pen_placement_weigh(problem, device_of_group, arena, &value));
    const pen_local_search_options search = {
        .seed = options->seed,
        .begin = pen_clock_seconds(),
        .deadline = options->deadline,
        .seconds =
            fmin(options->seconds, SPARING_ENOUGH * pen_local_search_enough_seconds(problem)),
        .is_counted = true,
        .value = value};
    PEN_TRY(pen_local_search_run(problem, line, &search, device_of_group, &found));
    if (found < value) pen_problem_place_nodes(problem, device_of_group, device_of_node);
    return PEN_OK;
}

pen_status pen_sparing_search(const pen_problem *problem, const pen_sparing_options *options,
                              uint32_t *device_of_node) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = sparing_run(problem, options, arena, device_of_node);
    pen_arena_destroy(arena);
    return status;
}
