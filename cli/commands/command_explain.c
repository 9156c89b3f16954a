// penstock explain: why a node of a plan is where it is, and what it would cost elsewhere.

#include <string.h>

#include "cli/command.h"
#include "cli/training_job.h"
#include "partition/plan/plan_explain.h"
#include "partition/plan/plan_file.h"
#include "partition/replicas/replica_rebuild.h"
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

// A replica is explained as the plan of its own that it is.
static pen_status explain_replica(const explain_options *options, const pen_plan_request *request,
                                  const pen_plan *plan, uint32_t replica, pen_arena *arena,
                                  pen_plan_explanation *out_explanation) {
    const pen_plan_request *own;
    pen_plan *part;
    pen_planner *planner;
    PEN_TRY(pen_replica_plan_part(request, plan, replica, arena, &own, &part));
    PEN_TRY(pen_planner_new(own, arena, &planner));
    return pen_plan_explain(planner, part, options->common.operands[1], arena, out_explanation);
}

// The device that updates what the node reads; NULL: no such node.
static const char *explain_find_owner(const pen_plan *plan, const char *name) {
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        if (strcmp(node->name, name) != 0) continue;
        return plan->devices[plan->stages.stages[node->update_stage].device].name;
    }
    return NULL;
}

// Of each replica what it would be to move the node within it.
static pen_status explain_replicas(const explain_options *options, const pen_plan_request *request,
                                   const pen_plan *plan, pen_arena *arena) {
    pen_json_writer json;
    pen_text text;
    const char *owner = explain_find_owner(plan, options->common.operands[1]);
    pen_text_init(&text, arena);
    if (options->common.json) {
        pen_command_begin_json(&json, "explain");
        if (owner != NULL) pen_json_key_text(&json, "owner", owner);
        pen_json_key_array(&json, "replicas");
    } else if (owner != NULL) {
        pen_text_print(&text, "owner        '%s' updates its parameters, if it has any\n\n", owner);
    }
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        const pen_plan_replica *replica = &plan->replicas[r];
        pen_plan_explanation explanation;
        PEN_TRY(pen_status_add_context(
            explain_replica(options, request, plan, r, arena, &explanation), "in replica %u", r));
        if (options->common.json) {
            pen_json_begin_object(&json);
            pen_json_key_unsigned(&json, "replica", r);
            pen_plan_explanation_write_json(&explanation, &json);
            pen_json_end_object(&json);
            continue;
        }
        pen_text_print(&text, "%sreplica      %u of %u, lanes %u to %u, by itself\n",
                       r > 0 ? "\n" : "", r, plan->replica_count, replica->first_lane,
                       replica->first_lane + replica->lane_count - 1);
        pen_plan_explanation_dump(&explanation, &text);
    }
    if (!options->common.json) return pen_command_print(&text);
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

static pen_status explain_with(const explain_options *options, pen_plan_job *plan_job,
                               const pen_plan *plan, pen_arena *arena) {
    const pen_plan_request *request;
    pen_planner *planner;
    pen_plan_explanation explanation;
    PEN_TRY(pen_plan_job_use_plan(plan_job, plan, &request));
    if (plan->replica_count > 0) return explain_replicas(options, request, plan, arena);
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
        .objective = -1, .seed = -1, .cost_table = plan->costs, .given = plan};
    PEN_TRY(pen_status_add_context(pen_command_open_planned(context, job_path, plan, &job),
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
    .table = {PEN_CLI_OPERANDS("PLAN NODE", 2, 2), PEN_CLI_OPTIONS(explain_cli_options),
              .examples = "penstock explain made.plan /layer1/Conv\n"},
    .options_bytes = sizeof(explain_options),
    .run = explain_run,
};
