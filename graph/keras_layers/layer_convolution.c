// Convolutions. Kernels are Keras' to the outside, (spatial…, inputs, outputs), and ONNX' within,
// (outputs, inputs, spatial…).

#include <inttypes.h>
#include <string.h>

#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"
#include "graph/keras_layers/layer_window.h"

typedef struct conv_options {
    pen_layer_common common;
    int64_t filters;
    pen_option_list kernel_size;
    pen_option_list strides;
    pen_layer_padding padding;
    pen_layer_format data_format;
    pen_option_list dilation_rate;
    int64_t groups;
    int64_t depth_multiplier;       // depthwise and separable ones
    pen_option_list output_padding; // transposed ones
    pen_layer_activation activation;
    bool use_bias;
    pen_layer_weight_options kernel;
    pen_layer_weight_options depthwise;
    pen_layer_weight_options pointwise;
    pen_layer_weight_options bias;
} conv_options;

#define CONV_WINDOW_FIELDS(paddings)                                                               \
    PEN_LAYER_WINDOW(conv_options, kernel_size, NULL, true, "size of the window"),                 \
        PEN_LAYER_WINDOW(conv_options, strides, "1", false, "steps of the window"),                \
        PEN_LAYER_CHOICE(conv_options, padding, paddings, "valid",                                 \
                         "same: as many results as inputs, divided by strides"),                   \
        PEN_LAYER_FORMAT(conv_options),                                                            \
        PEN_LAYER_WINDOW(conv_options, dilation_rate, "1", false, "distance of the window's taps")
#define CONV_RESULT_FIELDS                                                                         \
    PEN_LAYER_ACTIVATION(conv_options),                                                            \
        PEN_LAYER_BOOL(conv_options, use_bias, "true", "whether it adds a bias"),                  \
        PEN_LAYER_WEIGHT(conv_options, bias, "zeros")
#define CONV_FIELDS(paddings)                                                                      \
    PEN_LAYER_SIZE(conv_options, filters, NULL, "channels of the result"),                         \
        CONV_WINDOW_FIELDS(paddings),                                                              \
        PEN_LAYER_SIZE(conv_options, groups, "1", "groups of channels that do not mix"),           \
        PEN_LAYER_WEIGHT(conv_options, kernel, "glorot_uniform"), CONV_RESULT_FIELDS

PEN_LAYER_OPTIONS(conv, conv_options, CONV_FIELDS(pen_layer_padding_names));
PEN_LAYER_OPTIONS(conv1d, conv_options, CONV_FIELDS(pen_layer_causal_padding_names));

PEN_LAYER_OPTIONS(
    conv_transpose, conv_options,
    PEN_LAYER_SIZE(conv_options, filters, NULL, "channels of the result"),
    CONV_WINDOW_FIELDS(pen_layer_padding_names),
    PEN_LAYER_FIELD(conv_options, output_padding, LIST,
                    "elements that the result has more; when left out, as many as strides",
                    .item = &pen_layer_integer_item, .is_list_optional = true, .count_minimum = 1,
                    .count_maximum = PEN_LAYER_SPATIAL_LIMIT),
    PEN_LAYER_WEIGHT(conv_options, kernel, "glorot_uniform"), CONV_RESULT_FIELDS);

PEN_LAYER_OPTIONS(depthwise_conv, conv_options, CONV_WINDOW_FIELDS(pen_layer_padding_names),
                  PEN_LAYER_SIZE(conv_options, depth_multiplier, "1", "results of each channel"),
                  PEN_LAYER_WEIGHT(conv_options, depthwise, "glorot_uniform"), CONV_RESULT_FIELDS);

PEN_LAYER_OPTIONS(separable_conv, conv_options,
                  PEN_LAYER_SIZE(conv_options, filters, NULL, "channels of the result"),
                  CONV_WINDOW_FIELDS(pen_layer_padding_names),
                  PEN_LAYER_SIZE(conv_options, depth_multiplier, "1",
                                 "results of each channel, in between"),
                  PEN_LAYER_WEIGHT(conv_options, depthwise, "glorot_uniform"),
                  PEN_LAYER_WEIGHT(conv_options, pointwise, "glorot_uniform"), CONV_RESULT_FIELDS);

static pen_status conv_window(const conv_options *options, const pen_layer_spatial *x,
                              pen_layer_window *out_window) {
    static const int64_t ones[PEN_LAYER_SPATIAL_LIMIT] = {1, 1, 1};
    pen_layer_window window = {.rank = x->rank, .padding = options->padding};
    PEN_TRY(pen_layer_sizes(&options->kernel_size, "kernel_size", x->rank, ones, window.kernel));
    PEN_TRY(pen_layer_sizes(&options->strides, "strides", x->rank, ones, window.strides));
    PEN_TRY(
        pen_layer_sizes(&options->dilation_rate, "dilation_rate", x->rank, ones, window.dilations));
    *out_window = window;
    return PEN_OK;
}

// What every convolution begins with: its operand, with channels second, and its window.
static pen_status conv_open(const pen_layer_call *call, pen_layer_spatial *out_x,
                            pen_layer_window *out_window) {
    const conv_options *options = call->options;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], options->data_format, out_x));
    return conv_window(options, out_x, out_window);
}

static pen_status conv_bias(const pen_layer_call *call, int64_t channels, pen_value_id *out_value) {
    const conv_options *options = call->options;
    return pen_layer_add_bias(call, options->use_bias ? &options->bias : NULL, channels, out_value);
}

// One convolution: operands are x, the kernel, the bias or PEN_VALUE_NONE.
typedef struct conv_step {
    const char *suffix;
    const pen_layer_window *window;
    int64_t groups;
    int64_t channels; // of the result
    pen_value_id kernel;
    pen_value_id bias;
} conv_step;

static pen_status conv_add(const pen_layer_call *call, const conv_step *step,
                           pen_layer_spatial *io_spatial) {
    pen_node_inputs inputs = PEN_INPUTS(io_spatial->value, step->kernel, step->bias);
    pen_layer_window_attributes attributes;
    if (!pen_value_is(step->bias)) inputs.count = 2;
    PEN_TRY(pen_layer_window_resolve(step->window, io_spatial->sizes, &attributes));
    attributes.given[attributes.count++] = pen_attribute_int("group", step->groups);
    PEN_TRY(pen_layer_add(call, "conv", step->suffix, inputs,
                          (pen_node_attributes){attributes.given, attributes.count},
                          &io_spatial->value));
    memcpy(io_spatial->sizes, attributes.output, sizeof io_spatial->sizes);
    io_spatial->channels = step->channels;
    return PEN_OK;
}

static pen_status conv_give(const pen_layer_call *call, const pen_layer_spatial *spatial,
                            pen_layer_result *out_result) {
    const conv_options *options = call->options;
    pen_layer_tensor result = pen_layer_give_spatial(spatial, options->data_format);
    PEN_TRY(pen_layer_activate(call, options->activation, &result, &result));
    return pen_layer_give(out_result, result);
}

// A kernel over `window` of Keras' last two dimensions.
typedef struct conv_kernel_spec {
    const char *name;
    const pen_layer_window *window;
    int64_t channels[2];
    pen_layer_weight_options options;
} conv_kernel_spec;

// Dimension i of Keras' kernel, (spatial…, inputs, outputs), stands at axes[i] of ours. Of
// transposed ones, Keras' are (spatial…, outputs, inputs) and ours (inputs, outputs, spatial…): the
// same.
static pen_status conv_kernel(const pen_layer_call *call, const conv_kernel_spec *spec,
                              pen_value_id *out_value) {
    const uint32_t rank = spec->window->rank;
    uint32_t axes[PEN_RANK_LIMIT] = {2, 3, 4};
    pen_layer_whole_weight kernel = {.name = spec->name,
                                     .shape.rank = rank + 2,
                                     .axes = axes,
                                     .contents.options = spec->options};
    memcpy(kernel.shape.dims, spec->window->kernel, rank * sizeof spec->window->kernel[0]);
    for (uint32_t i = 0; i < 2; i++) {
        axes[rank + i] = 1 - i;
        kernel.shape.dims[rank + i] = spec->channels[i];
    }
    return pen_layer_add_whole_weight(call, &kernel, out_value);
}

pen_status pen_layer_conv_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const conv_options *options = call->options;
    pen_layer_spatial x;
    pen_layer_window window;
    PEN_TRY(conv_open(call, &x, &window));
    if (x.channels % options->groups != 0 || options->filters % options->groups != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "%" PRId64 " groups divide neither %" PRId64 " channels nor %" PRId64
                         " filters evenly",
                         options->groups, x.channels, options->filters);
    }
    conv_step step = {.window = &window, .groups = options->groups, .channels = options->filters};
    const conv_kernel_spec kernel = {
        "kernel", &window, {x.channels / options->groups, options->filters}, options->kernel};
    PEN_TRY(conv_kernel(call, &kernel, &step.kernel));
    PEN_TRY(conv_bias(call, options->filters, &step.bias));
    PEN_TRY(conv_add(call, &step, &x));
    return conv_give(call, &x, out_result);
}

// Keras has (spatial…, channels, multiplier), ours is (channels * multiplier, 1, spatial…).
static pen_status conv_depthwise_kernel(const pen_layer_call *call, const char *name,
                                        const pen_layer_window *window, int64_t channels,
                                        pen_value_id *out_value) {
    const conv_options *options = call->options;
    const uint32_t rank = window->rank;
    const pen_layer_contents contents = {.options = options->depthwise};
    pen_layer_weight weight = {.name = name, .shape.rank = rank + 2};
    pen_shape stored = {.rank = rank + 2, .dims = {channels * options->depth_multiplier, 1}};
    int64_t area = 1;
    for (uint32_t i = 0; i < rank; i++) {
        weight.shape.dims[i] = stored.dims[i + 2] = window->kernel[i];
    }
    PEN_TRY(pen_tensor_type_check(&(pen_tensor_type){PEN_FLOAT32, stored}));
    for (uint32_t i = rank; i-- > 0;) {
        weight.strides[i] = area;
        area *= window->kernel[i];
    }
    weight.shape.dims[rank] = channels;
    weight.strides[rank] = options->depth_multiplier * area;
    weight.shape.dims[rank + 1] = options->depth_multiplier;
    weight.strides[rank + 1] = area;
    *out_value = PEN_VALUE_NONE;
    return pen_layer_add_weight(call, &weight, &contents, &stored, out_value);
}

pen_status pen_layer_depthwise_conv_build(const pen_layer_call *call,
                                          pen_layer_result *out_result) {
    const conv_options *options = call->options;
    pen_layer_spatial x;
    pen_layer_window window;
    PEN_TRY(conv_open(call, &x, &window));
    conv_step step = {.window = &window,
                      .groups = x.channels,
                      .channels = x.channels * options->depth_multiplier};
    PEN_TRY(conv_depthwise_kernel(call, "depthwise_kernel", &window, x.channels, &step.kernel));
    PEN_TRY(conv_bias(call, step.channels, &step.bias));
    PEN_TRY(conv_add(call, &step, &x));
    return conv_give(call, &x, out_result);
}

// A convolution in groups of one channel, then one of size 1 that mixes channels: the bias comes at
// the end.
pen_status pen_layer_separable_conv_build(const pen_layer_call *call,
                                          pen_layer_result *out_result) {
    const conv_options *options = call->options;
    pen_layer_spatial x;
    pen_layer_window window;
    PEN_TRY(conv_open(call, &x, &window));
    const pen_layer_window point = {
        .rank = x.rank, .kernel = {1, 1, 1}, .strides = {1, 1, 1}, .dilations = {1, 1, 1}};
    const int64_t middle = x.channels * options->depth_multiplier;
    const conv_kernel_spec mixing = {
        "pointwise_kernel", &point, {middle, options->filters}, options->pointwise};
    conv_step depthwise = {.suffix = "depthwise",
                           .window = &window,
                           .groups = x.channels,
                           .channels = middle,
                           .bias = PEN_VALUE_NONE};
    conv_step pointwise = {.window = &point, .groups = 1, .channels = options->filters};
    PEN_TRY(
        conv_depthwise_kernel(call, "depthwise_kernel", &window, x.channels, &depthwise.kernel));
    PEN_TRY(conv_kernel(call, &mixing, &pointwise.kernel));
    PEN_TRY(conv_bias(call, options->filters, &pointwise.bias));
    PEN_TRY(conv_add(call, &depthwise, &x));
    PEN_TRY(conv_add(call, &pointwise, &x));
    return conv_give(call, &x, out_result);
}

// ---- transposed

// Keras' sizes: with `same`, input * stride; with `valid`, input * stride + max(kernel - stride,
// 0); with output_padding, (input - 1) * stride + kernel - 2 * pad + output_padding.
typedef struct conv_transpose_sizes {
    int64_t output[PEN_LAYER_SPATIAL_LIMIT];
    int64_t pads[2 * PEN_LAYER_SPATIAL_LIMIT];
    int64_t output_padding[PEN_LAYER_SPATIAL_LIMIT];
} conv_transpose_sizes;

// Keras' rule for sizes, put into pads as ONNX counts them.
static pen_status conv_transpose_size(const conv_options *options, const pen_layer_window *window,
                                      const pen_layer_spatial *x, conv_transpose_sizes *out_sizes) {
    static const int64_t none[PEN_LAYER_SPATIAL_LIMIT] = {-1, -1, -1};
    int64_t extra[PEN_LAYER_SPATIAL_LIMIT];
    const bool is_same = options->padding == PEN_LAYER_PADDING_SAME;
    *out_sizes = (conv_transpose_sizes){.output = {0}};
    PEN_TRY(pen_layer_sizes(&options->output_padding, "output_padding", x->rank, none, extra));
    for (uint32_t i = 0; i < x->rank; i++) {
        const int64_t reach = (window->kernel[i] - 1) * window->dilations[i] + 1;
        const int64_t stride = window->strides[i];
        const int64_t full = (x->sizes[i] - 1) * stride + reach;
        int64_t size = is_same ? x->sizes[i] * stride
                               : x->sizes[i] * stride + (reach > stride ? reach - stride : 0);
        if (extra[i] >= 0) {
            size = full - (is_same ? reach / 2 * 2 : 0) + extra[i];
            if (extra[i] >= stride || size < 1) {
                return pen_error(PEN_INVALID_INPUT,
                                 "output_padding is %" PRId64 ", expected less than the stride, "
                                 "%" PRId64,
                                 extra[i], stride);
            }
        }
        // the pads of the convolution whose gradient this is
        const int64_t begin = is_same && full > size ? (full - size) / 2 : 0;
        const int64_t end = full - begin - size;
        out_sizes->output[i] = size;
        out_sizes->pads[i] = begin;
        out_sizes->pads[x->rank + i] = end > 0 ? end : 0;
        out_sizes->output_padding[i] = end < 0 ? -end : 0;
    }
    return PEN_OK;
}

// Sizes are settled before, so that the op is given pads and never has to guess them.
pen_status pen_layer_conv_transpose_build(const pen_layer_call *call,
                                          pen_layer_result *out_result) {
    const conv_options *options = call->options;
    pen_layer_spatial x;
    pen_layer_window window;
    conv_transpose_sizes sizes;
    pen_value_id operands[3];
    PEN_TRY(conv_open(call, &x, &window));
    PEN_TRY(conv_transpose_size(options, &window, &x, &sizes));
    const conv_kernel_spec kernel = {
        "kernel", &window, {options->filters, x.channels}, options->kernel};
    operands[0] = x.value;
    PEN_TRY(conv_kernel(call, &kernel, &operands[1]));
    PEN_TRY(conv_bias(call, options->filters, &operands[2]));
    PEN_TRY(pen_layer_add(
        call, "conv_transpose", NULL, (pen_node_inputs){operands, options->use_bias ? 3 : 2},
        PEN_WITH(pen_attribute_ints("kernel_shape", x.rank, window.kernel),
                 pen_attribute_ints("strides", x.rank, window.strides),
                 pen_attribute_ints("dilations", x.rank, window.dilations),
                 pen_attribute_ints("pads", 2 * x.rank, sizes.pads),
                 pen_attribute_ints("output_padding", x.rank, sizes.output_padding)),
        &x.value));
    memcpy(x.sizes, sizes.output, sizeof x.sizes);
    x.channels = options->filters;
    return conv_give(call, &x, out_result);
}
