// Ops whose output is their input's bytes under another shape. No kernel runs for them; their
// gradient is the gradient of the output under the shape of the input, or none.

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/ops/shared/shape_rule.h"

// 0 copies a dimension of the input and -1 stands for what is left.
static pen_status reshape_infer(pen_infer_context *context) {
    const pen_tensor_type *data = pen_infer_input(context, 0);
    uint32_t count;
    const int64_t *wanted;
    PEN_TRY(pen_infer_dims(context, 1, &count, &wanted));
    const bool allow_zero = pen_node_int(pen_infer_node(context), "allowzero") != 0;
    pen_tensor_type type = pen_tensor_type_make(data->element, count, wanted);
    uint32_t free_dim = PEN_RANK_LIMIT; // the one that is -1
    int64_t product = 1;                // of the others
    for (uint32_t i = 0; i < count; i++) {
        int64_t *dim = &type.shape.dims[i];
        if (*dim == 0 && !allow_zero) {
            if (i >= data->shape.rank) {
                return pen_infer_error(
                    context, PEN_INVALID_INPUT,
                    "dimension %u of the new shape is 0 (copy), but the input has %u dimensions", i,
                    data->shape.rank);
            }
            *dim = data->shape.dims[i];
        }
        if (*dim == -1 && free_dim == PEN_RANK_LIMIT) {
            free_dim = i;
        } else if (*dim < 0) {
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "dimension %u of the new shape is %lld; one dimension may be "
                                   "-1, the others must not be negative",
                                   i, (long long)*dim);
        } else if (!pen_i64_mul(product, *dim, &product)) {
            return pen_infer_error(context, PEN_INVALID_INPUT, "the new shape is too large");
        }
    }
    const int64_t total = pen_shape_element_count(&data->shape);
    const bool fits =
        free_dim == PEN_RANK_LIMIT ? product == total : product != 0 && total % product == 0;
    if (!fits) {
        char from[PEN_SHAPE_TEXT_BYTES], to[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "cannot reshape %s, of %lld elements, to %s",
                               pen_shape_format(&data->shape, from), (long long)total,
                               pen_shape_format(&type.shape, to));
    }
    if (free_dim != PEN_RANK_LIMIT) type.shape.dims[free_dim] = total / product;
    return pen_infer_set(context, 0, &type);
}

static pen_status flatten_infer(pen_infer_context *context) {
    const pen_tensor_type *data = pen_infer_input(context, 0);
    const int64_t axis = pen_node_int(pen_infer_node(context), "axis");
    const uint32_t rank = data->shape.rank;
    if (axis < -(int64_t)rank || axis > (int64_t)rank) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "axis %lld is outside of [-%u, %u]",
                               (long long)axis, rank, rank);
    }
    const uint32_t cut = (uint32_t)(axis < 0 ? axis + rank : axis);
    const int64_t dims[] = {pen_shape_count(&data->shape, 0, cut),
                            pen_shape_count(&data->shape, cut, rank)};
    const pen_tensor_type type = pen_tensor_type_make(data->element, 2, dims);
    return pen_infer_set(context, 0, &type);
}

// Marks the axes that input 1 names in a tensor of `rank` dimensions.
static pen_status reshape_mark_axes(const pen_infer_context *context, uint32_t rank,
                                    bool marked[PEN_RANK_LIMIT], uint32_t *out_count) {
    uint32_t count;
    const int64_t *axes;
    PEN_TRY(pen_infer_ints(context, 1, &count, &axes));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        PEN_TRY(pen_infer_axis(context, rank, axes[i], &axis));
        if (marked[axis]) {
            return pen_infer_error(context, PEN_INVALID_INPUT, "axis %u is named twice", axis);
        }
        marked[axis] = true;
    }
    *out_count = count;
    return PEN_OK;
}

// Without axes, every dimension of size 1 goes.
static pen_status squeeze_infer(pen_infer_context *context) {
    const pen_tensor_type *data = pen_infer_input(context, 0);
    bool drop[PEN_RANK_LIMIT] = {false};
    uint32_t count;
    PEN_TRY(reshape_mark_axes(context, data->shape.rank, drop, &count));
    const bool all = !pen_infer_has_input(context, 1);
    pen_tensor_type type = {.element = data->element};
    for (uint32_t i = 0; i < data->shape.rank; i++) {
        const int64_t dim = data->shape.dims[i];
        if (all && dim == 1) continue;
        if (drop[i] && dim != 1) {
            char text[PEN_SHAPE_TEXT_BYTES];
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "axis %u of %s has %lld elements, only 1 can be squeezed", i,
                                   pen_shape_format(&data->shape, text), (long long)dim);
        }
        if (!drop[i]) type.shape.dims[type.shape.rank++] = dim;
    }
    return pen_infer_set(context, 0, &type);
}

// Axes count in the result, so the rank after adding is needed first.
static pen_status unsqueeze_infer(pen_infer_context *context) {
    const pen_tensor_type *data = pen_infer_input(context, 0);
    uint32_t added;
    const int64_t *axes;
    PEN_TRY(pen_infer_ints(context, 1, &added, &axes));
    if (added > PEN_RANK_LIMIT - data->shape.rank) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "%u axes added to %u dimensions are above the limit of %d", added,
                               data->shape.rank, PEN_RANK_LIMIT);
    }
    bool fresh[PEN_RANK_LIMIT] = {false};
    const uint32_t rank = data->shape.rank + added;
    PEN_TRY(reshape_mark_axes(context, rank, fresh, &added));
    pen_tensor_type type = {.element = data->element, .shape = {.rank = rank}};
    uint32_t from = 0;
    for (uint32_t i = 0; i < rank; i++) {
        type.shape.dims[i] = fresh[i] ? 1 : data->shape.dims[from++];
    }
    return pen_infer_set(context, 0, &type);
}

static pen_status identity_infer(pen_infer_context *context) {
    return pen_infer_set(context, 0, pen_infer_input(context, 0));
}

static pen_status reshape_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const pen_tensor_type type =
        *pen_value_type(pen_gradient_graph(context), pen_gradient_input(context, 0));
    pen_value_id operands[2] = {pen_gradient_of_output(context, 0)};
    PEN_TRY(pen_gradient_ints(context, "shape", type.shape.rank, type.shape.dims, &operands[1]));
    const pen_attribute_given allow_zero = pen_attribute_int("allowzero", 1);
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = "reshape",
                                              .inputs = operands,
                                              .input_count = 2,
                                              .attributes = &allow_zero,
                                              .attribute_count = 1,
                                          });
}

static pen_status identity_gradient(pen_gradient_context *context) {
    if (pen_gradient_needed(context, 0)) {
        pen_gradient_set(context, 0, pen_gradient_of_output(context, 0));
    }
    return PEN_OK;
}

static const pen_attribute_schema reshape_attributes[] = {
    PEN_INT_OR("allowzero", 0),
};
static const pen_attribute_schema flatten_attributes[] = {
    PEN_INT_OR("axis", 1),
};

static const pen_op reshape_ops[] = {
    {"reshape", "the same elements under a new shape", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(reshape_attributes), .constant_inputs = 1u << 1, .in_place_inputs = 1,
     .is_view = true, .infer = reshape_infer, .gradient = reshape_gradient},
    {"flatten", "a matrix: the dimensions before an axis, and those from it", PEN_TAKES(1, 1),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(flatten_attributes), .in_place_inputs = 1, .is_view = true,
     .infer = flatten_infer, .gradient = reshape_gradient},
    {"squeeze", "dimensions of size 1 taken out", PEN_TAKES(1, 2), PEN_GIVES(1, 1),
     .constant_inputs = 1u << 1, .in_place_inputs = 1, .is_view = true, .infer = squeeze_infer,
     .gradient = reshape_gradient},
    {"unsqueeze", "dimensions of size 1 put in", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     .constant_inputs = 1u << 1, .in_place_inputs = 1, .is_view = true, .infer = unsqueeze_infer,
     .gradient = reshape_gradient},
    {"identity", "its input", PEN_TAKES(1, 1), PEN_GIVES(1, 1), .in_place_inputs = 1,
     .is_view = true, .is_elementwise = true, .infer = identity_infer,
     .gradient = identity_gradient},
    {"stop_gradient", "its input, through which no gradient flows", PEN_TAKES(1, 1),
     PEN_GIVES(1, 1), .in_place_inputs = 1, .is_view = true, .is_elementwise = true,
     .stops_gradient = true, .infer = identity_infer},
};

PEN_OP_FAMILY(reshape);
