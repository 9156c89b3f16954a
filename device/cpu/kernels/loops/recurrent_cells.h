// The cells of lstm, gru and rnn with whatever functions, clipping, peepholes and coupled gates:
// what recurrent_cpu.c and recurrent_backward_cpu.c have no loops of their own for.
//
// Threads:  as kernels; units of different threads lie apart.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_RECURRENT_CELLS_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_RECURRENT_CELLS_H

#include <stdint.h>

#include "device/cpu/kernels/loops/recurrent_plan.h"

// What is done of a step at a time.
typedef enum recurrent_stage {
    STAGE_WHOLE,
    STAGE_RESET, // gru that resets first: z, r, and the state that was reset
    STAGE_FRESH, // then h from that; backward, this comes before the reset
} recurrent_stage;

// Where one example's units of a step lie, `count` of them, PANEL_WIDTH at most.
typedef struct recurrent_units {
    float *row;        // the first gate; the others are `hidden` apart
    const float *bias; // likewise
    const float *before;
    float *after, *c, *y;
    float *cells;           // NULL: not kept
    const float *peepholes; // of i, o and f, likewise apart; NULL: none
    const pen_recurrent_activation *activations;
    int64_t hidden, count;
} recurrent_units;

// The same, backward.
typedef struct backward_units {
    const float *gates; // the first; the others are `hidden` apart
    const float *cells, *cells_before;
    const float *before, *y, *dy;
    float *row; // likewise
    float *dbias;
    float *dh, *dc;
    const float *peepholes; // likewise; NULL: none
    float *dpeepholes;      // NULL: not wanted
    const pen_recurrent_activation *activations;
    int64_t hidden, count;
} backward_units;

#define recurrent_any_cell PEN_CPU_JOIN(pen_recurrent_any_cell, PEN_CPU_LEVEL)
void recurrent_any_cell(const recurrent_plan *plan, recurrent_stage stage,
                        const recurrent_units *units);
#define recurrent_any_cell_back PEN_CPU_JOIN(pen_recurrent_any_cell_back, PEN_CPU_LEVEL)
void recurrent_any_cell_back(const recurrent_plan *plan, recurrent_stage stage,
                             const backward_units *units);

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_RECURRENT_CELLS_H
