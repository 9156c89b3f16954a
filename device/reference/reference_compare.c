#include "device/reference/reference_compare.h"

#include <math.h>

#define COMPARE_ORDER(x, y)                                                                        \
    ((x) < (y) ? REFERENCE_LESS : (x) > (y) ? REFERENCE_GREATER : REFERENCE_EQUAL)

reference_order reference_compare(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    if (pen_element_is_float(a->type.element)) {
        const double x = pen_tensor_get(a, i), y = pen_tensor_get(b, j);
        return isnan(x) || isnan(y) ? REFERENCE_UNORDERED : COMPARE_ORDER(x, y);
    }
    const int64_t x = pen_tensor_get_int(a, i), y = pen_tensor_get_int(b, j);
    if (a->type.element != PEN_UINT64) return COMPARE_ORDER(x, y);
    return COMPARE_ORDER((uint64_t)x, (uint64_t)y);
}

bool reference_wins(bool largest, const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    const reference_order order = reference_compare(a, i, b, j);
    if (order == REFERENCE_UNORDERED) return !isnan(pen_tensor_get(b, j));
    return order == (largest ? REFERENCE_GREATER : REFERENCE_LESS);
}
