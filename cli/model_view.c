#include "cli/model_view.h"

#include <stdlib.h>
#include <string.h>

#include "device/reference/reference_evaluate.h"
#include "graph/passes/fold_transposes.h"
#include "graph/passes/fuse/fuse_attention.h"
#include "graph/passes/fuse/fuse_layers.h"
#include "graph/passes/fuse/fuse_normalization.h"
#include "graph/passes/fuse/fuse_rows.h"
#include "graph/passes/fuse/lower_einsum.h"
#include "graph/passes/gradient/skip_stops.h"
#include "graph/passes/infer_shapes.h"
#include "graph/passes/merge_duplicates.h"
#include "graph/passes/remove_dead.h"
#include "graph/passes/set_inference.h"
#include "graph/passes/skip_dropout.h"

#define VIEW_SIZES_LIMIT 64

static pen_status view_bind(const pen_model_view_sizes *sizes, const pen_model *model,
                            pen_arena *arena, pen_symbol_binding *bindings, uint32_t *out_count) {
    uint32_t count = 0;
    if (model->batch_symbol != NULL) {
        bindings[count++] = (pen_symbol_binding){model->batch_symbol, sizes->batch};
    }
    char *rest;
    const char *copy = "";
    if (sizes->sizes != NULL) {
        PEN_TRY(pen_arena_copy_text(arena, sizes->sizes, strlen(sizes->sizes), &copy));
    }
    char *text;
    PEN_TRY(PEN_NEW(arena, strlen(copy) + 1, &text));
    memcpy(text, copy, strlen(copy));
    for (char *part = strtok_r(text, ",", &rest); part != NULL; part = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(part, '=');
        char *end = NULL;
        const long long size = equals == NULL ? 0 : strtoll(equals + 1, &end, 10);
        if (size <= 0 || *end != '\0' || count == VIEW_SIZES_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "--sizes: found '%s', expected NAME=NUMBER", part);
        }
        *equals = '\0';
        bindings[count++] = (pen_symbol_binding){part, size};
    }
    *out_count = count;
    return PEN_OK;
}

// What compile.c makes of it, in its order.
static pen_status view_fuse(pen_graph **io_graph) {
    pen_graph *graph = *io_graph;
    const pen_value_id *map;
    PEN_TRY(pen_lower_einsum(graph, &graph, &map));
    PEN_TRY(pen_skip_dropout(graph));
    PEN_TRY(pen_skip_stops(graph));
    pen_fold_transposes(graph);
    PEN_TRY(pen_remove_dead(graph, 0, NULL, &graph, &map));
    PEN_TRY(pen_fuse_layers(graph, 0, NULL, &graph, &map));
    PEN_TRY(pen_fuse_attention(graph, 0, NULL, &graph, &map));
    PEN_TRY(pen_merge_duplicates(graph, 0, NULL, &graph, &map));
    PEN_TRY(pen_remove_dead(graph, 0, NULL, &graph, &map));
    PEN_TRY(pen_fuse_normalization(graph, 0, NULL, &graph, &map));
    PEN_TRY(pen_fuse_rows(graph, 0, NULL, false, &graph, &map));
    *io_graph = graph;
    return PEN_OK;
}

pen_status pen_model_view(pen_command_context *context, const pen_model_view_sizes *sizes,
                          pen_model *model, const pen_graph **out_graph) {
    pen_symbol_binding bindings[VIEW_SIZES_LIMIT];
    pen_infer_options infer = {.bindings = bindings, .evaluate = pen_reference_evaluate};
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(view_bind(sizes, model, context->arena, bindings, &infer.binding_count));
    context->input_exit_code = PEN_EXIT_MODEL;
    // a batch of one is enough to look at, though normalization could not train on it
    PEN_TRY(pen_set_inference(model->graph));
    PEN_TRY(pen_status_add_context(pen_infer_shapes(model->graph, &infer),
                                   "in %s (--sizes NAME=N,… gives sizes other than the batch's)",
                                   model->path));
    pen_graph *graph;
    const pen_value_id *map;
    PEN_TRY(pen_remove_dead(model->graph, 0, NULL, &graph, &map));
    if (sizes->fused) PEN_TRY(view_fuse(&graph));
    *out_graph = graph;
    return PEN_OK;
}
