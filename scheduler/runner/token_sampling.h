// Draws the token that comes next from a model's scores (logits).
//
// With temperature T and of the k highest scores, token i is drawn with probability
//
//   p(i) = exp(score(i) / T) / sum over the k highest of exp(score / T)
//
// and with T = 0 the highest is taken; of equal scores the lower token comes first. The number that
// decides is a function of the seed and the position alone, so the same scores give the same text.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_RUNNER_TOKEN_SAMPLING_H
#define PEN_SCHEDULER_RUNNER_TOKEN_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct pen_token_sampling {
    double temperature; // at least 0
    uint64_t top_k;     // 0: all
    uint64_t seed;
    double error; // that each score may have, as a share of the largest absolute one; for is_close
} pen_token_sampling;

typedef struct pen_token_choice {
    uint32_t token;
    bool is_close; // scores that differ from these by the given share might have given another
} pen_token_choice;

typedef struct pen_token_score {
    float score;
    uint32_t token;
} pen_token_score;

// Draws one of `count` tokens (at least one) as that of `position`. `scratch` has [count].
//   NOT_FINITE  a score is infinite or not a number; minus infinity is fine, but not for all
PEN_NODISCARD pen_status pen_token_sample(const pen_token_sampling *sampling, const float *scores,
                                          uint32_t count, uint64_t position,
                                          pen_token_score *scratch, pen_token_choice *out_choice);

#endif // PEN_SCHEDULER_RUNNER_TOKEN_SAMPLING_H
