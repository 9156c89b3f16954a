// What a table says to people: a line for each key.

#include "base/option/option.h"

#define HELP_KEY_COLUMNS 22

#define HELP_NAMES_LIMIT 128u // tables with a name

typedef struct help_writer {
    pen_text *text;
    const pen_option_table *named[HELP_NAMES_LIMIT]; // tables with a name that stand above
    const char *keys[HELP_NAMES_LIMIT];              // where each stands
    uint32_t named_count;
} help_writer;

static void help_write_table(const pen_option_table *table, uint32_t depth, help_writer *writer);

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

// The key above that has the table, too; NULL: none. `before` is the field above, or NULL.
static const char *help_find_same(help_writer *writer, const pen_option_field *field,
                                  const pen_option_field *before) {
    const pen_option_table *table = help_table_of(field);
    if (table == NULL) return NULL;
    if (before != NULL && help_table_of(before) == table) return before->key;
    if (table->name == NULL) return NULL;
    for (uint32_t i = 0; i < writer->named_count; i++) {
        if (writer->named[i] == table) return writer->keys[i];
    }
    PEN_ASSERT(writer->named_count < HELP_NAMES_LIMIT);
    writer->keys[writer->named_count] = field->key;
    writer->named[writer->named_count++] = table;
    return NULL;
}

// The keys of one table are not listed twice in a row, and those of one with a name once.
static void help_write_field(const pen_option_field *field, const pen_option_field *before,
                             uint32_t depth, help_writer *writer) {
    pen_text *text = writer->text;
    const pen_option_table *table = help_table_of(field);
    const char *same = help_find_same(writer, field, before);
    help_write_key(field->key, depth, text);
    pen_text_add(text, field->help != NULL ? field->help : "");
    if (table == NULL) {
        pen_text_add(text, ": ");
        pen_option_describe(field, text);
    } else if (same != NULL) {
        pen_text_print(text, ": keys as of %s", same);
    } else if (field->kind == PEN_OPTION_LIST) {
        pen_text_add(text, ": a list of mappings with the keys");
    } else if (field->kind == PEN_OPTION_ONE_OF) {
        pen_text_add(text, ": one of the keys");
    }
    if (field->is_required) pen_text_add(text, " (required)");
    if (field->default_text != NULL) pen_text_print(text, " (default: %s)", field->default_text);
    pen_text_add(text, "\n");
    if (table != NULL && same == NULL) help_write_table(table, depth + 1, writer);
}

static void help_write_table(const pen_option_table *table, uint32_t depth, help_writer *writer) {
    pen_text *text = writer->text;
    for (uint32_t i = 0; i < table->field_count; i++) {
        help_write_field(&table->fields[i], i > 0 ? &table->fields[i - 1] : NULL, depth, writer);
    }
    if (table->tag == NULL) return;
    help_write_key(table->tag, depth, text);
    pen_text_print(text, "%s (required); one of\n", table->tag_help);
    for (uint32_t i = 0; i < table->variant_count; i++) {
        help_write_key(table->variants[i].key, depth + 1, text);
        pen_text_print(text, "%s, with the keys\n", table->variants[i].help);
        help_write_table(table->variants[i].table, depth + 2, writer);
    }
}

void pen_option_write_help(const pen_option_table *table, pen_text *text) {
    help_writer writer = {.text = text};
    help_write_table(table, 0, &writer);
}
