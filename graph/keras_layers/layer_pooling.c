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

PEN_LAYER_OPTIONS(pooling, pooling_options,
                  PEN_LAYER_WINDOW(pooling_options, pool_size, "2", false, "size of the window"),
                  PEN_LAYER_WINDOW(pooling_options, strides, NULL, false,
                                   "steps of the window; when left out, its size"),
                  PEN_LAYER_CHOICE(pooling_options, padding, pen_layer_padding_names, "valid",
                                   "same: as many results as inputs, divided by strides"),
                  PEN_LAYER_FORMAT(pooling_options));

static pen_status pooling_build(const pen_layer_call *call, const char *op,
                                pen_layer_result *out_result) {
    static const int64_t ones[PEN_LAYER_SPATIAL_LIMIT] = {1, 1, 1};
    const pooling_options *options = call->options;
    pen_layer_spatial x;
    pen_layer_window window = {.padding = options->padding, .dilations = {1, 1, 1}};
    pen_layer_window_attributes attributes;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], options->data_format, &x));
    window.rank = x.rank;
    PEN_TRY(pen_layer_sizes(&options->pool_size, "pool_size", x.rank, ones, window.kernel));
    PEN_TRY(pen_layer_sizes(&options->strides, "strides", x.rank, window.kernel, window.strides));
    PEN_TRY(pen_layer_window_resolve(&window, x.sizes, &attributes));
    pen_value_id value;
    PEN_TRY(pen_layer_add(call, op, NULL, PEN_INPUTS(x.value),
                          (pen_node_attributes){attributes.given, attributes.count}, &value));
    x.value = value;
    memcpy(x.sizes, attributes.output, sizeof x.sizes);
    return pen_layer_give(out_result, pen_layer_give_spatial(&x, options->data_format));
}

pen_status pen_layer_max_pooling_build(const pen_layer_call *call, pen_layer_result *out_result) {
    return pooling_build(call, "max_pool", out_result);
}

pen_status pen_layer_average_pooling_build(const pen_layer_call *call,
                                           pen_layer_result *out_result) {
    return pooling_build(call, "average_pool", out_result);
}

// ---- over all

typedef struct global_pooling_options {
    pen_layer_common common;
    pen_layer_format data_format;
    bool keepdims;
} global_pooling_options;

PEN_LAYER_OPTIONS(global_pooling, global_pooling_options, PEN_LAYER_FORMAT(global_pooling_options),
                  PEN_LAYER_BOOL(global_pooling_options, keepdims, "false",
                                 "whether dimensions of 1 stay where the others were"));

static pen_status global_pooling_build(const pen_layer_call *call, const char *op,
                                       pen_layer_result *out_result) {
    const global_pooling_options *options = call->options;
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(call, &call->inputs[0], options->data_format, &x));
    PEN_TRY(pen_layer_map(call, op, NULL, x.value, &x.value));
    for (uint32_t i = 0; i < x.rank; i++) {
        x.sizes[i] = 1;
    }
    pen_layer_tensor result = pen_layer_give_spatial(&x, options->data_format);
    if (!options->keepdims) {
        const pen_shape flat = {.rank = 2, .dims = {PEN_LAYER_BATCH, x.channels}};
        pen_value_id value;
        PEN_TRY(pen_layer_reshape(call, x.value, &flat, "flat", &value));
        result = pen_layer_tensor_make(value, &flat);
    }
    return pen_layer_give(out_result, result);
}

pen_status pen_layer_global_max_pooling_build(const pen_layer_call *call,
                                              pen_layer_result *out_result) {
    return global_pooling_build(call, "global_max_pool", out_result);
}

// The mean of the steps that count.
static pen_status global_pooling_masked(const pen_layer_call *call, pen_layer_result *out_result) {
    const global_pooling_options *options = call->options;
    const int64_t steps = 1;
    pen_layer_tensor x;
    pen_value_id operands[2], sums[2];
    if (options->data_format != PEN_LAYER_CHANNELS_LAST) {
        return pen_error(PEN_UNSUPPORTED, "its input has a mask, and channels in front");
    }
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    operands[0] = x.value;
    PEN_TRY(pen_layer_mask_column(call, &x, 3, &operands[1]));
    sums[1] = operands[1];
    PEN_TRY(pen_layer_pair(call, "mul", "counts", operands[0], operands[1], &sums[0]));
    PEN_TRY(pen_layer_ints(call, "steps", 1, &steps, &operands[1]));
    for (uint32_t i = 0; i < 2; i++) {
        operands[0] = sums[i];
        PEN_TRY(pen_layer_add(call, "reduce_sum", "sum", PEN_INPUTS_ALL(operands),
                              PEN_WITH(pen_attribute_int("keepdims", options->keepdims ? 1 : 0)),
                              &sums[i]));
    }
    pen_shape shape = {2, {PEN_LAYER_BATCH, x.shape.dims[2]}};
    if (options->keepdims) shape = (pen_shape){3, {PEN_LAYER_BATCH, 1, x.shape.dims[2]}};
    pen_value_id mean;
    PEN_TRY(pen_layer_pair(call, "div", NULL, sums[0], sums[1], &mean));
    return pen_layer_give(out_result, pen_layer_tensor_make(mean, &shape));
}

pen_status pen_layer_global_average_pooling_build(const pen_layer_call *call,
                                                  pen_layer_result *out_result) {
    if (call->inputs[0].mask_rank == 2 && call->inputs[0].shape.rank == 3) {
        return global_pooling_masked(call, out_result);
    }
    return global_pooling_build(call, "global_average_pool", out_result);
}
