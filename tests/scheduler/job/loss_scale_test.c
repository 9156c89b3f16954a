#include "scheduler/job/loss_scale.h"

#include "tests/support/check.h"

static const pen_loss_scale_options usual = {
    .initial = 65536, .growth = 2, .backoff = 0.5, .every = 3};

// Values are those of torch.amp.GradScaler("cpu", init_scale=65536, growth_interval=3).
static void follows_gradscaler(void **state) {
    (void)state;
    static const struct {
        bool is_skipped;
        double scale;
        uint64_t good, skipped;
    } steps[] = {
        {false, 65536, 1, 0}, {false, 65536, 2, 0}, {true, 32768, 0, 1},  {false, 32768, 1, 1},
        {false, 32768, 2, 1}, {false, 65536, 0, 1}, {true, 32768, 0, 2},  {true, 16384, 0, 3},
        {false, 16384, 1, 3}, {false, 16384, 2, 3}, {false, 32768, 0, 3},
    };
    pen_loss_scale scale = pen_loss_scale_start(&usual);
    assert_true(scale.scale == 65536 && scale.good == 0 && scale.skipped == 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_true(pen_loss_scale_advance(&scale, &usual, steps[i].is_skipped));
        CHECK(scale.scale == steps[i].scale, "step %zu: %g, expected %g", i, scale.scale,
              steps[i].scale);
        assert_int_equal(scale.good, steps[i].good);
        assert_int_equal(scale.skipped, steps[i].skipped);
    }
}

// A scale is a float32, grows while it is finite, and ends where its inverse would not be.
static void stays_finite(void **state) {
    (void)state;
    pen_loss_scale_options options = usual;
    options.every = 1;
    pen_loss_scale scale = {.scale = 0x1p127};
    assert_true(pen_loss_scale_advance(&scale, &options, false));
    assert_true(scale.scale == 0x1p127 && scale.good == 0);
    options.growth = 1.1;
    scale = (pen_loss_scale){.scale = 3};
    assert_true(pen_loss_scale_advance(&scale, &options, false));
    assert_true(scale.scale == (float)(3 * 1.1));
    assert_true(pen_loss_scale_inverse(&scale) == (float)(1 / scale.scale));
    scale = (pen_loss_scale){.scale = 1};
    uint32_t count = 1;
    while (pen_loss_scale_advance(&scale, &options, true))
        count++;
    assert_int_equal(count, 128); // 2^-127 has the inverse 2^127, 2^-128 none
    assert_true(pen_loss_scale_inverse(&(pen_loss_scale){0}) == 1);
    assert_true(pen_loss_scale_factor(&(pen_loss_scale){0}) == 1);
}

PEN_TEST_MAIN(cmocka_unit_test(follows_gradscaler), cmocka_unit_test(stays_finite))
