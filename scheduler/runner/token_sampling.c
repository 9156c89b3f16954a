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

// Whether one of the neighbours in order might change places with token `i`, or, of the `kept`, be
// kept in its place.
static bool sampling_is_tied(const pen_token_score *sorted, uint64_t count, uint64_t i,
                             double error) {
    const double score = (double)sorted[i].score;
    return (i > 0 && (double)sorted[i - 1].score - score < 2 * error) ||
           (i + 1 < count && score - (double)sorted[i + 1].score < 2 * error);
}

// The highest score comes first. Of `count` scores the first `kept` may be drawn. An error of every
// score by e changes what stands before a token, as a share of the whole, by less than
// exp(2 e / T) - 1.
static pen_token_choice sampling_draw(const pen_token_sampling *sampling,
                                      const pen_token_score *sorted, uint64_t count, uint64_t kept,
                                      uint64_t position, double error) {
    const double highest = (double)sorted[0].score;
    double total = 0;
    for (uint64_t i = 0; i < kept; i++)
        total += exp(((double)sorted[i].score - highest) / sampling->temperature);
    const double wanted = sampling_uniform(sampling->seed, position) * total;
    const double margin = expm1(2 * error / sampling->temperature) * total;
    double sum = 0;
    for (uint64_t i = 0; i < kept; i++) {
        const double before = sum;
        sum += exp(((double)sorted[i].score - highest) / sampling->temperature);
        if (wanted >= sum) continue;
        const bool is_edge =
            (i > 0 && wanted - before < margin) || (i + 1 < kept && sum - wanted < margin);
        return (pen_token_choice){sorted[i].token,
                                  is_edge || sampling_is_tied(sorted, count, i, error)};
    }
    return (pen_token_choice){sorted[0].token, error > 0}; // rounding at the end
}

// The highest score, of equal ones that of the lowest token, without sorting all.
static pen_token_choice sampling_highest(const pen_token_score *scores, uint32_t count,
                                         double error) {
    uint32_t best = 0;
    float second = -INFINITY;
    for (uint32_t i = 1; i < count; i++) {
        const bool is_higher = scores[i].score > scores[best].score;
        second = fmaxf(second, is_higher ? scores[best].score : scores[i].score);
        if (is_higher) best = i;
    }
    return (pen_token_choice){best, (double)scores[best].score - (double)second < 2 * error};
}

// Scores are sorted, equal ones by token, so that the same seed gives the same text on every
// machine with equal scores.
pen_status pen_token_sample(const pen_token_sampling *sampling, const float *scores, uint32_t count,
                            uint64_t position, pen_token_score *scratch,
                            pen_token_choice *out_choice) {
    PEN_ASSERT(count > 0);
    PEN_ASSERT(sampling->temperature >= 0);
    double largest = -1;
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(scores[i]) || scores[i] == INFINITY) {
            return pen_error(PEN_NOT_FINITE, "the model's score of token %u is %g", i,
                             (double)scores[i]);
        }
        if (scores[i] != -INFINITY) largest = fmax(largest, fabs((double)scores[i]));
        scratch[i] = (pen_token_score){scores[i], i};
    }
    if (largest < 0) return pen_error(PEN_NOT_FINITE, "the model's scores are all -inf");
    const double error = sampling->error * largest;
    if (sampling->temperature == 0) {
        *out_choice = sampling_highest(scratch, count, error);
        return PEN_OK;
    }
    qsort(scratch, count, sizeof *scratch, sampling_compare);
    const uint64_t kept = sampling->top_k == 0 || sampling->top_k > count ? count : sampling->top_k;
    *out_choice = sampling_draw(sampling, scratch, count, kept, position, error);
    return PEN_OK;
}
