#include "partition/strategies/strategies.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "partition/bound/bounds.h"
#include "partition/search/fitting.h"
#include "partition/strategies/limited_place.h"

// Each is pen_strategy_<name>, in a file of its own.
#define STRATEGY_LIST(STRATEGY)                                                                    \
    STRATEGY(auto)                                                                                 \
    STRATEGY(local_search)                                                                         \
    STRATEGY(dynamic_programming)                                                                  \
    STRATEGY(metis)                                                                                \
    STRATEGY(greedy)                                                                               \
    STRATEGY(round_robin)                                                                          \
    STRATEGY(random)                                                                               \
    STRATEGY(manual)                                                                               \
    STRATEGY(exhaustive)

#define STRATEGY_DECLARE(name) extern const pen_strategy pen_strategy_##name;
#define STRATEGY_ENTRY(name) &pen_strategy_##name,

STRATEGY_LIST(STRATEGY_DECLARE)

const pen_strategy *const pen_strategies[] = {STRATEGY_LIST(STRATEGY_ENTRY) NULL};

#define STRATEGY_COUNT (sizeof pen_strategies / sizeof *pen_strategies - 1)

static const char *strategy_name(size_t index) {
    return pen_strategies[index]->name;
}

pen_status pen_strategy_find(const char *name, pen_arena *arena,
                             const pen_strategy **out_strategy) {
    size_t index;
    PEN_TRY(pen_text_find_name("strategy", name, strategy_name, STRATEGY_COUNT, arena, &index));
    *out_strategy = pen_strategies[index];
    return PEN_OK;
}

#define STRATEGY_FITTING_VISITS 200000 // some milliseconds
#define STRATEGY_ROUNDING 1e-9

// Runs the strategy; where it finds nothing, anything that fits will do. What the user wishes for
// is not given up that way.
static pen_status strategy_run(const pen_problem *problem, const pen_strategy *strategy,
                               const pen_strategy_options *options, pen_arena *arena,
                               pen_strategy_result *out_result) {
    pen_fitting fitting;
    const pen_status status =
        pen_status_add_context(pen_limited_place(problem, strategy, options, arena, out_result),
                               "while placing with the strategy '%s'", strategy->name);
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT || options->device_of_node != NULL) {
        return status;
    }
    const pen_status searched = pen_fitting_find(problem, STRATEGY_FITTING_VISITS, arena,
                                                 out_result->device_of_group, &fitting);
    if (searched != PEN_OK) return pen_status_join(status, searched);
    if (!fitting.is_found && fitting.is_complete) {
        return pen_status_add_context(status,
                                      "no placement will do: the search went through all that the "
                                      "constraints leave");
    }
    if (!fitting.is_found) return status;
    pen_status_ignore(status, "the strategy found nothing, but there is something");
    out_result->lower_bound = 0.0;
    return PEN_OK;
}

// One device leaves no choice: *out_is_done unless the problem does not fit, of which the strategy
// tells more.
static pen_status strategy_place_alone(const pen_problem *problem, pen_arena *arena,
                                       pen_strategy_result *out_result, bool *out_is_done) {
    pen_placement *placement;
    uint32_t *device_of_node;
    *out_is_done = false;
    if (problem->given.device_count != 1) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &device_of_node));
    PEN_TRY(pen_placement_new(problem, device_of_node, arena, &placement));
    const pen_status wrong = pen_placement_check(problem, placement);
    if (pen_status_get_code(wrong) == PEN_OUT_OF_MEMORY) return wrong;
    if (wrong != PEN_OK) {
        pen_status_ignore(wrong, "the strategy says why");
        return PEN_OK;
    }
    out_result->lower_bound = placement->value;
    *out_is_done = true;
    return PEN_OK;
}

// The strategy's scratch goes with it.
static pen_status strategy_find(const pen_problem *problem, const pen_strategy *strategy,
                                const pen_strategy_options *options,
                                pen_strategy_result *out_result) {
    pen_arena *scratch;
    bool is_done;
    PEN_TRY(pen_arena_create(&scratch));
    pen_status status = strategy_place_alone(problem, scratch, out_result, &is_done);
    if (status == PEN_OK && !is_done) {
        status = strategy_run(problem, strategy, options, scratch, out_result);
    }
    pen_arena_destroy(scratch);
    return status;
}

// Whatever a strategy says is checked here: the placement, its value and the bound.
pen_status pen_place(const pen_problem *problem, const pen_strategy *strategy,
                     const pen_strategy_options *options, pen_arena *arena,
                     pen_placement **out_placement) {
    pen_strategy_result result = {0};
    pen_placement *placement;
    uint32_t *device_of_node;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &result.device_of_group));
    PEN_TRY(PEN_NEW(arena, problem->given.node_count, &device_of_node));
    PEN_TRY(strategy_find(problem, strategy, options, &result));
    for (uint32_t v = 0; v < problem->given.node_count; v++) {
        device_of_node[v] = result.device_of_group[problem->group_of_node[v]];
        if (device_of_node[v] < problem->given.device_count) continue;
        return pen_error(PEN_INTERNAL, "the strategy '%s' left a node out", strategy->name);
    }
    PEN_TRY(pen_status_add_context(pen_placement_new(problem, device_of_node, arena, &placement),
                                   "for the placement of the strategy '%s'", strategy->name));
    const pen_status wrong = pen_placement_check(problem, placement);
    if (pen_status_get_code(wrong) == PEN_OUT_OF_MEMORY) return wrong;
    if (wrong != PEN_OK) {
        return pen_status_join(
            pen_error(PEN_INTERNAL, "the strategy '%s' made a wrong placement", strategy->name),
            wrong);
    }
    double bound;
    PEN_TRY(pen_bound(problem, arena, &bound));
    bound = fmax(bound, result.lower_bound);
    if (bound > placement->value * (1.0 + STRATEGY_ROUNDING)) {
        return pen_error(PEN_INTERNAL,
                         "for the strategy '%s' a lower bound, %.17g, is above a value, %.17g",
                         strategy->name, bound, placement->value);
    }
    placement->lower_bound = fmin(bound, placement->value);
    placement->is_cut = result.is_cut;
    *out_placement = placement;
    return PEN_OK;
}
