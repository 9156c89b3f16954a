// Operators of TensorFlow that ask for shapes, and give tensors others.

#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_mapping.h"

// ---- asking

// The operand's shape, in TensorFlow's form, in one trial. False: not known.
static bool shape_in_trial(pen_graphdef_draft *draft, uint32_t trial, pen_shape *out_shape) {
    static const uint32_t places[] = {0, 3, 1, 2}; // of channels first: batch, channels, …
    pen_graphdef_value value;
    const bool is_first = pen_graphdef_operand_is_first(draft, 0);
    const pen_status status = is_first ? pen_graphdef_operand_first(draft, 0, &value)
                                       : pen_graphdef_operand(draft, 0, &value);
    if (status != PEN_OK) {
        pen_status_ignore(status, "said when the node is converted");
        return false;
    }
    const pen_tensor_type *type = pen_graphdef_value_type(draft, &value, trial);
    if (type == NULL) return false;
    *out_shape = type->shape;
    for (uint32_t d = 0; is_first && d < 4; d++) {
        out_shape->dims[places[d]] = type->shape.dims[d];
    }
    return true;
}

static pen_status evaluate_shape(const pen_graphdef_evaluation *known) {
    pen_shape shape;
    const char *op = known->draft->node->op;
    if (!shape_in_trial(known->draft, known->trial, &shape)) return PEN_OK;
    known->out->is_known = true;
    if (strcmp(op, "Shape") == 0) {
        known->out->count = shape.rank;
        memcpy(known->out->integers, shape.dims, shape.rank * sizeof shape.dims[0]);
        return PEN_OK;
    }
    known->out->is_scalar = true;
    known->out->count = 1;
    known->out->integers[0] =
        strcmp(op, "Rank") == 0 ? (int64_t)shape.rank : pen_shape_element_count(&shape);
    return PEN_OK;
}

static pen_status shape_cast(pen_graphdef_draft *draft, pen_graphdef_value value,
                             pen_element_type element) {
    return pen_graphdef_give(draft, "cast", PEN_GRAPHDEF_INPUTS(value),
                             PEN_WITH(pen_attribute_text("to", pen_element_name(element))));
}

static pen_status convert_shape(pen_graphdef_draft *draft) {
    pen_graphdef_value x, shape;
    const char *op_name = draft->mapping->op_name;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    if (op_name == NULL) return pen_error(PEN_UNSUPPORTED, "the rank of its operand is not known");
    PEN_TRY(pen_graphdef_map(draft, op_name, "wide", x, &shape));
    return shape_cast(draft, shape, pen_graphdef_type(draft->node, "out_type", PEN_INT32));
}

static pen_status convert_cast(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    const pen_element_type to = pen_graphdef_type(node, "DstT", PEN_ELEMENT_UNKNOWN);
    pen_graphdef_value x;
    if (to == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "it casts to a type that Penstock has not");
    }
    if (to == pen_graphdef_type(node, "SrcT", PEN_ELEMENT_UNKNOWN)) {
        PEN_TRY(pen_graphdef_draft_need(draft, 1));
        return pen_graphdef_pass(draft, 0, 0);
    }
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    return shape_cast(draft, x, to);
}

static pen_status evaluate_same(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *ints = pen_graphdef_known(known, 0);
    if (ints != NULL) *known->out = *ints;
    return PEN_OK;
}

// ---- giving another shape

// The shape wanted, as a constant, if only one of its dimensions is open: that one is -1.
static bool reshape_is_almost_known(const pen_graphdef_ints_known *a,
                                    const pen_graphdef_ints_known *b, int64_t *out_dims) {
    uint32_t open_count = 0;
    if (a == NULL || b == NULL || a->count != b->count || a->count > PEN_RANK_LIMIT) return false;
    for (uint32_t d = 0; d < a->count; d++) {
        const bool is_open = a->integers[d] != b->integers[d] || a->integers[d] == -1;
        out_dims[d] = is_open ? -1 : a->integers[d];
        if (is_open) open_count++;
        if (out_dims[d] == 0) return false; // a -1 beside it would be anything
    }
    return open_count <= 1;
}

static pen_status convert_reshape(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[2], result;
    int64_t dims[PEN_RANK_LIMIT];
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_draft_need(draft, 2));
    const pen_graphdef_ints_known *a = pen_graphdef_operand_trial(draft, 1, 0);
    if (reshape_is_almost_known(a, pen_graphdef_operand_trial(draft, 1, 1), dims)) {
        PEN_TRY(pen_graphdef_emit_with_ints(draft, "reshape", NULL, operands[0],
                                            (pen_graphdef_integers){a->count, dims}, &result));
        return pen_graphdef_set(draft, 0, result);
    }
    PEN_TRY(pen_graphdef_operand_int64s(draft, 1, &operands[1]));
    return pen_graphdef_give(draft, "reshape", PEN_GRAPHDEF_ALL(operands),
                             PEN_WITH(pen_attribute_int("allowzero", 1)));
}

// Of a list or scalar to a list or scalar.
static pen_status evaluate_reshape(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *x = pen_graphdef_known(known, 0);
    const pen_graphdef_ints_known *shape = pen_graphdef_known(known, 1);
    if (x == NULL || shape == NULL || shape->count > 1) return PEN_OK;
    if (shape->count == 0 && x->count != 1) return PEN_OK;
    *known->out = *x;
    known->out->is_scalar = shape->count == 0;
    return PEN_OK;
}

static pen_status convert_expand_dims(pen_graphdef_draft *draft) {
    pen_graphdef_value x, result;
    int64_t axis;
    PEN_TRY(pen_graphdef_operand_int(draft, 1, &axis));
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_emit_with_int(draft, "unsqueeze", NULL, x, axis, &result));
    return pen_graphdef_set(draft, 0, result);
}

static pen_status evaluate_expand_dims(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *x = pen_graphdef_known(known, 0);
    if (x == NULL || !x->is_scalar) return PEN_OK;
    *known->out = *x;
    known->out->is_scalar = false;
    return PEN_OK;
}

// A pooled image is squeezed in the form it has: its sides are elsewhere, but what is left is
// the same.
static pen_status convert_squeeze(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    const char *name = "squeeze_dims";
    pen_graphdef_value x, result;
    uint32_t count;
    int64_t *axes;
    if (pen_graphdef_attribute_find(node, name) == NULL) name = "axis";
    PEN_TRY(pen_graphdef_ints(node, name, draft->arena, &count, &axes));
    // the pooled image, without its sides: no need to put its channels last before
    const bool is_pooled = count == 2 && pen_graphdef_operand_is_first(draft, 0) &&
                           (axes[0] == 1 || axes[0] == -3) && (axes[1] == 2 || axes[1] == -2);
    if (is_pooled) {
        axes[0] = 2;
        axes[1] = 3;
    }
    PEN_TRY(pen_graphdef_operand_form(draft, 0, is_pooled, &x));
    if (count == 0) {
        PEN_TRY(pen_graphdef_map(draft, "squeeze", NULL, x, &result));
    } else {
        PEN_TRY(pen_graphdef_emit_with_ints(draft, "squeeze", NULL, x,
                                            (pen_graphdef_integers){count, axes}, &result));
    }
    return pen_graphdef_set(draft, 0, result);
}

static pen_status evaluate_squeeze(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *x = pen_graphdef_known(known, 0);
    if (x == NULL || x->count != 1) return PEN_OK;
    *known->out = *x;
    known->out->is_scalar = true;
    return PEN_OK;
}

// ---- making

static pen_status convert_fill(pen_graphdef_draft *draft) {
    pen_graphdef_value shape, value;
    PEN_TRY(pen_graphdef_operand_int64s(draft, 0, &shape));
    PEN_TRY(pen_graphdef_operand(draft, 1, &value));
    return pen_graphdef_give_pair(draft, false, "expand", value, shape);
}

static pen_status evaluate_fill(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *shape = pen_graphdef_known(known, 0);
    const pen_graphdef_ints_known *value = pen_graphdef_known(known, 1);
    if (shape == NULL || value == NULL || shape->count > 1 || value->count != 1) return PEN_OK;
    const int64_t count = shape->count == 0 ? 1 : shape->integers[0];
    if (count < 0 || count > PEN_GRAPHDEF_INTS_LIMIT) return PEN_OK;
    for (int64_t i = 0; i < count; i++) {
        known->out->integers[i] = value->integers[0];
    }
    known->out->count = (uint32_t)count;
    known->out->is_scalar = shape->count == 0;
    known->out->is_known = true;
    return PEN_OK;
}

static pen_status convert_broadcast_to(pen_graphdef_draft *draft) {
    pen_graphdef_value x, shape;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_operand_int64s(draft, 1, &shape));
    return pen_graphdef_give_pair(draft, false, "expand", x, shape);
}

// In the trials, where it is known, the shape of `x` is a constant.
static pen_status shape_settle(pen_graphdef_draft *draft, const pen_graphdef_value *x,
                               pen_graphdef_value *shape) {
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        const pen_tensor_type *type = pen_graphdef_value_type(draft, x, trial);
        if (type == NULL) continue;
        PEN_TRY(pen_graph_constant_ints(draft->graphs[trial + 1], draft->node->name,
                                        type->shape.rank, type->shape.dims, &shape->in[trial + 1]));
    }
    return PEN_OK;
}

// Zeros or ones, of the shape of the operand.
static pen_status convert_like(pen_graphdef_draft *draft) {
    const bool is_one = strcmp(draft->node->op, "OnesLike") == 0;
    const pen_element_type element = pen_graphdef_draft_element(draft);
    pen_graphdef_value x, shape;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_map(draft, "shape", "shape", x, &shape));
    PEN_TRY(shape_settle(draft, &x, &shape));
    return pen_graphdef_give(draft, "constant_of_shape", PEN_GRAPHDEF_INPUTS(shape),
                             PEN_WITH(pen_attribute_float("value", is_one ? 1 : 0),
                                      pen_attribute_text("element", pen_element_name(element))));
}

static pen_status convert_range(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[3];
    PEN_TRY(pen_graphdef_operands(draft, 3, operands));
    return pen_graphdef_give(draft, "range", PEN_GRAPHDEF_ALL(operands), PEN_NO_ATTRIBUTES);
}

static pen_status evaluate_range(const pen_graphdef_evaluation *known) {
    int64_t bounds[3];
    for (uint32_t i = 0; i < 3; i++) {
        const pen_graphdef_ints_known *bound = pen_graphdef_known(known, i);
        if (bound == NULL || bound->count != 1) return PEN_OK;
        bounds[i] = bound->integers[0];
    }
    const int64_t delta = bounds[2];
    int64_t at = bounds[0];
    uint32_t count = 0;
    while (delta > 0 ? at < bounds[1] : at > bounds[1]) {
        if (delta == 0 || count == PEN_GRAPHDEF_INTS_LIMIT) return PEN_OK;
        known->out->integers[count++] = at;
        if (!pen_i64_add(at, delta, &at)) return PEN_OK;
    }
    known->out->count = count;
    known->out->is_known = delta != 0;
    return PEN_OK;
}

static const pen_graphdef_mapping shape_mappings[] = {
    {.op = "BroadcastTo", .convert = convert_broadcast_to},
    {.op = "Cast", .convert = convert_cast, .evaluate = evaluate_same},
    {.op = "ExpandDims", .convert = convert_expand_dims, .evaluate = evaluate_expand_dims},
    {.op = "Fill", .convert = convert_fill, .evaluate = evaluate_fill},
    {.op = "OnesLike", .convert = convert_like},
    {.op = "Range", .convert = convert_range, .evaluate = evaluate_range},
    {.op = "Rank", .convert = convert_shape, .evaluate = evaluate_shape},
    {.op = "Reshape", .convert = convert_reshape, .evaluate = evaluate_reshape},
    {.op = "Shape", .op_name = "shape", .convert = convert_shape, .evaluate = evaluate_shape},
    {.op = "Size", .op_name = "size", .convert = convert_shape, .evaluate = evaluate_shape},
    {.op = "Squeeze", .convert = convert_squeeze, .evaluate = evaluate_squeeze},
    {.op = "ZerosLike", .convert = convert_like},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_shapes, shape_mappings);
