// How initialisers and regularizers are written.

#include "graph/keras_layers/layer_choices.h"

typedef pen_layer_initializer_numbers weight_numbers;

static const char *const weight_fans[] = {"fan_in", "fan_out", "fan_avg", NULL};
static const char *const weight_spreads[] = {"truncated_normal", "untruncated_normal", "uniform",
                                             NULL};

#define WEIGHT_SEED                                                                                \
    {                                                                                              \
        .key = "seed", .kind = PEN_OPTION_INTEGER, .offset = offsetof(weight_numbers, seed),       \
        .present_offset = offsetof(weight_numbers, has_seed), .minimum = PEN_OPTION_FROM(0),       \
        .help = "in place of the model's seed"                                                     \
    }
#define WEIGHT_DEVIATION(standard)                                                                 \
    {                                                                                              \
        .key = "stddev", .kind = PEN_OPTION_NUMBER, .offset = offsetof(weight_numbers, stddev),    \
        .minimum = PEN_OPTION_FROM(0), .default_text = (standard), .help = "standard deviation"    \
    }

static const pen_option_field weight_seed_fields[] = {WEIGHT_SEED};
static const pen_option_field weight_constant_fields[] = {
    PEN_LAYER_NUMBER(weight_numbers, value, "0", "every element"),
};
static const pen_option_field weight_normal_fields[] = {
    PEN_LAYER_NUMBER(weight_numbers, mean, "0", "mean"),
    WEIGHT_DEVIATION("0.05"),
    WEIGHT_SEED,
};
static const pen_option_field weight_uniform_fields[] = {
    PEN_LAYER_NUMBER(weight_numbers, minval, "-0.05", "the least"),
    PEN_LAYER_NUMBER(weight_numbers, maxval, "0.05", "all are below"),
    WEIGHT_SEED,
};
static const pen_option_field weight_scaling_fields[] = {
    PEN_LAYER_FIELD(weight_numbers, scale, NUMBER,
                    "the variance is this by the number of inputs or outputs",
                    .minimum = PEN_OPTION_ABOVE(0), .default_text = "1"),
    PEN_LAYER_CHOICE(weight_numbers, mode, weight_fans, "fan_in", "of what the number is"),
    PEN_LAYER_CHOICE(weight_numbers, distribution, weight_spreads, "truncated_normal",
                     "how they spread"),
    WEIGHT_SEED,
};
static const pen_option_field weight_gain_fields[] = {
    PEN_LAYER_NUMBER(weight_numbers, gain, "1", "factor of all"),
};
static const pen_option_field weight_orthogonal_fields[] = {
    PEN_LAYER_NUMBER(weight_numbers, gain, "1", "factor of all"),
    WEIGHT_SEED,
};

#define WEIGHT_TABLE(array)                                                                        \
    { PEN_OPTION_FIELDS(weight_numbers, array) }
static const pen_option_table weight_nothing_table = {.size = sizeof(weight_numbers)};
static const pen_option_table weight_seed_table = WEIGHT_TABLE(weight_seed_fields);
static const pen_option_table weight_constant_table = WEIGHT_TABLE(weight_constant_fields);
static const pen_option_table weight_normal_table = WEIGHT_TABLE(weight_normal_fields);
static const pen_option_table weight_uniform_table = WEIGHT_TABLE(weight_uniform_fields);
static const pen_option_table weight_scaling_table = WEIGHT_TABLE(weight_scaling_fields);
static const pen_option_table weight_gain_table = WEIGHT_TABLE(weight_gain_fields);
static const pen_option_table weight_orthogonal_table = WEIGHT_TABLE(weight_orthogonal_fields);

#define WEIGHT_INITIALIZER(index, name, of, says)                                                  \
    [index] = {.key = (name),                                                                      \
               .kind = PEN_OPTION_MAPPING,                                                         \
               .offset = offsetof(pen_layer_initializer, numbers),                                 \
               .table = &weight_##of##_table,                                                      \
               .help = (says)}

static const pen_option_field weight_initializers[] = {
    WEIGHT_INITIALIZER(PEN_LAYER_ZEROS, "zeros", nothing, "0"),
    WEIGHT_INITIALIZER(PEN_LAYER_ONES, "ones", nothing, "1"),
    WEIGHT_INITIALIZER(PEN_LAYER_CONSTANT, "constant", constant, "one number"),
    WEIGHT_INITIALIZER(PEN_LAYER_GLOROT_UNIFORM, "glorot_uniform", seed, "Glorot and Bengio's"),
    WEIGHT_INITIALIZER(PEN_LAYER_GLOROT_NORMAL, "glorot_normal", seed, "the same, normal"),
    WEIGHT_INITIALIZER(PEN_LAYER_HE_UNIFORM, "he_uniform", seed, "He's, for relu"),
    WEIGHT_INITIALIZER(PEN_LAYER_HE_NORMAL, "he_normal", seed, "the same, normal"),
    WEIGHT_INITIALIZER(PEN_LAYER_LECUN_UNIFORM, "lecun_uniform", seed, "LeCun's, for selu"),
    WEIGHT_INITIALIZER(PEN_LAYER_LECUN_NORMAL, "lecun_normal", seed, "the same, normal"),
    WEIGHT_INITIALIZER(PEN_LAYER_RANDOM_UNIFORM, "random_uniform", uniform, "evenly in a range"),
    WEIGHT_INITIALIZER(PEN_LAYER_RANDOM_NORMAL, "random_normal", normal, "normal numbers"),
    WEIGHT_INITIALIZER(PEN_LAYER_TRUNCATED_NORMAL, "truncated_normal", normal,
                       "normal numbers within two deviations"),
    WEIGHT_INITIALIZER(PEN_LAYER_UNIFORM, "uniform", uniform, "as random_uniform"),
    WEIGHT_INITIALIZER(PEN_LAYER_NORMAL, "normal", normal, "as random_normal"),
    WEIGHT_INITIALIZER(PEN_LAYER_VARIANCE_SCALING, "variance_scaling", scaling,
                       "by the number of inputs or outputs"),
    WEIGHT_INITIALIZER(PEN_LAYER_ORTHOGONAL, "orthogonal", orthogonal, "orthonormal rows"),
    WEIGHT_INITIALIZER(PEN_LAYER_IDENTITY, "identity", gain, "1 on the diagonal, else 0"),
};
const pen_option_table pen_layer_initializer_table = {
    .name = "initializer",
    PEN_OPTION_FIELDS(pen_layer_initializer, weight_initializers),
    .chosen_offset = offsetof(pen_layer_initializer, kind),
};

#define WEIGHT_FACTOR(member, says)                                                                \
    {                                                                                              \
        .key = #member, .kind = PEN_OPTION_NUMBER,                                                 \
        .offset = offsetof(pen_layer_regularizer, member), .minimum = PEN_OPTION_FROM(0),          \
        .default_text = "0", .help = (says)                                                        \
    }
static const pen_option_field weight_regularizer_fields[] = {
    WEIGHT_FACTOR(l1, "factor of the sum of absolute values"),
    WEIGHT_FACTOR(l2, "factor of the sum of squares"),
};
const pen_option_table pen_layer_regularizer_table = {
    .name = "regularizer",
    PEN_OPTION_FIELDS(pen_layer_regularizer, weight_regularizer_fields),
    .explain = pen_layer_explain_option,
};
