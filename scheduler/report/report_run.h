// The part of a report that is about time: the planned step, and those that were measured.
#ifndef PEN_SCHEDULER_REPORT_REPORT_RUN_H
#define PEN_SCHEDULER_REPORT_REPORT_RUN_H

#include "base/format/json_writer.h"
#include "scheduler/report/report_plan.h"

// Adds "run": {"planned": {...}, "measured": {...}, ...} to the object that is open; times in
// nanoseconds since the step's first task. Nothing for a report without a time line.
//   INVALID_INPUT  the report's trace is one of another plan
//   CORRUPT        it contradicts itself
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_report_run_json(pen_json_writer *json, const pen_report *report,
                                             pen_arena *arena);

#endif // PEN_SCHEDULER_REPORT_REPORT_RUN_H
