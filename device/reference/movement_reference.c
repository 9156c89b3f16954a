#include "device/reference/reference_kernel.h"

const pen_reference_family pen_movement_reference = {NULL, 0};
