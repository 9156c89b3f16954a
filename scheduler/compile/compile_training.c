// Training: gradients of all that is trained, the updates that use them, and what is likely not
// meant to stay as it is.
#include <string.h>

#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "scheduler/compile/compile_pass.h"

static pen_status training_find_trainable(const pen_graph *graph, pen_arena *arena,
                                          pen_value_id **out_values, uint32_t *out_count) {
    const uint32_t value_count = pen_graph_value_count(graph);
    PEN_TRY(PEN_NEW(arena, value_count, out_values));
    *out_count = 0;
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER || !value->trainable) continue;
        (*out_values)[(*out_count)++] = (pen_value_id){v};
    }
    return PEN_OK;
}

// The gradient of the loss itself is fed: the share of the step's examples that the microbatch has.
pen_status pen_compile_build_gradients(pen_compilation *compilation) {
    pen_program *program = &compilation->program;
    const pen_value weight = {.name = "loss_weight",
                              .kind = PEN_VALUE_SCALAR,
                              .type = *pen_value_type(compilation->graph, program->loss)};
    pen_value_id *trainable;
    uint32_t count;
    PEN_TRY(pen_graph_add_own_value(compilation->graph, &weight, &program->loss_weight));
    PEN_TRY(training_find_trainable(compilation->graph, compilation->arena, &trainable, &count));
    return pen_build_gradients(compilation->graph, program->loss, program->loss_weight, count,
                               trainable, &compilation->gradients);
}

static uint64_t training_count_elements(const pen_graph *graph, const pen_gradients *gradients) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < gradients->count; i++) {
        if (gradients->items[i].use_count == 0) continue;
        const pen_tensor_type *type = pen_value_type(graph, gradients->items[i].value);
        count += (uint64_t)pen_shape_element_count(&type->shape);
    }
    return count;
}

static const pen_optimizer_group *training_find_freezer(const pen_optimizer *optimizer) {
    for (uint32_t i = 0; i < optimizer->group_count; i++) {
        if (optimizer->groups[i].freeze) return &optimizer->groups[i];
    }
    return NULL;
}

static pen_status training_blame_freezer(const pen_compilation *compilation, pen_status status) {
    const pen_optimizer *optimizer = &compilation->request->optimizer;
    const pen_optimizer_group *group = training_find_freezer(optimizer);
    if (compilation->request->freeze != NULL) {
        return pen_compilation_blame(compilation, PEN_COMPILE_PART_FREEZE, status);
    }
    if (group == NULL) return status;
    return pen_compilation_blame_group(compilation, (uint32_t)(group - optimizer->groups), status);
}

// Adds the optimizer's nodes. A model of which nothing is trained is refused: if `freeze` or a
// group says so, that is to blame.
pen_status pen_compile_build_updates(pen_compilation *compilation) {
    const pen_compile_request *request = compilation->request;
    pen_program *program = &compilation->program;
    const pen_step_shape step = {.microbatches = request->microbatches,
                                 .examples = request->microbatch_size,
                                 .most_examples = request->most_examples,
                                 .is_whole = request->is_whole,
                                 .lanes = request->lanes,
                                 .asynchrony = request->asynchrony,
                                 .is_scaled = request->is_scaled};
    pen_updates updates;
    PEN_TRY(pen_build_updates(compilation->graph, compilation->gradients, &request->optimizer,
                              request->accumulate, &step, &updates));
    if (updates.updated_count == 0) {
        const pen_status status =
            pen_error(PEN_INVALID_INPUT,
                      "nothing to train: the loss depends on no parameter that is not frozen");
        return training_blame_freezer(compilation, status);
    }
    program->learning_rate = updates.learning_rate;
    program->step = updates.step;
    program->unscale = updates.unscale;
    program->applied = updates.applied;
    program->trainable_count = updates.updated_count;
    program->trainable_elements =
        training_count_elements(compilation->graph, compilation->gradients);
    return PEN_OK;
}

// A file that lacks parameters of its model can be trained, but to other numbers than the model:
// that has to be asked for. What no file of its kind can tell is said.
pen_status pen_compile_check_lost(pen_compilation *compilation) {
    enum { TRAINING_LOST_SHOWN = 6 };
    const pen_model *model = compilation->model;
    pen_text text;
    const char *list;
    if (model->hides_frozen && compilation->request->freeze == NULL &&
        training_find_freezer(&compilation->request->optimizer) == NULL) {
        compilation->program.note =
            "all parameters are trained: ONNX has no word for those that a model has frozen "
            "(requires_grad); `freeze` names them";
    }
    if (model->lost_count == 0) return PEN_OK;
    if (compilation->request->import.train_what_is_left) {
        PEN_TRY(pen_arena_format(compilation->arena, &list,
                                 "the model file has lost %u tensors of the model ('%s': %s%s); "
                                 "what is left of it is trained",
                                 model->lost_count, model->lost[0].name, model->lost[0].what,
                                 model->lost_count > 1 ? "; …" : ""));
        pen_compilation_warn(compilation, list);
        return PEN_OK;
    }
    pen_text_init(&text, compilation->arena);
    for (uint32_t i = 0; i < model->lost_count && i < TRAINING_LOST_SHOWN; i++) {
        pen_text_print(&text, "\n  '%s': %s", model->lost[i].name, model->lost[i].what);
    }
    if (model->lost_count > TRAINING_LOST_SHOWN) pen_text_add(&text, "\n  …");
    PEN_TRY(pen_text_finish(&text, &list));
    return pen_error(
        PEN_INVALID_INPUT,
        "the model file has lost %u tensors of the model that it was exported from, so "
        "that training it would give other numbers:%s\n%s; model: "
        "{train_what_is_left: true} trains the file as it is",
        model->lost_count, list, PEN_MODEL_RECIPE);
}

// What is to be said of batch normalizations that keep their statistics although what they scale
// trains; NULL of layers, which are so because the model says so.
static const char *training_kept_statistics(const pen_model *model) {
    if (strcmp(model->format, "onnx") == 0) {
        return "the model's batch normalizations keep their stored statistics: the file has the "
               "form of inference; model: {train_batch_norm: true} has them learn, and so does a "
               "file that was exported for training (from model.train(); with PyTorch's older "
               "exporter, training=TrainingMode.TRAINING)";
    }
    if (model->tensorflow != NULL) {
        return "the model's batch normalizations keep their stored statistics: a TensorFlow graph "
               "has the form of inference; model: {train_batch_norm: true} has them learn, as a "
               "Keras file of the model (.h5, .keras) does";
    }
    return NULL;
}

pen_status pen_compile_check_statistics(pen_compilation *compilation) {
    const pen_graph *graph = compilation->graph;
    const char *text = training_kept_statistics(compilation->model);
    for (uint32_t n = 0; text != NULL && n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->op != PEN_OP(batch_normalization)) continue;
        if (pen_node_int(node, "training_mode") != 0) continue;
        if (!pen_graph_value(graph, node->inputs[1])->trainable) continue;
        pen_compilation_warn(compilation, text);
        break;
    }
    return PEN_OK;
}
