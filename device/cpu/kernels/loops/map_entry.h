// One row an elementwise op: lists of rows ROW(op, result, rest) expand to functions, and to
// entries.
//
// In `result`, a, b and c are the operands' elements and p the parameters. `rest` are members of
// the map_op; MAP_PLAIN: none. A row (op, result, derivative, rest) is an op of one operand and its
// backward op: in `derivative` a is the gradient of the result, and b what the op takes besides.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_MAP_ENTRY_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_MAP_ENTRY_H

#include "device/cpu/kernels/loops/elementwise_map.h"
#include "graph/graph.h"
#include "graph/op.h"

#define MAP_PLAIN .is_variadic = false

#define MAP_LOOP_(result_type, loads, result)                                                      \
    {                                                                                              \
        result_type *y = out;                                                                      \
        (void)p;                                                                                   \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) {                                  \
            loads y[i] = (result_type)(result);                                                    \
        }                                                                                          \
    }
#define MAP_LOAD_(type, name, operand) const type name = ((const type *)x[operand])[i];
// The head of a map_fn.
#define MAP_FUNCTION(name)                                                                         \
    static void map_##name(int64_t count, const void *const *x, void *out, const float *p)

#define MAP_DEFINE_1(name, result, ...)                                                            \
    MAP_FUNCTION(name) MAP_LOOP_(float, MAP_LOAD_(float, a, 0), result)
#define MAP_DEFINE_2(name, result, ...)                                                            \
    MAP_FUNCTION(name) MAP_LOOP_(float, MAP_LOAD_(float, a, 0) MAP_LOAD_(float, b, 1), result)
#define MAP_DEFINE_3(name, result, ...)                                                            \
    MAP_FUNCTION(name)                                                                             \
    MAP_LOOP_(float, MAP_LOAD_(float, a, 0) MAP_LOAD_(float, b, 1) MAP_LOAD_(float, c, 2), result)
// Two floats to a bool.
#define MAP_DEFINE_TEST(name, result)                                                              \
    MAP_FUNCTION(name) MAP_LOOP_(uint8_t, MAP_LOAD_(float, a, 0) MAP_LOAD_(float, b, 1), result)
#define MAP_DEFINE_PAIR(name, result, derivative, ...)                                             \
    MAP_DEFINE_1(name, result, ) MAP_DEFINE_2(name##_backward, derivative, )

// An entry that runs `function`; the rest as above.
#define MAP_KERNEL(op, supports_op, function, count, ...)                                          \
    {PEN_CPU_ENTRY(#op, "cpu", supports_op, map_prepare, map_run), .can_accumulate = true,         \
     .takes_any_layout = true,                                                                     \
     .rule = PEN_CPU_RULE(map_op, .run = function, .operand_count = count, __VA_ARGS__)},
#define MAP_KERNEL_1(op, result, ...) MAP_KERNEL(op, map_supports, map_##op, 1, __VA_ARGS__)
#define MAP_KERNEL_2(op, result, ...) MAP_KERNEL(op, map_supports, map_##op, 2, __VA_ARGS__)
#define MAP_KERNEL_3(op, result, ...) MAP_KERNEL(op, map_supports, map_##op, 3, __VA_ARGS__)
#define MAP_KERNEL_PAIR(op, result, derivative, ...)                                               \
    MAP_KERNEL_1(op, result, __VA_ARGS__)                                                          \
    MAP_KERNEL_2(op##_backward, derivative, __VA_ARGS__)
// Of a result that cannot be added to.
#define MAP_KERNEL_TEST(op, result)                                                                \
    {PEN_CPU_ENTRY(#op, "cpu", map_supports, map_prepare, map_run),                                \
     .rule = PEN_CPU_RULE(map_op, .run = map_##op, .operand_count = 2, .result_type = MAP_BOOL)},

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_MAP_ENTRY_H
