// What is said of words that other programs have for ours.
#include "scheduler/job/job_words.h"

#include <unistd.h>

#include "scheduler/job/job.h"
#include "tests/support/check.h"

// Reads a job with these lines under `train`, or with these behind it.
static pen_status read_job(pen_arena *arena, const char *loss, const char *rate, const char *more) {
    char path[] = "/tmp/pen_job_words.XXXXXX";
    const char *text;
    const pen_job *job;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    CHECK_OK(pen_arena_format(arena, &text,
                              "version: 1\nmodel: {file: m.onnx}\n"
                              "data: {train: {format: idx, images: a, labels: b}, holdout: 0.1}\n"
                              "train: {loss: %s, optimizer: {sgd: {lr: 1}}, batch: 1, epochs: 1, "
                              "learning_rate: %s}\n%s\n",
                              loss, rate, more));
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    const pen_status status = pen_job_read(path, arena, &job);
    unlink(path);
    return status;
}

static void other_names_say_what_is_meant(void **state) {
    (void)state;
    static const struct {
        const char *loss;
        const char *rate;
        const char *more;
        const char *message; // the end of it, or a part
    } cases[] = {
        {"softmax_cross_entrpy", "constant", "", "; did you mean softmax_cross_entropy?"},
        {"cross_entropy", "constant", "", "; did you mean softmax_cross_entropy?"},
        {"MSE", "constant", "", "found \"MSE\", expected one of softmax_cross_entropy, "},
        {"MSE", "constant", "", "; did you mean mean_squared_error?"},
        {"CrossEntropyLoss", "constant", "", "; did you mean softmax_cross_entropy?"},
        {"BCEWithLogitsLoss", "constant", "", "did you mean binary_cross_entropy_with_logits?"},
        {"L1Loss", "constant", "", "; did you mean l1?"},
        {"SmoothL1Loss", "constant", "", "; did you mean smooth_l1?"},
        {"l1", "0.1", "", "learning_rate: unknown key \"0.1\": a rate is the optimizer's lr, as "},
        {"l1", "cosin", "", "; did you mean cosine?"},
        {"l1", "constant", "evaluation: {metric: acuracy}", "; did you mean accuracy?"},
        {"l1", "constant", "evaluation: {metrics: [loss, iou]}", "; did you mean mean_iou?"},
        {"l1", "constant", "numerics: {precision: bf16}", "; did you mean bfloat16?"},
        {"l1", "constant", "devices: [{name: a, kind: gpu}]", "; did you mean cuda?"},
        {"l1", "constant", "grid: {train.seed: [1, 2]}",
         "unknown key \"grid\": it is a key of sweeps, which `penstock sweep` runs; possible: "},
        {"l1", "constant", "evaluation: {metric: roc-auc}", "; did you mean auc?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_arena *arena = check_arena();
        CHECK_ERROR(read_job(arena, cases[i].loss, cases[i].rate, cases[i].more), PEN_INVALID_INPUT,
                    cases[i].message);
        pen_arena_destroy(arena);
    }
    pen_arena *arena = check_arena();
    CHECK_OK(read_job(arena, "l1", "constant", "evaluation: {metrics: [mean_iou]}"));
    pen_arena_destroy(arena);
}

// What is offered can be written, and what is not taken is no name of ours.
static void check_words(const pen_text_word *words, const char *const *choices) {
    for (; words->word != NULL; words++) {
        bool is_there = false;
        for (const char *const *choice = choices; *choice != NULL; choice++) {
            is_there |= strcmp(*choice, words->meaning) == 0;
            CHECK(strcmp(*choice, words->word) != 0, "%s is a name", words->word);
        }
        CHECK(is_there, "%s means %s, which there is not", words->word, words->meaning);
    }
}

static const pen_option_table *find_table(const pen_option_table *table, const char *key) {
    for (uint32_t i = 0; i < table->field_count; i++) {
        if (strcmp(table->fields[i].key, key) == 0) return table->fields[i].table;
    }
    return NULL;
}

// Formats are the values of a tag.
static void check_formats(void) {
    const char *formats[64] = {NULL};
    const pen_option_table *data = find_table(&pen_job_table, "data");
    assert_non_null(data);
    const pen_option_table *train = find_table(data, "train");
    assert_non_null(train);
    assert_true(train->variant_count > 0 && train->variant_count < 64);
    for (uint32_t i = 0; i < train->variant_count; i++) {
        formats[i] = train->variants[i].key;
    }
    check_words(pen_job_format_words, formats);
}

static void words_mean_what_there_is(void **state) {
    (void)state;
    check_words(pen_job_loss_words, pen_loss_kind_names);
    check_words(pen_job_metric_words, pen_metric_names);
    check_words(pen_job_precision_words, pen_precision_names);
    check_formats();
}

PEN_TEST_MAIN(cmocka_unit_test(other_names_say_what_is_meant),
              cmocka_unit_test(words_mean_what_there_is))
