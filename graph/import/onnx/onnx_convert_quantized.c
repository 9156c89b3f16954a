// Conversions of operators on quantised numbers: products of integers, made of ours.
//
// Sums of products of bytes are made in float64, which holds them exactly, and of matrices in
// int32, as ONNX says.

#include <string.h>

#include "graph/import/onnx/onnx_mapping.h"

// A node in front of the draft's, of two operands.
static pen_status quantized_apply(pen_onnx_draft *draft, const char *op_name, pen_value_id a,
                                  pen_value_id b, pen_value_id *out_value) {
    const pen_onnx_extra extra = {op_name, op_name, PEN_INPUTS(a, b), PEN_NO_ATTRIBUTES};
    return pen_onnx_draft_extra(draft, &extra, out_value);
}

static pen_status quantized_cast(pen_onnx_draft *draft, pen_value_id value, const char *element,
                                 pen_value_id *out_value) {
    const pen_onnx_extra cast = {"cast", "cast", PEN_INPUTS(value),
                                 PEN_WITH(pen_attribute_text("to", element))};
    return pen_onnx_draft_extra(draft, &cast, out_value);
}

// `value` with dimensions of size 1 behind its own, so that it goes along an axis in front of
// `count` others. Numbers alone stay.
static pen_status quantized_align(pen_onnx_draft *draft, pen_value_id value, uint32_t count,
                                  pen_value_id *out_value) {
    static const int64_t axes[] = {1, 2, 3};
    const pen_shape *shape = &pen_value_type(draft->graph, value)->shape;
    pen_value_id list;
    *out_value = value;
    if (shape->rank != 1 || shape->dims[0] == 1 || count == 0) return PEN_OK;
    PEN_ASSERT(count <= 3);
    PEN_TRY(pen_onnx_draft_list(draft, "axes", count, axes, &list));
    return quantized_apply(draft, "unsqueeze", value, list, out_value);
}

// Operand `input` less its zero point (operand `zero`, if there), as `element`. A zero point for
// each slice goes along an axis in front of `behind` others.
static pen_status quantized_center(pen_onnx_draft *draft, uint32_t input, uint32_t zero,
                                   uint32_t behind, const char *element, pen_value_id *out_value) {
    pen_value_id offset;
    if (!pen_onnx_draft_has(draft, input)) {
        return pen_error(PEN_INVALID_INPUT, "operand %u is left out", input);
    }
    PEN_TRY(quantized_cast(draft, draft->inputs[input], element, out_value));
    if (!pen_onnx_draft_has(draft, zero)) return PEN_OK;
    PEN_TRY(quantized_align(draft, draft->inputs[zero], behind, &offset));
    PEN_TRY(quantized_cast(draft, offset, element, &offset));
    return quantized_apply(draft, "sub", *out_value, offset, out_value);
}

// The node itself becomes `op_name` of these operands, without attributes.
static void quantized_finish(pen_onnx_draft *draft, const char *op_name, uint32_t count,
                             const pen_value_id *inputs) {
    draft->op_name = op_name;
    draft->input_count = count;
    draft->attribute_count = 0;
    memcpy(draft->inputs, inputs, count * sizeof *inputs);
}

pen_status pen_onnx_convert_matmul_integer(pen_onnx_draft *draft) {
    pen_value_id operands[2];
    PEN_TRY(quantized_center(draft, 0, 2, 1, "int32", &operands[0]));
    PEN_TRY(quantized_center(draft, 1, 3, 0, "int32", &operands[1]));
    quantized_finish(draft, "matmul", 2, operands);
    return PEN_OK;
}

// The convolution of centered operands 0 and `weight`, with the node's own attributes.
static pen_status quantized_convolve(pen_onnx_draft *draft, uint32_t x_zero, uint32_t weight,
                                     uint32_t weight_zero, pen_value_id bias,
                                     pen_value_id *out_value) {
    pen_value_id inputs[3] = {PEN_VALUE_NONE, PEN_VALUE_NONE, bias};
    uint32_t rank = 4;
    if (!pen_onnx_draft_rank(draft, weight, &rank) || rank < 3 || rank > 5) rank = 4;
    PEN_TRY(quantized_center(draft, 0, x_zero, 0, "float64", &inputs[0]));
    PEN_TRY(quantized_center(draft, weight, weight_zero, rank - 1 > 3 ? 3 : rank - 1, "float64",
                             &inputs[1]));
    const pen_onnx_extra conv = {.op_name = "conv",
                                 .suffix = "conv",
                                 .inputs = {inputs, pen_value_is(bias) ? 3 : 2},
                                 .attributes = {draft->attributes, draft->attribute_count}};
    return pen_onnx_draft_extra(draft, &conv, out_value);
}

pen_status pen_onnx_convert_conv_integer(pen_onnx_draft *draft) {
    pen_value_id sums;
    PEN_TRY(quantized_convolve(draft, 2, 1, 3, PEN_VALUE_NONE, &sums));
    quantized_finish(draft, "cast", 1, &sums);
    pen_onnx_draft_add_attribute(draft, pen_attribute_text("to", "int32"));
    return PEN_OK;
}

// Sums of products times both scales, quantised to operands `scale` and scale + 1.
static pen_status quantized_rescale(pen_onnx_draft *draft, pen_value_id sums, pen_value_id a_scale,
                                    pen_value_id b_scale, uint32_t scale) {
    pen_value_id factor, numbers;
    PEN_TRY(quantized_cast(draft, sums, "float32", &numbers));
    PEN_TRY(quantized_apply(draft, "mul", a_scale, b_scale, &factor));
    PEN_TRY(quantized_apply(draft, "mul", numbers, factor, &numbers));
    const pen_value_id inputs[] = {numbers, draft->inputs[scale], draft->inputs[scale + 1]};
    quantized_finish(draft, "quantize_linear", 3, inputs);
    return PEN_OK;
}

static pen_status quantized_check_arity(const pen_onnx_draft *draft) {
    for (uint32_t i = 0; i < 8; i++) {
        if (!pen_onnx_draft_has(draft, i)) {
            return pen_error(PEN_INVALID_INPUT, "operand %u is left out", i);
        }
    }
    return PEN_OK;
}

pen_status pen_onnx_convert_qlinear_matmul(pen_onnx_draft *draft) {
    pen_value_id operands[2], a_scale, product;
    PEN_TRY(quantized_check_arity(draft));
    PEN_TRY(quantized_center(draft, 0, 2, 1, "int32", &operands[0]));
    PEN_TRY(quantized_center(draft, 3, 5, 0, "int32", &operands[1]));
    PEN_TRY(quantized_apply(draft, "matmul", operands[0], operands[1], &product));
    PEN_TRY(quantized_align(draft, draft->inputs[1], 1, &a_scale));
    return quantized_rescale(draft, product, a_scale, draft->inputs[4], 6);
}

pen_status pen_onnx_convert_qlinear_conv(pen_onnx_draft *draft) {
    pen_value_id sums, bias = PEN_VALUE_NONE, w_scale;
    uint32_t rank = 4;
    PEN_TRY(quantized_check_arity(draft));
    if (pen_onnx_draft_has(draft, 8)) {
        PEN_TRY(quantized_cast(draft, draft->inputs[8], "float64", &bias));
    }
    if (!pen_onnx_draft_rank(draft, 3, &rank) || rank < 3 || rank > 5) rank = 4;
    PEN_TRY(quantized_convolve(draft, 2, 3, 5, bias, &sums));
    PEN_TRY(quantized_align(draft, draft->inputs[4], rank - 2, &w_scale));
    return quantized_rescale(draft, sums, draft->inputs[1], w_scale, 6);
}
