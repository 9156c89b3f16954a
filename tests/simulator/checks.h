// What must hold whatever goes wrong (RELIABILITY: I1 to I10), compared as things happen and at the
// end.
#ifndef PEN_TESTS_SIMULATOR_CHECKS_H
#define PEN_TESTS_SIMULATOR_CHECKS_H

#include "scheduler/store/commit_log.h"
#include "tests/simulator/orders.h"
#include "tests/simulator/world.h"

#define CHECK_SHARDS 1024u
#define CHECK_MANIFESTS 256u
#define CHECK_FENCES 512u
#define CHECK_ROTTEN 32u
#define SIMULATION_JOB "penstock-0123456789abcdef"
#define SIMULATION_LOG "run/commit"
#define SIMULATION_SHARDS "run/shards"

typedef struct check_shard { // that was written
    char file[64];
    uint64_t step;
    uint64_t generation;
    uint32_t stages; // bits
    bool is_right;   // its contents are those of the undisturbed training
    bool is_durable; // when its writer was told so
    bool is_rotten;
} check_shard;

typedef struct check_fence { // that is durable, as its coordinator was told
    uint64_t number;
    uint64_t generation;
} check_fence;

typedef struct check_manifest { // that somebody builds upon
    uint64_t number;
    uint64_t step;
    uint64_t generation;
    uint32_t shard_count;
    uint32_t shards[SHAPE_WORKERS];
} check_manifest;

struct checks {
    uint32_t fence_count;
    check_fence fences[CHECK_FENCES];
    uint64_t generations[WORLD_PROCESSES]; // that processes are in
    uint32_t shard_count;
    check_shard shards[CHECK_SHARDS];
    uint32_t manifest_count;
    uint64_t
        oldest_kept; // record; what was older when a newer one was published is pruned for good
    check_manifest manifests[CHECK_MANIFESTS];
    uint32_t rotten_count;
    uint64_t rotten_records[CHECK_ROTTEN]; // numbers
    orders_told told[ORDERS_TOLD];
    bool has_ended_not_finite;
    bool is_done; // the last checkpoint is committed
};

void check_process(process *p);

// A fence is durable, as the log says.
void check_fenced(process *p, const pen_commit_record *record);
// A worker is told of a generation.
void check_assigned(process *p, uint64_t generation);
// A shard was written, or will have been.
void check_shard_written(world *w, const char *file, uint64_t generation, uint64_t step,
                         uint32_t stages, bool is_right);
// The store says that it is durable.
void check_shard_durable(world *w, const pen_shard_summary *summary);
// A bit of a shard or record was turned.
void check_rotten(world *w, const char *path);
// A manifest is durable, as the log says.
void check_published(process *p, const pen_commit_record *record);
// Workers are told that a checkpoint is durable.
void check_committed(process *p, uint64_t step);
// A training goes on from a manifest (step 0: from the beginning). `is_excused`: bits that were
// read wrong, or refusals, made it pass over newer ones.
void check_recovered(process *p, uint64_t generation, const pen_commit_record *record,
                     bool is_excused);
// Whether all shards of a manifest are as they were written.
bool check_is_whole(const world *w, const pen_commit_record *record);

void check_end(world *w);

#endif // PEN_TESTS_SIMULATOR_CHECKS_H
