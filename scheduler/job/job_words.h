// Keys that other programs have, and what says the same in a job.
//
// Threads: any; pure.
#ifndef PEN_SCHEDULER_JOB_JOB_WORDS_H
#define PEN_SCHEDULER_JOB_JOB_WORDS_H

// For pen_option_table.explain: what to write in place of `key`; NULL: nothing is known of it.
const char *pen_job_explain(const char *key);

#endif // PEN_SCHEDULER_JOB_JOB_WORDS_H
