// Keys that other programs have, and what says the same in a job.
//
// Threads: any; pure.
#ifndef PEN_SCHEDULER_JOB_JOB_WORDS_H
#define PEN_SCHEDULER_JOB_JOB_WORDS_H

#include "base/option/option.h"

// For pen_option_table.explain: what to write in place of `key`; NULL: nothing is known of it.
const char *pen_job_explain(const char *key);

// For pen_option_field.words: what losses, metrics and precisions are called elsewhere.
extern const pen_option_word pen_job_loss_words[];
extern const pen_option_word pen_job_metric_words[];
extern const pen_option_word pen_job_precision_words[];

#endif // PEN_SCHEDULER_JOB_JOB_WORDS_H
