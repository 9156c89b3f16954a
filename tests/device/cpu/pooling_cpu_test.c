#include <math.h>

#include "graph/ops/product/convolution_geometry.h"
#include "tests/support/device_check.h"
#include "tests/support/layout_check.h"
#include "tests/support/random_case.h"

#define POOLING_CASES 200
#define POOLING_TOLERANCE 2e-6

typedef struct pool_trial {
    op_case forward;
    int64_t kernel[3], strides[3], dilations[3], pads[6];
    pen_window_attributes window;
} pool_trial;

static void pool_random(pool_trial *trial, const char *op, uint64_t seed) {
    random_case random = {seed, 0};
    const uint32_t rank = random_chance(&random, 70) ? 2 : random_chance(&random, 50) ? 1 : 3;
    const bool is_max = strcmp(op, "max_pool") == 0;
    pen_shape x = {.rank = rank + 2,
                   .dims = {random_between(&random, 1, 3), random_between(&random, 1, 35)}};
    *trial = (pool_trial){.forward = {.op = op, .input_count = 1}};
    for (uint32_t i = 0; i < rank; i++) {
        trial->kernel[i] = random_between(&random, 1, 4);
        trial->strides[i] = random_between(&random, 1, 3);
        trial->dilations[i] = random_chance(&random, 75) ? 1 : random_between(&random, 2, 3);
        trial->pads[i] = random_between(&random, 0, trial->kernel[i] - 1);
        trial->pads[rank + i] = random_between(&random, 0, trial->kernel[i] - 1);
        x.dims[2 + i] =
            (trial->kernel[i] - 1) * trial->dilations[i] + random_between(&random, 1, 7);
    }
    op_case *c = &trial->forward;
    c->inputs[0].type = (pen_tensor_type){PEN_FLOAT32, x};
    c->attributes[0] = pen_attribute_ints("kernel_shape", rank, trial->kernel);
    c->attributes[1] = pen_attribute_ints("strides", rank, trial->strides);
    c->attributes[2] = pen_attribute_ints("dilations", rank, trial->dilations);
    c->attributes[3] =
        random_chance(&random, 80)
            ? pen_attribute_ints("pads", 2 * rank, trial->pads)
            : pen_attribute_text("auto_pad",
                                 random_chance(&random, 50) ? "SAME_UPPER" : "SAME_LOWER");
    c->attributes[4] = pen_attribute_int("ceil_mode", random_between(&random, 0, 1));
    c->attribute_count = 5;
    if (is_max) return;
    c->attributes[5] = pen_attribute_int("count_include_pad", random_between(&random, 0, 1));
    c->attribute_count = 6;
}

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

// The resolved window of a trial's node, for its backward op.
static void pool_resolve(pool_trial *trial, const op_built *built, op_case *backward) {
    pen_conv_geometry geometry;
    const pen_node *node = pen_graph_node(built->graph, built->node);
    CHECK_OK(pen_pool_geometry(built->graph, node, &geometry));
    const bool is_notset = strcmp(pen_node_text(node, "auto_pad"), "NOTSET") == 0;
    pen_window_attributes_make(&geometry, &trial->window);
    for (uint32_t i = 0; i < trial->window.count; i++) {
        backward->attributes[backward->attribute_count++] = trial->window.given[i];
    }
    backward->attributes[backward->attribute_count++] =
        pen_attribute_int("ceil_mode", is_notset && pen_node_int(node, "ceil_mode") != 0 ? 1 : 0);
}

static void max_pool_backward_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < POOLING_CASES; seed++) {
        pool_trial trial;
        op_built built;
        run_graph run;
        pool_random(&trial, "max_pool", seed);
        CHECK_OK(op_build(&trial.forward, &built));
        CHECK_OK(run_graph_init(&run, built.graph, built.arena));
        op_fill(&trial.forward, &built, seed, &run);
        const pen_tensor *x = &run.tensors[built.inputs[0].index];
        for (int64_t k = 0; seed % 2 == 0 && k < pen_tensor_count(x); k++) {
            pen_tensor_set(x, k, floor(3 * pen_tensor_get(x, k))); // many equals
        }
        CHECK_OK(run_graph_all(&run));
        const pen_tensor *y = &run.tensors[built.outputs[0].index];
        op_case c = {.op = "max_pool_backward", .input_count = 3};
        pool_resolve(&trial, &built, &c);
        c.inputs[0].type = y->type;
        c.inputs[1] = (op_case_input){.type = x->type, .data = x->data};
        c.inputs[2] = (op_case_input){.type = y->type, .data = y->data};
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
        CHECK_OK(op_build(&trial.forward, &built));
        op_case c = {.op = "average_pool_backward", .input_count = 1};
        pool_resolve(&trial, &built, &c);
        const pen_shape *x = &trial.forward.inputs[0].type.shape;
        c.attributes[c.attribute_count++] = pen_attribute_ints("input_shape", x->rank, x->dims);
        c.attributes[c.attribute_count++] = trial.forward.attributes[5];
        c.inputs[0].type = *pen_value_type(built.graph, built.outputs[0]);
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
