// A graph, its plan and its time line, planned and measured, for people: one HTML page, and the
// same as JSON.
//
// The page needs no network and no other file: it is usable at 10,000 nodes (drawn on a canvas, and
// only what is in view), and nothing that a name contains can become part of it other than as text.
//
// Equal reports give equal texts, which live in `arena`.
#ifndef PEN_SCHEDULER_REPORT_REPORT_H
#define PEN_SCHEDULER_REPORT_REPORT_H

#include "graph/dump/drawing.h"
#include "partition/plan/plan.h"
#include "scheduler/engine/engine.h"
#include "scheduler/schedule/schedule_simulate.h"

typedef struct pen_report {
    const pen_graph *graph;
    const pen_drawing *drawing; // of the graph, laid out
    const pen_plan *plan;       // or NULL
    // [node_count] of the graph: entries of plan->nodes, PEN_DRAWING_NONE; NULL without a plan
    const uint32_t *plan_node_of_node;
    const pen_timeline *timeline;     // of the plan's stages, or NULL
    const pen_trace *trace;           // of a run of the plan, or NULL
    const pen_engine_report *figures; // of that run; NULL: those that plan and trace tell
} pen_report;

//   INVALID_INPUT  the trace is one of another plan
//   CORRUPT        the trace contradicts itself
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_report_html(const pen_report *report, pen_arena *arena,
                                         const char **out_text);
PEN_NODISCARD pen_status pen_report_json(const pen_report *report, pen_arena *arena,
                                         const char **out_text);

#endif // PEN_SCHEDULER_REPORT_REPORT_H
