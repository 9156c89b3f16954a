// A plan: the contract between planning and running. A text file (plan_file.h), written by `plan`,
// read by everything else, edited by hand if one likes, and checked whenever it is read.
//
// Lifetime: a plan lives in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_PLAN_H
#define PEN_PARTITION_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"
#include "partition/cluster.h"
#include "partition/stage_graph.h"

// Bytes on a device at its worst moment, by what they are for.
typedef struct pen_plan_memory {
    uint64_t parameters;
    uint64_t gradients; // accumulated over microbatches
    uint64_t optimizer_state;
    uint64_t activations;     // kept for backward, of all microbatches in flight
    uint64_t receive_buffers; // tensors from other devices, of all microbatches in flight
    uint64_t workspace;       // kernels' and values that live within one task
    uint64_t total;           // sum of the above
} pen_plan_memory;

typedef struct pen_plan_device {
    const char *name;
    pen_plan_memory memory;
    double load_seconds; // compute and transfers of one microbatch, forward and backward
    uint32_t node_count;
} pen_plan_device;

// A tensor that crosses from one device to others.
typedef struct pen_plan_transfer {
    const char *value; // name
    uint32_t source;   // stage
    uint32_t target;   // stage
    uint64_t bytes;    // of one microbatch
    double seconds;
    bool is_backward;
} pen_plan_transfer;

typedef struct pen_plan_node {
    const char *name; // of a forward node; those of its backward pass and update go with it
    uint32_t stage;
    double seconds; // with its backward pass
    pen_figure_source source;
    uint64_t bytes;     // that it adds to its device
    const char *reason; // why it is there, one line
} pen_plan_node;

typedef struct pen_plan {
    const char *model; // path
    uint64_t model_hash;
    uint64_t cluster_hash;
    uint64_t seed;
    const char *strategy;
    const char *objective; // "step_time"
    double value;          // of the objective, seconds (traffic: bytes)
    double lower_bound;
    const char *schedule; // "1f1b"
    uint32_t microbatch_count;
    uint64_t microbatch_size; // examples
    double step_seconds;      // predicted
    double bubble;            // predicted, 0 to 1

    uint32_t device_count;
    const pen_plan_device *devices; // [device_count] of the cluster
    pen_stage_graph stages;
    const char *const *stage_names; // [stage_count]
    uint32_t transfer_count;
    const pen_plan_transfer *transfers;
    uint32_t node_count;
    const pen_plan_node *nodes; // [node_count], in topological order

    uint32_t measured_count; // costs of nodes that are measured
    uint32_t assumed_count;  // and those that are estimates
} pen_plan;

#endif // PEN_PARTITION_PLAN_H
