#include "cli/train_log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/evaluation_text.h"
#include "cli/loss_terms.h"
#include "scheduler/report/run_report.h"

#define LOG_SCHEMA "penstock/train-log/1"
#define LOG_MODE 0666 // less the umask

// ---- a line

static pen_json_writer *log_begin(pen_train_log *log, const char *event) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    rewind(log->line);
    pen_json_init_file(&log->json, log->line, 0);
    pen_json_begin_object(&log->json);
    pen_json_key_text(&log->json, "schema", LOG_SCHEMA);
    pen_json_key_text(&log->json, "event", event);
    pen_json_key_number(&log->json, "time", (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    return &log->json;
}

// A line of which a part went out is ended before the next.
static bool log_write(pen_train_log *log) {
    if (log->is_cut && write(log->file, "\n", 1) != 1) return false;
    log->is_cut = false;
    size_t done = 0;
    while (done < log->length) {
        const ssize_t count = write(log->file, log->text + done, log->length - done);
        if (count < 0 && errno == EINTR) continue;
        log->is_cut = count <= 0 && done > 0;
        if (count <= 0) return false;
        done += (size_t)count;
    }
    return true;
}

static void log_end(pen_train_log *log) {
    pen_json_end_object(&log->json);
    const pen_status status = pen_json_finish(&log->json);
    errno = ENOMEM;
    const bool is_done = status == PEN_OK && fflush(log->line) == 0 && log_write(log);
    pen_status_ignore(status, "memory for a line is all that can be missing");
    if (is_done || log->is_warned) return;
    log->is_warned = true;
    pen_log(PEN_LOG_WARNING, "--log: cannot write '%s': %s; the training goes on without",
            strcmp(log->path, "-") == 0 ? "standard output" : log->path, strerror(errno));
}

// ---- fields

// The evaluation after a step is part of it.
void pen_train_write_step(pen_json_writer *json, const pen_program *program,
                          const pen_step_report *report) {
    pen_json_key_unsigned(json, "step", report->step);
    pen_json_key_unsigned(json, "epoch", report->epoch);
    pen_json_key_number(json, "loss", report->loss);
    pen_loss_terms_write(json, program, report->terms);
    pen_json_key_unsigned(json, "examples", report->example_count);
    if (report->target_count > 0) {
        pen_json_key_number(json, "accuracy",
                            (double)report->correct_count / (double)report->target_count);
    }
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, report->metrics)) continue;
        pen_json_key_number(json, pen_metric_names[metric], report->metric_values[metric]);
    }
    pen_json_key_number(json, "learning_rate", report->learning_rate);
    if (report->loss_scale > 0) {
        pen_json_key_number(json, "loss_scale", report->loss_scale);
        pen_json_key_bool(json, "skipped", report->is_skipped);
    }
    pen_json_key_number(json, "seconds", report->seconds);
    pen_json_key_number(json, "wait_seconds", report->wait_seconds);
    if (!report->is_evaluated) return;
    pen_json_key_object(json, "evaluation");
    pen_train_write_evaluation(json, program, &report->evaluation);
    pen_json_key_bool(json, "best", report->is_best);
    pen_json_end_object(json);
}

void pen_train_write_evaluation(pen_json_writer *json, const pen_program *program,
                                const pen_evaluation *evaluation) {
    pen_json_key_number(json, "loss", evaluation->loss);
    pen_loss_terms_write(json, program, evaluation->terms);
    pen_json_key_unsigned(json, "examples", evaluation->example_count);
    if (evaluation->target_count > 0) {
        pen_json_key_number(json, "accuracy",
                            pen_evaluation_value(evaluation, PEN_METRIC_ACCURACY));
    }
    pen_evaluation_write_metrics(json, evaluation);
}

void pen_train_write_best(pen_json_writer *json, const pen_checkpoint_evaluated *evaluated) {
    if (evaluated->count == 0) return;
    pen_json_key_object(json, "best");
    pen_json_key_unsigned(json, "step", evaluated->best_step);
    pen_json_key_text(json, "metric", pen_metric_names[evaluated->metric]);
    pen_json_key_number(json, "value", evaluated->best);
    pen_json_key_unsigned(json, "evaluations", evaluated->count);
    pen_json_key_unsigned(json, "since_best", evaluated->since_best);
    pen_json_end_object(json);
}

// ---- events

static void log_plan(pen_train_log *log, const pen_job *job, pen_engine *engine) {
    const pen_plan *plan = engine->kind->plan != NULL ? engine->kind->plan(engine) : NULL;
    pen_json_writer *json = log_begin(log, "plan");
    if (plan != NULL) {
        pen_json_key_text(json, "strategy", plan->strategy);
        pen_json_key_text(json, "schedule", plan->schedule);
        pen_json_key_unsigned(json, "microbatches", plan->microbatch_count);
        pen_json_key_unsigned(json, "stages", plan->stages.stage_count);
        pen_json_key_number(json, "step_seconds", plan->step_seconds);
    }
    pen_json_key_array(json, "devices");
    for (uint32_t i = 0; i < job->cluster.device_count; i++) {
        pen_json_text(json, job->cluster.devices[i].name);
    }
    pen_json_end_array(json);
    log_end(log);
}

static void log_lost(void *context, uint64_t step, const char *text) {
    pen_train_log *log = context;
    if (log->path == NULL) return;
    pen_json_writer *json = log_begin(log, "lost");
    pen_json_key_unsigned(json, "step", step);
    pen_json_key_text(json, "message", text);
    log_end(log);
}

static void log_recovered(void *context, uint64_t step, uint64_t changed_step) {
    pen_train_log *log = context;
    if (log->path == NULL) return;
    pen_json_writer *json = log_begin(log, "recovery");
    pen_json_key_unsigned(json, "step", step);
    if (changed_step > 0) pen_json_key_unsigned(json, "changed_step", changed_step);
    log_end(log);
}

void pen_train_log_arithmetic(pen_json_writer *json, const pen_trainer *trainer) {
    uint64_t changed_step;
    pen_json_key_text(json, "arithmetic", pen_trainer_arithmetic(trainer, &changed_step));
    if (changed_step > 0) pen_json_key_unsigned(json, "changed_step", changed_step);
}

// Without O_TRUNC a training that goes on adds its lines to those of before.
pen_status pen_train_log_open(const char *path, bool adds, pen_train_log *out_log) {
    *out_log = (pen_train_log){0};
    if (path == NULL) return PEN_OK;
    const bool is_output = strcmp(path, "-") == 0;
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (adds ? 0 : O_TRUNC);
    const int file = is_output ? STDOUT_FILENO : open(path, flags, LOG_MODE);
    if (file < 0) return pen_error(PEN_IO, "cannot write '%s': %s", path, strerror(errno));
    out_log->line = open_memstream(&out_log->text, &out_log->length);
    if (out_log->line == NULL) {
        if (!is_output) close(file);
        return pen_error_out_of_memory();
    }
    if (is_output) signal(SIGPIPE, SIG_IGN); // a reader that is gone is told by the write
    out_log->path = path;
    out_log->file = file;
    out_log->watch =
        (pen_train_watch){.context = out_log, .lost = log_lost, .recovered = log_recovered};
    pen_metrics_start(&out_log->metrics, pen_clock_seconds());
    return PEN_OK;
}

// The settings and sizes stand in the log itself, so that it can be read without the job.
void pen_train_log_start(pen_train_log *log, const pen_job *job, pen_trainer *trainer) {
    if (log->path == NULL) return;
    const pen_training_size size = pen_trainer_get_size(trainer);
    pen_json_writer *json = log_begin(log, "start");
    pen_json_key_text(json, "version", PEN_VERSION);
    pen_json_key_text(json, "job", job->file);
    pen_json_key_array(json, "set");
    for (uint32_t i = 0; i < job->setting_count; i++) {
        pen_json_text(json, job->settings[i]);
    }
    pen_json_end_array(json);
    pen_json_key_text(json, "model", job->model.file);
    pen_json_key_unsigned(json, "parameters", size.trainable_elements);
    pen_json_key_unsigned(json, "examples", size.example_count);
    pen_json_key_unsigned(json, "steps", size.step_count);
    pen_json_key_unsigned(json, "job_steps", pen_job_get_step_count(job, size.epoch_steps));
    pen_json_key_unsigned(json, "epoch_steps", size.epoch_steps);
    pen_json_key_unsigned(json, "steps_kept", pen_trainer_step_kept(trainer));
    pen_json_key_text(json, "precision", pen_precision_names[job->numerics.precision]);
    pen_json_key_integer(json, "pid", getpid());
    pen_train_log_arithmetic(json, trainer);
    log_end(log);
    log->step_kept = pen_trainer_step_kept(trainer);
    log->step = log->step_kept; // where it goes on
    log_plan(log, job, pen_trainer_engine(trainer));
}

// The means are over those steps of the epoch that this process did.
static void log_epoch(pen_train_log *log, const pen_step_report *report) {
    pen_json_writer *json = log_begin(log, "epoch");
    pen_json_key_unsigned(json, "epoch", report->epoch);
    pen_json_key_unsigned(json, "step", report->step);
    pen_json_key_number(json, "loss", pen_metrics_loss(&log->metrics));
    if (log->metrics.judged_count > 0) {
        pen_json_key_number(json, "accuracy", pen_metrics_accuracy(&log->metrics));
    }
    pen_json_key_unsigned(json, "examples", log->metrics.example_count);
    pen_json_key_number(json, "seconds", log->epoch_seconds);
    log_end(log);
    log->epoch_seconds = 0;
    pen_metrics_start(&log->metrics, pen_clock_seconds());
}

void pen_train_log_step(pen_train_log *log, const pen_step_report *report,
                        const pen_program *program) {
    if (log->path == NULL) return;
    pen_train_write_step(log_begin(log, "step"), program, report);
    log_end(log);
    log->step = report->step;
    log->ends = report->ends;
    log->epoch_seconds += report->seconds + report->wait_seconds;
    pen_metrics_add(&log->metrics, report->loss, report->example_count);
    pen_metrics_add_correct(&log->metrics, report->correct_count, report->target_count);
    if (report->ends_epoch) log_epoch(log, report);
}

void pen_train_log_checkpoint(pen_train_log *log, const pen_trainer *trainer) {
    const uint64_t step = trainer == NULL ? 0 : pen_trainer_step_kept(trainer);
    if (log->path == NULL || step == log->step_kept) return;
    log->step_kept = step;
    pen_json_writer *json = log_begin(log, "checkpoint");
    pen_json_key_unsigned(json, "step", step);
    if (log->checkpoints != NULL) pen_json_key_text(json, "folder", log->checkpoints);
    if (log->mirror != NULL) {
        pen_json_key_text(json, "mirror", log->mirror);
        const pen_train_kept kept = pen_trainer_get_kept(trainer);
        pen_json_key_unsigned(json, "copies", kept.copies);
        if (kept.without != NULL) pen_json_key_text(json, "without", kept.without);
    }
    log_end(log);
}

void pen_train_format_kept(const pen_trainer *trainer, char out_text[PEN_TRAIN_KEPT_BYTES]) {
    const pen_train_kept kept = pen_trainer_get_kept(trainer);
    out_text[0] = '\0';
    if (kept.without == NULL) return;
    snprintf(out_text, PEN_TRAIN_KEPT_BYTES,
             "the checkpoint of step %llu is in %.300s alone, and lost with it: %.300s has not got "
             "it, and an older one at most",
             (unsigned long long)kept.step, kept.folder, kept.without);
}

void pen_train_say_alone(const pen_trainer *trainer) {
    char text[PEN_TRAIN_KEPT_BYTES];
    pen_train_format_kept(trainer, text);
    if (text[0] != '\0') pen_log(PEN_LOG_WARNING, "%s", text);
}

void pen_train_write_kept(pen_json_writer *json, const pen_trainer *trainer) {
    const pen_train_kept kept = pen_trainer_get_kept(trainer);
    if (kept.step == 0) return;
    pen_json_key_object(json, "checkpoint");
    pen_json_key_unsigned(json, "step", kept.step);
    pen_json_key_text(json, "folder", kept.folder);
    if (kept.without != NULL) pen_json_key_text(json, "without", kept.without);
    pen_json_end_object(json);
}

void pen_train_log_evaluation(pen_train_log *log, const pen_step_report *report,
                              const pen_program *program) {
    if (log->path == NULL) return;
    pen_json_writer *json = log_begin(log, "evaluation");
    pen_json_key_unsigned(json, "step", report->step);
    pen_train_write_evaluation(json, program, &report->evaluation);
    if (report->is_evaluated) pen_json_key_bool(json, "best", report->is_best);
    log_end(log);
}

// How it ended, and with what error.
void pen_train_log_close(pen_train_log *log, const char *hash, pen_status status, int input_code) {
    if (log->path == NULL) return;
    const bool is_stopped = pen_status_get_code(status) == PEN_CANCELLED || hash[0] == '\0';
    const bool is_failed = status != PEN_OK && pen_status_get_code(status) != PEN_CANCELLED;
    pen_json_writer *json = log_begin(log, "end");
    pen_json_key_text(json, "outcome", is_failed ? "failed" : is_stopped ? "stopped" : "done");
    pen_json_key_unsigned(json, "step", log->step);
    if (log->ends) pen_json_key_bool(json, "by_evaluation", true);
    if (hash[0] != '\0') pen_json_key_text(json, "parameters_hash", hash);
    if (status != PEN_OK) pen_json_key_text(json, "error", pen_status_message(status));
    const int code = status == PEN_OK ? 0 : pen_status_exit_code(status, input_code);
    pen_json_key_integer(json, "exit_code", code);
    log_end(log);
    if (fclose(log->line) != 0) pen_log(PEN_LOG_DEBUG, "the log's buffer is lost");
    if (log->file != STDOUT_FILENO) close(log->file);
    free(log->text);
    *log = (pen_train_log){0};
}

void pen_train_write_predicted(pen_json_writer *json, const pen_engine_memory *memory,
                               const pen_engine_report *report) {
    pen_json_key_object(json, "predicted");
    pen_json_key_unsigned(json, "device_bytes", memory->device_bytes);
    pen_json_key_unsigned(json, "persistent_bytes", memory->persistent_bytes);
    pen_json_key_unsigned(json, "arena_bytes", memory->arena_bytes);
    pen_json_key_unsigned(json, "live_bytes_peak", memory->live_bytes_peak);
    pen_json_key_unsigned(json, "resident_bytes_peak", memory->resident_bytes_peak);
    if (report != NULL) pen_run_report_json(json, report, PEN_RUN_REPORT_PREDICTED);
    pen_json_end_object(json);
}
