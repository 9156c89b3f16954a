#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

static pen_tensor_type reduction_type(random_case *random) {
    switch (random_between(random, 0, 19)) {
    case 0: // many rows, few columns
        return op_type(PEN_FLOAT32, 2, (int)random_between(random, 7000, 9000), 7);
    case 1: // long rows, whole blocks
        return op_type(PEN_FLOAT32, 2, 3, 5 * 4096);
    case 2:
        return op_type(PEN_FLOAT32, 3, 9, 31, (int)random_between(random, 100, 600));
    default:
        return random_type(random, 0, 6, 12, 1500);
    }
}

static void reductions_equal_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"reduce_sum",        "reduce_mean", "reduce_l1", "reduce_l2",
                                      "reduce_sum_square", "reduce_max",  "reduce_min"};
    for (uint64_t seed = 0; seed < 350; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = ops[seed % 7], .input_count = 1, .attribute_count = 2};
        c.inputs[0].type = reduction_type(&random);
        int64_t axes[PEN_RANK_LIMIT];
        uint32_t axis_count = 0;
        const uint32_t rank = c.inputs[0].type.shape.rank;
        for (uint32_t d = 0; d < rank; d++) {
            if (random_chance(&random, 50))
                axes[axis_count++] = random_chance(&random, 50) ? (int64_t)d : (int64_t)d - rank;
        }
        c.attributes[0] = pen_attribute_int("keepdims", random_chance(&random, 50));
        c.attributes[1] = pen_attribute_int("noop_with_empty_axes", random_chance(&random, 50));
        if (random_chance(&random, 85)) {
            c.input_count = 2;
            c.inputs[1].type = op_type(PEN_INT64, 1, (int)axis_count);
            c.inputs[1].data = axes;
            c.inputs[1].is_constant = true;
        }
        op_check_device(&c, seed, 5e-6);
    }
}

static void gradients_equal_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"reduce_sum_backward", "reduce_l1_backward",
                                      "reduce_l2_backward", "reduce_sum_square_backward",
                                      "reduce_log_sum_exp_backward"};
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type x = reduction_type(&random);
        pen_tensor_type dy = x;
        for (uint32_t d = 0; d < dy.shape.rank; d++) {
            if (random_chance(&random, 50)) dy.shape.dims[d] = 1;
        }
        op_case c = {.op = ops[seed % 5], .input_count = seed % 5 % 2 == 1 ? 2 : 3};
        c.inputs[0].type = c.inputs[2].type = dy;
        c.inputs[1].type = x;
        c.inputs[2].low = 0.5;
        c.inputs[2].high = 2;
        if (seed % 5 == 0) {
            c.input_count = 1;
            c.attribute_count = 2;
            c.attributes[0] = pen_attribute_ints("shape", x.shape.rank, x.shape.dims);
            c.attributes[1] = pen_attribute_float("scale", 0.25);
        }
        op_check_device(&c, seed, 2e-6);
    }
}

static void not_a_number_is_the_largest(void **state) {
    (void)state;
    float x[100] = {0};
    x[57] = (float)(0.0 / 0.0 * -1.0);
    op_case c = {.op = "reduce_max", .input_count = 1};
    c.inputs[0].type = op_type(PEN_FLOAT32, 2, 10, 10);
    c.inputs[0].data = x;
    op_check_device(&c, 1, 0);
    c.op = "reduce_min";
    op_check_device(&c, 1, 0);
}

PEN_TEST_MAIN(cmocka_unit_test(reductions_equal_reference),
              cmocka_unit_test(gradients_equal_reference),
              cmocka_unit_test(not_a_number_is_the_largest))
