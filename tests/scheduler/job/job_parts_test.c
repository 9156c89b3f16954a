// Jobs in several files: errors name the file and line that they are in.
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "scheduler/job/job.h"
#include "tests/support/check.h"

static void write_file(const char *path, const char *text) {
    pen_file *file = NULL;
    CHECK_OK(pen_file_create_beside(path, &file));
    CHECK_OK(pen_file_write(file, text, strlen(text)));
    CHECK_OK(pen_file_commit(file));
    CHECK_OK(pen_file_close(file));
}

static void parts_may_be_files(void **state) {
    (void)state;
    char folder[] = "/tmp/pen_job_test.XXXXXX";
    assert_non_null(mkdtemp(folder));
    pen_arena *arena = check_arena();
    const char *job_path;
    const char *part_folder;
    const char *part_path;
    CHECK_OK(pen_arena_format(arena, &job_path, "%s/job.yaml", folder));
    CHECK_OK(pen_arena_format(arena, &part_folder, "%s/parts", folder));
    CHECK_OK(pen_arena_format(arena, &part_path, "%s/parts/train.yaml", folder));
    assert_int_equal(mkdir(part_folder, 0777), 0);
    write_file(job_path, "version: 1\nmodel: {file: m.onnx}\n"
                         "data: {train: {format: idx, images: i}}\ntrain: parts/train.yaml\n");
    const pen_job *job;
    CHECK_ERROR(pen_job_read(job_path, arena, &job), PEN_NOT_FOUND,
                "job.yaml:4:8: error: train: cannot");
    write_file(part_path, "loss: output\noptimizer: adam\nbatch: 0\n");
    CHECK_ERROR(pen_job_read(job_path, arena, &job), PEN_INVALID_INPUT,
                "parts/train.yaml:3:8: error: train.batch: found \"0\"");
    write_file(part_path, "loss: output\noptimizer: adam\nbatch: 12\n");
    CHECK_OK(pen_job_read(job_path, arena, &job));
    assert_int_equal(job->train.batch, 12);
    CHECK_ERROR(pen_job_blame(job, &job->train.batch, pen_error(PEN_DOES_NOT_FIT, "too much")),
                PEN_DOES_NOT_FIT, "parts/train.yaml:3:8: error: too much");
    CHECK_ERROR(pen_job_blame(job, &job->train.seed, pen_error(PEN_DOES_NOT_FIT, "too much")),
                PEN_DOES_NOT_FIT, "parts/train.yaml:1:1: error: too much");
    CHECK_ERROR(pen_job_read("/nonexistent/job.yaml", arena, &job), PEN_NOT_FOUND,
                "/nonexistent/job.yaml");
    assert_int_equal(unlink(part_path) | unlink(job_path) | rmdir(part_folder) | rmdir(folder), 0);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(parts_may_be_files))
