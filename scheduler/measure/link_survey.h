// Measures a link through the workers at its ends, as a training uses it: one way, both ways at
// once, idle, and while ends compute.
//
//   bandwidth   tensors of 1 MiB, several under way, for some tenths of a second
//   latency     half a round trip of 64 bytes, one after another; a mean
//   send, receive, message
//               what sending takes from a device: threads compute at both ends, and do less while
//               tensors or round trips (six messages at either end) go on than alone. So a core
//               that is left over, or a share of one, counts as it does in a training.
//
// Threads: one.
#ifndef PEN_SCHEDULER_MEASURE_LINK_SURVEY_H
#define PEN_SCHEDULER_MEASURE_LINK_SURVEY_H

#include "base/arena.h"
#include "scheduler/measure/survey_crew.h"

#define PEN_LINK_FREE 1e15 // bytes a second, where moving them takes nothing from a device

// One direction.
typedef struct pen_link_figures {
    double bandwidth;       // bytes a second, while the other direction is used as much; alone,
                            // where it is the ends that have no time for more
    double bandwidth_alone; // while it is not
    double latency;         // seconds, while one of the ends computes
    double latency_idle;    // while neither does
    double send;    // bytes for each second that the sending device loses; PEN_LINK_FREE: it loses
                    // none
    double receive; // the receiving one
    double message; // seconds of either
} pen_link_figures;

// Between the workers of two seats, which are not the same one.
typedef struct pen_link_pair {
    uint32_t seats[2];
    uint32_t threads[2];         // that compute while the ends are to be busy
    pen_link_figures figures[2]; // from either to the other
} pen_link_pair;

// Measures all pairs [count] at the same time: no worker is in two of them. Memory in `arena`.
// Errors name the worker; as pen_survey_crew_ask, and what could not be measured.
PEN_NODISCARD pen_status pen_link_survey(pen_survey_crew *crew, pen_arena *arena,
                                         pen_link_pair *pairs, uint32_t count);

#endif // PEN_SCHEDULER_MEASURE_LINK_SURVEY_H
