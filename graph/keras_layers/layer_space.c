// Layers that add, drop or repeat rows and columns.

#include <inttypes.h>
#include <string.h>

#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

typedef struct space_options {
    pen_layer_common common;
    pen_option_list padding;
    pen_option_list cropping;
    pen_option_list size;
    pen_layer_format data_format;
    unsigned interpolation;
    int64_t height;
    int64_t width;
} space_options;

static const pen_option_field space_count_item = {
    .kind = PEN_OPTION_INTEGER, .minimum = PEN_OPTION_FROM(0), .maximum = PEN_OPTION_TO(1e9)};

#define SPACE_COUNTS(member, says)                                                                 \
    PEN_LAYER_FIELD(space_options, member, LIST, says, .item = &space_count_item,                  \
                    .is_list_optional = true, .count_minimum = 1,                                  \
                    .count_maximum = 2 * PEN_LAYER_SPATIAL_LIMIT, .default_text = "1")

PEN_LAYER_OPTIONS(zero_padding, space_options,
                  SPACE_COUNTS(padding,
                               "zeros on all sides, of each dimension, or before and after each"),
                  PEN_LAYER_FORMAT(space_options));

PEN_LAYER_OPTIONS(cropping, space_options,
                  SPACE_COUNTS(cropping,
                               "dropped on all sides, of each dimension, or before and after each"),
                  PEN_LAYER_FORMAT(space_options));

PEN_LAYER_OPTIONS(up_sampling, space_options,
                  PEN_LAYER_WINDOW(space_options, size, "2", false,
                                   "how often each row and column stands"),
                  PEN_LAYER_FORMAT(space_options));

enum { SPACE_NEAREST, SPACE_BILINEAR };
static const char *const space_interpolations[] = {"nearest", "bilinear", NULL};
#define SPACE_INTERPOLATION(standard)                                                              \
    PEN_LAYER_CHOICE(space_options, interpolation, space_interpolations, standard,                 \
                     "what stands between the pixels there are")

PEN_LAYER_OPTIONS(up_sampling2d, space_options,
                  PEN_LAYER_WINDOW(space_options, size, "2", false,
                                   "how often each row and column stands"),
                  PEN_LAYER_FORMAT(space_options), SPACE_INTERPOLATION("nearest"));

PEN_LAYER_OPTIONS(resizing, space_options,
                  PEN_LAYER_SIZE(space_options, height, NULL, "rows of the result"),
                  PEN_LAYER_SIZE(space_options, width, NULL, "columns of the result"),
                  SPACE_INTERPOLATION("bilinear"));

PEN_LAYER_OPTIONS(center_crop, space_options,
                  PEN_LAYER_SIZE(space_options, height, NULL, "rows of the result"),
                  PEN_LAYER_SIZE(space_options, width, NULL, "columns of the result"));

// Counts before and after each dimension: from one number, one for each dimension, or all.
static pen_status space_counts(const pen_option_list *given, const char *option, uint32_t rank,
                               int64_t *out_before, int64_t *out_after) {
    const int64_t *numbers = given->items;
    const bool is_whole = given->count == 2 * rank;
    if (given->count != 1 && given->count != rank && !is_whole) {
        return pen_error(PEN_INVALID_INPUT, "%s has %u numbers, expected 1, %u or %u", option,
                         given->count, rank, 2 * rank);
    }
    for (uint32_t i = 0; i < rank; i++) {
        out_before[i] = is_whole ? numbers[2 * i] : numbers[given->count == 1 ? 0 : i];
        out_after[i] = is_whole ? numbers[2 * i + 1] : out_before[i];
    }
    return PEN_OK;
}

pen_status pen_layer_zero_padding_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const space_options *options = call->options;
    int64_t before[PEN_LAYER_SPATIAL_LIMIT], after[PEN_LAYER_SPATIAL_LIMIT];
    int64_t pads[2 * PEN_RANK_LIMIT] = {0};
    pen_value_id counts;
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], options->data_format, &x));
    PEN_TRY(space_counts(&options->padding, "padding", x.rank, before, after));
    for (uint32_t i = 0; i < x.rank; i++) {
        pads[2 + i] = before[i];
        pads[x.rank + 4 + i] = after[i];
        x.sizes[i] += before[i] + after[i];
    }
    PEN_TRY(pen_layer_ints(call, "pads", 2 * (x.rank + 2), pads, &counts));
    PEN_TRY(pen_layer_pair(call, "pad", NULL, x.value, counts, &x.value));
    pen_layer_tensor result = pen_layer_give_spatial(&x, options->data_format);
    result.element = call->inputs[0].element;
    return pen_layer_give(out_result, result);
}

// One slice along all spatial dimensions at once. A dimension of which nothing is left is refused
// here, by its number in the layer: the slice would count batch and channels, too.
pen_status pen_layer_cropping_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const space_options *options = call->options;
    int64_t before[PEN_LAYER_SPATIAL_LIMIT], after[PEN_LAYER_SPATIAL_LIMIT];
    int64_t ends[PEN_LAYER_SPATIAL_LIMIT], axes[PEN_LAYER_SPATIAL_LIMIT];
    pen_value_id bounds[3];
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], options->data_format, &x));
    PEN_TRY(space_counts(&options->cropping, "cropping", x.rank, before, after));
    for (uint32_t i = 0; i < x.rank; i++) {
        if (before[i] + after[i] >= x.sizes[i]) {
            return pen_error(PEN_INVALID_INPUT,
                             "nothing is left of dimension %u, which has %" PRId64 " elements",
                             i + 1, x.sizes[i]);
        }
        ends[i] = x.sizes[i] - after[i];
        axes[i] = i + 2;
        x.sizes[i] -= before[i] + after[i];
    }
    PEN_TRY(pen_layer_ints(call, "starts", x.rank, before, &bounds[0]));
    PEN_TRY(pen_layer_ints(call, "ends", x.rank, ends, &bounds[1]));
    PEN_TRY(pen_layer_ints(call, "axes", x.rank, axes, &bounds[2]));
    PEN_TRY(pen_layer_add(call, "slice", NULL, PEN_INPUTS(x.value, bounds[0], bounds[1], bounds[2]),
                          PEN_NO_ATTRIBUTES, &x.value));
    pen_layer_tensor result = pen_layer_give_spatial(&x, options->data_format);
    result.element = call->inputs[0].element;
    return pen_layer_give(out_result, result);
}

// (n, c, h, w) as (n, c, h, 1, w, 1), tiled, as (n, c, h * size, w * size)
pen_status pen_layer_up_sampling_build(const pen_layer_call *call, pen_layer_result *out_result) {
    static const int64_t ones[PEN_LAYER_SPATIAL_LIMIT] = {1, 1, 1};
    const space_options *options = call->options;
    int64_t size[PEN_LAYER_SPATIAL_LIMIT], repeats[PEN_RANK_LIMIT] = {1, 1};
    pen_value_id counts;
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], options->data_format, &x));
    PEN_TRY(pen_layer_sizes(&options->size, "size", x.rank, ones, size));
    pen_shape wide = {.rank = 2 + 2 * x.rank, .dims = {PEN_LAYER_BATCH, x.channels}};
    pen_shape whole = {.rank = 2 + x.rank, .dims = {PEN_LAYER_BATCH, x.channels}};
    for (uint32_t i = 0; i < x.rank; i++) {
        wide.dims[2 + 2 * i] = x.sizes[i];
        wide.dims[3 + 2 * i] = 1;
        repeats[2 + 2 * i] = 1;
        repeats[3 + 2 * i] = size[i];
        x.sizes[i] *= size[i];
        whole.dims[2 + i] = x.sizes[i];
    }
    PEN_TRY(pen_layer_reshape(call, x.value, &wide, "wide", &x.value));
    PEN_TRY(pen_layer_ints(call, "repeats", wide.rank, repeats, &counts));
    PEN_TRY(pen_layer_pair(call, "tile", NULL, x.value, counts, &x.value));
    PEN_TRY(pen_layer_reshape(call, x.value, &whole, "whole", &x.value));
    return pen_layer_give(out_result, pen_layer_give_spatial(&x, options->data_format));
}

// ---- other sizes

// Pixels stand in the middle of their squares, as TensorFlow's resize has them.
static pen_status space_resize(const pen_layer_call *call, const int64_t *sizes, bool is_bilinear,
                               pen_layer_spatial *io_spatial) {
    const pen_layer_range front = {.axis = 0, .start = 0, .end = 2, .step = 1};
    pen_value_id operands[4] = {io_spatial->value, PEN_VALUE_NONE, PEN_VALUE_NONE}, parts[2];
    PEN_TRY(pen_layer_map(call, "shape", "sizes", io_spatial->value, &parts[0]));
    PEN_TRY(pen_layer_slice(call, parts[0], "front", front, &parts[0]));
    PEN_TRY(pen_layer_ints(call, "sizes", 2, sizes, &parts[1]));
    PEN_TRY(pen_layer_concat(call, "sizes", PEN_INPUTS_ALL(parts), 0, &operands[3]));
    PEN_TRY(
        pen_layer_add(call, "resize", NULL, (pen_node_inputs){operands, 4},
                      PEN_WITH(pen_attribute_text("mode", is_bilinear ? "linear" : "nearest"),
                               pen_attribute_text("coordinate_transformation_mode", "half_pixel"),
                               pen_attribute_text("nearest_mode", "round_prefer_ceil")),
                      &io_spatial->value));
    memcpy(io_spatial->sizes, sizes, 2 * sizeof *sizes);
    return PEN_OK;
}

pen_status pen_layer_up_sampling2d_build(const pen_layer_call *call, pen_layer_result *out_result) {
    static const int64_t ones[PEN_LAYER_SPATIAL_LIMIT] = {1, 1, 1};
    const space_options *options = call->options;
    int64_t size[PEN_LAYER_SPATIAL_LIMIT];
    pen_layer_spatial x;
    if (options->interpolation == SPACE_NEAREST) {
        return pen_layer_up_sampling_build(call, out_result);
    }
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], options->data_format, &x));
    PEN_TRY(pen_layer_sizes(&options->size, "size", x.rank, ones, size));
    for (uint32_t i = 0; i < x.rank; i++) {
        size[i] *= x.sizes[i];
    }
    PEN_TRY(space_resize(call, size, true, &x));
    return pen_layer_give(out_result, pen_layer_give_spatial(&x, options->data_format));
}

pen_status pen_layer_resizing_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const space_options *options = call->options;
    const int64_t sizes[2] = {options->height, options->width};
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], PEN_LAYER_CHANNELS_LAST, &x));
    PEN_TRY(space_resize(call, sizes, options->interpolation == SPACE_BILINEAR, &x));
    return pen_layer_give(out_result, pen_layer_give_spatial(&x, PEN_LAYER_CHANNELS_LAST));
}

// Keras resizes what is too small for the crop; that is refused.
pen_status pen_layer_center_crop_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const space_options *options = call->options;
    const int64_t sizes[2] = {options->height, options->width};
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], PEN_LAYER_CHANNELS_LAST, &x));
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t start = (x.sizes[i] - sizes[i]) / 2;
        const pen_layer_range range = {
            .axis = 2 + i, .start = start, .end = start + sizes[i], .step = 1};
        if (sizes[i] > x.sizes[i]) {
            return pen_error(PEN_UNSUPPORTED,
                             "its input has %" PRId64 " of the %" PRId64 " rows or columns wanted; "
                             "resizing makes more",
                             x.sizes[i], sizes[i]);
        }
        PEN_TRY(pen_layer_slice(call, x.value, "cropped", range, &x.value));
        x.sizes[i] = sizes[i];
    }
    return pen_layer_give(out_result, pen_layer_give_spatial(&x, PEN_LAYER_CHANNELS_LAST));
}
