// The gradient of the weights of convolutions of one channel each, plain: libraries take long for
// it.
//
// A channel of x is copied between zeros, one of dy widened to whole vectors; a weight's gradient
// is then a product of dy with x from where the weight begins. Vectors are added up over a channel
// of a sample, their lanes and samples in order, in double. Threads share out the channels, so
// numbers do not depend on the team.
#include <omp.h>
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/graph.h"
#include "graph/ops/product/convolution_geometry.h"

#define DEPTHWISE_LANES 16
#define DEPTHWISE_KERNEL 64 // weights of a channel, at most
// The dimensions of a picture.
#define DEPTHWISE_Y (PEN_SPATIAL_LIMIT - 2)
#define DEPTHWISE_X (PEN_SPATIAL_LIMIT - 1)
#define DEPTHWISE_TEAM_ELEMENTS 16384

typedef float depthwise_vector __attribute__((vector_size(4 * DEPTHWISE_LANES)));

typedef struct depthwise_state depthwise_state;

// Adds row `row` of the kernel's gradient, of one channel of one sample, to `sums`.
typedef void (*depthwise_row_fn)(const depthwise_state *state, const float *x, const float *dy,
                                 int64_t row, double *sums);

struct depthwise_state {
    pen_conv_geometry g;
    int64_t x_rows, x_width; // of the copy of a channel
    int64_t dy_width;        // whole vectors
    int64_t x_floats;        // of the copy
    int64_t lane_floats;     // of workspace for one thread
    depthwise_row_fn add_row;
};

#define DEPTHWISE_ADD_ROW(width)                                                                   \
    static void depthwise_add_row_##width(const depthwise_state *state, const float *x,            \
                                          const float *dy, int64_t row, double *sums) {            \
        depthwise_vector totals[width] = {0};                                                      \
        for (int64_t y = 0; y < state->g.output_size[DEPTHWISE_Y]; y++) {                          \
            const float *from = x + (y * state->g.stride[DEPTHWISE_Y] + row) * state->x_width;     \
            const float *by = dy + y * state->dy_width;                                            \
            for (int64_t i = 0; i < state->dy_width; i += DEPTHWISE_LANES) {                       \
                depthwise_vector d, tap;                                                           \
                memcpy(&d, by + i, sizeof d);                                                      \
                for (int k = 0; k < (width); k++) {                                                \
                    memcpy(&tap, from + i + k, sizeof tap);                                        \
                    totals[k] += d * tap;                                                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int k = 0; k < (width); k++) {                                                        \
            for (int j = 0; j < DEPTHWISE_LANES; j++) {                                            \
                sums[k] += (double)totals[k][j];                                                   \
            }                                                                                      \
        }                                                                                          \
    }
DEPTHWISE_ADD_ROW(3)
DEPTHWISE_ADD_ROW(5)
DEPTHWISE_ADD_ROW(7)

static depthwise_row_fn depthwise_row_of(int64_t width) {
    if (width == 3) return depthwise_add_row_3;
    if (width == 5) return depthwise_add_row_5;
    return width == 7 ? depthwise_add_row_7 : NULL;
}

static bool depthwise_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    pen_conv_geometry g;
    const pen_status status = pen_conv_backward_weight_geometry(request->graph, node, &g);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the others report it");
        return false;
    }
    const int64_t reached = g.output_size[DEPTHWISE_X] + g.kernel_size[DEPTHWISE_X] - 1;
    if (g.pad_begin[DEPTHWISE_Y] < 0 || g.pad_begin[DEPTHWISE_X] < 0) return false;
    if (reached < g.pad_begin[DEPTHWISE_X] + g.input_size[DEPTHWISE_X]) return false;
    return pen_cpu_is_plain_float(request, node->inputs[0]) &&
           pen_cpu_is_plain_float(request, node->inputs[1]) &&
           pen_cpu_is_plain_float(request, node->outputs[0]) && g.spatial_rank == 2 &&
           g.group_count == g.input_channels && g.group_count == g.output_channels &&
           g.dilation[DEPTHWISE_Y] == 1 && g.dilation[DEPTHWISE_X] == 1 &&
           g.stride[DEPTHWISE_X] == 1 && depthwise_row_of(g.kernel_size[DEPTHWISE_X]) != NULL &&
           g.kernel_size[DEPTHWISE_Y] * g.kernel_size[DEPTHWISE_X] <= DEPTHWISE_KERNEL;
}

// Planes are copied with room around them, so that the loops need no bounds.
static pen_status depthwise_prepare(const pen_cpu_request *request, void **out_state,
                                    uint64_t *out_workspace_bytes) {
    depthwise_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    pen_conv_geometry *g = &state->g;
    PEN_TRY(pen_conv_backward_weight_geometry(request->graph, request->node, g));
    const int64_t read =
        (g->output_size[DEPTHWISE_Y] - 1) * g->stride[DEPTHWISE_Y] + g->kernel_size[DEPTHWISE_Y];
    const int64_t given = g->pad_begin[DEPTHWISE_Y] + g->input_size[DEPTHWISE_Y];
    const int64_t lanes = DEPTHWISE_LANES;
    state->x_rows = read > given ? read : given;
    state->dy_width = (g->output_size[DEPTHWISE_X] + lanes - 1) / lanes * lanes;
    state->x_width = state->dy_width + lanes; // what is read behind a row's end is there
    state->x_floats = (state->x_rows + 1) * state->x_width;
    state->lane_floats = state->x_floats + g->output_size[DEPTHWISE_Y] * state->dy_width;
    state->add_row = depthwise_row_of(g->kernel_size[DEPTHWISE_X]);
    *out_state = state;
    *out_workspace_bytes = (uint64_t)state->lane_floats * request->thread_count * sizeof(float);
    return PEN_OK;
}

static void depthwise_copy(const float *from, int64_t rows, int64_t width, float *to,
                           int64_t to_width) {
    for (int64_t row = 0; row < rows; row++) {
        memcpy(to + row * to_width, from + row * width, (size_t)width * sizeof *to);
    }
}

// What one channel's weights are given by all samples. What lies around `x` and behind `dy` is 0.
static void depthwise_channel(const pen_cpu_call *call, int64_t channel, float *x, float *dy) {
    const depthwise_state *state = call->state;
    const pen_conv_geometry *g = &state->g;
    const int64_t rows = g->kernel_size[DEPTHWISE_Y], width = g->kernel_size[DEPTHWISE_X];
    float *out = (float *)call->outputs[0] + channel * rows * width;
    double sums[DEPTHWISE_KERNEL] = {0};
    float *inside = x + g->pad_begin[DEPTHWISE_Y] * state->x_width + g->pad_begin[DEPTHWISE_X];
    for (int64_t n = 0; n < g->batch; n++) {
        const int64_t at = n * g->group_count + channel;
        depthwise_copy((const float *)call->inputs[0] +
                           at * g->input_size[DEPTHWISE_Y] * g->input_size[DEPTHWISE_X],
                       g->input_size[DEPTHWISE_Y], g->input_size[DEPTHWISE_X], inside,
                       state->x_width);
        depthwise_copy((const float *)call->inputs[1] +
                           at * g->output_size[DEPTHWISE_Y] * g->output_size[DEPTHWISE_X],
                       g->output_size[DEPTHWISE_Y], g->output_size[DEPTHWISE_X], dy,
                       state->dy_width);
        for (int64_t row = 0; row < rows; row++) {
            state->add_row(state, x, dy, row, sums + row * width);
        }
    }
    for (int64_t k = 0; k < rows * width; k++) {
        out[k] = (float)(call->accumulate ? (double)out[k] + sums[k] : sums[k]);
    }
}

static pen_status depthwise_run(const pen_cpu_call *call) {
    const depthwise_state *state = call->state;
    const pen_conv_geometry *g = &state->g;
    const int64_t work =
        g->batch * g->group_count * g->input_size[DEPTHWISE_Y] * g->input_size[DEPTHWISE_X];
#pragma omp parallel if (work > DEPTHWISE_TEAM_ELEMENTS)
    {
        float *lane = (float *)call->workspace + omp_get_thread_num() * state->lane_floats;
        memset(lane, 0, (size_t)state->lane_floats * sizeof *lane);
#pragma omp for schedule(static)
        for (int64_t channel = 0; channel < g->group_count; channel++) {
            depthwise_channel(call, channel, lane, lane + state->x_floats);
        }
    }
    return PEN_OK;
}

static bool depthwise_prefers(const pen_cpu_request *request) {
    (void)request;
    return true;
}

static const pen_cpu_kernel depthwise_kernels[] = {
    {PEN_CPU_ENTRY("conv_backward_weight", "depthwise", depthwise_supports, depthwise_prepare,
                   depthwise_run),
     .can_accumulate = true, .prefers = depthwise_prefers},
};

PEN_CPU_FAMILY_OF(depthwise);
