// Models of layers as C programs build them: what is written, and what is said of mistakes.

#include "base/system/file.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/layers.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static pen_layers *small_model(void) {
    pen_layers *layers = NULL;
    CHECK_OK(pen_layers_create(&layers));
    CHECK_OK(pen_layers_input(layers, "x", 2, (const int64_t[]){4, 3}));
    CHECK_OK(pen_layers_input_indices(layers, "words", 1, (const int64_t[]){5}));
    CHECK_OK(pen_layers_add(layers, "flatten", "from: x, name: flat"));
    CHECK_OK(pen_layers_add(layers, "embedding", "from: words, input_dim: 7, output_dim: 2"));
    CHECK_OK(pen_layers_add(layers, "flatten", NULL));
    CHECK_OK(pen_layers_add(layers, "concatenate", "from: [flat, flatten]"));
    CHECK_OK(pen_layers_add(layers, "dense", "units: 2, name: y"));
    return layers;
}

static void what_is_saved_is_the_model(void **state) {
    (void)state;
    const char *path = scratch_path("model.yaml");
    pen_layers *layers = small_model();
    CHECK_OK(pen_layers_output(layers, "y"));
    CHECK_OK(pen_layers_output(layers, "flat"));
    pen_layers_set_seed(layers, 9);
    CHECK_OK(pen_layers_save(layers, path, NULL));
    pen_layers_destroy(layers);
    pen_model *model = NULL;
    CHECK_OK(pen_model_open(path, NULL, &model));
    assert_string_equal(model->format, "layers");
    assert_int_equal(pen_graph_input_count(model->graph), 2);
    assert_int_equal(pen_graph_output_count(model->graph), 2);
    pen_value_id kernel;
    CHECK_OK(pen_graph_find_value(model->graph, "y/kernel", &kernel));
    const pen_shape expected = {2, {22, 2}};
    assert_true(pen_shape_equal(&pen_value_type(model->graph, kernel)->shape, &expected));
    pen_model_destroy(model);
}

static void a_job_has_its_text_behind_the_model(void **state) {
    (void)state;
    const char *path = scratch_path("job.yaml");
    pen_arena *arena = check_arena();
    pen_layers *layers = small_model();
    const char *text;
    size_t length;
    CHECK_OK(pen_layers_save(layers, path, "data: {x: y}\n"));
    CHECK_OK(pen_file_read(path, 4096, arena, &text, &length));
    assert_true(strncmp(text, "version: 1\nmodel:\n  seed: 0\n  inputs:\n    \"x\": ", 46) == 0);
    assert_non_null(strstr(text, "\n    - dense: {units: 2, name: y}\ndata: {x: y}\n"));
    pen_layers_destroy(layers);
    pen_arena_destroy(arena);
}

// Layers without a name in their options are outputs by the names they get.
static void outputs_are_known_by_the_names_that_layers_get(void **state) {
    (void)state;
    pen_layers *layers = NULL;
    CHECK_OK(pen_layers_create(&layers));
    CHECK_OK(pen_layers_input(layers, "x", 1, (const int64_t[]){4}));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(pen_layers_add(layers, "dense", "units: 2"));
    }
    CHECK_ERROR(pen_layers_output(layers, "dense_4"), PEN_NOT_FOUND, "'dense_4'; possible: ");
    CHECK_OK(pen_layers_output(layers, "dense"));
    CHECK_OK(pen_layers_output(layers, "dense_2"));
    CHECK_ERROR(pen_layers_output(layers, "dense"), PEN_INVALID_INPUT,
                "'dense' is an output of the model already");
    CHECK_OK(pen_layers_check(layers));
    pen_layers_destroy(layers);
}

static void mistakes_are_said_at_once(void **state) {
    (void)state;
    pen_layers *layers = NULL;
    CHECK_OK(pen_layers_create(&layers));
    CHECK_ERROR(pen_layers_check(layers), PEN_INVALID_INPUT, "the model has no layers");
    CHECK_ERROR(pen_layers_input(layers, "a b", 1, (const int64_t[]){1}), PEN_INVALID_INPUT,
                "'a b' is no name");
    CHECK_ERROR(pen_layers_input(layers, "", 1, (const int64_t[]){1}), PEN_INVALID_INPUT,
                "'' is no name");
    CHECK_ERROR(pen_layers_input(layers, "x", 2, (const int64_t[]){1, 0}), PEN_INVALID_INPUT,
                "input 'x': dimension 1 is 0, expected at least 1");
    CHECK_ERROR(pen_layers_input(layers, "x", 0, NULL), PEN_INVALID_INPUT,
                "input 'x': it has no dimension besides the batch");
    CHECK_OK(pen_layers_input(layers, "x", 1, (const int64_t[]){4}));
    CHECK_ERROR(pen_layers_input_indices(layers, "x", 1, (const int64_t[]){3}), PEN_INVALID_INPUT,
                "the model has an input or a layer called 'x' already");
    CHECK_ERROR(pen_layers_add(layers, "dense", "units: 1, name: x"), PEN_INVALID_INPUT,
                "the model has an input or a layer called 'x' already");
    CHECK_ERROR(pen_layers_output(layers, "y"), PEN_NOT_FOUND,
                "no input or layer added so far is called 'y'; possible: x");
    CHECK_ERROR(pen_layers_add(layers, "dens", NULL), PEN_NOT_FOUND,
                "no layer is called 'dens'; possible: dense, ");
    CHECK_ERROR(pen_layers_add(layers, "dense", NULL), PEN_INVALID_INPUT, "'units' is missing");
    CHECK_ERROR(pen_layers_add(layers, "dense", "units: 2}, {"), PEN_INVALID_INPUT, "dense:1:");
    CHECK_ERROR(pen_layers_add(layers, "dense", "units: many"), PEN_INVALID_INPUT,
                "dense:1:9: error: units: found \"many\"");
    CHECK_OK(pen_layers_add(layers, "conv2d", "filters: 1, kernel_size: 1"));
    CHECK_ERROR(pen_layers_check(layers), PEN_INVALID_INPUT,
                "conv2d 'conv2d': its input is [?,4], expected 4 dimensions");
    CHECK_ERROR(pen_layers_save(layers, scratch_path("none.yaml"), NULL), PEN_INVALID_INPUT,
                "conv2d 'conv2d'");
    pen_layers_destroy(layers);
    pen_layers_destroy(NULL);
}

PEN_TEST_MAIN(cmocka_unit_test(what_is_saved_is_the_model),
              cmocka_unit_test(a_job_has_its_text_behind_the_model),
              cmocka_unit_test(outputs_are_known_by_the_names_that_layers_get),
              cmocka_unit_test(mistakes_are_said_at_once))
