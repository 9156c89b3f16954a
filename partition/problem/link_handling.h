// What moving results adds to a stage, besides the link's own time.
#ifndef PEN_PARTITION_PROBLEM_LINK_HANDLING_H
#define PEN_PARTITION_PROBLEM_LINK_HANDLING_H

#include <stdint.h>

#include "partition/problem/stage_graph.h"

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
