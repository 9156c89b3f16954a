// A plan: the contract between planning and running. A text file (plan_file.h), written by `plan`,
// read by everything else, edited by hand if one likes, and checked whenever it is read.
//
// Lifetime: a plan lives in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_PLAN_PLAN_H
#define PEN_PARTITION_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/precision.h"
#include "base/system/kernel_level.h"
#include "graph/graph_types.h"
#include "partition/costs/cluster.h"
#include "partition/costs/device_memory.h"
#include "partition/problem/stage_graph.h"

// Steps that differ by less than this share of them are alike: no prediction can tell which is
// shorter, and what sends less is preferred.
#define PEN_PLAN_ALIKE 0.01

typedef struct pen_plan_device {
    const char *name;
    pen_device_memory memory;
    uint64_t
        process_bytes;   // that its process takes besides the memory of its devices; 0: not known
    double load_seconds; // compute and transfers of one microbatch, forward and backward
    double slowness;     // of its computing, beside the costs; 0 stands for 1
    uint32_t node_count;
    const char *tasks; // in order (scheduler/plan/plan_schedule.h); NULL: as the schedule makes
                       // them
    const char *tasks_file; // where they are written; NULL: in no file
    uint32_t tasks_line;
} pen_plan_device;

typedef struct pen_plan_stage {
    const char *name;         // "stage 0"
    uint32_t node_count;      // listed nodes
    uint32_t in_flight;       // microbatches held at once, at most
    uint64_t parameter_bytes; // that no lower stage of the device has
} pen_plan_stage;

// A tensor that crosses from one device to others.
typedef struct pen_plan_transfer {
    const char *value; // name
    uint32_t source;   // stage
    uint32_t target;   // stage
    uint64_t bytes;    // of one microbatch
    double seconds;
    bool is_backward; // gradients, to an earlier stage
    bool is_per_step; // once a step: gradients of parameters with several readers, the updated
    // parameters, norms
} pen_plan_transfer;

typedef struct pen_plan_node {
    const char *name; // of a forward node; those of its backward pass and update go with it
    uint32_t stage;
    uint32_t update_stage; // that updates its parameters: `stage`, or with replicas that of their
                           // owner, the same for the node in all replicas
    double seconds;        // with its backward pass
    pen_figure_source source;
    uint64_t bytes;     // that it adds to its device
    const char *reason; // why it is there, one line; "": not asked (pen_plan_add_reasons)
} pen_plan_node;

// Devices that run some of a step's lanes, as a pipeline with a cut of its own.
typedef struct pen_plan_replica {
    uint32_t first_lane;
    uint32_t lane_count; // at least 1
    uint32_t device_count;
    const uint32_t *devices; // [device_count], ascending; each in one replica
    uint32_t first_stage;
    uint32_t stage_count; // its stages have one range of microbatches
} pen_plan_replica;

typedef struct pen_plan {
    const char *job;             // path of the job file; NULL: made without one
    const char *const *settings; // [setting_count], in place of the job's values: "train.batch=7"
    uint32_t setting_count;
    const char *model; // path
    const char *costs; // path of the cost table used; NULL: none
    uint64_t model_hash;
    uint64_t cluster_hash;
    uint64_t seed;
    const char *strategy;
    const char *objective; // "step_time"
    double value;          // of the objective, seconds (traffic: bytes)
    double lower_bound;
    bool is_cut; // the time limit cut the search; of a plan that was read, not known: false
    const char *schedule;    // "1f1b"
    pen_kernel_level level;  // AUTO: not known
    pen_precision precision; // of operands of products
    uint32_t microbatch_count;
    uint64_t microbatch_size; // examples
    double step_seconds;      // predicted
    double bubble;            // predicted, 0 to 1
    uint64_t process_bytes;   // that the process which starts it takes besides its devices' memory;
                              // 0: not known

    uint32_t device_count;
    const pen_plan_device *devices;   // [device_count] of the cluster
    uint32_t lane_count;              // of a step (train.lanes); 0 stands for 1
    uint32_t replica_count;           // 0: one, of all devices and stages, not listed
    const pen_plan_replica *replicas; // [replica_count], by lanes; stages are numbered through them
    uint32_t owner_count;             // 0: replicas update; else there are replicas
    const uint32_t *owners; // [owner_count] devices of no replica that update; each has one of the
                            // last stages, in this order, which runs no microbatch
    pen_stage_graph stages;
    const pen_plan_stage *stage_figures; // [stage_count]
    uint32_t transfer_count;
    const pen_plan_transfer *transfers;
    uint32_t node_count;
    const pen_plan_node
        *nodes; // [node_count], in topological order; of one replica after the other

    uint32_t measured_count; // nodes of the whole step, by where their seconds come from
    uint32_t stated_count;
    uint32_t assumed_count;
} pen_plan;

#endif // PEN_PARTITION_PLAN_PLAN_H
