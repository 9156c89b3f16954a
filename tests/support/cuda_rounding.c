#include "tests/support/cuda_rounding.h"

#include <math.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/cuda_check.h"

float cuda_nearest(float x, pen_precision precision) {
    const int digits = precision == PEN_PRECISION_BFLOAT16 ? 8 : 11; // with the leading one
    const int least = precision == PEN_PRECISION_FLOAT16 ? -13 : -125;
    int exponent;
    if (precision == PEN_PRECISION_FLOAT32 || !isfinite(x) || x == 0) return x;
    (void)frexp((double)x, &exponent);
    if (exponent < least) exponent = least;
    const double step = ldexp(1, exponent - digits), y = rint((double)x / step) * step;
    if (precision == PEN_PRECISION_FLOAT16 && fabs(y) > 65504) return copysignf(INFINITY, x);
    return (float)y;
}

// Both are as near to each other as sums of products of rounded operands are, of which each is off
// by half of the last digit at most: nearer than four of it, of the largest sum.
static void rounding_check_near(const char *op, pen_precision precision, const pen_tensor *found,
                                const pen_tensor *wide) {
    const float *x = found->data, *y = wide->data;
    double largest = 0;
    for (int64_t i = 0; i < pen_tensor_count(wide); i++)
        largest = fmax(largest, fabs((double)y[i]));
    const double most = largest * ldexp(4, precision == PEN_PRECISION_BFLOAT16 ? -8 : -11);
    for (int64_t i = 0; i < pen_tensor_count(wide); i++) {
        CHECK(fabs((double)x[i] - (double)y[i]) <= most,
              "%s of %s, element %lld: %.9g, with float32 %.9g", op, pen_precision_names[precision],
              (long long)i, (double)x[i], (double)y[i]);
    }
}

void cuda_check_rounding(const op_case *c, uint32_t rounded_count, uint64_t seed) {
    const pen_precision precision = (pen_precision)(1 + seed % (PEN_PRECISION_COUNT - 1));
    op_built built;
    run_graph found, expected, wide;
    CHECK_OK(op_build(c, &built));
    run_graph *const runs[] = {&found, &expected, &wide};
    for (uint32_t r = 0; r < 3; r++) {
        CHECK_OK(run_graph_init(runs[r], built.graph, built.arena));
        op_fill(c, &built, seed, runs[r]);
    }
    for (uint32_t i = 0; i < rounded_count; i++) {
        pen_tensor *operand = &expected.tensors[built.inputs[i].index];
        float *numbers_of = operand->data;
        for (int64_t k = 0; k < pen_tensor_count(operand); k++)
            numbers_of[k] = cuda_nearest(numbers_of[k], precision);
    }
    cuda_run(&built, precision, seed, &found);
    cuda_run(&built, PEN_PRECISION_FLOAT32, seed + 1, &expected);
    cuda_run(&built, PEN_PRECISION_FLOAT32, seed + 2, &wide);
    const pen_tensor *y = &found.tensors[built.outputs[0].index];
    const uint64_t bytes = pen_tensor_type_bytes(&y->type);
    if (cuda_has_real_libraries()) {
        rounding_check_near(c->op, precision, y, &wide.tensors[built.outputs[0].index]);
        op_built_free(&built);
        return;
    }
    CHECK(memcmp(y->data, expected.tensors[built.outputs[0].index].data, bytes) == 0,
          "%s of %s, seed %llu: not that of rounded operands", c->op,
          pen_precision_names[precision], (unsigned long long)seed);
    CHECK(memcmp(y->data, wide.tensors[built.outputs[0].index].data, bytes) != 0,
          "%s of %s, seed %llu: nothing is rounded", c->op, pen_precision_names[precision],
          (unsigned long long)seed);
    op_built_free(&built);
}
