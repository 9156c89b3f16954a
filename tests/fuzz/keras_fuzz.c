// Fuzzes the importer of Keras' models: any JSON, and any weights beside it, give a graph or an
// error with a message, and the shape rules of the operators give outputs the shapes that the
// layers promised. An input is the JSON; when a zero ends it, a byte follows (1: weights are by
// place, 0: by name), and the stream of the HDF5 file that has the weights (hdf5_stream.h).
#include <string.h>

#include "base/format/json_reader.h"
#include "graph/import/keras/keras_build.h"
#include "graph/import/keras/keras_options.h"
#include "graph/import/keras/keras_weights.h"
#include "graph/passes/infer_shapes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_stream.h"

#define KERAS_WEIGHT_BYTES (1u << 16)
#define KERAS_BATCH 2

typedef struct keras_input {
    const uint8_t *config;
    size_t config_length;
    bool has_weights, is_by_place;
    fuzz_stream weights;
} keras_input;

static keras_input split(const uint8_t *data, size_t size) {
    keras_input input = {.config = data, .config_length = size};
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    if (zero == NULL || zero + 1 == data + size) return input;
    input.config_length = (size_t)(zero - data);
    input.has_weights = true;
    input.is_by_place = zero[1] % 2 == 1;
    input.weights = (fuzz_stream){zero + 2, (size_t)(data + size - zero) - 2};
    return input;
}

static const void *find_contents(void *context, const pen_graph *graph, pen_value_id value) {
    (void)context;
    return pen_graph_value(graph, value)->data;
}

// Whether the weights could be written back: they lie apart from each other, or an error says so.
static void look_at_export(const pen_keras_origin *origin, const pen_graph *graph,
                           pen_layer_builder *builder) {
    const pen_keras_export_options options = {.contents = {.find = find_contents}};
    const pen_model model = {
        .graph = (pen_graph *)(uintptr_t)graph, .path = "fuzz", .layers = builder, .keras = origin};
    pen_status_ignore(pen_keras_export(&model, &options, NULL), "either will do");
}

static pen_status load_weights(keras_input *input, const pen_keras_model *model,
                               const pen_graph *graph, pen_layer_builder *builder,
                               pen_arena *arena) {
    static const uint8_t bytes[KERAS_WEIGHT_BYTES];
    const pen_hdf5_source source = fuzz_stream_source(&input->weights);
    pen_hdf5 *file;
    PEN_TRY(pen_hdf5_open_stream("fuzz", bytes, sizeof bytes, &source, &file));
    const pen_keras_weights weights = {.file = file,
                                       .root = input->is_by_place ? "/" : "/model_weights",
                                       .is_by_place = input->is_by_place,
                                       .graph = graph,
                                       .builder = builder,
                                       .arena = arena};
    pen_keras_origin origin = {.bytes = bytes, .length = sizeof bytes};
    pen_status status = pen_keras_weights_load(&weights, model, &origin);
    if (status == PEN_OK) look_at_export(&origin, graph, builder);
    pen_hdf5_close(file);
    return status;
}

static pen_status build(const json_t *root, keras_input *input, pen_arena *arena,
                        pen_graph **out_graph, pen_layer_builder **out_builder) {
    pen_keras_model *model;
    const pen_layer_tensor *outputs;
    PEN_TRY(pen_keras_config_read(root, arena, &model));
    PEN_TRY(pen_keras_options_read(model, "fuzz", arena));
    PEN_TRY(pen_graph_create(arena, model->name, out_graph));
    PEN_TRY(pen_layer_builder_new(*out_graph, 0, out_builder));
    pen_layer_builder_expect_contents(*out_builder, KERAS_WEIGHT_BYTES);
    PEN_TRY(
        pen_keras_build(model, &(pen_keras_site){.file = "fuzz"}, *out_builder, arena, &outputs));
    return input->has_weights ? load_weights(input, model, *out_graph, *out_builder, arena)
                              : PEN_OK;
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
    keras_input input = split(data, size);
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(
            pen_json_load("fuzz", input.config, input.config_length, PEN_INVALID_INPUT, &root))) {
        if (fuzz_reads(build(root, &input, arena, &graph, &builder))) compare(builder, graph);
    }
    json_decref(root);
    pen_arena_destroy(arena);
    return 0;
}
