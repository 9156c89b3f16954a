// penstock plan: which device runs what, and what a training step will take.

#include <stdio.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/training_job.h"
#include "partition/plan_dump.h"
#include "partition/plan_file.h"
#include "scheduler/plan_job.h"

typedef struct plan_options {
    pen_cli_common common;
    const char *strategy;
    const char *objective;
    double time_limit;
    int64_t seed;
    const char *costs;
    const char *schedule;
    const char *from;
    bool nodes;
    const char *output;
} plan_options;

// The number of an objective; -1 for NULL.
static pen_status plan_find_objective(const char *name, pen_arena *arena, int32_t *out_objective) {
    *out_objective = -1;
    if (name == NULL) return PEN_OK;
    const pen_option_field field = {
        .key = "objective", .kind = PEN_OPTION_CHOICE, .choices = pen_objective_names};
    pen_objective objective;
    PEN_TRY(
        pen_status_add_context(pen_option_parse(&field, name, arena, &objective), "--objective"));
    *out_objective = (int32_t)objective;
    return PEN_OK;
}

static pen_status plan_print(const plan_options *options, const pen_plan *plan, pen_arena *arena) {
    if (options->common.json) {
        pen_json_writer json;
        pen_command_begin_json(&json, "plan");
        pen_plan_write_json(plan, &json);
        pen_json_end_object(&json);
        return pen_json_finish(&json);
    }
    pen_text text;
    const char *whole;
    pen_text_init(&text, arena);
    pen_plan_dump(plan, options->nodes, &text);
    PEN_TRY(pen_text_finish(&text, &whole));
    if (fputs(whole, stdout) == EOF || fflush(stdout) != 0) {
        return pen_error(PEN_IO, "cannot write to standard output");
    }
    return PEN_OK;
}

static pen_status plan_run(pen_command_context *context, const void *options_given) {
    const plan_options *options = options_given;
    pen_plan_job_options job_options = {.strategy = options->strategy,
                                        .time_limit_seconds = options->time_limit,
                                        .seed = options->seed,
                                        .cost_table = options->costs,
                                        .schedule = options->schedule};
    const pen_job *job;
    pen_plan_job *plan_job;
    pen_plan *plan, *given = NULL;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(plan_find_objective(options->objective, context->arena, &job_options.objective));
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(pen_job_read(options->common.operands[0], context->arena, &job));
    if (options->output != NULL) PEN_TRY(pen_command_check_output(context, options->output));
    if (options->from != NULL) {
        PEN_TRY(pen_plan_read_edited(options->from, context->arena, &given));
    }
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_plan_job_create(job, &job_options, &plan_job));
    context->input_exit_code = PEN_EXIT_SPEC;
    pen_status status =
        given == NULL
            ? pen_plan_job_place(plan_job, context->arena, &plan)
            : pen_status_add_context(pen_plan_job_rebuild(plan_job, given, context->arena, &plan),
                                     "in %s", options->from);
    if (status == PEN_OK && options->output != NULL) {
        status = pen_plan_write(plan, options->output, context->arena);
    }
    if (status == PEN_OK) status = plan_print(options, plan, context->arena);
    pen_plan_job_destroy(plan_job);
    return status;
}

static const pen_cli_option plan_cli_options[] = {
    {.value_name = "NAME",
     .field = {.key = "strategy",
               .kind = PEN_OPTION_TEXT,
               .offset = offsetof(plan_options, strategy),
               .help = "in place of the job's: auto, greedy, dynamic_programming, …"}},
    {.value_name = "NAME",
     .field = {.key = "objective",
               .kind = PEN_OPTION_TEXT,
               .offset = offsetof(plan_options, objective),
               .help = "in place of the job's: step_time, throughput, latency or traffic"}},
    {.value_name = "TIME",
     .field = {.key = "time-limit",
               .kind = PEN_OPTION_SECONDS,
               .offset = offsetof(plan_options, time_limit),
               .minimum = PEN_OPTION_ABOVE(0),
               .help = "for the search, in place of the job's"}},
    {.value_name = "N",
     .field = {.key = "seed",
               .kind = PEN_OPTION_INTEGER,
               .offset = offsetof(plan_options, seed),
               .default_text = "-1",
               .minimum = PEN_OPTION_FROM(-1),
               .help = "of the search; -1: the job's"}},
    {.value_name = "FILE",
     .field = {.key = "costs",
               .kind = PEN_OPTION_TEXT,
               .offset = offsetof(plan_options, costs),
               .help = "cost table, in place of the job's: of `penstock profile`, or of a run"}},
    {.value_name = "NAME",
     .field = {.key = "schedule",
               .kind = PEN_OPTION_TEXT,
               .offset = offsetof(plan_options, schedule),
               .help = "in place of the job's: auto, 1f1b or gpipe"}},
    {.value_name = "PLAN",
     .field = {.key = "from",
               .kind = PEN_OPTION_TEXT,
               .offset = offsetof(plan_options, from),
               .help = "place nothing: keep the stages of this plan, which may have been edited"}},
    {.field = {.key = "nodes",
               .kind = PEN_OPTION_BOOL,
               .offset = offsetof(plan_options, nodes),
               .help = "list every node, and why it is where it is"}},
    {.letter = 'o',
     .value_name = "PLAN",
     .field = {.key = "output",
               .kind = PEN_OPTION_TEXT,
               .offset = offsetof(plan_options, output),
               .help = "write the plan there"}},
};

extern const pen_command pen_command_plan;
const pen_command pen_command_plan = {
    .name = "plan",
    .summary = "place a job's model on its devices, and predict a training step",
    .table = {.operands = "JOB",
              .operand_count_minimum = 1,
              .operand_count_maximum = 1,
              PEN_CLI_OPTIONS(plan_cli_options),
              .details = "Exit code 5: the model does not fit on the devices.\n"},
    .options_bytes = sizeof(plan_options),
    .run = plan_run,
};
