#include "scheduler/measure/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/name_map.h"
#include "base/sets/order.h"
#include "base/system/machine.h"
#include "device/measure_fill.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "partition/costs/cost_key.h"
#include "scheduler/job/job_runner.h"

#define PROFILE_WARM_STEPS 3
#define PROFILE_STEPS_LIMIT 1000
#define PROFILE_SHARE_MINIMUM 0.01 // of a step: smaller operators are not judged one by one
#define PROFILE_TEXT_BYTES 512

struct pen_profiler {
    const pen_job *job;
    pen_profile_target target;
    pen_arena *arena;
    pen_step_runner runner;       // its executor is made when steps run
    const pen_measure_step *step; // the program's reuse of values
    bool wants_rates;             // the table lacks them
    double cores; // that this process gets while the device computes; 0: as many as it uses
    uint32_t row_count;
    pen_profile_row *rows; // [row_count], in the order of their first nodes
    uint32_t *row_of;      // [order_count]; PEN_NAME_MAP_NONE: takes no time
    uint32_t node_count;   // that run
    uint32_t step_count;   // that were measured
    double *node_seconds;  // [order_count], medians
    double step_seconds;   // median
    pen_executor_memory memory;
    uint64_t resident_bytes_peak;
};

// ---- the program and its operators

static pen_status profile_open(pen_profiler *profiler) {
    const pen_profile_target *target = &profiler->target;
    const pen_device_kind *kind;
    PEN_TRY(pen_device_kind_find(target->kind, &kind));
    const pen_device_options options = {.name = target->device,
                                        .thread_count = target->threads,
                                        .memory_bytes = target->memory_bytes,
                                        .gpu = target->gpu,
                                        .only_sizes = target->is_remote && kind->has_own_memory,
                                        .precision = profiler->job->numerics.precision,
                                        .libraries = profiler->job->numerics.libraries};
    PEN_TRY(kind->open(&options, &profiler->runner.device));
    pen_log_lines(PEN_LOG_WARNING, pen_device_lacks(profiler->runner.device));
    return PEN_OK;
}

// Figures are kept by what the job calls the model: it must be what is measured.
static pen_status profile_check_model(const pen_profiler *profiler) {
    const pen_profile_target *target = &profiler->target;
    pen_device *device = profiler->runner.device;
    const char *found;
    if (target->model == NULL || target->is_remote) return PEN_OK; // there, another has it
    PEN_TRY(device->kind->identify(device, profiler->arena, &found));
    const size_t length = strcspn(found, ",");
    if (strlen(target->model) == length && strncmp(target->model, found, length) == 0) {
        return PEN_OK;
    }
    const pen_cluster_spec *cluster = &profiler->job->cluster;
    return pen_cluster_spec_blame(
        cluster, &cluster->devices[target->device_index].written->model,
        pen_error(PEN_INVALID_INPUT, "device '%s' is '%.*s', and the job calls its model '%s'",
                  target->device, (int)length, found, target->model));
}

static pen_status profile_compile(pen_profiler *profiler, const pen_dataset_info *info) {
    pen_compile_request request;
    PEN_TRY(pen_job_compile_request(profiler->job, PEN_DATASET_PART_TRAIN, info, profiler->arena,
                                    &request));
    profiler->runner.microbatch_count = (uint32_t)profiler->job->train.microbatches;
    profiler->runner.lanes = (uint32_t)profiler->job->train.lanes;
    request.device = profiler->runner.device;
    PEN_TRY(pen_compile(&request, &profiler->runner.program));
    const pen_program *program = profiler->runner.program;
    const pen_measure_program measured = {.graph = program->graph,
                                          .order = program->order,
                                          .order_count = program->order_count,
                                          .kept = program->kept,
                                          .kept_count = program->kept_count};
    return pen_measure_step_build(profiler->runner.device, &measured, profiler->arena,
                                  &profiler->step);
}

static bool profile_is_free(const pen_graph *graph, pen_node_id node) {
    return pen_graph_node(graph, node)->op->is_view ||
           (pen_node_flops(graph, node) == 0 && pen_node_bytes(graph, node) == 0);
}

// Nodes with equal cost keys share a row and are measured once. Nodes before the updates run once
// for each microbatch.
static pen_status profile_find_row(pen_profiler *profiler, pen_name_map *map, uint32_t position) {
    const pen_program *program = profiler->runner.program;
    const pen_node_id id = program->order[position];
    const char *op = pen_graph_node(program->graph, id)->op->name;
    const char *shape, *name;
    PEN_TRY(pen_cost_key(program->graph, id, profiler->arena, &shape));
    PEN_TRY(pen_arena_format(profiler->arena, &name, "%s %s", op, shape));
    uint32_t row = pen_name_map_find(map, name);
    if (row == PEN_NAME_MAP_NONE) {
        row = profiler->row_count++;
        PEN_TRY(pen_name_map_add(map, name, row));
        profiler->rows[row] = (pen_profile_row){
            .op = op,
            .shape = shape,
            .node = id,
            .runs_per_step =
                position < program->update_first ? profiler->runner.microbatch_count : 1};
    }
    profiler->rows[row].node_count += 1;
    profiler->row_of[position] = row;
    profiler->node_count += 1;
    return PEN_OK;
}

static pen_status profile_find_rows(pen_profiler *profiler) {
    const pen_program *program = profiler->runner.program;
    pen_name_map map;
    pen_name_map_init(&map, profiler->arena);
    PEN_TRY(PEN_NEW(profiler->arena, program->order_count, &profiler->rows));
    PEN_TRY(PEN_NEW(profiler->arena, program->order_count, &profiler->row_of));
    PEN_TRY(PEN_NEW(profiler->arena, program->order_count, &profiler->node_seconds));
    for (uint32_t p = 0; p < program->order_count; p++) {
        profiler->row_of[p] = PEN_NAME_MAP_NONE;
        if (profile_is_free(program->graph, program->order[p])) continue;
        PEN_TRY(profile_find_row(profiler, &map, p));
    }
    return PEN_OK;
}

pen_status pen_profiler_create(const pen_job *job, const pen_dataset_info *info,
                               const pen_profile_target *target, pen_profiler **out_profiler) {
    pen_profiler *profiler = pen_memory_allocate(1, sizeof *profiler);
    if (profiler == NULL) return pen_error_out_of_memory();
    profiler->job = job;
    profiler->target = *target;
    pen_status status = pen_arena_create(&profiler->arena);
    if (status == PEN_OK) status = profile_open(profiler);
    if (status == PEN_OK) status = profile_check_model(profiler);
    if (status == PEN_OK) status = profile_compile(profiler, info);
    if (status == PEN_OK) status = profile_find_rows(profiler);
    if (status != PEN_OK) {
        pen_profiler_destroy(profiler);
        return status;
    }
    *out_profiler = profiler;
    return PEN_OK;
}

void pen_profiler_destroy(pen_profiler *profiler) {
    if (profiler == NULL) return;
    pen_executor_destroy(profiler->runner.executor);
    pen_program_destroy(profiler->runner.program);
    if (profiler->runner.device != NULL)
        profiler->runner.device->kind->close(profiler->runner.device);
    pen_arena_destroy(profiler->arena);
    pen_memory_free(profiler);
}

pen_status pen_profiler_describe(pen_profiler *profiler, const pen_part **out_part) {
    const pen_program *program = profiler->runner.program;
    pen_part_list *list;
    pen_part *part;
    pen_graph *graph; // which is only read
    memcpy(&graph, &program->graph, sizeof graph);
    PEN_TRY(PEN_NEW(profiler->arena, 1, &list));
    PEN_TRY(PEN_NEW(profiler->arena, 1, &part));
    *list = (pen_part_list){.kind = PEN_TASK_FORWARD, .end = program->order_count};
    *part = (pen_part){.graph = graph,
                       .order = program->order,
                       .order_count = program->order_count,
                       .lists = list,
                       .list_count = 1,
                       .kept = program->kept,
                       .kept_count = program->kept_count};
    *out_part = part;
    return PEN_OK;
}

// ---- operators, one at a time

// On the profiler's own device. Without memory nothing else can be measured either.
static pen_status profile_measure_here(pen_profiler *profiler, pen_node_id node, double seconds,
                                       pen_op_measurement *out_measured, pen_status *out_failure) {
    const pen_measure_options options = {
        .step = profiler->step, .time_limit = seconds, .cores = profiler->cores};
    const pen_status status = pen_measure_op(
        profiler->runner.device, profiler->runner.program->graph, node, &options, out_measured);
    if (pen_status_get_code(status) == PEN_OUT_OF_MEMORY) return status;
    *out_failure = status;
    return PEN_OK;
}

static bool profile_wants_rates(const pen_profiler *profiler, const pen_cost_table *table,
                                const pen_profile_options *options) {
    const pen_profile_target *target = &profiler->target;
    return options->repeat ||
           pen_cost_table_find_rates_at(table, target->host_name, target->cost_kind,
                                        target->cost_threads) == NULL;
}

static pen_status profile_take_rates(pen_profiler *profiler, const pen_profile_meter *meter,
                                     pen_cost_table *table) {
    const pen_profile_target *target = &profiler->target;
    pen_device_rates rates;
    pen_status failure = PEN_OK;
    if (meter == NULL) {
        PEN_TRY(pen_measure_rates(profiler->runner.device, profiler->cores, &rates));
    } else {
        PEN_TRY(meter->await_rates(meter->context, &rates, &failure));
        PEN_TRY(failure);
    }
    return pen_cost_table_set_rates(table,
                                    &(pen_cost_rates){.kind = target->cost_kind,
                                                      .threads = target->cost_threads,
                                                      .flops = rates.flops,
                                                      .memory_bandwidth = rates.memory_bandwidth,
                                                      .host = target->host_name});
}

// Keeps what went wrong with one operator; the others are measured all the same.
static pen_status profile_keep_failure(pen_profiler *profiler, pen_profile_row *row,
                                       pen_status status) {
    char text[PROFILE_TEXT_BYTES];
    pen_status_format(status, text, sizeof text);
    pen_status_ignore(status, "kept as text in the row");
    text[strcspn(text, "\n")] = '\0';
    return pen_arena_copy_text(profiler->arena, text, strlen(text), &row->failure);
}

// From the meter, which was asked, or measured here; into the table.
static pen_status profile_take_row(pen_profiler *profiler, const pen_profile_meter *meter,
                                   pen_profile_row *row, double seconds, pen_cost_table *table) {
    pen_op_measurement measured = {0};
    pen_status failure = PEN_OK;
    PEN_TRY(meter == NULL ? profile_measure_here(profiler, row->node, seconds, &measured, &failure)
                          : meter->await_node(meter->context, &measured, &failure));
    if (failure != PEN_OK) return profile_keep_failure(profiler, row, failure);
    row->is_measured = row->is_fresh = true;
    row->seconds = measured.seconds;
    row->workspace_bytes = measured.workspace_bytes;
    return pen_cost_table_set(table, &(pen_cost_entry){.op = row->op,
                                                       .shape = row->shape,
                                                       .kind = profiler->target.cost_kind,
                                                       .threads = profiler->target.cost_threads,
                                                       .seconds = measured.seconds,
                                                       .workspace_bytes = measured.workspace_bytes,
                                                       .runs = measured.runs,
                                                       .host = profiler->target.host_name});
}

// What the table has is not measured again unless asked.
static void profile_find_row_cost(pen_profiler *profiler, uint32_t r, const pen_cost_table *table,
                                  const pen_profile_options *options) {
    const pen_profile_target *target = &profiler->target;
    pen_profile_row *row = &profiler->rows[r];
    const pen_cost_entry *entry = pen_cost_table_find_at(
        table, target->host_name, row->op, row->shape, target->cost_kind, target->cost_threads);
    row->is_wanted = entry == NULL || options->repeat;
    if (row->is_wanted) return;
    row->is_measured = true;
    row->seconds = entry->seconds;
    row->workspace_bytes = entry->workspace_bytes;
}

static void profile_ask_row(pen_profiler *profiler, const pen_profile_meter *meter, uint32_t r,
                            const pen_profile_options *options) {
    const pen_profile_row *row = &profiler->rows[r];
    if (options->progress != NULL) {
        options->progress(options->progress_context, row, r, profiler->row_count);
    }
    if (meter != NULL) meter->ask_node(meter->context, row->node, options->operator_time_limit);
}

// NULL: the profiler's own device measures.
static const pen_profile_meter *profile_meter(const pen_profile_options *options, uint32_t p) {
    return options->meters == NULL ? NULL : &options->meters[p];
}

static pen_status profile_measure_rates(pen_profiler *const *profilers, uint32_t count,
                                        const pen_profile_options *options, pen_cost_table *table) {
    for (uint32_t p = 0; p < count; p++) {
        const pen_profile_meter *meter = profile_meter(options, p);
        profilers[p]->wants_rates = profile_wants_rates(profilers[p], table, options);
        if (profilers[p]->wants_rates && meter != NULL) meter->ask_rates(meter->context);
    }
    for (uint32_t p = 0; p < count; p++) {
        const pen_profile_meter *meter = profile_meter(options, p);
        if (profilers[p]->wants_rates) PEN_TRY(profile_take_rates(profilers[p], meter, table));
    }
    return PEN_OK;
}

// The r-th operator of each profiler.
static pen_status profile_measure_rows(pen_profiler *const *profilers, uint32_t count, uint32_t r,
                                       const pen_profile_options *options, pen_cost_table *table) {
    const double seconds = options->operator_time_limit;
    for (uint32_t p = 0; p < count; p++) {
        const pen_profile_meter *meter = profile_meter(options, p);
        if (r >= profilers[p]->row_count || !profilers[p]->rows[r].is_wanted) continue;
        profile_ask_row(profilers[p], meter, r, options);
    }
    for (uint32_t p = 0; p < count; p++) {
        const pen_profile_meter *meter = profile_meter(options, p);
        if (r >= profilers[p]->row_count || !profilers[p]->rows[r].is_wanted) continue;
        pen_profile_row *row = &profilers[p]->rows[r];
        PEN_TRY(profile_take_row(profilers[p], meter, row, seconds, table));
    }
    return PEN_OK;
}

// Past the time limit the rest is left as it is, and counted.
pen_status pen_profiler_measure(pen_profiler *const *profilers, uint32_t count,
                                const pen_profile_options *options, pen_cost_table *table) {
    const double started = pen_clock_seconds();
    uint32_t most = 0;
    for (uint32_t p = 0; p < count; p++) {
        most = profilers[p]->row_count > most ? profilers[p]->row_count : most;
        if (options->meters != NULL) continue;
        PEN_TRY(pen_measure_cores(profilers[p]->target.threads, &profilers[p]->cores));
    }
    PEN_TRY(profile_measure_rates(profilers, count, options, table));
    for (uint32_t r = 0; r < most; r++) {
        const bool is_late =
            options->time_limit > 0 && pen_clock_seconds() - started > options->time_limit;
        for (uint32_t p = 0; p < count; p++) {
            if (r < profilers[p]->row_count) profile_find_row_cost(profilers[p], r, table, options);
        }
        if (!is_late) PEN_TRY(profile_measure_rows(profilers, count, r, options, table));
    }
    return PEN_OK;
}

// ---- whole steps

// `samples` are [steps][order_count + 1]: the last of each is the whole step.
static pen_status profile_take_medians(pen_profiler *profiler, const double *samples,
                                       uint32_t steps) {
    const pen_program *program = profiler->runner.program;
    const uint32_t width = program->order_count + 1;
    double *column;
    PEN_TRY(PEN_NEW(profiler->arena, steps, &column));
    for (uint32_t p = 0; p < width; p++) {
        for (uint32_t s = 0; s < steps; s++) {
            column[s] = samples[(size_t)s * width + p];
        }
        const double median = pen_median(column, steps);
        if (p == program->order_count) {
            profiler->step_seconds = median;
        } else {
            const bool is_repeated = p < program->update_first;
            profiler->node_seconds[p] =
                is_repeated ? median / profiler->runner.microbatch_count : median;
        }
    }
    profiler->step_count = steps;
    return PEN_OK;
}

static pen_status profile_sample_steps(pen_profiler *profiler, uint32_t step_count) {
    const uint32_t width = profiler->runner.program->order_count + 1;
    double *samples, *warm;
    double unused;
    PEN_TRY(PEN_NEW(profiler->arena, width, &warm));
    PEN_TRY(PEN_NEW(profiler->arena, (size_t)step_count * width, &samples));
    pen_step_runner *runner = &profiler->runner;
    pen_executor_time_nodes(runner->executor, warm);
    for (uint64_t s = 0; s < PROFILE_WARM_STEPS; s++) {
        PEN_TRY(pen_step_runner_run(runner, s + 1, &unused));
    }
    for (uint32_t s = 0; s < step_count; s++) {
        double *sample = samples + (size_t)s * width;
        pen_executor_time_nodes(runner->executor, sample);
        PEN_TRY(pen_step_runner_run(runner, PROFILE_WARM_STEPS + s + 1, &sample[width - 1]));
    }
    pen_executor_time_nodes(runner->executor, NULL);
    return profile_take_medians(profiler, samples, step_count);
}

static void profile_sum_rows(pen_profiler *profiler) {
    for (uint32_t r = 0; r < profiler->row_count; r++) {
        profiler->rows[r].seconds_in_step = 0;
    }
    for (uint32_t p = 0; p < profiler->runner.program->order_count; p++) {
        if (profiler->row_of[p] == PEN_NAME_MAP_NONE) continue;
        pen_profile_row *row = &profiler->rows[profiler->row_of[p]];
        row->seconds_in_step += profiler->node_seconds[p] / row->node_count;
    }
}

// One step goes first, so that what the process has resident is without company.
pen_status pen_profiler_run_steps(pen_profiler *profiler, uint32_t step_count,
                                  const pen_device_options *others, uint32_t other_count) {
    pen_step_company *company = NULL;
    double unused;
    PEN_ASSERT(step_count > 0 && step_count <= PROFILE_STEPS_LIMIT);
    PEN_TRY(pen_step_runner_open(&profiler->runner));
    PEN_TRY(pen_step_runner_run(&profiler->runner, 1, &unused));
    profiler->memory = pen_executor_get_memory(profiler->runner.executor);
    profiler->resident_bytes_peak = pen_machine_resident_peak();
    PEN_TRY(pen_step_company_start(&profiler->runner, others, other_count, &company));
    const pen_status status = profile_sample_steps(profiler, step_count);
    PEN_TRY(pen_status_join(status, pen_step_company_end(company)));
    profile_sum_rows(profiler);
    return PEN_OK;
}

// Times that operators have within a step take the place of those that the table has.
pen_status pen_profiler_store_steps(const pen_profiler *profiler, pen_cost_table *table) {
    const pen_profile_target *target = &profiler->target;
    for (uint32_t r = 0; r < profiler->row_count; r++) {
        const pen_profile_row *row = &profiler->rows[r];
        if (row->seconds_in_step <= 0) continue; // too short for the clock: what is known stays
        const pen_cost_entry *known = pen_cost_table_find_at(
            table, target->host_name, row->op, row->shape, target->cost_kind, target->cost_threads);
        PEN_TRY(pen_cost_table_set(
            table, &(pen_cost_entry){.op = row->op,
                                     .shape = row->shape,
                                     .kind = target->cost_kind,
                                     .threads = target->cost_threads,
                                     .seconds = row->seconds_in_step,
                                     .workspace_bytes = known == NULL ? row->workspace_bytes
                                                                      : known->workspace_bytes,
                                     .runs = profiler->step_count,
                                     .host = target->host_name}));
    }
    return PEN_OK;
}

// ---- the summary

static double profile_step_share(const pen_profile_row *row) {
    const double seconds = row->is_measured ? row->seconds : row->seconds_in_step;
    return seconds * row->node_count * row->runs_per_step;
}

static int profile_compare_rows(const void *a, const void *b) {
    const pen_profile_row *left = a, *right = b;
    const double x = profile_step_share(left), y = profile_step_share(right);
    if (x != y) return x < y ? 1 : -1;
    return left->node.index < right->node.index ? -1 : 1;
}

// Two errors: of all operators weighted by their time, which says how far a step is off, and the
// mean over those that matter, which says how good the costs are.
static void profile_judge(const pen_profiler *profiler, pen_profile_summary *summary) {
    double difference = 0, relative = 0;
    uint32_t judged = 0;
    for (uint32_t p = 0; p < profiler->runner.program->order_count; p++) {
        if (profiler->row_of[p] == PEN_NAME_MAP_NONE) continue;
        const pen_profile_row *row = &profiler->rows[profiler->row_of[p]];
        if (!row->is_measured) continue;
        difference += fabs(row->seconds - profiler->node_seconds[p]) * row->runs_per_step;
        summary->seconds_in_step += profiler->node_seconds[p] * row->runs_per_step;
    }
    if (summary->seconds_in_step <= 0) return;
    summary->error_weighted = difference / summary->seconds_in_step;
    for (uint32_t r = 0; r < profiler->row_count; r++) {
        const pen_profile_row *row = &profiler->rows[r];
        const double spent = row->seconds_in_step * row->node_count * row->runs_per_step;
        if (!row->is_measured || spent < PROFILE_SHARE_MINIMUM * summary->seconds_in_step) continue;
        relative += fabs(row->seconds / row->seconds_in_step - 1);
        judged += 1;
    }
    if (judged > 0) summary->error_mean = relative / judged;
}

// A copy of the rows, sorted by time: the profiler's own order stays that of the table.
pen_status pen_profiler_summarize(pen_profiler *profiler, pen_profile_summary *out_summary) {
    pen_profile_row *rows;
    PEN_TRY(PEN_NEW(profiler->arena, profiler->row_count, &rows));
    pen_profile_summary summary = {.node_count = profiler->node_count,
                                   .row_count = profiler->row_count,
                                   .rows = rows,
                                   .step_count = profiler->step_count,
                                   .step_seconds = profiler->step_seconds,
                                   .memory = profiler->memory,
                                   .resident_bytes_peak = profiler->resident_bytes_peak};
    for (uint32_t r = 0; r < profiler->row_count; r++) {
        const pen_profile_row *row = &profiler->rows[r];
        rows[r] = *row;
        summary.fresh_count += row->is_fresh;
        summary.kept_count += row->is_measured && !row->is_fresh;
        summary.failed_count += row->failure != NULL;
        summary.left_count += !row->is_measured && row->failure == NULL;
        if (row->is_measured) {
            summary.seconds_predicted += row->seconds * row->node_count * row->runs_per_step;
        }
    }
    if (profiler->step_count > 0) profile_judge(profiler, &summary);
    if (profiler->row_count > 0) {
        qsort(rows, profiler->row_count, sizeof *rows, profile_compare_rows);
    }
    *out_summary = summary;
    return PEN_OK;
}
