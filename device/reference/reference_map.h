// Kernels that apply a function to every element: a table of functions instead of a kernel each.
#ifndef PEN_DEVICE_REFERENCE_REFERENCE_MAP_H
#define PEN_DEVICE_REFERENCE_REFERENCE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "device/reference/reference_kernel.h"

#define REFERENCE_MAP_PARAMETERS 2

typedef struct reference_map {
    const char *op_name;
    // y = f(x) with the parameters p.
    double (*forward)(double x, const double *p);
    // The gradient of x from dy, that of y, and v: x or y, as the op says. NULL: none.
    double (*backward)(double dy, double v, const double *p);
    // The same as `forward` for integer types, exact. NULL: by way of double.
    int64_t (*integer)(int64_t x, bool is_signed);
    const char *parameters[REFERENCE_MAP_PARAMETERS]; // attributes that give p
} reference_map;

// Runs the node's op, or "<op>_backward", by its entry in `maps`, [count].
PEN_NODISCARD pen_status reference_map_run(const pen_reference_call *call,
                                           const reference_map *maps, uint32_t count);

#endif // PEN_DEVICE_REFERENCE_REFERENCE_MAP_H
