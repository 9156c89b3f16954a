#include "scheduler/report/loss_history.h"

#include <jansson.h>

#include "tests/support/check.h"

static const char *const names[] = {"logits", "boxes"};

// The history's JSON; NULL: it wrote nothing.
static json_t *written(const pen_loss_history *history) {
    const char *bytes;
    pen_text text;
    pen_json_writer json;
    pen_arena *arena = check_arena();
    pen_text_init(&text, arena);
    pen_json_init_text(&json, &text, 0);
    pen_json_begin_object(&json);
    pen_loss_history_write(history, &json);
    pen_json_end_object(&json);
    CHECK_OK(pen_json_finish(&json));
    CHECK_OK(pen_text_finish(&text, &bytes));
    json_t *root = json_loads(bytes, 0, NULL),
           *losses = json_incref(json_object_get(root, "losses"));
    json_decref(root);
    pen_arena_destroy(arena);
    return losses;
}

static double number(const json_t *losses, size_t series, size_t point, size_t which) {
    const json_t *one = json_array_get(json_object_get(losses, "series"), series);
    const json_t *pair = json_array_get(json_object_get(one, "points"), point);
    return json_number_value(json_array_get(pair, which));
}

static size_t point_count(const json_t *losses) {
    const json_t *one = json_array_get(json_object_get(losses, "series"), 0);
    return json_array_size(json_object_get(one, "points"));
}

static void each_loss_is_a_series(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_loss_history *history;
    CHECK_OK(pen_loss_history_new(names, 2, arena, &history));
    assert_null(written(history));
    assert_null(written(NULL));
    for (uint64_t step = 5; step <= 7; step++) {
        pen_loss_history_add(history, step, (double)step, (double[]){0.5, 2.0 * (double)step});
    }
    json_t *losses = written(history);
    assert_int_equal(json_integer_value(json_object_get(losses, "first_step")), 5);
    assert_int_equal(json_integer_value(json_object_get(losses, "last_step")), 7);
    assert_int_equal(json_array_size(json_object_get(losses, "series")), 3);
    for (size_t s = 0; s < 3; s++) {
        const json_t *one = json_array_get(json_object_get(losses, "series"), s);
        const char *expected = s == 0 ? "loss" : names[s - 1];
        assert_string_equal(json_string_value(json_object_get(one, "name")), expected);
    }
    assert_int_equal(point_count(losses), 3);
    assert_true(number(losses, 0, 2, 0) == 7 && number(losses, 0, 2, 1) == 7);
    assert_true(number(losses, 1, 1, 1) == 0.5 && number(losses, 2, 1, 1) == 12);
    json_decref(losses);
    pen_arena_destroy(arena);
}

// However many there are, all steps are in it, each with the same weight: the points' means, each
// times its steps, add up to what was given.
static void many_steps_become_means(void **state) {
    (void)state;
    static const uint64_t counts[] = {1023, 1024, 1025, 2048, 2049, 5000, 8191, 100000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        pen_arena *arena = check_arena();
        pen_loss_history *history;
        CHECK_OK(pen_loss_history_new(NULL, 0, arena, &history));
        for (uint64_t step = 1; step <= counts[c]; step++) {
            pen_loss_history_add(history, step, 3 * (double)step, NULL);
        }
        json_t *losses = written(history);
        const size_t points = point_count(losses);
        uint64_t stride = 1;
        while (stride * PEN_LOSS_HISTORY_POINTS < counts[c]) {
            stride *= 2;
        }
        assert_int_equal(points, (counts[c] + stride - 1) / stride);
        for (size_t p = 0; p < points; p++) {
            const uint64_t first = p * stride + 1;
            const uint64_t last = p + 1 == points ? counts[c] : first + stride - 1;
            const double middle = (double)(first + last) / 2;
            assert_true(number(losses, 0, p, 0) == middle);
            assert_true(number(losses, 0, p, 1) == 3 * middle);
        }
        json_decref(losses);
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(each_loss_is_a_series), cmocka_unit_test(many_steps_become_means))
