// Penstock for C programs: train the model of a job file, evaluate it, save its parameters.
//
//   pen_training *training;
//   pen_status status = pen_training_open("job.yaml", NULL, &training);
//   bool more = status == PEN_OK;
//   while (status == PEN_OK && more) {
//       pen_training_step_report step;
//       status = pen_training_step(training, &step, &more);
//       if (more) printf("step %llu: loss %g\n", (unsigned long long)step.step, step.loss);
//   }
//   if (status == PEN_OK) status = pen_training_save(training, "trained.safetensors");
//   pen_training_close(training);
//
// This header, layers.h (models built by the program itself) and base/status.h are all that is
// installed, and what they declare is all that the
// shared library exports. The other headers of the source tree may change from version to version.
//
// No pointer may be NULL where nothing is said of it.
//
// Lifetime: pen_training_open to pen_training_close.
// Threads:  one thread at a time uses a training; different trainings are independent.
#ifndef PEN_SCHEDULER_PENSTOCK_H
#define PEN_SCHEDULER_PENSTOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The version of the library that is running: "0.1.0".
const char *pen_version(void);

typedef struct pen_training pen_training;

typedef struct pen_training_options {
    uint64_t step_limit;    // 0: as many steps as the job says
    const char *parameters; // safetensors file to start from; NULL: those in the model file
} pen_training_options;

typedef struct pen_training_step_report {
    uint64_t step;  // counted from 1
    uint64_t epoch; // counted from 1
    double loss;    // mean over the step's examples, before its update
    uint64_t example_count;
    uint64_t target_count;  // predictions judged; 0 when the loss is not over classes
    uint64_t correct_count; // of those
    double learning_rate;
    double seconds;
} pen_training_step_report;

typedef struct pen_training_evaluation {
    uint64_t example_count;
    double loss;           // mean over all examples
    uint64_t target_count; // predictions judged; 0 when the loss is not over classes
    uint64_t correct_count;
    double seconds;
} pen_training_evaluation;

// Reads the job, imports and compiles its model, allocates, and starts reading data. `options` may
// be NULL. Errors name the file and line at fault. Devices with `host: localhost` are processes of
// the installed command `penstock` (or the file that PENSTOCK_WORKER in the environment names);
// they end with the thread that opened the training, at the latest.
//   INVALID_INPUT, NOT_FOUND, UNSUPPORTED, CORRUPT, IO  the job, the model or the data
//   DOES_NOT_FIT, OUT_OF_MEMORY                         the device's memory is too small
//   UNAVAILABLE, DEADLINE                               a worker is not there, or of another build
PEN_NODISCARD pen_status pen_training_open(const char *job_path,
                                           const pen_training_options *options,
                                           pen_training **out_training);
// Accepts NULL.
void pen_training_close(pen_training *training);

// Steps that will be run in all.
uint64_t pen_training_step_count(const pen_training *training);

// One step. *out_more is false when all steps were done before; then the report is all zero.
//   NOT_FINITE  the loss is infinite or not a number
//   IO, CORRUPT the data cannot be read any more
PEN_NODISCARD pen_status pen_training_step(pen_training *training,
                                           pen_training_step_report *out_report, bool *out_more);

// Loss and accuracy over the job's evaluation data, with the parameters as they are now.
//   NOT_FOUND   the job has no evaluation data
//   NOT_FINITE  the loss is infinite or not a number
PEN_NODISCARD pen_status pen_training_evaluate(pen_training *training,
                                               pen_training_evaluation *out_evaluation);

// Writes all parameters and running statistics as they are now.
PEN_NODISCARD pen_status pen_training_save(pen_training *training, const char *path);

// Writes the trained model as ONNX, in inference form, beside `path` and then renamed.
//   UNSUPPORTED  it has an operator that ONNX has not
PEN_NODISCARD pen_status pen_training_export(pen_training *training, const char *path);

#ifdef __cplusplus
}
#endif

#endif // PEN_SCHEDULER_PENSTOCK_H
