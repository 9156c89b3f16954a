#include "scheduler/data/csv/csv_columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define COLUMNS_NAMES_SHOWN 12  // in a message
#define COLUMNS_NAMES_BYTES 200 // a wrong delimiter makes one name of all

// What is found in one column, first of all rows, then of its words.
typedef struct columns_finding {
    pen_csv_field first_number; // 0 bytes: none
    pen_csv_field first_word;
    uint64_t number_count;
    double sum;
} columns_finding;

typedef struct columns_survey {
    pen_csv_cursor *cursor;
    const pen_dataset_options *options;
    locale_t locale;
    pen_arena *arena;
    columns_finding *label;
    columns_finding *findings; // [columns->count] of features; NULL: not looked at
    pen_csv_columns *columns;
    bool is_unsure; // the first line has words and numbers, and was taken for names
} columns_survey;

// ---- the first line

// Counts the fields of a line, and those that are numbers.
static pen_status columns_scan_first(pen_csv_cursor cursor, locale_t locale, uint64_t *out_count,
                                     uint64_t *out_numbers) {
    pen_csv_field field = {0};
    *out_count = 0;
    *out_numbers = 0;
    do {
        double number;
        PEN_TRY(pen_csv_take_field(&cursor, &field));
        *out_numbers += pen_csv_parse_number(&field, locale, &number);
        *out_count += 1;
    } while (!field.last);
    return PEN_OK;
}

static pen_status columns_read_names(const columns_survey *survey) {
    const uint64_t count = survey->columns->count;
    const char **names;
    PEN_TRY(PEN_NEW(survey->arena, count, &names));
    for (uint64_t i = 0; i < count; i++) {
        pen_csv_field field;
        char *name;
        PEN_TRY(pen_csv_take_field(survey->cursor, &field));
        PEN_TRY(PEN_NEW(survey->arena, field.length + 1, &name));
        pen_csv_unquote(&field, name);
        names[i] = name;
    }
    survey->columns->names = names;
    return PEN_OK;
}

static pen_status columns_no_label(const columns_survey *survey, const char *wanted) {
    const pen_csv_columns *columns = survey->columns;
    pen_text text;
    const char *list;
    pen_text_init(&text, survey->arena);
    pen_text_add_names(&text, wanted, columns->names, columns->count, COLUMNS_NAMES_SHOWN);
    PEN_TRY(pen_text_finish(&text, &list));
    const bool is_label = wanted == survey->options->label_column;
    const bool is_other =
        is_label && survey->options->words_path != NULL; // than what is trained on
    return pen_error(PEN_NOT_FOUND, "'%s': no column is called '%s'; there are %.*s%s%s",
                     survey->cursor->path, wanted, COLUMNS_NAMES_BYTES, list,
                     strlen(list) > COLUMNS_NAMES_BYTES ? "…" : "",
                     is_other ? "; without label_column data have no labels" : "");
}

// What is wanted is a name, else an index from the start or, negative, from the end.
static pen_status columns_find_one(const columns_survey *survey, const char *wanted,
                                   const char *what, uint64_t *out_index) {
    const char *path = survey->cursor->path;
    const pen_csv_columns *columns = survey->columns;
    const uint64_t count = columns->count;
    *out_index = UINT64_MAX;
    if (wanted == NULL) return PEN_OK;
    for (uint64_t i = 0; columns->names != NULL && i < count; i++) {
        if (strcmp(columns->names[i], wanted) != 0) continue;
        *out_index = i;
        return PEN_OK;
    }
    const bool negative = wanted[0] == '-';
    const char *digits = wanted + (negative ? 1 : 0);
    const size_t length = strlen(digits);
    if (length == 0 || length > 9 || strspn(digits, "0123456789") != length) {
        if (columns->names != NULL) return columns_no_label(survey, wanted);
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has no header, so the %s column must be an index, not '%s'", path,
                         what, wanted);
    }
    const uint64_t index = strtoull(digits, NULL, 10);
    if (negative ? index == 0 || index > count : index >= count) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': the %s column is %s, expected 0 to %" PRIu64 ", or -1 to -%" PRIu64,
                         path, what, wanted, count - 1, count);
    }
    *out_index = negative ? count - index : index;
    return PEN_OK;
}

// Columns that are no features.
static pen_status columns_find_own(const columns_survey *survey) {
    const pen_dataset_options *options = survey->options;
    pen_csv_columns *columns = survey->columns;
    PEN_TRY(columns_find_one(survey, options->label_column, "label", &columns->label_index));
    PEN_TRY(columns_find_one(survey, options->weight_column, "weight", &columns->weight_index));
    if (columns->weight_index == UINT64_MAX || columns->weight_index != columns->label_index) {
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT,
                     "'%s': column %" PRIu64 " is both label_column and weight_column, expected "
                     "two columns",
                     survey->cursor->path, columns->weight_index);
}

bool pen_csv_columns_has(const pen_csv_columns *columns, uint64_t index) {
    return index != columns->label_index && index != columns->weight_index;
}

static pen_status columns_read_head(columns_survey *survey) {
    pen_csv_columns *columns = survey->columns;
    const pen_dataset_header header = survey->options->header;
    uint64_t numbers;
    if (!pen_csv_has_line(survey->cursor)) {
        return pen_error(PEN_INVALID_INPUT, "'%s' is empty", survey->cursor->path);
    }
    PEN_TRY(columns_scan_first(*survey->cursor, survey->locale, &columns->count, &numbers));
    const bool is_found = header == PEN_DATASET_HEADER_AUTO && numbers < columns->count;
    survey->is_unsure = is_found && numbers > 0;
    if (header == PEN_DATASET_HEADER_YES || is_found) {
        PEN_TRY(columns_read_names(survey));
    }
    return columns_find_own(survey);
}

// ---- all rows

// Labels may be words unless they are to be numbers. NULL: nothing is noted of the column.
static columns_finding *columns_find(const columns_survey *survey, uint64_t index) {
    if (index == survey->columns->label_index) {
        return survey->options->label_element == PEN_DATASET_FLOAT32 ? NULL : survey->label;
    }
    if (index == survey->columns->weight_index) return NULL;
    return survey->findings == NULL ? NULL : &survey->findings[index];
}

static pen_csv_column *columns_at(const columns_survey *survey, uint64_t index) {
    pen_csv_columns *columns = survey->columns;
    return index == columns->label_index ? &columns->label : &columns->features[index];
}

static void columns_note(const columns_survey *survey, uint64_t index, const pen_csv_field *field) {
    columns_finding *finding = columns_find(survey, index);
    double number;
    if (finding == NULL || field->length == 0) return;
    if (!pen_csv_parse_number(field, survey->locale, &number)) {
        if (finding->first_word.length == 0) finding->first_word = *field;
        return;
    }
    if (finding->number_count == 0) finding->first_number = *field;
    finding->number_count += 1;
    finding->sum += number;
}

// How many rows of how many fields there are, so that memory is taken once, and what they hold.
static pen_status columns_scan(const columns_survey *survey, pen_csv_cursor cursor) {
    pen_csv_columns *columns = survey->columns;
    while (pen_csv_has_line(&cursor)) {
        const pen_csv_field start = {.line = cursor.line, .column = 1};
        pen_csv_field field = {0};
        uint64_t count = 0;
        do {
            PEN_TRY(pen_csv_take_field(&cursor, &field));
            if (count < columns->count) columns_note(survey, count, &field);
            count++;
        } while (!field.last);
        if (count != columns->count) {
            return pen_csv_error_at(&cursor, &start,
                                    pen_error(PEN_INVALID_INPUT,
                                              "the line has %" PRIu64 " fields, expected %" PRIu64
                                              " as in the first",
                                              count, columns->count));
        }
        columns->row_count++;
    }
    if (columns->row_count > 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "'%s' has a header, but no rows", cursor.path);
}

// A column has words or numbers: a slip of the pen would make words of all numbers.
static pen_status columns_decide(const columns_survey *survey, uint64_t index) {
    const columns_finding *finding = columns_find(survey, index);
    const bool is_label = index == survey->columns->label_index;
    if (finding == NULL) return PEN_OK;
    pen_csv_column *column = columns_at(survey, index);
    if (finding->number_count > 0) column->mean = finding->sum / (double)finding->number_count;
    if (finding->first_word.length == 0) return PEN_OK;
    // features without categories are refused where they are read
    column->has_words = is_label || survey->options->categories != PEN_DATASET_CATEGORIES_NONE;
    if (!column->has_words) return PEN_OK;
    if (survey->is_unsure) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': the first line has words and numbers, as others have; expected "
                         "header: true where it has names, or header: false",
                         survey->cursor->path);
    }
    if (finding->number_count == 0) return PEN_OK;
    const pen_csv_field *word = &finding->first_word, *number = &finding->first_number;
    const bool is_word = word->line > number->line;
    char text[PEN_CSV_EXCERPT_BYTES];
    pen_csv_excerpt(is_word ? word : number, text);
    return pen_csv_error_at(survey->cursor, is_word ? word : number,
                            pen_error(PEN_INVALID_INPUT,
                                      "'%s' is %s, but others of the column are %s (line %" PRIu64
                                      "); expected words alone, or numbers",
                                      text, is_word ? "not a number" : "a number",
                                      is_word ? "numbers" : "words",
                                      is_word ? number->line : word->line));
}

// ---- words

static int columns_compare(const void *left, const void *right) {
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

uint32_t pen_csv_column_find(const pen_csv_column *column, const pen_csv_field *field) {
    char word[PEN_CSV_WORD_BYTES];
    if (field->length >= sizeof word) return column->word_count;
    pen_csv_unquote(field, word);
    const uint32_t place = pen_name_map_find(&column->places, word);
    return place == PEN_NAME_MAP_NONE ? column->word_count : place;
}

// An empty label is no word; an empty feature is one where missing ones have a value.
static bool columns_is_word(const columns_survey *survey, uint64_t index,
                            const pen_csv_field *field) {
    if (field->length > 0) return true;
    return index != survey->columns->label_index &&
           survey->options->missing != PEN_DATASET_MISSING_ERROR;
}

// Each word once, as many as a category may have.
static pen_status columns_add_word(const columns_survey *survey, pen_csv_column *column,
                                   const pen_csv_field *field) {
    char word[PEN_CSV_WORD_BYTES];
    const char *copy;
    if (field->length >= sizeof word) {
        return pen_csv_error_at(
            survey->cursor, field,
            pen_error(PEN_INVALID_INPUT, "a word has more than %d bytes", PEN_CSV_WORD_BYTES - 1));
    }
    pen_csv_unquote(field, word);
    if (pen_name_map_find(&column->places, word) != PEN_NAME_MAP_NONE) return PEN_OK;
    if (column->places.count == PEN_CSV_WORDS_LIMIT) {
        return pen_csv_error_at(survey->cursor, field,
                                pen_error(PEN_INVALID_INPUT,
                                          "the column has more than %d words: it is no category",
                                          PEN_CSV_WORDS_LIMIT));
    }
    PEN_TRY(pen_arena_copy_text(survey->arena, word, strlen(word), &copy));
    return pen_name_map_add(&column->places, copy, column->places.count);
}

static pen_status columns_collect(const columns_survey *survey, pen_csv_cursor cursor) {
    pen_csv_columns *columns = survey->columns;
    cursor.before = (uint64_t)(cursor.end - cursor.start);
    while (pen_csv_has_line(&cursor)) {
        for (uint64_t i = 0; i < columns->count; i++) {
            pen_csv_field field;
            PEN_TRY(pen_csv_take_field(&cursor, &field));
            if (columns_find(survey, i) == NULL || !columns_at(survey, i)->has_words) continue;
            if (!columns_is_word(survey, i, &field)) continue;
            PEN_TRY(columns_add_word(survey, columns_at(survey, i), &field));
        }
    }
    return PEN_OK;
}

// Numbers the words of a column by their order.
static pen_status columns_number(const columns_survey *survey, pen_csv_column *column) {
    uint32_t count = 0;
    column->word_count = column->places.count;
    PEN_TRY(PEN_NEW(survey->arena, column->word_count, &column->words));
    for (uint32_t i = 0; i < column->places.capacity; i++) {
        if (column->places.names[i] != NULL) column->words[count++] = column->places.names[i];
    }
    qsort(column->words, count, sizeof *column->words, columns_compare);
    pen_name_map_init(&column->places, survey->arena);
    PEN_TRY(pen_name_map_reserve(&column->places, count));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_name_map_add(&column->places, column->words[i], i));
    }
    return PEN_OK;
}

// Memory for what is noted of features, where anything is: a line of commas alone has very many.
static pen_status columns_prepare(columns_survey *survey) {
    const pen_dataset_options *options = survey->options;
    pen_csv_columns *columns = survey->columns;
    pen_name_map_init(&columns->label.places, survey->arena);
    if (options->categories == PEN_DATASET_CATEGORIES_NONE &&
        options->missing != PEN_DATASET_MISSING_MEAN) {
        return PEN_OK;
    }
    if (columns->count > PEN_CSV_LOOKED_AT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has %" PRIu64
                         " columns, expected at most %d where they have categories or a mean",
                         survey->cursor->path, columns->count, PEN_CSV_LOOKED_AT_LIMIT);
    }
    PEN_TRY(PEN_NEW(survey->arena, columns->count, &columns->features));
    PEN_TRY(PEN_NEW(survey->arena, columns->count, &survey->findings));
    for (uint64_t i = 0; i < columns->count; i++)
        pen_name_map_init(&columns->features[i].places, survey->arena);
    return PEN_OK;
}

// The text is gone through once, and where columns have words, a second time for these.
pen_status pen_csv_columns_read(pen_csv_cursor *cursor, const pen_dataset_options *options,
                                locale_t locale, pen_arena *arena, pen_csv_columns *out_columns) {
    columns_finding label = {0};
    columns_survey survey = {.cursor = cursor,
                             .options = options,
                             .locale = locale,
                             .arena = arena,
                             .label = &label,
                             .columns = out_columns};
    bool has_words = false;
    *out_columns = (pen_csv_columns){0};
    PEN_TRY(columns_read_head(&survey));
    PEN_TRY(columns_prepare(&survey));
    PEN_TRY(columns_scan(&survey, *cursor));
    for (uint64_t i = 0; i < out_columns->count; i++) {
        PEN_TRY(columns_decide(&survey, i));
        if (columns_find(&survey, i) == NULL) continue;
        has_words = has_words || columns_at(&survey, i)->has_words;
    }
    if (!has_words) return PEN_OK;
    PEN_TRY(columns_collect(&survey, *cursor));
    for (uint64_t i = 0; i < out_columns->count; i++) {
        if (columns_find(&survey, i) == NULL || !columns_at(&survey, i)->has_words) continue;
        PEN_TRY(columns_number(&survey, columns_at(&survey, i)));
    }
    return PEN_OK;
}

void pen_csv_columns_drop_label(pen_csv_columns *columns) {
    const uint64_t label = columns->label_index;
    if (label == UINT64_MAX) return;
    columns->count -= 1;
    columns->label_index = UINT64_MAX;
    if (columns->weight_index != UINT64_MAX && columns->weight_index > label) {
        columns->weight_index -= 1;
    }
    const uint64_t after = columns->count - label;
    if (columns->features != NULL) {
        memmove(columns->features + label, columns->features + label + 1,
                after * sizeof *columns->features);
    }
    const char **names;
    memcpy(&names, &columns->names, sizeof names); // made with the columns
    if (names != NULL) memmove(names + label, names + label + 1, after * sizeof *names);
}
