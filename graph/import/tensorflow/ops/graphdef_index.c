// Operators of TensorFlow that take elements, or make them, by their indices.

#include <string.h>

#include "graph/import/tensorflow/graphdef_mapping.h"

// Of each example its own, along the first dimension that is not the batch's.
static pen_status index_gather_in_batches(pen_graphdef_draft *draft, int64_t axis,
                                          int64_t batch_dims) {
    uint32_t rank = 0, index_rank = 0;
    pen_graphdef_value operands[2], at;
    if (axis < 0 && pen_graphdef_operand_rank(draft, 0, &rank)) axis += rank;
    if (batch_dims < 0 && pen_graphdef_operand_rank(draft, 1, &index_rank)) {
        batch_dims += index_rank;
    }
    if (axis != batch_dims || batch_dims < 0) {
        return pen_error(PEN_UNSUPPORTED,
                         "batch_dims is %lld and axis %lld; possible are 0 and the same number",
                         (long long)batch_dims, (long long)axis);
    }
    PEN_TRY(pen_graphdef_operands(draft, 2, operands));
    PEN_TRY(pen_graphdef_cast(draft, "indices", operands[1], PEN_INT64, &at));
    PEN_TRY(pen_graphdef_emit_with_int(draft, "unsqueeze", "unsqueeze", at, -1, &operands[1]));
    return pen_graphdef_give(draft, "gather_nd", PEN_GRAPHDEF_INPUTS(operands[0], operands[1]),
                             PEN_WITH(pen_attribute_int("batch_dims", batch_dims)));
}

static pen_status convert_gather(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    int64_t axis = 0;
    pen_graphdef_value operands[2];
    if (strcmp(node->op, "GatherV2") == 0) PEN_TRY(pen_graphdef_operand_int(draft, 2, &axis));
    const int64_t batch_dims = pen_graphdef_int(node, "batch_dims", 0);
    if (batch_dims != 0) return index_gather_in_batches(draft, axis, batch_dims);
    PEN_TRY(pen_graphdef_operands(draft, 2, operands));
    return pen_graphdef_give(draft, "gather", PEN_GRAPHDEF_ALL(operands),
                             PEN_WITH(pen_attribute_int("axis", axis)));
}

static pen_status evaluate_gather(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *x = pen_graphdef_known(known, 0);
    const pen_graphdef_ints_known *at = pen_graphdef_known(known, 1);
    if (x == NULL || at == NULL || x->is_scalar) return PEN_OK;
    for (uint32_t i = 0; i < at->count; i++) {
        if (at->integers[i] < 0 || at->integers[i] >= (int64_t)x->count) return PEN_OK;
        known->out->integers[i] = x->integers[at->integers[i]];
    }
    known->out->count = at->count;
    known->out->is_scalar = at->is_scalar;
    known->out->is_known = true;
    return PEN_OK;
}

static pen_status convert_gather_nd(pen_graphdef_draft *draft) {
    pen_graphdef_value x, at;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_operand(draft, 1, &at));
    const pen_graphdef_value narrow = at;
    PEN_TRY(pen_graphdef_cast(draft, "indices", narrow, PEN_INT64, &at));
    const pen_graphdef_value operands[] = {x, at};
    return pen_graphdef_give_pair(draft, false, "gather_nd", operands[0], operands[1]);
}

// TensorFlow makes a row of `off` of negative indices, as of any that are not below the depth; ours
// counts those from the end.
static pen_status index_below_depth(pen_graphdef_draft *draft, int64_t depth,
                                    pen_graphdef_value *indices) {
    const pen_tensor_type *type = pen_graphdef_value_type(draft, indices, 0);
    const pen_element_type element = type != NULL ? type->element : PEN_INT64;
    pen_graphdef_value operands[3] = {*indices};
    PEN_TRY(pen_graphdef_number_value(draft, "zero", element, 0, &operands[1]));
    PEN_TRY(pen_graphdef_emit(draft, "less", "negative",
                              PEN_GRAPHDEF_INPUTS(operands[0], operands[1]), PEN_NO_ATTRIBUTES,
                              &operands[0]));
    PEN_TRY(pen_graphdef_number_value(draft, "outside", element, (double)depth, &operands[1]));
    operands[2] = *indices;
    return pen_graphdef_emit(draft, "where", "indices",
                             PEN_GRAPHDEF_INPUTS(operands[0], operands[1], operands[2]),
                             PEN_NO_ATTRIBUTES, indices);
}

static pen_status convert_one_hot(pen_graphdef_draft *draft) {
    int64_t depth;
    pen_graphdef_value operands[3], on, off, parts[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_operand_int(draft, 1, &depth));
    PEN_TRY(pen_graphdef_operand(draft, 2, &on));
    PEN_TRY(pen_graphdef_operand(draft, 3, &off));
    PEN_TRY(index_below_depth(draft, depth, &operands[0]));
    PEN_TRY(pen_graphdef_number_value(draft, "depth", PEN_INT64, (double)depth, &operands[1]));
    PEN_TRY(pen_graphdef_emit_with_int(draft, "reshape", "off", off, 1, &parts[0]));
    PEN_TRY(pen_graphdef_emit_with_int(draft, "reshape", "on", on, 1, &parts[1]));
    PEN_TRY(pen_graphdef_concat(draft, "values", PEN_GRAPHDEF_ALL(parts), 0, &operands[2]));
    return pen_graphdef_give(
        draft, "one_hot", PEN_GRAPHDEF_ALL(operands),
        PEN_WITH(pen_attribute_int("axis", pen_graphdef_int(draft->node, "axis", -1))));
}

// The elements of `x` from `start` up to `end` along an axis; roll `round` of the node.
static pen_status index_roll_part(pen_graphdef_draft *draft, uint32_t round, pen_graphdef_value x,
                                  const int64_t range[3], const char *part,
                                  pen_graphdef_value *out_value) {
    static const char *const words[] = {"start", "end", "axis"};
    pen_arena *arena = draft->arena;
    pen_graphdef_value operands[4] = {x};
    const char *suffix;
    for (uint32_t i = 0; i < 3; i++) {
        PEN_TRY(pen_arena_format(arena, &suffix, "%s_%s_%u", part, words[i], round));
        PEN_TRY(pen_graphdef_ints_value(draft, suffix, 1, &range[i], &operands[1 + i]));
    }
    PEN_TRY(pen_arena_format(arena, &suffix, "%s_%u", part, round));
    return pen_graphdef_emit(draft, "slice", suffix, (pen_graphdef_inputs){operands, 4},
                             PEN_NO_ATTRIBUTES, out_value);
}

// Along one axis: what is behind the cut, then what is before it.
static pen_status index_roll(pen_graphdef_draft *draft, uint32_t round, int64_t axis, int64_t shift,
                             pen_graphdef_value *x) {
    pen_shape shape;
    pen_graphdef_value parts[2];
    const char *suffix;
    PEN_TRY(pen_graphdef_value_shape(draft, x, &shape));
    if (axis < 0) axis += shape.rank;
    if (axis < 0 || axis >= (int64_t)shape.rank) {
        return pen_error(PEN_INVALID_INPUT, "axis %lld is outside of a tensor with %u dimensions",
                         (long long)axis, shape.rank);
    }
    const int64_t size = shape.dims[axis];
    if (size < 0) {
        return pen_error(PEN_UNSUPPORTED, "it rolls dimension %lld, whose size is open",
                         (long long)axis);
    }
    const int64_t cut = size == 0 ? 0 : (size - shift % size) % size;
    if (cut == 0) return PEN_OK;
    PEN_TRY(index_roll_part(draft, round, *x, (const int64_t[]){cut, INT64_MAX, axis}, "behind",
                            &parts[0]));
    PEN_TRY(
        index_roll_part(draft, round, *x, (const int64_t[]){0, cut, axis}, "before", &parts[1]));
    PEN_TRY(pen_arena_format(draft->arena, &suffix, "rolled_%u", round));
    return pen_graphdef_concat(draft, suffix, PEN_GRAPHDEF_ALL(parts), axis, x);
}

static pen_status convert_roll(pen_graphdef_draft *draft) {
    const pen_graphdef_ints_known *shifts, *axes;
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &shifts));
    PEN_TRY(pen_graphdef_operand_ints(draft, 2, &axes));
    if (shifts->count != axes->count) {
        return pen_error(PEN_INVALID_INPUT, "it has %u shifts and %u axes", shifts->count,
                         axes->count);
    }
    for (uint32_t i = 0; i < axes->count; i++) {
        PEN_TRY(index_roll(draft, i, axes->integers[i], shifts->integers[i], &x));
    }
    return pen_graphdef_set(draft, 0, x);
}

static const pen_graphdef_mapping index_mappings[] = {
    {.op = "Gather", .convert = convert_gather, .evaluate = evaluate_gather},
    {.op = "GatherNd", .convert = convert_gather_nd},
    {.op = "GatherV2", .convert = convert_gather, .evaluate = evaluate_gather},
    {.op = "OneHot", .convert = convert_one_hot},
    {.op = "ResourceGather", .convert = convert_gather},
    {.op = "Roll", .convert = convert_roll},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_indices, index_mappings);
