#include "scheduler/transport/admit/one_time_tokens.h"

#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

void pen_one_time_init(pen_one_time_tokens *tokens) {
    memset(tokens->list, 0, sizeof tokens->list);
    pen_mutex_init(&tokens->lock);
}

void pen_one_time_deinit(pen_one_time_tokens *tokens) {
    OPENSSL_cleanse(tokens->list, sizeof tokens->list);
    pen_mutex_deinit(&tokens->lock);
}

bool pen_one_time_give(pen_one_time_tokens *tokens, double now,
                       uint8_t out_token[PEN_ONE_TIME_BYTES]) {
    pen_one_time *oldest = &tokens->list[0];
    if (getrandom(out_token, PEN_ONE_TIME_BYTES, 0) != (ssize_t)PEN_ONE_TIME_BYTES) return false;
    pen_mutex_lock(&tokens->lock);
    for (uint32_t i = 0; i < PEN_ONE_TIME_LIMIT; i++) {
        if (tokens->list[i].until < oldest->until) oldest = &tokens->list[i];
    }
    memcpy(oldest->bytes, out_token, PEN_ONE_TIME_BYTES);
    oldest->until = now + PEN_ONE_TIME_SECONDS;
    pen_mutex_unlock(&tokens->lock);
    return true;
}

// All are compared, each in whole: how long that takes says nothing about them.
bool pen_one_time_take(pen_one_time_tokens *tokens, double now,
                       const uint8_t token[PEN_ONE_TIME_BYTES]) {
    pen_one_time *found = NULL;
    pen_mutex_lock(&tokens->lock);
    for (uint32_t i = 0; i < PEN_ONE_TIME_LIMIT; i++) {
        pen_one_time *at = &tokens->list[i];
        const bool is_same = CRYPTO_memcmp(at->bytes, token, PEN_ONE_TIME_BYTES) == 0;
        if (is_same && at->until > now) found = at;
    }
    if (found != NULL) *found = (pen_one_time){.until = 0};
    pen_mutex_unlock(&tokens->lock);
    return found != NULL;
}
