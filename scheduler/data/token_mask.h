// Tokens that a model has to find by those around them, chosen by chance anew in each epoch, as
// BERT does (Devlin and others, arXiv:1810.04805, section 3.1): of 100 that are chosen, 80 become
// the token that means "masked", 10 any other, and 10 stay. Labels are what was there; those of
// tokens that are not chosen are PEN_TOKEN_UNMASKED, which the loss ignores.
//
// What chance says about position p of an example is block p of the stream ("mask", epoch, example)
// of the seed (base/random.h), whose four numbers of 32 bits are w[0] … w[3]:
//   it is chosen       w[0] / 2^32 < probability
//   it becomes masked  w[1] / 2^32 < 0.8; else, below 0.9, token floor(w[2] vocabulary / 2^32)
// So all who read have the same.
//
// Threads: pure.
#ifndef PEN_SCHEDULER_DATA_TOKEN_MASK_H
#define PEN_SCHEDULER_DATA_TOKEN_MASK_H

#include <stdint.h>

#define PEN_TOKEN_UNMASKED (-100) // a label

typedef struct pen_token_mask {
    int64_t token;       // that means "masked"
    int64_t vocabulary;  // tokens are below it
    double probability;  // of a token to be chosen
    const int64_t *keep; // [keep_count] tokens that never are
    uint32_t keep_count;
} pen_token_mask;

// What is read: all that chance depends on.
typedef struct pen_token_place {
    uint64_t seed;
    uint64_t epoch;
    uint64_t example;
} pen_token_place;

// Of `count` tokens of an example. Either of the last two may be NULL.
void pen_token_mask_apply(const pen_token_mask *mask, const pen_token_place *place, uint64_t count,
                          const int64_t *tokens, int64_t *out_inputs, int64_t *out_labels);

#endif // PEN_SCHEDULER_DATA_TOKEN_MASK_H
