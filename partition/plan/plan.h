// A plan: the contract between planning and running. A text file (plan_file.h), written by `plan`,
// read by everything else, edited by hand if one likes, and checked whenever it is read.
//
// Lifetime: a plan lives in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_PLAN_PLAN_H
#define PEN_PARTITION_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph_types.h"
#include "partition/costs/cluster.h"
#include "partition/costs/device_memory.h"
#include "partition/problem/stage_graph.h"

// Steps that differ by less than this share of them are alike: no prediction can tell which is
// shorter, and what sends less is preferred.
#define PEN_PLAN_ALIKE 0.02

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
    double seconds; // with its backward pass
    pen_figure_source source;
    uint64_t bytes;     // that it adds to its device
    const char *reason; // why it is there, one line; "": not asked (pen_plan_add_reasons)
} pen_plan_node;

typedef struct pen_plan {
    const char *job;   // path of the job file; NULL: made without one
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
    const char *schedule; // "1f1b"
    uint32_t microbatch_count;
    uint64_t microbatch_size; // examples
    double step_seconds;      // predicted
    double bubble;            // predicted, 0 to 1
    uint64_t process_bytes;   // that the process which starts it takes besides its devices' memory;
                              // 0: not known

    uint32_t device_count;
    const pen_plan_device *devices; // [device_count] of the cluster
    pen_stage_graph stages;
    const pen_plan_stage *stage_figures; // [stage_count]
    uint32_t transfer_count;
    const pen_plan_transfer *transfers;
    uint32_t node_count;
    const pen_plan_node *nodes; // [node_count], in topological order

    uint32_t measured_count; // nodes of the whole step, by where their seconds come from
    uint32_t stated_count;
    uint32_t assumed_count;
} pen_plan;

// What of a cluster a plan depends on: names, kinds, hosts, and the threads and figures that
// the user stated. Not what was measured or assumed: the same file means the same cluster on every
// machine.
uint64_t pen_cluster_hash(const pen_cluster *cluster);

// Whether a plan holds together: stages and devices that are there, each node once and by one name,
// stages with as many nodes as they say and in order, figures that are numbers, memory within the
// limits and the sum of its kinds, edges that carry what their transfers sum up to, a value not
// below its bound. What needs the model is pen_plan_check_model (partition/plan/plan_build.h). Of a
// plan whose stages were edited, some may be empty, and edges, transfers and the value are not
// judged.
//   INVALID_INPUT  what is wrong, by name
//   DOES_NOT_FIT   a device over its memory
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_check(const pen_plan *plan, bool is_edited, pen_arena *arena);

#endif // PEN_PARTITION_PLAN_PLAN_H
