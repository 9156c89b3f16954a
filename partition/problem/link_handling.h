// What the devices at both ends of a link compute for what goes over it, besides the link's own
// time.
#ifndef PEN_PARTITION_PROBLEM_LINK_HANDLING_H
#define PEN_PARTITION_PROBLEM_LINK_HANDLING_H

#include <stdint.h>

#include "partition/problem/stage_graph.h"

// A tensor goes in messages of so many bytes; one back grants its place anew, and one acknowledges.
#define PEN_MESSAGE_BYTES (1u << 20)
#define PEN_MESSAGES_BACK 2

// What the two ends of a link compute for what goes over it.
typedef struct pen_link_handling {
    double send;    // seconds of the source's device for each byte
    double receive; // of the target's
    double message; // of either, for each message, those that go back included
} pen_link_handling;

// What moving a result adds to the load of either end, besides its bytes: a latency keeps nobody
// from computing, messages do.
static inline double pen_link_handling_load(const pen_link_handling *link) {
    return link->message * (1 + PEN_MESSAGES_BACK);
}

// Adds a result of `bytes` to what goes together: those of an edge share the latency.
static inline void pen_stage_handling_add(pen_stage_handling *io_handling,
                                          const pen_link_handling *link, double latency,
                                          double bytes) {
    const double whole = (double)(uint64_t)(bytes / PEN_MESSAGE_BYTES);
    const double pieces = whole * PEN_MESSAGE_BYTES < bytes ? whole + 1.0 : whole;
    const double messages = link->message * (pieces + PEN_MESSAGES_BACK);
    if (latency > io_handling->latency_seconds) io_handling->latency_seconds = latency;
    io_handling->send_seconds += link->send * bytes + messages;
    io_handling->receive_seconds += link->receive * bytes + messages;
}

#endif // PEN_PARTITION_PROBLEM_LINK_HANDLING_H
