// Predicted against measured, after a run over several devices: as a table for people, as JSON, and
// as one line while it runs.
//
// Figures that are not known are negative (scheduler/engine/engine.h): they are a dash in the
// table, and left out of JSON; a row without any is left out.
//
// Equal reports give equal texts, which live in `arena`.
#ifndef PEN_SCHEDULER_REPORT_RUN_REPORT_H
#define PEN_SCHEDULER_REPORT_RUN_REPORT_H

#include "base/format/json_writer.h"
#include "scheduler/engine/engine.h"

// Rows of a figure each: predicted, measured, their ratio. "" for a report without devices.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_report_text(const pen_engine_report *report, pen_arena *arena,
                                             const char **out_text);

typedef enum pen_run_report_side {
    PEN_RUN_REPORT_PREDICTED,
    PEN_RUN_REPORT_MEASURED,
} pen_run_report_side;

// One side's figures as keys of the object that is open: "step_seconds", "bubble", "devices":
// [{"name", "busy_seconds", "bytes", "process_bytes", "sent_bytes"}, ...]; of what was measured
// also "worker" and "wait_seconds". Nothing for a report without devices.
void pen_run_report_json(pen_json_writer *json, const pen_engine_report *report,
                         pen_run_report_side side);

// "bubble 12 %, slowest stage 2 on 'c'", as far as that is known; else "". Returns out_text.
#define PEN_RUN_REPORT_LINE_BYTES 128
const char *pen_run_report_line(const pen_engine_pulse *pulse,
                                char out_text[PEN_RUN_REPORT_LINE_BYTES]);

#endif // PEN_SCHEDULER_REPORT_RUN_REPORT_H
