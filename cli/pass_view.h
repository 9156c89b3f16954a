// The compiler's passes, for `penstock inspect`: which of them run for a model or a job, and the
// graph after one of them.
#ifndef PEN_CLI_PASS_VIEW_H
#define PEN_CLI_PASS_VIEW_H

#include "cli/command.h"
#include "cli/model_view.h"

typedef struct pen_pass_view {
    const char *path;  // of a model, or of a job, whose model is then compiled to be trained; NULL:
                       // the list, as of any model
    const char *after; // print the graph after this pass; NULL: list the passes
    bool is_dot;       // the graph for graphviz, not as text
    bool json;         // the list as JSON
    pen_model_view_sizes sizes; // of a model
} pen_pass_view;

// Writes to standard output. Sets the context's input_exit_code.
//   NOT_FOUND      no such pass; lists those there are
//   INVALID_INPUT  the pass does not run for this model or job
PEN_NODISCARD pen_status pen_pass_view_print(pen_command_context *context,
                                             const pen_pass_view *view);

// A graph, for graphviz or as text, on standard output.
PEN_NODISCARD pen_status pen_command_print_graph(const pen_graph *graph, bool is_dot,
                                                 pen_arena *arena);

#endif // PEN_CLI_PASS_VIEW_H
