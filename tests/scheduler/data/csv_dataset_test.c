#include <math.h>

#include <unistd.h>

#include "base/memory.h"
#include "scheduler/data/csv/csv_reader.h"
#include "scheduler/data/dataset.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static pen_status open_text(const char *text, const pen_dataset_options *options,
                            pen_dataset **out_dataset) {
    pen_dataset_options with_path = *options;
    with_path.format = "csv";
    with_path.path = scratch_file("table.csv", text, strlen(text));
    return pen_dataset_open(&with_path, out_dataset);
}

// A hole of a tebibyte takes no place, and no time to be refused.
static void holes_are_refused(void **state) {
    (void)state;
    pen_dataset *dataset;
    const pen_dataset_options options = {.format = "csv",
                                         .path = scratch_file("table.csv", "1,2\n3,", 6)};
    CHECK(truncate(options.path, (off_t)1 << 40) == 0, "a file with a hole");
    const pen_status status = pen_dataset_open(&options, &dataset);
    CHECK(truncate(options.path, 0) == 0, "a file without it");
    CHECK_ERROR(status, PEN_INVALID_INPUT, "table.csv:2:3: error: a byte is zero");
}

static void check_row(pen_dataset *dataset, uint64_t index, const float *values, uint64_t count,
                      double label) {
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    float found[16];
    union {
        int64_t class_index;
        float target;
    } found_label;
    assert_int_equal(info->inputs[0].element_count, count);
    CHECK_OK(pen_dataset_read(dataset, &index, 1, (void *[]){found},
                              info->labels == NULL ? NULL : (void *[]){&found_label}));
    for (uint64_t i = 0; i < count; i++) {
        CHECK(found[i] == values[i], "row %d value %d is %.9g", (int)index, (int)i,
              (double)found[i]);
    }
    if (info->labels == NULL) return;
    const double number = info->labels->element == PEN_DATASET_INT64
                              ? (double)found_label.class_index
                              : (double)found_label.target;
    CHECK(number == label, "label %g, expected %g", number, label);
}

static void reads_headers_quotes_and_line_ends(void **state) {
    (void)state;
    const char *text = "\xef\xbb\xbf x , \"the \"\"class\"\"\",\"a,\nb\"\r\n"
                       "\r\n1, 2 ,3.5\n\"-4e-1\",1,+.25\r\n\n  7e0,0,12345678901234567890";
    const pen_dataset_options options = {.label_column = "the \"class\"", .class_count = 3};
    pen_dataset *dataset;
    CHECK_OK(open_text(text, &options, &dataset));
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    assert_int_equal(info->example_count, 3);
    assert_int_equal(info->labels->element, PEN_DATASET_INT64);
    check_row(dataset, 0, (float[]){1, 3.5f}, 2, 2);
    check_row(dataset, 1, (float[]){-0.4f, 0.25f}, 2, 1);
    check_row(dataset, 2, (float[]){7, 12345678901234567890.0f}, 2, 0);
    pen_dataset_close(dataset);
}

static void finds_label_columns(void **state) {
    (void)state;
    const char *text = "1;2;3\n4;5;6.5\n";
    pen_dataset_options options = {.delimiter = ';', .label_column = "-1"};
    pen_dataset *dataset;
    CHECK_OK(open_text(text, &options, &dataset));
    assert_int_equal(pen_dataset_get_info(dataset)->labels->element, PEN_DATASET_FLOAT32);
    check_row(dataset, 1, (float[]){4, 5}, 2, 6.5);
    pen_dataset_close(dataset);
    options.label_column = "0";
    CHECK_OK(open_text(text, &options, &dataset));
    assert_int_equal(pen_dataset_get_info(dataset)->labels->element, PEN_DATASET_INT64);
    check_row(dataset, 0, (float[]){2, 3}, 2, 1);
    pen_dataset_close(dataset);
    options.label_element = PEN_DATASET_FLOAT32;
    CHECK_OK(open_text(text, &options, &dataset));
    check_row(dataset, 1, (float[]){5, 6.5f}, 2, 4);
    pen_dataset_close(dataset);
    options.label_column = NULL;
    const double mean[] = {1, 2, 3};
    options.mean = mean;
    options.mean_count = 3;
    options.header = PEN_DATASET_HEADER_YES;
    CHECK_OK(open_text(text, &options, &dataset));
    assert_int_equal(pen_dataset_get_info(dataset)->example_count, 1);
    assert_null(pen_dataset_get_info(dataset)->labels);
    check_row(dataset, 0, (float[]){3, 3, 3.5f}, 3, 0);
    pen_dataset_close(dataset);
}

static void errors_say_where(void **state) {
    (void)state;
    static const struct {
        const char *text, *label, *error;
        pen_status_code code;
        pen_dataset_header header;
    } cases[] = {
        {"a,b\n1,2\n3, x4\n", NULL, "table.csv:3:4: error: 'x4' is not a number", PEN_INVALID_INPUT,
         0},
        {"a,b\n1,2\n3,\n", NULL, "table.csv:3:3: error: a field is empty", PEN_INVALID_INPUT, 0},
        {"1,2\n\n3\n", NULL, "table.csv:3:1: error: the line has 1 fields, expected 2",
         PEN_INVALID_INPUT, 0},
        {"1,2\n3,\"4\n", NULL, "table.csv:2:3: error: a quoted field is not closed",
         PEN_INVALID_INPUT, 0},
        {"1,\"2\"3\n", NULL, "followed by more text", PEN_INVALID_INPUT, 0},
        {"1,nan\n", NULL, "table.csv:1:3: error: 'nan' is not a number", PEN_INVALID_INPUT,
         PEN_DATASET_HEADER_NO},
        {"1,0x10\n2,3\n", NULL, "'0x10'", PEN_INVALID_INPUT, PEN_DATASET_HEADER_NO},
        {"1,1e39\n", NULL, "table.csv:1:3: error: 1e+39 is beyond", PEN_INVALID_INPUT, 0},
        {"1,1e999\n", NULL, "beyond", PEN_INVALID_INPUT, 0},
        {"1,1-2\n", NULL, "'1-2' is not", PEN_INVALID_INPUT, PEN_DATASET_HEADER_NO},
        {"", NULL, "is empty", PEN_INVALID_INPUT, 0},
        {"\n\r\n", NULL, "is empty", PEN_INVALID_INPUT, 0},
        {"a,b\n", NULL, "no rows", PEN_INVALID_INPUT, 0},
        {"width,height\n1,2\n", "heigth", "'heigth'; there are height, width", PEN_NOT_FOUND, 0},
        {"1,2\n", "label", "must be an index", PEN_INVALID_INPUT, 0},
        {"1,2\n", "2", "is 2, expected 0 to 1, or -1 to -2", PEN_INVALID_INPUT, 0},
        {"1,2\n", "-3", "is -3", PEN_INVALID_INPUT, 0},
        {"1\n2\n", "0", "no column but", PEN_INVALID_INPUT, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pen_dataset_options options = {.label_column = cases[i].label,
                                             .header = cases[i].header};
        pen_dataset *dataset;
        CHECK_ERROR(open_text(cases[i].text, &options, &dataset), cases[i].code, cases[i].error);
    }
    pen_dataset *dataset;
    pen_dataset_options options = {.label_column = "1", .class_count = 2};
    CHECK_ERROR(open_text("1,0\n1,1\n1,2\n", &options, &dataset), PEN_INVALID_INPUT,
                "table.csv': example 2 has the class 2, expected 0 to 1");
    options.label_element = PEN_DATASET_INT64;
    CHECK_ERROR(open_text("1,0.5\n", &options, &dataset), PEN_INVALID_INPUT, "whole numbers");
    char *wide = malloc((1 << 20) + 8); // a field that never ends
    memset(wide, '7', (1 << 20) + 7);
    wide[(1 << 20) + 7] = '\0';
    CHECK_ERROR(open_text(wide, &options, &dataset), PEN_INVALID_INPUT,
                "a field has more than 1048576 bytes");
    wide[0] = '"';
    CHECK_ERROR(open_text(wide, &options, &dataset), PEN_INVALID_INPUT,
                "a field has more than 1048576 bytes");
    free(wide);
    options.delimiter = '"';
    CHECK_ERROR(open_text("1,0.5\n", &options, &dataset), PEN_INVALID_INPUT, "delimiter");
}

// Both ways of reading a number give the float32 that strtod gives.
static void numbers_are_correctly_rounded(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        char text[64];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double value = ((double)(seed >> 11) * 0x1p-53 - 0.5) * pow(10, (int)(seed % 12) - 4);
        snprintf(text, sizeof text, "%.*f\n", (int)(seed >> 33) % 12, value);
        const pen_dataset_options options = {0};
        pen_arena *arena = check_arena();
        pen_csv_table table;
        CHECK_OK(pen_csv_read(&(pen_csv_text){(const uint8_t *)text, strlen(text), "n"}, &options,
                              NULL, arena, &table));
        const float expected = (float)strtod(text, NULL);
        CHECK(table.values[0] == expected, "%s gives %.9g", text, (double)table.values[0]);
        pen_csv_table_free(&table);
        pen_arena_destroy(arena);
    }
}

// A cut table is a shorter table or an error; the sanitizer watches for steps beyond its end.
static void every_truncation_is_survived(void **state) {
    (void)state;
    const char *text = "a,\"b\"\"\",c\r\n1,\"2.5e3\",3\r\n\n-4.25,5,6\n";
    const pen_dataset_options options = {.label_column = "c"};
    unsigned good = 0, bad = 0;
    for (size_t size = 0; size <= strlen(text); size++) {
        uint8_t *copy = malloc(size + (size == 0));
        memcpy(copy, text, size);
        pen_arena *arena = check_arena();
        pen_csv_table table;
        const pen_status status =
            pen_csv_read(&(pen_csv_text){copy, size, "cut"}, &options, NULL, arena, &table);
        if (status == PEN_OK) {
            good++;
            assert_in_range(table.row_count, 1, 2);
            assert_int_equal(table.column_count, 2);
            pen_csv_table_free(&table);
        } else {
            bad++;
            assert_null(table.values);
            const pen_status_code code = pen_status_get_code(status);
            assert_true(code == PEN_INVALID_INPUT || code == PEN_NOT_FOUND);
            pen_status_ignore(status, "as expected");
        }
        pen_arena_destroy(arena);
        free(copy);
    }
    assert_true(good >= 4 && bad >= 20);
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    const char *text = "a,b\n1,2\n3,4\n";
    bool opened = false;
    for (uint64_t call = 1; !opened; call++) {
        const pen_dataset_options options = {.label_column = "b", .class_count = 5};
        pen_dataset *dataset = NULL;
        pen_memory_fail_at(call, 0);
        const pen_status status = open_text(text, &options, &dataset);
        pen_memory_fail_at(0, 0);
        opened = status == PEN_OK;
        if (!opened) CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
        assert_true(!opened || call > 4);
        pen_dataset_close(dataset);
    }
}

// ---- words and missing fields

#define ANIMALS "size,colour,animal\n3,red,dog\n,blue,\"a \"\"cat\"\"\"\n5,red,ant\n"

static pen_status open_beside(const char *text, const char *training, pen_dataset_options options,
                              pen_dataset **out_dataset) {
    options.words_path = scratch_file("training.csv", training, strlen(training));
    return open_text(text, &options, out_dataset);
}

static void words_are_classes_and_categories_in_their_order(void **state) {
    (void)state;
    pen_dataset_options options = {.label_column = "animal",
                                   .categories = PEN_DATASET_CATEGORIES_ONE_HOT,
                                   .missing = PEN_DATASET_MISSING_MEAN};
    pen_dataset *dataset;
    CHECK_OK(open_text(ANIMALS, &options, &dataset));
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    assert_int_equal(info->class_count, 3);
    assert_string_equal(info->class_names[0], "a \"cat\"");
    assert_string_equal(info->class_names[1], "ant");
    assert_string_equal(info->class_names[2], "dog");
    check_row(dataset, 0, (float[]){3, 0, 1}, 3, 2); // blue, then red
    check_row(dataset, 1, (float[]){4, 1, 0}, 3, 0); // the mean of 3 and 5
    check_row(dataset, 2, (float[]){5, 0, 1}, 3, 1);
    pen_dataset_close(dataset);
    options.categories = PEN_DATASET_CATEGORIES_INDEX;
    options.missing = PEN_DATASET_MISSING_VALUE;
    options.missing_value = -1;
    CHECK_OK(open_text(ANIMALS, &options, &dataset));
    check_row(dataset, 0, (float[]){3, 1}, 2, 2);
    check_row(dataset, 1, (float[]){-1, 0}, 2, 0);
    pen_dataset_close(dataset);
}

// What is evaluated has fewer words, and has the training's numbers and means.
static void the_training_says_which_words_there_are(void **state) {
    (void)state;
    const char *rest = "size,colour,animal\n,red,dog\n";
    pen_dataset_options options = {.label_column = "animal",
                                   .categories = PEN_DATASET_CATEGORIES_ONE_HOT,
                                   .missing = PEN_DATASET_MISSING_MEAN};
    pen_dataset *dataset;
    CHECK_OK(open_beside(rest, ANIMALS, options, &dataset));
    assert_int_equal(pen_dataset_get_info(dataset)->class_count, 3);
    check_row(dataset, 0, (float[]){4, 0, 1}, 3, 2);
    pen_dataset_close(dataset);
    rest = "size,colour,animal\n1,green,dog\n";
    CHECK_ERROR(open_beside(rest, ANIMALS, options, &dataset), PEN_INVALID_INPUT,
                "table.csv:2:3: error: 'green' is not in this column of");
    options.unknown_is_own = true;
    CHECK_OK(open_beside(rest, ANIMALS, options, &dataset));
    check_row(dataset, 0, (float[]){1, 0, 0, 1}, 4, 2);
    pen_dataset_close(dataset);
    CHECK_OK(open_beside(ANIMALS, ANIMALS, options, &dataset));
    check_row(dataset, 0, (float[]){3, 0, 1, 0}, 4, 2);
    pen_dataset_close(dataset);
    options.categories = PEN_DATASET_CATEGORIES_INDEX;
    CHECK_OK(open_beside(rest, ANIMALS, options, &dataset));
    check_row(dataset, 0, (float[]){1, 2}, 2, 2);
    pen_dataset_close(dataset);
    CHECK_ERROR(open_beside("size,colour,animal\n1,red,bee\n", ANIMALS, options, &dataset),
                PEN_INVALID_INPUT, "table.csv:2:7: error: 'bee' is not in this column of");
    CHECK_ERROR(open_beside("size,animal\n1,dog\n", ANIMALS, options, &dataset), PEN_INVALID_INPUT,
                "has 2 columns, but");
    CHECK_ERROR(open_beside("size,hue,animal\n1,red,dog\n", ANIMALS, options, &dataset),
                PEN_INVALID_INPUT, "column 1 is called 'hue', but in");
    // labels alone are words: the training's file is asked as well
    options = (pen_dataset_options){.label_column = "b"};
    CHECK_OK(open_beside("a,b\n1,y\n", "a,b\n1,x\n2,y\n", options, &dataset));
    check_row(dataset, 0, (float[]){1}, 1, 1);
    pen_dataset_close(dataset);
}

// What is predicted has no labels yet, wherever they stand in the training's table.
static void new_rows_have_no_labels(void **state) {
    (void)state;
    const char *const trainings[] = {"size,colour,animal\n3,red,dog\n5,blue,ant\n",
                                     "size,animal,colour\n3,dog,red\n5,ant,blue\n",
                                     "animal,size,colour\ndog,3,red\nant,5,blue\n"};
    pen_dataset_options options = {.words_label_column = "animal",
                                   .categories = PEN_DATASET_CATEGORIES_ONE_HOT,
                                   .missing = PEN_DATASET_MISSING_MEAN};
    pen_dataset *dataset;
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++) {
        CHECK_OK(open_beside("size,colour\n,red\n7,blue\n", trainings[i], options, &dataset));
        const pen_dataset_info *info = pen_dataset_get_info(dataset);
        float row[3];
        assert_int_equal(info->label_count, 0);
        assert_int_equal(info->class_count, 2);
        assert_string_equal(info->class_names[1], "dog");
        CHECK_OK(pen_dataset_read(dataset, (uint64_t[]){0}, 1, (void *[]){row}, NULL));
        assert_true(row[0] == 4 && row[1] == 0 && row[2] == 1);
        pen_dataset_close(dataset);
    }
    CHECK_ERROR(open_beside("size,colour,animal\n1,red,dog\n", trainings[0], options, &dataset),
                PEN_INVALID_INPUT, "has 2 besides its labels; label_column says where");
    options.label_column = "animal";
    CHECK_ERROR(open_beside("size,colour\n1,red\n", trainings[0], options, &dataset), PEN_NOT_FOUND,
                "without label_column data have no labels");
}

static void slips_of_the_pen_are_no_words(void **state) {
    (void)state;
    pen_dataset *dataset;
    pen_dataset_options options = {.label_column = "b"};
    CHECK_ERROR(open_text("a,b\n1,0\n2,1\n3,l\n", &options, &dataset), PEN_INVALID_INPUT,
                "table.csv:4:3: error: 'l' is not a number, but others of the column are numbers "
                "(line 2)");
    CHECK_ERROR(open_text("a,b\n1,x\n2,1\n", &options, &dataset), PEN_INVALID_INPUT,
                "table.csv:3:3: error: '1' is a number, but others of the column are words");
    CHECK_ERROR(open_text("a,b\n1,x\n2,\n", &options, &dataset), PEN_INVALID_INPUT,
                "table.csv:3:3: error: a label is empty, expected a class");
    CHECK_ERROR(open_text("a,b\n1,1\n,2\n", &options, &dataset), PEN_INVALID_INPUT,
                "table.csv:3:1: error: a field is empty, expected a number; or say what missing");
    CHECK_ERROR(open_text("a,b\n1,1\nu,2\n", &options, &dataset), PEN_INVALID_INPUT,
                "table.csv:3:1: error: 'u' is not a number; columns of words need categories");
    // the first line of a file without names looks like names
    options.label_column = "-1";
    CHECK_ERROR(open_text("5.1,iris\n4.9,rose\n", &options, &dataset), PEN_INVALID_INPUT,
                "header: true where it has names, or header: false");
    options.header = PEN_DATASET_HEADER_NO;
    CHECK_OK(open_text("5.1,iris\n4.9,rose\n", &options, &dataset));
    check_row(dataset, 1, (float[]){4.9f}, 1, 1);
    pen_dataset_close(dataset);
    options.label_element = PEN_DATASET_FLOAT32;
    CHECK_ERROR(open_text("5.1,iris\n4.9,rose\n", &options, &dataset), PEN_INVALID_INPUT,
                "table.csv:1:5: error: 'iris' is not a number");
}

// Each row has a word of its own, which would make a square of a line.
static void small_files_do_not_fill_the_memory(void **state) {
    (void)state;
    enum { ROWS = 40000 };
    char *text = malloc(ROWS * 8), *at = text;
    pen_dataset *dataset;
    pen_dataset_options options = {.header = PEN_DATASET_HEADER_NO,
                                   .categories = PEN_DATASET_CATEGORIES_ONE_HOT};
    for (int i = 0; i < ROWS; i++)
        at += snprintf(at, 8, "w%d\n", i);
    CHECK_ERROR(open_text(text, &options, &dataset), PEN_INVALID_INPUT,
                "one_hot makes 40000 columns of 1, more than 500 times the size of the file");
    options.categories = PEN_DATASET_CATEGORIES_INDEX;
    CHECK_OK(open_text(text, &options, &dataset));
    pen_dataset_close(dataset);
    free(text);
}

PEN_TEST_MAIN(cmocka_unit_test(words_are_classes_and_categories_in_their_order),
              cmocka_unit_test(the_training_says_which_words_there_are),
              cmocka_unit_test(new_rows_have_no_labels),
              cmocka_unit_test(slips_of_the_pen_are_no_words),
              cmocka_unit_test(small_files_do_not_fill_the_memory),
              cmocka_unit_test(holes_are_refused),
              cmocka_unit_test(reads_headers_quotes_and_line_ends),
              cmocka_unit_test(finds_label_columns), cmocka_unit_test(errors_say_where),
              cmocka_unit_test(numbers_are_correctly_rounded),
              cmocka_unit_test(every_truncation_is_survived),
              cmocka_unit_test(every_failed_allocation_is_an_error))
