// What a device is to send, in order: its thread does so between tasks. Of a device whose memory
// the host does not see, another thread does, which waits until each frame was copied to the host:
// the device's own enqueues the next tasks meanwhile. That thread also tells who sends to such a
// device that a place is free, once what came there was copied on.
//
// It waits for nothing but what was enqueued on the device before, and for more to do; it is woken,
// and ends, when the run is closed. A device that never comes to a copy is told by
// pen_worker_run_describe_waits, and a worker that cannot end for it by pen_worker_is_stuck.
//
// Lifetime: from start to pen_worker_sender_stop on the device's thread (worker_task.h), while its
//           fences are there.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SENDER_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SENDER_H

#include "scheduler/runtime/worker/worker_device.h"

// Room for all that is due at once. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_sender_prepare(worker_device *device);
// Starts the thread, for a device that needs one. UNAVAILABLE, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_sender_start(worker_device *device);
// Whether this is to be done by a device's thread, or its sender's. Any thread.
bool pen_worker_sender_takes(const pen_worker_run *run, const pen_worker_action *action);
// It is due: by whom it is done, is woken. Holds the lock.
void pen_worker_sender_add(pen_worker_run *run, const pen_worker_action *action);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SENDER_H
