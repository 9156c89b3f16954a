// Manual pages. Their language is that of man(7): a line that begins with a dot is a request.

#include <string.h>

#include "cli/help/help.h"

// Text as roff takes it: a backslash and a hyphen mean themselves, and no line begins a request.
static void manual_add(pen_text *text, const char *words) {
    bool begins_line = true;
    for (; *words != '\0'; words++) {
        if (begins_line && (*words == '.' || *words == '\'')) pen_text_add(text, "\\&");
        begins_line = *words == '\n';
        if (*words == '\\') {
            pen_text_add(text, "\\e");
        } else if (*words == '-') {
            pen_text_add(text, "\\-");
        } else {
            pen_text_append(text, words, 1);
        }
    }
}

static void manual_add_line(pen_text *text, const char *words) {
    manual_add(text, words);
    pen_text_add(text, "\n");
}

static void manual_begin(const char *name, const char *verb, const char *summary, pen_text *text) {
    pen_text_print(text, ".TH %s%s 1 \"\" \"penstock %s\" \"User Commands\"\n.SH NAME\n", name,
                   verb, PEN_VERSION);
    pen_text_add(text, verb[0] != '\0' ? "penstock\\-" : "penstock");
    pen_text_print(text, "%s \\- ", verb[0] != '\0' ? verb + 1 : "");
    manual_add_line(text, summary);
}

// A paragraph with a hanging tag.
static void manual_write_option(const pen_cli_option *option, pen_text *text) {
    pen_text_add(text, ".TP\n");
    if (option->letter != 0) pen_text_print(text, "\\fB\\-%c\\fR, ", option->letter);
    pen_text_add(text, "\\fB\\-\\-");
    manual_add(text, option->field.key);
    pen_text_add(text, "\\fR");
    if (option->value_name != NULL) {
        pen_text_add(text, " \\fI");
        manual_add(text, option->value_name);
        pen_text_add(text, "\\fR");
    }
    const char *words = pen_help_words(option, text);
    pen_text_add(text, "\n");
    if (words != NULL) manual_add_line(text, words);
}

// Lines stay lines.
static void manual_write_examples(const char *lines, pen_text *text) {
    pen_text_add(text, ".nf\n");
    manual_add(text, lines);
    if (lines[0] != '\0' && lines[strlen(lines) - 1] != '\n') pen_text_add(text, "\n");
    pen_text_add(text, ".fi\n");
}

// A paragraph a line; of an item of a list, "  ls      the checkpoints", the name stands out.
static void manual_write_details(const char *details, pen_text *text) {
    const char *line;
    while ((line = pen_help_next_line(&details, text)) != NULL) {
        const char *words = line + strspn(line, " ");
        const size_t name_length = strcspn(words, " ");
        if (words == line) {
            pen_text_add(text, ".PP\n");
        } else {
            pen_text_print(text, ".TP\n.B %.*s\n", (int)name_length, words);
            words += name_length;
            words += strspn(words, " ");
        }
        manual_add_line(text, words);
    }
}

static void manual_write_codes(pen_text *text) {
    pen_text_add(text, ".SH \"EXIT STATUS\"\n");
    for (const pen_help_code *code = pen_help_codes; code->meaning != NULL; code++) {
        pen_text_print(text, ".TP\n%d\n", (int)code->code);
        manual_add_line(text, code->meaning);
    }
}

static void manual_write_command(pen_text *text) {
    manual_begin("PENSTOCK", "", "train neural networks over several machines", text);
    pen_text_add(text, ".SH SYNOPSIS\n.B penstock\n\\fIVERB\\fR [\\fIoptions\\fR] ...\n"
                       ".SH DESCRIPTION\n"
                       "A model and a job in YAML become a plan, which runs as a pipeline, in "
                       "replicas, or both.\nEach verb has a page of its own, such as\n"
                       ".BR penstock\\-train (1).\n.SH VERBS\n");
    for (const pen_command *const *command = pen_commands; *command != NULL; command++) {
        pen_text_print(text, ".TP\n.B %s\n", (*command)->name);
        manual_add_line(text, (*command)->summary);
    }
    pen_text_add(text, ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nwhen set and not empty: no colours in "
                       "messages on a terminal.\n");
    manual_write_codes(text);
}

// The sections in the order of man-pages(7).
void pen_help_write_manual(const pen_command *command, pen_text *text) {
    const pen_cli_option *option;
    size_t index = 0;
    if (command == NULL) {
        manual_write_command(text);
        return;
    }
    const pen_cli_table *table = &command->table;
    pen_text name;
    pen_text_init(&name, text->arena);
    pen_text_print(&name, "-%s", command->name);
    manual_begin("PENSTOCK", name.bytes != NULL ? name.bytes : "", command->summary, text);
    pen_text_print(text, ".SH SYNOPSIS\n.B penstock %s\n[\\fIoptions\\fR] ", command->name);
    manual_add_line(text, table->operands);
    if (table->details != NULL) {
        pen_text_add(text, ".SH DESCRIPTION\n");
        manual_write_details(table->details, text);
    }
    pen_text_add(text, ".SH OPTIONS\n");
    while ((option = pen_help_next_option(table, &index)) != NULL) {
        manual_write_option(option, text);
    }
    if (table->examples != NULL) {
        pen_text_add(text, ".SH EXAMPLES\n");
        manual_write_examples(table->examples, text);
    }
    manual_write_codes(text);
    pen_text_add(text, ".SH \"SEE ALSO\"\n.BR penstock (1)\n");
}
