// Elements compared exactly, whatever their type.
#ifndef PEN_DEVICE_REFERENCE_REFERENCE_COMPARE_H
#define PEN_DEVICE_REFERENCE_REFERENCE_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/reference/reference_kernel.h"

typedef enum reference_order {
    REFERENCE_LESS,
    REFERENCE_EQUAL,
    REFERENCE_GREATER,
    REFERENCE_UNORDERED, // one of them is not a number
} reference_order;

// How element `i` of `a` relates to element `j` of `b`, of the same element type.
reference_order reference_compare(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j);

// Whether element `i` of `a` is to replace element `j` of `b` as the largest (or smallest) so far.
// Not-a-numbers win over everything.
bool reference_wins(bool largest, const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j);

#endif // PEN_DEVICE_REFERENCE_REFERENCE_COMPARE_H
