// Parts of tensors, and tensors made of parts.

#include "graph/import/import.h"
#include "graph/import/pytorch/ops/pt2_movement.h"
#include "graph/import/pytorch/pt2_mapping.h"

#define PLACE_LIMIT ((int64_t)1 << 62) // of places, so that a negation or one more is a number

// Every `step`-th element of `axis`, from `start` to `end`, int64 values [1].
typedef struct slicing {
    uint32_t axis;
    pen_value_id start, end;
    int64_t step;
} slicing;

static pen_status slicing_emit(pen_pt2_draft *draft, const slicing *part, const char *suffix,
                               pen_value_id x, pen_value_id *out_value) {
    pen_value_id axes, steps;
    const int64_t axis = part->axis;
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &axis, &axes));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &part->step, &steps));
    return pen_pt2_emit(draft, "slice", suffix, PEN_INPUTS(x, part->start, part->end, axes, steps),
                        PEN_NO_ATTRIBUTES, out_value);
}

// The operand, and the dimension `dim` of it that a part is taken along.
static pen_status slicing_operand(pen_pt2_draft *draft, pen_value_id *out_x, uint32_t *out_axis) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    *out_axis = pen_pt2_axis(draft, "dim", rank, 0);
    *out_x = PEN_VALUE_NONE;
    if (rank == 0) return pen_pt2_refuse(draft, "its operand has no dimensions");
    return pen_pt2_tensor(draft, "self", out_x);
}

// Whether a slice has all elements: of 0 to an end that is not before the last.
static bool slicing_is_whole(pen_pt2_draft *draft, uint32_t axis) {
    if (pen_pt2_is_symbol(draft, "start") || pen_pt2_is_symbol(draft, "end")) return false;
    const int64_t size = pen_pt2_type(draft, "self")->shape.dims[axis];
    const int64_t end = pen_pt2_int(draft, "end", INT64_MAX);
    return pen_pt2_int(draft, "start", 0) == 0 && pen_pt2_int(draft, "step", 1) == 1 &&
           (end == INT64_MAX || (size != PEN_DIMENSION_UNKNOWN && end >= size));
}

static pen_status slicing_read(pen_pt2_draft *draft, uint32_t axis, slicing *out_part) {
    *out_part = (slicing){.axis = axis, .step = pen_pt2_int(draft, "step", 1)};
    PEN_TRY(pen_pt2_size(draft, "start", 0, &out_part->start));
    return pen_pt2_size(draft, "end", INT64_MAX, &out_part->end);
}

static pen_status convert_slice(pen_pt2_draft *draft) {
    uint32_t axis;
    slicing part;
    pen_value_id x;
    PEN_TRY(slicing_operand(draft, &x, &axis));
    if (slicing_is_whole(draft, axis)) return pen_pt2_give_map(draft, "identity", x);
    PEN_TRY(slicing_read(draft, axis, &part));
    PEN_TRY(slicing_emit(draft, &part, NULL, x, &x));
    return pen_pt2_set(draft, 0, x);
}

// From `start`, `length` elements of x.
static pen_status narrow_read(pen_pt2_draft *draft, pen_value_id x, uint32_t axis,
                              slicing *out_part) {
    pen_value_id length;
    *out_part = (slicing){.axis = axis, .step = 1};
    if (pen_pt2_is_tensor(draft, "start")) {
        return pen_pt2_refuse(draft, "its start is a tensor");
    }
    PEN_TRY(pen_pt2_size(draft, "start", 0, &out_part->start));
    PEN_TRY(pen_pt2_size(draft, "length", 0, &length));
    const int64_t start = pen_pt2_is_symbol(draft, "start") ? 0 : pen_pt2_int(draft, "start", 0);
    if (start < 0) { // counted from the end, where a sum may come to 0
        pen_value_id size;
        PEN_TRY(pen_pt2_emit(
            draft, "shape", "size", PEN_INPUTS(x),
            PEN_WITH(pen_attribute_int("start", axis), pen_attribute_int("end", (int64_t)axis + 1)),
            &size));
        PEN_TRY(pen_pt2_pair(draft, "add", "start", out_part->start, size, &out_part->start));
    }
    return pen_pt2_pair(draft, "add", "end", out_part->start, length, &out_part->end);
}

static pen_status convert_narrow(pen_pt2_draft *draft) {
    uint32_t axis;
    slicing part;
    pen_value_id x;
    PEN_TRY(slicing_operand(draft, &x, &axis));
    PEN_TRY(narrow_read(draft, x, axis, &part));
    PEN_TRY(slicing_emit(draft, &part, NULL, x, &x));
    return pen_pt2_set(draft, 0, x);
}

// One slice along a dimension, without that dimension.
static pen_status convert_select(pen_pt2_draft *draft) {
    uint32_t axis;
    pen_value_id x, start;
    PEN_TRY(slicing_operand(draft, &x, &axis));
    if (pen_pt2_is_symbol(draft, "index")) {
        PEN_TRY(pen_pt2_size(draft, "index", 0, &start));
        PEN_TRY(pen_pt2_emit(draft, "gather", "picked", PEN_INPUTS(x, start),
                             PEN_WITH(pen_attribute_int("axis", axis)), &x));
    } else {
        const int64_t index = pen_pt2_int(draft, "index", 0);
        if (index > PLACE_LIMIT) return pen_pt2_refuse(draft, "its index is too large");
        const pen_pt2_part part = {axis, index, index == -1 ? INT64_MAX : index + 1};
        PEN_TRY(pen_pt2_slice(draft, "picked", x, part, &x));
    }
    PEN_TRY(pen_pt2_with_int(draft, "squeeze", NULL, x, axis, &x));
    return pen_pt2_set(draft, 0, x);
}

// ---- putting parts back

// Where a part begins and ends along its axis, whose size may be open: from the front, or, below 0,
// from the end. `end` is INT64_MAX where the part goes up to the end.
typedef struct hole {
    uint32_t axis;
    int64_t start, end;
} hole;

// The part of `start` to `end`, places as Python has them, if what stands before and behind is
// known to be all the rest. Where the size is open, the part must begin or end where the tensor
// does: of others it is not known whether they are empty.
static bool hole_find(pen_pt2_draft *draft, uint32_t axis, int64_t start, int64_t end,
                      hole *out_hole) {
    const int64_t size = pen_pt2_type(draft, "self")->shape.dims[axis];
    int64_t places[2] = {start, end};
    for (uint32_t i = 0; i < 2 && size >= 0; i++) {
        if (places[i] < 0) places[i] += size;
        if (places[i] < 0) places[i] = 0;
        if (places[i] >= size) places[i] = i == 0 ? size : INT64_MAX;
    }
    *out_hole = (hole){axis, places[0], places[1]};
    return size >= 0 ? places[0] < places[1] : start == 0 || end == INT64_MAX;
}

// The part that the arguments start, end and step say.
static bool hole_read(pen_pt2_draft *draft, uint32_t axis, hole *out_hole) {
    if (pen_pt2_is_symbol(draft, "start") || pen_pt2_is_symbol(draft, "end")) return false;
    if (pen_pt2_int(draft, "step", 1) != 1) return false;
    return hole_find(draft, axis, pen_pt2_int(draft, "start", 0),
                     pen_pt2_int(draft, "end", INT64_MAX), out_hole);
}

// What stands before the part, the part, and what stands behind it.
static pen_status hole_fill(pen_pt2_draft *draft, const hole *h, pen_value_id x,
                            pen_value_id changed, pen_value_id *out_value) {
    pen_value_id parts[3];
    uint32_t count = 0;
    if (h->start != 0) {
        PEN_TRY(pen_pt2_slice(draft, "before", x, (pen_pt2_part){h->axis, 0, h->start},
                              &parts[count++]));
    }
    parts[count++] = changed;
    if (h->end != INT64_MAX) {
        PEN_TRY(pen_pt2_slice(draft, "behind", x, (pen_pt2_part){h->axis, h->end, INT64_MAX},
                              &parts[count++]));
    }
    *out_value = changed;
    if (count == 1) return PEN_OK;
    return pen_pt2_emit(draft, "concat", "joined", (pen_node_inputs){parts, count},
                        PEN_WITH(pen_attribute_int("axis", h->axis)), out_value);
}

// Every `step`-th element of a dimension, from one before the `step`-th on, up to the end: of as
// many columns as steps, one. False: the size is open, or no multiple of the step.
static bool column_read(pen_pt2_draft *draft, uint32_t axis, int64_t *out_step,
                        int64_t *out_start) {
    const int64_t size = pen_pt2_type(draft, "self")->shape.dims[axis];
    if (pen_pt2_is_symbol(draft, "start") || pen_pt2_is_symbol(draft, "end")) return false;
    const int64_t end = pen_pt2_int(draft, "end", INT64_MAX);
    *out_step = pen_pt2_int(draft, "step", 1);
    *out_start = pen_pt2_int(draft, "start", 0);
    if (size < 1 || *out_step < 2 || size % *out_step != 0) return false;
    return *out_start >= 0 && *out_start < *out_step && end > size - *out_step + *out_start;
}

// The operand's sizes, with `axis` as two if `step` is not 1: 0 stands for those before it, which
// stay, and -1 for one that is open. False: several are open.
static bool column_sizes(const pen_shape *shape, uint32_t axis, int64_t step,
                         int64_t sizes[PEN_RANK_LIMIT + 1], uint32_t *out_count) {
    uint32_t count = 0, open_count = 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        sizes[count++] = d < axis ? 0 : d == axis ? shape->dims[d] / step : shape->dims[d];
        if (d == axis && step > 1) sizes[count++] = step;
        if (d <= axis || shape->dims[d] >= 0) continue;
        sizes[count - 1] = -1;
        open_count++;
    }
    *out_count = count;
    return open_count <= 1 && count <= PEN_RANK_LIMIT;
}

// Puts `changed` into that column. *out_is_done false: it cannot be done so.
static pen_status column_fill(pen_pt2_draft *draft, uint32_t axis, pen_value_id x,
                              pen_value_id changed, bool *out_is_done, pen_value_id *out_value) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    int64_t apart[PEN_RANK_LIMIT + 1], whole[PEN_RANK_LIMIT + 1], step, start;
    pen_pt2_list sizes = {.integers = apart}, back = {.integers = whole};
    *out_is_done = column_read(draft, axis, &step, &start) &&
                   column_sizes(shape, axis, step, apart, &sizes.count) &&
                   column_sizes(shape, axis, 1, whole, &back.count);
    if (!*out_is_done) return PEN_OK;
    const hole h = {axis + 1, start, start + 1 == step ? INT64_MAX : start + 1};
    PEN_TRY(pen_pt2_with_ints(draft, "reshape", "columns", x, sizes, &x));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "column", changed, h.axis, &changed));
    PEN_TRY(hole_fill(draft, &h, x, changed, &x));
    return pen_pt2_with_ints(draft, "reshape", "rejoined", x, back, out_value);
}

// Any part, by the places of its elements.
static pen_status slicing_scatter(pen_pt2_draft *draft, const slicing *part, pen_value_id x,
                                  pen_value_id changed, pen_value_id *out_value) {
    pen_value_id places;
    PEN_TRY(pen_pt2_places(draft, x, &places));
    PEN_TRY(slicing_emit(draft, part, "shown", places, &places));
    return pen_pt2_scatter_places(draft, x, places, changed, out_value);
}

// The operand with other contents in the part that the arguments dim, start, end and step say.
static pen_status slice_put(pen_pt2_draft *draft, pen_value_id changed, pen_value_id *out_value) {
    uint32_t axis;
    slicing part;
    pen_value_id x;
    hole h;
    bool is_done;
    PEN_TRY(slicing_operand(draft, &x, &axis));
    if (hole_read(draft, axis, &h)) return hole_fill(draft, &h, x, changed, out_value);
    PEN_TRY(column_fill(draft, axis, x, changed, &is_done, out_value));
    if (is_done) return PEN_OK;
    PEN_TRY(slicing_read(draft, axis, &part));
    return slicing_scatter(draft, &part, x, changed, out_value);
}

// The same of dim, start and length.
static pen_status narrow_put(pen_pt2_draft *draft, pen_value_id changed, pen_value_id *out_value) {
    uint32_t axis;
    slicing part;
    pen_value_id x;
    hole h;
    PEN_TRY(slicing_operand(draft, &x, &axis));
    if (!pen_pt2_is_symbol(draft, "start") && !pen_pt2_is_symbol(draft, "length")) {
        const int64_t start = pen_pt2_int(draft, "start", 0);
        const int64_t length = pen_pt2_int(draft, "length", 0);
        const bool is_sound =
            start > -PLACE_LIMIT && start < PLACE_LIMIT && length >= 0 && length < PLACE_LIMIT;
        const bool is_last = is_sound && start < 0 && start + length == 0;
        const int64_t end = !is_sound || is_last ? INT64_MAX : start + length;
        if (is_sound && hole_find(draft, axis, start, end, &h)) {
            return hole_fill(draft, &h, x, changed, out_value);
        }
    }
    PEN_TRY(narrow_read(draft, x, axis, &part));
    return slicing_scatter(draft, &part, x, changed, out_value);
}

// The same of one slice along `dim`, by the argument index, which lies within.
static pen_status select_put(pen_pt2_draft *draft, pen_value_id changed, pen_value_id *out_value) {
    uint32_t axis;
    pen_value_id x, places, index;
    PEN_TRY(slicing_operand(draft, &x, &axis));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "changed", changed, axis, &changed));
    if (!pen_pt2_is_symbol(draft, "index")) {
        const int64_t at = pen_pt2_int(draft, "index", 0);
        if (at > PLACE_LIMIT) return pen_pt2_refuse(draft, "its index is too large");
        const hole h = {axis, at, at == -1 ? INT64_MAX : at + 1};
        return hole_fill(draft, &h, x, changed, out_value);
    }
    PEN_TRY(pen_pt2_places(draft, x, &places));
    PEN_TRY(pen_pt2_size(draft, "index", 0, &index));
    PEN_TRY(pen_pt2_emit(draft, "gather", "shown", PEN_INPUTS(places, index),
                         PEN_WITH(pen_attribute_int("axis", axis)), &places));
    return pen_pt2_scatter_places(draft, x, places, changed, out_value);
}

typedef pen_status (*part_put)(pen_pt2_draft *draft, pen_value_id changed, pen_value_id *out_value);

static pen_status scatter_convert(pen_pt2_draft *draft, part_put put) {
    pen_value_id changed, value = PEN_VALUE_NONE;
    PEN_TRY(pen_pt2_own_operand(draft, "src", &changed));
    PEN_TRY(put(draft, changed, &value));
    return pen_pt2_set(draft, 0, value);
}

static pen_status convert_slice_scatter(pen_pt2_draft *draft) {
    return scatter_convert(draft, slice_put);
}

static pen_status convert_select_scatter(pen_pt2_draft *draft) {
    return scatter_convert(draft, select_put);
}

static pen_status write_back_slice(pen_pt2_draft *draft, const pen_pt2_change *change,
                                   pen_value_id *out_value) {
    return slice_put(draft, change->changed, out_value);
}

static pen_status write_back_narrow(pen_pt2_draft *draft, const pen_pt2_change *change,
                                    pen_value_id *out_value) {
    return narrow_put(draft, change->changed, out_value);
}

static pen_status write_back_select(pen_pt2_draft *draft, const pen_pt2_change *change,
                                    pen_value_id *out_value) {
    return select_put(draft, change->changed, out_value);
}

// ---- split

// Sizes of all results along a dimension. False: the file leaves some open.
static bool split_sizes(pen_pt2_draft *draft, uint32_t axis, bool is_single, int64_t *out_sizes) {
    for (uint32_t i = 0; i < pen_pt2_result_count(draft); i++) {
        out_sizes[i] = is_single ? 1 : pen_pt2_result_type(draft, i)->shape.dims[axis];
        if (out_sizes[i] == PEN_DIMENSION_UNKNOWN) return false;
    }
    return true;
}

// Into as many parts as there are results, of sizes that the file has for them. Open ones are those
// of the argument `split_sizes`, or equal.
static pen_status split_emit(pen_pt2_draft *draft, pen_value_id x, uint32_t axis, bool is_single,
                             pen_value_id *out_values) {
    const uint32_t count = pen_pt2_result_count(draft);
    pen_value_id inputs[2] = {x, PEN_VALUE_NONE};
    int64_t *sizes;
    PEN_TRY(PEN_NEW(pen_pt2_arena(draft), count, &sizes));
    if (split_sizes(draft, axis, is_single, sizes)) {
        PEN_TRY(pen_pt2_constant_ints(draft, count, sizes, &inputs[1]));
    } else if (pen_pt2_has(draft, "split_sizes")) {
        PEN_TRY(pen_pt2_sizes(draft, "split_sizes", &inputs[1]));
    }
    const pen_pt2_emission split = {.op_name = "split",
                                    .suffix = is_single ? "parts" : NULL,
                                    .inputs = {inputs, pen_value_is(inputs[1]) ? 2 : 1},
                                    .attributes = PEN_WITH(pen_attribute_int("axis", axis)),
                                    .output_count = count};
    return pen_pt2_emit_many(draft, &split, out_values);
}

// The operand's parts [results], each with its dimension `dim`.
static pen_status split_parts(pen_pt2_draft *draft, bool is_single, uint32_t *out_axis,
                              pen_value_id *out_parts) {
    pen_value_id x;
    PEN_TRY(slicing_operand(draft, &x, out_axis));
    if (pen_pt2_result_count(draft) == 0) return pen_pt2_refuse(draft, "it has nothing to split");
    return split_emit(draft, x, *out_axis, is_single, out_parts);
}

static pen_status split_convert(pen_pt2_draft *draft, bool is_single) {
    const uint32_t count = pen_pt2_result_count(draft);
    uint32_t axis = 0;
    pen_value_id *parts;
    PEN_TRY(PEN_NEW(pen_pt2_arena(draft), count, &parts));
    PEN_TRY(split_parts(draft, is_single, &axis, parts));
    for (uint32_t i = 0; i < count; i++) {
        if (is_single) {
            PEN_TRY(pen_pt2_with_int(draft, "squeeze", "part", parts[i], axis, &parts[i]));
        }
        PEN_TRY(pen_pt2_set(draft, i, parts[i]));
    }
    return PEN_OK;
}

// All parts side by side again, the changed one in its place.
static pen_status split_write_back(pen_pt2_draft *draft, bool is_single,
                                   const pen_pt2_change *change, pen_value_id *out_value) {
    const uint32_t count = pen_pt2_result_count(draft);
    uint32_t axis = 0;
    pen_value_id *parts;
    PEN_TRY(PEN_NEW(pen_pt2_arena(draft), count, &parts));
    PEN_TRY(split_parts(draft, is_single, &axis, parts));
    PEN_ASSERT(change->result < count);
    pen_value_id *changed = &parts[change->result];
    *changed = change->changed;
    if (is_single) {
        PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "changed", *changed, axis, changed));
    }
    return pen_pt2_emit(draft, "concat", "joined", (pen_node_inputs){parts, count},
                        PEN_WITH(pen_attribute_int("axis", axis)), out_value);
}

static pen_status convert_split(pen_pt2_draft *draft) {
    return split_convert(draft, false);
}

static pen_status convert_unbind(pen_pt2_draft *draft) {
    return split_convert(draft, true);
}

static pen_status write_back_split(pen_pt2_draft *draft, const pen_pt2_change *change,
                                   pen_value_id *out_value) {
    return split_write_back(draft, false, change, out_value);
}

static pen_status write_back_unbind(pen_pt2_draft *draft, const pen_pt2_change *change,
                                    pen_value_id *out_value) {
    return split_write_back(draft, true, change, out_value);
}

// ---- parts side by side

// Whether a tensor of the list adds nothing: its size along the axis is 0, or it is one of no
// elements and one dimension, which goes with all others. Without any other, the last one stays.
static bool concat_is_empty(pen_pt2_draft *draft, uint32_t index, uint32_t rank, uint32_t axis) {
    const pen_shape *shape = &pen_pt2_type_at(draft, "tensors", index)->shape;
    if (rank > 1 && shape->rank == 1 && shape->dims[0] == 0) return true;
    return shape->rank == rank && rank > 0 && shape->dims[axis] == 0;
}

static pen_status convert_cat(pen_pt2_draft *draft) {
    const pen_tensor_type *type = pen_pt2_result_type(draft, 0);
    const uint32_t axis = pen_pt2_axis(draft, "dim", type->shape.rank, 0);
    const pen_value_id *tensors;
    pen_value_id *kept;
    uint32_t count, kept_count = 0;
    PEN_TRY(pen_pt2_tensors_as(draft, "tensors", type->element, &count, &tensors));
    PEN_TRY(PEN_NEW(pen_pt2_arena(draft), count, &kept));
    for (uint32_t i = 0; i < count; i++) {
        const bool is_last = i + 1 == count && kept_count == 0;
        if (!is_last && concat_is_empty(draft, i, type->shape.rank, axis)) continue;
        kept[kept_count++] = tensors[i];
    }
    if (kept_count == 0) return pen_pt2_refuse(draft, "it has no tensors");
    return pen_pt2_give(draft, "concat", (pen_node_inputs){kept, kept_count},
                        PEN_WITH(pen_attribute_int("axis", axis)));
}

// The tensors, with dimensions of one element at `place` until they have the rank of the result,
// side by side.
static pen_status stack_give(pen_pt2_draft *draft, uint32_t place, uint32_t axis) {
    const uint32_t rank = pen_pt2_result_type(draft, 0)->shape.rank;
    const pen_value_id *tensors;
    pen_value_id *parts;
    uint32_t count;
    PEN_TRY(pen_pt2_tensors_as(draft, "tensors", pen_pt2_own_element(draft), &count, &tensors));
    PEN_TRY(PEN_NEW(pen_pt2_arena(draft), count, &parts));
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = tensors[i];
        for (uint32_t d = pen_pt2_type_at(draft, "tensors", i)->shape.rank; d < rank; d++) {
            PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "part", parts[i], place, &parts[i]));
        }
    }
    if (count == 0) return pen_pt2_refuse(draft, "it has no tensors");
    return pen_pt2_give(draft, "concat", (pen_node_inputs){parts, count},
                        PEN_WITH(pen_attribute_int("axis", axis)));
}

static pen_status convert_stack(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_result_type(draft, 0)->shape.rank;
    const uint32_t axis = pen_pt2_axis(draft, "dim", rank, 0);
    return stack_give(draft, axis, axis);
}

// Side by side along the first dimension of tensors of one, along the second of others; or, below
// each other, along the first, tensors of one dimension being rows. The row's `op_name` says which.
static pen_status convert_hstack(pen_pt2_draft *draft) {
    const bool is_below = pen_pt2_op_name(draft) != NULL;
    const bool is_line = pen_pt2_result_type(draft, 0)->shape.rank == 1;
    return stack_give(draft, 0, is_below || is_line ? 0 : 1);
}

// ---- other orders

// `x` with the elements of `axis` moved on by `shift`; those at the end come to the front.
static pen_status roll_emit(pen_pt2_draft *draft, pen_value_id x, uint32_t axis, int64_t shift,
                            int64_t size, pen_value_id *out_value) {
    pen_value_id parts[2];
    *out_value = x;
    if (size != PEN_DIMENSION_UNKNOWN && size > 0) shift %= size;
    if (shift < -PLACE_LIMIT) return pen_pt2_refuse(draft, "its shift is too large");
    if (shift == 0) return PEN_OK;
    PEN_TRY(pen_pt2_slice(draft, "end", x, (pen_pt2_part){axis, -shift, INT64_MAX}, &parts[0]));
    PEN_TRY(pen_pt2_slice(draft, "begin", x, (pen_pt2_part){axis, 0, -shift}, &parts[1]));
    return pen_pt2_emit(draft, "concat", "rolled", PEN_INPUTS_ALL(parts),
                        PEN_WITH(pen_attribute_int("axis", axis)), out_value);
}

// Without dimensions: the elements one behind the other.
static pen_status convert_roll(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    const pen_pt2_list shifts = pen_pt2_ints(draft, "shifts");
    const bool is_flat = pen_pt2_ints(draft, "dims").count == 0;
    const pen_pt2_list axes = pen_pt2_axes(draft, "dims", shape->rank);
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    if (is_flat && shifts.count == 1) {
        PEN_TRY(pen_pt2_with_int(draft, "reshape", "elements", x, -1, &x));
        PEN_TRY(roll_emit(draft, x, 0, shifts.integers[0], PEN_DIMENSION_UNKNOWN, &x));
        PEN_TRY(pen_pt2_reshape_to(draft, NULL, x, 0, &x));
        return pen_pt2_set(draft, 0, x);
    }
    if (shifts.count != axes.count) return pen_pt2_refuse(draft, "shifts and dims differ in count");
    for (uint32_t i = 0; i < axes.count; i++) {
        const uint32_t axis = (uint32_t)axes.integers[i];
        PEN_TRY(roll_emit(draft, x, axis, shifts.integers[i], shape->dims[axis], &x));
    }
    return pen_pt2_set(draft, 0, x);
}

static pen_status convert_flip(pen_pt2_draft *draft) {
    const pen_pt2_list axes = pen_pt2_axes(draft, "dims", pen_pt2_rank(draft, "self"));
    int64_t starts[PEN_RANK_LIMIT], ends[PEN_RANK_LIMIT], steps[PEN_RANK_LIMIT];
    pen_value_id inputs[5];
    PEN_TRY(pen_pt2_tensor(draft, "self", &inputs[0]));
    if (pen_pt2_ints(draft, "dims").count == 0) return pen_pt2_set(draft, 0, inputs[0]);
    for (uint32_t i = 0; i < axes.count; i++) {
        starts[i] = -1;
        ends[i] = INT64_MIN;
        steps[i] = -1;
    }
    PEN_TRY(pen_pt2_constant_ints(draft, axes.count, starts, &inputs[1]));
    PEN_TRY(pen_pt2_constant_ints(draft, axes.count, ends, &inputs[2]));
    PEN_TRY(pen_pt2_constant_ints(draft, axes.count, axes.integers, &inputs[3]));
    PEN_TRY(pen_pt2_constant_ints(draft, axes.count, steps, &inputs[4]));
    return pen_pt2_give(draft, "slice", PEN_INPUTS_ALL(inputs), PEN_NO_ATTRIBUTES);
}

#define VIEW(aten, of)                                                                             \
    {                                                                                              \
        .target = "aten." aten, .convert = convert_##of, .view = PEN_PT2_VIEW_ALWAYS,              \
        .write_back = write_back_##of                                                              \
    }

static const pen_pt2_mapping slicing_rows[] = {
    VIEW("slice.Tensor", slice),
    VIEW("narrow.default", narrow),
    VIEW("select.int", select),
    PEN_PT2_ROW("slice_scatter.default", slice_scatter),
    PEN_PT2_ROW("select_scatter.default", select_scatter),
    VIEW("split.Tensor", split),
    VIEW("split.sizes", split),
    VIEW("split_with_sizes.default", split),
    VIEW("chunk.default", split),
    VIEW("tensor_split.sections", split),
    VIEW("tensor_split.indices", split),
    PEN_PT2_ROW("unsafe_split.Tensor", split),
    PEN_PT2_ROW("unsafe_chunk.default", split),
    VIEW("unbind.int", unbind),
    PEN_PT2_ROW("cat.default", cat),
    PEN_PT2_ROW("concat.default", cat),
    PEN_PT2_ROW("concatenate.default", cat),
    PEN_PT2_ROW("stack.default", stack),
    PEN_PT2_ROW("hstack.default", hstack),
    PEN_PT2_NAMED("vstack.default", "below", hstack),
    PEN_PT2_ROW("roll.default", roll),
    PEN_PT2_ROW("flip.default", flip),
};

PEN_PT2_FAMILY(pen_pt2_slicings, slicing_rows);
