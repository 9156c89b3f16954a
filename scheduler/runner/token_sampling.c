#include "scheduler/runner/token_sampling.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"

static int sampling_compare(const void *left, const void *right) {
    const pen_token_score *a = left;
    const pen_token_score *b = right;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return (a->token > b->token) - (a->token < b->token);
}

// Uniform in [0, 1) with 53 bits.
static double sampling_uniform(uint64_t seed, uint64_t position) {
    uint32_t numbers[4];
    pen_random_block((pen_random_key){seed, pen_random_stream("sample", 0, 0)}, position, numbers);
    const uint64_t high = numbers[0] >> 5;
    const uint64_t low = numbers[1] >> 6;
    return (double)(high << 26 | low) * 0x1p-53;
}

// The highest score comes first.
static uint32_t sampling_draw(const pen_token_sampling *sampling, const pen_token_score *sorted,
                              uint64_t count, uint64_t position) {
    const double highest = (double)sorted[0].score;
    double total = 0;
    for (uint64_t i = 0; i < count; i++)
        total += exp(((double)sorted[i].score - highest) / sampling->temperature);
    const double wanted = sampling_uniform(sampling->seed, position) * total;
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += exp(((double)sorted[i].score - highest) / sampling->temperature);
        if (wanted < sum) return sorted[i].token;
    }
    return sorted[0].token; // rounding at the end
}

// Scores are sorted, equal ones by token, so that the same seed gives the same text on every
// machine with equal scores.
pen_status pen_token_sample(const pen_token_sampling *sampling, const float *scores, uint32_t count,
                            uint64_t position, pen_token_score *scratch, uint32_t *out_token) {
    PEN_ASSERT(count > 0);
    PEN_ASSERT(sampling->temperature >= 0);
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(scores[i]) || scores[i] == INFINITY) {
            return pen_error(PEN_NOT_FINITE, "the model's score of token %u is %g", i,
                             (double)scores[i]);
        }
        scratch[i] = (pen_token_score){scores[i], i};
    }
    qsort(scratch, count, sizeof *scratch, sampling_compare);
    if (scratch[0].score == -INFINITY) {
        return pen_error(PEN_NOT_FINITE, "the model's scores are all -inf");
    }
    const uint64_t kept = sampling->top_k == 0 || sampling->top_k > count ? count : sampling->top_k;
    *out_token = sampling->temperature == 0 ? scratch[0].token
                                            : sampling_draw(sampling, scratch, kept, position);
    return PEN_OK;
}
