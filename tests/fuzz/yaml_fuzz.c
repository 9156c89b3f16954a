// Fuzzes the readers of jobs, clusters and sweeps, and with them the YAML reader, the option
// tables, quantities, patterns and ranges of names: any bytes give a job, or a cluster, or an error
// with a message, and nothing else. Opens no file.
#include <string.h>

#include "partition/costs/cluster_build.h"
#include "scheduler/job/job.h"
#include "scheduler/job/sweep.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_DEVICE_LIMIT 64

static void build_cluster(const pen_cluster_spec *spec, pen_arena *arena) {
    static const pen_machine machine = {.core_count_allowed = 3, .memory_bytes_allowed = 1u << 30};
    const pen_cluster *cluster = NULL;
    fuzz_must(spec->device_count > 0 && spec->device_count <= PEN_CLUSTER_DEVICE_LIMIT);
    if (spec->device_count > FUZZ_DEVICE_LIMIT) return;
    if (!fuzz_reads(pen_cluster_build_on(&machine, spec, NULL, arena, &cluster))) return;
    for (uint32_t i = 0; i < cluster->device_count; i++) {
        const pen_cluster_device *device = &cluster->devices[i];
        fuzz_must(device->flops > 0 && device->memory_bandwidth > 0);
        fuzz_must(device->threads > 0 && device->bytes_limit > 0);
        for (uint32_t j = 0; j < cluster->device_count; j++) {
            const pen_cluster_link *link = pen_cluster_link_at(cluster, i, j);
            fuzz_must(link->bandwidth > 0 && link->latency >= 0);
        }
    }
}

static void use_job(const pen_job *job, pen_arena *arena) {
    pen_dataset_options options;
    pen_learning_rate_options rate;
    fuzz_reads(pen_job_get_dataset(job, PEN_DATASET_PART_TRAIN, arena, &options));
    fuzz_reads(pen_job_get_dataset(job, PEN_DATASET_PART_EVAL, arena, &options));
    fuzz_reads(pen_job_get_learning_rate(job, UINT64_MAX, &rate));
    fuzz_reads(pen_job_blame(job, &job->train.batch, pen_error(PEN_IO, "here")));
    build_cluster(&job->cluster, arena);
    fuzz_must(job->cluster.device_count > 0 && pen_job_get_step_count(job, 7) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    const pen_job *job;
    const pen_cluster_spec *spec;
    const char *text = (const char *)data;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_job_parse("fuzz/job.yaml", text, size, arena, &job))) use_job(job, arena);
    if (fuzz_reads(pen_cluster_spec_parse("fuzz/cluster.yaml", text, size, arena, &spec))) {
        build_cluster(spec, arena);
    }
    pen_sweep *sweep;
    if (fuzz_reads(pen_sweep_parse("fuzz/sweep.yaml", text, size, arena, &sweep))) {
        for (uint32_t i = 0; i < sweep->run_count; i++)
            fuzz_must(strlen(sweep->runs[i].name) < 256 &&
                      strchr(sweep->runs[i].name, '/') == NULL);
    }
    pen_arena_destroy(arena);
    return 0;
}
