// Fuzzes the job reader, and with it the YAML reader, the option tables, quantities and patterns:
// any bytes give a job or an error with a message, and nothing else. Opens no file.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena = NULL;
    if (pen_arena_create(&arena) != PEN_OK) return 0;
    const pen_job *job = NULL;
    const pen_status status = pen_job_parse("fuzz/job.yaml", (const char *)data, size, arena, &job);
    if (status == PEN_OK) {
        pen_dataset_options options;
        pen_learning_rate_options rate;
        pen_status_ignore(pen_job_get_dataset(job, PEN_DATASET_PART_TRAIN, arena, &options),
                          "a job may have no such data");
        pen_status_ignore(pen_job_get_dataset(job, PEN_DATASET_PART_EVAL, arena, &options),
                          "a job may have no such data");
        pen_status_ignore(pen_job_get_learning_rate(job, UINT64_MAX, &rate), "any may be wrong");
        pen_status_ignore(pen_job_blame(job, &job->train.batch, pen_error(PEN_IO, "here")),
                          "only the position is looked for");
        if (job->cluster.device_count == 0 || pen_job_get_step_count(job, 7) == 0) abort();
    } else {
        char text[256];
        if (pen_status_format(status, text, sizeof text) == 0) abort();
    }
    pen_status_ignore(status, "any input may be wrong");
    pen_arena_destroy(arena);
    return 0;
}
