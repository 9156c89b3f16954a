#include <png.h>

#include "scheduler/data/dataset.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/scratch.h"

#define MANY 60

static void pictures_are_the_same_with_any_number_of_threads(void **state) {
    (void)state;
    static const uint32_t thread_counts[] = {1, 2, 5};
    static float pictures[3][MANY * 3 * 7 * 9];
    char name[128];
    uint64_t indices[MANY];
    pen_dataset *datasets[3];
    dice d = {.seed = 3};
    uint8_t pixels[26 * 30 * 3];
    static uint8_t bytes[8192];
    for (int i = 0; i < MANY; i++) {
        png_image png = {.version = PNG_IMAGE_VERSION, .height = 30, .format = PNG_FORMAT_RGB};
        png.width = 20 + (uint32_t)i % 7;
        for (size_t p = 0; p < sizeof pixels; p++)
            pixels[p] = (uint8_t)dice_between(&d, 0, 255);
        png_alloc_size_t size = sizeof bytes;
        assert_true(png_image_write_to_memory(&png, bytes, &size, 0, pixels, 0, NULL));
        snprintf(name, sizeof name, "%s/all/%02d.png", __func__, i);
        scratch_file(name, bytes, size);
        indices[i] = (uint64_t)(i * 7 % MANY);
    }
    for (int t = 0; t < 3; t++) {
        const pen_dataset_options options = {.format = "images",
                                             .path = scratch_path(__func__),
                                             .image_height = 7,
                                             .image_width = 9,
                                             .channels_last = true,
                                             .threads = thread_counts[t]};
        CHECK_OK(pen_dataset_open(&options, &datasets[t]));
        for (int run = 0; run < 3; run++) {
            CHECK_OK(pen_dataset_read(datasets[t], indices, MANY, (void *[]){pictures[t]}, NULL));
            assert_memory_equal(pictures[t], pictures[0], sizeof pictures[0]);
        }
    }
    // of two that are broken, the first in the order that is asked for is named
    snprintf(name, sizeof name, "%s/all/%02d.png", __func__, (int)indices[50]);
    scratch_file(name, "\x89PNG\r\n\x1a\nbroken", 14);
    snprintf(name, sizeof name, "%s/all/%02d.png", __func__, (int)indices[41]);
    scratch_file(name, "\x89PNG\r\n\x1a\nbroken", 14);
    for (int t = 0; t < 3; t++) {
        for (int run = 0; run < 10; run++) {
            CHECK_ERROR(pen_dataset_read(datasets[t], indices, MANY, (void *[]){pictures[t]}, NULL),
                        PEN_CORRUPT, name + strlen(__func__));
        }
        pen_dataset_close(datasets[t]);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(pictures_are_the_same_with_any_number_of_threads))
