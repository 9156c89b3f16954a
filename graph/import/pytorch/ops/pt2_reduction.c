// Sums, means, extrema and norms over dimensions.

#include <math.h>

#include "graph/import/import.h"
#include "graph/import/pytorch/pt2_mapping.h"

// A reduction of one operand over dimensions.
typedef struct reduction {
    const char *operand;
    pen_element_type element; // that it is computed in
    pen_value_id x;
    pen_pt2_list axes;
    bool keeps;
} reduction;

// No dimensions given are all.
static pen_status reduction_read(pen_pt2_draft *draft, const char *operand,
                                 pen_element_type element, reduction *work) {
    *work = (reduction){.operand = operand, .element = element};
    work->axes = pen_pt2_axes(draft, "dim", pen_pt2_rank(draft, operand));
    work->keeps = pen_pt2_bool(draft, "keepdim", false);
    return pen_pt2_operand(draft, operand, element, &work->x);
}

// `value` reduced by `op_name`; a single number is left as it is by most, so it has no dimensions.
static pen_status reduction_emit(pen_pt2_draft *draft, const reduction *work, const char *op_name,
                                 const char *suffix, pen_value_id value, pen_value_id *out_value) {
    pen_value_id axes;
    const pen_node_attributes attributes = PEN_WITH(pen_attribute_int("keepdims", work->keeps));
    if (work->axes.count == 0) {
        return pen_pt2_emit(draft, op_name, suffix, PEN_INPUTS(value), attributes, out_value);
    }
    PEN_TRY(pen_pt2_constant_ints(draft, work->axes.count, work->axes.integers, &axes));
    return pen_pt2_emit(draft, op_name, suffix, PEN_INPUTS(value, axes), attributes, out_value);
}

// The same, the dimensions staying as ones of one element.
static pen_status reduction_keep(pen_pt2_draft *draft, const reduction *work, const char *op_name,
                                 const char *suffix, pen_value_id value, pen_value_id *out_value) {
    reduction kept = *work;
    kept.keeps = true;
    return reduction_emit(draft, &kept, op_name, suffix, value, out_value);
}

static pen_status reduction_give(pen_pt2_draft *draft, const reduction *work, const char *op_name,
                                 pen_value_id value) {
    PEN_TRY(reduction_emit(draft, work, op_name, NULL, value, &value));
    return pen_pt2_set(draft, 0, value);
}

static pen_status convert_reduce(pen_pt2_draft *draft) {
    reduction work;
    PEN_TRY(reduction_read(draft, "self", pen_pt2_own_element(draft), &work));
    return reduction_give(draft, &work, pen_pt2_op_name(draft), work.x);
}

// Of bools, the largest or smallest of 0 and 1, too.
static pen_status reduction_extremum(pen_pt2_draft *draft, const char *op_name, uint32_t result) {
    const pen_element_type element = pen_pt2_own_element(draft);
    const char *suffix = element != PEN_BOOL && result == 0 ? NULL : op_name;
    reduction work;
    PEN_TRY(reduction_read(draft, "self", element == PEN_BOOL ? PEN_UINT8 : element, &work));
    PEN_TRY(reduction_emit(draft, &work, op_name, suffix, work.x, &work.x));
    PEN_TRY(pen_pt2_cast(draft, work.x, element, &work.x));
    return pen_pt2_set(draft, result, work.x);
}

static pen_status convert_extremum(pen_pt2_draft *draft) {
    return reduction_extremum(draft, pen_pt2_op_name(draft), 0);
}

static pen_status convert_aminmax(pen_pt2_draft *draft) {
    PEN_TRY(reduction_extremum(draft, "reduce_min", 0));
    return reduction_extremum(draft, "reduce_max", 1);
}

// Whether any, or all, are not 0.
static pen_status convert_any(pen_pt2_draft *draft) {
    reduction work;
    PEN_TRY(reduction_read(draft, "self", PEN_BOOL, &work));
    PEN_TRY(pen_pt2_cast(draft, work.x, PEN_UINT8, &work.x));
    PEN_TRY(reduction_emit(draft, &work, pen_pt2_op_name(draft), "reduced", work.x, &work.x));
    return pen_pt2_give(draft, "cast", PEN_INPUTS(work.x),
                        PEN_WITH(pen_attribute_text("to", pen_element_name(PEN_BOOL))));
}

static pen_status convert_count_nonzero(pen_pt2_draft *draft) {
    reduction work;
    PEN_TRY(reduction_read(draft, "self", PEN_BOOL, &work));
    PEN_TRY(pen_pt2_cast(draft, work.x, PEN_INT64, &work.x));
    return reduction_give(draft, &work, "reduce_sum", work.x);
}

// ---- positions

// What is compared: bools as numbers.
static pen_status position_operand(pen_pt2_draft *draft, pen_value_id *out_value) {
    const pen_element_type element = pen_pt2_type(draft, "self")->element;
    return pen_pt2_operand(draft, "self", element == PEN_BOOL ? PEN_UINT8 : element, out_value);
}

static pen_status position_emit(pen_pt2_draft *draft, const char *suffix, pen_value_id x,
                                uint32_t axis, bool keeps, pen_value_id *out_value) {
    return pen_pt2_emit(
        draft, pen_pt2_op_name(draft), suffix, PEN_INPUTS(x),
        PEN_WITH(pen_attribute_int("axis", axis), pen_attribute_int("keepdims", keeps)), out_value);
}

// Without a dimension: in the operand's elements one behind the other.
static pen_status convert_position(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t result_rank = pen_pt2_result_type(draft, 0)->shape.rank;
    const int64_t ones[PEN_RANK_LIMIT] = {1, 1, 1, 1, 1, 1, 1, 1};
    pen_value_id x;
    PEN_TRY(position_operand(draft, &x));
    if (rank > 0 && pen_pt2_has(draft, "dim")) {
        const uint32_t axis = pen_pt2_axis(draft, "dim", rank, 0);
        PEN_TRY(position_emit(draft, NULL, x, axis, pen_pt2_bool(draft, "keepdim", false), &x));
        return pen_pt2_set(draft, 0, x);
    }
    PEN_TRY(pen_pt2_with_int(draft, "reshape", "elements", x, -1, &x));
    PEN_TRY(position_emit(draft, result_rank > 0 ? "position" : NULL, x, 0, false, &x));
    if (result_rank > 0) {
        PEN_TRY(
            pen_pt2_with_ints(draft, "reshape", NULL, x, (pen_pt2_list){result_rank, ones}, &x));
    }
    return pen_pt2_set(draft, 0, x);
}

// The largest or smallest along a dimension, and where it is: of equals the first, which alone has
// the gradient.
static pen_status convert_extremum_and_position(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t axis = pen_pt2_axis(draft, "dim", rank, 0);
    const bool keeps = pen_pt2_bool(draft, "keepdim", false);
    const pen_attribute_given attribute = pen_attribute_int("axis", axis);
    pen_value_id x, index, value;
    if (rank == 0) return pen_pt2_refuse(draft, "its operand has no dimensions");
    PEN_TRY(position_operand(draft, &x));
    PEN_TRY(position_emit(draft, "position", x, axis, true, &index));
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_emit(draft, "gather_elements", keeps ? NULL : "value", PEN_INPUTS(x, index),
                         PEN_WITH(attribute), &value));
    if (!keeps) {
        PEN_TRY(pen_pt2_with_int(draft, "squeeze", NULL, value, axis, &value));
        PEN_TRY(pen_pt2_with_int(draft, "squeeze", "index", index, axis, &index));
    }
    PEN_TRY(pen_pt2_set(draft, 1, index));
    return pen_pt2_set(draft, 0, value);
}

// ---- deviations

// How many elements are reduced to one, less `correction`, but not below 0.
static pen_status deviation_divisor(pen_pt2_draft *draft, const reduction *work, double correction,
                                    pen_value_id *out_value) {
    const pen_shape *shape = &pen_pt2_type(draft, work->operand)->shape;
    double count = 1;
    bool is_known = true;
    for (uint32_t i = 0; i < work->axes.count; i++) {
        const int64_t size = shape->dims[work->axes.integers[i]];
        is_known &= size != PEN_DIMENSION_UNKNOWN;
        count *= (double)size;
    }
    if (is_known) {
        return pen_pt2_constant_number(draft, work->element, fmax(count - correction, 0),
                                       out_value);
    }
    pen_value_id sizes, axes, zero;
    PEN_TRY(pen_pt2_map(draft, "shape", "sizes", work->x, &sizes));
    PEN_TRY(pen_pt2_constant_ints(draft, work->axes.count, work->axes.integers, &axes));
    PEN_TRY(pen_pt2_pair(draft, "gather", "reduced_sizes", sizes, axes, &sizes));
    PEN_TRY(pen_pt2_emit(draft, "reduce_prod", "count", PEN_INPUTS(sizes),
                         PEN_WITH(pen_attribute_int("keepdims", 0)), &sizes));
    PEN_TRY(pen_pt2_cast(draft, sizes, work->element, &sizes));
    PEN_TRY(pen_pt2_constant_number(draft, work->element, correction, &axes));
    PEN_TRY(pen_pt2_constant_number(draft, work->element, 0, &zero));
    PEN_TRY(pen_pt2_pair(draft, "sub", "divisor", sizes, axes, &sizes));
    return pen_pt2_pair(draft, "max", "divisor_held", sizes, zero, out_value);
}

// The correction is 1, unless it is given, or `unbiased` is false.
static double deviation_correction(pen_pt2_draft *draft) {
    if (pen_pt2_has(draft, "correction")) return pen_pt2_float(draft, "correction", 1);
    return pen_pt2_bool(draft, "unbiased", true) ? 1 : 0;
}

// `is_root`: the square root, as a norm, whose gradient is 0 where all elements are equal.
static pen_status deviation_give(pen_pt2_draft *draft, bool is_root) {
    reduction work;
    pen_value_id mean, centred, divisor, sum;
    PEN_TRY(reduction_read(draft, "self", pen_pt2_own_element(draft), &work));
    PEN_TRY(reduction_keep(draft, &work, "reduce_mean", "mean", work.x, &mean));
    PEN_TRY(pen_pt2_pair(draft, "sub", "centred", work.x, mean, &centred));
    PEN_TRY(reduction_emit(draft, &work, is_root ? "reduce_l2" : "reduce_sum_square", "squares",
                           centred, &sum));
    PEN_TRY(deviation_divisor(draft, &work, deviation_correction(draft), &divisor));
    if (is_root) PEN_TRY(pen_pt2_map(draft, "sqrt", "divisor_root", divisor, &divisor));
    if (pen_pt2_result_count(draft) > 1) {
        PEN_TRY(reduction_emit(draft, &work, "reduce_mean", "result_mean", work.x, &mean));
        PEN_TRY(pen_pt2_set(draft, 1, mean));
    }
    return pen_pt2_give_pair(draft, "div", sum, divisor);
}

static pen_status convert_var(pen_pt2_draft *draft) {
    return deviation_give(draft, false);
}

static pen_status convert_std(pen_pt2_draft *draft) {
    return deviation_give(draft, true);
}

// ---- norms

// (sum of |x|^p)^(1/p)
static pen_status norm_of_power(pen_pt2_draft *draft, const reduction *work, double p) {
    pen_value_id power, root, x;
    PEN_TRY(pen_pt2_constant_number(draft, work->element, p, &power));
    PEN_TRY(pen_pt2_constant_number(draft, work->element, 1 / p, &root));
    PEN_TRY(pen_pt2_map(draft, "abs", "sizes", work->x, &x));
    PEN_TRY(pen_pt2_pair(draft, "pow", "powers", x, power, &x));
    PEN_TRY(reduction_emit(draft, work, "reduce_sum", "sum", x, &x));
    return pen_pt2_give_pair(draft, "pow", x, root);
}

static pen_status norm_give(pen_pt2_draft *draft, const reduction *work, double p) {
    pen_value_id x = work->x;
    if (p == 2) return reduction_give(draft, work, "reduce_l2", x);
    if (p == 1) return reduction_give(draft, work, "reduce_l1", x);
    if (p == 0) {
        PEN_TRY(pen_pt2_cast(draft, x, PEN_BOOL, &x));
        PEN_TRY(pen_pt2_cast(draft, x, work->element, &x));
        return reduction_give(draft, work, "reduce_sum", x);
    }
    if (isfinite(p)) return norm_of_power(draft, work, p);
    PEN_TRY(pen_pt2_map(draft, "abs", "sizes", x, &x));
    return reduction_give(draft, work, p > 0 ? "reduce_max" : "reduce_min", x);
}

// The order is called `p` or `ord`, and is 2 unless given.
static pen_status convert_norm(pen_pt2_draft *draft) {
    reduction work;
    const char *name = pen_pt2_has(draft, "ord") ? "ord" : "p";
    PEN_TRY(reduction_read(draft, "self", pen_pt2_own_element(draft), &work));
    return norm_give(draft, &work, pen_pt2_float(draft, name, 2));
}

// The norm of vectors, and of matrices where no order is given.
static pen_status convert_linalg_norm(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t count = pen_pt2_has(draft, "dim") ? pen_pt2_ints(draft, "dim").count : rank;
    if (pen_pt2_has(draft, "ord") && count > 1) {
        return pen_pt2_refuse(draft, "it is a norm of matrices of an order");
    }
    return convert_norm(draft);
}

// ‖x1 - x2 + eps‖ over the last dimension.
static pen_status convert_pairwise_distance(pen_pt2_draft *draft) {
    const pen_tensor_type *a = pen_pt2_type(draft, "x1"), *b = pen_pt2_type(draft, "x2");
    const uint32_t rank = a->shape.rank > b->shape.rank ? a->shape.rank : b->shape.rank;
    const int64_t last = (int64_t)rank - 1;
    reduction work = {.operand = "x1",
                      .element = pen_pt2_own_element(draft),
                      .axes = {rank > 0 ? 1 : 0, &last},
                      .keeps = pen_pt2_bool(draft, "keepdim", false)};
    pen_value_id other, eps;
    PEN_TRY(pen_pt2_operand(draft, "x1", work.element, &work.x));
    PEN_TRY(pen_pt2_operand(draft, "x2", work.element, &other));
    PEN_TRY(pen_pt2_constant_number(draft, work.element, pen_pt2_float(draft, "eps", 1e-6), &eps));
    PEN_TRY(pen_pt2_pair(draft, "sub", "difference", work.x, other, &work.x));
    PEN_TRY(pen_pt2_pair(draft, "add", "moved", work.x, eps, &work.x));
    return norm_give(draft, &work, pen_pt2_float(draft, "p", 2));
}

// The sum of the products of both, each divided by its norm, which is held above eps.
static pen_status convert_cosine_similarity(pen_pt2_draft *draft) {
    static const char *const names[] = {"x1", "x2"};
    const pen_element_type element = pen_pt2_own_element(draft);
    const uint32_t rank = pen_pt2_result_type(draft, 0)->shape.rank + 1;
    const int64_t axis = pen_pt2_axis(draft, "dim", rank, 1);
    pen_value_id parts[2], norm, eps;
    reduction work = {.element = element, .axes = {1, &axis}};
    PEN_TRY(pen_pt2_constant_number(draft, element, pen_pt2_float(draft, "eps", 1e-8), &eps));
    for (uint32_t i = 0; i < 2; i++) {
        if (pen_pt2_rank(draft, names[i]) != rank) {
            return pen_pt2_refuse(draft, "its operands differ in rank");
        }
        PEN_TRY(pen_pt2_operand(draft, names[i], element, &parts[i]));
        PEN_TRY(reduction_keep(draft, &work, "reduce_l2", "norm", parts[i], &norm));
        PEN_TRY(pen_pt2_pair(draft, "max", "norm_held", norm, eps, &norm));
        PEN_TRY(pen_pt2_pair(draft, "div", "direction", parts[i], norm, &parts[i]));
    }
    PEN_TRY(pen_pt2_pair(draft, "mul", "products", parts[0], parts[1], &parts[0]));
    return reduction_give(draft, &work, "reduce_sum", parts[0]);
}

#define THREE(aten, of)                                                                            \
    PEN_PT2_ROW(aten ".default", of), PEN_PT2_ROW(aten ".dim", of),                                \
        PEN_PT2_ROW(aten ".correction", of)

static const pen_pt2_mapping reduction_rows[] = {
    PEN_PT2_NAMED("sum.default", "reduce_sum", reduce),
    PEN_PT2_NAMED("sum.dim_IntList", "reduce_sum", reduce),
    PEN_PT2_NAMED("mean.default", "reduce_mean", reduce),
    PEN_PT2_NAMED("mean.dim", "reduce_mean", reduce),
    PEN_PT2_NAMED("prod.default", "reduce_prod", reduce),
    PEN_PT2_NAMED("prod.dim_int", "reduce_prod", reduce),
    PEN_PT2_NAMED("logsumexp.default", "reduce_log_sum_exp", reduce),
    PEN_PT2_NAMED("amax.default", "reduce_max", extremum),
    PEN_PT2_NAMED("amin.default", "reduce_min", extremum),
    PEN_PT2_NAMED("max.default", "reduce_max", extremum),
    PEN_PT2_NAMED("min.default", "reduce_min", extremum),
    PEN_PT2_ROW("aminmax.default", aminmax),
    PEN_PT2_NAMED("max.dim", "arg_max", extremum_and_position),
    PEN_PT2_NAMED("min.dim", "arg_min", extremum_and_position),
    PEN_PT2_NAMED("argmax.default", "arg_max", position),
    PEN_PT2_NAMED("argmin.default", "arg_min", position),
    PEN_PT2_NAMED("any.default", "reduce_max", any),
    PEN_PT2_NAMED("any.dim", "reduce_max", any),
    PEN_PT2_NAMED("any.dims", "reduce_max", any),
    PEN_PT2_NAMED("all.default", "reduce_min", any),
    PEN_PT2_NAMED("all.dim", "reduce_min", any),
    PEN_PT2_NAMED("all.dims", "reduce_min", any),
    PEN_PT2_ROW("count_nonzero.default", count_nonzero),
    PEN_PT2_ROW("count_nonzero.dim_IntList", count_nonzero),
    THREE("var", var),
    THREE("var_mean", var),
    THREE("std", std),
    THREE("std_mean", std),
    PEN_PT2_ROW("norm.Scalar", norm),
    PEN_PT2_ROW("norm.ScalarOpt_dim", norm),
    PEN_PT2_ROW("norm.ScalarOpt_dim_dtype", norm),
    PEN_PT2_ROW("norm.ScalarOpt_dtype", norm),
    PEN_PT2_ROW("linalg_vector_norm.default", norm),
    PEN_PT2_ROW("frobenius_norm.dim", norm),
    PEN_PT2_ROW("linalg_norm.default", linalg_norm),
    PEN_PT2_ROW("pairwise_distance.default", pairwise_distance),
    PEN_PT2_ROW("cosine_similarity.default", cosine_similarity),
};

PEN_PT2_FAMILY(pen_pt2_reductions, reduction_rows);
