// Whether a job trains on its devices with the numbers of one device: both are run for some steps,
// one after the other, and their losses and tensors compared.
//
// The tensors of the first run wait in a file, so that the two need not be in memory at once.
//
// Threads: one.
#ifndef PEN_SCHEDULER_TRAIN_VERIFY_PLAN_H
#define PEN_SCHEDULER_TRAIN_VERIFY_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "partition/plan/plan.h"
#include "scheduler/job/job.h"
#include "scheduler/store/tensor_store.h"

typedef struct pen_verify_options {
    uint64_t step_count;  // at least 1
    double tolerance;     // of relative errors; 0: every bit must be equal
    bool no_memory_check; // as pen_engine_options has it
    bool insecure;
    const pen_plan *plan; // that the job's devices run; NULL: one is made
    const char *tensors;  // path of the file, which is removed
} pen_verify_options;

typedef struct pen_verify_step {
    double loss;           // on the job's devices
    double loss_reference; // on one
    bool is_equal;         // every bit
} pen_verify_step;

// Errors are differences to the reference; relative ones are parts of its largest element, not of
// each element. A number that is not finite on one side alone is off by infinity.
typedef struct pen_verify_tensor {
    const char *name;
    bool is_model; // else the optimizer's
    uint64_t element_count;
    double absolute_error; // the largest
    double relative_error;
    bool is_equal; // every bit
} pen_verify_tensor;

typedef struct pen_verification {
    uint32_t step_count;
    const pen_verify_step *steps;
    uint32_t tensor_count;
    const pen_verify_tensor *tensors;
    bool is_equal;  // every bit of all of them
    bool is_within; // all errors, of losses too, are at most the tolerance
} pen_verification;

//   DOES_NOT_FIT  also when the machine has not the memory for one device
//   else          as pen_trainer_create and pen_trainer_step
PEN_NODISCARD pen_status pen_verify(const pen_job *job, const pen_verify_options *options,
                                    pen_arena *arena, const pen_verification **out_verification);

// The comparison by itself: the tensors of a safetensors file with those of the store as reference.
// `out_tensors` has store->count.
//   INTERNAL  they are not the same tensors
PEN_NODISCARD pen_status pen_verify_tensors(const char *path, const pen_tensor_store *store,
                                            pen_arena *arena,
                                            const pen_verify_tensor **out_tensors);

#endif // PEN_SCHEDULER_TRAIN_VERIFY_PLAN_H
