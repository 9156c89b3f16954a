// Whether a plan may be believed.
#ifndef PEN_PARTITION_PLAN_PLAN_CHECK_H
#define PEN_PARTITION_PLAN_PLAN_CHECK_H

#include "partition/plan/plan.h"

// Whether a plan holds together: stages and devices that are there, each node once and by one name,
// stages with as many nodes as they say and in order, figures that are numbers, memory within the
// limits and the sum of its kinds, edges that carry what their transfers sum up to, a value not
// below its bound. What needs the model is pen_plan_check_model (partition/plan/plan_build.h). Of a
// plan whose stages were edited, some may be empty, and edges, transfers and the value are not
// judged.
//   INVALID_INPUT  what is wrong, by name
//   DOES_NOT_FIT   a device over its memory
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_check(const pen_plan *plan, bool is_edited, pen_arena *arena);

#endif // PEN_PARTITION_PLAN_PLAN_CHECK_H
