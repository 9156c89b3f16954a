// What the passes of batch normalisation share: how tensors are walked, and what is prepared.
//
// In the plain and the blocked layouts, what one sample has of a group of channels (one channel, or
// one block) is a segment: contiguous floats, the channel of element i being i modulo the block.
// Vectors of 16 walk a segment whatever the block is, since 16 is a multiple of it; lane j of every
// vector belongs to channel j modulo the block, and lanes are folded at the end.
//
// One thread does all samples of a group, reading it from memory once and again from cache. Where
// there are fewer groups than threads, segments are shared out instead. Sums are kept per segment
// and joined in the order of samples either way, so that the numbers do not depend on the team.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_NORM_SEGMENTS_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_NORM_SEGMENTS_H

#include <string.h>

#include "device/cpu/cpu_kernel.h"

#define NORM_LANES 16
#define NORM_PIECE_ROWS 64 // rows of lanes in a piece
typedef float norm_vector __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t norm_mask __attribute__((vector_size(64), aligned(4), may_alias));

// Numbers of a group's channels, spread over the lanes.
typedef struct norm_lanes {
    float mean[NORM_LANES];
    float factor[NORM_LANES]; // scale * inverse
    float bias[NORM_LANES];
    float slope[NORM_LANES];  // backward: of (x - mean)
    float offset[NORM_LANES]; // backward
} norm_lanes;

typedef struct norm_state {
    int64_t batch;
    int64_t channels;
    int64_t block; // channels of a group
    int64_t groups;
    int64_t segment; // floats
    double epsilon;
    double momentum;
    bool training;
    bool unbiased;
    bool relu; // fused
    bool adds; // fused: a residual
    bool wants_team;
    bool by_segments; // fewer groups than threads
} norm_state;

// The operands of a run, in one shape for all ops of the family; NULL where there is none.
typedef struct norm_operands {
    const float *x, *scale, *bias, *mean, *variance; // backward: variance is the inverse deviation
    const float *residual;                           // forward
    const float *dy, *dy_2, *y;                      // backward
    float *result;                                   // y, or dx
    float *dresidual;
    double *batch[2];  // forward: mean and variance, not rounded
    float *outputs[4]; // forward: running mean, variance, saved mean, inverse; backward: dscale,
                       // dbias, dmean, dvariance
} norm_operands;

typedef struct norm_prepared {
    norm_state state;
    uint32_t input_count;
    uint32_t output_count;
} norm_prepared;

#define NORM_AT(pointer, i) (*(const norm_vector *)(const void *)((pointer) + (i)))
#define NORM_STORE(pointer, i, vector) (*(norm_vector *)(void *)((pointer) + (i)) = (vector))

// y = (x - mean) * factor + bias. Forward and backward passes must agree on its sign.
#define NORM_MAP(x, l)                                                                             \
    (((x)-NORM_AT((l)->mean, 0)) * NORM_AT((l)->factor, 0) + NORM_AT((l)->bias, 0))
#define NORM_RELU(y) ((norm_vector)((norm_mask)(y) & ~((y) <= (norm_vector){0})))
#define NORM_PASS(dy, y) ((norm_vector)((norm_mask)(dy) & ((y) > (norm_vector){0})))

// Offset of the segment of sample n in group g.
static inline int64_t norm_at(const norm_state *state, int64_t n, int64_t g) {
    return (n * state->groups + g) * state->segment;
}

// Gives the lanes of a group's channel `lane` a number.
static inline void norm_set_lanes(const norm_state *state, int64_t lane, float number,
                                  float *lanes) {
    for (int64_t j = lane; j < NORM_LANES; j += state->block) {
        lanes[j] = number;
    }
}

static inline void norm_set_output(float *output, int64_t channel, double number) {
    if (output != NULL) output[channel] = (float)number;
}

static inline float *norm_output(const pen_cpu_call *call, uint32_t output, uint32_t count) {
    return output < count ? call->outputs[output] : NULL;
}

// Workspace: moments or sums of every segment, then the lanes of every group.
static inline norm_lanes *norm_workspace_lanes(const norm_state *state, const pen_cpu_call *call,
                                               size_t bytes_of_one) {
    return (norm_lanes *)(void *)((char *)call->workspace +
                                  (size_t)(state->groups * state->batch) * bytes_of_one);
}

// Members of pen_cpu_kernel; compiled at several levels, hence the macros.
#define norm_supports PEN_CPU_JOIN(pen_norm_supports, PEN_CPU_LEVEL)
bool norm_supports(const pen_cpu_request *request);
// `bytes_of_segment` is what a pass keeps of each segment in workspace.
#define norm_prepare PEN_CPU_JOIN(pen_norm_prepare, PEN_CPU_LEVEL)
pen_status norm_prepare(const pen_cpu_request *request, size_t bytes_of_segment, void **out_state,
                        uint64_t *out_workspace_bytes);

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_NORM_SEGMENTS_H
