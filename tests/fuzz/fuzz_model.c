// What comes of a model that was read: open sizes are bound small, shapes inferred, and constants
// folded. Tensors above a small size are not folded, so that a few bytes cannot ask for minutes of
// arithmetic.

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "device/reference/reference_evaluate.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/op.h"
#include "graph/passes/infer_shapes.h"
#include "tests/support/pt2_text.h"

#define FUZZ_SYMBOLS_LIMIT 16
#define FUZZ_FOLD_BYTES_LIMIT 4096
#define FUZZ_FOLD_FLOPS_LIMIT (1u << 20)
#define FUZZ_FOLD_COUNT_LIMIT 256

static pen_status model_evaluate(void *context, const pen_graph *graph, pen_node_id node,
                                 void *const *out_data) {
    uint32_t *count = context;
    const pen_node *folded = pen_graph_node(graph, node);
    uint64_t total = 0;
    *count += 1;
    for (uint32_t i = 0; i < folded->input_count; i++) {
        if (!pen_value_is(folded->inputs[i])) continue;
        const pen_value *input = pen_graph_value(graph, folded->inputs[i]);
        if (input->kind == PEN_VALUE_CONSTANT) total += pen_tensor_type_bytes(&input->type);
    }
    for (uint32_t i = 0; i < folded->output_count; i++) {
        if (!pen_value_is(folded->outputs[i])) continue;
        total += pen_tensor_type_bytes(pen_value_type(graph, folded->outputs[i]));
    }
    if (total > FUZZ_FOLD_BYTES_LIMIT || *count > FUZZ_FOLD_COUNT_LIMIT ||
        pen_node_flops(graph, node) > FUZZ_FOLD_FLOPS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "too much to fold while fuzzing");
    }
    return pen_reference_evaluate(NULL, graph, node, out_data);
}

static pen_status model_infer(pen_graph *graph) {
    pen_symbol_binding bindings[FUZZ_SYMBOLS_LIMIT];
    uint32_t folded = 0;
    pen_infer_options options = {
        .bindings = bindings, .evaluate = model_evaluate, .evaluate_context = &folded};
    while (options.binding_count < FUZZ_SYMBOLS_LIMIT &&
           options.binding_count < pen_graph_symbol_count(graph)) {
        const char *symbol = pen_graph_symbol_name(graph, -(1 + (int64_t)options.binding_count));
        bindings[options.binding_count++] = (pen_symbol_binding){.symbol = symbol, .size = 2};
    }
    return pen_infer_shapes(graph, &options);
}

void fuzz_read_model(const uint8_t *bytes, size_t length, const char *name,
                     const pen_import_options *asked) {
    pen_model *model = NULL;
    uint32_t folded = 0;
    pen_import_options options = asked != NULL ? *asked : (pen_import_options){0};
    options.evaluate = model_evaluate;
    options.evaluate_context = &folded;
    if (fuzz_reads(pen_model_open_bytes(bytes, length, name, &options, &model))) {
        fuzz_reads(model_infer(model->graph));
    }
    pen_model_destroy(model);
}

void fuzz_read_pt2_text(const uint8_t *text, size_t length) {
    size_t archive_length;
    uint8_t *archive = pt2_text_archive(text, length, &archive_length);
    fuzz_must(archive != NULL);
    fuzz_read_model(archive, archive_length, "fuzz.pt2", NULL);
    free(archive);
}
