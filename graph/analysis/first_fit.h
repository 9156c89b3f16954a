// Where the next buffer goes: the lowest offset that is free for as long as it lives.
//
// A binary tree over time keeps what is taken. Each of its nodes stands for a stretch of time and
// has two lists of offsets: those taken during all of the stretch, and those taken at some time in
// it. A buffer's life is cut into at most two stretches a level, and so is the question what is in
// its way. Buffers that lie side by side are one entry of a list, and a list has an upper limit
// (where it is full, the smallest gap in it counts as taken), so that a buffer costs time in
// proportion to the depth of the tree, however many live at once.
//
// Lifetime: it lives in the arena it was made with.
// Threads:  one at a time.
#ifndef PEN_GRAPH_ANALYSIS_FIRST_FIT_H
#define PEN_GRAPH_ANALYSIS_FIRST_FIT_H

#include "base/arena.h"

// Entries of a list. Up to so many stacks of buffers alive at once, places are the lowest.
#define PEN_FIRST_FIT_ENTRIES 64u

typedef struct pen_first_fit pen_first_fit;

// For lives within the times 0 to `time_count` - 1. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_first_fit_new(uint32_t time_count, pen_arena *arena,
                                           pen_first_fit **out_fit);

// Nothing is taken any more.
void pen_first_fit_clear(pen_first_fit *fit);

// Takes `bytes` from the time `first` to the time `last`, both included. Offsets are sums of bytes
// taken, so that what divides all of these divides them. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_first_fit_take(pen_first_fit *fit, uint32_t first, uint32_t last,
                                            uint64_t bytes, uint64_t *out_offset);

// Entries looked at since it was made, which is what taking costs.
uint64_t pen_first_fit_steps(const pen_first_fit *fit);

#endif // PEN_GRAPH_ANALYSIS_FIRST_FIT_H
