// The places of a plan's nodes, for exporters.
#ifndef PEN_PARTITION_PLAN_PLAN_PLACES_H
#define PEN_PARTITION_PLAN_PLAN_PLACES_H

#include "graph/import/node_places.h"
#include "partition/plan/plan.h"

// Lives in the arena and borrows the plan's texts. The plan has been checked. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_places(const pen_plan *plan, pen_arena *arena,
                                         pen_node_places *out_places);

#endif // PEN_PARTITION_PLAN_PLAN_PLACES_H
