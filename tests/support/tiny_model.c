#include "tests/support/tiny_model.h"

#include "base/format/npy.h"
#include "base/random.h"
#include "graph/import/onnx/onnx_export.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/random_graph.h"
#include "tests/support/scratch.h"

typedef struct tiny_builder {
    const tiny_model *model;
    pen_arena *arena;
    pen_graph *graph;
    pen_element_type element; // of parameters
} tiny_builder;

static pen_value_id tiny_parameter(const tiny_builder *b, const char *name, int64_t rows,
                                   int64_t columns) {
    pen_value value = {.name = name,
                       .kind = PEN_VALUE_PARAMETER,
                       .trainable = true,
                       .type = pen_tensor_type_make(b->element, 2, (int64_t[]){rows, columns})};
    const pen_random_key key = {1, pen_random_stream(name, 0, 0)};
    const double scale = b->model->is_exploding ? 1e30 : 0.5;
    double *doubles;
    float *floats;
    CHECK_OK(PEN_NEW(b->arena, (size_t)(rows * columns), &doubles));
    CHECK_OK(PEN_NEW(b->arena, (size_t)(rows * columns), &floats));
    for (int64_t i = 0; i < rows * columns; i++) {
        doubles[i] = scale * pen_random_normal(key, (uint64_t)i);
        floats[i] = (float)doubles[i];
    }
    value.data_bytes = pen_tensor_type_bytes(&value.type);
    value.data = b->element == PEN_FLOAT64 ? (const void *)doubles : floats;
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(b->graph, &value, &id));
    return id;
}

static pen_value_id tiny_apply(const tiny_builder *b, const char *op, const char *name,
                               pen_value_id first, pen_value_id second) {
    return graph_apply(b->graph, op, name, first, second, PEN_VALUE_NONE);
}

static pen_value_id tiny_cast(const tiny_builder *b, pen_value_id x) {
    if (!b->model->in_double) return x;
    pen_node_spec spec = pen_node_spec_make("cast", "to_double");
    const pen_attribute_given to = pen_attribute_text("to", "float64");
    spec.inputs = &x;
    spec.input_count = 1;
    spec.attributes = &to;
    spec.attribute_count = 1;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(b->graph, &spec, &output));
    return output;
}

static pen_value_id tiny_dropout(const tiny_builder *b, pen_value_id x) {
    pen_value_id ratio, on;
    if (!b->model->has_dropout) return x;
    CHECK_OK(pen_graph_constant_number(b->graph, "ratio", PEN_FLOAT32, 0.4, &ratio));
    CHECK_OK(pen_graph_constant_number(b->graph, "on", PEN_BOOL, 1, &on));
    return graph_apply(b->graph, "dropout", "drop", x, ratio, on);
}

static void tiny_build(tiny_builder *b) {
    CHECK_OK(pen_graph_create(b->arena, "tiny", &b->graph));
    int64_t batch = 4;
    if (!b->model->fixed_batch) CHECK_OK(pen_graph_add_symbol(b->graph, "batch", &batch));
    const pen_tensor_type type =
        pen_tensor_type_make(PEN_FLOAT32, 2, (int64_t[]){batch, TINY_FEATURES});
    const pen_value_id x = graph_value_of(b->graph, "x", PEN_VALUE_INPUT, &type);
    const pen_value_id twice = tiny_parameter(b, "twice", TINY_HIDDEN, TINY_HIDDEN);
    pen_value_id h = tiny_apply(b, "matmul", "fc1", tiny_cast(b, x),
                                tiny_parameter(b, "fc1.weight", TINY_FEATURES, TINY_HIDDEN));
    h = tiny_apply(b, "add", "fc1_bias", h, tiny_parameter(b, "fc1.bias", 1, TINY_HIDDEN));
    h = tiny_apply(b, "tanh", "act1", h, PEN_VALUE_NONE);
    h = tiny_apply(b, "matmul", "twice1", h, twice);
    h = tiny_apply(b, "tanh", "act2", h, PEN_VALUE_NONE);
    h = tiny_apply(b, "matmul", "twice2", h, twice);
    const pen_value_id aux =
        tiny_apply(b, "matmul", "aux", h, tiny_parameter(b, "aux.weight", TINY_HIDDEN, 2));
    h = tiny_dropout(b, h);
    pen_value_id y = tiny_apply(b, "matmul", "fc2", h,
                                tiny_parameter(b, "fc2.weight", TINY_HIDDEN, TINY_CLASSES));
    y = tiny_apply(b, "add", "fc2_bias", y, tiny_parameter(b, "fc2.bias", 1, TINY_CLASSES));
    CHECK_OK(pen_graph_add_output(b->graph, y));
    CHECK_OK(pen_graph_add_output(b->graph, aux));
}

const char *tiny_model_write(const tiny_model *model, const char *name) {
    tiny_builder b = {.model = model,
                      .arena = check_arena(),
                      .element = model->in_double ? PEN_FLOAT64 : PEN_FLOAT32};
    tiny_build(&b);
    const pen_tensor_type types[2] = {
        pen_tensor_type_make(b.element, 2, (int64_t[]){model->fixed_batch ? 4 : -1, TINY_CLASSES}),
        pen_tensor_type_make(b.element, 2, (int64_t[]){model->fixed_batch ? 4 : -1, 2})};
    const char *path = scratch_path(name);
    const pen_onnx_export_options options = {.output_types = types};
    CHECK_OK(pen_onnx_export(b.graph, &options, path));
    pen_arena_destroy(b.arena);
    return path;
}

static const char *tiny_write(const char *name, pen_npy_element element, uint32_t rank,
                              const int64_t *dims, const void *data) {
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL, "cannot write %s", path);
    CHECK_OK(pen_npy_write(file, element, rank, dims, data));
    fclose(file);
    return path;
}

const char *tiny_data_write(const char *name, uint32_t example_count, uint64_t seed) {
    pen_arena *arena = check_arena();
    const pen_random_key key = {seed, pen_random_stream("tiny_data", 0, 0)};
    float *inputs;
    int64_t *labels;
    char file[64];
    CHECK_OK(PEN_NEW(arena, (size_t)example_count * TINY_FEATURES, &inputs));
    CHECK_OK(PEN_NEW(arena, example_count, &labels));
    for (uint32_t i = 0; i < example_count * TINY_FEATURES; i++) {
        inputs[i] = (float)pen_random_normal(key, i);
    }
    for (uint32_t i = 0; i < example_count; i++) {
        labels[i] = (int64_t)pen_random_below(key, 1000000 + i, TINY_CLASSES);
    }
    snprintf(file, sizeof file, "%s_x.npy", name);
    tiny_write(file, PEN_NPY_FLOAT32, 2, (int64_t[]){example_count, TINY_FEATURES}, inputs);
    snprintf(file, sizeof file, "%s_y.npy", name);
    tiny_write(file, PEN_NPY_INT64, 1, (int64_t[]){example_count}, labels);
    pen_arena_destroy(arena);
    return scratch_path(name);
}

const char *tiny_npy_write(const char *name, bool is_float, uint32_t rank, const int64_t *dims) {
    pen_arena *arena = check_arena();
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= (size_t)dims[i];
    }
    int64_t *zeros;
    CHECK_OK(PEN_NEW(arena, count, &zeros));
    const char *path =
        tiny_write(name, is_float ? PEN_NPY_FLOAT32 : PEN_NPY_INT64, rank, dims, zeros);
    pen_arena_destroy(arena);
    return path;
}
