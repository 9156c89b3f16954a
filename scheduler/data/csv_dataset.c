// Rows of numbers, or words that become numbers: one column may be the labels, the others are the
// input.

#include <string.h>

#include "base/system/file.h"
#include "scheduler/data/csv/csv_reader.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/normalization.h"

typedef struct csv_state {
    pen_csv_table table;
    pen_normalization normalization;
    bool has_classes; // labels are class indices
} csv_state;

// Whole numbers are class indices, unless numbers are asked for.
static pen_status csv_open_labels(pen_dataset *dataset, const pen_dataset_options *options,
                                  csv_state *state) {
    const pen_csv_table *table = &state->table;
    pen_dataset_field *labels;
    PEN_TRY(PEN_NEW(dataset->arena, 1, &labels));
    labels->name = "labels";
    labels->element = options->label_element;
    if (labels->element == PEN_DATASET_AUTO) {
        labels->element = table->labels_are_whole ? PEN_DATASET_INT64 : PEN_DATASET_FLOAT32;
    }
    if (labels->element == PEN_DATASET_INT64 && !table->labels_are_whole) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': not all labels are whole numbers, but class indices are wanted",
                         options->path);
    }
    state->has_classes = labels->element == PEN_DATASET_INT64;
    const char *source;
    PEN_TRY(pen_arena_copy_text(dataset->arena, options->path, strlen(options->path), &source));
    pen_dataset_set_labels(dataset, labels, source);
    return pen_dataset_field_measure(labels, options->path);
}

static pen_status csv_read_file(const pen_dataset_options *options, const pen_csv_columns *known,
                                pen_arena *arena, pen_csv_table *table) {
    pen_mapping file = {0};
    PEN_TRY(pen_mapping_open(options->path, &file));
    const pen_status status = pen_csv_read(&(pen_csv_text){file.bytes, file.length, options->path},
                                           options, known, arena, table);
    pen_mapping_close(&file);
    return status;
}

// What the columns of the training's table have, as a table without labels sees them where this one
// has none.
static pen_status csv_read_known(const pen_dataset_options *options, pen_arena *arena,
                                 pen_csv_columns *out_columns) {
    const char *other = options->words_path;
    pen_dataset_options asked = *options;
    pen_mapping file = {0};
    if (options->label_column == NULL) asked.label_column = options->words_label_column;
    PEN_TRY(pen_mapping_open(other, &file));
    const pen_status status = pen_csv_read_columns(&(pen_csv_text){file.bytes, file.length, other},
                                                   &asked, arena, out_columns);
    pen_mapping_close(&file);
    PEN_TRY(status);
    if (options->label_column == NULL) pen_csv_columns_drop_label(out_columns);
    return PEN_OK;
}

// Another table may say which words there are: that of the training, where this one is evaluated.
// It is not read where nothing follows from it.
static pen_status csv_read_table(const pen_dataset_options *options, pen_arena *arena,
                                 pen_csv_table *table) {
    const char *other = options->words_path;
    pen_csv_columns columns;
    if (other == NULL || strcmp(other, options->path) == 0) {
        return csv_read_file(options, NULL, arena, table);
    }
    if (options->categories == PEN_DATASET_CATEGORIES_NONE &&
        options->missing != PEN_DATASET_MISSING_MEAN) {
        PEN_TRY(csv_read_file(options, NULL, arena, table));
        if (table->class_names == NULL) return PEN_OK;
        pen_csv_table_free(table);
    }
    PEN_TRY(csv_read_known(options, arena, &columns));
    return csv_read_file(options, &columns, arena, table);
}

// The table's column becomes the dataset's.
static pen_status csv_take_weights(pen_dataset *dataset, const pen_dataset_options *options,
                                   csv_state *state) {
    PEN_TRY(pen_arena_copy_text(dataset->arena, options->path, strlen(options->path),
                                &dataset->weight_source));
    dataset->weights = state->table.weights;
    state->table.weights = NULL;
    return PEN_OK;
}

// The table is read whole and the file let go: rows are needed in any order, and numbers take less
// than their text.
static pen_status csv_open(pen_dataset *dataset, const pen_dataset_options *options) {
    csv_state *state;
    pen_dataset_field *input;
    if (options->path == NULL) return pen_error(PEN_INVALID_INPUT, "format csv needs a file");
    PEN_TRY(PEN_NEW(dataset->arena, 1, &state));
    dataset->state = state;
    PEN_TRY(pen_dataset_add_single_input(dataset, options, &input));
    PEN_TRY(csv_read_table(options, dataset->arena, &state->table));
    input->rank = 1;
    input->shape[0] = (int64_t)state->table.column_count;
    PEN_TRY(pen_dataset_field_measure(input, options->path));
    PEN_TRY(
        pen_normalization_init(&state->normalization, options, input, 1, false, dataset->arena));
    dataset->info.example_count = state->table.row_count;
    dataset->info.held_bytes =
        state->table.row_count * (state->table.column_count * sizeof *state->table.values +
                                  (state->table.labels != NULL) * sizeof *state->table.labels +
                                  (state->table.weights != NULL) * sizeof *state->table.weights);
    PEN_TRY(csv_take_weights(dataset, options, state));
    dataset->info.class_names = state->table.class_names; // also where there are no labels
    dataset->info.class_count = state->table.class_count;
    return state->table.labels == NULL ? PEN_OK : csv_open_labels(dataset, options, state);
}

// Rows are normalized as they are given out, so that the table stays as it was read.
static pen_status csv_dataset_read(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                                   void *const *out_inputs, void *const *out_labels) {
    const csv_state *state = dataset->state;
    const pen_csv_table *table = &state->table;
    float *values = out_inputs[0];
    for (uint64_t i = 0; values != NULL && i < count; i++) {
        float *row = values + i * table->column_count;
        memcpy(row, table->values + indices[i] * table->column_count,
               table->column_count * sizeof *row);
        pen_normalization_apply(&state->normalization, row);
    }
    void *labels = out_labels[0];
    if (labels == NULL) return PEN_OK;
    for (uint64_t i = 0; i < count; i++) {
        const double label = table->labels[indices[i]];
        if (state->has_classes) {
            ((int64_t *)labels)[i] = (int64_t)label;
        } else {
            ((float *)labels)[i] = (float)label;
        }
    }
    return PEN_OK;
}

static void csv_close(pen_dataset *dataset) {
    csv_state *state = dataset->state;
    if (state != NULL) pen_csv_table_free(&state->table);
}

const pen_dataset_format pen_dataset_format_csv = {
    .name = "csv",
    .open = csv_open,
    .read = csv_dataset_read,
    .close = csv_close,
};
