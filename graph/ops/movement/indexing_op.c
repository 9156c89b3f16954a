// Ops that read or write where a tensor of indices says. Indices are int32 or int64, negative ones
// count from the end; they are checked when the kernel runs.
//
// gather_backward(dy, indices, sum) adds dy to sum (left out: to zeros of the shape `shape`), in
// the order of the indices. Beyond ONNX: scatter_nd has the attribute `batch_dims` of gather_nd, so
// that it can be its gradient.
//
// stack_rows(x) makes x, rows of its last `tail` dimensions, rows `each` * (microbatch - first) and
// those after of `capacity` rows of zeros: where it adds up over microbatches, from `first` on, it
// lists what each of them had. Rows that no microbatch filled are zeros, of index 0, and change no
// sum.

#include <stddef.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/ops/shared/infer_checks.h"
#include "graph/ops/shared/shape_rule.h"

static pen_status indexing_check_indices(const pen_infer_context *context) {
    const pen_element_type element = pen_infer_input(context, 1)->element;
    if (element == PEN_INT64 || element == PEN_INT32) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "the indices are %s, they must be int32 or int64",
                           pen_element_name(element));
}

static pen_status indexing_too_many(const pen_infer_context *context, uint32_t rank) {
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "the result has %u dimensions, at most %d are possible", rank,
                           PEN_RANK_LIMIT);
}

// The shape of data[…, indices, …] with `indices` in the place of axis `axis`.
static pen_status gather_shape(const pen_infer_context *context, const pen_shape *data,
                               pen_shape *out_shape) {
    const pen_shape *indices = &pen_infer_input(context, 1)->shape;
    uint32_t axis;
    PEN_TRY(indexing_check_indices(context));
    PEN_TRY(
        pen_infer_axis(context, data->rank, pen_node_int(pen_infer_node(context), "axis"), &axis));
    const uint32_t rank = data->rank - 1 + indices->rank;
    if (rank > PEN_RANK_LIMIT) return indexing_too_many(context, rank);
    pen_shape shape = {.rank = rank};
    uint32_t at = 0;
    for (uint32_t i = 0; i < axis; i++) {
        shape.dims[at++] = data->dims[i];
    }
    for (uint32_t i = 0; i < indices->rank; i++) {
        shape.dims[at++] = indices->dims[i];
    }
    for (uint32_t i = axis + 1; i < data->rank; i++) {
        shape.dims[at++] = data->dims[i];
    }
    *out_shape = shape;
    return PEN_OK;
}

static pen_status gather_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    PEN_TRY(gather_shape(context, &type.shape, &type.shape));
    return pen_infer_set(context, 0, &type);
}

static pen_status gather_backward_infer(pen_infer_context *context) {
    pen_tensor_type type;
    pen_shape wanted;
    PEN_TRY(pen_infer_shape_attribute(context, "shape", &type));
    PEN_TRY(gather_shape(context, &type.shape, &wanted));
    const pen_shape *dy = &pen_infer_input(context, 0)->shape;
    if (!pen_shape_equal(dy, &wanted)) {
        char found[PEN_SHAPE_TEXT_BYTES], text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the gradient has shape %s, but the gather has %s",
                               pen_shape_format(dy, found), pen_shape_format(&wanted, text));
    }
    if (pen_infer_has_input(context, 2)) {
        PEN_TRY(pen_infer_same_element(context, 2));
        PEN_TRY(pen_infer_check_shape(context, 2, &type.shape));
    }
    return pen_infer_set(context, 0, &type);
}

// Room for the rows of all microbatches is made at once; each writes its own part.
static pen_status stack_rows_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const pen_tensor_type *x = pen_infer_input(context, 0);
    const int64_t tail = pen_node_int(node, "tail"), each = pen_node_int(node, "each");
    const int64_t capacity = pen_node_int(node, "capacity");
    if (tail < 0 || tail > x->shape.rank || tail >= PEN_RANK_LIMIT) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "tail is %lld, but the input has %u dimensions", (long long)tail,
                               x->shape.rank);
    }
    const uint32_t first = x->shape.rank - (uint32_t)tail;
    const int64_t rows = pen_shape_count(&x->shape, 0, first);
    if (pen_node_int(node, "first") < 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the first microbatch is %lld",
                               (long long)pen_node_int(node, "first"));
    }
    if (each < rows || capacity < each) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "%lld rows do not fit into %lld each and %lld in all",
                               (long long)rows, (long long)each, (long long)capacity);
    }
    pen_tensor_type type = {x->element, {1, {capacity}}};
    for (uint32_t d = first; d < x->shape.rank; d++) {
        type.shape.dims[type.shape.rank++] = x->shape.dims[d];
    }
    return pen_infer_set(context, 0, &type);
}

static pen_status gather_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const pen_shape shape =
        pen_value_type(pen_gradient_graph(context), pen_gradient_input(context, 0))->shape;
    const pen_value_id operands[] = {pen_gradient_of_output(context, 0),
                                     pen_gradient_input(context, 1)};
    const pen_attribute_given attributes[] = {
        pen_attribute_int("axis", pen_node_int(pen_gradient_node(context), "axis")),
        pen_attribute_ints("shape", shape.rank, shape.dims),
    };
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = "gather_backward",
                                              .inputs = operands,
                                              .input_count = 2,
                                              .attributes = attributes,
                                              .attribute_count = 2,
                                          });
}

// Indices that pick element by element lie within the data but along `axis`.
static pen_status elements_check(const pen_infer_context *context) {
    const pen_shape *data = &pen_infer_input(context, 0)->shape;
    const pen_shape *indices = &pen_infer_input(context, 1)->shape;
    uint32_t axis;
    PEN_TRY(indexing_check_indices(context));
    PEN_TRY(
        pen_infer_axis(context, data->rank, pen_node_int(pen_infer_node(context), "axis"), &axis));
    bool fits = data->rank == indices->rank;
    for (uint32_t i = 0; fits && i < data->rank; i++) {
        fits = i == axis || indices->dims[i] <= data->dims[i];
    }
    if (fits) return PEN_OK;
    char text_data[PEN_SHAPE_TEXT_BYTES], text_indices[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "indices of shape %s do not lie within data of shape %s (axis %u)",
                           pen_shape_format(indices, text_indices),
                           pen_shape_format(data, text_data), axis);
}

static pen_status gather_elements_infer(pen_infer_context *context) {
    PEN_TRY(elements_check(context));
    const pen_tensor_type type = {pen_infer_input(context, 0)->element,
                                  pen_infer_input(context, 1)->shape};
    return pen_infer_set(context, 0, &type);
}

// Checks a scatter's updates against the shape that they must have, and its reduction.
static pen_status scatter_check(const pen_infer_context *context, const pen_shape *wanted) {
    static const char *const reductions[] = {"none", "add", "mul", "max", "min"};
    const char *reduction = pen_node_text(pen_infer_node(context), "reduction");
    bool known = false;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        known = known || strcmp(reduction, reductions[i]) == 0;
    }
    if (!known) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "reduction is '%s'; there are none, add, mul, max, min", reduction);
    }
    PEN_TRY(pen_infer_same_element(context, 2));
    const pen_shape *updates = &pen_infer_input(context, 2)->shape;
    if (pen_shape_equal(updates, wanted)) return PEN_OK;
    char found[PEN_SHAPE_TEXT_BYTES], text[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT, "updates has shape %s, it must have %s",
                           pen_shape_format(updates, found), pen_shape_format(wanted, text));
}

static pen_status scatter_elements_infer(pen_infer_context *context) {
    PEN_TRY(elements_check(context));
    PEN_TRY(scatter_check(context, &pen_infer_input(context, 1)->shape));
    return pen_infer_set(context, 0, pen_infer_input(context, 0));
}

// The shape that gather_nd gives: indices' but the last dimension, then what that leaves of data's.
static pen_status nd_shape(const pen_infer_context *context, pen_shape *out_shape) {
    const pen_shape *data = &pen_infer_input(context, 0)->shape;
    const pen_shape *indices = &pen_infer_input(context, 1)->shape;
    const int64_t batch = pen_node_int(pen_infer_node(context), "batch_dims");
    PEN_TRY(indexing_check_indices(context));
    bool fits = indices->rank >= 1 && batch >= 0 && batch < indices->rank && batch <= data->rank;
    for (uint32_t i = 0; fits && i < batch; i++) {
        fits = indices->dims[i] == data->dims[i];
    }
    const int64_t depth = fits ? indices->dims[indices->rank - 1] : 0;
    fits = fits && depth <= data->rank - batch;
    if (!fits) {
        char text_data[PEN_SHAPE_TEXT_BYTES], text_indices[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(
            context, PEN_INVALID_INPUT,
            "indices of shape %s cannot point into data of shape %s with batch_dims %lld",
            pen_shape_format(indices, text_indices), pen_shape_format(data, text_data),
            (long long)batch);
    }
    const uint32_t taken = (uint32_t)(batch + depth);
    const uint32_t rank = indices->rank - 1 + data->rank - taken;
    if (rank > PEN_RANK_LIMIT) return indexing_too_many(context, rank);
    pen_shape shape = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++) {
        const bool from_indices = i < indices->rank - 1;
        shape.dims[i] =
            from_indices ? indices->dims[i] : data->dims[taken + i - (indices->rank - 1)];
    }
    *out_shape = shape;
    return PEN_OK;
}

static pen_status gather_nd_infer(pen_infer_context *context) {
    pen_tensor_type type = {.element = pen_infer_input(context, 0)->element};
    PEN_TRY(nd_shape(context, &type.shape));
    return pen_infer_set(context, 0, &type);
}

static pen_status scatter_nd_infer(pen_infer_context *context) {
    pen_shape wanted;
    PEN_TRY(nd_shape(context, &wanted));
    PEN_TRY(scatter_check(context, &wanted));
    return pen_infer_set(context, 0, pen_infer_input(context, 0));
}

// The one attribute that gathers and scatters of a kind share, with the forward node's value.
static pen_attribute_given indexing_place(const pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    const bool by_element = strstr(node->op->name, "elements") != NULL;
    const char *name = by_element ? "axis" : "batch_dims";
    return pen_attribute_int(name, pen_node_int(node, name));
}

// gather_elements and gather_nd: the gradient is added into zeros.
static pen_status gather_at_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const bool by_element = strcmp(pen_gradient_node(context)->op->name, "gather_elements") == 0;
    const pen_attribute_given attributes[] = {indexing_place(context),
                                              pen_attribute_text("reduction", "add")};
    return pen_gradient_scatter(context, by_element ? "scatter_elements" : "scatter_nd",
                                pen_gradient_input(context, 1), attributes);
}

// scatter_elements and scatter_nd that overwrite or add: the updates' gradient is gathered, the
// data's is dy, but where it was overwritten (there each place must be written once).
static pen_status scatter_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    const bool by_element = strcmp(node->op->name, "scatter_elements") == 0;
    const char *reduction = pen_node_text(node, "reduction");
    const bool adds = strcmp(reduction, "add") == 0;
    if (!adds && strcmp(reduction, "none") != 0) {
        return pen_error(PEN_UNSUPPORTED, "%s '%s' has no gradient for reduction '%s'",
                         node->op->name, node->name, reduction);
    }
    const pen_attribute_given attributes[] = {indexing_place(context),
                                              pen_attribute_text("reduction", "none")};
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    pen_value_id operands[] = {dy, pen_gradient_input(context, 1), PEN_VALUE_NONE};
    if (pen_gradient_needed(context, 2)) {
        const pen_gradient_emission updates = {
            .op_name = by_element ? "gather_elements" : "gather_nd",
            .suffix = "backward_updates",
            .for_input = 2,
            .inputs = operands,
            .input_count = 2,
            .attributes = attributes,
            .attribute_count = 1,
        };
        PEN_TRY(pen_gradient_emit_set(context, &updates));
    }
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    if (adds) {
        pen_gradient_set(context, 0, dy);
        return PEN_OK;
    }
    const pen_tensor_type type =
        *pen_value_type(pen_gradient_graph(context), pen_gradient_input(context, 2));
    PEN_TRY(pen_gradient_zeros(context, 0, &type, &operands[2]));
    return pen_gradient_emit_set(context,
                                 &(pen_gradient_emission){
                                     .op_name = by_element ? "scatter_elements" : "scatter_nd",
                                     .suffix = "backward_data",
                                     .inputs = operands,
                                     .input_count = 3,
                                     .attributes = attributes,
                                     .attribute_count = 2,
                                 });
}

// Reads what it writes, and the indices; the rest of the table stays untouched.
static uint64_t gather_bytes(const pen_graph *graph, pen_node_id node) {
    const pen_value_id indices = pen_graph_node(graph, node)->inputs[1];
    return pen_bytes_moved(graph, node) + pen_tensor_type_bytes(pen_value_type(graph, indices));
}

// Where a sum is given, of which only the rows that are picked are touched, in place; else all.
static uint64_t gather_backward_bytes(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    const uint64_t dy = pen_tensor_type_bytes(pen_value_type(graph, node->inputs[0]));
    const bool adds = node->input_count > 2 && pen_value_is(node->inputs[2]);
    const pen_value_id all = adds ? node->inputs[0] : node->outputs[0];
    return 2 * dy + pen_tensor_type_bytes(pen_value_type(graph, all)) +
           pen_tensor_type_bytes(pen_value_type(graph, node->inputs[1]));
}

static uint64_t stack_rows_bytes(const pen_graph *graph, pen_node_id id) {
    const pen_value_id x = pen_graph_node(graph, id)->inputs[0];
    return 2 * pen_tensor_type_bytes(pen_value_type(graph, x));
}

static const pen_attribute_schema stack_attributes[] = {
    PEN_MUST("tail", INT),
    PEN_MUST("each", INT),
    PEN_MUST("capacity", INT),
    PEN_INT_OR("first", 0),
};
static const pen_attribute_schema gather_attributes[] = {
    PEN_INT_OR("axis", 0), PEN_MUST("shape", INTS), // gather_backward only
};
// Of data[…, indices, …], positions of the indices read all slices, others those of the data.
static pen_axis_link gather_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                 uint32_t input) {
    const uint32_t rank = pen_value_type(graph, node->inputs[0])->shape.rank;
    const uint32_t index_rank = pen_value_type(graph, node->inputs[1])->shape.rank;
    const uint32_t first = pen_axis_given(node, rank);
    const bool is_index = axis >= first && axis < first + index_rank;
    if (is_index != (input == 1)) return pen_axis_all();
    if (is_index) return pen_axis_same(axis - first);
    return pen_axis_same(axis < first ? axis : axis + 1 - index_rank);
}

// Along the axis, indices pick from all of the data; elsewhere both go side by side.
static pen_axis_link gather_elements_axis(const pen_graph *graph, const pen_node *node,
                                          uint32_t axis, uint32_t input) {
    const pen_shape *data = &pen_value_type(graph, node->inputs[0])->shape;
    const pen_shape *indices = &pen_value_type(graph, node->inputs[1])->shape;
    if (input == 1) return pen_axis_same(axis);
    if (axis == pen_axis_given(node, data->rank)) return pen_axis_all();
    return data->dims[axis] == indices->dims[axis] ? pen_axis_same(axis) : pen_axis_unknown();
}

static const pen_attribute_schema elements_attributes[] = {
    PEN_INT_OR("axis", 0),
    PEN_TEXT_OR("reduction", "none"),
};
static const pen_attribute_schema nd_attributes[] = {
    PEN_INT_OR("batch_dims", 0),
    PEN_TEXT_OR("reduction", "none"),
};

// The gathers lack the last attribute of their schema.
static const pen_op indexing_ops[] = {
    {"gather", "slices of the first operand, picked by index", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES_BUT_LAST(gather_attributes), .infer = gather_infer, .gradient = gather_gradient,
     .bytes = gather_bytes, .axis_rule = gather_axis, .picks_along = "axis"},
    {"gather_backward", "a gather's gradient: added into zeros, or to what is given",
     PEN_TAKES(2, 3), PEN_GIVES(1, 1), PEN_ATTRIBUTES(gather_attributes), .in_place_inputs = 4,
     .infer = gather_backward_infer, .bytes = gather_backward_bytes},
    {"stack_rows", "the rows of a microbatch behind those of the ones before", PEN_TAKES(1, 1),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(stack_attributes), .infer = stack_rows_infer,
     .spans_lanes = true, .bytes = stack_rows_bytes},
    {"gather_elements", "elements picked one by one along an axis", PEN_TAKES(2, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES_BUT_LAST(elements_attributes), .infer = gather_elements_infer,
     .gradient = gather_at_gradient, .bytes = gather_bytes, .axis_rule = gather_elements_axis},
    {"gather_nd", "slices picked by several indices at once", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES_BUT_LAST(nd_attributes), .infer = gather_nd_infer,
     .gradient = gather_at_gradient, .bytes = gather_bytes},
    {"scatter_elements", "data with elements replaced, or combined, one by one along an axis",
     PEN_TAKES(3, 3), PEN_GIVES(1, 1), PEN_ATTRIBUTES(elements_attributes), .in_place_inputs = 1,
     .infer = scatter_elements_infer, .gradient = scatter_gradient},
    {"scatter_nd", "data with slices replaced, or combined, at several indices at once",
     PEN_TAKES(3, 3), PEN_GIVES(1, 1), PEN_ATTRIBUTES(nd_attributes), .in_place_inputs = 1,
     .infer = scatter_nd_infer, .gradient = scatter_gradient},
};

PEN_OP_FAMILY(indexing);
