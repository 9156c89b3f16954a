#include <math.h>

#include "device/reference/reference_position.h"
#include "graph/op.h"
#include "graph/ops/product/convolution_geometry.h"

// The window of one output element: its taps in row-major order.
typedef struct pool_window {
    const pen_conv_geometry *geometry;
    int64_t at[PEN_SPATIAL_LIMIT]; // the output position
    int64_t channel_base;          // of the input channel
} pool_window;

static int64_t pool_volume(const int64_t sizes[PEN_SPATIAL_LIMIT]) {
    return sizes[0] * sizes[1] * sizes[2];
}

// The window of output element `index`, counted over the whole output.
static pool_window pool_window_of(const pen_conv_geometry *g, int64_t index) {
    pool_window window = {.geometry = g};
    for (uint32_t d = PEN_SPATIAL_LIMIT; d-- > 0;) {
        window.at[d] = index % g->output_size[d];
        index /= g->output_size[d];
    }
    window.channel_base = index * pool_volume(g->input_size); // what is left: sample and channel
    return window;
}

// Where tap `tap` lies: the element index in x, or -1 when outside the input. *out_in_pads says
// whether it is inside the input or its pads.
static int64_t pool_tap(const pool_window *window, int64_t tap, bool *out_in_pads) {
    const pen_conv_geometry *g = window->geometry;
    int64_t position[PEN_SPATIAL_LIMIT];
    bool inside = true;
    *out_in_pads = true;
    for (uint32_t d = PEN_SPATIAL_LIMIT; d-- > 0;) {
        const int64_t k = tap % g->kernel_size[d];
        tap /= g->kernel_size[d];
        position[d] = window->at[d] * g->stride[d] + k * g->dilation[d] - g->pad_begin[d];
        inside &= position[d] >= 0 && position[d] < g->input_size[d];
        *out_in_pads &= position[d] < g->input_size[d] + g->pad_end[d];
    }
    if (!inside) return -1;
    int64_t offset = 0;
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        offset = offset * g->input_size[d] + position[d];
    }
    return window->channel_base + offset;
}

// The element of the window that is its maximum, the first of equals; -1 when none is inside. As
// in PyTorch, not-a-number counts as larger than all.
static int64_t pool_maximum(const pool_window *window, const pen_tensor *x) {
    const int64_t taps = pool_volume(window->geometry->kernel_size);
    int64_t best = -1;
    for (int64_t tap = 0; tap < taps; tap++) {
        bool in_pads;
        const int64_t at = pool_tap(window, tap, &in_pads);
        if (at < 0) continue;
        const double number = pen_tensor_get(x, at);
        if (best < 0 || number > pen_tensor_get(x, best) || isnan(number)) best = at;
    }
    return best;
}

static double pool_lowest(pen_element_type element) {
    if (element == PEN_INT8) return INT8_MIN;
    return element == PEN_UINT8 ? 0 : -(double)INFINITY;
}

static pen_status max_pool_run(const pen_reference_call *call) {
    pen_conv_geometry geometry;
    PEN_TRY(pen_pool_geometry(call->graph, call->node, &geometry));
    const pen_tensor *x = &call->inputs[0];
    const pen_tensor *y = &call->outputs[0];
    const pen_tensor *indices = pen_reference_output(call, 1);
    for (int64_t i = 0; i < pen_tensor_count(y); i++) {
        const pool_window window = pool_window_of(&geometry, i);
        const int64_t best = pool_maximum(&window, x);
        pen_tensor_set(y, i, best < 0 ? pool_lowest(x->type.element) : pen_tensor_get(x, best));
        if (indices != NULL) pen_tensor_set_int(indices, i, best);
    }
    return PEN_OK;
}

// The number of taps that the average divides by.
static int64_t pool_divisor(const pool_window *window, bool count_pads) {
    int64_t count = 0;
    for (int64_t tap = 0; tap < pool_volume(window->geometry->kernel_size); tap++) {
        bool in_pads;
        const bool inside = pool_tap(window, tap, &in_pads) >= 0;
        count += count_pads ? in_pads : inside;
    }
    return count > 0 ? count : 1;
}

static pen_status average_pool_run(const pen_reference_call *call) {
    pen_conv_geometry geometry;
    PEN_TRY(pen_pool_geometry(call->graph, call->node, &geometry));
    const bool count_pads = pen_node_int(call->node, "count_include_pad") != 0;
    const pen_tensor *y = &call->outputs[0];
    for (int64_t i = 0; i < pen_tensor_count(y); i++) {
        const pool_window window = pool_window_of(&geometry, i);
        double sum = 0;
        for (int64_t tap = 0; tap < pool_volume(geometry.kernel_size); tap++) {
            bool in_pads;
            const int64_t at = pool_tap(&window, tap, &in_pads);
            if (at >= 0) sum += pen_tensor_get(&call->inputs[0], at);
        }
        pen_tensor_set(y, i, sum / (double)pool_divisor(&window, count_pads));
    }
    return PEN_OK;
}

static pen_status max_pool_backward_run(const pen_reference_call *call) {
    pen_conv_geometry geometry;
    double *sums; // windows overlap
    PEN_TRY(pen_pool_backward_geometry(call->graph, call->node, &geometry));
    PEN_TRY(PEN_NEW(call->scratch, (size_t)pen_tensor_count(&call->outputs[0]), &sums));
    for (int64_t i = 0; i < pen_tensor_count(&call->inputs[0]); i++) {
        const pool_window window = pool_window_of(&geometry, i);
        const int64_t best = pool_maximum(&window, &call->inputs[1]);
        if (best >= 0) sums[best] += pen_tensor_get(&call->inputs[0], i);
    }
    reference_store_sums(&call->outputs[0], sums);
    return PEN_OK;
}

static pen_status average_pool_backward_run(const pen_reference_call *call) {
    pen_conv_geometry geometry;
    double *sums;
    PEN_TRY(pen_pool_backward_geometry(call->graph, call->node, &geometry));
    PEN_TRY(PEN_NEW(call->scratch, (size_t)pen_tensor_count(&call->outputs[0]), &sums));
    const bool count_pads = pen_node_int(call->node, "count_include_pad") != 0;
    for (int64_t i = 0; i < pen_tensor_count(&call->inputs[0]); i++) {
        const pool_window window = pool_window_of(&geometry, i);
        const double share =
            pen_tensor_get(&call->inputs[0], i) / (double)pool_divisor(&window, count_pads);
        for (int64_t tap = 0; tap < pool_volume(geometry.kernel_size); tap++) {
            bool in_pads;
            const int64_t at = pool_tap(&window, tap, &in_pads);
            if (at >= 0) sums[at] += share;
        }
    }
    reference_store_sums(&call->outputs[0], sums);
    return PEN_OK;
}

// Elements of a channel of one sample.
static int64_t global_channel_size(const pen_tensor *tensor) {
    return pen_shape_count(&tensor->type.shape, 2, tensor->type.shape.rank);
}

// The index of the largest element of channel `channel` (counted over all samples), the first of
// equals.
static int64_t global_maximum(const pen_tensor *x, int64_t channel) {
    const int64_t size = global_channel_size(x);
    int64_t best = channel * size;
    for (int64_t i = 0; i < size; i++) {
        const double number = pen_tensor_get(x, channel * size + i);
        if (number > pen_tensor_get(x, best) || isnan(number)) best = channel * size + i;
    }
    return best;
}

static pen_status global_average_pool_run(const pen_reference_call *call) {
    const int64_t size = global_channel_size(&call->inputs[0]);
    for (int64_t channel = 0; channel < pen_tensor_count(&call->outputs[0]); channel++) {
        double sum = 0;
        for (int64_t i = 0; i < size; i++) {
            sum += pen_tensor_get(&call->inputs[0], channel * size + i);
        }
        pen_tensor_set(&call->outputs[0], channel, sum / (double)size);
    }
    return PEN_OK;
}

static pen_status global_max_pool_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0];
    for (int64_t channel = 0; channel < pen_tensor_count(&call->outputs[0]); channel++) {
        pen_tensor_set(&call->outputs[0], channel, pen_tensor_get(x, global_maximum(x, channel)));
    }
    return PEN_OK;
}

static pen_status global_average_pool_backward_run(const pen_reference_call *call) {
    const pen_tensor *dx = &call->outputs[0];
    const int64_t size = global_channel_size(dx);
    for (int64_t i = 0; i < pen_tensor_count(dx); i++) {
        pen_tensor_set(dx, i, pen_tensor_get(&call->inputs[0], i / size) / (double)size);
    }
    return PEN_OK;
}

static pen_status global_max_pool_backward_run(const pen_reference_call *call) {
    const pen_tensor *dx = &call->outputs[0];
    for (int64_t i = 0; i < pen_tensor_count(dx); i++) {
        pen_tensor_set(dx, i, 0);
    }
    for (int64_t channel = 0; channel < pen_tensor_count(&call->inputs[0]); channel++) {
        pen_tensor_set(dx, global_maximum(&call->inputs[1], channel),
                       pen_tensor_get(&call->inputs[0], channel));
    }
    return PEN_OK;
}

static const pen_reference_kernel pooling_kernels[] = {
    {"max_pool", max_pool_run, NULL},
    {"average_pool", average_pool_run, NULL},
    {"global_average_pool", global_average_pool_run, NULL},
    {"global_max_pool", global_max_pool_run, NULL},
    {"max_pool_backward", max_pool_backward_run, NULL},
    {"average_pool_backward", average_pool_backward_run, NULL},
    {"global_average_pool_backward", global_average_pool_backward_run, NULL},
    {"global_max_pool_backward", global_max_pool_backward_run, NULL},
};

PEN_REFERENCE_FAMILY(pooling);
