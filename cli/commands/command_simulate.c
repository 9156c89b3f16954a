// penstock simulate: the time line of a plan, without running it.

#include <math.h>
#include <stdio.h>

#include "base/system/file.h"
#include "cli/command.h"
#include "cli/training_job.h"
#include "partition/plan/plan_file.h"
#include "partition/plan/replica_check.h"
#include "scheduler/plan/plan_schedule.h"
#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/schedule_dump.h"

typedef struct simulate_options {
    pen_cli_common common;
    const char *schedule;
    const char *output;
} simulate_options;

// Tasks in each device's order, then transfers: enough to draw the time line elsewhere.
static void simulate_write_tasks(pen_json_writer *json, const pen_timeline *timeline) {
    const pen_schedule *schedule = timeline->schedule;
    pen_json_key_array(json, "tasks");
    for (uint32_t d = 0; d < schedule->device_count; d++) {
        for (uint32_t t = schedule->first_task[d]; t < schedule->first_task[d + 1]; t++) {
            const pen_task task = schedule->tasks[t];
            pen_json_begin_object(json);
            pen_json_key_unsigned(json, "device", d);
            pen_json_key_text(json, "kind", pen_task_kind_name(task.kind));
            pen_json_key_unsigned(json, "stage", task.stage);
            pen_json_key_unsigned(json, "microbatch", task.microbatch);
            pen_json_key_number(json, "start", timeline->times.start_seconds[t]);
            pen_json_key_number(json, "end", timeline->times.end_seconds[t]);
            pen_json_end_object(json);
        }
    }
    pen_json_end_array(json);
    pen_json_key_array(json, "transfers");
    for (uint32_t t = 0; t < timeline->times.transfer_count; t++) {
        const pen_transfer_time *transfer = &timeline->times.transfers[t];
        pen_json_begin_object(json);
        pen_json_key_unsigned(json, "from", pen_transfer_source(timeline->graph, transfer));
        pen_json_key_unsigned(json, "to", pen_transfer_target(timeline->graph, transfer));
        pen_json_key_unsigned(json, transfer->is_step ? "phase" : "microbatch",
                              transfer->microbatch);
        pen_json_key_bool(json, "backward", transfer->is_backward);
        pen_json_key_number(json, "start", transfer->start_seconds);
        pen_json_key_number(json, "end", transfer->end_seconds);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// Times in seconds from the beginning of the step; devices and stages by their numbers in the plan.
static pen_status simulate_print_json(const pen_plan *plan, const char *schedule,
                                      const pen_timeline *timeline) {
    pen_json_writer json;
    pen_command_begin_json(&json, "simulate");
    pen_json_key_text(&json, "schedule", schedule);
    pen_json_key_number(&json, "step_seconds", timeline->step_seconds);
    pen_json_key_number(&json, "bubble", timeline->bubble);
    pen_json_key_array(&json, "devices");
    for (uint32_t d = 0; d < plan->device_count; d++) {
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "name", plan->devices[d].name);
        pen_json_key_number(&json, "busy_seconds", timeline->busy_seconds[d]);
        pen_json_key_number(&json, "bytes_peak", timeline->bytes_peak[d]);
        if (isfinite(plan->stages.bytes_limit[d])) {
            pen_json_key_number(&json, "bytes_limit", plan->stages.bytes_limit[d]);
        }
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_key_array(&json, "stages");
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "name", plan->stage_figures[s].name);
        pen_json_key_unsigned(&json, "device", plan->stages.stages[s].device);
        pen_json_key_unsigned(&json, "in_flight", timeline->in_flight[s]);
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_key_array(&json, "links");
    for (uint32_t l = 0; l < timeline->link_count; l++) {
        const pen_link_traffic *link = &timeline->links[l];
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "from", plan->devices[link->source].name);
        pen_json_key_text(&json, "to", plan->devices[link->target].name);
        pen_json_key_unsigned(&json, "transfers", link->transfer_count);
        pen_json_key_number(&json, "bytes", link->bytes);
        pen_json_key_number(&json, "busy_seconds", link->busy_seconds);
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    simulate_write_tasks(&json, timeline);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

// The picture is written before anything is printed, so that a failure leaves no half answer.
static pen_status simulate_output(const simulate_options *options, const pen_plan *plan,
                                  const char *schedule, const pen_timeline *timeline,
                                  pen_arena *arena) {
    const char **names;
    const char *text;
    PEN_TRY(PEN_NEW(arena, plan->device_count, &names));
    for (uint32_t d = 0; d < plan->device_count; d++) {
        PEN_TRY(pen_plan_label_device(plan, d, arena, &names[d]));
    }
    if (options->output != NULL) {
        PEN_TRY(pen_schedule_dump_svg(timeline, names, arena, &text));
        PEN_TRY(pen_file_write_text(options->output, text));
    }
    if (options->common.json) return simulate_print_json(plan, schedule, timeline);
    PEN_TRY(pen_schedule_dump_text(timeline, names, arena, &text));
    if (printf("schedule %s: %s", schedule, text) < 0 || fflush(stdout) != 0) {
        return pen_error(PEN_IO, "cannot write to standard output");
    }
    return PEN_OK;
}

// The plan's own schedule, or another one for the same stages, which is checked first: it may need
// more memory.
static pen_status simulate_run(pen_command_context *context, const void *options_given) {
    const simulate_options *options = options_given;
    pen_arena *arena = context->arena;
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    pen_plan *plan;
    if (options->output != NULL) PEN_TRY(pen_command_check_output(context, options->output));
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(pen_plan_read(options->common.operands[0], arena, &plan));
    const char *name = options->schedule != NULL ? options->schedule : plan->schedule;
    if (options->schedule == NULL) {
        PEN_TRY(pen_plan_schedule(plan, arena, &schedule));
    } else {
        context->input_exit_code = PEN_EXIT_USAGE;
        PEN_TRY(pen_schedule_generator_find(name, arena, &generator));
        context->input_exit_code = PEN_EXIT_SPEC;
        PEN_TRY(generator->generate(&plan->stages, arena, &schedule));
        PEN_TRY(pen_schedule_check(&plan->stages, schedule, arena));
    }
    PEN_TRY(pen_schedule_simulate(&plan->stages, schedule, arena, &timeline));
    return simulate_output(options, plan, name, timeline, arena);
}

static const pen_cli_option simulate_cli_options[] = {
    PEN_CLI_VALUE(0, "schedule", "NAME", TEXT, simulate_options, schedule,
                  "in place of the plan's: 1f1b, gpipe, interleaved, zero_bubble, auto"),
    PEN_CLI_VALUE('o', "output", "FILE", TEXT, simulate_options, output,
                  "draw the time line there, as SVG"),
};

const pen_command pen_command_simulate = {
    .name = "simulate",
    .summary = "the time line of a plan's step, without running it",
    .table = {PEN_CLI_OPERANDS("PLAN", 1, 1), PEN_CLI_OPTIONS(simulate_cli_options),
              .details = "F forward, B backward, I and W its halves (for inputs, for weights), U "
                         "update, with the last digit of the microbatch. Exit code 5: the schedule "
                         "needs more memory than there is.\n",
              .examples = "penstock simulate made.plan\n"
                          "penstock simulate --schedule gpipe made.plan\n"},
    .options_bytes = sizeof(simulate_options),
    .run = simulate_run,
};
