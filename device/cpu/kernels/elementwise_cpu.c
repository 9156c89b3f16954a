// Arithmetic of two operands or more, comparisons, and choosing.
#include <math.h>

#include "device/cpu/kernels/loops/map_entry.h"

#define ELEMENTWISE_PAIRS(ROW)                                                                     \
    ROW(add, (a + b), MAP_PLAIN)                                                                   \
    ROW(sub, (a - b), MAP_PLAIN)                                                                   \
    ROW(mul, (a * b), MAP_PLAIN)                                                                   \
    ROW(div, (a / b), MAP_PLAIN)                                                                   \
    ROW(pow, (b == 2.0f ? a * a : powf(a, b)), MAP_PLAIN)                                          \
    ROW(sum, (a + b), .is_variadic = true)                                                         \
    ROW(max, (a >= b || a != a ? a : b), .is_variadic = true)                                      \
    ROW(min, (a <= b || a != a ? a : b), .is_variadic = true)

// dy is a
static inline float elementwise_pow_slope(float a, float b, float c) {
    return c == 0.0f ? 0.0f : c == 2.0f ? 2.0f * a * b : a * c * powf(b, c - 1.0f);
}
#define ELEMENTWISE_TRIPLES(ROW)                                                                   \
    ROW(div_backward_divisor, (-a * b / c), MAP_PLAIN)                                             \
    ROW(pow_backward_base, (elementwise_pow_slope(a, b, c)), MAP_PLAIN)                            \
    ROW(pow_backward_exponent, (b == 0.0f && c >= 0.0f ? 0.0f : a * powf(b, c) * logf(b)),         \
        MAP_PLAIN)

#define ELEMENTWISE_TESTS(ROW)                                                                     \
    ROW(equal, (a == b))                                                                           \
    ROW(less, (a < b))                                                                             \
    ROW(less_or_equal, (a <= b))                                                                   \
    ROW(greater, (a > b))                                                                          \
    ROW(greater_or_equal, (a >= b))

ELEMENTWISE_PAIRS(MAP_DEFINE_2)
ELEMENTWISE_TRIPLES(MAP_DEFINE_3)
ELEMENTWISE_TESTS(MAP_DEFINE_TEST)

MAP_FUNCTION(where) {
    const uint8_t *chosen = x[0];
    const float *a = x[1], *b = x[2];
    float *y = out;
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        const float first = a[i], second = b[i]; // both are read, so that there is no branch
        y[i] = chosen[i] != 0 ? first : second;
    }
}

MAP_FUNCTION(where_backward) {
    const float *dy = x[0];
    const uint8_t *chosen = x[1];
    const int when = p[0] != 0.0f;
    float *dx = out;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        const float passed = dy[i];
        dx[i] = (chosen[i] != 0) == when ? passed : 0.0f;
    }
}

static const pen_cpu_kernel elementwise_kernels[] = {
    // clang-format off
    ELEMENTWISE_PAIRS(MAP_KERNEL_2)
    ELEMENTWISE_TRIPLES(MAP_KERNEL_3)
    ELEMENTWISE_TESTS(MAP_KERNEL_TEST)
    MAP_KERNEL(mean, map_supports, map_sum, 2, .is_variadic = true, .is_mean = true)
    MAP_KERNEL_3(where, , .operand_types = {MAP_BOOL})
    MAP_KERNEL_2(where_backward, , .operand_types = {MAP_FLOAT, MAP_BOOL},
                 .attribute_names = {"#when"})
    // clang-format on
};

PEN_CPU_FAMILY_OF(elementwise);
