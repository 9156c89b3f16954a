#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/system/sandbox.h"
#include "scheduler/transport/ring/ring_socket.h"

#define COMMAND_ENTRY(name) &pen_command_##name,

const pen_command *const pen_commands[] = {PEN_COMMAND_LIST(COMMAND_ENTRY) NULL};

#define COMMAND_COUNT (sizeof pen_commands / sizeof *pen_commands - 1)

static const char *command_name(size_t index) {
    return pen_commands[index]->name;
}

// Finds a verb. NOT_FOUND lists the names, nearest first.
static pen_status command_find(const char *name, pen_arena *arena,
                               const pen_command **out_command) {
    size_t index;
    PEN_TRY(pen_text_find_name("verb", name, command_name, COMMAND_COUNT, arena, &index));
    *out_command = pen_commands[index];
    return PEN_OK;
}

static bool command_has_json; // begun on standard output
static const char *const *command_settings;
static uint32_t command_setting_count;

void pen_command_note_settings(const char *const *settings, uint32_t count) {
    command_settings = settings;
    command_setting_count = count;
}

void pen_command_begin_json(pen_json_writer *json, const char *verb) {
    char schema[64];
    command_has_json = true;
    snprintf(schema, sizeof schema, "penstock/%s/1", verb);
    pen_json_init_file(json, stdout, 0);
    pen_json_begin_object(json);
    pen_json_key_text(json, "schema", schema);
    if (command_setting_count == 0) return;
    pen_json_key_array(json, "set");
    for (uint32_t i = 0; i < command_setting_count; i++) {
        pen_json_text(json, command_settings[i]);
    }
    pen_json_end_array(json);
}

pen_status pen_command_fail_json(const pen_command_context *context, pen_json_writer *json,
                                 pen_status status) {
    const int code = pen_status_exit_code(status, (int)context->input_exit_code);
    pen_json_end_to(json, 1);
    pen_json_key_text(json, "error", pen_status_message(status));
    pen_json_key_integer(json, "exit_code", code);
    pen_json_end_object(json);
    return pen_status_join(status, pen_json_finish(json));
}

pen_status pen_command_print(pen_text *text) {
    const char *whole;
    PEN_TRY(pen_text_finish(text, &whole));
    if (fputs(whole, stdout) == EOF || fflush(stdout) != 0) {
        return pen_error(PEN_IO, "cannot write to standard output");
    }
    return PEN_OK;
}

static pen_status command_print_help(pen_arena *arena) {
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add(&text, "usage: penstock VERB [options] ...\n\n"
                        "Trains neural networks over several machines.\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        pen_text_print(&text, "  %-12s %s\n", pen_commands[i]->name, pen_commands[i]->summary);
    }
    pen_text_add(
        &text,
        "\npenstock VERB --help says more; penstock --version prints the "
        "version.\nExit codes: 0 ok, 1 internal, 2 usage, 3 spec, 4 model, 5 does "
        "not fit or out of memory,\n6 peer lost, superseded or stopped, 7 verification "
        "failed, 8 numbers not finite or a device wrong, 9 disk or place: try again later.\n");
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
    PEN_TRY(command_find(arguments[0], context->arena, &command));
    void *options = pen_arena_allocate(context->arena, 1, command->options_bytes, 16);
    if (options == NULL) return pen_error_out_of_memory();
    PEN_TRY(
        pen_cli_parse(&command->table, argument_count - 1, arguments + 1, context->arena, options));
    const pen_cli_common *common = options;
    if (common->help) {
        pen_text text;
        pen_text_init(&text, context->arena);
        pen_cli_write_help(&command->table, command->name, command->summary, &text);
        return pen_command_print(&text);
    }
    if (common->quiet) pen_log_set_level(PEN_LOG_WARNING);
    context->input_exit_code = PEN_EXIT_SPEC;
    context->settings = common->settings;
    PEN_TRY(command_enter_sandbox(context, command, &common->sandbox));
    const pen_status status = command->run(context, options);
    if (status == PEN_OK || !common->json || command_has_json) return status;
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
        return command_print_help(context->arena);
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
    if (status != PEN_OK) code = pen_status_exit_code(status, (int)context.input_exit_code);
    if (status != PEN_OK && ferror(stdout)) code = PEN_EXIT_INTERNAL; // no input is to blame
    pen_log_status(status);
    pen_status_ignore(status, "printed, and told by the exit code");
    pen_arena_destroy(context.arena);
    return code;
}
