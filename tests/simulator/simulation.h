// Runs simulations: a seed and a profile are one run, the same on every machine and compiler.
#ifndef PEN_TESTS_SIMULATOR_SIMULATION_H
#define PEN_TESTS_SIMULATOR_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum simulation_profile {
    SIMULATION_ALL,
    SIMULATION_LOSS_ONLY, // packets are lost, doubled, late, damaged; streams break
    SIMULATION_CRASH,
    SIMULATION_DISK,
    SIMULATION_PARTITION,
    SIMULATION_ZOMBIE,
    SIMULATION_CALM, // nothing goes wrong
} simulation_profile;
#define SIMULATION_PROFILE_COUNT (SIMULATION_CALM + 1)

// "loss-only"; NULL-terminated.
extern const char *const simulation_profile_names[SIMULATION_PROFILE_COUNT + 1];

typedef struct simulation_options {
    uint64_t seed;
    simulation_profile profile;
    FILE *verbose; // every event is told; NULL: not
} simulation_options;

typedef enum simulation_fault {
    SIMULATION_FAULT_LOST,
    SIMULATION_FAULT_REPEATED,
    SIMULATION_FAULT_DELAYED,
    SIMULATION_FAULT_CORRUPTED,
    SIMULATION_FAULT_CORRUPTED_DEEP,
    SIMULATION_FAULT_CUT, // packets that met a partition
    SIMULATION_FAULT_PARTITION,
    SIMULATION_FAULT_RESET, // of links
    SIMULATION_FAULT_BREAK, // of streams
    SIMULATION_FAULT_WORKER_CRASH,
    SIMULATION_FAULT_COORDINATOR_CRASH,
    SIMULATION_FAULT_DISK_CRASH, // in a call to the disk
    SIMULATION_FAULT_DISK_PAUSE,
    SIMULATION_FAULT_POWER,
    SIMULATION_FAULT_GONE, // for good
    SIMULATION_FAULT_FREEZE,
    SIMULATION_FAULT_RIVAL, // a second coordinator
    SIMULATION_FAULT_SLOW,
    SIMULATION_FAULT_DISK, // calls refused
    SIMULATION_FAULT_FLIP, // bits read wrong
    SIMULATION_FAULT_GHOST,
    SIMULATION_FAULT_ROT, // bits of shards and records
    SIMULATION_FAULT_STUCK,
} simulation_fault;
#define SIMULATION_FAULT_COUNT (SIMULATION_FAULT_STUCK + 1)
extern const char *const simulation_fault_names[SIMULATION_FAULT_COUNT];

typedef struct simulation_result {
    bool is_wrong;
    char invariant[16];
    char text[512];
    uint64_t digest;
    uint64_t events;
    uint64_t duration; // nanoseconds of the world
    uint64_t faults[SIMULATION_FAULT_COUNT];
    uint64_t generations;
    uint64_t recoveries;
    uint64_t commits;
    uint64_t failed_saves;
    uint64_t fallbacks; // to a manifest before the newest
    uint64_t takeovers; // coordinators that found a log
    uint64_t superseded;
    uint64_t steps;      // done, also again
    uint64_t resent;     // by links
    uint64_t late_waits; // of workers, that a deadline ended
} simulation_result;

// The last events are written to `log` when an invariant is broken.
void simulation_run(const simulation_options *options, FILE *log, simulation_result *out_result);

// The last events of the run that is under way, for when it ends in the middle (SIGABRT).
void simulation_tell_last(FILE *log);

#endif // PEN_TESTS_SIMULATOR_SIMULATION_H
