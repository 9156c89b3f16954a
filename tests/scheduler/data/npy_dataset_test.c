#include "base/format/npy.h"

#include "base/memory.h"
#include "scheduler/data/dataset.h"
#include <math.h>

#include "tests/support/check.h"
#include "tests/support/scratch.h"

static const char *write_array(const char *name, pen_npy_element element, uint32_t rank,
                               const int64_t *shape, const void *data) {
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");
    CHECK_OK(pen_npy_write(file, element, rank, shape, data));
    fclose(file);
    return path;
}

static void reads_several_inputs(void **state) {
    (void)state;
    const double images[3][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 1e300}}};
    const int32_t tokens[3][3] = {{1, -2, 3}, {4, 5, 6}, {7, 8, INT32_MIN}};
    const uint8_t mask[3] = {0, 1, 1};
    const int64_t labels[3][2] = {{0, 1}, {2, 3}, {4, 0}};
    const pen_dataset_input inputs[] = {
        {"image", write_array("i.npy", PEN_NPY_FLOAT64, 3, (int64_t[]){3, 2, 2}, images), 0},
        {"tokens", write_array("t.npy", PEN_NPY_INT32, 2, (int64_t[]){3, 3}, tokens), 0},
        {"mask", write_array("m.npy", PEN_NPY_BOOL, 1, (int64_t[]){3}, mask), 0},
        {"mask64", write_array("m.npy", PEN_NPY_BOOL, 1, (int64_t[]){3}, mask), PEN_DATASET_INT64},
    };
    const pen_dataset_options options = {
        .format = "npy",
        .inputs = inputs,
        .input_count = 4,
        .labels = write_array("l.npy", PEN_NPY_INT64, 2, (int64_t[]){3, 2}, labels),
        .scale = 2,
        .class_count = 5};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    assert_int_equal(info->input_count, 4);
    assert_int_equal(info->example_count, 3);
    assert_string_equal(info->inputs[1].name, "tokens");
    assert_int_equal(info->inputs[0].rank, 2);
    assert_int_equal(info->inputs[1].element, PEN_DATASET_INT64);
    assert_int_equal(info->inputs[2].element, PEN_DATASET_FLOAT32);
    assert_int_equal(info->inputs[2].rank, 0);
    assert_int_equal(info->labels->rank, 1);
    float image[2][4], masks[2];
    int64_t token[2][3], mask64[2], label[2][2];
    CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){2, 0}, 2,
                              (void *[]){image, token, masks, mask64}, (void *[]){label}));
    const float expected[2][4] = {{18, 20, 22, __builtin_inff()}, {2, 4, 6, 8}};
    assert_memory_equal(image, expected, sizeof expected);
    assert_int_equal(token[0][2], INT32_MIN);
    assert_int_equal(token[1][1], -2);
    CHECK(masks[0] == 2 && masks[1] == 0, "%g %g", (double)masks[0], (double)masks[1]);
    assert_int_equal(mask64[0], 1);
    assert_int_equal(label[0][0], 4);
    assert_int_equal(label[1][1], 1);
    CHECK_ERROR(pen_dataset_limit_classes(dataset, 0, 4), PEN_INVALID_INPUT,
                "l.npy': example 2 has the class 4, expected 0 to 3");
    pen_dataset_close(dataset);
}

// Parts are one array: examples keep the order of the files' names, whichever part they are in.
static void reads_arrays_in_parts(void **state) {
    (void)state;
    const float values[6][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}};
    const int64_t classes[6] = {0, 1, 2, 3, 4, 5};
    write_array("part-1.npy", PEN_NPY_FLOAT32, 2, (int64_t[]){3, 2}, values);
    write_array("part-2.npy", PEN_NPY_FLOAT32, 2, (int64_t[]){0, 2}, values);
    write_array("part-3.npy", PEN_NPY_FLOAT32, 2, (int64_t[]){1, 2}, values[3]);
    const char *last = write_array("last.npy", PEN_NPY_FLOAT32, 2, (int64_t[]){2, 2}, values[4]);
    write_array("class-a.npy", PEN_NPY_INT64, 1, (int64_t[]){5}, classes);
    write_array("class-b.npy", PEN_NPY_INT64, 1, (int64_t[]){1}, classes + 5);
    const pen_dataset_input inputs[] = {{"x", scratch_path("part-*.npy"), 0}, {"x", last, 0}};
    const pen_dataset_options options = {
        .format = "npy", .inputs = inputs, .input_count = 2, .labels = scratch_path("class-?.npy")};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    assert_int_equal(info->input_count, 1);
    assert_int_equal(info->example_count, 6);
    float read[6][2];
    int64_t labels[6];
    const uint64_t order[6] = {5, 0, 3, 4, 2, 1};
    CHECK_OK(pen_dataset_read(dataset, order, 6, (void *[]){read}, (void *[]){labels}));
    for (uint32_t i = 0; i < 6; i++) {
        assert_memory_equal(read[i], values[order[i]], sizeof read[i]);
        assert_int_equal(labels[i], order[i]);
    }
    pen_dataset_close(dataset);
}

static void flattens_and_normalises_by_channel(void **state) {
    (void)state;
    const float images[1][2][3] = {{{1, 2, 3}, {4, 5, 6}}};
    const double mean[] = {1, 4}, deviation[] = {2, 4};
    const pen_dataset_input input = {
        "x", write_array("c.npy", PEN_NPY_FLOAT32, 3, (int64_t[]){1, 2, 3}, images), 0};
    const pen_dataset_options options = {.format = "npy",
                                         .inputs = &input,
                                         .input_count = 1,
                                         .mean = mean,
                                         .mean_count = 2,
                                         .deviation = deviation,
                                         .deviation_count = 2,
                                         .flatten = true};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    assert_int_equal(pen_dataset_get_info(dataset)->inputs[0].rank, 1);
    assert_int_equal(pen_dataset_get_info(dataset)->inputs[0].shape[0], 6);
    float found[6];
    CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){0}, 1, (void *[]){found}, NULL));
    const float expected[] = {0, 0.5f, 1, 0, 0.25f, 0.5f};
    assert_memory_equal(found, expected, sizeof expected);
    pen_dataset_close(dataset);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    const float data[4] = {0};
    const char *four = write_array("4.npy", PEN_NPY_FLOAT32, 1, (int64_t[]){4}, data);
    const char *two = write_array("2.npy", PEN_NPY_FLOAT32, 2, (int64_t[]){2, 2}, data);
    const char *scalar = write_array("0.npy", PEN_NPY_FLOAT32, 0, NULL, data);
    const char *bytes = write_array("b.npy", PEN_NPY_UINT8, 1, (int64_t[]){4}, data);
    const char *nothing = scratch_path("nothing-*.npy");
    const char *none = write_array("none.npy", PEN_NPY_FLOAT32, 2, (int64_t[]){0, 2}, data);
    const char *hollow = write_array("hollow.npy", PEN_NPY_FLOAT32, 2, (int64_t[]){2, 0}, data);
    const struct {
        pen_dataset_input inputs[3];
        uint32_t count;
        const char *labels, *error;
        pen_status_code code;
    } cases[] = {
        {{{"a", four, 0}, {"b", two, 0}}, 2, NULL, "has 2 examples, but '", PEN_INVALID_INPUT},
        {{{"a", four, 0}, {"b", four, 0}, {"a", four, 0}},
         3,
         NULL,
         "'a' is given twice",
         PEN_INVALID_INPUT},
        {{{"a", four, 0}, {"a", two, 0}}, 2, NULL, "another shape than", PEN_INVALID_INPUT},
        {{{"a", four, 0}, {"a", bytes, 0}}, 2, NULL, "uint8, but '", PEN_INVALID_INPUT},
        {{{"a", "/nowhere/*.npy", 0}}, 1, NULL, "folder '/nowhere/'", PEN_NOT_FOUND},
        {{{"a", nothing, 0}}, 1, NULL, "no file is called as", PEN_NOT_FOUND},
        {{{"a", "/*/x.npy", 0}}, 1, NULL, "not in that of a folder", PEN_INVALID_INPUT},
        {{{"a", four, 0}}, 1, two, "has 2 labels", PEN_INVALID_INPUT},
        {{{"a", scalar, 0}}, 1, NULL, "is a single number", PEN_INVALID_INPUT},
        {{{"a", none, 0}}, 1, NULL, "no examples", PEN_INVALID_INPUT},
        {{{"a", hollow, 0}}, 1, NULL, "dimension 0 of an example is 0", PEN_INVALID_INPUT},
        {{{"a", four, PEN_DATASET_INT64}}, 1, NULL, "float32, but int64", PEN_UNSUPPORTED},
        {{{"a", "/nowhere.npy", 0}}, 1, NULL, "/nowhere.npy", PEN_NOT_FOUND},
        {{{"a", four, 0}}, 0, NULL, "0 inputs", PEN_INVALID_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pen_dataset_options options = {.format = "npy",
                                             .inputs = cases[i].inputs,
                                             .input_count = cases[i].count,
                                             .labels = cases[i].labels};
        pen_dataset *dataset;
        CHECK_ERROR(pen_dataset_open(&options, &dataset), cases[i].code, cases[i].error);
    }
    const pen_dataset_input input = {"a", four, 0};
    const pen_dataset_options options = {
        .format = "npy", .inputs = &input, .input_count = 1, .labels = four};
    bool opened = false;
    for (uint64_t call = 1; !opened; call++) {
        pen_dataset *dataset = NULL;
        pen_memory_fail_at(call, 0);
        const pen_status status = pen_dataset_open(&options, &dataset);
        pen_memory_fail_at(0, 0);
        opened = status == PEN_OK;
        if (!opened) CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
        assert_true(!opened || call > 2);
        pen_dataset_close(dataset);
    }
}

static void whole_numbers_become_class_indices(void **state) {
    (void)state;
    float labels[3] = {0, 2, 1};
    pen_dataset_input input = {
        "x", write_array("whole_x.npy", PEN_NPY_FLOAT32, 2, (int64_t[]){3, 1}, labels),
        PEN_DATASET_AUTO};
    pen_dataset_options options = {
        .format = "npy",
        .inputs = &input,
        .input_count = 1,
        .labels = write_array("whole_y.npy", PEN_NPY_FLOAT32, 1, (int64_t[]){3}, labels),
        .label_element = PEN_DATASET_INT64};
    pen_dataset *dataset;
    int64_t read[3];
    CHECK_OK(pen_dataset_open(&options, &dataset));
    CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){0, 1, 2}, 3, NULL, (void *[]){read}));
    assert_true(read[0] == 0 && read[1] == 2 && read[2] == 1);
    pen_dataset_close(dataset);
    const float wrong[] = {0.5f, NAN, INFINITY, 1e30f};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        labels[1] = wrong[i];
        options.labels = write_array("wrong_y.npy", PEN_NPY_FLOAT32, 1, (int64_t[]){3}, labels);
        CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                    "wrong_y.npy': example 1 has the label ");
    }
}

// Files as NumPy and ml_dtypes write them, all numbers of 16 bits among them.
static void reads_halves(void **state) {
    (void)state;
    static const char *const kinds[] = {"<f2", "<V2"};
    static uint8_t bytes[80 + (2 << 16)];
    for (int k = 0; k < 2; k++) {
        char header[81];
        pen_dataset_input file = {"x", NULL, 0};
        pen_dataset *dataset;
        memset(bytes, ' ', 80);
        bytes[79] = '\n';
        static const uint8_t start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 70, 0};
        memcpy(bytes, start, sizeof start);
        const int length =
            snprintf(header, sizeof header,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (65536,), }", kinds[k]);
        memcpy(bytes + 10, header, (size_t)length);
        for (uint32_t i = 0; i < 1 << 16; i++) {
            bytes[80 + 2 * i] = (uint8_t)i;
            bytes[81 + 2 * i] = (uint8_t)(i >> 8);
        }
        file.path = scratch_file("halves.npy", bytes, sizeof bytes);
        const pen_dataset_options options = {.format = "npy", .inputs = &file, .input_count = 1};
        CHECK_OK(pen_dataset_open(&options, &dataset));
        assert_int_equal(pen_dataset_get_info(dataset)->inputs[0].element, PEN_DATASET_FLOAT32);
        for (uint64_t i = 0; i < 1 << 16; i++) {
            const uint32_t exponent = k == 0 ? i >> 10 & 31 : i >> 7 & 255;
            const double fraction = k == 0 ? (double)(i & 1023) / 1024 : (double)(i & 127) / 128;
            const int bias = k == 0 ? 15 : 127, top = k == 0 ? 31 : 255;
            const double size = exponent == 0 ? ldexp(fraction, 1 - bias)
                                              : ldexp(1 + fraction, (int)exponent - bias);
            float found;
            CHECK_OK(pen_dataset_read(dataset, &i, 1, (void *[]){&found}, NULL));
            if (exponent == (uint32_t)top) {
                CHECK(fraction == 0 ? isinf(found) : isnan(found), "%d is %g", (int)i,
                      (double)found);
                continue;
            }
            CHECK((double)found == (i >> 15 ? -size : size), "%s %d is %.9g", kinds[k], (int)i,
                  (double)found);
        }
        pen_dataset_close(dataset);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(reads_halves), cmocka_unit_test(whole_numbers_become_class_indices),
              cmocka_unit_test(reads_several_inputs), cmocka_unit_test(reads_arrays_in_parts),
              cmocka_unit_test(flattens_and_normalises_by_channel),
              cmocka_unit_test(refuses_what_does_not_fit))
