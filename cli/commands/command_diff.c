// penstock diff: what differs between two plans.

#include "cli/command.h"
#include "partition/plan/plan_diff.h"
#include "partition/plan/plan_file.h"

typedef struct diff_options {
    pen_cli_common common;
} diff_options;

// Two plans need neither job nor model to be compared.
static pen_status diff_run(pen_command_context *context, const void *options_given) {
    const diff_options *options = options_given;
    pen_plan *before, *after;
    pen_plan_diff diff;
    PEN_TRY(pen_plan_read(options->common.operands[0], context->arena, &before));
    PEN_TRY(pen_plan_read(options->common.operands[1], context->arena, &after));
    PEN_TRY(pen_plan_diff_build(before, after, context->arena, &diff));
    if (options->common.json) {
        pen_json_writer json;
        pen_command_begin_json(&json, "diff");
        pen_plan_diff_write_json(&diff, &json);
        pen_json_end_object(&json);
        return pen_json_finish(&json);
    }
    pen_text text;
    pen_text_init(&text, context->arena);
    pen_plan_diff_dump(&diff, &text);
    return pen_command_print(&text);
}

const pen_command pen_command_diff = {
    .name = "diff",
    .summary = "what differs between two plans: nodes, stages, memory, times",
    .table = {PEN_CLI_OPERANDS("PLAN PLAN", 2, 2),
              .examples = "penstock diff before.plan after.plan\n"},
    .options_bytes = sizeof(diff_options),
    .run = diff_run,
};
