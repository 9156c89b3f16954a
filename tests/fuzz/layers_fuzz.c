// Fuzzes models of layers: any text gives a graph or an error with a message, and the shape rules
// of the operators give a graph's outputs the shapes that its layers promised.
#include "graph/graph.h"
#include "graph/keras_layers/layer_model.h"
#include "graph/passes/infer_shapes.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_BATCH 2

static void infer_and_compare(const pen_layer_builder *builder, pen_graph *graph) {
    const pen_symbol_binding binding = {"batch", FUZZ_BATCH};
    const pen_infer_options options = {.bindings = &binding, .binding_count = 1};
    if (!fuzz_reads(pen_infer_shapes(graph, &options))) return;
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        pen_tensor_type promised = pen_layer_output_types(builder)[i];
        promised.shape.dims[0] = FUZZ_BATCH;
        fuzz_must(
            pen_tensor_type_equal(&promised, pen_value_type(graph, pen_graph_output(graph, i))));
    }
}

static void build(const pen_yaml_node *root, pen_arena *arena) {
    const pen_option_settings settings = {.file = "fuzz"};
    const pen_option_source *source;
    pen_layer_model model = {.seed = 0};
    pen_layer_builder *builder;
    pen_graph *graph;
    if (!fuzz_reads(
            pen_option_read(&pen_layer_model_table, root, &settings, arena, &model, &source))) {
        return;
    }
    model.is_dry = true;
    if (!fuzz_works(pen_graph_create(arena, "fuzz", &graph))) return;
    if (!fuzz_reads(pen_layer_model_build(&model, source, graph, &builder))) return;
    infer_and_compare(builder, graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    const pen_yaml_node *root;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_yaml_parse("fuzz", (const char *)data, size, arena, &root))) {
        build(root, arena);
    }
    pen_arena_destroy(arena);
    return 0;
}
