// Layers that prepare what a model reads: categories, bins, means and variances.

#include <inttypes.h>
#include <math.h>

#include "graph/graph.h"
#include "graph/keras_layers/layer_build.h"
#include "graph/keras_layers/layer_list.h"

// ---- categories

enum { CATEGORY_ONE_HOT, CATEGORY_MULTI_HOT, CATEGORY_COUNT };
static const char *const category_modes[] = {"one_hot", "multi_hot", "count", NULL};

typedef struct category_options {
    pen_layer_common common;
    int64_t num_tokens;
    unsigned output_mode;
} category_options;

PEN_LAYER_OPTIONS(
    category_encoding, category_options,
    PEN_LAYER_SIZE(category_options, num_tokens, NULL, "how many there are: indices are below"),
    PEN_LAYER_CHOICE(category_options, output_mode, category_modes, "multi_hot",
                     "a 1 for the only one, for each that is there, or how often each is"));

static pen_status category_reduce(const pen_layer_call *call, const char *op, int64_t axis,
                                  pen_value_id *io_value) {
    pen_value_id over;
    PEN_TRY(pen_layer_ints(call, "over", 1, &axis, &over));
    return pen_layer_add(call, op, NULL, PEN_INPUTS(*io_value, over),
                         PEN_WITH(pen_attribute_int("keepdims", 0)), io_value);
}

// Rows of one_hot, reduced over the indices of an example.
pen_status pen_layer_category_encoding_build(const pen_layer_call *call,
                                             pen_layer_result *out_result) {
    static const float values[2] = {0, 1};
    const category_options *options = call->options;
    const pen_layer_tensor *x = &call->inputs[0];
    const pen_tensor_type pair = {PEN_FLOAT32, {1, {2}}};
    const int64_t count = x->shape.rank == 1 ? 1 : x->shape.dims[1];
    const pen_shape row = {2, {PEN_LAYER_BATCH, count}};
    const char *name;
    pen_value_id operands[3], value;
    if (x->shape.rank > 2 || (options->output_mode == CATEGORY_ONE_HOT && count != 1)) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT, "its input is %s, expected (batch, indices), %s",
                         pen_layer_shape_format(&x->shape, text),
                         options->output_mode == CATEGORY_ONE_HOT ? "one of each example"
                                                                  : "of each example");
    }
    pen_graph *graph = pen_layer_graph(call);
    PEN_TRY(pen_layer_cast(call, x->value, "int64", &value));
    PEN_TRY(pen_layer_reshape(call, value, &row, "row", &operands[0]));
    PEN_TRY(pen_layer_ints(call, "num_tokens", 1, &options->num_tokens, &operands[1]));
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "%s/values", call->name));
    PEN_TRY(pen_graph_constant(graph, name, &pair, values, &operands[2]));
    PEN_TRY(pen_layer_add(call, "one_hot", "one_hot", PEN_INPUTS_ALL(operands), PEN_NO_ATTRIBUTES,
                          &value));
    const char *op = options->output_mode == CATEGORY_COUNT ? "reduce_sum" : "reduce_max";
    PEN_TRY(category_reduce(call, op, 1, &value));
    const pen_shape shape = {2, {PEN_LAYER_BATCH, options->num_tokens}};
    return pen_layer_give(out_result, pen_layer_tensor_make(value, &shape));
}

// ---- bins

static const pen_option_field bins_number_item = {.kind = PEN_OPTION_NUMBER};
static const char *const bins_modes[] = {"int", NULL};

typedef struct bins_options {
    pen_layer_common common;
    pen_option_list bin_boundaries;
    unsigned output_mode;
} bins_options;

PEN_LAYER_OPTIONS(discretization, bins_options,
                  PEN_LAYER_FIELD(bins_options, bin_boundaries, LIST,
                                  "where bins begin, but the first, upwards",
                                  .item = &bins_number_item, .is_required = true,
                                  .count_minimum = 1, .count_maximum = 4096),
                  PEN_LAYER_CHOICE(bins_options, output_mode, bins_modes, "int",
                                   "the bin's index; category_encoding makes more of it"));

// How many boundaries are not above x.
pen_status pen_layer_discretization_build(const pen_layer_call *call,
                                          pen_layer_result *out_result) {
    const bins_options *options = call->options;
    const double *bounds = options->bin_boundaries.items;
    const uint32_t count = options->bin_boundaries.count;
    const pen_tensor_type type = {PEN_FLOAT32, {1, {count}}};
    pen_graph *graph = pen_layer_graph(call);
    pen_layer_tensor x;
    pen_value_id operands[2];
    float *numbers = NULL;
    const char *name;
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    if (x.shape.rank >= PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "its input has too many dimensions");
    }
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), count, &numbers));
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = (float)bounds[i];
        if (i == 0 || bounds[i] > bounds[i - 1]) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "bin_boundaries has %g behind %g: each is above the "
                         "one before",
                         bounds[i], bounds[i - 1]);
    }
    pen_shape wide = x.shape;
    wide.dims[wide.rank++] = 1;
    PEN_TRY(pen_layer_cast(call, x.value, "float32", &operands[0]));
    PEN_TRY(pen_layer_reshape(call, operands[0], &wide, "wide", &operands[0]));
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "%s/bin_boundaries", call->name));
    PEN_TRY(pen_graph_constant(graph, name, &type, numbers, &operands[1]));
    PEN_TRY(
        pen_layer_pair(call, "greater_or_equal", "above", operands[0], operands[1], &operands[0]));
    PEN_TRY(pen_layer_cast(call, operands[0], "int64", &operands[0]));
    PEN_TRY(category_reduce(call, "reduce_sum", -1, &operands[0]));
    pen_layer_tensor result = {.element = PEN_INT64, .shape = x.shape, .value = operands[0]};
    return pen_layer_give(out_result, result);
}

// ---- means and variances

typedef struct scaling_options {
    pen_layer_common common;
    int64_t axis;
    pen_option_list mean;
    pen_option_list variance;
    bool invert;
} scaling_options;

#define SCALING_NUMBERS(member, says)                                                              \
    PEN_LAYER_FIELD(scaling_options, member, LIST, says, .item = &bins_number_item,                \
                    .is_list_optional = true)
PEN_LAYER_OPTIONS(
    normalization, scaling_options,
    PEN_LAYER_INTEGER(scaling_options, axis, "-1", "the dimension of which each has its own"),
    SCALING_NUMBERS(mean, "what is subtracted: one, or one of each; when left out, a weight"),
    SCALING_NUMBERS(variance, "by whose root it is then divided"),
    PEN_LAYER_BOOL(scaling_options, invert, "false", "whether it goes the other way"));

// A constant of one number, or one for each, under a shape that goes with x's.
static pen_status scaling_constant(const pen_layer_call *call, const char *option,
                                   const pen_option_list *given, const pen_shape *shape,
                                   pen_value_id *out_value) {
    const double *from = given->items;
    const int64_t count = pen_shape_element_count(shape);
    float *numbers = NULL;
    if (given->count != 1 && given->count != count) {
        return pen_error(PEN_INVALID_INPUT, "%s has %u numbers, expected 1 or %" PRId64, option,
                         given->count, count);
    }
    PEN_TRY(pen_layer_floats(call, option, shape, &numbers, out_value));
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = (float)from[given->count == 1 ? 0 : i];
    }
    return PEN_OK;
}

static pen_status scaling_weight(const pen_layer_call *call, const char *name, double number,
                                 const pen_shape *shape, pen_value_id *out_value) {
    pen_layer_whole_weight weight = {
        .name = name, .shape = {1, {pen_shape_element_count(shape)}}, .contents.is_state = true};
    weight.contents.options.initializer.kind = PEN_LAYER_CONSTANT;
    weight.contents.options.initializer.numbers.value = number;
    PEN_TRY(pen_layer_add_whole_weight(call, &weight, out_value));
    return pen_layer_reshape(call, *out_value, shape, name, out_value);
}

// (x - mean) / max(sqrt(variance), 1e-7)
pen_status pen_layer_normalization_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const scaling_options *options = call->options;
    pen_layer_tensor x;
    pen_value_id mean, deviation, operands[2];
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    const int64_t rank = x.shape.rank;
    const int64_t axis = options->axis < 0 ? options->axis + rank : options->axis;
    if (axis < 1 || axis >= rank) {
        return pen_error(PEN_INVALID_INPUT, "axis is %" PRId64 ", expected 1 to %" PRId64, axis,
                         rank - 1);
    }
    if ((options->mean.count > 0) != (options->variance.count > 0)) {
        return pen_error(PEN_INVALID_INPUT, "it has one of mean and variance: both are needed, or "
                                            "neither");
    }
    pen_shape shape = {.rank = x.shape.rank};
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = i == axis ? x.shape.dims[i] : 1;
    }
    if (options->mean.count > 0) {
        PEN_TRY(scaling_constant(call, "mean", &options->mean, &shape, &mean));
        PEN_TRY(scaling_constant(call, "variance", &options->variance, &shape, &deviation));
    } else {
        PEN_TRY(scaling_weight(call, "mean", 0, &shape, &mean));
        PEN_TRY(scaling_weight(call, "variance", 1, &shape, &deviation));
    }
    PEN_TRY(pen_layer_map(call, "sqrt", "deviation", deviation, &operands[0]));
    PEN_TRY(pen_layer_number(call, "least", 1e-7, &operands[1]));
    PEN_TRY(pen_layer_pair(call, "max", "deviation", operands[0], operands[1], &deviation));
    PEN_TRY(pen_layer_cast(call, x.value, "float32", &operands[0]));
    operands[1] = options->invert ? deviation : mean;
    PEN_TRY(pen_layer_pair(call, options->invert ? "mul" : "sub", "part", operands[0], operands[1],
                           &operands[0]));
    operands[1] = options->invert ? mean : deviation;
    PEN_TRY(pen_layer_pair(call, options->invert ? "add" : "div", NULL, operands[0], operands[1],
                           &operands[0]));
    return pen_layer_give(out_result, pen_layer_tensor_make(operands[0], &x.shape));
}
