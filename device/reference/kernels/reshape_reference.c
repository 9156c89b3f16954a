// Copies: views, for when one has to be computed after all (folding); a reorder, which is a copy in
// the one layout that the reference device knows.

#include <string.h>

#include "device/reference/reference_kernel.h"

static pen_status reshape_copy(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const size_t bytes = (size_t)pen_tensor_type_bytes(&x->type);
    if (bytes > 0) memmove(y->data, x->data, bytes);
    return PEN_OK;
}

static const pen_reference_kernel reshape_kernels[] = {
    {"reshape", reshape_copy, NULL},  {"flatten", reshape_copy, NULL},
    {"squeeze", reshape_copy, NULL},  {"unsqueeze", reshape_copy, NULL},
    {"identity", reshape_copy, NULL}, {"stop_gradient", reshape_copy, NULL},
    {"reorder", reshape_copy, NULL},  {"copy", reshape_copy, NULL},
};

PEN_REFERENCE_FAMILY(reshape);
