#include "scheduler/runtime/worker/worker_staging.h"

#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/runtime/run/run_form.h"

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

// What a channel needs of the room, from byte `*end` on.
static pen_status staging_count(const pen_worker_run *run, const pen_run_channel *channel,
                                worker_channel *ends, uint64_t *end) {
    const uint32_t me = run->options.worker;
    const bool leaves =
        channel->source_worker == me && pen_worker_is_staged(run, channel->source_device);
    const bool arrives = channel->target_worker == me && !channel->is_shared &&
                         pen_worker_is_staged(run, channel->target_device);
    const uint64_t stride = pen_align_up(channel->bytes, PEN_RUN_STAGING_ALIGNMENT);
    const uint64_t places = pen_run_channel_staged(channel, leaves, arrives);
    uint64_t bytes;
    if (places == 0) return PEN_OK;
    if (!pen_u64_mul(stride, places, &bytes) || !pen_u64_add(*end, bytes, &bytes)) {
        return pen_error_out_of_memory();
    }
    if (leaves) ends->leaving.stride = stride;
    if (arrives) ends->arriving.stride = stride;
    *end = bytes;
    return PEN_OK;
}

static void staging_place_ends(const pen_run_channel *channel, worker_channel *ends, char **next) {
    if (ends->leaving.stride > 0) {
        ends->leaving.memory = *next;
        *next += ends->leaving.stride * channel->copies;
    }
    if (ends->arriving.stride > 0) {
        ends->arriving.memory = *next;
        *next += ends->arriving.stride * channel->capacity;
    }
}

// Pieces of tensors have room of their own, as many as are under way at once.
static pen_status staging_make_pieces(pen_worker_run *run) {
    for (uint32_t d = 0; d < run->table->device_count; d++) {
        if (!pen_worker_is_staged(run, d)) continue;
        run->piece_staging = pen_memory_allocate_lazily(WORKER_PIECES, PEN_TRANSPORT_CHUNK_BYTES);
        return run->piece_staging == NULL ? pen_error_out_of_memory() : PEN_OK;
    }
    return PEN_OK;
}

// One piece of memory for all: counted first, then handed out.
pen_status pen_worker_staging_prepare(pen_worker_run *run) {
    const pen_run_table *table = run->table;
    uint64_t bytes = 0;
    for (uint32_t f = 0; f < table->form_count; f++) {
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            const pen_run_channel *channel = &table->forms[f].channels[c];
            if (pen_worker_is_copied(run, channel)) run->copies = true;
            PEN_TRY(staging_count(run, channel, &run->channels[f][c], &bytes));
        }
    }
    PEN_TRY(staging_make_pieces(run));
    if (bytes == 0) return PEN_OK;
    run->staging = pen_memory_allocate_lazily(bytes + PEN_RUN_STAGING_ALIGNMENT, 1);
    if (run->staging == NULL) return pen_error_out_of_memory();
    const uint64_t past = (uintptr_t)run->staging % PEN_RUN_STAGING_ALIGNMENT;
    char *next = run->staging + (past == 0 ? 0 : PEN_RUN_STAGING_ALIGNMENT - past);
    for (uint32_t f = 0; f < table->form_count; f++) {
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            staging_place_ends(&table->forms[f].channels[c], &run->channels[f][c], &next);
        }
    }
    return PEN_OK;
}

void *pen_worker_staging_place(const worker_staging *staging, uint64_t microbatch,
                               uint32_t places) {
    return staging->memory + microbatch % places * staging->stride;
}

// ---- between devices of this process

pen_status pen_worker_staging_after(worker_device *device, uint32_t form,
                                    const pen_run_task *task) {
    const pen_worker_run *run = device->run;
    const pen_run_form *table = &run->table->forms[form];
    if (run->staging == NULL) return PEN_OK;
    for (uint32_t r = task->send_first; r < task->send_end; r++) {
        const uint32_t c = table->refs[r];
        const pen_run_channel *channel = &table->channels[c];
        const worker_staging *leaving = &run->channels[form][c].leaving;
        if (!channel->is_shared || leaving->memory == NULL) continue;
        const uint64_t microbatch = channel->is_per_step ? 0 : task->task.microbatch;
        PEN_TRY(pen_executor_copy_out(
            device->executors[form], run->spec->forms[form].channels[c].from, microbatch,
            pen_worker_staging_place(leaving, microbatch, channel->copies), channel->bytes));
    }
    return PEN_OK;
}

// Where the maker has it for whoever reads: in the host's memory, in any case.
static const void *staging_find(const pen_worker_run *run, uint32_t form, uint32_t c,
                                uint64_t microbatch) {
    const pen_run_channel *channel = &run->table->forms[form].channels[c];
    const worker_staging *leaving = &run->channels[form][c].leaving;
    if (leaving->memory != NULL) {
        return pen_worker_staging_place(leaving, microbatch, channel->copies);
    }
    const worker_device *maker = &run->devices[run->local_of_device[channel->source_device]];
    return pen_executor_address(maker->executors[form], run->spec->forms[form].channels[c].from,
                                microbatch);
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
        PEN_TRY(pen_executor_copy_in(device->executors[form], run->spec->forms[form].channels[c].to,
                                     microbatch, staging_find(run, form, c, microbatch),
                                     channel->bytes));
    }
    return PEN_OK;
}

// ---- frames and pieces from elsewhere

pen_status pen_worker_staging_take_in(pen_worker_run *run, uint32_t form, uint32_t c,
                                      uint64_t microbatch) {
    const pen_run_channel *channel = &run->table->forms[form].channels[c];
    const worker_channel *ends = &run->channels[form][c];
    worker_slot *slot = &ends->receives[microbatch % channel->capacity];
    if (ends->arriving.memory == NULL || slot->is_copied) return PEN_OK;
    slot->is_copied = true;
    const worker_device *device = &run->devices[run->local_of_device[channel->target_device]];
    return pen_executor_copy_in(
        device->executors[form], run->spec->forms[form].channels[c].to, microbatch,
        pen_worker_staging_place(&ends->arriving, microbatch, channel->capacity), channel->bytes);
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
