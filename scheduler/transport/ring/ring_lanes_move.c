// Frames of one lane, into its ring and out of the other's.
#include "base/checksum.h"
#include "base/integer.h"
#include "base/planted.h"
#include "scheduler/transport/ring/ring_lanes_inside.h"
#include "scheduler/transport/wire_format.h"

#define MOVE_TURN 4u // records of a direction before other lanes have their turn

// ---- into the ring

// The frame that is sent now, or the next one. False: there is none.
static bool move_find_loan(pen_ring_lane *lane) {
    if (lane->sending != NULL) return true;
    // what is queued now wakes the thread, or has it look once more before it sleeps
    if (!atomic_load_explicit(&lane->has_loans, memory_order_relaxed)) return false;
    pen_mutex_lock(&lane->lanes->lock);
    pen_ring_loan *loan = lane->loans;
    if (loan != NULL) {
        lane->loans = loan->next;
        if (lane->loans == NULL) lane->loans_end = &lane->loans;
    }
    atomic_store_explicit(&lane->has_loans, lane->loans != NULL, memory_order_relaxed);
    pen_mutex_unlock(&lane->lanes->lock);
    lane->sending = loan;
    return loan != NULL;
}

// Copies a piece into the ring, and sums it up while it is in the cache: the frame's own bytes, not
// those in the ring, which the other process can write. Returns the checksum that goes with the
// piece: its chunk's, or of the chunk up to the piece's end, which the last piece makes whole.
static uint32_t move_copy_out(pen_ring_lane *lane, uint32_t count) {
    pen_ring_loan *loan = lane->sending;
    const uint64_t position = loan->position;
    const uint64_t chunk = position / PEN_TRANSPORT_CHUNK_BYTES;
    if (count != 0) {
        const uint8_t *payload = loan->payload + position;
        if (loan->unmade != NULL) {
            const uint32_t before = position % PEN_TRANSPORT_CHUNK_BYTES == 0 ? 0 : lane->sum;
            lane->sum = pen_checksum_continue(before, payload, count);
            loan->unmade[chunk] = lane->sum;
        }
        pen_ring_write(pen_ring_place(&lane->out.ring), payload, count);
    }
    if (loan->unmade != NULL && position + count == loan->frame.bytes) {
        loan->unmade = NULL;
        lane->lanes->events.summed(lane->lanes->events.context, loan);
    }
    return count == 0 ? 0 : loan->checksums[chunk];
}

// The next piece of the frame that is sent. A frame without bytes is one empty piece. True: it was
// the last one.
static bool move_put(pen_ring_lane *lane) {
    pen_ring_lanes *lanes = lane->lanes;
    pen_ring_loan *loan = lane->sending;
    uint8_t head[PEN_WIRE_HEAD_LIMIT];
    const uint64_t position = loan->position, bytes = loan->frame.bytes;
    const uint32_t count = (uint32_t)pen_min_u64(bytes - position, PEN_RING_PIECE_BYTES);
    const uint32_t checksum = move_copy_out(lane, count);
    // the payload's length is the record's, so that the head can be read alone
    const size_t head_count =
        pen_wire_write_chunk(position == 0 ? &loan->frame : NULL, position, checksum, 0, head);
    if (pen_ring_put(&lane->out.ring, head, (uint32_t)head_count, count)) {
        pen_ring_sound(lane->out.socket);
    }
    loan->position = position + count;
    atomic_fetch_add_explicit(&lanes->bytes_sent, count, memory_order_relaxed);
    if (loan->position != bytes) return false;
    atomic_fetch_add_explicit(&lanes->frames_sent, 1, memory_order_relaxed);
    lane->sending = NULL;
    return true;
}

// True: something was sent. Who has lent small frames is woken once for all of a turn.
static bool move_out(pen_ring_lane *lane) {
    const pen_ring_lane_events *events = &lane->lanes->events;
    pen_ring_loan *done = NULL, **done_end = &done;
    uint32_t count = 0;
    for (; count < MOVE_TURN && move_find_loan(lane); count++) {
        bool has_room = false;
        const pen_status status = pen_ring_has_room(&lane->out.ring, &has_room);
        if (status != PEN_OK) lane_fail(lane, status, false);
        if (!has_room) break;
        pen_ring_loan *loan = lane->sending;
        if (!move_put(lane)) continue;
        loan->next = NULL;
        *done_end = loan;
        done_end = &loan->next;
    }
    while (done != NULL) {
        pen_ring_loan *loan = done;
        done = loan->next;
        events->sent(events->context, loan);
    }
    return count != 0;
}

// ---- out of the ring

// Copies a piece to where it belongs, and sums up the copy while it is in the cache: the other
// process cannot write there. Where a chunk ends, its checksum is compared.
static void move_copy_in(pen_frame_intake *intake, const uint8_t *payload, uint32_t count,
                         uint32_t checksum) {
    const uint64_t end = intake->position + count;
    uint8_t *memory = pen_frame_intake_memory(intake);
    pen_ring_read(memory, payload, count);
    if (!pen_ring_sums_up(&intake->frame)) {
        intake->is_compared = false;
        return;
    }
    const uint32_t before = intake->position % PEN_TRANSPORT_CHUNK_BYTES == 0 ? 0 : intake->sum;
    const uint8_t *summed = PEN_PLANTED(ring_sums_what_lies_there) ? payload : memory;
    intake->sum = pen_checksum_continue(before, summed, count);
    if (end % PEN_TRANSPORT_CHUNK_BYTES != 0 && end != intake->frame.bytes) return;
    if (intake->sum != checksum) intake->is_compared = false; // whoever computes finds out where
}

// A record is a chunk as gRPC carries it (wire_format.h), its payload apart. What is judged is a
// copy; the payload is copied once.
pen_status lane_take_record(pen_frame_intake *intake, const pen_transport_events *user,
                            uint32_t peer, const pen_ring_record *record, bool *out_is_whole) {
    const pen_wire_piece piece = {record->head, record->head_count};
    const uint32_t count = record->payload_count;
    pen_wire_envelope envelope;
    const pen_frame *frame;
    PEN_TRY(pen_wire_read((pen_wire_pieces){&piece, 1}, &envelope));
    if (envelope.kind != PEN_WIRE_CHUNK || envelope.chunk.payload.count != 0) {
        return pen_error(PEN_CORRUPT, "shared memory: a record is not a piece of a frame");
    }
    PEN_TRY(pen_frame_intake_judge(intake, &envelope.chunk, count, PEN_RING_PIECE_BYTES, &frame));
    if (envelope.chunk.has_frame) PEN_TRY(pen_frame_intake_begin(intake, user, peer, frame));
    if (count != 0) move_copy_in(intake, record->payload, count, envelope.chunk.checksum);
    *out_is_whole = pen_frame_intake_add(intake, count, envelope.chunk.checksum);
    return PEN_OK;
}

static pen_status move_take(pen_ring_lane *lane, const pen_ring_record *record) {
    pen_ring_lanes *lanes = lane->lanes;
    const pen_transport_events *user = lanes->events.user;
    bool is_whole;
    PEN_TRY(lane_take_record(&lane->intake, user, lane->peer, record, &is_whole));
    atomic_fetch_add_explicit(&lanes->bytes_received, record->payload_count, memory_order_relaxed);
    if (!is_whole) return PEN_OK;
    atomic_fetch_add_explicit(&lanes->frames_received, 1, memory_order_relaxed);
    user->end(user->context, lane->peer, &lane->intake.frame, lane->intake.checksums,
              lane->intake.is_compared);
    return PEN_OK;
}

// True: something was taken.
static bool move_in(pen_ring_lane *lane) {
    uint32_t count = 0;
    for (; count < MOVE_TURN; count++) {
        pen_ring_record record;
        bool is_there = false;
        pen_status status = pen_ring_take(&lane->in.ring, &record, &is_there);
        if (status == PEN_OK && !is_there) break;
        const bool gives_early = status == PEN_OK && PEN_PLANTED(ring_gives_early);
        if (gives_early && pen_ring_give(&lane->in.ring, &record)) pen_ring_sound(lane->in.socket);
        if (status == PEN_OK) status = move_take(lane, &record);
        if (status != PEN_OK) {
            lane_fail(lane, status, false);
            break;
        }
        if (!gives_early && pen_ring_give(&lane->in.ring, &record)) {
            pen_ring_sound(lane->in.socket);
        }
    }
    return count != 0;
}

// ---- both

bool lane_move(pen_ring_lane *lane) {
    bool has_moved = false;
    if (atomic_load(&lane->state) == PEN_RING_LANE_OPEN) has_moved = move_out(lane);
    if (lane->in.memory != NULL && atomic_load(&lane->state) != PEN_RING_LANE_BROKEN) {
        has_moved = move_in(lane) || has_moved;
    }
    return has_moved;
}

bool lane_sleep(pen_ring_lane *lane) {
    bool sleeps = true;
    const pen_ring_lane_state state = atomic_load(&lane->state);
    if (state == PEN_RING_LANE_BROKEN) return true;
    if (lane->in.memory != NULL && !pen_ring_reader_sleeps(&lane->in.ring)) return false;
    if (state != PEN_RING_LANE_OPEN || !move_find_loan(lane)) return true;
    if (PEN_PLANTED(ring_waits_unannounced)) return true;
    const pen_status status = pen_ring_writer_sleeps(&lane->out.ring, &sleeps);
    if (status != PEN_OK) lane_fail(lane, status, false);
    return status != PEN_OK || sleeps;
}
