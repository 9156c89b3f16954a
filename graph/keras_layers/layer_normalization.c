// Normalisations.

#include <inttypes.h>

#include "graph/graph.h"
#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

#define LAYER_EPSILON(type)                                                                        \
    PEN_LAYER_FIELD(type, epsilon, NUMBER, "added to variances", .default_text = "0.001",          \
                    .minimum = PEN_OPTION_FROM(0))

// ---- batch

typedef struct batch_normalization_options {
    pen_layer_common common;
    int64_t axis;
    double momentum;
    double epsilon;
    bool center;
    bool scale;
    pen_layer_weight_options gamma;
    pen_layer_weight_options beta;
    pen_layer_initializer moving_mean;
    pen_layer_initializer moving_variance;
} batch_normalization_options;

PEN_LAYER_OPTIONS(
    batch_normalization, batch_normalization_options,
    PEN_LAYER_INTEGER(batch_normalization_options, axis, "-1", "the dimension of the channels"),
    PEN_LAYER_FIELD(batch_normalization_options, momentum, NUMBER,
                    "how much of a running statistic stays in a step", .default_text = "0.99",
                    .minimum = PEN_OPTION_FROM(0), .maximum = PEN_OPTION_TO(1)),
    LAYER_EPSILON(batch_normalization_options),
    PEN_LAYER_BOOL(batch_normalization_options, center, "true", "whether beta is added"),
    PEN_LAYER_BOOL(batch_normalization_options, scale, "true", "whether gamma is a factor"),
    PEN_LAYER_WEIGHT(batch_normalization_options, gamma, "ones"),
    PEN_LAYER_WEIGHT(batch_normalization_options, beta, "zeros"),
    PEN_LAYER_INITIALIZER("moving_mean_initializer",
                          offsetof(batch_normalization_options, moving_mean), "zeros"),
    PEN_LAYER_INITIALIZER("moving_variance_initializer",
                          offsetof(batch_normalization_options, moving_variance), "ones"));

// What is in a weight, or in the constant in its place.
static pen_layer_contents normalization_contents(const pen_layer_weight_options *options,
                                                 bool is_there, double number) {
    pen_layer_contents contents = {.options = *options};
    if (is_there) return contents;
    contents.options.initializer = (pen_layer_initializer){.kind = PEN_LAYER_CONSTANT};
    contents.options.initializer.numbers.value = number;
    return contents;
}

// A weight of the channels, or a constant in its place.
static pen_status normalization_weight(const pen_layer_call *call,
                                       const pen_layer_whole_weight *weight, bool is_there,
                                       pen_value_id *out_value) {
    if (is_there) return pen_layer_add_whole_weight(call, weight, out_value);
    float *numbers = NULL;
    PEN_TRY(pen_layer_floats(call, weight->name, &weight->shape, &numbers, out_value));
    return pen_layer_initialize(&weight->contents.options.initializer, 0, "", &weight->shape,
                                numbers);
}

static pen_status batch_normalization_weights(const pen_layer_call *call, int64_t channels,
                                              pen_value_id out_operands[5]) {
    const batch_normalization_options *options = call->options;
    const pen_shape shape = {.rank = 1, .dims = {channels}};
    const pen_layer_whole_weight weights[4] = {
        {"gamma", shape, NULL, normalization_contents(&options->gamma, options->scale, 1)},
        {"beta", shape, NULL, normalization_contents(&options->beta, options->center, 0)},
        {"moving_mean", shape, NULL, {{.initializer = options->moving_mean}, true, false}},
        {"moving_variance", shape, NULL, {{.initializer = options->moving_variance}, true, false}},
    };
    PEN_TRY(normalization_weight(call, &weights[0], options->scale, &out_operands[1]));
    PEN_TRY(normalization_weight(call, &weights[1], options->center, &out_operands[2]));
    PEN_TRY(normalization_weight(call, &weights[2], true, &out_operands[3]));
    return normalization_weight(call, &weights[3], true, &out_operands[4]);
}

// In training, unless the layer is frozen: then Keras takes the running statistics.
static pen_status batch_normalization_node(const pen_layer_call *call,
                                           const pen_value_id operands[5], bool is_unbiased,
                                           pen_value_id *out_value) {
    const batch_normalization_options *options = call->options;
    pen_graph *graph = pen_layer_graph(call);
    const bool trains = options->common.trainable;
    const pen_layer_node node = {
        .op = "batch_normalization",
        .inputs = {operands, 5},
        .attributes = PEN_WITH(pen_attribute_float("epsilon", options->epsilon),
                               pen_attribute_float("momentum", options->momentum),
                               pen_attribute_int("training_mode", trains ? 1 : 0),
                               pen_attribute_int("unbiased", is_unbiased && trains ? 1 : 0)),
        .output_count = trains ? 5 : 1,
    };
    const pen_value_id *outputs;
    PEN_TRY(pen_layer_add_node(call, &node, &outputs));
    *out_value = outputs[0];
    for (uint32_t i = 1; trains && i <= 2; i++) {
        const pen_tensor_type type = *pen_value_type(graph, operands[i + 2]);
        pen_graph_set_type(graph, outputs[i], &type); // a state's contents keep its type
        pen_graph_set_replaces(graph, outputs[i], operands[i + 2]);
    }
    return PEN_OK;
}

// Channels are the last dimension or the second, the two layouts that images have.
pen_status pen_layer_batch_normalization_build(const pen_layer_call *call,
                                               pen_layer_result *out_result) {
    const batch_normalization_options *options = call->options;
    const pen_shape *shape = &call->inputs[0].shape;
    const int64_t rank = shape->rank;
    const int64_t axis = options->axis < 0 ? options->axis + rank : options->axis;
    if (rank < 2 || rank > 5 || (axis != rank - 1 && axis != 1)) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "axis is %" PRId64 " and its input %s; the last dimension and the second "
                         "are possible, of 2 to 5",
                         options->axis, pen_layer_shape_format(shape, text));
    }
    const pen_layer_format format =
        axis == rank - 1 ? PEN_LAYER_CHANNELS_LAST : PEN_LAYER_CHANNELS_FIRST;
    pen_layer_spatial x;
    pen_value_id operands[5];
    if (call->inputs[0].mask_rank > 0 && options->common.trainable) {
        return pen_error(PEN_UNSUPPORTED,
                         "its input has a mask, and statistics of steps that count alone are not "
                         "possible; layer_normalization is");
    }
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], format, &x));
    PEN_TRY(batch_normalization_weights(call, x.channels, operands));
    operands[0] = x.value;
    // Keras' fused kernels, which it takes for pictures and volumes, have the unbiased variance
    PEN_TRY(batch_normalization_node(call, operands, rank >= 4, &x.value));
    return pen_layer_give(out_result, pen_layer_give_spatial(&x, format));
}

// ---- layer

typedef struct layer_normalization_options {
    pen_layer_common common;
    pen_option_list axis;
    int64_t groups;
    double epsilon;
    bool center;
    bool scale;
    pen_layer_weight_options gamma;
    pen_layer_weight_options beta;
} layer_normalization_options;

#define LAYER_NORMALIZATION_FIELDS                                                                 \
    LAYER_EPSILON(layer_normalization_options),                                                    \
        PEN_LAYER_BOOL(layer_normalization_options, center, "true", "whether beta is added"),      \
        PEN_LAYER_BOOL(layer_normalization_options, scale, "true", "whether gamma is a factor"),   \
        PEN_LAYER_WEIGHT(layer_normalization_options, gamma, "ones"),                              \
        PEN_LAYER_WEIGHT(layer_normalization_options, beta, "zeros")

PEN_LAYER_OPTIONS(layer_normalization, layer_normalization_options,
                  PEN_LAYER_FIELD(layer_normalization_options, axis, LIST,
                                  "the dimensions of mean and variance, the last ones",
                                  .item = &pen_layer_integer_item, .is_list_optional = true,
                                  .count_minimum = 1, .default_text = "-1"),
                  LAYER_NORMALIZATION_FIELDS);

PEN_LAYER_OPTIONS(group_normalization, layer_normalization_options,
                  PEN_LAYER_SIZE(layer_normalization_options, groups, "32", "groups of channels"),
                  LAYER_NORMALIZATION_FIELDS);

static pen_status layer_normalization_weights(const pen_layer_call *call, const pen_shape *shape,
                                              pen_value_id out_operands[3]) {
    const layer_normalization_options *options = call->options;
    const pen_layer_whole_weight weights[2] = {
        {"gamma", *shape, NULL, normalization_contents(&options->gamma, options->scale, 1)},
        {"beta", *shape, NULL, normalization_contents(&options->beta, options->center, 0)},
    };
    PEN_TRY(normalization_weight(call, &weights[0], options->scale, &out_operands[1]));
    return normalization_weight(call, &weights[1], options->center, &out_operands[2]);
}

// The first of the dimensions, which are the last ones.
static pen_status layer_normalization_axis(const pen_option_list *given, int64_t rank,
                                           int64_t *out_axis) {
    const int64_t *numbers = given->items;
    int64_t first = rank;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < given->count; i++) {
        const int64_t axis = numbers[i] < 0 ? numbers[i] + rank : numbers[i];
        if (axis < 1 || axis >= rank) break;
        if (axis < first) first = axis;
        seen |= 1u << axis;
    }
    if (seen == (1u << rank) - (1u << first) && seen != 0) {
        *out_axis = first;
        return PEN_OK;
    }
    return pen_error(PEN_UNSUPPORTED,
                     "axis is not the last dimensions of %" PRId64 "; -1 is possible, or [-2, -1]",
                     rank);
}

// The normalised dimensions are the last ones, which is what the op expects.
pen_status pen_layer_layer_normalization_build(const pen_layer_call *call,
                                               pen_layer_result *out_result) {
    const layer_normalization_options *options = call->options;
    pen_layer_tensor x;
    pen_value_id operands[3];
    int64_t axis = 0;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    PEN_TRY(layer_normalization_axis(&options->axis, x.shape.rank, &axis));
    pen_shape weights = {.rank = x.shape.rank - (uint32_t)axis};
    for (uint32_t i = 0; i < weights.rank; i++) {
        weights.dims[i] = x.shape.dims[(uint32_t)axis + i];
    }
    operands[0] = x.value;
    PEN_TRY(layer_normalization_weights(call, &weights, operands));
    pen_layer_tensor result = x;
    PEN_TRY(pen_layer_add(
        call, "layer_normalization", NULL, PEN_INPUTS_ALL(operands),
        PEN_WITH(pen_attribute_int("axis", axis), pen_attribute_float("epsilon", options->epsilon)),
        &result.value));
    return pen_layer_give(out_result, result);
}

// ---- root mean square, and scales alone

typedef struct rms_normalization_options {
    pen_layer_common common;
    pen_option_list axis;
    double epsilon;
    pen_layer_weight_options scale;
} rms_normalization_options;

PEN_LAYER_OPTIONS(rms_normalization, rms_normalization_options,
                  PEN_LAYER_FIELD(rms_normalization_options, axis, LIST,
                                  "the dimensions of the mean, the last ones",
                                  .item = &pen_layer_integer_item, .is_list_optional = true,
                                  .count_minimum = 1, .default_text = "-1"),
                  PEN_LAYER_FIELD(rms_normalization_options, epsilon, NUMBER,
                                  "added to the mean of the squares", .default_text = "0.000001",
                                  .minimum = PEN_OPTION_FROM(0)),
                  PEN_LAYER_WEIGHT(rms_normalization_options, scale, "ones"));

// The operator normalises over the last dimensions, so the axes have to be those.
pen_status pen_layer_rms_normalization_build(const pen_layer_call *call,
                                             pen_layer_result *out_result) {
    const rms_normalization_options *options = call->options;
    pen_layer_tensor x;
    pen_value_id scale;
    int64_t axis = 0;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    PEN_TRY(layer_normalization_axis(&options->axis, x.shape.rank, &axis));
    pen_layer_whole_weight weight = {
        "scale", {.rank = x.shape.rank - (uint32_t)axis}, NULL, {.options = options->scale}};
    for (uint32_t i = 0; i < weight.shape.rank; i++) {
        weight.shape.dims[i] = x.shape.dims[(uint32_t)axis + i];
    }
    PEN_TRY(pen_layer_add_whole_weight(call, &weight, &scale));
    PEN_TRY(pen_layer_add(
        call, "rms_normalization", NULL, PEN_INPUTS(x.value, scale),
        PEN_WITH(pen_attribute_int("axis", axis), pen_attribute_float("epsilon", options->epsilon)),
        &x.value));
    return pen_layer_give(out_result, x);
}

typedef struct layer_scale_options {
    pen_layer_common common;
    int64_t projection_dim;
    double init_values;
} layer_scale_options;

PEN_LAYER_OPTIONS(layer_scale, layer_scale_options,
                  PEN_LAYER_SIZE(layer_scale_options, projection_dim, NULL,
                                 "size of the last dimension"),
                  PEN_LAYER_NUMBER(layer_scale_options, init_values, "0.000001",
                                   "what all factors are at first"));

// As the ConvNeXt of Keras' applications has it.
pen_status pen_layer_layer_scale_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const layer_scale_options *options = call->options;
    pen_layer_contents first = {0};
    first.options.initializer = (pen_layer_initializer){.kind = PEN_LAYER_CONSTANT};
    first.options.initializer.numbers.value = options->init_values;
    const pen_layer_whole_weight weight = {
        "gamma", {.rank = 1, .dims = {options->projection_dim}}, NULL, first};
    pen_layer_tensor x;
    pen_value_id gamma;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    PEN_TRY(pen_layer_add_whole_weight(call, &weight, &gamma));
    PEN_TRY(pen_layer_pair(call, "mul", NULL, x.value, gamma, &x.value));
    return pen_layer_give(out_result, x);
}

// ---- length

PEN_LAYER_OPTIONS(unit_normalization, layer_normalization_options,
                  PEN_LAYER_FIELD(layer_normalization_options, axis, LIST,
                                  "the dimensions over which squares are summed",
                                  .item = &pen_layer_integer_item, .is_list_optional = true,
                                  .count_minimum = 1, .count_maximum = PEN_RANK_LIMIT,
                                  .default_text = "-1"));

// x / sqrt(max(sum x^2, 1e-12)), as TensorFlow's l2_normalize
pen_status pen_layer_add_unit(const pen_layer_call *call, uint32_t count, const int64_t *axes,
                              pen_value_id *io_value) {
    pen_value_id over, length, least;
    PEN_TRY(pen_layer_ints(call, "unit_axes", count, axes, &over));
    PEN_TRY(pen_layer_pair(call, "reduce_sum_square", "squares", *io_value, over, &length));
    PEN_TRY(pen_layer_number(call, "least", 1e-12, &least));
    PEN_TRY(pen_layer_pair(call, "max", "squares", length, least, &length));
    PEN_TRY(pen_layer_map(call, "sqrt", "length", length, &length));
    return pen_layer_pair(call, "div", "unit", *io_value, length, io_value);
}

pen_status pen_layer_unit_normalization_build(const pen_layer_call *call,
                                              pen_layer_result *out_result) {
    const layer_normalization_options *options = call->options;
    const int64_t *axes = options->axis.items;
    pen_layer_tensor x;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    for (uint32_t i = 0; i < options->axis.count; i++) {
        const int64_t rank = x.shape.rank;
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis >= 1 && axis < rank) continue;
        return pen_error(PEN_INVALID_INPUT, "axis is %" PRId64 ", expected 1 to %" PRId64, axes[i],
                         rank - 1);
    }
    PEN_TRY(pen_layer_add_unit(call, options->axis.count, axes, &x.value));
    return pen_layer_give(out_result, x);
}

// ---- groups

// The op expects channels second: the input is turned, and turned back at the end.
pen_status pen_layer_group_normalization_build(const pen_layer_call *call,
                                               pen_layer_result *out_result) {
    const layer_normalization_options *options = call->options;
    pen_layer_spatial x;
    pen_value_id operands[3];
    const uint32_t rank = call->inputs[0].shape.rank;
    if (rank < 3 || rank > 5) {
        return pen_error(PEN_INVALID_INPUT, "its input has %u dimensions, expected 3 to 5", rank);
    }
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], PEN_LAYER_CHANNELS_LAST, &x));
    if (x.channels % options->groups != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "%" PRId64 " groups do not divide %" PRId64 " channels evenly",
                         options->groups, x.channels);
    }
    const pen_shape weights = {1, {x.channels}};
    operands[0] = x.value;
    PEN_TRY(layer_normalization_weights(call, &weights, operands));
    PEN_TRY(pen_layer_add(call, "group_normalization", NULL, PEN_INPUTS_ALL(operands),
                          PEN_WITH(pen_attribute_int("num_groups", options->groups),
                                   pen_attribute_float("epsilon", options->epsilon)),
                          &x.value));
    return pen_layer_give(out_result, pen_layer_give_spatial(&x, PEN_LAYER_CHANNELS_LAST));
}
