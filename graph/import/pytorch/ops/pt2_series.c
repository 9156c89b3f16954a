// Along a dimension in order, or along a diagonal.

#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

// aten.tril(self, diagonal) and aten.triu; the row's op_name is "" for the lower triangle.
static pen_status convert_triangle(pen_pt2_draft *draft) {
    pen_value_id self, diagonal;
    const pen_element_type element = pen_pt2_type(draft, "self")->element;
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_size(draft, "diagonal", 0, &diagonal));
    const pen_node_attributes side =
        PEN_WITH(pen_attribute_int("upper", pen_pt2_op_name(draft)[0] != '\0'));
    if (element != PEN_BOOL) {
        return pen_pt2_give(draft, "trilu", PEN_INPUTS(self, diagonal), side);
    }
    PEN_TRY(pen_pt2_cast(draft, self, PEN_FLOAT32, &self));
    PEN_TRY(pen_pt2_emit(draft, "trilu", "triangle", PEN_INPUTS(self, diagonal), side, &self));
    PEN_TRY(pen_pt2_cast(draft, self, PEN_BOOL, &self));
    return pen_pt2_set(draft, 0, self);
}

// aten.cumsum(self, dim, dtype?): of bool, counts
static pen_status convert_cumsum(pen_pt2_draft *draft) {
    pen_value_id self, axis;
    const uint32_t rank = pen_pt2_rank(draft, "self");
    PEN_TRY(pen_pt2_own_operand(draft, "self", &self));
    if (rank == 0) return pen_pt2_set(draft, 0, self);
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, pen_pt2_axis(draft, "dim", rank, 0), &axis));
    return pen_pt2_give_pair(draft, "cum_sum", self, axis);
}

// aten.diff(self, n, dim, prepend?, append?): each element less the one before; of bool, whether
// they differ
static pen_status convert_diff(pen_pt2_draft *draft) {
    const pen_element_type element = pen_pt2_type(draft, "self")->element;
    const int64_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), -1);
    const int64_t count = pen_pt2_int(draft, "n", 1);
    pen_value_id whole[3] = {PEN_VALUE_NONE}, before, after, joined;
    uint32_t parts = 0;
    if (count < 0 || count > 16) return pen_pt2_refuse(draft, "%lld rounds", (long long)count);
    static const char *const names[] = {"prepend", "self", "append"};
    for (uint32_t i = 0; i < 3; i++) {
        if (pen_pt2_has(draft, names[i])) {
            PEN_TRY(pen_pt2_operand(draft, names[i], element, &whole[parts++]));
        }
    }
    joined = whole[0];
    if (parts > 1) {
        PEN_TRY(pen_pt2_emit(draft, "concat", "whole", (pen_node_inputs){whole, parts},
                             PEN_WITH(pen_attribute_int("axis", axis)), &joined));
    }
    for (int64_t i = 0; i < count; i++) {
        PEN_TRY(pen_pt2_slice(draft, "after", joined, (pen_pt2_part){axis, 1, INT64_MAX}, &after));
        PEN_TRY(pen_pt2_slice(draft, "before", joined, (pen_pt2_part){axis, 0, -1}, &before));
        PEN_TRY(pen_pt2_pair(draft, element == PEN_BOOL ? "xor" : "sub", "difference", after,
                             before, &joined));
    }
    return pen_pt2_set(draft, 0, joined);
}

static const pen_pt2_mapping series_rows[] = {
    PEN_PT2_ROW("cumsum.default", cumsum),
    PEN_PT2_ROW("diff.default", diff),
    PEN_PT2_NAMED("tril.default", "", triangle),
    PEN_PT2_NAMED("triu.default", "upper", triangle),
};
PEN_PT2_FAMILY(pen_pt2_series, series_rows);
