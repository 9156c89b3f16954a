// Convolutions in one to three spatial dimensions, with groups, and their backward halves.
//
//   conv(x, w, b; auto_pad, dilations, group, kernel_shape, pads, strides)
//   conv_transpose(x, w, b; … output_padding, output_shape)
//   conv_backward_input(dy, w; input_shape, …)      gradient of x
//   conv_backward_weight(x, dy; kernel_shape, …)    gradient of w
//   conv_backward_bias(dy)                          gradient of b: sums of each channel
//
// The backward ops have the attributes of conv, with pads always explicit. A transposed
// convolution is the gradient of a convolution, so its own gradients are conv(dy, w) and
// conv_backward_weight(dy, x).
//
// flops of each = 2 * batch * M * output positions * (C / groups) * kernel, and one addition per
// element of y with a bias.

#include "graph/graph.h"
#include "graph/ops/product/convolution_geometry.h"
#include "graph/ops/shared/infer_checks.h"

// Sets output 0 to `shape` with the element type of input 0.
static pen_status conv_set_shape(pen_infer_context *context, pen_shape shape) {
    const pen_tensor_type type = {pen_infer_input(context, 0)->element, shape};
    return pen_infer_set(context, 0, &type);
}

static pen_status conv_check_operands(const pen_infer_context *context, int64_t output_channels) {
    if (!pen_infer_has_input(context, 2)) return PEN_OK;
    const pen_shape bias = {1, {output_channels}};
    PEN_TRY(pen_infer_check_same_element(context, 2, 0));
    return pen_infer_check_shape(context, 2, &bias);
}

static pen_status conv_check_elements(const pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    return pen_infer_check_same_element(context, 1, 0);
}

typedef pen_status (*conv_geometry_fn)(const pen_graph *graph, const pen_node *node,
                                       pen_conv_geometry *out_geometry);

static pen_status conv_find(pen_infer_context *context, conv_geometry_fn find,
                            pen_conv_geometry *out_geometry) {
    PEN_TRY(conv_check_elements(context));
    return pen_infer_wrap(context,
                          find(pen_infer_graph(context), pen_infer_node(context), out_geometry));
}

static pen_status conv_infer(pen_infer_context *context) {
    pen_conv_geometry geometry;
    PEN_TRY(conv_find(context, pen_conv_geometry_of, &geometry));
    PEN_TRY(conv_check_operands(context, geometry.output_channels));
    return conv_set_shape(context, pen_conv_output_shape(&geometry));
}

static pen_status conv_transpose_infer(pen_infer_context *context) {
    pen_conv_geometry geometry;
    PEN_TRY(conv_find(context, pen_conv_transpose_geometry, &geometry));
    PEN_TRY(conv_check_operands(context, geometry.input_channels));
    return conv_set_shape(context, pen_conv_input_shape(&geometry));
}

static pen_status conv_backward_input_infer(pen_infer_context *context) {
    pen_conv_geometry geometry;
    PEN_TRY(conv_find(context, pen_conv_backward_input_geometry, &geometry));
    return conv_set_shape(context, pen_conv_input_shape(&geometry));
}

static pen_status conv_backward_weight_infer(pen_infer_context *context) {
    pen_conv_geometry geometry;
    PEN_TRY(conv_find(context, pen_conv_backward_weight_geometry, &geometry));
    return conv_set_shape(context, pen_conv_weight_shape(&geometry));
}

static pen_status conv_backward_bias_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    const pen_shape *dy = &pen_infer_input(context, 0)->shape;
    if (dy->rank < 3) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the gradient has rank %u", dy->rank);
    }
    return conv_set_shape(context, (pen_shape){1, {dy->dims[1]}});
}

static uint64_t conv_count_flops(const pen_graph *graph, pen_node_id id, conv_geometry_fn find) {
    const pen_node *node = pen_graph_node(graph, id);
    pen_conv_geometry geometry;
    const pen_status status = find(graph, node, &geometry);
    PEN_ASSERT(status == PEN_OK); // the shape rule passed
    uint64_t flops = pen_conv_geometry_flops(&geometry);
    if (node->input_count > 2 && pen_value_is(node->inputs[2])) {
        flops += (uint64_t)pen_shape_element_count(&pen_value_type(graph, node->outputs[0])->shape);
    }
    return flops;
}

static uint64_t conv_flops(const pen_graph *graph, pen_node_id node) {
    return conv_count_flops(graph, node, pen_conv_geometry_of);
}

static uint64_t conv_transpose_flops(const pen_graph *graph, pen_node_id node) {
    return conv_count_flops(graph, node, pen_conv_transpose_geometry);
}

static uint64_t conv_backward_input_flops(const pen_graph *graph, pen_node_id node) {
    return conv_count_flops(graph, node, pen_conv_backward_input_geometry);
}

static uint64_t conv_backward_weight_flops(const pen_graph *graph, pen_node_id node) {
    return conv_count_flops(graph, node, pen_conv_backward_weight_geometry);
}

static uint64_t conv_backward_bias_flops(const pen_graph *graph, pen_node_id node) {
    const pen_value_id dy = pen_graph_node(graph, node)->inputs[0];
    return (uint64_t)pen_shape_element_count(&pen_value_type(graph, dy)->shape);
}

// Emits `op_name` of two operands and makes its result the gradient of input `for_input`.
static pen_status conv_emit(pen_gradient_context *context, const char *op_name, uint32_t for_input,
                            const pen_value_id operands[2],
                            const pen_window_attributes *attributes) {
    const pen_gradient_emission emission = {
        .op_name = op_name,
        .suffix = for_input == 0 ? "backward_input" : "backward_weight",
        .for_input = for_input,
        .inputs = operands,
        .input_count = 2,
        .attributes = attributes->given,
        .attribute_count = attributes->count,
    };
    return pen_gradient_emit_set(context, &emission);
}

static pen_status conv_emit_bias(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 2)) return PEN_OK;
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    const pen_gradient_emission emission = {
        .op_name = "conv_backward_bias",
        .suffix = "backward_bias",
        .for_input = 2,
        .inputs = &dy,
        .input_count = 1,
    };
    return pen_gradient_emit_set(context, &emission);
}

// The two gradients are nodes of their own, so that the weight's can be put off.
static pen_status conv_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    pen_conv_geometry geometry;
    PEN_TRY(pen_conv_geometry_of(pen_gradient_graph(context), node, &geometry));
    pen_window_attributes attributes;
    pen_window_attributes_make(&geometry, &attributes);
    attributes.given[attributes.count++] = pen_attribute_int("group", geometry.group_count);
    const pen_value_id x = pen_gradient_input(context, 0);
    const pen_value_id w = pen_gradient_input(context, 1);
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    if (pen_gradient_needed(context, 1)) {
        PEN_TRY(conv_emit(context, "conv_backward_weight", 1, (const pen_value_id[]){x, dy},
                          &attributes));
    }
    if (pen_gradient_needed(context, 0)) {
        const pen_shape input = pen_conv_input_shape(&geometry);
        attributes.given[attributes.count++] =
            pen_attribute_ints("input_shape", input.rank, input.dims);
        PEN_TRY(conv_emit(context, "conv_backward_input", 0, (const pen_value_id[]){dy, w},
                          &attributes));
    }
    return conv_emit_bias(context);
}

// Whether the convolution that a transposed one is the gradient of leads back to x: not when
// output_padding or output_shape put a whole stride or more behind its last window.
static bool conv_transpose_returns(const pen_conv_geometry *geometry) {
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        const int64_t extent = (geometry->kernel_size[d] - 1) * geometry->dilation[d] + 1;
        const int64_t room =
            geometry->input_size[d] + geometry->pad_begin[d] + geometry->pad_end[d] - extent;
        if (room < 0 || room / geometry->stride[d] + 1 != geometry->output_size[d]) return false;
    }
    return true;
}

// With the operands of a convolution changed about: its input gradient is a convolution.
static pen_status conv_transpose_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    pen_conv_geometry geometry;
    PEN_TRY(pen_conv_transpose_geometry(pen_gradient_graph(context), node, &geometry));
    if (!conv_transpose_returns(&geometry)) {
        return pen_error(PEN_UNSUPPORTED,
                         "conv_transpose '%s': no gradient for an output that "
                         "extends a stride or more behind the last window",
                         node->name);
    }
    pen_window_attributes attributes;
    pen_window_attributes_make(&geometry, &attributes);
    attributes.given[attributes.count++] = pen_attribute_int("group", geometry.group_count);
    const pen_value_id x = pen_gradient_input(context, 0);
    const pen_value_id w = pen_gradient_input(context, 1);
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    if (pen_gradient_needed(context, 0)) {
        PEN_TRY(conv_emit(context, "conv", 0, (const pen_value_id[]){dy, w}, &attributes));
    }
    if (pen_gradient_needed(context, 1)) {
        PEN_TRY(conv_emit(context, "conv_backward_weight", 1, (const pen_value_id[]){dy, x},
                          &attributes));
    }
    return conv_emit_bias(context);
}

#define CONV_ATTRIBUTES                                                                            \
    PEN_TEXT_OR("auto_pad", "NOTSET"), PEN_MAY("dilations", INTS), PEN_INT_OR("group", 1),         \
        PEN_MAY("kernel_shape", INTS), PEN_MAY("pads", INTS), PEN_MAY("strides", INTS)

static const pen_attribute_schema conv_attributes[] = {CONV_ATTRIBUTES};

static const pen_attribute_schema conv_transpose_attributes[] = {
    CONV_ATTRIBUTES,
    PEN_MAY("output_padding", INTS),
    PEN_MAY("output_shape", INTS),
};

static const pen_attribute_schema conv_backward_input_attributes[] = {
    CONV_ATTRIBUTES,
    PEN_MUST("input_shape", INTS),
};

static const pen_op convolution_ops[] = {
    {"conv", "convolution over one to three spatial dimensions", PEN_TAKES(2, 3), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(conv_attributes), .infer = conv_infer, .gradient = conv_gradient,
     .flops = conv_flops, .work = PEN_WORK_CONVOLUTION},
    {"conv_transpose", "transposed convolution", PEN_TAKES(2, 3), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(conv_transpose_attributes), .infer = conv_transpose_infer,
     .gradient = conv_transpose_gradient, .flops = conv_transpose_flops,
     .work = PEN_WORK_CONVOLUTION},
    {"conv_backward_input", "gradient of a convolution's input from dy and w", PEN_TAKES(2, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(conv_backward_input_attributes),
     .infer = conv_backward_input_infer, .flops = conv_backward_input_flops,
     .work = PEN_WORK_CONVOLUTION},
    {"conv_backward_weight", "gradient of a convolution's weight from x and dy", PEN_TAKES(2, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(conv_attributes), .infer = conv_backward_weight_infer,
     .flops = conv_backward_weight_flops, .work = PEN_WORK_CONVOLUTION, .is_product = true},
    {"conv_backward_bias", "gradient of a convolution's bias from dy", PEN_TAKES(1, 1),
     PEN_GIVES(1, 1), .infer = conv_backward_bias_infer, .flops = conv_backward_bias_flops,
     .work = PEN_WORK_CONVOLUTION, .alike_inputs = 1},
};

PEN_OP_FAMILY(convolution);
