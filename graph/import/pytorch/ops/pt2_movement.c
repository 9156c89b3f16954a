// The same elements under other shapes, in other orders, repeated, or as another type.

#include "graph/import/pytorch/ops/pt2_movement.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/import/pytorch/pt2_mapping.h"

// One size that the file leaves open follows from the others. Only with more of them do the
// symbols have to be computed; and with a size of 0, from which nothing follows.
pen_status pen_pt2_reshape_to(pen_pt2_draft *draft, const char *suffix, pen_value_id x,
                              uint32_t result, pen_value_id *out_value) {
    const pen_shape *shape = &pen_pt2_result_type(draft, result)->shape;
    int64_t sizes[PEN_RANK_LIMIT];
    uint32_t open_count = 0;
    bool has_zero = false;
    pen_value_id target;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const bool is_open = shape->dims[d] == PEN_DIMENSION_UNKNOWN;
        sizes[d] = is_open ? -1 : shape->dims[d];
        open_count += is_open;
        has_zero |= sizes[d] == 0;
    }
    if (open_count > 1 || (open_count == 1 && has_zero)) {
        PEN_TRY(pen_pt2_sizes_of_result(draft, result, &target));
    } else {
        PEN_TRY(pen_pt2_constant_ints(draft, shape->rank, sizes, &target));
    }
    return pen_pt2_emit(draft, "reshape", suffix, PEN_INPUTS(x, target),
                        PEN_WITH(pen_attribute_int("allowzero", 1)), out_value);
}

static pen_status convert_reshape(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_reshape_to(draft, NULL, x, 0, &x));
    return pen_pt2_set(draft, 0, x);
}

// Back under the shape of argument 0.
static pen_status reshape_write_back(pen_pt2_draft *draft, const pen_pt2_change *change,
                                     pen_value_id *out_value) {
    pen_value_id sizes;
    PEN_TRY(pen_pt2_sizes_of(draft, "self", &sizes));
    return pen_pt2_emit(draft, "reshape", "back", PEN_INPUTS(change->changed, sizes),
                        PEN_WITH(pen_attribute_int("allowzero", 1)), out_value);
}

static pen_status convert_unsqueeze(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    const uint32_t rank = pen_pt2_rank(draft, "self") + 1;
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", NULL, x, pen_pt2_axis(draft, "dim", rank, 0), &x));
    return pen_pt2_set(draft, 0, x);
}

// Those of the dimensions named that have one element; of others nothing is taken away.
static pen_status convert_squeeze(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    const pen_pt2_list axes = pen_pt2_axes(draft, "dim", shape->rank);
    int64_t gone[PEN_RANK_LIMIT];
    uint32_t count = 0;
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    for (uint32_t i = 0; i < axes.count; i++) {
        if (shape->dims[axes.integers[i]] == 1) gone[count++] = axes.integers[i];
    }
    if (count == 0) return pen_pt2_give_map(draft, "identity", x);
    PEN_TRY(pen_pt2_with_ints(draft, "squeeze", NULL, x, (pen_pt2_list){count, gone}, &x));
    return pen_pt2_set(draft, 0, x);
}

// ---- orders of dimensions

static pen_status order_give(pen_pt2_draft *draft, const int64_t *order) {
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(
        pen_pt2_transpose(draft, NULL, x, (pen_pt2_list){pen_pt2_rank(draft, "self"), order}, &x));
    return pen_pt2_set(draft, 0, x);
}

static void order_identity(int64_t order[PEN_RANK_LIMIT]) {
    for (uint32_t d = 0; d < PEN_RANK_LIMIT; d++) {
        order[d] = d;
    }
}

static void order_of_permute(pen_pt2_draft *draft, uint32_t rank, int64_t order[PEN_RANK_LIMIT]) {
    const pen_pt2_list axes = pen_pt2_axes(draft, "dims", rank);
    for (uint32_t d = 0; d < rank && d < axes.count; d++) {
        order[d] = axes.integers[d];
    }
}

// Two dimensions change places: they are called dim0 and dim1, or axis0 and axis1.
static void order_of_transpose(pen_pt2_draft *draft, uint32_t rank, int64_t order[PEN_RANK_LIMIT]) {
    const bool is_axis = pen_pt2_has(draft, "axis0");
    const uint32_t a = pen_pt2_axis(draft, is_axis ? "axis0" : "dim0", rank, 0);
    const uint32_t b = pen_pt2_axis(draft, is_axis ? "axis1" : "dim1", rank, 0);
    order[a] = b;
    order[b] = a;
}

// The last two.
static void order_of_matrix(pen_pt2_draft *draft, uint32_t rank, int64_t order[PEN_RANK_LIMIT]) {
    (void)draft;
    if (rank < 2) return;
    order[rank - 1] = rank - 2;
    order[rank - 2] = rank - 1;
}

static void order_of_all(pen_pt2_draft *draft, uint32_t rank, int64_t order[PEN_RANK_LIMIT]) {
    (void)draft;
    for (uint32_t d = 0; d < rank; d++) {
        order[d] = rank - 1 - d;
    }
}

// Dimensions `source` come to stand at `destination`, the others in their order.
static void order_of_movedim(pen_pt2_draft *draft, uint32_t rank, int64_t order[PEN_RANK_LIMIT]) {
    const pen_pt2_list from = pen_pt2_axes(draft, "source", rank);
    const pen_pt2_list to = pen_pt2_axes(draft, "destination", rank);
    bool is_moved[PEN_RANK_LIMIT] = {false}, is_taken[PEN_RANK_LIMIT] = {false};
    for (uint32_t i = 0; i < from.count && i < to.count; i++) {
        order[to.integers[i]] = from.integers[i];
        is_taken[to.integers[i]] = true;
        is_moved[from.integers[i]] = true;
    }
    uint32_t next = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (is_taken[d]) continue;
        while (next < rank && is_moved[next])
            next++;
        order[d] = next++;
    }
}

typedef void (*order_of)(pen_pt2_draft *draft, uint32_t rank, int64_t order[PEN_RANK_LIMIT]);

static pen_status order_convert(pen_pt2_draft *draft, order_of find) {
    int64_t order[PEN_RANK_LIMIT];
    order_identity(order);
    find(draft, pen_pt2_rank(draft, "self"), order);
    return order_give(draft, order);
}

static pen_status order_write_back(pen_pt2_draft *draft, const pen_pt2_change *change,
                                   order_of find, pen_value_id *out_value) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    int64_t order[PEN_RANK_LIMIT], inverse[PEN_RANK_LIMIT];
    order_identity(order);
    order_identity(inverse);
    find(draft, rank, order);
    for (uint32_t d = 0; d < rank; d++) {
        inverse[order[d]] = d;
    }
    return pen_pt2_transpose(draft, "back", change->changed, (pen_pt2_list){rank, inverse},
                             out_value);
}

#define ORDER(name)                                                                                \
    static pen_status convert_##name(pen_pt2_draft *draft) {                                       \
        return order_convert(draft, order_of_##name);                                              \
    }                                                                                              \
    static pen_status write_back_##name(pen_pt2_draft *draft, const pen_pt2_change *change,        \
                                        pen_value_id *out_value) {                                 \
        return order_write_back(draft, change, order_of_##name, out_value);                        \
    }
ORDER(permute)
ORDER(transpose)
ORDER(matrix)
ORDER(all)
ORDER(movedim)

// ---- repetitions

// A size that operand and result leave open is the same in both, or the operand's would be 1.
static pen_status expand_sizes(pen_pt2_draft *draft, const pen_shape *from, const pen_shape *to,
                               pen_value_id *out_value) {
    int64_t sizes[PEN_RANK_LIMIT];
    for (uint32_t d = 0; d < to->rank; d++) {
        const uint32_t added = to->rank - from->rank;
        sizes[d] = to->dims[d];
        if (sizes[d] != PEN_DIMENSION_UNKNOWN) continue;
        if (d < added || from->dims[d - added] != PEN_DIMENSION_UNKNOWN) {
            return pen_pt2_sizes_of_result(draft, 0, out_value);
        }
        sizes[d] = 1;
    }
    return pen_pt2_constant_ints(draft, to->rank, sizes, out_value);
}

static pen_status convert_expand(pen_pt2_draft *draft) {
    const pen_shape *from = &pen_pt2_type(draft, "self")->shape;
    const pen_shape *to = &pen_pt2_result_type(draft, 0)->shape;
    pen_value_id x, sizes;
    if (to->rank < from->rank) return pen_pt2_refuse(draft, "it takes dimensions away");
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(expand_sizes(draft, from, to, &sizes));
    return pen_pt2_give_pair(draft, "expand", x, sizes);
}

// With fewer numbers than dimensions, those in front are not repeated; with more, dimensions of one
// element are put in front.
static pen_status convert_tile(pen_pt2_draft *draft) {
    const uint32_t rank = pen_pt2_rank(draft, "self");
    const uint32_t result_rank = pen_pt2_result_type(draft, 0)->shape.rank;
    const char *name = pen_pt2_has(draft, "dims") ? "dims" : "repeats";
    int64_t front[PEN_RANK_LIMIT];
    pen_value_id x, repeats, ones;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_sizes(draft, name, &repeats));
    const pen_shape *shape = &pen_value_type(pen_pt2_graph(draft), repeats)->shape;
    const uint32_t count =
        shape->rank == 1 && shape->dims[0] >= 0 ? (uint32_t)shape->dims[0] : rank;
    for (uint32_t d = 0; d < PEN_RANK_LIMIT; d++) {
        front[d] = count < rank ? 1 : d;
    }
    if (count < rank) {
        PEN_TRY(pen_pt2_constant_ints(draft, rank - count, front, &ones));
        PEN_TRY(pen_pt2_emit(draft, "concat", "repeats", PEN_INPUTS(ones, repeats),
                             PEN_WITH(pen_attribute_int("axis", 0)), &repeats));
    } else if (result_rank > rank) {
        PEN_TRY(pen_pt2_with_ints(draft, "unsqueeze", "front", x,
                                  (pen_pt2_list){result_rank - rank, front}, &x));
    }
    return pen_pt2_give_pair(draft, "tile", x, repeats);
}

// Each element several times, one behind the other.
static pen_status convert_repeat_interleave(pen_pt2_draft *draft) {
    const uint32_t given_rank = pen_pt2_rank(draft, "self");
    const bool is_flat = !pen_pt2_has(draft, "dim") || given_rank == 0;
    const uint32_t rank = is_flat ? 1 : given_rank;
    const uint32_t axis = is_flat ? 0 : pen_pt2_axis(draft, "dim", rank, 0);
    const int64_t ones[PEN_RANK_LIMIT] = {1, 1, 1, 1, 1, 1, 1, 1};
    pen_value_id x, repeats, parts[3];
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    if (is_flat) PEN_TRY(pen_pt2_with_int(draft, "reshape", "elements", x, -1, &x));
    if (rank == PEN_RANK_LIMIT) return pen_pt2_refuse(draft, "it has %u dimensions", rank);
    PEN_TRY(pen_pt2_size(draft, "repeats", 1, &repeats));
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "apart", x, axis + 1, &x));
    PEN_TRY(pen_pt2_constant_ints(draft, axis + 1, ones, &parts[0]));
    PEN_TRY(pen_pt2_constant_ints(draft, rank - 1 - axis, ones, &parts[2]));
    parts[1] = repeats;
    PEN_TRY(pen_pt2_emit(draft, "concat", "repeats", PEN_INPUTS_ALL(parts),
                         PEN_WITH(pen_attribute_int("axis", 0)), &repeats));
    PEN_TRY(pen_pt2_pair(draft, "tile", "repeated", x, repeats, &x));
    PEN_TRY(pen_pt2_reshape_to(draft, NULL, x, 0, &x));
    return pen_pt2_set(draft, 0, x);
}

// Tensor i lies along dimension i, and is repeated along the others. With `indexing` "xy" the first
// two change places.
static pen_status convert_meshgrid(pen_pt2_draft *draft) {
    const bool is_swapped = pen_pt2_text(draft, "indexing", "ij")[0] == 'x';
    const pen_value_id *tensors;
    uint32_t count;
    PEN_TRY(pen_pt2_tensors(draft, "tensors", &count, &tensors));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = is_swapped && i < 2 && count > 1 ? 1 - i : i;
        int64_t shape[PEN_RANK_LIMIT];
        pen_value_id value, sizes;
        if (count > PEN_RANK_LIMIT) return pen_pt2_refuse(draft, "it has %u tensors", count);
        for (uint32_t d = 0; d < count; d++) {
            shape[d] = d == place ? -1 : 1;
        }
        PEN_TRY(pen_pt2_with_ints(draft, "reshape", "line", tensors[i],
                                  (pen_pt2_list){count, shape}, &value));
        PEN_TRY(pen_pt2_sizes_of_result(draft, i, &sizes));
        PEN_TRY(pen_pt2_pair(draft, "expand", "grid", value, sizes, &value));
        PEN_TRY(pen_pt2_set(draft, i, value));
    }
    return PEN_OK;
}

// All tensors in the shape that all results have.
static pen_status convert_broadcast_tensors(pen_pt2_draft *draft) {
    const pen_value_id *tensors;
    uint32_t count;
    PEN_TRY(pen_pt2_tensors(draft, "tensors", &count, &tensors));
    for (uint32_t i = 0; i < count; i++) {
        pen_value_id sizes, value;
        PEN_TRY(pen_pt2_sizes_of_result(draft, i, &sizes));
        PEN_TRY(pen_pt2_pair(draft, "expand", "broadcast", tensors[i], sizes, &value));
        PEN_TRY(pen_pt2_set(draft, i, value));
    }
    return PEN_OK;
}

// ---- channels and planes

// An operand of four dimensions, those before channels being one.
static pen_status plane_operand(pen_pt2_draft *draft, pen_value_id *out_value) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    int64_t sizes[4] = {-1, 0, 0, 0};
    PEN_TRY(pen_pt2_tensor(draft, "self", out_value));
    if (shape->rank == 4) return PEN_OK;
    for (uint32_t i = 1; i < 4; i++) {
        if (shape->rank < 3 || shape->dims[shape->rank - 4 + i] < 0) {
            return pen_pt2_refuse(draft, "channels and sizes of its planes must be known");
        }
        sizes[i] = shape->dims[shape->rank - 4 + i];
    }
    return pen_pt2_with_ints(draft, "reshape", "planes", *out_value, (pen_pt2_list){4, sizes},
                             out_value);
}

static pen_status convert_pixel_shuffle(pen_pt2_draft *draft) {
    const bool is_plain = pen_pt2_rank(draft, "self") == 4;
    const int64_t block = pen_pt2_int(draft, "upscale_factor", //
                                      pen_pt2_int(draft, "downscale_factor", 1));
    pen_value_id x;
    PEN_TRY(plane_operand(draft, &x));
    PEN_TRY(pen_pt2_emit(
        draft, pen_pt2_op_name(draft), is_plain ? NULL : "shuffled", PEN_INPUTS(x),
        PEN_WITH(pen_attribute_int("blocksize", block), pen_attribute_text("mode", "CRD")), &x));
    if (!is_plain) PEN_TRY(pen_pt2_reshape_to(draft, NULL, x, 0, &x));
    return pen_pt2_set(draft, 0, x);
}

// Channels as a matrix of groups, turned.
static pen_status convert_channel_shuffle(pen_pt2_draft *draft) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    const int64_t groups = pen_pt2_int(draft, "groups", 1);
    const int64_t channels = shape->rank < 2 ? 0 : shape->dims[1];
    if (channels < 1 || groups < 1 || channels % groups != 0) {
        return pen_pt2_refuse(draft, "%lld groups do not divide its channels", (long long)groups);
    }
    const int64_t sizes[] = {0, groups, channels / groups, -1}, order[] = {0, 2, 1, 3};
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_with_ints(draft, "reshape", "groups", x, (pen_pt2_list){4, sizes}, &x));
    PEN_TRY(pen_pt2_transpose(draft, "turned", x, (pen_pt2_list){4, order}, &x));
    PEN_TRY(pen_pt2_reshape_to(draft, NULL, x, 0, &x));
    return pen_pt2_set(draft, 0, x);
}

// ---- types

static pen_status convert_cast(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_cast(draft, x, pen_pt2_own_element(draft), &x));
    return pen_pt2_set(draft, 0, x);
}

static pen_status convert_same(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    return pen_pt2_set(draft, 0, x);
}

static pen_status same_write_back(pen_pt2_draft *draft, const pen_pt2_change *change,
                                  pen_value_id *out_value) {
    return pen_pt2_cast(draft, change->changed, pen_pt2_type(draft, "self")->element, out_value);
}

static pen_status convert_detach(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    return pen_pt2_give_map(draft, "stop_gradient", x);
}

#define VIEW(aten, of, when, back)                                                                 \
    {                                                                                              \
        .target = "aten." aten, .convert = convert_##of, .view = PEN_PT2_VIEW_##when,              \
        .write_back = back                                                                         \
    }
#define RESHAPE(aten) VIEW(aten, reshape, ALWAYS, reshape_write_back)
#define MAYBE_RESHAPE(aten) VIEW(aten, reshape, IF_CONTIGUOUS, reshape_write_back)
#define TURN(aten, of) VIEW(aten, of, ALWAYS, write_back_##of)
#define CAST(aten) VIEW(aten, cast, IF_SAME_TYPE, same_write_back)
#define SHUFFLE(aten, op)                                                                          \
    { .target = "aten." aten ".default", .op_name = op, .convert = convert_pixel_shuffle }

static const pen_pt2_mapping movement_rows[] = {
    RESHAPE("view.default"),
    PEN_PT2_ROW("_unsafe_view.default", reshape),
    RESHAPE("view_as.default"),
    RESHAPE("unflatten.int"),
    MAYBE_RESHAPE("reshape.default"),
    MAYBE_RESHAPE("reshape_as.default"),
    MAYBE_RESHAPE("flatten.using_ints"),
    MAYBE_RESHAPE("ravel.default"),
    VIEW("unsqueeze.default", unsqueeze, ALWAYS, reshape_write_back),
    VIEW("squeeze.default", squeeze, ALWAYS, reshape_write_back),
    VIEW("squeeze.dim", squeeze, ALWAYS, reshape_write_back),
    VIEW("squeeze.dims", squeeze, ALWAYS, reshape_write_back),
    TURN("permute.default", permute),
    TURN("transpose.int", transpose),
    TURN("swapaxes.default", transpose),
    TURN("swapdims.default", transpose),
    TURN("t.default", all),
    TURN("numpy_T.default", all),
    TURN("mT.default", matrix),
    TURN("adjoint.default", matrix),
    TURN("movedim.int", movedim),
    TURN("movedim.intlist", movedim),
    TURN("moveaxis.int", movedim),
    TURN("moveaxis.intlist", movedim),
    VIEW("expand.default", expand, ALWAYS, NULL),
    VIEW("expand_as.default", expand, ALWAYS, NULL),
    VIEW("broadcast_to.default", expand, ALWAYS, NULL),
    PEN_PT2_ROW("repeat.default", tile),
    PEN_PT2_ROW("tile.default", tile),
    PEN_PT2_ROW("repeat_interleave.self_int", repeat_interleave),
    PEN_PT2_ROW("broadcast_tensors.default", broadcast_tensors),
    PEN_PT2_ROW("meshgrid.default", meshgrid),
    PEN_PT2_ROW("meshgrid.indexing", meshgrid),
    SHUFFLE("pixel_shuffle", "depth_to_space"),
    SHUFFLE("pixel_unshuffle", "space_to_depth"),
    PEN_PT2_ROW("channel_shuffle.default", channel_shuffle),
    PEN_PT2_ROW("native_channel_shuffle.default", channel_shuffle),
    CAST("to.dtype"),
    CAST("to.dtype_layout"),
    CAST("to.device"),
    CAST("to.other"),
    CAST("type_as.default"),
    PEN_PT2_ROW("_to_copy.default", cast),
    VIEW("contiguous.default", same, IF_CONTIGUOUS, same_write_back),
    VIEW("alias.default", same, ALWAYS, same_write_back),
    PEN_PT2_ROW("clone.default", same),
    PEN_PT2_ROW("lift_fresh_copy.default", same),
    VIEW("detach.default", detach, ALWAYS, same_write_back),
};

PEN_PT2_FAMILY(pen_pt2_movements, movement_rows);
