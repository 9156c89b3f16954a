// The contract of this folder. What the command says of itself, made from the tables of its verbs:
// help, manual pages, and completion for shells.
//
// Options that our own processes give each other are left out everywhere.
#ifndef PEN_CLI_HELP_HELP_H
#define PEN_CLI_HELP_HELP_H

#include "base/status.h"
#include "base/text.h"
#include "cli/command.h"

#define PEN_HELP_COLUMNS 80u

// What an exit code means. The list ends with a NULL meaning.
typedef struct pen_help_code {
    pen_exit_code code;
    const char *meaning;
} pen_help_code;
extern const pen_help_code pen_help_codes[];

// Of one verb: usage, options, examples, exit codes.
void pen_help_write_verb(const pen_command *command, pen_text *text);
// Of the command: all verbs with a line each.
void pen_help_write_command(pen_text *text);

// A manual page in the macros of man(7): penstock-VERB(1), or penstock(1) for NULL.
void pen_help_write_manual(const pen_command *command, pen_text *text);

// A script that a shell reads to complete command lines. NOT_FOUND: no such shell (bash, zsh,
// fish); OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_help_write_completion(const char *shell, pen_arena *arena,
                                                   pen_text *text);

// ---- parts

// Adds `words` from column `column` on, in lines of up to PEN_HELP_COLUMNS that begin at `indent`,
// and ends the line. Where `column` is beyond `indent`, the first line is ended before.
void pen_help_wrap(pen_text *text, const char *words, size_t column, size_t indent);

// What an option is for, what its value may be, and its default: "stop after N steps: an integer of
// at least 1 (default: 4)". Of free text only what it is for. NULL: `text` has failed
const char *pen_help_words(const pen_cli_option *option, pen_text *text);

// A copy of the line that *at leads to, without its end; *at is moved on. NULL: there is none, or
// `text` has failed
const char *pen_help_next_line(const char **at, pen_text *text);

// The next option of a table that help speaks of, beginning at *index, which is moved on. NULL:
// none
const pen_cli_option *pen_help_next_option(const pen_cli_table *table, size_t *index);

#endif // PEN_CLI_HELP_HELP_H
