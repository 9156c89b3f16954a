// Why the devices of a plan wait, in a line of its table: for those who ask what to change.
#ifndef PEN_PARTITION_PLAN_PLAN_WAITING_H
#define PEN_PARTITION_PLAN_PLAN_WAITING_H

#include "base/text.h"
#include "partition/plan/plan.h"

// Adds one line, where devices wait for more than a twentieth of the step, by the first that holds:
//   "the gap"     values of a microbatch are longer on their way between two devices than any
//                 device computes it
//   "the bubble"  half of the waiting or more is there because one device computes for longer than
//                 the others
//   "the gap"     pipelines fill and drain, which no bound counts
// Lines of the gap stand only where it is above a twentieth. Nothing of plans for another objective
// than the time of a step, and of those that use one device.
void pen_plan_dump_waiting(const pen_plan *plan, pen_text *text);

#endif // PEN_PARTITION_PLAN_PLAN_WAITING_H
