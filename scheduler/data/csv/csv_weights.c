#include "scheduler/data/csv/csv_weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/data/csv/csv_cursor.h"

#define WEIGHTS_CAPACITY_FIRST 64

typedef struct weights_reading {
    pen_csv_cursor cursor;
    locale_t locale; // "C"
    pen_arena *arena;
    pen_csv_weights *weights;
    uint64_t capacity;
} weights_reading;

static pen_status weights_take_name(const weights_reading *reading, const pen_csv_field *field,
                                    const char **out_name) {
    char *name;
    PEN_TRY(PEN_NEW(reading->arena, field->length + 1, &name));
    pen_csv_unquote(field, name);
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    *out_name = name;
    if (name[0] != '\0') return PEN_OK;
    return pen_csv_error_at(&reading->cursor, field,
                            pen_error(PEN_INVALID_INPUT, "the name is empty, expected a picture"));
}

static pen_status weights_take_number(const weights_reading *reading, const pen_csv_field *field,
                                      bool may_be_head, bool *out_is_head, float *out_weight) {
    char excerpt[PEN_CSV_EXCERPT_BYTES];
    double number;
    *out_is_head = false;
    if (!pen_csv_parse_number(field, reading->locale, &number)) {
        *out_is_head = may_be_head;
        if (may_be_head) return PEN_OK;
        pen_csv_excerpt(field, excerpt);
        return pen_csv_error_at(
            &reading->cursor, field,
            pen_error(PEN_INVALID_INPUT, "'%s' is no number, expected a weight", excerpt));
    }
    *out_weight = (float)number;
    if (isfinite(*out_weight) && number >= 0) return PEN_OK;
    return pen_csv_error_at(
        &reading->cursor, field,
        pen_error(PEN_INVALID_INPUT, "the weight is %g, expected a number of at least 0", number));
}

static pen_status weights_add(weights_reading *reading, const pen_csv_weight *weight) {
    pen_csv_weights *weights = reading->weights;
    if (weights->count == reading->capacity) {
        const uint64_t capacity =
            reading->capacity == 0 ? WEIGHTS_CAPACITY_FIRST : reading->capacity * 2;
        pen_csv_weight *items;
        PEN_TRY(PEN_NEW(reading->arena, capacity, &items));
        if (weights->count > 0) memcpy(items, weights->items, weights->count * sizeof *items);
        weights->items = items;
        reading->capacity = capacity;
    }
    weights->items[weights->count++] = *weight;
    return PEN_OK;
}

// Exactly two fields: a third would be a table that means something else.
static pen_status weights_take_line(weights_reading *reading, bool may_be_head) {
    pen_csv_field name, number = {0};
    pen_csv_weight weight = {0};
    bool is_head;
    PEN_TRY(pen_csv_take_field(&reading->cursor, &name));
    if (!name.last) PEN_TRY(pen_csv_take_field(&reading->cursor, &number));
    if (name.last || !number.last) {
        return pen_csv_error_at(&reading->cursor, &name,
                                pen_error(PEN_INVALID_INPUT,
                                          "the line has %s, expected two fields: cats/1.jpg,0.5",
                                          name.last ? "one field" : "more than two fields"));
    }
    PEN_TRY(weights_take_number(reading, &number, may_be_head, &is_head, &weight.weight));
    if (is_head) return weights_take_name(reading, &name, &reading->weights->head);
    weight.line = name.line;
    PEN_TRY(weights_take_name(reading, &name, &weight.name));
    return weights_add(reading, &weight);
}

static int weights_compare(const void *left, const void *right) {
    const pen_csv_weight *a = left, *b = right;
    const int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

// Lines in the order of names; of two alike the second is named.
static pen_status weights_sort(const pen_csv_text *text, pen_csv_weights *weights) {
    if (weights->count > 1) {
        qsort(weights->items, weights->count, sizeof *weights->items, weights_compare);
    }
    for (uint64_t i = 1; i < weights->count; i++) {
        const pen_csv_weight *one = &weights->items[i - 1], *two = &weights->items[i];
        if (strcmp(one->name, two->name) != 0) continue;
        const pen_csv_field field = {.line = two->line, .column = 1};
        const pen_csv_cursor cursor = {.path = text->path};
        return pen_csv_error_at(&cursor, &field,
                                pen_error(PEN_INVALID_INPUT,
                                          "'%s' has a weight in line %" PRIu64 " already",
                                          two->name, one->line));
    }
    return PEN_OK;
}

pen_status pen_csv_weights_read(const pen_csv_text *text, pen_arena *arena,
                                pen_csv_weights *out_weights) {
    pen_long_read progress;
    pen_status status = PEN_OK;
    *out_weights = (pen_csv_weights){0};
    weights_reading reading = {.arena = arena, .weights = out_weights};
    reading.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (reading.locale == (locale_t)0) return pen_error_out_of_memory();
    pen_long_read_begin(&progress, "reading", text->path, text->size);
    reading.cursor = pen_csv_cursor_start(text->bytes, text->size, text->path, 0, &progress);
    for (bool is_first = true; status == PEN_OK && pen_csv_has_line(&reading.cursor);) {
        status = weights_take_line(&reading, is_first);
        is_first = false;
    }
    pen_long_read_end(&progress);
    freelocale(reading.locale);
    return status == PEN_OK ? weights_sort(text, out_weights) : status;
}

pen_csv_weight *pen_csv_weights_find(const pen_csv_weights *weights, const char *name) {
    uint64_t low = 0, high = weights->count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const int order = strcmp(weights->items[middle].name, name);
        if (order == 0) return &weights->items[middle];
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}
