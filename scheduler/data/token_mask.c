#include "scheduler/data/token_mask.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/random.h"

static bool mask_keeps(const pen_token_mask *mask, int64_t token) {
    for (uint32_t i = 0; i < mask->keep_count; i++) {
        if (mask->keep[i] == token) return true;
    }
    return false;
}

static int64_t mask_become(const pen_token_mask *mask, int64_t token, const uint32_t words[4]) {
    const double share = words[1] * 0x1p-32;
    if (share < 0.8) return mask->token;
    if (share >= 0.9) return token;
    return (int64_t)((words[2] * (uint64_t)mask->vocabulary) >> 32);
}

void pen_token_mask_apply(const pen_token_mask *mask, const pen_token_place *place, uint64_t count,
                          const int64_t *tokens, int64_t *out_inputs, int64_t *out_labels) {
    const pen_random_key key = {place->seed,
                                pen_random_stream("mask", place->epoch, place->example)};
    for (uint64_t p = 0; p < count; p++) {
        uint32_t words[4];
        pen_random_block(key, p, words);
        const bool is_chosen =
            words[0] * 0x1p-32 < mask->probability && !mask_keeps(mask, tokens[p]);
        if (out_inputs != NULL) {
            out_inputs[p] = is_chosen ? mask_become(mask, tokens[p], words) : tokens[p];
        }
        if (out_labels != NULL) out_labels[p] = is_chosen ? tokens[p] : PEN_TOKEN_UNMASKED;
    }
}
