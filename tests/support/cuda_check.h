// Checks operators on the emulated GPU: that they have a kernel there, and what it computes.
#ifndef PEN_TESTS_SUPPORT_CUDA_CHECK_H
#define PEN_TESTS_SUPPORT_CUDA_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/op_check.h"

// The case runs on a kernel of the GPU, or on the host.
void cuda_check_place(const op_case *c, bool on_gpu);

// It runs on a kernel of the GPU, whose threads run in the order that the seed says, and has the
// reference's results within the tolerance (tests/support/device_check.h).
void cuda_check(const op_case *c, uint64_t seed, double tolerance);

#endif // PEN_TESTS_SUPPORT_CUDA_CHECK_H
