// What a device is to send, in order: its thread does so between tasks. Of a device whose memory
// the host does not see, another thread does, which waits until each frame was copied to the host:
// the device's own enqueues the next tasks meanwhile.
//
// That thread waits for nothing but what was enqueued on the device before, and for work; it is
// woken, and ends, when the run is closed. A device that never comes to the copy is told by
// pen_worker_run_describe_waits, and a worker that cannot end for it by pen_worker_is_stuck.
//
// Lifetime: start to stop on the device's thread, while its fences are there.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SENDER_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SENDER_H

#include "scheduler/runtime/worker/worker_device.h"

// Room for all that the device has to send at once. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_sender_prepare(worker_device *device);
// Starts the thread, for a device that needs one. UNAVAILABLE, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_sender_start(worker_device *device);
// The run is closed: waits until the thread is over, and with it what it does.
void pen_worker_sender_stop(worker_device *device);
// A frame is to be sent: by whom it is, is woken. Holds the lock.
void pen_worker_sender_add(pen_worker_run *run, const pen_worker_action *action);
// Takes what the device's own thread is to send next. False: nothing. Holds the lock.
bool pen_worker_sender_take(worker_device *device, worker_send *out_send);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SENDER_H
