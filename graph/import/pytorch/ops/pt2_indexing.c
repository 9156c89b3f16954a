// Elements picked, or put, where tensors of indices say.
//
// PyTorch's x[i, j, :] has several tensors of indices at once, which broadcast. Here the dimensions
// that they stand for become one, of which one tensor of indices, i * sizes[1] + j, picks.

#include <string.h>

#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

// x[…] with tensors of indices, or what puts something there.
typedef struct index_call {
    pen_pt2_draft *draft;
    uint32_t rank;                    // of self
    const pen_value_id *indices;      // [index_count], NONE for a dimension taken whole
    uint32_t index_count;             //
    uint32_t axes[PEN_RANK_LIMIT];    // that have indices, [axis_count]
    uint32_t axis_count;              //
    uint32_t index_rank;              // of the indices, broadcast
    bool is_together;                 // axes come one after the other
    int64_t to_front[PEN_RANK_LIMIT]; // self's dimensions, those with indices first
    pen_value_id sizes;               // int64 [rank]: self's, in the order of to_front
} index_call;

// Which dimensions have indices, and where they go so that these come first.
static pen_status index_read(pen_pt2_draft *draft, index_call *call) {
    *call = (index_call){.draft = draft, .rank = pen_pt2_rank(draft, "self"), .is_together = true};
    PEN_TRY(pen_pt2_tensors(draft, "indices", &call->index_count, &call->indices));
    for (uint32_t d = 0; d < call->index_count && d < call->rank; d++) {
        if (!pen_value_is(call->indices[d])) continue;
        const pen_tensor_type *type = pen_pt2_type_at(draft, "indices", d);
        if (type->element == PEN_BOOL) {
            return pen_pt2_refuse(draft, "a mask of bool as an index: the size of what it gives "
                                         "depends on data");
        }
        const uint32_t count = call->axis_count;
        if (count > 0 && call->axes[count - 1] + 1 != d) call->is_together = false;
        if (type->shape.rank > call->index_rank) call->index_rank = type->shape.rank;
        call->axes[call->axis_count++] = d;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < call->axis_count; i++) {
        call->to_front[at++] = call->axes[i];
    }
    for (uint32_t d = 0; d < call->rank; d++) {
        bool is_indexed = false;
        for (uint32_t i = 0; i < call->axis_count; i++) {
            is_indexed = is_indexed || call->axes[i] == d;
        }
        if (!is_indexed) call->to_front[at++] = d;
    }
    if (call->axis_count == 0 || call->index_count > call->rank) {
        return pen_pt2_refuse(draft, "%u indices of %u dimensions", call->index_count, call->rank);
    }
    return PEN_OK;
}

static bool index_is_in_order(const int64_t *permutation, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (permutation[i] != (int64_t)i) return false;
    }
    return true;
}

static pen_status index_turn(pen_pt2_draft *draft, const char *suffix, const int64_t *permutation,
                             uint32_t rank, pen_value_id *value) {
    if (index_is_in_order(permutation, rank)) return PEN_OK;
    return pen_pt2_transpose(draft, suffix, *value, (pen_pt2_list){rank, permutation}, value);
}

// Dimension `i` of self, in the order of to_front: an int64 without dimensions.
static pen_status index_size(const index_call *call, uint32_t i, pen_value_id *out_size) {
    pen_value_id at;
    PEN_TRY(pen_pt2_constant_number(call->draft, PEN_INT64, i, &at));
    return pen_pt2_pair(call->draft, "gather", "size", call->sizes, at, out_size);
}

// Indices below 0 count from the end.
static pen_status index_positive(const index_call *call, pen_value_id index, pen_value_id size,
                                 pen_value_id *out_index) {
    pen_value_id zero, is_negative, from_end;
    PEN_TRY(pen_pt2_constant_number(call->draft, PEN_INT64, 0, &zero));
    PEN_TRY(pen_pt2_pair(call->draft, "less", "is_from_end", index, zero, &is_negative));
    PEN_TRY(pen_pt2_pair(call->draft, "add", "from_end", index, size, &from_end));
    return pen_pt2_where(call->draft, "index", is_negative, from_end, index, out_index);
}

// One tensor of indices into the dimensions that have them, as if these were one.
static pen_status index_join(const index_call *call, pen_value_id *out_index) {
    pen_value_id joined = PEN_VALUE_NONE;
    for (uint32_t i = 0; i < call->axis_count; i++) {
        pen_value_id index, size;
        PEN_TRY(pen_pt2_cast(call->draft, call->indices[call->axes[i]], PEN_INT64, &index));
        if (call->axis_count > 1) {
            PEN_TRY(index_size(call, i, &size));
            PEN_TRY(index_positive(call, index, size, &index));
        }
        if (i > 0) {
            PEN_TRY(pen_pt2_pair(call->draft, "mul", "row", joined, size, &joined));
            PEN_TRY(pen_pt2_pair(call->draft, "add", "place", joined, index, &index));
        }
        joined = index;
    }
    *out_index = joined;
    return PEN_OK;
}

// self with the dimensions that have indices in front, and those as one: [joined, others…]
static pen_status index_flatten(index_call *call, pen_value_id self, pen_value_id *out_value) {
    static const int64_t whole = -1;
    PEN_TRY(index_turn(call->draft, "to_front", call->to_front, call->rank, &self));
    PEN_TRY(pen_pt2_map(call->draft, "shape", "sizes", self, &call->sizes));
    *out_value = self;
    if (call->axis_count == 1) return PEN_OK;
    pen_value_id rest, one;
    PEN_TRY(pen_pt2_emit(call->draft, "shape", "other_sizes", PEN_INPUTS(self),
                         PEN_WITH(pen_attribute_int("start", call->axis_count)), &rest));
    PEN_TRY(pen_pt2_constant_ints(call->draft, 1, &whole, &one));
    PEN_TRY(pen_pt2_emit(call->draft, "concat", "joined_sizes", PEN_INPUTS(one, rest),
                         PEN_WITH(pen_attribute_int("axis", 0)), &rest));
    return pen_pt2_pair(call->draft, "reshape", "joined", self, rest, out_value);
}

// Where the dimensions of what was picked belong, which has those of the indices in front: in the
// place of the axes if these come one after the other, else in front.
static uint32_t index_places(const index_call *call, int64_t *out_permutation) {
    const uint32_t others = call->rank - call->axis_count, rank = others + call->index_rank;
    const uint32_t before = call->is_together ? call->axes[0] : 0;
    uint32_t at = 0;
    for (uint32_t d = 0; d < before; d++) {
        out_permutation[at++] = call->index_rank + d;
    }
    for (uint32_t d = 0; d < call->index_rank; d++) {
        out_permutation[at++] = d;
    }
    for (uint32_t d = before; d < others; d++) {
        out_permutation[at++] = call->index_rank + d;
    }
    return rank;
}

// aten.index.Tensor(self, indices)
static pen_status convert_index(pen_pt2_draft *draft) {
    index_call call;
    pen_value_id self, index, picked;
    int64_t places[2 * PEN_RANK_LIMIT];
    PEN_TRY(index_read(draft, &call));
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    if (call.axis_count == 1) {
        PEN_TRY(index_join(&call, &index));
        return pen_pt2_give(draft, "gather", PEN_INPUTS(self, index),
                            PEN_WITH(pen_attribute_int("axis", call.axes[0])));
    }
    const uint32_t rank = index_places(&call, places);
    if (rank > PEN_RANK_LIMIT) return pen_pt2_refuse(draft, "a result of %u dimensions", rank);
    PEN_TRY(index_flatten(&call, self, &self));
    PEN_TRY(index_join(&call, &index));
    if (index_is_in_order(places, rank)) return pen_pt2_give_pair(draft, "gather", self, index);
    PEN_TRY(pen_pt2_pair(draft, "gather", "picked", self, index, &picked));
    return pen_pt2_give(draft, "transpose", PEN_INPUTS(picked),
                        PEN_WITH(pen_attribute_ints("perm", rank, places)));
}

// ---- put

// Whether index_put is given one mask of bool: where it is true, self becomes the value.
static bool index_is_mask(pen_pt2_draft *draft, pen_value_id *out_mask, pen_status *out_status) {
    uint32_t count;
    const pen_value_id *indices;
    *out_status = pen_pt2_tensors(draft, "indices", &count, &indices);
    if (*out_status != PEN_OK || count != 1 || !pen_value_is(indices[0])) return false;
    *out_mask = indices[0];
    return pen_pt2_type_at(draft, "indices", 0)->element == PEN_BOOL;
}

static pen_status index_fill_mask(pen_pt2_draft *draft, pen_value_id mask) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t own = pen_pt2_type_at(draft, "indices", 0)->shape.rank;
    const pen_tensor_type *type = pen_pt2_type(draft, "values");
    pen_value_id self, value;
    if (type->shape.rank > 0 && !(type->shape.rank == 1 && type->shape.dims[0] == 1)) {
        return pen_pt2_refuse(draft, "several values for a mask of bool");
    }
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_operand(draft, "values", pen_pt2_type(draft, "self")->element, &value));
    if (pen_pt2_bool(draft, "accumulate", false)) {
        PEN_TRY(pen_pt2_pair(draft, "add", "sum", self, value, &value));
    }
    for (uint32_t d = own; d < rank; d++) {
        PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "mask", mask, d, &mask));
    }
    return pen_pt2_give(draft, "where", PEN_INPUTS(mask, value, self), PEN_NO_ATTRIBUTES);
}

// What is put, as [indices…, others…], in the order that index_places undoes.
static pen_status index_values(const index_call *call, pen_value_id index, pen_value_id flat,
                               pen_value_id *out_values) {
    pen_pt2_draft *draft = call->draft;
    int64_t places[2 * PEN_RANK_LIMIT], back[2 * PEN_RANK_LIMIT];
    const uint32_t rank = index_places(call, places);
    const uint32_t own = pen_pt2_rank(draft, "values");
    pen_value_id values, sizes, others;
    if (rank > PEN_RANK_LIMIT || own > rank) {
        return pen_pt2_refuse(draft, "values of %u dimensions for %u", own, rank);
    }
    PEN_TRY(pen_pt2_operand(draft, "values", pen_pt2_type(draft, "self")->element, &values));
    for (uint32_t i = 0; i < rank; i++) {
        back[places[i]] = i;
    }
    for (uint32_t d = own; d < rank; d++) { // as many dimensions as what they replace
        PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "values", values, 0, &values));
    }
    PEN_TRY(index_turn(draft, "turned_values", back, rank, &values));
    PEN_TRY(pen_pt2_map(draft, "shape", "index_sizes", index, &sizes));
    PEN_TRY(pen_pt2_emit(draft, "shape", "row_sizes", PEN_INPUTS(flat),
                         PEN_WITH(pen_attribute_int("start", 1)), &others));
    PEN_TRY(pen_pt2_emit(draft, "concat", "value_sizes", PEN_INPUTS(sizes, others),
                         PEN_WITH(pen_attribute_int("axis", 0)), &sizes));
    return pen_pt2_pair(draft, "expand", "all_values", values, sizes, out_values);
}

// aten.index_put(self, indices, values, accumulate)
static pen_status convert_put(pen_pt2_draft *draft) {
    index_call call;
    pen_status status;
    pen_value_id self, flat, index, places, values, mask;
    int64_t back[PEN_RANK_LIMIT];
    if (index_is_mask(draft, &mask, &status)) return index_fill_mask(draft, mask);
    PEN_TRY(status);
    PEN_TRY(index_read(draft, &call));
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(index_flatten(&call, self, &flat));
    PEN_TRY(index_join(&call, &index));
    PEN_TRY(index_values(&call, index, flat, &values));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "places", index, call.index_rank, &places));
    const bool adds = pen_pt2_bool(draft, "accumulate", false);
    PEN_TRY(pen_pt2_emit(draft, "scatter_nd", "put", PEN_INPUTS(flat, places, values),
                         PEN_WITH(pen_attribute_text("reduction", adds ? "add" : "none")), &flat));
    if (call.axis_count > 1) {
        PEN_TRY(pen_pt2_pair(draft, "reshape", "apart", flat, call.sizes, &flat));
    }
    for (uint32_t d = 0; d < call.rank; d++) {
        back[call.to_front[d]] = d;
    }
    if (index_is_in_order(back, call.rank)) return pen_pt2_set(draft, 0, flat);
    return pen_pt2_give(draft, "transpose", PEN_INPUTS(flat),
                        PEN_WITH(pen_attribute_ints("perm", call.rank, back)));
}

// ---- along one dimension

// aten.index_select(self, dim, index)
static pen_status convert_select(pen_pt2_draft *draft) {
    pen_value_id self, index;
    const uint32_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), 0);
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_tensor(draft, "index", &index));
    return pen_pt2_give(draft, "gather", PEN_INPUTS(self, index),
                        PEN_WITH(pen_attribute_int("axis", axis)));
}

// aten.index_add(self, dim, index, source, alpha) and aten.index_copy(self, dim, index, source);
// the row's op_name is the reduction.
static pen_status convert_index_add(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t axis = pen_pt2_axis(draft, "dim", rank, 0);
    const double alpha = pen_pt2_float(draft, "alpha", 1);
    int64_t front[PEN_RANK_LIMIT]; // its own inverse
    pen_value_id self, index, source;
    for (uint32_t d = 0; d < rank; d++) {
        front[d] = d == 0 ? axis : d == axis ? 0 : d;
    }
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_tensor(draft, "index", &index));
    PEN_TRY(pen_pt2_own_operand(draft, "source", &source));
    PEN_TRY(pen_pt2_scale(draft, "scaled", source, alpha, &source));
    PEN_TRY(index_turn(draft, "self_in_front", front, rank, &self));
    PEN_TRY(index_turn(draft, "source_in_front", front, rank, &source));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "places", index, 1, &index));
    PEN_TRY(pen_pt2_emit(draft, "scatter_nd", "put", PEN_INPUTS(self, index, source),
                         PEN_WITH(pen_attribute_text("reduction", pen_pt2_op_name(draft))), &self));
    PEN_TRY(index_turn(draft, "back", front, rank, &self));
    return pen_pt2_set(draft, 0, self);
}

// aten.gather(self, dim, index), and aten.take_along_dim(self, indices, dim)
static pen_status convert_gather(pen_pt2_draft *draft) {
    const char *name = pen_pt2_has(draft, "indices") ? "indices" : "index";
    pen_value_id self, index;
    if (!pen_pt2_has(draft, "dim")) return pen_pt2_refuse(draft, "a gather of all dimensions");
    const uint32_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), 0);
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_tensor(draft, name, &index));
    return pen_pt2_give(draft, "gather_elements", PEN_INPUTS(self, index),
                        PEN_WITH(pen_attribute_int("axis", axis)));
}

// What is scattered: as large as the indices, which may be smaller than the source.
static pen_status scatter_source(pen_pt2_draft *draft, pen_value_id index, pen_value_id *out) {
    const char *name = pen_pt2_has(draft, "src") ? "src" : "value";
    const pen_element_type element = pen_pt2_type(draft, "self")->element;
    pen_value_id sizes, zeros, axes;
    PEN_TRY(pen_pt2_operand(draft, name, element, out));
    PEN_TRY(pen_pt2_map(draft, "shape", "index_sizes", index, &sizes));
    if (!pen_pt2_is_tensor(draft, name)) {
        return pen_pt2_pair(draft, "expand", "values", *out, sizes, out);
    }
    const pen_tensor_type *source = pen_pt2_type(draft, name), *type = pen_pt2_type(draft, "index");
    const uint32_t rank = source->shape.rank;
    if (memcmp(source->shape.dims, type->shape.dims, rank * sizeof *type->shape.dims) == 0) {
        return PEN_OK;
    }
    int64_t from[PEN_RANK_LIMIT] = {0}, each[PEN_RANK_LIMIT];
    for (uint32_t d = 0; d < rank; d++) {
        each[d] = d;
    }
    PEN_TRY(pen_pt2_constant_ints(draft, rank, from, &zeros));
    PEN_TRY(pen_pt2_constant_ints(draft, rank, each, &axes));
    return pen_pt2_emit(draft, "slice", "values", PEN_INPUTS(*out, zeros, sizes, axes),
                        PEN_NO_ATTRIBUTES, out);
}

// ONNX' word for what becomes of an element that is there; NULL: not possible.
static const char *scatter_reduction(pen_pt2_draft *draft) {
    static const char *const words[][2] = {{"add", "add"},  {"sum", "add"},  {"multiply", "mul"},
                                           {"prod", "mul"}, {"amax", "max"}, {"amin", "min"}};
    const char *word = pen_pt2_text(draft, "reduce", NULL);
    if (word == NULL) return pen_pt2_op_name(draft);
    if (!pen_pt2_bool(draft, "include_self", true)) return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i][0], word) == 0) return words[i][1];
    }
    return NULL;
}

// aten.scatter(self, dim, index, src or value, reduce?); the row's op_name is the reduction.
static pen_status convert_scatter(pen_pt2_draft *draft) {
    pen_value_id self, index, source;
    const uint32_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), 0);
    const char *reduction = scatter_reduction(draft);
    if (reduction == NULL) {
        return pen_pt2_refuse(draft, "a reduction by '%s'%s", pen_pt2_text(draft, "reduce", ""),
                              pen_pt2_bool(draft, "include_self", true) ? "" : " without self");
    }
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_tensor(draft, "index", &index));
    PEN_TRY(scatter_source(draft, index, &source));
    return pen_pt2_give(
        draft, "scatter_elements", PEN_INPUTS(self, index, source),
        PEN_WITH(pen_attribute_int("axis", axis), pen_attribute_text("reduction", reduction)));
}

// aten.masked_scatter(self, mask, source): where the mask is true, the next element of the source
static pen_status convert_masked_scatter(pen_pt2_draft *draft) {
    static const int64_t flat = -1;
    pen_value_id self, mask, source, sizes, zero, one, place, picked;
    PEN_TRY(pen_pt2_tensor(draft, "self", &self));
    PEN_TRY(pen_pt2_tensor(draft, "mask", &mask));
    PEN_TRY(pen_pt2_operand(draft, "source", pen_pt2_type(draft, "self")->element, &source));
    PEN_TRY(pen_pt2_map(draft, "shape", "sizes", self, &sizes));
    PEN_TRY(pen_pt2_pair(draft, "expand", "whole_mask", mask, sizes, &mask));
    PEN_TRY(pen_pt2_with_int(draft, "reshape", "flat_source", source, flat, &source));
    PEN_TRY(pen_pt2_with_int(draft, "reshape", "flat_mask", mask, flat, &place));
    PEN_TRY(pen_pt2_cast(draft, place, PEN_INT64, &place));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, 0, &zero));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, 1, &one));
    PEN_TRY(pen_pt2_pair(draft, "cum_sum", "counts", place, zero, &place));
    PEN_TRY(pen_pt2_pair(draft, "sub", "places", place, one, &place));
    PEN_TRY(pen_pt2_pair(draft, "max", "first_places", place, zero, &place));
    PEN_TRY(pen_pt2_pair(draft, "gather", "picked", source, place, &picked));
    PEN_TRY(pen_pt2_pair(draft, "reshape", "values", picked, sizes, &picked));
    return pen_pt2_give(draft, "where", PEN_INPUTS(mask, picked, self), PEN_NO_ATTRIBUTES);
}

// aten.embedding(weight, indices, padding_idx, …): the row of padding never learns.
static pen_status convert_embedding(pen_pt2_draft *draft) {
    pen_value_id weight, indices, rows, still, padding, is_padding;
    const int64_t padded = pen_pt2_int(draft, "padding_idx", -1);
    if (pen_pt2_bool(draft, "scale_grad_by_freq", false)) {
        return pen_pt2_refuse(draft, "gradients divided by how often a row is read");
    }
    PEN_TRY(pen_pt2_tensor(draft, "weight", &weight));
    PEN_TRY(pen_pt2_tensor(draft, "indices", &indices));
    if (padded < 0) return pen_pt2_give_pair(draft, "gather", weight, indices);
    const pen_tensor_type *type = pen_pt2_type(draft, "indices");
    PEN_TRY(pen_pt2_pair(draft, "gather", "rows", weight, indices, &rows));
    PEN_TRY(pen_pt2_map(draft, "stop_gradient", "padding_rows", rows, &still));
    PEN_TRY(pen_pt2_constant_number(draft, type->element, (double)padded, &padding));
    PEN_TRY(pen_pt2_pair(draft, "equal", "is_padding", indices, padding, &is_padding));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "is_padding_row", is_padding, type->shape.rank,
                             &is_padding));
    return pen_pt2_give(draft, "where", PEN_INPUTS(is_padding, still, rows), PEN_NO_ATTRIBUTES);
}

static const pen_pt2_mapping indexing_rows[] = {
    PEN_PT2_ROW("_unsafe_index.Tensor", index),
    PEN_PT2_ROW("embedding.default", embedding),
    PEN_PT2_ROW("gather.default", gather),
    PEN_PT2_ROW("index.Tensor", index),
    PEN_PT2_NAMED("index_add.default", "add", index_add),
    PEN_PT2_NAMED("index_copy.default", "none", index_add),
    PEN_PT2_ROW("index_put.default", put),
    PEN_PT2_ROW("index_select.default", select),
    PEN_PT2_ROW("masked_scatter.default", masked_scatter),
    PEN_PT2_ROW("scatter.reduce", scatter),
    PEN_PT2_NAMED("scatter.src", "none", scatter),
    PEN_PT2_NAMED("scatter.value", "none", scatter),
    PEN_PT2_ROW("scatter.value_reduce", scatter),
    PEN_PT2_NAMED("scatter_add.default", "add", scatter),
    PEN_PT2_ROW("scatter_reduce.two", scatter),
    PEN_PT2_ROW("take_along_dim.default", gather),
};
PEN_PT2_FAMILY(pen_pt2_indexings, indexing_rows);
