#include <math.h>

#include "tests/support/dice.h"

#define DRAWN 4000

// Runs a case of DRAWN elements at a step; writes its output.
static void draw(const op_case *c, uint64_t step, double *out_numbers) {
    op_built built;
    run_graph run;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    run.seed = 3;
    run.step = step;
    op_fill(c, &built, 1, &run);
    CHECK_OK(run_graph_all(&run));
    const pen_tensor *y = &run.tensors[built.outputs[0].index];
    assert_int_equal(pen_tensor_count(y), DRAWN);
    for (int64_t k = 0; k < DRAWN; k++) {
        out_numbers[k] = pen_tensor_get(y, k);
    }
    op_built_free(&built);
}

static double mean_of(const double *numbers) {
    double sum = 0;
    for (uint32_t k = 0; k < DRAWN; k++) {
        sum += numbers[k];
    }
    return sum / DRAWN;
}

static uint32_t count_equal(const double *a, const double *b) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < DRAWN; k++) {
        count += a[k] == b[k];
    }
    return count;
}

static void draws_what_is_asked_for(void **state) {
    (void)state;
    static double numbers[DRAWN], again[DRAWN];
    static const int64_t dims[] = {DRAWN};
    op_case c = {.op = "random_normal",
                 .attribute_count = 3,
                 .attributes = {pen_attribute_ints("shape", 1, dims),
                                pen_attribute_float("mean", 5), pen_attribute_float("scale", 2)}};
    draw(&c, 1, numbers);
    CHECK(fabs(mean_of(numbers) - 5) < 0.15, "mean %g", mean_of(numbers));
    draw(&c, 1, again);
    CHECK(count_equal(numbers, again) == DRAWN, "the same step draws others");
    draw(&c, 2, again);
    CHECK(count_equal(numbers, again) < DRAWN / 100, "another step draws the same");
    c = (op_case){.op = "random_uniform_like",
                  .input_count = 1,
                  .inputs = {{.type = op_type(PEN_FLOAT64, 1, DRAWN)}},
                  .attribute_count = 1,
                  .attributes = {pen_attribute_float("low", -1)}};
    draw(&c, 1, numbers);
    CHECK(fabs(mean_of(numbers)) < 0.06, "mean %g", mean_of(numbers));
    c.op = "bernoulli";
    c.inputs[0].low = 0.3;
    c.inputs[0].high = 0.3000001;
    c.attribute_count = 0;
    draw(&c, 1, numbers);
    CHECK(fabs(mean_of(numbers) - 0.3) < 0.04, "mean %g", mean_of(numbers));
}

static void draws_classes(void **state) {
    (void)state;
    static double numbers[DRAWN];
    const double logarithms[] = {log(1.0), log(3.0)};
    op_case c = {.op = "multinomial",
                 .input_count = 1,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 1, 2), .data = logarithms}},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_int("sample_size", DRAWN)}};
    draw(&c, 1, numbers);
    CHECK(fabs(mean_of(numbers) - 0.75) < 0.04, "mean %g", mean_of(numbers));
    c.attributes[0] = pen_attribute_int("sample_size", 0);
    op_check_error(&c, PEN_INVALID_INPUT, "0 samples of an input of shape [1,2]");
}

PEN_TEST_MAIN(cmocka_unit_test(draws_what_is_asked_for), cmocka_unit_test(draws_classes))
