#include <math.h>

#include "graph/passes/gradient/build_gradients.h"
#include "tests/support/op_check.h"
#include "tests/support/random_case.h"

typedef struct activation_case {
    const char *op;
    const char *attributes[2];
    double settings[2];
    double expected[5]; // at -4, -0.5, 0, 0.25 and 5
} activation_case;

static const activation_case activation_cases[] = {
    {"relu", {NULL}, {0}, {0, 0, 0, 0.25, 5}},
    {"leaky_relu", {NULL}, {0}, {-0.04, -0.005, 0, 0.25, 5}},
    {"leaky_relu", {"alpha"}, {0.25}, {-1, -0.125, 0, 0.25, 5}},
    {"leaky_relu", {"alpha"}, {-0.5}, {2, 0.25, 0, 0.25, 5}},
    {"leaky_relu", {"alpha"}, {0}, {0, 0, 0, 0.25, 5}},
    {"sigmoid",
     {NULL},
     {0},
     {0.01798620996209156, 0.3775406687981454, 0.5, 0.5621765008857981, 0.9933071490757153}},
    {"tanh",
     {NULL},
     {0},
     {-0.999329299739067, -0.46211715726000973, 0, 0.24491866240370913, 0.9999092042625951}},
    {"elu", {NULL}, {0}, {-0.9816843611112658, -0.3934693402873666, 0, 0.25, 5}},
    {"elu", {"alpha"}, {2}, {-1.9633687222225316, -0.7869386805747332, 0, 0.25, 5}},
    {"celu", {"alpha"}, {2}, {-1.7293294335267746, -0.44239843385719024, 0, 0.25, 5}},
    {"selu",
     {NULL},
     {0},
     {-1.7258986335848918, -0.6917581899652425, 0, 0.2626752555370331, 5.253505110740662}},
    {"selu", {"alpha", "gamma"}, {2, 3}, {-5.890106166667595, -2.3608160417241995, 0, 0.75, 15}},
    {"softplus",
     {NULL},
     {0},
     {0.01814992791780978, 0.4740769841801067, 0.6931471805599453, 0.8259394198788436,
      5.006715348489118}},
    {"mish",
     {NULL},
     {0},
     {-0.07259174079202552, -0.22074377465173, 0, 0.1695724096638176, 4.999552077529406}},
    {"log_sigmoid",
     {NULL},
     {0},
     {-4.0181499279178094, -0.9740769841801067, -0.6931471805599453, -0.5759394198788436,
      -0.006715348489118068}},
    {"tanh_shrink",
     {NULL},
     {0},
     {-3.000670700260933, -0.03788284273999026, 0, 0.005081337596290869, 4.000090795737405}},
    {"softsign", {NULL}, {0}, {-0.8, -1.0 / 3, 0, 0.2, 5.0 / 6}},
    {"hard_sigmoid", {NULL}, {0}, {0, 0.4, 0.5, 0.55, 1}},
    {"hard_sigmoid", {"alpha", "beta"}, {0.5, 0.25}, {0, 0, 0.25, 0.375, 1}},
    {"hard_swish", {NULL}, {0}, {0, -0.5 * 2.5 / 6, 0, 0.25 * 3.25 / 6, 5}},
    {"thresholded_relu", {"alpha"}, {0.2}, {0, 0, 0, 0.25, 5}},
    {"shrink", {"lambd", "bias"}, {0.3, 0.1}, {-3.9, -0.4, 0, 0, 4.9}},
};
#define ACTIVATION_CASES (sizeof activation_cases / sizeof *activation_cases)

static op_case activation(const activation_case *chosen, pen_tensor_type type, const void *data) {
    op_case c = {.op = chosen->op, .input_count = 1, .inputs = {{.type = type, .data = data}}};
    for (int i = 0; i < 2 && chosen->attributes[i] != NULL; i++) {
        c.attributes[c.attribute_count++] =
            pen_attribute_float(chosen->attributes[i], chosen->settings[i]);
    }
    return c;
}

static void values(void **state) {
    (void)state;
    const double x[] = {-4, -0.5, 0, 0.25, 5};
    for (size_t i = 0; i < ACTIVATION_CASES; i++) {
        const op_case c = activation(&activation_cases[i], op_type(PEN_FLOAT64, 1, 5), x);
        op_check_values(&c, 0, activation_cases[i].expected, 5, 1e-13);
    }
}

// What exp(x) would overflow, or 1 + exp(x) lose. Values at small x are those of Keras 3.15.
static void far_from_zero(void **state) {
    (void)state;
    const double x[] = {-1000, -40, 40, 1000};
    const op_case sigmoid = {.op = "log_sigmoid",
                             .input_count = 1,
                             .inputs = {{.type = op_type(PEN_FLOAT64, 1, 4), .data = x}}};
    op_check_values(&sigmoid, 0, (const double[]){-1000, -40, -4.248354255291589e-18, 0}, 4, 1e-30);
    op_case mish = sigmoid;
    mish.op = "mish";
    op_check_values(&mish, 0, (const double[]){0, -1.6993417021166356e-16, 40, 1000}, 4, 1e-28);
}

static void not_a_number_stays(void **state) {
    (void)state;
    const double x = (double)NAN;
    for (size_t i = 0; i < ACTIVATION_CASES; i++) {
        if (strcmp(activation_cases[i].op, "shrink") == 0) continue; // 0, as ONNX defines it
        const op_case c = activation(&activation_cases[i], op_type(PEN_FLOAT64, 0), &x);
        op_check_values(&c, 0, &x, 1, 0);
    }
}

static void gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 12 * ACTIVATION_CASES; seed++) {
        random_case random = {.seed = seed};
        pen_tensor_type type = random_type(&random, 0, 4, 5, 60);
        type.element = PEN_FLOAT64;
        op_case c = activation(&activation_cases[seed % ACTIVATION_CASES], type, NULL);
        c.inputs[0].low = -4;
        c.inputs[0].high = 4;
        op_check_gradient(&c, seed);
    }
}

static op_case clip(pen_tensor_type type, const void *data, const void *low, const void *high) {
    const pen_tensor_type scalar = {.element = type.element};
    return (op_case){
        .op = "clip",
        .input_count = 3,
        .inputs = {{.type = type, .data = data},
                   {.type = scalar, .data = low, .is_fixed = true, .is_absent = low == NULL},
                   {.type = scalar, .data = high, .is_fixed = true, .is_absent = high == NULL}}};
}

static void clip_holds(void **state) {
    (void)state;
    const double x[] = {-2, -1, 0.5, 3, (double)NAN}, low = -1, high = 1;
    const pen_tensor_type type = op_type(PEN_FLOAT64, 1, 5);
    op_case both = clip(type, x, &low, &high), above = clip(type, x, &low, NULL);
    op_case below = clip(type, x, NULL, &high), none = clip(type, x, NULL, NULL);
    op_check_values(&both, 0, (const double[]){-1, -1, 0.5, 1, (double)NAN}, 5, 0);
    op_check_values(&above, 0, (const double[]){-1, -1, 0.5, 3, (double)NAN}, 5, 0);
    op_check_values(&below, 0, (const double[]){-2, -1, 0.5, 1, (double)NAN}, 5, 0);
    op_check_values(&none, 0, x, 5, 0);
    op_case crossed = clip(type, x, &high, &low); // min above max: max, as NumPy has it
    op_check_values(&crossed, 0, (const double[]){-1, -1, -1, -1, (double)NAN}, 5, 0);
    const uint64_t large[] = {UINT64_MAX, 3}, limit = UINT64_MAX - 1;
    op_case exact = clip(op_type(PEN_UINT64, 1, 2), large, NULL, &limit);
    op_check_values(&exact, 0, (const double[]){(double)(UINT64_MAX - 1), 3}, 2, 0);
}

static void clip_gradients(void **state) {
    (void)state;
    const double low = -0.4, high = 0.3;
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {.seed = seed};
        pen_tensor_type type = random_type(&random, 0, 3, 5, 60);
        type.element = PEN_FLOAT64;
        op_case c = clip(type, NULL, seed & 1 ? &low : NULL, seed & 2 ? &high : NULL);
        op_check_gradient(&c, seed);
    }
}

static void prelu_values_and_gradients(void **state) {
    (void)state;
    const double x[] = {-2, 1, -3, 4}, slope[] = {0.5, 10};
    op_case c = {.op = "prelu",
                 .input_count = 2,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = x},
                            {.type = op_type(PEN_FLOAT64, 1, 2), .data = slope}}};
    op_check_values(&c, 0, (const double[]){-1, 1, -1.5, 4}, 4, 0);
    const int32_t i[] = {-2, 1, -3, 4}, by[] = {3, 5};
    op_case integers = {.op = "prelu",
                        .input_count = 2,
                        .inputs = {{.type = op_type(PEN_INT32, 2, 2, 2), .data = i},
                                   {.type = op_type(PEN_INT32, 1, 2), .data = by}}};
    op_check_values(&integers, 0, (const double[]){-6, 1, -9, 4}, 4, 0);
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {.seed = seed};
        op_case g = {.op = "prelu", .input_count = 2};
        g.inputs[0].type = random_type(&random, 0, 4, 4, 60);
        g.inputs[0].type.element = PEN_FLOAT64;
        g.inputs[1].type = random_broadcast_of(&random, &g.inputs[0].type);
        op_check_gradient(&g, seed);
    }
}

static void integer_relu(void **state) {
    (void)state;
    const int64_t x[] = {INT64_MIN, -1, 0, INT64_MAX};
    op_case c = {
        .op = "relu", .input_count = 1, .inputs = {{.type = op_type(PEN_INT64, 1, 4), .data = x}}};
    op_check_values(&c, 0, (const double[]){0, 0, 0, (double)INT64_MAX}, 4, 0);
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    const double low[] = {1, 2};
    op_case c = clip(op_type(PEN_FLOAT64, 1, 2), NULL, low, NULL);
    c.inputs[1].type = op_type(PEN_FLOAT64, 1, 2);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "clip 'subject': input 1, a limit, is [2]; it must have one element");
    c.inputs[1].type = op_type(PEN_FLOAT32, 0);
    op_check_error(&c, PEN_INVALID_INPUT, "input 1 ('input_1') is float32, but input 0");
    op_case slope = {
        .op = "prelu",
        .input_count = 2,
        .inputs = {{.type = op_type(PEN_FLOAT64, 1, 3)}, {.type = op_type(PEN_FLOAT64, 2, 2, 3)}}};
    op_check_error(&slope, PEN_INVALID_INPUT, "input 1 is [2,3], which does not broadcast to [3]");
    op_case bytes = {.op = "sigmoid", .input_count = 1, .inputs = {{.type = op_type(PEN_INT8, 0)}}};
    op_check_error(&bytes, PEN_INVALID_INPUT, "is int8; it may be");
    op_case trained = clip(op_type(PEN_FLOAT64, 1, 2), NULL, low, NULL);
    trained.inputs[1].is_fixed = false;
    op_built built;
    CHECK_OK(op_build(&trained, &built));
    pen_gradients *gradients;
    CHECK_ERROR(pen_build_gradients(built.graph, built.outputs[0], built.inputs[0], 1,
                                    &built.inputs[1], &gradients),
                PEN_UNSUPPORTED, "the limits of a clip cannot be trained");
    op_built_free(&built);
}

PEN_TEST_MAIN(cmocka_unit_test(values), cmocka_unit_test(far_from_zero),
              cmocka_unit_test(not_a_number_stays), cmocka_unit_test(gradients),
              cmocka_unit_test(clip_holds), cmocka_unit_test(clip_gradients),
              cmocka_unit_test(prelu_values_and_gradients), cmocka_unit_test(integer_relu),
              cmocka_unit_test(wrong_operands_are_refused))
