#include "scheduler/engine.h"

#include "scheduler/local_engine.h"
#include "scheduler/pipeline_engine.h"

pen_status pen_engine_create(const pen_engine_options *options, pen_engine **out_engine) {
    const pen_cluster_spec *cluster = &options->job->cluster;
    const bool is_one = cluster->device_count == 1 && cluster->devices[0].host == NULL;
    return is_one || options->as_reference ? pen_local_engine_create(options, out_engine)
                                           : pen_pipeline_engine_create(options, out_engine);
}

void pen_engine_destroy(pen_engine *engine) {
    if (engine != NULL) engine->kind->destroy(engine);
}
