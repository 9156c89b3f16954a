#include "graph/ops/product/convolution_geometry.h"

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/op.h"

// Attributes that describe a window are at most this, so that products of two of them, and sums
// with a size, fit 64 bits.
#define WINDOW_VALUE_LIMIT INT32_MAX

#define WINDOW_AT(geometry, index) (PEN_SPATIAL_LIMIT - (geometry)->spatial_rank + (index))

// Reads an optional list attribute of `count` values in [low, limit] to `out_values`; all of
// `absent` when it is left out.
static pen_status window_read(const pen_node *node, const char *name, uint32_t count, int64_t low,
                              int64_t absent, int64_t *out_values) {
    uint32_t found;
    const int64_t *values = pen_node_ints(node, name, &found);
    if (found != 0 && found != count) {
        return pen_error(PEN_INVALID_INPUT, "%s has %" PRIu32 " values, expected %" PRIu32, name,
                         found, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        out_values[i] = found == 0 ? absent : values[i];
        if (out_values[i] < low || out_values[i] > WINDOW_VALUE_LIMIT) {
            return pen_error(PEN_INVALID_INPUT,
                             "%s is %" PRId64 " at index %" PRIu32 "; it may be %" PRId64 " to %d",
                             name, out_values[i], i, low, WINDOW_VALUE_LIMIT);
        }
    }
    return PEN_OK;
}

// A geometry of trivial dimensions, with the batch, channels and sizes of `input` in place.
static pen_status window_start(pen_conv_geometry *geometry, const pen_shape *input) {
    if (input->rank < 3 || input->rank > 2 + PEN_SPATIAL_LIMIT) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "the input is %s; expected a batch, channels and 1 to %d spatial "
                         "dimensions",
                         pen_shape_format(input, text), PEN_SPATIAL_LIMIT);
    }
    *geometry = (pen_conv_geometry){
        .spatial_rank = input->rank - 2,
        .batch = input->dims[0],
        .input_channels = input->dims[1],
    };
    for (uint32_t i = 0; i < PEN_SPATIAL_LIMIT; i++) {
        geometry->input_size[i] = geometry->output_size[i] = geometry->kernel_size[i] = 1;
        geometry->stride[i] = geometry->dilation[i] = 1;
    }
    for (uint32_t i = 0; i < geometry->spatial_rank; i++) {
        geometry->input_size[WINDOW_AT(geometry, i)] = input->dims[2 + i];
    }
    return PEN_OK;
}

// Reads strides, dilations and explicit pads, once the spatial rank is known.
static pen_status window_read_all(pen_conv_geometry *geometry, const pen_node *node) {
    const uint32_t rank = geometry->spatial_rank;
    const uint32_t first = WINDOW_AT(geometry, 0);
    int64_t pads[2 * PEN_SPATIAL_LIMIT] = {0};
    PEN_TRY(window_read(node, "strides", rank, 1, 1, &geometry->stride[first]));
    PEN_TRY(window_read(node, "dilations", rank, 1, 1, &geometry->dilation[first]));
    PEN_TRY(window_read(node, "pads", 2 * rank, 0, 0, pads));
    for (uint32_t i = 0; i < rank; i++) {
        geometry->pad_begin[first + i] = pads[i];
        geometry->pad_end[first + i] = pads[rank + i];
    }
    return PEN_OK;
}

// The kernel's sizes, from `sizes` if given (a weight's dimensions), which kernel_shape must equal.
static pen_status window_read_kernel(pen_conv_geometry *geometry, const pen_node *node,
                                     const int64_t *sizes) {
    const uint32_t first = WINDOW_AT(geometry, 0);
    if (sizes == NULL && !pen_node_has(node, "kernel_shape")) {
        return pen_error(PEN_INVALID_INPUT, "kernel_shape is missing");
    }
    PEN_TRY(window_read(node, "kernel_shape", geometry->spatial_rank, 1, 1,
                        &geometry->kernel_size[first]));
    for (uint32_t i = 0; sizes != NULL && i < geometry->spatial_rank; i++) {
        const int64_t given = geometry->kernel_size[first + i];
        if (pen_node_has(node, "kernel_shape") && given != sizes[i]) {
            return pen_error(PEN_INVALID_INPUT,
                             "kernel_shape says %" PRId64 " at index %" PRIu32
                             ", the weight has %" PRId64,
                             given, i, sizes[i]);
        }
        if (sizes[i] < 1 || sizes[i] > WINDOW_VALUE_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "the weight's kernel size is %" PRId64, sizes[i]);
        }
        geometry->kernel_size[first + i] = sizes[i];
    }
    return PEN_OK;
}

typedef enum window_auto_pad {
    WINDOW_PAD_EXPLICIT,
    WINDOW_PAD_SAME_UPPER,
    WINDOW_PAD_SAME_LOWER,
    WINDOW_PAD_VALID,
} window_auto_pad;

static pen_status window_read_auto_pad(const pen_node *node, window_auto_pad *out_auto_pad) {
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const char *found = pen_node_text(node, "auto_pad");
    for (uint32_t i = 0; i < 4; i++) {
        if (strcmp(found, names[i]) == 0) {
            *out_auto_pad = (window_auto_pad)i;
            return PEN_OK;
        }
    }
    return pen_error(PEN_INVALID_INPUT,
                     "auto_pad is '%s'; it may be NOTSET, SAME_UPPER, SAME_LOWER or VALID", found);
}

// From its first to its last tap.
static int64_t window_extent(const pen_conv_geometry *geometry, uint32_t d) {
    return (geometry->kernel_size[d] - 1) * geometry->dilation[d] + 1;
}

static void window_split_pads(pen_conv_geometry *geometry, uint32_t d, int64_t total, bool upper) {
    const int64_t smaller = total / 2;
    geometry->pad_begin[d] = upper ? smaller : total - smaller;
    geometry->pad_end[d] = total - geometry->pad_begin[d];
}

// The output's size along `d`, and the pads that auto_pad stands for.
static pen_status window_slide(pen_conv_geometry *geometry, uint32_t d, window_auto_pad auto_pad,
                               bool round_up) {
    const int64_t input = geometry->input_size[d];
    const int64_t stride = geometry->stride[d];
    const int64_t extent = window_extent(geometry, d);
    if (auto_pad == WINDOW_PAD_VALID) geometry->pad_begin[d] = geometry->pad_end[d] = 0;
    if (auto_pad == WINDOW_PAD_SAME_UPPER || auto_pad == WINDOW_PAD_SAME_LOWER) {
        const int64_t output = (input + stride - 1) / stride;
        window_split_pads(geometry, d, pen_max_i64((output - 1) * stride + extent - input, 0),
                          auto_pad == WINDOW_PAD_SAME_UPPER);
    }
    const int64_t room = input + geometry->pad_begin[d] + geometry->pad_end[d] - extent;
    if (input < 1 || room < 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "a window of %" PRId64 " does not fit the input's %" PRId64
                         " with pads %" PRId64 " and %" PRId64,
                         extent, input, geometry->pad_begin[d], geometry->pad_end[d]);
    }
    int64_t output = room / stride + 1;
    if (round_up && auto_pad == WINDOW_PAD_EXPLICIT && room % stride != 0) {
        // as in PyTorch: a window that would begin behind the input and its front pad is left out
        if (output * stride < input + geometry->pad_begin[d]) output += 1;
    }
    geometry->output_size[d] = output;
    return PEN_OK;
}

static pen_status window_slide_all(pen_conv_geometry *geometry, const pen_node *node,
                                   bool round_up) {
    window_auto_pad auto_pad;
    PEN_TRY(window_read_auto_pad(node, &auto_pad));
    for (uint32_t d = WINDOW_AT(geometry, 0); d < PEN_SPATIAL_LIMIT; d++) {
        PEN_TRY(window_slide(geometry, d, auto_pad, round_up));
    }
    return PEN_OK;
}

// Checks groups and channels against a weight (output channels, input channels of a group, …).
static pen_status conv_set_channels(pen_conv_geometry *geometry, const pen_node *node,
                                    int64_t output_channels, int64_t channels_of_group) {
    const int64_t groups = pen_node_int(node, "group");
    const int64_t input_channels = geometry->input_channels;
    if (groups < 1 || groups > WINDOW_VALUE_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "group is %" PRId64 "; it must be at least 1", groups);
    }
    if (input_channels % groups != 0 || input_channels / groups != channels_of_group) {
        return pen_error(PEN_INVALID_INPUT,
                         "%" PRId64 " channels in %" PRId64 " groups do not go with a weight for "
                         "%" PRId64 " channels a group",
                         input_channels, groups, channels_of_group);
    }
    if (output_channels % groups != 0 || output_channels < 1 || channels_of_group < 1) {
        return pen_error(PEN_INVALID_INPUT,
                         "%" PRId64 " output channels cannot be split into %" PRId64 " groups",
                         output_channels, groups);
    }
    geometry->group_count = groups;
    geometry->output_channels = output_channels;
    return PEN_OK;
}

static pen_status conv_check_weight_rank(const pen_shape *input, const pen_shape *weight) {
    if (input->rank == weight->rank) return PEN_OK;
    char input_text[PEN_SHAPE_TEXT_BYTES], weight_text[PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT, "the weight %s does not have as many dimensions as %s",
                     pen_shape_format(weight, weight_text), pen_shape_format(input, input_text));
}

static pen_status conv_make(const pen_node *node, const pen_shape *input, const pen_shape *weight,
                            pen_conv_geometry *geometry) {
    PEN_TRY(window_start(geometry, input));
    PEN_TRY(conv_check_weight_rank(input, weight));
    PEN_TRY(conv_set_channels(geometry, node, weight->dims[0], weight->dims[1]));
    PEN_TRY(window_read_all(geometry, node));
    PEN_TRY(window_read_kernel(geometry, node, &weight->dims[2]));
    return window_slide_all(geometry, node, false);
}

static pen_status conv_read_shape(const pen_node *node, const char *name, pen_shape *out_shape) {
    uint32_t count;
    const int64_t *dims = pen_node_ints(node, name, &count);
    if (count > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s has %" PRIu32 " dimensions", name, count);
    }
    *out_shape = (pen_shape){.rank = count};
    for (uint32_t i = 0; i < count; i++) {
        out_shape->dims[i] = dims[i];
    }
    return PEN_OK;
}

static pen_status conv_expect_output(const pen_conv_geometry *geometry, const pen_shape *found) {
    const pen_shape expected = pen_conv_output_shape(geometry);
    if (pen_shape_equal(&expected, found)) return PEN_OK;
    char expected_text[PEN_SHAPE_TEXT_BYTES], found_text[PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT, "the gradient of the output is %s, expected %s",
                     pen_shape_format(found, found_text),
                     pen_shape_format(&expected, expected_text));
}

pen_status pen_conv_geometry_of(const pen_graph *graph, const pen_node *node,
                                pen_conv_geometry *out_geometry) {
    return conv_make(node, &pen_value_type(graph, node->inputs[0])->shape,
                     &pen_value_type(graph, node->inputs[1])->shape, out_geometry);
}

pen_status pen_conv_backward_input_geometry(const pen_graph *graph, const pen_node *node,
                                            pen_conv_geometry *out_geometry) {
    pen_shape input = {0};
    PEN_TRY(conv_read_shape(node, "input_shape", &input));
    PEN_TRY(conv_make(node, &input, &pen_value_type(graph, node->inputs[1])->shape, out_geometry));
    return conv_expect_output(out_geometry, &pen_value_type(graph, node->inputs[0])->shape);
}

pen_status pen_conv_backward_weight_geometry(const pen_graph *graph, const pen_node *node,
                                             pen_conv_geometry *out_geometry) {
    const pen_shape *input = &pen_value_type(graph, node->inputs[0])->shape;
    const pen_shape *output = &pen_value_type(graph, node->inputs[1])->shape;
    const int64_t groups = pen_node_int(node, "group");
    PEN_TRY(window_start(out_geometry, input));
    if (output->rank != input->rank || groups < 1) {
        return pen_error(PEN_INVALID_INPUT, "the gradient of the output has another rank");
    }
    PEN_TRY(conv_set_channels(out_geometry, node, output->dims[1], input->dims[1] / groups));
    PEN_TRY(window_read_all(out_geometry, node));
    PEN_TRY(window_read_kernel(out_geometry, node, NULL));
    PEN_TRY(window_slide_all(out_geometry, node, false));
    return conv_expect_output(out_geometry, output);
}

// The size of y along spatial dimension `i`: stride * (x - 1) + output_padding + extent - pads.
// Where output_shape gives it, or auto_pad is SAME_…, the pads follow from it instead.
static pen_status conv_transpose_size(pen_conv_geometry *geometry, uint32_t i,
                                      window_auto_pad auto_pad, int64_t output_padding,
                                      int64_t wanted) {
    const uint32_t d = WINDOW_AT(geometry, i);
    const int64_t stride = geometry->stride[d];
    const int64_t reach = stride * (geometry->output_size[d] - 1) + output_padding +
                          window_extent(geometry, d); // without pads
    if (output_padding >= pen_max_i64(stride, geometry->dilation[d])) {
        return pen_error(PEN_INVALID_INPUT,
                         "output_padding %" PRId64 " is not below stride %" PRId64
                         " or dilation %" PRId64,
                         output_padding, stride, geometry->dilation[d]);
    }
    if (auto_pad == WINDOW_PAD_VALID) geometry->pad_begin[d] = geometry->pad_end[d] = 0;
    const bool same = auto_pad == WINDOW_PAD_SAME_UPPER || auto_pad == WINDOW_PAD_SAME_LOWER;
    if (wanted < 0 && same) wanted = geometry->output_size[d] * stride;
    if (wanted >= 0) {
        // a size beyond the reach: zeros behind it
        window_split_pads(geometry, d, pen_max_i64(reach - wanted, 0),
                          auto_pad == WINDOW_PAD_SAME_UPPER);
        geometry->input_size[d] = wanted;
    } else {
        geometry->input_size[d] = reach - geometry->pad_begin[d] - geometry->pad_end[d];
    }
    if (geometry->input_size[d] < 1) {
        return pen_error(PEN_INVALID_INPUT,
                         "the output would have size %" PRId64 " in spatial dimension %" PRIu32,
                         geometry->input_size[d], i);
    }
    return PEN_OK;
}

// output_shape gives the spatial sizes, or all of them.
static pen_status conv_transpose_wanted(const pen_conv_geometry *geometry, const pen_node *node,
                                        int64_t out_wanted[PEN_SPATIAL_LIMIT]) {
    const uint32_t rank = geometry->spatial_rank;
    uint32_t count;
    const int64_t *wanted = pen_node_ints(node, "output_shape", &count);
    if (count != 0 && count != rank && count != rank + 2) {
        return pen_error(PEN_INVALID_INPUT,
                         "output_shape has %" PRIu32 " values, expected %" PRIu32, count, rank);
    }
    for (uint32_t i = 0; i < rank; i++) {
        out_wanted[i] = count == 0 ? -1 : wanted[count - rank + i];
        if (count != 0 && (out_wanted[i] < 1 || out_wanted[i] > WINDOW_VALUE_LIMIT)) {
            return pen_error(PEN_INVALID_INPUT, "output_shape asks for size %" PRId64,
                             out_wanted[i]);
        }
    }
    return PEN_OK;
}

// Described as the convolution whose gradient it is: so the same kernels can run it.
pen_status pen_conv_transpose_geometry(const pen_graph *graph, const pen_node *node,
                                       pen_conv_geometry *out_geometry) {
    const pen_shape *x = &pen_value_type(graph, node->inputs[0])->shape;
    const pen_shape *weight = &pen_value_type(graph, node->inputs[1])->shape;
    const int64_t groups = pen_node_int(node, "group");
    pen_conv_geometry *geometry = out_geometry;
    PEN_TRY(window_start(geometry, x));
    PEN_TRY(conv_check_weight_rank(x, weight));
    if (groups < 1 || weight->dims[0] != x->dims[1] ||
        !pen_i64_mul(weight->dims[1], groups, &geometry->input_channels)) {
        return pen_error(PEN_INVALID_INPUT,
                         "%" PRId64 " channels in %" PRId64
                         " groups do not go with a weight for %" PRId64 " channels",
                         x->dims[1], groups, weight->dims[0]);
    }
    // from here on x is the convolution's output, y its input
    PEN_TRY(conv_set_channels(geometry, node, weight->dims[0], weight->dims[1]));
    PEN_TRY(window_read_all(geometry, node));
    PEN_TRY(window_read_kernel(geometry, node, &weight->dims[2]));
    window_auto_pad auto_pad;
    int64_t output_padding[PEN_SPATIAL_LIMIT] = {0}, wanted[PEN_SPATIAL_LIMIT] = {0};
    PEN_TRY(window_read_auto_pad(node, &auto_pad));
    PEN_TRY(window_read(node, "output_padding", geometry->spatial_rank, 0, 0, output_padding));
    PEN_TRY(conv_transpose_wanted(geometry, node, wanted));
    for (uint32_t i = 0; i < geometry->spatial_rank; i++) {
        if (x->dims[2 + i] < 1 || x->dims[2 + i] > WINDOW_VALUE_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "spatial dimension %" PRIu32 " is %" PRId64, i,
                             x->dims[2 + i]);
        }
        geometry->output_size[WINDOW_AT(geometry, i)] = x->dims[2 + i];
        PEN_TRY(conv_transpose_size(geometry, i, auto_pad, output_padding[i], wanted[i]));
    }
    return PEN_OK;
}

static pen_status pool_make(const pen_node *node, const pen_shape *input,
                            pen_conv_geometry *geometry) {
    PEN_TRY(window_start(geometry, input));
    geometry->group_count = geometry->output_channels = geometry->input_channels;
    PEN_TRY(window_read_all(geometry, node));
    PEN_TRY(window_read_kernel(geometry, node, NULL));
    PEN_TRY(window_slide_all(geometry, node, pen_node_int(node, "ceil_mode") != 0));
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        const int64_t pad = pen_max_i64(geometry->pad_begin[d], geometry->pad_end[d]);
        if (pad >= window_extent(geometry, d)) {
            return pen_error(PEN_INVALID_INPUT,
                             "a pad of %" PRId64 " is not below the window's extent of %" PRId64,
                             pad, window_extent(geometry, d));
        }
    }
    return PEN_OK;
}

pen_status pen_pool_geometry(const pen_graph *graph, const pen_node *node,
                             pen_conv_geometry *out_geometry) {
    return pool_make(node, &pen_value_type(graph, node->inputs[0])->shape, out_geometry);
}

pen_status pen_pool_backward_geometry(const pen_graph *graph, const pen_node *node,
                                      pen_conv_geometry *out_geometry) {
    pen_shape input = {0};
    if (node->input_count > 1) {
        input = pen_value_type(graph, node->inputs[1])->shape;
    } else {
        PEN_TRY(conv_read_shape(node, "input_shape", &input));
    }
    PEN_TRY(pool_make(node, &input, out_geometry));
    return conv_expect_output(out_geometry, &pen_value_type(graph, node->inputs[0])->shape);
}

static pen_shape conv_shape(const pen_conv_geometry *geometry, int64_t first, int64_t second,
                            const int64_t *sizes) {
    pen_shape shape = {geometry->spatial_rank + 2, {first, second}};
    for (uint32_t i = 0; i < geometry->spatial_rank; i++) {
        shape.dims[2 + i] = sizes[WINDOW_AT(geometry, i)];
    }
    return shape;
}

pen_shape pen_conv_input_shape(const pen_conv_geometry *geometry) {
    return conv_shape(geometry, geometry->batch, geometry->input_channels, geometry->input_size);
}

pen_shape pen_conv_output_shape(const pen_conv_geometry *geometry) {
    return conv_shape(geometry, geometry->batch, geometry->output_channels, geometry->output_size);
}

pen_shape pen_conv_weight_shape(const pen_conv_geometry *geometry) {
    return conv_shape(geometry, geometry->output_channels,
                      geometry->input_channels / geometry->group_count, geometry->kernel_size);
}

uint64_t pen_conv_geometry_flops(const pen_conv_geometry *geometry) {
    uint64_t flops = 2 * (uint64_t)geometry->batch * (uint64_t)geometry->output_channels *
                     (uint64_t)(geometry->input_channels / geometry->group_count);
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        flops *= (uint64_t)(geometry->output_size[d] * geometry->kernel_size[d]);
    }
    return flops;
}

void pen_window_attributes_make(const pen_conv_geometry *geometry,
                                pen_window_attributes *out_attributes) {
    const uint32_t rank = geometry->spatial_rank;
    pen_window_attributes *to = out_attributes;
    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t d = WINDOW_AT(geometry, i);
        to->kernel_shape[i] = geometry->kernel_size[d];
        to->strides[i] = geometry->stride[d];
        to->dilations[i] = geometry->dilation[d];
        to->pads[i] = geometry->pad_begin[d];
        to->pads[rank + i] = geometry->pad_end[d];
    }
    to->count = 0;
    to->given[to->count++] = pen_attribute_ints("kernel_shape", rank, to->kernel_shape);
    to->given[to->count++] = pen_attribute_ints("strides", rank, to->strides);
    to->given[to->count++] = pen_attribute_ints("dilations", rank, to->dilations);
    to->given[to->count++] = pen_attribute_ints("pads", 2 * rank, to->pads);
}
