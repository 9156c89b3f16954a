#include "tests/cuda/fake_numbers.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// To the nearest number of so many binary digits.
static float numbers_nearest(float x, int digits, int exponent_least) {
    int exponent;
    if (!isfinite(x) || x == 0) return x;
    (void)frexp((double)x, &exponent);
    if (exponent < exponent_least) exponent = exponent_least;
    const double step = ldexp(1, exponent - digits);
    return (float)(rint((double)x / step) * step);
}

int fake_major(void) {
    static const char here;
    Dl_info found = {.dli_fname = NULL};
    const bool is_found = dladdr(&here, &found) != 0;
    const char *number = is_found ? strstr(found.dli_fname, ".so.") : NULL;
    return number == NULL ? 0 : atoi(number + strlen(".so."));
}

float fake_round(float x, pen_precision precision) {
    switch (precision) {
    case PEN_PRECISION_TF32:
        return numbers_nearest(x, 11, -125);
    case PEN_PRECISION_BFLOAT16:
        return numbers_nearest(x, 8, -125);
    case PEN_PRECISION_FLOAT16: {
        const float y = numbers_nearest(x, 11, -13);
        return fabsf(y) > 65504 ? copysignf(INFINITY, y) : y;
    }
    default:
        return x;
    }
}
