// The loss: what of the graph it will read, whether it is taken of the output that the job likely
// means, and its nodes.
#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "scheduler/compile/compile_pass.h"

// Names shown of a model's outputs.
#define LOSS_NAMES_SHOWN 6

// Besides the outputs: one that is named, a penalty and a mask.
#define LOSS_VALUES 3u

// Makes passes before the loss keep what it will read besides the graph's outputs. Until the
// results are known, this is all that is kept.
pen_status pen_compile_keep_loss_values(pen_compilation *compilation) {
    const char *output = compilation->request->loss_output;
    const char *const names[LOSS_VALUES] = {output, compilation->model->penalty,
                                            pen_model_find_mask(compilation->model, output)};
    PEN_TRY(PEN_NEW(compilation->arena, LOSS_VALUES, &compilation->kept));
    uint32_t count = 0;
    for (uint32_t i = 0; i < LOSS_VALUES; i++) {
        if (names[i] == NULL) continue;
        PEN_TRY(pen_graph_find_value(compilation->graph, names[i], &compilation->kept[count]));
        count += 1;
    }
    compilation->program.kept = compilation->kept;
    compilation->program.kept_count = count;
    return PEN_OK;
}

static pen_status loss_list_outputs(const pen_graph *graph, pen_arena *arena,
                                    const char **out_names) {
    const uint32_t count = pen_graph_output_count(graph);
    const char **names;
    pen_text text;
    PEN_TRY(PEN_NEW(arena, count, &names));
    for (uint32_t i = 0; i < count; i++) {
        names[i] = pen_value_name(graph, pen_graph_output(graph, i));
    }
    pen_text_init(&text, arena);
    pen_text_add_names(&text, names[0], names, count, LOSS_NAMES_SHOWN);
    return pen_text_finish(&text, out_names);
}

// A job that names no output gets the first of several: the user is warned, and where the outputs
// were guessed from the graph, it is refused.
static pen_status loss_check_first(pen_compilation *compilation) {
    const uint32_t output_count = pen_graph_output_count(compilation->graph);
    const char *names, *warning;
    if (compilation->request->loss_output != NULL || output_count < 2) return PEN_OK;
    PEN_TRY(loss_list_outputs(compilation->graph, compilation->arena, &names));
    if (compilation->model->guesses_outputs) {
        return pen_error(PEN_INVALID_INPUT,
                         "the file does not say which of its %u nodes that no other reads is the "
                         "output that is trained: model.outputs names it; there are %s",
                         output_count, names);
    }
    const bool is_graph = compilation->model->tensorflow != NULL;
    PEN_TRY(pen_arena_format(compilation->arena, &warning,
                             "the model has %u outputs, %s: the loss is taken of the first%s",
                             output_count, names,
                             is_graph ? "; model.outputs chooses, and says which is first" : ""));
    pen_compilation_warn(compilation, warning);
    return PEN_OK;
}

// The logarithm of a softmax is not the softmax.
static pen_status loss_check_softmax(pen_compilation *compilation, pen_value_id output) {
    const pen_graph *graph = compilation->graph;
    const pen_node_id producer = pen_graph_value(graph, output)->producer;
    const char *warning;
    if (compilation->request->loss != PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD) return PEN_OK;
    if (!pen_node_is(producer)) return PEN_OK;
    if (pen_graph_node(graph, producer)->op != PEN_OP(softmax)) return PEN_OK;
    PEN_TRY(pen_arena_format(compilation->arena, &warning,
                             "the model's output '%s' is a softmax, but negative_log_likelihood "
                             "takes its logarithm: train a model that ends with log_softmax, or "
                             "with logits and softmax_cross_entropy",
                             pen_value_name(graph, output)));
    pen_compilation_warn(compilation, warning);
    return PEN_OK;
}

// Adds the nodes of the loss, of the chosen output and with the model's mask and penalty.
pen_status pen_compile_attach_loss(pen_compilation *compilation) {
    const pen_compile_request *request = compilation->request;
    pen_graph *graph = compilation->graph;
    pen_value_id output = pen_graph_output(graph, 0), mask = PEN_VALUE_NONE, penalty;
    const char *mask_name = pen_model_find_mask(compilation->model, request->loss_output);
    pen_attached_loss loss;
    if (request->loss_output != NULL) {
        PEN_TRY(pen_graph_find_value(graph, request->loss_output, &output));
    }
    if (mask_name != NULL) PEN_TRY(pen_graph_find_value(graph, mask_name, &mask));
    if (request->mode == PEN_COMPILE_TRAIN) {
        PEN_TRY(loss_check_first(compilation));
        PEN_TRY(loss_check_softmax(compilation, output));
    }
    PEN_TRY(pen_status_add_context(pen_attach_loss(graph, request->loss, output, mask, &loss),
                                   "while attaching the loss"));
    if (compilation->model->penalty != NULL) {
        PEN_TRY(pen_graph_find_value(graph, compilation->model->penalty, &penalty));
        PEN_TRY(pen_attach_penalty(graph, penalty, &loss.loss));
    }
    const pen_element_type element = pen_value_type(graph, loss.loss)->element;
    if (!pen_element_is_trained(element)) {
        return pen_error(PEN_UNSUPPORTED, "the loss is %s, expected float32 or float64",
                         pen_element_name(element));
    }
    pen_program *program = &compilation->program;
    program->loss = loss.loss;
    program->labels = loss.labels;
    program->accuracy = loss.accuracy;
    if (pen_value_is(loss.accuracy)) {
        const pen_shape *shape = &pen_value_type(graph, output)->shape;
        program->class_count = (uint32_t)shape->dims[shape->rank - 1];
    }
    return PEN_OK;
}
