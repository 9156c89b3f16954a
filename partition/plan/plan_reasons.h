// Why each node is where it is, in a line.
//
// What moves together is judged together: a pin, a device that is the only one, neighbours that are
// all on the same device (elsewhere there would be a transfer each way), or, at the edge of a
// stage, what the step would cost with it on the other side.
#ifndef PEN_PARTITION_PLAN_PLAN_REASONS_H
#define PEN_PARTITION_PLAN_PLAN_REASONS_H

#include "partition/plan/plan_solution.h"

// out_reasons: [node_count of the graph], set for listed nodes. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_reasons(const pen_planner *planner,
                                          const pen_plan_solution *solution, pen_arena *arena,
                                          const char *const **out_reasons);

// That of one listed node. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_reason(const pen_planner *planner,
                                         const pen_plan_solution *solution, uint32_t node,
                                         pen_arena *arena, const char **out_reason);

#endif // PEN_PARTITION_PLAN_PLAN_REASONS_H
