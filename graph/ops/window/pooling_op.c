// Pools.
//
//   max_pool(x; auto_pad, ceil_mode, dilations, kernel_shape, pads, storage_order, strides)
//       → y, indices (int64, of the whole of x; storage_order 0 only)
//   average_pool(x; … count_include_pad), global_average_pool(x), global_max_pool(x)
//   max_pool_backward(dy, x, y; …)            dx: each dy goes to the first element of its window
//                                             that equals y
//   average_pool_backward(dy; input_shape, …)
//   global_average_pool_backward(dy; input_shape)
//   global_max_pool_backward(dy, x, y)        likewise to the first
//
// max_pool keeps no workspace: x and y are alive in the backward pass anyway (the operators around
// a pool read them), and finding an element that equals y is a scan that stops early. With
// ceil_mode a window that would begin behind the input and its front pad is left out, as in
// PyTorch. An average divides by the taps inside the input or, with count_include_pad, inside the
// input and its pads (what lies behind pad_end because of ceil_mode never counts). A window with no
// tap inside the input, as dilation may leave, has the lowest value as its maximum and 0 as its
// average. dilations of average_pool are an extension of operator set 17.
//
// flops: one per tap; max_pool_backward and the average's division are counted as one per tap too.

#include <string.h>

#include "graph/graph.h"
#include "graph/ops/product/convolution_geometry.h"
#include "graph/ops/shared/infer_checks.h"

#define POOL_ELEMENTS (PEN_ELEMENTS_FLOAT | PEN_ELEMENT_BIT(PEN_INT8) | PEN_ELEMENT_BIT(PEN_UINT8))

static pen_status pool_set_shape(pen_infer_context *context, pen_shape shape) {
    const pen_tensor_type type = {pen_infer_input(context, 0)->element, shape};
    return pen_infer_set(context, 0, &type);
}

static pen_status pool_infer(pen_infer_context *context, pen_shape *out_shape) {
    pen_conv_geometry geometry;
    PEN_TRY(pen_infer_wrap(
        context, pen_pool_geometry(pen_infer_graph(context), pen_infer_node(context), &geometry)));
    *out_shape = pen_conv_output_shape(&geometry);
    return pool_set_shape(context, *out_shape);
}

static pen_status max_pool_infer(pen_infer_context *context) {
    pen_shape shape;
    PEN_TRY(pen_infer_check_element(context, 0, POOL_ELEMENTS));
    if (pen_node_int(pen_infer_node(context), "storage_order") != 0) {
        return pen_infer_error(context, PEN_UNSUPPORTED,
                               "storage_order is not 0 (only row-major indices are known)");
    }
    PEN_TRY(pool_infer(context, &shape));
    if (pen_infer_node(context)->output_count < 2) return PEN_OK;
    const pen_tensor_type indices = {PEN_INT64, shape};
    return pen_infer_set(context, 1, &indices);
}

static pen_status average_pool_infer(pen_infer_context *context) {
    pen_shape shape;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    return pool_infer(context, &shape);
}

static pen_status pool_backward_infer(pen_infer_context *context) {
    pen_conv_geometry geometry;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(
        pen_infer_wrap(context, pen_pool_backward_geometry(pen_infer_graph(context),
                                                           pen_infer_node(context), &geometry)));
    if (pen_infer_node(context)->input_count == 3) {
        PEN_TRY(pen_infer_check_same_element(context, 1, 0));
        PEN_TRY(pen_infer_check_same_element(context, 2, 0));
        PEN_TRY(pen_infer_check_shape(context, 2, &pen_infer_input(context, 0)->shape));
    }
    return pool_set_shape(context, pen_conv_input_shape(&geometry));
}

// (N, C, 1, …) for an input (N, C, d…).
static pen_status global_pool_shape(const pen_infer_context *context, pen_shape input,
                                    pen_shape *out_shape) {
    if (input.rank < 2 || pen_shape_count(&input, 2, input.rank) == 0) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the input is %s; expected a batch, channels and spatial dimensions",
                               pen_shape_format(&input, text));
    }
    for (uint32_t i = 2; i < input.rank; i++) {
        input.dims[i] = 1;
    }
    *out_shape = input;
    return PEN_OK;
}

static pen_status global_pool_infer(pen_infer_context *context) {
    pen_shape shape;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(global_pool_shape(context, pen_infer_input(context, 0)->shape, &shape));
    return pool_set_shape(context, shape);
}

static pen_status global_max_pool_backward_infer(pen_infer_context *context) {
    const pen_shape input = pen_infer_input(context, 1)->shape;
    pen_shape output;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    PEN_TRY(pen_infer_check_same_element(context, 2, 0));
    PEN_TRY(global_pool_shape(context, input, &output));
    PEN_TRY(pen_infer_check_shape(context, 0, &output));
    PEN_TRY(pen_infer_check_shape(context, 2, &output));
    return pool_set_shape(context, input);
}

static pen_status global_average_pool_backward_infer(pen_infer_context *context) {
    uint32_t rank;
    const int64_t *dims = pen_node_ints(pen_infer_node(context), "input_shape", &rank);
    if (rank > PEN_RANK_LIMIT) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "input_shape has %u dimensions", rank);
    }
    const pen_shape input = pen_tensor_type_make(PEN_FLOAT32, rank, dims).shape;
    pen_shape output;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(global_pool_shape(context, input, &output));
    PEN_TRY(pen_infer_check_shape(context, 0, &output));
    return pool_set_shape(context, input);
}

static uint64_t pool_taps(const pen_conv_geometry *geometry) {
    uint64_t taps = (uint64_t)geometry->batch * (uint64_t)geometry->input_channels;
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        taps *= (uint64_t)(geometry->output_size[d] * geometry->kernel_size[d]);
    }
    return taps;
}

static uint64_t pool_flops(const pen_graph *graph, pen_node_id node) {
    pen_conv_geometry geometry;
    const pen_status status = pen_pool_geometry(graph, pen_graph_node(graph, node), &geometry);
    PEN_ASSERT(status == PEN_OK); // the shape rule passed
    return pool_taps(&geometry);
}

static uint64_t pool_backward_flops(const pen_graph *graph, pen_node_id node) {
    pen_conv_geometry geometry;
    const pen_status status =
        pen_pool_backward_geometry(graph, pen_graph_node(graph, node), &geometry);
    PEN_ASSERT(status == PEN_OK); // the shape rule passed
    return pool_taps(&geometry);
}

static uint64_t global_pool_flops(const pen_graph *graph, pen_node_id node) {
    const pen_value_id x = pen_graph_node(graph, node)->inputs[0];
    return (uint64_t)pen_shape_element_count(&pen_value_type(graph, x)->shape);
}

static uint64_t global_pool_backward_flops(const pen_graph *graph, pen_node_id node) {
    const pen_value_id dx = pen_graph_node(graph, node)->outputs[0];
    return (uint64_t)pen_shape_element_count(&pen_value_type(graph, dx)->shape);
}

// The window with its pads resolved. auto_pad overrules ceil_mode, so only explicit pads keep it.
static void pool_window_attributes(const pen_gradient_context *context,
                                   const pen_conv_geometry *geometry,
                                   pen_window_attributes *attributes) {
    const pen_node *node = pen_gradient_node(context);
    const bool round_up = pen_node_int(node, "ceil_mode") != 0 &&
                          strcmp(pen_node_text(node, "auto_pad"), "NOTSET") == 0;
    pen_window_attributes_make(geometry, attributes);
    attributes->given[attributes->count++] = pen_attribute_int("ceil_mode", round_up);
}

static pen_status max_pool_gradient(pen_gradient_context *context) {
    pen_conv_geometry geometry;
    pen_window_attributes attributes;
    PEN_TRY(pen_pool_geometry(pen_gradient_graph(context), pen_gradient_node(context), &geometry));
    pool_window_attributes(context, &geometry, &attributes);
    const pen_gradient_emission emission = {
        .op_name = "max_pool_backward",
        .inputs =
            (const pen_value_id[]){pen_gradient_of_output(context, 0),
                                   pen_gradient_input(context, 0), pen_gradient_output(context, 0)},
        .input_count = 3,
        .attributes = attributes.given,
        .attribute_count = attributes.count,
    };
    return pen_gradient_emit_set(context, &emission);
}

// The gradient needs only sizes, so the input need not be kept for it.
static pen_status average_pool_gradient(pen_gradient_context *context) {
    pen_conv_geometry geometry;
    pen_window_attributes attributes;
    const pen_node *node = pen_gradient_node(context);
    PEN_TRY(pen_pool_geometry(pen_gradient_graph(context), node, &geometry));
    pool_window_attributes(context, &geometry, &attributes);
    const pen_shape input = pen_conv_input_shape(&geometry);
    attributes.given[attributes.count++] =
        pen_attribute_ints("input_shape", input.rank, input.dims);
    attributes.given[attributes.count++] =
        pen_attribute_int("count_include_pad", pen_node_int(node, "count_include_pad"));
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    const pen_gradient_emission emission = {
        .op_name = "average_pool_backward",
        .inputs = &dy,
        .input_count = 1,
        .attributes = attributes.given,
        .attribute_count = attributes.count,
    };
    return pen_gradient_emit_set(context, &emission);
}

static pen_status global_average_pool_gradient(pen_gradient_context *context) {
    const pen_value_id x = pen_gradient_input(context, 0);
    const pen_shape input = pen_value_type(pen_gradient_graph(context), x)->shape;
    const pen_attribute_given attribute = pen_attribute_ints("input_shape", input.rank, input.dims);
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    const pen_gradient_emission emission = {
        .op_name = "global_average_pool_backward",
        .inputs = &dy,
        .input_count = 1,
        .attributes = &attribute,
        .attribute_count = 1,
    };
    return pen_gradient_emit_set(context, &emission);
}

static pen_status global_max_pool_gradient(pen_gradient_context *context) {
    const pen_gradient_emission emission = {
        .op_name = "global_max_pool_backward",
        .inputs =
            (const pen_value_id[]){pen_gradient_of_output(context, 0),
                                   pen_gradient_input(context, 0), pen_gradient_output(context, 0)},
        .input_count = 3,
    };
    return pen_gradient_emit_set(context, &emission);
}

static const pen_attribute_schema max_pool_attributes[] = {
    PEN_TEXT_OR("auto_pad", "NOTSET"), PEN_INT_OR("ceil_mode", 0), PEN_MAY("dilations", INTS),
    PEN_MUST("kernel_shape", INTS),    PEN_MAY("pads", INTS),      PEN_INT_OR("storage_order", 0),
    PEN_MAY("strides", INTS),
};

static const pen_attribute_schema average_pool_attributes[] = {
    PEN_TEXT_OR("auto_pad", "NOTSET"),  PEN_INT_OR("ceil_mode", 0),
    PEN_INT_OR("count_include_pad", 0), PEN_MAY("dilations", INTS),
    PEN_MUST("kernel_shape", INTS),     PEN_MAY("pads", INTS),
    PEN_MAY("strides", INTS),           PEN_MUST("input_shape", INTS), // backward only
};

static const pen_attribute_schema input_shape_attribute[] = {
    PEN_MUST("input_shape", INTS),
};

static const pen_op pooling_ops[] = {
    {"max_pool", "largest element of each window", PEN_TAKES(1, 1), PEN_GIVES(1, 2),
     PEN_ATTRIBUTES(max_pool_attributes), .infer = max_pool_infer, .gradient = max_pool_gradient,
     .flops = pool_flops, .work = PEN_WORK_POOLING, .alike_inputs = 1, .alike_outputs = 1},
    {"average_pool", "mean of each window", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES_BUT_LAST(average_pool_attributes), .infer = average_pool_infer,
     .gradient = average_pool_gradient, .flops = pool_flops, .work = PEN_WORK_POOLING,
     .alike_inputs = 1, .alike_outputs = 1},
    {"global_average_pool", "mean of each channel", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     .infer = global_pool_infer, .gradient = global_average_pool_gradient,
     .flops = global_pool_flops, .work = PEN_WORK_POOLING, .alike_inputs = 1, .alike_outputs = 1},
    {"global_max_pool", "largest element of each channel", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     .infer = global_pool_infer, .gradient = global_max_pool_gradient, .flops = global_pool_flops,
     .work = PEN_WORK_POOLING},
    {"max_pool_backward", "gradient of max_pool from dy, x and y", PEN_TAKES(3, 3), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(max_pool_attributes), .infer = pool_backward_infer,
     .flops = pool_backward_flops, .work = PEN_WORK_POOLING, .alike_inputs = 7, .alike_outputs = 1},
    {"average_pool_backward", "gradient of average_pool from dy", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(average_pool_attributes), .infer = pool_backward_infer,
     .flops = pool_backward_flops, .work = PEN_WORK_POOLING, .alike_inputs = 1, .alike_outputs = 1},
    {"global_average_pool_backward", "gradient of global_average_pool from dy", PEN_TAKES(1, 1),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(input_shape_attribute),
     .infer = global_average_pool_backward_infer, .flops = global_pool_backward_flops,
     .work = PEN_WORK_POOLING},
    {"global_max_pool_backward", "gradient of global_max_pool from dy, x and y", PEN_TAKES(3, 3),
     PEN_GIVES(1, 1), .infer = global_max_pool_backward_infer, .flops = global_pool_backward_flops,
     .work = PEN_WORK_POOLING},
};

PEN_OP_FAMILY(pooling);
