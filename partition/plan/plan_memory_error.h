// Why a placement does not fit.
#ifndef PEN_PARTITION_PLAN_PLAN_MEMORY_ERROR_H
#define PEN_PARTITION_PLAN_PLAN_MEMORY_ERROR_H

#include "partition/plan/plan_solution.h"

// DOES_NOT_FIT for a solution that does not: device, bytes by kind, what is missing, and the nodes
// that take most of it there.
PEN_NODISCARD pen_status pen_plan_error_memory(const pen_planner *planner,
                                               const pen_plan_solution *solution, pen_arena *arena);

#endif // PEN_PARTITION_PLAN_PLAN_MEMORY_ERROR_H
