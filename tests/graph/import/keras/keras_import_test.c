// Keras' models, with the weights that are in their files, compute what Keras computes:
// tests/reference/keras has them, and the script that made them.

#include <math.h>

#include "base/system/file.h"
#include "device/reference/reference_evaluate.h"
#include "graph/import/import.h"
#include "graph/import/npz_file.h"
#include "graph/passes/infer_shapes.h"
#include "graph/passes/set_inference.h"
#include "tests/support/check.h"
#include "tests/support/run_graph.h"

#define KERAS_TOLERANCE 2e-5
#define FOLDER "tests/reference/keras/"

typedef struct keras_case {
    pen_arena *arena;
    pen_model *model;
    pen_mapping mapping;   // of these:
    pen_npz arrays;        // inputs and outputs; its archive is closed
    const void **contents; // [arrays.count]
    run_graph run;
} keras_case;

static const pen_npz_array *find_array(const keras_case *keras, const char *kind, uint32_t index) {
    char name[32];
    snprintf(name, sizeof name, "%s_%u", kind, index);
    for (uint32_t i = 0; i < keras->arrays.count; i++) {
        if (strcmp(keras->arrays.arrays[i].name, name) == 0) return &keras->arrays.arrays[i];
    }
    CHECK(false, "there is no array %s", name);
    return NULL;
}

static float array_number(const keras_case *keras, const pen_npz_array *array, int64_t index) {
    const char *data = keras->contents[array - keras->arrays.arrays];
    float number;
    memcpy(&number, data + (size_t)index * sizeof number, sizeof number);
    return number;
}

static void read_arrays(keras_case *keras, const char *name) {
    char path[128];
    snprintf(path, sizeof path, FOLDER "%s.npz", name);
    CHECK_OK(pen_mapping_open(path, &keras->mapping));
    pen_npz npz;
    CHECK_OK(pen_npz_open(path, keras->mapping.bytes, keras->mapping.length, keras->arena, &npz));
    CHECK_OK(PEN_NEW(keras->arena, npz.count, &keras->contents));
    for (uint32_t i = 0; i < npz.count; i++)
        CHECK_OK(pen_npz_read(&npz, i, keras->arena, &keras->contents[i]));
    keras->arrays = npz;
    pen_npz_close(&npz);
}

static void run_model(keras_case *keras) {
    pen_graph *graph = keras->model->graph;
    const int64_t batch = find_array(keras, "input", 0)->type.shape.dims[0];
    const pen_symbol_binding binding = {keras->model->batch_symbol, batch};
    const pen_infer_options options = {
        .bindings = &binding, .binding_count = 1, .evaluate = pen_reference_evaluate};
    CHECK_OK(pen_set_inference(graph));
    CHECK_OK(pen_infer_shapes(graph, &options));
    CHECK_OK(run_graph_init(&keras->run, graph, keras->arena));
    for (uint32_t i = 0; i < pen_graph_input_count(graph); i++) {
        const pen_npz_array *array = find_array(keras, "input", i);
        const pen_value_id input = pen_graph_input(graph, i);
        const pen_tensor_type *type = pen_value_type(graph, input);
        void *data = keras->run.tensors[input.index].data;
        CHECK(pen_shape_equal(&type->shape, &array->type.shape), "input %u", i);
        for (int64_t e = 0; e < pen_shape_element_count(&type->shape); e++) {
            if (type->element == PEN_INT64)
                ((int64_t *)data)[e] = (int64_t)array_number(keras, array, e);
            if (type->element == PEN_FLOAT32) ((float *)data)[e] = array_number(keras, array, e);
        }
    }
    CHECK_OK(run_graph_all(&keras->run));
}

static void check_outputs(const keras_case *keras, const char *path) {
    const pen_graph *graph = keras->model->graph;
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        const pen_npz_array *array = find_array(keras, "output", i);
        const pen_value_id output = pen_graph_output(graph, i);
        const float *data = keras->run.tensors[output.index].data;
        const int64_t count = pen_shape_element_count(&array->type.shape);
        CHECK(pen_shape_equal(&pen_value_type(graph, output)->shape, &array->type.shape), "%s: %u",
              path, i);
        for (int64_t e = 0; e < count; e++) {
            const double expected = (double)array_number(keras, array, e);
            CHECK(fabs((double)data[e] - expected) <= KERAS_TOLERANCE * (1 + fabs(expected)),
                  "%s: output %u[%lld] is %g, expected %g", path, i, (long long)e, (double)data[e],
                  expected);
        }
    }
}

static void check_model_with(const char *name, const char *form,
                             const pen_import_options *options) {
    char path[128];
    keras_case keras = {.arena = check_arena()};
    snprintf(path, sizeof path, FOLDER "%s.%s", name, form);
    CHECK_OK(pen_model_open(path, options, &keras.model));
    assert_string_equal(keras.model->format, "keras");
    read_arrays(&keras, name);
    run_model(&keras);
    check_outputs(&keras, path);
    pen_model_destroy(keras.model);
    pen_mapping_close(&keras.mapping);
    pen_arena_destroy(keras.arena);
}

static void check_model(const char *name, const char *form) {
    check_model_with(name, form, NULL);
}

static void convolutions_in_sequence(void **state) {
    (void)state;
    check_model("sequential_cnn", "keras");
}

static void branches_and_shared_layers(void **state) {
    (void)state;
    check_model("branching", "h5");
}

static void recurrent_layers(void **state) {
    (void)state;
    check_model("recurrent", "h5");
    check_model("recurrent", "keras");
}

// Its input has as many steps as the user says.
static void masks_and_open_sizes(void **state) {
    (void)state;
    static int64_t steps[2] = {9, 9};
    pen_import_input_shape shape = {"words", {steps, 1}};
    const pen_import_options options = {.input_shapes = &shape, .input_shape_count = 1};
    pen_model *model = NULL;
    check_model_with("masked", "h5", &options);
    check_model_with("masked", "keras", &options);
    CHECK_ERROR(pen_model_open(FOLDER "masked.h5", NULL, &model), PEN_INVALID_INPUT,
                "input 'words': the file does not say dimension 1; say it in a job: 'model: "
                "{input_shapes: {words: [80]}}'");
    shape.sizes.count = 2;
    CHECK_ERROR(pen_model_open(FOLDER "masked.h5", &options, &model), PEN_INVALID_INPUT,
                "input 'words' has 1 dimensions without the batch, and 2 in the job's");
    shape = (pen_import_input_shape){"word", {steps, 1}};
    CHECK_ERROR(pen_model_open(FOLDER "masked.h5", &options, &model), PEN_INVALID_INPUT,
                "input_shapes has 'word', which is no input of the model; one is 'words'");
    shape = (pen_import_input_shape){"tokens", {steps, 2}};
    CHECK_ERROR(pen_model_open(FOLDER "attending.keras", &options, &model), PEN_INVALID_INPUT,
                "input 'tokens': dimension 1 is 5 in the file, and 9 in the job's input_shapes");
}

// What regularizers of the file say, and whether the mask comes to the output.
static void penalties_and_masks_of_outputs(void **state) {
    (void)state;
    int64_t steps[1] = {9};
    const pen_import_input_shape shape = {"words", {steps, 1}};
    const pen_import_options options = {.input_shapes = &shape, .input_shape_count = 1};
    pen_model *model;
    pen_value_id value;
    CHECK_OK(pen_model_open(FOLDER "masked.keras", &options, &model));
    assert_non_null(model->penalty);
    CHECK_OK(pen_graph_find_value(model->graph, model->penalty, &value));
    assert_null(pen_model_find_mask(model, NULL));
    const char *mask = pen_model_find_mask(model, "steps");
    assert_non_null(mask);
    CHECK_OK(pen_graph_find_value(model->graph, mask, &value));
    pen_model_destroy(model);
}

static void what_it_was_compiled_with_is_a_hint(void **state) {
    (void)state;
    pen_model *model;
    CHECK_OK(pen_model_open(FOLDER "compiled.h5", NULL, &model));
    assert_string_equal(model->compiled,
                        "loss: binary_cross_entropy_with_logits, optimizer: {sgd: {lr: 0.05, "
                        "momentum: 0.9, nesterov: true}}");
    pen_model_destroy(model);
    CHECK_OK(pen_model_open(FOLDER "nested.h5", NULL, &model));
    assert_null(model->compiled);
    pen_model_destroy(model);
}

static void layers_that_prepare(void **state) {
    (void)state;
    check_model("prepared", "h5");
    check_model("prepared", "keras");
}

static void attention_layers(void **state) {
    (void)state;
    check_model("attending", "keras");
}

// What only Keras 3.15 writes, and weights that are written back, which keras_export_test judges.
static void a_file_of_today(void **state) {
    (void)state;
    check_model("home", "keras");
}

static void models_applied_as_layers(void **state) {
    (void)state;
    check_model("transfer", "h5");
    check_model("transfer", "keras");
}

// A trunk that is a model, and frozen: its weights are where a frozen model's are, and stay frozen.
static void models_within_models(void **state) {
    (void)state;
    check_model("nested", "h5");
    check_model("nested", "keras");
    pen_model *model;
    uint32_t trained = 0, frozen = 0;
    CHECK_OK(pen_model_open(FOLDER "nested.h5", NULL, &model));
    for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
        const pen_value *value = pen_graph_value(model->graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER) continue;
        const bool is_trunk = strncmp(value->name, "trunk/", 6) == 0;
        CHECK(value->trainable == !is_trunk, "%s", value->name);
        trained += value->trainable;
        frozen += !value->trainable;
    }
    assert_int_equal(trained, 4);
    assert_int_equal(frozen, 3);
    pen_model_destroy(model);
}

static void what_cannot_be_imported_is_listed(void **state) {
    (void)state;
    pen_model *model;
    CHECK_ERROR(pen_model_open(FOLDER "cases.h5", NULL, &model), PEN_INVALID_INPUT,
                "the HDF5 file has no model, which would be in its attribute \"model_config\"");
}

// Bytes at which libhdf5 1.10.8 reads what is not there: it crashes, or finds something else, by
// what lies beside them in its heap.
static void what_crashes_libhdf5_is_refused(void **state) {
    (void)state;
    pen_mapping mapping;
    pen_model *model;
    CHECK_OK(pen_mapping_open(FOLDER "nested.h5", &mapping));
    uint8_t *copy = malloc(mapping.length);
    assert_non_null(copy);
    memcpy(copy, mapping.bytes, mapping.length);
    copy[7161] = 255;
    copy[2129] = 139;
    const pen_status status = pen_model_open_bytes(copy, mapping.length, "bad.h5", NULL, &model);
    const pen_status_code code = pen_status_get_code(status);
    CHECK(code == PEN_CORRUPT || code == PEN_NOT_FOUND, "%s", pen_status_message(status));
    pen_status_ignore(status, "as expected");
    free(copy);
    pen_mapping_close(&mapping);
}

PEN_TEST_MAIN(cmocka_unit_test(what_crashes_libhdf5_is_refused),
              cmocka_unit_test(convolutions_in_sequence),
              cmocka_unit_test(branches_and_shared_layers), cmocka_unit_test(recurrent_layers),
              cmocka_unit_test(masks_and_open_sizes),
              cmocka_unit_test(penalties_and_masks_of_outputs),
              cmocka_unit_test(layers_that_prepare),
              cmocka_unit_test(what_it_was_compiled_with_is_a_hint),
              cmocka_unit_test(attention_layers), cmocka_unit_test(a_file_of_today),
              cmocka_unit_test(models_within_models), cmocka_unit_test(models_applied_as_layers),
              cmocka_unit_test(what_cannot_be_imported_is_listed))
