// Comparisons and logic, with broadcasting; their results are bool and have no gradient. And
// `where`, which chooses between two operands and has one.

#include "graph/ops/elementwise/elementwise_rule.h"

static pen_status bool_infer(pen_infer_context *context, uint32_t elements) {
    pen_tensor_type type = {.element = PEN_BOOL};
    PEN_TRY(pen_infer_same_elements(context, 0, elements));
    PEN_TRY(pen_infer_broadcast(context, 0, &type.shape));
    return pen_infer_set(context, 0, &type);
}

static pen_status equal_infer(pen_infer_context *context) {
    return bool_infer(context, PEN_ELEMENTS_ANY);
}

static pen_status order_infer(pen_infer_context *context) {
    return bool_infer(context, PEN_ELEMENTS_NUMBER);
}

static pen_status logic_infer(pen_infer_context *context) {
    return bool_infer(context, PEN_ELEMENT_BIT(PEN_BOOL));
}

static pen_status float_test_infer(pen_infer_context *context) {
    return bool_infer(context, PEN_ELEMENTS_FLOAT);
}

static pen_status where_infer(pen_infer_context *context) {
    pen_tensor_type type = {.element = pen_infer_input(context, 1)->element};
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENT_BIT(PEN_BOOL)));
    PEN_TRY(pen_infer_same_elements(context, 1, PEN_ELEMENTS_ANY));
    PEN_TRY(pen_infer_broadcast(context, 0, &type.shape));
    return pen_infer_set(context, 0, &type);
}

// The gradient goes where the condition let the operand through; the other side gets zeros.
static pen_status where_gradient(pen_gradient_context *context) {
    const pen_value_id operands[2] = {pen_gradient_of_output(context, 0),
                                      pen_gradient_input(context, 0)};
    for (uint32_t i = 1; i < 3; i++) {
        if (!pen_gradient_needed(context, i)) continue;
        const pen_attribute_given when = pen_attribute_int("when", i == 1);
        const pen_gradient_emission emission = {
            .op_name = "where_backward",
            .for_input = i,
            .inputs = operands,
            .input_count = 2,
            .attributes = &when,
            .attribute_count = 1,
        };
        pen_value_id gradient;
        PEN_TRY(pen_gradient_emit(context, &emission, &gradient));
        PEN_TRY(pen_gradient_set_summed(context, i, gradient));
    }
    return PEN_OK;
}

static pen_status where_backward_infer(pen_infer_context *context) {
    const pen_tensor_type *type = pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_element(context, 1, PEN_ELEMENT_BIT(PEN_BOOL)));
    PEN_TRY(pen_infer_broadcasts_to(context, 1, &type->shape));
    return pen_infer_set(context, 0, type);
}

static const pen_attribute_schema isinf_attributes[] = {
    PEN_INT_OR("detect_negative", 1),
    PEN_INT_OR("detect_positive", 1),
};
static const pen_attribute_schema when_attributes[] = {
    PEN_MUST("when", INT),
};

#define COMPARISON(op, does, infer_rule, in_place)                                                 \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(2, 2), PEN_GIVES(1, 1),                            \
        .in_place_inputs = in_place, .infer = infer_rule, .output_flops = 1,                       \
        .axis_rule = pen_axis_elementwise                                                          \
    }

static const pen_op comparison_ops[] = {
    COMPARISON(equal, "whether a = b", equal_infer, 0),
    COMPARISON(less, "whether a < b", order_infer, 0),
    COMPARISON(less_or_equal, "whether a <= b", order_infer, 0),
    COMPARISON(greater, "whether a > b", order_infer, 0),
    COMPARISON(greater_or_equal, "whether a >= b", order_infer, 0),
    COMPARISON(and, "whether a and b", logic_infer, 3),
    COMPARISON(or, "whether a or b", logic_infer, 3),
    COMPARISON(xor, "whether a differs from b", logic_infer, 3),
    {"not", "whether not x", PEN_TAKES(1, 1), PEN_GIVES(1, 1), .in_place_inputs = 1,
     .infer = logic_infer, .output_flops = 1, .axis_rule = pen_axis_elementwise},
    {"isnan", "whether x is not a number", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     .infer = float_test_infer, .output_flops = 1, .axis_rule = pen_axis_elementwise},
    {"isinf", "whether x is infinite", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(isinf_attributes), .infer = float_test_infer, .output_flops = 1,
     .axis_rule = pen_axis_elementwise},
    {"where", "a where the condition holds, else b", PEN_TAKES(3, 3), PEN_GIVES(1, 1),
     .in_place_inputs = 6, .infer = where_infer, .gradient = where_gradient,
     .is_elementwise = true},
    {"where_backward", "dy where the condition is `when`, else 0", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(when_attributes), .in_place_inputs = 1, .infer = where_backward_infer},
};

PEN_OP_FAMILY(comparison);
