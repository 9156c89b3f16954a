// Traces made by hand.
#ifndef PEN_TESTS_SUPPORT_MADE_TRACE_H
#define PEN_TESTS_SUPPORT_MADE_TRACE_H

#include "scheduler/trace/trace.h"

// Two devices 'a' and 'b' of two workers, with a stage each, that run `step_count` steps of two
// microbatches as GPipe does. A forward task takes 1 s, a backward task 2 s, an update 0.5 s, a
// transfer 0.25 s; a step 10 s and 12 s to the next, but the first one ends 2 s late:
//
//   a  F0 0-1  F1 1-2  wait 2-5.5  B0 5.5-7.5  B1 7.5-9.5  U 9.5-10
//   b  wait 0-1.25  F0 1.25-2.25  F1 2.25-3.25  B0 3.25-5.25  B1 5.25-7.25  U 7.25-7.75
//
// so both compute for 6.5 s, and the bubble is 0.35. Activations take 64 bytes, gradients 32; 'a'
// holds 100 bytes and 10 for each microbatch, 'b' 200 and 20. The second worker's clock is 1000 s
// behind.
const pen_trace *made_trace(pen_arena *arena, uint32_t step_count);

#endif // PEN_TESTS_SUPPORT_MADE_TRACE_H
