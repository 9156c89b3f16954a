// A layer for every step of a sequence: steps and batch become one dimension.

#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

#define WRAPPER_OPTIONS_BYTES 960u

typedef struct wrapper_choice {
    unsigned chosen;
    _Alignas(max_align_t) unsigned char options[WRAPPER_OPTIONS_BYTES];
} wrapper_choice;

typedef struct time_distributed_options {
    pen_layer_common common;
    wrapper_choice layer;
} time_distributed_options;

#define WRAPPER_LAYERS(X)                                                                          \
    X(dense, dense, "a matrix product and a bias")                                                 \
    X(activation, activation, "an activation by name")                                             \
    X(dropout, dropout, "drops elements at random in training")                                    \
    X(flatten, flatten, "all dimensions but the batch as one")                                     \
    X(reshape, reshape, "another shape")                                                           \
    X(conv1d, conv1d, "convolution over a sequence")                                               \
    X(conv2d, conv, "convolution over a picture")                                                  \
    X(max_pooling1d, pooling, "largest of each window")                                            \
    X(max_pooling2d, pooling, "largest of each window")                                            \
    X(average_pooling2d, pooling, "mean of each window")                                           \
    X(global_max_pooling2d, global_pooling, "largest of each channel")                             \
    X(global_average_pooling2d, global_pooling, "mean of each channel")                            \
    X(batch_normalization, batch_normalization, "normalises each channel over the batch")          \
    X(layer_normalization, layer_normalization, "normalises each example")                         \
    X(average_pooling1d, pooling, "mean of each window")                                           \
    X(global_max_pooling1d, global_pooling, "largest of each channel")                             \
    X(global_average_pooling1d, global_pooling, "mean of each channel")                            \
    X(conv2d_transpose, conv_transpose, "transposed convolution over a picture")                   \
    X(depthwise_conv2d, depthwise_conv, "convolution of each channel alone")                       \
    X(separable_conv2d, separable_conv, "depthwise convolution, then one over channels")           \
    X(up_sampling2d, up_sampling2d, "each row and column several times")                           \
    X(zero_padding2d, zero_padding, "zeros around")                                                \
    X(leaky_relu, leaky_relu, "x, or alpha x below 0")                                             \
    X(relu, relu, "max(x, 0), with bounds and slopes")                                             \
    X(softmax, softmax, "shares that sum to 1")                                                    \
    X(repeat_vector, repeat_vector, "a row n times")                                               \
    X(rescaling, rescaling, "x * scale + offset")                                                  \
    X(lstm, lstm, "long short-term memory")                                                        \
    X(gru, gru, "gated recurrent unit")                                                            \
    X(simple_rnn, simple_rnn, "the state goes back into itself")                                   \
    X(bidirectional, bidirectional, "a recurrent layer in both directions")

static const pen_layer_index wrapper_layers[] = {
#define WRAPPER_INDEX(symbol, table, says) PEN_LAYER_AT_##symbol,
    WRAPPER_LAYERS(WRAPPER_INDEX)
#undef WRAPPER_INDEX
};

static const pen_option_field wrapper_choice_fields[] = {
#define WRAPPER_FIELD(symbol, options_table, says)                                                 \
    {.key = #symbol,                                                                               \
     .kind = PEN_OPTION_MAPPING,                                                                   \
     .offset = offsetof(wrapper_choice, options),                                                  \
     .table = &pen_layer_##options_table##_options,                                                \
     .help = (says)},
    WRAPPER_LAYERS(WRAPPER_FIELD)
#undef WRAPPER_FIELD
};
static const pen_option_table wrapper_choice_table = {
    PEN_OPTION_FIELDS(wrapper_choice, wrapper_choice_fields),
    .chosen_offset = offsetof(wrapper_choice, chosen),
    .explain = pen_layer_explain_layer,
};

PEN_LAYER_OPTIONS(time_distributed, time_distributed_options,
                  PEN_LAYER_FIELD(time_distributed_options, layer, ONE_OF, "the layer",
                                  .table = &wrapper_choice_table, .is_required = true));

// A reshape in which the first dimension is what the others leave.
static pen_status wrapper_reshape(const pen_layer_call *call, pen_value_id value,
                                  const pen_shape *shape, const char *suffix,
                                  pen_value_id *out_value) {
    pen_value_id dims;
    PEN_TRY(pen_layer_ints(call, "shape", shape->rank, shape->dims, &dims));
    return pen_layer_pair(call, "reshape", suffix, value, dims, out_value);
}

// (batch, steps, …) as (batch * steps, …)
static pen_status wrapper_fold(const pen_layer_call *call, pen_layer_tensor *out_tensor) {
    pen_layer_tensor x;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    pen_shape folded = {.rank = x.shape.rank - 1, .dims = {PEN_LAYER_BATCH}};
    for (uint32_t i = 1; i < folded.rank; i++) {
        folded.dims[i] = x.shape.dims[i + 1];
    }
    *out_tensor = (pen_layer_tensor){.element = x.element, .shape = folded};
    return wrapper_reshape(call, x.value, &folded, "fold", &out_tensor->value);
}

// Steps join the batch while the inner layer runs, and leave it afterwards.
pen_status pen_layer_time_distributed_build(const pen_layer_call *call,
                                            pen_layer_result *out_result) {
    const time_distributed_options *options = call->options;
    const pen_layer *layer = pen_layer_at(wrapper_layers[options->layer.chosen]);
    const pen_shape *shape = &call->inputs[0].shape;
    pen_layer_tensor folded, plain;
    pen_layer_result inner = {.count = 0};
    PEN_ASSERT(layer->options->size <= WRAPPER_OPTIONS_BYTES);
    if (shape->rank < 3 || (layer->input_rank > 0 && layer->input_rank + 1 != shape->rank)) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "its input is %s, expected (batch, steps, …) with what %s reads",
                         pen_layer_shape_format(shape, text), layer->name);
    }
    if (call->inputs[0].mask_rank > 2) {
        return pen_error(PEN_UNSUPPORTED,
                         "the mask of its input has %u dimensions; (batch, steps) "
                         "is possible",
                         call->inputs[0].mask_rank);
    }
    PEN_TRY(wrapper_fold(call, &folded));
    pen_layer_call step = *call;
    step.layer = layer;
    step.options = options->layer.options;
    step.inputs = &folded;
    const pen_layer_common *common = step.options;
    PEN_TRY(layer->build(&step, &inner));
    PEN_TRY(pen_layer_penalize_result(&step, &common->activity_regularizer, &inner.tensors[0]));
    PEN_TRY(pen_layer_plain(&step, &inner.tensors[0], &plain));
    if (plain.shape.rank + 1 > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "its results have too many dimensions");
    }
    pen_layer_tensor result = {.element = plain.element,
                               .shape = {plain.shape.rank + 1, {PEN_LAYER_BATCH, shape->dims[1]}}};
    for (uint32_t i = 1; i < plain.shape.rank; i++) {
        result.shape.dims[i + 1] = plain.shape.dims[i];
    }
    PEN_TRY(wrapper_reshape(call, plain.value, &result.shape, "unfold", &result.value));
    result.mask_rank = call->inputs[0].mask_rank;
    result.mask = call->inputs[0].mask;
    return pen_layer_give(out_result, result);
}
