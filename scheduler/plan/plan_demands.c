#include "scheduler/plan/plan_demands.h"

#include "partition/replicas/replica_spec.h"

// More devices than there are cannot be used.
static pen_status demands_check_stages(const pen_job *job, const pen_cluster *cluster) {
    const int64_t *minimum = &job->placement.constraints.stages.minimum;
    if (*minimum <= (int64_t)cluster->device_count) return PEN_OK;
    return pen_job_blame(job, minimum,
                         pen_error(PEN_INVALID_INPUT,
                                   "placement.stages.minimum: found %lld, expected at most %u: a "
                                   "device for each",
                                   (long long)*minimum, cluster->device_count));
}

pen_status pen_plan_check_demands(const pen_job *job, const pen_cluster *cluster,
                                  pen_arena *arena) {
    const void *field = &job->placement;
    PEN_TRY(demands_check_stages(job, cluster));
    const pen_status status = pen_replicas_check_spec(&job->placement, cluster,
                                                      (uint32_t)job->train.lanes, arena, &field);
    return pen_job_blame(job, field, status);
}
