// Pieces of tensors on their way between the coordinator and the workers: a ring of them, so that
// the next ones go while the first arrive.

#include <string.h>

#include "base/checksum.h"
#include "base/integer.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

static uint32_t tensors_worker_of(const pen_coordinator *c, uint32_t device) {
    return c->table->forms[0].devices[device].worker;
}

static bool tensors_is_done(const pen_coordinator *c, uint64_t index) {
    const coordinator_piece *piece = &c->pieces[index];
    if (piece->state == COORDINATOR_PIECE_WRITE) return !piece->is_lent && piece->is_there;
    return piece->state == COORDINATOR_PIECE_FREE || piece->is_there;
}

// Waits until a place in the ring is free. What was read there is compared.
static pen_status tensors_finish(pen_coordinator *c, uint64_t index) {
    coordinator_piece *piece = &c->pieces[index];
    pen_mutex_lock(&c->lock);
    const pen_status status = pen_coordinator_await(c, tensors_is_done, index);
    const bool is_read = piece->state == COORDINATOR_PIECE_READ;
    if (status == PEN_OK) piece->state = COORDINATOR_PIECE_FREE;
    pen_mutex_unlock(&c->lock);
    PEN_TRY(status);
    if (!is_read || piece->bytes == 0) return PEN_OK;
    if (pen_checksum_find_difference(piece->memory, piece->bytes, &piece->checksum) ==
        pen_frame_chunk_count(piece->bytes)) {
        return PEN_OK;
    }
    return pen_error(PEN_CORRUPT, "a piece of a tensor from %s was damaged on the way",
                     c->spec->workers[piece->peer].name);
}

static bool tensors_is_used(const coordinator_piece *piece) {
    return piece->is_lent || piece->is_arriving;
}

// The run failed: takes the caller's memory back. Links that use it go down, which ends that.
static void tensors_drop(pen_coordinator *c) {
    pen_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < COORDINATOR_PIECES; i++) {
        coordinator_piece *piece = &c->pieces[i];
        if (tensors_is_used(piece)) {
            pen_mutex_unlock(&c->lock);
            c->transport->kind->disconnect(c->transport, piece->peer);
            pen_mutex_lock(&c->lock);
        }
        while (tensors_is_used(piece)) {
            pen_condition_wait(&c->changed, &c->lock);
        }
        piece->state = COORDINATOR_PIECE_FREE;
    }
    pen_mutex_unlock(&c->lock);
}

// A piece is lent to the transport, with a checksum, until the worker has it.
static pen_status tensors_send(pen_coordinator *c, coordinator_piece *piece, uint32_t number,
                               const pen_tensor_piece *what, const char *memory) {
    const pen_frame frame = {.kind = PEN_FRAME_TENSOR,
                             .generation = c->generation,
                             .incarnation = c->incarnation,
                             .form = what->form,
                             .channel = number,
                             .sequence = piece->sequence,
                             .offset = what->offset,
                             .bytes = what->bytes};
    pen_checksum_chunks(memory, what->bytes, &piece->checksum);
    const pen_status status = c->transport->kind->send_frame(
        c->transport, piece->peer, &frame, pen_memory_place_at(memory), &piece->checksum,
        COORDINATOR_PIECE_TOKEN + piece->sequence % COORDINATOR_PIECES);
    if (status == PEN_OK) return PEN_OK;
    pen_mutex_lock(&c->lock);
    piece->is_lent = false; // the link is down, which `down` says better
    pen_mutex_unlock(&c->lock);
    pen_status_ignore(status, "a link that is down is told of by `down`");
    return PEN_OK;
}

// One piece of at most a chunk.
static pen_status tensors_begin(pen_coordinator *c, const pen_tensor_piece *what,
                                coordinator_piece_state state, char *memory) {
    const uint64_t sequence = c->piece_sequence + 1;
    const uint64_t index = sequence % COORDINATOR_PIECES;
    const uint32_t number = pen_run_tensor_number(what->device, (pen_value_id){what->value});
    coordinator_piece *piece = &c->pieces[index];
    PEN_TRY(tensors_finish(c, index));
    c->piece_sequence = sequence;
    pen_mutex_lock(&c->lock);
    *piece = (coordinator_piece){.state = state,
                                 .peer = tensors_worker_of(c, what->device),
                                 .sequence = sequence,
                                 .bytes = what->bytes,
                                 .memory = memory,
                                 .is_lent = state == COORDINATOR_PIECE_WRITE};
    pen_mutex_unlock(&c->lock);
    pen_coordinator_note_pieces(c, tensors_worker_of(c, what->device), 1, 0);
    if (state == COORDINATOR_PIECE_WRITE) return tensors_send(c, piece, number, what, memory);
    pen_message pull = {.kind = PEN_MESSAGE_PULL,
                        .frame_kind = PEN_FRAME_TENSOR,
                        .number = number,
                        .offset = what->offset,
                        .byte_count = what->bytes,
                        .sequence = sequence};
    pen_coordinator_tell(c, piece->peer, &pull);
    return PEN_OK;
}

static pen_status tensors_begin_all(pen_coordinator *c, const pen_tensor_piece *piece,
                                    coordinator_piece_state state, char *memory) {
    pen_status status = PEN_OK;
    for (uint64_t first = 0; status == PEN_OK && first < piece->bytes;
         first += PEN_TRANSPORT_CHUNK_BYTES) {
        pen_tensor_piece part = *piece;
        part.offset += first;
        part.bytes = pen_min_u64(piece->bytes - first, PEN_TRANSPORT_CHUNK_BYTES);
        status = tensors_begin(c, &part, state, memory + first);
    }
    if (status != PEN_OK) tensors_drop(c);
    return status;
}

pen_status pen_coordinator_write(pen_coordinator *coordinator, const pen_tensor_piece *piece,
                                 const void *memory) {
    char *bytes; // of pieces that are written it is only read
    memcpy(&bytes, &memory, sizeof bytes);
    return tensors_begin_all(coordinator, piece, COORDINATOR_PIECE_WRITE, bytes);
}

pen_status pen_coordinator_flush(pen_coordinator *coordinator) {
    pen_status status = PEN_OK;
    for (uint32_t i = 0; i < COORDINATOR_PIECES && status == PEN_OK; i++) {
        status = tensors_finish(coordinator, i);
    }
    if (status != PEN_OK) tensors_drop(coordinator);
    return status;
}

pen_status pen_coordinator_read(pen_coordinator *coordinator, const pen_tensor_piece *piece,
                                void *memory) {
    PEN_TRY(tensors_begin_all(coordinator, piece, COORDINATOR_PIECE_READ, memory));
    return pen_coordinator_flush(coordinator);
}

// ---- from the transport

pen_status pen_coordinator_begin_piece(pen_coordinator *c, uint32_t peer, const pen_frame *frame,
                                       pen_memory_place *out_place) {
    coordinator_piece *piece = &c->pieces[frame->sequence % COORDINATOR_PIECES];
    pen_status status = PEN_OK;
    pen_mutex_lock(&c->lock);
    if (frame->kind != PEN_FRAME_TENSOR || piece->state != COORDINATOR_PIECE_READ ||
        piece->is_there || piece->is_arriving || piece->sequence != frame->sequence ||
        piece->peer != peer || piece->bytes != frame->bytes) {
        status = pen_error(PEN_CORRUPT, "%s sent a frame that nobody asked for",
                           c->spec->workers[peer].name);
    } else {
        piece->is_arriving = true;
        *out_place = pen_memory_place_at(piece->memory);
    }
    pen_mutex_unlock(&c->lock);
    return status;
}

void pen_coordinator_end_piece(pen_coordinator *c, const pen_frame *frame,
                               const uint32_t *checksums) {
    coordinator_piece *piece = &c->pieces[frame->sequence % COORDINATOR_PIECES];
    pen_mutex_lock(&c->lock);
    piece->is_arriving = false;
    piece->is_there = true;
    piece->checksum = frame->bytes == 0 ? 0 : checksums[0];
    const uint32_t peer = piece->peer;
    pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
    pen_coordinator_note_pieces(c, peer, 0, 1);
}

// A worker has a piece that was written. It may be late, or lie.
void pen_coordinator_take_piece(pen_coordinator *c, uint32_t peer, uint64_t sequence) {
    coordinator_piece *piece = &c->pieces[sequence % COORDINATOR_PIECES];
    pen_mutex_lock(&c->lock);
    const bool is_new = piece->state == COORDINATOR_PIECE_WRITE && piece->sequence == sequence &&
                        piece->peer == peer && !piece->is_there;
    if (is_new) {
        piece->is_there = true;
        pen_condition_broadcast(&c->changed);
    }
    pen_mutex_unlock(&c->lock);
    if (is_new) pen_coordinator_note_pieces(c, peer, 0, 1);
}

void pen_coordinator_let_piece_go(pen_coordinator *c, uint64_t index) {
    PEN_ASSERT(index < COORDINATOR_PIECES);
    pen_mutex_lock(&c->lock);
    c->pieces[index].is_lent = false;
    pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
}

// The link to a peer is down: nothing arrives from it any more.
void pen_coordinator_end_arrivals(pen_coordinator *c, uint32_t peer) {
    for (uint32_t i = 0; i < COORDINATOR_PIECES; i++) { // the lock is held
        if (c->pieces[i].peer == peer) c->pieces[i].is_arriving = false;
    }
}
