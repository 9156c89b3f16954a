#include "cli/training_job.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system/file.h"
#include "base/system/machine.h"
#include "partition/plan/plan_file.h"
#include "scheduler/checkpoint/model_export.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/data/image/image_decode.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/transport/admit/token_file.h"
#include "scheduler/transport/grpc/peer_certificate.h"
#include "scheduler/transport/grpc/pem_file.h"

pen_status pen_job_parameters_path(const pen_job *job, pen_arena *arena, const char **out_path) {
    *out_path = NULL;
    if (job->outputs.dir == NULL) return PEN_OK;
    return pen_arena_format(arena, out_path, "%s/parameters.safetensors", job->outputs.dir);
}

pen_status pen_command_check_output(pen_command_context *context, const char *path) {
    const pen_exit_code before = context->input_exit_code;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_file_check_writable(path));
    context->input_exit_code = before;
    return PEN_OK;
}

// Puts what an error is about before its message.
static pen_status job_name_output(const char *what, pen_status status) {
    const pen_status_code code = pen_status_get_code(status);
    if (code != PEN_INVALID_INPUT && code != PEN_UNSUPPORTED) return status;
    const pen_status whole = pen_error(code, "%s: %s", what, pen_status_message(status));
    pen_status_ignore(status, "its message goes on after what it is about");
    return whole;
}

pen_status pen_command_check_model_output(pen_command_context *context, const pen_job *job,
                                          const char *option, const char *path) {
    const pen_exit_code before = context->input_exit_code;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(job_name_output(option, pen_model_check_output(job->model.file, path)));
    context->input_exit_code = before;
    return PEN_OK;
}

pen_status pen_job_check_folder(const char *folder, pen_arena *arena) {
    const char *path;
    PEN_TRY(pen_folder_create(folder, arena));
    PEN_TRY(pen_arena_format(arena, &path, "%s/check", folder));
    return pen_file_check_writable(path);
}

// A folder within the other one would be taken for what that has, and goes with it.
static pen_status job_check_apart(const pen_job_checkpoint *checkpoint) {
    const char *dir = checkpoint->dir, *mirror = checkpoint->mirror;
    if (!pen_path_is_within(mirror, dir) && !pen_path_is_within(dir, mirror)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "mirror: found %s and `dir` %s, one within the other; expected a folder on "
                     "another disk",
                     mirror, dir);
}

// Both on one disk are lost with it.
static void job_warn_of_one_disk(const pen_job_checkpoint *checkpoint, pen_arena *arena) {
    pen_path_room rooms[2];
    pen_status status = pen_path_find_room(checkpoint->dir, arena, &rooms[0]);
    if (status == PEN_OK) status = pen_path_find_room(checkpoint->mirror, arena, &rooms[1]);
    if (status == PEN_OK && rooms[0].disk == rooms[1].disk) {
        pen_log(PEN_LOG_WARNING,
                "checkpoint.mirror: %s is on the disk that %s is on, and is lost with it",
                checkpoint->mirror, checkpoint->dir);
    }
    pen_status_ignore(status, "they are said where they are used");
}

// What one folder lacks is a warning; what is wrong with the job is none.
pen_status pen_job_check_checkpoint_folders(const pen_job *job, pen_arena *arena) {
    const pen_job_checkpoint *checkpoint = &job->checkpoint;
    const pen_status status =
        pen_job_blame(job, &checkpoint->dir, pen_job_check_folder(checkpoint->dir, arena));
    if (checkpoint->mirror == NULL) return status;
    pen_status other = PEN_OK;
    if (status == PEN_OK && pen_path_is_same(checkpoint->dir, checkpoint->mirror)) {
        other = pen_error(PEN_INVALID_INPUT,
                          "mirror: found the folder that `dir` is, expected one on another disk");
    } else {
        other = pen_job_check_folder(checkpoint->mirror, arena);
        if (status == PEN_OK && other == PEN_OK) other = job_check_apart(checkpoint);
    }
    other = pen_job_blame(job, &checkpoint->mirror, other);
    const pen_status failed = pen_status_join(status, other);
    if (failed == PEN_OK) job_warn_of_one_disk(checkpoint, arena);
    const bool is_one = (status == PEN_OK) != (other == PEN_OK);
    if (!is_one || pen_status_get_code(failed) == PEN_INVALID_INPUT) return failed;
    pen_log(PEN_LOG_WARNING, "%s; the other folder of checkpoints is used",
            pen_status_message(failed));
    pen_status_ignore(failed, "said");
    return PEN_OK;
}

// Whether the coordinator links to a worker of this process. Both show the job's certificate, so
// what the job's own authority refuses could never begin.
static bool job_links_to_itself(const pen_job *job) {
    for (uint32_t d = 0; d < job->cluster.device_count; d++) {
        if (job->cluster.devices[d].host == NULL) return true;
    }
    return false;
}

static pen_status job_check_certificates(const pen_job *job, pen_arena *arena) {
    const char *const *const paths[] = {&job->tls.ca, &job->tls.cert, &job->tls.key};
    pen_pem_files files;
    if (job->tls.ca == NULL) return PEN_OK;
    for (uint32_t i = 0; i < 3; i++) {
        files.paths[i] = *paths[i];
        PEN_TRY(pen_job_blame(job, paths[i],
                              pen_pem_read(*paths[i], (pen_pem_kind)i, arena, &files.texts[i])));
    }
    PEN_TRY(pen_job_blame(job, &job->tls.key, pen_pem_check(&files)));
    if (job_links_to_itself(job))
        PEN_TRY(pen_job_blame(job, &job->tls.cert, pen_pem_judge(&files)));
    if (job->tls.crl == NULL) return PEN_OK;
    pen_revocations *lists = NULL;
    const pen_status status = pen_revocations_open(job->tls.crl, job->tls.ca, &lists);
    pen_revocations_close(lists);
    return pen_job_blame(job, &job->tls.crl, status);
}

// Before the work begins: each file that is asked for can be written, and each certificate read.
pen_status pen_job_prepare_outputs(const pen_job *job, pen_arena *arena) {
    const pen_job_outputs *outputs = &job->outputs;
    pen_token_file token;
    PEN_TRY(job_check_certificates(job, arena));
    PEN_TRY(pen_job_blame(job, &job->token_file, pen_token_file_read(job->token_file, &token)));
    if (outputs->dir != NULL) {
        PEN_TRY(pen_job_blame(job, &outputs->dir, pen_folder_create(outputs->dir, arena)));
        const char *path;
        PEN_TRY(pen_job_parameters_path(job, arena, &path));
        PEN_TRY(pen_job_blame(job, &outputs->dir, pen_file_check_writable(path)));
    }
    if (outputs->adapters != NULL) {
        PEN_TRY(pen_job_blame(job, &outputs->adapters, pen_file_check_writable(outputs->adapters)));
    }
    if (outputs->export == NULL) return PEN_OK;
    const pen_import_options import = pen_job_import_options(job);
    const pen_status status =
        pen_model_check_export(job->model.file, &import, outputs->types, outputs->export);
    PEN_TRY(pen_job_blame(job, &outputs->export, job_name_output("outputs.export", status)));
    return pen_job_blame(job, &outputs->export, pen_file_check_writable(outputs->export));
}

pen_status pen_command_warn_threads(const pen_command_context *context, const pen_job *job) {
    const pen_cluster_spec *cluster = &job->cluster;
    pen_machine machine;
    PEN_TRY(pen_machine_detect(context->arena, &machine));
    for (uint32_t i = 0; i < cluster->device_count; i++) {
        const pen_cluster_device_spec *device = &cluster->devices[i];
        if (device->host != NULL) continue;
        pen_machine_warn_threads(device->name, (uint64_t)device->threads, "this process",
                                 machine.core_count_allowed);
    }
    return PEN_OK;
}

void pen_command_warn_skipped(const pen_dataset_info *info) {
    if (info->broken_count > 0) {
        pen_log(PEN_LOG_WARNING, "%u %s left out, being broken: %s%s", info->broken_count,
                info->broken_count == 1 ? "picture is" : "pictures are", info->broken_text,
                info->broken_count == 1 ? "" : ", ...");
    }
    if (info->skipped_count == 0) return;
    pen_log(PEN_LOG_WARNING, "%llu %s left out, being no pictures (" PEN_IMAGE_ENDINGS "): %s%s",
            (unsigned long long)info->skipped_count,
            info->skipped_count == 1 ? "file is" : "files are", info->skipped_path,
            info->skipped_count == 1 ? "" : ", ...");
}

pen_status pen_job_find_parameters(const pen_job *job, const char *given, pen_arena *arena,
                                   const char **out_path) {
    *out_path = given;
    if (given != NULL) return PEN_OK;
    const char *path;
    PEN_TRY(pen_job_parameters_path(job, arena, &path));
    if (path != NULL && access(path, F_OK) == 0) {
        *out_path = path;
    } else {
        pen_log(PEN_LOG_WARNING, "no trained parameters given or found: using %s",
                job->model.weights != NULL ? "those of weights" : "the model's own");
    }
    return PEN_OK;
}

uint64_t pen_session_batch(const pen_job_session *session, const pen_session_options *options) {
    const uint64_t examples = pen_dataset_get_info(session->dataset)->example_count;
    const uint64_t batch =
        options->batch_size > 0 ? options->batch_size : (uint64_t)session->job->train.batch;
    return batch < examples ? batch : examples;
}

// Several devices, of which one like the first does the work.
static void session_note_one(const pen_job *job) {
    const pen_cluster_device_spec *device = &job->cluster.devices[0];
    pen_log(PEN_LOG_NOTE,
            "samples are drawn on one device of this process, %s with %lld %s as '%s' has, without "
            "the job's others",
            pen_cluster_device_kind_name(device->kind), (long long)device->threads,
            device->threads == 1 ? "thread" : "threads", device->name);
}

static pen_status session_blame_memory(const pen_job *job, pen_status status) {
    if (pen_engine_is_local(job)) return pen_job_blame_memory(job, status);
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
    return pen_status_add_context(status,
                                  "on one device of this process, for which the whole model "
                                  "must fit into the memory of this machine");
}

static pen_status session_build_runner(pen_command_context *context,
                                       const pen_session_options *options,
                                       pen_job_session *session) {
    const pen_job *job = session->job;
    pen_runner_options runner;
    PEN_TRY(pen_job_runner_options(job, session->part, pen_dataset_get_info(session->dataset),
                                   context->arena, &runner));
    if (!pen_engine_is_local(job)) session_note_one(job);
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_runner_create(&runner, &session->runner));
    const pen_runner_form *form;
    PEN_TRY(session_blame_memory(
        job, pen_runner_get_row(session->runner, options->mode, options->sampled, &form)));
    session->program = form->program;
    PEN_TRY(pen_job_check_data(job, session->part, session->program, session->dataset));
    if (session->parameters == NULL) return PEN_OK;
    return pen_parameter_file_load(session->parameters, pen_runner_tensors(session->runner));
}

static pen_status session_build_inference(pen_command_context *context,
                                          const pen_session_options *options,
                                          pen_job_session *session) {
    const pen_dataset_info *info = pen_dataset_get_info(session->dataset);
    const uint64_t batch = pen_session_batch(session, options);
    const pen_inference_options inference = {.job = session->job,
                                             .info = info,
                                             .part = session->part,
                                             .mode = options->mode,
                                             .batch = batch,
                                             .rest = info->example_count % batch,
                                             .parameters = session->parameters,
                                             .insecure = options->insecure};
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_inference_create(&inference, &session->inference));
    session->program = pen_inference_program(session->inference);
    return pen_job_check_data(session->job, session->part, session->program, session->dataset);
}

static pen_status session_build(pen_command_context *context, const pen_session_options *options,
                                pen_job_session *session) {
    const pen_job *job;
    PEN_TRY(pen_command_open_job(context, options->job_path, &job));
    session->job = job;
    const bool takes_training =
        options->may_take_training && !pen_job_data_can_evaluate(&job->data);
    session->part = takes_training ? PEN_DATASET_PART_TRAIN : PEN_DATASET_PART_EVAL;
    if (options->output != NULL) {
        PEN_TRY(pen_command_check_model_output(context, job, "--output", options->output));
    }
    PEN_TRY(pen_job_open_dataset(job, session->part, context->arena, &session->dataset));
    pen_command_warn_skipped(pen_dataset_get_info(session->dataset));
    PEN_TRY(
        pen_job_find_parameters(job, options->parameters, context->arena, &session->parameters));
    return options->samples ? session_build_runner(context, options, session)
                            : session_build_inference(context, options, session);
}

pen_status pen_session_open(pen_command_context *context, const pen_session_options *options,
                            pen_job_session *out_session) {
    *out_session = (pen_job_session){0};
    const pen_status status = session_build(context, options, out_session);
    if (status != PEN_OK) {
        pen_session_close(out_session);
        *out_session = (pen_job_session){0};
        return status;
    }
    context->input_exit_code = PEN_EXIT_SPEC; // what is read from now on is data
    return PEN_OK;
}

void pen_session_close(pen_job_session *session) {
    pen_inference_destroy(session->inference);
    pen_runner_destroy(session->runner);
    pen_dataset_close(session->dataset);
}

// Whether a file of YAML has a key at the top; the rest of it is not read.
static pen_status training_has_key(const char *path, const char *key, pen_arena *arena,
                                   bool *out_has) {
    const char *bytes;
    size_t length;
    PEN_TRY(pen_file_read(path, PEN_PLAN_BYTES_LIMIT, arena, &bytes, &length));
    *out_has = false;
    for (const char *line = bytes; line != NULL && !*out_has; line = strchr(line, '\n')) {
        line += *line == '\n';
        *out_has = strncmp(line, key, strlen(key)) == 0;
    }
    return PEN_OK;
}

pen_status pen_command_is_plan(const char *path, pen_arena *arena, bool *out_is_plan) {
    return training_has_key(path, "stages:", arena, out_is_plan);
}

static pen_status training_open_job(pen_command_context *context, const pen_job_origin *origin,
                                    const pen_job **out_job) {
    pen_command_note_settings(origin->settings, origin->setting_count);
    return pen_job_open(origin, context->arena, out_job);
}

const pen_engine_tasks *pen_command_seats(const pen_command_context *context) {
    return context->tasks == NULL ? NULL : context->tasks->seats;
}

// A wrong path or value of --set is a mistake in the command line.
pen_status pen_command_open_job(pen_command_context *context, const char *path,
                                const pen_job **out_job) {
    pen_job_origin origin = {.path = path,
                             .settings = context->settings.items,
                             .setting_count = context->settings.count};
    if (context->tasks != NULL) {
        origin.tasks = context->tasks->items;
        origin.task_count = context->tasks->count;
        origin.tls = context->tasks->tls;
    }
    const pen_exit_code before = context->input_exit_code;
    const pen_status status = training_open_job(context, &origin, out_job);
    uint32_t line, column;
    const char *place = pen_status_position(status, &line, &column);
    const bool is_set = place != NULL && strncmp(place, "--set", 5) == 0;
    context->input_exit_code = is_set ? PEN_EXIT_USAGE : before;
    return status;
}

pen_status pen_command_refuse_settings(pen_command_context *context, const char *why) {
    if (context->settings.count == 0) return PEN_OK;
    context->input_exit_code = PEN_EXIT_USAGE;
    return pen_error(PEN_INVALID_INPUT, "--set: %s", why);
}

pen_status pen_command_open_planned(pen_command_context *context, const char *path,
                                    const pen_plan *plan, const pen_job **out_job) {
    const pen_job_origin origin = {
        .path = path, .settings = plan->settings, .setting_count = plan->setting_count};
    PEN_TRY(pen_command_refuse_settings(
        context, "found a plan, which is made for the values that its job had; `penstock plan JOB "
                 "--set … -o PLAN` makes one for others"));
    return training_open_job(context, &origin, out_job);
}

pen_status pen_command_read_job(pen_command_context *context, const char *path,
                                const pen_job **out_job, const pen_plan **out_plan) {
    bool is_plan;
    pen_plan *plan;
    *out_plan = NULL;
    PEN_TRY(pen_command_is_plan(path, context->arena, &is_plan));
    if (!is_plan) return pen_command_open_job(context, path, out_job);
    PEN_TRY(pen_plan_read(path, context->arena, &plan));
    *out_plan = plan;
    if (plan->job == NULL) {
        return pen_error(PEN_INVALID_INPUT, "%s names no job, expected `job: FILE`", path);
    }
    return pen_status_add_context(pen_command_open_planned(context, plan->job, plan, out_job),
                                  "while reading the job of %s", path);
}

pen_status pen_command_is_job(const char *path, pen_arena *arena, bool *out_is_job) {
    const char *end = strrchr(path, '.');
    *out_is_job = end != NULL && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0);
    return *out_is_job ? training_has_key(path, "model:", arena, out_is_job) : PEN_OK;
}
