// Ops that sample planes between their elements.
//
//   resize(x, roi, scales, sizes)                  roi, scales and sizes are constants
//   resize_backward(dy, roi, scales, sizes; shape) dy put back by the same weights
//   grid_sample(x, grid)                           x at places that a tensor says, in [-1, 1]
//   grid_sample_backward(dy, grid; shape)          the gradient of x
//   roi_align(x, regions, batch)                   means or maxima over bins of regions
//
// grid_sample has no gradient to its grid, roi_align none to its regions.
//
// flops: 2 for each tap of each element of the (larger) result.

#include <string.h>

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/shared/shape_rule.h"
#include "graph/ops/window/resize_geometry.h"

static pen_status resize_infer(pen_infer_context *context) {
    const pen_tensor_type *x = pen_infer_input(context, 0);
    pen_resize resize;
    PEN_TRY(pen_infer_wrap(context, pen_resize_of(pen_infer_graph(context), pen_infer_node(context),
                                                  &x->shape, &resize)));
    const pen_tensor_type type = {x->element, pen_resize_shape(&resize)};
    if (pen_shape_element_count(&x->shape) == 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the input has no elements");
    }
    return pen_infer_set(context, 0, &type);
}

static pen_status resize_backward_infer(pen_infer_context *context) {
    pen_tensor_type type;
    pen_resize resize;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_shape_attribute(context, "shape", &type));
    PEN_TRY(pen_infer_wrap(context, pen_resize_of(pen_infer_graph(context), pen_infer_node(context),
                                                  &type.shape, &resize)));
    const pen_shape wanted = pen_resize_shape(&resize);
    PEN_TRY(pen_infer_check_shape(context, 0, &wanted));
    return pen_infer_set(context, 0, &type);
}

// "<name>_backward" of dy and the other operands, with the node's attributes and x's shape.
static pen_status sampling_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    const pen_shape shape =
        pen_value_type(pen_gradient_graph(context), pen_gradient_input(context, 0))->shape;
    const pen_attribute_given attribute = pen_attribute_ints("shape", shape.rank, shape.dims);
    pen_value_id operands[4] = {pen_gradient_of_output(context, 0)};
    PEN_ASSERT(node->input_count <= 4);
    for (uint32_t i = 1; i < node->input_count; i++) {
        operands[i] = node->inputs[i];
    }
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .inputs = operands,
                                              .input_count = node->input_count,
                                              .repeats_attributes = true,
                                              .attributes = &attribute,
                                              .attribute_count = 1,
                                          });
}

static pen_status resize_gradient(pen_gradient_context *context) {
    return pen_gradient_needed(context, 0) ? sampling_gradient(context) : PEN_OK;
}

static uint64_t resize_taps(const pen_node *node) {
    const char *mode = pen_node_text(node, "mode");
    if (strcmp(mode, "nearest") == 0) return 1;
    return strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0 ? 16 : 4;
}

static uint64_t resize_flops(const pen_graph *graph, pen_node_id node) {
    return 2 * resize_taps(pen_graph_node(graph, node)) * pen_flops_of_output(graph, node);
}

static uint64_t sampling_backward_flops(const pen_graph *graph, pen_node_id node) {
    return 2 * resize_taps(pen_graph_node(graph, node)) * pen_flops_of_input(graph, node);
}

// ---- grid_sample

// Modes are texts, checked here once, so that kernels may compare them without a last case.
static pen_status grid_check(const pen_infer_context *context, const pen_shape *x) {
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const pen_node *node = pen_infer_node(context);
    const pen_shape *grid = &pen_infer_input(context, 1)->shape;
    bool mode_is_known = false, padding_is_known = false;
    for (uint32_t i = 0; i < 3; i++) {
        mode_is_known |= strcmp(pen_node_text(node, "mode"), modes[i]) == 0;
        padding_is_known |= strcmp(pen_node_text(node, "padding_mode"), paddings[i]) == 0;
    }
    if (!mode_is_known) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "mode is '%.64s'; there are bilinear, nearest, bicubic",
                               pen_node_text(node, "mode"));
    }
    if (!padding_is_known) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "padding_mode is '%.64s'; there are zeros, border, reflection",
                               pen_node_text(node, "padding_mode"));
    }
    const bool fits = x->rank == 4 && grid->rank == 4 && grid->dims[3] == 2 &&
                      grid->dims[0] == x->dims[0] && pen_shape_element_count(x) > 0;
    if (fits) return PEN_OK;
    char text_x[PEN_SHAPE_TEXT_BYTES], text_grid[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "an input of shape %s and a grid of shape %s do not go together; "
                           "[n,c,h,w] and [n,height,width,2] do",
                           pen_shape_format(x, text_x), pen_shape_format(grid, text_grid));
}

static pen_status grid_sample_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_element(context, 1, PEN_ELEMENTS_FLOAT));
    PEN_TRY(grid_check(context, &type.shape));
    type.shape.dims[2] = pen_infer_input(context, 1)->shape.dims[1];
    type.shape.dims[3] = pen_infer_input(context, 1)->shape.dims[2];
    return pen_infer_set(context, 0, &type);
}

static pen_status grid_sample_backward_infer(pen_infer_context *context) {
    pen_tensor_type type;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_shape_attribute(context, "shape", &type));
    PEN_TRY(grid_check(context, &type.shape));
    const pen_shape *grid = &pen_infer_input(context, 1)->shape;
    pen_shape wanted = type.shape;
    wanted.dims[2] = grid->dims[1];
    wanted.dims[3] = grid->dims[2];
    PEN_TRY(pen_infer_check_shape(context, 0, &wanted));
    return pen_infer_set(context, 0, &type);
}

static pen_status grid_sample_gradient(pen_gradient_context *context) {
    if (pen_gradient_needed(context, 1)) {
        return pen_error(PEN_UNSUPPORTED, "grid_sample '%s' has no gradient to its grid",
                         pen_gradient_node(context)->name);
    }
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    return sampling_gradient(context);
}

// ---- roi_align

// Regions and their batch come in two inputs that must agree in number.
static pen_status roi_align_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    pen_tensor_type type = *pen_infer_input(context, 0);
    const pen_shape *regions = &pen_infer_input(context, 1)->shape;
    const pen_shape *batch = &pen_infer_input(context, 2)->shape;
    const int64_t height = pen_node_int(node, "output_height");
    const int64_t width = pen_node_int(node, "output_width");
    const char *mode = pen_node_text(node, "mode");
    const char *coordinate = pen_node_text(node, "coordinate_transformation_mode");
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    PEN_TRY(pen_infer_check_element(context, 2,
                                    PEN_ELEMENT_BIT(PEN_INT64) | PEN_ELEMENT_BIT(PEN_INT32)));
    const bool fits = type.shape.rank == 4 && regions->rank == 2 && regions->dims[1] == 4 &&
                      batch->rank == 1 && batch->dims[0] == regions->dims[0] &&
                      pen_shape_element_count(&type.shape) > 0;
    if (!fits) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the regions have shape %s; [regions,4], with one batch index "
                               "each, and an input of 4 dimensions are needed",
                               pen_shape_format(regions, text));
    }
    if (height < 1 || width < 1 || (strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0) ||
        pen_node_int(node, "sampling_ratio") < 0 || pen_node_int(node, "sampling_ratio") > 1024) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "mode '%.64s', output %lld x %lld, sampling_ratio %lld; avg or max, "
                               "at least 1 x 1, and 0 to 1024 are possible",
                               mode, (long long)height, (long long)width,
                               (long long)pen_node_int(node, "sampling_ratio"));
    }
    if (strcmp(coordinate, "half_pixel") != 0 && strcmp(coordinate, "output_half_pixel") != 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "coordinate_transformation_mode is '%.64s'; there are half_pixel, "
                               "output_half_pixel",
                               coordinate);
    }
    type.shape.dims[0] = regions->dims[0];
    type.shape.dims[2] = height;
    type.shape.dims[3] = width;
    return pen_infer_set(context, 0, &type);
}

#define RESIZE_SCHEMA                                                                              \
    PEN_TEXT_OR("mode", "nearest"), PEN_TEXT_OR("coordinate_transformation_mode", "half_pixel"),   \
        PEN_TEXT_OR("nearest_mode", "round_prefer_floor"), PEN_FLOAT_OR("cubic_coeff_a", -0.75),   \
        PEN_INT_OR("exclude_outside", 0), PEN_FLOAT_OR("extrapolation_value", 0)

#define GRID_SCHEMA                                                                                \
    PEN_TEXT_OR("mode", "bilinear"), PEN_TEXT_OR("padding_mode", "zeros"),                         \
        PEN_INT_OR("align_corners", 0)

static const pen_attribute_schema resize_attributes[] = {
    RESIZE_SCHEMA, PEN_MUST("shape", INTS), // resize_backward only
};
static const pen_attribute_schema grid_attributes[] = {
    GRID_SCHEMA, PEN_MUST("shape", INTS), // the backward op only
};
static const pen_attribute_schema roi_attributes[] = {
    PEN_TEXT_OR("mode", "avg"),      PEN_TEXT_OR("coordinate_transformation_mode", "half_pixel"),
    PEN_INT_OR("output_height", 1),  PEN_INT_OR("output_width", 1),
    PEN_INT_OR("sampling_ratio", 0), PEN_FLOAT_OR("spatial_scale", 1),
};

static const pen_op resize_ops[] = {
    {"resize", "more or fewer elements along each axis, between those there are", PEN_TAKES(1, 4),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES_BUT_LAST(resize_attributes), .constant_inputs = 0xe,
     .infer = resize_infer, .gradient = resize_gradient, .flops = resize_flops},
    {"resize_backward", "gradient of resize", PEN_TAKES(1, 4), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(resize_attributes), .constant_inputs = 0xe, .infer = resize_backward_infer,
     .flops = sampling_backward_flops},
    {"grid_sample", "planes at the places that a grid says", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES_BUT_LAST(grid_attributes), .infer = grid_sample_infer,
     .gradient = grid_sample_gradient, .flops = resize_flops},
    {"grid_sample_backward", "gradient of grid_sample to the planes", PEN_TAKES(2, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(grid_attributes), .infer = grid_sample_backward_infer,
     .flops = sampling_backward_flops},
    {"roi_align", "means or maxima over the bins of regions", PEN_TAKES(3, 3), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(roi_attributes), .infer = roi_align_infer},
};

PEN_OP_FAMILY(resize);
