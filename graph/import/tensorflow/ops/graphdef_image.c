#include "graph/import/tensorflow/ops/graphdef_image.h"

#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_mapping.h"
#include "graph/import/tensorflow/ops/graphdef_broadcast.h"
#include "graph/op.h"

typedef struct image_window {
    bool is_last; // channels are
    int64_t strides[2], dilations[2], kernel[2], pads[4];
    const char *auto_pad;
} image_window;

bool pen_graphdef_image_is_last(const pen_graphdef_draft *draft) {
    const char *format = pen_graphdef_text(draft->node, "data_format", "NHWC");
    return strcmp(format, "NCHW") != 0;
}

// The two sides of a list of one number a dimension; `fallback` where there is none.
static pen_status image_sides(const pen_graphdef_draft *draft, const char *name, bool is_last,
                              int64_t fallback, int64_t out_sides[2]) {
    uint32_t count;
    int64_t *integers;
    const uint32_t first = is_last ? 1 : 2;
    PEN_TRY(pen_graphdef_ints(draft->node, name, draft->arena, &count, &integers));
    out_sides[0] = out_sides[1] = fallback;
    if (count == 0) return PEN_OK;
    if (count != 4) {
        return pen_error(PEN_UNSUPPORTED, "%s has %u numbers; only images (4) are possible", name,
                         count);
    }
    for (uint32_t i = 0; i < 4; i++) {
        if (i == first || i == first + 1) {
            out_sides[i - first] = integers[i];
        } else if (integers[i] != 1) {
            return pen_error(PEN_UNSUPPORTED, "%s is %lld along batch or channels; 1 is possible",
                             name, (long long)integers[i]);
        }
    }
    return PEN_OK;
}

// Explicit numbers come for all four dimensions; which two are the image's depends on the layout.
static pen_status image_padding(const pen_graphdef_draft *draft, image_window *window) {
    const pen_graphdef_node *node = draft->node;
    const char *padding = pen_graphdef_text(node, "padding", "");
    const uint32_t first = window->is_last ? 2 : 4;
    uint32_t count;
    int64_t *pads;
    window->auto_pad = "NOTSET";
    if (strcmp(padding, "SAME") == 0) {
        window->auto_pad = "SAME_UPPER";
        return PEN_OK;
    }
    if (strcmp(padding, "VALID") == 0) return PEN_OK;
    PEN_TRY(pen_graphdef_ints(node, "explicit_paddings", draft->arena, &count, &pads));
    if (strcmp(padding, "EXPLICIT") != 0 || count != 8) {
        return pen_error(PEN_UNSUPPORTED,
                         "padding is '%.32s' with %u numbers; possible are SAME, "
                         "VALID, and EXPLICIT with 8",
                         padding, count);
    }
    window->pads[0] = pads[first];
    window->pads[1] = pads[first + 2];
    window->pads[2] = pads[first + 1];
    window->pads[3] = pads[first + 3];
    return PEN_OK;
}

static pen_status image_window_read(const pen_graphdef_draft *draft, image_window *out_window) {
    image_window window = {.is_last = pen_graphdef_image_is_last(draft)};
    PEN_TRY(image_sides(draft, "strides", window.is_last, 1, window.strides));
    PEN_TRY(image_sides(draft, "dilations", window.is_last, 1, window.dilations));
    PEN_TRY(image_sides(draft, "ksize", window.is_last, 1, window.kernel));
    PEN_TRY(image_padding(draft, &window));
    *out_window = window;
    return PEN_OK;
}

// Adds the op: the attributes that convolutions and pools share, and its own, at most 2.
static pen_status image_give(pen_graphdef_draft *draft, const image_window *window,
                             const char *op_name, pen_graphdef_inputs inputs,
                             pen_node_attributes own) {
    pen_attribute_given attributes[5] = {pen_attribute_ints("strides", 2, window->strides),
                                         pen_attribute_text("auto_pad", window->auto_pad)};
    uint32_t count = 2;
    PEN_ASSERT(own.count <= 2);
    if (strcmp(window->auto_pad, "NOTSET") == 0) {
        attributes[count++] = pen_attribute_ints("pads", 4, window->pads);
    }
    for (uint32_t i = 0; i < own.count; i++) {
        attributes[count++] = own.given[i];
    }
    return pen_graphdef_give_form(draft, window->is_last, op_name, inputs,
                                  (pen_node_attributes){attributes, count});
}

// ---- pads before a convolution

// The node that pads an image with zeros, in one copy, and its pads, of channels first. NULL: the
// value is not of that kind.
static const pen_node *image_padding_node(const pen_graph *graph, pen_value_id value,
                                          int64_t out_pads[8]) {
    uint32_t count = 0;
    const int64_t *pads;
    if (!pen_value_is(value) || pen_graph_value(graph, value)->kind != PEN_VALUE_COMPUTED) {
        return NULL;
    }
    const pen_node *node = pen_graph_node(graph, pen_graph_value(graph, value)->producer);
    if (strcmp(node->op->name, "pad") != 0 || node->input_count != 2) return NULL;
    if (strcmp(pen_node_text(node, "mode"), "constant") != 0) return NULL;
    pen_status_ignore(pen_value_read_ints(graph, node->inputs[1], &count, &pads),
                      "pads that are not constant stay where they are");
    if (count != 8) return NULL;
    memcpy(out_pads, pads, 8 * sizeof *pads);
    const bool is_spatial = pads[0] == 0 && pads[1] == 0 && pads[4] == 0 && pads[5] == 0;
    for (uint32_t i = 0; i < 8; i++) {
        if (pads[i] < 0 || pads[i] > 1 << 20) return NULL;
    }
    return is_spatial ? node : NULL;
}

// A convolution pads by itself what was padded with zeros before it.
static void image_take_pads(const pen_graphdef_draft *draft, image_window *window,
                            pen_graphdef_value *x) {
    pen_graphdef_value inner;
    int64_t pads[8] = {0}, others[8] = {0};
    if (strcmp(window->auto_pad, "NOTSET") != 0) return;
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        const pen_node *node =
            image_padding_node(draft->graphs[copy], x->in[copy], copy == 0 ? pads : others);
        if (node == NULL || (copy > 0 && memcmp(pads, others, sizeof pads) != 0)) return;
        inner.in[copy] = node->inputs[0];
    }
    *x = inner;
    window->pads[0] += pads[2];
    window->pads[1] += pads[3];
    window->pads[2] += pads[6];
    window->pads[3] += pads[7];
}

// ---- convolutions

// Its result is of the images and the filter, in our order of axes. `own`: an attribute of the op
// alone.
static pen_status image_give_filtered(pen_graphdef_draft *draft, const image_window *window,
                                      const char *op_name, const pen_graphdef_value operands[2],
                                      pen_attribute_given own) {
    return image_give(draft, window, op_name, (pen_graphdef_inputs){operands, 2},
                      PEN_WITH(pen_attribute_ints("dilations", 2, window->dilations), own));
}

// Channels of the input that a filter sees, from its shape; -1: not known.
static int64_t image_dimension(const pen_graphdef_draft *draft, const pen_graphdef_value *value,
                               uint32_t axis) {
    const pen_tensor_type *type = pen_graphdef_value_type(draft, value, 0);
    return type == NULL || axis >= type->shape.rank ? -1 : type->shape.dims[axis];
}

static pen_status convert_conv(pen_graphdef_draft *draft) {
    static const int64_t filter_axes[] = {3, 2, 0, 1};
    image_window window;
    pen_graphdef_value operands[2], filter;
    PEN_TRY(image_window_read(draft, &window));
    PEN_TRY(pen_graphdef_operand_form(draft, 0, window.is_last, &operands[0]));
    image_take_pads(draft, &window, &operands[0]);
    PEN_TRY(pen_graphdef_operand(draft, 1, &filter));
    const int64_t channels = image_dimension(draft, &operands[0], 1);
    const int64_t seen = image_dimension(draft, &filter, 2);
    if (channels < 1 || seen < 1 || channels % seen != 0) {
        return pen_error(PEN_UNSUPPORTED,
                         "its filter sees %lld channels of %lld (-1: not known while importing)",
                         (long long)seen, (long long)channels);
    }
    PEN_TRY(pen_graphdef_emit_transpose(draft, "filter", filter, 4, filter_axes, &operands[1]));
    return image_give_filtered(draft, &window, "conv", operands,
                               pen_attribute_int("group", channels / seen));
}

// (height, width, channels, multiples) to (channels * multiples, 1, height, width)
static pen_status convert_depthwise(pen_graphdef_draft *draft) {
    static const int64_t filter_axes[] = {2, 3, 0, 1};
    image_window window;
    pen_graphdef_value operands[2], filter;
    pen_shape shape;
    PEN_TRY(image_window_read(draft, &window));
    PEN_TRY(pen_graphdef_operand_form(draft, 0, window.is_last, &operands[0]));
    image_take_pads(draft, &window, &operands[0]);
    PEN_TRY(pen_graphdef_operand(draft, 1, &filter));
    PEN_TRY(pen_graphdef_value_shape(draft, &filter, &shape));
    if (shape.rank != 4 || shape.dims[0] < 1 || shape.dims[1] < 1 || shape.dims[2] < 1) {
        return pen_error(PEN_UNSUPPORTED, "the shape of its filter is not known");
    }
    const int64_t wanted[] = {-1, 1, shape.dims[0], shape.dims[1]};
    PEN_TRY(pen_graphdef_emit_transpose(draft, "filter", filter, 4, filter_axes, &filter));
    PEN_TRY(pen_graphdef_emit_with_ints(draft, "reshape", "filters", filter,
                                        (pen_graphdef_integers){4, wanted}, &operands[1]));
    return image_give_filtered(draft, &window, "conv", operands,
                               pen_attribute_int("group", shape.dims[2]));
}

// Pads and output padding of a transposed convolution, whose result has `size` along a side.
static pen_status image_transposed_side(int64_t size, int64_t input, int64_t kernel, int64_t stride,
                                        bool is_same, int64_t out_sides[3]) {
    const int64_t limit = (int64_t)1 << 30;
    if (size < 1 || input < 1 || kernel < 1 || stride < 1 || size > limit || input > limit ||
        kernel > limit || stride > limit) {
        return pen_error(PEN_UNSUPPORTED, "a side of %lld by a kernel of %lld with stride %lld",
                         (long long)input, (long long)kernel, (long long)stride);
    }
    const int64_t full = (input - 1) * stride + kernel;
    const int64_t total = is_same ? pen_max_i64(full - size, 0) : 0;
    out_sides[0] = total / 2;
    out_sides[1] = total - total / 2;
    out_sides[2] = size - (full - total);
    if (out_sides[2] >= 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "a side of %lld cannot become one of %lld",
                     (long long)input, (long long)size);
}

// TensorFlow gives the size of the result, we give pads: they are worked out from both.
static pen_status convert_conv_transposed(pen_graphdef_draft *draft) {
    static const int64_t filter_axes[] = {3, 2, 0, 1};
    image_window window;
    pen_graphdef_value operands[2], filter;
    int64_t output_padding[2], side[3];
    const pen_graphdef_ints_known *a, *b;
    PEN_TRY(image_window_read(draft, &window));
    PEN_TRY(pen_graphdef_draft_need(draft, 3));
    a = pen_graphdef_operand_trial(draft, 0, 0);
    b = pen_graphdef_operand_trial(draft, 0, 1);
    PEN_TRY(pen_graphdef_operand(draft, 1, &filter));
    PEN_TRY(pen_graphdef_operand_form(draft, 2, window.is_last, &operands[0]));
    const uint32_t sides_at = window.is_last ? 1 : 2;
    const bool is_same = strcmp(window.auto_pad, "NOTSET") != 0;
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_known = a != NULL && b != NULL && a->count == 4 && b->count == 4 &&
                              a->integers[sides_at + i] == b->integers[sides_at + i];
        if (!is_known) return pen_error(PEN_UNSUPPORTED, "the size of its result is not known");
        PEN_TRY(image_transposed_side(
            a->integers[sides_at + i], image_dimension(draft, &operands[0], 2 + i),
            image_dimension(draft, &filter, i), window.strides[i], is_same, side));
        window.pads[i] += side[0];
        window.pads[2 + i] += side[1];
        output_padding[i] = side[2];
    }
    window.auto_pad = "NOTSET";
    PEN_TRY(pen_graphdef_emit_transpose(draft, "filter", filter, 4, filter_axes, &operands[1]));
    return image_give_filtered(draft, &window, "conv_transpose", operands,
                               pen_attribute_ints("output_padding", 2, output_padding));
}

// ---- pools

static pen_status convert_pool(pen_graphdef_draft *draft) {
    image_window window;
    pen_graphdef_value x;
    PEN_TRY(image_window_read(draft, &window));
    PEN_TRY(pen_graphdef_operand_form(draft, 0, window.is_last, &x));
    return image_give(draft, &window, draft->mapping->op_name, PEN_GRAPHDEF_INPUTS(x),
                      PEN_WITH(pen_attribute_ints("kernel_shape", 2, window.kernel)));
}

// ---- biases

// Channels last need nothing but broadcasting; channels first need the vector turned.
static pen_status convert_bias_add(pen_graphdef_draft *draft) {
    const bool is_last = pen_graphdef_image_is_last(draft);
    bool is_first;
    pen_graphdef_value operands[2];
    uint32_t rank;
    if (is_last) {
        PEN_TRY(pen_graphdef_broadcast(draft, 0, 1, &is_first, operands));
        return pen_graphdef_give_pair(draft, is_first, "add", operands[0], operands[1]);
    }
    PEN_TRY(pen_graphdef_operands(draft, 2, operands));
    if (!pen_graphdef_operand_rank(draft, 0, &rank)) {
        return pen_error(PEN_UNSUPPORTED, "the rank of its operand is not known");
    }
    if (rank == 4) {
        PEN_TRY(pen_graphdef_channel_vector(draft, "channels", operands[1], &operands[1]));
    } else if (rank != 2) {
        return pen_error(PEN_UNSUPPORTED,
                         "channels come first in %u dimensions; 2 and 4 are "
                         "possible",
                         rank);
    }
    return pen_graphdef_give_pair(draft, false, "add", operands[0], operands[1]);
}

// ---- the rest

// TensorFlow's alpha is for each neighbour, ONNX's for all of them.
static pen_status convert_lrn(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    const int64_t radius = pen_graphdef_int(node, "depth_radius", 5);
    if (radius < 0 || radius > 1 << 20) {
        return pen_error(PEN_INVALID_INPUT, "depth_radius is %lld", (long long)radius);
    }
    const int64_t size = 2 * radius + 1;
    const double alpha = pen_graphdef_float(node, "alpha", 1) * (double)size;
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand_first(draft, 0, &x));
    return pen_graphdef_give_form(
        draft, true, "lrn", PEN_GRAPHDEF_INPUTS(x),
        PEN_WITH(pen_attribute_int("size", size), pen_attribute_float("alpha", alpha),
                 pen_attribute_float("beta", pen_graphdef_float(node, "beta", 0.5)),
                 pen_attribute_float("bias", pen_graphdef_float(node, "bias", 1))));
}

static pen_status convert_blocks(pen_graphdef_draft *draft) {
    const bool is_last = pen_graphdef_image_is_last(draft);
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand_form(draft, 0, is_last, &x));
    return pen_graphdef_give_form(
        draft, is_last, draft->mapping->op_name, PEN_GRAPHDEF_INPUTS(x),
        PEN_WITH(pen_attribute_int("blocksize", pen_graphdef_int(draft->node, "block_size", 0))));
}

// ---- other sizes

// What makes `size` of `input` elements, rounded so that the product is not below it.
static float resize_scale(int64_t input, int64_t size) {
    float scale = (float)size / (float)input;
    while ((int64_t)(scale * (float)input) < size) {
        scale = nextafterf(scale, INFINITY);
    }
    return scale;
}

// Our op takes scales. They are chosen so that rounding gives exactly the wanted sizes.
static pen_status resize_scales(pen_graphdef_draft *draft, const pen_graphdef_value *x,
                                pen_graphdef_value *out_value) {
    static const int64_t four = 4;
    const pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, 1, &four);
    const pen_graphdef_ints_known *size;
    pen_shape shape;
    const char *name;
    float *scales;
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &size));
    PEN_TRY(pen_graphdef_value_shape(draft, x, &shape));
    if (size->count != 2 || shape.rank != 4 || shape.dims[2] < 1 || shape.dims[3] < 1 ||
        size->integers[0] < 1 || size->integers[1] < 1 || size->integers[0] > 1 << 20 ||
        size->integers[1] > 1 << 20 || shape.dims[2] > 1 << 20 || shape.dims[3] > 1 << 20) {
        return pen_error(PEN_UNSUPPORTED, "the sizes of its image, or of its result, are not "
                                          "known, or above 2^20");
    }
    PEN_TRY(PEN_NEW(draft->arena, 4, &scales));
    scales[0] = scales[1] = 1;
    scales[2] = resize_scale(shape.dims[2], size->integers[0]);
    scales[3] = resize_scale(shape.dims[3], size->integers[1]);
    PEN_TRY(pen_arena_format(draft->arena, &name, "%s/scales", draft->node->name));
    for (uint32_t copy = 0; copy < PEN_GRAPHDEF_COPIES; copy++) {
        PEN_TRY(pen_graph_constant(draft->graphs[copy], name, &type, scales, &out_value->in[copy]));
    }
    return PEN_OK;
}

static pen_status convert_resize(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    const bool aligns = pen_graphdef_int(node, "align_corners", 0) != 0;
    const bool is_half = pen_graphdef_int(node, "half_pixel_centers", 0) != 0;
    const bool is_linear = strcmp(node->op, "ResizeBilinear") == 0;
    pen_graphdef_value x, scales;
    PEN_TRY(pen_graphdef_operand_first(draft, 0, &x));
    PEN_TRY(resize_scales(draft, &x, &scales));
    return pen_graphdef_give_form(
        draft, true, "resize", PEN_GRAPHDEF_INPUTS(x, PEN_GRAPHDEF_VALUE_NONE, scales),
        PEN_WITH(
            pen_attribute_text("mode", is_linear ? "linear" : "nearest"),
            pen_attribute_text("coordinate_transformation_mode", aligns    ? "align_corners"
                                                                 : is_half ? "half_pixel"
                                                                           : "asymmetric"),
            pen_attribute_text("nearest_mode", aligns || is_half ? "round_prefer_ceil" : "floor")));
}

static const pen_graphdef_mapping image_mappings[] = {
    {.op = "AvgPool", .op_name = "average_pool", .convert = convert_pool},
    {.op = "BiasAdd", .convert = convert_bias_add},
    {.op = "BiasAddV1", .convert = convert_bias_add},
    {.op = "Conv2D", .convert = convert_conv},
    {.op = "Conv2DBackpropInput", .convert = convert_conv_transposed},
    {.op = "DepthToSpace", .op_name = "depth_to_space", .convert = convert_blocks},
    {.op = "DepthwiseConv2dNative", .convert = convert_depthwise},
    {.op = "LRN", .convert = convert_lrn},
    {.op = "MaxPool", .op_name = "max_pool", .convert = convert_pool},
    {.op = "ResizeBilinear", .convert = convert_resize},
    {.op = "ResizeNearestNeighbor", .convert = convert_resize},
    {.op = "SpaceToDepth", .op_name = "space_to_depth", .convert = convert_blocks},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_images, image_mappings);
