// penstock schema: what may stand in a job or cluster file.

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "partition/costs/cost_table_file.h"
#include "partition/plan/plan_table.h"
#include "scheduler/job/job.h"
#include "scheduler/job/sweep.h"

typedef struct schema_options {
    pen_cli_common common;
    bool keys;
} schema_options;

static const pen_cli_option schema_table[] = {
    PEN_CLI_FLAG(0, "keys", schema_options, keys,
                 "a list of the keys to read, in place of JSON Schema"),
};

// What files there are.
typedef struct schema_file {
    const char *name;
    const char *title;
    const pen_option_table *table;
} schema_file;

static const schema_file schema_files[] = {
    {"job", "Penstock job", &pen_job_table},
    {"cluster", "Penstock cluster", &pen_cluster_table},
    {"costs", "Penstock cost table", &pen_cost_table_keys},
    {"plan", "Penstock plan", &pen_plan_table},
    {"sweep", "Penstock sweep", &pen_sweep_table},
};
#define SCHEMA_FILE_COUNT (sizeof schema_files / sizeof *schema_files)

// Which file's schema: the job's when nothing is said.
static pen_status schema_find(const schema_options *options, pen_arena *arena,
                              const schema_file **out_file) {
    const char *names[SCHEMA_FILE_COUNT];
    const char *wanted =
        options->common.operand_count > 0 ? options->common.operands[0] : schema_files[0].name;
    for (size_t i = 0; i < SCHEMA_FILE_COUNT; i++) {
        names[i] = schema_files[i].name;
        if (strcmp(names[i], wanted) != 0) continue;
        *out_file = &schema_files[i];
        return PEN_OK;
    }
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add(&text, "found ");
    pen_text_add_quoted(&text, wanted, strlen(wanted));
    pen_text_add(&text, ", possible: ");
    pen_text_add_names(&text, wanted, names, SCHEMA_FILE_COUNT, SCHEMA_FILE_COUNT);
    return pen_text_error(&text, PEN_INVALID_INPUT);
}

static pen_status schema_print_keys(const schema_file *file, pen_arena *arena) {
    pen_text text;
    pen_text_init(&text, arena);
    pen_option_write_help(file->table, &text);
    return pen_command_print(&text);
}

// JSON Schema alone is what editors take; with --json it is wrapped as every verb's answer.
static pen_status schema_run(pen_command_context *context, const void *options_given) {
    const schema_options *options = options_given;
    const schema_file *file;
    const pen_exit_code before = context->input_exit_code;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(schema_find(options, context->arena, &file));
    context->input_exit_code = before;
    if (options->keys && !options->common.json) return schema_print_keys(file, context->arena);
    pen_json_writer json;
    if (options->common.json) {
        pen_command_begin_json(&json, "schema");
        pen_json_key(&json, file->name);
        pen_option_write_schema(file->table, file->title, &json);
        pen_json_end_object(&json);
    } else {
        pen_json_init_file(&json, stdout, 2);
        pen_option_write_schema(file->table, file->title, &json);
    }
    return pen_json_finish(&json);
}

const pen_command pen_command_schema = {
    .name = "schema",
    .summary = "print the JSON Schema of a job, cluster, cost or plan file, or its keys",
    .table = {PEN_CLI_OPERANDS("[job|cluster|costs|plan|sweep]", 0, 1),
              PEN_CLI_OPTIONS(schema_table),
              .details = "The job's schema is printed when none is named.\n",
              .examples = "penstock schema job > job.schema.json\n"
                          "penstock schema --keys cluster\n"},
    .options_bytes = sizeof(schema_options),
    .run = schema_run,
};
