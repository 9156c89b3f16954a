// penstock schema: what may stand in a job file.

#include <stdio.h>

#include "cli/command.h"
#include "scheduler/job.h"

typedef struct schema_options {
    pen_cli_common common;
    bool keys;
} schema_options;

static const pen_cli_option schema_table[] = {
    {.field = {.key = "keys",
               .kind = PEN_OPTION_BOOL,
               .offset = offsetof(schema_options, keys),
               .help = "a list of the keys to read, in place of JSON Schema"}},
};

static pen_status schema_print_keys(pen_arena *arena) {
    pen_text text;
    const char *whole;
    pen_text_init(&text, arena);
    pen_option_write_help(&pen_job_table, &text);
    PEN_TRY(pen_text_finish(&text, &whole));
    if (fputs(whole, stdout) == EOF || fflush(stdout) != 0) {
        return pen_error(PEN_IO, "cannot write to standard output");
    }
    return PEN_OK;
}

static pen_status schema_run(pen_command_context *context, const void *options_given) {
    const schema_options *options = options_given;
    if (options->keys && !options->common.json) return schema_print_keys(context->arena);
    pen_json_writer json;
    if (options->common.json) {
        pen_command_begin_json(&json, "schema");
        pen_json_key(&json, "job");
        pen_option_write_schema(&pen_job_table, "Penstock job", &json);
        pen_json_end_object(&json);
    } else {
        pen_json_init_file(&json, stdout, 2);
        pen_option_write_schema(&pen_job_table, "Penstock job", &json);
    }
    return pen_json_finish(&json);
}

extern const pen_command pen_command_schema;
const pen_command pen_command_schema = {
    .name = "schema",
    .summary = "print the JSON Schema of a job file, or its keys",
    .table = {.operands = "", PEN_CLI_OPTIONS(schema_table)},
    .options_bytes = sizeof(schema_options),
    .run = schema_run,
};
