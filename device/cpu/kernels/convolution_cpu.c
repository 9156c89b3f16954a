// The gradient of a convolution's bias: the sum of each channel of dy, plain or blocked. (The
// convolutions themselves are device/cpu/onednn/onednn_convolution.c.)
//
// What one sample has of a channel, or of a block of channels, is contiguous; rows of 16 floats are
// summed lane by lane in pieces, and pieces, samples and lanes are joined in fixed order, in
// double. Threads share out the channels, so numbers do not depend on the team.

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/cpu_layout.h"
#include "graph/graph.h"

#define BIAS_LANES 16
#define BIAS_PIECE_ROWS 64
// Below this many elements a sum is not worth a team.
#define BIAS_TEAM_ELEMENTS 16384

typedef struct bias_state {
    int64_t batch;
    int64_t channels;
    int64_t block;
    int64_t groups;
    int64_t segment; // floats that a sample has of a group
    bool wants_team;
} bias_state;

// Adds `rows` rows of lanes to `sums`.
static inline void bias_add_rows(const float *x, int64_t rows, double *sums) {
    for (int64_t first = 0; first < rows; first += BIAS_PIECE_ROWS) {
        const int64_t last = rows - first < BIAS_PIECE_ROWS ? rows : first + BIAS_PIECE_ROWS;
        float piece[BIAS_LANES] = {0};
        for (int64_t r = first; r < last; r++) {
            for (int j = 0; j < BIAS_LANES; j++) {
                piece[j] += x[r * BIAS_LANES + j];
            }
        }
        for (int j = 0; j < BIAS_LANES; j++) {
            sums[j] += (double)piece[j];
        }
    }
}

// Sums of one group of channels, in double and in a fixed order of rows and lanes.
static void bias_group(const bias_state *state, const float *dy, int64_t group, float *db,
                       bool accumulate) {
    double sums[BIAS_LANES] = {0};
    const int64_t rows = state->segment / BIAS_LANES;
    for (int64_t n = 0; n < state->batch; n++) {
        const float *x = dy + (n * state->groups + group) * state->segment;
        bias_add_rows(x, rows, sums);
        for (int64_t i = rows * BIAS_LANES; i < state->segment; i++) {
            sums[i - rows * BIAS_LANES] += (double)x[i];
        }
    }
    for (int64_t lane = 0; lane < state->block; lane++) {
        const int64_t channel = group * state->block + lane;
        if (channel >= state->channels) break;
        double sum = accumulate ? (double)db[channel] : 0;
        for (int64_t j = lane; j < BIAS_LANES; j += state->block) {
            sum += sums[j];
        }
        db[channel] = (float)sum;
    }
}

static pen_status bias_run(const pen_cpu_call *call) {
    const bias_state *state = call->state;
    const float *dy = call->inputs[0];
    float *db = call->outputs[0];
#pragma omp parallel for schedule(static) if (state->wants_team)
    for (int64_t group = 0; group < state->groups; group++) {
        bias_group(state, dy, group, db, call->accumulate);
    }
    return PEN_OK;
}

static bool bias_supports(const pen_cpu_request *request) {
    const pen_value *dy = pen_graph_value(request->graph, request->node->inputs[0]);
    const bool lies_well = dy->layout == PEN_LAYOUT_PLAIN || pen_cpu_layout_block(dy->layout) > 1;
    return dy->type.element == PEN_FLOAT32 && lies_well;
}

static pen_status bias_prepare(const pen_cpu_request *request, void **out_state,
                               uint64_t *out_workspace_bytes) {
    const pen_value *dy = pen_graph_value(request->graph, request->node->inputs[0]);
    const pen_shape *shape = &dy->type.shape;
    bias_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->batch = shape->dims[0];
    state->channels = shape->dims[1];
    state->block = pen_cpu_layout_block(dy->layout);
    state->groups = (state->channels + state->block - 1) / state->block;
    state->segment = pen_shape_count(shape, 2, shape->rank) * state->block;
    state->wants_team = pen_shape_element_count(shape) >= BIAS_TEAM_ELEMENTS;
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static const pen_cpu_kernel convolution_kernels[] = {
    {PEN_CPU_ENTRY("conv_backward_bias", "lanes", bias_supports, bias_prepare, bias_run),
     .can_accumulate = true},
};

PEN_CPU_FAMILY_OF(convolution);
