// Offsets of buffers that share one region: two overlap only if they are never alive at once.
//
// Buffers are placed one after the other, each at the lowest offset that is free for as long as it
// lives, in order of falling size ("greedy by size", Pisarchyk and Lee, "Efficient Memory
// Management for Deep Neural Net Inference", 2020), and in some other orders, of which the best is
// taken. That is within a few per cent of the most bytes alive at once, which no offsets can beat.
#ifndef PEN_GRAPH_ANALYSIS_BUFFER_OFFSETS_H
#define PEN_GRAPH_ANALYSIS_BUFFER_OFFSETS_H

#include "base/arena.h"

#define PEN_BUFFER_ALIGNMENT 64u

typedef struct pen_buffer {
    uint64_t bytes;
    uint32_t first; // times: alive from first to last, both included
    uint32_t last;
    uint64_t offset; // a multiple of PEN_BUFFER_ALIGNMENT
} pen_buffer;

typedef struct pen_buffer_sums {
    uint64_t bytes;           // of the region, a multiple of PEN_BUFFER_ALIGNMENT
    uint64_t live_bytes_peak; // most bytes alive at once, without gaps for alignment
    uint64_t steps;           // of the search, which its time follows
} pen_buffer_sums;

// Gives each of the buffers its offset. Equal buffers get equal offsets. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_buffer_offsets_find(pen_buffer *buffers, uint32_t count,
                                                 pen_buffer_sums *out_sums);

#endif // PEN_GRAPH_ANALYSIS_BUFFER_OFFSETS_H
