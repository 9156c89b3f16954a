// Writes on from a beginning: one token after the other, each drawn from the model's scores of what
// stands before it.
//
// The model takes a row of tokens (int64, [1, sequence]) and gives the scores of the token behind
// each (float32, [1, sequence, vocabulary]). What it is shown is the last `sequence` tokens; while
// there are fewer, the rest of the row is 0, which a model that looks back only never sees.
//
// Threads: one.
#ifndef PEN_SCHEDULER_RUNNER_SAMPLE_H
#define PEN_SCHEDULER_RUNNER_SAMPLE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/runner/runner.h"
#include "scheduler/runner/token_sampling.h"

typedef struct pen_sample_request {
    const int64_t *prompt; // [prompt_count], at least one
    uint64_t prompt_count;
    uint64_t count;     // tokens to write
    const char *output; // of the model; NULL: the first
    pen_token_sampling sampling;
} pen_sample_request;

// Called with each new token. An error of it ends the writing and is returned.
typedef pen_status (*pen_sample_fn)(void *context, uint32_t token);

// Room for what is written is taken from `arena` before the first token.
//   UNSUPPORTED    the model takes or gives something else
//   NOT_FOUND      it has no such output
//   INVALID_INPUT  a token of the prompt is none of its vocabulary
//   NOT_FINITE     as pen_token_sample
PEN_NODISCARD pen_status pen_sample(pen_runner *runner, const pen_sample_request *request,
                                    pen_arena *arena, pen_sample_fn take, void *context);

#endif // PEN_SCHEDULER_RUNNER_SAMPLE_H
