// Values in pieces: how they are cut, and put together again.
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/shard/sharder.h"

pen_status pen_shard_bounds(sharder *s, int64_t extent, int64_t unit, uint32_t ways,
                            const int64_t **out_bounds) {
    int64_t *bounds;
    const int64_t units = extent / unit;
    PEN_TRY(PEN_NEW(s->arena, (size_t)ways + 1, &bounds));
    for (uint32_t p = 0; p <= ways; p++) {
        // as units * p / ways, which could be too large
        bounds[p] = unit * (units / ways * p + units % ways * p / ways);
    }
    *out_bounds = bounds;
    return PEN_OK;
}

bool pen_shard_same_bounds(const shard_cut *a, const shard_cut *b) {
    if (a->ways != b->ways || a->blocks != b->blocks) return false;
    for (uint32_t p = 0; p <= a->ways; p++) {
        if (a->bounds[p] != b->bounds[p]) return false;
    }
    return true;
}

int64_t pen_shard_extent(const shard_cut *cut, uint32_t piece) {
    return cut->blocks * (cut->bounds[piece + 1] - cut->bounds[piece]);
}

const shard_cut *pen_shard_cut_of(const sharder *s, pen_value_id value) {
    return &s->pieces[value.index].cut;
}

void pen_shard_set(sharder *s, pen_value_id value, const shard_cut *cut,
                   const pen_value_id *pieces) {
    s->pieces[value.index] = (shard_pieces){*cut, pieces};
}

// ---- parameters

static pen_status values_refuse(const sharder *s, pen_value_id value, pen_node_id other) {
    return pen_error(PEN_INVALID_INPUT,
                     "parameter '%s' is read by '%s' and by '%s', which would cut it otherwise or "
                     "not at all: shard both with the same ways, or neither",
                     pen_value_name(s->from, value), pen_node_name(s->from, other),
                     pen_node_name(s->from, s->at));
}

// The slices of a parameter are parameters, with contents where the whole has them.
static pen_status values_slice(sharder *s, pen_value_id id, const shard_cut *cut,
                               pen_value_id *pieces) {
    const pen_value *whole = pen_graph_value(s->from, id);
    const size_t size = pen_element_bytes(pen_value_stored(whole));
    for (uint32_t p = 0; p < cut->ways; p++) {
        pen_tensor_slice *slice;
        pen_value spec = *whole;
        PEN_TRY(PEN_NEW(s->arena, 1, &slice));
        *slice = pen_tensor_slice_of(whole->name, &whole->type.shape, cut->axis, cut->blocks,
                                     cut->bounds[p], cut->bounds[p + 1] - cut->bounds[p]);
        spec.slice = slice;
        spec.type.shape.dims[cut->axis] = pen_shard_extent(cut, p);
        spec.data_bytes = whole->data == NULL ? 0 : pen_tensor_type_bytes(&spec.type);
        if (whole->data != NULL) spec.data = (const char *)whole->data + slice->start * size;
        PEN_TRY(pen_arena_format(s->arena, &spec.name, "%s/shard%u", whole->name, p));
        PEN_TRY(pen_graph_add_own_value(s->copy.to, &spec, &pieces[p]));
    }
    return PEN_OK;
}

// ---- constants and what is computed

// Contents live with the new graph: the old one is released.
static pen_status values_cut_constant(sharder *s, pen_value_id id, const shard_cut *cut,
                                      pen_value_id *pieces) {
    const pen_value *whole = pen_graph_value(s->from, id);
    const pen_tensor_range all = {0, (uint64_t)pen_shape_element_count(&whole->type.shape),
                                  pen_element_bytes(whole->type.element)};
    for (uint32_t p = 0; p < cut->ways; p++) {
        const pen_tensor_slice slice =
            pen_tensor_slice_of(whole->name, &whole->type.shape, cut->axis, cut->blocks,
                                cut->bounds[p], cut->bounds[p + 1] - cut->bounds[p]);
        pen_tensor_type type = whole->type;
        char *data;
        type.shape.dims[cut->axis] = pen_shard_extent(cut, p);
        PEN_TRY(PEN_NEW(pen_graph_tensor_arena(s->copy.to), pen_tensor_type_bytes(&type), &data));
        pen_tensor_slice_gather(&slice, &all, whole->data, data);
        PEN_TRY(pen_graph_constant(s->copy.to, whole->name, &type, data, &pieces[p]));
    }
    return PEN_OK;
}

static pen_status values_add_slice(sharder *s, pen_value_id value, int64_t axis, int64_t first,
                                   int64_t end, pen_value_id *out_slice) {
    pen_value_id inputs[4] = {value};
    const shard_node node = {
        .op = PEN_OP(slice), .suffix = "slice", .inputs = inputs, .input_count = 4};
    PEN_TRY(pen_graph_constant_ints(s->copy.to, "starts", 1, &first, &inputs[1]));
    PEN_TRY(pen_graph_constant_ints(s->copy.to, "ends", 1, &end, &inputs[2]));
    PEN_TRY(pen_graph_constant_ints(s->copy.to, "axes", 1, &axis, &inputs[3]));
    return pen_shard_add(s, s->at, &node, out_slice);
}

static pen_status values_cut_computed(sharder *s, pen_value_id id, const shard_cut *cut,
                                      pen_value_id *pieces) {
    const int64_t extent = pen_value_type(s->from, id)->shape.dims[cut->axis] / cut->blocks;
    pen_value_id whole, *blocks;
    PEN_TRY(pen_shard_whole(s, id, &whole));
    PEN_TRY(PEN_NEW(s->arena, (size_t)cut->blocks, &blocks));
    for (uint32_t p = 0; p < cut->ways; p++) {
        for (int64_t b = 0; b < cut->blocks; b++) {
            PEN_TRY(values_add_slice(s, whole, cut->axis, b * extent + cut->bounds[p],
                                     b * extent + cut->bounds[p + 1], &blocks[b]));
        }
        pieces[p] = blocks[0];
        if (cut->blocks == 1) continue;
        const shard_list list = {(uint32_t)cut->blocks, blocks};
        PEN_TRY(pen_shard_concat(s, s->at, &list, cut->axis, NULL, &pieces[p]));
    }
    return PEN_OK;
}

// What is in pieces already must be in the same ones; only a value that is computed may be cut in
// two ways.
pen_status pen_shard_cut_value(sharder *s, pen_value_id value, const shard_cut *cut,
                               const pen_value_id **out_pieces) {
    const shard_pieces *there = &s->pieces[value.index];
    const pen_value_kind kind = pen_graph_value(s->from, value)->kind;
    const bool is_same = there->cut.axis == cut->axis && pen_shard_same_bounds(&there->cut, cut);
    pen_value_id *pieces;
    *out_pieces = there->values;
    if (there->cut.ways > 0 && is_same) return PEN_OK;
    PEN_TRY(PEN_NEW(s->arena, cut->ways, &pieces));
    *out_pieces = pieces;
    if (kind == PEN_VALUE_CONSTANT) return values_cut_constant(s, value, cut, pieces);
    if (kind != PEN_VALUE_PARAMETER) return values_cut_computed(s, value, cut, pieces);
    if (pen_node_is(s->whole_reader[value.index])) {
        return values_refuse(s, value, s->whole_reader[value.index]);
    }
    if (there->cut.ways > 0)
        return values_refuse(s, value, s->readers.nodes[s->readers.first[value.index]]);
    PEN_TRY(values_slice(s, value, cut, pieces));
    pen_shard_set(s, value, cut, pieces);
    return PEN_OK;
}

pen_status pen_shard_operand(sharder *s, pen_value_id value, const shard_cut *cut,
                             uint32_t from_end, const pen_value_id **out_pieces) {
    *out_pieces = NULL;
    if (!pen_value_is(value)) return PEN_OK;
    const pen_shape *shape = &pen_value_type(s->from, value)->shape;
    if (from_end < shape->rank && shape->dims[shape->rank - 1 - from_end] != 1) {
        shard_cut own = *cut;
        own.axis = shape->rank - 1 - from_end;
        return pen_shard_cut_value(s, value, &own, out_pieces);
    }
    pen_value_id *same;
    PEN_TRY(PEN_NEW(s->arena, cut->ways, &same));
    for (uint32_t p = 0; p < cut->ways; p++) {
        PEN_TRY(pen_shard_whole(s, value, &same[p]));
    }
    *out_pieces = same;
    return PEN_OK;
}

// ---- together again

// Pieces of several blocks lie between each other: with the blocks as a dimension, they follow.
static pen_status values_join(sharder *s, pen_value_id value, pen_value_id *out_whole) {
    const shard_pieces *there = &s->pieces[value.index];
    const shard_cut *cut = &there->cut;
    const pen_value *old = pen_graph_value(s->from, value);
    const pen_node_id like = old->producer;
    if (cut->blocks == 1) {
        const shard_list list = {cut->ways, there->values};
        return pen_shard_concat(s, like, &list, cut->axis, old->name, out_whole);
    }
    pen_value_id *apart;
    PEN_TRY(PEN_NEW(s->arena, cut->ways, &apart));
    for (uint32_t p = 0; p < cut->ways; p++) {
        pen_shape shape = old->type.shape;
        for (uint32_t d = shape.rank++; d > cut->axis + 1; d--) {
            shape.dims[d] = shape.dims[d - 1];
        }
        shape.dims[cut->axis] = cut->blocks;
        shape.dims[cut->axis + 1] = cut->bounds[p + 1] - cut->bounds[p];
        apart[p] = there->values[p];
        PEN_TRY(pen_shard_reshape(s, like, &shape, NULL, &apart[p]));
    }
    const shard_list list = {cut->ways, apart};
    PEN_TRY(pen_shard_concat(s, like, &list, cut->axis + 1, NULL, out_whole));
    return pen_shard_reshape(s, like, &old->type.shape, old->name, out_whole);
}

pen_status pen_shard_whole(sharder *s, pen_value_id value, pen_value_id *out_whole) {
    pen_value_id *place = &s->copy.values[value.index];
    const pen_value *old = pen_graph_value(s->from, value);
    const bool is_parameter = old->kind == PEN_VALUE_PARAMETER;
    if (!pen_value_is(*place) && is_parameter && s->pieces[value.index].cut.ways > 0) {
        return values_refuse(s, value, s->readers.nodes[s->readers.first[value.index]]);
    }
    if (is_parameter) s->whole_reader[value.index] = s->at;
    if (!pen_value_is(*place) && is_parameter) {
        PEN_TRY(pen_graph_add_value(s->copy.to, old, place));
    } else if (!pen_value_is(*place)) {
        PEN_ASSERT(s->pieces[value.index].cut.ways > 0);
        PEN_TRY(values_join(s, value, place));
    }
    *out_whole = *place;
    return PEN_OK;
}
