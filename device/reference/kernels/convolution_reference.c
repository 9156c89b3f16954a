// Convolutions as sums over taps. All three products of a convolution (y from x and w, dx from dy
// and w, dw from x and dy) visit the same pairs of positions, so one walk serves them all.

#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/ops/product/convolution_geometry.h"

// One multiplication of a convolution: element indices into x, w and y.
typedef struct conv_term {
    int64_t x, w, y;
} conv_term;

typedef void (*conv_term_fn)(const conv_term *term, const pen_tensor *operands, double *sums);

// The input position that tap `k` of output position `o` reads; -1 in the padding.
static int64_t conv_position(const pen_conv_geometry *g, uint32_t d, int64_t o, int64_t k) {
    const int64_t at = o * g->stride[d] + k * g->dilation[d] - g->pad_begin[d];
    return at >= 0 && at < g->input_size[d] ? at : -1;
}

// Splits `index` into positions in three dimensions of `sizes`.
static void conv_split(int64_t index, const int64_t sizes[PEN_SPATIAL_LIMIT],
                       int64_t out_at[PEN_SPATIAL_LIMIT]) {
    for (uint32_t d = PEN_SPATIAL_LIMIT; d-- > 0;) {
        out_at[d] = index % sizes[d];
        index /= sizes[d];
    }
}

static int64_t conv_volume(const int64_t sizes[PEN_SPATIAL_LIMIT]) {
    return sizes[0] * sizes[1] * sizes[2];
}

// The offset in its channel of what tap `tap` of output position `position` reads; -1 in padding.
static int64_t conv_source(const pen_conv_geometry *g, int64_t position, int64_t tap) {
    int64_t o[PEN_SPATIAL_LIMIT], k[PEN_SPATIAL_LIMIT];
    conv_split(position, g->output_size, o);
    conv_split(tap, g->kernel_size, k);
    int64_t offset = 0;
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        const int64_t at = conv_position(g, d, o[d], k[d]);
        if (at < 0) return -1;
        offset = offset * g->input_size[d] + at;
    }
    return offset;
}

// Visits every term of one sample, one output channel and one of its input channels.
static void conv_walk_channel(const pen_conv_geometry *g, conv_term base, conv_term_fn visit,
                              const pen_tensor *operands, double *sums) {
    const int64_t outputs = conv_volume(g->output_size);
    const int64_t taps = conv_volume(g->kernel_size);
    for (int64_t position = 0; position < outputs; position++) {
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t offset = conv_source(g, position, tap);
            if (offset < 0) continue;
            const conv_term term = {base.x + offset, base.w + tap, base.y + position};
            visit(&term, operands, sums);
        }
    }
}

static void conv_walk(const pen_conv_geometry *g, conv_term_fn visit, const pen_tensor *operands,
                      double *sums) {
    const int64_t input_channels = g->input_channels / g->group_count; // of a group
    const int64_t output_channels = g->output_channels / g->group_count;
    for (int64_t n = 0; n < g->batch; n++) {
        for (int64_t m = 0; m < g->output_channels; m++) {
            const int64_t group = m / output_channels;
            for (int64_t c = 0; c < input_channels; c++) {
                const int64_t x_channel = n * g->input_channels + group * input_channels + c;
                const conv_term base = {
                    x_channel * conv_volume(g->input_size),
                    (m * input_channels + c) * conv_volume(g->kernel_size),
                    (n * g->output_channels + m) * conv_volume(g->output_size),
                };
                conv_walk_channel(g, base, visit, operands, sums);
            }
        }
    }
}

static void conv_add_to_y(const conv_term *term, const pen_tensor *operands, double *sums) {
    sums[term->y] += pen_tensor_get(&operands[0], term->x) * pen_tensor_get(&operands[1], term->w);
}

static void conv_add_to_x(const conv_term *term, const pen_tensor *operands, double *sums) {
    sums[term->x] += pen_tensor_get(&operands[0], term->y) * pen_tensor_get(&operands[1], term->w);
}

static void conv_add_to_w(const conv_term *term, const pen_tensor *operands, double *sums) {
    sums[term->w] += pen_tensor_get(&operands[0], term->x) * pen_tensor_get(&operands[1], term->y);
}

typedef struct conv_rule {
    pen_status (*geometry)(const pen_graph *graph, const pen_node *node, pen_conv_geometry *out);
    conv_term_fn visit;
} conv_rule;

// Sums the rule's terms in double and stores them, with the bias (if any) of each channel.
static pen_status conv_run(const pen_reference_call *call) {
    const conv_rule *rule = call->rule;
    const pen_tensor *y = &call->outputs[0];
    const pen_tensor *bias = call->node->input_count > 2 ? &call->inputs[2] : NULL;
    const int64_t count = pen_tensor_count(y);
    pen_conv_geometry geometry;
    double *sums;
    PEN_TRY(rule->geometry(call->graph, call->node, &geometry));
    PEN_TRY(PEN_NEW(call->scratch, (size_t)count, &sums));
    conv_walk(&geometry, rule->visit, call->inputs, sums);
    const int64_t channel_size = pen_shape_count(&y->type.shape, 2, y->type.shape.rank);
    for (int64_t i = 0; bias != NULL && i < count; i++) {
        sums[i] += pen_tensor_get(bias, i / channel_size % y->type.shape.dims[1]);
    }
    reference_store_sums(y, sums);
    return PEN_OK;
}

static pen_status conv_backward_bias_run(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0];
    const pen_shape *shape = &dy->type.shape;
    const int64_t channel_count = shape->dims[1];
    const int64_t channel_size = pen_shape_count(shape, 2, shape->rank);
    for (int64_t m = 0; m < channel_count; m++) {
        double sum = 0;
        for (int64_t n = 0; n < shape->dims[0]; n++) {
            for (int64_t i = 0; i < channel_size; i++) {
                sum += pen_tensor_get(dy, (n * channel_count + m) * channel_size + i);
            }
        }
        pen_tensor_set(&call->outputs[0], m, sum);
    }
    return PEN_OK;
}

#define CONV(geometry, visit) conv_run, PEN_REFERENCE_RULE(conv_rule, geometry, visit)

static const pen_reference_kernel convolution_kernels[] = {
    {"conv", CONV(pen_conv_geometry_of, conv_add_to_y)},
    {"conv_transpose", CONV(pen_conv_transpose_geometry, conv_add_to_x)},
    {"conv_backward_input", CONV(pen_conv_backward_input_geometry, conv_add_to_x)},
    {"conv_backward_weight", CONV(pen_conv_backward_weight_geometry, conv_add_to_w)},
    {"conv_backward_bias", conv_backward_bias_run, NULL},
};

PEN_REFERENCE_FAMILY(convolution);
