// What devices hold besides while a checkpoint is written: copies of their tensors, so that the
// training goes on. A tensor that several devices have is the first one's to save. Where the
// devices of a process have no room for copies, it writes directly, and takes nothing
// (scheduler/runtime/worker/worker_save.c does so).
//
// Threads: pure.
#ifndef PEN_SCHEDULER_PLAN_SAVED_MEMORY_H
#define PEN_SCHEDULER_PLAN_SAVED_MEMORY_H

#include "base/status.h"
#include "graph/passes/cut/cut.h"

typedef struct pen_saved_memory_device {
    uint32_t worker;    // devices of one process have the same
    double bytes;       // that it takes without copies
    double bytes_limit; // INFINITY: any
} pen_saved_memory_device;

// `devices` and out_bytes: [device_count of the cut]. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_saved_memory_find(const pen_cut *cut,
                                               const pen_saved_memory_device *devices,
                                               uint64_t *out_bytes);

#endif // PEN_SCHEDULER_PLAN_SAVED_MEMORY_H
