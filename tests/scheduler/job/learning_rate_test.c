#include "scheduler/job/learning_rate.h"

#include <math.h>

#include "tests/support/check.h"

static void check_rates(const pen_learning_rate_options *options, uint64_t total,
                        const double *expected, uint64_t count) {
    CHECK_OK(pen_learning_rate_check(options));
    for (uint64_t i = 0; i < count; i++) {
        const double rate = pen_learning_rate_at(options, i, total);
        CHECK(fabs(rate - expected[i]) < 1e-15, "step %d has rate %.17g, expected %.17g", (int)i,
              rate, expected[i]);
    }
}

// Expected values follow the formulas in the header, worked by hand.
static void follows_the_formulas(void **state) {
    (void)state;
    const pen_learning_rate_options constant = {.base = 0.1};
    check_rates(&constant, 3, (double[]){0.1, 0.1, 0.1, 0.1}, 4);
    const pen_learning_rate_options warm = {.base = 0.4, .warmup = 4};
    check_rates(&warm, 6, (double[]){0.1, 0.2, 0.30000000000000004, 0.4, 0.4, 0.4}, 6);
    const pen_learning_rate_options step = {
        .kind = PEN_LEARNING_RATE_STEP, .base = 1, .every = 2, .factor = 0.5, .warmup = 1};
    check_rates(&step, 0, (double[]){1, 1, 1, 0.5, 0.5, 0.25, 0.25}, 7);
    const pen_learning_rate_options cosine = {
        .kind = PEN_LEARNING_RATE_COSINE, .base = 1, .final = 0.2};
    check_rates(&cosine, 4,
                (double[]){1, 0.6 + 0.4 * sqrt(0.5), 0.6, 0.6 - 0.4 * sqrt(0.5), 0.2, 0.2}, 6);
    const pen_learning_rate_options linear = {
        .kind = PEN_LEARNING_RATE_LINEAR, .base = 1, .final = 0, .warmup = 2};
    check_rates(&linear, 6, (double[]){0.5, 1, 1, 0.75, 0.5, 0.25, 0, 0}, 8);
    // a run shorter than its warm-up does not divide by zero
    check_rates(&linear, 2, (double[]){0.5, 1, 1}, 3);
}

static void refuses_bad_options(void **state) {
    (void)state;
    pen_learning_rate_options options = {0};
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "learning rate is 0");
    options.base = NAN;
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "positive");
    options = (pen_learning_rate_options){.base = 1, .final = -1};
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "final");
    options = (pen_learning_rate_options){.base = 1, .kind = PEN_LEARNING_RATE_STEP, .factor = 1};
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "every 0");
    options.every = 1;
    options.factor = 0;
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "factor");
}

PEN_TEST_MAIN(cmocka_unit_test(follows_the_formulas), cmocka_unit_test(refuses_bad_options))
