// What a task may use of its node.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_GRANT_H
#define PEN_SCHEDULER_LAUNCHED_TASK_GRANT_H

#include "scheduler/launched/task_identity.h"

typedef struct pen_task_grant {
    uint32_t cores; // at least 1
    uint64_t memory_bytes;
    bool shares_cores;  // they are all tasks' of the node together
    bool shares_memory; // likewise
} pen_task_grant;

// Of Slurm what it says it granted (SLURM_CPUS_PER_TASK, SLURM_CPUS_ON_NODE, SLURM_MEM_PER_CPU,
// SLURM_MEM_PER_NODE), never more than the system allows: affinity, cgroup. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_task_grant_find(const pen_task_identity *identity, pen_arena *arena,
                                             pen_task_grant *out_grant);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_GRANT_H
