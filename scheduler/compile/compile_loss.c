// The loss: what of the graph it will read, whether it is taken of the output that the job likely
// means, and its nodes.
#include <string.h>

#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "scheduler/compile/compile_pass.h"

// Names shown of a model's outputs.
#define LOSS_NAMES_SHOWN 6

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

// Of each loss: an output that is named, and a mask.
#define LOSS_VALUES 2u

// Nothing for NULL.
static pen_status loss_keep(pen_compilation *compilation, const char *name) {
    pen_program *program = &compilation->program;
    pen_value_id *place = &compilation->kept[program->kept_count];
    if (name == NULL) return PEN_OK;
    PEN_TRY(pen_graph_find_value(compilation->graph, name, place));
    program->kept_count += 1;
    return PEN_OK;
}

// The output of a loss; one that is not there is told beside those that are.
static pen_status loss_keep_output(pen_compilation *compilation, const char *name) {
    const pen_status status = loss_keep(compilation, name);
    const char *names;
    if (pen_status_get_code(status) != PEN_NOT_FOUND) return status;
    pen_status_ignore(status, "the outputs say more than the nearest of all names");
    PEN_TRY(loss_list_outputs(compilation->graph, compilation->arena, &names));
    return pen_error(PEN_NOT_FOUND, "the model has no output '%s' to take a loss of; it has %s",
                     name, names);
}

// Makes passes before the losses keep what they will read besides the graph's outputs. Until the
// results are known, this is all that is kept.
pen_status pen_compile_keep_loss_values(pen_compilation *compilation) {
    const pen_compile_request *request = compilation->request;
    const pen_model *model = compilation->model;
    PEN_TRY(PEN_NEW(compilation->arena, LOSS_VALUES * request->loss_count + 1, &compilation->kept));
    compilation->program.kept = compilation->kept;
    for (uint32_t i = 0; i < request->loss_count; i++) {
        const char *output = request->losses[i].output;
        PEN_TRY(pen_compilation_blame_loss(compilation, i, loss_keep_output(compilation, output)));
        PEN_TRY(loss_keep(compilation, pen_model_find_mask(model, output)));
    }
    return loss_keep(compilation, model->penalty);
}

// A job that names no output gets the first of several: the user is warned, and where the outputs
// were guessed from the graph, it is refused.
static pen_status loss_check_first(pen_compilation *compilation, const pen_compile_loss *loss) {
    const uint32_t output_count = pen_graph_output_count(compilation->graph);
    const char *names, *warning;
    if (loss->output != NULL || output_count < 2) return PEN_OK;
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
static pen_status loss_check_softmax(pen_compilation *compilation, const pen_compile_loss *loss,
                                     pen_value_id output) {
    const pen_graph *graph = compilation->graph;
    const pen_node_id producer = pen_graph_value(graph, output)->producer;
    const char *warning;
    if (loss->spec.kind != PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD) return PEN_OK;
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

// Where a loss goes. Of several, the inputs that they make are named after their outputs.
static pen_status loss_find_place(pen_compilation *compilation, const pen_compile_loss *loss,
                                  pen_loss_place *out_place) {
    const pen_compile_request *request = compilation->request;
    const pen_graph *graph = compilation->graph;
    const char *mask = pen_model_find_mask(compilation->model, loss->output);
    pen_loss_place place = {.output = pen_graph_output(graph, 0),
                            .mask = PEN_VALUE_NONE,
                            .labels = "labels",
                            .scale = "loss_scale",
                            .example_count = request->microbatch_size};
    if (loss->output != NULL) PEN_TRY(pen_graph_find_value(graph, loss->output, &place.output));
    if (mask != NULL) PEN_TRY(pen_graph_find_value(graph, mask, &place.mask));
    const pen_shape *shape = &pen_value_type(graph, place.output)->shape;
    if (place.example_count == 0 && shape->rank > 0) {
        place.example_count = (uint64_t)shape->dims[0];
    }
    if (request->loss_count > 1) {
        const char *name = pen_value_name(graph, place.output);
        PEN_TRY(pen_arena_format(compilation->arena, &place.labels, "labels/%s", name));
        PEN_TRY(pen_arena_format(compilation->arena, &place.scale, "loss_scale/%s", name));
    }
    *out_place = place;
    return PEN_OK;
}

// The program's count of right answers is of the first loss over classes, and so are the counts
// of top_5 and the like.
static void loss_ask_tops(const pen_compilation *compilation, const pen_compile_loss *loss,
                          pen_loss_place *place) {
    if (!pen_compile_tells(compilation, &loss->spec, place, PEN_METRIC_FROM_CLASSES)) return;
    if (!pen_loss_takes_indices(&loss->spec)) return;
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_compile_tells_top(compilation, metric)) continue;
        if (place->top_count == PEN_LOSS_TOPS_LIMIT) return;
        place->tops[place->top_count++] = (uint32_t)pen_metric_kinds[metric].number;
    }
}

// One of the losses: its nodes, its part in the sum, and what is told of it.
static pen_status loss_attach(pen_compilation *compilation, uint32_t index,
                              pen_loss_place *out_place) {
    const pen_compile_loss *loss = &compilation->request->losses[index];
    pen_program *program = &compilation->program;
    pen_loss_place place;
    pen_attached_loss attached;
    PEN_TRY(loss_find_place(compilation, loss, &place));
    loss_ask_tops(compilation, loss, &place);
    *out_place = place;
    if (compilation->request->mode == PEN_COMPILE_TRAIN) {
        PEN_TRY(loss_check_first(compilation, loss));
        PEN_TRY(loss_check_softmax(compilation, loss, place.output));
    }
    PEN_TRY(
        pen_status_add_context(pen_attach_loss(compilation->graph, &loss->spec, &place, &attached),
                               "while attaching the loss"));
    PEN_TRY(pen_attach_weighted(compilation->graph, attached.loss, loss->weight, &program->loss));
    const char *output = pen_value_name(compilation->graph, place.output);
    PEN_TRY(pen_arena_copy_text(compilation->arena, output, strlen(output), &output));
    compilation->losses[index] =
        (pen_program_loss){.output = output,
                           .label_name = loss->labels,
                           .weight = loss->weight,
                           .value = attached.loss,
                           .labels = attached.labels,
                           .scale = attached.scale,
                           .class_count = attached.class_count,
                           .seen = pen_compile_metric_loss(compilation, &loss->spec, place.output)};
    PEN_TRY(pen_compile_tell(compilation, index, &place, &attached));
    if (pen_value_is(program->accuracy) || !pen_value_is(attached.accuracy)) return PEN_OK;
    program->accuracy = attached.accuracy;
    program->accuracy_loss = index;
    program->shares[PEN_PROGRAM_SHARE_TARGETS] = attached.counted;
    return PEN_OK;
}

// Losses of one output are told apart by their kinds, and those of one kind by their numbers.
static pen_status loss_name_all(pen_compilation *compilation) {
    const uint32_t count = compilation->request->loss_count;
    for (uint32_t i = 0; i < count; i++) {
        const pen_loss_kind kind = compilation->request->losses[i].spec.kind;
        const char *output = compilation->losses[i].output, **name = &compilation->losses[i].name;
        uint32_t of_output = 0, of_kind = 0;
        for (uint32_t k = 0; k < count; k++) {
            if (strcmp(compilation->losses[k].output, output) != 0) continue;
            of_output += 1;
            of_kind += compilation->request->losses[k].spec.kind == kind;
        }
        *name = output;
        if (of_kind > 1) {
            PEN_TRY(pen_arena_format(compilation->arena, name, "%s/%s/%u", output,
                                     pen_loss_kind_names[kind], i));
        } else if (of_output > 1) {
            PEN_TRY(pen_arena_format(compilation->arena, name, "%s/%s", output,
                                     pen_loss_kind_names[kind]));
        }
    }
    return PEN_OK;
}

// Adds the nodes of the losses, each of its output and with the model's mask, and of the model's
// penalty; and what metrics see.
pen_status pen_compile_attach_loss(pen_compilation *compilation) {
    const pen_compile_request *request = compilation->request;
    pen_graph *graph = compilation->graph;
    pen_program *program = &compilation->program;
    pen_loss_place *places;
    pen_value_id penalty;
    PEN_TRY(PEN_NEW(compilation->arena, request->loss_count, &compilation->losses));
    PEN_TRY(PEN_NEW(compilation->arena, request->loss_count, &places));
    for (uint32_t i = 0; i < request->loss_count; i++) {
        PEN_TRY(
            pen_compilation_blame_loss(compilation, i, loss_attach(compilation, i, &places[i])));
    }
    program->losses = compilation->losses;
    program->loss_count = request->loss_count;
    program->term_count = request->loss_count > 1 ? request->loss_count : 0;
    PEN_TRY(loss_name_all(compilation));
    PEN_TRY(pen_compile_see(compilation, places));
    if (compilation->model->penalty != NULL) {
        PEN_TRY(pen_graph_find_value(graph, compilation->model->penalty, &penalty));
        PEN_TRY(pen_attach_penalty(graph, penalty, &program->loss));
    }
    const pen_element_type element = pen_value_type(graph, program->loss)->element;
    if (pen_element_is_trained(element)) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "the loss is %s, expected float32 or float64",
                     pen_element_name(element));
}
