// The losses of a job, as the compiler wants them, and what datasets need to know of them.
//
// Class weights in a file are read here. Errors have the position in the job at which what they are
// about was written.
//
// Lifetime: results live in the arena; the job outlives them.
// Threads:  functions share nothing.
#ifndef PEN_SCHEDULER_JOB_JOB_LOSSES_H
#define PEN_SCHEDULER_JOB_JOB_LOSSES_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/compile/compile_request.h"
#include "scheduler/data/dataset.h"
#include "scheduler/job/job.h"

//   INVALID_INPUT  weights are none, negative, or all 0; names the file, and which
//   else           as pen_dataset_open
PEN_NODISCARD pen_status pen_job_get_losses(const pen_job *job, pen_arena *arena,
                                            const pen_compile_loss **out_losses,
                                            uint32_t *out_count);

// By the same numbers as the losses. As pen_job_get_losses
PEN_NODISCARD pen_status pen_job_get_targets(const pen_job *job, pen_arena *arena,
                                             const pen_dataset_target **out_targets,
                                             uint32_t *out_count);

// Gives an error about loss `index` the position at which its output was written, else its kind.
PEN_NODISCARD pen_status pen_job_blame_loss(const pen_job *job, uint32_t index, pen_status status);

#endif // PEN_SCHEDULER_JOB_JOB_LOSSES_H
