// How many groups on each device read each output.
//
// A table of all outputs and devices would need gibibytes for a million outputs and a thousand
// devices, though an output has few readers. So small problems have the table, which is fastest,
// and large ones a hash table for each output, with room for as many devices as it has readers.
//
// Lifetime: lives in the arena it was made with.
// Threads:  belongs to one thread at a time.
#ifndef PEN_PARTITION_OBJECTIVE_READER_COUNTS_H
#define PEN_PARTITION_OBJECTIVE_READER_COUNTS_H

#include "partition/problem/problem.h"

#define PEN_READER_COUNTS_TABLE_LIMIT (1u << 24) // cells of a table, 64 MiB

typedef struct pen_reader_slot {
    uint32_t device; // PEN_PROBLEM_ANY: the slot is free
    uint32_t count;  // at least 1
} pen_reader_slot;

typedef struct pen_reader_counts {
    uint32_t device_count;
    uint32_t output_count;
    uint32_t *table;        // [output_count][device_count], or NULL
    uint64_t *first;        // [output_count + 1] of an output's slots; a power of two of them
    pen_reader_slot *slots; // found by linear probing, from device modulo their number on
} pen_reader_counts;

// All counts are 0. `cell_limit`: a larger table is not made; PEN_READER_COUNTS_TABLE_LIMIT
// usually. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_reader_counts_init(pen_reader_counts *counts,
                                                const pen_problem *problem, uint32_t cell_limit,
                                                pen_arena *arena);

// Sets all counts to 0.
void pen_reader_counts_clear(pen_reader_counts *counts);

// The slot of `device`, or the free one where it would be.
static inline pen_reader_slot *pen_reader_counts_find(const pen_reader_counts *counts,
                                                      uint32_t output, uint32_t device) {
    pen_reader_slot *slots = counts->slots + counts->first[output];
    const uint32_t mask = (uint32_t)(counts->first[output + 1] - counts->first[output]) - 1;
    uint32_t at = device & mask;
    while (slots[at].device != device && slots[at].device != PEN_PROBLEM_ANY)
        at = (at + 1) & mask;
    return &slots[at];
}

static inline uint32_t pen_reader_counts_get(const pen_reader_counts *counts, uint32_t output,
                                             uint32_t device) {
    if (counts->table != NULL) {
        return counts->table[(uint64_t)output * counts->device_count + device];
    }
    const pen_reader_slot *slot = pen_reader_counts_find(counts, output, device);
    return slot->device == device ? slot->count : 0;
}

// One reader more. Returns how many there were. All counts of an output together must stay within
// the number of its readers.
static inline uint32_t pen_reader_counts_add(pen_reader_counts *counts, uint32_t output,
                                             uint32_t device) {
    if (counts->table != NULL) {
        return counts->table[(uint64_t)output * counts->device_count + device]++;
    }
    pen_reader_slot *slot = pen_reader_counts_find(counts, output, device);
    if (slot->device == device) return slot->count++;
    *slot = (pen_reader_slot){device, 1};
    return 0;
}

// Frees a slot whose count became 0: those behind it move up.
void pen_reader_counts_close_slot(pen_reader_counts *counts, uint32_t output,
                                  pen_reader_slot *slot);

// One reader less; there must be one. Returns how many are left.
static inline uint32_t pen_reader_counts_remove(pen_reader_counts *counts, uint32_t output,
                                                uint32_t device) {
    if (counts->table != NULL) {
        return --counts->table[(uint64_t)output * counts->device_count + device];
    }
    pen_reader_slot *slot = pen_reader_counts_find(counts, output, device);
    if (--slot->count > 0) return slot->count;
    pen_reader_counts_close_slot(counts, output, slot);
    return 0;
}

// Walks the devices that read `output`, in no particular order, which is the same for the same
// history. *io_cursor is 0 at first. False when there are no more.
bool pen_reader_counts_next(const pen_reader_counts *counts, uint32_t output, uint32_t *io_cursor,
                            uint32_t *out_device);

#endif // PEN_PARTITION_OBJECTIVE_READER_COUNTS_H
