// Random cases of attention and of its gradient.
//
// Threads: pure.
#ifndef PEN_TESTS_SUPPORT_ATTENTION_CASE_H
#define PEN_TESTS_SUPPORT_ATTENTION_CASE_H

#include <stdint.h>

#include "tests/support/op_check.h"

// An attention and its backward, of the same shapes, with at most `most` rows of q and of k; masks,
// heads that are shared, causal ones, dropout, each in some of them.
void attention_case_make(uint64_t seed, int64_t most, op_case *forward, op_case *backward);

// Runs the forward node on the reference kernels, and gives the backward one its operands and what
// came out. They belong to the result: op_built_free.
op_built attention_case_run(uint64_t seed, const op_case *forward, op_case *backward);

#endif // PEN_TESTS_SUPPORT_ATTENTION_CASE_H
