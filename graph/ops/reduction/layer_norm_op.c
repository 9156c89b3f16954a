// Normalisation of each example by itself.
//
//   layer_normalization(x, scale, bias; axis, epsilon) → y, mean, inverse_deviation
//       over the dimensions from `axis` on
//   rms_normalization(x, scale; axis, epsilon) → y
//       the same without taking the mean off: y = x / sqrt(mean of x² + epsilon) * scale
//   instance_normalization(x, scale, bias; epsilon) → y           over each channel's positions
//   group_normalization(x, scale, bias; num_groups, epsilon) → y  over groups of channels; weights
//       are numbers a channel, or numbers a group as in operator set 18
//
// With mean and variance of a row (the variance divides by the count of elements):
//   y = (x - mean) / sqrt(variance + epsilon) * scale + bias
// Scale and bias may be left out, the scale not alone.
//
// Each has a backward op (dy, x, scale; …) → dx, dscale, dbias. It is one op, in the input half,
// because all three come from one reading of dy and x; the statistics are made again from x, which
// costs less than reading it. With g = dy * scale, x̂ = (x - mean) / deviation and means over rows:
//   dx = (g - mean of g - x̂ * mean of g x̂) / deviation   (root mean square: without mean of g)
//   dscale = sum of dy x̂, dbias = sum of dy
//
// flops per element of x: forward 8, backward 14.

#include <stddef.h>

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/reduction/layer_norm_geometry.h"
#include "graph/ops/shared/shape_rule.h"

// The operand x is input `x`; the scale follows it, and forward a bias.
static pen_status layer_norm_check(pen_infer_context *context, uint32_t x,
                                   pen_layer_norm *out_norm) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    const pen_shape *shape = &pen_infer_input(context, x)->shape;
    const pen_shape *weights = NULL;
    for (uint32_t i = x + 1; i < pen_infer_node(context)->input_count; i++) {
        if (!pen_infer_has_input(context, i)) continue;
        PEN_TRY(pen_infer_check_same_element(context, i, 0));
        if (weights != NULL) {
            PEN_TRY(pen_infer_check_shape(context, i, weights));
        } else if (i > x + 1) {
            return pen_infer_error(context, PEN_INVALID_INPUT, "it has a bias, but no scale");
        }
        weights = &pen_infer_input(context, i)->shape;
    }
    return pen_infer_wrap(context,
                          pen_layer_norm_find(pen_infer_node(context), shape, weights, out_norm));
}

static pen_status layer_norm_infer(pen_infer_context *context) {
    pen_layer_norm norm;
    PEN_TRY(layer_norm_check(context, 0, &norm));
    const pen_tensor_type x = *pen_infer_input(context, 0);
    PEN_TRY(pen_infer_set(context, 0, &x));
    const pen_node *node = pen_infer_node(context);
    if (node->output_count == 1) return PEN_OK;
    uint32_t axis;
    PEN_TRY(pen_infer_axis(context, x.shape.rank, pen_node_int(node, "axis"), &axis));
    pen_tensor_type statistic = x;
    if (x.element != PEN_FLOAT64) statistic.element = PEN_FLOAT32;
    for (uint32_t d = axis; d < x.shape.rank; d++) {
        statistic.shape.dims[d] = 1;
    }
    PEN_TRY(pen_infer_set(context, 1, &statistic));
    return node->output_count == 2 ? PEN_OK : pen_infer_set(context, 2, &statistic);
}

static pen_status layer_norm_backward_infer(pen_infer_context *context) {
    pen_layer_norm norm;
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    PEN_TRY(layer_norm_check(context, 1, &norm));
    PEN_TRY(pen_infer_check_shape(context, 1, &pen_infer_input(context, 0)->shape));
    PEN_TRY(pen_infer_set(context, 0, pen_infer_input(context, 0)));
    const uint32_t output_count = pen_infer_node(context)->output_count;
    if (output_count == 1) return PEN_OK;
    if (!pen_infer_has_input(context, 2)) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "it has no scale, but is to make its gradient");
    }
    const pen_tensor_type scale = *pen_infer_input(context, 2);
    for (uint32_t i = 1; i < output_count; i++) {
        PEN_TRY(pen_infer_set(context, i, &scale));
    }
    return PEN_OK;
}

// One node for all: gradients of the weights come out of the same pass over the rows.
static pen_status layer_norm_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    for (uint32_t i = 1; i < node->output_count; i++) {
        if (!pen_value_is(pen_gradient_of_output(context, i))) continue;
        return pen_error(PEN_UNSUPPORTED, "%s '%s' has no gradient of its %s", node->op->name,
                         node->name, i == 1 ? "mean" : "inverse deviation");
    }
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    if (!pen_value_is(dy)) return PEN_OK;
    const bool needs_bias = pen_gradient_needed(context, 2);
    const bool needs_weights = pen_gradient_needed(context, 1) || needs_bias;
    const pen_value_id inputs[] = {dy, pen_gradient_input(context, 0),
                                   pen_gradient_input(context, 1)};
    const pen_gradient_emission emission = {
        .for_input = 0, // the input half, also for the weights
        .inputs = inputs,
        .input_count = pen_value_is(inputs[2]) ? 3 : 2,
        .repeats_attributes = true,
        .output_count = needs_bias      ? 3
                        : needs_weights ? 2
                                        : 1,
    };
    pen_value_id gradients[3];
    PEN_TRY(pen_gradient_emit(context, &emission, gradients));
    for (uint32_t i = 0; i < emission.output_count; i++) {
        if (pen_gradient_needed(context, i)) pen_gradient_set(context, i, gradients[i]);
    }
    return PEN_OK;
}

// Rows over the last dimensions have nothing to do with each other; all share the weights.
static pen_axis_link layer_norm_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                     uint32_t input) {
    const uint32_t rank = pen_value_type(graph, node->inputs[0])->shape.rank;
    const uint32_t first = pen_axis_given(node, rank);
    if (axis >= first) return pen_axis_all();
    if (input == 0) return pen_axis_same(axis);
    const pen_shape *weights = &pen_value_type(graph, node->inputs[input])->shape;
    return weights->rank <= rank - first ? pen_axis_all() : pen_axis_unknown();
}

#define LAYER_NORM_EPSILON PEN_FLOAT_OR("epsilon", 1e-5)

static const pen_attribute_schema layer_norm_attributes[] = {
    LAYER_NORM_EPSILON,
    PEN_INT_OR("axis", -1),
};
static const pen_attribute_schema instance_norm_attributes[] = {LAYER_NORM_EPSILON};
static const pen_attribute_schema group_norm_attributes[] = {
    LAYER_NORM_EPSILON,
    PEN_MUST("num_groups", INT),
};

// An op and, behind it, its backward op. In place: a row is read as a whole before its first
// element is written.
#define LAYER_NORM(op, does, inputs_from, weights, outputs, schema, rule)                          \
    {.name = #op,                                                                                  \
     .summary = does,                                                                              \
     PEN_TAKES(inputs_from, 1 + (weights)),                                                        \
     PEN_GIVES(1, outputs),                                                                        \
     PEN_ATTRIBUTES(schema),                                                                       \
     .in_place_inputs = 1,                                                                         \
     .infer = layer_norm_infer,                                                                    \
     .gradient = layer_norm_gradient,                                                              \
     .input_flops = 8,                                                                             \
     .axis_rule = (rule)},                                                                         \
    {                                                                                              \
        .name = #op "_backward", .summary = "gradients of the operands of " #op, PEN_TAKES(2, 3),  \
        PEN_GIVES(1, 1 + (weights)), PEN_ATTRIBUTES(schema), .in_place_inputs = 3,                 \
        .infer = layer_norm_backward_infer, .input_flops = 14                                      \
    }

static const pen_op layer_norm_ops[] = {
    LAYER_NORM(layer_normalization, "normalise over the last dimensions", 1, 2, 3,
               layer_norm_attributes, layer_norm_axis),
    LAYER_NORM(rms_normalization, "divide by the root mean square over the last dimensions", 1, 1,
               1, layer_norm_attributes, layer_norm_axis),
    LAYER_NORM(instance_normalization, "normalise each channel of each example", 1, 2, 1,
               instance_norm_attributes, NULL),
    LAYER_NORM(group_normalization, "normalise each group of channels of each example", 1, 2, 1,
               group_norm_attributes, NULL),
};

PEN_OP_FAMILY(layer_norm);
