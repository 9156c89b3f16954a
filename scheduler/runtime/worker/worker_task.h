// The contract of worker_staging.c about tasks: copies of values of devices that cannot read each
// other's memory, which a device's thread calls around them.
//
// Threads: the device's.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TASK_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TASK_H

#include "scheduler/protocol/run_table.h"

typedef struct worker_device worker_device;

// On the device's thread, first of a task: its work will wait for copies that still read what the
// task writes over.
PEN_NODISCARD pen_status pen_worker_staging_begin(worker_device *device, uint32_t form,
                                                  const pen_run_task *task);
// Then: copies what the task reads of other devices of this process.
PEN_NODISCARD pen_status pen_worker_staging_before(worker_device *device, uint32_t form,
                                                   const pen_run_task *task, uint64_t round);
// Behind the task's work: copies what it made to where other devices and processes take it from.
PEN_NODISCARD pen_status pen_worker_staging_after(worker_device *device, uint32_t form,
                                                  const pen_run_task *task, uint64_t round);
// Waits until no copy of the device is under way.
void pen_worker_staging_rest(worker_device *device);
// Gives back the room in the host's memory, once all devices of the run rest.
void pen_worker_staging_close(worker_device *device);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TASK_H
