// Cases of matrix products, for each way in which a device makes them.
//
// Threads: pure.
#ifndef PEN_TESTS_SUPPORT_PRODUCT_CASE_H
#define PEN_TESTS_SUPPORT_PRODUCT_CASE_H

#include <stdint.h>

#include "tests/support/op_check.h"

#define PRODUCT_CASES 30u

// Case `seed` of PRODUCT_CASES: 24 of gemm, in all transposed forms and with all kinds of a third
// operand, and 6 of matmul, with a batch on one side or on both.
op_case product_case(uint64_t seed);

// Products whose sums are long, so that it shows which operands are rounded; the third is not.
op_case product_case_long_matmul(uint64_t seed);
op_case product_case_long_gemm(uint64_t seed);

#endif // PEN_TESTS_SUPPORT_PRODUCT_CASE_H
