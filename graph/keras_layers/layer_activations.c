// Activations that are layers of their own, with their numbers.

#include <inttypes.h>
#include <math.h>

#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

typedef struct activations_options {
    pen_layer_common common;
    double max_value;
    bool has_max_value;
    double negative_slope;
    double threshold;
    double alpha;
    double theta;
    int64_t axis;
    pen_option_list shared_axes;
    pen_layer_weight_options slopes;
} activations_options;

static pen_status activations_give(const pen_layer_call *call, const char *op,
                                   const pen_attribute_given *attribute,
                                   pen_layer_result *out_result) {
    pen_layer_tensor result = call->inputs[0];
    PEN_TRY(pen_layer_add(call, op, NULL, PEN_INPUTS(call->inputs[0].value),
                          (pen_node_attributes){attribute, attribute == NULL ? 0 : 1},
                          &result.value));
    return pen_layer_give(out_result, result);
}

// ---- relu

PEN_LAYER_OPTIONS(relu, activations_options,
                  PEN_LAYER_FIELD(activations_options, max_value, NUMBER,
                                  "the largest result; when left out, none",
                                  .present_offset = offsetof(activations_options, has_max_value),
                                  .minimum = PEN_OPTION_FROM(0)),
                  PEN_LAYER_NUMBER(activations_options, negative_slope, "0",
                                   "slope below the threshold"),
                  PEN_LAYER_NUMBER(activations_options, threshold, "0", "where x begins to pass"));

// x >= max: max; threshold <= x < max: x; else slope * (x - threshold)
pen_status pen_layer_relu_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const activations_options *options = call->options;
    pen_layer_tensor result = call->inputs[0];
    if (options->threshold != 0) {
        return pen_error(PEN_UNSUPPORTED, "threshold is %g; 0 is possible, or thresholded_relu",
                         options->threshold);
    }
    const pen_attribute_given slope = pen_attribute_float("alpha", options->negative_slope);
    if (!options->has_max_value) {
        const bool is_plain = options->negative_slope == 0;
        return activations_give(call, is_plain ? "relu" : "leaky_relu", is_plain ? NULL : &slope,
                                out_result);
    }
    pen_value_id operands[3] = {result.value};
    if (options->negative_slope != 0) {
        PEN_TRY(pen_layer_add(call, "leaky_relu", "leaky_relu", PEN_INPUTS(result.value),
                              PEN_WITH(slope), &operands[0]));
    }
    operands[1] = PEN_VALUE_NONE;
    if (options->negative_slope == 0) PEN_TRY(pen_layer_number(call, "least", 0, &operands[1]));
    PEN_TRY(pen_layer_number(call, "most", options->max_value, &operands[2]));
    PEN_TRY(pen_layer_add(call, "clip", NULL, PEN_INPUTS_ALL(operands), PEN_NO_ATTRIBUTES,
                          &result.value));
    return pen_layer_give(out_result, result);
}

// ---- with one number

PEN_LAYER_OPTIONS(leaky_relu, activations_options,
                  PEN_LAYER_NUMBER(activations_options, alpha, "0.3", "slope below 0"));

pen_status pen_layer_leaky_relu_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const activations_options *options = call->options;
    const pen_attribute_given alpha = pen_attribute_float("alpha", options->alpha);
    return activations_give(call, "leaky_relu", &alpha, out_result);
}

PEN_LAYER_OPTIONS(elu, activations_options,
                  PEN_LAYER_NUMBER(activations_options, alpha, "1", "alpha (e^x - 1) below 0"));

pen_status pen_layer_elu_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const activations_options *options = call->options;
    const pen_attribute_given alpha = pen_attribute_float("alpha", options->alpha);
    return activations_give(call, "elu", &alpha, out_result);
}

PEN_LAYER_OPTIONS(thresholded_relu, activations_options,
                  PEN_LAYER_NUMBER(activations_options, theta, "1", "what is not above becomes 0"));

pen_status pen_layer_thresholded_relu_build(const pen_layer_call *call,
                                            pen_layer_result *out_result) {
    const activations_options *options = call->options;
    const pen_attribute_given theta = pen_attribute_float("alpha", options->theta);
    return activations_give(call, "thresholded_relu", &theta, out_result);
}

PEN_LAYER_OPTIONS(softmax, activations_options,
                  PEN_LAYER_INTEGER(activations_options, axis, "-1",
                                    "the dimension over which it sums to 1"));

// Any axis but the batch's.
pen_status pen_layer_softmax_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const activations_options *options = call->options;
    pen_layer_tensor x;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    const int64_t rank = x.shape.rank;
    if (x.mask_rank > 0) {
        return pen_error(PEN_UNSUPPORTED,
                         "its input has a mask, which Keras' layer would add to the numbers; "
                         "'activation: softmax' is possible");
    }
    if (options->axis < -rank + 1 || options->axis >= rank || options->axis == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "axis is %" PRId64 ", expected 1 to %" PRId64 ", or -1 to %" PRId64,
                         options->axis, rank - 1, 1 - rank);
    }
    const pen_attribute_given axis = pen_attribute_int("axis", options->axis);
    pen_layer_tensor result = x;
    PEN_TRY(
        pen_layer_add(call, "softmax", NULL, PEN_INPUTS(x.value), PEN_WITH(axis), &result.value));
    return pen_layer_give(out_result, result);
}

// ---- prelu

PEN_LAYER_OPTIONS(prelu, activations_options,
                  PEN_LAYER_WEIGHT_AS(activations_options, slopes, "alpha", "zeros"),
                  PEN_LAYER_FIELD(activations_options, shared_axes, LIST,
                                  "dimensions, from 1, along which a slope holds for all",
                                  .item = &pen_layer_size_item, .is_list_optional = true));

// Dimensions that share a slope have size 1 in the weight, and broadcasting does the rest.
pen_status pen_layer_prelu_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const activations_options *options = call->options;
    const int64_t *shared = options->shared_axes.items;
    pen_layer_tensor x;
    pen_value_id operands[2];
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    pen_layer_whole_weight alpha = {
        .name = "alpha", .shape.rank = x.shape.rank - 1, .contents.options = options->slopes};
    for (uint32_t i = 1; i < x.shape.rank; i++) {
        alpha.shape.dims[i - 1] = x.shape.dims[i];
    }
    for (uint32_t i = 0; i < options->shared_axes.count; i++) {
        if (shared[i] >= x.shape.rank) {
            return pen_error(PEN_INVALID_INPUT, "shared_axes has %" PRId64 ", expected 1 to %u",
                             shared[i], x.shape.rank - 1);
        }
        alpha.shape.dims[shared[i] - 1] = 1;
    }
    operands[0] = x.value;
    PEN_TRY(pen_layer_add_whole_weight(call, &alpha, &operands[1]));
    pen_layer_tensor result = x;
    PEN_TRY(pen_layer_pair(call, "prelu", NULL, operands[0], operands[1], &result.value));
    return pen_layer_give(out_result, result);
}
