#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

#define ELEMENTWISE_CASES 200

// Mostly small; now and then past the thresholds for long rows and for a team.
static pen_tensor_type elementwise_type(random_case *random) {
    switch (random_between(random, 0, 12)) {
    case 0:
        return op_type(PEN_FLOAT32, 2, (int)random_between(random, 1, 9), 4500);
    case 1:
        return op_type(PEN_FLOAT32, 3, (int)random_between(random, 30, 50), 37, 29);
    default:
        return random_type(random, 0, 5, 14, 900);
    }
}

// A binary case whose operands broadcast to one shape.
static op_case elementwise_pair(random_case *random, const char *op) {
    op_case c = {.op = op, .input_count = 2};
    const pen_tensor_type type = elementwise_type(random);
    const int64_t kind = random_between(random, 0, 3);
    c.inputs[0].type = kind == 1 ? random_broadcast_of(random, &type) : type;
    c.inputs[1].type = kind >= 2 ? random_broadcast_of(random, &type) : type;
    return c;
}

static void pairs_equal_reference(void **state) {
    (void)state;
    static const char *const ops[] = {
        "add",   "sub",  "mul",           "div",     "pow",
        "equal", "less", "less_or_equal", "greater", "greater_or_equal"};
    for (uint64_t seed = 0; seed < 2 * ELEMENTWISE_CASES; seed++) {
        random_case random = {seed, 0};
        op_case c = elementwise_pair(&random, ops[seed % 10]);
        if (seed % 10 == 3) { // no divisor near 0
            c.inputs[1].low = 0.25;
            c.inputs[1].high = 2;
        }
        if (seed % 10 == 4) {
            c.inputs[0].low = 0.25;
            c.inputs[0].high = 2;
        }
        op_check_device(&c, seed, 2e-6);
    }
}

static void equal_numbers_compare_equal(void **state) {
    (void)state;
    static const float a[] = {1, 2, 3, 0, -0.0f}, b[] = {1, 3, 2, -0.0f, 0};
    op_case c = {.op = "equal", .input_count = 2};
    c.inputs[0].type = c.inputs[1].type = op_type(PEN_FLOAT32, 1, 5);
    c.inputs[0].data = a;
    c.inputs[1].data = b;
    op_check_device(&c, 1, 0);
    c.op = "less_or_equal";
    op_check_device(&c, 1, 0);
    c.op = "greater";
    op_check_device(&c, 1, 0);
}

static void variadics_equal_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"sum", "mean", "max", "min"};
    for (uint64_t seed = 0; seed < ELEMENTWISE_CASES; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type = elementwise_type(&random);
        op_case c = {.op = ops[seed % 4]};
        c.input_count = (uint32_t)random_between(&random, 1, 4);
        const uint32_t whole = (uint32_t)random_between(&random, 0, c.input_count - 1);
        for (uint32_t i = 0; i < c.input_count; i++) {
            const bool is_whole = i == whole || random_chance(&random, 60);
            c.inputs[i].type = is_whole ? type : random_broadcast_of(&random, &type);
        }
        op_check_device(&c, seed, 1e-6);
    }
}

static void triples_equal_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"div_backward_divisor", "pow_backward_base",
                                      "pow_backward_exponent", "where"};
    for (uint64_t seed = 0; seed < ELEMENTWISE_CASES; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type = elementwise_type(&random);
        op_case c = {.op = ops[seed % 4], .input_count = 3};
        c.inputs[0].type = type;
        for (uint32_t i = 1; i < 3; i++) {
            c.inputs[i].type =
                random_chance(&random, 50) ? type : random_broadcast_of(&random, &type);
            c.inputs[i].low = 0.25;
            c.inputs[i].high = 2;
        }
        if (seed % 4 == 3) {
            c.inputs[0].type = random_broadcast_of(&random, &type);
            c.inputs[0].type.element = PEN_BOOL;
            c.inputs[0].high = 2;
        }
        op_check_device(&c, seed, 3e-6);
    }
}

static void where_backward_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "where_backward", .input_count = 2, .attribute_count = 1};
        c.attributes[0] = pen_attribute_int("when", seed % 2 == 0);
        c.inputs[0].type = elementwise_type(&random);
        c.inputs[1].type = random_broadcast_of(&random, &c.inputs[0].type);
        c.inputs[1].type.element = PEN_BOOL;
        c.inputs[1].high = 2;
        op_check_device(&c, seed, 0);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(pairs_equal_reference),
              cmocka_unit_test(equal_numbers_compare_equal),
              cmocka_unit_test(variadics_equal_reference),
              cmocka_unit_test(triples_equal_reference),
              cmocka_unit_test(where_backward_equals_reference))
