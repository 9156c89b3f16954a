// Elements of several operands, and functions of one, on an emulated GPU against the reference.
#include <math.h>

#include "tests/support/cuda_check.h"
#include "tests/support/random_case.h"

// Shapes that are repeated along the middle, along both ends, as a whole, and not at all.
static pen_tensor_type repeated(pen_element_type element, uint64_t seed) {
    switch (seed % 5) {
    case 0:
        return op_type(element, 4, 3, 1, 7, 1);
    case 1:
        return op_type(element, 4, 1, 5, 1, 11);
    case 2:
        return op_type(element, 0);
    case 3:
        return op_type(element, 2, 7, 11);
    default:
        return op_type(element, 4, 3, 5, 7, 11);
    }
}

static void pairs(void **state) {
    (void)state;
    static const struct {
        const char *op;
        double low, high; // of the second
    } cases[] = {{"add", -1, 1}, {"sub", -1, 1}, {"mul", -1, 1}, {"div", 0.5, 2},
                 {"max", -1, 1}, {"min", -1, 1}, {"pow", -3, 3}};
    for (uint64_t seed = 0; seed < 70; seed++) {
        op_case c = {.op = cases[seed % 7].op, .input_count = 2};
        const bool is_power = seed % 7 == 6;
        c.inputs[0] = (op_case_input){.type = repeated(PEN_FLOAT32, is_power ? 4 : seed / 7),
                                      .low = is_power ? 0.1 : -1,
                                      .high = is_power ? 4 : 1};
        c.inputs[1] = (op_case_input){.type = repeated(PEN_FLOAT32, is_power ? seed / 7 : 4),
                                      .low = cases[seed % 7].low,
                                      .high = cases[seed % 7].high};
        if (seed % 2 && !is_power) c.inputs[1].type = op_type(PEN_FLOAT32, 4, 3, 5, 7, 1);
        if (seed % 2 && !is_power) c.inputs[0].type = op_type(PEN_FLOAT32, 4, 1, 5, 1, 11);
        cuda_check(&c, seed, 1e-6);
    }
}

static void powers_at_the_ends(void **state) {
    (void)state;
    static const float x[] = {0,         -0.0f,     1,   -1, -2,     -2,    -2.5f, INFINITY,
                              -INFINITY, -INFINITY, NAN, 3,  1e-40f, 1e30f, -8,    2};
    static const float y[] = {-2, 3, NAN, INFINITY, 3,    2, 0.5f, -1,
                              3,  2, 0,   0.5f,     0.5f, 2, -3,   -130};
    op_case c = {.op = "pow", .input_count = 2};
    c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 16), .data = x};
    c.inputs[1] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 16), .data = y};
    cuda_check(&c, 0, 1e-6);
}

static void gradients_of_pairs(void **state) {
    (void)state;
    static const char *const ops[] = {"div_backward_divisor",  "pow_backward_base",
                                      "pow_backward_exponent", "max_backward",
                                      "min_backward",          "prelu_backward"};
    for (uint64_t seed = 0; seed < 60; seed++) {
        op_case c = {.op = ops[seed % 6], .input_count = 3};
        c.inputs[0].type = c.inputs[1].type = repeated(PEN_FLOAT32, 4);
        if (seed % 6 == 1 || seed % 6 == 2) c.inputs[1].low = 0.1, c.inputs[1].high = 3;
        c.inputs[2] =
            (op_case_input){.type = repeated(PEN_FLOAT32, seed / 6), .low = 0.5, .high = 2};
        if (seed % 6 == 3 || seed % 6 == 4) {
            static float halves[2][3 * 5 * 7 * 11];
            for (uint32_t i = 0; i < 3 * 5 * 7 * 11; i++)
                halves[0][i] = (float)(i % 3), halves[1][i] = (float)(i % 5);
            c.attributes[c.attribute_count++] = pen_attribute_int("index", seed / 6 % 2);
            c.inputs[1].data = halves[0];
            c.inputs[2] = (op_case_input){.type = repeated(PEN_FLOAT32, 4), .data = halves[1]};
        }
        cuda_check(&c, seed, 2e-6);
    }
}

static void slopes(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        op_case c = {.op = "prelu", .input_count = 2};
        c.inputs[0].type = repeated(PEN_FLOAT32, 4);
        c.inputs[1].type = repeated(PEN_FLOAT32, seed);
        cuda_check(&c, seed, 1e-6);
        op_case slope = {.op = "prelu_backward_slope", .input_count = 2};
        slope.inputs[0].type = slope.inputs[1].type = repeated(PEN_FLOAT32, 4);
        cuda_check(&slope, seed, 1e-6);
    }
}

// Among three operands to eight some are equal, and of the last cases some are not numbers. One
// operand more goes to the host.
static void gradients_of_many(void **state) {
    (void)state;
    static float thirds[8][3 * 5 * 7 * 11];
    for (uint32_t k = 0; k < 8; k++)
        for (uint32_t i = 0; i < 3 * 5 * 7 * 11; i++)
            thirds[k][i] = (float)(i * (k + 3) / 2 % 4);
    for (uint64_t seed = 0; seed < 24; seed++) {
        op_case c = {.op = seed % 2 ? "max_backward" : "min_backward", .attribute_count = 1};
        const uint32_t operands = seed < 12 ? 3 : 1 + seed % 8;
        if (seed == 20) thirds[1][4] = thirds[2][4] = thirds[2][9] = (float)NAN;
        c.input_count = operands + 1;
        c.attributes[0] = pen_attribute_int("index", (int64_t)(seed / 2 % operands));
        c.inputs[0].type = repeated(PEN_FLOAT32, 4);
        for (uint32_t k = 0; k < operands; k++) {
            c.inputs[k + 1] = (op_case_input){.type = repeated(PEN_FLOAT32, k == 1 ? 4 : seed + k),
                                              .data = thirds[k]};
        }
        cuda_check(&c, seed, 1e-6);
    }
    op_case c = {.op = "max_backward", .input_count = 10, .attribute_count = 1};
    c.attributes[0] = pen_attribute_int("index", 0);
    for (uint32_t k = 0; k < 10; k++)
        c.inputs[k].type = op_type(PEN_FLOAT32, 1, 4);
    cuda_check_place(&c, false);
}

// Integers wrap.
static void integers(void **state) {
    (void)state;
    static const char *const ops[] = {"add", "sub", "mul", "max", "min"};
    for (uint64_t seed = 0; seed < 20; seed++) {
        const pen_element_type element = seed % 2 ? PEN_INT64 : PEN_INT32;
        op_case c = {.op = ops[seed % 5], .input_count = 2};
        c.inputs[0] = (op_case_input){.type = repeated(element, 4), .low = -2e9, .high = 2e9};
        c.inputs[1] =
            (op_case_input){.type = repeated(element, seed / 5), .low = -2e9, .high = 2e9};
        cuda_check(&c, seed, 0);
    }
    static const char *const maps[] = {"neg", "relu", "abs", "sign"};
    static const int32_t narrow[] = {0, -1, 7, INT32_MIN, INT32_MAX};
    static const int64_t wide[] = {0, -1, 7, INT64_MIN, INT64_MAX};
    for (uint64_t seed = 0; seed < 8; seed++) {
        op_case c = {.op = maps[seed % 4], .input_count = 1};
        c.inputs[0] = (op_case_input){.type = op_type(seed < 4 ? PEN_INT32 : PEN_INT64, 1, 5),
                                      .data = seed < 4 ? (const void *)narrow : (const void *)wide};
        cuda_check(&c, seed, 0);
    }
}

// Of integers also below 0, and floats to the power of integers.
static void powers_of_integers(void **state) {
    (void)state;
    static const int64_t bases[] = {0, 1, -1, 2, -3, 7, 0, -2, 5, -1};
    static const int64_t powers[] = {0, -5, -3, 62, 5, 22, -1, -2, 1, 4};
    static const int32_t narrow_bases[] = {0, 1, -1, 2, -3, 7, 0, -2, 5, -1};
    static const int32_t narrow_powers[] = {0, -5, -3, 31, 5, 22, -1, -2, 1, 4};
    for (uint64_t seed = 0; seed < 2; seed++) {
        op_case c = {.op = "pow", .input_count = 2};
        for (uint32_t i = 0; i < 2; i++)
            c.inputs[i].type = op_type(seed ? PEN_INT32 : PEN_INT64, 1, 10);
        c.inputs[0].data = seed ? (const void *)narrow_bases : (const void *)bases;
        c.inputs[1].data = seed ? (const void *)narrow_powers : (const void *)powers;
        cuda_check(&c, seed, 0);
    }
    for (uint64_t seed = 0; seed < 10; seed++) {
        op_case c = {.op = seed % 2 ? "pow_backward_base" : "pow", .input_count = 2 + seed % 2};
        const uint32_t exponent = 1 + seed % 2;
        c.inputs[0].type = c.inputs[seed % 2].type = repeated(PEN_FLOAT32, 4);
        c.inputs[exponent] = (op_case_input){
            .type = repeated(seed % 3 ? PEN_INT64 : PEN_INT32, seed / 2), .low = -2, .high = 4};
        c.inputs[exponent - 1].low = 0.5;
        c.inputs[exponent - 1].high = 2;
        cuda_check(&c, seed, 1e-6);
    }
}

// Exponents that are no floats, next to those that are: they are odd or even as they are.
static void powers_of_large_integers(void **state) {
    (void)state;
    static const float bases[] = {-1, -1, -1, 1.000001f, -1.000001f, 0.999999f, -1, -0.0f};
    static const int64_t wide[] = {16777217,  16777216, INT64_MAX, 16777217,
                                   -16777217, 33554435, INT64_MIN, -16777217};
    static const int64_t wider[] = {9007199254740991, -9007199254740991, 4294967297, 16777219,
                                    -16777219,        16777218,          2147483649, 16777217};
    static const int32_t narrow[] = {16777217,  16777216, INT32_MAX, 16777217,
                                     -16777217, 33554435, INT32_MIN, -16777217};
    const void *const exponents[] = {wide, wider, narrow};
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t at = 1 + i % 2; // a power, or its slope
        op_case c = {.op = i % 2 ? "pow_backward_base" : "pow", .input_count = at + 1};
        c.inputs[0].type = op_type(PEN_FLOAT32, 1, 8);
        c.inputs[at - 1] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 8), .data = bases};
        c.inputs[at] = (op_case_input){.type = op_type(i < 4 ? PEN_INT64 : PEN_INT32, 1, 8),
                                       .data = exponents[i / 2]};
        cuda_check(&c, i, 1e-6);
    }
}

static void comparisons(void **state) {
    (void)state;
    static const pen_element_type types[] = {PEN_FLOAT32, PEN_FLOAT64, PEN_INT32, PEN_INT64};
    static const char *const ops[] = {"equal", "less", "less_or_equal", "greater",
                                      "greater_or_equal"};
    for (uint64_t seed = 0; seed < 40; seed++) {
        op_case c = {.op = ops[seed % 5], .input_count = 2};
        for (uint32_t i = 0; i < 2; i++) {
            c.inputs[i] = (op_case_input){
                .type = repeated(types[seed / 5 % 4], i == 0 ? 4 : seed / 2), .low = 0, .high = 3};
        }
        cuda_check(&c, seed, 0);
    }
    static const float x[] = {NAN, 1, INFINITY, -INFINITY, 0}, y[] = {NAN, NAN, INFINITY, 3, -0.0f};
    static const char *const tests[] = {"isnan", "isinf"};
    for (uint64_t seed = 0; seed < 10; seed++) {
        op_case c = {.op = seed < 5 ? ops[seed] : tests[seed % 2], .input_count = seed < 5 ? 2 : 1};
        c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 5), .data = x};
        c.inputs[1] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 5), .data = y};
        if (seed > 5 && seed % 2 == 1)
            c.attributes[c.attribute_count++] = pen_attribute_int("detect_negative", seed == 7);
        cuda_check(&c, seed, 0);
    }
}

static void truths(void **state) {
    (void)state;
    static const char *const ops[] = {"and", "or", "xor", "not"};
    for (uint64_t seed = 0; seed < 20; seed++) {
        op_case c = {.op = ops[seed % 4], .input_count = seed % 4 == 3 ? 1 : 2};
        c.inputs[0] = (op_case_input){.type = repeated(PEN_BOOL, 4), .high = 2};
        c.inputs[1] = (op_case_input){.type = repeated(PEN_BOOL, seed / 4), .high = 2};
        cuda_check(&c, seed, 0);
    }
}

static void choices(void **state) {
    (void)state;
    static const pen_element_type types[] = {PEN_FLOAT32, PEN_INT64, PEN_BOOL, PEN_INT32};
    for (uint64_t seed = 0; seed < 20; seed++) {
        op_case c = {.op = "where", .input_count = 3};
        c.inputs[0] = (op_case_input){.type = repeated(PEN_BOOL, seed), .high = 2};
        c.inputs[1] = (op_case_input){.type = repeated(types[seed % 4], seed / 5), .high = 2};
        c.inputs[2] = (op_case_input){.type = repeated(types[seed % 4], 4), .high = 2};
        cuda_check(&c, seed, 1e-6);
        op_case backward = {.op = "where_backward", .input_count = 2, .attribute_count = 1};
        backward.attributes[0] = pen_attribute_int("when", seed % 2);
        backward.inputs[0].type = repeated(PEN_FLOAT32, 4);
        backward.inputs[1] = (op_case_input){.type = repeated(PEN_BOOL, seed), .high = 2};
        cuda_check(&backward, seed, 1e-6);
    }
}

static void more_functions(void **state) {
    (void)state;
    static const struct {
        const char *op;
        double low, high;
        bool is_flat;
    } cases[] = {
        {"log", 1e-3, 9, false},     {"sin", -60, 60, false},        {"cos", -60, 60, false},
        {"sign", -1, 1, true},       {"floor", -9, 9, true},         {"ceil", -9, 9, true},
        {"round", -9, 9, true},      {"elu", -9, 3, false},          {"celu", -9, 3, false},
        {"selu", -9, 3, false},      {"softplus", -20, 20, false},   {"mish", -9, 9, false},
        {"log_sigmoid", -20, 20, 0}, {"tanh_shrink", -3, 3, false},  {"softsign", -9, 9, false},
        {"shrink", -2, 2, false},    {"thresholded_relu", -3, 3, 0}, {"tan", -1.5, 1.5, false},
        {"tan", -60, -57, false},    {"asin", -1, 1, false},         {"acos", -1, 1, false},
        {"atan", -9, 9, false},      {"atan", -1, 1, false},         {"sinh", -4, 4, false},
        {"sinh", -1, 1, false},      {"cosh", -4, 4, false},         {"asinh", -9, 9, false},
        {"asinh", -1, 1, false},     {"acosh", 1.001, 3, false},     {"atanh", -0.99, 0.99, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char backward[32];
        op_case c = {.op = cases[i].op, .input_count = 1};
        c.inputs[0] = (op_case_input){
            .type = op_type(PEN_FLOAT32, 2, 5, 70), .low = cases[i].low, .high = cases[i].high};
        cuda_check(&c, i, 3e-6);
        if (cases[i].is_flat) continue;
        snprintf(backward, sizeof backward, "%s_backward", cases[i].op);
        op_case b = {.op = backward, .input_count = 2};
        b.inputs[0].type = c.inputs[0].type;
        b.inputs[1] = c.inputs[0];
        cuda_check(&b, i + 1, 3e-6);
    }
}

// Halves, what is large, and what is no number.
static void functions_at_the_ends(void **state) {
    (void)state;
    static const float ends[] = {0.5f, 1.5f,     -0.5f, -2.5f, 1e-7f, -1e-7f, 12345.678f, -1e6f,
                                 3e9f, INFINITY, NAN,   -0.0f, 1,     -3,     8388609,    -7e-4f};
    static const char *const ops[] = {"floor",    "ceil",        "round", "sign",  "sin",
                                      "cos",      "elu",         "mish",  "selu",  "log",
                                      "softplus", "log_sigmoid", "asin",  "acos",  "atan",
                                      "sinh",     "cosh",        "asinh", "acosh", "tan"};
    for (uint32_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        op_case c = {.op = ops[i], .input_count = 1};
        c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 16), .data = ends};
        cuda_check(&c, i, 1e-6);
    }
}

// Slopes of numbers whose squares are infinite as floats, times a dy that makes them near 1.
static void slopes_of_large_numbers(void **state) {
    (void)state;
    static const float x[] = {2, 9e8f, 1.1e9f, 1.8e19f, 1.9e19f, 1e25f, 3e38f, INFINITY};
    static const float dy[] = {1, 9e8f, -1e9f, 2e19f, 2e19f, -3e25f, 1e38f, 1};
    static const char *const ops[] = {"asinh_backward", "acosh_backward"};
    for (uint32_t i = 0; i < 2; i++) {
        op_case c = {.op = ops[i], .input_count = 2};
        c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 8), .data = dy};
        c.inputs[1] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 8), .data = x};
        cuda_check(&c, i, 1e-6);
    }
}

// Quotients and remainders of integers, each of the two kinds of remainders.
static void quotients_of_integers(void **state) {
    (void)state;
    static const int64_t wide[][5] = {{7, -3, -1, 1, 5}, {INT64_MIN, -7, INT64_MIN, 9, -1}};
    static const int32_t narrow[][5] = {{7, -3, -1, 1, 5}, {INT32_MIN, -7, INT32_MIN, 9, -1}};
    for (uint64_t seed = 0; seed < 12; seed++) {
        const pen_element_type element = seed % 2 ? PEN_INT32 : PEN_INT64;
        op_case c = {.op = seed % 3 ? "mod" : "div", .input_count = 2};
        if (seed % 3) c.attributes[c.attribute_count++] = pen_attribute_int("fmod", seed % 3 == 1);
        c.inputs[0] = (op_case_input){.type = op_type(element, 2, 31, 5), .low = -99, .high = 99};
        c.inputs[1] = (op_case_input){.type = op_type(element, 1, 5),
                                      .data = seed % 2 ? (const void *)narrow[0] : wide[0],
                                      .is_constant = seed < 6};
        if (seed >= 9) {
            c.inputs[0] = (op_case_input){.type = op_type(element, 1, 5),
                                          .data = seed % 2 ? (const void *)narrow[1] : wide[1]};
        }
        cuda_check(&c, seed, 0);
    }
}

// As on the host, it is an error, which is told when work is awaited.
static void integers_divided_by_0_are_told(void **state) {
    (void)state;
    static const int64_t wrong[] = {7, -3, 0, 1}, right[] = {7, -3, -1, 1};
    static const char *const ops[] = {"div", "mod"};
    for (uint32_t i = 0; i < 2; i++) {
        op_case c = {.op = ops[i], .input_count = 2};
        c.inputs[0].type = c.inputs[1].type = op_type(PEN_INT64, 1, 4);
        cuda_check_refuses(&c, wrong, right, sizeof wrong, "division of an integer by 0");
    }
}

// They are exact, also of numbers that are far apart, or below the least normal one.
static void remainders(void **state) {
    (void)state;
    static const float x[] = {5.5f,     -5.5f,   1e30f,  -3e38f,   1e-40f, -7e-45f, 0.0f,
                              2,        3.25f,   8,      INFINITY, 1,      NAN,     1e10f,
                              16777215, -2e-38f, 1e-20f, 3e38f,    -0.0f,  5};
    static const float y[] = {2, 2, 3, 1.5e-45f, 3e-42f, 3e-45f,   1,  INFINITY, -0.5f, 8,
                              2, 0, 1, NAN,      7e-3f,  1.3e-38f, -3, 2.9e38f,  4,     -0.0f};
    op_case ends = {.op = "mod", .input_count = 2, .attribute_count = 1};
    op_built built;
    run_graph run;
    ends.attributes[0] = pen_attribute_int("fmod", 1);
    ends.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 20), .data = x};
    ends.inputs[1] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 20), .data = y};
    CHECK_OK(op_build(&ends, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(&ends, &built, 0, &run);
    cuda_run(&built, PEN_PRECISION_FLOAT32, 0, &run);
    for (uint32_t i = 0; i < 20; i++) {
        const float found = ((const float *)run.tensors[built.outputs[0].index].data)[i];
        const float expected = fmodf(x[i], y[i]);
        const bool same = isnan(expected) ? isnan(found) : found == expected;
        CHECK(same && (isnan(expected) || signbit(found) == signbit(expected)),
              "%g mod %g is %g, expected %g", (double)x[i], (double)y[i], (double)found,
              (double)expected);
    }
    op_built_free(&built);
    for (uint64_t seed = 0; seed < 10; seed++) {
        op_case c = ends;
        c.inputs[0] = (op_case_input){.type = repeated(PEN_FLOAT32, 4), .low = -99, .high = 99};
        c.inputs[1] =
            (op_case_input){.type = repeated(PEN_FLOAT32, seed), .low = seed < 5 ? 0.1 : -3};
        c.inputs[1].high = seed < 5 ? 7 : -0.01;
        cuda_check(&c, seed, 1e-6); // of what is added to
    }
}

// One operand to as many as there are launches for, each repeated otherwise; one more goes to the
// host.
static void many(void **state) {
    (void)state;
    static const char *const ops[] = {"max", "min", "sum", "mean"};
    static const uint32_t counts[] = {1, 2, 3, 5, 8};
    for (uint64_t seed = 0; seed < 20; seed++) {
        op_case c = {.op = ops[seed % 4], .input_count = counts[seed / 4]};
        for (uint32_t i = 0; i < c.input_count; i++)
            c.inputs[i].type = repeated(PEN_FLOAT32, i == c.input_count / 2 ? 4 : seed + i);
        cuda_check(&c, seed, 1e-6);
    }
    for (uint64_t seed = 0; seed < 4; seed++) {
        const pen_element_type element = seed < 2 ? PEN_INT32 : PEN_INT64;
        op_case c = {.op = ops[seed % 2], .input_count = 4};
        for (uint32_t i = 0; i < c.input_count; i++) {
            c.inputs[i] =
                (op_case_input){.type = repeated(element, i + 2), .low = -1e9, .high = 1e9};
        }
        cuda_check(&c, seed, 0);
    }
    op_case c = {.op = "mean", .input_count = 9};
    for (uint32_t i = 0; i < c.input_count; i++)
        c.inputs[i].type = op_type(PEN_FLOAT32, 1, 4);
    cuda_check_place(&c, false);
}

PEN_TEST_MAIN(cmocka_unit_test(pairs), cmocka_unit_test(many), cmocka_unit_test(remainders),
              cmocka_unit_test(powers_at_the_ends), cmocka_unit_test(powers_of_integers),
              cmocka_unit_test(powers_of_large_integers), cmocka_unit_test(gradients_of_pairs),
              cmocka_unit_test(gradients_of_many), cmocka_unit_test(slopes),
              cmocka_unit_test(integers), cmocka_unit_test(quotients_of_integers),
              cmocka_unit_test(integers_divided_by_0_are_told), cmocka_unit_test(comparisons),
              cmocka_unit_test(truths), cmocka_unit_test(choices), cmocka_unit_test(more_functions),
              cmocka_unit_test(functions_at_the_ends), cmocka_unit_test(slopes_of_large_numbers))
