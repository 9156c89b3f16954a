#include "scheduler/job/loss_scale.h"

#include "tests/support/check.h"

static const pen_loss_scale_options usual = {
    .initial = 65536, .growth = 2, .backoff = 0.5, .every = 3, .floor = 1e-4};

// With a finite loss.
static pen_loss_scale_verdict advance(pen_loss_scale *scale, const pen_loss_scale_options *options,
                                      bool is_skipped) {
    const pen_loss_scale_step step = {.is_skipped = is_skipped, .is_loss_finite = true};
    return pen_loss_scale_advance(scale, options, &step);
}

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
        assert_int_equal(advance(&scale, &usual, steps[i].is_skipped), PEN_LOSS_SCALE_GOES_ON);
        CHECK(scale.scale == steps[i].scale, "step %zu: %g, expected %g", i, scale.scale,
              steps[i].scale);
        assert_int_equal(scale.good, steps[i].good);
        assert_int_equal(scale.skipped, steps[i].skipped);
    }
}

// A scale is a float32, and grows while it is finite.
static void stays_finite(void **state) {
    (void)state;
    pen_loss_scale_options options = usual;
    options.every = 1;
    pen_loss_scale scale = {.scale = 0x1p127};
    assert_int_equal(advance(&scale, &options, false), PEN_LOSS_SCALE_GOES_ON);
    assert_true(scale.scale == 0x1p127 && scale.good == 0);
    options.growth = 1.1;
    scale = (pen_loss_scale){.scale = 3};
    assert_int_equal(advance(&scale, &options, false), PEN_LOSS_SCALE_GOES_ON);
    assert_true(scale.scale == (float)(3 * 1.1));
    assert_true(pen_loss_scale_inverse(&scale) == (float)(1 / scale.scale));
    assert_true(pen_loss_scale_inverse(&(pen_loss_scale){0}) == 1);
    assert_true(pen_loss_scale_factor(&(pen_loss_scale){0}) == 1);
}

// A scale at its floor falls no further, and stays as it is where the training ends.
static void sinks_to_the_floor(void **state) {
    (void)state;
    pen_loss_scale_options options = usual;
    pen_loss_scale scale = {.scale = 1};
    uint32_t count = 0;
    while (advance(&scale, &options, true) == PEN_LOSS_SCALE_GOES_ON)
        count++;
    assert_int_equal(count, 13); // 2^-13 is above 0.0001, 2^-14 is not
    assert_true(scale.scale == 0x1p-13 && scale.skipped == 13);
    assert_int_equal(advance(&scale, &options, true), PEN_LOSS_SCALE_SUNK);
    options.floor = 0x1p-14;
    assert_int_equal(advance(&scale, &options, true), PEN_LOSS_SCALE_GOES_ON);
    assert_true(scale.scale == 0x1p-14);
}

// Losses that are not finite end a training when there are too many in a row, and only then.
static void losses_in_a_row_end_it(void **state) {
    (void)state;
    const pen_loss_scale_step bad = {.is_skipped = true, .is_loss_finite = false};
    for (int breaks = 0; breaks < 3;
         breaks++) { // nothing between; a good step; one that is skipped
        pen_loss_scale scale = pen_loss_scale_start(&usual);
        for (int i = 0; i < PEN_LOSS_SCALE_BAD_LIMIT - 1; i++) {
            assert_int_equal(pen_loss_scale_advance(&scale, &usual, &bad), PEN_LOSS_SCALE_GOES_ON);
        }
        assert_int_equal(scale.bad, PEN_LOSS_SCALE_BAD_LIMIT - 1);
        if (breaks > 0) {
            assert_int_equal(advance(&scale, &usual, breaks == 2), PEN_LOSS_SCALE_GOES_ON);
        }
        assert_int_equal(pen_loss_scale_advance(&scale, &usual, &bad),
                         breaks == 0 ? PEN_LOSS_SCALE_LOST : PEN_LOSS_SCALE_GOES_ON);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(follows_gradscaler), cmocka_unit_test(stays_finite),
              cmocka_unit_test(sinks_to_the_floor), cmocka_unit_test(losses_in_a_row_end_it))
