// Products of matrices in TensorFlow, what is taken along an axis, and gradients in graphs that
// have them.

#include <string.h>

#include "graph/import/tensorflow/graphdef_mapping.h"

// ---- products

static pen_status convert_matmul(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    const int64_t transposes_a = pen_graphdef_int(node, "transpose_a", 0);
    const int64_t transposes_b = pen_graphdef_int(node, "transpose_b", 0);
    const pen_attribute_given attributes[] = {pen_attribute_int("transA", transposes_a),
                                              pen_attribute_int("transB", transposes_b)};
    const bool is_plain = transposes_a == 0 && transposes_b == 0;
    pen_graphdef_value operands[2];
    PEN_TRY(pen_graphdef_operands(draft, 2, operands));
    return pen_graphdef_give(draft, is_plain ? "matmul" : "gemm",
                             PEN_GRAPHDEF_INPUTS(operands[0], operands[1]),
                             (pen_node_attributes){attributes, is_plain ? 0 : 2});
}

// Swaps the last two dimensions.
static pen_status matmul_adjoint(pen_graphdef_draft *draft, uint32_t input, const char *suffix,
                                 pen_graphdef_value *operand) {
    int64_t permutation[PEN_RANK_LIMIT];
    uint32_t rank;
    if (!pen_graphdef_operand_rank(draft, input, &rank) || rank < 2) {
        return pen_error(PEN_UNSUPPORTED, "operand %u is transposed, but its rank is not known",
                         input);
    }
    for (uint32_t d = 0; d < rank; d++) {
        permutation[d] = d;
    }
    permutation[rank - 1] = rank - 2;
    permutation[rank - 2] = rank - 1;
    return pen_graphdef_emit_transpose(draft, suffix, *operand, rank, permutation, operand);
}

static pen_status convert_batch_matmul(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    pen_graphdef_value a, b;
    PEN_TRY(pen_graphdef_operand(draft, 0, &a));
    PEN_TRY(pen_graphdef_operand(draft, 1, &b));
    if (pen_graphdef_int(node, "adj_x", 0) != 0) PEN_TRY(matmul_adjoint(draft, 0, "adj_x", &a));
    if (pen_graphdef_int(node, "adj_y", 0) != 0) PEN_TRY(matmul_adjoint(draft, 1, "adj_y", &b));
    return pen_graphdef_give_pair(draft, false, "matmul", a, b);
}

static pen_status convert_softmax(pen_graphdef_draft *draft) {
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    return pen_graphdef_give(draft, draft->mapping->op_name, PEN_GRAPHDEF_INPUTS(x),
                             PEN_WITH(pen_attribute_int("axis", -1)));
}

static pen_status convert_arg_extremum(pen_graphdef_draft *draft) {
    const pen_element_type element = pen_graphdef_type(draft->node, "output_type", PEN_INT64);
    int64_t axis;
    pen_graphdef_value x, index;
    PEN_TRY(pen_graphdef_operand_int(draft, 1, &axis));
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    const bool is_cast = element != PEN_INT64;
    PEN_TRY(pen_graphdef_emit(
        draft, draft->mapping->op_name, is_cast ? "index" : NULL, PEN_GRAPHDEF_INPUTS(x),
        PEN_WITH(pen_attribute_int("axis", axis), pen_attribute_int("keepdims", 0)), &index));
    if (is_cast) {
        const pen_graphdef_value wide = index;
        PEN_TRY(pen_graphdef_cast(draft, NULL, wide, element, &index));
    }
    return pen_graphdef_set(draft, 0, index);
}

// ---- gradients, of graphs that have them

// dy y (1 - y)
static pen_status convert_sigmoid_grad(pen_graphdef_draft *draft) {
    pen_graphdef_value y, dy, one, rest, slope;
    PEN_TRY(pen_graphdef_operand(draft, 0, &y));
    PEN_TRY(pen_graphdef_operand(draft, 1, &dy));
    PEN_TRY(pen_graphdef_number_value(draft, "one", pen_graphdef_draft_element(draft), 1, &one));
    PEN_TRY(pen_graphdef_pair(draft, "sub", "rest", one, y, &rest));
    PEN_TRY(pen_graphdef_pair(draft, "mul", "slope", y, rest, &slope));
    return pen_graphdef_give_pair(draft, false, "mul", dy, slope);
}

// dy where y > 0, else 0
static pen_status convert_relu_grad(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[3], y;
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[1]));
    PEN_TRY(pen_graphdef_operand(draft, 1, &y));
    PEN_TRY(pen_graphdef_number_value(draft, "zero", pen_graphdef_draft_element(draft), 0,
                                      &operands[2]));
    PEN_TRY(pen_graphdef_pair(draft, "greater", "passes", y, operands[2], &operands[0]));
    return pen_graphdef_give(draft, "where", PEN_GRAPHDEF_ALL(operands), PEN_NO_ATTRIBUTES);
}

static pen_status convert_bias_add_grad(pen_graphdef_draft *draft) {
    const char *format = pen_graphdef_text(draft->node, "data_format", "NHWC");
    const bool is_last = strcmp(format, "NCHW") != 0;
    int64_t axes[PEN_RANK_LIMIT];
    uint32_t rank, count = 0;
    if (!pen_graphdef_operand_rank(draft, 0, &rank)) {
        return pen_error(PEN_UNSUPPORTED, "the rank of its operand is not known");
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (d != (is_last ? rank - 1 : 1)) axes[count++] = d;
    }
    pen_graphdef_value operands[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_ints_value(draft, "axes", count, axes, &operands[1]));
    return pen_graphdef_give(draft, "reduce_sum", PEN_GRAPHDEF_ALL(operands),
                             PEN_WITH(pen_attribute_int("keepdims", 0)));
}

static const pen_graphdef_mapping product_mappings[] = {
    {.op = "ArgMax", .op_name = "arg_max", .convert = convert_arg_extremum},
    {.op = "ArgMin", .op_name = "arg_min", .convert = convert_arg_extremum},
    {.op = "BatchMatMul", .convert = convert_batch_matmul},
    {.op = "BatchMatMulV2", .convert = convert_batch_matmul},
    {.op = "BatchMatMulV3", .convert = convert_batch_matmul},
    {.op = "BiasAddGrad", .convert = convert_bias_add_grad},
    {.op = "LogSoftmax", .op_name = "log_softmax", .convert = convert_softmax},
    {.op = "MatMul", .convert = convert_matmul},
    {.op = "ReluGrad", .convert = convert_relu_grad},
    {.op = "SigmoidGrad", .convert = convert_sigmoid_grad},
    {.op = "SparseMatMul", .convert = convert_matmul},
    {.op = "Softmax", .op_name = "softmax", .convert = convert_softmax},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_products, product_mappings);
