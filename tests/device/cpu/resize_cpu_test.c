#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

static const char *const modes[] = {"nearest", "linear", "cubic"};
static const char *const coordinates[] = {"half_pixel", "asymmetric", "align_corners",
                                          "pytorch_half_pixel"};

// A resize of planes by random sizes; `backward` gives the shapes of its gradient.
static void check_resize(uint64_t seed, bool backward) {
    random_case random = {seed, 0};
    int64_t sizes[4], shape[4];
    const uint32_t rank = (uint32_t)random_between(&random, 2, 4);
    for (uint32_t d = 0; d < rank; d++) {
        shape[d] = random_between(&random, 1, 9);
        sizes[d] = d + 2 < rank ? shape[d] : random_between(&random, 1, 17);
    }
    op_case c = {
        .op = backward ? "resize_backward" : "resize",
        .input_count = 4,
        .inputs = {{.type = pen_tensor_type_make(PEN_FLOAT32, rank, backward ? sizes : shape)},
                   {.is_absent = true},
                   {.is_absent = true},
                   {.type = op_type(PEN_INT64, 1, (int)rank), .data = sizes, .is_constant = true}},
        .attribute_count = backward ? 4 : 3,
        .attributes = {
            pen_attribute_text("mode", modes[seed % 3]),
            pen_attribute_text("coordinate_transformation_mode", coordinates[seed / 3 % 4]),
            pen_attribute_int("exclude_outside", random_chance(&random, 30)),
            pen_attribute_ints("shape", rank, shape)}};
    op_check_device(&c, seed, 2e-6);
}

static void resizes_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        check_resize(seed, false);
    }
}

static void gradients_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        check_resize(seed, true);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(resizes_equal_reference),
              cmocka_unit_test(gradients_equal_reference))
