// The contract of the C interface's parts with each other, defined in penstock_*.c: a training, and
// structs that grow.
//
// Lifetime, threads: as scheduler/penstock.h.
#ifndef PEN_SCHEDULER_PENSTOCK_STATE_H
#define PEN_SCHEDULER_PENSTOCK_STATE_H

#include "base/arena.h"
#include "scheduler/penstock.h"
#include "scheduler/runner/runner.h"
#include "scheduler/train/train.h"

struct pen_training {
    pen_arena *arena; // the job
    const pen_job *job;
    const char *parameters;     // of the options
    const volatile int *cancel; // of the options
    pen_trainer *trainer;       // NULL: of inference
    pen_dataset *evaluated;     // evaluation data; NULL: none, or not opened yet
    pen_runner *runner;         // on one device here, with parameters of its own; NULL: none yet
    const pen_program *program; // of the runner, that was evaluated last; NULL: none was
    uint64_t steps_done;        //
    uint64_t steps_copied;      // whose parameters the runner has
    bool is_kept;               // checkpoints are
    pen_evaluation told;        // the last evaluation, of a step or asked for; zeros: none was
    pen_step_report told_step;  // the last step; zeros: none was
};

// The options that a program gave, NULL for none, as this version has them; and the arrays that
// they name, in `arena`.
PEN_NODISCARD pen_status pen_api_read_options(const pen_training_options *given,
                                              pen_training_options *out_options);
PEN_NODISCARD pen_status pen_api_read_arrays(const pen_array *arrays, size_t count,
                                             pen_arena *arena, pen_dataset_array **out_arrays);
// Opens the job that path and options say. What it points to lives in `arena`.
PEN_NODISCARD pen_status pen_api_open_job(const char *job_path, const pen_training_options *options,
                                          pen_arena *arena, const pen_job **out_job);

// Whether a struct that is to be filled may be: `what` is its type, `bytes` its size here.
PEN_NODISCARD pen_status pen_api_check_report(const char *what, const void *report, size_t bytes);
// Fills as much of it as the program knows; what it knows beyond becomes zero.
void pen_api_fill_report(const void *from, size_t bytes, void *report);

// The element types of arrays. PEN_ARRAY_… of a type that tensors have; never of UNKNOWN.
pen_array_element pen_api_element(pen_element_type element);

// The evaluation data, opened when first asked for. NOT_FOUND says what the job lacks.
PEN_NODISCARD pen_status pen_api_open_evaluated(pen_training *training);
// A runner that has the parameters as they are now, made for `info` when there is none yet; it may
// be the engine's.
PEN_NODISCARD pen_status pen_api_get_runner(pen_training *training, const pen_dataset_info *info,
                                            pen_runner **out_runner);
// The model's tensors, wherever they are.
PEN_NODISCARD pen_status pen_api_get_tensors(pen_training *training,
                                             const pen_tensor_store **out_tensors);

#endif // PEN_SCHEDULER_PENSTOCK_STATE_H
