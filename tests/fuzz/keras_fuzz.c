// Fuzzes the reader of Keras' model configurations: any JSON gives a graph or an error with a
// message, and the shape rules of the operators give outputs the shapes that the layers promised.
// (Contents stay zeros: hdf5_fuzz has them.)
#include "base/json_reader.h"
#include "graph/import/keras/keras_build.h"
#include "graph/import/keras/keras_options.h"
#include "graph/passes/infer_shapes.h"
#include "tests/fuzz/fuzz.h"

#define KERAS_WEIGHT_BYTES (1u << 20)
#define KERAS_BATCH 2

static pen_status build(const json_t *root, pen_arena *arena, pen_graph **out_graph,
                        pen_layer_builder **out_builder) {
    pen_keras_model *model;
    const pen_layer_tensor *outputs;
    PEN_TRY(pen_keras_config_read(root, arena, &model));
    PEN_TRY(pen_keras_options_read(model, "fuzz", arena));
    PEN_TRY(pen_graph_create(arena, model->name, out_graph));
    PEN_TRY(pen_layer_builder_new(*out_graph, 0, out_builder));
    pen_layer_builder_expect_contents(*out_builder, KERAS_WEIGHT_BYTES);
    return pen_keras_build(model, "fuzz", *out_builder, arena, &outputs);
}

static void compare(const pen_layer_builder *builder, pen_graph *graph) {
    const pen_symbol_binding binding = {"batch", KERAS_BATCH};
    const pen_infer_options options = {.bindings = &binding, .binding_count = 1};
    if (!fuzz_reads(pen_infer_shapes(graph, &options))) return;
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        pen_tensor_type promised = pen_layer_output_types(builder)[i];
        promised.shape.dims[0] = KERAS_BATCH;
        fuzz_must(
            pen_tensor_type_equal(&promised, pen_value_type(graph, pen_graph_output(graph, i))));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_graph *graph;
    pen_layer_builder *builder;
    json_t *root = NULL;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_json_load("fuzz", data, size, PEN_INVALID_INPUT, &root))) {
        if (fuzz_reads(build(root, arena, &graph, &builder))) compare(builder, graph);
    }
    json_decref(root);
    pen_arena_destroy(arena);
    return 0;
}
