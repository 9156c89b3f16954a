#include "partition/replicas/plan_whole.h"

#include "partition/plan/plan_build.h"
#include "partition/replicas/replica_rebuild.h"
#include "partition/replicas/replica_search.h"
#include "partition/replicas/replica_spec.h"

pen_status pen_plan_build(const pen_plan_request *request, pen_arena *arena, pen_plan **out_plan) {
    if (pen_replicas_are_asked(request->placement, request->lanes)) {
        return pen_replica_search(request, arena, out_plan);
    }
    return pen_pipeline_build(request, arena, out_plan);
}

pen_status pen_plan_rebuild(const pen_plan_request *request, const pen_plan *given,
                            pen_arena *arena, pen_plan **out_plan) {
    if (given->replica_count == 0) return pen_pipeline_rebuild(request, given, arena, out_plan);
    PEN_TRY(pen_plan_check_devices(request->cluster, given));
    return pen_replica_plan_rebuild(request, given, arena, out_plan);
}

pen_status pen_plan_add_reasons(const pen_plan_request *request, pen_plan *plan, pen_arena *arena) {
    if (plan->replica_count > 0) return pen_replica_plan_add_reasons(request, plan, arena);
    return pen_pipeline_add_reasons(request, plan, arena);
}
