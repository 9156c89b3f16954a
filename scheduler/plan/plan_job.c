#include "scheduler/plan/plan_job.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system/machine.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "partition/costs/cost_table_file.h"
#include "scheduler/compile/model_pins.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/plan/kernel_sizes.h"
#include "scheduler/plan/plan_memory.h"
#include "scheduler/plan/plan_schedule.h"
#include "scheduler/plan/plan_seen.h"
#include "scheduler/plan/process_memory.h"
#include "scheduler/schedule/auto_schedule.h"
#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/schedule_step_time.h"

#define PLAN_THREADS_LIMIT 16
#define PLAN_SCHEDULES_LIMIT 8
#define PLAN_SCHEDULE_GAIN 1e-3 // a schedule must be so much faster to be taken in place of another
#define PLAN_SCHEDULE_WORK 4000000u // of the search for one, in tasks simulated
#define PLAN_AUTO "auto"

struct pen_plan_job {
    const pen_job *job;
    const pen_plan_job_options *options; // while it is created
    pen_arena *arena;
    pen_dataset *dataset;         // NULL: what is known of the data was given, or there is none
    const pen_dataset_info *info; // NULL: the data is not on this machine
    pen_device *device;
    const pen_program *program;
    pen_placement_spec placement;
    pen_planned_graph planned;
    pen_kernel_sizes *sizes;
    pen_plan_request request;
    const char *schedule; // NULL: all are tried
    const char *schedule_names[PLAN_SCHEDULES_LIMIT];
    pen_schedule_step_time_context *contexts[PLAN_SCHEDULES_LIMIT];
    uint32_t schedule_count;
    uint32_t auto_index;
};

// ---- the model

static pen_status plan_open_data(pen_plan_job *p) {
    p->info = p->options->info;
    if (p->info != NULL) return PEN_OK;
    const pen_status status =
        pen_job_open_dataset(p->job, PEN_DATASET_PART_TRAIN, p->arena, &p->dataset);
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_log(PEN_LOG_WARNING, "%s; planning with the model's own input shapes",
                pen_status_message(status));
        pen_status_ignore(status, "planning needs no data");
        return PEN_OK;
    }
    PEN_TRY(status);
    p->info = pen_dataset_get_info(p->dataset);
    return PEN_OK;
}

// The device whose layouts and kernels are planned with: of the kind that all have.
static pen_status plan_open_device(pen_plan_job *p, bool *out_is_uniform) {
    const pen_cluster *cluster = p->request.cluster;
    const pen_cluster_device *first = &cluster->devices[0];
    const pen_device_kind *kind;
    *out_is_uniform = true;
    for (uint32_t d = 1; d < cluster->device_count; d++) {
        if (strcmp(cluster->devices[d].kind, first->kind) != 0) *out_is_uniform = false;
    }
    PEN_TRY(pen_device_kind_find(first->kind, &kind));
    const pen_device_options options = {
        .name = first->name, .thread_count = first->threads, .only_sizes = true};
    return kind->open(&options, &p->device);
}

static pen_status plan_compile(pen_plan_job *p) {
    const pen_dataset_info none = {.format = "none"};
    pen_compile_request request;
    bool is_uniform;
    PEN_TRY(plan_open_data(p));
    PEN_TRY(plan_open_device(p, &is_uniform));
    PEN_TRY(pen_job_compile_request(p->job, p->options->part, p->info == NULL ? &none : p->info,
                                    p->arena, &request));
    request.device = is_uniform ? p->device : NULL;
    return pen_compile(&request, &p->program);
}

// ---- what the device says of the graph

// Kernels say how large values are in their layouts and what workspace they need: a plan is exact
// because the device that runs it was asked.
static pen_status plan_ask_device(pen_plan_job *p) {
    const pen_program *program = p->program;
    const pen_graph *graph = program->graph;
    const uint32_t value_count = pen_graph_value_count(graph);
    const uint32_t node_count = pen_graph_node_count(graph);
    uint64_t *bytes, *workspace;
    PEN_TRY(pen_kernel_sizes_new(p->device, p->arena, &p->sizes));
    PEN_TRY(PEN_NEW(p->arena, value_count, &bytes));
    PEN_TRY(PEN_NEW(p->arena, node_count, &workspace));
    for (uint32_t v = 0; v < value_count; v++) {
        bytes[v] = pen_kernel_sizes_of_value(&p->sizes, graph, (pen_value_id){v});
    }
    for (uint32_t i = 0; i < program->order_count; i++) {
        const pen_node_id node = program->order[i];
        if (pen_graph_node(graph, node)->op->is_view) continue;
        PEN_TRY(pen_kernel_sizes_of_node(&p->sizes, graph, node, &workspace[node.index]));
    }
    p->planned = (pen_planned_graph){.graph = graph,
                                     .order = program->order,
                                     .order_count = program->order_count,
                                     .update_first = program->update_first,
                                     .kept = program->kept,
                                     .kept_count = program->kept_count,
                                     .bytes_of_value = bytes,
                                     .workspace_of_node = workspace,
                                     .microbatch_count = (uint32_t)p->job->train.microbatches,
                                     .is_local = p->request.cluster->device_count == 1 &&
                                                 p->request.cluster->devices[0].host == NULL};
    return PEN_OK;
}

// ---- the request

// The schedule that was asked for, or, with auto, all of them, to be compared on the stages that
// come out.
static pen_status plan_find_schedules(pen_plan_job *p) {
    const pen_job_schedule schedule = p->job->pipeline.schedule;
    const pen_schedule_generator *generator;
    p->schedule = p->options->schedule;
    if (p->schedule == NULL && schedule != PEN_JOB_SCHEDULE_AUTO) {
        p->schedule = pen_job_schedule_name(schedule);
    }
    if (p->schedule != NULL && strcmp(p->schedule, "auto") == 0) p->schedule = NULL;
    if (p->schedule != NULL) {
        PEN_TRY(pen_schedule_generator_find(p->schedule, p->arena, &generator));
    }
    for (uint32_t i = 0; pen_schedule_generators[i] != NULL; i++) {
        PEN_ASSERT(i < PLAN_SCHEDULES_LIMIT);
        if (strcmp(pen_schedule_generators[i]->name, PLAN_AUTO) == 0) p->auto_index = i;
        p->schedule_names[i] = pen_schedule_generators[i]->name;
        PEN_TRY(pen_schedule_step_time_create(p->schedule_names[i], &p->contexts[i]));
        p->schedule_count++;
    }
    return PEN_OK;
}

// The placement that the job asks for, with what the command line says in its place.
static pen_status plan_set_placement(pen_plan_job *p) {
    const pen_plan_job_options *options = p->options;
    p->placement = p->job->placement;
    if (options->strategy != NULL) p->placement.strategy = options->strategy;
    if (options->objective >= 0) p->placement.objective = (pen_objective)options->objective;
    if (options->time_limit_seconds > 0) {
        p->placement.time_limit_seconds = options->time_limit_seconds;
    }
    if (options->seed >= 0) p->placement.seed = options->seed;
    return plan_find_schedules(p);
}

// Of whole batches, and of the last one.
#define PLAN_EVALUATIONS 2u

static pen_status plan_estimate_process(pen_plan_job *p) {
    const pen_cluster *cluster = p->request.cluster;
    bool is_networked = false;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (cluster->devices[d].host != NULL) is_networked = true;
    }
    const bool evaluates = p->job->data.has_eval || p->job->data.holdout > 0;
    const pen_process_memory_request request = {.programs = &p->program,
                                                .program_count = 1,
                                                .info = p->info,
                                                .batch = (uint64_t)p->job->train.batch,
                                                .evaluation_count =
                                                    evaluates ? PLAN_EVALUATIONS : 0,
                                                .exports = p->job->outputs.export != NULL,
                                                .is_coordinator = !p->planned.is_local,
                                                .is_networked = is_networked};
    return pen_process_memory_estimate(&request, p->arena, &p->request.process_bytes);
}

// More devices than there are cannot be used.
static pen_status plan_check_stages(const pen_plan_job *p) {
    const int64_t *minimum = &p->job->placement.constraints.stages.minimum;
    const uint32_t device_count = p->request.cluster->device_count;
    if (*minimum <= (int64_t)device_count) return PEN_OK;
    return pen_job_blame(p->job, minimum,
                         pen_error(PEN_INVALID_INPUT,
                                   "placement.stages.minimum: found %lld, expected at most %u: a "
                                   "device for each",
                                   (long long)*minimum, device_count));
}

// Everything that does not depend on the placement: costs, cluster, program, sizes. Errors of it
// name their line of the job.
static pen_status plan_start(pen_plan_job *p) {
    const pen_job *job = p->job;
    const char *costs = p->options->cost_table != NULL ? p->options->cost_table : job->costs;
    pen_cost_table *table = NULL;
    pen_machine machine;
    PEN_TRY(plan_set_placement(p));
    if (costs != NULL) {
        pen_status status = pen_cost_table_read(costs, p->arena, &table);
        if (pen_status_get_code(status) == PEN_NOT_FOUND) {
            status = pen_status_add_context(
                status, "`penstock profile %s -o %s` makes a cost table", job->file, costs);
        }
        PEN_TRY(p->options->cost_table != NULL ? status : pen_job_blame(job, &job->costs, status));
    }
    PEN_TRY(pen_machine_detect(p->arena, &machine));
    PEN_TRY(pen_cluster_build_on(&machine, &job->cluster, table, p->arena, &p->request.cluster));
    if (p->options->run != NULL) {
        PEN_TRY(
            pen_cluster_see(p->request.cluster, p->options->run, p->arena, &p->request.cluster));
    }
    PEN_TRY(plan_check_stages(p));
    PEN_TRY(plan_compile(p));
    PEN_TRY(pen_job_blame(
        job, &job->model.use_device_strings,
        pen_model_pins_add(p->program, p->request.cluster, p->arena, &p->placement.constraints)));
    PEN_TRY(plan_ask_device(p));
    PEN_TRY(pen_cost_model_build(p->program->graph, p->request.cluster, table, p->arena,
                                 &p->request.costs));
    uint32_t threads = machine.core_count_allowed;
    if (threads > PLAN_THREADS_LIMIT) threads = PLAN_THREADS_LIMIT;
    p->request.planned = &p->planned;
    p->request.placement = &p->placement;
    p->request.thread_count = threads;
    p->request.step_time = pen_schedule_step_time;
    p->request.recompute = p->job->pipeline.recompute;
    p->request.job = job->file;
    p->request.model = job->model.file;
    p->request.cost_table = costs;
    p->request.microbatch_size = p->program->microbatch_size;
    return plan_estimate_process(p);
}

pen_status pen_plan_job_create(const pen_job *job, const pen_plan_job_options *options,
                               pen_plan_job **out_plan_job) {
    pen_plan_job *p = pen_memory_allocate(1, sizeof *p);
    if (p == NULL) return pen_error_out_of_memory();
    p->job = job;
    p->options = options;
    pen_status status = pen_arena_create(&p->arena);
    if (status == PEN_OK) status = plan_start(p);
    p->options = NULL;
    if (status != PEN_OK) {
        pen_plan_job_destroy(p);
        return status;
    }
    *out_plan_job = p;
    return PEN_OK;
}

void pen_plan_job_destroy(pen_plan_job *plan_job) {
    if (plan_job == NULL) return;
    for (uint32_t i = 0; i < plan_job->schedule_count; i++) {
        pen_schedule_step_time_destroy(plan_job->contexts[i]);
    }
    pen_program_destroy(plan_job->program);
    if (plan_job->device != NULL) plan_job->device->kind->close(plan_job->device);
    pen_dataset_close(plan_job->dataset);
    pen_arena_destroy(plan_job->arena);
    pen_memory_free(plan_job);
}

const pen_program *pen_plan_job_program(const pen_plan_job *plan_job) {
    return plan_job->program;
}

static void plan_use_schedule(pen_plan_job *p, uint32_t index) {
    p->request.schedule = p->schedule_names[index];
    p->request.step_time_context = p->contexts[index];
}

static uint32_t plan_find_name(const pen_plan_job *p, const char *name) {
    for (uint32_t i = 0; i < p->schedule_count; i++) {
        if (strcmp(p->schedule_names[i], name) == 0) return i;
    }
    return 0;
}

pen_status pen_plan_job_get_request(pen_plan_job *plan_job, const char *schedule,
                                    const pen_plan_request **out_request) {
    const pen_schedule_generator *generator;
    PEN_TRY(pen_schedule_generator_find(schedule, plan_job->arena, &generator));
    plan_use_schedule(plan_job, plan_find_name(plan_job, schedule));
    *out_request = &plan_job->request;
    return PEN_OK;
}

// The same stages under the other schedules: the first is kept unless another is faster. One stage
// never waits.
static pen_status plan_compare_schedules(pen_plan_job *p, pen_arena *arena, pen_plan **plan) {
    if ((*plan)->stages.stage_count == 1) return PEN_OK;
    for (uint32_t i = 1; i < p->schedule_count; i++) {
        pen_plan *other;
        if (i == p->auto_index) continue;
        plan_use_schedule(p, i);
        const pen_status status = pen_plan_rebuild(&p->request, *plan, arena, &other);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
            pen_status_ignore(status, "this schedule takes more memory");
            continue;
        }
        PEN_TRY(status);
        other->is_cut = (*plan)->is_cut;
        // what a search proved holds under every schedule, but for step times
        if (p->placement.objective != PEN_OBJECTIVE_STEP_TIME) {
            other->lower_bound = (*plan)->lower_bound;
        }
        if (other->step_seconds < (*plan)->step_seconds * (1.0 - PLAN_SCHEDULE_GAIN)) {
            *plan = other;
        }
    }
    return PEN_OK;
}

// ---- schedules that are found

static bool plan_is_over(void *context) {
    const double *end_seconds = context;
    return pen_clock_seconds() >= *end_seconds;
}

// The plan's stages under a schedule that was found for them; the plan lists its tasks.
static pen_status plan_use_found(pen_plan_job *p, const pen_plan *plan,
                                 const pen_schedule *schedule, pen_arena *arena,
                                 pen_plan **out_plan) {
    pen_plan_device *devices;
    pen_plan *found;
    plan_use_schedule(p, p->auto_index);
    pen_schedule_step_time_give(p->contexts[p->auto_index], schedule);
    PEN_TRY(pen_plan_rebuild(&p->request, plan, arena, &found));
    PEN_TRY(PEN_NEW(arena, found->device_count, &devices));
    for (uint32_t d = 0; d < found->device_count; d++) {
        devices[d] = found->devices[d];
        PEN_TRY(pen_schedule_format_device(schedule, d, arena, &devices[d].tasks));
    }
    found->devices = devices;
    found->is_cut = plan->is_cut;
    if (p->placement.objective != PEN_OBJECTIVE_STEP_TIME) {
        found->lower_bound = plan->lower_bound;
    }
    *out_plan = found;
    return PEN_OK;
}

// Looks for a faster schedule of the plan's stages than those that have a name; *plan changes only
// when there is one.
static pen_status plan_search_schedule(pen_plan_job *p, pen_arena *arena, pen_plan **plan) {
    const double limit = p->job->pipeline.time_limit_seconds;
    double end_seconds = pen_clock_seconds() + limit;
    const pen_auto_options options = {.seed = (uint64_t)p->placement.seed + PEN_AUTO_SEED,
                                      .work_limit = PLAN_SCHEDULE_WORK,
                                      .is_over = plan_is_over,
                                      .context = &end_seconds};
    const pen_schedule *schedule;
    pen_plan *found;
    if (limit <= 0.0 || (*plan)->stages.stage_count == 1) return PEN_OK;
    PEN_TRY(pen_auto_schedule(&(*plan)->stages, &options, arena, &schedule, NULL));
    if (schedule->task_count > PEN_PLAN_TASK_LIMIT) return PEN_OK;
    PEN_TRY(plan_use_found(p, *plan, schedule, arena, &found));
    if (found->step_seconds < (*plan)->step_seconds * (1.0 - PLAN_SCHEDULE_GAIN)) *plan = found;
    return PEN_OK;
}

static pen_status plan_refuse_memory(const pen_plan *plan, uint32_t device,
                                     const pen_device_memory *memory, pen_arena *arena) {
    char needed[PEN_QUANTITY_TEXT_BYTES], limit[PEN_QUANTITY_TEXT_BYTES];
    const char *kinds;
    PEN_TRY(pen_device_memory_format(memory, arena, &kinds));
    return pen_error(
        PEN_DOES_NOT_FIT, "device '%s' needs %s of memory under the schedule %s and may use %s: %s",
        plan->devices[device].name, pen_bytes_format(memory->total, needed), plan->schedule,
        pen_bytes_format((uint64_t)plan->stages.bytes_limit[device], limit), kinds);
}

// What the devices take in place of what the memory model says they do.
static pen_status plan_refine_memory(const pen_plan_job *p, pen_arena *arena, pen_plan *plan) {
    pen_plan_device *devices;
    pen_plan_device_memory *memory;
    if (p->planned.is_local) return PEN_OK;
    pen_plan_memory_request request = {.plan = plan,
                                       .cluster = p->request.cluster,
                                       .program = p->program,
                                       .value_bytes = pen_kernel_sizes_of_value,
                                       .workspace = pen_kernel_sizes_of_node,
                                       .context = &p->sizes};
    PEN_TRY(pen_plan_schedule(plan, arena, &request.schedule));
    PEN_TRY(PEN_NEW(arena, plan->device_count, &devices));
    PEN_TRY(PEN_NEW(arena, plan->device_count, &memory));
    PEN_TRY(pen_plan_memory_find(&request, memory));
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if ((double)memory[d].memory.total > plan->stages.bytes_limit[d]) {
            return plan_refuse_memory(plan, d, &memory[d].memory, arena);
        }
        const bool is_here = p->request.cluster->devices[d].host == NULL;
        devices[d] = plan->devices[d];
        devices[d].memory = memory[d].memory;
        devices[d].process_bytes = memory[d].process_bytes + (is_here ? plan->process_bytes : 0);
    }
    plan->devices = devices;
    return PEN_OK;
}

// The schedule that is asked for; of `auto` the first.
static void plan_use_first_schedule(pen_plan_job *p) {
    uint32_t index = 0;
    for (uint32_t i = 0; i < p->schedule_count && p->schedule != NULL; i++) {
        if (strcmp(p->schedule_names[i], p->schedule) == 0) index = i;
    }
    plan_use_schedule(p, index);
}

// Of `auto` the fastest schedule whose memory is there when it is looked at closely.
static pen_status plan_finish(pen_plan_job *p, pen_plan *first, pen_arena *arena,
                              pen_plan **out_plan) {
    pen_plan *choices[] = {first, first, first}; // with the first schedule, a named one, one found
    if (p->schedule == NULL) {
        PEN_TRY(plan_compare_schedules(p, arena, &choices[1]));
        choices[2] = choices[1];
        PEN_TRY(plan_search_schedule(p, arena, &choices[2]));
    }
    for (uint32_t i = 2; i > 0; i--) {
        *out_plan = choices[i];
        if (choices[i] == choices[i - 1]) continue;
        const pen_status status = plan_refine_memory(p, arena, choices[i]);
        if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
        pen_status_ignore(status, "another schedule takes less");
    }
    *out_plan = first;
    return plan_refine_memory(p, arena, first);
}

static pen_status plan_place_by(pen_plan_job *p, const char *strategy, pen_arena *arena,
                                pen_plan **out_plan) {
    const char *asked = p->placement.strategy;
    pen_plan *plan = NULL;
    p->placement.strategy = strategy;
    plan_use_first_schedule(p);
    p->request.is_final = p->schedule != NULL; // steps alike under one are not under another
    pen_status status = pen_plan_build(&p->request, arena, &plan);
    if (status == PEN_OK) status = plan_finish(p, plan, arena, out_plan);
    p->placement.strategy = asked;
    return status;
}

// What is placed best under the first schedule need not be so under the one that is found for it:
// `auto` also looks what that makes of the quickest placement.
static pen_status plan_try_greedy(pen_plan_job *p, pen_arena *arena, pen_plan **plan) {
    const double enough = (*plan)->step_seconds * (1.0 - PLAN_SCHEDULE_GAIN);
    pen_plan *other;
    if ((*plan)->lower_bound >= enough) return PEN_OK;
    const pen_status status = plan_place_by(p, "greedy", arena, &other);
    if (status != PEN_OK) {
        pen_status_ignore(status, "there is a plan");
        return PEN_OK;
    }
    if (other->step_seconds >= enough) return PEN_OK;
    if (other->lower_bound < (*plan)->lower_bound) other->lower_bound = (*plan)->lower_bound;
    other->strategy = (*plan)->strategy;
    other->is_cut = (*plan)->is_cut;
    *plan = other;
    return PEN_OK;
}

pen_status pen_plan_job_place(pen_plan_job *plan_job, pen_arena *arena, pen_plan **out_plan) {
    pen_plan_job *p = plan_job;
    const bool is_auto = strcmp(p->placement.strategy, "auto") == 0;
    PEN_TRY(plan_place_by(p, p->placement.strategy, arena, out_plan));
    const bool is_step_time = p->placement.objective == PEN_OBJECTIVE_STEP_TIME;
    if (!is_auto || !is_step_time || p->schedule != NULL) return PEN_OK;
    return plan_try_greedy(p, arena, out_plan);
}

static bool plan_has_tasks(const pen_plan *plan) {
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if (plan->devices[d].tasks != NULL) return true;
    }
    return false;
}

pen_status pen_plan_job_rebuild(pen_plan_job *plan_job, const pen_plan *given, pen_arena *arena,
                                pen_plan **out_plan) {
    pen_plan_job *p = plan_job;
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    pen_plan *plan;
    PEN_TRY(pen_schedule_generator_find(given->schedule, arena, &generator));
    if (p->schedule == NULL && plan_has_tasks(given)) {
        PEN_TRY(pen_plan_schedule(given, arena, &schedule));
        PEN_TRY(plan_use_found(p, given, schedule, arena, &plan));
        PEN_TRY(pen_schedule_check(&plan->stages, schedule, arena));
        *out_plan = plan;
        return plan_refine_memory(p, arena, plan);
    }
    plan_use_first_schedule(p);
    PEN_TRY(pen_plan_rebuild(&p->request, given, arena, &plan));
    return plan_finish(p, plan, arena, out_plan);
}

pen_status pen_plan_job_use_plan(pen_plan_job *plan_job, const pen_plan *plan,
                                 const pen_plan_request **out_request) {
    pen_plan_job *p = plan_job;
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    PEN_TRY(pen_schedule_generator_find(plan->schedule, p->arena, &generator));
    plan_use_schedule(p, plan_find_name(p, plan->schedule));
    if (p->request.schedule == p->schedule_names[p->auto_index]) {
        PEN_TRY(pen_plan_schedule(plan, p->arena, &schedule));
        pen_schedule_step_time_give(p->contexts[p->auto_index], schedule);
    }
    *out_request = &p->request;
    return PEN_OK;
}

pen_status pen_plan_job_add_reasons(pen_plan_job *plan_job, pen_plan *plan, pen_arena *arena) {
    const pen_plan_request *request;
    PEN_TRY(pen_plan_job_use_plan(plan_job, plan, &request));
    return pen_plan_add_reasons(request, plan, arena);
}
