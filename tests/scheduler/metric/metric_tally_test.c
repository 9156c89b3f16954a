#include "scheduler/metric/metric_tally.h"

#include <math.h>

#include "tests/support/check.h"

// The made-up scores of tests/reference/metrics/make_metric_references.py, whose values
// scikit-learn computed.
#define TARGETS 400
#define CLASSES 7

static uint32_t next_state;

static int64_t next(uint32_t below) {
    next_state = next_state * 1664525u + 1013904223u;
    return (int64_t)((next_state >> 8) % below);
}

typedef struct made {
    pen_loss_spec spec;
    uint32_t class_count; // scores of a target
    float scores[TARGETS * CLASSES];
    int64_t labels[TARGETS];
    float numbers[TARGETS]; // labels of decisions, and of numbers
} made;

static void make_classes(made *m) {
    *m = (made){.spec = {.kind = PEN_LOSS_SOFTMAX_CROSS_ENTROPY,
                         .class_axis = 1,
                         .ignores = true,
                         .ignore_index = -1},
                .class_count = CLASSES};
    next_state = 1;
    for (int i = 0; i < TARGETS; i++) {
        float *scores = &m->scores[i * CLASSES];
        m->labels[i] = next(5);
        for (int c = 0; c < CLASSES; c++) {
            scores[c] = (float)next(8) + (float)c / 8;
        }
        scores[m->labels[i]] += 2;
        scores[3] = -5;
        scores[6] = -6;
        if (next(5) == 0) m->labels[i] = -1;
    }
}

static void make_two(made *m) {
    *m =
        (made){.spec = {.kind = PEN_LOSS_SOFTMAX_CROSS_ENTROPY, .class_axis = 1}, .class_count = 2};
    next_state = 2;
    for (int i = 0; i < TARGETS; i++) {
        m->labels[i] = next(3) == 0;
        for (int c = 0; c < 2; c++) {
            m->scores[i * 2 + c] = (float)next(8) + (float)c / 8;
        }
        m->scores[i * 2 + m->labels[i]] += 1;
    }
}

static void make_decisions(made *m) {
    *m = (made){.spec = {.kind = PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS}, .class_count = 1};
    next_state = 3;
    for (int i = 0; i < TARGETS; i++) {
        m->numbers[i] = next(3) == 0;
        m->scores[i] = ((float)next(9) - 4 + m->numbers[i]) / 2;
    }
}

static void make_values(made *m) {
    *m = (made){.spec = {.kind = PEN_LOSS_L1}, .class_count = 1};
    next_state = 4;
    for (int i = 0; i < TARGETS; i++) {
        m->numbers[i] = (float)(next(1000) - 500) / 64;
        m->scores[i] = m->numbers[i] + (float)(next(100) - 40) / 128;
    }
}

// ---- what a device would send

// The best classes of each target, of scores with `inner` neighbours behind the classes.
static void find_best(const float *scores, uint32_t outer, uint32_t classes, uint32_t inner,
                      uint32_t top, int64_t *best) {
    for (uint32_t t = 0; t < outer * inner; t++) {
        const float *first = scores + t / inner * classes * inner + t % inner;
        bool taken[CLASSES] = {false};
        for (uint32_t k = 0; k < top; k++) {
            int found = -1;
            for (int c = 0; c < (int)classes; c++) {
                if (taken[c]) continue;
                if (found < 0 || first[(uint32_t)c * inner] > first[(uint32_t)found * inner]) {
                    found = c;
                }
            }
            taken[found] = true;
            best[(t / inner * top + k) * inner + t % inner] = found;
        }
    }
}

// All metrics that could be of it, but those of more classes than there are.
static pen_metric_set all_of(const made *m) {
    pen_metric_set set = 0;
    const bool is_number = m->spec.kind == PEN_LOSS_L1;
    const bool has_classes = pen_loss_is_over_classes(m->spec.kind);
    for (pen_metric metric = 1; metric < PEN_METRIC_COUNT; metric++) {
        const pen_metric_kind *kind = &pen_metric_kinds[metric];
        if ((kind->source == PEN_METRIC_FROM_NUMBERS) != is_number) continue;
        if (kind->source == PEN_METRIC_FROM_ENTROPY) continue; // its loss is not made here
        const bool is_top = kind->value == pen_metric_kinds[PEN_METRIC_TOP_5].value;
        if (is_top && kind->number > 1 && (!has_classes || kind->number >= (int)m->class_count)) {
            continue;
        }
        set |= PEN_METRIC_BIT(metric);
    }
    return set;
}

// The tally of all, in batches of `size` examples of `inner` targets each. `dims` are of an output.
static pen_metric_tally *count_all(const made *m, uint32_t size, uint32_t inner,
                                   const uint8_t *mask) {
    static int64_t best[TARGETS * PEN_METRIC_TOP_LIMIT];
    const bool has_classes = pen_loss_is_over_classes(m->spec.kind);
    const pen_metric_loss loss =
        pen_metric_loss_of(&m->spec, has_classes ? m->class_count : 2, false);
    const pen_metric_output output = {
        .spec = m->spec,
        .type = {PEN_FLOAT32, {.rank = 3, .dims = {size, m->class_count, inner}}},
        .example_count = size,
        .class_axis = 1,
        .mask_count = mask == NULL ? 0 : (uint64_t)size * inner};
    pen_metric_setup setup = {
        .classes = output, .numbers = output, .example_count = TARGETS / inner};
    pen_metric_tally *tally;
    CHECK_OK(pen_metric_choose(&loss, 1, false, all_of(m), &setup.choice));
    CHECK_OK(pen_metric_tally_create(&setup, &tally));
    for (uint32_t first = 0; first < TARGETS / inner; first += size) {
        const uint32_t count = TARGETS / inner - first < size ? TARGETS / inner - first : size;
        const float *scores = m->scores + first * m->class_count * inner;
        const uint32_t at = first * inner;
        const bool is_index = pen_loss_takes_indices(&m->spec);
        pen_metric_batch batch = {.example_count = count,
                                  .class_labels = is_index ? (const void *)&m->labels[at]
                                                           : (const void *)&m->numbers[at],
                                  .number_labels = &m->numbers[at],
                                  .seen = {[PEN_METRIC_SEEN_BEST] = best,
                                           [PEN_METRIC_SEEN_SCORES] = scores,
                                           [PEN_METRIC_SEEN_NUMBERS] = scores}};
        if (mask != NULL) {
            batch.seen[PEN_METRIC_SEEN_MASK] = batch.seen[PEN_METRIC_SEEN_NUMBERS_MASK] = mask + at;
        }
        if (has_classes) {
            find_best(scores, count, m->class_count, inner, setup.choice.top, best);
        }
        CHECK_OK(pen_metric_tally_add(tally, &batch));
    }
    return tally;
}

// ---- what scikit-learn says

// How many values of a case are as stored. They may differ where sums are added up otherwise.
static int compare(const char *name, pen_metric_tally *tally) {
    FILE *file = fopen("tests/reference/metrics/values.txt", "r");
    char of[32], metric[32];
    double expected;
    int count = 0;
    pen_metric_sums *sums;
    CHECK_OK(pen_metric_tally_finish(tally, &sums));
    CHECK(file != NULL, "no values.txt");
    while (fscanf(file, "%31s %31s %lf", of, metric, &expected) == 3) {
        if (strcmp(of, name) != 0 || strcmp(metric, "perplexity") == 0) continue;
        const pen_metric found = pen_metric_find(metric);
        CHECK(found < PEN_METRIC_COUNT, "%s is no metric", metric);
        const double value = pen_metric_value(found, sums);
        CHECK(fabs(value - expected) <= 1e-14 * fabs(expected), "%s of %s: %.17g, expected %.17g",
              metric, name, value, expected);
        count += 1;
    }
    fclose(file);
    pen_metric_tally_destroy(tally);
    return count;
}

static void equals_scikit_learn(void **state) {
    static made m;
    (void)state;
    for (uint32_t size = 1; size <= TARGETS; size = size * 3 + 4) {
        make_classes(&m);
        assert_int_equal(compare("classes", count_all(&m, size, 1, NULL)), 18);
        make_two(&m);
        assert_int_equal(compare("two", count_all(&m, size, 1, NULL)), 15);
        make_decisions(&m);
        assert_int_equal(compare("decisions", count_all(&m, size, 1, NULL)), 15);
        make_values(&m);
        assert_int_equal(compare("values", count_all(&m, size, 1, NULL)), 3);
    }
}

// As of pictures: the classes are the second of three dimensions.
static void classes_before_others(void **state) {
    static made m, turned;
    (void)state;
    make_classes(&m);
    turned = m;
    for (uint32_t t = 0; t < TARGETS; t++) {
        for (uint32_t c = 0; c < CLASSES; c++) {
            turned.scores[(t / 8 * CLASSES + c) * 8 + t % 8] = m.scores[t * CLASSES + c];
        }
    }
    assert_int_equal(compare("classes", count_all(&turned, 7, 8, NULL)), 18);
}

static void labels_that_are_probabilities(void **state) {
    static made m;
    static float probabilities[TARGETS * CLASSES];
    static int64_t best[TARGETS];
    (void)state;
    make_classes(&m);
    m.spec.ignores = false;
    for (int t = 0; t < TARGETS; t++) {
        if (m.labels[t] < 0) m.labels[t] = 0;
        for (int c = 0; c < CLASSES; c++) {
            probabilities[t * CLASSES + c] = c == m.labels[t] ? 0.4F : 0.1F;
        }
    }
    const pen_metric_loss loss = {PEN_LOSS_SOFTMAX_CROSS_ENTROPY, CLASSES, false};
    pen_metric_setup setup = {
        .classes = {.spec = m.spec,
                    .type = {PEN_FLOAT32, {.rank = 2, .dims = {TARGETS, CLASSES}}},
                    .example_count = TARGETS,
                    .class_axis = 1},
        .example_count = TARGETS};
    CHECK_OK(pen_metric_choose(&loss, 1, false, all_of(&m) & ~PEN_METRIC_BIT(PEN_METRIC_AUC),
                               &setup.choice));
    setup.choice.top = 1;
    find_best(m.scores, TARGETS, CLASSES, 1, 1, best);
    double values[2];
    for (int i = 0; i < 2; i++) {
        pen_metric_tally *tally;
        pen_metric_sums *sums;
        setup.classes.spec.has_probabilities = i == 1;
        const pen_metric_batch batch = {.example_count = TARGETS,
                                        .class_labels =
                                            i == 0 ? (const void *)m.labels : probabilities,
                                        .seen = {[PEN_METRIC_SEEN_BEST] = best}};
        CHECK_OK(pen_metric_tally_create(&setup, &tally));
        CHECK_OK(pen_metric_tally_add(tally, &batch));
        CHECK_OK(pen_metric_tally_finish(tally, &sums));
        values[i] = pen_metric_value(PEN_METRIC_F1, sums);
        pen_metric_tally_destroy(tally);
    }
    CHECK(values[0] == values[1] && values[0] > 0, "%g and %g", values[0], values[1]);
}

// What a mask leaves out is as what labels ignore.
static void a_mask_leaves_out(void **state) {
    static made m;
    static uint8_t mask[TARGETS];
    (void)state;
    make_classes(&m);
    m.spec.ignores = false;
    for (int t = 0; t < TARGETS; t++) {
        mask[t] = m.labels[t] >= 0;
        if (m.labels[t] < 0) m.labels[t] = 3;
    }
    assert_int_equal(compare("classes", count_all(&m, 32, 1, mask)), 18);
}

// Nothing that was computed elsewhere is believed to be a class.
static void answers_that_are_no_classes(void **state) {
    (void)state;
    const int64_t label = 1, wrong_label = 7, answers[] = {-1, 2, INT64_MAX};
    const pen_metric_loss loss = {PEN_LOSS_SOFTMAX_CROSS_ENTROPY, 2, true};
    pen_metric_setup setup = {.classes = {.spec = {.kind = PEN_LOSS_SOFTMAX_CROSS_ENTROPY},
                                          .type = {PEN_FLOAT32, {.rank = 2, .dims = {1, 2}}},
                                          .example_count = 1,
                                          .class_axis = 1},
                              .example_count = 1};
    pen_metric_tally *tally;
    CHECK_OK(pen_metric_choose(&loss, 1, true, PEN_METRIC_BIT(PEN_METRIC_F1), &setup.choice));
    CHECK_OK(pen_metric_tally_create(&setup, &tally));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const pen_metric_batch batch = {1, &label, NULL, {[PEN_METRIC_SEEN_BEST] = &answers[i]}};
        CHECK_ERROR(pen_metric_tally_add(tally, &batch), PEN_CORRUPT, "was the answer");
    }
    const pen_metric_batch batch = {1, &wrong_label, NULL, {[PEN_METRIC_SEEN_BEST] = &label}};
    CHECK_ERROR(pen_metric_tally_add(tally, &batch), PEN_INVALID_INPUT, "label 7, expected 0 to 1");
    pen_metric_tally_destroy(tally);
}

static void what_cannot_be(void **state) {
    (void)state;
    pen_metric_choice choice;
    const pen_metric_loss classes = {PEN_LOSS_SOFTMAX_CROSS_ENTROPY, 5, false},
                          numbers = {PEN_LOSS_L1, 0, false}, both[] = {numbers, classes};
    CHECK_ERROR(pen_metric_choose(&numbers, 1, false, PEN_METRIC_BIT(PEN_METRIC_F1), &choice),
                PEN_INVALID_INPUT, "evaluation: found f1, but the loss is over no classes");
    CHECK_ERROR(pen_metric_choose(&classes, 1, true, PEN_METRIC_BIT(PEN_METRIC_MEAN_SQUARED_ERROR),
                                  &choice),
                PEN_INVALID_INPUT, "no loss compares numbers");
    CHECK_ERROR(pen_metric_choose(&classes, 1, true, PEN_METRIC_BIT(PEN_METRIC_TOP_5), &choice),
                PEN_INVALID_INPUT, "found top_5, but there are 5 classes");
    CHECK_ERROR(
        pen_metric_choose(&classes, 1, true, PEN_METRIC_BIT(PEN_METRIC_PERPLEXITY), &choice),
        PEN_INVALID_INPUT, "no plain cross-entropy");
    CHECK_OK(pen_metric_choose(both, 2, true,
                               PEN_METRIC_BIT(PEN_METRIC_TOP_3) |
                                   PEN_METRIC_BIT(PEN_METRIC_MEAN_ABSOLUTE_ERROR),
                               &choice));
    assert_int_equal(choice.numbers_loss, 0);
    assert_int_equal(choice.classes_loss, 1);
    assert_int_equal(choice.top, 3);
    assert_false(choice.takes_scores);
    CHECK_OK(pen_metric_check_scores(PEN_METRIC_SCORES_LIMIT, 2));
    CHECK_ERROR(pen_metric_check_scores(PEN_METRIC_SCORES_LIMIT / 2, 3), PEN_DOES_NOT_FIT,
                "auc keeps the scores");
}

// Each metric is told apart by its name, found by it, and explained to users.
static void names(void **state) {
    static char page[1 << 17];
    FILE *file = fopen("docs/job.md", "r");
    (void)state;
    CHECK(file != NULL, "no docs/job.md");
    const size_t length = fread(page, 1, sizeof page - 1, file);
    CHECK(length < sizeof page - 1, "docs/job.md is longer");
    fclose(file);
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        assert_int_equal(pen_metric_find(pen_metric_kinds[metric].name), metric);
        assert_non_null(pen_metric_kinds[metric].value);
        char key[64];
        snprintf(key, sizeof key, "`%s`", pen_metric_names[metric]);
        CHECK(strstr(page, key) != NULL, "docs/job.md says nothing of %s", key);
    }
    assert_int_equal(pen_metric_find("f2"), PEN_METRIC_COUNT);
    assert_true(pen_metric_kinds[PEN_METRIC_AUC].is_larger_better);
    assert_false(pen_metric_kinds[PEN_METRIC_PERPLEXITY].is_larger_better);
}

PEN_TEST_MAIN(cmocka_unit_test(equals_scikit_learn), cmocka_unit_test(classes_before_others),
              cmocka_unit_test(labels_that_are_probabilities), cmocka_unit_test(a_mask_leaves_out),
              cmocka_unit_test(answers_that_are_no_classes), cmocka_unit_test(what_cannot_be),
              cmocka_unit_test(names))
