// Reductions over axes. `axes` is always the second operand, an int64 constant.
//
// Gradients work on the shape with reduced dimensions kept as 1, where everything broadcasts:
//   sum, mean    dy · scale, repeated                     reduce_sum_backward(dy)
//   max, min     dy / (number of equals), at the extrema  reduce_max_backward(dy, x, y): equals
//                share the gradient evenly
//   prod         dy · product of the others               reduce_prod_backward(dy, x)
//   l1           dy · sign(x)                             reduce_l1_backward(dy, x)
//   l2           dy · x / y, 0 where y = 0                reduce_l2_backward(dy, x, y)
//   sum_square   dy · 2 x                                 reduce_sum_square_backward(dy, x)
//   log_sum      dy / exp(y), repeated                    exp, div, reduce_sum_backward
//   log_sum_exp  dy · exp(x - y)                          reduce_log_sum_exp_backward(dy, x, y)

#include <stddef.h>
#include <stdio.h>

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/reduction/reduction_axes.h"
#include "graph/ops/shared/shape_rule.h"

// A mean or maximum of nothing is refused; a sum of nothing is zero.
static pen_status reduction_infer_of(pen_infer_context *context, uint32_t elements,
                                     bool needs_elements) {
    PEN_TRY(pen_infer_check_element(context, 0, elements));
    const pen_node *node = pen_infer_node(context);
    const pen_tensor_type *input = pen_infer_input(context, 0);
    uint32_t axis_count;
    const int64_t *integers;
    pen_reduction_axes axes;
    PEN_TRY(pen_infer_ints(context, 1, &axis_count, &integers));
    PEN_TRY(pen_infer_wrap(
        context, pen_reduction_axes_find(node, &input->shape, axis_count, integers, &axes)));
    const pen_tensor_type type = {input->element,
                                  pen_reduction_shape(&axes, pen_node_int(node, "keepdims") != 0)};
    if (needs_elements && axes.count == 0 && pen_shape_element_count(&type.shape) > 0) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT, "input 0 is %s: there is no element",
                               pen_shape_format(&input->shape, text));
    }
    return pen_infer_set(context, 0, &type);
}

static pen_status reduction_infer(pen_infer_context *context) {
    return reduction_infer_of(context, PEN_ELEMENTS_FLOAT | PEN_ELEMENTS_WIDE_INTEGER, false);
}

static pen_status mean_infer(pen_infer_context *context) {
    return reduction_infer_of(context, PEN_ELEMENTS_FLOAT | PEN_ELEMENTS_WIDE_INTEGER, true);
}

static pen_status extremum_infer(pen_infer_context *context) {
    return reduction_infer_of(context,
                              PEN_ELEMENTS_FLOAT | PEN_ELEMENTS_WIDE_INTEGER |
                                  PEN_ELEMENT_BIT(PEN_INT8) | PEN_ELEMENT_BIT(PEN_UINT8),
                              true);
}

static pen_status argument_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_NUMBER));
    const pen_node *node = pen_infer_node(context);
    const pen_shape *shape = &pen_infer_input(context, 0)->shape;
    uint32_t axis;
    PEN_TRY(pen_infer_axis(context, shape->rank, pen_node_int(node, "axis"), &axis));
    pen_reduction_axes axes = {.kept = *shape};
    axes.reduced[axis] = true;
    axes.kept.dims[axis] = 1;
    const pen_tensor_type type = {PEN_INT64,
                                  pen_reduction_shape(&axes, pen_node_int(node, "keepdims") != 0)};
    if (shape->dims[axis] == 0 && pen_shape_element_count(&type.shape) > 0) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT, "input 0 is %s: axis %u has no element",
                               pen_shape_format(shape, text), axis);
    }
    return pen_infer_set(context, 0, &type);
}

// What a gradient rule works with.
typedef struct reduction_gradient {
    pen_reduction_axes axes;
    pen_shape shape; // of the input
} reduction_gradient;

static pen_status reduction_gradient_init(reduction_gradient *work, pen_gradient_context *context) {
    pen_graph *graph = pen_gradient_graph(context);
    const pen_value_id axes = pen_gradient_input(context, 1);
    uint32_t axis_count = 0;
    const int64_t *integers = NULL;
    work->shape = pen_value_type(graph, pen_gradient_input(context, 0))->shape;
    if (pen_value_is(axes)) PEN_TRY(pen_value_read_ints(graph, axes, &axis_count, &integers));
    return pen_reduction_axes_find(pen_gradient_node(context), &work->shape, axis_count, integers,
                                   &work->axes);
}

// `value`, shaped as the output, in the shape with reduced dimensions kept: a view.
static pen_status reduction_keep(const reduction_gradient *work, pen_gradient_context *context,
                                 pen_value_id value, pen_value_id *out_value) {
    const pen_shape *kept = &work->axes.kept;
    *out_value = value;
    if (pen_shape_equal(&pen_value_type(pen_gradient_graph(context), value)->shape, kept)) {
        return PEN_OK;
    }
    pen_value_id shape;
    PEN_TRY(pen_gradient_ints(context, "kept_shape", kept->rank, kept->dims, &shape));
    return pen_gradient_apply(context, 0, "reshape", value, shape, out_value);
}

// `gradient` times `scale`, repeated over the reduced dimensions.
static pen_status reduction_repeat(const reduction_gradient *work, pen_gradient_context *context,
                                   pen_value_id gradient, double scale) {
    const pen_attribute_given attributes[2] = {
        pen_attribute_ints("shape", work->shape.rank, work->shape.dims),
        pen_attribute_float("scale", scale),
    };
    const pen_gradient_emission emission = {
        .op_name = "reduce_sum_backward",
        .suffix = "reduce_sum_backward",
        .inputs = &gradient,
        .input_count = 1,
        .attributes = attributes,
        .attribute_count = 2,
    };
    return pen_gradient_emit_set(context, &emission);
}

static pen_status sum_gradient(pen_gradient_context *context) {
    reduction_gradient work = {0};
    pen_value_id dy;
    PEN_TRY(reduction_gradient_init(&work, context));
    PEN_TRY(reduction_keep(&work, context, pen_gradient_of_output(context, 0), &dy));
    return reduction_repeat(&work, context, dy, 1);
}

static pen_status mean_gradient(pen_gradient_context *context) {
    reduction_gradient work = {0};
    pen_value_id dy;
    PEN_TRY(reduction_gradient_init(&work, context));
    PEN_TRY(reduction_keep(&work, context, pen_gradient_of_output(context, 0), &dy));
    return reduction_repeat(&work, context, dy, 1.0 / (double)work.axes.count);
}

static pen_status log_sum_gradient(pen_gradient_context *context) {
    reduction_gradient work = {0};
    pen_value_id dy = pen_gradient_of_output(context, 0), sum;
    PEN_TRY(reduction_gradient_init(&work, context));
    PEN_TRY(pen_gradient_apply(context, 0, "exp", pen_gradient_output(context, 0), PEN_VALUE_NONE,
                               &sum));
    PEN_TRY(pen_gradient_apply(context, 0, "div", dy, sum, &dy));
    PEN_TRY(reduction_keep(&work, context, dy, &dy));
    return reduction_repeat(&work, context, dy, 1);
}

static pen_status reduction_gradient_from(pen_gradient_context *context, bool with_output) {
    reduction_gradient work = {0};
    pen_value_id operands[3] = {PEN_VALUE_NONE, pen_gradient_input(context, 0), PEN_VALUE_NONE};
    PEN_TRY(reduction_gradient_init(&work, context));
    PEN_TRY(reduction_keep(&work, context, pen_gradient_of_output(context, 0), &operands[0]));
    if (with_output) {
        PEN_TRY(reduction_keep(&work, context, pen_gradient_output(context, 0), &operands[2]));
    }
    char op_name[64];
    snprintf(op_name, sizeof op_name, "%s_backward", pen_gradient_node(context)->op->name);
    const pen_gradient_emission emission = {
        .op_name = op_name,
        .inputs = operands,
        .input_count = with_output ? 3 : 2,
    };
    return pen_gradient_emit_set(context, &emission);
}

static pen_status gradient_from_input(pen_gradient_context *context) {
    return reduction_gradient_from(context, false);
}

static pen_status gradient_from_both(pen_gradient_context *context) {
    return reduction_gradient_from(context, true);
}

static pen_status sum_backward_infer(pen_infer_context *context) {
    pen_tensor_type type;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_shape_attribute(context, "shape", &type));
    PEN_TRY(pen_infer_broadcasts_to(context, 0, &type.shape));
    return pen_infer_set(context, 0, &type);
}

// (dy, x) or (dy, x, y): the result has the type of x.
static pen_status backward_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_same_elements(context, 0, PEN_ELEMENTS_FLOAT));
    const pen_tensor_type *type = pen_infer_input(context, 1);
    PEN_TRY(pen_infer_broadcasts_to(context, 0, &type->shape));
    if (pen_infer_has_input(context, 2)) {
        PEN_TRY(pen_infer_check_shape(context, 2, &pen_infer_input(context, 0)->shape));
    }
    return pen_infer_set(context, 0, type);
}

// A dimension that stays is one of the input, of which each position is reduced by itself.
static pen_axis_link reduction_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                    uint32_t input) {
    const pen_shape *shape = &pen_value_type(graph, node->inputs[input])->shape;
    const bool has_axes = node->input_count > 1 && pen_value_is(node->inputs[1]);
    uint32_t count = 0;
    const int64_t *integers = NULL;
    pen_reduction_axes axes;
    pen_status status = PEN_OK;
    if (has_axes) status = pen_value_read_ints(graph, node->inputs[1], &count, &integers);
    if (status == PEN_OK) {
        status = pen_reduction_axes_find(node, shape, count, integers, &axes);
    }
    if (status != PEN_OK) {
        pen_status_ignore(status, "then it is not known which dimensions stay");
        return pen_axis_unknown();
    }
    const bool keeps = pen_node_int(node, "keepdims") != 0;
    uint32_t own = 0;
    for (uint32_t left = axis; own < shape->rank; own++) {
        if (!keeps && axes.reduced[own]) continue;
        if (left-- == 0) break;
    }
    return axes.reduced[own] ? pen_axis_all() : pen_axis_same(own);
}

static const pen_attribute_schema reduction_attributes[] = {
    PEN_INT_OR("keepdims", 1),
    PEN_INT_OR("noop_with_empty_axes", 0),
};
static const pen_attribute_schema argument_attributes[] = {
    PEN_INT_OR("axis", 0),
    PEN_INT_OR("keepdims", 1),
    PEN_INT_OR("select_last_index", 0),
};
static const pen_attribute_schema sum_backward_attributes[] = {
    PEN_MUST("shape", INTS),
    PEN_FLOAT_OR("scale", 1),
};

#define REDUCTION(op, does, infer_rule, gradient_rule)                                             \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(1, 2), PEN_GIVES(1, 1),                            \
        PEN_ATTRIBUTES(reduction_attributes), .constant_inputs = 2, .infer = infer_rule,           \
        .gradient = gradient_rule, .input_flops = 1, .axis_rule = reduction_axis                   \
    }
#define ARGUMENT(op, does)                                                                         \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(1, 1), PEN_GIVES(1, 1),                            \
        PEN_ATTRIBUTES(argument_attributes), .infer = argument_infer, .input_flops = 1             \
    }
#define REDUCTION_BACKWARD(op, inputs)                                                             \
    {                                                                                              \
        .name = #op "_backward", .summary = "gradient of " #op, PEN_TAKES(inputs, inputs),         \
        PEN_GIVES(1, 1), .in_place_inputs = 2, .infer = backward_infer, .output_flops = 1          \
    }

static const pen_op reduction_ops[] = {
    REDUCTION(reduce_sum, "sum", reduction_infer, sum_gradient),
    REDUCTION(reduce_mean, "mean; of integers, rounded towards 0", mean_infer, mean_gradient),
    REDUCTION(reduce_max, "largest element", extremum_infer, gradient_from_both),
    REDUCTION(reduce_min, "smallest element", extremum_infer, gradient_from_both),
    REDUCTION(reduce_prod, "product", reduction_infer, gradient_from_input),
    REDUCTION(reduce_l1, "sum of absolute values", reduction_infer, gradient_from_input),
    REDUCTION(reduce_l2, "square root of the sum of squares", reduction_infer, gradient_from_both),
    REDUCTION(reduce_sum_square, "sum of squares", reduction_infer, gradient_from_input),
    REDUCTION(reduce_log_sum, "logarithm of the sum", reduction_infer, log_sum_gradient),
    REDUCTION(reduce_log_sum_exp, "logarithm of the sum of exponentials", reduction_infer,
              gradient_from_both),
    ARGUMENT(arg_max, "position of the largest element along an axis"),
    ARGUMENT(arg_min, "position of the smallest element along an axis"),
    {"reduce_sum_backward", "dy times `scale`, broadcast to `shape`", PEN_TAKES(1, 1),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(sum_backward_attributes), .in_place_inputs = 1,
     .infer = sum_backward_infer, .output_flops = 1},
    REDUCTION_BACKWARD(reduce_max, 3),
    REDUCTION_BACKWARD(reduce_min, 3),
    REDUCTION_BACKWARD(reduce_prod, 2),
    REDUCTION_BACKWARD(reduce_l1, 2),
    REDUCTION_BACKWARD(reduce_l2, 3),
    REDUCTION_BACKWARD(reduce_sum_square, 2),
    REDUCTION_BACKWARD(reduce_log_sum_exp, 3),
};

PEN_OP_FAMILY(reduction);
