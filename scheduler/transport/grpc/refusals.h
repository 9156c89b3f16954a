// Why links were refused, so that a log says each reason once for each host, and then with a count:
// who has a wrong certificate tries again and again.
//
// Threads: the caller's lock.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_REFUSALS_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_REFUSAL_KINDS 16 // that are told apart; the last has all others
#define PEN_REFUSAL_TEXT_LIMIT 240

typedef struct pen_refusal_kind {
    char text[PEN_REFUSAL_TEXT_LIMIT]; // host and reason
    uint64_t count;
} pen_refusal_kind;

// Begins as zeros.
typedef struct pen_refusals {
    pen_refusal_kind kinds[PEN_REFUSAL_KINDS];
} pen_refusals;

// Counts one from "10.0.0.2:4711". Returns whether it should be said: the first of its kind, the
// tenth, the hundredth, and so on; *out_count is how many of its kind there were with it.
bool pen_refusals_add(pen_refusals *refusals, const char *address, const char *reason,
                      uint64_t *out_count);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_REFUSALS_H
