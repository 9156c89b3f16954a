// Fuzzes the reading of TensorFlow's graphs and SavedModels: any bytes give a graph or an error.
//
// No file is opened: a SavedModel in memory has no variables. What could be read is carried on:
// open sizes are bound small, and shapes inferred.

#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/passes/infer_shapes.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_SYMBOLS_LIMIT 16
#define FUZZ_ROUND_NODES_LIMIT 500 // long loops would take the time of all else

static pen_status fuzz_infer(pen_graph *graph) {
    pen_symbol_binding bindings[FUZZ_SYMBOLS_LIMIT];
    pen_infer_options options = {.bindings = bindings};
    while (options.binding_count < FUZZ_SYMBOLS_LIMIT &&
           options.binding_count < pen_graph_symbol_count(graph)) {
        const char *symbol = pen_graph_symbol_name(graph, -(1 + (int64_t)options.binding_count));
        bindings[options.binding_count++] = (pen_symbol_binding){.symbol = symbol, .size = 2};
    }
    return pen_infer_shapes(graph, &options);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    pen_model *model = NULL;
    const pen_import_options options = {.unfreeze = length % 2 == 0 ? NULL : ".",
                                        .use_device_strings = length % 3 == 0,
                                        .train_batch_norm = length % 5 == 0,
                                        .batch_norm_momentum = 0.9,
                                        .round_nodes_limit = FUZZ_ROUND_NODES_LIMIT};
    if (fuzz_reads(pen_model_open_bytes(bytes, length, "fuzz.pb", &options, &model))) {
        fuzz_reads(fuzz_infer(model->graph));
    }
    pen_model_destroy(model);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t limit, unsigned seed) {
    return fuzz_change_message(bytes, length, limit, seed);
}
