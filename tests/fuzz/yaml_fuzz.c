// Fuzzes the readers of jobs and clusters, and with them the YAML reader, the option tables,
// quantities, patterns and ranges of names: any bytes give a job, or a cluster, or an error with a
// message, and nothing else. Opens no file.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/status.h"
#include "partition/cluster.h"
#include "scheduler/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_DEVICE_LIMIT 64

// A message, and nothing else, is what an error is for.
static void look_at(pen_status status) {
    char text[256];
    if (status != PEN_OK && pen_status_format(status, text, sizeof text) == 0) abort();
    pen_status_ignore(status, "any input may be wrong");
}

static void build_cluster(const pen_cluster_spec *spec, pen_arena *arena) {
    static const pen_machine machine = {.core_count_allowed = 3, .memory_bytes_allowed = 1u << 30};
    const pen_cluster *cluster = NULL;
    if (spec->device_count == 0 || spec->device_count > PEN_CLUSTER_DEVICE_LIMIT) abort();
    if (spec->device_count > FUZZ_DEVICE_LIMIT) return;
    const pen_status status = pen_cluster_build_on(&machine, spec, NULL, arena, &cluster);
    for (uint32_t i = 0; status == PEN_OK && i < cluster->device_count; i++) {
        const pen_cluster_device *device = &cluster->devices[i];
        if (!(device->flops > 0) || !(device->memory_bandwidth > 0)) abort();
        if (device->threads == 0 || device->bytes_limit == 0) abort();
        for (uint32_t j = 0; j < cluster->device_count; j++) {
            const pen_cluster_link *link = pen_cluster_link_at(cluster, i, j);
            if (!(link->bandwidth > 0) || !(link->latency >= 0)) abort();
        }
    }
    look_at(status);
}

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
        build_cluster(&job->cluster, arena);
        if (job->cluster.device_count == 0 || pen_job_get_step_count(job, 7) == 0) abort();
    }
    look_at(status);
    const pen_cluster_spec *spec = NULL;
    const pen_status cluster_status =
        pen_cluster_spec_parse("fuzz/cluster.yaml", (const char *)data, size, arena, &spec);
    if (cluster_status == PEN_OK) build_cluster(spec, arena);
    look_at(cluster_status);
    pen_arena_destroy(arena);
    return 0;
}
