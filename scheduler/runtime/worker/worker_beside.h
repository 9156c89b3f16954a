// The contract of worker_staging.c about what it keeps of copies, and of fences that order them.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_BESIDE_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

// Room in the host's memory for a channel's frames, as many as it has places (worker_staging.c).
typedef struct worker_staging {
    char *memory; // NULL: none is needed
    uint64_t stride;
    uint32_t fence; // of the device, for the first place: when its copy is done
} worker_staging;

// A copy out that may not be done: what it reads may not be written yet.
typedef struct worker_leaving {
    uint32_t form;
    uint32_t place, copies; // of how many
    uint32_t fence;
} worker_leaving;

// Of a device whose memory the host does not see; the device's thread's own. Fences are numbered:
// one after what each microbatch of a form does, then those here, then those of channels.
typedef struct worker_beside {
    uint32_t work_fence; // after work that is of no microbatch; two more at rest
    uint32_t fence_count;
    bool is_open;            // it has them
    void *leaving_memory;    // of its host_allocate
    worker_leaving *leaving; // [leaving_limit] copies under way
    uint32_t leaving_limit, leaving_count;
    uint32_t last_form; // that it ran
} worker_beside;

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_BESIDE_H
