// Numbers as small integers, for models that were quantised elsewhere.
//
//   quantize_linear(x, scale, zero; axis)     y = round(x / scale) + zero, kept within its type
//   dequantize_linear(x, scale, zero; axis)   y = (x - zero) * scale
//   dynamic_quantize_linear(x)                y, scale, zero: uint8, of the range of x and 0
//
// Rounding is to the nearest, halves to even. Scale and zero are one number, or one for each slice
// along `axis`. Products of quantised matrices are made of these and of products of integers when
// a model is imported. None has a gradient.

#include <stddef.h>

#include "graph/ops/elementwise/elementwise_rule.h"

#define QUANTIZED_ELEMENTS (PEN_ELEMENT_BIT(PEN_INT8) | PEN_ELEMENT_BIT(PEN_UINT8))

// Operand `input`: one number, or one for each slice of operand 0 along the axis.
static pen_status quantization_check(const pen_infer_context *context, uint32_t input,
                                     const char *what) {
    if (!pen_infer_has_input(context, input)) return PEN_OK;
    const pen_shape *x = &pen_infer_input(context, 0)->shape;
    const pen_shape *shape = &pen_infer_input(context, input)->shape;
    uint32_t axis;
    if (pen_shape_element_count(shape) == 1 && shape->rank <= 1) return PEN_OK;
    PEN_TRY(pen_infer_axis(context, x->rank, pen_node_int(pen_infer_node(context), "axis"), &axis));
    if (shape->rank == 1 && shape->dims[0] == x->dims[axis]) return PEN_OK;
    char text[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "the %s has shape %s; one number, or %lld (for axis %u), are possible",
                           what, pen_shape_format(shape, text), (long long)x->dims[axis], axis);
}

static pen_status quantize_linear_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT | PEN_ELEMENT_BIT(PEN_INT32)));
    PEN_TRY(pen_infer_check_element(context, 1, PEN_ELEMENTS_FLOAT));
    PEN_TRY(quantization_check(context, 1, "scale"));
    PEN_TRY(quantization_check(context, 2, "zero point"));
    type.element = PEN_UINT8;
    if (pen_infer_has_input(context, 2)) {
        PEN_TRY(pen_infer_check_element(context, 2, QUANTIZED_ELEMENTS));
        type.element = pen_infer_input(context, 2)->element;
    }
    return pen_infer_set(context, 0, &type);
}

static pen_status dequantize_linear_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_element(context, 0, QUANTIZED_ELEMENTS | PEN_ELEMENT_BIT(PEN_INT32)));
    PEN_TRY(pen_infer_check_element(context, 1, PEN_ELEMENTS_FLOAT));
    PEN_TRY(quantization_check(context, 1, "scale"));
    PEN_TRY(quantization_check(context, 2, "zero point"));
    if (pen_infer_has_input(context, 2)) PEN_TRY(pen_infer_check_same_element(context, 2, 0));
    type.element = pen_infer_input(context, 1)->element;
    return pen_infer_set(context, 0, &type);
}

static pen_status dynamic_quantize_linear_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENT_BIT(PEN_FLOAT32)));
    const pen_tensor_type scale = pen_tensor_type_make(PEN_FLOAT32, 0, NULL);
    const pen_tensor_type zero = pen_tensor_type_make(PEN_UINT8, 0, NULL);
    type.element = PEN_UINT8;
    PEN_TRY(pen_infer_set(context, 0, &type));
    PEN_TRY(pen_infer_set(context, 1, &scale));
    return pen_infer_set(context, 2, &zero);
}

static const pen_attribute_schema quantization_attributes[] = {
    PEN_INT_OR("axis", 1),
};

static const pen_op quantization_ops[] = {
    {"quantize_linear", "numbers as small integers of a scale and a zero point", PEN_TAKES(2, 3),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(quantization_attributes), .infer = quantize_linear_infer,
     .output_flops = 1},
    {"dequantize_linear", "numbers of small integers, a scale and a zero point", PEN_TAKES(2, 3),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(quantization_attributes), .infer = dequantize_linear_infer,
     .output_flops = 1},
    {"dynamic_quantize_linear",
     "numbers as uint8, with the scale and zero point that their range gives", PEN_TAKES(1, 1),
     PEN_GIVES(3, 3), .infer = dynamic_quantize_linear_infer, .output_flops = 1},
};

PEN_OP_FAMILY(quantization);
