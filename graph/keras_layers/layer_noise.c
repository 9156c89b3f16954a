// Layers that are random in training, and in inference do nothing.
//
// Whether a graph trains, dropout alone knows. A dropout of 1/2 makes 0 or 2 of a 1 in training,
// and leaves it in inference: from that come a coin for each example, and a number that is 1 in
// training and 0 in inference.

#include <math.h>

#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

typedef struct dropout_options {
    pen_layer_common common;
    double rate;
} dropout_options;

#define DROPOUT_RATE(type)                                                                         \
    PEN_LAYER_FIELD(type, rate, NUMBER, "share of the elements that is dropped",                   \
                    .is_required = true, .minimum = PEN_OPTION_FROM(0),                            \
                    .maximum = PEN_OPTION_BELOW(1))

PEN_LAYER_OPTIONS(dropout, dropout_options, DROPOUT_RATE(dropout_options));

typedef struct shaped_dropout_options {
    pen_layer_common common;
    double rate;
    pen_option_list noise_shape;
} shaped_dropout_options;

PEN_LAYER_OPTIONS(shaped_dropout, shaped_dropout_options, DROPOUT_RATE(shaped_dropout_options),
                  PEN_LAYER_FIELD(shaped_dropout_options, noise_shape, LIST,
                                  "what is drawn, the batch first: 0 for each, 1 for all of a "
                                  "dimension together",
                                  .item = &pen_layer_integer_item,
                                  .count_maximum = PEN_RANK_LIMIT));

pen_status pen_layer_add_dropout(const pen_layer_call *call, const char *suffix, double rate,
                                 pen_value_id *io_value) {
    if (rate == 0) return PEN_OK;
    pen_value_id ratio, training;
    const pen_value_id *outputs;
    PEN_TRY(pen_layer_number(call, "rate", rate, &ratio));
    PEN_TRY(pen_layer_number_of(call, "training", PEN_BOOL, 1, &training));
    const pen_layer_node dropout = {.op = "dropout",
                                    .suffix = suffix,
                                    .inputs = PEN_INPUTS(*io_value, ratio, training),
                                    .output_count = 2};
    PEN_TRY(pen_layer_add_node(call, &dropout, &outputs));
    *io_value = outputs[0];
    return PEN_OK;
}

// (batch, sizes…) of ones, as many examples as `like` has.
pen_status pen_layer_add_ones(const pen_layer_call *call, pen_value_id like, uint32_t count,
                              const int64_t *sizes, pen_value_id *out_value) {
    const pen_layer_range front = {.axis = 0, .start = 0, .end = 1, .step = 1};
    pen_value_id batch, rest, shape;
    PEN_TRY(pen_layer_map(call, "shape", "sizes", like, &batch));
    PEN_TRY(pen_layer_slice(call, batch, "front", front, &batch));
    PEN_TRY(pen_layer_ints(call, "ones", count, sizes, &rest));
    PEN_TRY(pen_layer_concat(call, "mask_shape", PEN_INPUTS(batch, rest), 0, &shape));
    return pen_layer_add(call, "constant_of_shape", "whole", PEN_INPUTS(shape),
                         PEN_WITH(pen_attribute_float("value", 1)), out_value);
}

// Elements that share a draw are dropped together: a factor for all of them.
static pen_status dropout_of_shape(const pen_layer_call *call, const pen_option_list *shape,
                                   pen_layer_tensor *tensor) {
    const shaped_dropout_options *options = call->options;
    const int64_t *given = shape->items;
    int64_t sizes[PEN_RANK_LIMIT];
    const uint32_t rank = tensor->shape.rank;
    bool fits = shape->count == rank && given[0] == 0;
    for (uint32_t d = 1; d < rank && fits; d++) {
        const int64_t own = tensor->shape.dims[d];
        fits = given[d] == 0 || given[d] == 1 || given[d] == own;
        sizes[d - 1] = given[d] == 0 ? own : given[d];
    }
    if (!fits) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "noise_shape does not fit to %s: 0 (None) first, then 0, 1 or the size of "
                         "each dimension",
                         pen_layer_shape_format(&tensor->shape, text));
    }
    pen_value_id mask;
    PEN_TRY(pen_layer_add_ones(call, tensor->value, rank - 1, sizes, &mask));
    PEN_TRY(pen_layer_add_dropout(call, "mask", options->rate, &mask));
    return pen_layer_pair(call, "mul", NULL, tensor->value, mask, &tensor->value);
}

pen_status pen_layer_dropout_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const shaped_dropout_options *options = call->options;
    pen_layer_tensor tensor = call->inputs[0];
    if (options->noise_shape.count > 0 && options->rate > 0) {
        PEN_TRY(pen_layer_plain(call, &call->inputs[0], &tensor));
        PEN_TRY(dropout_of_shape(call, &options->noise_shape, &tensor));
    } else {
        PEN_TRY(pen_layer_add_dropout(call, NULL, options->rate, &tensor.value));
    }
    return pen_layer_give(out_result, tensor);
}

pen_status pen_layer_spatial_dropout_build(const pen_layer_call *call,
                                           pen_layer_result *out_result) {
    const dropout_options *options = call->options;
    if (options->rate == 0) return pen_layer_give(out_result, call->inputs[0]);
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], PEN_LAYER_CHANNELS_LAST, &x));
    int64_t sizes[PEN_RANK_LIMIT] = {x.channels, 1, 1, 1};
    pen_value_id mask;
    PEN_TRY(pen_layer_add_ones(call, x.value, x.rank + 1, sizes, &mask));
    PEN_TRY(pen_layer_add_dropout(call, "mask", options->rate, &mask));
    PEN_TRY(pen_layer_pair(call, "mul", NULL, x.value, mask, &x.value));
    return pen_layer_give(out_result, pen_layer_give_spatial(&x, PEN_LAYER_CHANNELS_LAST));
}

// ---- noise

typedef struct noise_options {
    pen_layer_common common;
    double stddev;
} noise_options;

PEN_LAYER_OPTIONS(gaussian_noise, noise_options,
                  PEN_LAYER_FIELD(noise_options, stddev, NUMBER, "standard deviation of the noise",
                                  .is_required = true, .minimum = PEN_OPTION_FROM(0)));

static pen_status noise_pair(const pen_layer_call *call, const char *op, pen_value_id a,
                             pen_value_id b, pen_value_id *out_value) {
    return pen_layer_pair(call, op, "noise", a, b, out_value);
}

static pen_status noise_with_number(const pen_layer_call *call, const char *op, pen_value_id a,
                                    double number, pen_value_id *out_value) {
    pen_value_id b;
    PEN_TRY(pen_layer_number(call, "noise_number", number, &b));
    return noise_pair(call, op, a, b, out_value);
}

// 1 in training, 0 in inference.
static pen_status noise_switch(const pen_layer_call *call, pen_value_id *out_value) {
    pen_value_id coin;
    PEN_TRY(pen_layer_number(call, "one", 1, &coin));
    PEN_TRY(pen_layer_add_dropout(call, "coin", 0.5, &coin));
    PEN_TRY(noise_with_number(call, "sub", coin, 1, &coin));
    return noise_pair(call, "mul", coin, coin, out_value);
}

// Normal numbers in training, zeros in inference.
static pen_status noise_normal(const pen_layer_call *call, pen_value_id like, double deviation,
                               pen_value_id *out_value) {
    pen_value_id numbers, trains;
    PEN_TRY(pen_layer_add(call, "random_normal_like", "normal", PEN_INPUTS(like),
                          PEN_WITH(pen_attribute_float("scale", deviation)), &numbers));
    PEN_TRY(noise_switch(call, &trains));
    return noise_pair(call, "mul", numbers, trains, out_value);
}

pen_status pen_layer_gaussian_noise_build(const pen_layer_call *call,
                                          pen_layer_result *out_result) {
    const noise_options *options = call->options;
    pen_layer_tensor result = call->inputs[0];
    pen_value_id noise;
    PEN_TRY(noise_normal(call, result.value, options->stddev, &noise));
    PEN_TRY(noise_pair(call, "add", result.value, noise, &result.value));
    return pen_layer_give(out_result, result);
}

// A factor of mean 1, whose variance is that of dropout's.
pen_status pen_layer_gaussian_dropout_build(const pen_layer_call *call,
                                            pen_layer_result *out_result) {
    const dropout_options *options = call->options;
    pen_layer_tensor result = call->inputs[0];
    pen_value_id noise;
    const double deviation = sqrt(options->rate / (1 - options->rate));
    if (options->rate > 0) {
        PEN_TRY(noise_normal(call, result.value, deviation, &noise));
        PEN_TRY(noise_with_number(call, "add", noise, 1, &noise));
        PEN_TRY(noise_pair(call, "mul", result.value, noise, &result.value));
    }
    return pen_layer_give(out_result, result);
}

// Klambauer et al., "Self-Normalizing Neural Networks", 2017: what is dropped becomes selu's least
// value a', and a x + b keeps mean and variance.
pen_status pen_layer_alpha_dropout_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const dropout_options *options = call->options;
    const double least = -1.6732632423543772 * 1.0507009873554805;
    const double rate = options->rate;
    const double a = 1 / sqrt((1 - rate) * (1 + rate * least * least));
    pen_layer_tensor result = call->inputs[0];
    pen_value_id kept, dropped, mixed, trains;
    if (rate > 0) {
        PEN_TRY(noise_with_number(call, "mul", result.value, 0, &kept));
        PEN_TRY(noise_with_number(call, "add", kept, 1, &kept));
        PEN_TRY(pen_layer_add_dropout(call, "kept", rate, &kept));
        PEN_TRY(noise_with_number(call, "min", kept, 1, &kept));
        PEN_TRY(noise_with_number(call, "sub", kept, 1, &dropped));
        PEN_TRY(noise_with_number(call, "mul", dropped, -least, &dropped));
        PEN_TRY(noise_pair(call, "mul", result.value, kept, &mixed));
        PEN_TRY(noise_pair(call, "add", mixed, dropped, &mixed));
        PEN_TRY(noise_with_number(call, "mul", mixed, a, &mixed));
        PEN_TRY(noise_with_number(call, "add", mixed, -a * least * rate, &mixed));
        PEN_TRY(noise_pair(call, "sub", mixed, result.value, &mixed));
        PEN_TRY(noise_switch(call, &trains));
        PEN_TRY(noise_pair(call, "mul", mixed, trains, &mixed));
        PEN_TRY(noise_pair(call, "add", result.value, mixed, &result.value));
    }
    return pen_layer_give(out_result, result);
}

// ---- pictures

enum { FLIP_BOTH, FLIP_HORIZONTAL, FLIP_VERTICAL };
static const char *const flip_modes[] = {"horizontal_and_vertical", "horizontal", "vertical", NULL};

typedef struct flip_options {
    pen_layer_common common;
    unsigned mode;
} flip_options;

PEN_LAYER_OPTIONS(
    random_flip, flip_options,
    PEN_LAYER_CHOICE(flip_options, mode, flip_modes, "horizontal_and_vertical",
                     "which way pictures are turned, each with a chance of one half"));

// A coin for each example: above 1 with a chance of one half, in training alone.
static pen_status flip_axis(const pen_layer_call *call, int64_t axis, pen_value_id *io_value) {
    static const int64_t ones[3] = {1, 1, 1};
    const pen_layer_range back = {.axis = axis, .start = -1, .end = INT64_MIN, .step = -1};
    pen_value_id operands[3], coin;
    PEN_TRY(pen_layer_add_ones(call, *io_value, 3, ones, &coin));
    PEN_TRY(pen_layer_add_dropout(call, "coin", 0.5, &coin));
    PEN_TRY(noise_with_number(call, "greater", coin, 1.5, &operands[0]));
    PEN_TRY(pen_layer_slice(call, *io_value, "turned", back, &operands[1]));
    operands[2] = *io_value;
    return pen_layer_add(call, "where", "flipped", PEN_INPUTS_ALL(operands), PEN_NO_ATTRIBUTES,
                         io_value);
}

pen_status pen_layer_random_flip_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const flip_options *options = call->options;
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], PEN_LAYER_CHANNELS_LAST, &x));
    if (options->mode != FLIP_VERTICAL) PEN_TRY(flip_axis(call, 3, &x.value));
    if (options->mode != FLIP_HORIZONTAL) PEN_TRY(flip_axis(call, 2, &x.value));
    return pen_layer_give(out_result, pen_layer_give_spatial(&x, PEN_LAYER_CHANNELS_LAST));
}
