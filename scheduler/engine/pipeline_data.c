// What workers are told where they read the data of a training by themselves.

#include <stdlib.h>
#include <string.h>

#include "scheduler/data/file_list.h"
#include "scheduler/data/sql/sql_target.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/job/job_links.h"

// The dataset and the seed of its order never change: told once for all generations.
static pen_status data_make_absolute(pen_arena *arena, const char **path) {
    if (*path == NULL) return PEN_OK;
    char *real = realpath(*path, NULL);
    if (real == NULL) return pen_error(PEN_NOT_FOUND, "'%s' is not there any more", *path);
    const pen_status status = pen_arena_copy_text(arena, real, strlen(real), path);
    free(real);
    return status;
}

// Patterns become the files that this process found, so that workers read no more and no less.
static pen_status data_make_files_absolute(pen_arena *arena, const pen_dataset_input **files,
                                           uint32_t *file_count) {
    pen_dataset_input *made;
    PEN_TRY(pen_file_list_expand(*files, *file_count, arena, files, file_count));
    const uint32_t count = *file_count;
    PEN_TRY(PEN_NEW(arena, count, &made));
    for (uint32_t i = 0; i < count; i++) {
        made[i] = (*files)[i];
        PEN_TRY(data_make_absolute(arena, &made[i].path));
    }
    *files = made;
    return PEN_OK;
}

// The only labels may be in several files, too.
static pen_status data_name_labels(pen_arena *arena, pen_dataset_options *options) {
    if (strcmp(options->format, "npy") != 0) return data_make_absolute(arena, &options->labels);
    if (options->labels == NULL) return PEN_OK;
    pen_dataset_input *only;
    PEN_TRY(PEN_NEW(arena, 1, &only));
    *only = (pen_dataset_input){.name = "labels", .path = options->labels};
    options->label_files = only;
    options->label_file_count = 1;
    options->labels = NULL;
    return PEN_OK;
}

// Where workers find what was read of a database, or read it again; they take passwords from where
// they are.
static pen_status data_describe_database(pen_arena *arena, pen_dataset_options *options) {
    pen_sql_target target;
    PEN_TRY(pen_sql_target_parse(options->connection, arena, &target));
    options->connection = target.text;
    options->refresh = false;
    return data_make_absolute(arena, &options->cache);
}

// Columns, and parts of examples, are no files.
static pen_status data_describe_files(pen_arena *arena, pen_dataset_options *options) {
    if (options->connection != NULL) return data_describe_database(arena, options);
    if (options->shard_count > 0) {
        PEN_TRY(data_make_absolute(arena, &options->cache));
        return data_make_files_absolute(arena, &options->shards, &options->shard_count);
    }
    PEN_TRY(data_make_absolute(arena, &options->path));
    PEN_TRY(data_make_absolute(arena, &options->words_path));
    PEN_TRY(data_name_labels(arena, options));
    PEN_TRY(data_make_files_absolute(arena, &options->inputs, &options->input_count));
    return data_make_files_absolute(arena, &options->label_files, &options->label_file_count);
}

// The job's own options, without what only this process needs.
static pen_status data_describe(pipeline_engine *p) {
    const pen_job *job = p->options.job;
    pen_run_data *data;
    PEN_TRY(PEN_NEW(p->arena, 1, &data));
    pen_dataset_options *options = &data->options;
    PEN_TRY(pen_job_get_dataset(job, p->options.part, p->arena, options));
    options->weight_file_count = 0; // this process scales losses
    options->weight_table = NULL;
    options->blame_normalization = NULL;
    options->blame_context = NULL;
    PEN_TRY(data_describe_files(p->arena, options));
    options->broken = p->info->broken;
    options->broken_count = p->info->broken_count;
    options->broken_is_known = true;
    data->delimiter = (unsigned char)options->delimiter;
    data->shuffle = job->train.shuffle;
    data->seed = (uint64_t)job->train.seed;
    data->count = p->info->example_count;
    p->data = data;
    return pen_dataset_fingerprint(p->options.dataset, &data->fingerprint);
}

// `auto`: where all workers are processes that this one starts, which see the same files, and hold
// no copy of them.
static bool data_is_seen(const pipeline_engine *p) {
    const pen_cluster_spec *cluster = &p->options.job->cluster;
    if (p->info->held_bytes > 0) return false;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (!pen_host_is_started(cluster->devices[d].host)) return false;
    }
    return p->options.job->recovery.spares.count == 0;
}

pen_status pen_pipeline_describe_data(pipeline_engine *p) {
    const pen_job *job = p->options.job;
    const bool is_in_memory = pen_job_find_dataset(job, p->options.part)->format == PEN_JOB_ARRAYS;
    if (p->options.dataset == NULL || job->data.read_on == PEN_JOB_READ_ON_COORDINATOR) {
        return PEN_OK;
    }
    if (job->data.balance != 0) return PEN_OK; // the order follows from all labels
    if (job->data.has_mix) return PEN_OK;      // whole batches are mixed
    if (pen_job_find_dataset(job, p->options.part)->tokens.has_mask) return PEN_OK;
    if (job->data.read_on == PEN_JOB_READ_ON_AUTO) {
        return is_in_memory || !data_is_seen(p) ? PEN_OK : data_describe(p);
    }
    if (!is_in_memory) return data_describe(p);
    return pen_job_blame(job, &job->data.read_on,
                         pen_error(PEN_INVALID_INPUT,
                                   "data.read_on: found workers, but the arrays are in the memory "
                                   "of this process, expected coordinator"));
}

bool pen_pipeline_reads_elsewhere(const pen_engine *engine) {
    return ((const pipeline_engine *)(const void *)engine)->data != NULL;
}
