#include "partition/plan/plan_value.h"

#include <math.h>

#include "base/format/yaml_writer.h"
#include "partition/bound/bounds.h"
#include "partition/objective/placement.h"
#include "partition/problem/problem_build.h"

#define VALUE_ROUNDING 1e-9

// What a bound is worked out of.
static pen_status value_lower(const pen_planner *planner, pen_objective objective,
                              const double *bytes_limit, pen_arena *arena,
                              pen_problem **out_problem) {
    const pen_planner_wish wish = {.objective = objective,
                                   .is_contiguous = planner->request->placement->contiguous,
                                   .counts_devices = true,
                                   .bytes_limit = bytes_limit,
                                   .microbatches = planner->one_microbatch};
    pen_problem_given *given;
    PEN_TRY(PEN_NEW(arena, 1, &given));
    PEN_TRY(pen_planner_lower(planner, &wish, arena, given));
    given->is_finer = planner->is_finer;
    return pen_problem_build(given, arena, out_problem);
}

// What no step can be below that is simulated with costs as a plan's file has them, rounded
// (stage_costs.h); `bound` holds for the costs themselves.
static double value_rounded_bound(const pen_planner *planner, double bound) {
    const bool is_step_time = planner->request->placement->objective == PEN_OBJECTIVE_STEP_TIME;
    return is_step_time ? bound * (1.0 - PEN_YAML_ROUNDING) : bound;
}

// A bound above a value would be a proof of the impossible: once it is worked out without memory
// limits, then it is a mistake of ours.
pen_status pen_plan_bound(const pen_planner *planner, double value, double proved, pen_arena *arena,
                          double *out_lower_bound) {
    const pen_objective objective = planner->request->placement->objective;
    const double most = value * (1.0 + VALUE_ROUNDING);
    const double searched = value_rounded_bound(planner, proved);
    pen_problem *problem;
    double bound;
    PEN_TRY(value_lower(planner, objective, planner->bytes_limit, arena, &problem));
    PEN_TRY(pen_bound(problem, arena, &bound));
    bound = value_rounded_bound(planner, bound);
    if (searched <= most) bound = fmax(bound, searched);
    if (bound > most) {
        // the value's placement fits, so the problem reckons with more memory than it takes
        PEN_TRY(value_lower(planner, objective, planner->no_limit, arena, &problem));
        PEN_TRY(pen_bound(problem, arena, &bound));
        bound = value_rounded_bound(planner, bound);
    }
    if (bound > most) {
        return pen_error(PEN_INTERNAL, "a lower bound, %.17g, is above a value, %.17g", bound,
                         value);
    }
    *out_lower_bound = fmin(bound, value);
    return PEN_OK;
}

// Where the nodes of the problem are.
static pen_status value_devices(const pen_problem_given *given, const pen_plan_solution *solution,
                                pen_arena *arena, uint32_t **out_device_of_node) {
    uint32_t *device_of_node;
    PEN_TRY(PEN_NEW(arena, given->node_count, &device_of_node));
    for (uint32_t n = 0; n < given->node_count; n++) {
        device_of_node[n] = solution->device_of_node[given->nodes[n].color];
    }
    *out_device_of_node = device_of_node;
    return PEN_OK;
}

static pen_status value_of(const pen_problem *problem, const uint32_t *device_of_node,
                           pen_arena *arena, double *out_value) {
    pen_placement *placement;
    PEN_TRY(pen_placement_new(problem, device_of_node, arena, &placement));
    *out_value = placement->value;
    return PEN_OK;
}

pen_status pen_plan_latency(const pen_planner *planner, const pen_plan_solution *solution,
                            pen_arena *arena, double *out_seconds) {
    pen_problem *problem;
    uint32_t *device_of_node;
    PEN_TRY(value_lower(planner, PEN_OBJECTIVE_LATENCY, planner->bytes_limit, arena, &problem));
    PEN_TRY(value_devices(&problem->given, solution, arena, &device_of_node));
    return value_of(problem, device_of_node, arena, out_seconds);
}

// The job's `stages` counts devices that are used, which only a whole plan tells.
static pen_status value_check_used(const pen_problem_given *given, const uint32_t *device_of_node,
                                   pen_arena *arena) {
    bool *is_used;
    uint32_t used = 0;
    PEN_TRY(PEN_NEW(arena, given->device_count, &is_used));
    for (uint32_t n = 0; n < given->node_count; n++) {
        used += !is_used[device_of_node[n]];
        is_used[device_of_node[n]] = true;
    }
    const uint32_t minimum = given->devices_used_minimum, maximum = given->devices_used_maximum;
    if (used < minimum) {
        return pen_error(PEN_INVALID_INPUT,
                         "the plan uses %u devices, but the job's `stages` asks for at least %u",
                         used, minimum);
    }
    if (maximum > 0 && used > maximum) {
        return pen_error(PEN_INVALID_INPUT,
                         "the plan uses %u devices, but the job's `stages` allows %u", used,
                         maximum);
    }
    return PEN_OK;
}

// Whether someone cut the stages of a plan finer than its placement makes them.
static pen_status value_is_finer(const pen_planner *planner, const pen_plan_solution *solution,
                                 const uint32_t *device_of_node, bool *out_is_finer) {
    PEN_TRY(pen_stage_forming_run(planner->forming, device_of_node));
    *out_is_finer = solution->split.stage_count > planner->forming->stage_count;
    return PEN_OK;
}

// The value of a plan that was given, as the strategies would have valued it.
pen_status pen_plan_value(const pen_planner *planner, const pen_plan_solution *solution,
                          pen_arena *arena, double *out_value, double *out_lower_bound) {
    pen_problem *problem;
    uint32_t *device_of_node;
    PEN_TRY(value_lower(planner, planner->request->placement->objective, planner->bytes_limit,
                        arena, &problem));
    const pen_problem_given *given = &problem->given;
    PEN_TRY(value_devices(given, solution, arena, &device_of_node));
    PEN_TRY(value_check_used(given, device_of_node, arena));
    if (given->is_contiguous) {
        bool is_acyclic;
        PEN_TRY(pen_placement_is_acyclic(problem, device_of_node, arena, &is_acyclic));
        if (!is_acyclic) {
            return pen_error(PEN_INVALID_INPUT,
                             "the job asks for a line of devices (contiguous: true), but those of "
                             "the plan wait for each other in a circle");
        }
    }
    *out_value = solution->prediction.step_seconds;
    if (given->objective != PEN_OBJECTIVE_STEP_TIME) {
        PEN_TRY(value_of(problem, device_of_node, arena, out_value));
    }
    pen_planner given_planner = *planner;
    PEN_TRY(value_is_finer(planner, solution, device_of_node, &given_planner.is_finer));
    return pen_plan_bound(&given_planner, *out_value, 0.0, arena, out_lower_bound);
}
