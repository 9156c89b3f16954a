#include "tests/support/attention_case.h"
#include "tests/support/device_check.h"

static void forward_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        op_case forward, backward;
        attention_case_make(seed, seed % 4 == 0 ? 200 : 20, &forward, &backward);
        op_check_device(&forward, seed, 2e-5);
    }
}

static void boolean_masks_hide(void **state) {
    (void)state;
    bool mask[24 * 24];
    for (int i = 0; i < 24 * 24; i++) {
        mask[i] = i % 24 == i / 24 || i * 7 % 5 < 3;
    }
    op_case c = {.op = "attention", .input_count = 4};
    for (int i = 0; i < 3; i++) {
        c.inputs[i].type = op_type(PEN_FLOAT32, 4, 2, 3, 24, 16);
    }
    c.inputs[3] = (op_case_input){.type = op_type(PEN_BOOL, 2, 24, 24), .data = mask};
    op_check_device(&c, 1, 2e-5);
    c.inputs[3].type = op_type(PEN_BOOL, 3, 1, 24, 24);
    op_check_device(&c, 2, 2e-5);
    c.inputs[3].type = op_type(PEN_BOOL, 4, 2, 1, 1, 24);
    mask[0] = mask[24] = true;
    op_check_device(&c, 3, 2e-5);
}

// What a model of language does for each token: rows of k and v are read as they lie.
static void one_row_equals_reference(void **state) {
    (void)state;
    for (int64_t keys = 1; keys < 300; keys += 37) {
        op_case c = {.op = "attention", .input_count = 3};
        c.inputs[0].type = op_type(PEN_FLOAT32, 4, 2, 12, 1, 64);
        c.inputs[1].type = op_type(PEN_FLOAT32, 4, 2, 12, keys, 64);
        c.inputs[2].type = op_type(PEN_FLOAT32, 4, 2, 12, keys, 48);
        op_check_device(&c, (uint64_t)keys, 2e-5);
    }
}

static void backward_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        op_case forward, backward;
        attention_case_make(seed + 1000, seed % 4 == 0 ? 200 : 20, &forward, &backward);
        op_built built = attention_case_run(seed, &forward, &backward);
        op_check_device(&backward, seed, 3e-5);
        op_built_free(&built);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(forward_equals_reference), cmocka_unit_test(boolean_masks_hide),
              cmocka_unit_test(one_row_equals_reference),
              cmocka_unit_test(backward_equals_reference))
