// A network in one thread and in virtual time, for tests: links with seeded delays and a bandwidth.
// What is sent over one link keeps its order (messages and frames apart); links overtake each
// other. The same seed and calls give the same run.
//
// Transports of kind "simulated" name their network in pen_transport_options. Whatever they call
// back is called from within step (or stop), as are timers.
//
// Lifetime: outlives its transports. Threads: one.
#ifndef PEN_TESTS_SUPPORT_SIMULATED_TRANSPORT_H
#define PEN_TESTS_SUPPORT_SIMULATED_TRANSPORT_H

#include "scheduler/transport/transport.h"

extern const pen_transport_kind pen_transport_simulated;

typedef struct pen_simulated_network pen_simulated_network;

typedef struct pen_simulated_options {
    uint64_t seed;
    uint64_t latency_min; // nanoseconds
    uint64_t latency_max;
    double bytes_per_second; // of each direction of a link, for frames; 0: not limited
} pen_simulated_options;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_simulated_network_create(const pen_simulated_options *options,
                                                      pen_simulated_network **out_network);
void pen_simulated_network_destroy(pen_simulated_network *network); // accepts NULL

// Delivers what is due next and moves the time there. False: nothing is under way.
bool pen_simulated_network_step(pen_simulated_network *network);

uint64_t pen_simulated_network_now(pen_simulated_network *network); // nanoseconds

// Calls `call(context)` in `delay` nanoseconds. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_simulated_network_call_in(pen_simulated_network *network,
                                                       uint64_t delay, void (*call)(void *context),
                                                       void *context);

#endif // PEN_TESTS_SUPPORT_SIMULATED_TRANSPORT_H
