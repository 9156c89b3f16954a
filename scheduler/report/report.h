// A graph, its plan and its time line, planned and measured, for people: one HTML page, and the
// same as JSON.
//
// The page needs no network and no other file: it is usable at 10,000 nodes (drawn on a canvas, and
// only what is in view), and nothing that a name contains can become part of it other than as text.
//
// Equal reports give equal texts, which live in `arena`.
#ifndef PEN_SCHEDULER_REPORT_REPORT_H
#define PEN_SCHEDULER_REPORT_REPORT_H

#include "scheduler/report/report_plan.h"

//   INVALID_INPUT  the trace is one of another plan
//   CORRUPT        the trace contradicts itself
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_report_html(const pen_report *report, pen_arena *arena,
                                         const char **out_text);
PEN_NODISCARD pen_status pen_report_json(const pen_report *report, pen_arena *arena,
                                         const char **out_text);

#endif // PEN_SCHEDULER_REPORT_REPORT_H
