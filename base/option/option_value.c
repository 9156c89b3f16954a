// Values of fields: their sizes, saying what is expected, and parsing what stands for one.

#include "base/option/option.h"

#include <ctype.h>
#include <string.h>

#include "base/option/option_scalar.h"
#include "base/pattern.h"

// The size of a field in the struct that a table fills, by its kind: lists are allocated from it,
// and places of fields are found by it.
size_t pen_option_value_bytes(const pen_option_field *field) {
    const pen_option_scalar *scalar = pen_option_find_scalar(field->kind);
    if (scalar != NULL) return scalar->bytes;
    const bool is_list = field->kind == PEN_OPTION_LIST || field->kind == PEN_OPTION_MAP;
    return is_list ? sizeof(pen_option_list) : field->table->size;
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
    const pen_option_scalar *scalar = pen_option_find_scalar(field->kind);
    if (field->path_offset != 0) pen_text_add(text, "a path, or ");
    if (field->kind == PEN_OPTION_CHOICE) {
        option_describe_choices(field->choices, text);
    } else if (scalar != NULL) {
        pen_text_add(text, scalar->expected);
        if (scalar->is_quantity) pen_text_print(text, " (units: %s)", pen_unit_names(scalar->unit));
    } else if (field->kind == PEN_OPTION_LIST) {
        option_describe_list(field, text);
    } else if (field->kind == PEN_OPTION_MAP) {
        pen_text_add(text, "a mapping like {NAME: VALUE}, each value ");
        pen_option_describe(field->item, text);
    } else {
        const bool is_one = field->kind == PEN_OPTION_ONE_OF;
        pen_text_add(text, is_one ? "a mapping with one of " : "a mapping with ");
        if (!is_one && field->table->tag != NULL) pen_text_print(text, "%s, ", field->table->tag);
        option_describe_keys(field->table, text);
    }
    option_describe_range(field, text);
}

// The choice that is meant by a text that is none: by other programs' words; or what is near to it
// and begins as it does, so that "gpu" is not offered "cpu"; or what is within the other. NULL:
// none.
static const char *option_find_meant(const pen_option_field *field, const char *text) {
    const char *meant = pen_text_find_word(field->words, text);
    size_t count = 0;
    if (meant != NULL) return meant;
    while (field->choices[count] != NULL) {
        count += 1;
    }
    const size_t nearest = pen_text_nearest(text, field->choices, count);
    if (nearest == count) return NULL;
    const char *name = field->choices[nearest];
    const bool is_near = tolower((unsigned char)text[0]) == name[0] ||
                         pen_text_contains(name, text) || pen_text_contains(text, name);
    return is_near ? name : NULL;
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
    const char *meant = field->kind == PEN_OPTION_CHOICE ? option_find_meant(field, text) : NULL;
    if (meant != NULL) pen_text_print(&message, "; did you mean %s?", meant);
    return pen_text_error(&message, PEN_INVALID_INPUT);
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
    const pen_option_scalar *scalar = pen_option_find_scalar(field->kind);
    if (scalar != NULL && scalar->parse == NULL) {
        return option_parse_text(field, text, arena, out_value);
    }
    // text never stands for what has parts
    const bool is_read = scalar != NULL && scalar->parse(field, text, out_value);
    return is_read ? PEN_OK : option_refuse(field, text, arena, NULL);
}
