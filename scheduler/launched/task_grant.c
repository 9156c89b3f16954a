#include "scheduler/launched/task_grant.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/quantity.h"
#include "base/integer.h"
#include "base/system/machine.h"

#define GRANT_MEBIBYTE ((uint64_t)1 << 20)

// 0: it is not set, or no number.
static uint64_t grant_read(const char *name) {
    const char *value = getenv(name);
    int64_t number;
    return value != NULL && pen_integer_parse(value, &number) && number > 0 ? (uint64_t)number : 0;
}

// Slurm's words are about a task where it was asked for cores of each, else about the node.
static void grant_take_slurm(pen_task_grant *grant) {
    const uint64_t of_task = grant_read("SLURM_CPUS_PER_TASK");
    const uint64_t of_node = grant_read("SLURM_CPUS_ON_NODE");
    const uint64_t cores = of_task > 0 ? of_task : of_node;
    if (cores > 0) {
        grant->cores = (uint32_t)pen_min_u64(cores, grant->cores);
        grant->shares_cores = of_task == 0;
    }
    const uint64_t bytes_of_core = grant_read("SLURM_MEM_PER_CPU") * GRANT_MEBIBYTE;
    const uint64_t bytes_of_node = grant_read("SLURM_MEM_PER_NODE") * GRANT_MEBIBYTE;
    const uint64_t bytes = bytes_of_core > 0 ? bytes_of_core * grant->cores : bytes_of_node;
    if (bytes == 0) return;
    grant->shares_memory = bytes_of_core == 0 || grant->shares_cores;
    grant->memory_bytes = pen_min_u64(bytes, grant->memory_bytes);
}

// Without more being said, all cores of a machine are for all its tasks, and fewer were bound to
// this one. A limit of memory is of all tasks of a node, but for containers.
pen_status pen_task_grant_find(const pen_task_identity *identity, pen_arena *arena,
                               pen_task_grant *out_grant) {
    pen_machine machine;
    PEN_TRY(pen_machine_detect(arena, &machine));
    *out_grant = (pen_task_grant){
        .cores = machine.core_count_allowed,
        .memory_bytes = machine.memory_bytes_allowed,
        .shares_cores = machine.core_count_allowed >= machine.core_count,
        .shares_memory =
            !identity->is_in_container || machine.memory_bytes_allowed >= machine.memory_bytes,
    };
    if (strcmp(identity->starter, "Slurm") == 0) grant_take_slurm(out_grant);
    return PEN_OK;
}
