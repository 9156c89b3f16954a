#include "cli/command_main.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/system/sandbox.h"
#include "cli/command.h"
#include "cli/help/help.h"
#include "scheduler/transport/ring/ring_socket.h"

static pen_status command_print_help(const pen_command *command, pen_arena *arena) {
    pen_text text;
    pen_text_init(&text, arena);
    if (command != NULL) pen_help_write_verb(command, &text);
    if (command == NULL) pen_help_write_command(&text);
    return pen_command_print(&text);
}

// --sandbox: before a file is looked at. Processes of one host meet in a folder of their user's.
static pen_status command_enter_sandbox(pen_command_context *context, const pen_command *command,
                                        const pen_option_list *given) {
    const char *const *items = given->items;
    const char **folders;
    pen_ring_meeting meeting;
    if (given->count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(context->arena, given->count + 1, &folders));
    pen_sandbox sandbox = {
        .folders = folders, .connects = command->connects, .starts_itself = command->starts_itself};
    for (uint32_t i = 0; i < given->count; i++) {
        if (strcmp(items[i], "-") != 0) folders[sandbox.folder_count++] = items[i];
    }
    if (command->connects || command->starts_itself) {
        const pen_status status = pen_ring_meeting_find(&meeting);
        if (status == PEN_OK) folders[sandbox.folder_count++] = meeting.folder;
        pen_status_ignore(status, "processes then meet over sockets");
    }
    return pen_sandbox_enter(&sandbox);
}

// Parses the options of a verb and runs it. context->exit_code says what a success means.
static pen_status command_run_verb(pen_command_context *context, int argument_count,
                                   char *const *arguments) {
    const pen_command *command;
    PEN_TRY(pen_command_find(arguments[0], context->arena, &command));
    void *options = pen_arena_allocate(context->arena, 1, command->options_bytes, 16);
    if (options == NULL) return pen_error_out_of_memory();
    PEN_TRY(
        pen_cli_parse(&command->table, argument_count - 1, arguments + 1, context->arena, options));
    const pen_cli_common *common = options;
    if (common->help) return command_print_help(command, context->arena);
    if (common->quiet) pen_log_set_level(PEN_LOG_WARNING);
    context->input_exit_code = PEN_EXIT_SPEC;
    context->settings = common->settings;
    PEN_TRY(command_enter_sandbox(context, command, &common->sandbox));
    const pen_status status = command->run(context, options);
    if (status == PEN_OK || !common->json || pen_command_has_json()) return status;
    pen_json_writer json; // a reader of JSON is told of the error, too
    pen_command_begin_json(&json, command->name);
    return pen_command_fail_json(context, &json, status);
}

static pen_status command_run(pen_command_context *context, int argument_count,
                              char *const *arguments) {
    if (argument_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "a verb is missing; penstock --help lists them");
    }
    if (strcmp(arguments[0], "--help") == 0 || strcmp(arguments[0], "-h") == 0) {
        return command_print_help(NULL, context->arena);
    }
    if (strcmp(arguments[0], "--version") == 0) {
        pen_text text;
        pen_text_init(&text, context->arena);
        pen_text_print(&text, "penstock %s\n", PEN_VERSION);
        return pen_command_print(&text);
    }
    return command_run_verb(context, argument_count, arguments);
}

int pen_command_main(int argument_count, char *const *arguments) {
    // until a verb runs, a wrong input is a wrong command line
    pen_command_context context = {.input_exit_code = PEN_EXIT_USAGE};
    pen_status status = pen_arena_create(&context.arena);
    if (status == PEN_OK) status = command_run(&context, argument_count, arguments);
    int code = (int)context.exit_code;
    if (status != PEN_OK) code = pen_command_exit_code(&context, status);
    if (status != PEN_OK && ferror(stdout)) code = PEN_EXIT_INTERNAL; // no input is to blame
    pen_log_status(status);
    pen_status_ignore(status, "printed, and told by the exit code");
    pen_arena_destroy(context.arena);
    return code;
}
