#include "cli/follow/gauge_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/text.h"

#define GAUGE_MODE 0666 // less the umask
#define GAUGE_SECONDS 1 // between two times it is written

static void gauge_add_escaped(pen_text *text, const char *string) {
    for (; *string != '\0'; string++) {
        if (*string == '\n') {
            pen_text_add(text, "\\n");
        } else {
            pen_text_print(text, *string == '"' || *string == '\\' ? "\\%c" : "%c", *string);
        }
    }
}

// A figure; `type` is "gauge" or "counter".
static void gauge_write_as(const pen_gauge_file *gauges, FILE *file, const char *type,
                           const char *name, const char *help, double value) {
    fprintf(file, "# HELP penstock_train_%s %s\n# TYPE penstock_train_%s %s\n", name, help, name,
            type);
    fprintf(file, "penstock_train_%s{training=\"%s\"} %.17g\n", name, gauges->training, value);
}

static void gauge_write(const pen_gauge_file *gauges, FILE *file, const char *name,
                        const char *help, double value) {
    gauge_write_as(gauges, file, "gauge", name, help, value);
}

static void gauge_write_counter(const pen_gauge_file *gauges, FILE *file, const char *name,
                                const char *help, double value) {
    gauge_write_as(gauges, file, "counter", name, help, value);
}

static double gauge_share(uint64_t count, uint64_t of) {
    return (double)count / (double)of;
}

// What the last step came to; nothing before one is done.
static void gauge_write_step(const pen_gauge_file *gauges, FILE *file) {
    const pen_step_report *last = &gauges->last;
    if (!gauges->has_step) return;
    gauge_write(gauges, file, "epoch", "Epoch of the last step, counted from 1.",
                (double)last->epoch);
    gauge_write(gauges, file, "loss", "Loss of the last step.", last->loss);
    if (last->target_count > 0) {
        gauge_write(gauges, file, "accuracy", "Accuracy of the last step.",
                    gauge_share(last->correct_count, last->target_count));
    }
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, last->metrics)) continue;
        gauge_write(gauges, file, pen_metric_names[metric], "A metric of the last step.",
                    last->metric_values[metric]);
    }
    gauge_write(gauges, file, "learning_rate", "Learning rate of the last step.",
                last->learning_rate);
}

static void gauge_write_evaluation(const pen_gauge_file *gauges, FILE *file) {
    const pen_evaluation *evaluation = &gauges->evaluation;
    if (gauges->evaluated_step == 0) return;
    gauge_write(gauges, file, "evaluation_step", "Step after which the last evaluation was.",
                (double)gauges->evaluated_step);
    gauge_write(gauges, file, "evaluation_loss", "Loss of the last evaluation.", evaluation->loss);
    if (evaluation->target_count > 0) {
        gauge_write(gauges, file, "evaluation_accuracy", "Accuracy of the last evaluation.",
                    pen_evaluation_value(evaluation, PEN_METRIC_ACCURACY));
    }
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        char name[64];
        if (!pen_metric_is_in(metric, evaluation->metrics)) continue;
        snprintf(name, sizeof name, "evaluation_%s", pen_metric_names[metric]);
        gauge_write(gauges, file, name, "A metric of the last evaluation.",
                    pen_evaluation_value(evaluation, metric));
    }
}

static void gauge_write_all(const pen_gauge_file *gauges, FILE *file) {
    gauge_write(gauges, file, "running", "1 while the training runs, 0 after its end.",
                gauges->is_running ? 1 : 0);
    gauge_write(gauges, file, "step", "Steps done.", (double)gauges->step);
    gauge_write(gauges, file, "steps", "Steps after which it ends.", (double)gauges->step_count);
    gauge_write_step(gauges, file);
    gauge_write_counter(gauges, file, "examples_total", "Examples trained on by this process.",
                        (double)gauges->examples);
    gauge_write_counter(gauges, file, "seconds_total", "Seconds of the steps of this process.",
                        gauges->seconds);
    gauge_write_counter(gauges, file, "lost_total", "Times that workers were lost.",
                        (double)gauges->lost);
    gauge_write_counter(gauges, file, "recoveries_total", "Times it went on after a loss.",
                        (double)gauges->recoveries);
    gauge_write(gauges, file, "checkpoint_step", "Step of the newest checkpoint, 0 for none.",
                (double)gauges->step_kept);
    gauge_write_evaluation(gauges, file);
}

// Nothing is synced: after a loss of power the figures are old anyway, and a step does not wait.
static bool gauge_replace(const pen_gauge_file *gauges) {
    unlink(gauges->temporary);
    const int descriptor =
        open(gauges->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, GAUGE_MODE);
    if (descriptor < 0) return false;
    FILE *file = fdopen(descriptor, "w");
    if (file == NULL) {
        close(descriptor);
        return false;
    }
    gauge_write_all(gauges, file);
    bool is_done = fflush(file) == 0 && ferror(file) == 0;
    int error_number = errno;
    if (fclose(file) != 0 && is_done) {
        is_done = false;
        error_number = errno;
    }
    if (is_done && rename(gauges->temporary, gauges->path) == 0) return true;
    if (is_done) error_number = errno;
    unlink(gauges->temporary);
    errno = error_number;
    return false;
}

static void gauge_update(pen_gauge_file *gauges, bool is_due) {
    const double now = pen_clock_seconds();
    if (gauges->path == NULL) return;
    if (!is_due && gauges->written > 0 && now < gauges->written + GAUGE_SECONDS) return;
    gauges->written = now;
    if (gauge_replace(gauges) || gauges->is_warned) return;
    gauges->is_warned = true;
    pen_log(PEN_LOG_WARNING, "--metrics: cannot write '%s': %s; the training goes on without",
            gauges->path, strerror(errno));
}

pen_status pen_gauge_file_open(const char *path, pen_arena *arena, pen_gauge_file *out_gauges) {
    *out_gauges = (pen_gauge_file){0};
    if (path == NULL) return PEN_OK;
    PEN_TRY(pen_file_check_writable(path));
    const char *name = pen_path_name(path), *dot = strrchr(name, '.');
    const size_t length = dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);
    const char *training;
    pen_text text;
    PEN_TRY(pen_arena_copy_text(arena, name, length, &training));
    pen_text_init(&text, arena);
    gauge_add_escaped(&text, training);
    PEN_TRY(pen_text_finish(&text, &out_gauges->training));
    PEN_TRY(pen_arena_format(arena, &out_gauges->temporary, "%s.%ld.new", path, (long)getpid()));
    out_gauges->path = path;
    return PEN_OK;
}

void pen_gauge_file_close(pen_gauge_file *gauges) {
    gauges->is_running = false;
    gauge_update(gauges, true);
    *gauges = (pen_gauge_file){0};
}

void pen_gauge_file_start(pen_gauge_file *gauges, uint64_t step_kept, uint64_t step_count) {
    gauges->is_running = true;
    gauges->step = step_kept;
    gauges->step_kept = step_kept;
    gauges->step_count = step_count;
    gauge_update(gauges, true);
}

void pen_gauge_file_step(pen_gauge_file *gauges, const pen_step_report *report) {
    gauges->last = *report;
    gauges->has_step = true;
    gauges->step = report->step;
    gauges->examples += report->example_count;
    gauges->seconds += report->seconds + report->wait_seconds;
    gauge_update(gauges, false);
}

void pen_gauge_file_checkpoint(pen_gauge_file *gauges, uint64_t step) {
    gauges->step_kept = step;
    gauge_update(gauges, false);
}

void pen_gauge_file_evaluation(pen_gauge_file *gauges, uint64_t step,
                               const pen_evaluation *evaluation) {
    gauges->evaluated_step = step;
    gauges->evaluation = *evaluation;
    gauge_update(gauges, false);
}

void pen_gauge_file_lost(pen_gauge_file *gauges) {
    gauges->lost += 1;
    gauge_update(gauges, false);
}

void pen_gauge_file_recovered(pen_gauge_file *gauges) {
    gauges->recoveries += 1;
    gauge_update(gauges, false);
}
