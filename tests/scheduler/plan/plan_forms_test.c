#include "scheduler/plan/plan_forms.h"

#include <string.h>

#include "tests/support/check.h"
#include "tests/support/scratch.h"

// A job of ten examples in batches of four whose evaluation data is the file `path`.
static const pen_job *read_job(pen_arena *arena, const char *path) {
    const char *text;
    const pen_job *job;
    CHECK_OK(pen_arena_format(arena, &text,
                              "version: 1\nmodel: {file: m.onnx}\n"
                              "data: {train: {format: npy, inputs: {x: x.npy}},\n"
                              "       eval: {format: npy, inputs: {x: %s}}}\n"
                              "train: {loss: output, optimizer: adam, batch: 4}\n"
                              "devices: [{name: a}]\n",
                              path));
    CHECK_OK(pen_job_parse("job.yaml", text, strlen(text), arena, &job));
    return job;
}

// A plan is made without evaluations, whatever is wrong with their data: a training refuses it.
static void evaluation_data_that_cannot_be_read_is_left_out(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_dataset_info trained = {.format = "npy", .example_count = 10};
    const char *const paths[] = {scratch_file("broken.npy", "none", 4), scratch_path("none.npy")};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const pen_job *job = read_job(arena, paths[i]);
        pen_dataset *dataset = NULL;
        pen_plan_form_sizes sizes = {1, 1, 1};
        CHECK_ERROR(pen_job_open_dataset(job, PEN_DATASET_PART_EVAL, arena, &dataset),
                    i == 0 ? PEN_CORRUPT : PEN_NOT_FOUND, i == 0 ? "broken.npy" : "none.npy");
        CHECK_OK(pen_plan_form_sizes_find(job, &trained, arena, &sizes));
        assert_int_equal(sizes.rest, 2);
        assert_int_equal(sizes.evaluate_batch, 0);
        assert_int_equal(sizes.evaluate_rest, 0);
    }
    pen_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_data_that_cannot_be_read_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
