#include "tests/support/dice.h"

static const double x[] = {1, 2, 3, 4};
static const int64_t indices[] = {5, 7, 13, 15};
static const int64_t two[] = {2, 2};

static op_case unpool_case(void) {
    return (op_case){.op = "max_unpool",
                     .input_count = 2,
                     .inputs = {{.type = op_type(PEN_FLOAT64, 4, 1, 1, 2, 2), .data = x},
                                {.type = op_type(PEN_INT64, 4, 1, 1, 2, 2), .data = indices}},
                     .attribute_count = 2,
                     .attributes = {pen_attribute_ints("kernel_shape", 2, two),
                                    pen_attribute_ints("strides", 2, two)}};
}

static void puts_elements_back(void **state) {
    (void)state;
    op_case c = unpool_case();
    op_check_values(&c, 0, (const double[]){0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4}, 16, 0);
    op_check_gradient(&c, 1);
    static const int64_t larger[] = {1, 1, 4, 5}, smaller[] = {1, 1, 3, 4};
    c.input_count = 3;
    c.inputs[2] = constant_ints(4, larger);
    op_check_values(
        &c, 0, (const double[]){0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 0}, 20, 0);
    op_check_gradient(&c, 1);
    c.inputs[2] = constant_ints(4, smaller);
    op_check_error(&c, PEN_INVALID_INPUT, "output_shape must be at least [1,1,4,4]");
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    static const int64_t outside[] = {5, 7, 13, 16}, none[] = {0, 2};
    op_case c = unpool_case();
    op_built built;
    run_graph run;
    c.inputs[1].data = outside;
    CHECK_OK(op_build(&c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(&c, &built, 1, &run);
    CHECK_ERROR(run_graph_all(&run), PEN_INVALID_INPUT,
                "index 16 at position 3 is outside of [0, 16)");
    op_built_free(&built);
    c.attributes[0] = pen_attribute_ints("kernel_shape", 2, none);
    op_check_error(&c, PEN_INVALID_INPUT, "with a kernel of 2, 2 strides and 0 pads");
    c.attributes[0] = pen_attribute_ints("kernel_shape", 1, two);
    op_check_error(&c, PEN_INVALID_INPUT, "with a kernel of 1, 2 strides and 0 pads");
}

PEN_TEST_MAIN(cmocka_unit_test(puts_elements_back), cmocka_unit_test(refuses_what_does_not_fit))
