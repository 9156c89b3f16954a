// When tasks of a device ran, and when it waited: for the trace, and for the figures of a round. A
// device with a clock of its own tells it when it was awaited: until then it is kept.
//
// Threads: the device's.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TIMES_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TIMES_H

#include "scheduler/runtime/worker/worker_device.h"

// Room for what is kept until the device was awaited, once it is open. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_times_prepare(worker_device *device);
// Around what a task enqueues, for a device with a clock of its own. As pen_executor_finish
PEN_NODISCARD pen_status pen_worker_times_begin(worker_device *device, uint32_t form);
PEN_NODISCARD pen_status pen_worker_times_end(worker_device *device, const pen_trace_event *task);
// Waits for the device: tasks have times then. As pen_executor_finish
PEN_NODISCARD pen_status pen_worker_times_finish(worker_device *device, uint32_t form);
// A task is over, by the host's clock; of no effect on a device with a clock of its own.
void pen_worker_times_done(worker_device *device, const pen_trace_event *task);
// The thread waited. Holds the lock.
void pen_worker_times_wait(worker_device *device, const pen_trace_event *event);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TIMES_H
