// Windows onto a tensor, smaller (slice) or larger (pad) than it, and their gradients.
//
// slice_backward(dy, starts, ends, axes, steps) writes dy into zeros of the shape `shape`;
// pad_backward(dy, pads) adds up, for the modes that repeat elements, the gradients of the
// repetitions. The gradient of a pad with a constant is a pad by the negated numbers.
//
// put_position(x, part, position) is x with `part`, one position of `axis`, at `position`: what a
// model keeps of each position of its input is written so (graph/passes/decode/).

#include <stddef.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/ops/movement/slice_range.h"
#include "graph/ops/shared/infer_checks.h"
#include "graph/ops/shared/shape_rule.h"

// No pad can be larger; within it, sums and negations do not overflow.
#define PAD_LIMIT ((int64_t)PEN_TENSOR_BYTES_LIMIT)

// Resolves the constant inputs 1 to 4 of a slice or slice_backward of a tensor of `shape`.
static pen_status slice_read(const pen_infer_context *context, const pen_shape *shape,
                             pen_slice_range *out_range) {
    static const char *const names[] = {"", "starts", "ends", "axes", "steps"};
    uint32_t counts[5];
    const int64_t *integers[5];
    for (uint32_t i = 1; i < 5; i++) {
        PEN_TRY(pen_infer_ints(context, i, &counts[i], &integers[i]));
        if (i > 1 && pen_infer_has_input(context, i) && counts[i] != counts[1]) {
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "%s has %u numbers, but starts has %u", names[i], counts[i],
                                   counts[1]);
        }
    }
    const pen_slice_spec spec = {
        .count = counts[1],
        .starts = integers[1],
        .ends = integers[2],
        .axes = pen_infer_has_input(context, 3) ? integers[3] : NULL,
        .steps = pen_infer_has_input(context, 4) ? integers[4] : NULL,
    };
    return pen_infer_wrap(context, pen_slice_resolve(&spec, shape, out_range));
}

// Dimensions of which all is taken, in order.
static pen_axis_link slice_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                uint32_t input) {
    const pen_shape *shape = &pen_value_type(graph, node->inputs[input])->shape;
    uint32_t counts[5] = {0};
    const int64_t *integers[5] = {NULL};
    pen_slice_range range;
    pen_status status = PEN_OK;
    for (uint32_t i = 1; i < node->input_count && status == PEN_OK; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        status = pen_value_read_ints(graph, node->inputs[i], &counts[i], &integers[i]);
    }
    const pen_slice_spec spec = {counts[1], integers[1], integers[2], integers[3], integers[4]};
    if (status == PEN_OK) status = pen_slice_resolve(&spec, shape, &range);
    if (status != PEN_OK) {
        pen_status_ignore(status, "then it is not known what is taken");
        return pen_axis_unknown();
    }
    const bool is_all = range.start[axis] == 0 && range.step[axis] == 1 &&
                        range.shape.dims[axis] == shape->dims[axis];
    return is_all ? pen_axis_same(axis) : pen_axis_unknown();
}

static pen_status put_position_infer(pen_infer_context *context) {
    const pen_tensor_type type = *pen_infer_input(context, 0);
    pen_shape wanted = type.shape;
    uint32_t axis;
    PEN_TRY(
        pen_infer_axis(context, wanted.rank, pen_node_int(pen_infer_node(context), "axis"), &axis));
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    wanted.dims[axis] = 1;
    PEN_TRY(pen_infer_check_shape(context, 1, &wanted));
    PEN_TRY(pen_infer_check_element(context, 2, PEN_ELEMENT_BIT(PEN_INT64)));
    PEN_TRY(pen_infer_check_shape(context, 2, &(pen_shape){1, {1}}));
    return pen_infer_set(context, 0, &type);
}

// Where the output lies on x, the rest of x is there already.
static uint64_t put_position_bytes(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    return 2 * pen_tensor_type_bytes(pen_value_type(graph, node->inputs[1]));
}

static pen_status slice_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    pen_slice_range range;
    PEN_TRY(slice_read(context, &type.shape, &range));
    type.shape = range.shape;
    return pen_infer_set(context, 0, &type);
}

static pen_status slice_backward_infer(pen_infer_context *context) {
    pen_tensor_type type;
    pen_slice_range range;
    PEN_TRY(pen_infer_shape_attribute(context, "shape", &type));
    PEN_TRY(slice_read(context, &type.shape, &range));
    const pen_shape *dy = &pen_infer_input(context, 0)->shape;
    if (!pen_shape_equal(dy, &range.shape)) {
        char found[PEN_SHAPE_TEXT_BYTES], wanted[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the gradient has shape %s, but the slice has %s",
                               pen_shape_format(dy, found), pen_shape_format(&range.shape, wanted));
    }
    return pen_infer_set(context, 0, &type);
}

static pen_status slice_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const uint32_t input_count = pen_gradient_node(context)->input_count;
    pen_value_id operands[5] = {pen_gradient_of_output(context, 0)};
    for (uint32_t i = 1; i < input_count; i++) {
        operands[i] = pen_gradient_input(context, i);
    }
    const pen_shape shape =
        pen_value_type(pen_gradient_graph(context), pen_gradient_input(context, 0))->shape;
    const pen_attribute_given attribute = pen_attribute_ints("shape", shape.rank, shape.dims);
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = "slice_backward",
                                              .inputs = operands,
                                              .input_count = input_count,
                                              .attributes = &attribute,
                                              .attribute_count = 1,
                                          });
}

// Checks the mode and the pads of a tensor of `shape`, and makes it the padded shape.
static pen_status pad_read(const pen_infer_context *context, pen_shape *shape) {
    const char *mode = pen_node_text(pen_infer_node(context), "mode");
    const bool constant = strcmp(mode, "constant") == 0;
    if (!constant && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "mode is '%s'; there are constant, reflect, edge", mode);
    }
    uint32_t count;
    const int64_t *pads;
    PEN_TRY(pen_infer_ints(context, 1, &count, &pads));
    if (count != 2 * shape->rank) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "pads has %u numbers, %u dimensions need %u", count, shape->rank,
                               2 * shape->rank);
    }
    for (uint32_t d = 0; d < shape->rank; d++) {
        const int64_t before = pads[d], after = pads[shape->rank + d], dim = shape->dims[d];
        int64_t padded;
        if (before < -PAD_LIMIT || before > PAD_LIMIT || after < -PAD_LIMIT || after > PAD_LIMIT ||
            !pen_i64_add(dim, before, &padded) || !pen_i64_add(padded, after, &padded) ||
            padded < 0) {
            return pen_infer_error(
                context, PEN_INVALID_INPUT,
                "pads of %lld and %lld do not fit dimension %u, of %lld elements",
                (long long)before, (long long)after, d, (long long)dim);
        }
        if (!constant && dim == 0 && padded > 0) {
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "mode '%s' has nothing to repeat: dimension %u is empty", mode,
                                   d);
        }
        shape->dims[d] = padded;
    }
    return PEN_OK;
}

static pen_status pad_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    if (pen_infer_has_input(context, 2)) {
        PEN_TRY(pen_infer_same_element(context, 2));
        const pen_shape *value = &pen_infer_input(context, 2)->shape;
        if (value->rank > 1 || pen_shape_element_count(value) != 1) {
            char text[PEN_SHAPE_TEXT_BYTES];
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "the constant value has shape %s, it must be one number",
                                   pen_shape_format(value, text));
        }
    }
    PEN_TRY(pad_read(context, &type.shape));
    return pen_infer_set(context, 0, &type);
}

static pen_status pad_backward_infer(pen_infer_context *context) {
    pen_tensor_type type;
    PEN_TRY(pen_infer_shape_attribute(context, "shape", &type));
    pen_shape padded = type.shape;
    PEN_TRY(pad_read(context, &padded));
    const pen_shape *dy = &pen_infer_input(context, 0)->shape;
    if (!pen_shape_equal(dy, &padded)) {
        char found[PEN_SHAPE_TEXT_BYTES], wanted[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the gradient has shape %s, but the padded tensor has %s",
                               pen_shape_format(dy, found), pen_shape_format(&padded, wanted));
    }
    return pen_infer_set(context, 0, &type);
}

// The gradient of the data: by negative pads where no element is repeated.
static pen_status pad_gradient_of_data(pen_gradient_context *context, pen_value_id *out_gradient) {
    pen_graph *graph = pen_gradient_graph(context);
    const char *mode = pen_node_text(pen_gradient_node(context), "mode");
    const pen_shape shape = pen_value_type(graph, pen_gradient_input(context, 0))->shape;
    pen_value_id operands[2] = {pen_gradient_of_output(context, 0), pen_gradient_input(context, 1)};
    pen_gradient_emission emission = {.for_input = 0, .inputs = operands, .input_count = 2};
    if (strcmp(mode, "constant") != 0) {
        const pen_attribute_given attributes[] = {
            pen_attribute_text("mode", mode),
            pen_attribute_ints("shape", shape.rank, shape.dims),
        };
        emission.op_name = "pad_backward";
        emission.attributes = attributes;
        emission.attribute_count = 2;
        return pen_gradient_emit(context, &emission, out_gradient);
    }
    uint32_t count;
    const int64_t *pads;
    PEN_TRY(pen_value_read_ints(graph, operands[1], &count, &pads));
    int64_t negated[2 * PEN_RANK_LIMIT];
    for (uint32_t i = 0; i < count; i++) {
        negated[i] = -pads[i];
    }
    PEN_TRY(pen_gradient_ints(context, "negative_pads", count, negated, &operands[1]));
    emission.op_name = "pad";
    return pen_gradient_emit(context, &emission, out_gradient);
}

// The gradient of the constant: the sum of the gradient over what is not data. That is the whole
// sum without the sum over the data's part.
static pen_status pad_gradient_of_value(pen_gradient_context *context, pen_value_id data_gradient) {
    pen_value_id sums[2];
    const pen_value_id parts[2] = {pen_gradient_of_output(context, 0), data_gradient};
    const pen_attribute_given keep = pen_attribute_int("keepdims", 0);
    for (uint32_t i = 0; i < 2; i++) {
        const pen_gradient_emission sum = {
            .op_name = "reduce_sum",
            .suffix = i == 0 ? "backward_value_whole" : "backward_value_data",
            .for_input = 2,
            .inputs = &parts[i],
            .input_count = 1,
            .attributes = &keep,
            .attribute_count = 1,
        };
        PEN_TRY(pen_gradient_emit(context, &sum, &sums[i]));
    }
    const pen_gradient_emission difference = {.op_name = "sub",
                                              .suffix = "backward_value",
                                              .for_input = 2,
                                              .inputs = sums,
                                              .input_count = 2};
    pen_value_id operands[2];
    PEN_TRY(pen_gradient_emit(context, &difference, &operands[0]));
    const pen_shape shape =
        pen_value_type(pen_gradient_graph(context), pen_gradient_input(context, 2))->shape;
    PEN_TRY(pen_gradient_ints(context, "value_shape", shape.rank, shape.dims, &operands[1]));
    return pen_gradient_emit_set(context, &(pen_gradient_emission){.op_name = "reshape",
                                                                   .suffix = "backward_value_shape",
                                                                   .for_input = 2,
                                                                   .inputs = operands,
                                                                   .input_count = 2});
}

static pen_status pad_gradient(pen_gradient_context *context) {
    const bool constant =
        strcmp(pen_node_text(pen_gradient_node(context), "mode"), "constant") == 0;
    pen_value_id gradient;
    PEN_TRY(pad_gradient_of_data(context, &gradient));
    if (pen_gradient_needed(context, 0)) pen_gradient_set(context, 0, gradient);
    if (constant && pen_gradient_needed(context, 2)) {
        return pad_gradient_of_value(context, gradient);
    }
    return PEN_OK;
}

static const pen_attribute_schema slice_backward_attributes[] = {
    PEN_MUST("shape", INTS),
};
static const pen_attribute_schema pad_attributes[] = {
    PEN_TEXT_OR("mode", "constant"),
};
static const pen_attribute_schema pad_backward_attributes[] = {
    PEN_MUST("mode", TEXT),
    PEN_MUST("shape", INTS),
};

static const pen_attribute_schema put_position_attributes[] = {
    PEN_MUST("axis", INT),
};

static const pen_op slice_ops[] = {
    {"slice", "every step-th element from start to end along axes", PEN_TAKES(3, 5),
     PEN_GIVES(1, 1), .constant_inputs = 0x1e, .infer = slice_infer, .gradient = slice_gradient,
     .bytes = pen_bytes_moved, .axis_rule = slice_axis},
    {"slice_backward", "a slice's gradient: written into zeros", PEN_TAKES(3, 5), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(slice_backward_attributes), .constant_inputs = 0x1e,
     .infer = slice_backward_infer},
    {"pad", "its input with a border (negative: without one)", PEN_TAKES(2, 3), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(pad_attributes), .constant_inputs = 1u << 1, .infer = pad_infer,
     .gradient = pad_gradient, .bytes = pen_bytes_moved},
    {"pad_backward", "the gradient of a border of repeated elements", PEN_TAKES(2, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(pad_backward_attributes), .constant_inputs = 1u << 1,
     .infer = pad_backward_infer},
    {"put_position", "its input with one position of an axis replaced", PEN_TAKES(3, 3),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(put_position_attributes), .in_place_inputs = 1,
     .infer = put_position_infer, .bytes = put_position_bytes},
};

PEN_OP_FAMILY(slice);
