#include "partition/objective/reader_counts.h"

#include <string.h>

// At least one slot stays free, so that every search ends.
static uint32_t reader_counts_capacity(uint32_t reader_count, uint32_t device_count) {
    const uint32_t most = reader_count < device_count ? reader_count : device_count;
    uint32_t capacity = 2;
    while (capacity < most + most / 2 + 1)
        capacity *= 2;
    return capacity;
}

pen_status pen_reader_counts_init(pen_reader_counts *counts, const pen_problem *problem,
                                  uint32_t cell_limit, pen_arena *arena) {
    const uint32_t device_count = problem->given.device_count;
    const uint64_t cells = (uint64_t)problem->output_count * device_count;
    *counts =
        (pen_reader_counts){.device_count = device_count, .output_count = problem->output_count};
    if (cells <= cell_limit) return PEN_NEW(arena, cells, &counts->table);
    PEN_TRY(PEN_NEW(arena, (uint64_t)problem->output_count + 1, &counts->first));
    for (uint32_t o = 0; o < problem->output_count; o++) {
        const uint32_t readers = problem->readers.first[o + 1] - problem->readers.first[o];
        counts->first[o + 1] = counts->first[o] + reader_counts_capacity(readers, device_count);
    }
    PEN_TRY(PEN_NEW(arena, counts->first[problem->output_count], &counts->slots));
    pen_reader_counts_clear(counts);
    return PEN_OK;
}

void pen_reader_counts_clear(pen_reader_counts *counts) {
    if (counts->table != NULL) {
        memset(counts->table, 0,
               (uint64_t)counts->output_count * counts->device_count * sizeof *counts->table);
        return;
    }
    memset(counts->slots, 0xff, counts->first[counts->output_count] * sizeof *counts->slots);
}

void pen_reader_counts_close_slot(pen_reader_counts *counts, uint32_t output,
                                  pen_reader_slot *slot) {
    pen_reader_slot *slots = counts->slots + counts->first[output];
    const uint32_t mask = (uint32_t)(counts->first[output + 1] - counts->first[output]) - 1;
    uint32_t hole = (uint32_t)(slot - slots);
    for (uint32_t at = (hole + 1) & mask; slots[at].device != PEN_PROBLEM_ANY;
         at = (at + 1) & mask) {
        const uint32_t home = slots[at].device & mask;
        // it may move to the hole unless its home lies behind that
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        slots[hole] = slots[at];
        hole = at;
    }
    slots[hole] = (pen_reader_slot){PEN_PROBLEM_ANY, 0};
}

// The devices that read an output: a table where it is small, else a hash table for each output as
// large as its readers.
bool pen_reader_counts_next(const pen_reader_counts *counts, uint32_t output, uint32_t *io_cursor,
                            uint32_t *out_device) {
    if (counts->table != NULL) {
        const uint32_t *row = counts->table + (uint64_t)output * counts->device_count;
        for (uint32_t d = *io_cursor; d < counts->device_count; d++) {
            if (row[d] == 0) continue;
            *out_device = d;
            *io_cursor = d + 1;
            return true;
        }
        return false;
    }
    const pen_reader_slot *slots = counts->slots + counts->first[output];
    const uint32_t capacity = (uint32_t)(counts->first[output + 1] - counts->first[output]);
    for (uint32_t at = *io_cursor; at < capacity; at++) {
        if (slots[at].device == PEN_PROBLEM_ANY) continue;
        *out_device = slots[at].device;
        *io_cursor = at + 1;
        return true;
    }
    return false;
}
