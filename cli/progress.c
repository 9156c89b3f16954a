#include "cli/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format/text_columns.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/loss_terms.h"
#include "scheduler/report/run_report.h"

#define PROGRESS_TERMINAL_SECONDS 0.1
#define PROGRESS_PLAIN_SECONDS 5.0

void pen_progress_init(pen_progress *progress, bool is_quiet) {
    *progress = (pen_progress){.is_terminal = isatty(STDERR_FILENO) != 0, .is_quiet = is_quiet};
    progress->shown_seconds = pen_clock_seconds();
    pen_metrics_start(&progress->metrics, progress->shown_seconds);
}

static void progress_print_time(char *text, size_t bytes, double seconds) {
    if (!(seconds >= 0) || seconds > 3.6e6) {
        snprintf(text, bytes, "?");
    } else if (seconds < 60) {
        snprintf(text, bytes, "%.0fs", seconds);
    } else {
        snprintf(text, bytes, "%.0fm%02.0fs", floor(seconds / 60), fmod(seconds, 60));
    }
}

// Columns that a line may take; 0: any number.
static size_t progress_columns(const pen_progress *progress) {
    struct winsize size;
    if (!progress->is_terminal) return 0;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 0;
    return (size_t)size.ws_col - 1;
}

static void progress_cut(char *line, size_t columns) {
    size_t length = strlen(line);
    while (length > 0 && pen_text_columns(line) > columns) {
        length -= 1;
        while (length > 0 && ((unsigned char)line[length] & 0xC0u) == 0x80u) {
            length -= 1;
        }
        line[length] = '\0';
    }
}

// The loss stands out where there are colours; codes take no columns, so the line is cut before.
static void progress_write(const pen_progress *progress, const char *line) {
    const char *loss = strstr(line, "loss ");
    const bool is_painted = progress->is_terminal && pen_log_has_colour() && loss != NULL;
    const int before = is_painted ? (int)(loss - line) : 0;
    const int length = is_painted ? (int)strcspn(loss + 5, " ") + 5 : 0;
    fprintf(stderr, "%s%.*s%s%.*s%s%s%s", progress->is_terminal ? "\r" : "", before, line,
            is_painted ? "\x1b[1;36m" : "", length, is_painted ? loss : "",
            is_painted ? "\x1b[0m" : "", line + before + length,
            progress->is_terminal ? "\x1b[K" : "\n");
    fflush(stderr);
}

// With which the step's gradients were made; empty where the loss is not scaled.
static void progress_print_scale(char *text, size_t size, const pen_step_report *report) {
    text[0] = '\0';
    if (report->loss_scale == 0) return;
    snprintf(text, size, "  scale %g%s", report->loss_scale,
             report->is_skipped ? " (skipped)" : "");
}

// One line that is written over on a terminal, and a line each where the output goes into a file.
// What does not fit is left out from the least important on.
static void progress_show(pen_progress *progress, const pen_training_size *size,
                          const pen_step_report *report, const pen_engine *engine) {
    const double now = pen_clock_seconds();
    const pen_metrics *metrics = &progress->metrics;
    const double rate = pen_metrics_samples_per_second(metrics, now);
    pen_engine_pulse pulse = {.bubble = -1};
    char accuracy[32] = "", left[32], scale[48], devices[PEN_RUN_REPORT_LINE_BYTES], line[768];
    char terms[PEN_LOSS_TERMS_TEXT_BYTES];
    double means[PEN_TERMS_LIMIT];
    pen_metrics_terms(metrics, means);
    pen_loss_terms_format(engine->kind->program(engine), means, terms);
    if (metrics->judged_count > 0) {
        snprintf(accuracy, sizeof accuracy, "  accuracy %.4f", pen_metrics_accuracy(metrics));
    }
    const double steps_left = (double)(size->step_count - report->step);
    const double step_examples = (double)metrics->example_count / (double)progress->step_count;
    progress_print_time(left, sizeof left, rate > 0 ? steps_left * step_examples / rate : NAN);
    if (engine->kind->pulse != NULL) engine->kind->pulse(engine, &pulse);
    pen_run_report_line(&pulse, devices);
    const size_t columns = progress_columns(progress);
    progress_print_scale(scale, sizeof scale, report);
    for (int part = 0; part < 2; part++) {
        snprintf(line, sizeof line,
                 "epoch %llu  step %llu/%llu  loss %.4f%s%s%s  %.0f samples/s  %s left%s%s",
                 (unsigned long long)report->epoch, (unsigned long long)report->step,
                 (unsigned long long)size->step_count, pen_metrics_loss(metrics), terms, accuracy,
                 scale, rate, left, devices[0] != '\0' ? "  " : "", devices);
        // what the devices do goes before the accuracy
        if (columns == 0 || devices[0] == '\0' || pen_text_columns(line) <= columns) break;
        accuracy[0] = '\0';
    }
    if (columns > 0) progress_cut(line, columns);
    progress_write(progress, line);
    if (progress->is_terminal) pen_log_leave_line();
    progress->shown_seconds = now;
}

void pen_progress_step(pen_progress *progress, const pen_training_size *size,
                       const pen_step_report *report, const pen_engine *engine) {
    pen_metrics_add(&progress->metrics, report->loss, report->example_count);
    pen_metrics_add_terms(&progress->metrics, report->terms, report->example_count);
    pen_metrics_add_correct(&progress->metrics, report->correct_count, report->target_count);
    progress->step_count += 1;
    if (!progress->is_quiet) {
        const double patience =
            progress->is_terminal ? PROGRESS_TERMINAL_SECONDS : PROGRESS_PLAIN_SECONDS;
        const bool is_last = report->ends_epoch || report->step == size->step_count;
        if (is_last || pen_clock_seconds() - progress->shown_seconds >= patience) {
            progress_show(progress, size, report, engine);
        }
        if (is_last) pen_progress_end(progress);
    }
    if (!report->ends_epoch) return;
    progress->step_count = 0;
    pen_metrics_start(&progress->metrics, pen_clock_seconds());
}

void pen_progress_end(pen_progress *progress) {
    if (progress->is_terminal && !progress->is_quiet) pen_log_end_line();
}
