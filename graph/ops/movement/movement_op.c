// Ops that put elements elsewhere without looking at them.
//
// Beyond ONNX: space_to_depth has the attribute `mode` of depth_to_space, so that each is the
// other's gradient; tile_backward(dy) adds up the repetitions of a tensor of the shape `shape`.

#include <stddef.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/ops/shared/shape_rule.h"

// Sizes along the axis are added, all others must agree.
static pen_status concat_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    const pen_node *node = pen_infer_node(context);
    uint32_t axis;
    PEN_TRY(pen_infer_axis(context, type.shape.rank, pen_node_int(node, "axis"), &axis));
    for (uint32_t i = 1; i < node->input_count; i++) {
        if (!pen_infer_has_input(context, i)) {
            return pen_infer_error(context, PEN_INVALID_INPUT, "input %u is left out", i);
        }
        PEN_TRY(pen_infer_same_element(context, i));
        const pen_shape *part = &pen_infer_input(context, i)->shape;
        bool fits = part->rank == type.shape.rank;
        for (uint32_t d = 0; fits && d < part->rank; d++) {
            fits = d == axis || part->dims[d] == type.shape.dims[d];
        }
        if (!fits) {
            char first[PEN_SHAPE_TEXT_BYTES], other[PEN_SHAPE_TEXT_BYTES];
            return pen_infer_error(
                context, PEN_INVALID_INPUT,
                "input %u has shape %s and input 0 has %s; they may differ along axis %u only", i,
                pen_shape_format(part, other),
                pen_shape_format(&pen_infer_input(context, 0)->shape, first), axis);
        }
        if (!pen_i64_add(type.shape.dims[axis], part->dims[axis], &type.shape.dims[axis])) {
            return pen_infer_error(context, PEN_INVALID_INPUT, "the result is too large");
        }
    }
    return pen_infer_set(context, 0, &type);
}

// Emits, as the gradient of input `input`, the part of dy that starts at `start` along `axis`.
static pen_status concat_gradient_of(pen_gradient_context *context, uint32_t input, int64_t axis,
                                     int64_t start) {
    const pen_shape *shape =
        &pen_value_type(pen_gradient_graph(context), pen_gradient_input(context, input))->shape;
    const int64_t end = start + shape->dims[axis];
    pen_value_id operands[4] = {pen_gradient_of_output(context, 0)};
    PEN_TRY(pen_gradient_ints(context, "starts", 1, &start, &operands[1]));
    PEN_TRY(pen_gradient_ints(context, "ends", 1, &end, &operands[2]));
    PEN_TRY(pen_gradient_ints(context, "axes", 1, &axis, &operands[3]));
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = "slice",
                                              .for_input = input,
                                              .inputs = operands,
                                              .input_count = 4,
                                          });
}

// Each operand's gradient is a slice of the result's; operands that need none cost nothing.
static pen_status concat_gradient(pen_gradient_context *context) {
    const pen_graph *graph = pen_gradient_graph(context);
    const uint32_t input_count = pen_gradient_node(context)->input_count;
    if (input_count == 1) {
        pen_gradient_set(context, 0, pen_gradient_of_output(context, 0));
        return PEN_OK;
    }
    uint32_t axis;
    PEN_TRY(pen_shape_axis(pen_value_type(graph, pen_gradient_input(context, 0))->shape.rank,
                           pen_node_int(pen_gradient_node(context), "axis"), &axis));
    int64_t start = 0;
    for (uint32_t i = 0; i < input_count; i++) {
        const pen_value_id input = pen_gradient_input(context, i);
        const int64_t size = pen_value_type(graph, input)->shape.dims[axis];
        if (pen_gradient_needed(context, i)) {
            PEN_TRY(concat_gradient_of(context, i, axis, start));
        }
        start += size;
    }
    return PEN_OK;
}

// Without sizes the parts are equal; with sizes these must use up the axis.
static pen_status split_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    pen_tensor_type type = *pen_infer_input(context, 0);
    uint32_t axis, count;
    const int64_t *sizes;
    PEN_TRY(pen_infer_axis(context, type.shape.rank, pen_node_int(node, "axis"), &axis));
    PEN_TRY(pen_infer_ints(context, 1, &count, &sizes));
    const int64_t dim = type.shape.dims[axis];
    const uint32_t parts = node->output_count;
    const bool equal_parts = !pen_infer_has_input(context, 1);
    if (equal_parts && dim % parts != 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "%lld elements along axis %u do not split into %u equal parts",
                               (long long)dim, axis, parts);
    }
    if (!equal_parts && count != parts) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "split has %u sizes for %u outputs",
                               count, parts);
    }
    int64_t left = dim;
    for (uint32_t i = 0; i < parts; i++) {
        const int64_t size = equal_parts ? dim / parts : sizes[i];
        if (size < 0 || size > left) {
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "size %lld of part %u is outside of the %lld elements left of "
                                   "%lld along axis %u",
                                   (long long)size, i, (long long)left, (long long)dim, axis);
        }
        left -= size;
        type.shape.dims[axis] = size;
        PEN_TRY(pen_infer_set(context, i, &type));
    }
    if (left == 0) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "the sizes leave over %lld of %lld elements along axis %u",
                           (long long)left, (long long)dim, axis);
}

// The gradient is the parts' gradients side by side, with zeros for a part that nobody reads.
static pen_status split_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    pen_graph *graph = pen_gradient_graph(context);
    const uint32_t count = pen_gradient_node(context)->output_count;
    const int64_t axis = pen_node_int(pen_gradient_node(context), "axis");
    pen_value_id *parts;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), count, &parts));
    // the sizes of parts that are left out follow from the rule's own constant
    uint32_t size_count = 0;
    const int64_t *sizes = NULL;
    if (pen_gradient_node(context)->input_count > 1 &&
        pen_value_is(pen_gradient_input(context, 1))) {
        PEN_TRY(pen_value_read_ints(graph, pen_gradient_input(context, 1), &size_count, &sizes));
    }
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = pen_gradient_of_output(context, i);
        if (pen_value_is(parts[i])) continue;
        pen_tensor_type type = *pen_value_type(graph, pen_gradient_input(context, 0));
        uint32_t d;
        PEN_TRY(pen_shape_axis(type.shape.rank, axis, &d));
        type.shape.dims[d] = i < size_count ? sizes[i] : type.shape.dims[d] / count;
        PEN_TRY(pen_gradient_zeros(context, 0, &type, &parts[i]));
    }
    const pen_attribute_given attribute = pen_attribute_int("axis", axis);
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = "concat",
                                              .inputs = parts,
                                              .input_count = count,
                                              .attributes = &attribute,
                                              .attribute_count = 1,
                                          });
}

// Without perm all dimensions are reversed, as ONNX has it.
static pen_status transpose_infer(pen_infer_context *context) {
    const pen_tensor_type *data = pen_infer_input(context, 0);
    const uint32_t rank = data->shape.rank;
    uint32_t count;
    const int64_t *perm = pen_node_ints(pen_infer_node(context), "perm", &count);
    if (perm != NULL && count != rank) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "perm has %u numbers for %u dimensions",
                               count, rank);
    }
    bool used[PEN_RANK_LIMIT] = {false};
    pen_tensor_type type = *data;
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t from = perm != NULL ? perm[i] : (int64_t)(rank - 1 - i);
        if (from < 0 || from >= (int64_t)rank || used[from]) {
            return pen_infer_error(
                context, PEN_INVALID_INPUT,
                "perm has %lld at position %u; it must hold each of 0 to %u once", (long long)from,
                i, rank - 1);
        }
        used[from] = true;
        type.shape.dims[i] = data->shape.dims[from];
    }
    return pen_infer_set(context, 0, &type);
}

static pen_status transpose_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    uint32_t count;
    const int64_t *perm = pen_node_ints(pen_gradient_node(context), "perm", &count);
    int64_t inverse[PEN_RANK_LIMIT];
    for (uint32_t i = 0; i < count; i++) {
        inverse[perm[i]] = i;
    }
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    const pen_attribute_given attribute = pen_attribute_ints("perm", count, inverse);
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = "transpose",
                                              .inputs = &dy,
                                              .input_count = 1,
                                              .attributes = &attribute,
                                              .attribute_count = perm != NULL ? 1 : 0,
                                          });
}

static pen_status expand_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    uint32_t count;
    const int64_t *dims;
    PEN_TRY(pen_infer_dims(context, 1, &count, &dims));
    const pen_tensor_type wanted = pen_tensor_type_make(type.element, count, dims);
    PEN_TRY(pen_infer_wrap(context, pen_tensor_type_check(&wanted)));
    PEN_TRY(pen_infer_wrap(context, pen_shape_broadcast(&type.shape, &wanted.shape, &type.shape)));
    return pen_infer_set(context, 0, &type);
}

static pen_status expand_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    pen_value_id gradient;
    PEN_TRY(pen_gradient_unbroadcast(context, 0, pen_gradient_of_output(context, 0), &gradient));
    pen_gradient_set(context, 0, gradient);
    return PEN_OK;
}

static pen_status tile_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    uint32_t count;
    const int64_t *repeats;
    PEN_TRY(pen_infer_ints(context, 1, &count, &repeats));
    if (count != type.shape.rank) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "repeats has %u numbers for %u dimensions", count, type.shape.rank);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (repeats[i] < 0 || !pen_i64_mul(type.shape.dims[i], repeats[i], &type.shape.dims[i])) {
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "dimension %u cannot be repeated %lld times", i,
                                   (long long)repeats[i]);
        }
    }
    return pen_infer_set(context, 0, &type);
}

static pen_status tile_backward_infer(pen_infer_context *context) {
    pen_tensor_type type;
    PEN_TRY(pen_infer_shape_attribute(context, "shape", &type));
    const pen_shape *dy = &pen_infer_input(context, 0)->shape;
    bool fits = dy->rank == type.shape.rank;
    for (uint32_t i = 0; fits && i < dy->rank; i++) {
        const int64_t dim = type.shape.dims[i];
        fits = dim == 0 ? dy->dims[i] == 0 : dy->dims[i] % dim == 0;
    }
    if (!fits) {
        char found[PEN_SHAPE_TEXT_BYTES], base[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the gradient's shape %s is no multiple of %s",
                               pen_shape_format(dy, found), pen_shape_format(&type.shape, base));
    }
    return pen_infer_set(context, 0, &type);
}

static pen_status tile_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const pen_shape shape =
        pen_value_type(pen_gradient_graph(context), pen_gradient_input(context, 0))->shape;
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    const pen_attribute_given attribute = pen_attribute_ints("shape", shape.rank, shape.dims);
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = "tile_backward",
                                              .inputs = &dy,
                                              .input_count = 1,
                                              .attributes = &attribute,
                                              .attribute_count = 1,
                                          });
}

// Both space ops: `deeper` moves blocks of the plane into channels, else the other way.
static pen_status space_infer(pen_infer_context *context, bool deeper) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    const pen_node *node = pen_infer_node(context);
    const int64_t block = pen_node_int(node, "blocksize");
    const char *mode = pen_node_text(node, "mode");
    if (type.shape.rank != 4) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the input has %u dimensions, 4 are needed (NCHW)", type.shape.rank);
    }
    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "mode is '%s'; there are DCR, CRD",
                               mode);
    }
    if (block < 1 || block > 1 << 15) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "blocksize is %lld, 1 to %d is possible",
                               (long long)block, 1 << 15);
    }
    int64_t *dims = type.shape.dims; // NCHW
    const bool divides =
        deeper ? dims[2] % block == 0 && dims[3] % block == 0 : dims[1] % (block * block) == 0;
    if (!divides) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(
            context, PEN_INVALID_INPUT, "%s of %s cannot be divided into blocks of %lld x %lld",
            deeper ? "the plane" : "the channels", pen_shape_format(&type.shape, text),
            (long long)block, (long long)block);
    }
    dims[1] = deeper ? dims[1] * block * block : dims[1] / (block * block);
    dims[2] = deeper ? dims[2] / block : dims[2] * block;
    dims[3] = deeper ? dims[3] / block : dims[3] * block;
    return pen_infer_set(context, 0, &type);
}

static pen_status space_to_depth_infer(pen_infer_context *context) {
    return space_infer(context, true);
}

static pen_status depth_to_space_infer(pen_infer_context *context) {
    return space_infer(context, false);
}

static pen_status space_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const bool deeper = strcmp(pen_gradient_node(context)->op->name, "space_to_depth") == 0;
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    return pen_gradient_emit_set(context,
                                 &(pen_gradient_emission){
                                     .op_name = deeper ? "depth_to_space" : "space_to_depth",
                                     .inputs = &dy,
                                     .input_count = 1,
                                     .repeats_attributes = true,
                                 });
}

// ---- how positions of the outputs read the inputs

// Concat and split: dimensions but the one along which they work.
static pen_axis_link parts_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                uint32_t input) {
    const uint32_t rank = pen_value_type(graph, node->inputs[input])->shape.rank;
    if (axis == pen_axis_given(node, rank)) return pen_axis_unknown();
    return pen_axis_same(axis);
}

static pen_axis_link transpose_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                    uint32_t input) {
    uint32_t count;
    const int64_t *perm = pen_node_ints(node, "perm", &count);
    const uint32_t rank = pen_value_type(graph, node->inputs[input])->shape.rank;
    return pen_axis_same(perm != NULL ? (uint32_t)perm[axis] : rank - 1 - axis);
}

// Dimensions that are not repeated.
static pen_axis_link tile_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                               uint32_t input) {
    const pen_shape *from = &pen_value_type(graph, node->inputs[input])->shape;
    const pen_shape *to = &pen_value_type(graph, node->outputs[0])->shape;
    return from->dims[axis] == to->dims[axis] ? pen_axis_same(axis) : pen_axis_unknown();
}

static const pen_attribute_schema concat_attributes[] = {
    PEN_MUST("axis", INT),
};
static const pen_attribute_schema split_attributes[] = {
    PEN_INT_OR("axis", 0),
};
static const pen_attribute_schema transpose_attributes[] = {
    PEN_MAY("perm", INTS),
};
static const pen_attribute_schema tile_backward_attributes[] = {
    PEN_MUST("shape", INTS),
};
static const pen_attribute_schema space_attributes[] = {
    PEN_MUST("blocksize", INT),
    PEN_TEXT_OR("mode", "DCR"),
};

static const pen_op movement_ops[] = {
    {"concat", "tensors side by side along an axis", PEN_TAKES(1, PEN_VARIADIC), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(concat_attributes), .infer = concat_infer, .gradient = concat_gradient,
     .axis_rule = parts_axis},
    {"split", "parts along an axis, of given or of equal sizes", PEN_TAKES(1, 2),
     PEN_GIVES(1, PEN_VARIADIC), PEN_ATTRIBUTES(split_attributes), .constant_inputs = 1u << 1,
     .infer = split_infer, .gradient = split_gradient, .bytes = pen_bytes_moved,
     .axis_rule = parts_axis},
    {"transpose", "dimensions in another order", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(transpose_attributes), .infer = transpose_infer, .gradient = transpose_gradient,
     .axis_rule = transpose_axis},
    {"expand", "broadcast to a shape", PEN_TAKES(2, 2), PEN_GIVES(1, 1), .constant_inputs = 1u << 1,
     .infer = expand_infer, .gradient = expand_gradient, .axis_rule = pen_axis_elementwise},
    {"tile", "repeated along each dimension", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     .constant_inputs = 1u << 1, .infer = tile_infer, .gradient = tile_gradient,
     .axis_rule = tile_axis},
    {"tile_backward", "the sum of all repetitions", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(tile_backward_attributes), .infer = tile_backward_infer},
    {"space_to_depth", "blocks of the plane into channels", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(space_attributes), .infer = space_to_depth_infer, .gradient = space_gradient},
    {"depth_to_space", "channels into blocks of the plane", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(space_attributes), .infer = depth_to_space_infer, .gradient = space_gradient},
};

PEN_OP_FAMILY(movement);
