// Nodes that go on with pieces of what they read.
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/shard/sharder.h"

// Dimensions behind the one that is cut.
static uint32_t follow_from_end(const sharder *s, pen_value_id value) {
    return pen_value_type(s->from, value)->shape.rank - 1 - pen_shard_cut_of(s, value)->axis;
}

// The input whose pieces the output has: its dimension that is cut is the output's.
static pen_value_id follow_find_lead(const sharder *s, const pen_node *node) {
    const pen_shape *out = &pen_value_type(s->from, node->outputs[0])->shape;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value_id input = node->inputs[i];
        if (!pen_value_is(input) || pen_shard_cut_of(s, input)->ways == 0) continue;
        if (pen_graph_value(s->from, input)->kind == PEN_VALUE_PARAMETER) continue;
        const uint32_t from_end = follow_from_end(s, input);
        const pen_shape *shape = &pen_value_type(s->from, input)->shape;
        if (shape->dims[shape->rank - 1 - from_end] == out->dims[out->rank - 1 - from_end]) {
            return input;
        }
    }
    return PEN_VALUE_NONE;
}

pen_status pen_shard_elementwise(sharder *s, pen_node_id id, bool *out_done) {
    const pen_node *node = pen_graph_node(s->from, id);
    *out_done = false;
    if (!node->op->is_elementwise || node->output_count != 1) return PEN_OK;
    const pen_value_id lead = follow_find_lead(s, node);
    if (!pen_value_is(lead)) return PEN_OK;
    const uint32_t from_end = follow_from_end(s, lead);
    const pen_value_id **inputs;
    shard_cut cut = *pen_shard_cut_of(s, lead);
    cut.axis = pen_value_type(s->from, node->outputs[0])->shape.rank - 1 - from_end;
    PEN_TRY(PEN_NEW(s->arena, node->input_count, &inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        PEN_TRY(pen_shard_operand(s, node->inputs[i], &cut, from_end, &inputs[i]));
    }
    *out_done = true;
    return pen_shard_map(s, id, inputs, node->input_count, &cut);
}

// The masks are cut as the values.
pen_status pen_shard_dropout(sharder *s, pen_node_id id, bool *out_done) {
    const pen_node *node = pen_graph_node(s->from, id);
    const pen_value_id *inputs[3] = {NULL};
    *out_done = node->op == PEN_OP(dropout) && pen_shard_cut_of(s, node->inputs[0])->ways > 0;
    if (!*out_done) return PEN_OK;
    const shard_cut cuts[2] = {*pen_shard_cut_of(s, node->inputs[0]),
                               *pen_shard_cut_of(s, node->inputs[0])};
    inputs[0] = s->pieces[node->inputs[0].index].values;
    for (uint32_t i = 1; i < node->input_count; i++) {
        PEN_TRY(pen_shard_operand(s, node->inputs[i], &cuts[0], PEN_RANK_LIMIT, &inputs[i]));
    }
    return pen_shard_map(s, id, inputs, node->input_count, cuts);
}

// ---- views

// Which cut of the view's output has the elements that `cut` has of its input. False: there is
// none, as bounds would lie within an index.
static bool view_find_cut(const pen_shape *from, const shard_cut *cut, const pen_shape *to,
                          shard_cut *out_cut, int64_t *bounds) {
    const int64_t outer = pen_shape_count(from, 0, cut->axis) * cut->blocks;
    const int64_t inner = pen_shape_count(from, cut->axis + 1, from->rank);
    for (uint32_t d = 0; d < to->rank; d++) {
        const int64_t before = pen_shape_count(to, 0, d);
        const int64_t behind = pen_shape_count(to, d + 1, to->rank);
        if (before == 0 || behind == 0 || outer % before != 0) continue;
        const int64_t blocks = outer / before;
        if (blocks == 0 || to->dims[d] % blocks != 0 || to->dims[d] / blocks < cut->ways) continue;
        bool fits = true;
        for (uint32_t p = 0; p <= cut->ways; p++) {
            fits &= cut->bounds[p] * inner % behind == 0;
            bounds[p] = cut->bounds[p] * inner / behind;
        }
        if (!fits || bounds[cut->ways] != to->dims[d] / blocks) continue;
        *out_cut = (shard_cut){.ways = cut->ways, .axis = d, .blocks = blocks, .bounds = bounds};
        return true;
    }
    return false;
}

// Each piece gets the shape that the whole gets, but for the dimension that is cut.
pen_status pen_shard_view(sharder *s, pen_node_id id, bool *out_done) {
    const pen_node *node = pen_graph_node(s->from, id);
    *out_done = false;
    if (!node->op->is_view || pen_shard_cut_of(s, node->inputs[0])->ways == 0) return PEN_OK;
    const shard_pieces *x = &s->pieces[node->inputs[0].index];
    const pen_value_id output = node->outputs[0];
    const pen_shape *to = &pen_value_type(s->from, output)->shape;
    int64_t *bounds;
    shard_cut cut;
    PEN_TRY(PEN_NEW(s->arena, (size_t)x->cut.ways + 1, &bounds));
    if (!view_find_cut(&pen_value_type(s->from, node->inputs[0])->shape, &x->cut, to, &cut,
                       bounds)) {
        return PEN_OK;
    }
    pen_value_id *pieces;
    PEN_TRY(PEN_NEW(s->arena, cut.ways, &pieces));
    for (uint32_t p = 0; p < cut.ways; p++) {
        pen_shape shape = *to;
        shape.dims[cut.axis] = pen_shard_extent(&cut, p);
        pieces[p] = x->values[p];
        PEN_TRY(pen_shard_reshape(s, id, &shape, NULL, &pieces[p]));
    }
    pen_shard_set(s, output, &cut, pieces);
    *out_done = true;
    return PEN_OK;
}

// ---- movements that leave the cut dimension whole

static pen_status follow_map(sharder *s, pen_node_id id, const shard_cut *cuts, bool *out_done) {
    const pen_node *node = pen_graph_node(s->from, id);
    const pen_value_id **inputs;
    PEN_TRY(PEN_NEW(s->arena, node->input_count, &inputs));
    inputs[0] = s->pieces[node->inputs[0].index].values;
    for (uint32_t i = 1; i < node->input_count; i++) {
        PEN_TRY(pen_shard_operand(s, node->inputs[i], &cuts[0], PEN_RANK_LIMIT, &inputs[i]));
    }
    *out_done = true;
    return pen_shard_map(s, id, inputs, node->input_count, cuts);
}

pen_status pen_shard_transpose(sharder *s, pen_node_id id, bool *out_done) {
    const pen_node *node = pen_graph_node(s->from, id);
    *out_done = false;
    if (node->op != PEN_OP(transpose)) return PEN_OK;
    shard_cut cut = *pen_shard_cut_of(s, node->inputs[0]);
    if (cut.ways == 0) return PEN_OK;
    const uint32_t axis = cut.axis, rank = pen_value_type(s->from, node->inputs[0])->shape.rank;
    uint32_t count;
    const int64_t *order = pen_node_ints(node, "perm", &count);
    for (uint32_t d = 0; d < rank; d++) {
        if (order != NULL ? order[d] == (int64_t)axis : rank - 1 - d == axis) cut.axis = d;
    }
    return follow_map(s, id, &cut, out_done);
}

// Whether all outputs of a split are alike.
static bool split_is_even(const sharder *s, const pen_node *node) {
    const pen_shape *first = NULL;
    for (uint32_t o = 0; o < node->output_count; o++) {
        if (!pen_value_is(node->outputs[o])) return false;
        const pen_shape *shape = &pen_value_type(s->from, node->outputs[o])->shape;
        if (first != NULL && !pen_shape_equal(shape, first)) return false;
        first = shape;
    }
    return true;
}

// Along the cut dimension, its blocks become outputs: pieces are split into equal parts. Along
// another one, pieces are split as the whole.
pen_status pen_shard_split(sharder *s, pen_node_id id, bool *out_done) {
    const pen_node *node = pen_graph_node(s->from, id);
    *out_done = false;
    if (node->op != PEN_OP(split)) return PEN_OK;
    shard_cut cut = *pen_shard_cut_of(s, node->inputs[0]);
    uint32_t axis;
    if (cut.ways == 0) return PEN_OK;
    PEN_TRY(pen_shape_axis(pen_value_type(s->from, node->inputs[0])->shape.rank,
                           pen_node_int(node, "axis"), &axis));
    const bool is_along = axis == cut.axis;
    if (is_along && (!split_is_even(s, node) || cut.blocks % node->output_count != 0)) {
        return PEN_OK;
    }
    shard_cut *cuts;
    PEN_TRY(PEN_NEW(s->arena, node->output_count, &cuts));
    if (is_along) cut.blocks /= node->output_count;
    for (uint32_t o = 0; o < node->output_count; o++) {
        cuts[o] = cut;
    }
    if (!is_along) return follow_map(s, id, cuts, out_done);
    const pen_value_id *inputs[1] = {s->pieces[node->inputs[0].index].values};
    *out_done = true;
    return pen_shard_map(s, id, inputs, 1, cuts);
}

// One index of another dimension, as exporters take queries, keys and values apart.
pen_status pen_shard_pick(sharder *s, pen_node_id id, bool *out_done) {
    const pen_node *node = pen_graph_node(s->from, id);
    *out_done = false;
    if (node->op != PEN_OP(gather)) return PEN_OK;
    shard_cut cut = *pen_shard_cut_of(s, node->inputs[0]);
    const bool is_parameter =
        pen_graph_value(s->from, node->inputs[0])->kind == PEN_VALUE_PARAMETER;
    const uint32_t rank = pen_value_type(s->from, node->inputs[1])->shape.rank;
    uint32_t axis;
    if (cut.ways == 0 || is_parameter) return PEN_OK;
    PEN_TRY(pen_shape_axis(pen_value_type(s->from, node->inputs[0])->shape.rank,
                           pen_node_int(node, "axis"), &axis));
    if (axis == cut.axis) return PEN_OK;
    if (axis < cut.axis) cut.axis = cut.axis + rank - 1;
    return follow_map(s, id, &cut, out_done);
}
