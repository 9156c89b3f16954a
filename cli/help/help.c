#include "cli/help/help.h"

#include <string.h>

#define HELP_OPTION_COLUMNS 25u
#define HELP_VERB_COLUMNS 15u

const pen_help_code pen_help_codes[] = {
    {PEN_EXIT_OK, "done, or stopped as asked, with what was done saved"},
    {PEN_EXIT_INTERNAL, "a mistake of this program, or standard output failed"},
    {PEN_EXIT_USAGE, "the command line is wrong"},
    {PEN_EXIT_SPEC, "a file is wrong: a job, plan, cluster, or data"},
    {PEN_EXIT_MODEL, "the model cannot be read, or has what is not supported"},
    {PEN_EXIT_DOES_NOT_FIT, "it does not fit on the devices, or memory ran out"},
    {PEN_EXIT_PEER_LOST, "a worker was lost, or another coordinator took over; state is saved"},
    {PEN_EXIT_VERIFICATION, "results differ, or a checkpoint is damaged"},
    {PEN_EXIT_NOT_FINITE, "numbers are not finite, or a device computes wrongly"},
    {PEN_EXIT_NO_STORAGE, "the disk or place of what is written fails: try again later"},
    {PEN_EXIT_OK, NULL},
};

// Columns of a terminal: the bytes that begin a letter of UTF-8.
static size_t help_columns(const char *text, size_t length) {
    size_t columns = 0;
    for (size_t i = 0; i < length; i++) {
        columns += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return columns;
}

static void help_break(pen_text *text, size_t indent) {
    pen_text_print(text, "\n%*s", (int)indent, "");
}

// Word by word; what is longer than a line stands alone.
void pen_help_wrap(pen_text *text, const char *words, size_t column, size_t indent) {
    bool is_first = true;
    if (column > indent) {
        help_break(text, indent);
    } else {
        pen_text_print(text, "%*s", (int)(indent - column), "");
    }
    column = indent;
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        const size_t width = help_columns(words, length);
        if (!is_first && column + 1 + width > PEN_HELP_COLUMNS) {
            help_break(text, indent);
            column = indent;
        } else if (!is_first) {
            pen_text_add(text, " ");
            column += 1;
        }
        pen_text_append(text, words, length);
        column += width;
        is_first = false;
        words += length + strspn(words + length, " ");
    }
    pen_text_add(text, "\n");
}

const char *pen_help_words(const pen_cli_option *option, pen_text *text) {
    const pen_option_field *field = &option->field;
    const bool is_free = field->kind == PEN_OPTION_TEXT || field->kind == PEN_OPTION_PATH;
    pen_text words;
    const char *whole = NULL;
    pen_text_init(&words, text->arena);
    pen_text_add(&words, field->help);
    if (option->value_name != NULL && !is_free) {
        pen_text_add(&words, ": ");
        pen_option_describe(field, &words);
    }
    if (field->default_text != NULL) pen_text_print(&words, " (default: %s)", field->default_text);
    const pen_status status = pen_text_finish(&words, &whole);
    text->failed |= status != PEN_OK;
    pen_status_ignore(status, "the text says that it failed");
    return text->failed ? NULL : whole;
}

const char *pen_help_next_line(const char **at, pen_text *text) {
    const size_t length = strcspn(*at, "\n");
    const char *line;
    if (**at == '\0') return NULL;
    const pen_status status = pen_arena_copy_text(text->arena, *at, length, &line);
    text->failed |= status != PEN_OK;
    pen_status_ignore(status, "the text says that it failed");
    *at += length + ((*at)[length] == '\n');
    return text->failed ? NULL : line;
}

const pen_cli_option *pen_help_next_option(const pen_cli_table *table, size_t *index) {
    const pen_cli_option *option;
    do {
        option = pen_cli_option_at(table, (*index)++);
    } while (option != NULL && option->is_internal);
    return option;
}

// The option at the left, and what it means in a column of its own.
static void help_write_option(const pen_cli_option *option, pen_text *text) {
    const pen_option_field *field = &option->field;
    const bool has_value = option->value_name != NULL;
    const size_t before = text->length;
    if (option->letter != 0) {
        pen_text_print(text, "  -%c, ", option->letter);
    } else {
        pen_text_add(text, "      ");
    }
    pen_text_print(text, "--%s%s%s", field->key, has_value ? " " : "",
                   has_value ? option->value_name : "");
    const char *words = pen_help_words(option, text);
    if (words == NULL) return;
    const size_t column = help_columns(text->bytes + before, text->length - before);
    const size_t gap = column == HELP_OPTION_COLUMNS; // a space at least
    pen_help_wrap(text, words, column + gap, HELP_OPTION_COLUMNS);
}

// The column at which the words of "  ls      the checkpoints" begin; 0 for a line that is no item
// of a list.
static size_t help_find_indent(const char *line) {
    if (line[0] != ' ') return 0;
    const char *name = line + strspn(line, " ");
    const char *gap = strstr(name, "  ");
    return gap == NULL ? (size_t)(name - line) : (size_t)(gap + strspn(gap, " ") - line);
}

static void help_write_details(const char *details, pen_text *text) {
    const char *line;
    while ((line = pen_help_next_line(&details, text)) != NULL) {
        const size_t indent = help_find_indent(line);
        pen_text_append(text, line, indent);
        pen_help_wrap(text, line + indent, indent, indent);
    }
}

static void help_write_codes(pen_text *text) {
    pen_text_add(text, "\nExit codes:\n");
    for (const pen_help_code *code = pen_help_codes; code->meaning != NULL; code++) {
        pen_text_print(text, "  %d  %s\n", (int)code->code, code->meaning);
    }
}

// Each line of the examples, a step to the right.
static void help_write_examples(const char *examples, pen_text *text) {
    const char *line;
    pen_text_add(text, "\nExamples:\n");
    while ((line = pen_help_next_line(&examples, text)) != NULL)
        pen_text_print(text, "  %s\n", line);
}

void pen_help_write_verb(const pen_command *command, pen_text *text) {
    const pen_cli_table *table = &command->table;
    const pen_cli_option *option;
    size_t index = 0;
    pen_text_print(text, "usage: penstock %s [options]%s%s\n\n", command->name,
                   table->operands[0] != '\0' ? " " : "", table->operands);
    pen_help_wrap(text, command->summary, 0, 0);
    pen_text_add(text, "\n");
    while ((option = pen_help_next_option(table, &index)) != NULL) {
        help_write_option(option, text);
    }
    if (table->details != NULL) {
        pen_text_add(text, "\n");
        help_write_details(table->details, text);
    }
    if (table->examples != NULL) help_write_examples(table->examples, text);
    help_write_codes(text);
}

void pen_help_write_command(pen_text *text) {
    pen_text_add(text, "usage: penstock VERB [options] ...\n\n"
                       "Trains neural networks over several machines.\n\n");
    for (const pen_command *const *command = pen_commands; *command != NULL; command++) {
        pen_text_print(text, "  %s", (*command)->name);
        pen_help_wrap(text, (*command)->summary, 2 + strlen((*command)->name), HELP_VERB_COLUMNS);
    }
    pen_text_add(
        text, "\n`penstock VERB --help` says more, `penstock --version` prints the version, and\n"
              "`penstock doctor` looks at this machine.\n");
    help_write_codes(text);
}
