#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

// Sizes on both sides of the threshold for a team, and of the blocks of squared_norm.
static pen_tensor_type optimizer_type(random_case *random) {
    if (random_chance(random, 80)) return random_type(random, 0, 3, 40, 2000);
    return op_type(PEN_FLOAT32, 1, (int)random_between(random, 4000, 40000));
}

static void sgd_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type = optimizer_type(&random);
        const bool has_velocity = random_chance(&random, 60);
        op_case c = {.op = "sgd_update", .input_count = 4, .attribute_count = 3};
        c.inputs[0].type = c.inputs[1].type = c.inputs[2].type = type;
        c.inputs[2].is_absent = !has_velocity;
        c.inputs[3].type = op_type(random_chance(&random, 30) ? PEN_FLOAT64 : PEN_FLOAT32, 0);
        if (random_chance(&random, 50)) {
            c.input_count = 5;
            c.inputs[4].type = op_type(PEN_FLOAT32, 0);
        }
        c.output_count = has_velocity && random_chance(&random, 90) ? 2 : 1;
        c.attributes[0] = pen_attribute_float("momentum", has_velocity ? 0.9 : 0);
        c.attributes[1] = pen_attribute_int("nesterov", random_chance(&random, 50));
        c.attributes[2] = pen_attribute_float("weight_decay", random_chance(&random, 50) ? .01 : 0);
        op_check_device(&c, seed, 1e-6);
    }
}

static void adam_equals_reference(void **state) {
    (void)state;
    static const float steps[] = {1, 2, 100};
    for (uint64_t seed = 0; seed < 60; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type = optimizer_type(&random);
        op_case c = {.op = "adam_update", .input_count = 6, .output_count = 3};
        for (int i = 0; i < 4; i++) {
            c.inputs[i].type = type;
        }
        c.inputs[3].low = 0.01;
        c.inputs[3].high = 1;
        c.inputs[4].type = op_type(PEN_FLOAT32, 0);
        c.inputs[4].low = 0.001;
        c.inputs[4].high = 0.1;
        c.inputs[5].type = op_type(PEN_FLOAT32, 0);
        c.inputs[5].data = &steps[random_between(&random, 0, 2)];
        if (random_chance(&random, 50)) {
            c.input_count = 7;
            c.inputs[6].type = op_type(PEN_FLOAT32, 0);
        }
        c.attribute_count = 2;
        c.attributes[0] = pen_attribute_float("weight_decay", random_chance(&random, 50) ? .01 : 0);
        c.attributes[1] = pen_attribute_int("decoupled", random_chance(&random, 50));
        op_check_device(&c, seed, 3e-6);
    }
}

static void norms_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "squared_norm", .input_count = 1};
        c.inputs[0].type = optimizer_type(&random);
        op_check_device(&c, seed, 1e-6);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(sgd_equals_reference), cmocka_unit_test(adam_equals_reference),
              cmocka_unit_test(norms_equal_reference))
