// Keys that other programs have, and what says the same in a job.
//
// Threads: any; pure.
#ifndef PEN_SCHEDULER_JOB_JOB_WORDS_H
#define PEN_SCHEDULER_JOB_JOB_WORDS_H

#include "base/option/option.h"

// For pen_option_table.explain: what to write in place of `key`; NULL: nothing is known of it. It
// is about keys of a job, or, where it begins with "`", about commands.
const char *pen_job_explain(const char *key);

// For pen_option_table.words, of one table each.
extern const pen_text_word pen_job_one_of_words[];    // of all optimizers
extern const pen_text_word pen_job_optimizer_words[]; // of one
extern const pen_text_word pen_job_rate_words[];
extern const pen_text_word pen_job_dataset_words[];
extern const pen_text_word pen_job_checkpoint_words[];
extern const pen_text_word pen_job_evaluation_words[];
extern const pen_text_word pen_job_outputs_words[];
extern const pen_text_word pen_job_lora_words[];

// For pen_option_field.words: what losses, metrics, precisions and formats are called elsewhere.
extern const pen_text_word pen_job_loss_words[];
extern const pen_text_word pen_job_metric_words[];
extern const pen_text_word pen_job_precision_words[];
extern const pen_text_word pen_job_format_words[];

#endif // PEN_SCHEDULER_JOB_JOB_WORDS_H
