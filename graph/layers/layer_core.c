// Layers that have no family: inputs, dense, dropout, shapes, embeddings.

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "graph/layers/layer_build.h"
#include "graph/layers/layer_list.h"

// ---- input

typedef struct input_options {
    pen_layer_common common;
    pen_option_list shape;
    unsigned dtype;
} input_options;

static const char *const input_element_names[] = {"float32", "int64", "int32", NULL};
static const pen_option_field input_fields[] = {
    PEN_LAYER_COMMON_FIELDS(input_options),
    PEN_LAYER_SIZES(input_options, shape, NULL, true, "its shape, without the batch"),
    PEN_LAYER_CHOICE(input_options, dtype, input_element_names, "float32", "type of its elements"),
};
PEN_LAYER_TABLE(input, input_options, input_fields);

pen_status pen_layer_input_build(pen_layer_builder *builder, const pen_layer_call *call,
                                 pen_layer_result *out_result) {
    static const pen_element_type elements[] = {PEN_FLOAT32, PEN_INT64, PEN_INT32};
    const input_options *options = call->options;
    pen_shape shape = {.rank = options->shape.count};
    pen_layer_tensor tensor;
    const int64_t *sizes = options->shape.items;
    memcpy(shape.dims, sizes, shape.rank * sizeof *sizes);
    PEN_TRY(pen_layer_add_input(builder, call->name, elements[options->dtype], &shape, call->source,
                                &tensor));
    pen_layer_give(out_result, tensor);
    return PEN_OK;
}

// ---- dense

typedef struct dense_options {
    pen_layer_common common;
    int64_t units;
    pen_layer_activation activation;
    bool use_bias;
    pen_layer_initializer kernel_initializer;
    pen_layer_initializer bias_initializer;
} dense_options;

static const pen_option_field dense_fields[] = {
    PEN_LAYER_COMMON_FIELDS(dense_options),
    PEN_LAYER_SIZE(dense_options, units, NULL, "how many results"),
    PEN_LAYER_ACTIVATION(dense_options),
    PEN_LAYER_BOOL(dense_options, use_bias, "true", "whether it adds a bias"),
    PEN_LAYER_INITIALIZER(dense_options, kernel_initializer, "glorot_uniform"),
    PEN_LAYER_INITIALIZER(dense_options, bias_initializer, "zeros"),
};
PEN_LAYER_TABLE(dense, dense_options, dense_fields);

// gemm for rows, a product and a sum where there are more dimensions.
static pen_status dense_product(pen_layer_builder *builder, const pen_layer_call *call,
                                pen_value_id operands[3], uint32_t rank, pen_value_id *out_value) {
    const bool has_bias = pen_value_is(operands[2]);
    if (rank == 2) {
        const pen_layer_node gemm = {
            .op = "gemm", .inputs = operands, .input_count = has_bias ? 3 : 2};
        return pen_layer_add_node(builder, call, &gemm, out_value);
    }
    const pen_layer_node product = {.op = "matmul", .inputs = operands, .input_count = 2};
    PEN_TRY(pen_layer_add_node(builder, call, &product, out_value));
    if (!has_bias) return PEN_OK;
    const pen_value_id sum[2] = {*out_value, operands[2]};
    return pen_layer_pair(builder, call, "add", "bias_add", sum, out_value);
}

pen_status pen_layer_dense_build(pen_layer_builder *builder, const pen_layer_call *call,
                                 pen_layer_result *out_result) {
    const dense_options *options = call->options;
    pen_layer_tensor x;
    pen_value_id operands[3] = {PEN_VALUE_NONE, PEN_VALUE_NONE, PEN_VALUE_NONE};
    PEN_TRY(pen_layer_plain(builder, call, &call->inputs[0], &x));
    const uint32_t rank = x.shape.rank;
    if (rank < 2) return pen_error(PEN_INVALID_INPUT, "its input has no dimension but the batch");
    operands[0] = x.value;
    const pen_layer_whole_weight kernel = {
        .name = "kernel",
        .shape = {.rank = 2, .dims = {x.shape.dims[rank - 1], options->units}},
        .contents.initializer = options->kernel_initializer};
    PEN_TRY(pen_layer_add_whole_weight(builder, call, &kernel, &operands[1]));
    if (options->use_bias) {
        const pen_layer_whole_weight bias = {.name = "bias",
                                             .shape = {.rank = 1, .dims = {options->units}},
                                             .contents.initializer = options->bias_initializer};
        PEN_TRY(pen_layer_add_whole_weight(builder, call, &bias, &operands[2]));
    }
    pen_shape shape = x.shape;
    shape.dims[rank - 1] = options->units;
    pen_value_id value;
    PEN_TRY(dense_product(builder, call, operands, rank, &value));
    pen_layer_tensor result = pen_layer_tensor_make(value, &shape);
    PEN_TRY(pen_layer_activate(builder, call, options->activation, &result, &result));
    pen_layer_give(out_result, result);
    return PEN_OK;
}

// ---- activation

typedef struct activation_options {
    pen_layer_common common;
    pen_layer_activation activation;
} activation_options;

static const pen_option_field activation_fields[] = {
    PEN_LAYER_COMMON_FIELDS(activation_options),
    {.key = "activation",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(activation_options, activation),
     .choices = pen_layer_activation_names,
     .is_required = true,
     .help = "which one"},
};
PEN_LAYER_TABLE(activation, activation_options, activation_fields);

pen_status pen_layer_activation_build(pen_layer_builder *builder, const pen_layer_call *call,
                                      pen_layer_result *out_result) {
    const activation_options *options = call->options;
    pen_layer_tensor result;
    PEN_TRY(pen_layer_activate(builder, call, options->activation, &call->inputs[0], &result));
    pen_layer_give(out_result, result);
    return PEN_OK;
}

// ---- dropout

typedef struct dropout_options {
    pen_layer_common common;
    double rate;
} dropout_options;

static const pen_option_field dropout_fields[] = {
    PEN_LAYER_COMMON_FIELDS(dropout_options),
    {.key = "rate",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(dropout_options, rate),
     .is_required = true,
     .minimum = PEN_OPTION_FROM(0),
     .maximum = PEN_OPTION_BELOW(1),
     .help = "share of the elements that is dropped"},
};
PEN_LAYER_TABLE(dropout, dropout_options, dropout_fields);

pen_status pen_layer_add_dropout(pen_layer_builder *builder, const pen_layer_call *call,
                                 const char *suffix, double rate, pen_value_id *io_value) {
    if (rate == 0) return PEN_OK;
    pen_node_spec spec;
    pen_node_id node;
    pen_value_id operands[3] = {*io_value};
    const char *training;
    pen_graph *graph = pen_layer_graph(builder);
    PEN_TRY(pen_layer_number(builder, call, "rate", rate, &operands[1]));
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &training, "%s/training", call->name));
    PEN_TRY(pen_graph_constant_number(graph, training, PEN_BOOL, 1, &operands[2]));
    const pen_layer_node dropout = {
        .op = "dropout", .suffix = suffix, .inputs = operands, .input_count = 3};
    PEN_TRY(pen_layer_node_spec(builder, call, &dropout, &spec));
    spec.output_count = 2;
    PEN_TRY(pen_graph_add_node(graph, &spec, &node));
    *io_value = pen_graph_node(graph, node)->outputs[0];
    return PEN_OK;
}

pen_status pen_layer_dropout_build(pen_layer_builder *builder, const pen_layer_call *call,
                                   pen_layer_result *out_result) {
    const dropout_options *options = call->options;
    pen_layer_tensor tensor = call->inputs[0];
    PEN_TRY(pen_layer_add_dropout(builder, call, NULL, options->rate, &tensor.value));
    pen_layer_give(out_result, tensor);
    return PEN_OK;
}

// (batch, channels, 1, …) of ones, whose size the shape of x gives, dropped and multiplied with x.
static pen_status dropout_channels(pen_layer_builder *builder, const pen_layer_call *call,
                                   const pen_layer_spatial *x, pen_value_id *out_value) {
    static const int64_t ones[PEN_LAYER_SPATIAL_LIMIT] = {1, 1, 1};
    const dropout_options *options = call->options;
    const pen_layer_range front = {.axis = 0, .start = 0, .end = 2, .step = 1};
    pen_value_id sizes[2], product[2] = {x->value};
    PEN_TRY(pen_layer_map(builder, call, "shape", "sizes", x->value, &sizes[0]));
    PEN_TRY(pen_layer_slice(builder, call, sizes[0], "front", front, &sizes[0]));
    PEN_TRY(pen_layer_ints(builder, call, "ones", x->rank, ones, &sizes[1]));
    const pen_attribute_given axis = pen_attribute_int("axis", 0);
    const pen_layer_node concat = {.op = "concat",
                                   .suffix = "mask_shape",
                                   .inputs = sizes,
                                   .input_count = 2,
                                   .attributes = &axis,
                                   .attribute_count = 1};
    PEN_TRY(pen_layer_add_node(builder, call, &concat, &sizes[0]));
    const pen_attribute_given one = pen_attribute_float("value", 1);
    const pen_layer_node fill = {.op = "constant_of_shape",
                                 .suffix = "whole",
                                 .inputs = sizes,
                                 .input_count = 1,
                                 .attributes = &one,
                                 .attribute_count = 1};
    PEN_TRY(pen_layer_add_node(builder, call, &fill, &product[1]));
    PEN_TRY(pen_layer_add_dropout(builder, call, "mask", options->rate, &product[1]));
    return pen_layer_pair(builder, call, "mul", NULL, product, out_value);
}

pen_status pen_layer_spatial_dropout_build(pen_layer_builder *builder, const pen_layer_call *call,
                                           pen_layer_result *out_result) {
    const dropout_options *options = call->options;
    if (options->rate == 0) {
        pen_layer_give(out_result, call->inputs[0]);
        return PEN_OK;
    }
    pen_layer_spatial x;
    PEN_TRY(pen_layer_take_spatial(builder, call, &call->inputs[0], PEN_LAYER_CHANNELS_LAST, &x));
    PEN_TRY(dropout_channels(builder, call, &x, &x.value));
    pen_layer_give(out_result, pen_layer_give_spatial(&x, PEN_LAYER_CHANNELS_LAST));
    return PEN_OK;
}

// ---- shapes

typedef struct flatten_options {
    pen_layer_common common;
    pen_layer_format data_format;
} flatten_options;

static const pen_option_field flatten_fields[] = {
    PEN_LAYER_COMMON_FIELDS(flatten_options),
    PEN_LAYER_FORMAT(flatten_options),
};
PEN_LAYER_TABLE(flatten, flatten_options, flatten_fields);

static pen_status shape_give(pen_layer_builder *builder, const pen_layer_call *call,
                             const pen_layer_tensor *tensor, const pen_shape *shape,
                             pen_layer_result *out_result) {
    pen_layer_tensor result = {.element = tensor->element, .shape = *shape};
    PEN_TRY(pen_layer_reshape(builder, call, tensor->value, shape, NULL, &result.value));
    pen_layer_give(out_result, result);
    return PEN_OK;
}

// With channels first, Keras puts the channels last before it flattens.
pen_status pen_layer_flatten_build(pen_layer_builder *builder, const pen_layer_call *call,
                                   pen_layer_result *out_result) {
    const flatten_options *options = call->options;
    pen_layer_tensor x;
    PEN_TRY(pen_layer_plain(builder, call, &call->inputs[0], &x));
    const int64_t count = pen_shape_count(&x.shape, 1, x.shape.rank);
    if (options->data_format == PEN_LAYER_CHANNELS_FIRST && x.shape.rank > 2) {
        const uint32_t rank = x.shape.rank;
        int64_t axes[PEN_RANK_LIMIT] = {0};
        for (uint32_t i = 1; i + 1 < rank; i++) {
            axes[i] = i + 1;
        }
        axes[rank - 1] = 1;
        PEN_TRY(pen_layer_transpose(builder, call, x.value, &x.shape, axes, &x.value));
    }
    const pen_shape flat = {.rank = 2, .dims = {PEN_LAYER_BATCH, count}};
    return shape_give(builder, call, &x, &flat, out_result);
}

typedef struct reshape_options {
    pen_layer_common common;
    pen_option_list target_shape;
} reshape_options;

static const pen_option_field reshape_fields[] = {
    PEN_LAYER_COMMON_FIELDS(reshape_options),
    {.key = "target_shape",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(reshape_options, target_shape),
     .item = &pen_layer_integer_item,
     .is_list_optional = true,
     .count_minimum = 1,
     .count_maximum = PEN_RANK_LIMIT - 1,
     .is_required = true,
     .help = "the new shape, without the batch; one dimension may be -1"},
};
PEN_LAYER_TABLE(reshape, reshape_options, reshape_fields);

static pen_status reshape_resolve(const pen_layer_tensor *x, const pen_option_list *wanted,
                                  pen_shape *out_shape) {
    const int64_t *sizes = wanted->items;
    const int64_t count = pen_shape_count(&x->shape, 1, x->shape.rank);
    pen_shape shape = {.rank = wanted->count + 1, .dims = {PEN_LAYER_BATCH}};
    int64_t product = 1;
    uint32_t unknown = 0;
    bool is_good = true;
    for (uint32_t i = 0; i < wanted->count; i++) {
        shape.dims[i + 1] = sizes[i];
        if (sizes[i] == -1 && unknown == 0) {
            unknown = i + 1;
        } else {
            is_good = is_good && sizes[i] >= 1 && sizes[i] <= count / product;
            if (is_good) product *= sizes[i];
        }
    }
    if (is_good && unknown > 0) shape.dims[unknown] = count / product;
    if (is_good && (unknown > 0 ? count % product == 0 : count == product)) {
        *out_shape = shape;
        return PEN_OK;
    }
    char from[PEN_SHAPE_TEXT_BYTES], to[PEN_SHAPE_TEXT_BYTES];
    memmove(shape.dims, shape.dims + 1, wanted->count * sizeof shape.dims[0]);
    shape.rank -= 1;
    for (uint32_t i = 0; i < wanted->count; i++) {
        shape.dims[i] = sizes[i];
    }
    return pen_error(PEN_INVALID_INPUT,
                     "its input is %s, whose %" PRId64 " elements cannot become %s",
                     pen_layer_shape_format(&x->shape, from), count, pen_shape_format(&shape, to));
}

pen_status pen_layer_reshape_build(pen_layer_builder *builder, const pen_layer_call *call,
                                   pen_layer_result *out_result) {
    const reshape_options *options = call->options;
    pen_layer_tensor x;
    pen_shape shape;
    PEN_TRY(pen_layer_plain(builder, call, &call->inputs[0], &x));
    PEN_TRY(reshape_resolve(&x, &options->target_shape, &shape));
    return shape_give(builder, call, &x, &shape, out_result);
}

typedef struct permute_options {
    pen_layer_common common;
    pen_option_list dims;
} permute_options;

static const pen_option_field permute_fields[] = {
    PEN_LAYER_COMMON_FIELDS(permute_options),
    PEN_LAYER_SIZES(permute_options, dims, NULL, true,
                    "which dimension comes where, counted from 1, without the batch"),
};
PEN_LAYER_TABLE(permute, permute_options, permute_fields);

pen_status pen_layer_permute_build(pen_layer_builder *builder, const pen_layer_call *call,
                                   pen_layer_result *out_result) {
    const permute_options *options = call->options;
    const int64_t *dims = options->dims.items;
    pen_layer_tensor x;
    PEN_TRY(pen_layer_plain(builder, call, &call->inputs[0], &x));
    const uint32_t rank = x.shape.rank;
    int64_t axes[PEN_RANK_LIMIT] = {0};
    pen_shape shape = {.rank = rank, .dims = {PEN_LAYER_BATCH}};
    uint32_t seen = 1;
    for (uint32_t i = 0; i < options->dims.count && i + 1 < rank; i++) {
        if (dims[i] >= rank) break;
        axes[i + 1] = dims[i];
        shape.dims[i + 1] = x.shape.dims[dims[i]];
        seen |= 1u << dims[i];
    }
    if (options->dims.count + 1 != rank || seen != (1u << rank) - 1) {
        return pen_error(PEN_INVALID_INPUT, "dims are not the numbers 1 to %u, once each",
                         rank - 1);
    }
    pen_layer_tensor result = {.element = x.element, .shape = shape};
    PEN_TRY(pen_layer_transpose(builder, call, x.value, &x.shape, axes, &result.value));
    pen_layer_give(out_result, result);
    return PEN_OK;
}

typedef struct repeat_vector_options {
    pen_layer_common common;
    int64_t n;
} repeat_vector_options;

static const pen_option_field repeat_vector_fields[] = {
    PEN_LAYER_COMMON_FIELDS(repeat_vector_options),
    PEN_LAYER_SIZE(repeat_vector_options, n, NULL, "how often"),
};
PEN_LAYER_TABLE(repeat_vector, repeat_vector_options, repeat_vector_fields);

pen_status pen_layer_repeat_vector_build(pen_layer_builder *builder, const pen_layer_call *call,
                                         pen_layer_result *out_result) {
    const repeat_vector_options *options = call->options;
    const pen_layer_tensor *x = &call->inputs[0];
    const int64_t features = x->shape.dims[1];
    const pen_shape row = {.rank = 3, .dims = {PEN_LAYER_BATCH, 1, features}};
    const int64_t repeats[3] = {1, options->n, 1};
    pen_value_id operands[2];
    pen_layer_tensor result = {
        .element = x->element,
        .shape = {.rank = 3, .dims = {PEN_LAYER_BATCH, options->n, features}}};
    PEN_TRY(pen_layer_reshape(builder, call, x->value, &row, "row", &operands[0]));
    PEN_TRY(pen_layer_ints(builder, call, "repeats", 3, repeats, &operands[1]));
    PEN_TRY(pen_layer_pair(builder, call, "tile", NULL, operands, &result.value));
    pen_layer_give(out_result, result);
    return PEN_OK;
}

// ---- embedding

typedef struct embedding_options {
    pen_layer_common common;
    int64_t input_dim;
    int64_t output_dim;
    pen_layer_initializer embeddings_initializer;
} embedding_options;

static const pen_option_field embedding_fields[] = {
    PEN_LAYER_COMMON_FIELDS(embedding_options),
    PEN_LAYER_SIZE(embedding_options, input_dim, NULL, "how many rows: indices are below"),
    PEN_LAYER_SIZE(embedding_options, output_dim, NULL, "elements of a row"),
    PEN_LAYER_INITIALIZER(embedding_options, embeddings_initializer, "random_uniform"),
};
PEN_LAYER_TABLE(embedding, embedding_options, embedding_fields);

pen_status pen_layer_embedding_build(pen_layer_builder *builder, const pen_layer_call *call,
                                     pen_layer_result *out_result) {
    const embedding_options *options = call->options;
    pen_layer_tensor x;
    pen_value_id operands[2];
    const pen_layer_whole_weight table = {
        .name = "embeddings",
        .shape = {.rank = 2, .dims = {options->input_dim, options->output_dim}},
        .contents.initializer = options->embeddings_initializer};
    PEN_TRY(pen_layer_plain(builder, call, &call->inputs[0], &x));
    if (x.shape.rank + 1 > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "its input has too many dimensions");
    }
    PEN_TRY(pen_layer_add_whole_weight(builder, call, &table, &operands[0]));
    operands[1] = x.value;
    if (pen_element_is_float(x.element)) { // as Keras does
        const pen_attribute_given to = pen_attribute_text("to", "int64");
        const pen_layer_node cast = {.op = "cast",
                                     .suffix = "cast",
                                     .inputs = &x.value,
                                     .input_count = 1,
                                     .attributes = &to,
                                     .attribute_count = 1};
        PEN_TRY(pen_layer_add_node(builder, call, &cast, &operands[1]));
    }
    pen_layer_tensor result = {.element = PEN_FLOAT32, .shape = x.shape};
    result.shape.dims[result.shape.rank++] = options->output_dim;
    PEN_TRY(pen_layer_pair(builder, call, "gather", NULL, operands, &result.value));
    pen_layer_give(out_result, result);
    return PEN_OK;
}

// ---- rescaling

typedef struct rescaling_options {
    pen_layer_common common;
    double scale;
    double offset;
} rescaling_options;

static const pen_option_field rescaling_fields[] = {
    PEN_LAYER_COMMON_FIELDS(rescaling_options),
    {.key = "scale",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(rescaling_options, scale),
     .is_required = true,
     .help = "factor"},
    PEN_LAYER_NUMBER(rescaling_options, offset, "0", "what is added then"),
};
PEN_LAYER_TABLE(rescaling, rescaling_options, rescaling_fields);

pen_status pen_layer_rescaling_build(pen_layer_builder *builder, const pen_layer_call *call,
                                     pen_layer_result *out_result) {
    const rescaling_options *options = call->options;
    pen_layer_tensor tensor = call->inputs[0];
    pen_value_id operands[2] = {tensor.value};
    PEN_TRY(pen_layer_number(builder, call, "scale", options->scale, &operands[1]));
    PEN_TRY(pen_layer_pair(builder, call, "mul", NULL, operands, &tensor.value));
    if (options->offset != 0) {
        operands[0] = tensor.value;
        PEN_TRY(pen_layer_number(builder, call, "offset", options->offset, &operands[1]));
        PEN_TRY(pen_layer_pair(builder, call, "add", "add", operands, &tensor.value));
    }
    pen_layer_give(out_result, tensor);
    return PEN_OK;
}
