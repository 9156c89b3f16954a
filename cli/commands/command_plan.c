// penstock plan: which device runs what, and what a training step will take.

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/machine.h"
#include "cli/command.h"
#include "cli/training_job.h"
#include "partition/plan/plan_dump.h"
#include "partition/plan/plan_file.h"
#include "partition/plan/plan_writer.h"
#include "partition/strategies/strategies.h"
#include "scheduler/engine/audit_room.h"
#include "scheduler/plan/plan_job.h"
#include "scheduler/schedule/schedule.h"

typedef struct plan_options {
    pen_cli_common common;
    const char *strategy;
    pen_objective objective;
    bool has_objective;
    double time_limit;
    int64_t seed;
    const char *costs;
    pen_job_schedule schedule;
    bool has_schedule;
    const char *from;
    const char *from_run;
    int64_t tasks; // 0: not said
    bool nodes;
    const char *output;
} plan_options;

// What cannot be right of the command line, told before anything is read.
static pen_status plan_check_options(const plan_options *options, pen_arena *arena) {
    if (options->strategy != NULL) {
        const pen_strategy *strategy;
        PEN_TRY(pen_status_add_context(pen_strategy_find(options->strategy, arena, &strategy),
                                       "--strategy"));
    }
    if (options->from_run != NULL && access(options->from_run, R_OK) != 0) {
        return pen_error(PEN_NOT_FOUND,
                         "--from-run: cannot open '%s': %s; `penstock train JOB --trace FILE` "
                         "writes such a file",
                         options->from_run, strerror(errno));
    }
    if (options->strategy != NULL && options->from != NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "found --strategy beside --from, expected one of them: --from places "
                         "nothing");
    }
    return PEN_OK;
}

// The plan to start from. Objective and schedule are its own unless the command line says others.
static pen_status plan_read_given(const plan_options *options, pen_arena *arena,
                                  pen_plan_job_options *job_options, pen_plan **out_given) {
    const pen_schedule_generator *generator;
    pen_plan *given;
    PEN_TRY(pen_plan_read_edited(options->from, arena, &given));
    for (int32_t i = 0; pen_objective_names[i] != NULL && !options->has_objective; i++) {
        if (strcmp(pen_objective_names[i], given->objective) == 0) job_options->objective = i;
    }
    if (!options->has_schedule) {
        PEN_TRY(
            pen_status_add_context(pen_schedule_generator_find(given->schedule, arena, &generator),
                                   "in %s", options->from));
        job_options->schedule = generator->name;
    }
    *out_given = given;
    return PEN_OK;
}

// The job with so many tasks, each granted what this process is, on a host of its own. Nobody is
// called to plan.
static pen_status plan_read_job(const plan_options *options, pen_command_context *context,
                                const pen_job **out_job) {
    const char *path = options->common.operands[0];
    pen_command_tasks *known;
    pen_cluster_task *tasks;
    pen_machine machine;
    if (options->tasks == 0) return pen_command_open_job(context, path, out_job);
    PEN_TRY(pen_machine_detect(context->arena, &machine));
    PEN_TRY(PEN_NEW(context->arena, 1, &known));
    PEN_TRY(PEN_NEW(context->arena, (size_t)options->tasks, &tasks));
    *known = (pen_command_tasks){.items = tasks, .count = (uint32_t)options->tasks};
    for (uint32_t t = 0; t < known->count; t++) {
        tasks[t] = (pen_cluster_task){.memory_bytes = machine.memory_bytes_allowed,
                                      .threads = machine.core_count_allowed};
        PEN_TRY(pen_arena_format(context->arena, &tasks[t].host, "task%u", t));
    }
    context->tasks = known;
    PEN_TRY(pen_command_open_job(context, path, out_job));
    if (pen_cluster_spec_has_tasks(&(*out_job)->cluster)) return PEN_OK;
    context->input_exit_code = PEN_EXIT_USAGE;
    return pen_error(PEN_INVALID_INPUT,
                     "--tasks: found a job without devices of tasks, expected `devices: [{name: n, "
                     "per: task}]`");
}

// How often another worker computes again what one did.
static pen_status plan_add_audit(pen_plan_job *plan_job, const pen_job *job, const pen_plan *plan,
                                 pen_arena *arena, pen_text *text) {
    const pen_plan_request *request;
    const char *audit;
    PEN_TRY(pen_plan_job_use_plan(plan_job, plan, &request));
    PEN_TRY(pen_audit_room_describe(plan, request->cluster, (uint64_t)job->recovery.audit, arena,
                                    &audit));
    if (audit != NULL) pen_text_print(text, "\naudit        %s\n", audit);
    return PEN_OK;
}

static pen_status plan_print(const plan_options *options, pen_plan_job *plan_job,
                             const pen_job *job, const pen_plan *plan, pen_arena *arena) {
    if (options->common.json) {
        pen_json_writer json;
        pen_command_begin_json(&json, "plan");
        pen_plan_write_json(plan, &json);
        pen_json_end_object(&json);
        return pen_json_finish(&json);
    }
    pen_text text;
    pen_text_init(&text, arena);
    pen_plan_dump(plan, options->nodes, &text);
    PEN_TRY(pen_plan_job_add_kinds(plan_job, plan, arena, &text));
    PEN_TRY(plan_add_audit(plan_job, job, plan, arena, &text));
    return pen_command_print(&text);
}

// Which part of the input an error is about (command line, job, model) decides the exit code, so it
// is set before each step.
static pen_status plan_run(pen_command_context *context, const void *options_given) {
    const plan_options *options = options_given;
    pen_plan_job_options job_options = {.strategy = options->strategy,
                                        .time_limit_seconds = options->time_limit,
                                        .seed = options->seed,
                                        .cost_table = options->costs,
                                        .run = options->from_run,
                                        .objective = -1};
    const pen_job *job;
    pen_plan_job *plan_job;
    pen_plan *plan, *given = NULL;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(plan_check_options(options, context->arena));
    if (options->has_objective) job_options.objective = (int32_t)options->objective;
    if (options->has_schedule) job_options.schedule = pen_job_schedule_name(options->schedule);
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(plan_read_job(options, context, &job));
    if (options->output != NULL) PEN_TRY(pen_command_check_output(context, options->output));
    if (options->from != NULL) {
        PEN_TRY(plan_read_given(options, context->arena, &job_options, &given));
    }
    job_options.given = given;
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_plan_job_create(job, &job_options, &plan_job));
    context->input_exit_code = PEN_EXIT_SPEC;
    pen_status status =
        given == NULL
            ? pen_plan_job_place(plan_job, context->arena, &plan)
            : pen_status_add_context(pen_plan_job_rebuild(plan_job, given, context->arena, &plan),
                                     "in %s", options->from);
    if (pen_status_get_code(status) == PEN_UNSUPPORTED && options->strategy != NULL) {
        context->input_exit_code = PEN_EXIT_USAGE;
    }
    if (status == PEN_OK && (options->output != NULL || options->nodes || options->common.json)) {
        status = pen_plan_job_add_reasons(plan_job, plan, context->arena);
    }
    const bool is_quiet = options->common.quiet && options->output != NULL && !options->common.json;
    if (status == PEN_OK && options->output != NULL) {
        status = pen_plan_write(plan, options->output, context->arena);
    }
    if (status == PEN_OK && !is_quiet)
        status = plan_print(options, plan_job, job, plan, context->arena);
    pen_plan_job_destroy(plan_job);
    return status;
}

static const pen_cli_option plan_cli_options[] = {
    PEN_CLI_VALUE(0, "strategy", "NAME", TEXT, plan_options, strategy,
                  "in place of the job's: auto, greedy, dynamic_programming, …"),
    PEN_CLI_VALUE(0, "objective", "NAME", CHOICE, plan_options, objective,
                  "in place of the job's, or of the --from plan's",
                  .present_offset = offsetof(plan_options, has_objective),
                  .choices = pen_objective_names),
    PEN_CLI_VALUE(0, "time-limit", "TIME", SECONDS, plan_options, time_limit,
                  "for the search, in place of the job's", .minimum = PEN_OPTION_ABOVE(0)),
    PEN_CLI_VALUE(0, "seed", "N", INTEGER, plan_options, seed, "of the search; -1: the job's",
                  .default_text = "-1", .minimum = PEN_OPTION_FROM(-1)),
    PEN_CLI_VALUE(0, "costs", "FILE", TEXT, plan_options, costs,
                  "cost table, in place of the job's: of `penstock profile`"),
    PEN_CLI_VALUE(0, "schedule", "NAME", CHOICE, plan_options, schedule,
                  "in place of the job's, or of the --from plan's",
                  .present_offset = offsetof(plan_options, has_schedule),
                  .choices = pen_job_schedule_names),
    PEN_CLI_VALUE(0, "from", "PLAN", TEXT, plan_options, from,
                  "place nothing: keep the stages of this plan, which may have been edited"),
    PEN_CLI_VALUE(0, "from-run", "TRACE", PATH, plan_options, from_run,
                  "reckon with what a run saw: the file of `penstock train --trace`"),
    PEN_CLI_VALUE(0, "tasks", "N", INTEGER, plan_options, tasks,
                  "as if so many tasks had been started: for devices `per: task`",
                  PEN_OPTION_RANGE(1, PEN_CLUSTER_DEVICE_LIMIT)),
    PEN_CLI_FLAG(0, "nodes", plan_options, nodes, "list every node, and why it is where it is"),
    PEN_CLI_VALUE('o', "output", "PLAN", TEXT, plan_options, output, "write the plan there"),
};

const pen_command pen_command_plan = {
    .name = "plan",
    .summary = "place a job's model on its devices, and predict a training step",
    .table = {PEN_CLI_OPERANDS("JOB", 1, 1), PEN_CLI_OPTIONS(plan_cli_options), .takes_job = true,
              .details = "Exit code 5: the model does not fit on the devices.\n",
              .examples = "penstock plan job.yaml\n"
                          "penstock plan -o made.plan --json job.yaml\n"},
    .options_bytes = sizeof(plan_options),
    .run = plan_run,
};
