#include "tests/support/device_check.h"
#include "tests/support/recurrent_case.h"

#define RECURRENT_CASES 180
#define RECURRENT_TOLERANCE 1e-4

static void forward_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < RECURRENT_CASES; seed++) {
        const op_case c = recurrent_case_forward(seed, RECURRENT_CASE_ANY);
        op_check_device(&c, seed, RECURRENT_TOLERANCE);
    }
}

static void backward_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < RECURRENT_CASES; seed++) {
        const op_case c = recurrent_case_backward(seed, RECURRENT_CASE_ANY);
        op_check_device(&c, seed, RECURRENT_TOLERANCE);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(forward_equals_reference),
              cmocka_unit_test(backward_equals_reference))
