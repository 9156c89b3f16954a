// One line an elementwise op: X(name, result) lists expand to functions, map_ops and entries.
//
// In `result`, a, b and c are the operands' elements and p the parameters. A file that uses these
// defines MAP_FIND (its lookup) by MAP_FAMILY at its end.
#ifndef PEN_DEVICE_CPU_KERNELS_MAP_ENTRY_H
#define PEN_DEVICE_CPU_KERNELS_MAP_ENTRY_H

#include <string.h>

#include "device/cpu/kernels/elementwise_map.h"
#include "graph/graph.h"
#include "graph/op.h"

#define MAP_LOOP_(result_type, loads, result)                                                      \
    {                                                                                              \
        result_type *y = out;                                                                      \
        (void)p;                                                                                   \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) {                                  \
            loads y[i] = (result_type)(result);                                                    \
        }                                                                                          \
    }
#define MAP_LOAD_(type, name, operand) const type name = ((const type *)x[operand])[i];

#define MAP_DEFINE_1(name, result)                                                                 \
    static void map_##name(int64_t count, const void *const *x, void *out, const float *p)         \
        MAP_LOOP_(float, MAP_LOAD_(float, a, 0), result)
#define MAP_DEFINE_2(name, result)                                                                 \
    static void map_##name(int64_t count, const void *const *x, void *out, const float *p)         \
        MAP_LOOP_(float, MAP_LOAD_(float, a, 0) MAP_LOAD_(float, b, 1), result)
#define MAP_DEFINE_3(name, result)                                                                 \
    static void map_##name(int64_t count, const void *const *x, void *out, const float *p)         \
        MAP_LOOP_(float, MAP_LOAD_(float, a, 0) MAP_LOAD_(float, b, 1) MAP_LOAD_(float, c, 2),     \
                  result)
// Two floats to a bool.
#define MAP_DEFINE_TEST(name, result)                                                              \
    static void map_##name(int64_t count, const void *const *x, void *out, const float *p)         \
        MAP_LOOP_(uint8_t, MAP_LOAD_(float, a, 0) MAP_LOAD_(float, b, 1), result)

#define MAP_OP_1(op, result) {.op_name = #op, .run = map_##op, .operand_count = 1},
#define MAP_OP_2(op, result) {.op_name = #op, .run = map_##op, .operand_count = 2},
#define MAP_OP_3(op, result) {.op_name = #op, .run = map_##op, .operand_count = 3},
#define MAP_OP_TEST(op, result)                                                                    \
    {.op_name = #op, .run = map_##op, .operand_count = 2, .result_type = MAP_BOOL},

// The entry of an op, whichever of the lists it is in.
#define MAP_ENTRY(op, result)                                                                      \
    {                                                                                              \
        .op_name = #op,                                                                            \
        .name = "cpu",                                                                             \
        .can_accumulate = true,                                                                    \
        .takes_any_layout = true,                                                                  \
        .supports = map_entry_supports,                                                            \
        .prepare = map_entry_prepare,                                                              \
        .run = map_run,                                                                            \
    },
// Of a result that cannot be added to.
#define MAP_ENTRY_TEST(op, result)                                                                 \
    {                                                                                              \
        .op_name = #op,                                                                            \
        .name = "cpu",                                                                             \
        .supports = map_entry_supports,                                                            \
        .prepare = map_entry_prepare,                                                              \
        .run = map_run,                                                                            \
    },

// The functions that entries refer to, for a table of map_ops.
#define MAP_ENTRY_FUNCTIONS(table)                                                                 \
    static const map_op *map_find(const char *op_name) {                                           \
        for (size_t i = 0; i < sizeof(table) / sizeof *(table); i++) {                             \
            if (strcmp((table)[i].op_name, op_name) == 0) return &(table)[i];                      \
        }                                                                                          \
        return NULL;                                                                               \
    }                                                                                              \
    static bool map_entry_supports(const pen_cpu_request *request) {                               \
        return map_supports(request, map_find(request->node->op->name));                           \
    }                                                                                              \
    static pen_status map_entry_prepare(const pen_cpu_request *request, void **out_state,          \
                                        uint64_t *out_workspace_bytes) {                           \
        return map_prepare(request, map_find(request->node->op->name), out_state,                  \
                           out_workspace_bytes);                                                   \
    }

#endif // PEN_DEVICE_CPU_KERNELS_MAP_ENTRY_H
