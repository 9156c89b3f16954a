// A model as verbs look at it that do not run it: sizes bound, in inference mode, shapes inferred,
// without what nothing reads.
#ifndef PEN_CLI_MODEL_VIEW_H
#define PEN_CLI_MODEL_VIEW_H

#include "cli/command.h"
#include "graph/graph_types.h"
#include "graph/import/import.h"
#include "scheduler/compile/compile.h"

typedef struct pen_model_view_sizes {
    int64_t batch;
    const char *sizes; // "NAME=N,…" of other symbolic dimensions, or NULL
    bool fused;        // as it runs: layers and attention found, normalization with what follows
    pen_compile_watch_fn watch; // is told of the graph after each pass; NULL: nobody is
    void *watch_context;
} pen_model_view_sizes;

// *out_graph goes with the model. Sets the context's input_exit_code. Errors of shapes name the
// model; INVALID_INPUT when `sizes` is not such a list.
PEN_NODISCARD pen_status pen_model_view(pen_command_context *context,
                                        const pen_model_view_sizes *sizes, pen_model *model,
                                        const pen_graph **out_graph);

#endif // PEN_CLI_MODEL_VIEW_H
