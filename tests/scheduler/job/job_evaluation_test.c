// The keys of `evaluation`: how people write them.
#include "scheduler/job/job.h"
#include "tests/support/check.h"

// People write true and false; jobs of older versions have 1 and 0.
static void the_best_is_kept_in_words_and_digits(void **state) {
    (void)state;
    const char *const written[] = {"false", "true", "0", "1"};
    pen_arena *arena = check_arena();
    for (size_t i = 0; i < 4; i++) {
        const pen_job *job;
        const char *text;
        CHECK_OK(pen_arena_format(arena, &text,
                                  "version: 1\nmodel: {file: m.onnx}\n"
                                  "data: {train: {format: idx, images: a}, holdout: 0.1}\n"
                                  "train: {loss: output, optimizer: adam, batch: 4}\n"
                                  "evaluation: {keep_best: %s}\n",
                                  written[i]));
        CHECK_OK(pen_job_parse("job.yaml", text, strlen(text), arena, &job));
        assert_true(job->evaluation.has_keep_best);
        assert_int_equal(job->evaluation.keep_best, i % 2);
    }
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(the_best_is_kept_in_words_and_digits))
