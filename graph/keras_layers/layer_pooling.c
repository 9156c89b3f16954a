// Pools, over windows and over all of a channel.

#include <string.h>

#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"
#include "graph/keras_layers/layer_window.h"

typedef struct pooling_options {
    pen_layer_common common;
    pen_option_list pool_size;
    pen_option_list strides;
    pen_layer_padding padding;
    pen_layer_format data_format;
} pooling_options;

static const pen_option_field pooling_fields[] = {
    PEN_LAYER_COMMON_FIELDS(pooling_options),
    PEN_LAYER_WINDOW(pooling_options, pool_size, "2", false, "size of the window"),
    PEN_LAYER_WINDOW(pooling_options, strides, NULL, false,
                     "steps of the window; when left out, its size"),
    PEN_LAYER_CHOICE(pooling_options, padding, pen_layer_padding_names, "valid",
                     "same: as many results as inputs, divided by strides"),
    PEN_LAYER_FORMAT(pooling_options),
};
PEN_LAYER_TABLE(pooling, pooling_options, pooling_fields);

static pen_status pooling_build(pen_layer_builder *builder, const pen_layer_call *call,
                                const char *op, pen_layer_result *out_result) {
    static const int64_t ones[PEN_LAYER_SPATIAL_LIMIT] = {1, 1, 1};
    const pooling_options *options = call->options;
    pen_layer_spatial x;
    pen_layer_window window = {.padding = options->padding, .dilations = {1, 1, 1}};
    pen_layer_window_attributes attributes;
    PEN_TRY(pen_layer_take_spatial(builder, call, &call->inputs[0], options->data_format, &x));
    window.rank = x.rank;
    PEN_TRY(pen_layer_sizes(&options->pool_size, "pool_size", x.rank, ones, window.kernel));
    PEN_TRY(pen_layer_sizes(&options->strides, "strides", x.rank, window.kernel, window.strides));
    PEN_TRY(pen_layer_window_resolve(&window, x.sizes, &attributes));
    const pen_layer_node node = {.op = op,
                                 .inputs = &x.value,
                                 .input_count = 1,
                                 .attributes = attributes.given,
                                 .attribute_count = attributes.count};
    pen_value_id value;
    PEN_TRY(pen_layer_add_node(builder, call, &node, &value));
    x.value = value;
    memcpy(x.sizes, attributes.output, sizeof x.sizes);
    pen_layer_give(out_result, pen_layer_give_spatial(&x, options->data_format));
    return PEN_OK;
}

pen_status pen_layer_max_pooling_build(pen_layer_builder *builder, const pen_layer_call *call,
                                       pen_layer_result *out_result) {
    return pooling_build(builder, call, "max_pool", out_result);
}

pen_status pen_layer_average_pooling_build(pen_layer_builder *builder, const pen_layer_call *call,
                                           pen_layer_result *out_result) {
    return pooling_build(builder, call, "average_pool", out_result);
}

// ---- over all

typedef struct global_pooling_options {
    pen_layer_common common;
    pen_layer_format data_format;
    bool keepdims;
} global_pooling_options;

static const pen_option_field global_pooling_fields[] = {
    PEN_LAYER_COMMON_FIELDS(global_pooling_options),
    PEN_LAYER_FORMAT(global_pooling_options),
    PEN_LAYER_BOOL(global_pooling_options, keepdims, "false",
                   "whether dimensions of 1 stay where the others were"),
};
PEN_LAYER_TABLE(global_pooling, global_pooling_options, global_pooling_fields);

static pen_status global_pooling_build(pen_layer_builder *builder, const pen_layer_call *call,
                                       const char *op, pen_layer_result *out_result) {
    const global_pooling_options *options = call->options;
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(builder, call, &call->inputs[0], options->data_format, &x));
    PEN_TRY(pen_layer_map(builder, call, op, NULL, x.value, &x.value));
    for (uint32_t i = 0; i < x.rank; i++) {
        x.sizes[i] = 1;
    }
    pen_layer_tensor result = pen_layer_give_spatial(&x, options->data_format);
    if (!options->keepdims) {
        const pen_shape flat = {.rank = 2, .dims = {PEN_LAYER_BATCH, x.channels}};
        pen_value_id value;
        PEN_TRY(pen_layer_reshape(builder, call, x.value, &flat, "flat", &value));
        result = pen_layer_tensor_make(value, &flat);
    }
    pen_layer_give(out_result, result);
    return PEN_OK;
}

pen_status pen_layer_global_max_pooling_build(pen_layer_builder *builder,
                                              const pen_layer_call *call,
                                              pen_layer_result *out_result) {
    return global_pooling_build(builder, call, "global_max_pool", out_result);
}

// The mean of the steps that count.
static pen_status global_pooling_masked(pen_layer_builder *builder, const pen_layer_call *call,
                                        pen_layer_result *out_result) {
    const global_pooling_options *options = call->options;
    const int64_t steps = 1;
    pen_layer_tensor x;
    pen_value_id operands[2], sums[2];
    if (options->data_format != PEN_LAYER_CHANNELS_LAST) {
        return pen_error(PEN_UNSUPPORTED, "its input has a mask, and channels in front");
    }
    PEN_TRY(pen_layer_plain(builder, call, &call->inputs[0], &x));
    operands[0] = x.value;
    PEN_TRY(pen_layer_mask_column(builder, call, &x, 3, &operands[1]));
    sums[1] = operands[1];
    PEN_TRY(pen_layer_pair(builder, call, "mul", "counts", operands, &sums[0]));
    const pen_attribute_given keep = pen_attribute_int("keepdims", options->keepdims ? 1 : 0);
    PEN_TRY(pen_layer_ints(builder, call, "steps", 1, &steps, &operands[1]));
    for (uint32_t i = 0; i < 2; i++) {
        operands[0] = sums[i];
        const pen_layer_node sum = {.op = "reduce_sum",
                                    .suffix = "sum",
                                    .inputs = operands,
                                    .input_count = 2,
                                    .attributes = &keep,
                                    .attribute_count = 1};
        PEN_TRY(pen_layer_add_node(builder, call, &sum, &sums[i]));
    }
    pen_shape shape = {2, {PEN_LAYER_BATCH, x.shape.dims[2]}};
    if (options->keepdims) shape = (pen_shape){3, {PEN_LAYER_BATCH, 1, x.shape.dims[2]}};
    pen_value_id mean;
    PEN_TRY(pen_layer_pair(builder, call, "div", NULL, sums, &mean));
    pen_layer_give(out_result, pen_layer_tensor_make(mean, &shape));
    return PEN_OK;
}

pen_status pen_layer_global_average_pooling_build(pen_layer_builder *builder,
                                                  const pen_layer_call *call,
                                                  pen_layer_result *out_result) {
    if (call->inputs[0].mask_rank == 2 && call->inputs[0].shape.rank == 3) {
        return global_pooling_masked(builder, call, out_result);
    }
    return global_pooling_build(builder, call, "global_average_pool", out_result);
}
