// Ops that pick elements by their value.
//
//   top_k(x, k)                      values, indices
//   compress(x, condition)           slices whose condition is true
//   unique(x)                        values, first indices, place of each element, counts
//   non_max_suppression(boxes, scores, limit, overlap, score)
//
// How much the last three give depends on what is in their operands, which therefore are constants
// (the scores of non_max_suppression with its boxes): graph/ops/movement/selection_rule.h.

#include <stddef.h>

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/movement/selection_rule.h"
#include "graph/ops/shared/shape_rule.h"

// ---- top_k

// k is part of the result's shape, so it has to be known while shapes are inferred.
static pen_status top_k_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    pen_tensor_type type = *pen_infer_input(context, 0);
    uint32_t count, axis;
    const int64_t *integers;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_NUMBER));
    PEN_TRY(pen_infer_axis(context, type.shape.rank, pen_node_int(node, "axis"), &axis));
    PEN_TRY(pen_infer_ints(context, 1, &count, &integers));
    if (count != 1 || integers[0] < 0 || integers[0] > type.shape.dims[axis]) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "k is %lld (of %u numbers), 0 to %lld elements of axis %u are "
                               "possible",
                               count > 0 ? (long long)integers[0] : 0, count,
                               (long long)type.shape.dims[axis], axis);
    }
    type.shape.dims[axis] = integers[0];
    PEN_TRY(pen_infer_set(context, 0, &type));
    if (!pen_infer_has_output(context, 1)) return PEN_OK;
    type.element = PEN_INT64;
    return pen_infer_set(context, 1, &type);
}

// Each value's gradient goes back to where it was taken from.
static pen_status top_k_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const pen_value_id indices = pen_gradient_output(context, 1);
    if (!pen_value_is(pen_gradient_of_output(context, 0))) return PEN_OK;
    if (!pen_value_is(indices)) {
        return pen_error(PEN_UNSUPPORTED, "top_k '%s' does not keep its indices",
                         pen_gradient_node(context)->name);
    }
    const pen_attribute_given attributes[] = {
        pen_attribute_int("axis", pen_node_int(pen_gradient_node(context), "axis")),
        pen_attribute_text("reduction", "none"), // no index is there twice
    };
    return pen_gradient_scatter(context, "scatter_elements", indices, attributes);
}

// ---- compress

// The axis; without one the operand is flat.
static pen_status compress_axis(const pen_infer_context *context, const pen_shape *shape,
                                uint32_t *out_axis) {
    const pen_node *node = pen_infer_node(context);
    return pen_infer_axis(context, shape->rank, pen_node_int(node, "axis"), out_axis);
}

// The condition decides the shape: its true elements are counted here.
static pen_status compress_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    uint32_t count, axis = 0;
    const int64_t *condition;
    PEN_TRY(pen_infer_check_element(context, 1, PEN_ELEMENT_BIT(PEN_BOOL)));
    PEN_TRY(pen_infer_ints(context, 1, &count, &condition));
    if (pen_node_has(pen_infer_node(context), "axis")) {
        PEN_TRY(compress_axis(context, &type.shape, &axis));
    } else {
        const int64_t elements = pen_shape_element_count(&type.shape);
        type = pen_tensor_type_make(type.element, 1, &elements);
    }
    if (count > type.shape.dims[axis]) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the condition has %u elements, but there are only %lld", count,
                               (long long)type.shape.dims[axis]);
    }
    int64_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        kept += condition[i] != 0;
    }
    type.shape.dims[axis] = kept;
    return pen_infer_set(context, 0, &type);
}

// The gradient of a gather of the slices that were kept.
static pen_status compress_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    pen_graph *graph = pen_gradient_graph(context);
    const pen_node *node = pen_gradient_node(context);
    const pen_shape shape = pen_value_type(graph, pen_gradient_input(context, 0))->shape;
    const bool is_flat = !pen_node_has(node, "axis");
    const int64_t elements = pen_shape_element_count(&shape);
    const int64_t axis = is_flat ? 0 : pen_node_int(node, "axis");
    uint32_t count, kept = 0;
    const int64_t *condition;
    int64_t *indices;
    PEN_TRY(pen_value_read_ints(graph, pen_gradient_input(context, 1), &count, &condition));
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), count, &indices));
    for (uint32_t i = 0; i < count; i++) {
        if (condition[i] != 0) indices[kept++] = i;
    }
    const pen_attribute_given attributes[] = {
        pen_attribute_int("axis", axis),
        is_flat ? pen_attribute_ints("shape", 1, &elements)
                : pen_attribute_ints("shape", shape.rank, shape.dims),
    };
    pen_value_id operands[2] = {pen_gradient_of_output(context, 0), PEN_VALUE_NONE};
    PEN_TRY(pen_gradient_ints(context, "kept", kept, indices, &operands[1]));
    const pen_gradient_emission emission = {
        .op_name = "gather_backward",
        .inputs = operands,
        .input_count = 2,
        .attributes = attributes,
        .attribute_count = 2,
    };
    pen_value_id gradient;
    PEN_TRY(pen_gradient_emit(context, &emission, &gradient));
    if (is_flat) {
        PEN_TRY(pen_gradient_ints(context, "shape", shape.rank, shape.dims, &operands[1]));
        PEN_TRY(pen_gradient_apply(context, 0, "reshape", gradient, operands[1], &gradient));
    }
    pen_gradient_set(context, 0, gradient);
    return PEN_OK;
}

// ---- unique

// Row `row` of a constant cut along `axis`, element by element in order, as keys.
static pen_status unique_read(const pen_graph *graph, pen_value_id value, uint64_t **out_keys) {
    const pen_tensor_type *type = pen_value_type(graph, value);
    const int64_t count = pen_shape_element_count(&type->shape);
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), (size_t)count, out_keys));
    if (pen_element_is_float(type->element)) {
        const double *numbers;
        PEN_TRY(pen_value_read_numbers(graph, value, &numbers));
        for (int64_t i = 0; i < count; i++) {
            (*out_keys)[i] = pen_order_of_number(numbers[i]);
        }
        return PEN_OK;
    }
    uint32_t read;
    const int64_t *integers;
    PEN_TRY(pen_value_read_ints(graph, value, &read, &integers));
    for (int64_t i = 0; i < count; i++) {
        (*out_keys)[i] = pen_order_of_integer(integers[i]);
    }
    return PEN_OK;
}

// How many rows there are is known only by finding them, with the rule that the kernel uses too.
static pen_status unique_infer(pen_infer_context *context) {
    const pen_graph *graph = pen_infer_graph(context);
    const pen_node *node = pen_infer_node(context);
    pen_tensor_type type = *pen_infer_input(context, 0);
    const int64_t elements = pen_shape_element_count(&type.shape);
    pen_unique_rows rows = {.row_count = elements, .width = 1};
    uint64_t *keys, *turned;
    uint32_t axis = 0;
    PEN_TRY(unique_read(graph, node->inputs[0], &keys));
    rows.keys = keys;
    if (pen_node_has(node, "axis")) {
        PEN_TRY(pen_infer_axis(context, type.shape.rank, pen_node_int(node, "axis"), &axis));
        const int64_t inner = pen_shape_count(&type.shape, axis + 1, type.shape.rank);
        rows.row_count = type.shape.dims[axis];
        rows.width = rows.row_count == 0 ? 0 : elements / rows.row_count;
        PEN_TRY(PEN_NEW(pen_graph_arena(graph), (size_t)elements, &turned));
        for (int64_t i = 0; i < elements && rows.row_count > 0; i++) {
            const int64_t row = i / inner % rows.row_count;
            turned[row * rows.width + i / (inner * rows.row_count) * inner + i % inner] = keys[i];
        }
        rows.keys = turned;
    } else {
        type = pen_tensor_type_make(type.element, 1, &elements);
    }
    pen_unique_found found;
    PEN_TRY(pen_unique_find(&rows, pen_graph_arena(graph), &found));
    type.shape.dims[axis] = found.count;
    PEN_TRY(pen_infer_set(context, 0, &type));
    for (uint32_t i = 1; i < node->output_count; i++) {
        const int64_t count = i == 2 ? rows.row_count : found.count;
        const pen_tensor_type list = pen_tensor_type_make(PEN_INT64, 1, &count);
        PEN_TRY(pen_infer_set(context, i, &list));
    }
    return PEN_OK;
}

// ---- non_max_suppression

static pen_status boxes_number(const pen_infer_context *context, uint32_t input,
                               double *out_number) {
    if (!pen_infer_has_input(context, input)) return PEN_OK;
    return pen_infer_wrap(context, pen_value_read_number(pen_infer_graph(context),
                                                         pen_infer_node(context)->inputs[input],
                                                         out_number));
}

// How many boxes stay is known only by selecting them, with the rule that the kernel uses too.
static pen_status non_max_suppression_infer(pen_infer_context *context) {
    const pen_graph *graph = pen_infer_graph(context);
    const pen_node *node = pen_infer_node(context);
    const pen_shape *boxes = &pen_infer_input(context, 0)->shape;
    const pen_shape *scores = &pen_infer_input(context, 1)->shape;
    const bool fits = boxes->rank == 3 && boxes->dims[2] == 4 && scores->rank == 3 &&
                      scores->dims[0] == boxes->dims[0] && scores->dims[2] == boxes->dims[1];
    if (!fits) {
        char text_boxes[PEN_SHAPE_TEXT_BYTES], text_scores[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "boxes of shape %s and scores of shape %s do not go together; "
                               "[batch,boxes,4] and [batch,classes,boxes] do",
                               pen_shape_format(boxes, text_boxes),
                               pen_shape_format(scores, text_scores));
    }
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    double limit = 0;
    pen_box_request request = {.batch_count = boxes->dims[0],
                               .box_count = boxes->dims[1],
                               .class_count = scores->dims[1],
                               .has_score_limit = pen_infer_has_input(context, 4),
                               .is_centered = pen_node_int(node, "center_point_box") != 0};
    PEN_TRY(boxes_number(context, 2, &limit));
    PEN_TRY(boxes_number(context, 3, &request.overlap_limit));
    PEN_TRY(boxes_number(context, 4, &request.score_limit));
    request.limit = limit >= (double)request.box_count ? request.box_count : (int64_t)limit;
    PEN_TRY(pen_value_read_numbers(graph, node->inputs[0], &request.boxes));
    PEN_TRY(pen_value_read_numbers(graph, node->inputs[1], &request.scores));
    int64_t dims[2] = {0, 3};
    int64_t *triples;
    PEN_TRY(pen_boxes_select(&request, pen_graph_arena(graph), &dims[0], &triples));
    const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 2, dims);
    return pen_infer_set(context, 0, &type);
}

static const pen_attribute_schema top_k_attributes[] = {
    PEN_INT_OR("axis", -1),
    PEN_INT_OR("largest", 1),
    PEN_INT_OR("sorted", 1),
};
static const pen_attribute_schema compress_attributes[] = {
    PEN_MAY("axis", INT),
};
static const pen_attribute_schema unique_attributes[] = {
    PEN_MAY("axis", INT),
    PEN_INT_OR("sorted", 1),
};
static const pen_attribute_schema boxes_attributes[] = {
    PEN_INT_OR("center_point_box", 0),
};

static const pen_op selection_ops[] = {
    {"top_k", "the k largest or smallest elements along an axis, in order, and where they are",
     PEN_TAKES(2, 2), PEN_GIVES(1, 2), PEN_ATTRIBUTES(top_k_attributes), .constant_inputs = 1u << 1,
     .infer = top_k_infer, .gradient = top_k_gradient, .input_flops = 1},
    {"compress", "slices along an axis, or elements, whose constant condition is true",
     PEN_TAKES(2, 2), PEN_GIVES(1, 1), PEN_ATTRIBUTES(compress_attributes),
     .constant_inputs = 1u << 1, .infer = compress_infer, .gradient = compress_gradient,
     .bytes = pen_bytes_moved},
    {"unique", "the different elements or slices of a constant", PEN_TAKES(1, 1), PEN_GIVES(1, 4),
     PEN_ATTRIBUTES(unique_attributes), .constant_inputs = 1, .infer = unique_infer},
    {"non_max_suppression", "the best of constant boxes that overlap", PEN_TAKES(2, 5),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(boxes_attributes), .constant_inputs = 0x1f,
     .infer = non_max_suppression_infer},
};

PEN_OP_FAMILY(selection);
