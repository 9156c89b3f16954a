// Elements in the order of their values, and counts of values.

#include <string.h>

#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

// The first `count` elements (int64 [1]) along a dimension, in order. *out_values: what they are;
// *out_places: where.
static pen_status selection_first(pen_pt2_draft *draft, pen_value_id count, bool largest,
                                  bool sorted, pen_value_id outputs[2]) {
    pen_value_id self;
    const uint32_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), -1);
    const bool is_bool = pen_pt2_type(draft, "self")->element == PEN_BOOL;
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    if (is_bool) PEN_TRY(pen_pt2_cast(draft, self, PEN_INT64, &self));
    const pen_pt2_emission emission = {"top_k", "ordered", PEN_INPUTS(self, count),
                                       PEN_WITH(pen_attribute_int("axis", axis),
                                                pen_attribute_int("largest", largest),
                                                pen_attribute_int("sorted", sorted)),
                                       2};
    PEN_TRY(pen_pt2_emit_many(draft, &emission, outputs));
    return is_bool ? pen_pt2_cast(draft, outputs[0], PEN_BOOL, &outputs[0]) : PEN_OK;
}

// aten.topk(self, k, dim, largest, sorted)
static pen_status convert_topk(pen_pt2_draft *draft) {
    pen_value_id count, outputs[2];
    PEN_TRY(pen_pt2_size(draft, "k", 1, &count));
    PEN_TRY(selection_first(draft, count, pen_pt2_bool(draft, "largest", true),
                            pen_pt2_bool(draft, "sorted", true), outputs));
    PEN_TRY(pen_pt2_set(draft, 0, outputs[0]));
    return pen_pt2_set(draft, 1, outputs[1]);
}

// aten.sort(self, dim, descending): equal elements stay in their order. The row's op_name says
// that only the places result, as of aten.argsort.
static pen_status convert_sort(pen_pt2_draft *draft) {
    pen_value_id self, sizes, outputs[2];
    const int64_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), -1);
    if (pen_pt2_rank(draft, "self") == 0) return pen_pt2_refuse(draft, "a number");
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_emit(
        draft, "shape", "length", PEN_INPUTS(self),
        PEN_WITH(pen_attribute_int("start", axis), pen_attribute_int("end", axis + 1)), &sizes));
    PEN_TRY(selection_first(draft, sizes, pen_pt2_bool(draft, "descending", false), true, outputs));
    if (pen_pt2_op_name(draft) != NULL) return pen_pt2_set(draft, 0, outputs[1]);
    PEN_TRY(pen_pt2_set(draft, 0, outputs[0]));
    return pen_pt2_set(draft, 1, outputs[1]);
}

// How often each of `count` numbers from 0 on is among `places` (any shape); others do not count.
static pen_status selection_counts(pen_pt2_draft *draft, pen_value_id places, int64_t count,
                                   pen_value_id *out_counts) {
    static const int64_t flat = -1, first = 0;
    pen_value_id start, limit, step, numbers, column, hits, axes;
    PEN_TRY(pen_pt2_with_int(draft, "reshape", "flat", places, flat, &places));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "column", places, 1, &column));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, 0, &start));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, (double)count, &limit));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, 1, &step));
    PEN_TRY(pen_pt2_emit(draft, "range", "numbers", PEN_INPUTS(start, limit, step),
                         PEN_NO_ATTRIBUTES, &numbers));
    PEN_TRY(pen_pt2_pair(draft, "equal", "is_number", column, numbers, &hits));
    PEN_TRY(pen_pt2_cast(draft, hits, PEN_INT64, &hits));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &first, &axes));
    return pen_pt2_emit(draft, "reduce_sum", "counts", PEN_INPUTS(hits, axes),
                        PEN_WITH(pen_attribute_int("keepdims", 0)), out_counts);
}

// aten.histc(self, bins, min, max): bins of equal width; the last one has max, too
static pen_status convert_histc(pen_pt2_draft *draft) {
    const int64_t bins = pen_pt2_int(draft, "bins", 100);
    const double low = pen_pt2_float(draft, "min", 0), high = pen_pt2_float(draft, "max", 0);
    pen_value_id self, number, is_last, last, below, place;
    if (!(low < high) || bins < 1 || bins > 4096) {
        return pen_pt2_refuse(draft, "%lld bins from %g to %g", (long long)bins, low, high);
    }
    PEN_TRY(pen_pt2_operand(draft, "self", PEN_FLOAT64, &self));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT64, high, &number));
    PEN_TRY(pen_pt2_pair(draft, "equal", "is_last", self, number, &is_last));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT64, low, &number));
    PEN_TRY(pen_pt2_pair(draft, "sub", "from_first", self, number, &self));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT64, (double)bins / (high - low), &number));
    PEN_TRY(pen_pt2_pair(draft, "mul", "bin", self, number, &self));
    PEN_TRY(pen_pt2_map(draft, "floor", "whole_bin", self, &below));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT64, (double)bins - 1, &last));
    PEN_TRY(pen_pt2_where(draft, "bin_with_last", is_last, last, below, &below));
    PEN_TRY(pen_pt2_cast(draft, below, PEN_INT64, &place));
    PEN_TRY(selection_counts(draft, place, bins, &place));
    PEN_TRY(pen_pt2_cast(draft, place, pen_pt2_own_element(draft), &place));
    return pen_pt2_set(draft, 0, place);
}

// aten.one_hot(self, num_classes)
static pen_status convert_one_hot(pen_pt2_draft *draft) {
    static const int64_t off_on[2] = {0, 1};
    const int64_t classes = pen_pt2_int(draft, "num_classes", -1);
    pen_value_id self, count, values;
    if (classes < 1) return pen_pt2_refuse(draft, "as many classes as the data has");
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &classes, &count));
    PEN_TRY(pen_pt2_constant_ints(draft, 2, off_on, &values));
    return pen_pt2_give(draft, "one_hot", PEN_INPUTS(self, count, values), PEN_NO_ATTRIBUTES);
}

// aten.bucketize(self, boundaries) and aten.searchsorted(sorted_sequence, self): how many of a
// sorted list are below each element, or not above it with `right`
static pen_status convert_buckets(pen_pt2_draft *draft) {
    static const int64_t last = -1;
    const char *sorted = pen_pt2_has(draft, "boundaries") ? "boundaries" : "sorted_sequence";
    const pen_element_type element = pen_pt2_common_element(draft, "self", sorted);
    const char *side = pen_pt2_text(draft, "side", "left");
    const bool right = pen_pt2_bool(draft, "right", false) || strcmp(side, "right") == 0;
    pen_value_id self, bounds, axes;
    if (pen_pt2_rank(draft, sorted) != 1 || pen_pt2_has(draft, "sorter")) {
        return pen_pt2_refuse(draft, "several lists of bounds, or a sorter");
    }
    PEN_TRY(pen_pt2_operand(draft, "self", element, &self));
    PEN_TRY(pen_pt2_operand(draft, sorted, element, &bounds));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "apart", self, last, &self));
    PEN_TRY(pen_pt2_pair(draft, right ? "less_or_equal" : "less", "is_below", bounds, self, &self));
    PEN_TRY(pen_pt2_cast(draft, self, PEN_INT64, &self));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &last, &axes));
    PEN_TRY(pen_pt2_emit(draft, "reduce_sum", "buckets", PEN_INPUTS(self, axes),
                         PEN_WITH(pen_attribute_int("keepdims", 0)), &self));
    PEN_TRY(pen_pt2_cast(draft, self, pen_pt2_own_element(draft), &self));
    return pen_pt2_set(draft, 0, self);
}

static const pen_pt2_mapping selection_rows[] = {
    PEN_PT2_NAMED("argsort.default", "places", sort),
    PEN_PT2_NAMED("argsort.stable", "places", sort),
    PEN_PT2_ROW("bucketize.Tensor", buckets),
    PEN_PT2_ROW("histc.default", histc),
    PEN_PT2_ROW("one_hot.default", one_hot),
    PEN_PT2_ROW("searchsorted.Tensor", buckets),
    PEN_PT2_ROW("sort.default", sort),
    PEN_PT2_ROW("sort.stable", sort),
    PEN_PT2_ROW("topk.default", topk),
};
PEN_PT2_FAMILY(pen_pt2_selections, selection_rows);
