#include "scheduler/data/idx_dataset.h"

#include <math.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/memory.h"
#include "scheduler/data/dataset.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define FASHION "/usr/share/datasets/fashion-mnist/"

// 3 pictures of 2 x 2
static const uint8_t pictures[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0,  0,
                                   0, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};
static const uint8_t classes[] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 0, 2};

static void reads_fashion_mnist(void **state) {
    (void)state;
    if (access(FASHION "train-images-idx3-ubyte.gz", R_OK) != 0) {
        fail_msg("%s is not there: install the Debian package dataset-fashion-mnist (make deps)",
                 FASHION);
    }
    const pen_dataset_options options = {.format = "idx",
                                         .path = FASHION "train-images-idx3-ubyte.gz",
                                         .labels = FASHION "train-labels-idx1-ubyte.gz",
                                         .class_count = 10};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    assert_int_equal(info->example_count, 60000);
    assert_int_equal(info->class_count, 10);
    assert_int_equal(info->inputs[0].rank, 3);
    assert_int_equal(info->inputs[0].shape[0], 1);
    assert_int_equal(info->inputs[0].shape[1], 28);
    assert_int_equal(info->inputs[0].shape[2], 28);
    assert_int_equal(info->labels->rank, 0);
    // facts of the data set: ten classes of 6000, mean 0.2860, first labels 9 0 0 3
    float *images = malloc(1000 * 784 * sizeof *images);
    int64_t labels[1000];
    uint64_t histogram[10] = {0};
    double sum = 0;
    for (uint64_t first = 0; first < 60000; first += 1000) {
        uint64_t indices[1000];
        for (uint64_t i = 0; i < 1000; i++)
            indices[i] = first + i;
        CHECK_OK(pen_dataset_read(dataset, indices, 1000, (void *[]){images}, (void *[]){labels}));
        for (int i = 0; i < 1000; i++)
            histogram[labels[i]]++;
        for (int i = 0; i < 784000; i++)
            sum += (double)images[i];
        if (first == 0) {
            assert_int_equal(labels[0], 9);
            assert_int_equal(labels[1], 0);
            assert_int_equal(labels[3], 3);
        }
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(histogram[i], 6000);
    CHECK(fabs(sum / 60000 / 784 - 0.28604) < 1e-5, "mean is %.6f", sum / 60000 / 784);
    free(images);
    pen_dataset_close(dataset);
}

static void scales_bytes_as_division_does(void **state) {
    (void)state;
    uint8_t bytes[4 + 8 + 256] = {0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 1, 0};
    for (int i = 0; i < 256; i++)
        bytes[12 + i] = (uint8_t)i;
    const double mean = 0.1307, deviation = 0.3081;
    pen_dataset_options options = {.format = "idx",
                                   .path = scratch_file("bytes", bytes, sizeof bytes)};
    float values[256];
    for (int normalised = 0; normalised < 2; normalised++) {
        if (normalised) {
            options.mean = &mean;
            options.deviation = &deviation;
            options.mean_count = options.deviation_count = 1;
        }
        pen_dataset *dataset;
        CHECK_OK(pen_dataset_open(&options, &dataset));
        CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){0}, 1, (void *[]){values}, NULL));
        for (int i = 0; i < 256; i++) {
            float expected = (float)i / 255.0f;
            if (normalised) expected = (expected - (float)mean) / (float)deviation;
            CHECK(values[i] == expected, "%d gives %.9g, expected %.9g", i, (double)values[i],
                  (double)expected);
        }
        pen_dataset_close(dataset);
    }
}

static void reads_all_element_types(void **state) {
    (void)state;
    static const struct {
        uint8_t type, size, bytes[8];
        float expected;
    } cases[] = {
        {0x09, 1, {0xfe}, -2},
        {0x0b, 2, {0xff, 0x00}, -256},
        {0x0c, 4, {0x00, 0x01, 0x00, 0x02}, 65538},
        {0x0d, 4, {0x40, 0x49, 0x0f, 0xdb}, 3.14159274f},
        {0x0e, 8, {0xbf, 0xf8, 0, 0, 0, 0, 0, 0}, -1.5f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[16] = {0, 0, cases[i].type, 1, 0, 0, 0, 1};
        memcpy(bytes + 8, cases[i].bytes, cases[i].size);
        const pen_dataset_options options = {
            .format = "idx", .path = scratch_file("typed", bytes, 8u + cases[i].size)};
        pen_dataset *dataset;
        float value;
        CHECK_OK(pen_dataset_open(&options, &dataset));
        CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){0}, 1, (void *[]){&value}, NULL));
        CHECK(value == cases[i].expected, "case %zu gives %g", i, (double)value);
        pen_dataset_close(dataset);
    }
}

static size_t compress_bytes(const uint8_t *bytes, size_t size, uint8_t *out, size_t out_size) {
    z_stream stream = {.next_out = out, .avail_out = (uInt)out_size};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    uint8_t *copy = malloc(size);
    memcpy(copy, bytes, size);
    stream.next_in = copy;
    stream.avail_in = (uInt)size;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    const size_t length = stream.total_out;
    deflateEnd(&stream);
    free(copy);
    return length;
}

// Reads `size` bytes placed so that the sanitizer sees a step beyond.
static pen_status read_copy(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    memcpy(copy, bytes, size);
    pen_array_source source;
    void *inflated;
    const pen_status status = pen_idx_read(copy, size, "cut", &source, &inflated);
    pen_memory_free(inflated);
    free(copy);
    return status;
}

static void every_truncation_is_corrupt(void **state) {
    (void)state;
    uint8_t compressed[256];
    const size_t length = compress_bytes(pictures, sizeof pictures, compressed, sizeof compressed);
    CHECK_OK(read_copy(pictures, sizeof pictures));
    CHECK_OK(read_copy(compressed, length));
    for (size_t i = 0; i < sizeof pictures; i++) {
        CHECK_ERROR(read_copy(pictures, i), PEN_CORRUPT, "cut");
    }
    for (size_t i = 0; i < length; i++) {
        CHECK_ERROR(read_copy(compressed, i), PEN_CORRUPT, "cut");
    }
    uint8_t longer[sizeof pictures + 1] = {0};
    memcpy(longer, pictures, sizeof pictures);
    CHECK_ERROR(read_copy(longer, sizeof longer), PEN_CORRUPT, "expected 12 bytes, found 13");
    CHECK_ERROR(read_copy(compressed, compress_bytes(longer, sizeof longer, compressed, 256)),
                PEN_CORRUPT, "left over");
}

static void refuses_bad_headers(void **state) {
    (void)state;
    const uint8_t magic[8] = {1, 0, 8, 1};
    CHECK_ERROR(read_copy(magic, 8), PEN_CORRUPT, "not an IDX file");
    const uint8_t type[8] = {0, 0, 7, 1};
    CHECK_ERROR(read_copy(type, 8), PEN_UNSUPPORTED, "0x07");
    const uint8_t rank[8] = {0, 0, 8, 9};
    CHECK_ERROR(read_copy(rank, 8), PEN_UNSUPPORTED, "9 dimensions");
    uint8_t huge[4 + 8 * 4] = {0, 0, 8, 8};
    memset(huge + 4, 255, sizeof huge - 4);
    CHECK_ERROR(read_copy(huge, sizeof huge), PEN_CORRUPT, "announce more than");
}

// A small compressed file that announces much must not make us take the memory.
static void a_bomb_is_refused_before_memory_is_taken(void **state) {
    (void)state;
    uint8_t header[4 + 8] = {0, 0, 8, 2, 0, 1, 0, 0, 0, 1, 0, 0}; // 4 GiB
    uint8_t compressed[128];
    const size_t length = compress_bytes(header, sizeof header, compressed, sizeof compressed);
    CHECK_ERROR(read_copy(compressed, length), PEN_CORRUPT, "compressed bytes can hold");
    // one that holds far more than it announces is left where the announced bytes end
    const size_t size = 1 << 24;
    uint8_t *zeros = calloc(size, 1);
    uint8_t *small = malloc(size);
    memcpy(zeros, classes, 8);
    const size_t bomb = compress_bytes(zeros, size, small, size);
    CHECK_ERROR(read_copy(small, bomb), PEN_CORRUPT, "left over");
    free(zeros);
    free(small);
}

static void labels_are_checked(void **state) {
    (void)state;
    pen_dataset_options options = {.format = "idx",
                                   .path = scratch_file("pictures", pictures, sizeof pictures),
                                   .labels = scratch_file("classes", classes, sizeof classes),
                                   .class_count = 3};
    pen_dataset *dataset = NULL;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    CHECK_ERROR(pen_dataset_limit_classes(dataset, 0, 2), PEN_INVALID_INPUT,
                "classes': example 2 has the class 2, expected 0 to 1");
    pen_dataset_close(dataset);
    options.class_count = 2;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "example 2");
    options.labels = scratch_file("fewer", (uint8_t[]){0, 0, 8, 1, 0, 0, 0, 2, 0, 1}, 10);
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "has 2 labels");
    options.labels = "/nowhere/labels";
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_NOT_FOUND, "/nowhere/labels");
    options.labels = "/";
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_IO, "is a folder");
    options.format = "tfrecord";
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_NOT_FOUND, "idx, npy");
}

static void refuses_bad_options(void **state) {
    (void)state;
    const double numbers[2] = {0, 1};
    const pen_dataset_options good = {.format = "idx",
                                      .path = scratch_file("pictures", pictures, sizeof pictures)};
    pen_dataset *dataset;
    pen_dataset_options options = good;
    options.mean = numbers;
    options.mean_count = 2;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                "mean: found 2 values, but examples have 1 channel,");
    options = good;
    options.deviation = numbers;
    options.deviation_count = 1;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "deviation 0 is 0");
    options = good;
    options.scale = NAN;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "not finite");
    options = good;
    options.holdout = 1;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "holdout is 1");
    options.holdout = 0.1;
    options.part = PEN_DATASET_PART_EVAL;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "leaves none");
    options = good;
    options.path = NULL;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "needs the file");
}

// Both parts together are all examples, each once, whatever the seed.
static void holdout_parts_are_disjoint_and_whole(void **state) {
    (void)state;
    uint8_t bytes[4 + 4 + 200] = {0, 0, 8, 1, 0, 0, 0, 200};
    for (int i = 0; i < 200; i++)
        bytes[8 + i] = (uint8_t)i;
    for (uint64_t seed = 0; seed < 3; seed++) {
        unsigned seen[200] = {0};
        for (int part = 0; part < 2; part++) {
            const pen_dataset_options options = {
                .format = "idx",
                .path = scratch_file("numbers", bytes, sizeof bytes),
                .labels = scratch_file("numbers", bytes, sizeof bytes),
                .holdout = 0.25,
                .part = part == 0 ? PEN_DATASET_PART_TRAIN : PEN_DATASET_PART_EVAL,
                .seed = seed};
            pen_dataset *dataset;
            CHECK_OK(pen_dataset_open(&options, &dataset));
            const uint64_t count = pen_dataset_get_info(dataset)->example_count;
            assert_int_equal(count, part == 0 ? 150 : 50);
            for (uint64_t i = 0; i < count; i++) {
                int64_t label;
                CHECK_OK(pen_dataset_read(dataset, &i, 1, NULL, (void *[]){&label}));
                seen[label]++;
            }
            pen_dataset_close(dataset);
        }
        for (int i = 0; i < 200; i++)
            assert_int_equal(seen[i], 1);
    }
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    uint8_t compressed[256];
    const size_t length = compress_bytes(pictures, sizeof pictures, compressed, sizeof compressed);
    const pen_dataset_options options = {.format = "idx",
                                         .path = scratch_file("pictures.gz", compressed, length),
                                         .labels = scratch_file("classes", classes, sizeof classes),
                                         .class_count = 3,
                                         .holdout = 0.4};
    bool opened = false;
    for (uint64_t call = 1; !opened; call++) {
        pen_dataset *dataset = NULL;
        pen_memory_fail_at(call, 0);
        const pen_status status = pen_dataset_open(&options, &dataset);
        pen_memory_fail_at(0, 0);
        opened = status == PEN_OK;
        if (opened) {
            assert_true(call > 5);
            pen_dataset_close(dataset);
        } else {
            CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(reads_fashion_mnist),
              cmocka_unit_test(scales_bytes_as_division_does),
              cmocka_unit_test(reads_all_element_types),
              cmocka_unit_test(every_truncation_is_corrupt), cmocka_unit_test(refuses_bad_headers),
              cmocka_unit_test(a_bomb_is_refused_before_memory_is_taken),
              cmocka_unit_test(labels_are_checked), cmocka_unit_test(refuses_bad_options),
              cmocka_unit_test(holdout_parts_are_disjoint_and_whole),
              cmocka_unit_test(every_failed_allocation_is_an_error))
