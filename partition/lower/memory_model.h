// How many bytes a placement takes on each device, by what they are for.
//
// A device holds, for each of its stages:
//     parameters (running statistics and constants with them), gradients summed over microbatches,
//     optimizer state                                                    once
//   + values that its backward pass reads                                microbatches in flight
//   + what it sends that is not among those: one being made, one on its way           2
//   + what it receives, or is fed: as long as the backward pass reads it microbatches in flight,
//     else while it is used; and one more that arrives meanwhile
//   + what lives within one task: other values, workspace of kernels     the largest stage's
// The last is found by planning the stage's buffers as the executor does (graph/analysis/
// memory_plan.h), with forward pass, backward pass and updates as lists. This is what placements
// are judged by: it knows no order of tasks. What each part takes to the byte, once there is a
// schedule, scheduler/runtime/executor/part_memory.h finds.
//
// Where one device of this process trains alone (is_local), it runs everything as one list; what is
// said of it is what the executor takes, byte for byte, if the workspaces are.
//
// Persistent values that several stages of a device read count for the first of them.
//
// Lifetime: in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_LOWER_MEMORY_MODEL_H
#define PEN_PARTITION_LOWER_MEMORY_MODEL_H

#include "partition/costs/device_memory.h"
#include "partition/lower/graph_problem.h"

// Which stage runs each node, and where (partition/lower/stage_split.h).
typedef struct pen_stage_split {
    uint32_t stage_count;
    uint32_t *device_of_stage; // [stage_count]
    uint32_t *stage_of_node;   // [node_count] of the graph
} pen_stage_split;

typedef struct pen_stage_memory {
    uint64_t parameters;
    uint64_t gradients;
    uint64_t optimizer_state;
    uint64_t activations;      // of one microbatch
    uint64_t sent;             // what is sent that the backward pass does not keep
    uint64_t received_kept;    // of one microbatch, that the backward pass reads
    uint64_t received_passing; // the rest: what is used once, and what arrives meanwhile
    uint64_t workspace;
} pen_stage_memory;

// out_memory: [stage_count]. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_memory_model_stages(const pen_planned_graph *planned,
                                                 const pen_forward_owners *owners,
                                                 const pen_stage_split *split, pen_arena *arena,
                                                 pen_stage_memory **out_memory);

// What the stages of device `device` take together with `in_flight` [stage_count] microbatches.
pen_device_memory pen_memory_model_device(const pen_stage_memory *stages,
                                          const pen_stage_split *split, const uint32_t *in_flight,
                                          uint32_t device);

#endif // PEN_PARTITION_LOWER_MEMORY_MODEL_H
