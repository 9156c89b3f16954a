// The contract of Penstock with C programs, defined in penstock_*.c: train the model
// of a job, evaluate it, predict with it, and take its parameters.
//
//   pen_training *training;
//   pen_status status = pen_training_open("job.yaml", NULL, &training);
//   bool more = status == PEN_OK;
//   while (status == PEN_OK && more) {
//       pen_training_step_report step = {.struct_size = sizeof step};
//       status = pen_training_step(training, &step, &more);
//       if (more) printf("step %llu: loss %g\n", (unsigned long long)step.step, step.loss);
//   }
//   if (status == PEN_OK) status = pen_training_save(training, "trained.safetensors");
//   pen_training_close(training);
//
// This header, layers.h (models built by the program itself) and base/status.h are all that is
// installed, and what they declare is all that the shared library exports. The other headers of the
// source tree may change from version to version.
//
// Structs grow: new members come at the end, and all zero means what was before. So each begins
// with `struct_size`, which the program sets to sizeof the struct before every call. Else, or where
// a member that this version does not know is not zero, a call is INVALID_INPUT or UNSUPPORTED.
//
// No pointer may be NULL where nothing is said of it.
//
// Lifetime: pen_training_open to pen_training_close.
// Threads:  one thread at a time uses a training; different trainings are independent. Worker
//           processes (`host: localhost`) end with the thread that has opened their training.
#ifndef PEN_SCHEDULER_PENSTOCK_H
#define PEN_SCHEDULER_PENSTOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The version of the library that is running: "0.1.0".
const char *pen_version(void);

// From now on `take` is called with each message, in place of standard error: `kind` is "error",
// "warning", "note" or "debug", `text` has no end of line. On any thread, also on several at
// once; it may not call this library. NULL: standard error again. Not while there are trainings.
typedef void (*pen_message_take)(void *context, const char *kind, const char *text);
void pen_messages_redirect(pen_message_take take, void *context);

// ---- arrays

typedef enum pen_array_element {
    PEN_ARRAY_BOOL, // one byte, 0 or 1
    PEN_ARRAY_UINT8,
    PEN_ARRAY_INT8,
    PEN_ARRAY_UINT16,
    PEN_ARRAY_INT16,
    PEN_ARRAY_UINT32,
    PEN_ARRAY_INT32,
    PEN_ARRAY_UINT64,
    PEN_ARRAY_INT64,
    PEN_ARRAY_FLOAT16,
    PEN_ARRAY_BFLOAT16,
    PEN_ARRAY_FLOAT32,
    PEN_ARRAY_FLOAT64,
} pen_array_element;

#define PEN_ARRAY_RANK_LIMIT 8

// Data of the program: what a job calls by name in `{format: arrays, inputs: {x: NAME}, labels:
// NAME}`, or an input to predict from. All are borrowed: training data until the training is
// closed. Bytes of UINT64, FLOAT16 and BFLOAT16 are no data to train on.
typedef struct pen_array {
    size_t struct_size;
    const char *name; // to predict from: of the model's input; "" is its only one
    pen_array_element element;
    uint32_t rank;        // 1 to PEN_ARRAY_RANK_LIMIT
    const int64_t *shape; // [rank]; the first counts examples
    const void *data;     // in C order, without gaps
} pen_array;

// What is known of a parameter, or of an output.
typedef struct pen_tensor_info {
    size_t struct_size;
    const char *name; // lives as long as the training
    pen_array_element element;
    uint32_t rank;
    int64_t shape[PEN_ARRAY_RANK_LIMIT];
    uint64_t bytes; // in C order
} pen_tensor_info;

// ---- trainings

typedef struct pen_training pen_training;

// Zero or NULL in a member: what stands first beside it.
typedef struct pen_training_options {
    size_t struct_size;
    uint64_t step_limit;    // as many steps as the job says; else so many
    const char *parameters; // those in the model's file; else of this safetensors file
    const char *job_text;   // the job's file is read; else the job, in YAML: then the path names it
                            // in messages, and paths in it are resolved beside that
    const pen_array *arrays; // [array_count], of one struct_size
    size_t array_count;
    bool inference;  // true: there are no steps, so that it takes neither training data nor memory
                     // for gradients; what is evaluated and predicted runs on one device here
    bool insecure;   // true: workers on other machines are reached without TLS
    bool continues;  // true: goes on from the newest checkpoint in the job's folder of those
    bool overwrites; // true: forgets the checkpoints in that folder
    const char *worker_program; // the installed command; else what `host: localhost` starts
    // Lent as long as the training. While the number is not 0, what is asked for ends with
    // CANCELLED: a step before it begins, an evaluation or a prediction between two batches,
    // waiting for workers at once. A step under way is finished, so that parameters are always
    // those after a step. Any thread, or a signal handler, may set it, and set it back.
    const volatile int *cancel;
} pen_training_options;

#define PEN_TRAINING_LOSSES_LIMIT 16

typedef struct pen_training_step_report {
    size_t struct_size;
    uint64_t step;  // counted from 1
    uint64_t epoch; // counted from 1
    double loss;    // mean over the step's examples, before its update. Skipped: may be not finite
    uint64_t example_count;
    uint64_t target_count;  // predictions judged; 0 when the loss is not over classes
    uint64_t correct_count; // of those
    double learning_rate;
    double seconds;      // from the batch at hand to the update done
    double wait_seconds; // for data, before that
    bool ends_epoch;
    // [pen_training_loss_count] each by itself, before its weight; the sum is `loss`
    double losses[PEN_TRAINING_LOSSES_LIMIT];
    // The evaluation after the step, as `evaluation` of the job says; zeros where there was none.
    bool is_evaluated;
    bool is_best;           // it was the best so far
    bool ends;              // and the training, since none was better for as long as the job says
    double evaluation_loss; // these as in pen_training_evaluation
    uint64_t evaluation_example_count;
    uint64_t evaluation_target_count;
    uint64_t evaluation_correct_count;
    double evaluation_seconds;
    double evaluation_losses[PEN_TRAINING_LOSSES_LIMIT];
} pen_training_step_report;

typedef struct pen_training_evaluation {
    size_t struct_size;
    uint64_t example_count;
    double loss;           // mean over all examples
    uint64_t target_count; // predictions judged; 0 when the loss is not over classes
    uint64_t correct_count;
    double seconds;
    double losses[PEN_TRAINING_LOSSES_LIMIT]; // as in a step's report
} pen_training_evaluation;

// Reads the job, imports and compiles its model, allocates, and starts reading data. `options` may
// be NULL. Errors name the file and line at fault. Devices with `host: localhost` are processes of
// the installed command `penstock` (or the file that PENSTOCK_WORKER in the environment names);
// they end with the thread that opened the training, at the latest.
//   INVALID_INPUT, NOT_FOUND, UNSUPPORTED, CORRUPT, IO  the job, the model or the data
//   DOES_NOT_FIT, OUT_OF_MEMORY                         the device's memory is too small
//   UNAVAILABLE, DEADLINE   a worker is not there, or of another build
//   CANCELLED               as the options' `cancel` wished
PEN_NODISCARD pen_status pen_training_open(const char *job_path,
                                           const pen_training_options *options,
                                           pen_training **out_training);
// Ends its worker processes, too. Accepts NULL.
void pen_training_close(pen_training *training);

// Steps that will be run in all.
uint64_t pen_training_step_count(const pen_training *training);

// How many losses are told one by one: those of the job's `losses`, 0 for a single one. Their names
// are those of the model's outputs, with the kind of the loss behind where several are of one
// output: "logits/l1". NULL from the count on; a name lives as long as the training.
uint32_t pen_training_loss_count(const pen_training *training);
const char *pen_training_loss_name(const pen_training *training, uint32_t index);

// One step. *out_more is false when all steps were done before, or evaluations have ended the
// training; then the report is all zero, and where the job has a folder for checkpoints, the last
// one is kept: where its disk takes none, that is a warning, and pen_training_keep tries again.
//   NOT_FINITE   the loss is infinite or not a number
//   INVALID_INPUT, IO, CORRUPT  the data: an index that a table lacks; they cannot be read any more
//   UNAVAILABLE, DEADLINE  workers were lost, and the job's `recovery` knows no way on
PEN_NODISCARD pen_status pen_training_step(pen_training *training,
                                           pen_training_step_report *out_report, bool *out_more);

// Keeps a checkpoint of the last step, for a training that ends early. Does nothing where the job
// has no folder for checkpoints. NO_STORAGE: it cannot be written now, and may be tried again
PEN_NODISCARD pen_status pen_training_keep(pen_training *training);

// Loss and accuracy over the job's evaluation data, with the parameters as they are now, or with
// their average where the job has one (`train: {average: …}`): so predictions and what is saved.
//   NOT_FOUND   the job has no evaluation data
//   NOT_FINITE  the loss is infinite or not a number
PEN_NODISCARD pen_status pen_training_evaluate(pen_training *training,
                                               pen_training_evaluation *out_evaluation);
// Other metrics of the last evaluation, also a step's, by numbers from 0. NULL: there are no more.
const char *pen_training_get_metric(const pen_training *training, uint32_t index, double *out);
// The same of the last step's own examples, before its update: those of them that a loss can tell.
const char *pen_training_get_step_metric(const pen_training *training, uint32_t index, double *out);

// The model's output (NULL: its first) for the examples of `inputs`, of one struct_size; without
// any, for those of the job's evaluation data: name, element type and shape of all rows together.
//   INVALID_INPUT  the inputs are not the model's
//   NOT_FOUND      there is no output of that name, or no evaluation data
//   UNSUPPORTED    the output has no row for each example
PEN_NODISCARD pen_status pen_training_describe_output(pen_training *training, const char *output,
                                                      const pen_array *inputs, size_t input_count,
                                                      pen_tensor_info *out_tensor);
// Computes these rows, in inference mode, with the parameters as they are now. `bytes` are those
// that the output was described with.
PEN_NODISCARD pen_status pen_training_predict(pen_training *training, const char *output,
                                              const pen_array *inputs, size_t input_count,
                                              void *out_rows, uint64_t bytes);

// The model's parameters and running statistics, numbered in its order. `bytes` are the tensor's.
// Between two steps; what is written is what the next one begins with.
PEN_NODISCARD pen_status pen_training_count_tensors(pen_training *training, uint32_t *out_count);
PEN_NODISCARD pen_status pen_training_describe_tensor(pen_training *training, uint32_t index,
                                                      pen_tensor_info *out_tensor);
PEN_NODISCARD pen_status pen_training_read_tensor(pen_training *training, uint32_t index,
                                                  void *out_data, uint64_t bytes);
PEN_NODISCARD pen_status pen_training_write_tensor(pen_training *training, uint32_t index,
                                                   const void *data, uint64_t bytes);

// Writes all parameters and running statistics as they are now; or, where `outputs: {from: best}`
// of the job says so, those of the best evaluation so far. So does export.
PEN_NODISCARD pen_status pen_training_save(pen_training *training, const char *path);

// Writes the trained model in inference form, as ONNX or what else the path's end says that its
// model can become, beside `path` and then renamed.
//   UNSUPPORTED  it has an operator that the form has not
PEN_NODISCARD pen_status pen_training_export(pen_training *training, const char *path);

// ---- plans

// Places the job's model on its devices, as `penstock plan` does, and gives the plan as JSON; no
// machine is touched for that. The options' step_limit, parameters and all about workers do not
// matter. As pen_training_open
PEN_NODISCARD pen_status pen_plan_describe(const char *job_path,
                                           const pen_training_options *options, char **out_text);
// Accepts NULL.
void pen_plan_text_destroy(char *text);

#ifdef __cplusplus
}
#endif

#endif // PEN_SCHEDULER_PENSTOCK_H
