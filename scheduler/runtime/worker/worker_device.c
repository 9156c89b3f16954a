#include "scheduler/runtime/worker/worker_device.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/system/failpoint.h"
#include "device/run_context.h"
#include "graph/graph.h"
#include "scheduler/runtime/worker/worker_task.h"

static const pen_run_spec_device *device_spec(const worker_device *device) {
    return &device->run->spec->devices[device->index];
}

static pen_status device_blame(const worker_device *device, pen_status status) {
    return pen_status_add_context(status, "on device '%s'", device_spec(device)->name);
}

// ---- tasks

static pen_status device_write_scalar(const worker_device *device, uint32_t form,
                                      pen_value_id scalar, double number) {
    const pen_run_spec_part *part = &device->run->spec->forms[form].parts[device->index];
    pen_executor *executor = device->executors[form];
    if (!pen_value_is(scalar)) return PEN_OK;
    if (pen_value_type(part->part->graph, scalar)->element == PEN_FLOAT64) {
        return pen_executor_write(executor, scalar, 0, &number, sizeof number);
    }
    const float single = (float)number;
    return pen_executor_write(executor, scalar, 0, &single, sizeof single);
}

static pen_status device_write_scalars(worker_device *device, const pen_run_round *round) {
    const pen_run_spec_part *part = &device->run->spec->forms[round->form].parts[device->index];
    if (device->scalars_round == round->round) return PEN_OK;
    PEN_TRY(device_write_scalar(device, round->form, part->loss_weight, round->loss_weight));
    PEN_TRY(device_write_scalar(device, round->form, part->learning_rate, round->learning_rate));
    PEN_TRY(device_write_scalar(device, round->form, part->step, (double)round->update));
    PEN_TRY(device_write_scalar(device, round->form, part->unscale, round->unscale));
    device->scalars_round = round->round;
    return PEN_OK;
}

// Whether a task's list makes the value.
static bool device_makes(const pen_part *part, uint32_t list, pen_value_id value) {
    if (!pen_value_is(value) || list == PEN_RUN_LIST_NONE) return false;
    const pen_node_id maker = pen_graph_value(part->graph, value)->producer;
    for (uint32_t p = part->lists[list].first; p < part->lists[list].end; p++) {
        if (part->order[p].index == maker.index) return true;
    }
    return false;
}

// A scalar of float32 or float64 that the task makes; others stay as they are.
static pen_status device_fetch_scalar(const worker_device *device, const pen_run_round *round,
                                      const pen_run_task *task, pen_value_id value,
                                      pen_executor_number *out_number) {
    const pen_part *part = device->run->spec->forms[round->form].parts[device->index].part;
    *out_number = (pen_executor_number){0};
    if (!device_makes(part, task->list, value)) return PEN_OK;
    return pen_executor_fetch_number(device->executors[round->form], value, task->task.microbatch,
                                     out_number);
}

// What the coordinator sees of what the task makes.
static pen_status device_tell_seen(const worker_device *device, const pen_run_round *round,
                                   const pen_run_task *task) {
    const pen_run_spec_part *part = &device->run->spec->forms[round->form].parts[device->index];
    const pen_worker_run_events *events = &device->run->options.events;
    for (uint32_t i = 0; i < part->seen_count; i++) {
        if (!device_makes(part->part, task->list, part->seen[i])) continue;
        const uint64_t bytes =
            pen_tensor_type_bytes(pen_value_type(part->part->graph, part->seen[i]));
        const pen_run_seen seen = {.number = i, .bytes = device->seen, .byte_count = bytes};
        PEN_ASSERT(bytes <= device->seen_limit);
        PEN_TRY(pen_executor_read(device->executors[round->form], part->seen[i],
                                  task->task.microbatch, device->seen, bytes));
        events->seen(events->context, round->round, task->task.microbatch, &seen);
    }
    return PEN_OK;
}

// A part may have the sum of the losses, the count of right answers, some of the losses themselves,
// or none of these. They are there when the device was awaited.
static pen_status device_read_loss(worker_device *device, const pen_run_round *round,
                                   const pen_run_task *task) {
    const pen_run_spec_part *part = &device->run->spec->forms[round->form].parts[device->index];
    pen_run_loss *loss = &device->loss;
    *loss = (pen_run_loss){.term_count = part->term_count};
    if (device_makes(part->part, task->list, part->accuracy)) {
        PEN_TRY(pen_executor_fetch(device->executors[round->form], part->accuracy,
                                   task->task.microbatch, &loss->correct_count,
                                   sizeof loss->correct_count));
    }
    for (uint32_t i = 0; i < part->term_count; i++) {
        PEN_TRY(device_fetch_scalar(device, round, task, part->terms[i], &device->terms[i]));
        if (device_makes(part->part, task->list, part->terms[i])) loss->made |= 1u << i;
    }
    return device_fetch_scalar(device, round, task, part->loss, &device->loss_sum);
}

static void device_take_loss(worker_device *device) {
    pen_run_loss *loss = &device->loss;
    loss->sum = pen_executor_number_of(&device->loss_sum);
    for (uint32_t i = 0; i < loss->term_count; i++)
        loss->terms[i] = pen_executor_number_of(&device->terms[i]);
}

// What updates multiply scaled gradients by, which one task of one device of all makes.
static pen_status device_fetch_applied(worker_device *device, const pen_run_round *round,
                                       const pen_run_task *task) {
    const pen_run_spec_part *part = &device->run->spec->forms[round->form].parts[device->index];
    if (!device_makes(part->part, task->list, part->applied)) return PEN_OK;
    device->has_applied = true;
    return pen_executor_fetch_number(device->executors[round->form], part->applied, 0,
                                     &device->applied);
}

// It goes to the coordinator with the figures of the round.
static void device_take_applied(worker_device *device, const pen_run_round *round) {
    if (!device->has_applied) return;
    device->has_applied = false;
    pen_mutex_lock(&device->run->lock);
    device->figures[round->round % WORKER_ROUND_RING].applied =
        pen_executor_number_of(&device->applied);
    pen_mutex_unlock(&device->run->lock);
}

// What is collected goes to who asked for it.
static pen_status device_hand_collected(const worker_device *device, const pen_run_round *round,
                                        const pen_run_task *task) {
    const pen_worker_collector *collector = &device->run->options.collector;
    if (collector->take == NULL || collector->device != device->index) return PEN_OK;
    const pen_collected collected = {
        .round = round->round,
        .form = round->form,
        .microbatch = task->task.microbatch,
        .graph = device->run->spec->forms[round->form].parts[device->index].part->graph,
        .executor = device->executors[round->form]};
    return collector->take(collector->context, &collected);
}

// Whether the device is awaited after a task: one whose numbers are read, the last update of a
// step, and the last task of a round, whose figures are then told. Until then it may compute while
// the next tasks are enqueued.
static bool device_is_awaited(const worker_device *device, const pen_run_round *round,
                              const pen_run_task *task) {
    const pen_run_form *form = &device->run->table->forms[round->form];
    return task->makes_loss ||
           pen_run_task_is_last(form, device->index, task, round->count, round->updates);
}

static pen_trace_event device_task_event(const worker_device *device, const pen_run_round *round,
                                         const pen_run_task *task) {
    return (pen_trace_event){.kind = PEN_TRACE_TASK,
                             .task = task->task,
                             .device = device->index,
                             .channel = PEN_TRACE_NO_CHANNEL,
                             .form = round->form,
                             .round = round->round,
                             .step = round->step};
}

// What a task computes; its times are of that alone.
static pen_status device_run_list(worker_device *device, const pen_run_round *round,
                                  const pen_run_task *task, const pen_run_context *context) {
    const uint32_t microbatch = task->task.kind == PEN_TASK_UPDATE ? 0 : task->task.microbatch;
    pen_evidence *noted = NULL;
    const bool has_list = task->list != PEN_RUN_LIST_NONE;
    if (has_list) noted = pen_worker_run_begin_noting(device, round, task, context);
    pen_status status = pen_worker_times_start(device);
    if (status == PEN_OK && has_list) {
        status =
            pen_executor_enqueue(device->executors[round->form], task->list, microbatch, context);
    }
    if (status == PEN_OK) status = pen_worker_times_end(device);
    if (has_list) pen_worker_run_end_noting(device, noted);
    return status;
}

// Runs the list of a task, told where it stands in its step: in which lane, and whether that ends.
static pen_status device_compute(worker_device *device, const pen_run_round *round,
                                 const pen_run_task *task) {
    pen_worker_run *run = device->run;
    const pen_run_form *form = &run->table->forms[round->form];
    const bool is_update = task->task.kind == PEN_TASK_UPDATE;
    const uint32_t microbatch = is_update ? 0 : task->task.microbatch;
    pen_run_context context = {.seed = run->spec->seed, .step = round->step};
    if (is_update) {
        pen_run_context_place_update(&context, &run->spec->lanes, round->step_microbatches);
        context.order = round->order;
    } else {
        pen_run_context_place(&context, &run->spec->lanes, round->first_microbatch + microbatch,
                              round->step_microbatches);
        context.later_lane =
            pen_lane_of(&run->spec->lanes, device->first_microbatch) < context.lane;
    }
    const pen_trace_event event = device_task_event(device, round, task);
    PEN_TRY(pen_worker_times_begin(device, &event));
    PEN_TRY(device_write_scalars(device, round));
    PEN_TRY(pen_worker_staging_begin(device, round->form, task));
    PEN_TRY(pen_worker_run_check_frames(run, form, round->form, task, round->round));
    PEN_TRY(pen_worker_staging_before(device, round->form, task, round->round));
    PEN_TRY(device_run_list(device, round, task, &context));
    PEN_TRY(pen_worker_staging_after(device, round->form, task, round->round));
    PEN_TRY(device_hand_collected(device, round, task));
    if (is_update) PEN_TRY(device_fetch_applied(device, round, task));
    if (task->makes_loss) {
        PEN_TRY(device_tell_seen(device, round, task));
        PEN_TRY(device_read_loss(device, round, task));
    }
    if (!device_is_awaited(device, round, task)) return PEN_OK;
    PEN_TRY(pen_worker_times_finish(device, round->form));
    if (task->makes_loss) device_take_loss(device);
    device_take_applied(device, round);
    return PEN_OK;
}

static void device_note_start(worker_device *device, double started) {
    pen_mutex_lock(&device->run->lock);
    device->task_started = started;
    pen_mutex_unlock(&device->run->lock);
}

// Where it went wrong. Passes of an evaluation are not steps.
static pen_status device_place(const worker_device *device, const pen_run_round *round,
                               const pen_run_task *task, pen_status status) {
    if (!device->run->table->forms[round->form].trains) {
        return pen_status_add_context(status, "in stage %u", task->task.stage);
    }
    return pen_status_add_context(status, "in step %llu, stage %u", (unsigned long long)round->step,
                                  task->task.stage);
}

// Computes outside of every lock, notes the times, and tells the core, which answers with what to
// do next.
static pen_status device_run_task(worker_device *device, const pen_run_round *round,
                                  uint32_t task_index) {
    pen_worker_run *run = device->run;
    const pen_run_task *task = &run->table->forms[round->form].tasks[task_index];
    const double started = pen_clock_seconds();
    device_note_start(device, started);
    pen_status status = device_compute(device, round, task);
    device_note_start(device, 0);
    if (status != PEN_OK) return device_place(device, round, task, status);
    pen_trace_event noted = device_task_event(device, round, task);
    noted.start_seconds = started;
    noted.end_seconds = pen_clock_seconds();
    pen_worker_times_done(device, &noted);
    const pen_worker_event event = {.kind = PEN_WORKER_EVENT_TASK_DONE,
                                    .generation = run->options.generation,
                                    .device = device->index};
    (void)PEN_FAILPOINT("worker.task_done");
    if (task->task.kind == PEN_TASK_UPDATE) (void)PEN_FAILPOINT("worker.updated");
    return pen_worker_run_step(run, &event, device);
}

// ---- the thread

static void device_note_wait(worker_device *device, const pen_worker_wait *wait, double started) {
    if (wait->is_idle || wait->is_running) return;
    const pen_run_round *round = &device->run->rounds[wait->round % WORKER_ROUND_RING];
    const pen_trace_event event = {.kind = PEN_TRACE_WAIT,
                                   .task = wait->task,
                                   .device = device->index,
                                   .channel = wait->channel == UINT32_MAX ? PEN_TRACE_NO_CHANNEL
                                                                          : wait->channel,
                                   .form = round->form,
                                   .round = wait->round,
                                   .step = round->step,
                                   .sequence = wait->sequence,
                                   .start_seconds = started,
                                   .end_seconds = pen_clock_seconds()};
    pen_worker_times_wait(device, &event);
}

static worker_piece *device_find_piece(const worker_device *device) {
    for (uint32_t p = 0; p < WORKER_PIECES; p++) {
        worker_piece *piece = &device->run->pieces[p];
        if (piece->piece.device != device->index) continue;
        if (piece->state == WORKER_PIECE_CHECK || piece->state == WORKER_PIECE_SEND) return piece;
    }
    return NULL;
}

// Waits until there is something to do. Holds the lock.
static void device_wait(worker_device *device) {
    pen_worker_run *run = device->run;
    const bool is_recorded = run->core != NULL;
    pen_worker_wait wait = {.is_idle = true};
    if (is_recorded) wait = pen_worker_core_get_wait(run->core, device->index);
    const double started = pen_clock_seconds();
    pen_condition_wait(&device->wake, &run->lock);
    device_note_wait(device, &wait, started);
}

// One thing, if there is one; holds the lock but while doing it. False: nothing.
static bool device_do_next(worker_device *device) {
    pen_worker_run *run = device->run;
    pen_status status = PEN_OK;
    worker_piece *piece;
    worker_due due;
    if (device->call != NULL) {
        pen_status (*call)(worker_device *) = device->call;
        device->call = NULL;
        pen_mutex_unlock(&run->lock);
        const pen_status result = call(device);
        pen_mutex_lock(&run->lock);
        device->call_status = result;
        device->is_called = true;
        pen_condition_broadcast(&run->called);
        return true;
    }
    if (run->is_failed || run->is_closed) return false;
    if (pen_worker_sender_take(device, &due)) {
        pen_mutex_unlock(&run->lock);
        status = pen_worker_sender_do(device, &due);
    } else if (device->has_task) {
        const pen_run_round round = run->rounds[device->task_round % WORKER_ROUND_RING];
        const uint32_t task = device->task;
        device->has_task = false;
        pen_mutex_unlock(&run->lock);
        status = device_run_task(device, &round, task);
    } else if ((piece = device_find_piece(device)) != NULL) {
        pen_mutex_unlock(&run->lock);
        status = pen_worker_run_do_piece(run, device, piece);
    } else {
        return false;
    }
    if (status != PEN_OK) pen_worker_run_fail(run, device_blame(device, status));
    pen_mutex_lock(&run->lock);
    return true;
}

// The end of the thread's work: what the device has is released where it was made.
static void device_release(worker_device *device) {
    for (uint32_t f = device->run->table->form_count; f-- > 0;) {
        if (device->executors != NULL) pen_executor_destroy(device->executors[f]);
    }
    pen_worker_staging_close(device);
    if (device->device != NULL) device->device->kind->close(device->device);
}

// Does what there is to do until the run is closed. Its device is released when nobody uses what it
// has any more.
static void device_main(void *context) {
    worker_device *device = context;
    pen_worker_run *run = device->run;
    pen_mutex_lock(&run->lock);
    for (;;) {
        if (device_do_next(device)) continue;
        if (run->is_closed) break;
        device_wait(device);
    }
    pen_mutex_unlock(&run->lock);
    pen_worker_sender_stop(device);
    pen_worker_staging_rest(device);
    pen_mutex_lock(&run->lock);
    run->rest_count += 1;
    pen_condition_broadcast(&run->called);
    while (!run->may_release) { // other devices or the transport may use its buffers
        pen_condition_wait(&device->wake, &run->lock);
    }
    pen_mutex_unlock(&run->lock);
    device_release(device);
}

pen_status pen_worker_device_start(worker_device *device) {
    char name[16];
    snprintf(name, sizeof name, "device-%u", device->index);
    return pen_thread_create(name, device_main, device, &device->thread);
}
