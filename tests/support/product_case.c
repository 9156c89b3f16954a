#include "tests/support/product_case.h"

#include "tests/support/random_case.h"

#define PRODUCT_GEMM_CASES 24u

static void product_set_gemm(op_case *c, int trans_a, int trans_b, double alpha, double beta) {
    c->attribute_count = 4;
    c->attributes[0] = pen_attribute_int("transA", trans_a);
    c->attributes[1] = pen_attribute_int("transB", trans_b);
    c->attributes[2] = pen_attribute_float("alpha", alpha);
    c->attributes[3] = pen_attribute_float("beta", beta);
}

static op_case product_gemm(uint64_t seed) {
    random_case random = {seed, 0};
    const int64_t m = random_between(&random, 1, 100), n = random_between(&random, 1, 100);
    const int64_t k = random_between(&random, 1, 60);
    const bool trans_a = random_chance(&random, 50), trans_b = random_chance(&random, 50);
    op_case c = {.op = "gemm", .input_count = 2};
    product_set_gemm(&c, trans_a, trans_b, seed % 2 == 0 ? 1 : 0.5, seed % 4 < 2 ? 1 : 2);
    c.inputs[0].type = op_type(PEN_FLOAT32, 2, (int)(trans_a ? k : m), (int)(trans_a ? m : k));
    c.inputs[1].type = op_type(PEN_FLOAT32, 2, (int)(trans_b ? n : k), (int)(trans_b ? k : n));
    if (seed % 3 > 0) c.input_count = 3;
    c.inputs[2].type = seed % 3 == 1 ? op_type(PEN_FLOAT32, 1, (int)n)
                                     : op_type(PEN_FLOAT32, 2, (int)m, seed % 2 ? 1 : (int)n);
    return c;
}

op_case product_case(uint64_t seed) {
    if (seed < PRODUCT_GEMM_CASES) return product_gemm(seed);
    seed -= PRODUCT_GEMM_CASES;
    op_case c = {.op = "matmul", .input_count = 2};
    c.inputs[0].type = op_type(PEN_FLOAT32, 3, 3, 5 + (int)seed, 70);
    c.inputs[1].type =
        seed % 2 ? op_type(PEN_FLOAT32, 3, 3, 70, 9) : op_type(PEN_FLOAT32, 2, 70, 9);
    return c;
}

op_case product_case_long_matmul(uint64_t seed) {
    op_case c = {.op = "matmul", .input_count = 2};
    c.inputs[0].type = op_type(PEN_FLOAT32, 3, 2, 70, 33 + (int)seed);
    c.inputs[1].type = op_type(PEN_FLOAT32, 3, 2, 33 + (int)seed, 19);
    return c;
}

op_case product_case_long_gemm(uint64_t seed) {
    op_case c = {.op = "gemm", .input_count = 3};
    const int trans_a = seed % 2 == 1, trans_b = seed / 3 % 2 == 1;
    product_set_gemm(&c, trans_a, trans_b, 0.7, 1.3);
    c.inputs[0].type =
        trans_a ? op_type(PEN_FLOAT32, 2, 150, 66) : op_type(PEN_FLOAT32, 2, 66, 150);
    c.inputs[1].type = trans_b ? op_type(PEN_FLOAT32, 2, 9, 150) : op_type(PEN_FLOAT32, 2, 150, 9);
    c.inputs[2].type = op_type(PEN_FLOAT32, 1, 9);
    return c;
}
