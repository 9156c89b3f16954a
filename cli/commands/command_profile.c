// penstock profile: what the operators of a job cost on its devices, here and on other machines.

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/cost_file.h"
#include "cli/training_job.h"
#include "scheduler/measure/profile.h"
#include "scheduler/measure/survey_crew.h"

typedef struct profile_options {
    pen_cli_common common;
    const char *output;
    const char *device;
    bool repeat;
    double time_limit;
    double operator_time;
    bool check;
    bool in_step;
    int64_t steps;
    int64_t top;
    bool insecure;
} profile_options;

typedef struct profile_run {
    pen_command_context *context;
    const profile_options *options;
    const pen_job *job;
    pen_dataset *dataset;
    pen_cost_file costs;
    pen_profile_targets targets;
    pen_json_writer json;
} profile_run;

#define PROFILE_SHAPE_COLUMNS 76

static void profile_show_progress(void *context, const pen_profile_row *row, uint32_t done,
                                  uint32_t count) {
    (void)context;
    pen_log(PEN_LOG_DEBUG, "%u of %u: %s %s", done + 1, count, row->op, row->shape);
}

static double profile_step_seconds(const pen_profile_row *row, double seconds) {
    return seconds * row->node_count * row->runs_per_step;
}

static void profile_print_row(const pen_profile_row *row, const pen_profile_summary *summary) {
    char seconds[PEN_QUANTITY_TEXT_BYTES], in_step[PEN_QUANTITY_TEXT_BYTES];
    const double whole =
        summary->seconds_predicted > 0 ? summary->seconds_predicted : summary->seconds_in_step;
    const double share =
        profile_step_seconds(row, row->is_measured ? row->seconds : row->seconds_in_step);
    printf("%5.1f %%  %5u  %10s", whole > 0 ? 100 * share / whole : 0,
           row->node_count * (uint32_t)row->runs_per_step,
           row->is_measured ? pen_seconds_format(row->seconds, seconds) : "-");
    if (summary->step_count > 0) {
        printf("  %10s", pen_seconds_format(row->seconds_in_step, in_step));
        if (row->is_measured && row->seconds_in_step > 0) {
            printf("  %+6.0f %%", 100 * (row->seconds / row->seconds_in_step - 1));
        } else {
            printf("  %8s", "");
        }
    }
    printf("  %s %.*s\n", row->op, PROFILE_SHAPE_COLUMNS, row->shape);
}

static void profile_print_steps(const pen_profile_summary *summary) {
    char text[5][PEN_QUANTITY_TEXT_BYTES];
    if (summary->step_count == 0) return;
    printf("\nin %u steps of %s: operators take %s, %s predicted (%+.1f %%)\n", summary->step_count,
           pen_seconds_format(summary->step_seconds, text[0]),
           pen_seconds_format(summary->seconds_in_step, text[1]),
           pen_seconds_format(summary->seconds_predicted, text[2]),
           summary->seconds_in_step > 0
               ? 100 * (summary->seconds_predicted / summary->seconds_in_step - 1)
               : 0);
    printf("mean absolute error of operators: %.1f %% weighted by time, %.1f %% of those of at "
           "least 1 %%\n",
           100 * summary->error_weighted, 100 * summary->error_mean);
    printf("memory: %s persistent, %s for values passed along\n",
           pen_bytes_format(summary->memory.persistent_bytes, text[3]),
           pen_bytes_format(summary->memory.arena_bytes, text[4]));
}

// The most expensive operators first, as many as asked for.
static void profile_print(const profile_run *run, const pen_profile_target *target,
                          const pen_cost_rates *rates, const pen_profile_summary *summary) {
    char flops[PEN_QUANTITY_TEXT_BYTES], bandwidth[PEN_QUANTITY_TEXT_BYTES];
    printf("%s with %u thread%s (device '%s'%s%s%s): %sflop/s, %sB/s\n", target->cost_kind,
           target->threads, target->threads == 1 ? "" : "s", target->device,
           target->device_count > 1 ? " and others" : "", target->is_remote ? ", on " : "",
           target->host_name, pen_count_format((uint64_t)rates->flops, flops),
           pen_count_format((uint64_t)rates->memory_bandwidth, bandwidth));
    printf("%u nodes, %u operators: %u measured, %u from the table", summary->node_count,
           summary->row_count, summary->fresh_count, summary->kept_count);
    if (summary->left_count > 0) printf(", %u left for lack of time", summary->left_count);
    if (summary->failed_count > 0) printf(", %u could not be measured", summary->failed_count);
    printf("\n\n  share   runs  %10s%s  operator\n", "one run",
           summary->step_count > 0 ? "     in step      off" : "");
    for (uint32_t r = 0; r < summary->row_count && r < (uint32_t)run->options->top; r++) {
        profile_print_row(&summary->rows[r], summary);
    }
    if (summary->row_count > (uint32_t)run->options->top) {
        printf("          and %u more\n", summary->row_count - (uint32_t)run->options->top);
    }
    profile_print_steps(summary);
    printf("\n");
}

static void profile_json_row(pen_json_writer *json, const pen_profile_row *row, bool has_steps) {
    pen_json_begin_object(json);
    pen_json_key_text(json, "op", row->op);
    pen_json_key_text(json, "shape", row->shape);
    pen_json_key_unsigned(json, "nodes", row->node_count);
    pen_json_key_number(json, "runs_per_step", row->runs_per_step);
    if (row->is_measured) {
        pen_json_key_number(json, "seconds", row->seconds);
        pen_json_key_unsigned(json, "workspace_bytes", row->workspace_bytes);
        pen_json_key_bool(json, "fresh", row->is_fresh);
    }
    if (has_steps) pen_json_key_number(json, "seconds_in_step", row->seconds_in_step);
    if (row->failure != NULL) pen_json_key_text(json, "error", row->failure);
    pen_json_end_object(json);
}

// All operators, whatever the table shows.
static void profile_json(profile_run *run, const pen_profile_target *target,
                         const pen_cost_rates *rates, const pen_profile_summary *summary) {
    pen_json_writer *json = &run->json;
    const bool has_steps = summary->step_count > 0;
    pen_json_begin_object(json);
    pen_json_key_text(json, "device", target->device);
    if (target->is_remote) pen_json_key_text(json, "host", target->host_name);
    pen_json_key_text(json, "kind", target->cost_kind);
    pen_json_key_unsigned(json, "threads", target->threads);
    pen_json_key_number(json, "flops", rates->flops);
    pen_json_key_number(json, "memory_bandwidth", rates->memory_bandwidth);
    pen_json_key_unsigned(json, "nodes", summary->node_count);
    pen_json_key_unsigned(json, "measured", summary->fresh_count);
    pen_json_key_unsigned(json, "kept", summary->kept_count);
    pen_json_key_unsigned(json, "left", summary->left_count);
    pen_json_key_unsigned(json, "failed", summary->failed_count);
    pen_json_key_number(json, "predicted_seconds", summary->seconds_predicted);
    if (has_steps) {
        pen_json_key_unsigned(json, "steps", summary->step_count);
        pen_json_key_number(json, "step_seconds", summary->step_seconds);
        pen_json_key_number(json, "seconds_in_step", summary->seconds_in_step);
        pen_json_key_number(json, "error_weighted", summary->error_weighted);
        pen_json_key_number(json, "error_mean", summary->error_mean);
        pen_json_key_unsigned(json, "persistent_bytes", summary->memory.persistent_bytes);
        pen_json_key_unsigned(json, "arena_bytes", summary->memory.arena_bytes);
        pen_json_key_unsigned(json, "resident_bytes_peak", summary->resident_bytes_peak);
    }
    pen_json_key_array(json, "operators");
    for (uint32_t r = 0; r < summary->row_count; r++) {
        profile_json_row(json, &summary->rows[r], has_steps);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}

static void profile_warn(const pen_profile_summary *summary) {
    for (uint32_t r = 0; r < summary->row_count; r++) {
        const pen_profile_row *row = &summary->rows[r];
        if (row->failure == NULL) continue;
        pen_log(PEN_LOG_WARNING, "not measured: %s %s: %s", row->op, row->shape, row->failure);
    }
    if (summary->left_count > 0) {
        pen_log(PEN_LOG_WARNING,
                "the time limit left %u operators, which plans will estimate; run this again to "
                "measure them",
                summary->left_count);
    }
}

static void profile_show(profile_run *run, const pen_profile_target *target,
                         const pen_profile_summary *summary) {
    const pen_cost_rates *rates = pen_cost_table_find_rates_at(
        run->costs.table, target->host_name, target->cost_kind, target->cost_threads);
    profile_warn(summary);
    if (run->options->common.json) {
        profile_json(run, target, rates, summary);
    } else {
        profile_print(run, target, rates, summary);
    }
}

// Other devices of this machine than the first of the target.
static pen_status profile_find_others(profile_run *run, const pen_profile_target *target,
                                      pen_device_options **out_others, uint32_t *out_count) {
    const pen_cluster *cluster = run->targets.cluster;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(run->context->arena, cluster->device_count, out_others));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const pen_cluster_device *device = &cluster->devices[d];
        const bool is_other = d != target->device_index && !device->is_remote &&
                              strcmp(device->kind, target->kind) == 0;
        if (!is_other) continue;
        (*out_others)[count++] = (pen_device_options){.name = device->name,
                                                      .thread_count = device->threads,
                                                      .memory_bytes = device->bytes_limit,
                                                      .gpu = device->gpu,
                                                      .precision = run->job->numerics.precision,
                                                      .libraries = run->job->numerics.libraries};
    }
    *out_count = count;
    return PEN_OK;
}

static pen_status profile_run_steps(profile_run *run, const pen_profile_target *target,
                                    pen_profiler *profiler) {
    const profile_options *options = run->options;
    pen_device_options *others;
    uint32_t count;
    PEN_TRY(profile_find_others(run, target, &others, &count));
    return pen_profiler_run_steps(profiler, (uint32_t)options->steps, others, count);
}

// `meters` NULL: on this machine, where whole steps may run, too. What is measured stays, whatever
// comes.
static pen_status profile_measure(profile_run *run, const pen_profile_target *targets,
                                  pen_profiler *const *profilers, uint32_t count,
                                  const pen_profile_meter *meters) {
    const profile_options *options = run->options;
    const bool runs_steps = (options->check || options->in_step) && meters == NULL;
    const pen_profile_options profile = {.meters = meters,
                                         .repeat = options->repeat,
                                         .time_limit = options->time_limit,
                                         .operator_time_limit = options->operator_time,
                                         .progress = profile_show_progress};
    const pen_status status = pen_profiler_measure(profilers, count, &profile, run->costs.table);
    if (status != PEN_OK) return pen_status_join(status, pen_cost_file_save(&run->costs));
    for (uint32_t p = 0; p < count; p++) {
        pen_profile_summary summary;
        if (runs_steps) PEN_TRY(profile_run_steps(run, &targets[p], profilers[p]));
        PEN_TRY(pen_profiler_summarize(profilers[p], &summary));
        if (runs_steps && options->in_step) {
            PEN_TRY(pen_profiler_store_steps(profilers[p], run->costs.table));
        }
        profile_show(run, &targets[p], &summary);
    }
    return pen_cost_file_save(&run->costs);
}

static pen_status profile_open(profile_run *run, const pen_profile_target *target,
                               pen_profiler **out_profiler) {
    run->context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(
        pen_profiler_create(run->job, pen_dataset_get_info(run->dataset), target, out_profiler));
    run->context->input_exit_code = PEN_EXIT_SPEC;
    return PEN_OK;
}

// One device at a time: two would take each other's cores.
static pen_status profile_here(profile_run *run) {
    for (uint32_t t = 0; t < run->targets.count - run->targets.remote_count; t++) {
        const pen_profile_target *target = &run->targets.items[t];
        pen_profiler *profiler;
        PEN_TRY(profile_open(run, target, &profiler));
        const pen_status status = profile_measure(run, target, &profiler, 1, NULL);
        pen_profiler_destroy(profiler);
        PEN_TRY(status);
    }
    return PEN_OK;
}

// ---- on other machines

// A target whose worker measures.
typedef struct profile_seat {
    pen_survey_crew *crew;
    uint32_t seat;
    pen_survey_order order; // that was given last
} profile_seat;

static void profile_ask_rates(void *context) {
    profile_seat *seat = context;
    seat->order = (pen_survey_order){.kind = PEN_SURVEY_RATES, .device = seat->seat};
    pen_survey_crew_order(seat->crew, &seat->order);
}

static pen_status profile_await_rates(void *context, pen_device_rates *out_rates,
                                      pen_status *out_failure) {
    const profile_seat *seat = context;
    pen_survey_answer answer;
    PEN_TRY(pen_survey_crew_await(seat->crew, &seat->order, &answer, out_failure));
    *out_rates =
        (pen_device_rates){.flops = answer.figures[0], .memory_bandwidth = answer.figures[1]};
    return PEN_OK;
}

static void profile_ask_node(void *context, pen_node_id node, double seconds) {
    profile_seat *seat = context;
    seat->order = (pen_survey_order){
        .kind = PEN_SURVEY_NODE, .device = seat->seat, .node = node.index, .seconds = seconds};
    pen_survey_crew_order(seat->crew, &seat->order);
}

static pen_status profile_await_node(void *context, pen_op_measurement *out_measured,
                                     pen_status *out_failure) {
    const profile_seat *seat = context;
    pen_survey_answer answer;
    PEN_TRY(pen_survey_crew_await(seat->crew, &seat->order, &answer, out_failure));
    *out_measured = (pen_op_measurement){.seconds = answer.figures[0],
                                         .workspace_bytes = (uint64_t)answer.figures[1],
                                         .runs = (uint32_t)answer.figures[2]};
    return PEN_OK;
}

static pen_status profile_call(profile_run *run, pen_profiler **profilers,
                               pen_survey_crew **out_crew) {
    const uint32_t first = run->targets.count - run->targets.remote_count;
    pen_survey_seat *asked;
    PEN_TRY(PEN_NEW(run->context->arena, run->targets.remote_count, &asked));
    for (uint32_t s = 0; s < run->targets.remote_count; s++) {
        const pen_profile_target *target = &run->targets.items[first + s];
        PEN_TRY(profile_open(run, target, &profilers[s]));
        asked[s].device = target->device_index;
        PEN_TRY(pen_profiler_describe(profilers[s], &asked[s].part));
    }
    const pen_survey_crew_options options = {.job = run->job,
                                             .cluster = run->targets.cluster,
                                             .seats = asked,
                                             .seat_count = run->targets.remote_count,
                                             .survey = PEN_RUN_SURVEY_OPERATORS,
                                             .is_insecure = run->options->insecure};
    return pen_survey_crew_create(&options, out_crew);
}

// Seats from `first`, which are all of different hosts.
static pen_status profile_ask_round(profile_run *run, pen_profiler *const *profilers,
                                    uint32_t first, uint32_t count, pen_survey_crew *crew) {
    const uint32_t before = run->targets.count - run->targets.remote_count;
    profile_seat *seats;
    pen_profile_meter *meters;
    PEN_TRY(PEN_NEW(run->context->arena, count, &seats));
    PEN_TRY(PEN_NEW(run->context->arena, count, &meters));
    for (uint32_t s = 0; s < count; s++) {
        seats[s] = (profile_seat){.crew = crew, .seat = first + s};
        meters[s] = (pen_profile_meter){.context = &seats[s],
                                        .ask_rates = profile_ask_rates,
                                        .await_rates = profile_await_rates,
                                        .ask_node = profile_ask_node,
                                        .await_node = profile_await_node};
    }
    return profile_measure(run, &run->targets.items[before + first], profilers + first, count,
                           meters);
}

static bool profile_has_host(const pen_profile_target *targets, uint32_t count, const char *host) {
    for (uint32_t t = 0; t < count; t++) {
        if (strcmp(targets[t].host_name, host) == 0) return true;
    }
    return false;
}

// Hosts measure at the same time, as they will compute; a host its devices one after another.
static pen_status profile_ask_all(profile_run *run, pen_profiler *const *profilers,
                                  pen_survey_crew *crew) {
    const uint32_t remote = run->targets.remote_count;
    const pen_profile_target *targets = &run->targets.items[run->targets.count - remote];
    for (uint32_t first = 0, count; first < remote; first += count) {
        count = 1;
        while (first + count < remote &&
               !profile_has_host(&targets[first], count, targets[first + count].host_name))
            count++;
        PEN_TRY(profile_ask_round(run, profilers, first, count, crew));
    }
    return PEN_OK;
}

// Workers are called once for all devices of other machines.
static pen_status profile_there(profile_run *run) {
    pen_profiler **profilers;
    pen_survey_crew *crew = NULL;
    if (run->targets.remote_count == 0) return PEN_OK;
    if (run->options->check || run->options->in_step) {
        pen_log(PEN_LOG_WARNING, "whole steps run on this machine alone: on others, operators are "
                                 "measured one at a time");
    }
    PEN_TRY(PEN_NEW(run->context->arena, run->targets.remote_count, &profilers));
    pen_status status = profile_call(run, profilers, &crew);
    if (status == PEN_OK) status = profile_ask_all(run, profilers, crew);
    pen_survey_crew_destroy(crew);
    for (uint32_t s = 0; s < run->targets.remote_count; s++) {
        pen_profiler_destroy(profilers[s]);
    }
    return status;
}

// ---- all

static pen_status profile_targets(profile_run *run) {
    PEN_TRY(profile_here(run));
    return profile_there(run);
}

static pen_status profile_all(profile_run *run) {
    pen_arena *arena = run->context->arena;
    PEN_TRY(pen_command_open_job(run->context, run->options->common.operands[0], &run->job));
    PEN_TRY(pen_profile_find_targets(run->job, run->options->device, arena, &run->targets));
    PEN_TRY(pen_cost_file_open(run->context, run->job, run->options->output, &run->costs));
    PEN_TRY(pen_job_open_dataset(run->job, PEN_DATASET_PART_TRAIN, arena, &run->dataset));
    if (!run->options->common.json) {
        PEN_TRY(profile_targets(run));
        if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
        return PEN_OK;
    }
    pen_command_begin_json(&run->json, "profile");
    pen_json_key_array(&run->json, "devices");
    const pen_status status = profile_targets(run);
    if (status != PEN_OK) return pen_command_fail_json(run->context, &run->json, status);
    pen_json_end_array(&run->json);
    pen_json_end_object(&run->json);
    return pen_json_finish(&run->json);
}

static pen_status profile_run_verb(pen_command_context *context, const void *options) {
    profile_run run = {.context = context, .options = options};
    const pen_status status = profile_all(&run);
    pen_dataset_close(run.dataset);
    return status;
}

static const pen_cli_option profile_cli_options[] = {
    PEN_CLI_VALUE('o', "output", "FILE", PATH, profile_options, output,
                  "cost table to add to, made if need be; else the job's `costs`"),
    PEN_CLI_VALUE(0, "device", "NAME", TEXT, profile_options, device,
                  "measure on this device alone"),
    PEN_CLI_FLAG(0, "repeat", profile_options, repeat, "measure again what the table has"),
    PEN_CLI_VALUE(0, "time-limit", "T", SECONDS, profile_options, time_limit,
                  "begin no operator after this long, on each device"),
    PEN_CLI_VALUE(0, "operator-time", "T", SECONDS, profile_options, operator_time,
                  "repeat each operator for this long", .default_text = "100ms"),
    PEN_CLI_FLAG(0, "check", profile_options, check, "run whole steps too, and compare"),
    PEN_CLI_FLAG(0, "in-step", profile_options, in_step,
                 "write times of operators as they are in whole steps"),
    PEN_CLI_VALUE(0, "steps", "N", INTEGER, profile_options, steps, "whole steps to run",
                  PEN_OPTION_RANGE(1, 1000), .default_text = "20"),
    PEN_CLI_VALUE(0, "top", "N", INTEGER, profile_options, top, "operators to print",
                  PEN_OPTION_RANGE(0, 1000000), .default_text = "20"),
    PEN_CLI_FLAG(0, "insecure", profile_options, insecure,
                 "ask workers on other machines without TLS"),
};

const pen_command pen_command_profile = {
    .name = "profile",
    .summary = "measure the operators of a job on its devices",
    .table = {PEN_CLI_OPERANDS("JOB", 1, 1), PEN_CLI_OPTIONS(profile_cli_options),
              .takes_job = true,
              .details =
                  "Operators are measured one at a time, so the model may be larger than this "
                  "machine. A table that exists is kept: only what it lacks is measured. With "
                  "--in-step it gets the times that operators had within whole training steps, "
                  "for planning anew. Devices on other machines are measured by the workers that "
                  "the job names.\n",
              .examples = "penstock profile -o costs.yaml job.yaml\n"
                          "penstock profile --in-step -o costs.yaml job.yaml\n"},
    .connects = true,
    .options_bytes = sizeof(profile_options),
    .run = profile_run_verb,
};
