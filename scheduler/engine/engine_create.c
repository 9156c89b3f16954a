#include "scheduler/engine/engine.h"

#include "scheduler/engine/local_engine.h"
#include "scheduler/engine/pipeline_engine.h"

bool pen_engine_is_local(const pen_job *job) {
    return job->cluster.device_count == 1 && job->cluster.devices[0].host == NULL;
}

pen_status pen_engine_create(const pen_engine_options *options, pen_engine **out_engine) {
    return pen_engine_is_local(options->job) || options->as_reference
               ? pen_local_engine_create(options, out_engine)
               : pen_pipeline_engine_create(options, out_engine);
}

void pen_engine_destroy(pen_engine *engine) {
    if (engine != NULL) engine->kind->destroy(engine);
}
