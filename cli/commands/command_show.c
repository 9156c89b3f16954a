// penstock show: pictures of a model, and of a plan.

#include <stdio.h>
#include <string.h>

#include "base/system/file.h"
#include "cli/command.h"
#include "cli/model_view.h"
#include "cli/run_output.h"
#include "cli/training_job.h"
#include "device/reference/reference_evaluate.h"
#include "graph/dump/drawing.h"
#include "graph/dump/dump_drawing_dot.h"
#include "graph/dump/dump_svg.h"
#include "graph/dump/layered_layout.h"
#include "graph/import/import.h"
#include "partition/plan/plan_build.h"
#include "partition/plan/plan_file.h"
#include "scheduler/checkpoint/model_export.h"
#include "scheduler/plan/plan_job.h"
#include "scheduler/report/report.h"
#include "scheduler/report/report_plan.h"
#include "scheduler/report/run_figures.h"
#include "scheduler/trace/trace_file.h"

// Boxes beyond which names are collapsed: of pictures that are looked at as a whole, and of the
// page, in which one moves about.
#define SHOW_PICTURE_LIMIT 1500

typedef enum show_form {
    SHOW_DOT,
    SHOW_SVG,
    SHOW_HTML,
    SHOW_JSON,
    SHOW_ONNX, // the model, with the places of its nodes
    SHOW_FORM_COUNT,
} show_form;

static const char *const show_suffixes[SHOW_FORM_COUNT] = {".dot", ".svg", ".html", ".json",
                                                           ".onnx"};

typedef struct show_options {
    pen_cli_common common;
    const char *output;
    const char *job;
    int64_t batch;
    const char *sizes;
    bool fused;
    int64_t boxes;
    const char *trace;
} show_options;

static bool show_ends_with(const char *path, const char *suffix) {
    const size_t length = strlen(path);
    const size_t suffix_length = strlen(suffix);
    return length > suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

static bool show_is_model(const char *path) {
    static const char *const suffixes[] = {".onnx", ".pt2", ".pt", ".h5", ".hdf5", ".keras", ".pb"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (show_ends_with(path, suffixes[i])) return true;
    }
    return false;
}

static pen_status show_find_form(const char *output, show_form *out_form) {
    if (output == NULL) {
        return pen_error(PEN_INVALID_INPUT, "-o is missing: a file that ends with .dot, .svg, "
                                            ".html, .json or .onnx");
    }
    for (int form = 0; form < SHOW_FORM_COUNT; form++) {
        if (!show_ends_with(output, show_suffixes[form])) continue;
        *out_form = (show_form)form;
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT,
                     "-o: found '%s', expected a file that ends with .dot, .svg, .html, .json or "
                     ".onnx",
                     output);
}

// Pictures hold fewer boxes than pages, which can be searched and zoomed; more than that are drawn
// together by name.
static pen_status show_make(const show_options *options, show_form form, pen_report *report,
                            const pen_drawing_options *groups, pen_arena *arena) {
    const bool is_picture = form == SHOW_DOT || form == SHOW_SVG;
    pen_drawing_options drawing_options = *groups;
    pen_drawing *drawing;
    const char *text = "";
    drawing_options.box_limit = is_picture ? SHOW_PICTURE_LIMIT : PEN_RUN_PAGE_BOXES;
    if (options->boxes > 0) drawing_options.box_limit = (uint32_t)options->boxes;
    PEN_TRY(pen_drawing_new(report->graph, &drawing_options, arena, &drawing));
    if (form != SHOW_DOT) PEN_TRY(pen_layered_layout(drawing, arena));
    drawing->title = pen_path_name(options->common.operands[0]);
    report->drawing = drawing;
    if (form == SHOW_HTML || form == SHOW_JSON) {
        PEN_TRY(pen_report_add_modules(report, groups, arena));
    }
    switch (form) {
    case SHOW_DOT:
        PEN_TRY(pen_dump_drawing_dot(drawing, report->graph, arena, &text));
        break;
    case SHOW_SVG:
        PEN_TRY(pen_dump_svg(drawing, report->graph, arena, &text));
        break;
    case SHOW_HTML:
        PEN_TRY(pen_report_html(report, arena, &text));
        break;
    case SHOW_JSON:
        PEN_TRY(pen_report_json(report, arena, &text));
        break;
    case SHOW_ONNX:
    case SHOW_FORM_COUNT:
        break;
    }
    PEN_TRY(pen_file_write_text(options->output, text));
    if (options->common.json) {
        pen_json_writer json;
        pen_command_begin_json(&json, "show");
        pen_json_key_text(&json, "output", options->output);
        pen_json_key_unsigned(&json, "boxes", drawing->box_count);
        pen_json_key_unsigned(&json, "arrows", drawing->arrow_count);
        pen_json_end_object(&json);
        return pen_json_finish(&json);
    }
    printf("%s: %u boxes, %u arrows\n", options->output, drawing->box_count, drawing->arrow_count);
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

static pen_status show_model(pen_command_context *context, const show_options *options,
                             show_form form) {
    pen_model *model;
    pen_report report = {0};
    const pen_drawing_options groups = {0};
    const pen_model_view_sizes sizes = {
        .batch = options->batch, .sizes = options->sizes, .fused = options->fused};
    context->input_exit_code = PEN_EXIT_MODEL;
    const pen_import_options import = {.evaluate = pen_reference_evaluate};
    PEN_TRY(pen_model_open(options->common.operands[0], &import, &model));
    pen_status status = pen_model_view(context, &sizes, model, &report.graph);
    if (status != PEN_OK) goto done;
    context->input_exit_code = PEN_EXIT_USAGE;
    status = show_make(options, form, &report, &groups, context->arena);
done:
    pen_model_destroy(model);
    return status;
}

// The model of a plan, whose nodes say where they run.
static pen_status show_export(const show_options *options, const pen_job *job,
                              const pen_plan *plan) {
    pen_model *model;
    uint32_t count = 0;
    const pen_import_options import = pen_job_import_options(job);
    PEN_TRY(pen_job_blame(job, &job->model.file, pen_model_open(job->model.file, &import, &model)));
    const pen_model_export_options export = {.plan = plan};
    const pen_status status = pen_model_export_file(model, &export, options->output, &count);
    pen_model_destroy(model);
    PEN_TRY(status);
    if (options->common.json) {
        pen_json_writer json;
        pen_command_begin_json(&json, "show");
        pen_json_key_text(&json, "output", options->output);
        pen_json_key_unsigned(&json, "tensors", count);
        pen_json_end_object(&json);
        return pen_json_finish(&json);
    }
    printf("%s: %u tensors\n", options->output, count);
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

// The graph of a plan, with the plan in it.
static pen_status show_plan(pen_command_context *context, const show_options *options,
                            show_form form, const pen_job *job, const pen_plan_job *plan_job,
                            const pen_plan *plan) {
    pen_report report;
    pen_drawing_options groups;
    if (form == SHOW_ONNX) return show_export(options, job, plan);
    PEN_TRY(pen_report_plan(pen_plan_job_program(plan_job)->graph, plan, context->arena, &report,
                            &groups));
    if (options->trace != NULL) {
        PEN_TRY(pen_trace_file_read(options->trace, context->arena, &report.trace));
        PEN_TRY(pen_status_add_context(pen_run_check_trace(plan, report.trace),
                                       "while reading the trace %s", options->trace));
    }
    return show_make(options, form, &report, &groups, context->arena);
}

static pen_status show_job(pen_command_context *context, const show_options *options,
                           show_form form) {
    const pen_plan_job_options job_options = {.objective = -1, .seed = -1};
    const pen_job *job;
    pen_plan_job *plan_job;
    pen_plan *plan;
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(pen_command_open_job(context, options->common.operands[0], &job));
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_plan_job_create(job, &job_options, &plan_job));
    context->input_exit_code = PEN_EXIT_SPEC;
    pen_status status = pen_plan_job_place(plan_job, context->arena, &plan);
    if (status == PEN_OK) status = show_plan(context, options, form, job, plan_job, plan);
    pen_plan_job_destroy(plan_job);
    return status;
}

// That the plan is one of this model, of these devices, and keeps what the job asks for.
static pen_status show_check_plan(pen_plan_job *plan_job, const pen_plan *plan, pen_arena *arena) {
    const pen_plan_request *request;
    pen_planner *planner;
    pen_plan_solution solution;
    PEN_TRY(pen_plan_job_use_plan(plan_job, plan, &request));
    PEN_TRY(pen_planner_new(request, arena, &planner));
    return pen_plan_solve_given(planner, plan, arena, &solution);
}

// A plan as it stands in its file, over the model of its job.
static pen_status show_plan_file(pen_command_context *context, const show_options *options,
                                 show_form form) {
    const char *path = options->common.operands[0];
    const pen_job *job;
    pen_plan *plan;
    pen_plan_job *plan_job;
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(pen_plan_read(path, context->arena, &plan));
    const char *job_path = options->job != NULL ? options->job : plan->job;
    if (job_path == NULL) {
        return pen_error(PEN_INVALID_INPUT, "%s names no job: --job says which", path);
    }
    const pen_plan_job_options job_options = {.objective = -1,
                                              .seed = -1,
                                              .cost_table = plan->costs,
                                              .schedule = plan->schedule,
                                              .given = plan};
    PEN_TRY(pen_status_add_context(pen_command_open_planned(context, job_path, plan, &job),
                                   "while reading the job of %s", path));
    context->input_exit_code = PEN_EXIT_MODEL;
    PEN_TRY(pen_plan_job_create(job, &job_options, &plan_job));
    context->input_exit_code = PEN_EXIT_SPEC;
    pen_status status = show_check_plan(plan_job, plan, context->arena);
    if (status == PEN_OK) status = show_plan(context, options, form, job, plan_job, plan);
    pen_plan_job_destroy(plan_job);
    return pen_status_add_context(status, "in %s", path);
}

// What the operand is, a model, job or plan, is told by its contents; what is written, by the name
// of the output.
static pen_status show_run(pen_command_context *context, const void *options_given) {
    const show_options *options = options_given;
    const char *path = options->common.operands[0];
    show_form form;
    bool is_plan;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(show_find_form(options->output, &form));
    PEN_TRY(pen_command_check_output(context, options->output));
    if (options->trace != NULL && form != SHOW_HTML && form != SHOW_JSON) {
        return pen_error(PEN_INVALID_INPUT, "--trace is for pages and JSON: -o FILE.html or .json");
    }
    if (show_is_model(path) && options->trace != NULL) {
        return pen_error(PEN_INVALID_INPUT, "--trace goes with a plan or job, '%s' is a model",
                         path);
    }
    if (form == SHOW_ONNX && show_is_model(path)) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' is a model, expected a plan or job: -o FILE.onnx has the model with "
                         "the places that a plan gives it",
                         path);
    }
    if (show_is_model(path)) {
        PEN_TRY(pen_command_refuse_settings(context, "found a model, expected a job"));
    }
    if (show_is_model(path)) return show_model(context, options, form);
    context->input_exit_code = PEN_EXIT_SPEC;
    PEN_TRY(pen_command_is_plan(path, context->arena, &is_plan));
    return is_plan ? show_plan_file(context, options, form) : show_job(context, options, form);
}

static const pen_cli_option show_cli_options[] = {
    PEN_CLI_VALUE('o', "output", "FILE", TEXT, show_options, output,
                  "the picture: FILE.dot, .svg, .html or .json; of a plan, FILE.onnx too: the "
                  "model, whose nodes say where they run"),
    PEN_CLI_VALUE(0, "job", "JOB", TEXT, show_options, job,
                  "the job that was planned, in place of the one that the plan names"),
    PEN_CLI_VALUE(0, "trace", "FILE", PATH, show_options, trace,
                  "a trace of a run (train --trace), shown beside the plan"),
    PEN_CLI_VALUE(0, "batch", "N", INTEGER, show_options, batch, "examples in a batch, for a model",
                  .default_text = "1", .minimum = PEN_OPTION_FROM(1)),
    PEN_CLI_VALUE(0, "sizes", "NAME=N,…", TEXT, show_options, sizes,
                  "sizes of the model's other symbolic dimensions"),
    PEN_CLI_FLAG(0, "fused", show_options, fused,
                 "a model as it runs: operators that the exporter wrote in several nodes are one"),
    PEN_CLI_VALUE(0, "boxes", "N", INTEGER, show_options, boxes,
                  "nodes drawn one by one at most; beyond, those whose names begin alike are "
                  "one box; 0: 1500, in pages 40000",
                  .default_text = "0", PEN_OPTION_RANGE(0, 1000000)),
};

const pen_command pen_command_show = {
    .name = "show",
    .summary = "a picture of a model or plan: DOT, SVG, a page to look around in, or JSON",
    .table = {PEN_CLI_OPERANDS("PLAN|MODEL|JOB", 1, 1), PEN_CLI_OPTIONS(show_cli_options),
              .takes_job = true,
              .details =
                  "A job is planned first. The page needs no network: open it in any browser.\n",
              .examples = "penstock show -o model.svg model.onnx\n"
                          "penstock show -o plan.html made.plan\n"},
    .options_bytes = sizeof(show_options),
    .run = show_run,
};
