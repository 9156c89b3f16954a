#include "scheduler/transport/ring/ring.h"

#include <inttypes.h>

#include "base/planted.h"

// Records and their payloads begin at multiples of this.
#define RING_ALIGNMENT 64u
// The payload has a fixed place: it is written before its head is known.
#define RING_PAYLOAD_OFFSET ((PEN_RING_HEAD_LIMIT / RING_ALIGNMENT + 1) * RING_ALIGNMENT)
#define RING_RECORD_BYTES_MOST (RING_PAYLOAD_OFFSET + PEN_RING_PIECE_BYTES + RING_ALIGNMENT)

// What a record begins with; the head follows.
typedef struct ring_lengths {
    uint32_t head;
    uint32_t payload;
} ring_lengths;

_Static_assert(sizeof(ring_lengths) + PEN_RING_HEAD_LIMIT <= RING_PAYLOAD_OFFSET,
               "heads have room");
_Static_assert(2 * RING_RECORD_BYTES_MOST <= PEN_RING_BYTES, "a record is read, another written");
_Static_assert(sizeof(pen_ring_control) <= PEN_RING_CONTROL_BYTES, "the counters are one page");

static uint64_t ring_round_up(uint64_t bytes) {
    return (bytes + RING_ALIGNMENT - 1) / RING_ALIGNMENT * RING_ALIGNMENT;
}

static uint8_t *ring_at(const pen_ring *ring, uint64_t position) {
    if (PEN_PLANTED(ring_wraps_late)) return ring->records + position % (PEN_RING_BYTES + 64);
    return ring->records + position % PEN_RING_BYTES;
}

// All that was written before is seen by whoever sees the counter, and whether the other end sleeps
// is asked after it is there.
static void ring_publish(pen_ring_word *counter, uint64_t value) {
    const memory_order order = PEN_PLANTED(ring_publishes_in_any_order) ? memory_order_relaxed
                               : PEN_PLANTED(ring_asks_too_early)       ? memory_order_release
                                                                        : memory_order_seq_cst;
    pen_ring_store(counter, value, order);
}

// Announces that the end sleeps, before it looks once more.
static void ring_announce(pen_ring_word *sleeps) {
    pen_ring_store(sleeps, 1,
                   PEN_PLANTED(ring_announces_late) ? memory_order_release : memory_order_seq_cst);
}

// Whether an end sleeps, which is to be woken then, once.
static bool ring_must_wake(pen_ring_word *sleeps) {
    return pen_ring_load(sleeps) != 0 && pen_ring_exchange(sleeps, 0) != 0;
}

void pen_ring_init(pen_ring *ring, void *memory) {
    *ring = (pen_ring){.control = memory, .records = (uint8_t *)memory + PEN_RING_CONTROL_BYTES};
}

// ---- the writer

// The reader's counter never falls and never passes the writer's, or the reader lies.
pen_status pen_ring_has_room(pen_ring *ring, bool *out_has_room) {
    const uint64_t read = pen_ring_load(&ring->control->read);
    if ((read < ring->other || read > ring->own || read % RING_ALIGNMENT != 0) &&
        !PEN_PLANTED(ring_believes_reader)) {
        return pen_error(PEN_CORRUPT,
                         "shared memory: %" PRIu64 " bytes are said to be read, of %" PRIu64
                         " written; it was %" PRIu64 " before",
                         read, ring->own, ring->other);
    }
    ring->other = read;
    *out_has_room = PEN_RING_BYTES - (ring->own - read) >= RING_RECORD_BYTES_MOST;
    if (PEN_PLANTED(ring_forgets_heads)) {
        *out_has_room = PEN_RING_BYTES - (ring->own - read) >= PEN_RING_PIECE_BYTES;
    }
    return PEN_OK;
}

uint8_t *pen_ring_place(const pen_ring *ring) {
    return ring_at(ring, ring->own) + RING_PAYLOAD_OFFSET;
}

bool pen_ring_put(pen_ring *ring, const void *head, uint32_t head_count, uint32_t payload_count) {
    const ring_lengths lengths = {head_count, payload_count};
    PEN_ASSERT(head_count <= PEN_RING_HEAD_LIMIT && payload_count <= PEN_RING_PIECE_BYTES);
    PEN_ASSERT(PEN_RING_BYTES - (ring->own - ring->other) >= RING_RECORD_BYTES_MOST ||
               PEN_PLANTED(ring_forgets_heads));
    uint8_t *record = ring_at(ring, ring->own);
    ring->own += ring_round_up(RING_PAYLOAD_OFFSET + payload_count);
    if (PEN_PLANTED(ring_publishes_early)) ring_publish(&ring->control->written, ring->own);
    pen_ring_write(record, &lengths, sizeof lengths);
    pen_ring_write(record + sizeof lengths, head, head_count);
    ring_publish(&ring->control->written, ring->own);
    if (PEN_PLANTED(ring_leaves_reader_asleep)) return false;
    return ring_must_wake(&ring->control->reader_sleeps);
}

pen_status pen_ring_writer_sleeps(pen_ring *ring, bool *out_sleeps) {
    bool has_room;
    ring_announce(&ring->control->writer_sleeps);
    PEN_TRY(pen_ring_has_room(ring, &has_room));
    *out_sleeps = !has_room;
    return PEN_OK;
}

// ---- the reader

static pen_status ring_check_written(pen_ring *ring) {
    const uint64_t written = pen_ring_load(&ring->control->written);
    if ((written < ring->other || written - ring->own > PEN_RING_BYTES ||
         written % RING_ALIGNMENT != 0) &&
        !PEN_PLANTED(ring_believes_writer)) {
        return pen_error(PEN_CORRUPT,
                         "shared memory: %" PRIu64
                         " bytes are said to be written, of which %" PRIu64
                         " are read; it was %" PRIu64 " before",
                         written, ring->own, ring->other);
    }
    ring->other = written;
    return PEN_OK;
}

// Lengths and head are copied first; what is judged and used is the copy.
pen_status pen_ring_take(pen_ring *ring, pen_ring_record *out_record, bool *out_is_there) {
    ring_lengths lengths;
    PEN_TRY(ring_check_written(ring));
    *out_is_there = ring->other != ring->own;
    if (!*out_is_there) return PEN_OK;
    const uint8_t *record = ring_at(ring, ring->own);
    pen_ring_read(&lengths, record, sizeof lengths);
    if (lengths.head > PEN_RING_HEAD_LIMIT || lengths.payload > PEN_RING_PIECE_BYTES) {
        return pen_error(PEN_CORRUPT,
                         "shared memory: a record has a head of %" PRIu32
                         " bytes and a payload of %" PRIu32,
                         lengths.head, lengths.payload);
    }
    const uint64_t room = ring_round_up(RING_PAYLOAD_OFFSET + lengths.payload);
    if (room > ring->other - ring->own) {
        return pen_error(PEN_CORRUPT,
                         "shared memory: a record of %" PRIu64 " bytes, of which %" PRIu64
                         " are written",
                         room, ring->other - ring->own);
    }
    if (PEN_PLANTED(ring_reads_lengths_twice)) pen_ring_read(&lengths, record, sizeof lengths);
    out_record->head_count = lengths.head;
    out_record->payload_count = lengths.payload;
    out_record->payload = record + RING_PAYLOAD_OFFSET;
    out_record->room = room;
    pen_ring_read(out_record->head, record + sizeof lengths, lengths.head);
    return PEN_OK;
}

// A reader that stops has read all there is: then half of the ring is free, and nobody is left
// asleep.
bool pen_ring_give(pen_ring *ring, const pen_ring_record *record) {
    PEN_ASSERT(record->room <= ring->other - ring->own);
    ring->own += record->room;
    ring_publish(&ring->control->read, ring->own);
    if (ring->other - ring->own > PEN_RING_BYTES / 2) return false;
    if (PEN_PLANTED(ring_leaves_writer_asleep)) return false;
    return ring_must_wake(&ring->control->writer_sleeps);
}

bool pen_ring_reader_sleeps(pen_ring *ring) {
    if (PEN_PLANTED(ring_looks_before_announcing)) {
        const bool is_empty = pen_ring_load(&ring->control->written) == ring->own;
        ring_announce(&ring->control->reader_sleeps);
        return is_empty;
    }
    ring_announce(&ring->control->reader_sleeps);
    return pen_ring_load(&ring->control->written) == ring->own;
}
