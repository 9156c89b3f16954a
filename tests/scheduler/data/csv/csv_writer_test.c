#include "scheduler/data/csv/csv_writer.h"

#include "scheduler/data/csv/csv_reader.h"
#include "tests/support/check.h"

static void tables_read_back_as_written(void **state) {
    (void)state;
    static const char *const names[] = {"plain", "a,\"b\"\nc", " space", ""};
    const float rows[2][4] = {{0.1f, -1e-38f, 16777217.0f, 3}, {1.0f / 3, 3e38f, -0.0f, 7}};
    FILE *file = tmpfile();
    CHECK_OK(pen_csv_write_names(file, names, 4));
    for (int i = 0; i < 2; i++)
        CHECK_OK(pen_csv_write_row(file, (uint64_t)i, rows[i], 4));
    uint8_t bytes[512];
    rewind(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const pen_dataset_options options = {.label_column = "example"};
    pen_arena *arena = check_arena();
    pen_csv_table table;
    CHECK_OK(pen_csv_read(&(pen_csv_text){bytes, size, "written"}, &options, NULL, arena, &table));
    assert_int_equal(table.row_count, 2);
    assert_int_equal(table.column_count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(table.names[i], names[i]);
    assert_memory_equal(table.values, rows, sizeof rows);
    assert_true(table.labels[1] == 1);
    pen_csv_table_free(&table);
    pen_arena_destroy(arena);
}

static void numbers_columns_without_names(void **state) {
    (void)state;
    char text[64] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    CHECK_OK(pen_csv_write_names(file, NULL, 3));
    CHECK_OK(pen_csv_write_row(file, 12, (float[]){1, 0.5f, -2}, 3));
    fclose(file);
    assert_string_equal(text, "example,0,1,2\n12,1,0.5,-2\n");
}

static void says_that_a_disk_is_full(void **state) {
    (void)state;
    FILE *file = fopen("/dev/full", "w");
    setvbuf(file, NULL, _IONBF, 0);
    CHECK_ERROR(pen_csv_write_row(file, 0, NULL, 0), PEN_IO, "space");
    fclose(file);
}

PEN_TEST_MAIN(cmocka_unit_test(tables_read_back_as_written),
              cmocka_unit_test(numbers_columns_without_names),
              cmocka_unit_test(says_that_a_disk_is_full))
