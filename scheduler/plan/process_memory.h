// What processes take besides the buffers of their devices: the program and its libraries, graphs
// and kernels, code that is made for convolutions, batches in memory, what plans a placement, what
// moves tensors between processes. Fitted to resident peaks (VmHWM) on x86-64 with glibc, and
// within a tenth of those, devices included, for the models of the tests.
#ifndef PEN_SCHEDULER_PLAN_PROCESS_MEMORY_H
#define PEN_SCHEDULER_PLAN_PROCESS_MEMORY_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/compile/compile.h"
#include "scheduler/data/dataset.h"

// A process that trains, or that lets others train.
typedef struct pen_process_memory_request {
    const pen_program *const *programs; // [program_count], that the process has compiled
    uint32_t program_count;
    const pen_dataset_info *info; // NULL: no data is read
    uint64_t batch;               // examples
    uint64_t buffer_bytes;        // of the process's own device, as far as they are known
    uint32_t evaluation_count;    // programs that will be compiled besides, to evaluate with
    bool exports;                 // writes the model at the end
    bool is_coordinator;          // plans, cuts and feeds the programs, which others run:
    bool is_networked;            // some of them in other processes
} pen_process_memory_request;

// `arena` is for scratch. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_process_memory_estimate(const pen_process_memory_request *request,
                                                     pen_arena *arena, uint64_t *out_bytes);

// A process that trains for a coordinator.
typedef struct pen_worker_memory_request {
    const pen_graph *const *graphs; // [graph_count], the parts of its devices, in all forms
    uint32_t graph_count;
    uint64_t buffer_bytes; // of its devices
    uint64_t data_bytes;   // that it holds of what it reads by itself
    bool is_within;        // in the coordinator's process: only what comes on top of that
} pen_worker_memory_request;

// `arena` is for scratch. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_memory_estimate(const pen_worker_memory_request *request,
                                                    pen_arena *arena, uint64_t *out_bytes);

#endif // PEN_SCHEDULER_PLAN_PROCESS_MEMORY_H
