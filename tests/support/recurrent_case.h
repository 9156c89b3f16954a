// Random cases of recurrent layers and of their gradients.
//
// Threads: pure.
#ifndef PEN_TESTS_SUPPORT_RECURRENT_CASE_H
#define PEN_TESTS_SUPPORT_RECURRENT_CASE_H

#include <stdint.h>

#include "tests/support/op_check.h"

// What cases may have.
typedef enum recurrent_case_options {
    RECURRENT_CASE_PLAIN, // what layers of PyTorch have: a gru resets its state behind the product
    RECURRENT_CASE_USUAL, // lengths, peepholes, and a gru that resets its state before it, besides
    RECURRENT_CASE_ANY,   // clipping, coupled gates and unusual functions, too
} recurrent_case_options;

// A rnn, gru or lstm, by the seed in turn, of sizes and options of its own, and one of their
// gradients.
op_case recurrent_case_forward(uint64_t seed, recurrent_case_options options);
op_case recurrent_case_backward(uint64_t seed, recurrent_case_options options);

#endif // PEN_TESTS_SUPPORT_RECURRENT_CASE_H
