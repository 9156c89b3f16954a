// The kernel level, and the precision, that a job's numbers are made with.
//
// `auto` is settled once: the plan and the checkpoints keep what the first machine had, and whoever
// goes on from them runs at that, or is refused.
//
// A precision other than float32 needs devices that can it: that is known when the job is read.
//
// Threads: any.
#ifndef PEN_SCHEDULER_JOB_JOB_LEVEL_H
#define PEN_SCHEDULER_JOB_JOB_LEVEL_H

#include "base/status.h"
#include "scheduler/job/job.h"

// What a training goes on from, each with the level it was made at; AUTO, NULL or "": nothing, or
// not known.
typedef struct pen_job_level_before {
    pen_kernel_level plan;
    const char *checkpoint;
} pen_job_level_before;

// Settles the level of this process, before a device is opened. Errors have the position in the
// job.
//   INVALID_INPUT  job, plan and checkpoint do not agree: says which, and the two levels
//   UNSUPPORTED    this machine lacks the level, or the process runs at another one
PEN_NODISCARD pen_status pen_job_level_settle(const pen_job *job,
                                              const pen_job_level_before *before);

// INVALID_INPUT where a device of the job, whose cluster is complete, cannot its precision; names
// the device and its kind. Opens no device.
PEN_NODISCARD pen_status pen_job_check_precision(const pen_job *job);
// INVALID_INPUT where the job requires libraries and none of its devices is of a kind that uses
// any. Opens no device.
PEN_NODISCARD pen_status pen_job_check_libraries(const pen_job *job);

#endif // PEN_SCHEDULER_JOB_JOB_LEVEL_H
