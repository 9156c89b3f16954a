// The contract of worker_times.c, worker_staging.c and worker_sender.c about tasks: what a device's
// thread calls around them.
//
// Threads: the device's, unless it says otherwise.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TASK_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TASK_H

#include "scheduler/protocol/run_table.h"
#include "scheduler/trace/trace.h"

typedef struct worker_device worker_device;
typedef struct worker_due worker_due;

// ---- when tasks ran, and when the device waited: for the trace, and for the figures of a round. A
// device with a clock of its own tells it when it was awaited: until then it is kept.

// Room for what is kept until the device was awaited, once it is open. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_times_prepare(worker_device *device);
// Before anything is enqueued for a task, `task` but for its times. As pen_executor_finish
PEN_NODISCARD pen_status pen_worker_times_begin(worker_device *device, const pen_trace_event *task);
// Around what the task computes, for a device with a clock of its own.
PEN_NODISCARD pen_status pen_worker_times_start(worker_device *device);
PEN_NODISCARD pen_status pen_worker_times_end(worker_device *device);
// Around a fence that the work of such a device passes, for the sake of a channel of a form.
PEN_NODISCARD pen_status pen_worker_times_hold(worker_device *device);
PEN_NODISCARD pen_status pen_worker_times_pass(worker_device *device, uint32_t form,
                                               uint32_t channel);
// Waits for the device: tasks have times then. As pen_executor_finish
PEN_NODISCARD pen_status pen_worker_times_finish(worker_device *device, uint32_t form);
// A task is over, by the host's clock; of no effect on a device with a clock of its own.
void pen_worker_times_done(worker_device *device, const pen_trace_event *task);
// The thread waited. Holds the lock.
void pen_worker_times_wait(worker_device *device, const pen_trace_event *event);

// ---- copies of values of devices that cannot read each other's memory

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

// ---- what is to be sent

// Takes what the device's own thread is to do next. False: nothing. Holds the lock.
bool pen_worker_sender_take(worker_device *device, worker_due *out_due);
// Does it, without the lock; also on the thread of the device's sender. As pen_worker_run_send
PEN_NODISCARD pen_status pen_worker_sender_do(worker_device *device, const worker_due *due);
// The run is closed: waits until the sender's thread is over, and with it what it does.
void pen_worker_sender_stop(worker_device *device);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TASK_H
