// `predict --sample`: what a model of language writes, as text or as numbers.
#ifndef PEN_CLI_PREDICT_SAMPLE_H
#define PEN_CLI_PREDICT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"
#include "cli/training_job.h"

typedef struct pen_predict_sample {
    int64_t count; // tokens; 0: none are asked for
    const char *prompt;
    double temperature;
    int64_t top_k;
    int64_t seed;
    bool whole_windows;      // keep nothing from one token to the next
    const char *output;      // file; NULL: standard output
    const char *output_name; // of the model; NULL: the first
    bool json;
} pen_predict_sample;

// Writes what was asked for to the file, or to standard output.
//   INVALID_INPUT  the job's data is neither text nor tokens; the prompt is no list of tokens
//   else           as pen_sample
PEN_NODISCARD pen_status pen_predict_write_sample(pen_command_context *context,
                                                  const pen_predict_sample *sample,
                                                  pen_job_session *session);

#endif // PEN_CLI_PREDICT_SAMPLE_H
