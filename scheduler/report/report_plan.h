// What a report is made of; of a plan: its time line, and its devices and stages as groups of the
// drawing.
#ifndef PEN_SCHEDULER_REPORT_REPORT_PLAN_H
#define PEN_SCHEDULER_REPORT_REPORT_PLAN_H

#include "graph/dump/drawing.h"
#include "partition/plan/plan.h"
#include "scheduler/engine/engine.h"
#include "scheduler/report/training_history.h"
#include "scheduler/schedule/schedule_simulate.h"

typedef struct pen_report {
    const pen_graph *graph;
    const pen_drawing *drawing; // of the graph, laid out
    const pen_drawing *modules; // the same with few boxes, by names; NULL: it has few
    const pen_plan *plan;       // or NULL
    // [node_count] of the graph: entries of plan->nodes, PEN_DRAWING_NONE; NULL without a plan
    const uint32_t *plan_node_of_node;
    const pen_timeline *timeline;        // of the plan's stages, or NULL
    const pen_trace *trace;              // of a run of the plan, or NULL
    const pen_engine_report *figures;    // of that run; NULL: those that plan and trace tell
    const pen_training_history *history; // of that run, or NULL
    const struct pen_rate_curve *search; // for a learning rate (rate_curve.h), or NULL
    bool is_live;       // the run goes on, and is asked for its curves where the page comes from
    const char *notice; // what its reader must know first, or NULL
} pen_report;

// Everything of the report but its drawing, which is to be made with the groups: first the devices,
// each with a colour of its own, then the stages, within them.
//   NOT_FOUND      the plan lists a node that the graph has not; no such schedule
//   INVALID_INPUT  its stages contradict themselves
//   DOES_NOT_FIT   its schedule does not keep within the devices' memory
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_report_plan(const pen_graph *graph, const pen_plan *plan,
                                         pen_arena *arena, pen_report *out_report,
                                         pen_drawing_options *out_groups);

// Of a drawing of more boxes than can be seen at once, the page shows modules first: nodes whose
// names begin alike are one box. `groups` are those of the drawing. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_report_add_modules(pen_report *report,
                                                const pen_drawing_options *groups,
                                                pen_arena *arena);

#endif // PEN_SCHEDULER_REPORT_REPORT_PLAN_H
