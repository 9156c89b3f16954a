// penstock explain: why a node of a plan is where it is, and what it would cost elsewhere.

#include "cli/command.h"
#include "partition/plan/plan_explain.h"
#include "partition/plan/plan_file.h"
#include "scheduler/plan/plan_job.h"

typedef struct explain_options {
    pen_cli_common common;
    const char *job;
} explain_options;

static pen_status explain_print(const explain_options *options,
                                const pen_plan_explanation *explanation, pen_arena *arena) {
    if (options->common.json) {
        pen_json_writer json;
        pen_command_begin_json(&json, "explain");
        pen_plan_explanation_write_json(explanation, &json);
        pen_json_end_object(&json);
        return pen_json_finish(&json);
    }
    pen_text text;
    pen_text_init(&text, arena);
    pen_plan_explanation_dump(explanation, &text);
    return pen_command_print(&text);
}

static pen_status explain_with(const explain_options *options, pen_plan_job *plan_job,
                               const pen_plan *plan, pen_arena *arena) {
    const pen_plan_request *request;
    pen_planner *planner;
    pen_plan_explanation explanation;
    PEN_TRY(pen_plan_job_use_plan(plan_job, plan, &request));
    PEN_TRY(pen_planner_new(request, arena, &planner));
    PEN_TRY(pen_plan_explain(planner, plan, options->common.operands[1], arena, &explanation));
    return explain_print(options, &explanation, arena);
}

// A plan names its job and its costs, so that the figures are those it was made with.
static pen_status explain_run(pen_command_context *context, const void *options_given) {
    const explain_options *options = options_given;
    const char *path = options->common.operands[0];
    pen_plan *plan;
    const pen_job *job;
    pen_plan_job *plan_job;
    PEN_TRY(pen_plan_read(path, context->arena, &plan));
    const char *job_path = options->job != NULL ? options->job : plan->job;
    if (job_path == NULL) {
        return pen_error(PEN_INVALID_INPUT, "%s names no job: --job says which", path);
    }
    const pen_plan_job_options job_options = {
        .objective = -1, .seed = -1, .cost_table = plan->costs};
    PEN_TRY(pen_status_add_context(pen_job_read(job_path, context->arena, &job),
                                   "while reading the job of %s", path));
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_plan_job_create(job, &job_options, &plan_job));
    context->input_exit_code = PEN_EXIT_SPEC;
    const pen_status status = explain_with(options, plan_job, plan, context->arena);
    pen_plan_job_destroy(plan_job);
    return pen_status_add_context(status, "in %s", path);
}

static const pen_cli_option explain_cli_options[] = {
    PEN_CLI_VALUE(0, "job", "JOB", TEXT, explain_options, job,
                  "the job that was planned, in place of the one that the plan names"),
};

const pen_command pen_command_explain = {
    .name = "explain",
    .summary = "why a node of a plan is where it is, and what it would cost elsewhere",
    .table = {PEN_CLI_OPERANDS("PLAN NODE", 2, 2), PEN_CLI_OPTIONS(explain_cli_options)},
    .options_bytes = sizeof(explain_options),
    .run = explain_run,
};
