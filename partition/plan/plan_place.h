// The rounds of placing that end in a solution whose memory is consistent.
#ifndef PEN_PARTITION_PLAN_PLAN_PLACE_H
#define PEN_PARTITION_PLAN_PLAN_PLACE_H

#include "partition/plan/plan_solution.h"

typedef struct pen_plan_placed {
    pen_plan_solution solution;
    const char *strategy;
    double value;       // of the objective
    double lower_bound; // 0: not known
    bool is_cut;        // the clock cut a search: another run may find another plan
} pen_plan_placed;

// As pen_plan_build. The solution fits.
PEN_NODISCARD pen_status pen_plan_place(const pen_planner *planner, pen_arena *arena,
                                        pen_plan_placed *out_placed);

#endif // PEN_PARTITION_PLAN_PLAN_PLACE_H
