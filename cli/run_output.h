// What a training over several devices leaves besides its parameters: the table of predicted
// against measured, the trace, and the page.
#ifndef PEN_CLI_RUN_OUTPUT_H
#define PEN_CLI_RUN_OUTPUT_H

#include "cli/command.h"
#include "scheduler/engine/engine.h"
#include "scheduler/report/report_plan.h"
#include "scheduler/report/run_blame.h"
#include "scheduler/report/training_history.h"

typedef struct pen_run_output {
    const char *title;               // of the page
    const char *trace;               // file for the trace; NULL: none
    const char *page;                // file for the page; NULL: none
    char notice[1024];               // for the page, at its top; "": none
    pen_training_history *history;   // for the page; NULL: there is none
    const pen_engine_report *report; // after pen_run_output_collect; NULL: nothing was predicted
    pen_run_blame blame;             // likewise
} pen_run_output;

#define PEN_RUN_PAGE_BOXES 40000u // of a page: beyond it names are collapsed

// The picture of what is trained: the model, with its plan where it has one.
typedef struct pen_run_picture {
    const char *title;
    uint32_t box_limit; // beyond which names are collapsed
} pen_run_picture;

// A report without what happened. As pen_report_plan.
PEN_NODISCARD pen_status pen_run_picture_draw(pen_engine *engine, const pen_run_picture *picture,
                                              pen_arena *arena, pen_report *out_report);
// A history for a program with its losses. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_history_new(const pen_program *program, pen_arena *arena,
                                             pen_training_history **out_history);

// Before anything is made: whether the files can be written, and the job's devices record a trace.
// INVALID_INPUT; UNSUPPORTED: they record none
PEN_NODISCARD pen_status pen_run_output_check(pen_command_context *context,
                                              const pen_run_output *output, const pen_job *job);

// Before the first step: makes room for what it comes to, if there is to be a page. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_output_begin(pen_command_context *context, pen_run_output *output,
                                              const pen_program *program);

// After the last step: asks the engine for its figures, and writes the files.
PEN_NODISCARD pen_status pen_run_output_collect(pen_command_context *context, pen_engine *engine,
                                                pen_run_output *output);

// The table, and where the prediction was off, on standard error. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_output_print(const pen_run_output *output, pen_arena *arena);

#endif // PEN_CLI_RUN_OUTPUT_H
