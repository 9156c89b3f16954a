#include "scheduler/data/csv/csv_reader.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/system/long_read.h"
#include "base/text.h"

#define CSV_WHOLE_LIMIT 0x1p53
#define CSV_GROWTH_LIMIT 500                 // times the bytes of a file,
#define CSV_GROWTH_FREE ((uint64_t)64 << 20) // and above so many: a table of a stranger's making
#define CSV_WORDS_SHOWN 12                   // in a message
#define CSV_WORDS_BYTES 200

// Rows of a file, and what they are read by.
typedef struct csv_rows {
    pen_csv_cursor cursor;
    const pen_dataset_options *options;
    pen_arena *arena;
    locale_t locale;              // the decimal point is a point, whatever the program's language
    pen_csv_columns own;          // of the file
    const pen_csv_columns *known; // that say which words there are: its own, or another file's
} csv_rows;

// ---- fields

static pen_status csv_not_a_number(const csv_rows *rows, const pen_csv_field *field,
                                   bool is_label) {
    char text[PEN_CSV_EXCERPT_BYTES];
    const char *hint = "";
    pen_csv_excerpt(field, text);
    if (!is_label && rows->options->categories == PEN_DATASET_CATEGORIES_NONE) {
        hint = field->length == 0 ? "; or say what missing ones are"
                                  : "; columns of words need categories: one_hot, or index";
    }
    return pen_csv_error_at(
        &rows->cursor, field,
        field->length == 0
            ? pen_error(PEN_INVALID_INPUT, "a field is empty, expected a number%s", hint)
            : pen_error(PEN_INVALID_INPUT, "'%s' is not a number%s", text, hint));
}

static pen_status csv_unknown_word(const csv_rows *rows, const pen_csv_column *column,
                                   const pen_csv_field *field, bool is_label) {
    const char *path = rows->known == &rows->own ? rows->cursor.path : rows->options->words_path;
    char excerpt[PEN_CSV_EXCERPT_BYTES];
    pen_text text;
    const char *list;
    pen_csv_excerpt(field, excerpt);
    pen_text_init(&text, rows->arena);
    pen_text_add_names(&text, excerpt, column->words, column->word_count, CSV_WORDS_SHOWN);
    PEN_TRY(pen_text_finish(&text, &list));
    return pen_csv_error_at(
        &rows->cursor, field,
        pen_error(PEN_INVALID_INPUT, "'%s' is not in this column of '%s', which has %.*s%s%s",
                  excerpt, path, CSV_WORDS_BYTES, list, strlen(list) > CSV_WORDS_BYTES ? "…" : "",
                  is_label ? "" : "; or say unknown: own"));
}

static pen_status csv_take_number(const csv_rows *rows, const pen_csv_field *field, bool is_label,
                                  double *out_number) {
    if (!pen_csv_parse_number(field, rows->locale, out_number)) {
        return csv_not_a_number(rows, field, is_label);
    }
    if (isfinite((float)*out_number)) return PEN_OK;
    return pen_csv_error_at(
        &rows->cursor, field,
        pen_error(PEN_INVALID_INPUT, "%g is beyond the range of float32", *out_number));
}

static pen_status csv_take_label(const csv_rows *rows, const pen_csv_field *field,
                                 double *out_label) {
    const pen_csv_column *column = &rows->known->label;
    if (!column->has_words) return csv_take_number(rows, field, true, out_label);
    const uint32_t place = pen_csv_column_find(column, field);
    *out_label = place;
    if (place < column->word_count) return PEN_OK;
    if (field->length > 0) return csv_unknown_word(rows, column, field, true);
    return pen_csv_error_at(&rows->cursor, field,
                            pen_error(PEN_INVALID_INPUT, "a label is empty, expected a class"));
}

static pen_status csv_take_weight(const csv_rows *rows, const pen_csv_field *field,
                                  float *out_weight) {
    double weight;
    PEN_TRY(csv_take_number(rows, field, true, &weight));
    *out_weight = (float)weight;
    if (weight >= 0) return PEN_OK;
    return pen_csv_error_at(
        &rows->cursor, field,
        pen_error(PEN_INVALID_INPUT, "the weight is %g, expected at least 0", weight));
}

// Numbers that a column becomes.
static uint64_t csv_width(const pen_dataset_options *options, const pen_csv_column *column) {
    if (column == NULL || !column->has_words) return 1;
    if (options->categories == PEN_DATASET_CATEGORIES_INDEX) return 1;
    return (uint64_t)column->word_count + options->unknown_is_own;
}

// A column of words becomes several numbers, or one.
static pen_status csv_take_feature(const csv_rows *rows, const pen_csv_column *column,
                                   const pen_csv_field *field, float *out_values) {
    const pen_dataset_options *options = rows->options;
    double number;
    if (column != NULL && column->has_words) {
        const uint32_t place = pen_csv_column_find(column, field);
        if (place == column->word_count && !options->unknown_is_own) {
            return csv_unknown_word(rows, column, field, false);
        }
        const bool is_index = options->categories == PEN_DATASET_CATEGORIES_INDEX;
        out_values[is_index ? 0 : place] = is_index ? (float)place : 1; // memory is zeroed
        return PEN_OK;
    }
    if (field->length == 0 && options->missing != PEN_DATASET_MISSING_ERROR) {
        const bool is_mean = options->missing == PEN_DATASET_MISSING_MEAN;
        PEN_ASSERT(!is_mean || column != NULL);
        *out_values = (float)(is_mean ? column->mean : options->missing_value);
        return PEN_OK;
    }
    PEN_TRY(csv_take_number(rows, field, false, &number));
    *out_values = (float)number;
    return PEN_OK;
}

// ---- rows

static const pen_csv_column *csv_feature(const csv_rows *rows, uint64_t index) {
    return rows->known->features == NULL ? NULL : &rows->known->features[index];
}

// Numbers are parsed in a locale of their own, since the process's may have a decimal comma.
static pen_status csv_read_row(csv_rows *rows, float *out_values, double *out_label,
                               float *out_weight) {
    for (uint64_t i = 0; i < rows->own.count; i++) {
        pen_csv_field field;
        PEN_TRY(pen_csv_take_field(&rows->cursor, &field));
        if (i == rows->own.label_index) {
            PEN_TRY(csv_take_label(rows, &field, out_label));
            continue;
        }
        if (i == rows->own.weight_index && out_weight != NULL) {
            PEN_TRY(csv_take_weight(rows, &field, out_weight));
            continue;
        }
        PEN_TRY(csv_take_feature(rows, csv_feature(rows, i), &field, out_values));
        out_values += csv_width(rows->options, csv_feature(rows, i));
    }
    return PEN_OK;
}

// Memory is taken once, and not more than a file of this size may ask for.
static pen_status csv_read_rows(csv_rows *rows, pen_csv_table *table) {
    size_t value_count;
    const uint64_t bytes = (uint64_t)(rows->cursor.end - rows->cursor.start);
    if (!pen_size_mul(table->row_count, table->column_count, &value_count)) {
        return pen_error_out_of_memory();
    }
    if (value_count > CSV_GROWTH_FREE / sizeof *table->values &&
        value_count / CSV_GROWTH_LIMIT > bytes / sizeof *table->values) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': one_hot makes %" PRIu64 " columns of %" PRIu64
                         ", more than %d times the size of the file; expected categories: index",
                         rows->cursor.path, table->column_count, rows->own.count, CSV_GROWTH_LIMIT);
    }
    table->values = pen_memory_allocate(value_count, sizeof *table->values);
    if (table->values == NULL) return pen_error_out_of_memory();
    if (rows->own.label_index != UINT64_MAX) {
        table->labels = pen_memory_allocate(table->row_count, sizeof *table->labels);
        if (table->labels == NULL) return pen_error_out_of_memory();
    }
    if (rows->own.weight_index != UINT64_MAX) {
        table->weights = pen_memory_allocate(table->row_count, sizeof *table->weights);
        if (table->weights == NULL) return pen_error_out_of_memory();
    }
    table->labels_are_whole = true;
    for (uint64_t i = 0; i < table->row_count && pen_csv_has_line(&rows->cursor); i++) {
        double label = 0;
        float *weight = table->weights == NULL ? NULL : &table->weights[i];
        PEN_TRY(csv_read_row(rows, table->values + i * table->column_count, &label, weight));
        if (table->labels != NULL) table->labels[i] = label;
        if (label != trunc(label) || fabs(label) > CSV_WHOLE_LIMIT) {
            table->labels_are_whole = false;
        }
    }
    return PEN_OK;
}

// ---- columns

// "colour=red" for a word's own number.
static pen_status csv_name_columns(const csv_rows *rows, pen_csv_table *table) {
    const char **names, **next;
    if (rows->own.names == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(rows->arena, table->column_count, &names));
    next = names;
    for (uint64_t i = 0; i < rows->own.count; i++) {
        const pen_csv_column *column = csv_feature(rows, i);
        if (!pen_csv_columns_has(&rows->own, i)) continue;
        const uint64_t width = csv_width(rows->options, column);
        const bool is_one = column == NULL || !column->has_words ||
                            rows->options->categories == PEN_DATASET_CATEGORIES_INDEX;
        if (is_one) *next++ = rows->own.names[i];
        for (uint64_t w = 0; !is_one && w < width; w++) {
            const char *word = w < column->word_count ? column->words[w] : "?";
            PEN_TRY(pen_arena_format(rows->arena, next++, "%s=%s", rows->own.names[i], word));
        }
    }
    table->names = names;
    return PEN_OK;
}

// The file that says which words there are must have the same columns.
static pen_status csv_check_known(const csv_rows *rows) {
    const pen_csv_columns *own = &rows->own, *known = rows->known;
    const char *other = rows->options->words_path;
    if (own->count != known->count || own->label_index != known->label_index ||
        own->weight_index != known->weight_index) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has %" PRIu64 " columns, but '%s' has %" PRIu64 "%s",
                         rows->cursor.path, own->count, other, known->count,
                         rows->options->label_column == NULL
                             ? " besides its labels; label_column says where data have labels"
                             : ", or another column of labels or weights; without label_column "
                               "data have no labels");
    }
    for (uint64_t i = 0; own->names != NULL && known->names != NULL && i < own->count; i++) {
        if (strcmp(own->names[i], known->names[i]) == 0) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': column %" PRIu64 " is called '%s', but in '%s' '%s'",
                         rows->cursor.path, i, own->names[i], other, known->names[i]);
    }
    return PEN_OK;
}

// What is known is settled, and memory taken for all rows.
static pen_status csv_read(csv_rows *rows, pen_csv_table *table) {
    const uint64_t others =
        (uint64_t)(rows->own.label_index != UINT64_MAX) + (rows->own.weight_index != UINT64_MAX);
    if (rows->own.count == others) {
        return pen_error(PEN_INVALID_INPUT, "'%s' has no column but the labels%s",
                         rows->cursor.path, others > 1 ? " and the weights" : "");
    }
    table->row_count = rows->own.row_count;
    for (uint64_t i = 0; i < rows->own.count; i++) {
        if (!pen_csv_columns_has(&rows->own, i)) continue;
        table->column_count += csv_width(rows->options, csv_feature(rows, i));
    }
    if (rows->known->label.has_words) {
        table->class_names = rows->known->label.words;
        table->class_count = rows->known->label.word_count;
    }
    rows->cursor.before = 2 * (uint64_t)(rows->cursor.end - rows->cursor.start);
    PEN_TRY(csv_read_rows(rows, table));
    return csv_name_columns(rows, table);
}

// Two files are looked at by the same options, but what is not known of the second is not asked.
static pen_status csv_survey(const pen_csv_text *text, pen_long_read *progress, csv_rows *rows) {
    pen_dataset_options options = *rows->options;
    rows->cursor =
        pen_csv_cursor_start(text->bytes, text->size, text->path, options.delimiter, progress);
    if (rows->known != NULL) {
        options.categories = PEN_DATASET_CATEGORIES_NONE;
        options.missing = PEN_DATASET_MISSING_ERROR;
        options.label_element = PEN_DATASET_FLOAT32;
    }
    PEN_TRY(pen_csv_columns_read(&rows->cursor, &options, rows->locale, rows->arena, &rows->own));
    if (rows->known != NULL) return csv_check_known(rows);
    rows->known = &rows->own;
    return PEN_OK;
}

static pen_status csv_start(const pen_csv_text *text, pen_long_read *progress, csv_rows *rows) {
    const char delimiter = rows->options->delimiter;
    if (delimiter != 0 && strchr("\"\r\n0123456789+-.eE", delimiter) != NULL) {
        return pen_error(PEN_INVALID_INPUT, "the delimiter cannot be '%c'", delimiter);
    }
    rows->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (rows->locale == (locale_t)0) return pen_error_out_of_memory();
    pen_long_read_begin(progress, "reading", text->path, 3 * (uint64_t)text->size);
    return csv_survey(text, progress, rows);
}

pen_status pen_csv_read_columns(const pen_csv_text *text, const pen_dataset_options *options,
                                pen_arena *arena, pen_csv_columns *out_columns) {
    csv_rows rows = {.options = options, .arena = arena};
    pen_long_read progress = {0};
    const pen_status status = csv_start(text, &progress, &rows);
    pen_long_read_end(&progress);
    if (rows.locale != (locale_t)0) freelocale(rows.locale);
    *out_columns = rows.own;
    return status;
}

pen_status pen_csv_read(const pen_csv_text *text, const pen_dataset_options *options,
                        const pen_csv_columns *known, pen_arena *arena, pen_csv_table *out_table) {
    csv_rows rows = {.options = options, .arena = arena, .known = known};
    pen_long_read progress = {0};
    *out_table = (pen_csv_table){0};
    pen_status status = csv_start(text, &progress, &rows);
    if (status == PEN_OK) status = csv_read(&rows, out_table);
    pen_long_read_end(&progress);
    if (rows.locale != (locale_t)0) freelocale(rows.locale);
    if (status != PEN_OK) pen_csv_table_free(out_table);
    return status;
}

void pen_csv_table_free(pen_csv_table *table) {
    pen_memory_free(table->values);
    pen_memory_free(table->labels);
    pen_memory_free(table->weights);
    *table = (pen_csv_table){0};
}
