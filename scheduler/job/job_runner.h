// How a job describes the runner of its model, and whether its data suits the model.
//
// Errors have the position in the job at which what they are about was written.
#ifndef PEN_SCHEDULER_JOB_JOB_RUNNER_H
#define PEN_SCHEDULER_JOB_JOB_RUNNER_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/job/job.h"
#include "scheduler/runner/runner.h"

// The file of first contents that a job names; NULL: none. Lives in `arena`; the job outlives it.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_job_weights(const pen_job *job, pen_arena *arena,
                                         const pen_weight_options **out_weights);

// The form that trains, with the inputs of `info`, which is that of `part`. The device, and whether
// the program is cut, are for the caller to set. What it points to lives in `arena`; the job
// outlives it. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_job_compile_request(const pen_job *job, pen_dataset_part part,
                                                 const pen_dataset_info *info, pen_arena *arena,
                                                 pen_compile_request *out_request);

// Device, model, loss, optimizer, and the inputs of `info`, which is that of `part`. What it points
// to lives in `arena`; the job outlives it. Of several devices the first, as one of this process.
PEN_NODISCARD pen_status pen_job_runner_options(const pen_job *job, pen_dataset_part part,
                                                const pen_dataset_info *info, pen_arena *arena,
                                                pen_runner_options *out_options);

// The same on one device of this process, of kind and threads of the job's first, whatever others
// there are, within the memory of the machine.
PEN_NODISCARD pen_status pen_job_reference_options(const pen_job *job, pen_dataset_part part,
                                                   const pen_dataset_info *info, pen_arena *arena,
                                                   pen_runner_options *out_options);

// Says where the memory that something did not fit into, or the batch, was written. Does nothing to
// other errors.
PEN_NODISCARD pen_status pen_job_blame_memory(const pen_job *job, pen_status status);

// Whether the data of `part` suits a program: element types, shapes, and that labels are classes
// the model knows. INVALID_INPUT; as pen_dataset_read
PEN_NODISCARD pen_status pen_job_check_data(const pen_job *job, pen_dataset_part part,
                                            const pen_program *program, pen_dataset *dataset);

#endif // PEN_SCHEDULER_JOB_JOB_RUNNER_H
