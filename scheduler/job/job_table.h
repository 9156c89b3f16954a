// The tables of a job file, which is long enough for several files.
//
// Threads: immutable.
#ifndef PEN_SCHEDULER_JOB_JOB_TABLE_H
#define PEN_SCHEDULER_JOB_JOB_TABLE_H

#include "base/option/option.h"
#include "scheduler/job/job.h"

// The keys of `model`: fills pen_job_model.
extern const pen_option_table pen_job_model_table;
// The keys of `data`: fills pen_job_data.
extern const pen_option_table pen_job_data_table;
// Those of `checkpoint` and `recovery`.
extern const pen_option_table pen_job_checkpoint_table;
extern const pen_option_table pen_job_recovery_table;

#endif // PEN_SCHEDULER_JOB_JOB_TABLE_H
