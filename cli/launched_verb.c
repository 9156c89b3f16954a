#include "cli/launched_verb.h"

#include "base/log.h"
#include "cli/signals.h"
#include "cli/training_job.h"
#include "scheduler/job/job_links.h"
#include "scheduler/launched/task_life.h"

typedef struct launched_run {
    pen_command_context *context;
    const pen_launched_verb *verb;
    const void *options;
} launched_run;

static pen_status launched_coordinate(void *context, const pen_task_work *work) {
    const launched_run *run = context;
    const pen_command_tasks tasks = {
        .items = work->tasks,
        .count = work->task_count,
        .seats = work->seats,
        .tls = {.ca = work->tls.ca, .cert = work->tls.cert, .key = work->tls.key}};
    run->context->input_exit_code = PEN_EXIT_SPEC;
    run->context->tasks = run->verb->is_alone ? NULL : &tasks;
    const pen_status status = run->verb->work(run->context, run->options);
    run->context->tasks = NULL;
    return status;
}

static int launched_exit_code(void *context, pen_status status) {
    const launched_run *run = context;
    if (status == PEN_OK) return (int)run->context->exit_code;
    return pen_command_exit_code(run->context, status);
}

// Who coordinates may be in any task, so each device must be of a task.
static pen_status launched_check_devices(const pen_launched_verb *verb, const pen_job *job) {
    const pen_cluster_spec *cluster = &job->cluster;
    for (uint32_t d = 0; d < cluster->device_count && !verb->is_alone; d++) {
        const pen_cluster_device_spec *device = &cluster->devices[d];
        if (device->per == PEN_CLUSTER_PER_TASK) continue;
        return pen_cluster_spec_blame(
            cluster, device->written,
            pen_error(PEN_INVALID_INPUT,
                      "devices: found '%.100s', which is of no task, expected with --launched "
                      "`devices: [{name: n, per: task}]`",
                      device->name));
    }
    return PEN_OK;
}

static pen_status launched_find_folder(const pen_launched_verb *verb, const pen_job *job,
                                       const char **out_folder) {
    *out_folder = verb->checkpoints != NULL ? verb->checkpoints : job->checkpoint.dir;
    if (*out_folder == NULL) *out_folder = job->outputs.dir;
    if (*out_folder != NULL && job->checkpoint.shared) return PEN_OK;
    if (*out_folder != NULL) {
        return pen_job_blame(job, &job->checkpoint.shared,
                             pen_error(PEN_INVALID_INPUT,
                                       "checkpoint.shared: found false, expected with --launched a "
                                       "folder that all tasks see: they find each other in it"));
    }
    return pen_error(PEN_INVALID_INPUT,
                     "--launched: found no folder for checkpoints, in which tasks find each other, "
                     "expected `checkpoint: {dir: …}` in the job");
}

// The job as far as it says how tasks find each other; who coordinates reads it again, when it is
// known where they are.
static pen_status launched_read_job(pen_command_context *context, const pen_launched_verb *verb,
                                    uint32_t size, const pen_job **out_job) {
    pen_command_tasks tasks = {.count = size};
    pen_cluster_task *items;
    bool is_plan;
    PEN_TRY(pen_command_is_plan(verb->job, context->arena, &is_plan));
    if (is_plan) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: found a plan, expected with --launched a job: where tasks are is "
                         "known when they have started",
                         verb->job);
    }
    PEN_TRY(PEN_NEW(context->arena, size, &items));
    tasks.items = items;
    context->tasks = &tasks;
    const pen_status status = pen_command_open_job(context, verb->job, out_job);
    context->tasks = NULL;
    PEN_TRY(status);
    return launched_check_devices(verb, *out_job);
}

// What is wrong with the command line or the job is told by each task, before it looks for others.
static pen_status launched_run_task(launched_run *run, const pen_cli_launched *launched) {
    pen_command_context *context = run->context;
    const pen_launched_verb *verb = run->verb;
    const pen_job *job;
    pen_task_identity identity;
    const char *folder;
    int code = 0;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_task_identity_find((uint32_t)launched->tasks, context->arena, &identity));
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(launched_read_job(context, verb, identity.size, &job));
    PEN_TRY(launched_find_folder(verb, job, &folder));
    PEN_TRY(pen_signals_prepare_flight(folder, context->arena));
    const pen_job_on_loss on_loss = job->recovery.on_loss;
    const pen_task_options options = {
        .identity = &identity,
        .checkpoints = folder,
        .mirror = verb->checkpoints != NULL ? NULL : job->checkpoint.mirror,
        .verb = verb->start,
        .tls = pen_job_transport_tls(job),
        .is_insecure = verb->is_insecure,
        .token_file = job->token_file,
        .memory_bytes = verb->memory_bytes,
        .is_worker = verb->work == NULL,
        .needs_all = !verb->is_alone,
        .goes_without = on_loss == PEN_JOB_ON_LOSS_SPARE || on_loss == PEN_JOB_ON_LOSS_REPLAN,
        .wait_seconds = job->pipeline.rendezvous_timeout_seconds,
        .lease_seconds = job->recovery.lease_seconds,
        .coordinate = launched_coordinate,
        .exit_code = launched_exit_code,
        .context = run};
    PEN_TRY(pen_task_run(&options, &code));
    context->exit_code = (pen_exit_code)code;
    return PEN_OK;
}

// One of several tasks that does not know it would train by itself, and the others, too.
static pen_status launched_check_alone(pen_command_context *context, const pen_launched_verb *verb,
                                       const pen_cli_launched *launched) {
    const char *hint = pen_task_identity_hint();
    const pen_job *job;
    bool is_plan;
    if (launched->tasks > 0) {
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT, "--tasks: found without --launched, expected both");
    }
    if (hint == NULL) return PEN_OK;
    PEN_TRY(pen_command_is_plan(verb->job, context->arena, &is_plan));
    if (is_plan) return PEN_OK;
    PEN_TRY(pen_command_open_job(context, verb->job, &job));
    if (!pen_cluster_spec_has_tasks(&job->cluster)) return PEN_OK;
    context->input_exit_code = PEN_EXIT_USAGE;
    return pen_error(
        PEN_INVALID_INPUT,
        "found several tasks (%s in the environment) and devices `per: task`, expected "
        "--launched: each task would do all the work by itself",
        hint);
}

pen_status pen_launched_verb_run(pen_command_context *context, const pen_cli_launched *launched,
                                 const pen_launched_verb *verb, const void *options) {
    launched_run run = {context, verb, options};
    if (launched->is_launched) return launched_run_task(&run, launched);
    PEN_TRY(launched_check_alone(context, verb, launched));
    return verb->work(context, options);
}
