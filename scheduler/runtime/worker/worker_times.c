// A device with a clock of its own may compute a task long after it was enqueued. Its times are
// known when it was awaited: what is to be noted is kept until then, in order.
//
// It waits in two places. The host's thread waits until the protocol lets a task run: as soon as
// what the task reads was enqueued where it is made, which may be long before it is there. Then the
// device's queue waits, at a fence, until it is there. Marks before and behind the fence tell of
// the second. Both are one wait to who looks at the trace: for the same tensor, by the same task.
#include <math.h>

#include "base/clock.h"
#include "scheduler/runtime/worker/worker_device.h"
#include "scheduler/runtime/worker/worker_task.h"

// Between two marks with nothing between them: the way of a command.
#define TIMES_WAIT_SECONDS 10e-6

// The least room for a task: a wait, the task itself, and a wait behind it.
#define TIMES_OF_TASK 3u

static bool times_are_marked(const worker_device *device) {
    return device->device->kind->mark != NULL;
}

// What is kept for a task: itself, and a wait for each tensor that it reads or makes, and for the
// word to update.
static uint32_t times_count(const pen_run_form *form, uint32_t device) {
    uint32_t count = 0;
    for (uint32_t t = form->devices[device].task_first; t < form->devices[device].task_end; t++) {
        const pen_run_task *task = &form->tasks[t];
        const uint32_t reads = task->receive_end - task->receive_first;
        count += TIMES_OF_TASK + reads + 2 * (task->send_end - task->send_first);
    }
    return count;
}

// Room for all tasks of a round, which ends with the device awaited.
pen_status pen_worker_times_prepare(worker_device *device) {
    const pen_run_table *table = device->run->table;
    worker_times *times = &device->times;
    if (!times_are_marked(device)) return PEN_OK;
    times->limit = TIMES_OF_TASK;
    for (uint32_t f = 0; f < table->form_count; f++) {
        const uint32_t count = times_count(&table->forms[f], device->index);
        if (count > times->limit) times->limit = count;
    }
    return PEN_NEW(device->arena, times->limit, &times->kept);
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

// ---- what is kept

// Whether two waits are for the same.
static bool times_are_one(const pen_trace_event *a, const pen_trace_event *b) {
    return a->round == b->round && a->form == b->form && a->channel == b->channel &&
           a->task.kind == b->task.kind && a->task.stage == b->task.stage &&
           a->task.microbatch == b->task.microbatch;
}

// A wait that goes on with `more`.
static void times_extend(worker_time *time, const worker_time *more) {
    if (more->is_seen && !time->is_seen) time->event.start_seconds = more->event.start_seconds;
    if (more->is_seen) time->event.end_seconds = more->event.end_seconds;
    if (more->is_marked && !time->is_marked) time->from = more->from;
    if (more->is_marked) time->to = more->to;
    time->is_seen |= more->is_seen;
    time->is_marked |= more->is_marked;
}

// Waits for the same that follow each other are one. Should there be no room but for the next task,
// a wait for something else is told as part of the one before: its time is not lost.
static void times_keep_wait(worker_times *times, const worker_time *wait) {
    worker_time *last = times->count > 0 ? &times->kept[times->count - 1] : NULL;
    const uint32_t room = times->limit - times->count;
    const bool is_behind_wait = last != NULL && last->event.kind == PEN_TRACE_WAIT;
    if (is_behind_wait && (room < TIMES_OF_TASK || times_are_one(&last->event, &wait->event))) {
        times_extend(last, wait);
        return;
    }
    // before a task there is room for what it needs, and a wait behind it
    PEN_ASSERT(times->kept != NULL && room > 0);
    times->kept[times->count++] = *wait;
}

// Holds the lock.
void pen_worker_times_wait(worker_device *device, const pen_trace_event *event) {
    if (!times_are_marked(device)) {
        times_note_wait(device, event);
    } else {
        times_keep_wait(&device->times, &(worker_time){.event = *event, .is_seen = true});
    }
}

// ---- what is told

// When it was, by the device, by the host, or from the earlier to the later.
static pen_status times_place(const worker_device *device, worker_time *time) {
    pen_trace_event *event = &time->event;
    pen_span span;
    if (!time->is_marked) return PEN_OK;
    PEN_TRY(device->device->kind->marked(device->device, time->from, time->to, &span));
    const double end = span.start_seconds + span.seconds;
    event->start_seconds =
        time->is_seen ? fmin(event->start_seconds, span.start_seconds) : span.start_seconds;
    event->end_seconds = time->is_seen ? fmax(event->end_seconds, end) : end;
    return PEN_OK;
}

// A wait is noted when it is known that it does not go on.
static void times_flush(worker_device *device) {
    worker_times *times = &device->times;
    if (!times->is_waiting) return;
    times->is_waiting = false;
    pen_mutex_lock(&device->run->lock);
    times_note_wait(device, &times->wait);
    pen_mutex_unlock(&device->run->lock);
}

static void times_tell_wait(worker_device *device, const pen_trace_event *event) {
    worker_times *times = &device->times;
    if (times->is_waiting && times_are_one(&times->wait, event)) {
        times->wait.end_seconds = event->end_seconds;
        return;
    }
    times_flush(device);
    times->wait = *event;
    times->is_waiting = true;
}

// None begins before the end of the last. Where tasks lie is known to microseconds only, and how
// long they take is known better: one that would begin too early is moved. A wait that would is
// shortened, for until then the device computed.
static void times_tell_one(worker_device *device, const worker_time *time) {
    pen_trace_event event = time->event;
    const double late = fmax(0, device->times.noted_until - event.start_seconds);
    event.start_seconds += late;
    if (event.kind == PEN_TRACE_TASK) {
        event.end_seconds += late;
        times_flush(device);
        times_note_task(device, &event);
    } else {
        const double least = time->is_seen ? 0 : TIMES_WAIT_SECONDS;
        if (event.end_seconds - event.start_seconds <= least) return;
        times_tell_wait(device, &event);
    }
    device->times.noted_until = event.end_seconds;
}

static pen_status times_tell(worker_device *device) {
    worker_times *times = &device->times;
    for (uint32_t i = 0; i < times->count; i++) {
        PEN_TRY(times_place(device, &times->kept[i]));
        times_tell_one(device, &times->kept[i]);
    }
    times_flush(device);
    times->count = 0;
    times->mark_count = 0;
    return PEN_OK;
}

static void times_note_awaited(worker_device *device, double since) {
    if (!device->is_staged) return; // others have computed when they return
    pen_mutex_lock(&device->run->lock);
    device->awaited_since = since;
    pen_mutex_unlock(&device->run->lock);
}

pen_status pen_worker_times_finish(worker_device *device, uint32_t form) {
    times_note_awaited(device, pen_clock_seconds());
    const pen_status status = pen_executor_finish(device->executors[form]);
    times_note_awaited(device, 0);
    PEN_TRY(status);
    return times_are_marked(device) ? times_tell(device) : PEN_OK;
}

// ---- around a task

static pen_status times_mark(worker_device *device, uint32_t *out_mark) {
    *out_mark = device->times.mark_count++;
    return device->device->kind->mark(device->device, *out_mark);
}

pen_status pen_worker_times_begin(worker_device *device, const pen_trace_event *task) {
    worker_times *times = &device->times;
    times->task = *task;
    if (!times_are_marked(device)) return PEN_OK;
    if (times->limit - times->count >= TIMES_OF_TASK) return PEN_OK;
    return pen_worker_times_finish(device, task->form);
}

pen_status pen_worker_times_start(worker_device *device) {
    if (!times_are_marked(device)) return PEN_OK;
    return times_mark(device, &device->times.started);
}

pen_status pen_worker_times_end(worker_device *device) {
    worker_times *times = &device->times;
    worker_time time = {.event = times->task, .is_marked = true, .from = times->started};
    if (!times_are_marked(device)) return PEN_OK;
    PEN_TRY(times_mark(device, &time.to));
    times->kept[times->count++] = time;
    return PEN_OK;
}

void pen_worker_times_done(worker_device *device, const pen_trace_event *task) {
    if (!times_are_marked(device)) times_note_task(device, task);
}

// ---- around a fence

pen_status pen_worker_times_hold(worker_device *device) {
    if (!times_are_marked(device)) return PEN_OK;
    return times_mark(device, &device->times.held);
}

pen_status pen_worker_times_pass(worker_device *device, uint32_t form, uint32_t channel) {
    worker_times *times = &device->times;
    worker_time wait = {.event = times->task, .is_marked = true, .from = times->held};
    if (!times_are_marked(device)) return PEN_OK;
    PEN_TRY(times_mark(device, &wait.to));
    wait.event.kind = PEN_TRACE_WAIT;
    if (form == wait.event.form) wait.event.channel = channel;
    times_keep_wait(times, &wait);
    return PEN_OK;
}
