// Tokens that a process has handed out to others of its user: each admits one link, within some
// seconds.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_ADMIT_ONE_TIME_TOKENS_H
#define PEN_SCHEDULER_TRANSPORT_ADMIT_ONE_TIME_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

#define PEN_ONE_TIME_BYTES 16u
#define PEN_ONE_TIME_SECONDS 30.0
#define PEN_ONE_TIME_LIMIT 1024u // handed out and not shown yet; the oldest goes

typedef struct pen_one_time {
    uint8_t bytes[PEN_ONE_TIME_BYTES];
    double until; // 0: none is here
} pen_one_time;

typedef struct pen_one_time_tokens {
    pen_mutex lock;
    pen_one_time list[PEN_ONE_TIME_LIMIT]; // guarded by lock
} pen_one_time_tokens;

void pen_one_time_init(pen_one_time_tokens *tokens);
void pen_one_time_deinit(pen_one_time_tokens *tokens);

// Draws one. `now`: seconds of the clock. False: the system gives no random bytes
bool pen_one_time_give(pen_one_time_tokens *tokens, double now,
                       uint8_t out_token[PEN_ONE_TIME_BYTES]);
// Whether it was given, not too long ago, and never shown before.
bool pen_one_time_take(pen_one_time_tokens *tokens, double now,
                       const uint8_t token[PEN_ONE_TIME_BYTES]);

#endif // PEN_SCHEDULER_TRANSPORT_ADMIT_ONE_TIME_TOKENS_H
