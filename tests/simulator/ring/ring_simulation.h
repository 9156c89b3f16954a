// A link over two rings, simulated: both of its ends in one thread, and each access to the memory
// that they share a step, between which the other end may take any number of its own.
//
// The product's own code moves the frames. What a seed chooses: how the steps of both ends are
// mixed, when what an end has written is seen by the other one, in which order (stores that have no
// order of their own come in any), what is sent and when, pauses, the death of an end between two
// steps, and an end that lies: that writes into both rings whatever it likes.
//
// Checked is, at each step or at the end of a seed: frames arrive once, in order, with their bytes
// and checksums; no end sleeps while there is work that nobody will wake it for; no address outside
// of the rings is touched, or outside of a frame's own memory; an end that lies makes the other
// one's link fail with an error that says so, and frames whose checksums count as compared have
// those checksums.
//
// Threads: one simulation in a process at a time.
#ifndef PEN_TESTS_SIMULATOR_RING_RING_SIMULATION_H
#define PEN_TESTS_SIMULATOR_RING_RING_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum ring_fault {
    RING_FAULT_NONE,
    RING_FAULT_PAUSE, // an end stands still for a while
    RING_FAULT_DEATH, // one ends
    RING_FAULT_LIES,  // one writes anything
    RING_FAULT_COUNT,
} ring_fault;

extern const char *const ring_fault_names[RING_FAULT_COUNT];

typedef struct ring_simulation_options {
    uint64_t seed;
    uint32_t frame_limit; // of each end, at most; 0: as the seed says
    bool is_verbose;
} ring_simulation_options;

typedef struct ring_simulation_result {
    bool is_wrong;
    char text[400]; // what is wrong
    uint64_t digest;
    ring_fault fault;
    uint32_t frame_count;   // that arrived
    uint32_t bell_count;    // that were rung
    uint32_t refusal_count; // ends that refused what the other one wrote
} ring_simulation_result;

void ring_simulate(const ring_simulation_options *options, ring_simulation_result *out_result);
// The last events of the seed that is or was simulated.
void ring_simulation_tell_last(FILE *file);

#endif // PEN_TESTS_SIMULATOR_RING_RING_SIMULATION_H
