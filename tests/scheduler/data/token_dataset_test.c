#include <string.h>

#include "scheduler/data/dataset.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static pen_dataset_options make_options(const char *format, const char *path, uint64_t sequence) {
    return (pen_dataset_options){.format = format, .path = path, .sequence = sequence};
}

static void text_gives_what_comes_next(void **state) {
    (void)state;
    const char *path = scratch_file("text.txt", "abcdefghij", 10);
    pen_dataset_options options = make_options("text", path, 4);
    options.input_name = "tokens";
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    assert_int_equal(info->example_count, 2); // 0 to 4 and 4 to 8; j is left over
    assert_int_equal(info->input_count, 1);
    assert_string_equal(info->inputs[0].name, "tokens");
    assert_int_equal(info->inputs[0].element, PEN_DATASET_INT64);
    assert_int_equal(info->inputs[0].rank, 1);
    assert_int_equal(info->inputs[0].shape[0], 4);
    assert_int_equal(info->labels->shape[0], 4);
    int64_t inputs[8], labels[8];
    CHECK_OK(
        pen_dataset_read(dataset, (uint64_t[]){1, 0}, 2, (void *[]){inputs}, (void *[]){labels}));
    const int64_t expected_inputs[8] = {'e', 'f', 'g', 'h', 'a', 'b', 'c', 'd'};
    const int64_t expected_labels[8] = {'f', 'g', 'h', 'i', 'b', 'c', 'd', 'e'};
    assert_memory_equal(inputs, expected_inputs, sizeof inputs);
    assert_memory_equal(labels, expected_labels, sizeof labels);
    pen_dataset_close(dataset);
}

// Every stride: the last example ends before the text does, and one more would not.
static void stride_says_where_examples_begin(void **state) {
    (void)state;
    uint8_t bytes[50];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    const char *path = scratch_file("text.bin", bytes, sizeof bytes);
    for (uint64_t stride = 1; stride < 60; stride++) {
        pen_dataset_options options = make_options("text", path, 7);
        options.stride = stride;
        pen_dataset *dataset;
        CHECK_OK(pen_dataset_open(&options, &dataset));
        const uint64_t last = pen_dataset_get_info(dataset)->example_count - 1;
        assert_true(last * stride + 7 < sizeof bytes);
        assert_false((last + 1) * stride + 7 < sizeof bytes);
        int64_t inputs[7], labels[7];
        CHECK_OK(pen_dataset_read(dataset, &last, 1, (void *[]){inputs}, (void *[]){labels}));
        assert_int_equal(inputs[0], last * stride);
        assert_int_equal(labels[6], last * stride + 7);
        pen_dataset_close(dataset);
    }
}

static void check_tokens(const char *name, const void *bytes, size_t size,
                         pen_token_element element, const int64_t expected[3]) {
    const char *path = scratch_file(name, bytes, size);
    pen_dataset_options options = make_options("tokens", path, 2);
    options.token_element = element;
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    int64_t inputs[2], labels[2];
    CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){0}, 1, (void *[]){inputs}, (void *[]){labels}));
    assert_int_equal(inputs[0], expected[0]);
    assert_int_equal(labels[0], expected[1]);
    assert_int_equal(labels[1], expected[2]);
    pen_dataset_close(dataset);
}

static void tokens_of_every_size(void **state) {
    (void)state;
    check_tokens("t.u8", (uint8_t[]){200, 1, 255}, 3, PEN_TOKEN_UINT8, (int64_t[]){200, 1, 255});
    check_tokens("t.i8", (int8_t[]){100, 1, 127}, 3, PEN_TOKEN_INT8, (int64_t[]){100, 1, 127});
    check_tokens("t.bin", (uint16_t[]){50256, 1, 65535}, 6, PEN_TOKEN_AUTO,
                 (int64_t[]){50256, 1, 65535});
    check_tokens("t.u16", (uint16_t[]){50256, 1, 65535}, 6, PEN_TOKEN_UINT16,
                 (int64_t[]){50256, 1, 65535});
    check_tokens("t.i16", (int16_t[]){32767, 1, 7}, 6, PEN_TOKEN_INT16, (int64_t[]){32767, 1, 7});
    check_tokens("t.u32", (uint32_t[]){4000000000u, 1, 2}, 12, PEN_TOKEN_UINT32,
                 (int64_t[]){4000000000, 1, 2});
    check_tokens("t.i32", (int32_t[]){128255, 1, 2}, 12, PEN_TOKEN_INT32,
                 (int64_t[]){128255, 1, 2});
    check_tokens("t.i64", (int64_t[]){1, 2, 3}, 24, PEN_TOKEN_INT64, (int64_t[]){1, 2, 3});
}

static void tokens_of_numpy(void **state) {
    (void)state;
    static const char header[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }";
    char file[128 + 12];
    memset(file, ' ', 128);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(file + 10, header, sizeof header - 1);
    file[127] = '\n';
    memcpy(file + 128, (int32_t[]){7, 70000, 2}, 12);
    check_tokens("t.npy", file, sizeof file, PEN_TOKEN_AUTO, (int64_t[]){7, 70000, 2});
    check_tokens("t.npy", file, sizeof file, PEN_TOKEN_INT32, (int64_t[]){7, 70000, 2});
    pen_dataset *dataset;
    pen_dataset_options options =
        make_options("tokens", scratch_file("t.npy", file, sizeof file), 2);
    options.token_element = PEN_TOKEN_UINT8; // which would read the header as tokens
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "an NPY file of int32");
    // as tokenizers save them
    memcpy(memchr(file, '<', 128), "<u2", 3);
    memcpy(file + 128, (uint16_t[]){50256, 1, 65535}, 6);
    check_tokens("t.npy", file, 128 + 6, PEN_TOKEN_AUTO, (int64_t[]){50256, 1, 65535});
    memcpy(memchr(file, '<', 128), "<u4", 3);
    memcpy(file + 128, (uint32_t[]){4000000000u, 1, 2}, 12);
    check_tokens("t.npy", file, sizeof file, PEN_TOKEN_AUTO, (int64_t[]){4000000000, 1, 2});
}

static void compressed_text_is_inflated(void **state) {
    (void)state;
    // printf abcdefgh | gzip -n
    static const uint8_t bytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,
                                    0x4b, 0x4c, 0x4a, 0x4e, 0x49, 0x4d, 0x4b, 0xcf, 0x00, 0x00,
                                    0x50, 0x2a, 0xef, 0xae, 0x08, 0x00, 0x00, 0x00};
    const char *path = scratch_file("text.gz", bytes, sizeof bytes);
    pen_dataset_options options = make_options("text", path, 7);
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    assert_int_equal(pen_dataset_get_info(dataset)->example_count, 1);
    int64_t labels[7];
    CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){0}, 1, NULL, (void *[]){labels}));
    assert_int_equal(labels[6], 'h');
    pen_dataset_close(dataset);
    options.path = scratch_file("cut.gz", bytes, sizeof bytes - 9);
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_CORRUPT, "cut short");
}

static void holdout_never_overlaps(void **state) {
    (void)state;
    char bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('a' + i % 26);
    const char *path = scratch_file("text.txt", bytes, sizeof bytes);
    pen_dataset_options options = make_options("text", path, 10);
    options.holdout = 0.2;
    pen_dataset *train, *eval;
    CHECK_OK(pen_dataset_open(&options, &train));
    options.part = PEN_DATASET_PART_EVAL;
    CHECK_OK(pen_dataset_open(&options, &eval));
    assert_int_equal(pen_dataset_get_info(train)->example_count, 80);
    assert_int_equal(pen_dataset_get_info(eval)->example_count, 19);
    pen_dataset_close(train);
    pen_dataset_close(eval);
    options.stride = 9;
    CHECK_ERROR(pen_dataset_open(&options, &eval), PEN_INVALID_INPUT, "overlap");
}

static void says_what_is_wrong(void **state) {
    (void)state;
    pen_dataset *dataset;
    const char *path = scratch_file("short.txt", "abcd", 4);
    pen_dataset_options options = make_options("text", path, 4);
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                "has 4 tokens, expected at least 5");
    options.sequence = 0;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "sequences of 0");
    options = make_options("tokens", path, 1);
    options.token_element = PEN_TOKEN_INT64;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                "no whole number of tokens of 8 bytes");
    options = make_options("text", path, 2);
    options.scale = 2;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "normalized");
    options = make_options("text", NULL, 2);
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT, "needs a file");
    path = scratch_file("negative", (int32_t[]){1, -2, 3}, 12);
    options = make_options("tokens", path, 2);
    options.token_element = PEN_TOKEN_INT32;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    int64_t labels[2];
    CHECK_ERROR(pen_dataset_read(dataset, (uint64_t[]){0}, 1, NULL, (void *[]){labels}),
                PEN_INVALID_INPUT, "token 1 (counted from 0) is -2");
    pen_dataset_close(dataset);
    // a vocabulary smaller than the text's
    path = scratch_file("classes.txt", "\1\2\3\4\5\6", 6);
    options = make_options("text", path, 2);
    options.class_count = 5;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                "has the token 5, but the model's vocabulary is 0 to 4");
}

PEN_TEST_MAIN(cmocka_unit_test(text_gives_what_comes_next),
              cmocka_unit_test(stride_says_where_examples_begin),
              cmocka_unit_test(tokens_of_every_size), cmocka_unit_test(tokens_of_numpy),
              cmocka_unit_test(compressed_text_is_inflated),
              cmocka_unit_test(holdout_never_overlaps), cmocka_unit_test(says_what_is_wrong))
