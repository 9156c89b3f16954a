// The contract of options' tables: choices that several layers have, pieces for their tables, and
// how an option is explained (layer_explain.c).
//
// Threads: immutable.
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_CHOICES_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_CHOICES_H

#include <stddef.h>

#include "base/option/option.h"

#define PEN_LAYER_SPATIAL_LIMIT 3u // dimensions of a picture or volume

typedef enum pen_layer_format {
    PEN_LAYER_CHANNELS_LAST,
    PEN_LAYER_CHANNELS_FIRST,
} pen_layer_format;

typedef enum pen_layer_padding {
    PEN_LAYER_PADDING_VALID,
    PEN_LAYER_PADDING_SAME,
    PEN_LAYER_PADDING_CAUSAL, // conv1d
} pen_layer_padding;

// Keras' activations, a row each: ROW(constant, name, how layer_activate.c makes nodes of it, op of
// ours, its name in ONNX' recurrent nets; NULL: none).
#define PEN_LAYER_ACTIVATIONS(ROW)                                                                 \
    ROW(LINEAR, "linear", activate_nothing, NULL, "Affine")                                        \
    ROW(RELU, "relu", activate_op, "relu", "Relu")                                                 \
    ROW(RELU6, "relu6", activate_relu6, NULL, NULL)                                                \
    ROW(LEAKY_RELU, "leaky_relu", activate_op_with_alpha, "leaky_relu", NULL)                      \
    ROW(ELU, "elu", activate_op, "elu", "Elu")                                                     \
    ROW(SELU, "selu", activate_op, "selu", NULL)                                                   \
    ROW(SIGMOID, "sigmoid", activate_op, "sigmoid", "Sigmoid")                                     \
    ROW(HARD_SIGMOID, "hard_sigmoid", activate_op_with_alpha, "hard_sigmoid", "HardSigmoid")       \
    ROW(TANH, "tanh", activate_op, "tanh", "Tanh")                                                 \
    ROW(SOFTMAX, "softmax", activate_softmax, "softmax", NULL)                                     \
    ROW(LOG_SOFTMAX, "log_softmax", activate_softmax, "log_softmax", NULL)                         \
    ROW(SOFTPLUS, "softplus", activate_op, "softplus", "Softplus")                                 \
    ROW(SOFTSIGN, "softsign", activate_op, "softsign", "Softsign")                                 \
    ROW(GELU, "gelu", activate_gelu, NULL, NULL)                                                   \
    ROW(SWISH, "swish", activate_swish, NULL, NULL)                                                \
    ROW(SILU, "silu", activate_swish, NULL, NULL)                                                  \
    ROW(EXPONENTIAL, "exponential", activate_op, "exp", NULL)                                      \
    ROW(MISH, "mish", activate_mish, NULL, NULL)                                                   \
    ROW(LOG_SIGMOID, "log_sigmoid", activate_op, "log_sigmoid", NULL)                              \
    ROW(TANH_SHRINK, "tanh_shrink", activate_op, "tanh_shrink", NULL)

#define PEN_LAYER_ACTIVATION_CONSTANT(constant, name, make, op, recurrent) PEN_LAYER_##constant,
typedef enum pen_layer_activation {
    PEN_LAYER_ACTIVATIONS(PEN_LAYER_ACTIVATION_CONSTANT) PEN_LAYER_ACTIVATION_COUNT,
} pen_layer_activation;

// In the order of the names in which they are written.
typedef enum pen_layer_distribution {
    PEN_LAYER_ZEROS,
    PEN_LAYER_ONES,
    PEN_LAYER_CONSTANT,
    PEN_LAYER_GLOROT_UNIFORM,
    PEN_LAYER_GLOROT_NORMAL,
    PEN_LAYER_HE_UNIFORM,
    PEN_LAYER_HE_NORMAL,
    PEN_LAYER_LECUN_UNIFORM,
    PEN_LAYER_LECUN_NORMAL,
    PEN_LAYER_RANDOM_UNIFORM,
    PEN_LAYER_RANDOM_NORMAL,
    PEN_LAYER_TRUNCATED_NORMAL,
    PEN_LAYER_UNIFORM, // another name of random_uniform
    PEN_LAYER_NORMAL,  // of random_normal
    PEN_LAYER_VARIANCE_SCALING,
    PEN_LAYER_ORTHOGONAL,
    PEN_LAYER_IDENTITY,
} pen_layer_distribution;

typedef enum pen_layer_fan {
    PEN_LAYER_FAN_IN,
    PEN_LAYER_FAN_OUT,
    PEN_LAYER_FAN_AVERAGE,
} pen_layer_fan;

typedef enum pen_layer_spread {
    PEN_LAYER_SPREAD_TRUNCATED,
    PEN_LAYER_SPREAD_UNTRUNCATED,
    PEN_LAYER_SPREAD_UNIFORM,
} pen_layer_spread;

// The numbers of an initialiser, each of those that it has.
typedef struct pen_layer_initializer_numbers {
    double mean, stddev;   // normal ones
    double minval, maxval; // uniform ones
    double value;          // constant
    double gain;           // orthogonal, identity
    double scale;          // variance_scaling, and these
    pen_layer_fan mode;
    pen_layer_spread distribution;
    int64_t seed; // in place of the model's
    bool has_seed;
} pen_layer_initializer_numbers;

typedef struct pen_layer_initializer {
    pen_layer_distribution kind;
    pen_layer_initializer_numbers numbers;
} pen_layer_initializer;

// What a weight, or a result, adds to the loss: l1 * sum |x| + l2 * sum x^2.
typedef struct pen_layer_regularizer {
    double l1;
    double l2;
} pen_layer_regularizer;

// What a layer's options say of one of its weights.
typedef struct pen_layer_weight_options {
    pen_layer_initializer initializer;
    pen_layer_regularizer regularizer;
} pen_layer_weight_options;

extern const char *const pen_layer_format_names[];
extern const char *const pen_layer_padding_names[];        // valid, same
extern const char *const pen_layer_causal_padding_names[]; // and causal
extern const char *const pen_layer_activation_names[];
extern const pen_option_table pen_layer_initializer_table; // of pen_layer_initializer
extern const pen_option_table pen_layer_regularizer_table; // of pen_layer_regularizer

// Why a layer has no option of this name, which Keras' has; NULL: nothing is known of it.
const char *pen_layer_explain_option(const char *key);
// Why there is no such layer, by its name or Keras' class; NULL likewise.
const char *pen_layer_explain_layer(const char *name);

extern const pen_option_field pen_layer_text_item;
extern const pen_option_field pen_layer_size_item;    // an integer of at least 1
extern const pen_option_field pen_layer_window_item;  // 1 to 65536
extern const pen_option_field pen_layer_integer_item; // any

// Room for the options of any layer.
#define PEN_LAYER_OPTIONS_BYTES 1088u

// ---- fields, of struct `type`

#define PEN_LAYER_COMMON_FIELDS(type)                                                              \
    {.key = "name",                                                                                \
     .kind = PEN_OPTION_TEXT,                                                                      \
     .offset = offsetof(type, common.name),                                                        \
     .help = "the layer's name, which weights begin with"},                                        \
        {.key = "from",                                                                            \
         .kind = PEN_OPTION_LIST,                                                                  \
         .offset = offsetof(type, common.from),                                                    \
         .item = &pen_layer_text_item,                                                             \
         .is_list_optional = true,                                                                 \
         .help = "the layers or inputs it reads; when left out, the one before"},                  \
        {.key = "trainable",                                                                       \
         .kind = PEN_OPTION_BOOL,                                                                  \
         .offset = offsetof(type, common.trainable),                                               \
         .default_text = "true",                                                                   \
         .help = "whether its weights are trained"},                                               \
        PEN_LAYER_REGULARIZER("activity_regularizer", offsetof(type, common.activity_regularizer))

// The member of that name, of kind PEN_OPTION_<option_kind>; at least one more initialiser follows.
#define PEN_LAYER_FIELD(type, member, option_kind, says, ...)                                      \
    {                                                                                              \
        .key = #member, .kind = PEN_OPTION_##option_kind, .offset = offsetof(type, member),        \
        .help = (says), __VA_ARGS__                                                                \
    }
#define PEN_LAYER_BOOL(type, member, standard, says)                                               \
    PEN_LAYER_FIELD(type, member, BOOL, says, .default_text = (standard))
#define PEN_LAYER_NUMBER(type, member, standard, says)                                             \
    PEN_LAYER_FIELD(type, member, NUMBER, says, .default_text = (standard))
#define PEN_LAYER_INTEGER(type, member, standard, says)                                            \
    PEN_LAYER_FIELD(type, member, INTEGER, says, .default_text = (standard))
#define PEN_LAYER_SIZE(type, member, standard, says)                                               \
    PEN_LAYER_FIELD(type, member, INTEGER, says, .minimum = PEN_OPTION_FROM(1),                    \
                    .maximum = PEN_OPTION_TO(1e9), .default_text = (standard),                     \
                    .is_required = (standard) == NULL)
#define PEN_LAYER_SIZES(type, member, standard, required, says)                                    \
    PEN_LAYER_FIELD(type, member, LIST, says, .item = &pen_layer_size_item, .count_minimum = 1,    \
                    .count_maximum = 8, .is_list_optional = true, .default_text = (standard),      \
                    .is_required = (required))
#define PEN_LAYER_WINDOW(type, member, standard, required, says)                                   \
    PEN_LAYER_FIELD(type, member, LIST, says, .item = &pen_layer_window_item, .count_minimum = 1,  \
                    .count_maximum = PEN_LAYER_SPATIAL_LIMIT, .is_list_optional = true,            \
                    .default_text = (standard), .is_required = (required))
#define PEN_LAYER_CHOICE(type, member, names, standard, says)                                      \
    PEN_LAYER_FIELD(type, member, CHOICE, says, .choices = (names), .default_text = (standard))
#define PEN_LAYER_FORMAT(type)                                                                     \
    PEN_LAYER_CHOICE(type, data_format, pen_layer_format_names, "channels_last",                   \
                     "where the channels stand in shapes")
#define PEN_LAYER_ACTIVATION(type)                                                                 \
    PEN_LAYER_CHOICE(type, activation, pen_layer_activation_names, "linear",                       \
                     "what its results go through")
#define PEN_LAYER_REGULARIZER(name, place)                                                         \
    {                                                                                              \
        .key = (name), .kind = PEN_OPTION_MAPPING, .offset = (place),                              \
        .table = &pen_layer_regularizer_table, .help = "what it adds to the loss"                  \
    }
#define PEN_LAYER_INITIALIZER(name, place, standard)                                               \
    {                                                                                              \
        .key = (name), .kind = PEN_OPTION_ONE_OF, .offset = (place),                               \
        .table = &pen_layer_initializer_table, .default_text = (standard),                         \
        .help = "first contents"                                                                   \
    }
// Both, of the pen_layer_weight_options `member`: "kernel_initializer", "kernel_regularizer".
#define PEN_LAYER_WEIGHT(type, member, standard)                                                   \
    PEN_LAYER_WEIGHT_AS(type, member, #member, standard)
#define PEN_LAYER_WEIGHT_AS(type, member, name, standard)                                          \
    PEN_LAYER_INITIALIZER(name "_initializer", offsetof(type, member.initializer), standard),      \
        PEN_LAYER_REGULARIZER(name "_regularizer", offsetof(type, member.regularizer))

// Defines the table pen_layer_<symbol>_options, for `type`, of the fields that follow and those
// that every layer has; the second form is of these alone.
#define PEN_LAYER_OPTIONS(symbol, type, ...)                                                       \
    static const pen_option_field symbol##_fields[] = {PEN_LAYER_COMMON_FIELDS(type),              \
                                                       __VA_ARGS__};                               \
    PEN_LAYER_TABLE(symbol, type)
#define PEN_LAYER_OPTIONS_NONE(symbol, type)                                                       \
    static const pen_option_field symbol##_fields[] = {PEN_LAYER_COMMON_FIELDS(type)};             \
    PEN_LAYER_TABLE(symbol, type)
#define PEN_LAYER_TABLE(symbol, type)                                                              \
    _Static_assert(sizeof(type) <= PEN_LAYER_OPTIONS_BYTES, "PEN_LAYER_OPTIONS_BYTES");            \
    const pen_option_table pen_layer_##symbol##_options = {                                        \
        .name = #symbol,                                                                           \
        PEN_OPTION_FIELDS(type, symbol##_fields),                                                  \
        .may_stand_alone = true,                                                                   \
        .explain = pen_layer_explain_option}

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_CHOICES_H
