// Layers that have no family: inputs, dense, shapes, embeddings, masks.

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
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
PEN_LAYER_OPTIONS(input, input_options,
                  PEN_LAYER_SIZES(input_options, shape, NULL, true, "its shape, without the batch"),
                  PEN_LAYER_CHOICE(input_options, dtype, input_element_names, "float32",
                                   "type of its elements"));

pen_status pen_layer_input_build(const pen_layer_call *call, pen_layer_result *out_result) {
    static const pen_element_type elements[] = {PEN_FLOAT32, PEN_INT64, PEN_INT64};
    const input_options *options = call->options;
    pen_shape shape = {.rank = options->shape.count};
    pen_layer_tensor tensor;
    const int64_t *sizes = options->shape.items;
    memcpy(shape.dims, sizes, shape.rank * sizeof *sizes);
    PEN_TRY(pen_layer_add_input(call->builder, call->name, elements[options->dtype], &shape,
                                call->source, &tensor));
    return pen_layer_give(out_result, tensor);
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

PEN_LAYER_OPTIONS(dense, dense_options,
                  PEN_LAYER_SIZE(dense_options, units, NULL, "how many results"),
                  PEN_LAYER_ACTIVATION(dense_options),
                  PEN_LAYER_BOOL(dense_options, use_bias, "true", "whether it adds a bias"),
                  PEN_LAYER_WEIGHT(dense_options, kernel, "glorot_uniform"),
                  PEN_LAYER_WEIGHT(dense_options, bias, "zeros"));

// gemm for rows, a product and a sum where there are more dimensions.
static pen_status dense_product(const pen_layer_call *call, pen_value_id operands[3], uint32_t rank,
                                pen_value_id *out_value) {
    const bool has_bias = pen_value_is(operands[2]);
    if (rank == 2) {
        return pen_layer_add(call, "gemm", NULL, (pen_node_inputs){operands, has_bias ? 3 : 2},
                             PEN_NO_ATTRIBUTES, out_value);
    }
    PEN_TRY(pen_layer_add(call, "matmul", NULL, PEN_INPUTS(operands[0], operands[1]),
                          PEN_NO_ATTRIBUTES, out_value));
    if (!has_bias) return PEN_OK;
    return pen_layer_pair(call, "add", "bias_add", *out_value, operands[2], out_value);
}

// Keras stores the kernel as (inputs, units), which is the order of our product: nothing is
// transposed.
pen_status pen_layer_dense_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const dense_options *options = call->options;
    pen_layer_tensor x;
    pen_value_id operands[3] = {PEN_VALUE_NONE, PEN_VALUE_NONE, PEN_VALUE_NONE};
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    const uint32_t rank = x.shape.rank;
    if (rank < 2) return pen_error(PEN_INVALID_INPUT, "its input has no dimension but the batch");
    operands[0] = x.value;
    const pen_layer_whole_weight kernel = {
        .name = "kernel",
        .shape = {.rank = 2, .dims = {x.shape.dims[rank - 1], options->units}},
        .contents.options = options->kernel};
    PEN_TRY(pen_layer_add_whole_weight(call, &kernel, &operands[1]));
    PEN_TRY(pen_layer_add_bias(call, options->use_bias ? &options->bias : NULL, options->units,
                               &operands[2]));
    pen_shape shape = x.shape;
    shape.dims[rank - 1] = options->units;
    pen_value_id value;
    PEN_TRY(dense_product(call, operands, rank, &value));
    pen_layer_tensor result = pen_layer_tensor_make(value, &shape);
    PEN_TRY(pen_layer_activate(call, options->activation, &result, &result));
    return pen_layer_give(out_result, result);
}

// ---- activation

typedef struct activation_options {
    pen_layer_common common;
    pen_layer_activation activation;
} activation_options;

PEN_LAYER_OPTIONS(activation, activation_options,
                  PEN_LAYER_FIELD(activation_options, activation, CHOICE, "which one",
                                  .choices = pen_layer_activation_names, .is_required = true));

pen_status pen_layer_activation_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const activation_options *options = call->options;
    pen_layer_tensor result;
    PEN_TRY(pen_layer_activate(call, options->activation, &call->inputs[0], &result));
    return pen_layer_give(out_result, result);
}

// ---- nothing at all

typedef struct identity_options {
    pen_layer_common common;
} identity_options;

PEN_LAYER_OPTIONS_NONE(identity, identity_options);

// ---- again

typedef struct shared_options {
    pen_layer_common common;
    const char *layer;
} shared_options;

PEN_LAYER_OPTIONS(shared, shared_options,
                  PEN_LAYER_FIELD(shared_options, layer, TEXT,
                                  "the name of a layer before, which is applied once more",
                                  .is_required = true));

const char *pen_layer_shared_name(const void *options) {
    return ((const shared_options *)options)->layer;
}

// A model applies the layer it names in its place.
pen_status pen_layer_shared_build(const pen_layer_call *call, pen_layer_result *out_result) {
    (void)out_result;
    return pen_error(PEN_INVALID_INPUT, "there is no layer '%.100s' to share here",
                     pen_layer_shared_name(call->options));
}

// ---- what is added to the loss

typedef struct activity_options {
    pen_layer_common common;
    pen_layer_regularizer regularizer;
} activity_options;

PEN_LAYER_OPTIONS(activity_regularization, activity_options,
                  {.key = "l1",
                   .kind = PEN_OPTION_NUMBER,
                   .offset = offsetof(activity_options, regularizer.l1),
                   .minimum = PEN_OPTION_FROM(0),
                   .help = "factor of the sum of absolute values"},
                  {.key = "l2",
                   .kind = PEN_OPTION_NUMBER,
                   .offset = offsetof(activity_options, regularizer.l2),
                   .minimum = PEN_OPTION_FROM(0),
                   .help = "factor of the sum of squares"});

pen_status pen_layer_identity_build(const pen_layer_call *call, pen_layer_result *out_result) {
    return pen_layer_give(out_result, call->inputs[0]);
}

pen_status pen_layer_activity_regularization_build(const pen_layer_call *call,
                                                   pen_layer_result *out_result) {
    const activity_options *options = call->options;
    pen_layer_give(out_result, call->inputs[0]);
    return pen_layer_penalize_result(call, &options->regularizer, &call->inputs[0]);
}

// ---- shapes

typedef struct flatten_options {
    pen_layer_common common;
    pen_layer_format data_format;
} flatten_options;

PEN_LAYER_OPTIONS(flatten, flatten_options, PEN_LAYER_FORMAT(flatten_options));

static pen_status shape_give(const pen_layer_call *call, const pen_layer_tensor *tensor,
                             const pen_shape *shape, pen_layer_result *out_result) {
    pen_layer_tensor result = {.element = tensor->element, .shape = *shape};
    PEN_TRY(pen_layer_reshape(call, tensor->value, shape, NULL, &result.value));
    return pen_layer_give(out_result, result);
}

// With channels first, Keras puts the channels last before it flattens.
pen_status pen_layer_flatten_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const flatten_options *options = call->options;
    pen_layer_tensor x;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    const int64_t count = pen_shape_count(&x.shape, 1, x.shape.rank);
    if (options->data_format == PEN_LAYER_CHANNELS_FIRST && x.shape.rank > 2) {
        const uint32_t rank = x.shape.rank;
        int64_t axes[PEN_RANK_LIMIT] = {0};
        for (uint32_t i = 1; i + 1 < rank; i++) {
            axes[i] = i + 1;
        }
        axes[rank - 1] = 1;
        PEN_TRY(pen_layer_transpose(call, x.value, &x.shape, axes, &x.value));
    }
    const pen_shape flat = {.rank = 2, .dims = {PEN_LAYER_BATCH, count}};
    return shape_give(call, &x, &flat, out_result);
}

typedef struct reshape_options {
    pen_layer_common common;
    pen_option_list target_shape;
} reshape_options;

PEN_LAYER_OPTIONS(reshape, reshape_options,
                  PEN_LAYER_FIELD(reshape_options, target_shape, LIST,
                                  "the new shape, without the batch; one dimension may be -1",
                                  .item = &pen_layer_integer_item, .is_list_optional = true,
                                  .count_minimum = 1, .count_maximum = PEN_RANK_LIMIT - 1,
                                  .is_required = true));

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

// One size may be -1; products are compared by division, so that they cannot overflow.
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

pen_status pen_layer_reshape_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const reshape_options *options = call->options;
    pen_layer_tensor x;
    pen_shape shape;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    PEN_TRY(reshape_resolve(&x, &options->target_shape, &shape));
    return shape_give(call, &x, &shape, out_result);
}

typedef struct permute_options {
    pen_layer_common common;
    pen_option_list dims;
} permute_options;

PEN_LAYER_OPTIONS(
    permute, permute_options,
    PEN_LAYER_SIZES(permute_options, dims, NULL, true,
                    "which dimension comes where, counted from 1, without the batch"));

// A set of bits shows that each dimension comes once.
pen_status pen_layer_permute_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const permute_options *options = call->options;
    const int64_t *dims = options->dims.items;
    pen_layer_tensor x;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
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
    PEN_TRY(pen_layer_transpose(call, x.value, &x.shape, axes, &result.value));
    return pen_layer_give(out_result, result);
}

typedef struct repeat_vector_options {
    pen_layer_common common;
    int64_t n;
} repeat_vector_options;

PEN_LAYER_OPTIONS(repeat_vector, repeat_vector_options,
                  PEN_LAYER_SIZE(repeat_vector_options, n, NULL, "how often"));

pen_status pen_layer_repeat_vector_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const repeat_vector_options *options = call->options;
    const pen_layer_tensor *x = &call->inputs[0];
    const int64_t features = x->shape.dims[1];
    const pen_shape row = {.rank = 3, .dims = {PEN_LAYER_BATCH, 1, features}};
    const int64_t repeats[3] = {1, options->n, 1};
    pen_value_id operands[2];
    pen_layer_tensor result = {
        .element = x->element,
        .shape = {.rank = 3, .dims = {PEN_LAYER_BATCH, options->n, features}}};
    PEN_TRY(pen_layer_reshape(call, x->value, &row, "row", &operands[0]));
    PEN_TRY(pen_layer_ints(call, "repeats", 3, repeats, &operands[1]));
    PEN_TRY(pen_layer_pair(call, "tile", NULL, operands[0], operands[1], &result.value));
    return pen_layer_give(out_result, result);
}

// ---- embedding

typedef struct embedding_options {
    pen_layer_common common;
    int64_t input_dim;
    int64_t output_dim;
    pen_layer_weight_options embeddings;
    bool mask_zero;
} embedding_options;

PEN_LAYER_OPTIONS(embedding, embedding_options,
                  PEN_LAYER_SIZE(embedding_options, input_dim, NULL,
                                 "how many rows: indices are below"),
                  PEN_LAYER_SIZE(embedding_options, output_dim, NULL, "elements of a row"),
                  PEN_LAYER_WEIGHT(embedding_options, embeddings, "random_uniform"),
                  PEN_LAYER_BOOL(embedding_options, mask_zero, "false",
                                 "whether index 0 is padding, which layers behind leave out"));

// Whether elements differ from a number.
static pen_status core_differs(const pen_layer_call *call, const pen_layer_tensor *x, double number,
                               pen_value_id *out_value) {
    pen_value_id value;
    PEN_TRY(pen_layer_number_of(call, "mask_value", x->element, number, &value));
    PEN_TRY(pen_layer_pair(call, "equal", "equal", x->value, value, out_value));
    return pen_layer_map(call, "not", "mask", *out_value, out_value);
}

// A gather of rows; with mask_zero, a step of index 0 is masked for the layers behind.
pen_status pen_layer_embedding_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const embedding_options *options = call->options;
    pen_layer_tensor x;
    pen_value_id operands[2];
    const pen_layer_whole_weight table = {
        .name = "embeddings",
        .shape = {.rank = 2, .dims = {options->input_dim, options->output_dim}},
        .contents.options = options->embeddings};
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    if (x.shape.rank + 1 > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "its input has too many dimensions");
    }
    PEN_TRY(pen_layer_add_whole_weight(call, &table, &operands[0]));
    operands[1] = x.value;
    if (pen_element_is_float(x.element)) { // as Keras does
        PEN_TRY(pen_layer_cast(call, x.value, "int64", &operands[1]));
    }
    pen_layer_tensor result = {.element = PEN_FLOAT32, .shape = x.shape};
    result.shape.dims[result.shape.rank++] = options->output_dim;
    PEN_TRY(pen_layer_pair(call, "gather", NULL, operands[0], operands[1], &result.value));
    if (options->mask_zero) {
        result.mask_rank = x.shape.rank;
        PEN_TRY(core_differs(call, &x, 0, &result.mask));
    }
    return pen_layer_give(out_result, result);
}

// ---- masking

typedef struct masking_options {
    pen_layer_common common;
    double mask_value;
} masking_options;

PEN_LAYER_OPTIONS(masking, masking_options,
                  PEN_LAYER_NUMBER(masking_options, mask_value, "0",
                                   "a step of this number alone is left out by layers behind"));

// Steps with a number that differs count; the others become 0.
pen_status pen_layer_masking_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const masking_options *options = call->options;
    const int64_t last = -1;
    pen_layer_tensor x;
    pen_value_id operands[2];
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    if (x.shape.rank < 3 || x.element != PEN_FLOAT32) {
        return pen_error(PEN_INVALID_INPUT,
                         "its input is no sequence of numbers, (batch, steps, features)");
    }
    PEN_TRY(core_differs(call, &x, options->mask_value, &operands[0]));
    PEN_TRY(pen_layer_cast(call, operands[0], "float32", &operands[0]));
    PEN_TRY(pen_layer_ints(call, "features", 1, &last, &operands[1]));
    PEN_TRY(pen_layer_add(call, "reduce_max", "counts", PEN_INPUTS_ALL(operands), PEN_NO_ATTRIBUTES,
                          &operands[1]));
    operands[0] = x.value;
    pen_layer_tensor result = x;
    PEN_TRY(pen_layer_pair(call, "mul", NULL, operands[0], operands[1], &result.value));
    pen_shape shape = x.shape;
    shape.rank -= 1;
    PEN_TRY(pen_layer_reshape(call, operands[1], &shape, "counts", &result.mask));
    PEN_TRY(pen_layer_cast(call, result.mask, "bool", &result.mask));
    result.mask_rank = shape.rank;
    return pen_layer_give(out_result, result);
}

// ---- rescaling

typedef struct rescaling_options {
    pen_layer_common common;
    double scale;
    double offset;
} rescaling_options;

PEN_LAYER_OPTIONS(rescaling, rescaling_options,
                  PEN_LAYER_FIELD(rescaling_options, scale, NUMBER, "factor", .is_required = true),
                  PEN_LAYER_NUMBER(rescaling_options, offset, "0", "what is added then"));

pen_status pen_layer_rescaling_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const rescaling_options *options = call->options;
    pen_layer_tensor tensor = call->inputs[0];
    pen_value_id number;
    PEN_TRY(pen_layer_number(call, "scale", options->scale, &number));
    PEN_TRY(pen_layer_pair(call, "mul", NULL, tensor.value, number, &tensor.value));
    if (options->offset != 0) {
        PEN_TRY(pen_layer_number(call, "offset", options->offset, &number));
        PEN_TRY(pen_layer_pair(call, "add", "add", tensor.value, number, &tensor.value));
    }
    return pen_layer_give(out_result, tensor);
}
