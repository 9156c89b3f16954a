#include "scheduler/transport/ring/ring.h"

#include <inttypes.h>
#include <string.h>

// Records and their payloads begin at multiples of this.
#define RING_ALIGNMENT 64u
#define RING_RECORD_BYTES_MOST                                                                     \
    (PEN_RING_PIECE_BYTES + PEN_RING_HEAD_LIMIT + 8 + (uint64_t)2 * RING_ALIGNMENT)

// What a record begins with; the head follows, then the payload at the next multiple.
typedef struct ring_lengths {
    uint32_t head;
    uint32_t payload;
} ring_lengths;

_Static_assert(2 * RING_RECORD_BYTES_MOST <= PEN_RING_BYTES, "a record is read, another written");
_Static_assert(sizeof(pen_ring_control) <= PEN_RING_CONTROL_BYTES, "the counters are one page");

static uint64_t ring_round_up(uint64_t bytes) {
    return (bytes + RING_ALIGNMENT - 1) / RING_ALIGNMENT * RING_ALIGNMENT;
}

static uint64_t ring_payload_offset(uint32_t head_count) {
    return ring_round_up(sizeof(ring_lengths) + head_count);
}

static uint8_t *ring_at(const pen_ring *ring, uint64_t position) {
    return ring->records + position % PEN_RING_BYTES;
}

void pen_ring_init(pen_ring *ring, void *memory) {
    *ring = (pen_ring){.control = memory, .records = (uint8_t *)memory + PEN_RING_CONTROL_BYTES};
}

// ---- the writer

// The reader's counter never falls and never passes the writer's, or the reader lies.
pen_status pen_ring_has_room(pen_ring *ring, bool *out_has_room) {
    const uint64_t read = atomic_load(&ring->control->read);
    if (read < ring->other || read > ring->own || read % RING_ALIGNMENT != 0) {
        return pen_error(PEN_CORRUPT,
                         "shared memory: %" PRIu64 " bytes are said to be read, of %" PRIu64
                         " written; it was %" PRIu64 " before",
                         read, ring->own, ring->other);
    }
    ring->other = read;
    *out_has_room = PEN_RING_BYTES - (ring->own - read) >= RING_RECORD_BYTES_MOST;
    return PEN_OK;
}

bool pen_ring_put(pen_ring *ring, const void *head, uint32_t head_count, const void *payload,
                  uint32_t payload_count) {
    const ring_lengths lengths = {head_count, payload_count};
    PEN_ASSERT(head_count <= PEN_RING_HEAD_LIMIT && payload_count <= PEN_RING_PIECE_BYTES);
    PEN_ASSERT(PEN_RING_BYTES - (ring->own - ring->other) >= RING_RECORD_BYTES_MOST);
    uint8_t *record = ring_at(ring, ring->own);
    const uint64_t payload_offset = ring_payload_offset(head_count);
    memcpy(record, &lengths, sizeof lengths);
    memcpy(record + sizeof lengths, head, head_count);
    if (payload_count != 0) memcpy(record + payload_offset, payload, payload_count);
    ring->own += ring_round_up(payload_offset + payload_count);
    atomic_store(&ring->control->written, ring->own);
    return atomic_load(&ring->control->reader_sleeps) != 0 &&
           atomic_exchange(&ring->control->reader_sleeps, 0) != 0;
}

pen_status pen_ring_writer_sleeps(pen_ring *ring, bool *out_sleeps) {
    bool has_room;
    atomic_store(&ring->control->writer_sleeps, 1);
    PEN_TRY(pen_ring_has_room(ring, &has_room));
    *out_sleeps = !has_room;
    return PEN_OK;
}

// ---- the reader

static pen_status ring_check_written(pen_ring *ring) {
    const uint64_t written = atomic_load(&ring->control->written);
    if (written < ring->other || written - ring->own > PEN_RING_BYTES ||
        written % RING_ALIGNMENT != 0) {
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
    memcpy(&lengths, record, sizeof lengths);
    if (lengths.head > PEN_RING_HEAD_LIMIT || lengths.payload > PEN_RING_PIECE_BYTES) {
        return pen_error(PEN_CORRUPT,
                         "shared memory: a record has a head of %" PRIu32
                         " bytes and a payload of %" PRIu32,
                         lengths.head, lengths.payload);
    }
    const uint64_t payload_offset = ring_payload_offset(lengths.head);
    const uint64_t room = ring_round_up(payload_offset + lengths.payload);
    if (room > ring->other - ring->own) {
        return pen_error(PEN_CORRUPT,
                         "shared memory: a record of %" PRIu64 " bytes, of which %" PRIu64
                         " are written",
                         room, ring->other - ring->own);
    }
    out_record->head_count = lengths.head;
    out_record->payload_count = lengths.payload;
    out_record->payload = record + payload_offset;
    out_record->room = room;
    memcpy(out_record->head, record + sizeof lengths, lengths.head);
    return PEN_OK;
}

bool pen_ring_give(pen_ring *ring, const pen_ring_record *record) {
    PEN_ASSERT(record->room <= ring->other - ring->own);
    ring->own += record->room;
    atomic_store(&ring->control->read, ring->own);
    return atomic_load(&ring->control->writer_sleeps) != 0 &&
           atomic_exchange(&ring->control->writer_sleeps, 0) != 0;
}

bool pen_ring_reader_sleeps(pen_ring *ring) {
    atomic_store(&ring->control->reader_sleeps, 1);
    return atomic_load(&ring->control->written) == ring->own;
}
