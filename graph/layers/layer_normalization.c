// Normalisations.

#include <inttypes.h>

#include "graph/layers/layer_build.h"
#include "graph/layers/layer_list.h"

// ---- batch

typedef struct batch_normalization_options {
    pen_layer_common common;
    int64_t axis;
    double momentum;
    double epsilon;
    bool center;
    bool scale;
    pen_layer_initializer gamma_initializer;
    pen_layer_initializer beta_initializer;
    pen_layer_initializer moving_mean_initializer;
    pen_layer_initializer moving_variance_initializer;
} batch_normalization_options;

static const pen_option_field batch_normalization_fields[] = {
    PEN_LAYER_COMMON_FIELDS(batch_normalization_options),
    PEN_LAYER_INTEGER(batch_normalization_options, axis, "-1", "the dimension of the channels"),
    PEN_LAYER_NUMBER(batch_normalization_options, momentum, "0.99",
                     "how much of a running statistic stays in a step"),
    PEN_LAYER_NUMBER(batch_normalization_options, epsilon, "0.001", "added to variances"),
    PEN_LAYER_BOOL(batch_normalization_options, center, "true", "whether beta is added"),
    PEN_LAYER_BOOL(batch_normalization_options, scale, "true", "whether gamma is a factor"),
    PEN_LAYER_INITIALIZER(batch_normalization_options, gamma_initializer, "ones"),
    PEN_LAYER_INITIALIZER(batch_normalization_options, beta_initializer, "zeros"),
    PEN_LAYER_INITIALIZER(batch_normalization_options, moving_mean_initializer, "zeros"),
    PEN_LAYER_INITIALIZER(batch_normalization_options, moving_variance_initializer, "ones"),
};
PEN_LAYER_TABLE(batch_normalization, batch_normalization_options, batch_normalization_fields);

// A weight of the channels, or a constant in its place.
static pen_status normalization_weight(pen_layer_builder *builder, const pen_layer_call *call,
                                       const pen_layer_whole_weight *weight, bool is_there,
                                       pen_value_id *out_value) {
    if (is_there) return pen_layer_add_whole_weight(builder, call, weight, out_value);
    const char *name;
    float *numbers = NULL;
    pen_graph *graph = pen_layer_graph(builder);
    const pen_tensor_type type = {PEN_FLOAT32, weight->shape};
    const int64_t count = pen_shape_element_count(&weight->shape);
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), (size_t)count, &numbers));
    PEN_TRY(pen_layer_initialize(weight->contents.initializer, 0, "", &weight->shape, numbers));
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "%s/%s", call->name, weight->name));
    return pen_graph_constant(graph, name, &type, numbers, out_value);
}

static pen_status batch_normalization_weights(pen_layer_builder *builder,
                                              const pen_layer_call *call, int64_t channels,
                                              pen_value_id out_operands[5]) {
    const batch_normalization_options *options = call->options;
    const pen_shape shape = {.rank = 1, .dims = {channels}};
    const pen_layer_whole_weight weights[4] = {
        {"gamma",
         shape,
         NULL,
         {options->scale ? options->gamma_initializer : PEN_LAYER_ONES, false}},
        {"beta",
         shape,
         NULL,
         {options->center ? options->beta_initializer : PEN_LAYER_ZEROS, false}},
        {"moving_mean", shape, NULL, {options->moving_mean_initializer, true}},
        {"moving_variance", shape, NULL, {options->moving_variance_initializer, true}},
    };
    PEN_TRY(normalization_weight(builder, call, &weights[0], options->scale, &out_operands[1]));
    PEN_TRY(normalization_weight(builder, call, &weights[1], options->center, &out_operands[2]));
    PEN_TRY(normalization_weight(builder, call, &weights[2], true, &out_operands[3]));
    return normalization_weight(builder, call, &weights[3], true, &out_operands[4]);
}

// In training, unless the layer is frozen: then Keras takes the running statistics.
static pen_status batch_normalization_node(pen_layer_builder *builder, const pen_layer_call *call,
                                           const pen_value_id operands[5], bool is_unbiased,
                                           pen_value_id *out_value) {
    const batch_normalization_options *options = call->options;
    pen_graph *graph = pen_layer_graph(builder);
    const bool trains = options->common.trainable;
    const pen_attribute_given attributes[] = {
        pen_attribute_float("epsilon", options->epsilon),
        pen_attribute_float("momentum", options->momentum),
        pen_attribute_int("training_mode", trains ? 1 : 0),
        pen_attribute_int("unbiased", is_unbiased && trains ? 1 : 0),
    };
    const pen_layer_node node = {.op = "batch_normalization",
                                 .inputs = operands,
                                 .input_count = 5,
                                 .attributes = attributes,
                                 .attribute_count = 4};
    pen_node_spec spec;
    pen_node_id made;
    PEN_TRY(pen_layer_node_spec(builder, call, &node, &spec));
    spec.output_count = trains ? 5 : 1;
    PEN_TRY(pen_graph_add_node(graph, &spec, &made));
    const pen_value_id *outputs = pen_graph_node(graph, made)->outputs;
    *out_value = outputs[0];
    for (uint32_t i = 1; trains && i <= 2; i++) {
        pen_graph_set_replaces(graph, outputs[i], operands[i + 2]);
    }
    return PEN_OK;
}

pen_status pen_layer_batch_normalization_build(pen_layer_builder *builder,
                                               const pen_layer_call *call,
                                               pen_layer_result *out_result) {
    const batch_normalization_options *options = call->options;
    const pen_shape *shape = &call->inputs[0].shape;
    const int64_t rank = shape->rank;
    const int64_t axis = options->axis < 0 ? options->axis + rank : options->axis;
    if (rank < 2 || rank > 5 || (axis != rank - 1 && axis != 1)) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "axis is %" PRId64 " and its input %s; the last dimension and the second "
                         "are possible, of 2 to 5",
                         options->axis, pen_layer_shape_format(shape, text));
    }
    const pen_layer_format format =
        axis == rank - 1 ? PEN_LAYER_CHANNELS_LAST : PEN_LAYER_CHANNELS_FIRST;
    pen_layer_spatial x;
    pen_value_id operands[5];
    PEN_TRY(pen_layer_take_spatial(builder, call, &call->inputs[0], format, &x));
    PEN_TRY(batch_normalization_weights(builder, call, x.channels, operands));
    operands[0] = x.value;
    // Keras' fused kernels, which it takes for pictures and volumes, have the unbiased variance
    PEN_TRY(batch_normalization_node(builder, call, operands, rank >= 4, &x.value));
    pen_layer_give(out_result, pen_layer_give_spatial(&x, format));
    return PEN_OK;
}
