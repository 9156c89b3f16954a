// Arithmetic of two operands or more, comparisons, and choosing.
#include <math.h>

#include "device/cpu/kernels/map_entry.h"

#define ELEMENTWISE_PAIRS(X)                                                                       \
    X(sub, (a - b))                                                                                \
    X(mul, (a * b))                                                                                \
    X(div, (a / b))                                                                                \
    X(pow, (b == 2.0f ? a * a : powf(a, b)))

#define ELEMENTWISE_VARIADICS(X)                                                                   \
    X(sum, (a + b))                                                                                \
    X(max, (a >= b || a != a ? a : b))                                                             \
    X(min, (a <= b || a != a ? a : b))

// dy is a
#define ELEMENTWISE_TRIPLES(X)                                                                     \
    X(div_backward_divisor, (-a * b / c))                                                          \
    X(pow_backward_base, (c == 0.0f   ? 0.0f                                                       \
                          : c == 2.0f ? 2.0f * a * b                                               \
                                      : a * c * powf(b, c - 1.0f)))                                \
    X(pow_backward_exponent, (b == 0.0f && c >= 0.0f ? 0.0f : a * powf(b, c) * logf(b)))

#define ELEMENTWISE_TESTS(X)                                                                       \
    X(equal, (a == b))                                                                             \
    X(less, (a < b))                                                                               \
    X(less_or_equal, (a <= b))                                                                     \
    X(greater, (a > b))                                                                            \
    X(greater_or_equal, (a >= b))

MAP_DEFINE_2(add, a + b)
ELEMENTWISE_PAIRS(MAP_DEFINE_2)
ELEMENTWISE_VARIADICS(MAP_DEFINE_2)
ELEMENTWISE_TRIPLES(MAP_DEFINE_3)
ELEMENTWISE_TESTS(MAP_DEFINE_TEST)

static void map_where(int64_t count, const void *const *x, void *out, const float *p) {
    MAP_LOOP_(float, MAP_LOAD_(uint8_t, chosen, 0) MAP_LOAD_(float, a, 1) MAP_LOAD_(float, b, 2),
              chosen != 0 ? a : b)
}

static void map_where_backward(int64_t count, const void *const *x, void *out, const float *p) {
    const int when = p[0] != 0.0f;
    MAP_LOOP_(float, MAP_LOAD_(float, dy, 0) MAP_LOAD_(uint8_t, chosen, 1),
              (chosen != 0) == when ? dy : 0.0f)
}

#define ELEMENTWISE_OP_VARIADIC(op, result)                                                        \
    {.op_name = #op, .run = map_##op, .operand_count = 2, .is_variadic = true},

static const map_op elementwise_ops[] = {
    MAP_OP_2(add, a + b) ELEMENTWISE_PAIRS(MAP_OP_2) ELEMENTWISE_VARIADICS(ELEMENTWISE_OP_VARIADIC)
        ELEMENTWISE_TRIPLES(MAP_OP_3) ELEMENTWISE_TESTS(MAP_OP_TEST){
            .op_name = "mean",
            .run = map_sum,
            .operand_count = 2,
            .is_variadic = true,
            .is_mean = true,
        },
    {
        .op_name = "where",
        .run = map_where,
        .operand_count = 3,
        .operand_types = {MAP_BOOL, MAP_FLOAT, MAP_FLOAT},
    },
    {
        .op_name = "where_backward",
        .run = map_where_backward,
        .operand_count = 2,
        .operand_types = {MAP_FLOAT, MAP_BOOL},
        .attribute_names = {"#when"},
    },
};

MAP_ENTRY_FUNCTIONS(elementwise_ops)

static const pen_cpu_kernel elementwise_kernels[] = {
    MAP_ENTRY(add, ) ELEMENTWISE_PAIRS(MAP_ENTRY) ELEMENTWISE_VARIADICS(MAP_ENTRY)
        ELEMENTWISE_TRIPLES(MAP_ENTRY) ELEMENTWISE_TESTS(MAP_ENTRY_TEST) MAP_ENTRY(mean, )
            MAP_ENTRY(where, ) MAP_ENTRY(where_backward, )};

extern const pen_cpu_family PEN_CPU_FAMILY(elementwise);
const pen_cpu_family PEN_CPU_FAMILY(elementwise) = {
    elementwise_kernels, sizeof elementwise_kernels / sizeof *elementwise_kernels};
