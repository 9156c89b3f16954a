// What a process that trains takes besides the buffers of its devices: the program and its
// libraries, graphs and kernels of each program it compiled, code that is made for convolutions,
// batches in memory. Fitted to resident peaks of training on x86-64 with glibc, and within a tenth
// of those, devices included, for the models of the tests.
#ifndef PEN_SCHEDULER_PROCESS_MEMORY_H
#define PEN_SCHEDULER_PROCESS_MEMORY_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/compile.h"
#include "scheduler/training/dataset.h"

typedef struct pen_process_memory_request {
    const pen_program *const *programs; // [program_count], that the process runs
    uint32_t program_count;
    const pen_dataset_info *info; // NULL: no data is read
    uint64_t batch;               // examples
} pen_process_memory_request;

// `arena` is for scratch. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_process_memory_estimate(const pen_process_memory_request *request,
                                                     pen_arena *arena, uint64_t *out_bytes);

#endif // PEN_SCHEDULER_PROCESS_MEMORY_H
