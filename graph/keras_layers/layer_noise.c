// Layers that are random in training, and in inference do nothing.
//
// Whether a graph trains, dropout alone knows. A dropout of 1/2 makes 0 or 2 of a 1 in training,
// and leaves it in inference: from that come a coin for each example, and a number that is 1 in
// training and 0 in inference.

#include <math.h>

#include "graph/graph.h"
#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

typedef struct dropout_options {
    pen_layer_common common;
    double rate;
} dropout_options;

static const pen_option_field dropout_fields[] = {
    PEN_LAYER_COMMON_FIELDS(dropout_options),
    {.key = "rate",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(dropout_options, rate),
     .is_required = true,
     .minimum = PEN_OPTION_FROM(0),
     .maximum = PEN_OPTION_BELOW(1),
     .help = "share of the elements that is dropped"},
};
PEN_LAYER_TABLE(dropout, dropout_options, dropout_fields);

pen_status pen_layer_add_dropout(pen_layer_builder *builder, const pen_layer_call *call,
                                 const char *suffix, double rate, pen_value_id *io_value) {
    if (rate == 0) return PEN_OK;
    pen_node_spec spec;
    pen_node_id node;
    pen_value_id operands[3] = {*io_value};
    const char *training;
    pen_graph *graph = pen_layer_graph(builder);
    PEN_TRY(pen_layer_number(builder, call, "rate", rate, &operands[1]));
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &training, "%s/training", call->name));
    PEN_TRY(pen_graph_constant_number(graph, training, PEN_BOOL, 1, &operands[2]));
    const pen_layer_node dropout = {
        .op = "dropout", .suffix = suffix, .inputs = operands, .input_count = 3};
    PEN_TRY(pen_layer_node_spec(builder, call, &dropout, &spec));
    spec.output_count = 2;
    PEN_TRY(pen_graph_add_node(graph, &spec, &node));
    *io_value = pen_graph_node(graph, node)->outputs[0];
    return PEN_OK;
}

pen_status pen_layer_dropout_build(pen_layer_builder *builder, const pen_layer_call *call,
                                   pen_layer_result *out_result) {
    const dropout_options *options = call->options;
    pen_layer_tensor tensor = call->inputs[0];
    PEN_TRY(pen_layer_add_dropout(builder, call, NULL, options->rate, &tensor.value));
    pen_layer_give(out_result, tensor);
    return PEN_OK;
}

// (batch, sizes…) of ones, as many examples as `like` has.
pen_status pen_layer_add_ones(pen_layer_builder *builder, const pen_layer_call *call,
                              pen_value_id like, uint32_t count, const int64_t *sizes,
                              pen_value_id *out_value) {
    const pen_layer_range front = {.axis = 0, .start = 0, .end = 1, .step = 1};
    pen_value_id parts[2];
    PEN_TRY(pen_layer_map(builder, call, "shape", "sizes", like, &parts[0]));
    PEN_TRY(pen_layer_slice(builder, call, parts[0], "front", front, &parts[0]));
    PEN_TRY(pen_layer_ints(builder, call, "ones", count, sizes, &parts[1]));
    const pen_layer_node shape = {.suffix = "mask_shape", .inputs = parts, .input_count = 2};
    PEN_TRY(pen_layer_concat(builder, call, shape, 0, &parts[0]));
    const pen_attribute_given one = pen_attribute_float("value", 1);
    const pen_layer_node fill = {.op = "constant_of_shape",
                                 .suffix = "whole",
                                 .inputs = parts,
                                 .input_count = 1,
                                 .attributes = &one,
                                 .attribute_count = 1};
    return pen_layer_add_node(builder, call, &fill, out_value);
}

pen_status pen_layer_spatial_dropout_build(pen_layer_builder *builder, const pen_layer_call *call,
                                           pen_layer_result *out_result) {
    const dropout_options *options = call->options;
    if (options->rate == 0) {
        pen_layer_give(out_result, call->inputs[0]);
        return PEN_OK;
    }
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(builder, call, &call->inputs[0], PEN_LAYER_CHANNELS_LAST, &x));
    int64_t sizes[PEN_RANK_LIMIT] = {x.channels, 1, 1, 1};
    pen_value_id product[2] = {x.value};
    PEN_TRY(pen_layer_add_ones(builder, call, x.value, x.rank + 1, sizes, &product[1]));
    PEN_TRY(pen_layer_add_dropout(builder, call, "mask", options->rate, &product[1]));
    PEN_TRY(pen_layer_pair(builder, call, "mul", NULL, product, &x.value));
    pen_layer_give(out_result, pen_layer_give_spatial(&x, PEN_LAYER_CHANNELS_LAST));
    return PEN_OK;
}

// ---- noise

typedef struct noise_options {
    pen_layer_common common;
    double stddev;
} noise_options;

static const pen_option_field noise_fields[] = {
    PEN_LAYER_COMMON_FIELDS(noise_options),
    {.key = "stddev",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(noise_options, stddev),
     .is_required = true,
     .minimum = PEN_OPTION_FROM(0),
     .help = "standard deviation of the noise"},
};
PEN_LAYER_TABLE(gaussian_noise, noise_options, noise_fields);

static pen_status noise_pair(pen_layer_builder *builder, const pen_layer_call *call, const char *op,
                             pen_value_id a, pen_value_id b, pen_value_id *out_value) {
    const pen_value_id operands[2] = {a, b};
    return pen_layer_pair(builder, call, op, "noise", operands, out_value);
}

static pen_status noise_with_number(pen_layer_builder *builder, const pen_layer_call *call,
                                    const char *op, pen_value_id a, double number,
                                    pen_value_id *out_value) {
    pen_value_id b;
    PEN_TRY(pen_layer_number(builder, call, "noise_number", number, &b));
    return noise_pair(builder, call, op, a, b, out_value);
}

// 1 in training, 0 in inference.
static pen_status noise_switch(pen_layer_builder *builder, const pen_layer_call *call,
                               pen_value_id *out_value) {
    pen_value_id coin;
    PEN_TRY(pen_layer_number(builder, call, "one", 1, &coin));
    PEN_TRY(pen_layer_add_dropout(builder, call, "coin", 0.5, &coin));
    PEN_TRY(noise_with_number(builder, call, "sub", coin, 1, &coin));
    return noise_pair(builder, call, "mul", coin, coin, out_value);
}

// Normal numbers in training, zeros in inference.
static pen_status noise_normal(pen_layer_builder *builder, const pen_layer_call *call,
                               pen_value_id like, double deviation, pen_value_id *out_value) {
    const pen_attribute_given scale = pen_attribute_float("scale", deviation);
    const pen_layer_node normal = {.op = "random_normal_like",
                                   .suffix = "normal",
                                   .inputs = &like,
                                   .input_count = 1,
                                   .attributes = &scale,
                                   .attribute_count = 1};
    pen_value_id numbers, trains;
    PEN_TRY(pen_layer_add_node(builder, call, &normal, &numbers));
    PEN_TRY(noise_switch(builder, call, &trains));
    return noise_pair(builder, call, "mul", numbers, trains, out_value);
}

pen_status pen_layer_gaussian_noise_build(pen_layer_builder *builder, const pen_layer_call *call,
                                          pen_layer_result *out_result) {
    const noise_options *options = call->options;
    pen_layer_tensor result = call->inputs[0];
    pen_value_id noise;
    PEN_TRY(noise_normal(builder, call, result.value, options->stddev, &noise));
    PEN_TRY(noise_pair(builder, call, "add", result.value, noise, &result.value));
    pen_layer_give(out_result, result);
    return PEN_OK;
}

// A factor of mean 1, whose variance is that of dropout's.
pen_status pen_layer_gaussian_dropout_build(pen_layer_builder *builder, const pen_layer_call *call,
                                            pen_layer_result *out_result) {
    const dropout_options *options = call->options;
    pen_layer_tensor result = call->inputs[0];
    pen_value_id noise;
    const double deviation = sqrt(options->rate / (1 - options->rate));
    if (options->rate > 0) {
        PEN_TRY(noise_normal(builder, call, result.value, deviation, &noise));
        PEN_TRY(noise_with_number(builder, call, "add", noise, 1, &noise));
        PEN_TRY(noise_pair(builder, call, "mul", result.value, noise, &result.value));
    }
    pen_layer_give(out_result, result);
    return PEN_OK;
}

// Klambauer et al., "Self-Normalizing Neural Networks", 2017: what is dropped becomes selu's least
// value a', and a x + b keeps mean and variance.
pen_status pen_layer_alpha_dropout_build(pen_layer_builder *builder, const pen_layer_call *call,
                                         pen_layer_result *out_result) {
    const dropout_options *options = call->options;
    const double least = -1.6732632423543772 * 1.0507009873554805;
    const double rate = options->rate;
    const double a = 1 / sqrt((1 - rate) * (1 + rate * least * least));
    pen_layer_tensor result = call->inputs[0];
    pen_value_id kept, dropped, mixed, trains;
    if (rate > 0) {
        PEN_TRY(noise_with_number(builder, call, "mul", result.value, 0, &kept));
        PEN_TRY(noise_with_number(builder, call, "add", kept, 1, &kept));
        PEN_TRY(pen_layer_add_dropout(builder, call, "kept", rate, &kept));
        PEN_TRY(noise_with_number(builder, call, "min", kept, 1, &kept));
        PEN_TRY(noise_with_number(builder, call, "sub", kept, 1, &dropped));
        PEN_TRY(noise_with_number(builder, call, "mul", dropped, -least, &dropped));
        PEN_TRY(noise_pair(builder, call, "mul", result.value, kept, &mixed));
        PEN_TRY(noise_pair(builder, call, "add", mixed, dropped, &mixed));
        PEN_TRY(noise_with_number(builder, call, "mul", mixed, a, &mixed));
        PEN_TRY(noise_with_number(builder, call, "add", mixed, -a * least * rate, &mixed));
        PEN_TRY(noise_pair(builder, call, "sub", mixed, result.value, &mixed));
        PEN_TRY(noise_switch(builder, call, &trains));
        PEN_TRY(noise_pair(builder, call, "mul", mixed, trains, &mixed));
        PEN_TRY(noise_pair(builder, call, "add", result.value, mixed, &result.value));
    }
    pen_layer_give(out_result, result);
    return PEN_OK;
}

// ---- pictures

enum { FLIP_BOTH, FLIP_HORIZONTAL, FLIP_VERTICAL };
static const char *const flip_modes[] = {"horizontal_and_vertical", "horizontal", "vertical", NULL};

typedef struct flip_options {
    pen_layer_common common;
    unsigned mode;
} flip_options;

static const pen_option_field flip_fields[] = {
    PEN_LAYER_COMMON_FIELDS(flip_options),
    PEN_LAYER_CHOICE(flip_options, mode, flip_modes, "horizontal_and_vertical",
                     "which way pictures are turned, each with a chance of one half"),
};
PEN_LAYER_TABLE(random_flip, flip_options, flip_fields);

// A coin for each example: above 1 with a chance of one half, in training alone.
static pen_status flip_axis(pen_layer_builder *builder, const pen_layer_call *call, int64_t axis,
                            pen_value_id *io_value) {
    static const int64_t ones[3] = {1, 1, 1};
    const pen_layer_range back = {.axis = axis, .start = -1, .end = INT64_MIN, .step = -1};
    pen_value_id operands[3], coin;
    PEN_TRY(pen_layer_add_ones(builder, call, *io_value, 3, ones, &coin));
    PEN_TRY(pen_layer_add_dropout(builder, call, "coin", 0.5, &coin));
    PEN_TRY(noise_with_number(builder, call, "greater", coin, 1.5, &operands[0]));
    PEN_TRY(pen_layer_slice(builder, call, *io_value, "turned", back, &operands[1]));
    operands[2] = *io_value;
    const pen_layer_node where = {
        .op = "where", .suffix = "flipped", .inputs = operands, .input_count = 3};
    return pen_layer_add_node(builder, call, &where, io_value);
}

pen_status pen_layer_random_flip_build(pen_layer_builder *builder, const pen_layer_call *call,
                                       pen_layer_result *out_result) {
    const flip_options *options = call->options;
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(builder, call, &call->inputs[0], PEN_LAYER_CHANNELS_LAST, &x));
    if (options->mode != FLIP_VERTICAL) PEN_TRY(flip_axis(builder, call, 3, &x.value));
    if (options->mode != FLIP_HORIZONTAL) PEN_TRY(flip_axis(builder, call, 2, &x.value));
    pen_layer_give(out_result, pen_layer_give_spatial(&x, PEN_LAYER_CHANNELS_LAST));
    return PEN_OK;
}
