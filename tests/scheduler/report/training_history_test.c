#include "scheduler/report/training_history.h"

#include <jansson.h>

#include "tests/support/check.h"

static const char *const names[] = {"logits", "boxes"};

// What is under a key of the history's JSON; NULL: nothing.
static json_t *written_as(const pen_training_history *history, const char *key) {
    const char *bytes;
    pen_text text;
    pen_json_writer json;
    pen_arena *arena = check_arena();
    pen_text_init(&text, arena);
    pen_json_init_text(&json, &text, 0);
    pen_json_begin_object(&json);
    pen_training_history_write(history, &json);
    pen_json_end_object(&json);
    CHECK_OK(pen_json_finish(&json));
    CHECK_OK(pen_text_finish(&text, &bytes));
    json_t *root = json_loads(bytes, 0, NULL), *found = json_incref(json_object_get(root, key));
    json_decref(root);
    pen_arena_destroy(arena);
    return found;
}

static json_t *written(const pen_training_history *history) {
    return written_as(history, "losses");
}

static void add(pen_training_history *history, uint64_t step, double loss, const double *terms,
                double rate) {
    const pen_training_history_step one = {
        .step = step, .loss = loss, .terms = terms, .learning_rate = rate};
    pen_training_history_add(history, &one);
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
    pen_training_history *history;
    CHECK_OK(pen_training_history_new(names, 2, 0, arena, &history));
    assert_null(written(history));
    assert_null(written(NULL));
    for (uint64_t step = 5; step <= 7; step++) {
        add(history, step, (double)step, (double[]){0.5, 2.0 * (double)step}, 0.1);
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
        pen_training_history *history;
        CHECK_OK(pen_training_history_new(NULL, 0, 0, arena, &history));
        for (uint64_t step = 1; step <= counts[c]; step++) {
            add(history, step, 3 * (double)step, NULL, 5 * (double)step);
        }
        json_t *losses = written(history), *rate = written_as(history, "rate");
        const json_t *rates = json_object_get(rate, "points");
        const size_t points = point_count(losses);
        uint64_t stride = 1;
        while (stride * PEN_TRAINING_HISTORY_POINTS < counts[c]) {
            stride *= 2;
        }
        assert_int_equal(points, (counts[c] + stride - 1) / stride);
        for (size_t p = 0; p < points; p++) {
            const uint64_t first = p * stride + 1;
            const uint64_t last = p + 1 == points ? counts[c] : first + stride - 1;
            const double middle = (double)(first + last) / 2;
            assert_true(number(losses, 0, p, 0) == middle);
            assert_true(number(losses, 0, p, 1) == 3 * middle);
            const json_t *pair = json_array_get(rates, p);
            assert_true(json_number_value(json_array_get(pair, 1)) == 5 * middle);
        }
        json_decref(rate);
        json_decref(losses);
        pen_arena_destroy(arena);
    }
}

static void evaluate(pen_training_history *history, uint64_t step, double accuracy, bool is_best) {
    static const char *const metrics[] = {"loss", "accuracy"};
    const double values[] = {1 - accuracy, accuracy};
    const pen_training_history_evaluation one = {.step = step,
                                                 .names = metrics,
                                                 .values = values,
                                                 .count = 2,
                                                 .deciding = 1,
                                                 .is_best = is_best};
    pen_training_history_evaluate(history, &one);
}

// The best is known, the one after the last step comes in place of that step's, and a copy is what
// the history was.
static void evaluations_say_which_is_best(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_training_history *history, *copy;
    CHECK_OK(pen_training_history_new(NULL, 0, 0, arena, &history));
    assert_null(written_as(history, "evaluations"));
    evaluate(NULL, 1, 0.5, true);
    evaluate(history, 10, 0.5, true);
    evaluate(history, 20, 0.75, true);
    evaluate(history, 30, 0.25, false);
    CHECK_OK(pen_training_history_copy(history, arena, &copy));
    evaluate(history, 30, 0.625, false);
    for (int i = 0; i < 2; i++) {
        json_t *told = written_as(i == 0 ? history : copy, "evaluations");
        assert_int_equal(json_integer_value(json_object_get(told, "best_step")), 20);
        assert_string_equal(json_string_value(json_object_get(told, "deciding")), "accuracy");
        assert_int_equal(json_array_size(json_object_get(told, "series")), 2);
        assert_int_equal(point_count(told), 3);
        assert_true(number(told, 1, 1, 0) == 20 && number(told, 1, 1, 1) == 0.75);
        assert_true(number(told, 1, 2, 1) == (i == 0 ? 0.625 : 0.25));
        json_decref(told);
    }
    pen_arena_destroy(arena);
}

// Of many evaluations the best and the last are there, in order, and never more than there is room.
static void many_evaluations_keep_the_best(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_training_history *history;
    CHECK_OK(pen_training_history_new(NULL, 0, 0, arena, &history));
    for (uint64_t step = 1; step <= 10000; step++) {
        evaluate(history, step, step == 778 ? 1 : 0.5, step == 1 || step == 778);
    }
    json_t *told = written_as(history, "evaluations");
    const size_t points = point_count(told);
    bool has_best = false;
    assert_true(points > PEN_TRAINING_HISTORY_POINTS / 2);
    assert_true(points <= PEN_TRAINING_HISTORY_POINTS);
    for (size_t p = 0; p < points; p++) {
        assert_true(p == 0 || number(told, 1, p, 0) > number(told, 1, p - 1, 0));
        has_best = has_best || (number(told, 1, p, 0) == 778 && number(told, 1, p, 1) == 1);
    }
    assert_true(has_best);
    assert_int_equal(json_integer_value(json_object_get(told, "best_step")), 778);
    assert_true(number(told, 0, points - 1, 0) == 10000);
    json_decref(told);
    pen_arena_destroy(arena);
}

// Points have the share of all their steps' predictions, and steps that judge nothing have none.
static void accuracy_is_that_of_all_predictions(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_training_history *history;
    CHECK_OK(pen_training_history_new(NULL, 0, 0, arena, &history));
    for (uint64_t s = 1; s <= PEN_TRAINING_HISTORY_POINTS + 1; s++) {
        const pen_training_history_step one = {.step = s,
                                               .target_count = s == 1   ? 30
                                                               : s == 2 ? 10
                                                                        : 0,
                                               .correct_count = s == 1   ? 3
                                                                : s == 2 ? 9
                                                                         : 0};
        pen_training_history_add(history, &one);
        if (s > 1) continue;
        json_t *alone = written_as(history, "accuracy");
        const json_t *pair = json_array_get(json_object_get(alone, "points"), 0);
        CHECK(json_number_value(json_array_get(pair, 1)) == 0.1, "3 of 30");
        json_decref(alone);
    }
    json_t *accuracy = written_as(history, "accuracy");
    const json_t *points = json_object_get(accuracy, "points");
    const json_t *first = json_array_get(points, 0), *second = json_array_get(points, 1);
    CHECK(json_number_value(json_array_get(first, 0)) == 1.5, "steps 1 and 2");
    CHECK(json_number_value(json_array_get(first, 1)) == 0.3, "12 of 40");
    CHECK(json_is_null(json_array_get(second, 1)), "of nothing");
    json_decref(accuracy);
    pen_arena_destroy(arena);
}

static void metrics_of_steps_are_series_of_their_own(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_training_history *history;
    static const char *const all[] = {"logits", "boxes", "top_5"};
    CHECK_OK(pen_training_history_new(all, 3, 1, arena, &history));
    for (uint64_t s = 1; s <= 3; s++) {
        add(history, s, 1, (double[]){2, 3, (double)s / 8}, 0.1);
    }
    json_t *losses = written_as(history, "losses"), *metrics = written_as(history, "metrics");
    assert_int_equal(json_array_size(json_object_get(losses, "series")), 3);
    const json_t *series = json_object_get(metrics, "series");
    assert_int_equal(json_array_size(series), 1);
    const json_t *one = json_array_get(series, 0);
    assert_string_equal(json_string_value(json_object_get(one, "name")), "top_5");
    const json_t *last = json_array_get(json_object_get(one, "points"), 2);
    CHECK(json_number_value(json_array_get(last, 1)) == 0.375, "of step 3");
    json_decref(losses);
    json_decref(metrics);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(accuracy_is_that_of_all_predictions),
              cmocka_unit_test(metrics_of_steps_are_series_of_their_own),
              cmocka_unit_test(each_loss_is_a_series), cmocka_unit_test(many_steps_become_means),
              cmocka_unit_test(evaluations_say_which_is_best),
              cmocka_unit_test(many_evaluations_keep_the_best))
