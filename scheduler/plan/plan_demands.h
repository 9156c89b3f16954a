// What a job demands of a placement, against the devices that there are.
#ifndef PEN_SCHEDULER_PLAN_PLAN_DEMANDS_H
#define PEN_SCHEDULER_PLAN_PLAN_DEMANDS_H

#include "partition/costs/cluster.h"
#include "scheduler/job/job.h"

//   INVALID_INPUT  more stages or replicas than devices, or more replicas than lanes; with position
//   NOT_FOUND      an owner that is no device
//   UNSUPPORTED    as pen_replicas_check_spec
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_check_demands(const pen_job *job, const pen_cluster *cluster,
                                                pen_arena *arena);

#endif // PEN_SCHEDULER_PLAN_PLAN_DEMANDS_H
