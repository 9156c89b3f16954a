// penstock inspect: what is in a model, and whether Penstock can run it.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/model_view.h"
#include "cli/pass_view.h"
#include "cli/training_job.h"
#include "device/reference/reference_evaluate.h"
#include "graph/analysis/training_types.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/op.h"
#include "graph/op_known.h"

typedef enum inspect_dump {
    INSPECT_DUMP_NONE,
    INSPECT_DUMP_TEXT,
    INSPECT_DUMP_DOT,
} inspect_dump;

typedef struct inspect_options {
    pen_cli_common common;
    int64_t batch; // 0: a job's, or 1
    const char *sizes;
    inspect_dump dump;
    bool nodes;
    bool fused;
    bool passes;
    const char *dump_after;
} inspect_options;

// What one operator does in the model.
typedef struct inspect_op {
    const pen_op *op;
    uint32_t count;
    uint64_t flops;
} inspect_op;

typedef struct inspect_totals {
    uint64_t parameter_count; // elements
    uint64_t parameter_bytes;
    uint64_t trainable_count;  // elements
    uint64_t flops;            // forward, for one batch
    uint64_t activation_bytes; // everything computed, for one batch
    inspect_op *ops;           // [op_count], most flops first
    uint32_t op_count;
    const char *notes[2]; // [note_count], what the file does not say of training
    uint32_t note_count;
    const char *obstacle; // why the model cannot be trained; NULL: as far as types go it can
} inspect_totals;

static int inspect_compare(const void *left, const void *right) {
    const inspect_op *a = left, *b = right;
    if (a->flops != b->flops) return a->flops < b->flops ? 1 : -1;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    return strcmp(a->op->name, b->op->name);
}

// Sums by operator, the most expensive first. Views take no memory.
static pen_status inspect_count_nodes(const pen_graph *graph, pen_arena *arena,
                                      inspect_totals *totals) {
    const uint32_t node_count = pen_graph_node_count(graph);
    PEN_TRY(PEN_NEW(arena, node_count, &totals->ops));
    for (uint32_t n = 0; n < node_count; n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        uint32_t i = 0;
        while (i < totals->op_count && totals->ops[i].op != node->op) {
            i++;
        }
        if (i == totals->op_count) totals->ops[totals->op_count++].op = node->op;
        const uint64_t flops = pen_node_flops(graph, (pen_node_id){n});
        totals->ops[i].count += 1;
        totals->ops[i].flops += flops;
        totals->flops += flops;
        for (uint32_t o = 0; o < node->output_count && !node->op->is_view; o++) {
            if (!pen_value_is(node->outputs[o])) continue;
            totals->activation_bytes +=
                pen_tensor_type_bytes(pen_value_type(graph, node->outputs[o]));
        }
    }
    if (totals->op_count > 0) {
        qsort(totals->ops, totals->op_count, sizeof *totals->ops, inspect_compare);
    }
    return PEN_OK;
}

static pen_status inspect_find_obstacle(const pen_graph *graph, pen_arena *arena,
                                        inspect_totals *totals) {
    pen_status status = pen_check_parameter_types(graph);
    if (status == PEN_OK) status = pen_check_input_types(graph);
    if (pen_status_get_code(status) != PEN_UNSUPPORTED) return status;
    const char *message = pen_status_message(status);
    const pen_status copied =
        pen_arena_copy_text(arena, message, strlen(message), &totals->obstacle);
    pen_status_ignore(status, "told with the rest");
    return copied;
}

// What PyTorch's exporters leave out of a model that is not exported for training.
static void inspect_find_notes(const pen_model *model, inspect_totals *totals) {
    bool has_dropout = false, has_kept = false, learns = false;
    if (model->opset == 0 || strcmp(model->producer, "pytorch") != 0) return;
    for (uint32_t n = 0; n < pen_graph_node_count(model->graph); n++) {
        const pen_node *node = pen_graph_node(model->graph, (pen_node_id){n});
        has_dropout = has_dropout || node->op == PEN_OP(dropout);
        if (node->op != PEN_OP(batch_normalization)) continue;
        const bool trains = pen_node_int(node, "training_mode") != 0;
        has_kept = has_kept || !trains;
        learns = learns || trains;
    }
    if (has_kept) {
        totals->notes[totals->note_count++] =
            "batch normalization has the form of inference and keeps its statistics; a file "
            "exported from model.train(), or `model: {train_batch_norm: true}`, has it learn";
    }
    if (has_dropout || learns) return; // it was exported for training
    totals->notes[totals->note_count++] =
        "there is no dropout; where the model has some, export it from model.train()";
}

static void inspect_count_parameters(const pen_graph *graph, inspect_totals *totals) {
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER) continue;
        const uint64_t count = (uint64_t)pen_shape_element_count(&value->type.shape);
        totals->parameter_count += count;
        totals->parameter_bytes += pen_tensor_type_bytes(&value->type);
        if (value->trainable) totals->trainable_count += count;
    }
}

// The size of the batch that was looked at: as asked for, or that of a model that fixes it.
static int64_t inspect_batch(const inspect_options *options, const pen_model *model,
                             const pen_graph *graph) {
    if (model->batch_symbol != NULL || pen_graph_input_count(graph) == 0) return options->batch;
    const pen_shape *shape = &pen_value_type(graph, pen_graph_input(graph, 0))->shape;
    return shape->rank == 0 ? 1 : shape->dims[0];
}

static void inspect_print_values(const pen_graph *graph, const char *what, uint32_t count,
                                 pen_value_id (*at)(const pen_graph *, uint32_t)) {
    for (uint32_t i = 0; i < count; i++) {
        char text[PEN_SHAPE_TEXT_BYTES];
        printf("%-12s %s %s\n", what, pen_value_name(graph, at(graph, i)),
               pen_tensor_type_format(pen_value_type(graph, at(graph, i)), text));
    }
}

static void inspect_print_nodes(const pen_graph *graph) {
    printf("\n%-20s %-40s %-28s %14s %12s\n", "operator", "node", "output", "flops", "bytes");
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        char text[PEN_SHAPE_TEXT_BYTES];
        printf("%-20s %-40s %-28s %14llu %12llu\n", node->op->name, node->name,
               pen_tensor_type_format(pen_value_type(graph, node->outputs[0]), text),
               (unsigned long long)pen_node_flops(graph, (pen_node_id){n}),
               (unsigned long long)pen_node_bytes(graph, (pen_node_id){n}));
    }
}

// How many of the weights are trained for a reason, and the first few of them.
static void inspect_print_reason(const pen_model *model, uint32_t first) {
    enum { INSPECT_NAMES_SHOWN = 3 };
    const pen_model_weight *like = &model->weights[first];
    uint32_t count = 0;
    for (uint32_t i = first; i < model->weight_count; i++) {
        const pen_model_weight *weight = &model->weights[i];
        if (weight->is_trained != like->is_trained) continue;
        count += strcmp(weight->reason, like->reason) == 0;
    }
    printf("%-12s %u (%s):", like->is_trained ? "trained" : "constant", count, like->reason);
    count = 0;
    for (uint32_t i = first; i < model->weight_count; i++) {
        const pen_model_weight *weight = &model->weights[i];
        if (weight->is_trained != like->is_trained) continue;
        if (strcmp(weight->reason, like->reason) != 0) continue;
        if (count < INSPECT_NAMES_SHOWN) {
            printf("%s %s", count > 0 ? "," : "", weight->name);
            if (weight->of != NULL) printf(" of %s", weight->of);
        }
        count++;
    }
    printf("%s\n", count > INSPECT_NAMES_SHOWN ? ", …" : "");
}

// What the weights of an ONNX file became, by reasons; and what the file has lost of its model.
static void inspect_print_weights(const pen_model *model) {
    enum { INSPECT_LOST_SHOWN = 8 };
    for (uint32_t i = 0; i < model->weight_count; i++) {
        uint32_t before = 0;
        while (before < i &&
               (model->weights[before].is_trained != model->weights[i].is_trained ||
                strcmp(model->weights[before].reason, model->weights[i].reason) != 0)) {
            before++;
        }
        if (before == i) inspect_print_reason(model, i);
    }
    for (uint32_t i = 0; i < model->lost_count && i < INSPECT_LOST_SHOWN; i++) {
        printf("%-12s %s: %s\n", "lost", model->lost[i].name, model->lost[i].what);
    }
    if (model->lost_count == 0) return;
    if (model->lost_count > INSPECT_LOST_SHOWN) {
        printf("%-12s %u more\n", "lost", model->lost_count - INSPECT_LOST_SHOWN);
    }
    printf("%-12s %s\n", "recipe", PEN_MODEL_RECIPE);
}

// What a user asks of a model before training it: whether it can be trained, how large it is, and
// what it spends its time on.
static pen_status inspect_print_text(const inspect_options *options, const pen_model *model,
                                     const pen_graph *graph, const inspect_totals *totals) {
    char bytes[PEN_QUANTITY_TEXT_BYTES];
    char kind[64];
    snprintf(kind, sizeof kind, "operator set %lld", (long long)model->opset);
    printf("model        %s (%s%s%s)\n", pen_graph_name(graph),
           model->opset > 0 ? kind : model->format, model->producer[0] != '\0' ? ", made by " : "",
           model->producer);
    if (model->compiled != NULL) printf("compiled     %s\n", model->compiled);
    inspect_print_values(graph, "input", pen_graph_input_count(graph), pen_graph_input);
    inspect_print_values(graph, "output", pen_graph_output_count(graph), pen_graph_output);
    printf("batch        %lld%s%s\n", (long long)inspect_batch(options, model, graph),
           model->batch_symbol != NULL ? ", called " : ", fixed by the model",
           model->batch_symbol != NULL ? model->batch_symbol : "");
    printf("parameters   %llu, %s", (unsigned long long)totals->parameter_count,
           pen_bytes_format(totals->parameter_bytes, bytes));
    printf("\n");
    inspect_print_weights(model);
    for (uint32_t i = 0; i < totals->note_count; i++) {
        printf("%-12s %s\n", "note", totals->notes[i]);
    }
    if (totals->parameter_count == 0 && (model->tensorflow != NULL || model->weight_count > 0)) {
        printf("             its weights are constants: with `model: {unfreeze: PATTERN}`, a job "
               "trains those whose names match\n");
    }
    if (totals->obstacle != NULL) printf("training     impossible: %s\n", totals->obstacle);
    printf("flops        %.4g forward\n", (double)totals->flops);
    printf("activations  %s, if all were kept\n",
           pen_bytes_format(totals->activation_bytes, bytes));
    printf("\n%-28s %6s %14s %7s\n", "operator", "nodes", "flops", "share");
    for (uint32_t i = 0; i < totals->op_count; i++) {
        const inspect_op *op = &totals->ops[i];
        printf("%-28s %6u %14llu %6.1f%%\n", op->op->name, op->count, (unsigned long long)op->flops,
               totals->flops > 0 ? 100.0 * (double)op->flops / (double)totals->flops : 0.0);
    }
    if (options->nodes) inspect_print_nodes(graph);
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

static void inspect_json_values(pen_json_writer *json, const char *key, const pen_graph *graph,
                                uint32_t count, pen_value_id (*at)(const pen_graph *, uint32_t)) {
    pen_json_key_array(json, key);
    for (uint32_t i = 0; i < count; i++) {
        const pen_tensor_type *type = pen_value_type(graph, at(graph, i));
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", pen_value_name(graph, at(graph, i)));
        pen_json_key_text(json, "type", pen_element_name(type->element));
        pen_json_key_array(json, "shape");
        for (uint32_t d = 0; d < type->shape.rank; d++) {
            pen_json_integer(json, type->shape.dims[d]);
        }
        pen_json_end_array(json);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// Every weight by name, for scripts; the text groups them by reason.
static void inspect_json_weights(pen_json_writer *json, const pen_model *model) {
    pen_json_key_array(json, "weights");
    for (uint32_t i = 0; i < model->weight_count; i++) {
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", model->weights[i].name);
        pen_json_key_bool(json, "trained", model->weights[i].is_trained);
        pen_json_key_text(json, "reason", model->weights[i].reason);
        if (model->weights[i].of != NULL) pen_json_key_text(json, "of", model->weights[i].of);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    pen_json_key_array(json, "lost");
    for (uint32_t i = 0; i < model->lost_count; i++) {
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", model->lost[i].name);
        pen_json_key_text(json, "what", model->lost[i].what);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    if (model->lost_count > 0) pen_json_key_text(json, "recipe", PEN_MODEL_RECIPE);
}

// The keys stay: scripts read them.
static pen_status inspect_print_json(const inspect_options *options, const pen_model *model,
                                     const pen_graph *graph, const inspect_totals *totals) {
    pen_json_writer json;
    pen_command_begin_json(&json, "inspect");
    pen_json_key_text(&json, "model", pen_graph_name(graph));
    pen_json_key_integer(&json, "operator_set", model->opset);
    pen_json_key_text(&json, "producer", model->producer);
    if (model->compiled != NULL) pen_json_key_text(&json, "compiled", model->compiled);
    pen_json_key_integer(&json, "batch", inspect_batch(options, model, graph));
    inspect_json_values(&json, "inputs", graph, pen_graph_input_count(graph), pen_graph_input);
    inspect_json_values(&json, "outputs", graph, pen_graph_output_count(graph), pen_graph_output);
    pen_json_key_unsigned(&json, "parameters", totals->parameter_count);
    pen_json_key_unsigned(&json, "parameter_bytes", totals->parameter_bytes);
    pen_json_key_unsigned(&json, "trainable_parameters", totals->trainable_count);
    pen_json_key_bool(&json, "can_be_trained", totals->obstacle == NULL && model->lost_count == 0);
    if (totals->obstacle != NULL) pen_json_key_text(&json, "obstacle", totals->obstacle);
    inspect_json_weights(&json, model);
    pen_json_key_array(&json, "notes");
    for (uint32_t i = 0; i < totals->note_count; i++) {
        pen_json_text(&json, totals->notes[i]);
    }
    pen_json_end_array(&json);
    pen_json_key_unsigned(&json, "flops", totals->flops);
    pen_json_key_unsigned(&json, "activation_bytes", totals->activation_bytes);
    pen_json_key_array(&json, "operators");
    for (uint32_t i = 0; i < totals->op_count; i++) {
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "name", totals->ops[i].op->name);
        pen_json_key_unsigned(&json, "nodes", totals->ops[i].count);
        pen_json_key_unsigned(&json, "flops", totals->ops[i].flops);
        pen_json_end_object(&json);
    }
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

static pen_status inspect_model(pen_command_context *context, const inspect_options *options,
                                pen_model *model) {
    const pen_graph *graph;
    const pen_model_view_sizes sizes = {
        .batch = options->batch, .sizes = options->sizes, .fused = options->fused};
    inspect_totals totals = {0};
    inspect_find_notes(model, &totals); // before the model is made one that evaluates
    PEN_TRY(pen_model_view(context, &sizes, model, &graph));
    if (options->dump != INSPECT_DUMP_NONE) {
        return pen_command_print_graph(graph, options->dump == INSPECT_DUMP_DOT, context->arena);
    }
    inspect_count_parameters(graph, &totals);
    PEN_TRY(inspect_count_nodes(graph, context->arena, &totals));
    PEN_TRY(inspect_find_obstacle(model->graph, context->arena, &totals));
    return options->common.json ? inspect_print_json(options, model, graph, &totals)
                                : inspect_print_text(options, model, graph, &totals);
}

// The graph after a pass is printed as it is, and the list of passes is of no one graph. What these
// would drop in silence is refused.
static pen_status inspect_check(const inspect_options *options) {
    const struct {
        const char *name;
        bool is_given;
    } others[] = {{"--nodes", options->nodes},
                  {"--fused", options->fused},
                  {"--json", options->common.json && options->dump_after != NULL}};
    if (!options->passes && options->dump_after == NULL) return PEN_OK;
    if (options->passes && options->dump_after != NULL) {
        return pen_error(PEN_INVALID_INPUT, "--passes and --dump-after: the one or the other");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!others[i].is_given) continue;
        return pen_error(PEN_INVALID_INPUT, "%s changes nothing with %s", others[i].name,
                         options->passes ? "--passes" : "--dump-after");
    }
    return PEN_OK;
}

// A file is that of a model, or a job, which says how its model is read and what a batch is.
static pen_status inspect_open(pen_command_context *context, const char *path,
                               inspect_options *options, pen_model **out_model) {
    pen_import_options import = {0};
    const pen_job *job = NULL;
    bool is_job;
    PEN_TRY(pen_command_is_job(path, context->arena, &is_job));
    if (is_job) {
        context->input_exit_code = PEN_EXIT_SPEC;
        PEN_TRY(pen_command_open_job(context, path, &job));
        context->input_exit_code = PEN_EXIT_MODEL;
        import = pen_job_import_options(job);
        path = job->model.file;
    } else {
        PEN_TRY(pen_command_refuse_settings(context, "a model has no settings; a job has"));
    }
    if (options->batch == 0) options->batch = is_job ? job->train.batch : 1;
    import.evaluate = pen_reference_evaluate;
    import.widens_halves = true;
    const pen_status status = pen_model_open(path, &import, out_model);
    return is_job ? pen_job_blame(job, &job->model.file, status) : status;
}

// Passes are listed without a model, too: it is what somebody who meets the compiler asks first.
// All else needs one.
static pen_status inspect_run(pen_command_context *context, const void *options_given) {
    const inspect_options *options = options_given;
    const char *path = options->common.operand_count > 0 ? options->common.operands[0] : NULL;
    pen_model *model;
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(inspect_check(options));
    if (path == NULL && !options->passes) {
        return pen_error(PEN_INVALID_INPUT, "MODEL or JOB is missing; --help says what it is");
    }
    if (options->passes || options->dump_after != NULL) {
        return pen_pass_view_print(
            context, &(pen_pass_view){.path = path,
                                      .after = options->dump_after,
                                      .is_dot = options->dump == INSPECT_DUMP_DOT,
                                      .json = options->common.json,
                                      .sizes = {.batch = options->batch > 0 ? options->batch : 1,
                                                .sizes = options->sizes}});
    }
    context->input_exit_code = PEN_EXIT_MODEL;
    inspect_options with_batch = *options;
    PEN_TRY(inspect_open(context, path, &with_batch, &model));
    const pen_status status = inspect_model(context, &with_batch, model);
    pen_model_destroy(model);
    return status;
}

static const char *const inspect_dump_names[] = {"none", "text", "dot", NULL};

static const pen_cli_option inspect_cli_options[] = {
    PEN_CLI_VALUE(0, "batch", "N", INTEGER, inspect_options, batch,
                  "examples in a batch; else the job's, of a model 1",
                  .minimum = PEN_OPTION_FROM(1)),
    PEN_CLI_VALUE(0, "sizes", "NAME=N,…", TEXT, inspect_options, sizes,
                  "sizes of the model's other symbolic dimensions"),
    PEN_CLI_VALUE(0, "dump", "FORM", CHOICE, inspect_options, dump,
                  "print the graph instead: as text, or for graphviz",
                  .choices = inspect_dump_names, .default_text = "none"),
    PEN_CLI_VALUE(0, "dump-after", "PASS", TEXT, inspect_options, dump_after,
                  "print the graph as it is after a pass of the compiler"),
    PEN_CLI_FLAG(0, "passes", inspect_options, passes,
                 "list the compiler's passes, and which of them run"),
    PEN_CLI_FLAG(0, "fused", inspect_options, fused,
                 "as it runs: operators that the exporter wrote in several nodes are one"),
    PEN_CLI_FLAG(0, "nodes", inspect_options, nodes, "list every node"),
};

const pen_command pen_command_inspect = {
    .name = "inspect",
    .summary = "operators, shapes, parameters and cost of a model, as it is evaluated",
    .table = {PEN_CLI_OPERANDS("MODEL|JOB", 0, 1), PEN_CLI_OPTIONS(inspect_cli_options),
              .details = "Of a job, its model as the job reads it, at the job's batch. With "
                         "--passes and --dump-after, as it is compiled to be trained. --passes "
                         "alone lists them for any model.\n",
              .takes_job = true,
              .examples = "penstock inspect model.onnx\n"
                          "penstock inspect --json model.pt2\n"
                          "penstock inspect --set train.batch=64 job.yaml\n"
                          "penstock inspect --passes job.yaml\n"},
    .options_bytes = sizeof(inspect_options),
    .run = inspect_run,
};
