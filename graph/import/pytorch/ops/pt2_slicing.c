// Parts of tensors, and tensors made of parts.

#include "graph/graph.h"
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

static pen_status slicing_plain(pen_pt2_draft *draft, uint32_t axis, int64_t start, int64_t end,
                                slicing *out_part) {
    *out_part = (slicing){.axis = axis, .step = 1};
    PEN_TRY(pen_pt2_constant_ints(draft, 1, &start, &out_part->start));
    return pen_pt2_constant_ints(draft, 1, &end, &out_part->end);
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
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t axis = pen_pt2_axis(draft, "dim", rank, 0);
    slicing part;
    pen_value_id x;
    if (rank == 0) return pen_pt2_refuse(draft, "its operand has no dimensions");
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    if (slicing_is_whole(draft, axis)) return pen_pt2_give_map(draft, "identity", x);
    PEN_TRY(slicing_read(draft, axis, &part));
    PEN_TRY(slicing_emit(draft, &part, NULL, x, &x));
    return pen_pt2_set(draft, 0, x);
}

// From `start`, `length` elements.
static pen_status convert_narrow(pen_pt2_draft *draft) {
    slicing part = {.step = 1};
    pen_value_id x, length;
    part.axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), 0);
    if (pen_pt2_is_tensor(draft, "start")) {
        return pen_pt2_refuse(draft, "its start is a tensor");
    }
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_size(draft, "start", 0, &part.start));
    PEN_TRY(pen_pt2_size(draft, "length", 0, &length));
    const int64_t start = pen_pt2_is_symbol(draft, "start") ? 0 : pen_pt2_int(draft, "start", 0);
    if (start < 0) { // counted from the end, where a sum may come to 0
        pen_value_id size;
        PEN_TRY(pen_pt2_emit(draft, "shape", "size", PEN_INPUTS(x),
                             PEN_WITH(pen_attribute_int("start", part.axis),
                                      pen_attribute_int("end", (int64_t)part.axis + 1)),
                             &size));
        PEN_TRY(pen_pt2_pair(draft, "add", "start", part.start, size, &part.start));
    }
    PEN_TRY(pen_pt2_pair(draft, "add", "end", part.start, length, &part.end));
    PEN_TRY(slicing_emit(draft, &part, NULL, x, &x));
    return pen_pt2_set(draft, 0, x);
}

// One slice along a dimension, without that dimension.
static pen_status convert_select(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t axis = pen_pt2_axis(draft, "dim", rank, 0);
    slicing part;
    pen_value_id x;
    if (rank == 0) return pen_pt2_refuse(draft, "its operand has no dimensions");
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    if (pen_pt2_is_symbol(draft, "index")) {
        PEN_TRY(pen_pt2_size(draft, "index", 0, &part.start));
        PEN_TRY(pen_pt2_emit(draft, "gather", "picked", PEN_INPUTS(x, part.start),
                             PEN_WITH(pen_attribute_int("axis", axis)), &x));
    } else {
        const int64_t index = pen_pt2_int(draft, "index", 0);
        if (index > PLACE_LIMIT) return pen_pt2_refuse(draft, "its index is too large");
        PEN_TRY(slicing_plain(draft, axis, index, index == -1 ? INT64_MAX : index + 1, &part));
        PEN_TRY(slicing_emit(draft, &part, "picked", x, &x));
    }
    PEN_TRY(pen_pt2_with_int(draft, "squeeze", NULL, x, axis, &x));
    return pen_pt2_set(draft, 0, x);
}

// ---- putting parts back

// Where a part begins and ends along its axis, of a size that is known; false: it is not.
static bool slicing_bounds(pen_pt2_draft *draft, uint32_t axis, int64_t bounds[2]) {
    const int64_t size = pen_pt2_type(draft, "self")->shape.dims[axis];
    if (size < 0 || pen_pt2_is_symbol(draft, "start") || pen_pt2_is_symbol(draft, "end")) {
        return false;
    }
    bounds[0] = pen_pt2_int(draft, "start", 0);
    bounds[1] = pen_pt2_int(draft, "end", INT64_MAX);
    for (uint32_t i = 0; i < 2; i++) {
        if (bounds[i] < 0) bounds[i] += size;
        if (bounds[i] < 0) bounds[i] = 0;
        if (bounds[i] > size) bounds[i] = size;
    }
    return bounds[0] < bounds[1] && pen_pt2_int(draft, "step", 1) == 1;
}

// What stands before the part, the part, and what stands behind it.
static pen_status slicing_join(pen_pt2_draft *draft, uint32_t axis, const int64_t bounds[2],
                               pen_value_id x, pen_value_id changed, pen_value_id *out_value) {
    const int64_t size = pen_pt2_type(draft, "self")->shape.dims[axis];
    pen_value_id parts[3];
    slicing part;
    uint32_t count = 0;
    if (bounds[0] > 0) {
        PEN_TRY(slicing_plain(draft, axis, 0, bounds[0], &part));
        PEN_TRY(slicing_emit(draft, &part, "before", x, &parts[count++]));
    }
    parts[count++] = changed;
    if (bounds[1] < size) {
        PEN_TRY(slicing_plain(draft, axis, bounds[1], size, &part));
        PEN_TRY(slicing_emit(draft, &part, "behind", x, &parts[count++]));
    }
    *out_value = changed;
    if (count == 1) return PEN_OK;
    return pen_pt2_emit(draft, "concat", "joined", (pen_node_inputs){parts, count},
                        PEN_WITH(pen_attribute_int("axis", axis)), out_value);
}

// `x` with other contents in the part that the arguments dim, start, end and step say.
static pen_status slice_put(pen_pt2_draft *draft, pen_value_id x, pen_value_id changed,
                            pen_value_id *out_value) {
    const uint32_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), 0);
    int64_t bounds[2];
    slicing part;
    pen_value_id places, shown;
    *out_value = changed;
    if (slicing_is_whole(draft, axis)) return PEN_OK;
    if (slicing_bounds(draft, axis, bounds)) {
        return slicing_join(draft, axis, bounds, x, changed, out_value);
    }
    PEN_TRY(pen_pt2_places(draft, x, &places));
    PEN_TRY(slicing_read(draft, axis, &part));
    PEN_TRY(slicing_emit(draft, &part, "shown", places, &shown));
    return pen_pt2_scatter_places(draft, x, shown, changed, out_value);
}

// The same of one slice along `dim`, by the argument index.
static pen_status select_put(pen_pt2_draft *draft, pen_value_id x, pen_value_id changed,
                             pen_value_id *out_value) {
    const uint32_t axis = pen_pt2_axis(draft, "dim", pen_pt2_rank(draft, "self"), 0);
    const int64_t size = pen_pt2_type(draft, "self")->shape.dims[axis];
    pen_value_id places, shown, index;
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "changed", changed, axis, &changed));
    if (size > 0 && !pen_pt2_is_symbol(draft, "index")) {
        const int64_t given = pen_pt2_int(draft, "index", 0);
        if (given > PLACE_LIMIT) return pen_pt2_refuse(draft, "its index is too large");
        const int64_t first = given < 0 ? given + size : given;
        const int64_t bounds[] = {first, first + 1};
        return slicing_join(draft, axis, bounds, x, changed, out_value);
    }
    PEN_TRY(pen_pt2_places(draft, x, &places));
    PEN_TRY(pen_pt2_size(draft, "index", 0, &index));
    PEN_TRY(pen_pt2_emit(draft, "gather", "shown", PEN_INPUTS(places, index),
                         PEN_WITH(pen_attribute_int("axis", axis)), &shown));
    return pen_pt2_scatter_places(draft, x, shown, changed, out_value);
}

static pen_status slice_write_back(pen_pt2_draft *draft, const pen_pt2_change *change,
                                   pen_value_id *out_value) {
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    return slice_put(draft, x, change->changed, out_value);
}

static pen_status select_write_back(pen_pt2_draft *draft, const pen_pt2_change *change,
                                    pen_value_id *out_value) {
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    return select_put(draft, x, change->changed, out_value);
}

static pen_status convert_slice_scatter(pen_pt2_draft *draft) {
    pen_value_id x, changed;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_own_operand(draft, "src", &changed));
    PEN_TRY(slice_put(draft, x, changed, &x));
    return pen_pt2_set(draft, 0, x);
}

static pen_status convert_select_scatter(pen_pt2_draft *draft) {
    pen_value_id x, changed;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_own_operand(draft, "src", &changed));
    PEN_TRY(select_put(draft, x, changed, &x));
    return pen_pt2_set(draft, 0, x);
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

static pen_status split_convert(pen_pt2_draft *draft, bool is_single) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t axis = pen_pt2_axis(draft, "dim", rank, 0);
    const uint32_t count = pen_pt2_result_count(draft);
    pen_value_id x, *parts;
    if (rank == 0 || count == 0) return pen_pt2_refuse(draft, "it has nothing to split");
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(PEN_NEW(pen_pt2_arena(draft), count, &parts));
    PEN_TRY(split_emit(draft, x, axis, is_single, parts));
    for (uint32_t i = 0; i < count; i++) {
        if (is_single) {
            PEN_TRY(pen_pt2_with_int(draft, "squeeze", "part", parts[i], axis, &parts[i]));
        }
        PEN_TRY(pen_pt2_set(draft, i, parts[i]));
    }
    return PEN_OK;
}

static pen_status convert_split(pen_pt2_draft *draft) {
    return split_convert(draft, false);
}

static pen_status convert_unbind(pen_pt2_draft *draft) {
    return split_convert(draft, true);
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

static pen_status convert_stack(pen_pt2_draft *draft) {
    const pen_tensor_type *type = pen_pt2_result_type(draft, 0);
    const uint32_t axis = pen_pt2_axis(draft, "dim", type->shape.rank, 0);
    const pen_value_id *tensors;
    pen_value_id *parts;
    uint32_t count;
    PEN_TRY(pen_pt2_tensors_as(draft, "tensors", type->element, &count, &tensors));
    PEN_TRY(PEN_NEW(pen_pt2_arena(draft), count, &parts));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "part", tensors[i], axis, &parts[i]));
    }
    if (count == 0) return pen_pt2_refuse(draft, "it has no tensors");
    return pen_pt2_give(draft, "concat", (pen_node_inputs){parts, count},
                        PEN_WITH(pen_attribute_int("axis", axis)));
}

// Side by side along the first dimension of tensors of one, along the second of others; or, below
// each other, along the first, tensors of one dimension being rows. The row's `op_name` says which.
static pen_status convert_hstack(pen_pt2_draft *draft) {
    const pen_tensor_type *type = pen_pt2_result_type(draft, 0);
    const bool is_below = pen_pt2_op_name(draft) != NULL;
    const pen_value_id *tensors;
    pen_value_id *parts;
    uint32_t count;
    PEN_TRY(pen_pt2_tensors_as(draft, "tensors", type->element, &count, &tensors));
    PEN_TRY(PEN_NEW(pen_pt2_arena(draft), count, &parts));
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = tensors[i];
        const uint32_t rank = pen_pt2_type_at(draft, "tensors", i)->shape.rank;
        for (uint32_t d = rank; d < type->shape.rank; d++) {
            PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "part", parts[i], 0, &parts[i]));
        }
    }
    if (count == 0) return pen_pt2_refuse(draft, "it has no tensors");
    const int64_t axis = is_below || type->shape.rank == 1 ? 0 : 1;
    return pen_pt2_give(draft, "concat", (pen_node_inputs){parts, count},
                        PEN_WITH(pen_attribute_int("axis", axis)));
}

// ---- other orders

// `x` with the elements of `axis` moved on by `shift`; those at the end come to the front.
static pen_status roll_emit(pen_pt2_draft *draft, pen_value_id x, uint32_t axis, int64_t shift,
                            int64_t size, pen_value_id *out_value) {
    slicing part;
    pen_value_id parts[2];
    *out_value = x;
    if (size != PEN_DIMENSION_UNKNOWN && size > 0) shift %= size;
    if (shift < -PLACE_LIMIT) return pen_pt2_refuse(draft, "its shift is too large");
    if (shift == 0) return PEN_OK;
    PEN_TRY(slicing_plain(draft, axis, -shift, INT64_MAX, &part));
    PEN_TRY(slicing_emit(draft, &part, "end", x, &parts[0]));
    PEN_TRY(slicing_plain(draft, axis, 0, -shift, &part));
    PEN_TRY(slicing_emit(draft, &part, "begin", x, &parts[1]));
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

// ---- windows

#define WINDOW_LIMIT ((int64_t)1 << 24) // elements of all windows of a dimension

// [windows, size] or [size, windows]: where the elements of a dimension's windows lie.
typedef struct window {
    int64_t count, size, step, dilation;
    bool is_by_element; // [size, windows]
} window;

// The windows of a dimension, which becomes two. Its size, from the file, is bounded here.
static pen_status window_gather(pen_pt2_draft *draft, const window *w, uint32_t axis,
                                pen_value_id x, pen_value_id *out_value) {
    const bool flips = w->is_by_element;
    const int64_t dims[] = {flips ? w->size : w->count, flips ? w->count : w->size};
    const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 2, dims);
    int64_t *indices;
    void *table = NULL;
    pen_value_id list;
    if (w->count < 1 || w->size < 1 || w->count > WINDOW_LIMIT / w->size) {
        return pen_pt2_refuse(draft, "it has %lld windows of %lld", (long long)w->count,
                              (long long)w->size);
    }
    PEN_TRY(pen_pt2_table(draft, w->count * w->size, sizeof *indices, &table));
    indices = table;
    for (int64_t i = 0; i < w->count * w->size; i++) {
        const int64_t row = i / dims[1], column = i % dims[1];
        indices[i] = (flips ? column : row) * w->step + (flips ? row : column) * w->dilation;
    }
    PEN_TRY(pen_graph_constant(pen_pt2_graph(draft), "window_indices", &type, indices, &list));
    return pen_pt2_emit(draft, "gather", "windows", PEN_INPUTS(x, list),
                        PEN_WITH(pen_attribute_int("axis", axis)), out_value);
}

// Windows of a dimension, whose elements become the last dimension.
static pen_status convert_unfold(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    const uint32_t rank = shape->rank;
    const uint32_t axis = pen_pt2_axis(draft, "dimension", rank, 0);
    window w = {.size = pen_pt2_int(draft, "size", 1),
                .step = pen_pt2_int(draft, "step", 1),
                .dilation = 1};
    int64_t order[PEN_RANK_LIMIT];
    pen_value_id x;
    if (rank == 0 || rank == PEN_RANK_LIMIT || shape->dims[axis] < 0 || w.step < 1 || w.size < 1 ||
        w.size > shape->dims[axis]) {
        return pen_pt2_refuse(draft, "the size of its dimension must be known");
    }
    w.count = (shape->dims[axis] - w.size) / w.step + 1;
    for (uint32_t d = 0; d < rank; d++) {
        order[d] = d <= axis ? d : d + 1;
    }
    order[rank] = axis + 1;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(window_gather(draft, &w, axis, x, &x));
    PEN_TRY(pen_pt2_transpose(draft, NULL, x, (pen_pt2_list){rank + 1, order}, &x));
    return pen_pt2_set(draft, 0, x);
}

typedef struct columns {
    int64_t kernel[2], strides[2], dilations[2], pads[2];
    int64_t count[2]; // windows along each dimension of a plane of these sizes
} columns;

static pen_status columns_read(pen_pt2_draft *draft, const int64_t sizes[2], columns *out_work) {
    columns *c = out_work;
    pen_pt2_ints_each(draft, "kernel_size", 2, 1, c->kernel);
    pen_pt2_ints_each(draft, "stride", 2, 1, c->strides);
    pen_pt2_ints_each(draft, "dilation", 2, 1, c->dilations);
    pen_pt2_ints_each(draft, "padding", 2, 0, c->pads);
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_sound = sizes[i] > 0 && sizes[i] < WINDOW_LIMIT && c->kernel[i] > 0 &&
                              c->kernel[i] < WINDOW_LIMIT && c->strides[i] > 0 &&
                              c->dilations[i] > 0 && c->dilations[i] < WINDOW_LIMIT &&
                              c->pads[i] >= 0 && c->pads[i] < WINDOW_LIMIT;
        if (!is_sound) return pen_pt2_refuse(draft, "its planes or windows have no known size");
        const int64_t extent = (c->kernel[i] - 1) * c->dilations[i] + 1;
        const int64_t room = sizes[i] + 2 * c->pads[i] - extent;
        if (room < 0) return pen_pt2_refuse(draft, "its windows are larger than its planes");
        c->count[i] = room / c->strides[i] + 1;
    }
    return PEN_OK;
}

// Windows of a plane as columns: [n, c, h, w] to [n, c · size of a window, windows].
static pen_status convert_im2col(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    const int64_t order[] = {0, 1, 2, 4, 3, 5};
    columns c;
    pen_value_id x;
    if (shape->rank != 4) return pen_pt2_refuse(draft, "its operand has no batch");
    PEN_TRY(columns_read(draft, &shape->dims[2], &c));
    const int64_t pads[] = {0, 0, c.pads[0], c.pads[1], 0, 0, c.pads[0], c.pads[1]};
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_with_ints(draft, "pad", "padded", x, (pen_pt2_list){8, pads}, &x));
    for (uint32_t i = 0; i < 2; i++) {
        const window w = {c.count[i], c.kernel[i], c.strides[i], c.dilations[i], true};
        PEN_TRY(window_gather(draft, &w, i == 0 ? 2 : 4, x, &x));
    }
    PEN_TRY(pen_pt2_transpose(draft, "turned", x, (pen_pt2_list){6, order}, &x));
    PEN_TRY(pen_pt2_reshape_to(draft, NULL, x, 0, &x));
    return pen_pt2_set(draft, 0, x);
}

// [channels · size, 1, kernel]: number j of a channel's columns belongs to element j of the window.
static pen_status columns_kernel(pen_pt2_draft *draft, const columns *c, int64_t channels,
                                 pen_value_id *out_value) {
    const pen_element_type element = pen_pt2_own_element(draft);
    const int64_t size = c->kernel[0] * c->kernel[1];
    const int64_t dims[] = {channels * size, 1, c->kernel[0], c->kernel[1]};
    const pen_tensor_type type = pen_tensor_type_make(element, 4, dims);
    double *numbers;
    void *table = NULL;
    if (size > WINDOW_LIMIT || channels < 1 || channels > WINDOW_LIMIT / size / size) {
        return pen_pt2_refuse(draft, "its windows have %lld elements", (long long)size);
    }
    const int64_t count = channels * size * size;
    PEN_TRY(pen_pt2_table(draft, count, sizeof *numbers, &table));
    numbers = table;
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = i / size % size == i % size ? 1 : 0;
    }
    return pen_pt2_constant_numbers(draft, "window_elements", &type, numbers, out_value);
}

// Columns put back where im2col would take them, sums where windows overlap: a transposed
// convolution whose kernels have a single 1.
static pen_status convert_col2im(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    int64_t plane[2], rest[2];
    columns c;
    pen_value_id x, kernel;
    pen_pt2_ints_each(draft, "output_size", 2, 1, plane);
    if (shape->rank != 3) return pen_pt2_refuse(draft, "its operand has no batch");
    PEN_TRY(columns_read(draft, plane, &c));
    const int64_t channels = shape->dims[1] / (c.kernel[0] * c.kernel[1]);
    const int64_t sizes[] = {0, shape->dims[1], c.count[0], c.count[1]};
    const int64_t pads[] = {c.pads[0], c.pads[1], c.pads[0], c.pads[1]};
    for (uint32_t i = 0; i < 2; i++) {
        rest[i] = plane[i] + 2 * c.pads[i] - (c.kernel[i] - 1) * c.dilations[i] - 1 -
                  (c.count[i] - 1) * c.strides[i];
    }
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(columns_kernel(draft, &c, channels, &kernel));
    PEN_TRY(pen_pt2_with_ints(draft, "reshape", "planes", x, (pen_pt2_list){4, sizes}, &x));
    return pen_pt2_give(draft, "conv_transpose", PEN_INPUTS(x, kernel),
                        PEN_WITH(pen_attribute_ints("strides", 2, c.strides),
                                 pen_attribute_ints("dilations", 2, c.dilations),
                                 pen_attribute_ints("pads", 4, pads),
                                 pen_attribute_ints("output_padding", 2, rest),
                                 pen_attribute_int("group", channels)));
}

#define VIEW(aten, of)                                                                             \
    { .target = "aten." aten, .convert = convert_##of, .view = PEN_PT2_VIEW_ALWAYS }

static const pen_pt2_mapping slicing_rows[] = {
    {.target = "aten.slice.Tensor",
     .convert = convert_slice,
     .view = PEN_PT2_VIEW_ALWAYS,
     .write_back = slice_write_back},
    VIEW("narrow.default", narrow),
    {.target = "aten.select.int",
     .convert = convert_select,
     .view = PEN_PT2_VIEW_ALWAYS,
     .write_back = select_write_back},
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
    VIEW("unfold.default", unfold),
    PEN_PT2_ROW("im2col.default", im2col),
    PEN_PT2_ROW("col2im.default", col2im),
};

PEN_PT2_FAMILY(pen_pt2_slicings, slicing_rows);
