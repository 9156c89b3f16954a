// Functions of one number. In derivatives v is x or y, as graph/ops/elementwise/unary_op.c says.

#include <math.h>

#include "device/reference/reference_map.h"

static int64_t unary_neg_integer(int64_t x, bool is_signed) {
    (void)is_signed;
    return (int64_t)(0 - (uint64_t)x);
}
static int64_t unary_sign_integer(int64_t x, bool is_signed) {
    return is_signed ? (x > 0) - (x < 0) : x != 0;
}
static int64_t unary_abs_integer(int64_t x, bool is_signed) {
    return is_signed && x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}

// Of these the derivative is 0, or another op.
#define UNARY_FLAT(ROW)                                                                            \
    ROW(neg, (-x), .integer = unary_neg_integer)                                                   \
    ROW(sign, (isnan(x) ? x : (x > 0) - (x < 0)), .integer = unary_sign_integer)                   \
    ROW(floor, (floor(x)), REFERENCE_MAP_PLAIN)                                                    \
    ROW(ceil, (ceil(x)), REFERENCE_MAP_PLAIN)                                                      \
    ROW(round, (rint(x)), REFERENCE_MAP_PLAIN)

#define UNARY_TWO_BY_ROOT_PI 1.12837916709551257390 // 2 / sqrt(pi)

#define UNARY_SMOOTH(ROW)                                                                          \
    ROW(abs, (fabs(x)), (dy * ((v > 0) - (v < 0))), .integer = unary_abs_integer)                  \
    ROW(reciprocal, (1 / x), (-dy * v * v), REFERENCE_MAP_PLAIN)                                   \
    ROW(exp, (exp(x)), (dy * v), REFERENCE_MAP_PLAIN)                                              \
    ROW(log, (log(x)), (dy / v), REFERENCE_MAP_PLAIN)                                              \
    ROW(sqrt, (sqrt(x)), (dy / (2 * v)), REFERENCE_MAP_PLAIN)                                      \
    ROW(erf, (erf(x)), (dy * UNARY_TWO_BY_ROOT_PI * exp(-v * v)), REFERENCE_MAP_PLAIN)             \
    ROW(sin, (sin(x)), (dy * cos(v)), REFERENCE_MAP_PLAIN)                                         \
    ROW(cos, (cos(x)), (-dy * sin(v)), REFERENCE_MAP_PLAIN)                                        \
    ROW(tan, (tan(x)), (dy * (1 + v * v)), REFERENCE_MAP_PLAIN)                                    \
    ROW(asin, (asin(x)), (dy / sqrt(1 - v * v)), REFERENCE_MAP_PLAIN)                              \
    ROW(acos, (acos(x)), (-dy / sqrt(1 - v * v)), REFERENCE_MAP_PLAIN)                             \
    ROW(atan, (atan(x)), (dy / (1 + v * v)), REFERENCE_MAP_PLAIN)                                  \
    ROW(sinh, (sinh(x)), (dy * cosh(v)), REFERENCE_MAP_PLAIN)                                      \
    ROW(cosh, (cosh(x)), (dy * sinh(v)), REFERENCE_MAP_PLAIN)                                      \
    ROW(asinh, (asinh(x)), (dy / sqrt(v * v + 1)), REFERENCE_MAP_PLAIN)                            \
    ROW(acosh, (acosh(x)), (dy / sqrt(v * v - 1)), REFERENCE_MAP_PLAIN)                            \
    ROW(atanh, (atanh(x)), (dy / (1 - v * v)), REFERENCE_MAP_PLAIN)

UNARY_FLAT(REFERENCE_MAP_FUNCTION)
UNARY_SMOOTH(REFERENCE_MAP_FUNCTIONS)

static const pen_reference_kernel unary_kernels[] = {
    // clang-format off
    UNARY_FLAT(REFERENCE_MAP_KERNEL)
    UNARY_SMOOTH(REFERENCE_MAP_KERNELS)
    // clang-format on
};

PEN_REFERENCE_FAMILY(unary);
