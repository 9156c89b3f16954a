// What operands of products are rounded to on the emulated GPU, and that nothing else is.
#ifndef PEN_TESTS_SUPPORT_CUDA_ROUNDING_H
#define PEN_TESTS_SUPPORT_CUDA_ROUNDING_H

#include <stdint.h>

#include "base/precision.h"
#include "tests/support/op_check.h"

// The nearest number that a precision has, by arithmetic in double.
float cuda_nearest(float x, pen_precision precision);

// Results of a case with a lower precision, by the seed, are those of float32 with its first
// `rounded_count` operands rounded before, bit by bit, and are not those without. With NVIDIA's own
// libraries they are as near to those without as the precision makes them.
void cuda_check_rounding(const op_case *c, uint32_t rounded_count, uint64_t seed);

#endif // PEN_TESTS_SUPPORT_CUDA_ROUNDING_H
