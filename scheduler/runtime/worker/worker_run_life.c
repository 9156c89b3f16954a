#include "scheduler/runtime/worker/worker_run.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/system/failpoint.h"
#include "device/device.h"
#include "graph/graph.h"
#include "scheduler/runtime/executor/executor_inspect.h"
#include "scheduler/runtime/run/run_wire.h"
#include "scheduler/runtime/worker/worker_classes.h"
#include "scheduler/runtime/worker/worker_device.h"
#include "scheduler/runtime/worker/worker_sender.h"
#include "scheduler/runtime/worker/worker_staging.h"
#include "scheduler/runtime/worker/worker_task.h"
#include "scheduler/schedule/schedule.h"

// ---- what the core says

static worker_device *run_device(pen_worker_run *run, uint32_t device) {
    return &run->devices[run->local_of_device[device]];
}

// What devices are to do is put where they find it. Holds the lock.
static void run_hand_over(pen_worker_run *run, const pen_worker_action *actions, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const pen_worker_action *action = &actions[i];
        if (pen_worker_sender_takes(run, action)) pen_worker_sender_add(run, action);
        if (action->kind == PEN_WORKER_ACTION_READ) pen_worker_run_read(run, action);
        if (action->kind == PEN_WORKER_ACTION_ROUND_DONE) {
            if (run->done_end == 0) run->told_end = action->round;
            run->done_end = action->round + 1;
        }
        if (action->kind != PEN_WORKER_ACTION_RUN) continue;
        worker_device *device = run_device(run, action->device);
        PEN_ASSERT(!device->has_task);
        device->has_task = true;
        device->task = action->task;
        device->task_round = action->round;
        pen_condition_signal(&device->wake);
    }
}

static void run_tell_round(pen_worker_run *run, uint64_t round) {
    pen_mutex_lock(&run->lock);
    for (uint32_t d = 0; d < run->device_count; d++) {
        pen_round_figures *kept = &run->devices[d].figures[round % WORKER_ROUND_RING];
        run->told[d] = *kept;
        run->told[d].device = run->devices[d].index;
        *kept = (pen_round_figures){0};
    }
    const double now = pen_clock_seconds();
    run->pulse.step = run->rounds[round % WORKER_ROUND_RING].step;
    if (run->step_ended_at > 0) run->pulse.step_seconds = now - run->step_ended_at;
    run->step_ended_at = now;
    pen_mutex_unlock(&run->lock);
    pen_round_figures_encode(run->told, run->device_count, run->told_bytes);
    run->options.events.round_done(run->options.events.context, round, run->told_bytes,
                                   (size_t)run->device_count * PEN_ROUND_FIGURES_BYTES);
}

// Rounds are told of in order, whichever thread ends them.
static void run_tell_rounds(pen_worker_run *run) {
    pen_mutex_lock(&run->lock);
    while (!run->is_telling && run->told_end < run->done_end) {
        const uint64_t round = run->told_end++;
        run->is_telling = true;
        pen_mutex_unlock(&run->lock);
        run_tell_round(run, round);
        pen_mutex_lock(&run->lock);
        run->is_telling = false;
    }
    pen_mutex_unlock(&run->lock);
}

// The rest is told. Without the lock. `device` is that of the calling thread, or NULL.
static void run_carry_out(pen_worker_run *run, const pen_worker_action *actions, uint32_t count,
                          const worker_device *device) {
    const pen_worker_run_events *events = &run->options.events;
    for (uint32_t i = 0; i < count; i++) {
        const pen_worker_action *action = &actions[i];
        const pen_run_form *form = &run->table->forms[action->form];
        if (pen_worker_sender_takes(run, action)) continue;
        switch (action->kind) {
        case PEN_WORKER_ACTION_READY:
            events->ready(events->context);
            break;
        case PEN_WORKER_ACTION_GRANT:
            events->credit(events->context, form->channels[action->channel].source_worker,
                           action->form, action->channel, action->sequence);
            break;
        case PEN_WORKER_ACTION_LOSS:
            PEN_ASSERT(device != NULL && device->index == action->device);
            events->loss(events->context, action->round, form->tasks[action->task].task.microbatch,
                         form->tasks[action->task].task.stage, &device->loss);
            break;
        case PEN_WORKER_ACTION_GRADIENT:
            events->gradient(events->context, action->round,
                             form->tasks[action->task].task.microbatch,
                             form->tasks[action->task].task.stage);
            break;
        case PEN_WORKER_ACTION_ROUND_DONE:
            run_tell_rounds(run);
            break;
        case PEN_WORKER_ACTION_LOAD: // done by load, before the core is told
        case PEN_WORKER_ACTION_RUN:  // handed over
        case PEN_WORKER_ACTION_SEND:
        case PEN_WORKER_ACTION_READ: // handed over
        case PEN_WORKER_ACTION_STOPPED:
            break;
        }
    }
}

// As the coordinator's step: the core is stepped under the lock, and what it says is done after it,
// in order. Each device thread has actions of its own, so that devices do not wait for each other.
pen_status pen_worker_run_step(pen_worker_run *run, const pen_worker_event *event,
                               worker_device *device) {
    pen_worker_action *actions = device == NULL ? NULL : device->actions;
    uint32_t count = 0;
    pen_mutex_lock(&run->lock);
    if (actions == NULL) {
        run->stepper_count += 1;
        while (run->is_stepping) { // its actions are not carried out yet
            pen_condition_wait(&run->called, &run->lock);
        }
        run->stepper_count -= 1;
        run->is_stepping = true;
        actions = run->other_actions;
    }
    pen_flight_record_worker(run->flight, event);
    const pen_worker_fault fault = pen_worker_core_step(run->core, event, actions, &count);
    pen_flight_add_worker(run->flight, fault, actions, count);
    run_hand_over(run, actions, count);
    pen_mutex_unlock(&run->lock);
    run_carry_out(run, actions, count, device);
    if (device == NULL) {
        pen_mutex_lock(&run->lock);
        run->is_stepping = false;
        if (run->stepper_count > 0) pen_condition_broadcast(&run->called);
        pen_mutex_unlock(&run->lock);
    }
    if (fault == PEN_WORKER_FAULT_NONE) return PEN_OK;
    const char *tensor = "";
    if (event->form < run->table->form_count &&
        event->channel < run->table->forms[event->form].channel_count) {
        tensor = run->spec->forms[event->form].channels[event->channel].value;
    }
    return pen_error(PEN_CORRUPT, "%s (round %llu, tensor '%s', number %llu)",
                     pen_worker_fault_text(fault), (unsigned long long)event->round, tensor,
                     (unsigned long long)event->sequence);
}

void pen_worker_run_fail(pen_worker_run *run, pen_status take_status) {
    pen_mutex_lock(&run->lock);
    const bool is_first = !run->is_failed && !run->is_closed;
    run->is_failed = true;
    pen_flight_record_note(run->flight, pen_status_message(take_status));
    pen_mutex_unlock(&run->lock);
    if (is_first) {
        run->options.events.failed(run->options.events.context, take_status);
    } else {
        pen_status_ignore(take_status, "it follows from the first failure, or the run is over");
    }
}

pen_status pen_worker_run_feed(pen_worker_run *run, const pen_worker_event *event) {
    return pen_worker_run_step(run, event, NULL);
}

pen_status pen_worker_run_add_round(pen_worker_run *run, const pen_run_round *round) {
    if (round->form >= run->table->form_count || round->count == 0) {
        return pen_error(PEN_CORRUPT, "a round of form %u with %u microbatches", round->form,
                         round->count);
    }
    pen_mutex_lock(&run->lock);
    run->rounds[round->round % WORKER_ROUND_RING] = *round;
    pen_mutex_unlock(&run->lock);
    const pen_worker_event event = {.kind = PEN_WORKER_EVENT_ROUND,
                                    .generation = run->options.generation,
                                    .round = round->round,
                                    .form = round->form,
                                    .count = round->count,
                                    .updates = round->updates};
    (void)PEN_FAILPOINT("worker.round_begun");
    return pen_worker_run_feed(run, &event);
}

// A round that is not known here is the core's to judge.
pen_status pen_worker_run_go(pen_worker_run *run, uint64_t round, pen_arrivals_order order) {
    pen_run_round *announced = &run->rounds[round % WORKER_ROUND_RING];
    pen_mutex_lock(&run->lock);
    if (announced->round == round) announced->order = order;
    pen_mutex_unlock(&run->lock);
    const pen_worker_event event = {
        .kind = PEN_WORKER_EVENT_GO, .generation = run->options.generation, .round = round};
    return pen_worker_run_feed(run, &event);
}

// ---- loading, on the devices' threads

// One executor for each form; forms after the first share its parameters.
static pen_status run_load_form(worker_device *device, uint32_t form) {
    pen_worker_run *run = device->run;
    const pen_run_spec_part *spec = &run->spec->forms[form].parts[device->index];
    const pen_part *part = spec->part;
    const uint32_t channel_count = run->table->forms[form].channel_count;
    pen_executor_list *lists;
    pen_value_id *lent;
    uint32_t lent_count = 0;
    PEN_TRY(PEN_NEW(device->arena, part->list_count, &lists));
    PEN_TRY(PEN_NEW(device->arena, channel_count, &lent));
    for (uint32_t l = 0; l < part->list_count; l++) {
        lists[l] = (pen_executor_list){part->lists[l].first, part->lists[l].end};
    }
    for (uint32_t c = 0; c < channel_count; c++) {
        const pen_run_channel *channel = &run->table->forms[form].channels[c];
        if (!channel->is_shared || channel->target_device != device->index) continue;
        if (pen_worker_is_copied(run, channel)) continue;
        lent[lent_count++] = run->spec->forms[form].channels[c].to;
    }
    const pen_executor_spec executor = {.device = device->device,
                                        .graph = part->graph,
                                        .order = part->order,
                                        .order_count = part->order_count,
                                        .lists = lists,
                                        .list_count = part->list_count,
                                        .copies_of_value = spec->copies,
                                        .lent = lent,
                                        .lent_count = lent_count,
                                        .kept = part->kept,
                                        .kept_count = part->kept_count,
                                        .defer_contents = run->options.defer_contents,
                                        .loaded = run->options.loaded,
                                        .loaded_context = run->options.model,
                                        .shared = form == 0 ? NULL : device->executors[0]};
    return pen_executor_create(&executor, &device->executors[form]);
}

// Room for the largest value that the coordinator sees.
static pen_status run_make_room_to_see(worker_device *device) {
    for (uint32_t f = 0; f < device->run->table->form_count; f++) {
        const pen_run_spec_part *part = &device->run->spec->forms[f].parts[device->index];
        for (uint32_t i = 0; i < part->seen_count; i++) {
            if (!pen_value_is(part->seen[i])) continue;
            const pen_tensor_type *type = pen_value_type(part->part->graph, part->seen[i]);
            device->seen_limit = pen_max_u64(device->seen_limit, pen_tensor_type_bytes(type));
        }
    }
    return PEN_NEW(device->arena, device->seen_limit, &device->seen);
}

// Opens the device, says which class it is of, and loads its part of each form.
static pen_status run_open_device(worker_device *device) {
    const pen_run_spec_device *spec = &device->run->spec->devices[device->index];
    PEN_TRY(pen_run_spec_open(spec, &device->device));
    const pen_device_kind *kind = device->device->kind;
    if (kind->identify != NULL) {
        PEN_TRY(kind->identify(device->device, device->arena, &device->identity));
    }
    for (uint32_t f = 0; f < device->run->table->form_count; f++) {
        PEN_TRY(run_load_form(device, f));
    }
    PEN_TRY(pen_worker_times_prepare(device));
    return run_make_room_to_see(device);
}

// Both ends of a channel must hold as many bytes as the table says, in as many places: what orders
// copies counts places by the table, and memory by the executor.
static pen_status run_check_bytes(const worker_device *device, uint32_t form, uint32_t c) {
    const pen_worker_run *run = device->run;
    const pen_run_channel *channel = &run->table->forms[form].channels[c];
    const pen_run_spec_channel *spec = &run->spec->forms[form].channels[c];
    const pen_executor *executor = device->executors[form];
    const bool is_source = channel->source_device == device->index;
    const pen_value_id value = is_source ? spec->from : spec->to;
    if (channel->target_device != device->index && !is_source) return PEN_OK;
    const uint64_t bytes = pen_executor_bytes(executor, value);
    const uint32_t copies = pen_executor_copies(executor, value);
    if (bytes >= channel->bytes && copies == (is_source ? channel->copies : channel->capacity) &&
        pen_executor_holds(executor, value)) {
        return PEN_OK;
    }
    return pen_error(
        PEN_INTERNAL, "tensor '%s' has %u places of %llu bytes here, and %u of %llu in the table",
        spec->value, copies, (unsigned long long)bytes,
        is_source ? channel->copies : channel->capacity, (unsigned long long)channel->bytes);
}

// Values of other devices of this process are bound where they lie, which is only possible when all
// executors have their places.
static pen_status run_bind_device(worker_device *device) {
    pen_worker_run *run = device->run;
    for (uint32_t f = 0; f < run->table->form_count; f++) {
        bool is_lent = false;
        const pen_run_form *form = &run->table->forms[f];
        for (uint32_t c = 0; c < form->channel_count; c++) {
            const pen_run_channel *channel = &form->channels[c];
            const pen_run_spec_channel *spec = &run->spec->forms[f].channels[c];
            if (!channel->is_shared || channel->target_device != device->index) continue;
            if (pen_worker_is_copied(run, channel)) continue;
            const worker_device *maker = run_device(run, channel->source_device);
            PEN_TRY(
                pen_executor_lend(device->executors[f], spec->to, maker->executors[f], spec->from));
            is_lent = true;
        }
        if (is_lent) PEN_TRY(pen_executor_bind(device->executors[f]));
        if (form->trains && !form->skips)
            PEN_TRY(pen_executor_guard(device->executors[f], PEN_VALUE_NONE));
        for (uint32_t c = 0; c < form->channel_count; c++) {
            PEN_TRY(run_check_bytes(device, f, c));
        }
    }
    return PEN_OK;
}

// A thread that has ended takes no call: one that was not taken is withdrawn when the run is
// closed.
pen_status pen_worker_run_call(pen_worker_run *run, worker_device *device,
                               pen_status (*call)(worker_device *device)) {
    pen_mutex_lock(&run->lock);
    device->call = call;
    device->is_called = false;
    pen_condition_signal(&device->wake);
    while (!device->is_called && !(run->is_closed && device->call != NULL)) {
        pen_condition_wait(&run->called, &run->lock);
    }
    if (!device->is_called) {
        device->call = NULL;
        pen_mutex_unlock(&run->lock);
        return pen_error(PEN_CANCELLED, "the run is over");
    }
    const pen_status status = device->call_status;
    device->call_status = PEN_OK;
    pen_mutex_unlock(&run->lock);
    return pen_status_add_context(status, "on device '%s'", run->spec->devices[device->index].name);
}

// One device after another: their graphs share an arena, from which kernels take what they keep.
static pen_status run_call(pen_worker_run *run, pen_status (*call)(worker_device *device)) {
    for (uint32_t d = 0; d < run->device_count; d++) {
        PEN_TRY(pen_worker_run_call(run, &run->devices[d], call));
    }
    return PEN_OK;
}

pen_status pen_worker_run_load(pen_worker_run *run) {
    PEN_TRY(run_call(run, run_open_device));
    PEN_TRY(pen_worker_run_check_classes(run));
    PEN_TRY(run_call(run, pen_worker_staging_reach));
    PEN_TRY(run_call(run, pen_worker_staging_open));
    PEN_TRY(run_call(run, pen_worker_sender_start));
    if (PEN_FAILPOINT("worker.staged")) return pen_error(PEN_INTERNAL, "a failpoint");
    PEN_TRY(run_call(run, run_bind_device));
    PEN_TRY(pen_worker_run_prepare_reading(run));
    return pen_worker_run_prepare_save(run);
}

pen_status pen_worker_run_set_ready(pen_worker_run *run) {
    const pen_worker_event assign = {.kind = PEN_WORKER_EVENT_ASSIGN,
                                     .generation = run->options.generation};
    const pen_worker_event loaded = {.kind = PEN_WORKER_EVENT_LOADED,
                                     .generation = run->options.generation};
    PEN_TRY(pen_worker_run_feed(run, &assign));
    return pen_worker_run_feed(run, &loaded);
}

// ---- making

static uint32_t run_first_microbatch(const pen_run_form *form, uint32_t device) {
    uint32_t first = 0;
    bool is_known = false;
    for (uint32_t t = form->devices[device].task_first; t < form->devices[device].task_end; t++) {
        const pen_task *task = &form->tasks[t].task;
        if (task->kind == PEN_TASK_UPDATE || (is_known && task->microbatch >= first)) continue;
        first = task->microbatch;
        is_known = true;
    }
    return first;
}

static pen_status run_new_device(pen_worker_run *run, uint32_t index, uint32_t local) {
    worker_device *device = &run->devices[local];
    const pen_device_kind *kind;
    PEN_TRY(pen_device_kind_find(run->spec->devices[index].kind, &kind));
    device->is_staged = kind->has_own_memory;
    device->run = run;
    device->index = index;
    device->row = local;
    device->scalars_round = UINT64_MAX;
    device->first_microbatch = run_first_microbatch(&run->table->forms[0], index);
    run->local_of_device[index] = local;
    pen_condition_init(&device->wake);
    pen_condition_init(&device->sends_wake);
    PEN_TRY(pen_arena_create(&device->arena));
    PEN_TRY(PEN_NEW(run->arena, run->table->form_count, &device->executors));
    PEN_TRY(pen_worker_sender_prepare(device));
    return PEN_NEW(run->arena, run->action_limit, &device->actions);
}

// A description that was read from bytes may lack parts.
static pen_status run_check_parts(const pen_worker_run *run) {
    for (uint32_t f = 0; f < run->table->form_count; f++) {
        for (uint32_t d = 0; d < run->table->device_count; d++) {
            const bool is_here = run->table->forms[0].devices[d].worker == run->options.worker;
            if (!is_here || run->spec->forms[f].parts[d].part != NULL) continue;
            return pen_error(PEN_CORRUPT, "form %u has no part for device '%s'", f,
                             run->spec->devices[d].name);
        }
    }
    return PEN_OK;
}

static pen_status run_start_recorder(pen_worker_run *run) {
    pen_flight_setup setup = {.table = run->table,
                              .worker = run->options.worker,
                              .generation = run->options.generation,
                              .incarnation = run->options.incarnation};
    PEN_TRY(pen_run_spec_name(run->spec, run->arena, &setup.worker_names, &setup.channel_names));
    return pen_flight_recorder_create(&setup, &run->flight);
}

// Everything is allocated here, before the first round; then the threads of the devices start and
// wait.
static pen_status run_build(pen_worker_run *run) {
    const pen_run_table *table = run->table;
    PEN_TRY(run_check_parts(run));
    PEN_TRY(pen_worker_core_new(table, run->options.worker, run->arena, &run->core,
                                &run->action_limit));
    PEN_TRY(run_start_recorder(run));
    PEN_TRY(PEN_NEW(run->arena, run->action_limit, &run->other_actions));
    PEN_TRY(PEN_NEW(run->arena, table->device_count, &run->devices));
    PEN_TRY(PEN_NEW(run->arena, table->device_count, &run->local_of_device));
    for (uint32_t d = 0; d < table->device_count; d++) {
        run->local_of_device[d] = UINT32_MAX;
        if (table->forms[0].devices[d].worker != run->options.worker) continue;
        PEN_TRY(run_new_device(run, d, run->device_count++));
    }
    PEN_TRY(pen_worker_frames_prepare(run));
    PEN_TRY(pen_worker_staging_prepare(run));
    PEN_TRY(PEN_NEW(run->arena, run->device_count, &run->told));
    PEN_TRY(
        PEN_NEW(run->arena, (size_t)run->device_count * PEN_ROUND_FIGURES_BYTES, &run->told_bytes));
    if (run->spec->trace_limit > 0) {
        PEN_TRY(pen_trace_recorder_create(run->device_count + 1, run->spec->trace_limit,
                                          &run->recorder));
    }
    for (uint32_t d = 0; d < run->device_count; d++) {
        PEN_TRY(pen_worker_device_start(&run->devices[d]));
    }
    return PEN_OK;
}

pen_status pen_worker_run_create(const pen_worker_run_options *options, pen_worker_run **out_run) {
    pen_worker_run *run = pen_memory_allocate(1, sizeof *run);
    if (run == NULL) return pen_error_out_of_memory();
    run->options = *options;
    run->spec = options->spec;
    run->table = options->spec->table;
    pen_mutex_init(&run->lock);
    pen_condition_init(&run->called);
    pen_status status = pen_arena_create(&run->arena);
    if (status == PEN_OK) status = run_build(run);
    if (status != PEN_OK) {
        pen_worker_run_destroy(run);
        return status;
    }
    *out_run = run;
    return PEN_OK;
}

void pen_worker_run_close(pen_worker_run *run) {
    pen_mutex_lock(&run->lock);
    run->is_closed = true;
    pen_worker_reader_close(run->reader);
    for (uint32_t d = 0; d < run->device_count; d++) {
        pen_condition_signal(&run->devices[d].wake);
        pen_condition_signal(&run->devices[d].sends_wake);
    }
    pen_condition_broadcast(&run->called); // who waits for a device
    pen_mutex_unlock(&run->lock);
}

void pen_worker_run_rest(pen_worker_run *run) {
    uint32_t thread_count = 0;
    pen_worker_run_close(run);
    for (uint32_t d = 0; d < run->device_count; d++) {
        thread_count += run->devices[d].thread != NULL; // that were started
    }
    pen_mutex_lock(&run->lock);
    while (run->rest_count < thread_count) {
        pen_condition_wait(&run->called, &run->lock);
    }
    pen_mutex_unlock(&run->lock);
}

uint32_t pen_worker_run_lent_count(pen_worker_run *run) {
    pen_mutex_lock(&run->lock);
    const uint32_t count = run->lent_count;
    pen_mutex_unlock(&run->lock);
    return count;
}

// Devices release their memory on their own threads, which took it; then all else goes.
void pen_worker_run_destroy(pen_worker_run *run) {
    if (run == NULL) return;
    pen_worker_run_rest(run);
    pen_worker_reader_destroy(run->reader);
    pen_snapshot_writer_destroy(run->writer); // waits until the shard is written
    pen_mutex_lock(&run->lock);
    run->may_release = true;
    for (uint32_t d = 0; d < run->device_count; d++) {
        pen_condition_signal(&run->devices[d].wake);
    }
    pen_mutex_unlock(&run->lock);
    for (uint32_t d = 0; d < run->device_count; d++) {
        pen_thread_join(run->devices[d].thread);
    }
    for (uint32_t d = 0; d < run->device_count; d++) {
        pen_arena_destroy(run->devices[d].arena);
        pen_condition_deinit(&run->devices[d].wake);
        pen_condition_deinit(&run->devices[d].sends_wake);
    }
    pen_memory_free(run->piece_staging);
    pen_evidence_destroy(run->noting.evidence);
    pen_trace_recorder_destroy(run->recorder);
    pen_flight_recorder_destroy(run->flight);
    pen_condition_deinit(&run->called);
    pen_mutex_deinit(&run->lock);
    pen_arena_destroy(run->arena);
    pen_memory_free(run);
}
