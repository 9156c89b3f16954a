// penstock rate: the learning rate that a job could begin with, from a short training.

#include <stdio.h>

#include "base/system/file.h"
#include "cli/command.h"
#include "cli/run_output.h"
#include "cli/training_job.h"
#include "scheduler/report/rate_curve.h"
#include "scheduler/report/report.h"
#include "scheduler/train/find_rate.h"

#define RATE_LINES 25 // of the table, at most

typedef struct rate_options {
    pen_cli_common common;
    int64_t steps;
    double from;
    double to;
    const char *report; // file of the page; NULL: none
    bool no_memory_check;
    bool insecure;
} rate_options;

static void rate_say_best(const pen_job *job, const pen_found_rate *found) {
    if (found->best == found->count) {
        printf("no rate is suggested: the loss does not fall; more --steps, or a smaller --from\n");
        return;
    }
    printf("suggested: %.2g, where the loss falls fastest; it is least at %.2g%s. The job has %g\n",
           found->points[found->best].rate, found->points[found->least].rate,
           found->is_cut ? ", and grows behind that" : "", job->train.optimizer.lr);
}

// Not every step has a line, but the last and the suggested one do.
static pen_status rate_print(const pen_job *job, const pen_found_rate *found) {
    const uint32_t every = (found->count + RATE_LINES - 1) / RATE_LINES;
    printf("%10s  %12s  %12s\n", "rate", "loss", "smoothed");
    for (uint32_t i = 0; i < found->count; i++) {
        const pen_rate_point *point = &found->points[i];
        if (i % every != 0 && i + 1 != found->count && i != found->best) continue;
        printf("%10.3g  %12.6g  %12.6g%s\n", point->rate, point->loss, point->smoothed,
               i == found->best ? "  <" : "");
    }
    rate_say_best(job, found);
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

// All steps, for who draws them; nothing suggested is null.
static pen_status rate_print_json(const pen_job *job, const pen_found_rate *found) {
    pen_json_writer json;
    pen_command_begin_json(&json, "rate");
    pen_json_key(&json, "suggested");
    if (found->best < found->count) {
        pen_json_number(&json, found->points[found->best].rate);
    } else {
        pen_json_null(&json);
    }
    pen_json_key_number(&json, "job", job->train.optimizer.lr);
    pen_json_key_bool(&json, "diverged", found->is_cut);
    pen_json_key_array(&json, "steps");
    for (uint32_t i = 0; i < found->count; i++) {
        pen_json_begin_object(&json);
        pen_json_key_number(&json, "rate", found->points[i].rate);
        pen_json_key_number(&json, "loss", found->points[i].loss);
        pen_json_key_number(&json, "smoothed", found->points[i].smoothed);
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

// What a page is made of.
typedef struct rate_page {
    const pen_job *job;
    const char *path;
    pen_arena *arena;
} rate_page;

// The model with the curve, while there is still an engine that has both.
static pen_status rate_write_page(void *context, pen_engine *engine, const pen_found_rate *found) {
    const rate_page *page = context;
    const pen_run_picture picture = {.title = page->job->file, .box_limit = PEN_RUN_PAGE_BOXES};
    const pen_rate_curve curve = {.found = found, .job = page->job->train.optimizer.lr};
    pen_report report;
    const char *text;
    PEN_TRY(pen_run_picture_draw(engine, &picture, page->arena, &report));
    report.search = &curve;
    PEN_TRY(pen_report_html(&report, page->arena, &text));
    return pen_file_write_text(page->path, text);
}

// The range is checked before the job is read; all else is what a training checks.
static pen_status rate_run(pen_command_context *context, const void *options_given) {
    const rate_options *options = options_given;
    const pen_job *job;
    const pen_plan *plan;
    pen_found_rate found;
    if (options->from >= options->to) {
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT,
                         "--from: found %g, expected less than --to, which is %g", options->from,
                         options->to);
    }
    PEN_TRY(pen_command_read_job(context, options->common.operands[0], &job, &plan));
    const pen_run_output output = {.page = options->report};
    rate_page page = {.job = job, .path = options->report, .arena = context->arena};
    PEN_TRY(pen_run_output_check(context, &output, job));
    const pen_find_rate_options find = {.step_count = (uint32_t)options->steps,
                                        .from = options->from,
                                        .to = options->to,
                                        .no_memory_check = options->no_memory_check,
                                        .insecure = options->insecure,
                                        .plan = plan,
                                        .look = options->report == NULL ? NULL : rate_write_page,
                                        .context = &page};
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_find_rate(job, &find, context->arena, &found));
    return options->common.json ? rate_print_json(job, &found) : rate_print(job, &found);
}

static const pen_cli_option rate_cli_options[] = {
    PEN_CLI_VALUE(0, "steps", "N", INTEGER, rate_options, steps, "steps, at most",
                  PEN_OPTION_RANGE(2, 1000000), .default_text = "100"),
    PEN_CLI_VALUE(0, "from", "R", NUMBER, rate_options, from, "rate of the first step",
                  .minimum = PEN_OPTION_ABOVE(0), .default_text = "0.0000001"),
    PEN_CLI_VALUE(0, "to", "R", NUMBER, rate_options, to, "rate of the last step",
                  .minimum = PEN_OPTION_ABOVE(0), .default_text = "10"),
    PEN_CLI_VALUE(0, "report", "FILE", PATH, rate_options, report,
                  "an HTML page with the curve, and the model"),
    PEN_CLI_NO_MEMORY_CHECK(rate_options),
    PEN_CLI_INSECURE(rate_options),
};

const pen_command pen_command_rate = {
    .name = "rate",
    .summary = "a learning rate to begin with, from a short training that keeps nothing",
    .table = {PEN_CLI_OPERANDS("JOB|PLAN", 1, 1), PEN_CLI_OPTIONS(rate_cli_options),
              .takes_job = true,
              .examples = "penstock rate job.yaml\n"
                          "penstock rate --steps 200 --to 1 --report rate.html job.yaml\n"},
    .connects = true,
    .starts_itself = true,
    .options_bytes = sizeof(rate_options),
    .run = rate_run,
};
