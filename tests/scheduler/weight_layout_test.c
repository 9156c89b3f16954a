// Files of weights for models of layers, in Keras' layout and in ours: which one a file has is told
// by its shapes, or by the job, and never guessed.

#include <unistd.h>

#include "graph/graph.h"
#include "graph/keras_layers/layer.h"
#include "scheduler/compile/weight_file.h"
#include "scheduler/store/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define TENSOR_LIMIT 64

// Every way in which a weight of Keras' may lie otherwise here.
#define MANY_LAYERS                                                                                \
    "inputs: {picture: {shape: [6, 6, 2]}}\n"                                                      \
    "layers:\n"                                                                                    \
    "- conv2d: {filters: 3, kernel_size: 2, name: conv}\n"                                         \
    "- separable_conv2d: {filters: 4, kernel_size: 2, name: separable}\n"                          \
    "- conv2d_transpose: {filters: 2, kernel_size: 3, name: up}\n"                                 \
    "- batch_normalization: {name: norm}\n"                                                        \
    "- reshape: {target_shape: [6, 12]}\n"                                                         \
    "- bidirectional: {layer: {lstm: {units: 3, return_sequences: true}}, name: both}\n"           \
    "- gru: {units: 2, name: last}\n"                                                              \
    "- dense: {units: 5, name: answer}\n"

#define SQUARE_LAYER                                                                               \
    "inputs: {picture: {shape: [4, 4, 2]}}\n"                                                      \
    "layers: [conv2d: {filters: 2, kernel_size: 2, name: conv}]\n"

// What is written into a file.
typedef struct layout_tensors {
    const char *names[TENSOR_LIMIT];
    pen_tensor_type types[TENSOR_LIMIT];
    const float *data[TENSOR_LIMIT];
    uint32_t count;
} layout_tensors;

static pen_model *open_layers(const char *text) {
    pen_model *model;
    CHECK_OK(pen_model_open_bytes(text, strlen(text), "net.yaml", NULL, &model));
    assert_non_null(model->layers);
    return model;
}

static const float *make_numbers(pen_arena *arena, int64_t count, float first) {
    float *numbers;
    CHECK_OK(PEN_NEW(arena, (size_t)count, &numbers));
    for (int64_t i = 0; i < count; i++)
        numbers[i] = first + (float)i / 1024;
    return numbers;
}

static void add_tensor(layout_tensors *tensors, const char *name, const pen_shape *shape,
                       const float *data) {
    assert_true(tensors->count < TENSOR_LIMIT);
    tensors->names[tensors->count] = name;
    tensors->types[tensors->count] = (pen_tensor_type){PEN_FLOAT32, *shape};
    tensors->data[tensors->count++] = data;
}

static pen_status read_tensor(void *context, uint32_t index, uint64_t first, void *out_data,
                              uint64_t bytes) {
    const layout_tensors *tensors = context;
    memcpy(out_data, (const char *)tensors->data[index] + first, bytes);
    return PEN_OK;
}

static pen_status apply(layout_tensors *tensors, pen_weight_layout layout, pen_model *model) {
    const pen_tensor_type *types[TENSOR_LIMIT];
    pen_weight_file *file = NULL;
    for (uint32_t i = 0; i < tensors->count; i++)
        types[i] = &tensors->types[i];
    const pen_weight_options options = {.path = scratch_path("layout.safetensors"),
                                        .layout = layout};
    const pen_safetensors_source source = {.count = tensors->count,
                                           .names = tensors->names,
                                           .types = types,
                                           .read = read_tensor,
                                           .context = tensors};
    CHECK_OK(pen_safetensors_save(options.path, &source));
    const pen_status status = pen_weight_file_apply(&options, model, &file);
    assert_int_equal(unlink(options.path), 0);
    // what the file lends is copied before it is closed
    for (uint32_t v = 0; status == PEN_OK && v < pen_graph_value_count(model->graph); v++) {
        const pen_value *value = pen_graph_value(model->graph, (pen_value_id){v});
        void *copy;
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        copy = pen_arena_allocate(model->arena, value->data_bytes, 1, 16);
        assert_non_null(copy);
        memcpy(copy, value->data, value->data_bytes);
        pen_graph_set_contents(model->graph, (pen_value_id){v}, value->type.element, copy);
    }
    pen_weight_file_close(file);
    return status;
}

// The weights as a Keras user has them, filled into `expected` as the importer of Keras' files
// does.
static void take_keras(pen_model *expected, const char *end, layout_tensors *tensors) {
    for (uint32_t i = 0; i < pen_layer_weight_count(expected->layers); i++) {
        const pen_layer_weight *weight = pen_layer_weight_at(expected->layers, i);
        const char *name;
        const float *data =
            make_numbers(expected->arena, pen_shape_element_count(&weight->shape), (float)(i + 1));
        CHECK_OK(
            pen_arena_format(expected->arena, &name, "%s/%s%s", weight->layer, weight->name, end));
        add_tensor(tensors, name, &weight->shape, data);
        pen_layer_weight_fill(expected->layers, weight, data);
    }
}

static void take_own(const pen_model *model, layout_tensors *tensors) {
    for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
        const pen_value *value = pen_graph_value(model->graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        add_tensor(tensors, value->name, &value->type.shape, value->data);
    }
}

static void check_same(const pen_model *model, const pen_model *expected) {
    uint32_t count = 0;
    assert_int_equal(pen_graph_value_count(model->graph), pen_graph_value_count(expected->graph));
    for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
        const pen_value *value = pen_graph_value(model->graph, (pen_value_id){v});
        const pen_value *other = pen_graph_value(expected->graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        CHECK(memcmp(value->data, other->data, value->data_bytes) == 0, "%s", value->name);
        count++;
    }
    assert_true(count > 0);
}

static void both_layouts_are_told_by_their_shapes(void **state) {
    (void)state;
    static const char *const ends[] = {"", ":0"};
    pen_model *expected = open_layers(MANY_LAYERS);
    for (int i = 0; i < 2; i++) {
        pen_model *model = open_layers(MANY_LAYERS);
        layout_tensors tensors = {.count = 0};
        take_keras(expected, ends[i], &tensors);
        CHECK_OK(apply(&tensors, PEN_WEIGHTS_BY_SHAPE, model));
        check_same(model, expected);
        pen_model_destroy(model);
    }
    pen_model *model = open_layers(MANY_LAYERS);
    layout_tensors tensors = {.count = 0};
    take_own(expected, &tensors);
    CHECK_OK(apply(&tensors, PEN_WEIGHTS_BY_SHAPE, model));
    check_same(model, expected);
    pen_model_destroy(model);
    pen_model_destroy(expected);
}

// A kernel of which all sides are equal: [height, width, channels, filters], or else.
static void what_both_would_fit_must_be_said(void **state) {
    (void)state;
    pen_model *expected = open_layers(SQUARE_LAYER);
    pen_model *model = open_layers(SQUARE_LAYER);
    layout_tensors keras = {.count = 0}, own = {.count = 0};
    take_keras(expected, "", &keras);
    CHECK_ERROR(apply(&keras, PEN_WEIGHTS_BY_SHAPE, model), PEN_INVALID_INPUT,
                "'conv/kernel', [2,2,2,2], may be in Keras' layout or in Penstock's, and no other "
                "tensor tells which: weights_layout does, keras or penstock");
    CHECK_OK(apply(&keras, PEN_WEIGHTS_KERAS, model));
    check_same(model, expected);
    take_own(expected, &own);
    CHECK(own.data[0][1] != keras.data[0][1], "there is but one layout");
    pen_model *again = open_layers(SQUARE_LAYER);
    CHECK_OK(apply(&own, PEN_WEIGHTS_PENSTOCK, again));
    check_same(again, expected);
    pen_model_destroy(again);
    pen_model_destroy(model);
    pen_model_destroy(expected);
}

static void what_does_not_fit_is_said_in_the_layout_of_the_file(void **state) {
    (void)state;
    pen_model *expected = open_layers(MANY_LAYERS);
    pen_model *model = open_layers(MANY_LAYERS);
    layout_tensors tensors = {.count = 0};
    take_keras(expected, "", &tensors);
    tensors.types[0].shape.dims[0] = 1; // of the first kernel
    CHECK_ERROR(apply(&tensors, PEN_WEIGHTS_BY_SHAPE, model), PEN_INVALID_INPUT,
                "'conv/kernel' is float32[1,2,2,3], 'kernel' of layer 'conv' is float32[2,2,2,3]");
    tensors.types[0].shape = pen_tensor_type_make(PEN_FLOAT32, 4, (int64_t[]){3, 2, 2, 2}).shape;
    CHECK_ERROR(apply(&tensors, PEN_WEIGHTS_BY_SHAPE, model), PEN_INVALID_INPUT,
                "'conv/kernel' that of Penstock: one file has one layout");
    tensors.count -= 1;
    tensors.types[0].shape = pen_tensor_type_make(PEN_FLOAT32, 4, (int64_t[]){2, 2, 2, 3}).shape;
    CHECK_ERROR(apply(&tensors, PEN_WEIGHTS_BY_SHAPE, model), PEN_INVALID_INPUT,
                "it lacks 'answer/bias'");
    pen_model_destroy(model);
    pen_model_destroy(expected);
}

static void other_models_have_no_layout(void **state) {
    (void)state;
    pen_model *model = open_layers(SQUARE_LAYER);
    layout_tensors tensors = {.count = 0};
    take_own(model, &tensors);
    struct pen_layer_builder *layers = model->layers;
    model->layers = NULL;
    CHECK_ERROR(apply(&tensors, PEN_WEIGHTS_KERAS, model), PEN_INVALID_INPUT,
                "only models of layers and Keras' have weights in Keras' layout");
    CHECK_OK(apply(&tensors, PEN_WEIGHTS_BY_SHAPE, model));
    model->layers = layers;
    pen_model_destroy(model);
}

PEN_TEST_MAIN(cmocka_unit_test(both_layouts_are_told_by_their_shapes),
              cmocka_unit_test(what_both_would_fit_must_be_said),
              cmocka_unit_test(what_does_not_fit_is_said_in_the_layout_of_the_file),
              cmocka_unit_test(other_models_have_no_layout))
