// Attention, written out; a pass finds it in the graph and makes one operator of it that does not
// store the scores (graph/passes/fuse/fuse_attention.h).

#include <inttypes.h>
#include <math.h>

#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

typedef struct attention_options {
    pen_layer_common common;
    int64_t num_heads;
    int64_t key_dim;
    int64_t value_dim;
    int64_t head_dim; // of heads in groups, as are the next
    int64_t num_query_heads;
    int64_t num_key_value_heads;
    double dropout;
    bool use_bias;
    bool use_scale;
    bool causal;
    unsigned score_mode;
    pen_layer_weight_options kernel;
    pen_layer_weight_options bias;
} attention_options;

// Queries, keys and values, (batch, rows, numbers) or (batch, heads, rows, numbers).
typedef struct attention_parts {
    pen_value_id query;
    pen_value_id key;
    pen_value_id value;
    pen_shape key_shape;
    int64_t query_rows;
    double scale;
    // With masks that scores heed, or NULL: the query, which is left out by rows, then the value
    // and the key, by columns.
    const pen_layer_tensor *masked[3];
} attention_parts;

#define ATTENTION_UNSEEN (-1e9f) // added to the score of what a row may not see

// A large negative number where row i may not see row j > i.
static pen_status attention_causal(const pen_layer_call *call, const attention_parts *parts,
                                   pen_value_id *out_value) {
    const int64_t rows = parts->query_rows;
    const int64_t columns = parts->key_shape.dims[parts->key_shape.rank - 2];
    const pen_shape shape = {2, {rows, columns}};
    float *mask = NULL;
    PEN_TRY(pen_layer_floats(call, "causal_mask", &shape, &mask, out_value));
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = i + 1; j < columns; j++) {
            mask[i * columns + j] = ATTENTION_UNSEEN;
        }
    }
    return PEN_OK;
}

// The same where an element of a mask (batch, rows) does not count, laid along dimension `axis` of
// `rank` scores.
static pen_status attention_padding(const pen_layer_call *call, const pen_layer_tensor *masked,
                                    uint32_t rank, uint32_t axis, pen_value_id *out_value) {
    pen_shape shape = {.rank = rank, .dims = {PEN_LAYER_BATCH}};
    pen_value_id unseen, number;
    if (masked->mask_rank != 2) {
        return pen_error(PEN_INVALID_INPUT,
                         "the mask of an input has %u dimensions, expected (batch, rows)",
                         masked->mask_rank);
    }
    for (uint32_t i = 1; i < rank; i++) {
        shape.dims[i] = i == axis ? masked->shape.dims[1] : 1;
    }
    PEN_TRY(pen_layer_map(call, "not", "unseen", masked->mask, &unseen));
    PEN_TRY(pen_layer_cast(call, unseen, "float32", &unseen));
    PEN_TRY(pen_layer_number(call, "unseen", ATTENTION_UNSEEN, &number));
    PEN_TRY(pen_layer_pair(call, "mul", "unseen", unseen, number, &unseen));
    return pen_layer_reshape(call, unseen, &shape, "unseen", out_value);
}

// What is added to scores: a pair is unseen if any says so.
static pen_status attention_unseen(const pen_layer_call *call, const attention_parts *parts,
                                   pen_value_id *io_scores) {
    const attention_options *options = call->options;
    const uint32_t rank = parts->key_shape.rank;
    pen_value_id all = PEN_VALUE_NONE;
    for (uint32_t i = 0; i < 4; i++) {
        const pen_layer_tensor *masked = i < 3 ? parts->masked[i] : NULL;
        if (i < 3 ? masked == NULL : !options->causal) continue;
        pen_value_id one = PEN_VALUE_NONE;
        PEN_TRY(i == 3 ? attention_causal(call, parts, &one)
                       : attention_padding(call, masked, rank, rank - (i == 0 ? 2 : 1), &one));
        if (pen_value_is(all)) PEN_TRY(pen_layer_pair(call, "min", "unseen", all, one, &one));
        all = one;
    }
    if (!pen_value_is(all)) return PEN_OK;
    return pen_layer_pair(call, "add", "masked", *io_scores, all, io_scores);
}

// softmax(scores) value
static pen_status attention_mix(const pen_layer_call *call, const attention_parts *parts,
                                pen_value_id scores, pen_value_id *out_value) {
    const attention_options *options = call->options;
    pen_value_id shares;
    PEN_TRY(attention_unseen(call, parts, &scores));
    PEN_TRY(pen_layer_add(call, "softmax", "shares", PEN_INPUTS(scores),
                          PEN_WITH(pen_attribute_int("axis", -1)), &shares));
    PEN_TRY(pen_layer_add_dropout(call, "dropout", options->dropout, &shares));
    return pen_layer_pair(call, "matmul", "mixed", shares, parts->value, out_value);
}

// softmax(scale * query key^T) value
static pen_status attention_compute(const pen_layer_call *call, const attention_parts *parts,
                                    pen_value_id *out_value) {
    const uint32_t rank = parts->key_shape.rank;
    int64_t axes[PEN_RANK_LIMIT] = {0};
    pen_value_id turned, scores, scale;
    for (uint32_t i = 0; i < rank; i++) {
        axes[i] = i;
    }
    axes[rank - 2] = rank - 1;
    axes[rank - 1] = rank - 2;
    PEN_TRY(pen_layer_transpose(call, parts->key, &parts->key_shape, axes, &turned));
    PEN_TRY(pen_layer_pair(call, "matmul", "scores", parts->query, turned, &scores));
    if (parts->scale != 1) {
        PEN_TRY(pen_layer_number(call, "scale", parts->scale, &scale));
        PEN_TRY(pen_layer_pair(call, "mul", "scaled", scores, scale, &scores));
    }
    return attention_mix(call, parts, scores, out_value);
}

static pen_status attention_check(const pen_layer_call *call) {
    for (uint32_t i = 0; i < call->input_count; i++) {
        const pen_shape *shape = &call->inputs[i].shape;
        const pen_shape *keys = &call->inputs[call->input_count > 1 ? 1 : 0].shape;
        if (shape->rank == 3 && (i == 0 || shape->dims[1] == keys->dims[1])) continue;
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "input %u is %s, expected (batch, rows, numbers), and as many rows of "
                         "keys as of values",
                         i, pen_layer_shape_format(shape, text));
    }
    return PEN_OK;
}

// Query, value and key: the key is the value, and all are the query, where they are left out.
static pen_status attention_inputs(const pen_layer_call *call, pen_layer_tensor out_inputs[3]) {
    PEN_TRY(attention_check(call));
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t from = i < call->input_count ? i : call->input_count - 1;
        PEN_TRY(pen_layer_plain(call, &call->inputs[from], &out_inputs[i]));
    }
    return PEN_OK;
}

// ---- attention

#define ATTENTION_DROPOUT                                                                          \
    PEN_LAYER_FIELD(attention_options, dropout, NUMBER, "share of the weights that is dropped",    \
                    .default_text = "0", .minimum = PEN_OPTION_FROM(0),                            \
                    .maximum = PEN_OPTION_BELOW(1))

static const char *const attention_modes[] = {"dot", NULL};
PEN_LAYER_OPTIONS(
    attention, attention_options,
    PEN_LAYER_BOOL(attention_options, use_scale, "false", "whether scores have a trained factor"),
    PEN_LAYER_CHOICE(attention_options, score_mode, attention_modes, "dot", "what scores are"),
    ATTENTION_DROPOUT,
    PEN_LAYER_BOOL(attention_options, causal, "false", "whether a row sees those before it only"));

static const pen_layer_tensor *attention_masked(const pen_layer_tensor *tensor) {
    return tensor->mask_rank > 0 ? tensor : NULL;
}

// Rows of the query that do not count become 0.
static pen_status attention_finish(const pen_layer_call *call, const pen_layer_tensor inputs[3],
                                   pen_value_id value, pen_layer_result *out_result) {
    pen_value_id rows;
    pen_shape shape = inputs[0].shape;
    shape.dims[2] = inputs[1].shape.dims[2];
    if (inputs[0].mask_rank > 0) {
        PEN_TRY(pen_layer_mask_column(call, &inputs[0], 3, &rows));
        PEN_TRY(pen_layer_pair(call, "mul", "rows", value, rows, &value));
    }
    return pen_layer_give(out_result, pen_layer_tensor_make(value, &shape));
}

// Attention without projections: one head, scaled by a weight if at all.
pen_status pen_layer_attention_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const attention_options *options = call->options;
    pen_layer_tensor inputs[3];
    PEN_TRY(attention_inputs(call, inputs));
    attention_parts parts = {.query = inputs[0].value,
                             .value = inputs[1].value,
                             .key = inputs[2].value,
                             .key_shape = inputs[2].shape,
                             .query_rows = inputs[0].shape.dims[1],
                             .scale = 1,
                             .masked = {NULL, attention_masked(&inputs[1]), NULL}};
    if (options->use_scale) {
        const pen_layer_whole_weight scale = {.name = "scale",
                                              .contents.options.initializer.kind = PEN_LAYER_ONES};
        pen_value_id factor;
        PEN_TRY(pen_layer_add_whole_weight(call, &scale, &factor));
        PEN_TRY(pen_layer_pair(call, "mul", "scaled_query", parts.query, factor, &parts.query));
    }
    pen_value_id value;
    PEN_TRY(attention_compute(call, &parts, &value));
    return attention_finish(call, inputs, value, out_result);
}

// ---- additive

PEN_LAYER_OPTIONS(additive_attention, attention_options,
                  PEN_LAYER_BOOL(attention_options, use_scale, "true",
                                 "whether scores have trained factors"),
                  ATTENTION_DROPOUT,
                  PEN_LAYER_BOOL(attention_options, causal, "false",
                                 "whether a row sees those before it only"));

// Bahdanau et al., "Neural Machine Translation by Jointly Learning to Align and Translate", 2015:
// the score of a pair is the sum of scale * tanh(query + key).
pen_status pen_layer_additive_attention_build(const pen_layer_call *call,
                                              pen_layer_result *out_result) {
    const attention_options *options = call->options;
    pen_layer_tensor inputs[3];
    PEN_TRY(attention_inputs(call, inputs));
    const int64_t width = inputs[0].shape.dims[2];
    const int64_t rows = inputs[0].shape.dims[1], columns = inputs[2].shape.dims[1], last = -1;
    const attention_parts parts = {.value = inputs[1].value,
                                   .key_shape = inputs[2].shape,
                                   .query_rows = rows,
                                   .masked = {NULL, attention_masked(&inputs[1]), NULL}};
    const pen_shape apart[2] = {{4, {PEN_LAYER_BATCH, rows, 1, width}},
                                {4, {PEN_LAYER_BATCH, 1, columns, width}}};
    pen_value_id operands[2], scores;
    if (inputs[2].shape.dims[2] != width) {
        return pen_error(PEN_INVALID_INPUT,
                         "its query has %" PRId64 " numbers, and its key %" PRId64, width,
                         inputs[2].shape.dims[2]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        PEN_TRY(pen_layer_reshape(call, inputs[2 * i].value, &apart[i], "apart", &operands[i]));
    }
    PEN_TRY(pen_layer_pair(call, "add", "pairs", operands[0], operands[1], &scores));
    PEN_TRY(pen_layer_map(call, "tanh", "pairs", scores, &operands[0]));
    if (options->use_scale) {
        const pen_layer_whole_weight scale = {.name = "scale",
                                              .shape = {1, {width}},
                                              .contents.options.initializer.kind =
                                                  PEN_LAYER_GLOROT_UNIFORM};
        PEN_TRY(pen_layer_add_whole_weight(call, &scale, &operands[1]));
        PEN_TRY(pen_layer_pair(call, "mul", "scaled", operands[0], operands[1], &operands[0]));
    }
    PEN_TRY(pen_layer_ints(call, "numbers", 1, &last, &operands[1]));
    PEN_TRY(pen_layer_add(call, "reduce_sum", "scores", PEN_INPUTS_ALL(operands),
                          PEN_WITH(pen_attribute_int("keepdims", 0)), &scores));
    PEN_TRY(attention_mix(call, &parts, scores, &operands[0]));
    return attention_finish(call, inputs, operands[0], out_result);
}

// ---- several heads

PEN_LAYER_OPTIONS(
    multi_head_attention, attention_options,
    PEN_LAYER_SIZE(attention_options, num_heads, NULL, "how many heads"),
    PEN_LAYER_SIZE(attention_options, key_dim, NULL, "numbers of a head's queries and keys"),
    PEN_LAYER_FIELD(attention_options, value_dim, INTEGER,
                    "numbers of a head's values; when left out, as of keys",
                    .minimum = PEN_OPTION_FROM(1), .maximum = PEN_OPTION_TO(1e9)),
    ATTENTION_DROPOUT,
    PEN_LAYER_BOOL(attention_options, use_bias, "true", "whether its products add a bias"),
    PEN_LAYER_BOOL(attention_options, causal, "false", "whether a row sees those before it only"),
    PEN_LAYER_WEIGHT(attention_options, kernel, "glorot_uniform"),
    PEN_LAYER_WEIGHT(attention_options, bias, "zeros"));

PEN_LAYER_OPTIONS(
    group_query_attention, attention_options,
    PEN_LAYER_SIZE(attention_options, head_dim, NULL, "numbers of a head"),
    PEN_LAYER_SIZE(attention_options, num_query_heads, NULL, "how many heads of queries"),
    PEN_LAYER_SIZE(attention_options, num_key_value_heads, NULL,
                   "how many heads of keys and values, each for as many of queries"),
    ATTENTION_DROPOUT,
    PEN_LAYER_BOOL(attention_options, use_bias, "true", "whether its products add a bias"),
    PEN_LAYER_BOOL(attention_options, causal, "false", "whether a row sees those before it only"),
    PEN_LAYER_WEIGHT(attention_options, kernel, "glorot_uniform"),
    PEN_LAYER_WEIGHT(attention_options, bias, "zeros"));

// How many heads, and the numbers of each.
typedef struct attention_heads {
    int64_t queries;
    int64_t keys; // and values: a divisor of `queries`
    int64_t key_numbers;
    int64_t value_numbers;
} attention_heads;

// A product with a kernel of Keras' shape (rows, heads, numbers), or (heads, numbers, columns).
typedef struct attention_product {
    const char *part; // "query"
    pen_shape kernel;
    bool is_output; // heads come in, not out
} attention_product;

// Keras has the heads as a dimension of their own, the graph has matrices: strides say how one lies
// in the other.
static pen_status attention_weights(const pen_layer_call *call, const attention_product *product,
                                    pen_value_id out_values[2]) {
    const attention_options *options = call->options;
    const int64_t *dims = product->kernel.dims;
    pen_arena *arena = pen_layer_arena(call);
    const pen_layer_contents kernel = {.options = options->kernel};
    const pen_layer_contents bias = {.options = options->bias};
    pen_layer_weight weight = {.shape = product->kernel,
                               .strides = {dims[1] * dims[2], dims[2], 1}};
    pen_shape stored = {2, {dims[0], dims[1] * dims[2]}};
    if (product->is_output) stored = (pen_shape){2, {dims[0] * dims[1], dims[2]}};
    out_values[0] = PEN_VALUE_NONE;
    out_values[1] = PEN_VALUE_NONE;
    PEN_TRY(pen_arena_format(arena, &weight.name, "%s/kernel", product->part));
    PEN_TRY(pen_layer_add_weight(call, &weight, &kernel, &stored, &out_values[0]));
    if (!options->use_bias) return PEN_OK;
    const pen_shape flat = {1, {stored.dims[1]}};
    pen_layer_weight sum = {.shape = {2, {dims[1], dims[2]}}, .strides = {dims[2], 1}};
    if (product->is_output) sum.shape = flat;
    if (product->is_output) sum.strides[0] = 1;
    PEN_TRY(pen_arena_format(arena, &sum.name, "%s/bias", product->part));
    return pen_layer_add_weight(call, &sum, &bias, &flat, &out_values[1]);
}

static pen_status attention_multiply(const pen_layer_call *call, const attention_product *product,
                                     pen_value_id x, pen_value_id *out_value) {
    pen_value_id weights[2];
    PEN_TRY(attention_weights(call, product, weights));
    PEN_TRY(pen_layer_pair(call, "matmul", product->part, x, weights[0], out_value));
    if (!pen_value_is(weights[1])) return PEN_OK;
    return pen_layer_pair(call, "add", product->part, *out_value, weights[1], out_value);
}

// Each head of (batch, heads, rows, numbers) so many times, one behind the other.
static pen_status attention_repeat(const pen_layer_call *call, int64_t times,
                                   pen_layer_tensor *io_tensor) {
    const int64_t counts[5] = {1, 1, times, 1, 1};
    const int64_t *dims = io_tensor->shape.dims;
    const pen_shape apart = {5, {PEN_LAYER_BATCH, dims[1], 1, dims[2], dims[3]}};
    const pen_shape joined = {4, {PEN_LAYER_BATCH, dims[1] * times, dims[2], dims[3]}};
    pen_value_id value = io_tensor->value, repeats;
    if (times == 1) return PEN_OK;
    PEN_TRY(pen_layer_reshape(call, value, &apart, "heads_apart", &value));
    PEN_TRY(pen_layer_ints(call, "times", 5, counts, &repeats));
    PEN_TRY(pen_layer_pair(call, "tile", "repeated", value, repeats, &value));
    PEN_TRY(pen_layer_reshape(call, value, &joined, "heads_joined", &value));
    *io_tensor = pen_layer_tensor_make(value, &joined);
    return PEN_OK;
}

// x times a kernel (numbers of x, heads, numbers of a head), its heads as a dimension of their own:
// (batch, heads, rows, numbers).
static pen_status attention_project(const pen_layer_call *call, const char *part,
                                    const pen_layer_tensor *x, int64_t heads, int64_t numbers,
                                    pen_layer_tensor *out_tensor) {
    static const int64_t axes[4] = {0, 2, 1, 3};
    const attention_product product = {part, {3, {x->shape.dims[2], heads, numbers}}, false};
    const int64_t rows = x->shape.dims[1];
    const pen_shape split = {4, {PEN_LAYER_BATCH, rows, heads, numbers}};
    const pen_shape apart = {4, {PEN_LAYER_BATCH, heads, rows, numbers}};
    pen_value_id value;
    PEN_TRY(attention_multiply(call, &product, x->value, &value));
    PEN_TRY(pen_layer_reshape(call, value, &split, "split", &value));
    PEN_TRY(pen_layer_transpose(call, value, &split, axes, &value));
    *out_tensor = pen_layer_tensor_make(value, &apart);
    return PEN_OK;
}

// Projections, attention of all heads at once, and the product that joins them.
static pen_status attention_build(const pen_layer_call *call, const attention_heads *heads,
                                  pen_layer_result *out_result) {
    static const int64_t axes[4] = {0, 2, 1, 3};
    const int64_t values = heads->value_numbers, times = heads->queries / heads->keys;
    pen_layer_tensor inputs[3], query, key, value;
    PEN_TRY(attention_inputs(call, inputs));
    const int64_t rows = inputs[0].shape.dims[1];
    const int64_t width = inputs[0].shape.dims[2];
    PEN_TRY(
        attention_project(call, "query", &inputs[0], heads->queries, heads->key_numbers, &query));
    PEN_TRY(attention_project(call, "key", &inputs[2], heads->keys, heads->key_numbers, &key));
    PEN_TRY(attention_project(call, "value", &inputs[1], heads->keys, values, &value));
    PEN_TRY(attention_repeat(call, times, &key));
    PEN_TRY(attention_repeat(call, times, &value));
    const attention_parts parts = {.query = query.value,
                                   .key = key.value,
                                   .value = value.value,
                                   .key_shape = key.shape,
                                   .query_rows = rows,
                                   .scale = 1 / sqrt((double)heads->key_numbers),
                                   .masked = {attention_masked(&inputs[0]),
                                              attention_masked(&inputs[1]),
                                              attention_masked(&inputs[2])}};
    pen_value_id mixed;
    PEN_TRY(attention_compute(call, &parts, &mixed));
    const pen_shape apart = {4, {PEN_LAYER_BATCH, heads->queries, rows, values}};
    const pen_shape joined = {3, {PEN_LAYER_BATCH, rows, heads->queries * values}};
    const pen_shape whole = {3, {PEN_LAYER_BATCH, rows, width}};
    PEN_TRY(pen_layer_transpose(call, mixed, &apart, axes, &mixed));
    PEN_TRY(pen_layer_reshape(call, mixed, &joined, "joined", &mixed));
    const attention_product product = {
        "attention_output", {3, {heads->queries, values, width}}, true};
    PEN_TRY(attention_multiply(call, &product, mixed, &mixed));
    return pen_layer_give(out_result, pen_layer_tensor_make(mixed, &whole));
}

pen_status pen_layer_multi_head_attention_build(const pen_layer_call *call,
                                                pen_layer_result *out_result) {
    const attention_options *options = call->options;
    const attention_heads heads = {.queries = options->num_heads,
                                   .keys = options->num_heads,
                                   .key_numbers = options->key_dim,
                                   .value_numbers = options->value_dim > 0 ? options->value_dim
                                                                           : options->key_dim};
    return attention_build(call, &heads, out_result);
}

// Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
// Checkpoints", 2023.
pen_status pen_layer_group_query_attention_build(const pen_layer_call *call,
                                                 pen_layer_result *out_result) {
    const attention_options *options = call->options;
    const attention_heads heads = {.queries = options->num_query_heads,
                                   .keys = options->num_key_value_heads,
                                   .key_numbers = options->head_dim,
                                   .value_numbers = options->head_dim};
    if (heads.queries % heads.keys != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "num_query_heads is %" PRId64 ", which num_key_value_heads, %" PRId64
                         ", does not divide",
                         heads.queries, heads.keys);
    }
    return attention_build(call, &heads, out_result);
}
