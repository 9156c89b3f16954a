// Layers that read several.

#include <inttypes.h>

#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

typedef struct merge_options {
    pen_layer_common common;
    int64_t axis;
    pen_option_list axes;
    bool normalize;
} merge_options;

PEN_LAYER_OPTIONS_NONE(merge, merge_options);

// The operands' values in one layout: moved only if all are, and of one shape where `is_equal`.
static pen_status merge_values(const pen_layer_call *call, bool is_equal, bool *out_is_moved,
                               pen_value_id **out_values) {
    bool is_moved = true;
    pen_value_id *values = NULL;
    for (uint32_t i = 0; i < call->input_count; i++) {
        is_moved = is_moved && call->inputs[i].is_moved &&
                   (!is_equal || pen_shape_equal(&call->inputs[i].shape, &call->inputs[0].shape));
    }
    PEN_TRY(PEN_NEW(pen_layer_arena(call), call->input_count, &values));
    for (uint32_t i = 0; i < call->input_count; i++) {
        values[i] = call->inputs[i].value;
        if (is_moved) continue;
        pen_layer_tensor plain;
        PEN_TRY(pen_layer_plain(call, &call->inputs[i], &plain));
        values[i] = plain.value;
    }
    *out_is_moved = is_moved;
    *out_values = values;
    return PEN_OK;
}

static pen_status merge_shape(const pen_layer_call *call, pen_shape *out_shape) {
    pen_shape shape = call->inputs[0].shape;
    for (uint32_t i = 1; i < call->input_count; i++) {
        const pen_shape *other = &call->inputs[i].shape;
        bool fits = other->rank == shape.rank;
        for (uint32_t d = 1; fits && d < shape.rank; d++) {
            fits = other->dims[d] == shape.dims[d] || other->dims[d] == 1 || shape.dims[d] == 1;
            if (shape.dims[d] == 1) shape.dims[d] = other->dims[d];
        }
        if (fits) continue;
        char first[PEN_SHAPE_TEXT_BYTES], second[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT, "input %u is %s, which does not go with %s", i,
                         pen_layer_shape_format(other, second),
                         pen_layer_shape_format(&call->inputs[0].shape, first));
    }
    *out_shape = shape;
    return PEN_OK;
}

// Operators of two, applied one after the other from the first input to the last.
pen_status pen_layer_merge_build(const pen_layer_call *call, pen_layer_result *out_result) {
    static const char *const ops[PEN_LAYER_AT_END] = {[PEN_LAYER_AT_add] = "add",
                                                      [PEN_LAYER_AT_subtract] = "sub",
                                                      [PEN_LAYER_AT_multiply] = "mul",
                                                      [PEN_LAYER_AT_maximum] = "max",
                                                      [PEN_LAYER_AT_minimum] = "min"};
    const char *op = ops[call->layer - pen_layer_at(0)];
    pen_value_id *values = NULL;
    pen_layer_tensor result = {.element = call->inputs[0].element};
    PEN_TRY(merge_shape(call, &result.shape));
    PEN_TRY(merge_values(call, true, &result.is_moved, &values));
    result.value = values[0];
    for (uint32_t i = 1; i < call->input_count; i++) {
        const bool is_last = i + 1 == call->input_count;
        PEN_TRY(
            pen_layer_pair(call, op, is_last ? NULL : op, result.value, values[i], &result.value));
    }
    return pen_layer_give(out_result, result);
}

pen_status pen_layer_average_build(const pen_layer_call *call, pen_layer_result *out_result) {
    pen_value_id *values = NULL;
    pen_layer_tensor result = {.element = call->inputs[0].element};
    PEN_TRY(merge_shape(call, &result.shape));
    PEN_TRY(merge_values(call, true, &result.is_moved, &values));
    PEN_TRY(pen_layer_add(call, "mean", NULL, (pen_node_inputs){values, call->input_count},
                          PEN_NO_ATTRIBUTES, &result.value));
    return pen_layer_give(out_result, result);
}

// ---- concatenate

PEN_LAYER_OPTIONS(concatenate, merge_options,
                  PEN_LAYER_INTEGER(merge_options, axis, "-1",
                                    "the dimension along which they are put together"));

// Checked here, where the message can name the layer's inputs.
static pen_status concatenate_shape(const pen_layer_call *call, uint32_t axis,
                                    pen_shape *out_shape) {
    pen_shape shape = call->inputs[0].shape;
    for (uint32_t i = 1; i < call->input_count; i++) {
        const pen_shape *other = &call->inputs[i].shape;
        bool fits = other->rank == shape.rank;
        for (uint32_t d = 1; fits && d < shape.rank; d++) {
            fits = d == axis || other->dims[d] == shape.dims[d];
        }
        if (!fits) {
            char first[PEN_SHAPE_TEXT_BYTES], second[PEN_SHAPE_TEXT_BYTES];
            return pen_error(PEN_INVALID_INPUT,
                             "input %u is %s, which does not go with %s: they may differ in "
                             "dimension %u only",
                             i, pen_layer_shape_format(other, second),
                             pen_layer_shape_format(&call->inputs[0].shape, first), axis);
        }
        shape.dims[axis] += other->dims[axis];
    }
    *out_shape = shape;
    return PEN_OK;
}

// Where steps are put behind each other, so are masks, which all must have then; else all must
// hold.
static pen_status concatenate_masks(const pen_layer_call *call, uint32_t axis,
                                    pen_layer_tensor *io_tensor) {
    pen_value_id *masks = NULL;
    uint32_t masked = 0;
    for (uint32_t i = 0; i < call->input_count; i++) {
        masked += call->inputs[i].mask_rank > axis ? 1 : 0;
    }
    if (masked == 0) return pen_layer_join_masks(call, io_tensor);
    if (masked != call->input_count) {
        return pen_error(PEN_INVALID_INPUT,
                         "inputs with and without a mask cannot be put behind each other along "
                         "dimension %u",
                         axis);
    }
    PEN_TRY(PEN_NEW(pen_layer_arena(call), masked, &masks));
    for (uint32_t i = 0; i < masked; i++) {
        masks[i] = call->inputs[i].mask;
    }
    io_tensor->mask_rank = call->inputs[0].mask_rank;
    return pen_layer_concat(call, "mask", (pen_node_inputs){masks, masked}, axis, &io_tensor->mask);
}

pen_status pen_layer_concatenate_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const merge_options *options = call->options;
    const int64_t rank = call->inputs[0].shape.rank;
    const int64_t axis = options->axis < 0 ? options->axis + rank : options->axis;
    pen_value_id *values = NULL;
    pen_layer_tensor result = {.element = call->inputs[0].element};
    if (axis < 1 || axis >= rank) {
        return pen_error(PEN_INVALID_INPUT, "axis is %" PRId64 ", expected 1 to %" PRId64 ", or -1",
                         options->axis, rank - 1);
    }
    PEN_TRY(concatenate_shape(call, (uint32_t)axis, &result.shape));
    PEN_TRY(merge_values(call, false, &result.is_moved, &values));
    const int64_t moved = axis == rank - 1 ? 1 : axis + 1;
    PEN_TRY(pen_layer_concat(call, NULL, (pen_node_inputs){values, call->input_count},
                             result.is_moved ? moved : axis, &result.value));
    PEN_TRY(concatenate_masks(call, (uint32_t)axis, &result));
    return pen_layer_give(out_result, result);
}

// ---- dot

PEN_LAYER_OPTIONS(dot, merge_options,
                  PEN_LAYER_SIZES(merge_options, axes, NULL, true,
                                  "the dimension of each, or of both, over which it sums"),
                  PEN_LAYER_BOOL(merge_options, normalize, "false",
                                 "whether both are made of length 1 first: their cosine"));

// (batch, k) or (batch, rows, k), the summed dimension brought to where matmul has it.
static pen_status dot_operand(const pen_layer_call *call, uint32_t index, int64_t axis,
                              int64_t *out_rows, pen_value_id *out_value) {
    pen_layer_tensor x;
    PEN_TRY(pen_layer_plain(call, &call->inputs[index], &x));
    const uint32_t rank = x.shape.rank;
    const merge_options *options = call->options;
    if (rank < 2 || rank > 3 || axis >= rank) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "input %u is %s and its axis %" PRId64 "; 2 or 3 dimensions are possible",
                         index, pen_layer_shape_format(&x.shape, text), axis);
    }
    const bool is_first = index == 0;
    if (options->normalize) PEN_TRY(pen_layer_add_unit(call, 1, &axis, &x.value));
    pen_value_id value = x.value;
    const int64_t swap[3] = {0, 2, 1};
    *out_rows = 1;
    if (rank == 2) {
        const int64_t k = x.shape.dims[1];
        const pen_shape wide = {3, {PEN_LAYER_BATCH, is_first ? 1 : k, is_first ? k : 1}};
        PEN_TRY(pen_layer_reshape(call, value, &wide, "wide", &value));
    } else {
        *out_rows = x.shape.dims[axis == 1 ? 2 : 1];
        const bool is_there = is_first ? axis == 2 : axis == 1;
        if (!is_there) PEN_TRY(pen_layer_transpose(call, value, &x.shape, swap, &value));
    }
    *out_value = value;
    return PEN_OK;
}

// A product of matrices per example; vectors take part as matrices of one row, and the result is
// flattened.
pen_status pen_layer_dot_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const merge_options *options = call->options;
    const int64_t *axes = options->axes.items;
    const int64_t both[2] = {axes[0], options->axes.count > 1 ? axes[1] : axes[0]};
    int64_t rows[2];
    pen_value_id operands[2], product;
    pen_layer_tensor result = {.element = PEN_FLOAT32};
    for (uint32_t i = 0; i < 2; i++) {
        PEN_TRY(dot_operand(call, i, both[i], &rows[i], &operands[i]));
    }
    if (call->inputs[0].shape.dims[both[0]] != call->inputs[1].shape.dims[both[1]]) {
        return pen_error(PEN_INVALID_INPUT,
                         "the dimensions over which it sums are %" PRId64 " and %" PRId64,
                         call->inputs[0].shape.dims[both[0]], call->inputs[1].shape.dims[both[1]]);
    }
    PEN_TRY(pen_layer_pair(call, "matmul", NULL, operands[0], operands[1], &product));
    result.shape = (pen_shape){3, {PEN_LAYER_BATCH, rows[0], rows[1]}};
    result.value = product;
    const bool is_flat = call->inputs[0].shape.rank == 2 || call->inputs[1].shape.rank == 2;
    if (is_flat) {
        result.shape = (pen_shape){2, {PEN_LAYER_BATCH, rows[0] * rows[1]}};
        PEN_TRY(pen_layer_reshape(call, product, &result.shape, "flat", &result.value));
    }
    return pen_layer_give(out_result, result);
}
