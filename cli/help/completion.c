// Completion of command lines, in the languages of three shells. Each script knows the verbs, their
// options, and what a value is: one of a list, a file, or nothing that a shell could know.

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "cli/help/help.h"

typedef enum completion_value {
    COMPLETION_NONE,   // a flag
    COMPLETION_CHOICE, // one of field.choices
    COMPLETION_FILE,   // or a folder
    COMPLETION_OTHER,  // a number, a name
} completion_value;

static completion_value completion_value_of(const pen_cli_option *option) {
    const pen_option_field *field = &option->field;
    const char *name = option->value_name;
    if (name == NULL) return COMPLETION_NONE;
    if (field->kind == PEN_OPTION_CHOICE) return COMPLETION_CHOICE;
    const bool is_file = field->kind == PEN_OPTION_PATH || strstr(name, "FILE") != NULL ||
                         strstr(name, "DIR") != NULL || strstr(name, "JOB") != NULL;
    return is_file ? COMPLETION_FILE : COMPLETION_OTHER;
}

static void completion_add_choices(const pen_cli_option *option, pen_text *text) {
    for (size_t i = 0; option->field.choices[i] != NULL; i++) {
        pen_text_print(text, "%s%s", i > 0 ? " " : "", option->field.choices[i]);
    }
}

// Adds the words that an operand may be: those of "ls|verify|export DIR" are in small letters. With
// a space before each.
static void completion_add_operands(const char *operands, pen_text *text) {
    while (*operands != '\0') {
        size_t length = 0;
        while (islower((unsigned char)operands[length])) {
            length += 1;
        }
        if (length > 0) {
            pen_text_add(text, " ");
            pen_text_append(text, operands, length);
        }
        operands += length > 0 ? length : 1;
    }
}

// Adds text within single quotes of a shell where `special` letters get a backslash before them,
// and a single quote becomes `quote`.
static void completion_add_quoted(const char *words, const char *special, const char *quote,
                                  pen_text *text) {
    for (; *words != '\0'; words++) {
        if (*words == '\'') {
            pen_text_add(text, quote);
            continue;
        }
        if (strchr(special, *words) != NULL) pen_text_add(text, "\\");
        pen_text_append(text, words, 1);
    }
}

// ---- bash

// "VERB --option": what may follow, where that is no file.
static void bash_write_values(const pen_command *command, pen_text *text) {
    const pen_cli_option *option;
    size_t index = 0;
    while ((option = pen_help_next_option(&command->table, &index)) != NULL) {
        const completion_value value = completion_value_of(option);
        if (value == COMPLETION_NONE || value == COMPLETION_FILE) continue;
        pen_text_print(text, "    '%s --%s'", command->name, option->field.key);
        if (option->letter != 0) pen_text_print(text, " | '%s -%c'", command->name, option->letter);
        pen_text_add(text, ")");
        if (value == COMPLETION_CHOICE) {
            pen_text_add(text, " mapfile -t COMPREPLY < <(compgen -W '");
            completion_add_choices(option, text);
            pen_text_add(text, "' -- \"$word\");");
        }
        pen_text_add(text, " return ;;\n");
    }
}

static void bash_write_verb(const pen_command *command, pen_text *text) {
    const pen_cli_option *option;
    size_t index = 0;
    pen_text_print(text, "    %s) words='", command->name);
    completion_add_operands(command->table.operands, text);
    pen_text_add(text, "'; options='");
    while ((option = pen_help_next_option(&command->table, &index)) != NULL) {
        pen_text_print(text, "%s--%s", index > 1 ? " " : "", option->field.key);
    }
    pen_text_add(text, "' ;;\n");
}

// A function that looks at the word before, then at the verb.
static void bash_write(pen_text *text) {
    pen_text_add(text,
                 "# bash completion for penstock\n_penstock() {\n"
                 "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                 "    local words options\n    COMPREPLY=()\n"
                 "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                 "        mapfile -t COMPREPLY < <(compgen -W '--help --version");
    for (const pen_command *const *command = pen_commands; *command != NULL; command++) {
        pen_text_print(text, " %s", (*command)->name);
    }
    pen_text_add(text, "' -- \"$word\")\n        return\n    fi\n"
                       "    case \"${COMP_WORDS[1]} $before\" in\n");
    for (const pen_command *const *command = pen_commands; *command != NULL; command++) {
        bash_write_values(*command, text);
    }
    pen_text_add(text, "    esac\n    case \"${COMP_WORDS[1]}\" in\n");
    for (const pen_command *const *command = pen_commands; *command != NULL; command++) {
        bash_write_verb(*command, text);
    }
    pen_text_add(text, "    esac\n    if [[ $word == -* ]]; then\n"
                       "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
                       "    else\n"
                       "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"; "
                       "compgen -f -- \"$word\")\n"
                       "    fi\n}\ncomplete -o filenames -F _penstock penstock\n");
}

// ---- zsh

#define ZSH_SPECIAL "[]:\\"
#define ZSH_QUOTE "'\\''"

// A description of _arguments: '--name[help]:what:how'.
static void zsh_write_option(const pen_cli_option *option, pen_text *text) {
    const pen_option_field *field = &option->field;
    pen_text_add(text, " \\\n        ");
    if (option->letter != 0) {
        pen_text_print(text, "'(-%c --%s)'{-%c,--%s}'[", option->letter, field->key, option->letter,
                       field->key);
    } else {
        pen_text_print(text, "'%s--%s[", option->is_repeated ? "*" : "", field->key);
    }
    completion_add_quoted(field->help, ZSH_SPECIAL, ZSH_QUOTE, text);
    pen_text_add(text, "]");
    switch (completion_value_of(option)) {
    case COMPLETION_NONE:
        break;
    case COMPLETION_CHOICE:
        pen_text_add(text, ":choice:(");
        completion_add_choices(option, text);
        pen_text_add(text, ")");
        break;
    case COMPLETION_FILE:
        pen_text_add(text, ":file:_files");
        break;
    case COMPLETION_OTHER:
        pen_text_add(text, ":value: ");
        break;
    }
    pen_text_add(text, "'");
}

static void zsh_write_verb(const pen_command *command, pen_text *text) {
    const pen_cli_option *option;
    size_t index = 0;
    pen_text_print(text, "    %s)\n        _arguments", command->name);
    while ((option = pen_help_next_option(&command->table, &index)) != NULL) {
        zsh_write_option(option, text);
    }
    pen_text words;
    pen_text_init(&words, text->arena);
    completion_add_operands(command->table.operands, &words);
    if (words.length > 0) {
        pen_text_print(text, " \\\n        '1:what:((%s))' '*:file:_files' ;;\n", words.bytes + 1);
    } else {
        pen_text_add(text, " \\\n        '*:file:_files' ;;\n");
    }
}

static void zsh_write(pen_text *text) {
    pen_text_add(text, "#compdef penstock\n_penstock() {\n    local -a verbs\n    verbs=(\n");
    for (const pen_command *const *command = pen_commands; *command != NULL; command++) {
        pen_text_print(text, "        '%s:", (*command)->name);
        completion_add_quoted((*command)->summary, ZSH_SPECIAL, ZSH_QUOTE, text);
        pen_text_add(text, "'\n");
    }
    pen_text_add(text, "    )\n    if (( CURRENT == 2 )); then\n        _describe verb verbs\n"
                       "        return\n    fi\n    local verb=$words[2]\n    shift words\n"
                       "    (( CURRENT -= 1 ))\n    case $verb in\n");
    for (const pen_command *const *command = pen_commands; *command != NULL; command++) {
        zsh_write_verb(*command, text);
    }
    // autoloaded the file is the function's body; else it is sourced
    pen_text_add(text,
                 "    esac\n}\nif [[ $funcstack[1] == _penstock ]]; then\n    _penstock \"$@\"\n"
                 "else\n    compdef _penstock penstock\nfi\n");
}

// ---- fish

// A line; -x: a value is needed and no file, -r -F: one is needed and a file.
static void fish_write_option(const pen_command *command, const pen_cli_option *option,
                              pen_text *text) {
    pen_text_print(text, "complete -c penstock -n '__fish_seen_subcommand_from %s' -l %s",
                   command->name, option->field.key);
    if (option->letter != 0) pen_text_print(text, " -s %c", option->letter);
    switch (completion_value_of(option)) {
    case COMPLETION_NONE:
        break;
    case COMPLETION_CHOICE:
        pen_text_add(text, " -x -a '");
        completion_add_choices(option, text);
        pen_text_add(text, "'");
        break;
    case COMPLETION_FILE:
        pen_text_add(text, " -r -F");
        break;
    case COMPLETION_OTHER:
        pen_text_add(text, " -x");
        break;
    }
    pen_text_add(text, " -d '");
    completion_add_quoted(option->field.help, "\\", "\\'", text);
    pen_text_add(text, "'\n");
}

// A line for each verb, for what its operand may be, and for each option.
static void fish_write(pen_text *text) {
    pen_text_add(text, "# fish completion for penstock\n");
    for (const pen_command *const *command = pen_commands; *command != NULL; command++) {
        const pen_cli_option *option;
        size_t index = 0;
        pen_text_print(text, "complete -c penstock -n __fish_use_subcommand -f -a %s -d '",
                       (*command)->name);
        completion_add_quoted((*command)->summary, "\\", "\\'", text);
        pen_text_add(text, "'\n");
        pen_text words;
        pen_text_init(&words, text->arena);
        completion_add_operands((*command)->table.operands, &words);
        if (words.length > 0) {
            pen_text_print(text,
                           "complete -c penstock -n '__fish_seen_subcommand_from %s' -a '%s'\n",
                           (*command)->name, words.bytes + 1);
        }
        while ((option = pen_help_next_option(&(*command)->table, &index)) != NULL) {
            fish_write_option(*command, option, text);
        }
    }
}

static const struct {
    const char *shell;
    void (*write)(pen_text *text);
} completions[] = {{"bash", bash_write}, {"zsh", zsh_write}, {"fish", fish_write}};

static const char *completion_shell(size_t index) {
    return completions[index].shell;
}

pen_status pen_help_write_completion(const char *shell, pen_arena *arena, pen_text *text) {
    size_t index;
    PEN_TRY(pen_text_find_name("shell", shell, completion_shell,
                               sizeof completions / sizeof *completions, arena, &index));
    completions[index].write(text);
    return PEN_OK;
}
