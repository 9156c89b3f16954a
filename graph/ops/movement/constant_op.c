// Ops that make tensors from shapes and numbers, and casts.
//
// Unlike ONNX: an element type is the text of its name ("float32"), as `to` of cast, `dtype` of
// eye_like, and `element` of constant_of_shape; the value of constant_of_shape is a number.
//
//   cast(x, like; to)   to the element type `to` or, where it is left out, that of `like`, of which
//                       nothing else is read; pen_infer_shapes puts `to` in its place

#include <math.h>
#include <stddef.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/ops/shared/shape_rule.h"

static pen_status shape_infer(pen_infer_context *context) {
    const int64_t rank = pen_infer_input(context, 0)->shape.rank;
    const pen_node *node = pen_infer_node(context);
    int64_t start = pen_node_int(node, "start");
    int64_t end = pen_node_has(node, "end") ? pen_node_int(node, "end") : rank;
    start = pen_max_i64(0, pen_min_i64(rank, start < 0 ? start + rank : start));
    end = pen_max_i64(0, pen_min_i64(rank, end < 0 ? end + rank : end));
    const int64_t count = pen_max_i64(0, end - start);
    const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 1, &count);
    return pen_infer_set(context, 0, &type);
}

static pen_status size_infer(pen_infer_context *context) {
    const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 0, NULL);
    return pen_infer_set(context, 0, &type);
}

// Elements of start, start + delta, … before limit.
static pen_status range_count(const pen_infer_context *context, int64_t *out_count) {
    static const char *const names[] = {"start", "limit", "delta"};
    const pen_node *node = pen_infer_node(context);
    double numbers[3];
    for (uint32_t i = 0; i < 3; i++) {
        const pen_shape *shape = &pen_infer_input(context, i)->shape;
        if (pen_shape_element_count(shape) != 1) {
            char text[PEN_SHAPE_TEXT_BYTES];
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "%s has shape %s, it must be one number", names[i],
                                   pen_shape_format(shape, text));
        }
        PEN_TRY(pen_value_read_number(pen_infer_graph(context), node->inputs[i], &numbers[i]));
    }
    const double count = ceil((numbers[1] - numbers[0]) / numbers[2]);
    if (numbers[2] == 0 || isnan(count) || count > (double)PEN_TENSOR_BYTES_LIMIT) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "a range from %g to %g by %g is endless or too long", numbers[0],
                               numbers[1], numbers[2]);
    }
    *out_count = count > 0 ? (int64_t)count : 0;
    return PEN_OK;
}

static pen_status range_infer(pen_infer_context *context) {
    const pen_element_type element = pen_infer_input(context, 0)->element;
    if (element == PEN_BOOL) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "a range of bool is not possible");
    }
    PEN_TRY(pen_infer_same_element(context, 1));
    PEN_TRY(pen_infer_same_element(context, 2));
    int64_t count;
    PEN_TRY(range_count(context, &count));
    const pen_tensor_type type = pen_tensor_type_make(element, 1, &count);
    return pen_infer_set(context, 0, &type);
}

// The element type that the text attribute `name` holds.
static pen_status constant_element(const pen_infer_context *context, const char *name,
                                   pen_element_type *out_element) {
    const char *text = pen_node_text(pen_infer_node(context), name);
    return pen_infer_wrap(context, pen_element_find(text, out_element));
}

static pen_status constant_of_shape_infer(pen_infer_context *context) {
    uint32_t count;
    const int64_t *dims;
    pen_element_type element;
    PEN_TRY(constant_element(context, "element", &element));
    PEN_TRY(pen_infer_dims(context, 0, &count, &dims));
    const pen_tensor_type type = pen_tensor_type_make(element, count, dims);
    return pen_infer_set(context, 0, &type);
}

// To the type that is said, or that operand 1 has.
static pen_status cast_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    if (pen_node_has(pen_infer_node(context), "to")) {
        PEN_TRY(constant_element(context, "to", &type.element));
    } else if (pen_infer_has_input(context, 1)) {
        type.element = pen_infer_input(context, 1)->element;
    } else {
        return pen_infer_error(context, PEN_INVALID_INPUT, "attribute 'to' is missing");
    }
    return pen_infer_set(context, 0, &type);
}

// Back to the type of the input; an integer or bool on the way has no gradient.
static pen_status cast_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const pen_graph *graph = pen_gradient_graph(context);
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    const pen_element_type from = pen_value_type(graph, pen_gradient_input(context, 0))->element;
    if (from == pen_value_type(graph, dy)->element) {
        pen_gradient_set(context, 0, dy);
        return PEN_OK;
    }
    const pen_attribute_given attribute = pen_attribute_text("to", pen_element_name(from));
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = "cast",
                                              .inputs = &dy,
                                              .input_count = 1,
                                              .attributes = &attribute,
                                              .attribute_count = 1,
                                          });
}

static pen_status eye_like_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    if (type.shape.rank != 2) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the input has %u dimensions, not 2",
                               type.shape.rank);
    }
    if (pen_node_has(pen_infer_node(context), "dtype")) {
        PEN_TRY(constant_element(context, "dtype", &type.element));
    }
    return pen_infer_set(context, 0, &type);
}

// The depth is part of the result's shape, so it has to be known while shapes are inferred.
static pen_status one_hot_infer(pen_infer_context *context) {
    const pen_shape *indices = &pen_infer_input(context, 0)->shape;
    const pen_tensor_type *values = pen_infer_input(context, 2);
    if (pen_infer_input(context, 0)->element == PEN_BOOL) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the indices are bool, not numbers");
    }
    double depth;
    PEN_TRY(pen_value_read_number(pen_infer_graph(context), pen_infer_node(context)->inputs[1],
                                  &depth));
    if (!(depth >= 1 && depth <= (double)PEN_TENSOR_BYTES_LIMIT)) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "depth is %g, it must be at least 1",
                               depth);
    }
    if (values->shape.rank != 1 || values->shape.dims[0] != 2) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "values has shape %s, it must be [2]: off and on",
                               pen_shape_format(&values->shape, text));
    }
    if (indices->rank == PEN_RANK_LIMIT) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "indices have %u dimensions, and one more is above the limit of %d",
                               indices->rank, PEN_RANK_LIMIT);
    }
    uint32_t axis;
    const uint32_t rank = indices->rank + 1;
    PEN_TRY(pen_infer_axis(context, rank, pen_node_int(pen_infer_node(context), "axis"), &axis));
    pen_tensor_type type = {.element = values->element, .shape = {.rank = rank}};
    uint32_t from = 0;
    for (uint32_t i = 0; i < rank; i++) {
        type.shape.dims[i] = i == axis ? (int64_t)depth : indices->dims[from++];
    }
    return pen_infer_set(context, 0, &type);
}

// Whether all bits but the sign of a floating zero are 0. Little-endian, as all of Penstock.
static bool constant_is_zero(const uint8_t *bytes, pen_element_type element) {
    const size_t size = pen_element_bytes(element);
    for (size_t i = 0; i < size; i++) {
        const bool has_sign = pen_element_is_float(element) && i == size - 1;
        if ((bytes[i] & (has_sign ? 0x7f : 0xff)) != 0) return false;
    }
    return true;
}

static pen_status non_zero_infer(pen_infer_context *context) {
    const pen_value *x =
        pen_graph_value(pen_infer_graph(context), pen_infer_node(context)->inputs[0]);
    const size_t size = pen_element_bytes(x->type.element);
    const uint8_t *bytes = x->data;
    int64_t dims[2] = {x->type.shape.rank, 0};
    for (int64_t k = 0; k < pen_shape_element_count(&x->type.shape); k++) {
        dims[1] += !constant_is_zero(bytes + (size_t)k * size, x->type.element);
    }
    const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 2, dims);
    return pen_infer_set(context, 0, &type);
}

// Only what is written; the operands are a few numbers.
static uint64_t constant_bytes(const pen_graph *graph, pen_node_id node) {
    return pen_bytes_moved(graph, node) / 2;
}

// Of the operand that says the type nothing else is read.
static pen_axis_link cast_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                               uint32_t input) {
    return input == 0 ? pen_axis_elementwise(graph, node, axis, input) : pen_axis_all();
}

static const pen_attribute_schema shape_attributes[] = {
    PEN_INT_OR("start", 0),
    PEN_MAY("end", INT),
};
static const pen_attribute_schema constant_of_shape_attributes[] = {
    PEN_FLOAT_OR("value", 0),
    PEN_TEXT_OR("element", "float32"),
};
static const pen_attribute_schema cast_attributes[] = {
    PEN_MAY("to", TEXT),
};
static const pen_attribute_schema eye_like_attributes[] = {
    PEN_INT_OR("k", 0),
    PEN_MAY("dtype", TEXT),
};
static const pen_attribute_schema one_hot_attributes[] = {
    PEN_INT_OR("axis", -1),
};

static const pen_op constant_ops[] = {
    {"shape", "the input's dimensions, or some of them", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(shape_attributes), .infer = shape_infer, .reads_no_data = true,
     .bytes = constant_bytes},
    {"size", "the input's number of elements", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     .infer = size_infer, .reads_no_data = true, .bytes = constant_bytes},
    {"range", "numbers from start, before limit, by delta", PEN_TAKES(3, 3), PEN_GIVES(1, 1),
     .constant_inputs = 0x7, .infer = range_infer, .bytes = constant_bytes},
    {"constant_of_shape", "one number everywhere", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(constant_of_shape_attributes), .constant_inputs = 1,
     .infer = constant_of_shape_infer, .bytes = constant_bytes},
    {"cast", "the input as another element type", PEN_TAKES(1, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(cast_attributes), .in_place_inputs = 1, .type_input = 1, .infer = cast_infer,
     .gradient = cast_gradient, .axis_rule = cast_axis},
    {"eye_like", "ones on a diagonal, in the input's shape", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(eye_like_attributes), .infer = eye_like_infer, .bytes = constant_bytes},
    {"one_hot", "one value at each index, another elsewhere", PEN_TAKES(3, 3), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(one_hot_attributes), .constant_inputs = 1u << 1, .infer = one_hot_infer},
    {"non_zero", "positions of a constant's elements that are not 0", PEN_TAKES(1, 1),
     PEN_GIVES(1, 1), .constant_inputs = 1, .infer = non_zero_infer},
};

PEN_OP_FAMILY(constant);
