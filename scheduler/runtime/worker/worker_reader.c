#include "scheduler/runtime/worker/worker_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "scheduler/data/batches.h"

struct pen_worker_reader {
    pen_worker_reader_options options;
    pen_dataset *dataset;
    pen_thread *thread;
    pen_mutex lock;
    pen_condition changed;
    // guarded by lock
    pen_reading *asked; // [asked_limit] a ring
    uint32_t asked_first;
    uint32_t asked_count;
    bool is_closed;

    // the thread's own
    uint64_t *order; // [count] of order_epoch; NULL without shuffling
    uint64_t order_epoch;
    uint64_t *indices; // [indices_limit]
    uint64_t indices_limit;
};

// ---- files

// A path of another machine is not trusted: what it leads to must be in the folder.
static pen_status reader_check_path(const char *path, const char *folder) {
    char *real_path = realpath(path, NULL), *real_folder = realpath(folder, NULL);
    pen_status status = PEN_OK;
    const size_t length = real_folder == NULL ? 0 : strlen(real_folder);
    if (real_path == NULL) {
        status = pen_error(PEN_NOT_FOUND, "'%s' is not there", path);
    } else if (real_folder == NULL) {
        status = pen_error(PEN_NOT_FOUND, "the folder of data '%s' is not there", folder);
    } else if (strncmp(real_path, real_folder, length) != 0 ||
               (length > 1 && real_path[length] != '/' && real_path[length] != '\0')) {
        status = pen_error(PEN_INVALID_INPUT,
                           "'%s' is not in '%s', which this worker may read (penstock worker "
                           "--data)",
                           path, folder);
    }
    free(real_path);
    free(real_folder);
    return status;
}

static pen_status reader_check_paths(const pen_dataset_options *options, const char *folder) {
    if (folder == NULL) return PEN_OK;
    if (options->cache != NULL) PEN_TRY(reader_check_path(options->cache, folder));
    for (uint32_t i = 0; i < options->shard_count; i++) {
        PEN_TRY(reader_check_path(options->shards[i].path, folder));
    }
    if (options->cache != NULL) return PEN_OK; // all else are names of columns, or parts
    if (options->path != NULL) PEN_TRY(reader_check_path(options->path, folder));
    if (options->labels != NULL) PEN_TRY(reader_check_path(options->labels, folder));
    if (options->words_path != NULL) PEN_TRY(reader_check_path(options->words_path, folder));
    for (uint32_t i = 0; i < options->input_count; i++) {
        PEN_TRY(reader_check_path(options->inputs[i].path, folder));
    }
    for (uint32_t i = 0; i < options->label_file_count; i++) {
        PEN_TRY(reader_check_path(options->label_files[i].path, folder));
    }
    return PEN_OK;
}

static const char *reader_file(const pen_dataset_options *options) {
    return options->path != NULL ? options->path : options->inputs[0].path;
}

// The same options as the coordinator opened it with, as far as this worker may use them.
static pen_status reader_open(pen_worker_reader *reader) {
    const pen_run_data *data = reader->options.data;
    pen_dataset_options options = data->options;
    uint64_t fingerprint;
    options.cache_only = true; // it neither connects to databases nor makes an index
    if (data->options.path == NULL && data->options.input_count == 0) {
        return pen_error(PEN_CORRUPT, "data of no file");
    }
    PEN_TRY(reader_check_paths(&data->options, reader->options.folder));
    PEN_TRY(pen_dataset_open(&options, &reader->dataset));
    const uint64_t count = pen_dataset_get_info(reader->dataset)->example_count;
    if (count != data->count) {
        return pen_error(PEN_INVALID_INPUT, "'%s' has %llu examples, the coordinator's %llu",
                         reader_file(&data->options), (unsigned long long)count,
                         (unsigned long long)data->count);
    }
    PEN_TRY(pen_dataset_fingerprint(reader->dataset, &fingerprint));
    if (fingerprint == data->fingerprint) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "'%s' has other contents than the coordinator's",
                     reader_file(&data->options));
}

// ---- reading

// Which examples they are: numbers come from the coordinator and are checked.
static pen_status reader_choose(pen_worker_reader *reader, const pen_reading *reading) {
    const pen_run_data *data = reader->options.data;
    if (reading->count > data->count || reading->first > data->count - reading->count) {
        return pen_error(
            PEN_CORRUPT, "examples %llu to %llu of %llu", (unsigned long long)reading->first,
            (unsigned long long)(reading->first + reading->count), (unsigned long long)data->count);
    }
    if (reading->count > reader->indices_limit) {
        pen_memory_free(reader->indices);
        reader->indices_limit = 0;
        reader->indices = pen_memory_allocate(reading->count, sizeof *reader->indices);
        if (reader->indices == NULL) return pen_error_out_of_memory();
        reader->indices_limit = reading->count;
    }
    if (reader->order != NULL && reader->order_epoch != reading->epoch) {
        pen_batches_shuffle(data->seed, reading->epoch, data->count, reader->order);
        reader->order_epoch = reading->epoch;
    }
    for (uint64_t i = 0; i < reading->count; i++) {
        const uint64_t place = reading->first + i;
        reader->indices[i] = reader->order == NULL ? place : reader->order[place];
    }
    return PEN_OK;
}

// It begins when its examples are chosen, and their place is free.
static pen_status reader_read(pen_worker_reader *reader, pen_reading *reading) {
    const pen_worker_reader_options *options = &reader->options;
    const pen_dataset_info *info = pen_dataset_get_info(reader->dataset);
    void *inputs[PEN_DATASET_INPUT_COUNT_LIMIT] = {NULL};
    void *labels[PEN_DATASET_LABEL_COUNT_LIMIT] = {NULL};
    const bool is_input = reading->field < PEN_RUN_FIELD_LABELS;
    const uint32_t number = reading->field - (is_input ? 1 : PEN_RUN_FIELD_LABELS);
    const uint32_t field_count = is_input ? info->input_count : info->label_count;
    const pen_dataset_field *fields = is_input ? info->inputs : info->labels;
    if (fields == NULL || number >= field_count ||
        fields[number].bytes * reading->count != reading->bytes) {
        return pen_error(PEN_CORRUPT, "%llu bytes of %s %u, which the data has not",
                         (unsigned long long)reading->bytes, is_input ? "input" : "labels", number);
    }
    PEN_TRY(reader_choose(reader, reading));
    if (options->await != NULL) PEN_TRY(options->await(options->context, reading));
    reading->started = pen_clock_seconds();
    (is_input ? inputs : labels)[number] = reading->memory;
    return pen_dataset_read_epoch(reader->dataset, reading->epoch, reader->indices, reading->count,
                                  is_input ? inputs : NULL, is_input ? NULL : labels);
}

// The thread: one reading after the other, so that each channel's come in order. After an error
// nothing more is read.
static void reader_run(void *context) {
    pen_worker_reader *reader = context;
    const pen_worker_reader_options *options = &reader->options;
    pen_mutex_lock(&reader->lock);
    while (!reader->is_closed) {
        if (reader->asked_count == 0) {
            pen_condition_wait(&reader->changed, &reader->lock);
            continue;
        }
        pen_reading reading = reader->asked[reader->asked_first];
        reader->asked_first = (reader->asked_first + 1) % options->asked_limit;
        reader->asked_count -= 1;
        pen_mutex_unlock(&reader->lock);
        const pen_status status = reader_read(reader, &reading);
        if (status == PEN_OK) {
            options->done(options->context, &reading);
        } else {
            options->failed(options->context, pen_status_add_context(status, "while reading data"));
            pen_worker_reader_close(reader);
        }
        pen_mutex_lock(&reader->lock);
    }
    pen_mutex_unlock(&reader->lock);
}

void pen_worker_reader_ask(pen_worker_reader *reader, const pen_reading *reading) {
    pen_mutex_lock(&reader->lock);
    if (!reader->is_closed) {
        PEN_ASSERT(reader->asked_count < reader->options.asked_limit);
        const uint32_t last =
            (reader->asked_first + reader->asked_count) % reader->options.asked_limit;
        reader->asked[last] = *reading;
        reader->asked_count += 1;
        pen_condition_signal(&reader->changed);
    }
    pen_mutex_unlock(&reader->lock);
}

// ---- life

static pen_status reader_start(pen_worker_reader *reader) {
    const pen_run_data *data = reader->options.data;
    PEN_TRY(reader_open(reader));
    reader->asked = pen_memory_allocate(reader->options.asked_limit, sizeof *reader->asked);
    if (reader->asked == NULL) return pen_error_out_of_memory();
    if (data->shuffle) {
        reader->order = pen_memory_allocate(data->count, sizeof *reader->order);
        if (reader->order == NULL) return pen_error_out_of_memory();
    }
    return pen_thread_create("penstock-read", reader_run, reader, &reader->thread);
}

pen_status pen_worker_reader_create(const pen_worker_reader_options *options,
                                    pen_worker_reader **out_reader) {
    pen_worker_reader *reader = pen_memory_allocate(1, sizeof *reader);
    if (reader == NULL) return pen_error_out_of_memory();
    reader->options = *options;
    reader->order_epoch = UINT64_MAX;
    pen_mutex_init(&reader->lock);
    pen_condition_init(&reader->changed);
    const pen_status status = reader_start(reader);
    if (status != PEN_OK) {
        pen_worker_reader_destroy(reader);
        return status;
    }
    *out_reader = reader;
    return PEN_OK;
}

void pen_worker_reader_close(pen_worker_reader *reader) {
    if (reader == NULL) return;
    pen_mutex_lock(&reader->lock);
    reader->is_closed = true;
    pen_condition_signal(&reader->changed);
    pen_mutex_unlock(&reader->lock);
}

void pen_worker_reader_destroy(pen_worker_reader *reader) {
    if (reader == NULL) return;
    pen_worker_reader_close(reader);
    pen_thread_join(reader->thread);
    pen_dataset_close(reader->dataset);
    pen_memory_free(reader->asked);
    pen_memory_free(reader->order);
    pen_memory_free(reader->indices);
    pen_condition_deinit(&reader->changed);
    pen_mutex_deinit(&reader->lock);
    pen_memory_free(reader);
}
