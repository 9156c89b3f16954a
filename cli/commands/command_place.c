// penstock place: only the placement problem, for benchmarks.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/system/file.h"
#include "cli/command.h"
#include "partition/problem/problem_build.h"
#include "partition/problem/workload.h"
#include "partition/strategies/strategies.h"

typedef struct place_options {
    pen_cli_common common;
    const char *strategy;
    uint32_t objective; // of place_objectives
    bool contiguous;
    double time_limit;
    int64_t seed;
    int64_t threads;
    const char *placement;
    const char *output;
} place_options;

// What was found, and how long it took.
typedef struct place_result {
    const pen_workload *workload;
    const pen_placement *placement;
    const pen_strategy *strategy;
    double seconds;
} place_result;

// The work of a search follows from the time limit, not from the clock, so that equal seeds give
// equal placements on any machine. It is what an idle machine of two cores does in that time.
#define PLACE_THREADS 2           // that search: each has a seed, so their number decides, too
#define PLACE_WORK_SHARE 0.85     // of the limit, for the search; the rest is for starts and checks
#define PLACE_READ_SECONDS 2e-6   // nominal, for each node and edge in the file
#define PLACE_READ_SHARE_MOST 0.5 // of the limit
// On a machine that is slower or has other things to do, the clock ends it all the same: so much
// after the limit, and then the answer says so.
#define PLACE_CUT_SECONDS 30.0
#define PLACE_CUT_FACTOR 10.0

// A workload has no schedule, so no step time.
static const char *const place_objective_names[] = {"throughput", "latency", "traffic", NULL};
static const pen_objective place_objectives[] = {PEN_OBJECTIVE_THROUGHPUT, PEN_OBJECTIVE_LATENCY,
                                                 PEN_OBJECTIVE_TRAFFIC};

static pen_status place_write_file(const place_options *options, const place_result *result) {
    pen_file *file = NULL;
    pen_json_writer json;
    pen_status status = pen_file_create_beside(options->output, &file);
    if (status != PEN_OK) goto done;
    pen_json_init_file(&json, pen_file_stream(file), 1);
    pen_json_begin_object(&json);
    pen_workload_write_placement(result->workload, result->placement->device_of_node, &json);
    pen_json_end_object(&json);
    status = pen_json_finish(&json);
    if (status != PEN_OK) goto done;
    status = pen_file_commit(file);
done:
    return pen_status_join(status, pen_file_close(file));
}

// Whether there is a gap to speak of: none is known above a bound of nothing.
static bool place_has_gap(const pen_placement *placement) {
    return placement->lower_bound > 0.0 || placement->value == 0.0;
}

static double place_gap(const pen_placement *placement) {
    return placement->lower_bound > 0.0 ? placement->value / placement->lower_bound - 1.0 : 0.0;
}

static void place_print_bound(const pen_placement *placement) {
    printf("lower bound  %.6f ms", placement->lower_bound);
    if (place_has_gap(placement)) printf(", gap %.2f%%", 100.0 * place_gap(placement));
    printf("\n");
}

#define PLACE_GAP_TOLD 0.05 // gaps above are explained

// What keeps the largest load from its bound, which knows neither transfers nor that nodes cannot
// be divided: what all loads are made of, and how far they are even.
static void place_print_reason(const place_options *options, const place_result *result) {
    const pen_placement *placement = result->placement;
    const pen_problem_given *given = &result->workload->given;
    double compute = 0.0, total = 0.0;
    if (options->objective != PEN_OBJECTIVE_THROUGHPUT || !(placement->value > 0.0)) return;
    if (!place_has_gap(placement) || place_gap(placement) <= PLACE_GAP_TOLD) return;
    for (uint32_t d = 0; d < given->device_count; d++)
        total += placement->load[d];
    for (uint32_t v = 0; v < given->node_count; v++) {
        const pen_problem_device *device = &given->devices[placement->device_of_node[v]];
        compute +=
            given->compute[(uint64_t)device->kind * given->node_count + v] * device->slowness;
    }
    printf("because      %.1f%% of the loads are transfers, and %.1f%% of the devices' time is "
           "waiting for the fullest\n",
           100.0 * (1.0 - compute / total),
           100.0 * (1.0 - total / given->device_count / placement->value));
}

// The form that the public benchmark's judge reads, with our own keys beside it.
static pen_status place_print_json(const place_options *options, const place_result *result) {
    pen_json_writer json;
    const pen_placement *placement = result->placement;
    pen_command_begin_json(&json, "place");
    pen_workload_write_placement(result->workload, placement->device_of_node, &json);
    pen_json_key_text(&json, "objective", place_objective_names[options->objective]);
    pen_json_key_bool(&json, "contiguous", options->contiguous);
    pen_json_key_number(&json, "value", placement->value);
    pen_json_key_number(&json, "lower_bound", placement->lower_bound);
    if (place_has_gap(placement)) pen_json_key_number(&json, "gap", place_gap(placement));
    pen_json_key_bool(&json, "cut", placement->is_cut);
    pen_json_key_number(&json, "seconds", result->seconds);
    pen_json_key_text(&json, "strategy", result->strategy->name);
    pen_json_key_integer(&json, "seed", options->seed);
    pen_json_key_array(&json, "devices");
    for (uint32_t d = 0; d < placement->device_count; d++) {
        pen_json_begin_object(&json);
        pen_json_key_number(&json, "load", placement->load[d]);
        pen_json_key_number(&json, "bytes", placement->bytes[d]);
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

// Workloads have milliseconds, so values are printed in these.
static pen_status place_print_text(const place_options *options, const place_result *result) {
    const pen_placement *placement = result->placement;
    const pen_problem_given *given = &result->workload->given;
    char seconds[PEN_QUANTITY_TEXT_BYTES], bytes[PEN_QUANTITY_TEXT_BYTES];
    char name[PEN_PROBLEM_NAME_BYTES];
    printf("strategy     %s\n", result->strategy->name);
    printf("objective    %s%s\n", place_objective_names[options->objective],
           options->contiguous ? ", contiguous" : "");
    printf("value        %.6f ms\n", placement->value);
    place_print_bound(placement);
    place_print_reason(options, result);
    printf("time         %s\n", pen_seconds_format(result->seconds, seconds));
    if (placement->is_cut) {
        printf("             the clock cut the search: another run may find another placement\n");
    }
    printf("\n");
    printf("%-18s %14s %12s\n", "device", "load [ms]", "memory");
    for (uint32_t d = 0; d < placement->device_count; d++) {
        printf("%-18s %14.6f %12s\n", pen_problem_device_name(given, d, name), placement->load[d],
               pen_bytes_format((uint64_t)placement->bytes[d], bytes));
    }
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

// The time limit is for the whole verb, as benchmarks measure it: what reading takes, by the size
// of the file, is taken off, but never more than half.
static double place_search_seconds(const pen_workload *workload, double time_limit) {
    const double items = (double)workload->given.node_count + (double)workload->given.edge_count;
    return time_limit - fmin(PLACE_READ_SECONDS * items, PLACE_READ_SHARE_MOST * time_limit);
}

// Reads, searches and times it all, from `begin` on.
static pen_status place_solve(pen_command_context *context, const place_options *options,
                              double begin, place_result *out_result) {
    pen_arena *arena = context->arena;
    pen_workload *workload;
    pen_problem *problem;
    pen_placement *placement;
    uint32_t *wished = NULL;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_strategy_find(options->strategy, arena, &out_result->strategy));
    if (options->placement != NULL && strcmp(options->strategy, "manual") != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "found --placement beside the strategy '%s', expected --strategy manual: "
                         "no other keeps to what is wished for",
                         options->strategy);
    }
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(pen_workload_read(options->common.operands[0], arena, &workload));
    workload->given.objective = place_objectives[options->objective];
    workload->given.is_contiguous = options->contiguous;
    PEN_TRY(pen_status_add_context(pen_problem_build(&workload->given, arena, &problem), "in %s",
                                   options->common.operands[0]));
    if (options->placement != NULL) {
        PEN_TRY(PEN_NEW(arena, workload->given.node_count, &wished));
        PEN_TRY(pen_workload_read_placement(workload, options->placement, arena, wished));
    }
    uint32_t threads = (uint32_t)options->threads;
    if (threads == 0) threads = PLACE_THREADS;
    const double limit = place_search_seconds(workload, options->time_limit);
    const pen_strategy_options strategy_options = {.seed = (uint64_t)options->seed,
                                                   .time_limit_seconds = limit,
                                                   .thread_count = threads,
                                                   .is_counted = true,
                                                   .begins_afresh = true,
                                                   .cut_seconds =
                                                       PLACE_CUT_SECONDS + PLACE_CUT_FACTOR * limit,
                                                   .work_share = PLACE_WORK_SHARE,
                                                   .device_of_node = wished};
    const pen_status status =
        pen_place(problem, out_result->strategy, &strategy_options, arena, &placement);
    if (pen_status_get_code(status) == PEN_UNSUPPORTED) context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_status_add_context(status, "in %s", options->common.operands[0]));
    out_result->workload = workload;
    out_result->placement = placement;
    out_result->seconds = pen_clock_seconds() - begin;
    return PEN_OK;
}

static pen_status place_run(pen_command_context *context, const void *options_given) {
    const place_options *options = options_given;
    place_result result = {0};
    PEN_TRY(place_solve(context, options, pen_clock_seconds(), &result));
    if (options->output != NULL) PEN_TRY(place_write_file(options, &result));
    return options->common.json ? place_print_json(options, &result)
                                : place_print_text(options, &result);
}

static const pen_cli_option place_cli_options[] = {
    PEN_CLI_VALUE(0, "strategy", "NAME", TEXT, place_options, strategy,
                  "auto, local_search, dynamic_programming, metis, greedy, round_robin, "
                  "random, manual, exhaustive",
                  .default_text = "auto"),
    PEN_CLI_VALUE(0, "objective", "NAME", CHOICE, place_options, objective,
                  "throughput: the largest load of a device; latency: one sample; "
                  "traffic: all that moves between devices",
                  .choices = place_objective_names, .default_text = "throughput"),
    PEN_CLI_FLAG(0, "contiguous", place_options, contiguous,
                 "the devices must have an acyclic order, as a pipeline needs"),
    PEN_CLI_VALUE(0, "time-limit", "TIME", SECONDS, place_options, time_limit,
                  "what an idle machine of two cores does in that time, reading included",
                  .default_text = "1 s", .minimum = PEN_OPTION_FROM(0.001)),
    PEN_CLI_VALUE(0, "seed", "N", INTEGER, place_options, seed,
                  "equal seeds give equal placements, on any machine", .default_text = "1",
                  .minimum = PEN_OPTION_FROM(0)),
    PEN_CLI_VALUE(0, "threads", "N", INTEGER, place_options, threads,
                  "that search: their number decides what is found, too; 0: two",
                  .default_text = "0", .minimum = PEN_OPTION_FROM(0)),
    PEN_CLI_VALUE(0, "placement", "FILE", TEXT, place_options, placement,
                  "devices wished for, for the strategy manual"),
    PEN_CLI_VALUE('o', "output", "FILE", TEXT, place_options, output, "write the placement there"),
};

const pen_command pen_command_place = {
    .name = "place",
    .summary = "place a weighted graph on devices",
    .table = {PEN_CLI_OPERANDS("WORKLOAD", 1, 1), PEN_CLI_OPTIONS(place_cli_options),
              .details =
                  "WORKLOAD is a JSON file of the public operator-placement benchmark. Exit code "
                  "5: it does not fit.\n",
              .examples =
                  "penstock place --contiguous --time-limit 5s -o placed.json workload.json\n"},
    .options_bytes = sizeof(place_options),
    .run = place_run,
};
