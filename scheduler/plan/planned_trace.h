// A planned step as if it had been run: so that what was planned is seen with the same means as
// what was measured (trace_summary.h, trace_levels.h, trace_file.h).
//
// Threads: pure.
#ifndef PEN_SCHEDULER_PLAN_PLANNED_TRACE_H
#define PEN_SCHEDULER_PLAN_PLANNED_TRACE_H

#include "partition/plan/plan.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "scheduler/trace/trace.h"

// One worker, "plan", whose events are the tasks and transfers of `timeline`, round 0, with the
// memory figures of its stages. A channel is all that goes from a stage to another for a
// microbatch, or once a step; it is named after the plan's transfers. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_planned_trace(const pen_plan *plan, const pen_timeline *timeline,
                                           pen_arena *arena, const pen_trace **out_trace);

// What a trace needs to tell the bytes that are held: [stage_count], [device_count]. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_planned_memory(const pen_stage_graph *stages, pen_arena *arena,
                                            const pen_trace_stage **out_stages,
                                            const double **out_fixed_bytes);

// Fills in what a run is compared with: what the plan's simulation says of the channels
// ([channel_count] of the trace), which leave with `tasks` (likewise; of updates, `microbatch` is
// the phase), and the slowness of its devices. What is not of the plan has planned_seconds below 0.
// INVALID_INPUT: the plan's schedule; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_planned_expect(const pen_plan *plan, const pen_task *tasks,
                                            pen_arena *arena, pen_trace_channel *channels,
                                            pen_trace *io_trace);

#endif // PEN_SCHEDULER_PLAN_PLANNED_TRACE_H
