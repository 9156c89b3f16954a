#include "cli/help/help.h"

typedef struct help_options {
    pen_cli_common common;
    bool manual;
    const char *completion;
} help_options;

// One text, whatever is asked for.
static pen_status help_run(pen_command_context *context, const void *options_given) {
    const help_options *options = options_given;
    const pen_command *command = NULL; // the command as a whole
    pen_text text;
    context->input_exit_code = PEN_EXIT_USAGE;
    if (options->common.operand_count > 0) {
        PEN_TRY(pen_command_find(options->common.operands[0], context->arena, &command));
    }
    pen_text_init(&text, context->arena);
    if (options->completion != NULL) {
        PEN_TRY(pen_help_write_completion(options->completion, context->arena, &text));
    } else if (options->manual) {
        pen_help_write_manual(command, &text);
    } else if (command != NULL) {
        pen_help_write_verb(command, &text);
    } else {
        pen_help_write_command(&text);
    }
    return pen_command_print(&text);
}

static const pen_cli_option help_cli_options[] = {
    PEN_CLI_FLAG(0, "man", help_options, manual, "as a manual page, for `man -l -`"),
    PEN_CLI_VALUE(0, "completion", "SHELL", TEXT, help_options, completion,
                  "instead, a script that completes command lines: bash, zsh or fish"),
};

const pen_command pen_command_help = {
    .name = "help",
    .summary = "what a verb does, a manual page, or completion for a shell",
    .table = {PEN_CLI_OPERANDS("[VERB]", 0, 1), PEN_CLI_OPTIONS(help_cli_options),
              .examples = "penstock help train\n"
                          "penstock help --man train | man -l -\n"
                          "source <(penstock help --completion bash)\n"},
    .options_bytes = sizeof(help_options),
    .run = help_run,
};
