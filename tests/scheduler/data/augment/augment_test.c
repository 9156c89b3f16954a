#include "scheduler/data/augment/augment.h"

#include <math.h>
#include <string.h>

#include "scheduler/data/augment/augment_pixels.h"
#include "scheduler/data/batches.h"
#include "tests/support/check.h"

#define CHANNELS 3
#define HEIGHT 6
#define WIDTH 7
#define ELEMENTS (CHANNELS * HEIGHT * WIDTH)
#define EXAMPLES 5
#define SEED 11

static const pen_augment_step crop = {.kind = PEN_AUGMENT_RANDOM_CROP, .padding = 2, .fill = 0.25};
static const pen_augment_step resized = {.kind = PEN_AUGMENT_RANDOM_RESIZED_CROP,
                                         .scale_low = 0.08,
                                         .scale_high = 1,
                                         .ratio_low = 3.0 / 4,
                                         .ratio_high = 4.0 / 3};
static const pen_augment_step narrow = {.kind = PEN_AUGMENT_RANDOM_RESIZED_CROP,
                                        .scale_low = 0.9,
                                        .scale_high = 1,
                                        .ratio_low = 0.2,
                                        .ratio_high = 0.3};
static const pen_augment_step mirror = {.kind = PEN_AUGMENT_HORIZONTAL_FLIP, .probability = 0.5};
static const pen_augment_step turn = {.kind = PEN_AUGMENT_VERTICAL_FLIP, .probability = 0.5};
static const pen_augment_step jitter = {.kind = PEN_AUGMENT_COLOR_JITTER,
                                        .brightness = 0.4,
                                        .contrast = 0.3,
                                        .saturation = 1.5,
                                        .maximum = 1};
static const pen_augment_step erasing = {.kind = PEN_AUGMENT_RANDOM_ERASING,
                                         .probability = 0.9,
                                         .scale_low = 0.02,
                                         .scale_high = 0.33,
                                         .ratio_low = 0.3,
                                         .ratio_high = 3.3,
                                         .fill = 0.5};
static const double mean[CHANNELS] = {0.4, 0.5, 0.6};
static const double deviation[CHANNELS] = {0.25, 0.5, 0.2};

// The pictures of the reference, in memory.
typedef struct pictures {
    float values[EXAMPLES * ELEMENTS];
    pen_dataset_array array;
    pen_dataset_input input;
} pictures;

static void paint(pictures *p, bool is_last) {
    for (int i = 0; i < EXAMPLES; i++) {
        for (int k = 0; k < ELEMENTS; k++) {
            const int pixel = k % (HEIGHT * WIDTH), channel = k / (HEIGHT * WIDTH);
            const int at = is_last ? pixel * CHANNELS + channel : k;
            p->values[i * ELEMENTS + at] = (float)((k * 37 + i * 101) % 256 / 255.0);
        }
    }
    p->array = (pen_dataset_array){.name = "x",
                                   .element = PEN_NPY_FLOAT32,
                                   .rank = 4,
                                   .shape = {EXAMPLES, CHANNELS, HEIGHT, WIDTH},
                                   .data = p->values};
    if (is_last) {
        const int64_t shape[] = {EXAMPLES, HEIGHT, WIDTH, CHANNELS};
        memcpy(p->array.shape, shape, sizeof shape);
    }
    p->input = (pen_dataset_input){.name = "x", .path = "x"};
}

static pen_dataset_options options_of(const pictures *p, const pen_augment_step *steps,
                                      uint32_t count) {
    return (pen_dataset_options){.format = "arrays",
                                 .inputs = &p->input,
                                 .input_count = 1,
                                 .arrays = &p->array,
                                 .array_count = 1,
                                 .augment = steps,
                                 .augment_count = count,
                                 .seed = SEED};
}

static pen_dataset *open_pictures(const pen_dataset_options *options) {
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(options, &dataset));
    return dataset;
}

// ---- what the reference has

typedef struct reference_case {
    pen_augment_step steps[5];
    uint32_t count;
    bool is_normalized;
} reference_case;

static const struct { uint64_t epoch, example; } pairs[] = {{0, 0}, {0, 4}, {3, 4}, {7, 1}};

static void check_case(const reference_case *one, bool is_last, const float *expected) {
    pictures p;
    paint(&p, is_last);
    pen_dataset_options options = options_of(&p, one->steps, one->count);
    if (one->is_normalized) {
        options.mean = mean;
        options.deviation = deviation;
        options.mean_count = options.deviation_count = CHANNELS;
    }
    options.flatten = true;
    pen_dataset *dataset = open_pictures(&options);
    for (size_t n = 0; n < sizeof pairs / sizeof pairs[0]; n++) {
        float found[ELEMENTS];
        void *inputs[] = {found};
        CHECK_OK(
            pen_dataset_read_epoch(dataset, pairs[n].epoch, &pairs[n].example, 1, inputs, NULL));
        for (int k = 0; k < ELEMENTS; k++) {
            const int pixel = k % (HEIGHT * WIDTH), channel = k / (HEIGHT * WIDTH);
            const float value = found[is_last ? pixel * CHANNELS + channel : k];
            CHECK(value == expected[n * ELEMENTS + (size_t)k], "pair %d, element %d: %.9g, %.9g",
                  (int)n, k, (double)value, (double)expected[n * ELEMENTS + (size_t)k]);
        }
    }
    pen_dataset_close(dataset);
}

static void changes_are_those_of_the_reference_bit_for_bit(void **state) {
    (void)state;
    const reference_case cases[] = {
        {{crop}, 1, false},   {{resized}, 1, false},
        {{mirror}, 1, false}, {{turn}, 1, false},
        {{jitter}, 1, false}, {{erasing}, 1, false},
        {{narrow}, 1, false}, {{resized, crop, mirror, jitter, erasing}, 5, true},
    };
    const uint64_t count = sizeof cases / sizeof cases[0];
    float expected[sizeof pairs / sizeof pairs[0] * ELEMENTS];
    void *memory[] = {expected};
    const pen_dataset_input file = {.name = "x", .path = "tests/reference/augment/changed.npy"};
    const pen_dataset_options options = {.format = "npy", .inputs = &file, .input_count = 1};
    pen_dataset *dataset = open_pictures(&options);
    assert_int_equal(pen_dataset_get_info(dataset)->example_count, count);
    assert_int_equal(pen_dataset_get_info(dataset)->inputs[0].bytes, sizeof expected);
    for (uint64_t c = 0; c < count; c++) {
        print_message("case %d\n", (int)c);
        CHECK_OK(pen_dataset_read(dataset, &c, 1, memory, NULL));
        check_case(&cases[c], false, expected);
        if (!cases[c].is_normalized) check_case(&cases[c], true, expected);
    }
    pen_dataset_close(dataset);
}

// ---- who reads, and when

static void read_batches(pen_dataset *dataset, const pen_batches_options *options, uint64_t count,
                         float *out_values) {
    pen_batches *batches;
    CHECK_OK(pen_batches_create(dataset, options, &batches));
    for (uint64_t i = 0; i < count; i++) {
        const pen_batch *batch;
        CHECK_OK(pen_batches_next(batches, &batch));
        memcpy(out_values, batch->inputs[0], batch->count * ELEMENTS * sizeof *out_values);
        out_values += batch->count * ELEMENTS;
    }
    pen_batches_destroy(batches);
}

static void a_training_that_goes_on_has_the_same_pictures(void **state) {
    (void)state;
    const pen_augment_step steps[] = {resized, crop, mirror, jitter, erasing};
    pictures p;
    paint(&p, false);
    const pen_dataset_options options = options_of(&p, steps, 5);
    pen_dataset *dataset = open_pictures(&options);
    float all[3 * EXAMPLES * ELEMENTS], rest[sizeof all / sizeof all[0]],
        plain[EXAMPLES * ELEMENTS];
    pen_batches_options order = {.batch_size = 2, .shuffle = true, .seed = 1, .is_training = true};
    read_batches(dataset, &order, 9, all);
    // three batches an epoch: 2, 2 and 1
    for (uint64_t b = 1; b < 9; b++) {
        const uint64_t before = b / 3 * EXAMPLES + b % 3 * 2;
        order.start = (pen_batches_position){.epoch = b / 3, .index = b % 3};
        read_batches(dataset, &order, 9 - b, rest);
        CHECK(memcmp(rest, all + before * ELEMENTS, (3 * EXAMPLES - before) * ELEMENTS * 4) == 0,
              "from batch %d", (int)b);
    }
    order = (pen_batches_options){.batch_size = EXAMPLES};
    read_batches(dataset, &order, 1, plain);
    assert_memory_equal(plain, p.values, sizeof plain);
    pen_dataset_close(dataset);
}

static void what_cannot_be_changed_is_refused(void **state) {
    (void)state;
    const pen_augment_step late[] = {mirror, resized};
    pictures p;
    pen_dataset *dataset;
    paint(&p, false);
    pen_dataset_options options = options_of(&p, late, 2);
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                "augment[1]: found random_resized_crop, expected it first");
    options = options_of(&p, &mirror, 1);
    options.labels = "x";
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_UNSUPPORTED,
                "the labels have 3 dimensions, and would not follow");
    options.labels = NULL;
    p.array.rank = 2;
    p.array.shape[1] = ELEMENTS;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "no input is a picture");
    p.array.rank = 4;
    p.array.shape[1] = 2;
    p.array.shape[2] = 9;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                "the shape [2, 9, 7], expected 1, 3 or 4 channels, first or last");
    paint(&p, false);
    pen_augment_step wrong = crop;
    wrong.padding = 1 << 20;
    options.augment = &wrong;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                "augment[0]: random_crop has a number out of its range");
    options = options_of(&p, &jitter, 1);
    p.values[2 * ELEMENTS] = 212;
    dataset = open_pictures(&options);
    float found[EXAMPLES * ELEMENTS];
    const uint64_t indices[] = {0, 1, 2, 3, 4};
    void *inputs[] = {found};
    CHECK_ERROR(pen_dataset_read_epoch(dataset, 0, indices, EXAMPLES, inputs, NULL),
                PEN_INVALID_INPUT,
                "color_jitter: example 2 (counted from 0) has the value 212, expected 0 to 1");
    pen_dataset_close(dataset);
}

// ---- how chance decides

#define TRIES 20000

// Whether `count` of TRIES is what `share` leads to expect, within five deviations.
static void check_share(const char *what, double count, double share) {
    const double off = fabs(count - share * TRIES) / sqrt(TRIES * share * (1 - share));
    CHECK(off < 5, "%s: %g of %d, expected %g", what, count, TRIES, share * TRIES);
}

static void chance_decides_as_it_is_asked(void **state) {
    (void)state;
    double mirrored = 0, erased = 0, moved[5] = {0}, wide = 0, large = 0;
    for (uint64_t i = 0; i < TRIES; i++) {
        const pen_augment_dice dice = pen_augment_dice_of(SEED, i % 10, 0, i / 10);
        pen_augment_box box;
        mirrored += pen_augment_uniform(dice, 0) < 0.5;
        moved[pen_augment_below(dice, 1, 5)] += 1;
        erased += pen_augment_draw_erasing(&erasing, dice, 200, 200, &box);
        box = pen_augment_draw_crop(&resized, dice, 1000, 1000);
        CHECK(box.left + box.width <= 1000 && box.top + box.height <= 1000, "beyond the picture");
        const double area = box.width * box.height / 1e6, ratio = (double)box.width / box.height;
        CHECK(area > 0.079 && area <= 1 && ratio > 0.745 && ratio < 1.34, "%g %g", area, ratio);
        wide += ratio > 1;
        large += area > 0.54;
    }
    check_share("mirrored", mirrored, 0.5);
    check_share("erased", erased, 0.9);
    check_share("wider than high", wide, 0.5);
    for (int i = 0; i < 5; i++)
        check_share("moved", moved[i], 0.2);
    // areas are uniform, but of the largest some fit in no place: less than half, more than a third
    CHECK(large / TRIES > 0.33 && large / TRIES < 0.5, "large: %g", large / TRIES);
}

// Numbers of examples, epochs and places in the list are independent: no two are the same.
static void no_two_changes_draw_the_same(void **state) {
    (void)state;
    double sum = 0, products = 0;
    for (uint64_t i = 0; i < TRIES; i++) {
        const pen_augment_dice one = pen_augment_dice_of(SEED, 1, 0, i);
        const pen_augment_dice neighbours[] = {
            pen_augment_dice_of(SEED, 1, 1, i), pen_augment_dice_of(SEED, 2, 0, i),
            pen_augment_dice_of(SEED, 1, 0, i + 1), pen_augment_dice_of(SEED + 1, 1, 0, i)};
        const double number = pen_augment_uniform(one, 0) - 0.5;
        sum += number;
        for (int n = 0; n < 4; n++) {
            const double other = pen_augment_uniform(neighbours[n], 0) - 0.5;
            CHECK(number != other, "%d", n);
            products += number * other;
        }
    }
    CHECK(fabs(sum / TRIES) < 5 * sqrt(1.0 / 12 / TRIES), "%g", sum / TRIES);
    CHECK(fabs(products / 4 / TRIES) < 5.0 / 12 / sqrt(4.0 * TRIES), "%g", products / 4 / TRIES);
}

PEN_TEST_MAIN(cmocka_unit_test(changes_are_those_of_the_reference_bit_for_bit),
              cmocka_unit_test(a_training_that_goes_on_has_the_same_pictures),
              cmocka_unit_test(what_cannot_be_changed_is_refused),
              cmocka_unit_test(chance_decides_as_it_is_asked),
              cmocka_unit_test(no_two_changes_draw_the_same))
