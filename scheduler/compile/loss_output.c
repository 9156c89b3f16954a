#include "scheduler/compile/loss_output.h"

#include <string.h>

#include "base/text.h"
#include "graph/op.h"

// Names shown of a model's outputs.
#define LOSS_OUTPUT_NAMES 6

// The logarithm of a softmax is not the softmax.
static pen_status loss_output_check_softmax(const pen_loss_output *chosen, pen_arena *arena,
                                            const char **out_warnings, uint32_t *count) {
    const pen_node_id producer = pen_graph_value(chosen->graph, chosen->output)->producer;
    if (chosen->loss != PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD) return PEN_OK;
    if (!pen_node_is(producer)) return PEN_OK;
    if (strcmp(pen_graph_node(chosen->graph, producer)->op->name, "softmax") != 0) return PEN_OK;
    return pen_arena_format(arena, &out_warnings[(*count)++],
                            "the model's output '%s' is a softmax, but negative_log_likelihood "
                            "takes its logarithm: train a model that ends with log_softmax, or "
                            "with logits and softmax_cross_entropy",
                            pen_value_name(chosen->graph, chosen->output));
}

static pen_status loss_output_list(const pen_graph *graph, pen_arena *arena,
                                   const char **out_names) {
    const uint32_t count = pen_graph_output_count(graph);
    const char **names;
    pen_text text;
    PEN_TRY(PEN_NEW(arena, count, &names));
    for (uint32_t i = 0; i < count; i++) {
        names[i] = pen_value_name(graph, pen_graph_output(graph, i));
    }
    pen_text_init(&text, arena);
    pen_text_add_names(&text, names[0], names, count, LOSS_OUTPUT_NAMES);
    return pen_text_finish(&text, out_names);
}

static pen_status loss_output_check_first(const pen_loss_output *chosen, pen_arena *arena,
                                          const char **out_warnings, uint32_t *count) {
    const uint32_t output_count = pen_graph_output_count(chosen->graph);
    const char *names;
    if (chosen->is_named || output_count < 2) return PEN_OK;
    PEN_TRY(loss_output_list(chosen->graph, arena, &names));
    if (chosen->model->guesses_outputs) {
        return pen_error(PEN_INVALID_INPUT,
                         "the file does not say which of its %u nodes that no other reads is the "
                         "output that is trained: model.outputs names it; there are %s",
                         output_count, names);
    }
    const bool is_graph = chosen->model->tensorflow != NULL;
    return pen_arena_format(arena, &out_warnings[(*count)++],
                            "the model has %u outputs, %s: the loss is taken of the first%s",
                            output_count, names,
                            is_graph ? "; model.outputs chooses, and says which is first" : "");
}

pen_status pen_loss_output_check(const pen_loss_output *chosen, pen_arena *arena,
                                 const char **out_warnings, uint32_t *out_count) {
    *out_count = 0;
    PEN_TRY(loss_output_check_first(chosen, arena, out_warnings, out_count));
    return loss_output_check_softmax(chosen, arena, out_warnings, out_count);
}
