// What a table says to people: a line for each key.

#include "base/option.h"

#include <string.h>

#define HELP_KEY_COLUMNS 22

static void help_write_table(const pen_option_table *table, uint32_t depth, pen_text *text);

static void help_write_key(const char *key, uint32_t depth, pen_text *text) {
    const int indent = (int)(2 * depth + 2);
    const int width = HELP_KEY_COLUMNS - indent > 1 ? HELP_KEY_COLUMNS - indent : 1;
    pen_text_print(text, "%*s%-*s ", indent, "", width, key);
}

// The table within a field, or NULL.
static const pen_option_table *help_table_of(const pen_option_field *field) {
    if (field->table != NULL) return field->table;
    return field->item != NULL ? field->item->table : NULL;
}

// `before` is the field above, or NULL: the keys of one table are not listed twice in a row.
static void help_write_field(const pen_option_field *field, const pen_option_field *before,
                             uint32_t depth, pen_text *text) {
    const pen_option_table *table = help_table_of(field);
    const bool is_same = table != NULL && before != NULL && help_table_of(before) == table;
    help_write_key(field->key, depth, text);
    pen_text_add(text, field->help != NULL ? field->help : "");
    if (table == NULL) {
        pen_text_add(text, ": ");
        pen_option_describe(field, text);
    } else if (is_same) {
        pen_text_print(text, ": keys as of %s", before->key);
    } else if (field->kind == PEN_OPTION_LIST) {
        pen_text_add(text, ": a list of mappings with the keys");
    } else if (field->kind == PEN_OPTION_ONE_OF) {
        pen_text_add(text, ": one of the keys");
    }
    if (field->is_required) pen_text_add(text, " (required)");
    if (field->default_text != NULL) pen_text_print(text, " (default: %s)", field->default_text);
    pen_text_add(text, "\n");
    if (table != NULL && !is_same) help_write_table(table, depth + 1, text);
}

static void help_write_table(const pen_option_table *table, uint32_t depth, pen_text *text) {
    for (uint32_t i = 0; i < table->field_count; i++) {
        help_write_field(&table->fields[i], i > 0 ? &table->fields[i - 1] : NULL, depth, text);
    }
    if (table->tag == NULL) return;
    help_write_key(table->tag, depth, text);
    pen_text_print(text, "%s (required); one of\n", table->tag_help);
    for (uint32_t i = 0; i < table->variant_count; i++) {
        help_write_key(table->variants[i].key, depth + 1, text);
        pen_text_print(text, "%s, with the keys\n", table->variants[i].help);
        help_write_table(table->variants[i].table, depth + 2, text);
    }
}

void pen_option_write_help(const pen_option_table *table, pen_text *text) {
    help_write_table(table, 0, text);
}
