#include "scheduler/plan/plan_job.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system/machine.h"
#include "device/device.h"
#include "partition/costs/cluster_build.h"
#include "partition/costs/cost_table_file.h"
#include "partition/replicas/plan_whole.h"
#include "partition/replicas/replica_spec.h"
#include "scheduler/compile/model_pins.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/plan/kernel_sizes.h"
#include "scheduler/plan/plan_demands.h"
#include "scheduler/plan/plan_host_costs.h"
#include "scheduler/plan/plan_kinds.h"
#include "scheduler/plan/plan_memory.h"
#include "scheduler/plan/plan_model.h"
#include "scheduler/plan/plan_room.h"
#include "scheduler/plan/plan_schedule.h"
#include "scheduler/plan/plan_seen.h"
#include "scheduler/plan/plan_sizes.h"
#include "scheduler/schedule/auto_schedule.h"
#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/schedule_step_time.h"

#define PLAN_THREADS_LIMIT 16
#define PLAN_SCHEDULES_LIMIT 8
#define PLAN_SCHEDULE_GAIN 1e-3 // a schedule must be so much faster to be taken in place of another
#define PLAN_SCHEDULE_WORK 4000000u // of the search for one, in tasks simulated
#define PLAN_SCHEDULE_NEAR 1.15 // times the step of a plan, that searching a schedule may make up
#define PLAN_AUTO "auto"
#define PLAN_HALVING "zero_bubble"
#define PLAN_FORWARD "gpipe" // where there are no backward passes, all schedules are alike

struct pen_plan_job {
    const pen_job *job;
    const pen_plan_job_options *options; // while it is created
    pen_arena *arena;
    pen_plan_model model;
    pen_placement_spec placement;
    pen_planned_graph planned;
    pen_plan_sizes sizes;
    pen_plan_room *room; // with the request's cluster
    pen_plan_request request;
    const char *schedule; // NULL: all are tried
    const char *schedule_names[PLAN_SCHEDULES_LIMIT];
    pen_schedule_step_time_context *contexts[PLAN_SCHEDULES_LIMIT];
    uint32_t schedule_count;
    uint32_t auto_index;
    bool is_forward; // nothing is trained
};

// ---- what the device says of the graph

// Of what only plans forward, batches are not divided.
static pen_status plan_ask_device(pen_plan_job *p) {
    const pen_program *program = p->model.program;
    PEN_TRY(pen_plan_sizes_find(&p->model, p->request.cluster->device_count, p->arena, &p->sizes));
    p->planned = (pen_planned_graph){.graph = program->graph,
                                     .order = program->order,
                                     .order_count = program->order_count,
                                     .update_first = program->update_first,
                                     .kept = program->kept,
                                     .kept_count = program->kept_count,
                                     .bytes_of_value = p->sizes.bytes,
                                     .workspace_of_node = p->sizes.workspace,
                                     .microbatch_count =
                                         p->is_forward ? 1 : (uint32_t)p->job->train.microbatches,
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
    p->schedule = p->is_forward ? PLAN_FORWARD : p->options->schedule;
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

// Batches follow each other: what counts is how often one is done, not how long it takes.
static void plan_set_forward(pen_placement_spec *placement) {
    placement->replicas = 1;
    placement->owners = (pen_option_list){0};
    if (placement->objective == PEN_OBJECTIVE_STEP_TIME) {
        placement->objective = PEN_OBJECTIVE_THROUGHPUT;
    }
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
    if (p->is_forward) plan_set_forward(&p->placement);
    return plan_find_schedules(p);
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
    } else if (p->options->given != NULL) {
        PEN_TRY(
            pen_cluster_slow(p->request.cluster, p->options->given, p->arena, &p->request.cluster));
    }
    PEN_TRY(pen_plan_check_demands(job, p->request.cluster, p->arena));
    const pen_plan_model_request model = {.job = job,
                                          .cluster = p->request.cluster,
                                          .info = p->options->info,
                                          .part = p->options->part,
                                          .mode = p->options->mode,
                                          .batch = p->options->batch,
                                          .sizes = p->options->sizes};
    PEN_TRY(pen_plan_model_open(&model, p->arena, &p->model));
    PEN_TRY(pen_job_blame(job, &job->model.use_device_strings,
                          pen_model_pins_add(p->model.program, p->request.cluster, p->arena,
                                             &p->placement.constraints)));
    PEN_TRY(pen_plan_room_new(&p->model, p->request.cluster, p->arena, &p->room));
    p->request.cluster = &p->room->cluster;
    PEN_TRY(plan_ask_device(p));
    PEN_TRY(pen_cost_model_build(p->model.program->graph, p->request.cluster, table, p->arena,
                                 &p->request.costs));
    PEN_TRY(pen_plan_price_host(&p->model, p->request.cluster, table, p->arena, &p->request.costs));
    uint32_t threads = machine.core_count_allowed;
    if (threads > PLAN_THREADS_LIMIT) threads = PLAN_THREADS_LIMIT;
    p->request.planned = &p->planned;
    p->request.placement = &p->placement;
    p->request.thread_count = threads;
    p->request.step_time = pen_schedule_step_time;
    p->request.recompute = p->is_forward ? PEN_RECOMPUTE_NONE : p->job->pipeline.recompute;
    p->request.exchange = p->job->pipeline.exchange;
    p->request.job = job->file;
    p->request.settings = job->settings;
    p->request.setting_count = job->setting_count;
    p->request.model = job->model.file;
    PEN_TRY(pen_kernel_level_settle(job->numerics.level, &p->request.level));
    p->request.precision = job->numerics.precision;
    p->request.lanes = p->is_forward ? 1 : (uint32_t)job->train.lanes;
    p->request.cost_table = costs;
    p->request.microbatch_size = p->model.program->microbatch_size;
    return pen_plan_memory_process(job, &p->model, p->request.cluster, p->arena,
                                   &p->request.process_bytes);
}

pen_status pen_plan_job_create(const pen_job *job, const pen_plan_job_options *options,
                               pen_plan_job **out_plan_job) {
    pen_plan_job *p = pen_memory_allocate(1, sizeof *p);
    if (p == NULL) return pen_error_out_of_memory();
    p->job = job;
    p->options = options;
    p->is_forward = options->mode != PEN_COMPILE_TRAIN;
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
    pen_plan_model_close(&plan_job->model);
    pen_arena_destroy(plan_job->arena);
    pen_memory_free(plan_job);
}

const pen_program *pen_plan_job_program(const pen_plan_job *plan_job) {
    return plan_job->model.program;
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

// What the devices take in place of what the memory model says they do; of one device alone, it
// knows all. What is inflated or parsed, each worker that reads holds. Where nobody says who reads,
// such files are the coordinator's (docs/job.md).
static pen_status plan_refine_memory(const pen_plan_job *p, pen_arena *arena, pen_plan *plan) {
    const bool is_held = p->model.info != NULL && p->job->data.read_on == PEN_JOB_READ_ON_WORKERS;
    pen_plan_memory_request request = {.plan = plan,
                                       .cluster = p->request.cluster,
                                       .program = p->model.program,
                                       .forms = &p->model.forms,
                                       .data_bytes = is_held ? p->model.info->held_bytes : 0,
                                       .is_saved = p->job->checkpoint.dir != NULL,
                                       .has_rings = !p->job->cluster.uses_grpc_alone,
                                       .value_bytes = pen_kernel_sizes_of_value,
                                       .workspace = pen_kernel_sizes_of_node,
                                       .contexts = p->sizes.of_device,
                                       .devices = p->sizes.devices,
                                       .missing = p->room->missing};
    if (p->planned.is_local) return PEN_OK;
    PEN_TRY(pen_plan_schedule(plan, arena, &request.schedule));
    return pen_plan_memory_refine(&request, arena, plan);
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

// ---- of `auto` the schedule

// Another plan of the same job beside the one that there is. Which schedule is found for stages
// takes long to see: it is looked for where the named ones come near.
static pen_status plan_take_faster(pen_plan_job *p, pen_plan *other, pen_arena *arena,
                                   pen_plan **plan) {
    const double limit = (*plan)->step_seconds * PLAN_SCHEDULE_NEAR;
    pen_plan *named = other;
    pen_status status = plan_compare_schedules(p, arena, &named);
    if (status == PEN_OK && named->step_seconds > limit) return PEN_OK;
    if (status == PEN_OK) status = plan_finish(p, other, arena, &named);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "there is a plan");
        return PEN_OK;
    }
    PEN_TRY(status);
    if (named->step_seconds >= (*plan)->step_seconds * (1.0 - PLAN_SCHEDULE_GAIN)) return PEN_OK;
    named->strategy = (*plan)->strategy;
    named->is_cut = named->is_cut || (*plan)->is_cut;
    *plan = named;
    return PEN_OK;
}

// What is placed best under the first schedule need not be so under the one that is found for it:
// `auto` also looks what that makes of the quickest placement.
static pen_status plan_try_greedy(pen_plan_job *p, pen_arena *arena, pen_plan **plan) {
    const double enough = (*plan)->step_seconds * (1.0 - PLAN_SCHEDULE_GAIN);
    const char *asked = p->placement.strategy;
    pen_plan *other;
    if ((*plan)->lower_bound >= enough) return PEN_OK;
    p->placement.strategy = "greedy";
    plan_use_first_schedule(p);
    const pen_status status = pen_plan_build(&p->request, arena, &other);
    p->placement.strategy = asked;
    if (status != PEN_OK) {
        pen_status_ignore(status, "there is a plan");
        return PEN_OK;
    }
    return plan_take_faster(p, other, arena, plan);
}

// Lines of devices as they are found where the job asks for them; NULL: none fits, or none keeps to
// the pins. What is wrong with the job otherwise is told of the placements that follow.
static pen_status plan_place_lines(pen_plan_job *p, pen_arena *arena, pen_plan **out_line) {
    pen_plan *line;
    *out_line = NULL;
    p->placement.contiguous = true;
    plan_use_first_schedule(p);
    const pen_status status = pen_plan_build(&p->request, arena, &line);
    p->placement.contiguous = false;
    if (status == PEN_OK) { // with a bound that holds for others, too
        PEN_TRY(pen_plan_rebuild(&p->request, line, arena, out_line));
        (*out_line)->is_cut = line->is_cut;
        return PEN_OK;
    }
    const pen_status_code code = pen_status_get_code(status);
    if (code == PEN_OUT_OF_MEMORY || code == PEN_INTERNAL) return status;
    pen_status_ignore(status, "others may fit");
    return PEN_OK;
}

// No schedule is asked for. Lines are placed under the first, which suits them and is quick to
// judge. Others are placed under one that halves backward passes: the schedule that is found in the
// end does, and what it gains differs between placements. The line is among what is compared, so no
// plan is slower than that.
static pen_status plan_place_free(pen_plan_job *p, pen_arena *arena, pen_plan **out_plan) {
    pen_plan *line, *plan;
    p->request.is_final = false;
    PEN_TRY(plan_place_lines(p, arena, &line));
    plan_use_schedule(p, plan_find_name(p, PLAN_HALVING));
    p->request.line = line;
    pen_status status = pen_plan_build(&p->request, arena, &plan);
    p->request.line = NULL;
    if (status == PEN_OK) status = plan_finish(p, plan, arena, out_plan);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "the first schedule takes less memory");
        return plan_place_by(p, p->placement.strategy, arena, out_plan);
    }
    PEN_TRY(status);
    if (line == NULL) return PEN_OK;
    (*out_plan)->is_cut = (*out_plan)->is_cut || line->is_cut;
    return plan_take_faster(p, line, arena, out_plan);
}

static bool plan_is_free(const pen_plan_job *p) {
    return strcmp(p->placement.strategy, "auto") == 0 && p->schedule == NULL &&
           p->placement.objective == PEN_OBJECTIVE_STEP_TIME;
}

static pen_status plan_place_alone(pen_plan_job *p, pen_arena *arena, pen_plan **out_plan) {
    if (!plan_is_free(p) || p->placement.contiguous || p->request.cluster->device_count == 1) {
        return plan_place_by(p, p->placement.strategy, arena, out_plan);
    }
    return plan_place_free(p, arena, out_plan);
}

// Of as many replicas as are fastest: without any, more schedules are tried, and it may be faster;
// so it is where replicas cannot run the model yet, or take more memory than was thought.
static pen_status plan_place_most(pen_plan_job *p, pen_arena *arena, pen_plan **out_plan) {
    pen_plan *alone;
    const pen_status status = plan_place_by(p, p->placement.strategy, arena, out_plan);
    const pen_status_code code = pen_status_get_code(status);
    const bool is_there = status == PEN_OK;
    if (is_there && !plan_is_free(p)) return PEN_OK;
    if (!is_there && code != PEN_UNSUPPORTED && code != PEN_DOES_NOT_FIT) return status;
    pen_status_ignore(status, "there may be a plan without replicas");
    p->placement.replicas = 1;
    const pen_status other = plan_place_alone(p, arena, &alone);
    p->placement.replicas = 0;
    if (is_there && pen_status_get_code(other) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(other, "there is a plan");
        return PEN_OK;
    }
    PEN_TRY(other);
    if (is_there && alone->step_seconds >= (*out_plan)->step_seconds) return PEN_OK;
    *out_plan = alone;
    return PEN_OK;
}

static pen_status plan_place(pen_plan_job *p, pen_arena *arena, pen_plan **out_plan) {
    if (pen_replicas_are_asked(&p->placement, p->request.lanes)) {
        const bool may_be_one = p->placement.replicas == 0;
        if (may_be_one && !pen_replicas_have_owners(&p->placement))
            return plan_place_most(p, arena, out_plan);
        return plan_place_by(p, p->placement.strategy, arena, out_plan);
    }
    PEN_TRY(plan_place_alone(p, arena, out_plan));
    return plan_is_free(p) ? plan_try_greedy(p, arena, out_plan) : PEN_OK;
}

static bool plan_has_tasks(const pen_plan *plan) {
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if (plan->devices[d].tasks != NULL) return true;
    }
    return false;
}

static pen_status plan_rebuild(pen_plan_job *p, const pen_plan *given, pen_arena *arena,
                               pen_plan **out_plan) {
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

// Until what was found is there when it is looked at closely; else the first refusal says most.
// `given` NULL: there is none.
static pen_status plan_until_it_fits(pen_plan_job *p, const pen_plan *given, pen_arena *arena,
                                     pen_plan **out_plan) {
    pen_status first = PEN_OK;
    for (uint32_t round = 0; round < PEN_PLAN_ROOM_ROUNDS; round++) {
        const pen_status status = given == NULL ? plan_place(p, arena, out_plan)
                                                : plan_rebuild(p, given, arena, out_plan);
        if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) {
            pen_status_ignore(first, "another placement takes less");
            return status;
        }
        if (first == PEN_OK) {
            first = status;
        } else {
            pen_status_ignore(status, "the first refusal says more");
        }
        if (!pen_plan_room_learn(p->room)) break;
    }
    return first;
}

pen_status pen_plan_job_place(pen_plan_job *plan_job, pen_arena *arena, pen_plan **out_plan) {
    return plan_until_it_fits(plan_job, NULL, arena, out_plan);
}

pen_status pen_plan_job_rebuild(pen_plan_job *plan_job, const pen_plan *given, pen_arena *arena,
                                pen_plan **out_plan) {
    return plan_until_it_fits(plan_job, given, arena, out_plan);
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

pen_status pen_plan_job_add_kinds(const pen_plan_job *plan_job, const pen_plan *plan,
                                  pen_arena *arena, pen_text *text) {
    const pen_schedule *schedule;
    PEN_TRY(pen_plan_schedule(plan, arena, &schedule));
    return pen_plan_add_kinds(&plan_job->model, plan_job->request.cluster, plan, schedule, arena,
                              text);
}
