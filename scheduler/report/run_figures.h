// What a plan predicted, beside what a trace measured.
//
// Lifetime: in the arena. Threads: pure.
#ifndef PEN_SCHEDULER_REPORT_RUN_FIGURES_H
#define PEN_SCHEDULER_REPORT_RUN_FIGURES_H

#include "partition/plan/plan.h"
#include "scheduler/engine/engine.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "scheduler/trace/trace_summary.h"

// That the trace is one of a run of this plan: the same devices, by name and in order, and no stage
// that the plan has not. INVALID_INPUT says what differs
PEN_NODISCARD pen_status pen_run_check_trace(const pen_plan *plan, const pen_trace *trace);

// A report with all that a plan and a trace tell: times, waits, bubble, bytes sent, planned
// buffers. Bytes that were measured, and processes, are not known (-1): whoever knows them fills
// them in. `summary` is of `trace`; both may be NULL: nothing was measured. OUT_OF_MEMORY;
// INVALID_INPUT as pen_run_check_trace
PEN_NODISCARD pen_status pen_run_figures(const pen_plan *plan, const pen_timeline *timeline,
                                         const pen_trace *trace, const pen_trace_summary *summary,
                                         pen_arena *arena, pen_engine_report **out_report);

// The stages with the seconds that their tasks really took (medians), where they ran: simulated
// again, they say how much of a difference comes from wrong costs. Lives in `arena`, and borrows
// the rest of `stages`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_measured_stages(const pen_stage_graph *stages,
                                                 const pen_trace_summary *summary, pen_arena *arena,
                                                 pen_stage_graph *out_stages);

#endif // PEN_SCHEDULER_REPORT_RUN_FIGURES_H
