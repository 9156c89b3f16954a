// Whole training steps on one device, on made-up examples: only their time is of interest. And
// company: other devices of the machine that run the same steps meanwhile, since they share its
// caches and its memory's bandwidth.
//
// Lifetime: who opens a runner destroys its executor; what it points to outlives it.
// Threads:  a runner's, one at a time. A companion has a thread of its own.
#ifndef PEN_SCHEDULER_MEASURE_STEP_RUNNER_H
#define PEN_SCHEDULER_MEASURE_STEP_RUNNER_H

#include "base/status.h"
#include "device/device.h"
#include "scheduler/compile/compile.h"
#include "scheduler/runtime/executor/executor.h"

typedef struct pen_step_runner {
    pen_device *device;
    const pen_program *program;
    uint32_t microbatch_count;
    uint32_t lanes;         // that they form; 0 is 1
    pen_executor *executor; // NULL until it is opened
} pen_step_runner;

// Makes the executor, and examples for it.
// DOES_NOT_FIT: the model is larger than the device; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_step_runner_open(pen_step_runner *runner);
// Runs step `step`, counted from 1. What running returns.
PEN_NODISCARD pen_status pen_step_runner_run(pen_step_runner *runner, uint64_t step,
                                             double *out_seconds);

typedef struct pen_step_company pen_step_company;

// Opens devices of the kind of `like`, on which steps of its program run from now on.
// As pen_step_runner_open; UNAVAILABLE: no thread
PEN_NODISCARD pen_status pen_step_company_start(const pen_step_runner *like,
                                                const pen_device_options *others, uint32_t count,
                                                pen_step_company **out_company);
// Waits for the steps that run, and closes the devices. Accepts NULL. What running returned.
PEN_NODISCARD pen_status pen_step_company_end(pen_step_company *company);

#endif // PEN_SCHEDULER_MEASURE_STEP_RUNNER_H
