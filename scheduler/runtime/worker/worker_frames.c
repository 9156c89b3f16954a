// Frames of a worker's run: where they are written, from where they are sent, and whether they are
// what the table says.

#include <string.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/system/failpoint.h"
#include "graph/graph.h"
#include "scheduler/runtime/worker/worker_device.h"
#include "scheduler/runtime/worker/worker_staging.h"

#define FRAMES_PIECE_TOKEN ((uint64_t)1 << 32) // tokens from here on are of pieces of tensors

static const pen_run_spec_channel *frames_channel(const pen_worker_run *run, uint32_t form,
                                                  uint32_t channel) {
    return &run->spec->forms[form].channels[channel];
}

static worker_device *frames_device(pen_worker_run *run, uint32_t device) {
    const uint32_t local =
        device < run->table->device_count ? run->local_of_device[device] : UINT32_MAX;
    return local == UINT32_MAX ? NULL : &run->devices[local];
}

// The microbatch of a sequence number, which says the place.
static uint64_t frames_place(const pen_run_form *form, const pen_run_channel *channel,
                             uint64_t sequence) {
    return pen_run_microbatch(form, channel, sequence);
}

// The step of a round is read under the lock, for the ring of rounds is written by another thread.
static void frames_record(pen_worker_run *run, pen_trace_kind kind, const worker_send *what,
                          double started) {
    if (run->recorder == NULL) return;
    const pen_run_form *form = &run->table->forms[what->form];
    const pen_run_channel *channel = &form->channels[what->channel];
    const uint64_t round = what->sequence / pen_run_slots(form, channel);
    pen_mutex_lock(&run->lock);
    const uint64_t step = run->rounds[round % WORKER_ROUND_RING].step;
    pen_mutex_unlock(&run->lock);
    const pen_trace_event event = {.kind = kind,
                                   .device = kind == PEN_TRACE_SEND ? channel->source_device
                                                                    : channel->target_device,
                                   .channel = what->channel,
                                   .form = what->form,
                                   .round = round,
                                   .step = step,
                                   .sequence = what->sequence,
                                   .bytes = channel->bytes,
                                   .start_seconds = started,
                                   .end_seconds = pen_clock_seconds()};
    pen_trace_record(run->recorder, run->device_count, &event);
}

// ---- sending

static void frames_count_lent(pen_worker_run *run, uint32_t change) {
    pen_mutex_lock(&run->lock);
    run->lent_count += change;
    pen_mutex_unlock(&run->lock);
}

// The transport makes the checksums, while it copies if it does.
static pen_status frames_lend(pen_worker_run *run, uint32_t peer, const pen_frame *frame,
                              pen_memory_place payload, uint32_t *checksums, uint64_t token) {
    pen_transport *transport = run->options.transport;
    frames_count_lent(run, 1);
    const pen_status status =
        transport->kind->sum_frame(transport, peer, frame, payload, checksums, token);
    if (status != PEN_OK) frames_count_lent(run, UINT32_MAX); // it was not lent
    return status;
}

// Of a frame that nobody else has seen yet: who asks after a bad step finds all that was seen.
void pen_worker_run_summed(pen_worker_run *run, uint64_t token) {
    if (token >= FRAMES_PIECE_TOKEN) return;
    const worker_send send = run->what_of_send[token];
    const pen_run_form *form = &run->table->forms[send.form];
    const pen_run_channel *channel = &form->channels[send.channel];
    const uint64_t checksum =
        pen_checksum_join(run->slot_of_send[token]->checksums, channel->bytes);
    pen_mutex_lock(&run->lock);
    run->sent[run->channels[send.form][send.channel].sent_first +
              send.sequence % pen_run_slots(form, channel)] =
        (pen_run_sent){.form = send.form,
                       .channel = send.channel,
                       .sequence = send.sequence,
                       .checksum = checksum,
                       .is_sent = true};
    pen_mutex_unlock(&run->lock);
}

pen_status pen_worker_run_list_sent(pen_worker_run *run, pen_arena *arena,
                                    const pen_run_sent **out_sent, uint32_t *out_count) {
    pen_run_sent *list;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, run->sent_count, &list));
    pen_mutex_lock(&run->lock);
    for (uint32_t i = 0; i < run->sent_count; i++) {
        if (run->sent[i].is_sent) list[count++] = run->sent[i];
    }
    pen_mutex_unlock(&run->lock);
    *out_sent = list;
    *out_count = count;
    return PEN_OK;
}

// By the thread of the device that made the value.
pen_status pen_worker_run_send(pen_worker_run *run, const worker_send *send) {
    const pen_run_form *form = &run->table->forms[send->form];
    const pen_run_channel *channel = &form->channels[send->channel];
    const pen_run_spec_channel *spec = frames_channel(run, send->form, send->channel);
    const worker_channel *ends = &run->channels[send->form][send->channel];
    const uint64_t place = frames_place(form, channel, send->sequence);
    const uint32_t index = (uint32_t)(place % channel->copies);
    worker_slot *slot = &ends->sends[index];
    const worker_device *device = frames_device(run, channel->source_device);
    pen_memory_place payload = pen_executor_place(device->executors[send->form], spec->from, place);
    if (ends->leaving.memory != NULL) {
        void *room = pen_worker_staging_place(&ends->leaving, place, channel->copies);
        PEN_TRY(pen_worker_staging_await(device, send));
        payload = pen_memory_place_at(room);
    }
    slot->sequence = send->sequence;
    slot->start_seconds = pen_clock_seconds();
    const pen_frame frame = {.kind = PEN_FRAME_VALUE,
                             .generation = run->options.generation,
                             .incarnation = run->options.incarnation,
                             .step = send->sequence / pen_run_slots(form, channel),
                             .form = send->form,
                             .microbatch = (uint32_t)place,
                             .channel = send->channel,
                             .layout = spec->layout,
                             .type = spec->type,
                             .sequence = send->sequence,
                             .bytes = channel->bytes};
    const uint32_t number = ends->send_first + index;
    run->what_of_send[number] = *send;
    const pen_status status =
        frames_lend(run, channel->target_worker, &frame, payload, slot->checksums, number);
    (void)PEN_FAILPOINT("worker.frame_sent");
    return pen_status_add_context(status, "while sending '%s' to %s", spec->value,
                                  run->spec->workers[channel->target_worker].name);
}

static void frames_free_piece(pen_worker_run *run, worker_piece *piece);

void pen_worker_run_let_go(pen_worker_run *run, uint64_t token) {
    frames_count_lent(run, UINT32_MAX); // one less
    if (token >= FRAMES_PIECE_TOKEN) {
        frames_free_piece(run, &run->pieces[token - FRAMES_PIECE_TOKEN]);
        return;
    }
    const worker_send what = run->what_of_send[token];
    frames_record(run, PEN_TRACE_SEND, &what, run->slot_of_send[token]->start_seconds);
    const pen_worker_event event = {.kind = PEN_WORKER_EVENT_LET_GO,
                                    .generation = run->options.generation,
                                    .form = what.form,
                                    .channel = what.channel,
                                    .sequence = what.sequence};
    const pen_status status = pen_worker_run_step(run, &event, NULL);
    if (status != PEN_OK) pen_worker_run_fail(run, status);
}

// ---- receiving

// Everything a frame says of itself is compared with the run description before a byte of it is let
// into memory.
static pen_status frames_check_value(const pen_worker_run *run, uint32_t peer,
                                     const pen_frame *frame) {
    const pen_run_table *table = run->table;
    if (frame->form >= table->form_count ||
        frame->channel >= table->forms[frame->form].channel_count) {
        return pen_error(PEN_CORRUPT, "a frame of form %u, channel %u, which this run has not",
                         frame->form, frame->channel);
    }
    const pen_run_form *form = &table->forms[frame->form];
    const pen_run_channel *channel = &form->channels[frame->channel];
    const pen_run_spec_channel *spec = frames_channel(run, frame->form, frame->channel);
    if (channel->source_worker != peer || channel->target_worker != run->options.worker ||
        channel->is_shared) {
        return pen_error(PEN_CORRUPT, "tensor '%s' goes from %s to %s, but came from %s",
                         spec->value, run->spec->workers[channel->source_worker].name,
                         run->spec->workers[channel->target_worker].name,
                         run->spec->workers[peer].name);
    }
    if (!pen_tensor_type_equal(&frame->type, &spec->type) || frame->layout != spec->layout ||
        frame->bytes != channel->bytes) {
        char texts[2][PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_CORRUPT,
                         "tensor '%s' came as %s in layout %u, %llu bytes, expected %s in layout "
                         "%u, %llu bytes",
                         spec->value, pen_tensor_type_format(&frame->type, texts[0]), frame->layout,
                         (unsigned long long)frame->bytes,
                         pen_tensor_type_format(&spec->type, texts[1]), spec->layout,
                         (unsigned long long)channel->bytes);
    }
    const uint32_t slots = pen_run_slots(form, channel);
    if (frame->sequence / slots != frame->step ||
        frame->microbatch != pen_run_microbatch(form, channel, frame->sequence)) {
        return pen_error(PEN_CORRUPT,
                         "tensor '%s' came as number %llu, but round %llu, microbatch %u",
                         spec->value, (unsigned long long)frame->sequence,
                         (unsigned long long)frame->step, frame->microbatch);
    }
    return PEN_OK;
}

// Where a frame's bytes come to.
static pen_memory_place frames_target(const pen_worker_run *run, const worker_device *device,
                                      uint32_t form, uint32_t c, uint64_t microbatch) {
    const worker_staging *arriving = &run->channels[form][c].arriving;
    const uint32_t places = run->table->forms[form].channels[c].capacity;
    if (arriving->memory != NULL) {
        return pen_memory_place_at(pen_worker_staging_place(arriving, microbatch, places));
    }
    return pen_executor_place(device->executors[form], frames_channel(run, form, c)->to,
                              microbatch);
}

// Where the value goes: straight into the place that the reading executor has for it, if the host
// sees it. The core says first that the place is free.
static pen_status frames_begin_value(pen_worker_run *run, uint32_t peer, const pen_frame *frame,
                                     pen_memory_place *out_place) {
    PEN_TRY(frames_check_value(run, peer, frame));
    const pen_run_channel *channel = &run->table->forms[frame->form].channels[frame->channel];
    const pen_run_spec_channel *spec = frames_channel(run, frame->form, frame->channel);
    const worker_device *device = frames_device(run, channel->target_device);
    worker_slot *slot =
        &run->channels[frame->form][frame->channel].receives[frame->microbatch % channel->capacity];
    pen_worker_event event = {.kind = PEN_WORKER_EVENT_FRAME,
                              .generation = frame->generation,
                              .form = frame->form,
                              .channel = frame->channel,
                              .sequence = frame->sequence};
    bool is_seen = false;
    pen_mutex_lock(&run->lock);
    const pen_worker_fault fault = pen_worker_core_check_frame(run->core, &event, &is_seen);
    pen_mutex_unlock(&run->lock);
    if (fault != PEN_WORKER_FAULT_NONE || is_seen) {
        return pen_error(PEN_CORRUPT, "tensor '%s' came as number %llu: %s", spec->value,
                         (unsigned long long)frame->sequence,
                         is_seen ? "it came before" : pen_worker_fault_text(fault));
    }
    slot->start_seconds = pen_clock_seconds();
    *out_place = frames_target(run, device, frame->form, frame->channel, frame->microbatch);
    return PEN_OK;
}

// Pieces of parameters and states alone can be asked for or sent; numbers come from outside and are
// checked.
pen_status pen_worker_run_find_tensor(pen_worker_run *run, const pen_tensor_piece *piece,
                                      pen_memory_place *out_place) {
    const worker_device *device = frames_device(run, piece->device);
    if (device == NULL || piece->form >= run->table->form_count ||
        device->executors[piece->form] == NULL) {
        return pen_error(PEN_CORRUPT, "a tensor of device %u, which this worker does not have",
                         piece->device);
    }
    const pen_executor *executor = device->executors[piece->form];
    const pen_graph *graph = run->spec->forms[piece->form].parts[piece->device].part->graph;
    if (piece->value >= pen_graph_value_count(graph)) {
        return pen_error(PEN_CORRUPT, "tensor %u of device %u, which has %u", piece->value,
                         piece->device, pen_graph_value_count(graph));
    }
    const pen_value_id id = {piece->value};
    const pen_value *value = pen_graph_value(graph, id);
    const bool is_kept = value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE;
    const pen_memory_place place = pen_executor_place(executor, id, 0);
    const uint64_t bytes = is_kept ? pen_executor_bytes(executor, id) : 0;
    if (!is_kept || !pen_executor_holds(executor, id) || piece->offset > bytes ||
        piece->bytes > bytes - piece->offset || piece->bytes > PEN_TRANSPORT_CHUNK_BYTES) {
        return pen_error(PEN_CORRUPT,
                         "%llu bytes from byte %llu of '%s', which has %llu that are kept",
                         (unsigned long long)piece->bytes, (unsigned long long)piece->offset,
                         value->name, (unsigned long long)bytes);
    }
    *out_place = pen_memory_place_add(place, piece->offset);
    return PEN_OK;
}

// A free one, in the half for those that come or that go; NULL: there is none. Holds the lock.
static worker_piece *frames_find_free(pen_worker_run *run, worker_piece_state state) {
    const uint32_t first = state == WORKER_PIECE_SEND ? WORKER_PIECES / 2 : 0;
    for (uint32_t p = first; p < first + WORKER_PIECES / 2; p++) {
        if (run->pieces[p].state == WORKER_PIECE_FREE) return &run->pieces[p];
    }
    return NULL;
}

// Holds the lock.
static void frames_hand_over(pen_worker_run *run, worker_piece *piece, const pen_tensor_piece *what,
                             worker_piece_state state) {
    *piece = (worker_piece){.state = state, .piece = *what};
    pen_condition_signal(&frames_device(run, what->device)->wake);
}

// *place changes where a piece that arrives goes elsewhere first.
static pen_status frames_take_piece(pen_worker_run *run, const pen_tensor_piece *what,
                                    worker_piece_state state, pen_memory_place *place) {
    pen_status status = PEN_OK;
    pen_mutex_lock(&run->lock);
    worker_piece *piece = frames_find_free(run, state);
    if (piece != NULL) {
        frames_hand_over(run, piece, what, state);
        if (pen_worker_is_staged(run, what->device)) {
            *place = pen_memory_place_at(pen_worker_staging_piece(run, piece));
        }
    } else if (state == WORKER_PIECE_SEND && run->pulled_count < WORKER_PULLS) {
        // those that were sent before are not yet known to have come
        run->pulled[(run->pulled_first + run->pulled_count++) % WORKER_PULLS] = *what;
    } else {
        status =
            pen_error(PEN_CORRUPT, "more than %d pieces of tensors at once", WORKER_PIECES / 2);
    }
    pen_mutex_unlock(&run->lock);
    return status;
}

// A piece that was sent has come: the next that was asked for takes its place.
static void frames_free_piece(pen_worker_run *run, worker_piece *piece) {
    pen_mutex_lock(&run->lock);
    piece->state = WORKER_PIECE_FREE;
    if (run->pulled_count > 0) {
        const pen_tensor_piece next = run->pulled[run->pulled_first];
        run->pulled_first = (run->pulled_first + 1) % WORKER_PULLS;
        run->pulled_count -= 1;
        frames_hand_over(run, piece, &next, WORKER_PIECE_SEND);
    }
    pen_mutex_unlock(&run->lock);
}

static pen_tensor_piece frames_piece(const pen_frame *frame) {
    return (pen_tensor_piece){.device = frame->channel / PEN_RUN_TENSOR_VALUES,
                              .form = frame->form,
                              .value = frame->channel % PEN_RUN_TENSOR_VALUES,
                              .offset = frame->offset,
                              .bytes = frame->bytes,
                              .sequence = frame->sequence};
}

// The transport asks where a frame's bytes go. An error here ends the link.
pen_status pen_worker_run_begin(pen_worker_run *run, uint32_t peer, const pen_frame *frame,
                                pen_memory_place *out_place) {
    if (frame->generation != run->options.generation) {
        return pen_error(PEN_CORRUPT, "a frame of generation %llu, expected %llu",
                         (unsigned long long)frame->generation,
                         (unsigned long long)run->options.generation);
    }
    switch (frame->kind) {
    case PEN_FRAME_VALUE:
        return frames_begin_value(run, peer, frame, out_place);
    case PEN_FRAME_TENSOR: {
        const pen_tensor_piece piece = frames_piece(frame);
        if (peer != 0) return pen_error(PEN_CORRUPT, "a piece of a tensor from worker %u", peer);
        PEN_TRY(pen_worker_run_find_tensor(run, &piece, out_place));
        return frames_take_piece(run, &piece, WORKER_PIECE_ARRIVING, out_place);
    }
    case PEN_FRAME_BLOB:
        break;
    }
    return pen_error(PEN_CORRUPT, "a description that was not asked for");
}

static void frames_end_piece(pen_worker_run *run, const pen_frame *frame, uint32_t checksum) {
    pen_mutex_lock(&run->lock);
    for (uint32_t p = 0; p < WORKER_PIECES; p++) {
        worker_piece *piece = &run->pieces[p];
        if (piece->state != WORKER_PIECE_ARRIVING || piece->piece.sequence != frame->sequence) {
            continue;
        }
        piece->state = WORKER_PIECE_CHECK;
        piece->checksum = checksum;
        pen_condition_signal(&frames_device(run, piece->piece.device)->wake);
        break;
    }
    pen_mutex_unlock(&run->lock);
}

// All bytes are there. Where the transport has not compared checksums, they are kept for the device
// that reads the value.
void pen_worker_run_end(pen_worker_run *run, const pen_frame *frame, const uint32_t *checksums,
                        bool is_compared) {
    if (frame->kind == PEN_FRAME_TENSOR) {
        frames_end_piece(run, frame, frame->bytes == 0 ? 0 : checksums[0]);
        return;
    }
    const pen_run_channel *channel = &run->table->forms[frame->form].channels[frame->channel];
    worker_slot *slot =
        &run->channels[frame->form][frame->channel].receives[frame->microbatch % channel->capacity];
    slot->sequence = frame->sequence;
    slot->is_checked = is_compared;
    slot->is_copied = false;
    memcpy(slot->checksums, checksums,
           pen_frame_chunk_count(frame->bytes) * sizeof *slot->checksums);
    const worker_send what = {frame->form, frame->channel, frame->sequence};
    frames_record(run, PEN_TRACE_RECEIVE, &what, slot->start_seconds);
    const pen_worker_event event = {.kind = PEN_WORKER_EVENT_FRAME,
                                    .generation = frame->generation,
                                    .form = frame->form,
                                    .channel = frame->channel,
                                    .sequence = frame->sequence};
    const pen_status status = pen_worker_run_step(run, &event, NULL);
    if (status != PEN_OK) pen_worker_run_fail(run, status);
    (void)PEN_FAILPOINT("worker.frame_taken");
}

void pen_worker_run_note_read(pen_worker_run *run, const pen_reading *reading) {
    const pen_run_form *form = &run->table->forms[reading->form];
    const pen_run_channel *channel = &form->channels[reading->channel];
    const uint64_t place = frames_place(form, channel, reading->sequence);
    worker_slot *slot =
        &run->channels[reading->form][reading->channel].receives[place % channel->capacity];
    slot->sequence = reading->sequence;
    slot->is_checked = true; // nothing was sent
    slot->is_copied = false;
    const worker_send what = {reading->form, reading->channel, reading->sequence};
    frames_record(run, PEN_TRACE_RECEIVE, &what, reading->started);
}

// ---- by the devices' threads

static pen_status frames_check_one(pen_worker_run *run, const pen_run_form *form,
                                   uint32_t form_index, uint32_t c, uint64_t sequence) {
    const pen_run_channel *channel = &form->channels[c];
    const pen_run_spec_channel *spec = frames_channel(run, form_index, c);
    const uint64_t place = frames_place(form, channel, sequence);
    worker_slot *slot = &run->channels[form_index][c].receives[place % channel->capacity];
    const worker_device *device = frames_device(run, channel->target_device);
    const void *memory = pen_memory_place_address(frames_target(run, device, form_index, c, place));
    PEN_ASSERT(slot->sequence == sequence);
    if (slot->is_checked) return PEN_OK; // by the task that read it first
    slot->is_checked = true;
    const uint32_t chunk = pen_checksum_find_difference(memory, channel->bytes, slot->checksums);
    if (chunk == pen_frame_chunk_count(channel->bytes)) return PEN_OK;
    return pen_error(PEN_CORRUPT,
                     "tensor '%s' from %s was damaged on the way: the checksum of MiB %u differs",
                     spec->value, run->spec->workers[channel->source_worker].name, chunk);
}

pen_status pen_worker_run_check_frames(pen_worker_run *run, const pen_run_form *form,
                                       uint32_t form_index, const pen_run_task *task,
                                       uint64_t round) {
    for (uint32_t r = task->receive_first; r < task->receive_end; r++) {
        const uint32_t c = form->refs[r];
        const pen_run_channel *channel = &form->channels[c];
        if (channel->is_shared) continue;
        const uint32_t microbatch = channel->is_per_step ? 0 : task->task.microbatch;
        const uint64_t sequence = pen_run_sequence(form, channel, round, microbatch);
        PEN_TRY(frames_check_one(run, form, form_index, c, sequence));
        PEN_TRY(
            pen_worker_staging_take_in(run, form_index, c, frames_place(form, channel, sequence)));
    }
    return PEN_OK;
}

static pen_status frames_send_piece(pen_worker_run *run, worker_piece *piece,
                                    pen_memory_place place) {
    const pen_frame frame = {
        .kind = PEN_FRAME_TENSOR,
        .generation = run->options.generation,
        .incarnation = run->options.incarnation,
        .channel = pen_run_tensor_number(piece->piece.device, (pen_value_id){piece->piece.value}),
        .sequence = piece->piece.sequence,
        .offset = piece->piece.offset,
        .bytes = piece->piece.bytes};
    pen_mutex_lock(&run->lock);
    piece->state = WORKER_PIECE_LENT;
    pen_mutex_unlock(&run->lock);
    const uint64_t token = FRAMES_PIECE_TOKEN + (uint64_t)(piece - run->pieces);
    return frames_lend(run, 0, &frame, place, &piece->checksum, token);
}

// A piece that has come is compared before it goes on to a device that the host does not see.
pen_status pen_worker_run_do_piece(pen_worker_run *run, worker_device *device,
                                   worker_piece *piece) {
    pen_memory_place place;
    const bool is_staged = pen_worker_is_staged(run, device->index);
    PEN_TRY(pen_worker_run_find_tensor(run, &piece->piece, &place));
    if (is_staged) place = pen_memory_place_at(pen_worker_staging_piece(run, piece));
    if (piece->state == WORKER_PIECE_SEND) {
        if (is_staged) PEN_TRY(pen_worker_staging_move_piece(run, device, piece));
        return frames_send_piece(run, piece, place);
    }
    const pen_tensor_piece done = piece->piece;
    const uint32_t chunk =
        pen_checksum_find_difference(pen_memory_place_address(place), done.bytes, &piece->checksum);
    const bool is_good = chunk == pen_frame_chunk_count(done.bytes);
    if (is_staged && is_good) PEN_TRY(pen_worker_staging_move_piece(run, device, piece));
    pen_mutex_lock(&run->lock);
    piece->state = WORKER_PIECE_FREE;
    pen_mutex_unlock(&run->lock);
    if (!is_good) {
        return pen_error(PEN_CORRUPT, "a piece of a tensor was damaged on the way");
    }
    (void)PEN_FAILPOINT("worker.piece_taken");
    run->options.events.piece_taken(run->options.events.context, done.sequence);
    return PEN_OK;
}

// Whether it was asked for before. Sequences rise, and far fewer than WORKER_PULLS are waited for
// at once: of those with one remainder, a lower one can only come again.
static bool frames_is_repeated(pen_worker_run *run, uint64_t sequence) {
    uint64_t *last = &run->pulled_last[sequence % WORKER_PULLS];
    pen_mutex_lock(&run->lock);
    const bool is_repeated = sequence <= *last;
    if (!is_repeated) *last = sequence;
    pen_mutex_unlock(&run->lock);
    return is_repeated;
}

pen_status pen_worker_run_send_piece(pen_worker_run *run, const pen_tensor_piece *piece) {
    pen_memory_place place;
    PEN_TRY(pen_worker_run_find_tensor(run, piece, &place));
    if (frames_is_repeated(run, piece->sequence)) return PEN_OK;
    return frames_take_piece(run, piece, WORKER_PIECE_SEND, &place);
}

// ---- places for what is kept of frames

static pen_status frames_new_slots(pen_worker_run *run, uint32_t count, uint64_t bytes,
                                   worker_slot **out_slots) {
    const uint32_t chunks = pen_frame_chunk_count(bytes);
    PEN_TRY(PEN_NEW(run->arena, count, out_slots));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(PEN_NEW(run->arena, chunks, &(*out_slots)[i].checksums));
    }
    return PEN_OK;
}

// Places for what this worker sends and receives, as many as the channel's credit; none while
// rounds run.
static pen_status frames_prepare_form(pen_worker_run *run, uint32_t f) {
    const pen_run_form *form = &run->table->forms[f];
    const uint32_t me = run->options.worker;
    PEN_TRY(PEN_NEW(run->arena, form->channel_count, &run->channels[f]));
    for (uint32_t c = 0; c < form->channel_count; c++) {
        const pen_run_channel *channel = &form->channels[c];
        worker_channel *ends = &run->channels[f][c];
        const bool is_copied = pen_worker_is_copied(run, channel);
        if (channel->is_shared && !is_copied) continue;
        if (channel->source_worker == me && !pen_run_channel_is_read(channel) && !is_copied) {
            ends->send_first = run->send_count;
            run->send_count += channel->copies;
            PEN_TRY(frames_new_slots(run, channel->copies, channel->bytes, &ends->sends));
            ends->sent_first = run->sent_count;
            run->sent_count += pen_run_slots(form, channel);
        }
        if (channel->target_worker == me) {
            PEN_TRY(frames_new_slots(run, channel->capacity, channel->bytes, &ends->receives));
        }
    }
    return PEN_OK;
}

// Sends are numbered over all forms and channels: the number comes back when the transport lets go
// of the memory.
pen_status pen_worker_frames_prepare(pen_worker_run *run) {
    const uint32_t form_count = run->table->form_count;
    PEN_TRY(PEN_NEW(run->arena, form_count, &run->channels));
    for (uint32_t f = 0; f < form_count; f++) {
        PEN_TRY(frames_prepare_form(run, f));
    }
    PEN_TRY(PEN_NEW(run->arena, run->send_count, &run->slot_of_send));
    PEN_TRY(PEN_NEW(run->arena, run->send_count, &run->what_of_send));
    PEN_TRY(PEN_NEW(run->arena, run->sent_count, &run->sent));
    for (uint32_t f = 0; f < form_count; f++) {
        for (uint32_t c = 0; c < run->table->forms[f].channel_count; c++) {
            const worker_channel *ends = &run->channels[f][c];
            if (ends->sends == NULL) continue;
            for (uint32_t i = 0; i < run->table->forms[f].channels[c].copies; i++) {
                run->slot_of_send[ends->send_first + i] = &ends->sends[i];
            }
        }
    }
    return PEN_OK;
}
