// The kernels of the cuda device, for the emulator.
#include "tests/cuda/emulator.h"

// clang-format off
#include "device/cuda/kernels/all.cu"
// clang-format on
