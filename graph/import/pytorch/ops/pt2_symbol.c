// Symbols: sizes of tensors that the file leaves open, and arithmetic on them. They are values
// without dimensions, which are folded once sizes are bound. Integers are int64, others float64.

#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

// aten.sym_size.int(self, dim)
static pen_status convert_size(pen_pt2_draft *draft) {
    pen_value_id self, sizes, axis;
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t dim = pen_pt2_axis(draft, "dim", rank, 0);
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    const int64_t size = rank > 0 ? pen_pt2_type(draft, "self")->shape.dims[dim] : 0;
    if (size >= 0) {
        PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, (double)size, &sizes));
        return pen_pt2_set(draft, 0, sizes);
    }
    PEN_TRY(pen_pt2_map(draft, "shape", "shape", self, &sizes));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, dim, &axis));
    return pen_pt2_give_pair(draft, "gather", sizes, axis);
}

// aten.sym_numel.default(self)
static pen_status convert_count(pen_pt2_draft *draft) {
    pen_value_id self;
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    return pen_pt2_give_map(draft, "size", self);
}

// Arguments "a" and "b" in the element that they have in common.
static pen_status symbol_pair(pen_pt2_draft *draft, pen_value_id out_values[2]) {
    const pen_element_type element = pen_pt2_common_element(draft, "a", "b");
    PEN_TRY(pen_pt2_operand(draft, "a", element, &out_values[0]));
    return pen_pt2_operand(draft, "b", element, &out_values[1]);
}

static pen_status convert_pair(pen_pt2_draft *draft) {
    pen_value_id pair[2];
    PEN_TRY(symbol_pair(draft, pair));
    return pen_pt2_give_pair(draft, pen_pt2_op_name(draft), pair[0], pair[1]);
}

// a // b: what is left of a without its remainder, which has the sign of b, divides evenly.
static pen_status convert_floor_divide(pen_pt2_draft *draft) {
    pen_value_id pair[2], rest, whole;
    PEN_TRY(symbol_pair(draft, pair));
    if (pen_pt2_common_element(draft, "a", "b") != PEN_INT64) {
        PEN_TRY(pen_pt2_pair(draft, "div", "quotient", pair[0], pair[1], &whole));
        return pen_pt2_give_map(draft, "floor", whole);
    }
    PEN_TRY(pen_pt2_pair(draft, "mod", "rest", pair[0], pair[1], &rest));
    PEN_TRY(pen_pt2_pair(draft, "sub", "whole", pair[0], rest, &whole));
    return pen_pt2_give_pair(draft, "div", whole, pair[1]);
}

static pen_status convert_divide(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_operand(draft, "a", PEN_FLOAT64, &a));
    PEN_TRY(pen_pt2_operand(draft, "b", PEN_FLOAT64, &b));
    return pen_pt2_give_pair(draft, "div", a, b);
}

static pen_status convert_differs(pen_pt2_draft *draft) {
    pen_value_id pair[2], equal;
    PEN_TRY(symbol_pair(draft, pair));
    PEN_TRY(pen_pt2_pair(draft, "equal", "equal", pair[0], pair[1], &equal));
    return pen_pt2_give_map(draft, "not", equal);
}

// Of one argument, in its own element.
static pen_status convert_one(pen_pt2_draft *draft) {
    const pen_element_type element = pen_pt2_own_element(draft);
    pen_value_id a;
    PEN_TRY(pen_pt2_operand(draft, "a", element, &a));
    if (pen_pt2_op_name(draft) == NULL) return pen_pt2_set(draft, 0, a);
    return pen_pt2_give_map(draft, pen_pt2_op_name(draft), a);
}

// What leads to nothing that a result is made of: checks of sizes and of numbers.
static pen_status convert_nothing(pen_pt2_draft *draft) {
    (void)draft;
    return PEN_OK;
}

#define SYMBOL_PAIR(called, ours)                                                                  \
    { .target = (called), .op_name = (ours), .convert = convert_pair }
#define SYMBOL_ONE(called, ours)                                                                   \
    { .target = (called), .op_name = (ours), .convert = convert_one }
#define NOTHING(called)                                                                            \
    { .target = (called), .convert = convert_nothing, .is_nothing = true }

static const pen_pt2_mapping symbol_rows[] = {
    PEN_PT2_ROW("sym_size.int", size),
    PEN_PT2_ROW("sym_numel.default", count),
    SYMBOL_PAIR("_operator.add", "add"),
    SYMBOL_PAIR("_operator.sub", "sub"),
    SYMBOL_PAIR("_operator.mul", "mul"),
    SYMBOL_PAIR("_operator.mod", "mod"),
    SYMBOL_PAIR("_operator.pow", "pow"),
    SYMBOL_PAIR("_operator.eq", "equal"),
    SYMBOL_PAIR("_operator.lt", "less"),
    SYMBOL_PAIR("_operator.le", "less_or_equal"),
    SYMBOL_PAIR("_operator.gt", "greater"),
    SYMBOL_PAIR("_operator.ge", "greater_or_equal"),
    SYMBOL_PAIR("_operator.and_", "and"),
    SYMBOL_PAIR("_operator.or_", "or"),
    SYMBOL_PAIR("torch.sym_max", "max"),
    SYMBOL_PAIR("torch.sym_min", "min"),
    {.target = "_operator.ne", .convert = convert_differs},
    {.target = "_operator.floordiv", .convert = convert_floor_divide},
    {.target = "_operator.truediv", .convert = convert_divide},
    SYMBOL_ONE("_operator.neg", "neg"),
    SYMBOL_ONE("_operator.pos", NULL),
    SYMBOL_ONE("torch.sym_float", NULL),
    SYMBOL_ONE("torch.sym_int", NULL),
    SYMBOL_ONE("math.trunc", NULL),
    SYMBOL_ONE("torch.sym_not", "not"),
    NOTHING("aten._assert_tensor_metadata.default"),
    NOTHING("aten._assert_scalar.default"),
    NOTHING("aten._assert_async.msg"),
    NOTHING("aten._assert_async.default"),
    NOTHING("aten.sym_constrain_range.default"),
    NOTHING("aten.sym_constrain_range_for_size.default"),
};
PEN_PT2_FAMILY(pen_pt2_symbols, symbol_rows);
