// What people give in the place of a job: said to be that, with what makes a job of it.
//
// Threads: any.
#ifndef PEN_SCHEDULER_JOB_JOB_OTHER_H
#define PEN_SCHEDULER_JOB_JOB_OTHER_H

#include "base/format/yaml_reader.h"
#include "base/status.h"
#include "scheduler/job/job.h"

// INVALID_INPUT  the name ends as that of a model
PEN_NODISCARD pen_status pen_job_check_name(const char *path);

// `status` is what reading `root` as a job came to. Adds to an error what the file is, if it is a
// list or a text, a model of layers, or a plan.
PEN_NODISCARD pen_status pen_job_explain_other(const pen_job_origin *origin,
                                               const pen_yaml_node *root, pen_status status);

#endif // PEN_SCHEDULER_JOB_JOB_OTHER_H
