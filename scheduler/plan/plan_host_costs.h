// What a node takes on a device that has no kernel for it, as a GPU may: it runs on the host, and
// its operands go there and back. On the host it takes what was measured of the operator on a cpu
// device there, else what the rates that were measured of one give, else what is assumed. How long
// the copies are is assumed: so is the sum, as plans count sources.
#ifndef PEN_SCHEDULER_PLAN_PLAN_HOST_COSTS_H
#define PEN_SCHEDULER_PLAN_PLAN_HOST_COSTS_H

#include "partition/costs/cost_model.h"
#include "scheduler/plan/plan_model.h"

// Puts that in place of estimates of `*costs`, in a model of its own; figures of `table` (NULL:
// none) stay. The same model where there is no such node. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_price_host(const pen_plan_model *model,
                                             const pen_cluster *cluster,
                                             const pen_cost_table *table, pen_arena *arena,
                                             const pen_cost_model **costs);

#endif // PEN_SCHEDULER_PLAN_PLAN_HOST_COSTS_H
