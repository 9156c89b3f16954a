// The engine of one device in this process: one program for each size, run microbatch by
// microbatch.
//
// The loss of a step is added up in microbatch order, as the pipeline does it.
//
// Lifetime, threads: as scheduler/engine/engine.h.
#ifndef PEN_SCHEDULER_ENGINE_LOCAL_ENGINE_H
#define PEN_SCHEDULER_ENGINE_LOCAL_ENGINE_H

#include "scheduler/engine/engine.h"
#include "scheduler/runner/runner.h"

// On the job's first device, which must be its only one and in this process. Errors carry the
// job's or the model's position.
PEN_NODISCARD pen_status pen_local_engine_create(const pen_engine_options *options,
                                                 pen_engine **out_engine);

// What is known of a value that was computed elsewhere.
typedef enum pen_local_seen {
    PEN_LOCAL_NOT_SEEN,
    PEN_LOCAL_SAME,
    PEN_LOCAL_OTHER,
} pen_local_seen;

// A step that was computed elsewhere, with the same tensors as are here.
typedef struct pen_local_elsewhere {
    const char *where; // for people: "device 'a' or 'b'"
    // The device that runs the node of this name, for people: "device 'a' of worker 2"; NULL: not
    // known.
    const char *(*find_device)(const void *context, const char *node);
    // Whether the value, of a microbatch of the step, had these bits then.
    pen_local_seen (*compare)(const void *context, uint64_t microbatch, const char *value,
                              uint64_t checksum);
    const void *context;
    uint32_t loss_count;
    const double *losses; // [loss_count] of microbatches; 0: not known
} pen_local_elsewhere;

// As the engine's explain, of such a step.
PEN_NODISCARD pen_status pen_local_engine_explain(pen_engine *engine, const pen_engine_step *step,
                                                  const pen_local_elsewhere *elsewhere);

#endif // PEN_SCHEDULER_ENGINE_LOCAL_ENGINE_H
