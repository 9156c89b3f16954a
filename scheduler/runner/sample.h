// Writes on from a beginning: one token after the other, each drawn from the model's scores of what
// stands before it.
//
// A model that is shown to look back only (graph/analysis/causality.h) runs all positions once, for
// the beginning, and then one position a token: keys and values of the others are kept. It runs all
// of them again for a token that hangs on so little that the order of sums may decide it, so that
// the tokens are those of whole windows. When the window is full and slides, positions are others
// for every token, and each runs all of them. So does each of a model of which nothing is shown.
//
// The model takes a row of tokens (int64, [1, sequence]) and gives the scores of the token behind
// each (float32, [1, sequence, vocabulary]). What it is shown is the last `sequence` tokens; while
// there are fewer, the rest of the row is 0, which a model that looks back only never sees.
//
// Threads: one.
#ifndef PEN_SCHEDULER_RUNNER_SAMPLE_H
#define PEN_SCHEDULER_RUNNER_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/runner/runner.h"
#include "scheduler/runner/token_sampling.h"

// How much a score of one position may differ from that of the whole window, as a share of the
// largest. Of 12 layers in float32, added up in another order, the greatest found is 1.5e-6.
#define PEN_SAMPLE_ERROR 1e-5

typedef struct pen_sample_request {
    const int64_t *prompt; // [prompt_count], at least one
    uint64_t prompt_count;
    uint64_t count;     // tokens to write
    const char *output; // of the model; NULL: the first
    bool whole_windows; // keep nothing from one token to the next
    pen_token_sampling sampling;
} pen_sample_request;

// What was done. Valid as long as the runner.
typedef struct pen_sample_figures {
    uint64_t window_count;  // tokens that ran all positions
    uint64_t decoded_count; // tokens that ran one
    uint64_t kept_bytes;    // on the device, of keys and values
    double seconds;         // of the tokens, without what was made ready before the first
} pen_sample_figures;

// Called with each new token. An error of it ends the writing and is returned.
typedef pen_status (*pen_sample_fn)(void *context, uint32_t token);

// Room for what is written is taken from `arena` before the first token.
//   UNSUPPORTED    the model takes or gives something else
//   NOT_FOUND      it has no such output
//   INVALID_INPUT  a token of the prompt is none of its vocabulary
//   NOT_FINITE     as pen_token_sample
PEN_NODISCARD pen_status pen_sample(pen_runner *runner, const pen_sample_request *request,
                                    pen_arena *arena, pen_sample_fn take, void *context,
                                    pen_sample_figures *out_figures);

#endif // PEN_SCHEDULER_RUNNER_SAMPLE_H
