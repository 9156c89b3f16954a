// Comparisons, and what is made of bools.

#include "graph/import/pytorch/pt2_mapping.h"

// Both operands in the element that they are compared in. Order is one of numbers: of bools as
// integers.
static pen_status logic_operands(pen_pt2_draft *draft, bool is_order, pen_value_id *out_a,
                                 pen_value_id *out_b) {
    pen_element_type element = pen_pt2_common_element(draft, "self", "other");
    if (is_order && element == PEN_BOOL) element = PEN_INT32;
    PEN_TRY(pen_pt2_operand(draft, "self", element, out_a));
    return pen_pt2_operand(draft, "other", element, out_b);
}

static pen_status convert_order(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(logic_operands(draft, true, &a, &b));
    return pen_pt2_give_pair(draft, pen_pt2_op_name(draft), a, b);
}

static pen_status convert_equal(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(logic_operands(draft, false, &a, &b));
    return pen_pt2_give_pair(draft, "equal", a, b);
}

static pen_status convert_not_equal(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(logic_operands(draft, false, &a, &b));
    PEN_TRY(pen_pt2_pair(draft, "equal", "equal", a, b, &a));
    return pen_pt2_give_map(draft, "not", a);
}

// Numbers are true where they are not 0.
static pen_status convert_logical(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_operand(draft, "self", PEN_BOOL, &a));
    PEN_TRY(pen_pt2_operand(draft, "other", PEN_BOOL, &b));
    return pen_pt2_give_pair(draft, pen_pt2_op_name(draft), a, b);
}

static pen_status convert_logical_not(pen_pt2_draft *draft) {
    pen_value_id a;
    PEN_TRY(pen_pt2_operand(draft, "self", PEN_BOOL, &a));
    return pen_pt2_give_map(draft, "not", a);
}

static pen_status convert_bitwise(pen_pt2_draft *draft) {
    const pen_element_type element = pen_pt2_own_element(draft);
    if (element == PEN_BOOL) return convert_logical(draft);
    return pen_pt2_refuse(draft, "the bits of %s are combined, only bools can be",
                          pen_element_name(element));
}

// Of integers, all bits turned: -x - 1.
static pen_status convert_bitwise_not(pen_pt2_draft *draft) {
    const pen_element_type element = pen_pt2_own_element(draft);
    pen_value_id x, one;
    if (element == PEN_BOOL) return convert_logical_not(draft);
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_constant_number(draft, element, -1, &one));
    return pen_pt2_give_pair(draft, "sub", one, x);
}

// Floating, as these tests want it: integers are always finite numbers.
static pen_status logic_float(pen_pt2_draft *draft, pen_value_id *out_value) {
    const pen_element_type element = pen_pt2_type(draft, "self")->element;
    return pen_pt2_operand(draft, "self", pen_element_is_float(element) ? element : PEN_FLOAT32,
                           out_value);
}

static pen_status convert_test(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(logic_float(draft, &x));
    return pen_pt2_give_map(draft, pen_pt2_op_name(draft), x);
}

static pen_status convert_isfinite(pen_pt2_draft *draft) {
    pen_value_id x, is_endless, is_no_number;
    PEN_TRY(logic_float(draft, &x));
    PEN_TRY(pen_pt2_map(draft, "isinf", "isinf", x, &is_endless));
    PEN_TRY(pen_pt2_map(draft, "isnan", "isnan", x, &is_no_number));
    PEN_TRY(pen_pt2_pair(draft, "or", "either", is_endless, is_no_number, &x));
    return pen_pt2_give_map(draft, "not", x);
}

#define BOTH(aten, op, of)                                                                         \
    PEN_PT2_NAMED(aten ".Tensor", op, of), PEN_PT2_NAMED(aten ".Scalar", op, of)
#define BITWISE(aten, op)                                                                          \
    BOTH("bitwise_" aten, op, bitwise),                                                            \
        PEN_PT2_NAMED("bitwise_" aten ".Scalar_Tensor", op, bitwise),                              \
        BOTH("__" aten "__", op, bitwise)

static const pen_pt2_mapping logic_rows[] = {
    BOTH("lt", "less", order),
    BOTH("le", "less_or_equal", order),
    BOTH("gt", "greater", order),
    BOTH("ge", "greater_or_equal", order),
    BOTH("less", "less", order),
    BOTH("less_equal", "less_or_equal", order),
    BOTH("greater", "greater", order),
    BOTH("greater_equal", "greater_or_equal", order),
    BOTH("eq", NULL, equal),
    BOTH("ne", NULL, not_equal),
    BOTH("not_equal", NULL, not_equal),
    PEN_PT2_NAMED("logical_and.default", "and", logical),
    PEN_PT2_NAMED("logical_or.default", "or", logical),
    PEN_PT2_NAMED("logical_xor.default", "xor", logical),
    PEN_PT2_ROW("logical_not.default", logical_not),
    BITWISE("and", "and"),
    BITWISE("or", "or"),
    BITWISE("xor", "xor"),
    PEN_PT2_ROW("bitwise_not.default", bitwise_not),
    PEN_PT2_NAMED("isnan.default", "isnan", test),
    PEN_PT2_NAMED("isinf.default", "isinf", test),
    PEN_PT2_ROW("isfinite.default", isfinite),
};

PEN_PT2_FAMILY(pen_pt2_logic, logic_rows);
