// Softmax and its kin along one axis. The gradients need only the output:
//   softmax      dx = y (dy - sum of dy y)
//   log_softmax  dx = dy - exp(y) (sum of dy)

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/shared/shape_rule.h"

static pen_status softmax_check_axis(const pen_infer_context *context) {
    uint32_t axis;
    return pen_infer_axis(context, pen_infer_input(context, 0)->shape.rank,
                          pen_node_int(pen_infer_node(context), "axis"), &axis);
}

static pen_status softmax_infer(pen_infer_context *context) {
    PEN_TRY(softmax_check_axis(context));
    return pen_infer_float_map(context);
}

static pen_status softmax_backward_infer(pen_infer_context *context) {
    PEN_TRY(softmax_check_axis(context));
    return pen_infer_alike(context);
}

// Lines along the axis have nothing to do with each other.
static pen_axis_link softmax_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                  uint32_t input) {
    const uint32_t rank = pen_value_type(graph, node->inputs[input])->shape.rank;
    if (axis == pen_axis_given(node, rank)) return pen_axis_all();
    return pen_axis_same(axis);
}

// A subtraction, an exponential, an addition and a division an element.
static const pen_attribute_schema softmax_attributes[] = {
    PEN_INT_OR("axis", -1),
};

#define SOFTMAX_OP(op, does, gradient_rule)                                                        \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(1, 1), PEN_GIVES(1, 1),                            \
        PEN_ATTRIBUTES(softmax_attributes), .in_place_inputs = 1, .infer = softmax_infer,          \
        .gradient = gradient_rule, .output_flops = 4, .axis_rule = softmax_axis                    \
    }
#define SOFTMAX_BACKWARD(op)                                                                       \
    {                                                                                              \
        .name = #op "_backward",                                                                   \
        .summary = "gradient of " #op " from that of its output, and its output", PEN_TAKES(2, 2), \
        PEN_GIVES(1, 1), PEN_ATTRIBUTES(softmax_attributes), .in_place_inputs = 3,                 \
        .infer = softmax_backward_infer, .output_flops = 4                                         \
    }

// In place: a line along the axis is read as a whole before its first element is written.
static const pen_op softmax_ops[] = {
    SOFTMAX_OP(softmax, "exp(x), divided by its sum along an axis", pen_gradient_from_output),
    SOFTMAX_OP(log_softmax, "logarithm of softmax", pen_gradient_from_output),
    SOFTMAX_OP(hardmax, "1 at the first largest element along an axis, else 0",
               pen_gradient_is_zero),
    SOFTMAX_BACKWARD(softmax),
    SOFTMAX_BACKWARD(log_softmax),
};

PEN_OP_FAMILY(softmax);
