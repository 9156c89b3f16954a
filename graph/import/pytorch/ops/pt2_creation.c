// Tensors made of sizes and numbers, and tensors filled anew.

#include <string.h>

#include "graph/element.h"
#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

// One number, of the result's element, in all of `sizes`.
static pen_status creation_number(pen_pt2_draft *draft, pen_value_id sizes, double number) {
    const pen_element_type element = pen_pt2_own_element(draft);
    return pen_pt2_give(draft, "constant_of_shape", PEN_INPUTS(sizes),
                        PEN_WITH(pen_attribute_float("value", number),
                                 pen_attribute_text("element", pen_element_name(element))));
}

// The sizes asked for, or else those of self.
static pen_status creation_sizes(pen_pt2_draft *draft, pen_value_id *out_sizes) {
    if (pen_pt2_has(draft, "size")) return pen_pt2_sizes(draft, "size", out_sizes);
    return pen_pt2_sizes_of_result(draft, 0, out_sizes);
}

static pen_status convert_zeros(pen_pt2_draft *draft) {
    pen_value_id sizes;
    PEN_TRY(creation_sizes(draft, &sizes));
    return creation_number(draft, sizes, 0);
}

static pen_status convert_ones(pen_pt2_draft *draft) {
    pen_value_id sizes;
    PEN_TRY(creation_sizes(draft, &sizes));
    return creation_number(draft, sizes, 1);
}

// aten.full(size, fill_value), aten.new_full, aten.full_like, aten.fill(self, value): a number, a
// symbol, or a tensor of one element
static pen_status convert_full(pen_pt2_draft *draft) {
    const char *name = pen_pt2_has(draft, "fill_value") ? "fill_value" : "value";
    pen_value_id sizes, number;
    PEN_TRY(creation_sizes(draft, &sizes));
    if (!pen_pt2_is_tensor(draft, name) && !pen_pt2_is_symbol(draft, name)) {
        return creation_number(draft, sizes, pen_pt2_float(draft, name, 0));
    }
    PEN_TRY(pen_pt2_own_operand(draft, name, &number));
    return pen_pt2_give_pair(draft, "expand", number, sizes);
}

// aten.copy(self, src): src, in the sizes and the element of self
static pen_status convert_copy(pen_pt2_draft *draft) {
    pen_value_id sizes, source;
    const pen_tensor_type *from = pen_pt2_type(draft, "src"), *to = pen_pt2_type(draft, "self");
    PEN_TRY(pen_pt2_operand(draft, "src", to->element, &source));
    const bool is_same =
        from->shape.rank == to->shape.rank && pen_pt2_type_is_known(from) &&
        memcmp(from->shape.dims, to->shape.dims, to->shape.rank * sizeof *to->shape.dims) == 0;
    if (is_same) return pen_pt2_give_map(draft, "identity", source);
    PEN_TRY(pen_pt2_sizes_of(draft, "self", &sizes));
    return pen_pt2_give_pair(draft, "expand", source, sizes);
}

// aten.arange(start, end, step)
static pen_status convert_arange(pen_pt2_draft *draft) {
    const pen_element_type element = pen_pt2_own_element(draft);
    pen_value_id start, end, step;
    PEN_TRY(pen_pt2_scalar(draft, "start", element, 0, &start));
    PEN_TRY(pen_pt2_scalar(draft, "end", element, 0, &end));
    PEN_TRY(pen_pt2_scalar(draft, "step", element, 1, &step));
    return pen_pt2_give(draft, "range", PEN_INPUTS(start, end, step), PEN_NO_ATTRIBUTES);
}

// aten.linspace(start, end, steps): from one to the other in equal steps
static pen_status convert_linspace(pen_pt2_draft *draft) {
    const pen_element_type element = pen_pt2_own_element(draft);
    const double start = pen_pt2_float(draft, "start", 0), end = pen_pt2_float(draft, "end", 0);
    const int64_t count = pen_pt2_int(draft, "steps", 0);
    const double width = count > 1 ? (end - start) / (double)(count - 1) : 0;
    pen_value_id zero, limit, one, places, number;
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT64, 0, &zero));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT64, (double)count, &limit));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT64, 1, &one));
    PEN_TRY(pen_pt2_emit(draft, "range", "places", PEN_INPUTS(zero, limit, one), PEN_NO_ATTRIBUTES,
                         &places));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT64, width, &number));
    PEN_TRY(pen_pt2_pair(draft, "mul", "distances", places, number, &places));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT64, start, &number));
    PEN_TRY(pen_pt2_pair(draft, "add", "numbers", places, number, &places));
    PEN_TRY(pen_pt2_cast(draft, places, element, &places));
    return pen_pt2_set(draft, 0, places);
}

// aten.eye(n, m?)
static pen_status convert_eye(pen_pt2_draft *draft) {
    const pen_element_type element = pen_pt2_own_element(draft);
    const int64_t rows = pen_pt2_int(draft, "n", 0);
    const int64_t sides[2] = {rows, pen_pt2_int(draft, "m", rows)};
    pen_value_id sizes, zeros;
    PEN_TRY(pen_pt2_constant_ints(draft, 2, sides, &sizes));
    PEN_TRY(pen_pt2_emit(draft, "constant_of_shape", "zeros", PEN_INPUTS(sizes), PEN_NO_ATTRIBUTES,
                         &zeros));
    return pen_pt2_give(draft, "eye_like", PEN_INPUTS(zeros),
                        PEN_WITH(pen_attribute_text("dtype", pen_element_name(element))));
}

// aten.scalar_tensor(s)
static pen_status convert_scalar(pen_pt2_draft *draft) {
    pen_value_id number;
    PEN_TRY(pen_pt2_scalar(draft, "s", pen_pt2_own_element(draft), 0, &number));
    return pen_pt2_set(draft, 0, number);
}

static const pen_pt2_mapping creation_rows[] = {
    PEN_PT2_ROW("arange.default", arange),     PEN_PT2_ROW("arange.start", arange),
    PEN_PT2_ROW("arange.start_step", arange),  PEN_PT2_ROW("copy.default", copy),
    PEN_PT2_ROW("empty.memory_format", zeros), PEN_PT2_ROW("empty_like.default", zeros),
    PEN_PT2_ROW("eye.default", eye),           PEN_PT2_ROW("eye.m", eye),
    PEN_PT2_ROW("fill.Scalar", full),          PEN_PT2_ROW("fill.Tensor", full),
    PEN_PT2_ROW("full.default", full),         PEN_PT2_ROW("full_like.default", full),
    PEN_PT2_ROW("linspace.default", linspace), PEN_PT2_ROW("new_empty.default", zeros),
    PEN_PT2_ROW("new_full.default", full),     PEN_PT2_ROW("new_ones.default", ones),
    PEN_PT2_ROW("new_zeros.default", zeros),   PEN_PT2_ROW("ones.default", ones),
    PEN_PT2_ROW("ones_like.default", ones),    PEN_PT2_ROW("scalar_tensor.default", scalar),
    PEN_PT2_ROW("zero.default", zeros),        PEN_PT2_ROW("zeros.default", zeros),
    PEN_PT2_ROW("zeros_like.default", zeros),
};
PEN_PT2_FAMILY(pen_pt2_creations, creation_rows);
