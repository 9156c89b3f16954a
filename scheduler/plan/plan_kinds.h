// What a plan over devices of other kinds than cpu says besides: of which kind each is, which
// operators a GPU leaves to the host, since it has no kernel for them, and what of its memory no
// figure has.
#ifndef PEN_SCHEDULER_PLAN_PLAN_KINDS_H
#define PEN_SCHEDULER_PLAN_PLAN_KINDS_H

#include "base/text.h"
#include "partition/plan/plan.h"
#include "scheduler/compile/compile.h"
#include "scheduler/plan/plan_model.h"
#include "scheduler/schedule/schedule.h"

// Adds lines to `text`; nothing where all devices are of kind cpu. As pen_program_cut
PEN_NODISCARD pen_status pen_plan_add_kinds(const pen_plan_model *model, const pen_cluster *cluster,
                                            const pen_plan *plan, const pen_schedule *schedule,
                                            pen_arena *arena, pen_text *text);

#endif // PEN_SCHEDULER_PLAN_PLAN_KINDS_H
