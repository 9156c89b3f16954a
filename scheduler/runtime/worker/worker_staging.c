#include "scheduler/runtime/worker/worker_staging.h"

#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "scheduler/runtime/run/run_form.h"
#include "scheduler/runtime/worker/worker_task.h"

// Fences of a device, in the order of their numbers. m: most microbatches of a form.
//
//   number       set on     when this is done           passed by
//   0 ... m-1    work       tasks of microbatch i       copies out of what they made; copies in to
//                                                       the place that they used
//   work_fence   work       an update, or all work      copies out of what it made; copies in to
//                so far                                 what is no microbatch's own
//   + 1, + 2     in, out    all copies                  the thread, at rest
//   channels:
//   leaving      out        the copy out to a place     work and copies in that write where it
//                                                       read; the reader's copy in; who sends
//   leaving      work       the value of a place, if    the reader's copy in
//                           the reader reaches it
//   in_fence     in         the copy in to a place      work that reads it; the maker's copy out to
//                                                       the same place, or its work if the reader
//                                                       reaches it; who writes where the copy read
//                                                       from, or says that others may
//
// Example: GPU a makes a value in microbatch 3, and GPU b reads it by way of the host. a: work, set
// fence 3, the copy out passes it, set `leaving`. b: the copy in passes a's `leaving`, set
// `in_fence`, work passes it.

bool pen_worker_is_staged(const pen_worker_run *run, uint32_t device) {
    const uint32_t local =
        device < run->table->device_count ? run->local_of_device[device] : UINT32_MAX;
    return local != UINT32_MAX && run->devices[local].is_staged;
}

bool pen_worker_is_copied(const pen_worker_run *run, const pen_run_channel *channel) {
    return channel->is_shared && (pen_worker_is_staged(run, channel->source_device) ||
                                  pen_worker_is_staged(run, channel->target_device));
}

// ---- room

// Where a channel's frames need room in the host's memory. What comes from a device of this process
// whose memory the host does not see lies at its maker's end.
static void staging_need(const pen_worker_run *run, const pen_run_channel *channel,
                         worker_channel *ends) {
    const uint32_t me = run->options.worker;
    const bool leaves =
        channel->source_worker == me && pen_worker_is_staged(run, channel->source_device);
    const bool arrives = channel->target_worker == me && !(channel->is_shared && leaves) &&
                         pen_worker_is_staged(run, channel->target_device);
    const uint64_t stride = pen_align_up(channel->bytes, PEN_RUN_STAGING_ALIGNMENT);
    if (arrives) ends->arriving.stride = stride;
    if (leaves) ends->leaving.stride = stride;
}

// Numbers of fences: on the source for each place of a copy out, on the target for each of one in.
static void staging_number(pen_worker_run *run, const pen_run_channel *channel,
                           worker_channel *ends) {
    if (ends->leaving.stride > 0) {
        worker_device *device = &run->devices[run->local_of_device[channel->source_device]];
        ends->leaving.fence = device->beside.fence_count;
        device->beside.fence_count += channel->copies;
        device->beside.leaving_limit += channel->copies;
    }
    if (channel->target_worker != run->options.worker) return;
    if (!pen_worker_is_staged(run, channel->target_device)) return;
    worker_device *device = &run->devices[run->local_of_device[channel->target_device]];
    ends->in_fence = device->beside.fence_count;
    device->beside.fence_count += channel->capacity;
}

static uint32_t staging_most_microbatches(const pen_run_table *table) {
    uint32_t most = 0;
    for (uint32_t f = 0; f < table->form_count; f++)
        most = table->forms[f].microbatch_count > most ? table->forms[f].microbatch_count : most;
    return most;
}

// Pieces of tensors have room of their own, as many as are under way at once.
static pen_status staging_make_pieces(pen_worker_run *run) {
    for (uint32_t d = 0; d < run->device_count; d++) {
        worker_device *device = &run->devices[d];
        if (!device->is_staged) continue;
        device->beside.work_fence = staging_most_microbatches(run->table);
        device->beside.fence_count = device->beside.work_fence + 3;
        device->beside.last_form = UINT32_MAX;
        if (run->piece_staging != NULL) continue;
        run->piece_staging = pen_memory_allocate_lazily(WORKER_PIECES, PEN_TRANSPORT_CHUNK_BYTES);
        if (run->piece_staging == NULL) return pen_error_out_of_memory();
    }
    return PEN_OK;
}

pen_status pen_worker_staging_prepare(pen_worker_run *run) {
    const pen_run_table *table = run->table;
    PEN_TRY(staging_make_pieces(run));
    for (uint32_t f = 0; f < table->form_count; f++) {
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            const pen_run_channel *channel = &table->forms[f].channels[c];
            if (pen_worker_is_copied(run, channel)) run->copies = true;
            staging_need(run, channel, &run->channels[f][c]);
            staging_number(run, channel, &run->channels[f][c]);
        }
    }
    return PEN_OK;
}

// Whether the value has places for microbatches: then only tasks of microbatches of a place write
// there. All else may be written by any task.
static bool staging_has_places(const worker_device *device, uint32_t form,
                               const pen_run_channel *channel, pen_value_id value) {
    const pen_run_spec_part *part = &device->run->spec->forms[form].parts[device->index];
    return !channel->is_per_step && part->copies[value.index] > 0;
}

// Whether the value lies where something else of the device comes to: a view of it, or in its
// place.
static bool staging_is_of_another(const worker_device *device, uint32_t form, pen_value_id value) {
    const pen_worker_run *run = device->run;
    const pen_graph *graph = run->spec->forms[form].parts[device->index].part->graph;
    const pen_memory_place own = pen_executor_place(device->executors[form], value, 0);
    if (!pen_value_same(pen_part_value_root(graph, value), value)) return true;
    for (uint32_t c = 0; c < run->table->forms[form].channel_count; c++) {
        if (run->table->forms[form].channels[c].target_device != device->index) continue;
        const pen_memory_place place =
            pen_executor_place(device->executors[form], run->spec->forms[form].channels[c].to, 0);
        if (place.domain == own.domain && place.offset == own.offset) return true;
    }
    return false;
}

// A reader copies from the maker if it reaches it, and if nothing but a task of the microbatch
// writes there: the protocol keeps that value until the reader's copy is enqueued.
static pen_status staging_try_to_reach(const worker_device *device, uint32_t form, uint32_t c) {
    const pen_worker_run *run = device->run;
    const pen_run_channel *channel = &run->table->forms[form].channels[c];
    const pen_value_id from = run->spec->forms[form].channels[c].from;
    if (!channel->is_shared || !pen_worker_is_staged(run, channel->source_device)) return PEN_OK;
    worker_device *maker = &run->devices[run->local_of_device[channel->source_device]];
    if (maker->device->kind != device->device->kind) return PEN_OK;
    if (device->device->kind->reach == NULL) return PEN_OK;
    if (!staging_has_places(maker, form, channel, from)) return PEN_OK;
    if (staging_is_of_another(maker, form, from)) return PEN_OK;
    return device->device->kind->reach(device->device, maker->device,
                                       &run->channels[form][c].is_direct);
}

pen_status pen_worker_staging_reach(worker_device *device) {
    const pen_run_table *table = device->run->table;
    if (!device->is_staged) return PEN_OK;
    for (uint32_t f = 0; f < table->form_count; f++) {
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            if (table->forms[f].channels[c].target_device != device->index) continue;
            PEN_TRY(staging_try_to_reach(device, f, c));
        }
    }
    return PEN_OK;
}

// Places from byte `*end` of `memory` on; NULL: only counts.
static pen_status staging_give(worker_staging *staging, uint32_t places, char *memory,
                               uint64_t *end) {
    uint64_t bytes;
    if (staging->stride == 0) return PEN_OK;
    if (memory != NULL) staging->memory = memory + *end;
    if (!pen_u64_mul(staging->stride, places, &bytes) || !pen_u64_add(*end, bytes, end)) {
        return pen_error_out_of_memory();
    }
    return PEN_OK;
}

// What leaves the device by way of the host, or comes to it, from `memory` on; NULL: only counts.
static pen_status staging_lay_out(const worker_device *device, char *memory, uint64_t *out_bytes) {
    const pen_worker_run *run = device->run;
    *out_bytes = 0;
    for (uint32_t f = 0; f < run->table->form_count; f++) {
        for (uint32_t c = 0; c < run->table->forms[f].channel_count; c++) {
            const pen_run_channel *channel = &run->table->forms[f].channels[c];
            worker_channel *ends = &run->channels[f][c];
            if (channel->source_device == device->index && !ends->is_direct) {
                PEN_TRY(staging_give(&ends->leaving, channel->copies, memory, out_bytes));
            }
            if (channel->target_device == device->index) {
                PEN_TRY(staging_give(&ends->arriving, channel->capacity, memory, out_bytes));
            }
        }
    }
    return PEN_OK;
}

// Fences are made once. The memory is such that the device copies from and to it by itself.
pen_status pen_worker_staging_open(worker_device *device) {
    const pen_device_kind *kind = device->device->kind;
    worker_beside *beside = &device->beside;
    if (!device->is_staged) return PEN_OK;
    PEN_TRY(PEN_NEW(device->arena, beside->leaving_limit, &beside->leaving));
    PEN_TRY(kind->fence_reserve(device->device, beside->fence_count));
    beside->is_open = true;
    uint64_t bytes;
    PEN_TRY(staging_lay_out(device, NULL, &bytes));
    if (bytes == 0) return PEN_OK;
    PEN_TRY(kind->host_allocate(device->device, bytes, &beside->memory));
    return staging_lay_out(device, beside->memory, &bytes);
}

// Copies read memory of other devices, too: it may be given back once all devices rest.
void pen_worker_staging_rest(worker_device *device) {
    static const pen_queue beside[2] = {PEN_QUEUE_IN, PEN_QUEUE_OUT};
    static const char reason[] = "the run is over, and the device has told what is wrong";
    if (!device->beside.is_open) return;
    pen_device *own = device->device;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t fence = device->beside.work_fence + 1 + i;
        pen_status_ignore(own->kind->fence_set(own, beside[i], fence), reason);
        pen_status_ignore(own->kind->fence_wait(own, fence), reason);
    }
    pen_status_ignore(own->kind->synchronize(own), reason);
}

void pen_worker_staging_close(worker_device *device) {
    if (device->beside.memory == NULL) return;
    device->device->kind->host_free(device->device, device->beside.memory);
    device->beside.memory = NULL;
}

void *pen_worker_staging_place(const worker_staging *staging, uint64_t microbatch,
                               uint32_t places) {
    return staging->memory + microbatch % places * staging->stride;
}

// ---- order on a device

static pen_status staging_set(const worker_device *device, pen_queue queue, uint32_t fence) {
    return device->device->kind->fence_set(device->device, queue, fence);
}

static pen_status staging_pass(const worker_device *device, pen_queue queue,
                               const worker_device *of, uint32_t fence) {
    return device->device->kind->fence_pass(device->device, queue, of->device, fence);
}

// Work waits for what is told of the channel: who looks at the times sees for which.
static pen_status staging_hold_work(worker_device *device, const worker_device *of, uint32_t fence,
                                    uint32_t form, uint32_t c) {
    PEN_TRY(pen_worker_times_hold(device));
    PEN_TRY(staging_pass(device, PEN_QUEUE_WORK, of, fence));
    return pen_worker_times_pass(device, form, c);
}

// Copies in wait for all work that was enqueued so far.
static pen_status staging_pass_work(const worker_device *device) {
    PEN_TRY(staging_set(device, PEN_QUEUE_WORK, device->beside.work_fence));
    return staging_pass(device, PEN_QUEUE_IN, device, device->beside.work_fence);
}

// A reader copies the value from here: before it is written anew, that copy is done. It has been
// enqueued, or the protocol would not let this task begin.
static pen_status staging_pass_reader(worker_device *device, uint32_t form, uint32_t c,
                                      uint32_t place) {
    const pen_worker_run *run = device->run;
    const worker_channel *ends = &run->channels[form][c];
    const uint32_t target = run->table->forms[form].channels[c].target_device;
    const worker_device *reader = &run->devices[run->local_of_device[target]];
    PEN_TRY(staging_hold_work(device, reader, ends->in_fence + place, form, c));
    return staging_pass(device, PEN_QUEUE_IN, reader, ends->in_fence + place);
}

static pen_status staging_pass_readers(worker_device *device, uint32_t form,
                                       const pen_run_task *task) {
    const pen_run_form *table = &device->run->table->forms[form];
    for (uint32_t r = task->send_first; r < task->send_end; r++) {
        const uint32_t c = table->refs[r];
        if (!device->run->channels[form][c].is_direct) continue;
        PEN_TRY(staging_pass_reader(device, form, c,
                                    task->task.microbatch % table->channels[c].capacity));
    }
    return PEN_OK;
}

// The form uses the memory of the one before: all copies that read it are awaited.
static pen_status staging_change_form(worker_device *device, uint32_t form) {
    const uint32_t last = device->beside.last_form;
    device->beside.last_form = form;
    PEN_TRY(staging_pass_work(device));
    if (last == UINT32_MAX) return PEN_OK;
    const pen_run_form *table = &device->run->table->forms[last];
    for (uint32_t c = 0; c < table->channel_count; c++) {
        if (table->channels[c].source_device != device->index) continue;
        if (!device->run->channels[last][c].is_direct) continue;
        for (uint32_t place = 0; place < table->channels[c].capacity; place++)
            PEN_TRY(staging_pass_reader(device, last, c, place));
    }
    return PEN_OK;
}

// Work and copies in wait for copies out of the place that the task's microbatch has. Copies in do,
// since a value that comes may lie where one that leaves has lain.
pen_status pen_worker_staging_begin(worker_device *device, uint32_t form,
                                    const pen_run_task *task) {
    const uint32_t microbatch = task->task.kind == PEN_TASK_UPDATE ? 0 : task->task.microbatch;
    uint32_t kept = 0;
    if (!device->is_staged) return PEN_OK;
    if (form != device->beside.last_form) PEN_TRY(staging_change_form(device, form));
    PEN_TRY(staging_pass_readers(device, form, task));
    for (uint32_t i = 0; i < device->beside.leaving_count; i++) {
        const worker_leaving leaving = device->beside.leaving[i];
        if (leaving.form == form && microbatch % leaving.copies != leaving.place) {
            device->beside.leaving[kept++] = leaving;
            continue;
        }
        PEN_TRY(staging_hold_work(device, device, leaving.fence, leaving.form, leaving.channel));
        PEN_TRY(staging_pass(device, PEN_QUEUE_IN, device, leaving.fence));
    }
    device->beside.leaving_count = kept;
    return PEN_OK;
}

// ---- copies out

// The copy waits for the task's work, and for the reader of what lay in its place of the host.
static pen_status staging_copy_out(worker_device *device, uint32_t form, uint32_t c,
                                   uint64_t microbatch, uint32_t work_fence) {
    const pen_worker_run *run = device->run;
    const pen_run_channel *channel = &run->table->forms[form].channels[c];
    const worker_channel *ends = &run->channels[form][c];
    const pen_value_id from = run->spec->forms[form].channels[c].from;
    const uint32_t place = (uint32_t)(microbatch % channel->copies);
    const uint32_t fence = ends->leaving.fence + place;
    PEN_TRY(staging_pass(device, PEN_QUEUE_OUT, device, work_fence));
    if (channel->is_shared && pen_worker_is_staged(run, channel->target_device)) {
        const worker_device *reader = &run->devices[run->local_of_device[channel->target_device]];
        PEN_TRY(staging_pass(device, PEN_QUEUE_OUT, reader,
                             ends->in_fence + (uint32_t)(microbatch % channel->capacity)));
    }
    PEN_TRY(pen_executor_copy_out(
        device->executors[form], from, microbatch,
        pen_worker_staging_place(&ends->leaving, microbatch, channel->copies), channel->bytes));
    PEN_TRY(staging_set(device, PEN_QUEUE_OUT, fence));
    if (!staging_has_places(device, form, channel, from)) {
        return staging_hold_work(device, device, fence, form, c);
    }
    PEN_ASSERT(device->beside.leaving_count < device->beside.leaving_limit);
    device->beside.leaving[device->beside.leaving_count++] = (worker_leaving){
        .form = form, .channel = c, .place = place, .copies = channel->copies, .fence = fence};
    return PEN_OK;
}

// Copies begin when the task's work is done; the next tasks do not wait for them.
pen_status pen_worker_staging_after(worker_device *device, uint32_t form, const pen_run_task *task,
                                    uint64_t round) {
    const pen_worker_run *run = device->run;
    const pen_run_form *table = &run->table->forms[form];
    if (!device->is_staged) return PEN_OK;
    const uint32_t fence =
        task->task.kind == PEN_TASK_UPDATE ? device->beside.work_fence : task->task.microbatch;
    PEN_TRY(staging_set(device, PEN_QUEUE_WORK, fence));
    for (uint32_t r = task->send_first; r < task->send_end; r++) {
        const uint32_t c = table->refs[r];
        const pen_run_channel *channel = &table->channels[c];
        const worker_channel *ends = &run->channels[form][c];
        const uint32_t microbatch = channel->is_per_step ? 0 : task->task.microbatch;
        if (ends->is_direct) {
            PEN_TRY(staging_set(device, PEN_QUEUE_WORK,
                                ends->leaving.fence + microbatch % channel->copies));
        }
        if (ends->leaving.memory == NULL) continue;
        PEN_TRY(staging_copy_out(device, form, c, microbatch, fence));
        if (ends->sends == NULL) continue;
        worker_slot *slot = &ends->sends[microbatch % channel->copies];
        slot->sequence = pen_run_sequence(table, channel, round, microbatch);
        slot->is_copied = true;
    }
    return PEN_OK;
}

pen_status pen_worker_staging_await(const worker_device *device, const worker_send *send) {
    const pen_worker_run *run = device->run;
    const pen_run_form *form = &run->table->forms[send->form];
    const pen_run_channel *channel = &form->channels[send->channel];
    const worker_channel *ends = &run->channels[send->form][send->channel];
    const uint32_t place = pen_run_microbatch(form, channel, send->sequence) % channel->copies;
    if (!ends->sends[place].is_copied || ends->sends[place].sequence != send->sequence) {
        return pen_error(PEN_CORRUPT, "channel %u is to send number %llu, which no task has made",
                         send->channel, (unsigned long long)send->sequence);
    }
    return device->device->kind->fence_wait(device->device, ends->leaving.fence + place);
}

// ---- copies in

// From where a value comes: memory of the host, or a device that is reached. A device that the host
// sees has it at once. Another one copies it later, from memory of some device's host_allocate.
typedef struct staging_source {
    const void *host;
    const worker_device *maker; // NULL: of the host
} staging_source;

static pen_status staging_enqueue(const worker_device *device, uint32_t form, uint32_t c,
                                  uint64_t microbatch, const staging_source *source) {
    const pen_run_spec_channel *spec = &device->run->spec->forms[form].channels[c];
    const uint64_t bytes = device->run->table->forms[form].channels[c].bytes;
    if (source->maker == NULL) {
        return pen_executor_copy_in(device->executors[form], spec->to, microbatch, source->host,
                                    bytes);
    }
    return pen_executor_copy_across(device->executors[form], spec->to, microbatch,
                                    source->maker->executors[form], spec->from, bytes);
}

// The copy waits for tasks that used the place, and later work waits for the copy.
static pen_status staging_copy_in(worker_device *device, uint32_t form, uint32_t c,
                                  uint64_t microbatch, const staging_source *source) {
    const pen_worker_run *run = device->run;
    const pen_run_channel *channel = &run->table->forms[form].channels[c];
    const worker_channel *ends = &run->channels[form][c];
    const uint32_t place = (uint32_t)(microbatch % channel->capacity);
    worker_slot *slot = &ends->receives[place];
    if (!device->is_staged) return staging_enqueue(device, form, c, microbatch, source);
    if (!staging_has_places(device, form, channel, run->spec->forms[form].channels[c].to)) {
        PEN_TRY(staging_pass_work(device));
    } else if (slot->user > 0) {
        PEN_TRY(staging_pass(device, PEN_QUEUE_IN, device, slot->user - 1));
    }
    slot->user = 1 + (uint32_t)microbatch;
    PEN_TRY(staging_enqueue(device, form, c, microbatch, source));
    PEN_TRY(staging_set(device, PEN_QUEUE_IN, ends->in_fence + place));
    return staging_hold_work(device, device, ends->in_fence + place, form, c);
}

// A value in memory that the host sees goes to a place of the reader's, when what lay there before
// is on the device.
static pen_status staging_bring(const worker_device *device, uint32_t form, uint32_t c,
                                uint64_t microbatch, const worker_device *maker) {
    const pen_worker_run *run = device->run;
    const pen_run_channel *channel = &run->table->forms[form].channels[c];
    const worker_channel *ends = &run->channels[form][c];
    const uint32_t fence = ends->in_fence + (uint32_t)(microbatch % channel->capacity);
    const pen_value_id from = run->spec->forms[form].channels[c].from;
    PEN_TRY(device->device->kind->fence_wait(device->device, fence));
    memcpy(pen_worker_staging_place(&ends->arriving, microbatch, channel->capacity),
           pen_executor_address(maker->executors[form], from, microbatch), channel->bytes);
    return PEN_OK;
}

// Copies a value of a device of this process: from the maker, if it is reached; from the host's
// memory, if the maker has copied it there, or if its memory is the host's.
static pen_status staging_take(worker_device *device, uint32_t form, uint32_t c,
                               uint64_t microbatch) {
    const pen_worker_run *run = device->run;
    const pen_run_channel *channel = &run->table->forms[form].channels[c];
    const worker_channel *ends = &run->channels[form][c];
    const worker_device *maker = &run->devices[run->local_of_device[channel->source_device]];
    const uint32_t fence = ends->leaving.fence + (uint32_t)(microbatch % channel->copies);
    staging_source source = {0};
    if (ends->is_direct) {
        source.maker = maker;
    } else if (ends->leaving.memory != NULL) {
        source.host = pen_worker_staging_place(&ends->leaving, microbatch, channel->copies);
    } else if (ends->arriving.memory != NULL) {
        PEN_TRY(staging_bring(device, form, c, microbatch, maker));
        source.host = pen_worker_staging_place(&ends->arriving, microbatch, channel->capacity);
    }
    if (maker->is_staged && device->is_staged) {
        PEN_TRY(staging_pass(device, PEN_QUEUE_IN, maker, fence));
    } else if (maker->is_staged) {
        PEN_TRY(maker->device->kind->fence_wait(maker->device, fence));
    }
    return staging_copy_in(device, form, c, microbatch, &source);
}

// Several tasks may read one value: it is copied before the first of them.
pen_status pen_worker_staging_before(worker_device *device, uint32_t form, const pen_run_task *task,
                                     uint64_t round) {
    pen_worker_run *run = device->run;
    const pen_run_form *table = &run->table->forms[form];
    if (!run->copies) return PEN_OK;
    for (uint32_t r = task->receive_first; r < task->receive_end; r++) {
        const uint32_t c = table->refs[r];
        const pen_run_channel *channel = &table->channels[c];
        if (!pen_worker_is_copied(run, channel)) continue;
        const uint64_t microbatch = channel->is_per_step ? 0 : task->task.microbatch;
        const uint64_t sequence = pen_run_sequence(table, channel, round, (uint32_t)microbatch);
        worker_slot *slot = &run->channels[form][c].receives[microbatch % channel->capacity];
        if (slot->is_copied && slot->sequence == sequence) continue; // by a task before
        slot->is_copied = true;
        slot->sequence = sequence;
        PEN_TRY(staging_take(device, form, c, microbatch));
    }
    return PEN_OK;
}

// ---- frames and pieces from elsewhere

bool pen_worker_staging_holds(const pen_worker_run *run, uint32_t form, uint32_t c) {
    return run->channels[form][c].arriving.memory != NULL;
}

// A place that no task has read keeps the fence of the copy before: that is done, or will be.
pen_status pen_worker_staging_await_in(const pen_worker_run *run, const worker_send *frame) {
    const pen_run_form *form = &run->table->forms[frame->form];
    const pen_run_channel *channel = &form->channels[frame->channel];
    const worker_device *device = &run->devices[run->local_of_device[channel->target_device]];
    const uint32_t place = pen_run_microbatch(form, channel, frame->sequence) % channel->capacity;
    const uint32_t fence = run->channels[frame->form][frame->channel].in_fence + place;
    return device->device->kind->fence_wait(device->device, fence);
}

pen_status pen_worker_staging_take_in(pen_worker_run *run, uint32_t form, uint32_t c,
                                      uint64_t microbatch) {
    const pen_run_channel *channel = &run->table->forms[form].channels[c];
    const worker_channel *ends = &run->channels[form][c];
    worker_slot *slot = &ends->receives[microbatch % channel->capacity];
    if (ends->arriving.memory == NULL || slot->is_copied) return PEN_OK;
    slot->is_copied = true;
    const staging_source source = {
        .host = pen_worker_staging_place(&ends->arriving, microbatch, channel->capacity)};
    return staging_copy_in(&run->devices[run->local_of_device[channel->target_device]], form, c,
                           microbatch, &source);
}

char *pen_worker_staging_piece(const pen_worker_run *run, const worker_piece *piece) {
    return run->piece_staging + (size_t)(piece - run->pieces) * PEN_TRANSPORT_CHUNK_BYTES;
}

pen_status pen_worker_staging_move_piece(pen_worker_run *run, worker_device *device,
                                         const worker_piece *piece) {
    const pen_tensor_piece *what = &piece->piece;
    pen_executor *executor = device->executors[what->form];
    const pen_value_id value = {what->value};
    char *room = pen_worker_staging_piece(run, piece);
    if (what->bytes == 0) return PEN_OK;
    return piece->state == WORKER_PIECE_SEND
               ? pen_executor_read_part(executor, value, what->offset, room, what->bytes)
               : pen_executor_write_part(executor, value, what->offset, room, what->bytes);
}
