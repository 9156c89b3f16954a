#include "scheduler/data/augment/augment_mix.h"

#include <math.h>
#include <string.h>

#include "scheduler/data/batches.h"
#include "tests/support/check.h"

#define COUNT 5
#define HEIGHT 6
#define WIDTH 7
#define PIXELS (HEIGHT * WIDTH)
#define ELEMENTS (3 * PIXELS)
#define CLASSES 4
#define DRAWN 20000

// The pictures of the reference, and their classes.
typedef struct pictures {
    float values[COUNT * ELEMENTS];
    int64_t labels[COUNT];
    pen_dataset_array arrays[2];
    pen_dataset_input input;
} pictures;

static void paint(pictures *p, bool is_last) {
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < ELEMENTS; k++) {
            const int at = is_last ? k % PIXELS * 3 + k / PIXELS : k;
            p->values[i * ELEMENTS + at] = (float)((k * 37 + i * 101) % 256 / 255.0);
        }
        p->labels[i] = i * 3 % CLASSES;
    }
    p->arrays[0] = (pen_dataset_array){.name = "x",
                                       .element = PEN_NPY_FLOAT32,
                                       .rank = 4,
                                       .shape = {COUNT, 3, HEIGHT, WIDTH},
                                       .data = p->values};
    if (is_last) {
        const int64_t shape[] = {COUNT, HEIGHT, WIDTH, 3};
        memcpy(p->arrays[0].shape, shape, sizeof shape);
    }
    p->arrays[1] = (pen_dataset_array){
        .name = "y", .element = PEN_NPY_INT64, .rank = 1, .shape = {COUNT}, .data = p->labels};
    p->input = (pen_dataset_input){.name = "x", .path = "x"};
}

static pen_dataset_options options_of(const pictures *p, double mixup, double cutmix) {
    return (pen_dataset_options){
        .format = "arrays",
        .inputs = &p->input,
        .input_count = 1,
        .labels = "y",
        .arrays = p->arrays,
        .array_count = 2,
        .flatten = true,
        .mix = {.mixup = mixup, .cutmix = cutmix, .probability = 1, .class_count = CLASSES},
        .seed = 11};
}

typedef struct reference_case {
    double mixup, cutmix;
    uint64_t epoch, batch;
} reference_case;

typedef float reference_batch[COUNT][ELEMENTS + CLASSES];

// Of a case of the reference, pictures with channels first or last.
static void check_case(const reference_case *one, bool is_last, reference_batch expected) {
    static const uint64_t indices[COUNT] = {0, 1, 2, 3, 4};
    float values[COUNT * ELEMENTS], labels[COUNT * CLASSES];
    void *inputs[] = {values}, *targets[] = {labels};
    pictures p;
    pen_dataset *dataset;
    paint(&p, is_last);
    const pen_dataset_options options = options_of(&p, one->mixup, one->cutmix);
    CHECK_OK(pen_dataset_open(&options, &dataset));
    CHECK(pen_dataset_get_info(dataset)->labels->bytes == CLASSES * sizeof(float), "labels");
    CHECK_OK(pen_dataset_read_epoch(dataset, one->epoch, indices, COUNT, inputs, targets));
    pen_dataset_mix(dataset, one->epoch, one->batch, COUNT, inputs, targets);
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < ELEMENTS; k++) {
            const float found = values[i * ELEMENTS + (is_last ? k % PIXELS * 3 + k / PIXELS : k)];
            CHECK(found == expected[i][k], "example %d, element %d: %.9g, expected %.9g", i, k,
                  (double)found, (double)expected[i][k]);
        }
        for (int c = 0; c < CLASSES; c++) {
            const float found = labels[i * CLASSES + c], wanted = expected[i][ELEMENTS + c];
            CHECK(found == wanted, "example %d, class %d: %.9g, expected %.9g", i, c, (double)found,
                  (double)wanted);
        }
    }
    pen_dataset_close(dataset);
}

static void batches_are_those_of_torchvision_bit_for_bit(void **state) {
    (void)state;
    const reference_case cases[] = {
        {0.2, 0, 0, 0}, {0.4, 0, 3, 2}, {1, 0, 0, 1}, {8, 0, 1, 0}, {0, 1, 0, 0}, {0, 1, 2, 5},
        {0, 1, 1, 1},   {0, 0.3, 4, 4}, {1, 1, 0, 2}, {1, 1, 0, 3}, {1, 1, 0, 4}, {1, 1, 0, 5},
    };
    static reference_batch expected;
    void *memory[] = {expected};
    const pen_dataset_input file = {.name = "x", .path = "tests/reference/mix/mixed.npy"};
    const pen_dataset_options options = {.format = "npy", .inputs = &file, .input_count = 1};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    assert_int_equal(pen_dataset_get_info(dataset)->example_count, sizeof cases / sizeof cases[0]);
    assert_int_equal(pen_dataset_get_info(dataset)->inputs[0].bytes, sizeof expected);
    for (uint64_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        print_message("case %d\n", (int)c);
        CHECK_OK(pen_dataset_read(dataset, &c, 1, memory, NULL));
        check_case(&cases[c], false, expected);
        check_case(&cases[c], true, expected);
    }
    pen_dataset_close(dataset);
}

static bool are_same(const float *left, const float *right, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (left[i] != right[i]) return false;
    }
    return true;
}

// The loader mixes what is trained on, and its labels alone where inputs are not read.
static void batches_that_are_trained_on_are_mixed(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        pictures p;
        pen_dataset *dataset;
        pen_batches *batches;
        const pen_batch *batch;
        const float one_hot[CLASSES] = {0, 0, 0, 1}; // of example 1
        paint(&p, false);
        const pen_dataset_options options = options_of(&p, 1, 0);
        CHECK_OK(pen_dataset_open(&options, &dataset));
        const pen_batches_options loading = {
            .batch_size = COUNT, .seed = 11, .is_training = way > 0, .labels_only = way == 2};
        CHECK_OK(pen_batches_create(dataset, &loading, &batches));
        CHECK_OK(pen_batches_next(batches, &batch));
        const bool is_same = are_same((const float *)batch->labels[0] + CLASSES, one_hot, CLASSES);
        CHECK(is_same == (way == 0), "way %d: the labels", way);
        CHECK_OK(pen_batches_complete(batches, batch));
        CHECK(are_same(batch->inputs[0], p.values, COUNT * ELEMENTS) == (way == 0),
              "way %d: the inputs", way);
        pen_batches_destroy(batches);
        pen_dataset_close(dataset);
    }
}

// Beta(alpha, alpha) has the mean 1/2 and the variance 1 / (4 (2 alpha + 1)), and of 1 is uniform.
static void shares_have_their_distribution(void **state) {
    (void)state;
    static const double alphas[] = {0.1, 0.4, 1, 3, 20};
    for (size_t a = 0; a < sizeof alphas / sizeof alphas[0]; a++) {
        pictures p;
        pen_dataset *dataset;
        pen_mix *mix;
        double sum = 0, squares = 0;
        unsigned quarter = 0;
        paint(&p, false);
        const pen_dataset_options options = options_of(&p, alphas[a], 0);
        CHECK_OK(pen_dataset_open(&options, &dataset));
        CHECK_OK(pen_mix_create(&options, pen_dataset_get_info(dataset), &mix));
        for (uint64_t i = 0; i < DRAWN; i++) {
            const pen_mix_share share = pen_mix_draw(mix, i / 100, i % 100);
            CHECK(share.own >= 0 && share.own <= 1 && !share.is_cut, "a share of %g", share.own);
            sum += share.own;
            squares += (share.own - 0.5) * (share.own - 0.5);
            quarter += share.own < 0.25;
        }
        const double variance = 0.25 / (2 * alphas[a] + 1);
        CHECK(fabs(sum / DRAWN - 0.5) < 5 * sqrt(variance / DRAWN), "the mean %g", sum / DRAWN);
        CHECK(fabs(squares / DRAWN / variance - 1) < 0.05, "the variance %g, expected %g",
              squares / DRAWN, variance);
        if (alphas[a] == 1) CHECK(quarter > 4700 && quarter < 5300, "below a quarter: %u", quarter);
        pen_mix_destroy(mix);
        pen_dataset_close(dataset);
    }
}

static void check_refused(const pen_dataset_options *options, const char *text) {
    pen_dataset *dataset = NULL;
    CHECK_ERROR(pen_dataset_open(options, &dataset), PEN_INVALID_INPUT, text);
}

static void what_cannot_be_mixed_is_refused(void **state) {
    (void)state;
    pictures p;
    paint(&p, false);
    pen_dataset_options options = options_of(&p, 1, 0);
    options.mix.class_count = 0;
    check_refused(&options, "expected `classes: N`");
    options.mix.mixup = 1e9;
    options.mix.class_count = CLASSES;
    check_refused(&options, "a number is out of its range");
    options = options_of(&p, 1, 0);
    options.label_element = PEN_DATASET_FLOAT32;
    check_refused(&options, "labels that are numbers already");
    options = options_of(&p, 0, 1);
    p.arrays[0].rank = 2;
    p.arrays[0].shape[1] = ELEMENTS;
    check_refused(&options, "is no picture");
    p.arrays[0].element = PEN_NPY_INT64;
    check_refused(&options, "has whole numbers");

    uint64_t index = 1;
    float values[ELEMENTS], labels[CLASSES];
    pen_dataset *dataset;
    paint(&p, false);
    options = options_of(&p, 1, 0);
    options.mix.class_count = 3;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    CHECK_ERROR(pen_dataset_read(dataset, &index, 1, (void *[]){values}, (void *[]){labels}),
                PEN_INVALID_INPUT, "example 1 has the class 3, expected 0 to 2");
    pen_dataset_close(dataset);
}

PEN_TEST_MAIN(cmocka_unit_test(batches_are_those_of_torchvision_bit_for_bit),
              cmocka_unit_test(batches_that_are_trained_on_are_mixed),
              cmocka_unit_test(shares_have_their_distribution),
              cmocka_unit_test(what_cannot_be_mixed_is_refused))
