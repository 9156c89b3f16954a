// The engine of elementwise kernels: walks operands with broadcasting in pieces that stay in the
// first cache, each contiguous for all operands, and leaves the arithmetic to one function.
//
// A value in a device's own layout is walked as it lies: element k of the result belongs to element
// k of every operand, whatever the order. Only operands of the result's shape and layout, or of one
// element, can do that.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_ELEMENTWISE_MAP_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_ELEMENTWISE_MAP_H

#include "device/cpu/cpu_kernel.h"

#define MAP_PARAMETER_LIMIT 2
#define MAP_OPERAND_LIMIT 4 // of ops that are not variadic

// y[i] = f(x[0][i], x[1][i], …) for i below `count`. y may be one of the operands.
typedef void (*map_fn)(int64_t count, const void *const *x, void *y, const float *parameters);

#define MAP_FLOAT 0
#define MAP_BOOL 1

// The rule of an entry.
typedef struct map_op {
    map_fn run;
    uint8_t operand_count; // of these types; variadic: of one application
    uint8_t operand_types[MAP_OPERAND_LIMIT];
    uint8_t result_type;
    bool is_variadic; // x0 op x1 op x2 …
    bool is_mean; // variadic: divided by the operands; else parameter 0 is 1 / count of elements
    const char *attribute_names[MAP_PARAMETER_LIMIT]; // become parameters; NULL: none
    float absent[MAP_OPERAND_LIMIT];                  // stands for an operand left out
} map_op;

// The members of a pen_cpu_kernel whose rule is a map_op. Several levels are compiled, hence the
// macros.
#define map_supports PEN_CPU_JOIN(pen_map_supports, PEN_CPU_LEVEL)
bool map_supports(const pen_cpu_request *request);
#define map_prepare PEN_CPU_JOIN(pen_map_prepare, PEN_CPU_LEVEL)
pen_status map_prepare(const pen_cpu_request *request, void **out_state,
                       uint64_t *out_workspace_bytes);
#define map_run PEN_CPU_JOIN(pen_map_run, PEN_CPU_LEVEL)
pen_status map_run(const pen_cpu_call *call);

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_ELEMENTWISE_MAP_H
