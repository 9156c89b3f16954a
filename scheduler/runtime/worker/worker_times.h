// When tasks ran, and when the device waited: for the trace, and for the figures of a round. A
// device with a clock of its own tells it when it was awaited: until then it is kept.
//
// Threads: the device's.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TIMES_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/trace/trace.h"

typedef struct worker_device worker_device;

// A task, or a wait, of a device with a clock of its own.
typedef struct worker_time {
    pen_trace_event event;
    bool is_seen;      // it has the times at which the host saw it
    bool is_marked;    // it lies between two marks, or goes on there
    uint32_t from, to; // of the device
} worker_time;

// What such a device did and is not noted yet.
typedef struct worker_times {
    worker_time *kept; // [limit]
    uint32_t limit, count;
    uint32_t mark_count;    // that are used
    pen_trace_event task;   // that is enqueued now
    uint32_t started, held; // marks before what it computes, and before a fence
    double noted_until;     // the end of the last that was told
    pen_trace_event wait;   // told, but perhaps not over
    bool is_waiting;        // there is such a wait
} worker_times;

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

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_TIMES_H
