#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#define COMMAND_ENTRY(name) &pen_command_##name,

const pen_command *const pen_commands[] = {PEN_COMMAND_LIST(COMMAND_ENTRY) NULL};

static const char *command_name(size_t index) {
    return pen_commands[index]->name;
}

#define COMMAND_SAID_FIRST "a verb comes first, as in `penstock train JOB`"

// What other programs call a verb, and what is one there and none here.
static const pen_text_word command_words[] = {
    {"*.yaml", COMMAND_SAID_FIRST},
    {"*.yml", COMMAND_SAID_FIRST},
    {"check", "`penstock plan JOB` says whether it fits, `penstock doctor JOB` what is installed"},
    {"completion", "`penstock help --completion bash`, zsh or fish prints the script"},
    {"convert", "`penstock export JOB -o FILE` writes the trained model"},
    {"evaluate", "it is `penstock eval JOB`"},
    {"fit", "it is `penstock train JOB`"},
    {"infer", "it is `penstock predict JOB`"},
    {"inference", "it is `penstock predict JOB`"},
    {"launch", "it is `penstock train JOB`, on each machine `penstock worker`"},
    {"lr_find", "it is `penstock rate JOB`"},
    {"report", "`penstock train --report FILE.html JOB` writes one"},
    {"resume", "`penstock train --continue JOB` goes on"},
    {"run", "it is `penstock train JOB`"},
    {"summary", "it is `penstock inspect MODEL`"},
    {"test", "it is `penstock eval JOB`"},
    {"tune", "it is `penstock sweep SWEEP`"},
    {"validate", "it is `penstock eval JOB`"},
    {"version", "it is `penstock --version`"},
    {NULL, NULL},
};

pen_status pen_command_find(const char *name, pen_arena *arena, const pen_command **out_command) {
    size_t index;
    const char *why = pen_text_find_word(command_words, name);
    if (why != NULL) { // no verb has such a name: a test looks
        return pen_error(PEN_NOT_FOUND, "unknown verb '%.100s': %s", name, why);
    }
    PEN_TRY(pen_text_find_name("verb", name, command_name,
                               sizeof pen_commands / sizeof *pen_commands - 1, arena, &index));
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

bool pen_command_has_json(void) {
    return command_has_json;
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
    const int code = pen_command_exit_code(context, status);
    pen_json_end_to(json, 1);
    pen_json_key_text(json, "error", pen_status_message(status));
    pen_json_key_integer(json, "exit_code", code);
    pen_json_end_object(json);
    return pen_status_join(status, pen_json_finish(json));
}

int pen_command_exit_code(const pen_command_context *context, pen_status status) {
    uint32_t line, column;
    const char *place = pen_status_position(status, &line, &column);
    pen_exit_code input = context->input_exit_code;
    if (input == PEN_EXIT_MODEL && place != NULL && strncmp(place, "--set ", 6) == 0) {
        input = PEN_EXIT_USAGE;
    }
    return pen_status_exit_code(status, (int)input);
}

pen_status pen_command_print(pen_text *text) {
    const char *whole;
    PEN_TRY(pen_text_finish(text, &whole));
    if (fputs(whole, stdout) == EOF || fflush(stdout) != 0) {
        return pen_error(PEN_IO, "cannot write to standard output");
    }
    return PEN_OK;
}
