// A trained model put to work on the devices of a job: forward passes alone, planned for the memory
// that these take. Losses and outputs have the bits of one device.
//
// A lost worker is recovered from as the job's `recovery` says: another generation begins, gets the
// parameters again, and goes on with the first batch whose results were not handed on. Each is
// handed on once, in order.
//
// Lifetime: create to destroy; the options' job and info outlive it.
// Threads:  one.
#ifndef PEN_SCHEDULER_INFERENCE_INFERENCE_H
#define PEN_SCHEDULER_INFERENCE_INFERENCE_H

#include "scheduler/engine/engine.h"

typedef struct pen_inference pen_inference;

typedef struct pen_inference_options {
    const pen_job *job;
    const pen_dataset_info *info; // of the data: what the model is compiled for
    pen_dataset_part part;        // which data that is, for messages
    pen_compile_mode mode;        // EVALUATE or PREDICT
    uint64_t batch;               // examples at once
    uint64_t rest;                // and of the last batch; 0: it is whole
    const char *parameters;       // safetensors file; NULL: the model's own. Outlives it
    bool insecure;                // as pen_engine_options has them
    const char *worker_program;   //
    const volatile int *cancel;   //
} pen_inference_options;

// Plans, starts the devices, loads parameters. Errors carry the job's or the model's position. As
// pen_engine_create and pen_parameter_file_load
PEN_NODISCARD pen_status pen_inference_create(const pen_inference_options *options,
                                              pen_inference **out_inference);
// Accepts NULL.
void pen_inference_destroy(pen_inference *inference);

// The program of whole batches, as one device runs it.
const pen_program *pen_inference_program(const pen_inference *inference);
pen_engine *pen_inference_engine(pen_inference *inference);

// Loss and hits over every example of `dataset`, in the order of its files. EVALUATE. As
// pen_evaluate
PEN_NODISCARD pen_status pen_inference_evaluate(pen_inference *inference, pen_dataset *dataset,
                                                pen_evaluation *out_evaluation);

// Called with the rows of every output of the model, in order: `count` examples from `first` on.
// `rows[i]` has the bytes of output i for them.
typedef pen_status (*pen_prediction_fn)(void *context, const pen_program *program, uint64_t first,
                                        uint64_t count, const void *const *rows);

// The outputs for every example of `dataset`, or the first `example_limit` of them, 0: all.
// PREDICT. Errors as of pen_batches_next, the engine, and `take`
PEN_NODISCARD pen_status pen_inference_predict(pen_inference *inference, pen_dataset *dataset,
                                               uint64_t example_limit, pen_prediction_fn take,
                                               void *context);

// ---- for who forms batches itself (scheduler/serve/)
// Whether an error of the engine is that of a peer, and the job says to go on without.
bool pen_inference_can_recover(const pen_inference *inference, pen_status status);
// Whether all workers are there, asked when no pass is under way. UNAVAILABLE: one was lost
PEN_NODISCARD pen_status pen_inference_check(const pen_inference *inference);
// Says what was lost, and begins another generation with the parameters. `progress` passes were
// done since the last time; passes under way are given up. As the engine's recover
PEN_NODISCARD pen_status pen_inference_recover(pen_inference *inference, uint64_t progress,
                                               pen_status take_status);
// After a pass that found a wrong value in its batch: nobody was lost, but an engine over several
// devices has ended what it ran. Begins another generation with the same placement and the
// parameters; passes under way are given up. As recover
PEN_NODISCARD pen_status pen_inference_renew(pen_inference *inference);
// Other parameters from now on; no pass is under way. On an error of the file the old ones stay,
// unless it is found in the middle of loading. As pen_parameter_file_load
PEN_NODISCARD pen_status pen_inference_load(pen_inference *inference, const char *parameters);

#endif // PEN_SCHEDULER_INFERENCE_INFERENCE_H
