// A job for a model and its data, as text that people edit: what is known stands in it, what is
// often changed stands beside it in comments.
//
// Threads: functions share nothing.
#ifndef PEN_CLI_INIT_JOB_DRAFT_H
#define PEN_CLI_INIT_JOB_DRAFT_H

#include "base/text.h"
#include "cli/init/data_guess.h"
#include "graph/graph.h"

typedef struct pen_job_draft {
    const char *model; // path, as the job has it
    const pen_data_guess *data;
    const pen_graph *graph; // of the model
    const char *loss;       // NULL: not known
    const char *categories; // what columns of words become in a table; NULL: there are none
    bool has_gaps;          // empty fields in a table
    bool flattens;          // examples that are pictures become rows
    uint64_t batch;
    uint64_t example_count; // 0: not known
} pen_job_draft;

// Adds the job.
void pen_job_draft_write(const pen_job_draft *draft, pen_text *text);

#endif // PEN_CLI_INIT_JOB_DRAFT_H
