// The contract of worker_staging.c about what it keeps of copies, and of fences that order them.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_BESIDE_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

// Room in the host's memory for a channel's frames, as many as it has places (worker_staging.c).
// The device copies from and to it by itself.
typedef struct worker_staging {
    char *memory; // NULL: none is needed
    uint64_t stride;
    uint32_t fence; // of the device, for the first place: when its copy is done
} worker_staging;

// A copy out that may still be under way: nothing may be written where it reads.
typedef struct worker_leaving {
    uint32_t form, channel;
    uint32_t place, copies; // where it reads: place `place` of `copies`
    uint32_t fence;         // after the copy
} worker_leaving;

// Copies of a device whose memory the host does not see. Its thread alone uses this. The table in
// worker_staging.c says which fences there are.
typedef struct worker_beside {
    uint32_t work_fence;     // first fence behind those of microbatches
    uint32_t fence_count;    // of all
    bool is_open;            // the device has them
    void *memory;            // of its host_allocate: what leaves, and what arrives
    worker_leaving *leaving; // [leaving_limit] copies under way
    uint32_t leaving_limit, leaving_count;
    uint32_t last_form; // that it ran
} worker_beside;

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_BESIDE_H
