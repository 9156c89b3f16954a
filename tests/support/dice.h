// Seeded choices for random test cases.
#ifndef PEN_TESTS_SUPPORT_DICE_H
#define PEN_TESTS_SUPPORT_DICE_H

#include <stdint.h>

#include "base/random.h"
#include "tests/support/op_check.h"

typedef struct dice {
    uint64_t seed;
    uint64_t thrown;
} dice;

// Uniform in [low, high], both included.
static inline int64_t dice_between(dice *d, int64_t low, int64_t high) {
    const pen_random_key key = {d->seed, pen_random_stream("dice", 0, 0)};
    return low + (int64_t)pen_random_below(key, d->thrown++, (uint64_t)(high - low + 1));
}

// A float64 operand with `rank` dimensions of 1 to `largest`.
static inline op_case_input dice_tensor(dice *d, uint32_t rank, int64_t largest) {
    op_case_input input = {.type = {.element = PEN_FLOAT64, .shape = {.rank = rank}}};
    for (uint32_t i = 0; i < rank; i++) {
        input.type.shape.dims[i] = dice_between(d, 1, largest);
    }
    return input;
}

// A constant int64 vector; `integers` is borrowed.
static inline op_case_input constant_ints(uint32_t count, const int64_t *integers) {
    const int64_t dim = count;
    return (op_case_input){
        .type = pen_tensor_type_make(PEN_INT64, 1, &dim), .data = integers, .is_constant = true};
}

#endif // PEN_TESTS_SUPPORT_DICE_H
