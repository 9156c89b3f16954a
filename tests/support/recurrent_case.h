// Random cases of recurrent layers and of their gradients.
//
// Threads: pure.
#ifndef PEN_TESTS_SUPPORT_RECURRENT_CASE_H
#define PEN_TESTS_SUPPORT_RECURRENT_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/op_check.h"

// A rnn, gru or lstm, by the seed in turn, of sizes and options of its own, and one of their
// gradients. With `is_plain`, what layers of PyTorch may have: no lengths, peepholes, clipping or
// unusual functions, and a gru resets its state behind the product.
op_case recurrent_case_forward(uint64_t seed, bool is_plain);
op_case recurrent_case_backward(uint64_t seed, bool is_plain);

#endif // PEN_TESTS_SUPPORT_RECURRENT_CASE_H
