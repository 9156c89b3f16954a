// Indices into something that is in pieces: which of them a piece has.
//
// The first piece takes negative indices for its own, and moves them where nothing is; the last
// one takes those that are too large. So whoever picks by them finds those that are none.
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/shard/sharder.h"

pen_status pen_shard_where(sharder *s, pen_node_id like, pen_value_id condition, pen_value_id a,
                           pen_value_id b, pen_value_id *out_value) {
    const pen_value_id inputs[3] = {condition, a, b};
    const shard_node node = {
        .op = PEN_OP(where), .suffix = "where", .inputs = inputs, .input_count = 3};
    return pen_shard_add(s, like, &node, out_value);
}

pen_status pen_shard_indices(sharder *s, pen_node_id like, pen_value_id value,
                             const pen_shape *shape, pen_value_id *out_indices) {
    PEN_TRY(pen_shard_whole(s, value, out_indices));
    if (pen_shape_equal(&pen_value_type(s->copy.to, *out_indices)->shape, shape)) return PEN_OK;
    return pen_shard_reshape(s, like, shape, NULL, out_indices);
}

// Whether index < bound, or not.
static pen_status owned_below(sharder *s, pen_node_id like, pen_value_id indices, int64_t bound,
                              bool is_below, pen_value_id *out_is) {
    const pen_element_type element = pen_value_type(s->copy.to, indices)->element;
    pen_value_id limit;
    PEN_TRY(pen_shard_constant(s, element, (double)bound, &limit));
    PEN_TRY(pen_shard_apply(s, like, PEN_OP(less), indices, limit, out_is));
    if (is_below) return PEN_OK;
    return pen_shard_apply(s, like, PEN_OP(not ), *out_is, PEN_VALUE_NONE, out_is);
}

static pen_status owned_find(sharder *s, pen_node_id like, const shard_cut *cut, uint32_t piece,
                             pen_value_id indices, pen_value_id *out_is_here) {
    const int64_t first = cut->bounds[piece], end = cut->bounds[piece + 1];
    pen_value_id above;
    if (piece == 0) return owned_below(s, like, indices, end, true, out_is_here);
    PEN_TRY(owned_below(s, like, indices, first, false, &above));
    *out_is_here = above;
    if (piece + 1 == cut->ways) return PEN_OK;
    PEN_TRY(owned_below(s, like, indices, end, true, out_is_here));
    return pen_shard_apply(s, like, PEN_OP(and), above, *out_is_here, out_is_here);
}

pen_status pen_shard_own(sharder *s, pen_node_id like, const shard_cut *cut, uint32_t piece,
                         pen_value_id indices, shard_owned *out_owned) {
    const pen_element_type element = pen_value_type(s->copy.to, indices)->element;
    pen_value_id number, moved;
    PEN_TRY(owned_find(s, like, cut, piece, indices, &out_owned->is_here));
    if (piece == 0) {
        pen_value_id is_negative;
        PEN_TRY(owned_below(s, like, indices, 0, true, &is_negative));
        PEN_TRY(pen_shard_constant(s, element, (double)cut->bounds[cut->ways], &number));
        PEN_TRY(pen_shard_where(s, like, is_negative, number, indices, &moved));
    } else {
        PEN_TRY(pen_shard_constant(s, element, (double)cut->bounds[piece], &number));
        PEN_TRY(pen_shard_apply(s, like, PEN_OP(sub), indices, number, &moved));
    }
    PEN_TRY(pen_shard_constant(s, element, 0, &number));
    return pen_shard_where(s, like, out_owned->is_here, moved, number, &out_owned->indices);
}
