#include "cli/run_output.h"
#include "base/system/file.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/training_job.h"
#include "graph/dump/layered_layout.h"
#include "scheduler/report/report.h"
#include "scheduler/report/run_report.h"
#include "scheduler/trace/trace_file.h"

// One device records no trace. Its page is the model, with the curves of the training.
pen_status pen_run_output_check(pen_command_context *context, const pen_run_output *output,
                                const pen_job *job) {
    const size_t length = output->page != NULL ? strlen(output->page) : 0;
    if (output->page != NULL && (length < 6 || strcmp(output->page + length - 5, ".html") != 0)) {
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_INVALID_INPUT,
                         "--report: found '%s', expected a file that ends with "
                         ".html",
                         output->page);
    }
    if (output->trace != NULL && pen_engine_is_local(job)) {
        context->input_exit_code = PEN_EXIT_USAGE;
        return pen_error(PEN_UNSUPPORTED,
                         "--trace: a training on one device records none: list several devices");
    }
    if (output->trace != NULL) PEN_TRY(pen_command_check_output(context, output->trace));
    if (output->page != NULL) PEN_TRY(pen_command_check_output(context, output->page));
    return PEN_OK;
}

pen_status pen_run_history_new(const pen_program *program, pen_arena *arena,
                               pen_training_history **out_history) {
    const char **names;
    const uint32_t count = program->term_count + program->told_count;
    PEN_TRY(PEN_NEW(arena, count, &names));
    for (uint32_t i = 0; i < program->term_count; i++) {
        names[i] = program->losses[i].name;
    }
    for (uint32_t i = 0; i < program->told_count; i++) {
        names[program->term_count + i] = pen_metric_names[program->told[i].metric];
    }
    return pen_training_history_new(names, count, program->told_count, arena, out_history);
}

pen_status pen_run_output_begin(pen_command_context *context, pen_run_output *output,
                                const pen_program *program) {
    if (output->page == NULL) return PEN_OK;
    return pen_run_history_new(program, context->arena, &output->history);
}

// A training on one device has no plan: then it is the model alone.
pen_status pen_run_picture_draw(pen_engine *engine, const pen_run_picture *picture,
                                pen_arena *arena, pen_report *out_report) {
    pen_drawing_options options = {0};
    pen_drawing *drawing;
    const pen_plan *plan = engine->kind->plan == NULL ? NULL : engine->kind->plan(engine);
    const pen_graph *graph = engine->kind->program(engine)->graph;
    *out_report = (pen_report){.graph = graph};
    if (plan != NULL) PEN_TRY(pen_report_plan(graph, plan, arena, out_report, &options));
    options.box_limit = picture->box_limit;
    PEN_TRY(pen_drawing_new(graph, &options, arena, &drawing));
    PEN_TRY(pen_layered_layout(drawing, arena));
    drawing->title = picture->title;
    out_report->drawing = drawing;
    return pen_report_add_modules(out_report, &options, arena);
}

// The page of a run: its plan as a picture, what really happened on it, and the figures.
static pen_status output_write_page(const pen_run_output *output, pen_engine *engine,
                                    const pen_trace *trace, pen_arena *arena) {
    const pen_run_picture picture = {.title = output->title, .box_limit = PEN_RUN_PAGE_BOXES};
    pen_report report;
    const char *text;
    PEN_TRY(pen_run_picture_draw(engine, &picture, arena, &report));
    report.trace = trace;
    report.figures = output->report;
    report.history = output->history;
    if (output->notice[0] != '\0') report.notice = output->notice;
    PEN_TRY(pen_report_html(&report, arena, &text));
    return pen_file_write_text(output->page, text);
}

// The trace is asked for once, for the files and for what is blamed for a difference.
pen_status pen_run_output_collect(pen_command_context *context, pen_engine *engine,
                                  pen_run_output *output) {
    const pen_trace *trace = NULL;
    pen_arena *arena = context->arena;
    if (engine->kind->report != NULL) {
        PEN_TRY(engine->kind->report(engine, arena, &output->report));
    }
    if (engine->kind->trace != NULL && (output->trace != NULL || output->page != NULL)) {
        PEN_TRY(engine->kind->trace(engine, arena, &trace));
        if (trace == NULL) return pen_error(PEN_INTERNAL, "no trace was recorded");
    }
    if (output->report != NULL && engine->kind->plan != NULL) {
        PEN_TRY(pen_run_blame_find(engine->kind->plan(engine), output->report, trace, arena,
                                   &output->blame));
    }
    // what one file fails to take, another may
    pen_status status = PEN_OK;
    if (output->trace != NULL) status = pen_trace_file_write(trace, output->trace, arena);
    if (output->page != NULL) {
        status = pen_status_join(status, output_write_page(output, engine, trace, arena));
    }
    return status;
}

pen_status pen_run_output_print(const pen_run_output *output, pen_arena *arena) {
    const char *text;
    if (output->report == NULL || !pen_log_is_shown(PEN_LOG_NOTE)) return PEN_OK;
    PEN_TRY(pen_run_report_text(output->report, arena, &text));
    fputs(text, stderr);
    PEN_TRY(pen_run_blame_text(&output->blame, output->trace, arena, &text));
    fputs(text, stderr);
    return PEN_OK;
}
