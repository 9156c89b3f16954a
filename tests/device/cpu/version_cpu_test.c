#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

#define LANES_MAX 16

// Lanes go into any of the step's versions, or into none; sizes on both sides of the threshold for
// a team, and of the pieces of a thread.
static void gradients_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        random_case random = {seed, 0};
        const int lanes = (int)random_between(&random, 3, LANES_MAX);
        const int count = (int)random_between(&random, 1, seed % 10 == 0 ? 40000 : 900);
        const bool is_adaptive = random_chance(&random, 50),
                   compensates = random_chance(&random, 70);
        int64_t order[LANES_MAX + 1];
        for (int lane = 0; lane < lanes; lane++) {
            order[lane] = random_between(&random, -1, seed % 3 == 0 ? 0 : 2);
        }
        order[lanes] = random_between(&random, 0, 1) * 7;
        const int64_t version = random_between(&random, 0, seed % 3 == 0 ? 0 : 2);
        op_case c = {.op = "version_gradient",
                     .input_count = 5 + (uint32_t)random_between(&random, 1, 3),
                     .output_count = is_adaptive ? 4 : 3,
                     .attribute_count = 3,
                     .attributes = {pen_attribute_int("version", version),
                                    pen_attribute_float("lambda", compensates ? 0.7 : 0),
                                    pen_attribute_int("adaptive", is_adaptive)}};
        c.inputs[0].type = op_type(PEN_INT64, 1, lanes + 1);
        c.inputs[0].data = order;
        for (uint32_t i = 1; i < c.input_count; i++) {
            const bool is_one = i == 1 || i == 2 || i == 4;
            c.inputs[i].type =
                is_one ? op_type(PEN_FLOAT32, 1, count) : op_type(PEN_FLOAT32, 2, lanes, count);
        }
        c.inputs[4].is_absent = !is_adaptive;
        c.inputs[4].low = 0.01;
        c.inputs[4].high = 1;
        op_check_device(&c, seed, 1e-4);
    }
}

// A scale below 0: what an update makes is what was there.
static void nothing_is_applied_below_0(void **state) {
    (void)state;
    static const float below = -1, step = 3;
    for (uint64_t seed = 0; seed < 20; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type type =
            op_type(PEN_FLOAT32, 1, (int)random_between(&random, 1, 40000));
        op_case c = {.op = seed % 2 == 0 ? "adam_update" : "sgd_update"};
        const uint32_t scale = seed % 2 == 0 ? 6 : 4;
        c.input_count = scale + 1;
        c.output_count = seed % 2 == 0 ? 3 : 2;
        for (uint32_t i = 0; i < scale; i++) {
            c.inputs[i].type = i < c.output_count + 1 ? type : op_type(PEN_FLOAT32, 0);
        }
        if (seed % 2 == 0) c.inputs[5].data = &step;
        c.inputs[scale] = (op_case_input){.type = op_type(PEN_FLOAT32, 0), .data = &below};
        op_check_device(&c, seed, 0);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(gradients_equal_reference),
              cmocka_unit_test(nothing_is_applied_below_0))
