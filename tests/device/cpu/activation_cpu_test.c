#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

typedef struct activation_range {
    const char *op;
    double low;
    double high;
    double low_of_second; // of the second operand of its backward op
    double high_of_second;
} activation_range;

// With ranges that keep functions inside their domain and off their jumps.
static const activation_range activation_ranges[] = {
    {"neg", -9, 9, 0, 0},
    {"sign", -9, 9, 0, 0},
    {"floor", -9, 9, 0, 0},
    {"ceil", -9, 9, 0, 0},
    {"round", -9, 9, 0, 0},
    {"abs", -9, 9, -9, 9},
    {"reciprocal", 0.2, 9, 0.2, 9},
    {"exp", -9, 3, 0.01, 9},
    {"log", 0.01, 99, 0.01, 99},
    {"sqrt", 0, 99, 0.1, 9},
    {"erf", -5, 5, -5, 5},
    {"sin", -9, 9, -9, 9},
    {"cos", -9, 9, -9, 9},
    {"tan", -1.5, 1.5, -3, 3},
    {"relu", -3, 3, -1, 3},
    {"leaky_relu", -3, 3, -3, 3},
    {"sigmoid", -20, 20, 0, 1},
    {"tanh", -10, 10, -1, 1},
    {"elu", -9, 9, -9, 9},
    {"celu", -9, 9, -9, 9},
    {"selu", -9, 9, -9, 9},
    {"softplus", -30, 30, -30, 30},
    {"mish", -30, 30, -30, 30},
    {"log_sigmoid", -30, 30, -30, 30},
    {"tanh_shrink", -10, 10, -10, 10},
    {"softsign", -9, 9, -9, 9},
    {"hard_sigmoid", -5, 5, 0, 1},
    {"hard_swish", -5, 5, -5, 5},
    {"thresholded_relu", -3, 3, -3, 3},
};
#define ACTIVATION_COUNT (sizeof activation_ranges / sizeof *activation_ranges)

static pen_tensor_type activation_type(random_case *random) {
    if (random_chance(random, 10)) {
        return op_type(PEN_FLOAT32, 2, 30, (int)random_between(random, 1100, 1300));
    }
    return random_type(random, 0, 4, 14, 900);
}

static void functions_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8 * ACTIVATION_COUNT; seed++) {
        random_case random = {seed, 0};
        const activation_range *range = &activation_ranges[seed % ACTIVATION_COUNT];
        op_case c = {.op = range->op, .input_count = 1};
        c.inputs[0].type = activation_type(&random);
        c.inputs[0].low = range->low;
        c.inputs[0].high = range->high;
        op_check_device(&c, seed, 2e-6);
    }
}

static void backward_functions_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8 * ACTIVATION_COUNT; seed++) {
        random_case random = {seed, 0};
        const activation_range *range = &activation_ranges[seed % ACTIVATION_COUNT];
        if (range->high_of_second == 0) continue;
        char op[64];
        snprintf(op, sizeof op, "%s_backward", range->op);
        op_case c = {.op = op, .input_count = 2};
        c.inputs[0].type = c.inputs[1].type = activation_type(&random);
        c.inputs[1].low = range->low_of_second;
        c.inputs[1].high = range->high_of_second;
        op_check_device(&c, seed, 3e-6);
    }
}

static void parameters_are_used(void **state) {
    (void)state;
    static const char *const ops[] = {"leaky_relu", "elu",          "celu",
                                      "selu",       "hard_sigmoid", "thresholded_relu"};
    for (uint64_t seed = 0; seed < 60; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = ops[seed % 6], .input_count = 1, .attribute_count = 1};
        c.attributes[0] = pen_attribute_float("alpha", 0.1 + 0.05 * (double)(seed % 7));
        c.inputs[0].type = activation_type(&random);
        c.inputs[0].low = -3;
        c.inputs[0].high = 3;
        op_check_device(&c, seed, 2e-6);
    }
}

static void clips_equal_reference(void **state) {
    (void)state;
    static const float low = -0.4f, high = 0.3f;
    for (uint64_t seed = 0; seed < 80; seed++) {
        random_case random = {seed, 0};
        const bool is_backward = seed % 2 == 1;
        op_case c = {.op = is_backward ? "clip_backward" : "clip"};
        const uint32_t first = is_backward ? 2 : 1;
        c.inputs[0].type = c.inputs[1].type = activation_type(&random);
        c.input_count = first + 2;
        c.inputs[first].type = c.inputs[first + 1].type = op_type(PEN_FLOAT32, 0);
        c.inputs[first].data = &low;
        c.inputs[first + 1].data = &high;
        c.inputs[first].is_absent = random_chance(&random, 30);
        if (random_chance(&random, 30)) c.input_count = first + 1;
        op_check_device(&c, seed, 1e-7);
    }
}

static void prelu_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "prelu", .input_count = 2};
        c.inputs[0].type = activation_type(&random);
        c.inputs[1].type = random_broadcast_of(&random, &c.inputs[0].type);
        op_check_device(&c, seed, 1e-6);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(functions_equal_reference),
              cmocka_unit_test(backward_functions_equal_reference),
              cmocka_unit_test(parameters_are_used), cmocka_unit_test(clips_equal_reference),
              cmocka_unit_test(prelu_equals_reference))
