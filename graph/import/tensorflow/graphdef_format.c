// A frozen TensorFlow graph (.pb), as a format of models.

#include "graph/import/tensorflow/graphdef_format.h"

#include <string.h>

#include "base/limits.h"
#include "graph/import/import.h"
#include "graph/import/model_format.h"
#include "graph/import/tensorflow/graphdef_coverage.h"

// ---- outputs

// Nodes that are there for what they do, or for what else reads them.
static bool format_is_no_output(const pen_graphdef_node *node) {
    static const char *const beginnings[] = {
        "Assign",  "Save",   "Restore", "Merge",         "VarIs",   "IsVari",
        "Shard",   "Assert", "Summary", "Write",         "Print",   "Init",
        "Destroy", "NoOp",   "Const",   "Placeholder",   "StringJ", "Resource",
        "Enter",   "Exit",   "Switch",  "NextIteration", "LoopCond"};
    const size_t length = strlen(node->op);
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (strncmp(node->op, beginnings[i], strlen(beginnings[i])) == 0) return true;
    }
    if (length >= 7 && strcmp(node->op + length - 7, "Summary") == 0) return true;
    return pen_graphdef_is_variable(node);
}

// A graph does not say its outputs: they are what no other node reads, but for nodes that never
// are outputs.
static pen_status format_find_sinks(const pen_graphdef_flat *flat, uint32_t *out_count,
                                    pen_graphdef_port **out_ports) {
    bool *is_read;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(flat->arena, (size_t)flat->count + 1, &is_read));
    for (uint32_t n = 0; n < flat->count; n++) {
        const pen_graphdef_node *node = &flat->nodes[n];
        for (uint32_t i = 0; i < node->input_count; i++) {
            const uint32_t read = pen_graphdef_flat_find(flat, node->inputs[i].node);
            if (read != UINT32_MAX) is_read[read] = true;
        }
    }
    for (uint32_t n = 0; n < flat->count; n++) {
        is_read[n] = is_read[n] || format_is_no_output(&flat->nodes[n]);
        if (!is_read[n]) count++;
    }
    if (count > PEN_MODEL_OUTPUTS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the graph has more than %d outputs",
                         PEN_MODEL_OUTPUTS_LIMIT);
    }
    PEN_TRY(PEN_NEW(flat->arena, (size_t)count + 1, out_ports));
    *out_count = 0;
    for (uint32_t n = 0; n < flat->count; n++) {
        if (is_read[n]) continue;
        (*out_ports)[(*out_count)++].at = (pen_graphdef_input){.node = flat->nodes[n].name};
    }
    if (count > 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "every node of the graph is read by another: name its "
                                        "outputs (model: {outputs: NAMES})");
}

// Those that the options name, else those that nobody reads.
pen_status pen_graphdef_choose_outputs(const pen_graphdef_flat *flat,
                                       const pen_import_options *options, uint32_t *out_count,
                                       pen_graphdef_port **out_ports) {
    if (options->output_count == 0) return format_find_sinks(flat, out_count, out_ports);
    PEN_TRY(PEN_NEW(flat->arena, options->output_count, out_ports));
    for (uint32_t i = 0; i < options->output_count; i++) {
        pen_graphdef_input *at = &(*out_ports)[i].at;
        PEN_TRY(pen_graphdef_input_parse(options->outputs[i], false, flat->arena, at));
        if (at->is_control || pen_graphdef_flat_find(flat, at->node) == UINT32_MAX) {
            return pen_error(PEN_NOT_FOUND, "outputs: the graph has no node '%.100s'", at->node);
        }
        for (uint32_t j = 0; j < i; j++) {
            const pen_graphdef_input *other = &(*out_ports)[j].at;
            if (other->output != at->output || strcmp(other->node, at->node) != 0) continue;
            return pen_error(PEN_INVALID_INPUT, "outputs: '%.100s' is there twice",
                             options->outputs[i]);
        }
    }
    *out_count = options->output_count;
    return PEN_OK;
}

// ---- the format

static bool format_recognize(const pen_model_input *input) {
    // fields of a GraphDef: nodes, library, versions; a SavedModel begins with a number
    return input->length > 0 &&
           (input->bytes[0] == 0x0a || input->bytes[0] == 0x12 || input->bytes[0] == 0x22);
}

// A frozen graph: one message, all contents in it.
static pen_status format_import(const pen_model_input *input, pen_model *model) {
    pen_protobuf_reader reader;
    pen_graphdef *graph;
    pen_graphdef_flat *flat;
    pen_graphdef_port *outputs;
    PEN_TRY(PEN_NEW(model->arena, 1, &graph));
    PEN_TRY(PEN_NEW(model->arena, 1, &flat));
    pen_protobuf_init(&reader, input->bytes, input->length);
    PEN_TRY(pen_graphdef_read(&reader, model->arena, graph));
    if (graph->node_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "it has no nodes: is it a TensorFlow graph?");
    }
    PEN_TRY(pen_graphdef_flatten(graph, model->arena, flat));
    pen_graphdef_request request = {.flat = flat, .options = input->options};
    PEN_TRY(pen_graphdef_choose_outputs(flat, input->options, &request.output_count, &outputs));
    request.outputs = outputs;
    model->producer = "TensorFlow";
    model->guesses_outputs = input->options->output_count == 0;
    return pen_graphdef_import(&request, model);
}

const pen_model_format pen_model_format_graphdef = {
    .name = "graphdef",
    .summary = "a frozen TensorFlow graph",
    .suffixes = ".pb",
    .is_tensorflow = true,
    .recognize = format_recognize,
    .import = format_import,
};
