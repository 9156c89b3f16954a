#include <math.h>
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

#define FEW 12
#define SIDE 24

static const pen_augment_step changes[] = {
    {.kind = PEN_AUGMENT_RANDOM_RESIZED_CROP,
     .scale_low = 0.1,
     .scale_high = 1,
     .ratio_low = 0.5,
     .ratio_high = 2},
    {.kind = PEN_AUGMENT_RANDOM_CROP, .padding = 3},
    {.kind = PEN_AUGMENT_HORIZONTAL_FLIP, .probability = 0.5},
    {.kind = PEN_AUGMENT_COLOR_JITTER, .brightness = 0.5, .contrast = 0.5, .maximum = 1},
};

// Pictures that need not be resized, in files and in memory: a part of a file is cut before the
// rest is thrown away, that of an array from all that there is, which is the same here.
static void changes_are_those_of_arrays_with_any_number_of_threads(void **state) {
    (void)state;
    static uint8_t pixels[FEW * SIDE * SIDE * 3], bytes[8192];
    static float pictures[4][FEW * SIDE * SIDE * 3];
    char name[128];
    uint64_t indices[FEW];
    dice d = {.seed = 4};
    for (size_t p = 0; p < sizeof pixels; p++)
        pixels[p] = (uint8_t)dice_between(&d, 0, 255);
    for (int i = 0; i < FEW; i++) {
        png_image png = {.version = PNG_IMAGE_VERSION, .height = SIDE, .format = PNG_FORMAT_RGB};
        png.width = SIDE;
        png_alloc_size_t size = sizeof bytes;
        assert_true(png_image_write_to_memory(&png, bytes, &size, 0, pixels + i * SIDE * SIDE * 3,
                                              0, NULL));
        snprintf(name, sizeof name, "%s/all/%02d.png", __func__, i);
        scratch_file(name, bytes, size);
        indices[i] = (uint64_t)i;
    }
    const pen_dataset_array array = {.name = "x",
                                     .element = PEN_NPY_UINT8,
                                     .rank = 4,
                                     .shape = {FEW, SIDE, SIDE, 3},
                                     .data = pixels};
    const pen_dataset_input input = {.name = "x", .path = "x"};
    for (int t = 0; t < 4; t++) {
        const bool is_array = t == 3;
        pen_dataset *dataset;
        const pen_dataset_options options = {.format = is_array ? "arrays" : "images",
                                             .inputs = &input,
                                             .input_count = is_array,
                                             .arrays = &array,
                                             .array_count = is_array,
                                             .path = scratch_path(__func__),
                                             .image_height = SIDE,
                                             .scale = 1.0 / 255,
                                             .channels_last = true,
                                             .threads = (uint32_t)t * 2 + 1,
                                             .augment = changes,
                                             .augment_count = 4,
                                             .seed = 9};
        CHECK_OK(pen_dataset_open(&options, &dataset));
        CHECK_OK(pen_dataset_read_epoch(dataset, 5, indices, FEW, (void *[]){pictures[t]}, NULL));
        pen_dataset_close(dataset);
    }
    assert_memory_equal(pictures[1], pictures[0], sizeof pictures[0]);
    assert_memory_equal(pictures[2], pictures[0], sizeof pictures[0]);
    // resized, then divided by 255, or the other way round
    for (size_t p = 0; p < sizeof pixels; p++) {
        CHECK(fabsf(pictures[3][p] - pictures[0][p]) < 2e-6f, "%d: %g, %g", (int)p,
              (double)pictures[3][p], (double)pictures[0][p]);
    }
}

// Pictures in folder NAME0, some of them broken, and in NAME1 without those.
static void write_broken(const char *folder) {
    static const char *const kinds[] = {"\x89PNG\r\n\x1a\nbroken", "<html>", ""};
    uint8_t pixels[8 * 8 * 3], bytes[4096];
    char name[128];
    dice d = {.seed = 5};
    for (int i = 0; i < 20; i++) {
        png_image png = {.version = PNG_IMAGE_VERSION, .height = 8, .format = PNG_FORMAT_RGB};
        png.width = 8;
        for (size_t p = 0; p < sizeof pixels; p++)
            pixels[p] = (uint8_t)dice_between(&d, 0, 255);
        png_alloc_size_t size = sizeof bytes;
        assert_true(png_image_write_to_memory(&png, bytes, &size, 0, pixels, 0, NULL));
        const bool is_broken = i % 5 == 1;
        for (int copy = 0; copy < 2; copy++) {
            snprintf(name, sizeof name, "%s%d/%s/%02d.png", folder, copy, i < 10 ? "a" : "b", i);
            if (copy == 0 && is_broken) {
                // the last is good but for its end
                const char *kind = i == 16 ? (const char *)bytes : kinds[i / 5];
                scratch_file(name, kind, i == 16 ? size - 30 : strlen(kind));
            } else if (copy == 0 || !is_broken) {
                scratch_file(name, bytes, size);
            }
        }
    }
}

// Example i of all of them is the same.
static void check_same(pen_dataset *const *datasets, int count, uint64_t example_count) {
    for (uint64_t i = 0; i < example_count; i++) {
        float pictures[3][8 * 8 * 3];
        int64_t labels[3];
        for (int k = 0; k < count; k++) {
            CHECK_OK(pen_dataset_read(datasets[k], &i, 1, (void *[]){pictures[k]},
                                      (void *[]){&labels[k]}));
            assert_memory_equal(pictures[k], pictures[0], sizeof pictures[0]);
            assert_int_equal(labels[k], labels[0]);
        }
    }
}

// A folder with broken pictures is read as one without them; who knows them need not look.
static void broken_pictures_can_be_left_out(void **state) {
    (void)state;
    char name[128];
    write_broken(__func__);
    pen_dataset *broken, *good, *told;
    snprintf(name, sizeof name, "%s0", __func__);
    pen_dataset_options options = {.format = "images",
                                   .path = scratch_path(name),
                                   .image_height = 8,
                                   .threads = 3,
                                   .skips_broken = true};
    CHECK_OK(pen_dataset_open(&options, &broken));
    const pen_dataset_info *info = pen_dataset_get_info(broken);
    assert_int_equal(info->example_count, 16);
    assert_int_equal(info->broken_count, 4);
    CHECK(strstr(info->broken_text, "a/01.png") != NULL, "%s", info->broken_text);
    options.broken = info->broken;
    options.broken_count = info->broken_count;
    options.broken_is_known = true;
    CHECK_OK(pen_dataset_open(&options, &told));
    snprintf(name, sizeof name, "%s1", __func__);
    const pen_dataset_options plain = {
        .format = "images", .path = scratch_path(name), .image_height = 8, .threads = 1};
    CHECK_OK(pen_dataset_open(&plain, &good));
    assert_int_equal(pen_dataset_get_info(good)->example_count, 16);
    check_same((pen_dataset *[]){broken, told, good}, 3, 16);
    pen_dataset_close(broken);
    pen_dataset_close(good);
    pen_dataset_close(told);
    const uint64_t wrong[][2] = {{3, 3}, {3, 20}};
    for (int w = 0; w < 2; w++) {
        options.broken = wrong[w];
        options.broken_count = 2;
        CHECK_ERROR(pen_dataset_open(&options, &told), PEN_INVALID_INPUT, "is said to be broken");
    }
    options.broken_is_known = options.skips_broken = false;
    CHECK_OK(pen_dataset_open(&options, &broken));
    float picture[8 * 8 * 3];
    CHECK_ERROR(pen_dataset_read(broken, (uint64_t[]){1}, 1, (void *[]){picture}, NULL),
                PEN_CORRUPT, "a/01.png");
    pen_dataset_close(broken);
}

PEN_TEST_MAIN(cmocka_unit_test(broken_pictures_can_be_left_out),
              cmocka_unit_test(pictures_are_the_same_with_any_number_of_threads),
              cmocka_unit_test(changes_are_those_of_arrays_with_any_number_of_threads))
