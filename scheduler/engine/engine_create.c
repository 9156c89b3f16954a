#include "scheduler/engine/engine.h"

#include <string.h>

#include "scheduler/engine/local_engine.h"
#include "scheduler/engine/pipeline_engine.h"
#include "scheduler/plan/plan_job.h"

bool pen_engine_is_local(const pen_job *job) {
    return job->cluster.device_count == 1 && job->cluster.devices[0].host == NULL;
}

static bool engine_is_constrained(const pen_constraints *constraints) {
    return constraints->pins.count > 0 || constraints->colocated.count > 0 ||
           constraints->no_splits.count > 0 || constraints->forbidden.count > 0 ||
           constraints->stages.minimum > 1;
}

// One device needs no plan, but a pin to a device that is not there is a mistake on one, too.
static pen_status engine_check_constraints(const pen_engine_options *options) {
    const pen_plan_form_sizes sizes = {options->rest, options->evaluate_batch,
                                       options->evaluate_rest};
    const pen_plan_job_options asked = {.objective = -1,
                                        .seed = -1,
                                        .info = options->info,
                                        .part = options->part,
                                        .mode = options->mode,
                                        .batch = options->evaluate_batch,
                                        .sizes = &sizes};
    pen_plan_job *plan_job = NULL;
    pen_arena *arena = NULL;
    pen_plan *plan;
    if (!engine_is_constrained(&options->job->placement.constraints)) return PEN_OK;
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) status = pen_plan_job_create(options->job, &asked, &plan_job);
    if (status == PEN_OK) status = pen_plan_job_place(plan_job, arena, &plan);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
    return status;
}

pen_status pen_engine_create(const pen_engine_options *options, pen_engine **out_engine) {
    if (options->as_reference) return pen_local_engine_create(options, out_engine);
    if (!pen_engine_is_local(options->job)) return pen_pipeline_engine_create(options, out_engine);
    PEN_TRY(engine_check_constraints(options));
    return pen_local_engine_create(options, out_engine);
}

pen_evaluation_batch pen_engine_evaluated(const pen_engine_passed *passed) {
    pen_evaluation_batch batch = {.program = passed->program,
                                  .batch = passed->batch,
                                  .loss = passed->loss,
                                  .target_count = passed->target_count,
                                  .correct_count = passed->correct_count};
    memcpy(batch.terms, passed->terms, sizeof batch.terms);
    memcpy(batch.seen, passed->seen, sizeof batch.seen);
    return batch;
}

void pen_engine_destroy(pen_engine *engine) {
    if (engine != NULL) engine->kind->destroy(engine);
}
