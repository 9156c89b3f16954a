// What the stages of a plan are worth under the objective, and what no placement can be below.
#ifndef PEN_PARTITION_PLAN_PLAN_VALUE_H
#define PEN_PARTITION_PLAN_PLAN_VALUE_H

#include "partition/plan/plan_solution.h"

// Of the objective, the cost table and the schedule of the planner's request, whatever the solution
// comes from.
//   INVALID_INPUT  devices in a circle where the job asks for a line, more or fewer of them in use
//                  than it allows
//   DOES_NOT_FIT   a node that no device has the memory for
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_value(const pen_planner *planner,
                                        const pen_plan_solution *solution, pen_arena *arena,
                                        double *out_value, double *out_lower_bound);

// What no plan that fits can be below: of the problem with the job's own limits and one microbatch
// in flight, or `proved`, if that is higher (0: nothing was). `value` is of a plan that fits.
//   INTERNAL       it is below the bound
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_bound(const pen_planner *planner, double value, double proved,
                                        pen_arena *arena, double *out_lower_bound);

// The latency of a solution, whatever the request's objective is. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_latency(const pen_planner *planner,
                                          const pen_plan_solution *solution, pen_arena *arena,
                                          double *out_seconds);

#endif // PEN_PARTITION_PLAN_PLAN_VALUE_H
