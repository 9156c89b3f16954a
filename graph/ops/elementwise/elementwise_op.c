// Arithmetic of two operands, and sums, means and extrema of any number, with broadcasting.
//
// Gradients that flow into an operand that was broadcast are summed down to its shape.

#include <string.h>

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"

static pen_status elementwise_infer(pen_infer_context *context, uint32_t elements) {
    pen_tensor_type type = {.element = pen_infer_input(context, 0)->element};
    PEN_TRY(pen_infer_same_elements(context, 0, elements));
    PEN_TRY(pen_infer_broadcast(context, 0, &type.shape));
    return pen_infer_set(context, 0, &type);
}

static pen_status number_infer(pen_infer_context *context) {
    return elementwise_infer(context, PEN_ELEMENTS_NUMBER);
}

static pen_status float_infer(pen_infer_context *context) {
    return elementwise_infer(context, PEN_ELEMENTS_FLOAT);
}

static pen_status shift_infer(pen_infer_context *context) {
    const char *direction = pen_node_text(pen_infer_node(context), "direction");
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "direction is '%s'; it may be LEFT or RIGHT", direction);
    }
    return elementwise_infer(context, PEN_ELEMENTS_UNSIGNED);
}

static pen_status mod_infer(pen_infer_context *context) {
    const bool is_float = pen_element_is_float(pen_infer_input(context, 0)->element);
    if (is_float && pen_node_int(pen_infer_node(context), "fmod") == 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "fmod is 0; floating operands need 1");
    }
    return number_infer(context);
}

// The exponent may have a type of its own.
static pen_status pow_infer(pen_infer_context *context) {
    pen_tensor_type type = {.element = pen_infer_input(context, 0)->element};
    PEN_TRY(pen_infer_check_element(
        context, 0, PEN_ELEMENTS_FLOAT | PEN_ELEMENT_BIT(PEN_INT32) | PEN_ELEMENT_BIT(PEN_INT64)));
    PEN_TRY(pen_infer_check_element(context, 1, PEN_ELEMENTS_NUMBER));
    PEN_TRY(pen_infer_broadcast(context, 0, &type.shape));
    return pen_infer_set(context, 0, &type);
}

static pen_status add_gradient(pen_gradient_context *context) {
    for (uint32_t i = 0; i < pen_gradient_node(context)->input_count; i++) {
        if (!pen_gradient_needed(context, i)) continue;
        PEN_TRY(pen_gradient_set_summed(context, i, pen_gradient_of_output(context, 0)));
    }
    return PEN_OK;
}

static pen_status sub_gradient(pen_gradient_context *context) {
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    if (pen_gradient_needed(context, 0)) PEN_TRY(pen_gradient_set_summed(context, 0, dy));
    if (!pen_gradient_needed(context, 1)) return PEN_OK;
    pen_value_id gradient; // summed first: there is less to negate
    PEN_TRY(pen_gradient_unbroadcast(context, 1, dy, &gradient));
    PEN_TRY(pen_gradient_apply(context, 1, "neg", gradient, PEN_VALUE_NONE, &gradient));
    pen_gradient_set(context, 1, gradient);
    return PEN_OK;
}

static pen_status mul_gradient(pen_gradient_context *context) {
    for (uint32_t i = 0; i < 2; i++) {
        if (!pen_gradient_needed(context, i)) continue;
        pen_value_id gradient;
        PEN_TRY(pen_gradient_apply(context, i, "mul", pen_gradient_of_output(context, 0),
                                   pen_gradient_input(context, 1 - i), &gradient));
        PEN_TRY(pen_gradient_set_summed(context, i, gradient));
    }
    return PEN_OK;
}

// A backward op (dy, a, b) whose result has the shape of dy, summed to that of `for_input`.
static pen_status gradient_of_pair(pen_gradient_context *context, uint32_t for_input,
                                   const char *op_name, pen_value_id a, pen_value_id b) {
    const pen_value_id operands[3] = {pen_gradient_of_output(context, 0), a, b};
    const pen_gradient_emission emission = {.op_name = op_name,
                                            .suffix = op_name,
                                            .for_input = for_input,
                                            .inputs = operands,
                                            .input_count = 3};
    pen_value_id gradient;
    PEN_TRY(pen_gradient_emit(context, &emission, &gradient));
    return pen_gradient_set_summed(context, for_input, gradient);
}

static pen_status div_gradient(pen_gradient_context *context) {
    const pen_value_id divisor = pen_gradient_input(context, 1);
    if (pen_gradient_needed(context, 0)) {
        pen_value_id gradient;
        PEN_TRY(pen_gradient_apply(context, 0, "div", pen_gradient_of_output(context, 0), divisor,
                                   &gradient));
        PEN_TRY(pen_gradient_set_summed(context, 0, gradient));
    }
    if (!pen_gradient_needed(context, 1)) return PEN_OK;
    return gradient_of_pair(context, 1, "div_backward_divisor", pen_gradient_output(context, 0),
                            divisor);
}

static pen_status pow_gradient(pen_gradient_context *context) {
    const pen_value_id base = pen_gradient_input(context, 0);
    const pen_value_id exponent = pen_gradient_input(context, 1);
    if (pen_gradient_needed(context, 0)) {
        PEN_TRY(gradient_of_pair(context, 0, "pow_backward_base", base, exponent));
    }
    if (!pen_gradient_needed(context, 1)) return PEN_OK;
    return gradient_of_pair(context, 1, "pow_backward_exponent", base, exponent);
}

// The first operand has the shape of the result, the others broadcast to it. All are of the same
// floating type.
static pen_status pair_backward_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_same_elements(context, 0, PEN_ELEMENTS_FLOAT));
    const pen_tensor_type *type = pen_infer_input(context, 0);
    for (uint32_t i = 1; i < pen_infer_node(context)->input_count; i++) {
        PEN_TRY(pen_infer_broadcasts_to(context, i, &type->shape));
    }
    return pen_infer_set(context, 0, type);
}

// The same but for the type of the exponent, which decides the result's when that is its gradient.
static pen_status pow_backward_infer_of(pen_infer_context *context, uint32_t typed_as) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    const pen_tensor_type type = {pen_infer_input(context, typed_as)->element,
                                  pen_infer_input(context, 0)->shape};
    PEN_TRY(pen_infer_broadcasts_to(context, 1, &type.shape));
    PEN_TRY(pen_infer_broadcasts_to(context, 2, &type.shape));
    return pen_infer_set(context, 0, &type);
}

static pen_status pow_backward_base_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 2, PEN_ELEMENTS_NUMBER));
    return pow_backward_infer_of(context, 0);
}

static pen_status pow_backward_exponent_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 2, PEN_ELEMENTS_FLOAT));
    return pow_backward_infer_of(context, 2);
}

// y = a - b trunc(a / b), so that the quotient is (a - y) / b.
static pen_status mod_gradient(pen_gradient_context *context) {
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    const pen_value_id b = pen_gradient_input(context, 1);
    if (pen_gradient_needed(context, 0)) PEN_TRY(pen_gradient_set_summed(context, 0, dy));
    if (!pen_gradient_needed(context, 1)) return PEN_OK;
    pen_value_id quotient, gradient;
    PEN_TRY(pen_gradient_apply(context, 1, "sub", pen_gradient_output(context, 0),
                               pen_gradient_input(context, 0), &quotient));
    PEN_TRY(pen_gradient_apply(context, 1, "div", quotient, b, &quotient));
    PEN_TRY(pen_gradient_apply(context, 1, "mul", dy, quotient, &gradient));
    return pen_gradient_set_summed(context, 1, gradient);
}

// The gradient of a mean's reduction, with the number of operands for the number of elements.
static pen_status mean_gradient(pen_gradient_context *context) {
    const uint32_t count = pen_gradient_node(context)->input_count;
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    const pen_shape shape = pen_value_type(pen_gradient_graph(context), dy)->shape;
    const pen_attribute_given attributes[2] = {
        pen_attribute_ints("shape", shape.rank, shape.dims),
        pen_attribute_float("scale", 1.0 / count),
    };
    for (uint32_t i = 0; i < count; i++) {
        if (!pen_gradient_needed(context, i)) continue;
        const pen_gradient_emission emission = {
            .op_name = "reduce_sum_backward",
            .for_input = i,
            .inputs = &dy,
            .input_count = 1,
            .attributes = attributes,
            .attribute_count = 2,
        };
        pen_value_id gradient;
        PEN_TRY(pen_gradient_emit(context, &emission, &gradient));
        PEN_TRY(pen_gradient_set_summed(context, i, gradient));
    }
    return PEN_OK;
}

// Each needs all operands, since those that tie share the gradient.
static pen_status extremum_gradient(pen_gradient_context *context, const char *op_name) {
    const uint32_t count = pen_gradient_node(context)->input_count;
    pen_value_id *operands;
    PEN_TRY(PEN_NEW(pen_graph_arena(pen_gradient_graph(context)), count + 1, &operands));
    operands[0] = pen_gradient_of_output(context, 0);
    for (uint32_t i = 0; i < count; i++) {
        operands[i + 1] = pen_gradient_input(context, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!pen_gradient_needed(context, i)) continue;
        const pen_attribute_given index = pen_attribute_int("index", i);
        const pen_gradient_emission emission = {
            .op_name = op_name,
            .suffix = op_name,
            .for_input = i,
            .inputs = operands,
            .input_count = count + 1,
            .attributes = &index,
            .attribute_count = 1,
        };
        pen_value_id gradient;
        PEN_TRY(pen_gradient_emit(context, &emission, &gradient));
        PEN_TRY(pen_gradient_set_summed(context, i, gradient));
    }
    return PEN_OK;
}

static pen_status max_gradient(pen_gradient_context *context) {
    return extremum_gradient(context, "max_backward");
}

static pen_status min_gradient(pen_gradient_context *context) {
    return extremum_gradient(context, "min_backward");
}

static pen_status extremum_backward_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const int64_t index = pen_node_int(node, "index");
    if (index < 0 || index >= (int64_t)node->input_count - 1) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "index is %lld; there are %u operands",
                               (long long)index, node->input_count - 1);
    }
    for (uint32_t i = 1; i < node->input_count; i++) {
        if (pen_infer_has_input(context, i)) continue;
        return pen_infer_error(context, PEN_INVALID_INPUT, "input %u is left out", i);
    }
    return pair_backward_infer(context);
}

static uint64_t variadic_flops(const pen_graph *graph, pen_node_id node) {
    return pen_flops_of_output(graph, node) * (pen_graph_node(graph, node)->input_count - 1);
}

static const pen_attribute_schema mod_attributes[] = {
    PEN_INT_OR("fmod", 0),
};
static const pen_attribute_schema shift_attributes[] = {
    PEN_MUST("direction", TEXT),
};
static const pen_attribute_schema index_attributes[] = {
    PEN_MUST("index", INT),
};

#define BINARY_OP(op, does, in_place, zeros, infer_rule, gradient_rule)                            \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(2, 2), PEN_GIVES(1, 1),                            \
        .in_place_inputs = in_place, .infer = infer_rule, .gradient = gradient_rule,               \
        .output_flops = 1, .is_elementwise = true, .keeps_zeros = zeros                            \
    }
#define BINARY_BACKWARD(op, does, in_place, infer_rule)                                            \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(3, 3), PEN_GIVES(1, 1),                            \
        .in_place_inputs = in_place, .infer = infer_rule, .output_flops = 1                        \
    }
#define VARIADIC_OP(op, does, infer_rule, gradient_rule)                                           \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(1, PEN_VARIADIC), PEN_GIVES(1, 1),                 \
        .in_place_inputs = 3, .infer = infer_rule, .gradient = gradient_rule,                      \
        .flops = variadic_flops, .is_elementwise = true, .keeps_zeros = true                       \
    }
#define EXTREMUM_BACKWARD(op)                                                                      \
    {                                                                                              \
        .name = #op "_backward",                                                                   \
        .summary = "gradient of operand `index` of " #op " from that of its output, and all "      \
                   "operands; equals share it evenly",                                             \
        PEN_TAKES(2, PEN_VARIADIC), PEN_GIVES(1, 1), PEN_ATTRIBUTES(index_attributes),             \
        .in_place_inputs = 1, .infer = extremum_backward_infer, .flops = variadic_flops            \
    }

// In place only on operands of the result's element type: of others, equal bytes do not mean equal
// positions.
static const pen_op elementwise_ops[] = {
    BINARY_OP(add, "a + b", 3, true, number_infer, add_gradient),
    BINARY_OP(sub, "a - b", 3, true, number_infer, sub_gradient),
    BINARY_OP(mul, "a b", 3, true, number_infer, mul_gradient),
    BINARY_OP(div, "a / b; of integers, rounded towards 0", 3, false, number_infer, div_gradient),
    {"pow", "a to the power of b, in the type of a", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     .in_place_inputs = 1, .infer = pow_infer, .gradient = pow_gradient, .output_flops = 1,
     .is_elementwise = true, .wants_positive = true},
    BINARY_BACKWARD(div_backward_divisor, "-dy y / b, the gradient of b in y = a / b", 7,
                    pair_backward_infer),
    BINARY_BACKWARD(pow_backward_base, "dy b a^(b-1), the gradient of a in a^b", 3,
                    pow_backward_base_infer),
    BINARY_BACKWARD(pow_backward_exponent, "dy a^b log(a), the gradient of b in a^b", 1,
                    pow_backward_exponent_infer),
    {"mod", "remainder with the sign of b, or of a if fmod is 1", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(mod_attributes), .in_place_inputs = 3, .infer = mod_infer,
     .gradient = mod_gradient, .output_flops = 1},
    {"bit_shift", "the bits of a moved by b", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(shift_attributes), .in_place_inputs = 3, .infer = shift_infer,
     .output_flops = 1},
    VARIADIC_OP(sum, "the sum of all operands", float_infer, add_gradient),
    VARIADIC_OP(mean, "the mean of all operands", float_infer, mean_gradient),
    VARIADIC_OP(max, "the largest of all operands", number_infer, max_gradient),
    VARIADIC_OP(min, "the smallest of all operands", number_infer, min_gradient),
    EXTREMUM_BACKWARD(max),
    EXTREMUM_BACKWARD(min),
};

PEN_OP_FAMILY(elementwise);
