#include "scheduler/data/csv/csv_weights.h"

#include <string.h>

#include "base/memory.h"
#include "tests/support/check.h"

static pen_status read_text(const char *text, pen_arena *arena, pen_csv_weights *weights) {
    return pen_csv_weights_read(&(pen_csv_text){(const uint8_t *)text, strlen(text), "w.csv"},
                                arena, weights);
}

static void finds_names_however_they_are_written(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_csv_weights weights;
    CHECK_OK(read_text("picture,weight\r\n"
                       "./cats/2.jpg, 0.5\r\n"
                       "\n"
                       "\"a, \"\"b\"\".png\",2e-1\n"
                       "dogs,0\n"
                       "cats/1.jpg,3",
                       arena, &weights));
    assert_int_equal(weights.count, 4);
    assert_true(pen_csv_weights_find(&weights, "cats/1.jpg")->weight == 3);
    assert_true(pen_csv_weights_find(&weights, "cats/2.jpg")->weight == 0.5f);
    assert_true(pen_csv_weights_find(&weights, "a, \"b\".png")->weight == 0.2f);
    assert_true(pen_csv_weights_find(&weights, "dogs")->weight == 0);
    assert_int_equal(pen_csv_weights_find(&weights, "dogs")->line, 5);
    assert_null(pen_csv_weights_find(&weights, "cats"));
    assert_null(pen_csv_weights_find(&weights, "zebras"));
    pen_arena_destroy(arena);
}

static void a_table_of_nothing_has_no_weights(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_csv_weights weights;
    CHECK_OK(read_text("", arena, &weights));
    assert_int_equal(weights.count, 0);
    assert_null(pen_csv_weights_find(&weights, "a"));
    CHECK_OK(read_text("picture,weight\n", arena, &weights));
    assert_int_equal(weights.count, 0);
    pen_arena_destroy(arena);
}

static void mistakes_say_where_they_are(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"a,1\nb,x\n", "w.csv:2:3: error: 'x' is no number, expected a weight"},
        {"a,1\nb,\n", "w.csv:2:3: error: '' is no number"},
        {"a,1\nb,-0.5\n", "w.csv:2:3: error: the weight is -0.5, expected a number of at least 0"},
        {"a,1e39\n", "w.csv:1:3: error: the weight is 1e+39"},
        {"a,1\nb,nan\n", "'nan' is no number"},
        {"a\n", "w.csv:1:1: error: the line has one field, expected two"},
        {"a,1,2\n", "w.csv:1:1: error: the line has more than two fields"},
        {"a,1\n,2\n", "w.csv:2:1: error: the name is empty"},
        {"./,2\n", "the name is empty"},
        {"b,1\na,1\n./b,2\n", "w.csv:3:1: error: 'b' has a weight in line 1 already"},
        {"a,1\n\"b,1\n", "a quoted field is not closed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pen_arena *arena = check_arena();
        pen_csv_weights weights;
        CHECK_ERROR(read_text(cases[i].text, arena, &weights), PEN_INVALID_INPUT, cases[i].says);
        pen_arena_destroy(arena);
    }
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    char text[4096] = "";
    for (int i = 0; i < 300; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "n%d,%d\n", i, i);
    bool is_done = false;
    for (uint64_t call = 1; !is_done; call++) {
        pen_arena *arena = check_arena();
        pen_csv_weights weights;
        pen_memory_fail_at(call, 0);
        const pen_status status = read_text(text, arena, &weights);
        pen_memory_fail_at(0, 0);
        is_done = status == PEN_OK;
        assert_true(is_done || pen_status_get_code(status) == PEN_OUT_OF_MEMORY);
        if (is_done) assert_int_equal(weights.count, 300);
        pen_status_ignore(status, "looked at");
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(finds_names_however_they_are_written),
              cmocka_unit_test(a_table_of_nothing_has_no_weights),
              cmocka_unit_test(mistakes_say_where_they_are),
              cmocka_unit_test(every_failed_allocation_is_an_error))
