// What the forward and the backward kernels of lstm, gru and rnn share: which nodes they can do,
// what lies where in the workspace, and the copies around the steps.
//
// The input's half of all gates of all steps is one product; a step then adds the state's half, by
// panels of the state's weights (packed_panels.h), and applies the cell to what it just summed. A
// thread owns units of the state, all gates of them, so that it waits for the others only once a
// step (twice where gru resets the state before its weights see it); no sum depends on the number
// of threads.
//
// Rows of pre-activations hold `slots` blocks of `hidden`: the gates in ONNX' order and, for gru
// with linear_before_reset, the state's half of h as a fourth.
//
// Lifetime: plans live in the arena of the request, all else in the workspace of a call.
// Threads:  as kernels.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_RECURRENT_PLAN_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_RECURRENT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cpu/cpu_kernel.h"
#include "device/cpu/gemm.h"
#include "graph/ops/product/recurrent_geometry.h"

typedef struct recurrent_plan {
    pen_recurrent_geometry g;
    uint32_t input_count, output_count; // of the node
    bool wants_team;
    bool is_unusual;   // other functions, clipping, peepholes, coupled gates: recurrent_cells.h
    bool relu;         // rnn: else tanh
    bool resets_first; // gru without linear_before_reset
    bool wide_lengths; // int64, else int32
    int64_t slots;     // blocks of `hidden` in a row of pre-activations
    int64_t panels;    // of the units
    // Parts of the workspace, in floats from its start.
    int64_t lengths; // [N], int64
    int64_t x;       // [S * N, I], of nodes that have the batch first
    int64_t dx;      // likewise
    int64_t rows;    // [S * N, slots * H]: pre-activations that are not saved, or their gradients
    int64_t packed;  // panels of one direction's weights of the state
    int64_t bias;    // [slots * H], or its gradient
    int64_t h;       // [2][N, H]: the state before and after a step; backward: its gradient
    int64_t c;       // [N, H]: lstm; backward: its gradient. Where gru resets first: the state
                     // that was reset; backward: its gradient
    int64_t before;  // backward, [S * N, H]: the state before each step
    int64_t total;
} recurrent_plan;

#define recurrent_forward_supports PEN_CPU_JOIN(pen_recurrent_forward_supports, PEN_CPU_LEVEL)
bool recurrent_forward_supports(const pen_cpu_request *request);
#define recurrent_backward_supports PEN_CPU_JOIN(pen_recurrent_backward_supports, PEN_CPU_LEVEL)
bool recurrent_backward_supports(const pen_cpu_request *request);

#define recurrent_forward_prepare PEN_CPU_JOIN(pen_recurrent_forward_prepare, PEN_CPU_LEVEL)
pen_status recurrent_forward_prepare(const pen_cpu_request *request, void **out_state,
                                     uint64_t *out_workspace_bytes);
#define recurrent_backward_prepare PEN_CPU_JOIN(pen_recurrent_backward_prepare, PEN_CPU_LEVEL)
pen_status recurrent_backward_prepare(const pen_cpu_request *request, void **out_state,
                                      uint64_t *out_workspace_bytes);

// Reads the lengths, all steps where `given` is NULL. INVALID_INPUT: one is out of range.
#define recurrent_read_lengths PEN_CPU_JOIN(pen_recurrent_read_lengths, PEN_CPU_LEVEL)
PEN_NODISCARD pen_status recurrent_read_lengths(const recurrent_plan *plan, const void *given,
                                                int64_t *out_lengths);

// The weights of direction d's state into panels. Forward, for products with their transpose:
// panel p of gate k begins at (p * G + k) * H * PANEL_WIDTH. Backward: panel p of all gates at
// p * G * H * PANEL_WIDTH.
#define recurrent_pack_forward PEN_CPU_JOIN(pen_recurrent_pack_forward, PEN_CPU_LEVEL)
void recurrent_pack_forward(const recurrent_plan *plan, const float *r, int64_t d, float *packed);
#define recurrent_pack_backward PEN_CPU_JOIN(pen_recurrent_pack_backward, PEN_CPU_LEVEL)
void recurrent_pack_backward(const recurrent_plan *plan, const float *r, int64_t d, float *packed);

// x with the steps first: itself, or a copy in `workspace`.
#define recurrent_steps_first PEN_CPU_JOIN(pen_recurrent_steps_first, PEN_CPU_LEVEL)
const float *recurrent_steps_first(const recurrent_plan *plan, const float *x, float *workspace);

// A product on the team.
#define recurrent_sgemm PEN_CPU_JOIN(pen_recurrent_sgemm, PEN_CPU_LEVEL)
PEN_NODISCARD pen_status recurrent_sgemm(const pen_gemm *gemm);

// The backward kernel: recurrent_backward_cpu.c.
#define recurrent_backward_run PEN_CPU_JOIN(pen_recurrent_backward_run, PEN_CPU_LEVEL)
pen_status recurrent_backward_run(const pen_cpu_call *call);

// Operands of a call; NULL where left out.
static inline void *recurrent_input(const recurrent_plan *plan, const pen_cpu_call *call,
                                    uint32_t input) {
    return input < plan->input_count ? call->inputs[input] : NULL;
}
static inline void *recurrent_output(const recurrent_plan *plan, const pen_cpu_call *call,
                                     uint32_t output) {
    return output < plan->output_count ? call->outputs[output] : NULL;
}

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_RECURRENT_PLAN_H
