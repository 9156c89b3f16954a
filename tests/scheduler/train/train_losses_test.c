// A step that is done again has the same loss, or is found out.
#include "scheduler/train/train_losses.h"

#include <math.h>

#include "tests/support/check.h"

static double loss_of(uint64_t step) {
    return 1.0 / (double)(step + 1);
}

static void add_all(pen_train_losses *losses, uint64_t first, uint64_t last) {
    for (uint64_t step = first; step <= last; step++) {
        CHECK_OK(pen_train_losses_add(losses, step, loss_of(step)));
    }
}

static void steps_done_again_are_compared(void **state) {
    pen_train_losses losses = {0};
    (void)state;
    pen_train_losses_rewind(&losses, 0, 0);
    add_all(&losses, 1, 20);
    const uint64_t hash = pen_train_losses_hash(&losses);
    pen_train_losses_rewind(&losses, 0, 0);
    add_all(&losses, 1, 20);
    assert_true(pen_train_losses_hash(&losses) == hash);
    pen_train_losses_rewind(&losses, 0, 0);
    CHECK_ERROR(pen_train_losses_add(&losses, 1, nextafter(loss_of(1), 2)), PEN_CORRUPT,
                "done again");
    pen_train_losses_deinit(&losses);
}

static void a_hash_goes_on_from_a_checkpoint(void **state) {
    pen_train_losses whole = {0}, rest = {0};
    (void)state;
    pen_train_losses_rewind(&whole, 0, 0);
    add_all(&whole, 1, 10);
    const uint64_t hash = pen_train_losses_hash(&whole);
    add_all(&whole, 11, 15);
    pen_train_losses_rewind(&rest, 10, hash);
    add_all(&rest, 11, 15);
    assert_true(pen_train_losses_hash(&rest) == pen_train_losses_hash(&whole));
    pen_train_losses_deinit(&whole);
    pen_train_losses_deinit(&rest);
}

static void more_than_are_kept_are_no_harm(void **state) {
    pen_train_losses losses = {0};
    (void)state;
    pen_train_losses_rewind(&losses, 0, 0);
    add_all(&losses, 1, PEN_TRAIN_LOSSES_KEPT + 100);
    // step 50 is not known any more, those behind 101 are
    pen_train_losses_rewind(&losses, 200, 0);
    CHECK_ERROR(pen_train_losses_add(&losses, 201, 5), PEN_CORRUPT, "done again");
    pen_train_losses_rewind(&losses, 49, 0);
    CHECK_OK(pen_train_losses_add(&losses, 50, 5));
    pen_train_losses_deinit(&losses);
}

PEN_TEST_MAIN(cmocka_unit_test(steps_done_again_are_compared),
              cmocka_unit_test(a_hash_goes_on_from_a_checkpoint),
              cmocka_unit_test(more_than_are_kept_are_no_harm))
