// A plan made by hand, of which made_trace.h is a run.
#ifndef PEN_TESTS_SUPPORT_MADE_PLAN_H
#define PEN_TESTS_SUPPORT_MADE_PLAN_H

#include "partition/plan/plan.h"
#include "scheduler/schedule/schedule_simulate.h"

typedef struct made_plan {
    pen_plan plan;
    const pen_timeline *timeline; // of GPipe
    pen_plan_device devices[2];
    pen_stage stages[2];
    pen_stage_edge edge;
    double bytes_limit[2];
    pen_plan_stage stage_figures[2];
    pen_plan_transfer transfers[3];
} made_plan;

// Lives in `arena`.
made_plan *made_plan_new(pen_arena *arena);

#endif // PEN_TESTS_SUPPORT_MADE_PLAN_H
