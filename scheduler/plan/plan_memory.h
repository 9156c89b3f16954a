// What each device of a plan takes, to the byte: the plan's stages are cut, its schedule counts the
// copies, and the buffers are planned as the executors plan theirs. Placements are judged by the
// memory model (partition/lower/memory_model.h), which knows no order of tasks; this is what the
// plan says in the end.
//
// Threads: one, that of the device.
#ifndef PEN_SCHEDULER_PLAN_PLAN_MEMORY_H
#define PEN_SCHEDULER_PLAN_PLAN_MEMORY_H

#include "device/device.h"
#include "partition/plan/plan.h"
#include "scheduler/compile/compile.h"
#include "scheduler/plan/plan_model.h"
#include "scheduler/runtime/executor/part_memory.h"
#include "scheduler/schedule/schedule.h"

// Everything borrowed for the call.
typedef struct pen_plan_memory_request {
    const pen_plan *plan;
    const pen_cluster *cluster;
    const pen_schedule *schedule; // of the plan's stages
    const pen_program *program;   // training, of the plan's microbatches
    const pen_plan_forms *forms;  // what devices with memory of their own run besides
    uint64_t data_bytes;          // that each worker holds of what it reads by itself
    bool is_saved;                // checkpoints are made
    bool has_rings;               // workers of one host share memory: not with gRPC alone
    pen_value_bytes_fn value_bytes;
    pen_node_workspace_fn workspace;
    const void *const *contexts; // of both, [device_count]
    pen_device *const *devices;  // [device_count] of the kind of each; they compute nothing
    uint64_t *missing; // [device_count] raised, where refine refuses, to what a device takes more
                       // than the plan says; NULL: nobody asks
} pen_plan_memory_request;

typedef struct pen_plan_device_memory {
    pen_device_memory memory; // of a GPU, its own: `saved` is its process's then
    uint64_t process_bytes; // of its worker, besides the memory of all its devices; of one in this
                            // process, on top of what this process takes
    uint32_t worker;
} pen_plan_device_memory;

// out_memory: [device_count of the plan].
//   INVALID_INPUT  as pen_stage_assign and pen_cut_stages
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_memory_find(const pen_plan_memory_request *request,
                                              pen_plan_device_memory *out_memory);

// Puts that in place of what the plan, that of the request, says its devices take.
//   DOES_NOT_FIT   names the device, with bytes by kind
PEN_NODISCARD pen_status pen_plan_memory_refine(const pen_plan_memory_request *request,
                                                pen_arena *arena, pen_plan *plan);

// What the process that starts the training takes besides its devices' memory. One that trains
// alone has the pinned memory of its device, too. `arena` is for scratch. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_memory_process(const pen_job *job, const pen_plan_model *model,
                                                 const pen_cluster *cluster, pen_arena *arena,
                                                 uint64_t *out_bytes);

#endif // PEN_SCHEDULER_PLAN_PLAN_MEMORY_H
