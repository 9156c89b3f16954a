#include "tests/support/device_check.h"
#include "tests/support/layout_check.h"
#include "tests/support/random_case.h"
#include "tests/support/window_case.h"

#define POOLING_CASES 200
#define POOLING_TOLERANCE 2e-6

// Plain, and with the masked operands in either blocked layout.
static void pool_check(const op_case *c, uint64_t seed, uint32_t inputs) {
    op_check_device(c, seed, POOLING_TOLERANCE);
    for (pen_layout layout = 1; layout <= 2; layout++) {
        const layout_wish wish = {layout, inputs, 1};
        op_check_layout(c, seed, POOLING_TOLERANCE, &wish);
    }
    op_check_layout(c, seed, POOLING_TOLERANCE, NULL);
}

static void pools_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < POOLING_CASES; seed++) {
        pool_trial trial;
        pool_random(&trial, seed % 2 == 0 ? "max_pool" : "average_pool", seed);
        pool_check(&trial.forward, seed, 1);
    }
}

static void max_pool_with_indices_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        pool_trial trial;
        pool_random(&trial, "max_pool", seed);
        trial.forward.output_count = 2;
        op_check_device(&trial.forward, seed, 0);
        op_check_layout(&trial.forward, seed, 0, NULL);
    }
}

static void max_pool_backward_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < POOLING_CASES; seed++) {
        pool_trial trial;
        op_built built;
        pool_random(&trial, "max_pool", seed);
        const op_case c = pool_max_backward_case(&trial, seed, &built);
        pool_check(&c, seed, 7);
        op_built_free(&built);
    }
}

static void average_pool_backward_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < POOLING_CASES; seed++) {
        pool_trial trial;
        op_built built;
        pool_random(&trial, "average_pool", seed);
        const op_case c = pool_average_backward_case(&trial, &built);
        pool_check(&c, seed, 1);
        op_built_free(&built);
    }
}

static void global_pools_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < POOLING_CASES; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "global_average_pool", .input_count = 1};
        c.inputs[0].type = random_type(&random, 3, 5, 40, 40000);
        op_case back = {.op = "global_average_pool_backward", .input_count = 1};
        pen_shape one = c.inputs[0].type.shape;
        back.attributes[0] =
            pen_attribute_ints("input_shape", one.rank, c.inputs[0].type.shape.dims);
        back.attribute_count = 1;
        for (uint32_t d = 2; d < one.rank; d++) {
            one.dims[d] = 1;
        }
        back.inputs[0].type = (pen_tensor_type){PEN_FLOAT32, one};
        pool_check(&c, seed, 1);
        pool_check(&back, seed, 1);
    }
}

// As gradients of what scales channels are made.
static void sums_over_positions_equal_reference(void **state) {
    (void)state;
    static const int64_t axes[] = {2, 3, 4};
    for (uint64_t seed = 0; seed < POOLING_CASES; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = seed % 2 == 0 ? "reduce_sum" : "reduce_mean", .input_count = 2};
        c.inputs[0].type = random_type(&random, 3, 5, 40, 40000);
        const int count = (int)c.inputs[0].type.shape.rank - 2;
        c.inputs[1] = (op_case_input){
            .type = op_type(PEN_INT64, 1, count), .data = axes, .is_constant = true};
        c.attributes[0] = pen_attribute_int("keepdims", 1);
        c.attribute_count = 1;
        pool_check(&c, seed, 1);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(pools_equal_reference),
              cmocka_unit_test(max_pool_with_indices_equals_reference),
              cmocka_unit_test(max_pool_backward_equals_reference),
              cmocka_unit_test(average_pool_backward_equals_reference),
              cmocka_unit_test(global_pools_equal_reference),
              cmocka_unit_test(sums_over_positions_equal_reference))
