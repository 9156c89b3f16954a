// Layers that have no family: inputs, dense, shapes, embeddings, masks.

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

// ---- input

typedef struct input_options {
    pen_layer_common common;
    pen_option_list shape;
    unsigned dtype;
} input_options;

// int32 is taken as int64, which is what data of whole numbers are
static const char *const input_element_names[] = {"float32", "int64", "int32", NULL};
static const pen_option_field input_fields[] = {
    PEN_LAYER_COMMON_FIELDS(input_options),
    PEN_LAYER_SIZES(input_options, shape, NULL, true, "its shape, without the batch"),
    PEN_LAYER_CHOICE(input_options, dtype, input_element_names, "float32", "type of its elements"),
};
PEN_LAYER_TABLE(input, input_options, input_fields);

pen_status pen_layer_input_build(pen_layer_builder *builder, const pen_layer_call *call,
                                 pen_layer_result *out_result) {
    static const pen_element_type elements[] = {PEN_FLOAT32, PEN_INT64, PEN_INT64};
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
    pen_layer_weight_options kernel;
    pen_layer_weight_options bias;
} dense_options;

static const pen_option_field dense_fields[] = {
    PEN_LAYER_COMMON_FIELDS(dense_options),
    PEN_LAYER_SIZE(dense_options, units, NULL, "how many results"),
    PEN_LAYER_ACTIVATION(dense_options),
    PEN_LAYER_BOOL(dense_options, use_bias, "true", "whether it adds a bias"),
    PEN_LAYER_WEIGHT(dense_options, kernel, "glorot_uniform"),
    PEN_LAYER_WEIGHT(dense_options, bias, "zeros"),
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
        .contents.options = options->kernel};
    PEN_TRY(pen_layer_add_whole_weight(builder, call, &kernel, &operands[1]));
    if (options->use_bias) {
        const pen_layer_whole_weight bias = {.name = "bias",
                                             .shape = {.rank = 1, .dims = {options->units}},
                                             .contents.options = options->bias};
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

// ---- nothing at all

typedef struct identity_options {
    pen_layer_common common;
} identity_options;

static const pen_option_field identity_fields[] = {
    PEN_LAYER_COMMON_FIELDS(identity_options),
};
PEN_LAYER_TABLE(identity, identity_options, identity_fields);

// ---- again

typedef struct shared_options {
    pen_layer_common common;
    const char *layer;
} shared_options;

static const pen_option_field shared_fields[] = {
    PEN_LAYER_COMMON_FIELDS(shared_options),
    {.key = "layer",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(shared_options, layer),
     .is_required = true,
     .help = "the name of a layer before, which is applied once more"},
};
PEN_LAYER_TABLE(shared, shared_options, shared_fields);

const char *pen_layer_shared_name(const void *options) {
    return ((const shared_options *)options)->layer;
}

// A model applies the layer it names in its place.
pen_status pen_layer_shared_build(pen_layer_builder *builder, const pen_layer_call *call,
                                  pen_layer_result *out_result) {
    (void)builder;
    (void)out_result;
    return pen_error(PEN_INVALID_INPUT, "there is no layer '%.100s' to share here",
                     pen_layer_shared_name(call->options));
}

// ---- what is added to the loss

typedef struct activity_options {
    pen_layer_common common;
    pen_layer_regularizer regularizer;
} activity_options;

static const pen_option_field activity_fields[] = {
    PEN_LAYER_COMMON_FIELDS(activity_options),
    {.key = "l1",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(activity_options, regularizer.l1),
     .minimum = PEN_OPTION_FROM(0),
     .help = "factor of the sum of absolute values"},
    {.key = "l2",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(activity_options, regularizer.l2),
     .minimum = PEN_OPTION_FROM(0),
     .help = "factor of the sum of squares"},
};
PEN_LAYER_TABLE(activity_regularization, activity_options, activity_fields);

pen_status pen_layer_identity_build(pen_layer_builder *builder, const pen_layer_call *call,
                                    pen_layer_result *out_result) {
    (void)builder;
    pen_layer_give(out_result, call->inputs[0]);
    return PEN_OK;
}

pen_status pen_layer_activity_regularization_build(pen_layer_builder *builder,
                                                   const pen_layer_call *call,
                                                   pen_layer_result *out_result) {
    const activity_options *options = call->options;
    pen_layer_give(out_result, call->inputs[0]);
    return pen_layer_penalize_result(builder, call, &options->regularizer, &call->inputs[0]);
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

static pen_status reshape_check_unknown(const pen_option_list *wanted) {
    const int64_t *sizes = wanted->items;
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < wanted->count; i++) {
        unknown += sizes[i] == -1;
    }
    if (unknown <= 1) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "target_shape has %u times -1, expected one -1 at most",
                     unknown);
}

static pen_status reshape_resolve(const pen_layer_tensor *x, const pen_option_list *wanted,
                                  pen_shape *out_shape) {
    const int64_t *sizes = wanted->items;
    const int64_t count = pen_shape_count(&x->shape, 1, x->shape.rank);
    pen_shape shape = {.rank = wanted->count + 1, .dims = {PEN_LAYER_BATCH}};
    int64_t product = 1;
    uint32_t unknown = 0;
    bool is_good = true;
    PEN_TRY(reshape_check_unknown(wanted));
    for (uint32_t i = 0; i < wanted->count; i++) {
        shape.dims[i + 1] = sizes[i];
        if (sizes[i] == -1) {
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
    pen_layer_weight_options embeddings;
    bool mask_zero;
} embedding_options;

static const pen_option_field embedding_fields[] = {
    PEN_LAYER_COMMON_FIELDS(embedding_options),
    PEN_LAYER_SIZE(embedding_options, input_dim, NULL, "how many rows: indices are below"),
    PEN_LAYER_SIZE(embedding_options, output_dim, NULL, "elements of a row"),
    PEN_LAYER_WEIGHT(embedding_options, embeddings, "random_uniform"),
    PEN_LAYER_BOOL(embedding_options, mask_zero, "false",
                   "whether index 0 is padding, which layers behind leave out"),
};
PEN_LAYER_TABLE(embedding, embedding_options, embedding_fields);

// Whether elements differ from a number.
static pen_status core_differs(pen_layer_builder *builder, const pen_layer_call *call,
                               const pen_layer_tensor *x, double number, pen_value_id *out_value) {
    pen_graph *graph = pen_layer_graph(builder);
    const char *name;
    pen_value_id operands[2] = {x->value};
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "%s/mask_value", call->name));
    PEN_TRY(pen_graph_constant_number(graph, name, x->element, number, &operands[1]));
    PEN_TRY(pen_layer_pair(builder, call, "equal", "equal", operands, out_value));
    return pen_layer_map(builder, call, "not", "mask", *out_value, out_value);
}

pen_status pen_layer_embedding_build(pen_layer_builder *builder, const pen_layer_call *call,
                                     pen_layer_result *out_result) {
    const embedding_options *options = call->options;
    pen_layer_tensor x;
    pen_value_id operands[2];
    const pen_layer_whole_weight table = {
        .name = "embeddings",
        .shape = {.rank = 2, .dims = {options->input_dim, options->output_dim}},
        .contents.options = options->embeddings};
    PEN_TRY(pen_layer_plain(builder, call, &call->inputs[0], &x));
    if (x.shape.rank + 1 > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "its input has too many dimensions");
    }
    PEN_TRY(pen_layer_add_whole_weight(builder, call, &table, &operands[0]));
    operands[1] = x.value;
    if (pen_element_is_float(x.element)) { // as Keras does
        PEN_TRY(pen_layer_cast(builder, call, x.value, "int64", &operands[1]));
    }
    pen_layer_tensor result = {.element = PEN_FLOAT32, .shape = x.shape};
    result.shape.dims[result.shape.rank++] = options->output_dim;
    PEN_TRY(pen_layer_pair(builder, call, "gather", NULL, operands, &result.value));
    if (options->mask_zero) {
        result.mask_rank = x.shape.rank;
        PEN_TRY(core_differs(builder, call, &x, 0, &result.mask));
    }
    pen_layer_give(out_result, result);
    return PEN_OK;
}

// ---- masking

typedef struct masking_options {
    pen_layer_common common;
    double mask_value;
} masking_options;

static const pen_option_field masking_fields[] = {
    PEN_LAYER_COMMON_FIELDS(masking_options),
    PEN_LAYER_NUMBER(masking_options, mask_value, "0",
                     "a step of this number alone is left out by layers behind"),
};
PEN_LAYER_TABLE(masking, masking_options, masking_fields);

// Steps with a number that differs count; the others become 0.
pen_status pen_layer_masking_build(pen_layer_builder *builder, const pen_layer_call *call,
                                   pen_layer_result *out_result) {
    const masking_options *options = call->options;
    const int64_t last = -1;
    pen_layer_tensor x;
    pen_value_id operands[2];
    PEN_TRY(pen_layer_plain(builder, call, &call->inputs[0], &x));
    if (x.shape.rank < 3 || x.element != PEN_FLOAT32) {
        return pen_error(PEN_INVALID_INPUT,
                         "its input is no sequence of numbers, (batch, steps, features)");
    }
    PEN_TRY(core_differs(builder, call, &x, options->mask_value, &operands[0]));
    PEN_TRY(pen_layer_cast(builder, call, operands[0], "float32", &operands[0]));
    PEN_TRY(pen_layer_ints(builder, call, "features", 1, &last, &operands[1]));
    const pen_layer_node any = {
        .op = "reduce_max", .suffix = "counts", .inputs = operands, .input_count = 2};
    PEN_TRY(pen_layer_add_node(builder, call, &any, &operands[1]));
    operands[0] = x.value;
    pen_layer_tensor result = x;
    PEN_TRY(pen_layer_pair(builder, call, "mul", NULL, operands, &result.value));
    pen_shape shape = x.shape;
    shape.rank -= 1;
    PEN_TRY(pen_layer_reshape(builder, call, operands[1], &shape, "counts", &result.mask));
    PEN_TRY(pen_layer_cast(builder, call, result.mask, "bool", &result.mask));
    result.mask_rank = shape.rank;
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
