#include "scheduler/engine.h"

#include "scheduler/local_engine.h"

pen_status pen_engine_create(const pen_engine_options *options, pen_engine **out_engine) {
    return pen_local_engine_create(options, out_engine);
}

void pen_engine_destroy(pen_engine *engine) {
    if (engine != NULL) engine->kind->destroy(engine);
}
