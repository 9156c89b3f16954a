// A device with a clock of its own may compute a task long after it was enqueued. Its times are
// known when it was awaited: what is to be noted is kept until then, in order. Such a device waits
// only while it has nothing to compute.
#include <math.h>

#include "scheduler/runtime/worker/worker_device.h"
#include "scheduler/runtime/worker/worker_task.h"

static bool times_are_marked(const worker_device *device) {
    return device->device->kind->mark != NULL;
}

// Room for all tasks of a round and as many waits, twice: a round that has fewer microbatches may
// end without being awaited.
pen_status pen_worker_times_prepare(worker_device *device) {
    const pen_run_table *table = device->run->table;
    uint32_t most = 0;
    if (!times_are_marked(device)) return PEN_OK;
    for (uint32_t f = 0; f < table->form_count; f++) {
        const uint32_t count = table->forms[f].devices[device->index].task_end -
                               table->forms[f].devices[device->index].task_first;
        if (count > most) most = count;
    }
    device->time_limit = 4 * most + 2;
    return PEN_NEW(device->arena, device->time_limit, &device->times);
}

// ---- what is noted

// Figures of a round that was told of already are nobody's any more.
static void times_note_task(worker_device *device, const pen_trace_event *event) {
    pen_worker_run *run = device->run;
    pen_trace_record(run->recorder, device->row, event);
    pen_mutex_lock(&run->lock);
    pen_round_figures *figures = &device->figures[event->round % WORKER_ROUND_RING];
    if (event->round >= run->told_end) {
        if (figures->busy_seconds == 0) figures->start_seconds = event->start_seconds;
        figures->end_seconds = event->end_seconds;
        figures->busy_seconds += event->end_seconds - event->start_seconds;
    }
    pen_mutex_unlock(&run->lock);
}

// Holds the lock.
static void times_note_wait(worker_device *device, const pen_trace_event *event) {
    device->wait_seconds += event->end_seconds - event->start_seconds;
    pen_trace_record(device->run->recorder, device->row, event);
}

// Holds the lock.
void pen_worker_times_wait(worker_device *device, const pen_trace_event *event) {
    if (!times_are_marked(device)) {
        times_note_wait(device, event);
    } else if (device->time_count < device->time_limit) {
        device->times[device->time_count++] = *event;
    }
}

// ---- tasks

// In their order, none before the end of the last: what the host saw of a wait, and what the device
// tells of tasks, differ by the microseconds that a command takes to the device.
static pen_status times_tell(worker_device *device) {
    const pen_device_kind *kind = device->device->kind;
    for (uint32_t i = 0; i < device->time_count; i++) {
        pen_trace_event event = device->times[i];
        if (event.kind == PEN_TRACE_TASK) {
            pen_span span;
            PEN_TRY(kind->marked(device->device, 2 * i, 2 * i + 1, &span));
            event.start_seconds = span.start_seconds;
            event.end_seconds = span.start_seconds + span.seconds;
        }
        event.start_seconds = fmax(event.start_seconds, device->noted_until);
        event.end_seconds = fmax(event.start_seconds, event.end_seconds);
        device->noted_until = event.end_seconds;
        if (event.kind == PEN_TRACE_TASK) {
            times_note_task(device, &event);
        } else if (event.end_seconds > event.start_seconds) { // else it computed all that time
            pen_mutex_lock(&device->run->lock);
            times_note_wait(device, &event);
            pen_mutex_unlock(&device->run->lock);
        }
    }
    device->time_count = 0;
    return PEN_OK;
}

pen_status pen_worker_times_finish(worker_device *device, uint32_t form) {
    PEN_TRY(pen_executor_finish(device->executors[form]));
    return times_are_marked(device) ? times_tell(device) : PEN_OK;
}

pen_status pen_worker_times_begin(worker_device *device, uint32_t form) {
    if (!times_are_marked(device)) return PEN_OK;
    if (device->time_count + 2 > device->time_limit) PEN_TRY(pen_worker_times_finish(device, form));
    return device->device->kind->mark(device->device, 2 * device->time_count);
}

pen_status pen_worker_times_end(worker_device *device, const pen_trace_event *task) {
    if (!times_are_marked(device)) return PEN_OK;
    PEN_TRY(device->device->kind->mark(device->device, 2 * device->time_count + 1));
    device->times[device->time_count++] = *task;
    return PEN_OK;
}

void pen_worker_times_done(worker_device *device, const pen_trace_event *task) {
    if (!times_are_marked(device)) times_note_task(device, task);
}
