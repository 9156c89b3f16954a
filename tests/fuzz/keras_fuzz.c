// Fuzzes the reader of Keras' model configurations: any JSON gives a graph that the verifier takes,
// or an error with a message. (Contents stay zeros.)
#include "base/json_reader.h"
#include "graph/import/keras/keras_build.h"
#include "graph/import/keras/keras_options.h"
#include "graph/verify.h"
#include "tests/fuzz/fuzz.h"

#define KERAS_WEIGHT_BYTES (1u << 20)

static pen_status build(const json_t *root, pen_arena *arena, pen_graph **out_graph) {
    pen_keras_model *model;
    pen_layer_builder *builder;
    const pen_layer_tensor *outputs;
    PEN_TRY(pen_keras_config_read(root, arena, &model));
    PEN_TRY(pen_keras_options_read(model, "fuzz", arena));
    PEN_TRY(pen_graph_create(arena, model->name, out_graph));
    PEN_TRY(pen_layer_builder_new(*out_graph, 0, &builder));
    pen_layer_builder_expect_contents(builder, KERAS_WEIGHT_BYTES);
    return pen_keras_build(model, "fuzz", builder, arena, &outputs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_graph *graph;
    json_t *root = NULL;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_json_load("fuzz", data, size, PEN_INVALID_INPUT, &root))) {
        if (fuzz_reads(build(root, arena, &graph))) {
            (void)fuzz_works(pen_graph_verify(graph, &(pen_verify_options){.types = false}));
        }
    }
    json_decref(root);
    pen_arena_destroy(arena);
    return 0;
}
