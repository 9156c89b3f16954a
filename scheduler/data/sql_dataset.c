// Rows of a database: read once into an array cache, and from there as arrays and pictures are.

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "scheduler/data/array_source.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/picture_reader.h"
#include "scheduler/data/sql/sql_fetch.h"

// How a field of the cache is read.
typedef struct sql_column {
    const struct sql_state *state;
    uint32_t field; // of the cache
    pen_array_source source;
    pen_picture_reader *pictures; // NULL: they are numbers
} sql_column;

typedef struct sql_state {
    pen_sql_target target;
    pen_array_cache cache;
    sql_column columns[PEN_CACHE_FIELDS_LIMIT]; // [cache.field_count] inputs, labels, weights
} sql_state;

// ---- the request

// Columns of one field follow one another under its name.
static pen_status sql_add_fields(const pen_dataset_input *inputs, uint32_t count, bool is_label,
                                 pen_arena *arena, pen_sql_field *fields, uint32_t *io_count) {
    const char **columns;
    PEN_TRY(PEN_NEW(arena, count, &columns));
    for (uint32_t i = 0; i < count; i++) {
        pen_sql_field *field = &fields[*io_count - 1];
        columns[i] = inputs[i].path;
        if (i > 0 && strcmp(inputs[i].name, inputs[i - 1].name) == 0) {
            field->column_count += 1;
            continue;
        }
        if (*io_count == PEN_CACHE_FIELDS_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "format sql has more than %d inputs and labels",
                             PEN_CACHE_FIELDS_LIMIT);
        }
        fields[(*io_count)++] = (pen_sql_field){.name = inputs[i].name,
                                                .is_label = is_label,
                                                .columns = &columns[i],
                                                .column_count = 1};
    }
    return PEN_OK;
}

// Fields in the order of the dataset: inputs, then labels; and weights, which are kept as labels
// are.
static pen_status sql_make_request(const pen_dataset_options *options, const pen_sql_target *target,
                                   pen_arena *arena, pen_sql_request *out_request) {
    const pen_dataset_input only = {.name = "labels", .path = options->labels};
    const pen_dataset_input weights = {.name = "weights", .path = options->weight_column};
    const bool is_only = options->labels != NULL, is_weighed = options->weight_column != NULL;
    pen_sql_field *fields;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, PEN_CACHE_FIELDS_LIMIT, &fields));
    PEN_TRY(sql_add_fields(options->inputs, options->input_count, false, arena, fields, &count));
    if (count == 0 || count > PEN_DATASET_INPUT_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "format sql has %" PRIu32 " inputs, expected 1 to %d",
                         count, PEN_DATASET_INPUT_COUNT_LIMIT);
    }
    PEN_TRY(sql_add_fields(is_only ? &only : options->label_files,
                           is_only ? 1 : options->label_file_count, true, arena, fields, &count));
    PEN_TRY(sql_add_fields(&weights, is_weighed ? 1 : 0, true, arena, fields, &count));
    *out_request = (pen_sql_request){.target = target,
                                     .query = options->query,
                                     .partition = options->partition,
                                     .element = options->byte_element,
                                     .shape = options->byte_shape,
                                     .shape_rank = options->byte_rank,
                                     .fields = fields,
                                     .field_count = count};
    return PEN_OK;
}

// ---- the cache

// When this process first asked: what was made since then is not made anew, though the job says
// `refresh`.
static int64_t sql_first_time(void) {
    static atomic_int_least64_t first;
    int64_t expected = 0;
    const int64_t now = (int64_t)time(NULL);
    (void)atomic_compare_exchange_strong(&first, &expected, now);
    return atomic_load(&first);
}

static bool sql_is_old(const pen_dataset_options *options, const char *path) {
    struct stat facts;
    const int64_t first = sql_first_time();
    return options->refresh && stat(path, &facts) == 0 && (int64_t)facts.st_mtim.tv_sec < first;
}

// A cache that is damaged is made anew; a failing disk is told.
static pen_status sql_find(const pen_dataset_options *options, const char *request,
                           pen_arena *arena, pen_array_cache *out_cache, bool *out_is_found) {
    const char *path;
    *out_is_found = false;
    PEN_TRY(pen_cache_path(options->cache, request, arena, &path));
    if (sql_is_old(options, path)) return PEN_OK;
    const pen_status status = pen_array_cache_open(options->cache, request, arena, out_cache);
    const pen_status_code code = pen_status_get_code(status);
    *out_is_found = status == PEN_OK;
    if (code != PEN_NOT_FOUND && code != PEN_CORRUPT) return status;
    if (code == PEN_CORRUPT) {
        pen_log(PEN_LOG_WARNING, "%s: the query is read anew", pen_status_message(status));
    }
    pen_status_ignore(status, "the query is read");
    return PEN_OK;
}

// Reads the rows, unless another process was about to: then what it read is there.
static pen_status sql_fetch(const pen_dataset_options *options, const pen_sql_request *request,
                            const char *text, pen_arena *arena, bool *out_is_found,
                            pen_array_cache *out_cache) {
    pen_cache_writer *writer;
    PEN_TRY(pen_cache_writer_create(options->cache, text, &writer));
    pen_status status = PEN_OK;
    if (pen_cache_writer_has_waited(writer)) {
        status = sql_find(options, text, arena, out_cache, out_is_found);
    }
    if (status == PEN_OK && !*out_is_found) status = pen_sql_fetch(request, writer);
    pen_cache_writer_destroy(writer);
    return status;
}

static pen_status sql_open_cache(const pen_dataset_options *options, const pen_sql_request *request,
                                 pen_arena *arena, pen_array_cache *out_cache) {
    const char *text;
    bool is_found;
    PEN_TRY(pen_sql_request_describe(request, arena, &text));
    PEN_TRY(sql_find(options, text, arena, out_cache, &is_found));
    if (is_found) return PEN_OK;
    if (options->cache_only) {
        return pen_error(PEN_NOT_FOUND,
                         "'%s' has no rows of %s: workers read what the starting process kept, in "
                         "a folder that both see",
                         options->cache, request->target->text);
    }
    PEN_TRY(sql_fetch(options, request, text, arena, &is_found, out_cache));
    return is_found ? PEN_OK : pen_array_cache_open(options->cache, text, arena, out_cache);
}

// ---- fields

static pen_status sql_find_picture(const void *context, uint64_t index, pen_picture *out_picture) {
    const sql_column *column = context;
    const sql_state *state = column->state;
    uint64_t length;
    out_picture->bytes = pen_array_cache_picture(&state->cache, column->field, index, &length);
    out_picture->length = length;
    snprintf(out_picture->name, sizeof out_picture->name, "%s, row %" PRIu64 " of %s",
             state->cache.fields[column->field].name, index + 1, state->target.text);
    return PEN_OK;
}

// The numbers of a field as an array.
static pen_status sql_set_source(const sql_state *state, uint32_t field, pen_arena *arena,
                                 pen_array_source *source) {
    const pen_cache_field *kept = &state->cache.fields[field];
    *source = (pen_array_source){
        .element = kept->element, .rank = kept->rank + 1, .data = state->cache.data[field].bytes};
    source->shape[0] = (int64_t)state->cache.row_count;
    memcpy(source->shape + 1, kept->shape, kept->rank * sizeof *kept->shape);
    return pen_arena_format(arena, &source->path, "%s of %s", kept->name, state->target.text);
}

static pen_status sql_open_input(pen_dataset *dataset, const pen_dataset_options *options,
                                 uint32_t index, pen_dataset_element wanted,
                                 pen_dataset_field *field) {
    sql_state *state = dataset->state;
    sql_column *column = &state->columns[index];
    field->name = state->cache.fields[index].name;
    field->element = PEN_DATASET_FLOAT32;
    if (state->cache.fields[index].is_pictures) {
        return pen_picture_reader_create(options, sql_find_picture, column, dataset, field,
                                         &column->pictures);
    }
    PEN_TRY(sql_set_source(state, index, dataset->arena, &column->source));
    return pen_array_source_open_inputs(&column->source, options, wanted, false, dataset->arena,
                                        field);
}

static pen_status sql_open_label(pen_dataset *dataset, const pen_dataset_options *options,
                                 uint32_t index, pen_dataset_field *field) {
    sql_state *state = dataset->state;
    sql_column *column = &state->columns[index];
    field->name = state->cache.fields[index].name;
    PEN_TRY(sql_set_source(state, index, dataset->arena, &column->source));
    dataset->label_sources[dataset->info.label_count++] = column->source.path;
    return pen_array_source_open_labels(&column->source,
                                        pen_dataset_label_element(options, field->name), field);
}

// The numbers of the last field.
static pen_status sql_open_weights(pen_dataset *dataset) {
    sql_state *state = dataset->state;
    const uint32_t field = state->cache.field_count - 1;
    pen_array_source source;
    pen_dataset_field read = {.name = "weights"};
    PEN_TRY(sql_set_source(state, field, dataset->arena, &source));
    PEN_TRY(pen_array_source_open_labels(&source, PEN_DATASET_FLOAT32, &read));
    if (read.element_count != 1) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: found %" PRIu64 " numbers a row, expected one, its weight",
                         source.path, read.element_count);
    }
    PEN_TRY(pen_dataset_make_weights(dataset, source.path));
    for (uint64_t i = 0; i < dataset->info.example_count; i++)
        pen_array_source_read(&source, &i, 1, &dataset->weights[i]);
    return PEN_OK;
}

// Weights are a field of the cache, but none of the dataset.
static pen_status sql_open_fields(pen_dataset *dataset, const pen_dataset_options *options) {
    sql_state *state = dataset->state;
    const bool is_weighed = options->weight_column != NULL;
    pen_dataset_field *fields;
    PEN_TRY(PEN_NEW(dataset->arena, state->cache.field_count, &fields));
    for (uint32_t i = 0; i < state->cache.field_count - is_weighed; i++) {
        state->columns[i].state = state;
        state->columns[i].field = i;
        if (state->cache.fields[i].is_label) {
            PEN_TRY(sql_open_label(dataset, options, i, &fields[i]));
            continue;
        }
        PEN_TRY(sql_open_input(dataset, options, i, PEN_DATASET_AUTO, &fields[i]));
        dataset->info.input_count += 1;
    }
    dataset->info.inputs = fields;
    if (dataset->info.label_count > 0) dataset->info.labels = fields + dataset->info.input_count;
    dataset->info.example_count = state->cache.row_count;
    return is_weighed ? sql_open_weights(dataset) : PEN_OK;
}

static pen_status sql_open(pen_dataset *dataset, const pen_dataset_options *options) {
    sql_state *state;
    pen_sql_request request;
    if (options->connection == NULL || options->query == NULL || options->cache == NULL) {
        return pen_error(PEN_INVALID_INPUT, "format sql needs a connection, a query and a cache");
    }
    PEN_TRY(PEN_NEW(dataset->arena, 1, &state));
    dataset->state = state;
    PEN_TRY(pen_sql_target_parse(options->connection, dataset->arena, &state->target));
    PEN_TRY(sql_make_request(options, &state->target, dataset->arena, &request));
    PEN_TRY(sql_open_cache(options, &request, dataset->arena, &state->cache));
    return sql_open_fields(dataset, options);
}

static pen_status sql_read(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                           void *const *out_inputs, void *const *out_labels) {
    const sql_state *state = dataset->state;
    const uint32_t input_count = dataset->info.input_count;
    for (uint32_t i = 0; i < input_count + dataset->info.label_count; i++) {
        const sql_column *column = &state->columns[i];
        void *out = i < input_count ? out_inputs[i] : out_labels[i - input_count];
        if (out == NULL) continue;
        if (column->pictures != NULL) {
            PEN_TRY(pen_picture_reader_read(column->pictures, indices, count, out));
        } else {
            pen_array_source_read(&column->source, indices, count, out);
        }
    }
    return PEN_OK;
}

// All contents, not a sample of them: rows may come in another order on another machine.
static uint64_t sql_digest(const pen_dataset *dataset) {
    const sql_state *state = dataset->state;
    return state->cache.checksum;
}

static void sql_close(pen_dataset *dataset) {
    sql_state *state = dataset->state;
    if (state == NULL) return;
    for (uint32_t i = 0; i < PEN_CACHE_FIELDS_LIMIT; i++)
        pen_picture_reader_destroy(state->columns[i].pictures);
    pen_array_cache_close(&state->cache);
}

const pen_dataset_format pen_dataset_format_sql = {
    .name = "sql",
    .open = sql_open,
    .read = sql_read,
    .digest = sql_digest,
    .close = sql_close,
};
