// Products of matrices, and layers that are little else.

#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

// aten.linear(input, weight, bias?): the weight is (outputs, inputs), or (inputs) for one number.
static pen_status convert_linear(pen_pt2_draft *draft) {
    pen_value_id input, weight, bias, product;
    PEN_TRY(pen_pt2_tensor(draft, "input", &input));
    PEN_TRY(pen_pt2_tensor(draft, "weight", &weight));
    PEN_TRY(pen_pt2_tensor_or_none(draft, "bias", &bias));
    const int64_t turns = pen_pt2_rank(draft, "weight") == 2;
    const pen_node_attributes turned = PEN_WITH(pen_attribute_int("transB", turns));
    if (!pen_value_is(bias)) {
        return pen_pt2_give(draft, "matmul", PEN_INPUTS(input, weight), turned);
    }
    if (turns && pen_pt2_rank(draft, "input") == 2) {
        return pen_pt2_give(draft, "gemm", PEN_INPUTS(input, weight, bias), turned);
    }
    PEN_TRY(pen_pt2_emit(draft, "matmul", "product", PEN_INPUTS(input, weight), turned, &product));
    return pen_pt2_give_pair(draft, "add", product, bias);
}

// The product of two tensors, the second of which is called as the operator has it.
static pen_status product_of(pen_pt2_draft *draft, const char *other) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_tensor(draft, "self", &a));
    PEN_TRY(pen_pt2_tensor(draft, other, &b));
    return pen_pt2_give_pair(draft, "matmul", a, b);
}
static pen_status convert_matmul(pen_pt2_draft *draft) {
    return product_of(draft, "other");
}
static pen_status convert_mm(pen_pt2_draft *draft) {
    return product_of(draft, "mat2");
}
static pen_status convert_mv(pen_pt2_draft *draft) {
    return product_of(draft, "vec");
}
static pen_status convert_dot(pen_pt2_draft *draft) {
    return product_of(draft, "tensor");
}

// aten.addmm(self, mat1, mat2, beta, alpha): beta self + alpha mat1 mat2
static pen_status convert_addmm(pen_pt2_draft *draft) {
    pen_value_id self, a, b;
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_tensor(draft, "mat1", &a));
    PEN_TRY(pen_pt2_tensor(draft, "mat2", &b));
    return pen_pt2_give(draft, "gemm", PEN_INPUTS(a, b, self),
                        PEN_WITH(pen_attribute_float("alpha", pen_pt2_float(draft, "alpha", 1)),
                                 pen_attribute_float("beta", pen_pt2_float(draft, "beta", 1))));
}

// aten.baddbmm(self, batch1, batch2, beta, alpha), the same of batches. With beta 0, self is not
// read, which may be all infinities.
static pen_status convert_baddbmm(pen_pt2_draft *draft) {
    pen_value_id self, a, b;
    const double beta = pen_pt2_float(draft, "beta", 1);
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_tensor(draft, "batch1", &a));
    PEN_TRY(pen_pt2_tensor(draft, "batch2", &b));
    PEN_TRY(pen_pt2_pair(draft, "matmul", "product", a, b, &a));
    PEN_TRY(pen_pt2_scale(draft, "scaled", a, pen_pt2_float(draft, "alpha", 1), &a));
    if (beta == 0) return pen_pt2_set(draft, 0, a);
    PEN_TRY(pen_pt2_scale(draft, "summand", self, beta, &self));
    return pen_pt2_give_pair(draft, "add", self, a);
}

// aten.outer(self, vec2): (n) and (m) to (n, m)
static pen_status convert_outer(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_tensor(draft, "self", &a));
    PEN_TRY(pen_pt2_tensor(draft, "vec2", &b));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "column", a, 1, &a));
    return pen_pt2_give_pair(draft, "mul", a, b);
}

static pen_status convert_einsum(pen_pt2_draft *draft) {
    uint32_t count;
    const pen_value_id *tensors;
    PEN_TRY(pen_pt2_tensors(draft, "tensors", &count, &tensors));
    return pen_pt2_give(
        draft, "einsum", (pen_node_inputs){tensors, count},
        PEN_WITH(pen_attribute_text("equation", pen_pt2_text(draft, "equation", ""))));
}

// aten.bilinear(input1, input2, weight (outputs, inputs 1, inputs 2), bias?)
static pen_status convert_bilinear(pen_pt2_draft *draft) {
    pen_value_id a, b, weight, bias, product;
    PEN_TRY(pen_pt2_tensor(draft, "input1", &a));
    PEN_TRY(pen_pt2_tensor(draft, "input2", &b));
    PEN_TRY(pen_pt2_tensor(draft, "weight", &weight));
    PEN_TRY(pen_pt2_tensor_or_none(draft, "bias", &bias));
    const pen_node_attributes sums =
        PEN_WITH(pen_attribute_text("equation", "...i,oij,...j->...o"));
    if (!pen_value_is(bias)) {
        return pen_pt2_give(draft, "einsum", PEN_INPUTS(a, weight, b), sums);
    }
    PEN_TRY(pen_pt2_emit(draft, "einsum", "product", PEN_INPUTS(a, weight, b), sums, &product));
    return pen_pt2_give_pair(draft, "add", product, bias);
}

// ---- products by groups of rows

// Which rows belong to which group, as bool (groups, rows): offsets (groups) say before which row
// each ends. `rows` is (rows, numbers).
static pen_status product_members(pen_pt2_draft *draft, pen_value_id rows, pen_value_id offsets,
                                  pen_value_id *out_members) {
    static const int64_t first = 0;
    pen_value_id zero, count, one, row, ends, starts, start;
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, 0, &zero));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, 1, &one));
    PEN_TRY(pen_pt2_map(draft, "shape", "sizes", rows, &count));
    PEN_TRY(pen_pt2_pair(draft, "gather", "row_count", count, zero, &count));
    PEN_TRY(pen_pt2_emit(draft, "range", "rows", PEN_INPUTS(zero, count, one), PEN_NO_ATTRIBUTES,
                         &row));
    PEN_TRY(pen_pt2_cast(draft, offsets, PEN_INT64, &ends));
    PEN_TRY(pen_pt2_slice(draft, "ends_before", ends, (pen_pt2_part){0, 0, -1}, &starts));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &first, &start));
    PEN_TRY(pen_pt2_emit(draft, "concat", "starts", PEN_INPUTS(start, starts),
                         PEN_WITH(pen_attribute_int("axis", 0)), &starts));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "start_column", starts, 1, &starts));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "end_column", ends, 1, &ends));
    PEN_TRY(pen_pt2_pair(draft, "less_or_equal", "begun", starts, row, &starts));
    PEN_TRY(pen_pt2_pair(draft, "less", "not_ended", row, ends, &ends));
    return pen_pt2_pair(draft, "and", "members", starts, ends, out_members);
}

// aten._grouped_mm(self (rows, inputs), mat2 (groups, inputs, outputs), offs (groups)), and what
// transformers has in its place, with input and weight for self and mat2: each group of rows has a
// matrix of its own, as the experts of a mixture. Dense: all rows are multiplied by all matrices,
// and what is not of the group is left out.
static pen_status convert_grouped(pen_pt2_draft *draft) {
    static const int64_t groups = 0;
    pen_value_id rows, matrices, offsets, members, products, axes;
    const char *left = pen_pt2_has(draft, "self") ? "self" : "input";
    const char *right = pen_pt2_has(draft, "mat2") ? "mat2" : "weight";
    const bool is_known = pen_pt2_rank(draft, left) == 2 && pen_pt2_rank(draft, right) == 3;
    if (!is_known || !pen_pt2_has(draft, "offs") || pen_pt2_has(draft, "bias")) {
        return pen_pt2_refuse(draft, "groups that are not rows of a matrix, or with a bias");
    }
    PEN_TRY(pen_pt2_tensor(draft, left, &rows));
    PEN_TRY(pen_pt2_tensor(draft, right, &matrices));
    PEN_TRY(pen_pt2_tensor(draft, "offs", &offsets));
    PEN_TRY(product_members(draft, rows, offsets, &members));
    PEN_TRY(pen_pt2_pair(draft, "matmul", "products", rows, matrices, &products));
    const pen_element_type element = pen_pt2_own_element(draft);
    PEN_TRY(pen_pt2_cast(draft, members, element, &members));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "weights", members, 2, &members));
    PEN_TRY(pen_pt2_pair(draft, "mul", "own_products", products, members, &products));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &groups, &axes));
    return pen_pt2_give(draft, "reduce_sum", PEN_INPUTS(products, axes),
                        PEN_WITH(pen_attribute_int("keepdims", 0)));
}

static const pen_pt2_mapping product_rows[] = {
    PEN_PT2_ROW("_grouped_mm.default", grouped),
    PEN_PT2_ROW("addmm.default", addmm),
    PEN_PT2_ROW("baddbmm.default", baddbmm),
    PEN_PT2_ROW("bilinear.default", bilinear),
    PEN_PT2_ROW("bmm.default", mm),
    PEN_PT2_ROW("dot.default", dot),
    PEN_PT2_ROW("einsum.default", einsum),
    PEN_PT2_ROW("linear.default", linear),
    PEN_PT2_ROW("matmul.default", matmul),
    PEN_PT2_ROW("mm.default", mm),
    PEN_PT2_ROW("mv.default", mv),
    PEN_PT2_ROW("outer.default", outer),
    {.target = "transformers.grouped_mm_fallback.default", .convert = convert_grouped},
};
PEN_PT2_FAMILY(pen_pt2_products, product_rows);
