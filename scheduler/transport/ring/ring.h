// A ring in memory that two processes share: one writes records, the other one reads them, both
// without system calls.
//
// The memory has two counters, of all bytes ever written and ever read, and the bytes themselves,
// which are mapped twice, one mapping behind the other, so that no record is ever cut in two. A
// record is a head of at most PEN_RING_HEAD_LIMIT bytes and a payload of at most
// PEN_RING_PIECE_BYTES. The writer copies the payload to its place, sums it up meanwhile, and then
// puts the head before it, which publishes the record.
//
// The other side is not trusted: it may write anything anywhere, at any time. So each side keeps
// its own counter to itself and only publishes a copy; what it reads of the other's is judged each
// time; and the reader copies lengths and head before it judges them. A payload may still change
// while it is copied: checksums, which come another way or are compared after the copy, tell.
//
// Sleeping: who finds nothing to do announces that it sleeps, looks once more, and then waits for
// the other's bell. Who changes a counter asks whether the other sleeps, and rings; a writer is
// woken when half of the ring is free, so that it does not go back to sleep after one record. What
// a bell is, the ring does not know.
//
// Lifetime: the memory (ring_memory.h) outlives both ends. Threads: an end belongs to one at a
// time.
#ifndef PEN_SCHEDULER_TRANSPORT_RING_RING_H
#define PEN_SCHEDULER_TRANSPORT_RING_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/transport/ring/ring_access.h"

#ifndef PEN_RING_BYTES                     // simulations have small ones
#define PEN_RING_BYTES ((uint64_t)1 << 21) // of records; a power of two
// Of payload in a record, at most: what is summed up and then copied stays in a core's own cache.
#define PEN_RING_PIECE_BYTES ((uint64_t)1 << 18)
#endif
#define PEN_RING_HEAD_LIMIT 256u
#define PEN_RING_CONTROL_BYTES ((uint64_t)4096) // before the records
#define PEN_RING_FILE_BYTES (PEN_RING_CONTROL_BYTES + PEN_RING_BYTES)

// The first page. Each member has a cache line of its own.
typedef struct pen_ring_control {
    _Alignas(64) pen_ring_word written; // bytes, by the writer
    _Alignas(64) pen_ring_word read;    // bytes, by the reader
    _Alignas(64) pen_ring_word writer_sleeps;
    _Alignas(64) pen_ring_word reader_sleeps;
} pen_ring_control;

typedef struct pen_ring { // one end
    pen_ring_control *control;
    uint8_t *records; // [2 * PEN_RING_BYTES], the second half being the first once more
    uint64_t own;     // the counter that this end moves
    uint64_t other;   // the other one, as it was last seen
} pen_ring;

typedef struct pen_ring_record {
    uint8_t head[PEN_RING_HEAD_LIMIT]; // a copy
    uint32_t head_count;
    uint32_t payload_count;
    const uint8_t *payload; // in the ring: to be read once, and not to be trusted
    uint64_t room;          // in the ring
} pen_ring_record;

// `memory` [PEN_RING_CONTROL_BYTES + 2 * PEN_RING_BYTES], all zero at first.
void pen_ring_init(pen_ring *ring, void *memory);

// ---- the writer

// Whether a record of any size has room. CORRUPT: the reader's counter cannot be
PEN_NODISCARD pen_status pen_ring_has_room(pen_ring *ring, bool *out_has_room);
// Where the payload of the next record is to be written, before it is put; there is room.
uint8_t *pen_ring_place(const pen_ring *ring);
// Publishes a record whose payload is in its place. True: the reader sleeps, and is to be woken.
bool pen_ring_put(pen_ring *ring, const void *head, uint32_t head_count, uint32_t payload_count);
// Announces that the writer sleeps until there is room. False: there is.
PEN_NODISCARD pen_status pen_ring_writer_sleeps(pen_ring *ring, bool *out_sleeps);

// ---- the reader

// The next record. *out_is_there is false when there is none. CORRUPT: what is there cannot be
PEN_NODISCARD pen_status pen_ring_take(pen_ring *ring, pen_ring_record *out_record,
                                       bool *out_is_there);
// Gives its room back. True: the writer sleeps, half of the ring is free, and it is to be woken.
bool pen_ring_give(pen_ring *ring, const pen_ring_record *record);
// Announces that the reader sleeps until something comes. False: something has.
bool pen_ring_reader_sleeps(pen_ring *ring);

#endif // PEN_SCHEDULER_TRANSPORT_RING_RING_H
