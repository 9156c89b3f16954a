#include "tests/simulator/simulation.h"

#include <stddef.h>

const char *const simulation_profile_names[SIMULATION_PROFILE_COUNT + 1] = {
    [SIMULATION_ALL] = "all",
    [SIMULATION_LOSS_ONLY] = "loss-only",
    [SIMULATION_CRASH] = "crash",
    [SIMULATION_DISK] = "disk",
    [SIMULATION_PARTITION] = "partition",
    [SIMULATION_ZOMBIE] = "zombie",
    [SIMULATION_CALM] = "calm"};

const char *const simulation_fault_names[SIMULATION_FAULT_COUNT] = {
    [SIMULATION_FAULT_LOST] = "packets lost",
    [SIMULATION_FAULT_REPEATED] = "packets repeated",
    [SIMULATION_FAULT_DELAYED] = "packets delayed",
    [SIMULATION_FAULT_CORRUPTED] = "packets damaged",
    [SIMULATION_FAULT_CORRUPTED_DEEP] = "frames damaged",
    [SIMULATION_FAULT_CUT] = "packets cut off",
    [SIMULATION_FAULT_PARTITION] = "partitions",
    [SIMULATION_FAULT_RESET] = "links reset",
    [SIMULATION_FAULT_BREAK] = "streams broken",
    [SIMULATION_FAULT_WORKER_CRASH] = "workers crashed",
    [SIMULATION_FAULT_COORDINATOR_CRASH] = "coordinators crashed",
    [SIMULATION_FAULT_DISK_CRASH] = "crashes in a disk call",
    [SIMULATION_FAULT_DISK_PAUSE] = "held in a disk call",
    [SIMULATION_FAULT_POWER] = "losses of power",
    [SIMULATION_FAULT_GONE] = "workers gone for good",
    [SIMULATION_FAULT_FREEZE] = "processes frozen",
    [SIMULATION_FAULT_RIVAL] = "rival coordinators",
    [SIMULATION_FAULT_SLOW] = "workers slowed",
    [SIMULATION_FAULT_DISK] = "disk calls refused",
    [SIMULATION_FAULT_FLIP] = "bits read wrong",
    [SIMULATION_FAULT_GHOST] = "ghosts of messages",
    [SIMULATION_FAULT_ROT] = "bits of files turned",
    [SIMULATION_FAULT_STUCK] = "processes stuck",
};
