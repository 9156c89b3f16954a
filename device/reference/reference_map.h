// Kernels that apply a function to every element: a row of a table makes the kernel of an op, and
// that of its backward op, "<op>_backward", from the two formulas.
//
// In formulas x is the element, dy the gradient of the result, v what the backward op takes besides
// (x or y, as the op says), and p the attributes that the row names.
#ifndef PEN_DEVICE_REFERENCE_REFERENCE_MAP_H
#define PEN_DEVICE_REFERENCE_REFERENCE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "device/reference/reference_kernel.h"

#define REFERENCE_MAP_PARAMETERS 2

typedef struct reference_map {
    double (*forward)(double x, const double *p);
    double (*backward)(double dy, double v, const double *p);
    // The same as `forward` for integer types, exact. NULL: by way of double.
    int64_t (*integer)(int64_t x, bool is_signed);
    const char *parameters[REFERENCE_MAP_PARAMETERS]; // attributes that give p
} reference_map;

// Kernels whose rule is a reference_map.
PEN_NODISCARD pen_status reference_map_run(const pen_reference_call *call);
PEN_NODISCARD pen_status reference_map_run_backward(const pen_reference_call *call);

// For lists of rows (op, formula, rest) of ops without a derivative, and (op, formula, formula of
// the derivative, rest) of the others. `rest` are members of the reference_map.
#define REFERENCE_MAP_PLAIN .integer = NULL
#define REFERENCE_MAP_FUNCTION(op, result, ...)                                                    \
    static double op##_forward(double x, const double *p) {                                        \
        (void)p;                                                                                   \
        return result;                                                                             \
    }
#define REFERENCE_MAP_FUNCTIONS(op, result, derivative, ...)                                       \
    REFERENCE_MAP_FUNCTION(op, result, )                                                           \
    static double op##_backward(double dy, double v, const double *p) {                            \
        (void)p;                                                                                   \
        return derivative;                                                                         \
    }
#define REFERENCE_MAP_KERNEL(op, result, ...)                                                      \
    {#op, reference_map_run, &(const reference_map){.forward = op##_forward, __VA_ARGS__}},
#define REFERENCE_MAP_KERNELS(op, result, derivative, ...)                                         \
    REFERENCE_MAP_KERNEL(op, result, __VA_ARGS__){                                                 \
        #op "_backward", reference_map_run_backward,                                               \
        &(const reference_map){.backward = op##_backward, __VA_ARGS__}},

#endif // PEN_DEVICE_REFERENCE_REFERENCE_MAP_H
