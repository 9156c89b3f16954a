#include "base/precision.h"

#include <stddef.h>

const char *const pen_precision_names[] = {
    [PEN_PRECISION_FLOAT32] = "float32",   [PEN_PRECISION_TF32] = "tf32",
    [PEN_PRECISION_BFLOAT16] = "bfloat16", [PEN_PRECISION_FLOAT16] = "float16",
    [PEN_PRECISION_COUNT] = NULL,
};
