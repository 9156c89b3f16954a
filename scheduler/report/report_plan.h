// A report of a plan: its time line, and its devices and stages as groups of the drawing.
#ifndef PEN_SCHEDULER_REPORT_REPORT_PLAN_H
#define PEN_SCHEDULER_REPORT_REPORT_PLAN_H

#include "scheduler/report/report.h"

// Everything of the report but its drawing, which is to be made with the groups: first the devices,
// each with a colour of its own, then the stages, within them.
//   NOT_FOUND      the plan lists a node that the graph has not; no such schedule
//   INVALID_INPUT  its stages contradict themselves
//   DOES_NOT_FIT   its schedule does not keep within the devices' memory
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_report_plan(const pen_graph *graph, const pen_plan *plan,
                                         pen_arena *arena, pen_report *out_report,
                                         pen_drawing_options *out_groups);

#endif // PEN_SCHEDULER_REPORT_REPORT_PLAN_H
