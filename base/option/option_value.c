// Scalars: parsing, ranges, and saying what is expected.

#include "base/option/option.h"

#include <math.h>
#include <string.h>

#include "base/pattern.h"

// The size of a field in the struct that a table fills, by its kind: lists are allocated from it,
// and places of fields are found by it.
size_t pen_option_value_bytes(const pen_option_field *field) {
    switch (field->kind) {
    case PEN_OPTION_TEXT:
    case PEN_OPTION_PATH:
    case PEN_OPTION_PATTERN:
        return sizeof(const char *);
    case PEN_OPTION_INTEGER:
        return sizeof(int64_t);
    case PEN_OPTION_BYTES:
        return sizeof(uint64_t);
    case PEN_OPTION_NUMBER:
    case PEN_OPTION_SECONDS:
    case PEN_OPTION_RATE:
    case PEN_OPTION_BANDWIDTH:
        return sizeof(double);
    case PEN_OPTION_BOOL:
        return sizeof(bool);
    case PEN_OPTION_INTERVAL:
        return sizeof(pen_interval);
    case PEN_OPTION_CHOICE:
        return sizeof(unsigned);
    case PEN_OPTION_LIST:
    case PEN_OPTION_MAP:
        return sizeof(pen_option_list);
    case PEN_OPTION_MAPPING:
    case PEN_OPTION_ONE_OF:
        return field->table->size;
    }
    return 0;
}

static void option_describe_choices(const char *const *choices, pen_text *text) {
    pen_text_add(text, choices[1] == NULL ? "" : "one of ");
    for (size_t i = 0; choices[i] != NULL; i++) {
        pen_text_print(text, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
}

// The range as it goes on after a kind: " from 1 to 8", " of at least 0", " above 0 and below 1".
static void option_describe_range(const pen_option_field *field, pen_text *text) {
    const pen_option_bound *minimum = &field->minimum;
    const pen_option_bound *maximum = &field->maximum;
    if (minimum->is_set && maximum->is_set && !minimum->is_excluded && !maximum->is_excluded) {
        if (minimum->value < maximum->value) {
            pen_text_print(text, " from %.15g to %.15g", minimum->value, maximum->value);
        } else {
            pen_text_print(text, ", %.15g", minimum->value);
        }
        return;
    }
    if (minimum->is_set) {
        pen_text_print(text, " %s %.15g", minimum->is_excluded ? "above" : "of at least",
                       minimum->value);
    }
    if (minimum->is_set && maximum->is_set) pen_text_add(text, " and");
    if (maximum->is_set) {
        pen_text_print(text, " %s %.15g", maximum->is_excluded ? "below" : "at most",
                       maximum->value);
    }
}

static void option_describe_keys(const pen_option_table *table, pen_text *text) {
    for (uint32_t i = 0; i < table->field_count; i++) {
        pen_text_print(text, "%s%s", i > 0 ? ", " : "", table->fields[i].key);
    }
}

static void option_describe_quantity(const char *what, const char *example, pen_unit unit,
                                     pen_text *text) {
    pen_text_print(text, "%s like %s (units: %s)", what, example, pen_unit_names(unit));
}

static void option_describe_list(const pen_option_field *field, pen_text *text) {
    if (field->is_list_optional) {
        pen_option_describe(field->item, text);
        pen_text_add(text, ", or ");
    }
    pen_text_add(text, "a list of ");
    if (field->count_minimum > 0 && field->count_minimum == field->count_maximum) {
        pen_text_print(text, "%u items, each ", field->count_minimum);
    } else if (field->count_minimum > 0) {
        pen_text_print(text, "at least %u, each ", field->count_minimum);
    }
    pen_option_describe(field->item, text);
}

// What may stand there, in words: for messages ("expected ...") and for the list of keys.
void pen_option_describe(const pen_option_field *field, pen_text *text) {
    switch (field->kind) {
    case PEN_OPTION_TEXT:
        pen_text_add(text, "text");
        break;
    case PEN_OPTION_PATH:
        pen_text_add(text, "a path");
        break;
    case PEN_OPTION_PATTERN:
        pen_text_add(text, "a regular expression (POSIX extended) like \"^conv1\"");
        break;
    case PEN_OPTION_INTEGER:
        pen_text_add(text, "an integer");
        break;
    case PEN_OPTION_NUMBER:
        pen_text_add(text, "a number");
        break;
    case PEN_OPTION_BOOL:
        pen_text_add(text, "true or false");
        break;
    case PEN_OPTION_BYTES:
        option_describe_quantity("a size", "12GiB", PEN_UNIT_BYTES, text);
        break;
    case PEN_OPTION_SECONDS:
        option_describe_quantity("a duration", "5s", PEN_UNIT_SECONDS, text);
        break;
    case PEN_OPTION_RATE:
        option_describe_quantity("a rate", "80G", PEN_UNIT_RATE, text);
        break;
    case PEN_OPTION_BANDWIDTH:
        option_describe_quantity("a bandwidth", "10Gbit/s", PEN_UNIT_BANDWIDTH, text);
        break;
    case PEN_OPTION_INTERVAL:
        pen_text_add(text, "a length like \"100 steps\" or \"3 epochs\"");
        break;
    case PEN_OPTION_CHOICE:
        option_describe_choices(field->choices, text);
        break;
    case PEN_OPTION_LIST:
        option_describe_list(field, text);
        break;
    case PEN_OPTION_MAP:
        pen_text_add(text, "a mapping of names, each to ");
        pen_option_describe(field->item, text);
        break;
    case PEN_OPTION_MAPPING:
        pen_text_add(text, "a mapping with ");
        if (field->table->tag != NULL) pen_text_print(text, "%s, ", field->table->tag);
        option_describe_keys(field->table, text);
        break;
    case PEN_OPTION_ONE_OF:
        pen_text_add(text, "a mapping with one of ");
        option_describe_keys(field->table, text);
        break;
    }
    option_describe_range(field, text);
}

// `why` adds to what is expected; NULL for nothing.
static pen_status option_refuse(const pen_option_field *field, const char *text, pen_arena *arena,
                                const char *why) {
    pen_text message;
    pen_text_init(&message, arena);
    pen_text_add(&message, "found ");
    pen_text_add_quoted(&message, text, strlen(text));
    pen_text_add(&message, ", expected ");
    pen_option_describe(field, &message);
    if (why != NULL) pen_text_print(&message, ": %s", why);
    return pen_text_error(&message, PEN_INVALID_INPUT);
}

static bool option_in_range(const pen_option_field *field, double value) {
    const pen_option_bound *minimum = &field->minimum;
    const pen_option_bound *maximum = &field->maximum;
    if (minimum->is_set && value < minimum->value) return false;
    if (minimum->is_set && minimum->is_excluded && value <= minimum->value) return false;
    if (maximum->is_set && value > maximum->value) return false;
    return !(maximum->is_set && maximum->is_excluded && value >= maximum->value);
}

static bool option_parse_choice(const pen_option_field *field, const char *text, void *out_value) {
    for (unsigned i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(field->choices[i], text) != 0) continue;
        memcpy(out_value, &i, sizeof i);
        return true;
    }
    return false;
}

static bool option_parse_bool(const char *text, bool *out_value) {
    const bool truth = strcmp(text, "true") == 0;
    if (!truth && strcmp(text, "false") != 0) return false;
    *out_value = truth;
    return true;
}

static bool option_parse_bytes(const pen_option_field *field, const char *text,
                               uint64_t *out_bytes) {
    double number;
    if (!pen_quantity_parse(text, PEN_UNIT_BYTES, &number)) return false;
    // 2^63 is past any machine, and keeps sums of a few sizes within 64 bits
    if (number >= 0x1p63 || !option_in_range(field, number)) return false;
    *out_bytes = (uint64_t)number;
    return true;
}

static bool option_parse_quantity(const pen_option_field *field, pen_unit unit, const char *text,
                                  double *out_value) {
    double number;
    if (!pen_quantity_parse(text, unit, &number) || !option_in_range(field, number)) return false;
    *out_value = number;
    return true;
}

static bool option_parse_number(const pen_option_field *field, const char *text,
                                double *out_value) {
    double number;
    if (!pen_number_parse(text, &number) || !option_in_range(field, number)) return false;
    *out_value = number;
    return true;
}

static bool option_parse_integer(const pen_option_field *field, const char *text,
                                 int64_t *out_value) {
    int64_t number;
    if (!pen_integer_parse(text, &number) || !option_in_range(field, (double)number)) return false;
    *out_value = number;
    return true;
}

static bool option_parse_interval(const pen_option_field *field, const char *text,
                                  pen_interval *out_value) {
    pen_interval interval;
    if (!pen_interval_parse(text, &interval)) return false;
    if (!option_in_range(field, (double)interval.count)) return false;
    *out_value = interval;
    return true;
}

// A text, path or pattern. A pattern is compiled here once, so that a mistake is told with its line
// and not when it is first used.
static pen_status option_parse_text(const pen_option_field *field, const char *text,
                                    pen_arena *arena, void *out_value) {
    if (text[0] == '\0') return option_refuse(field, text, arena, NULL);
    if (field->kind == PEN_OPTION_PATTERN) {
        pen_pattern *pattern = NULL;
        pen_status status = pen_pattern_create(text, &pattern);
        pen_pattern_destroy(pattern);
        if (pen_status_get_code(status) == PEN_INVALID_INPUT) {
            const pen_status refused =
                option_refuse(field, text, arena, pen_status_message(status));
            pen_status_ignore(status, "its message is in the other");
            return refused;
        }
        if (status != PEN_OK) return status;
    }
    const char *copy;
    PEN_TRY(pen_arena_copy_text(arena, text, strlen(text), &copy));
    memcpy(out_value, &copy, sizeof(copy));
    return PEN_OK;
}

// Scalars of YAML and words of the command line go through here both, so ranges, units and messages
// are the same.
pen_status pen_option_parse(const pen_option_field *field, const char *text, pen_arena *arena,
                            void *out_value) {
    bool understood = false;
    switch (field->kind) {
    case PEN_OPTION_TEXT:
    case PEN_OPTION_PATH:
    case PEN_OPTION_PATTERN:
        return option_parse_text(field, text, arena, out_value);
    case PEN_OPTION_INTEGER:
        understood = option_parse_integer(field, text, out_value);
        break;
    case PEN_OPTION_NUMBER:
        understood = option_parse_number(field, text, out_value);
        break;
    case PEN_OPTION_BOOL:
        understood = option_parse_bool(text, out_value);
        break;
    case PEN_OPTION_BYTES:
        understood = option_parse_bytes(field, text, out_value);
        break;
    case PEN_OPTION_SECONDS:
        understood = option_parse_quantity(field, PEN_UNIT_SECONDS, text, out_value);
        break;
    case PEN_OPTION_RATE:
        understood = option_parse_quantity(field, PEN_UNIT_RATE, text, out_value);
        break;
    case PEN_OPTION_BANDWIDTH:
        understood = option_parse_quantity(field, PEN_UNIT_BANDWIDTH, text, out_value);
        break;
    case PEN_OPTION_INTERVAL:
        understood = option_parse_interval(field, text, out_value);
        break;
    case PEN_OPTION_CHOICE:
        understood = option_parse_choice(field, text, out_value);
        break;
    case PEN_OPTION_LIST:
    case PEN_OPTION_MAP:
    case PEN_OPTION_MAPPING:
    case PEN_OPTION_ONE_OF:
        break; // text never stands for these
    }
    return understood ? PEN_OK : option_refuse(field, text, arena, NULL);
}
