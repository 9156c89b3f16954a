#include "device/reference/reference_kernel.h"

const pen_reference_family pen_convolution_reference = {NULL, 0};
