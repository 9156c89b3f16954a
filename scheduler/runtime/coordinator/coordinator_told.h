// What was told of the devices of workers, so that no line comes again in a later generation. A
// false worker has no more of them printed than there is room for.
//
// Lifetime: starts as zeros; outlives the coordinators that it is lent to, one after another.
// Threads:  guarded by the lock of the coordinator that has it.
#ifndef PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_TOLD_H
#define PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_TOLD_H

#include <stdint.h>

#define PEN_COORDINATOR_TOLD_LIMIT 256

typedef struct pen_coordinator_told {
    uint64_t lines[PEN_COORDINATOR_TOLD_LIMIT]; // hashes
    uint32_t count;
} pen_coordinator_told;

#endif // PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_TOLD_H
