#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "device/reference/reference_kernel.h"
#include "device/running_statistic.h"
#include "graph/graph.h"
#include "graph/op.h"

// The elements of one channel: element i of sample n is at (n * channel_count + c) * size + i.
typedef struct normalization_channel {
    int64_t c, channel_count;
    int64_t batch;
    int64_t size; // of one sample
} normalization_channel;

static normalization_channel normalization_channel_of(const pen_tensor *x, int64_t c) {
    const pen_shape *shape = &x->type.shape;
    return (normalization_channel){c, shape->dims[1], shape->dims[0],
                                   pen_shape_count(shape, 2, shape->rank)};
}

static int64_t normalization_element_count(const normalization_channel *channel) {
    return channel->batch * channel->size;
}

// The index of element k of the channel, counted over all samples.
static int64_t normalization_at(const normalization_channel *channel, int64_t k) {
    const int64_t n = k / channel->size;
    return (n * channel->channel_count + channel->c) * channel->size + k % channel->size;
}

static void batch_statistics(const pen_tensor *x, const normalization_channel *channel,
                             double *out_mean, double *out_variance) {
    const int64_t count = normalization_element_count(channel);
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < count; k++) {
        sum += pen_tensor_get(x, normalization_at(channel, k));
    }
    const double mean = sum / (double)count;
    for (int64_t k = 0; k < count; k++) {
        const double distance = pen_tensor_get(x, normalization_at(channel, k)) - mean;
        squares += distance * distance;
    }
    *out_mean = mean;
    *out_variance = squares / (double)count;
}

static void normalization_set_output(const pen_reference_call *call, uint32_t output, int64_t index,
                                     double number) {
    if (pen_reference_output(call, output) == NULL) return;
    pen_tensor_set(&call->outputs[output], index, number);
}

// Outputs 1 to 4 of channel c in training mode.
static void batch_normalization_save(const pen_reference_call *call,
                                     const normalization_channel *channel, double mean,
                                     double variance) {
    const double momentum = pen_node_float(call->node, "momentum");
    const double epsilon = pen_node_float(call->node, "epsilon");
    const double count = (double)normalization_element_count(channel);
    const bool unbiased = pen_node_int(call->node, "unbiased") != 0;
    const double kept = unbiased ? variance * count / (count - 1) : variance;
    const int64_t c = channel->c;
    const double old_mean = pen_tensor_get(&call->inputs[3], c);
    const double old_variance = pen_tensor_get(&call->inputs[4], c);
    normalization_set_output(call, 1, c, pen_running_statistic(old_mean, momentum, mean));
    normalization_set_output(call, 2, c, pen_running_statistic(old_variance, momentum, kept));
    normalization_set_output(call, 5, c, mean);
    normalization_set_output(call, 6, c, kept);
    normalization_set_output(call, 3, c, mean);
    normalization_set_output(call, 4, c, 1 / sqrt(variance + epsilon));
}

// Also of the fused ops: with relu, and with a residual.
static pen_status batch_normalization_run(const pen_reference_call *call) {
    const bool relu = strstr(call->node->op->name, "relu") != NULL;
    const bool adds = call->node->input_count > 5;
    const pen_tensor *x = &call->inputs[0];
    const bool training = pen_node_int(call->node, "training_mode") != 0;
    const double epsilon = pen_node_float(call->node, "epsilon");
    for (int64_t c = 0; c < x->type.shape.dims[1]; c++) {
        const normalization_channel channel = normalization_channel_of(x, c);
        const double scale = pen_tensor_get(&call->inputs[1], c);
        const double bias = pen_tensor_get(&call->inputs[2], c);
        double mean = pen_tensor_get(&call->inputs[3], c);
        double variance = pen_tensor_get(&call->inputs[4], c);
        if (training) {
            batch_statistics(x, &channel, &mean, &variance);
            batch_normalization_save(call, &channel, mean, variance);
        }
        const double inverse = 1 / sqrt(variance + epsilon);
        for (int64_t k = 0; k < normalization_element_count(&channel); k++) {
            const int64_t at = normalization_at(&channel, k);
            double y = (pen_tensor_get(x, at) - mean) * inverse * scale + bias;
            if (adds) y += pen_tensor_get(&call->inputs[5], at);
            pen_tensor_set(&call->outputs[0], at, relu && y <= 0 ? 0 : y);
        }
    }
    return PEN_OK;
}

// With h = (x - mean) * inverse, and means over the channel's elements:
//   training  dx = scale * inverse * (dy - mean(dy) - h * mean(dy * h))
//   frozen    dx = scale * inverse * dy
//   dscale = sum(dy * h), dbias = sum(dy)
//   frozen    dmean = -scale * inverse * dbias, dvariance = -scale * inverse^2 * dscale / 2
static void batch_normalization_backward_channel(const pen_reference_call *call, int64_t c) {
    const pen_tensor *dy = &call->inputs[0], *x = &call->inputs[1];
    const bool training = pen_node_int(call->node, "training_mode") != 0;
    const double scale = pen_tensor_get(&call->inputs[2], c);
    const double mean = pen_tensor_get(&call->inputs[3], c);
    double inverse = pen_tensor_get(&call->inputs[4], c);
    if (!training) inverse = 1 / sqrt(inverse + pen_node_float(call->node, "epsilon"));
    const normalization_channel channel = normalization_channel_of(x, c);
    const int64_t count = normalization_element_count(&channel);
    double dscale = 0, dbias = 0;
    for (int64_t k = 0; k < count; k++) {
        const int64_t at = normalization_at(&channel, k);
        dbias += pen_tensor_get(dy, at);
        dscale += pen_tensor_get(dy, at) * (pen_tensor_get(x, at) - mean) * inverse;
    }
    for (int64_t k = 0; k < count; k++) {
        const int64_t at = normalization_at(&channel, k);
        double dx = pen_tensor_get(dy, at);
        if (training) {
            const double h = (pen_tensor_get(x, at) - mean) * inverse;
            dx -= (dbias + h * dscale) / (double)count;
        }
        pen_tensor_set(&call->outputs[0], at, scale * inverse * dx);
    }
    normalization_set_output(call, 1, c, dscale);
    normalization_set_output(call, 2, c, dbias);
    normalization_set_output(call, 3, c, -scale * inverse * dbias);
    normalization_set_output(call, 4, c, -scale * inverse * inverse * dscale / 2);
}

static pen_status batch_normalization_backward_run(const pen_reference_call *call) {
    for (int64_t c = 0; c < call->inputs[0].type.shape.dims[1]; c++) {
        batch_normalization_backward_channel(call, c);
    }
    return PEN_OK;
}

// Runs the backward pass of the normalisation alone, for `dy`.
static pen_status batch_normalization_backward_of(const pen_reference_call *call,
                                                  const pen_tensor *dy, uint32_t x, uint32_t scale,
                                                  uint32_t mean, uint32_t dx) {
    const pen_tensor inputs[] = {*dy, call->inputs[x], call->inputs[scale], call->inputs[mean],
                                 call->inputs[mean + 1]};
    pen_tensor outputs[5] = {{{0}, NULL}};
    pen_node node = *call->node;
    node.output_count = call->node->output_count - dx;
    for (uint32_t i = 0; i < node.output_count; i++) {
        outputs[i] = call->outputs[dx + i];
    }
    pen_reference_call inner = *call;
    inner.node = &node;
    inner.inputs = inputs;
    inner.outputs = outputs;
    return batch_normalization_backward_run(&inner);
}

// Which values relu cut is found by making its input again, as the fused kernel does: the mask is
// not kept.
static pen_status batch_normalization_relu_backward_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[1];
    const bool training = pen_node_int(call->node, "training_mode") != 0;
    const double epsilon = pen_node_float(call->node, "epsilon");
    pen_tensor dy = {x->type, NULL};
    char *masked;
    PEN_TRY(PEN_NEW(call->scratch, pen_tensor_type_bytes(&x->type), &masked));
    dy.data = masked;
    const int64_t channel_count = x->type.shape.dims[1];
    const int64_t size = pen_shape_count(&x->type.shape, 2, x->type.shape.rank);
    for (int64_t i = 0; i < pen_tensor_count(x); i++) {
        const int64_t c = i / size % channel_count;
        double inverse = pen_tensor_get(&call->inputs[5], c);
        if (!training) inverse = 1 / sqrt(inverse + epsilon);
        const double h = (pen_tensor_get(x, i) - pen_tensor_get(&call->inputs[4], c)) * inverse;
        const double y =
            h * pen_tensor_get(&call->inputs[2], c) + pen_tensor_get(&call->inputs[3], c);
        pen_tensor_set(&dy, i, y > 0 ? pen_tensor_get(&call->inputs[0], i) : 0);
    }
    return batch_normalization_backward_of(call, &dy, 1, 2, 4, 0);
}

static pen_status batch_normalization_add_relu_backward_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->inputs[1];
    const bool adds = pen_reference_input(call, 6) != NULL;
    for (int64_t i = 0; i < pen_tensor_count(y); i++) {
        double dy = pen_tensor_get(&call->inputs[0], i);
        if (adds) dy += pen_tensor_get(&call->inputs[6], i);
        pen_tensor_set(&call->outputs[0], i, pen_tensor_get(y, i) > 0 ? dy : 0);
    }
    return batch_normalization_backward_of(call, &call->outputs[0], 2, 3, 4, 1);
}

// Channel c is divided by d_c^beta, d_c = bias + alpha / size * (sum of squares of the channels
// from c - (size - 1) / 2 to c + size / 2 that there are).
typedef struct lrn_formula {
    const pen_tensor *x;
    double alpha_of_one; // alpha / size
    double beta, bias;
    int64_t before, after; // neighbours of a channel that count
    int64_t channel_count;
    int64_t size; // elements of a channel
} lrn_formula;

static lrn_formula lrn_formula_of(const pen_node *node, const pen_tensor *x) {
    const int64_t window = pen_node_int(node, "size");
    return (lrn_formula){
        .x = x,
        .alpha_of_one = pen_node_float(node, "alpha") / (double)window,
        .beta = pen_node_float(node, "beta"),
        .bias = pen_node_float(node, "bias"),
        .before = (window - 1) / 2,
        .after = window / 2,
        .channel_count = x->type.shape.dims[1],
        .size = pen_shape_count(&x->type.shape, 2, x->type.shape.rank),
    };
}

// d of element `index`.
static double lrn_divisor(const lrn_formula *f, int64_t index) {
    const int64_t c = index / f->size % f->channel_count;
    const int64_t first = pen_max_i64(0, c - f->before);
    const int64_t last = pen_min_i64(f->channel_count - 1, c + f->after);
    double squares = 0;
    for (int64_t i = first; i <= last; i++) {
        const double x = pen_tensor_get(f->x, index + (i - c) * f->size);
        squares += x * x;
    }
    return f->bias + f->alpha_of_one * squares;
}

static pen_status lrn_run(const pen_reference_call *call) {
    const lrn_formula f = lrn_formula_of(call->node, &call->inputs[0]);
    for (int64_t i = 0; i < pen_tensor_count(f.x); i++) {
        pen_tensor_set(&call->outputs[0], i,
                       pen_tensor_get(f.x, i) * pow(lrn_divisor(&f, i), -f.beta));
    }
    return PEN_OK;
}

// dx_c = dy_c * d_c^-beta
//        - 2 * alpha / size * beta * x_c * sum over j that count c: dy_j * x_j * d_j^(-beta - 1)
static double lrn_derivative(const lrn_formula *f, const pen_tensor *dy, int64_t index) {
    const int64_t c = index / f->size % f->channel_count;
    const int64_t first = pen_max_i64(0, c - f->after); // c is one of j's neighbours after it
    const int64_t last = pen_min_i64(f->channel_count - 1, c + f->before);
    double sum = 0;
    for (int64_t j = first; j <= last; j++) {
        const int64_t at = index + (j - c) * f->size;
        sum += pen_tensor_get(dy, at) * pen_tensor_get(f->x, at) *
               pow(lrn_divisor(f, at), -f->beta - 1);
    }
    return pen_tensor_get(dy, index) * pow(lrn_divisor(f, index), -f->beta) -
           2 * f->alpha_of_one * f->beta * pen_tensor_get(f->x, index) * sum;
}

static pen_status lrn_backward_run(const pen_reference_call *call) {
    const lrn_formula f = lrn_formula_of(call->node, &call->inputs[1]);
    for (int64_t i = 0; i < pen_tensor_count(f.x); i++) {
        pen_tensor_set(&call->outputs[0], i, lrn_derivative(&f, &call->inputs[0], i));
    }
    return PEN_OK;
}

static const pen_reference_kernel normalization_kernels[] = {
    {"batch_normalization", batch_normalization_run, NULL},
    {"batch_normalization_backward", batch_normalization_backward_run, NULL},
    {"batch_normalization_relu", batch_normalization_run, NULL},
    {"batch_normalization_add_relu", batch_normalization_run, NULL},
    {"batch_normalization_relu_backward", batch_normalization_relu_backward_run, NULL},
    {"batch_normalization_add_relu_backward", batch_normalization_add_relu_backward_run, NULL},
    {"lrn", lrn_run, NULL},
    {"lrn_backward", lrn_backward_run, NULL},
};

PEN_REFERENCE_FAMILY(normalization);
