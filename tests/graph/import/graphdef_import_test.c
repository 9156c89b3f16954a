// Models of TensorFlow, against what TensorFlow itself computed of them:
// tests/reference/tensorflow.

#include <math.h>

#include "base/system/file.h"
#include "graph/import/import.h"
#include "graph/import/onnx/onnx_export.h"
#include "graph/import/tensorflow/graphdef_export.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/tensorflow_model.h"

#define MODELS TENSORFLOW_MODELS
#define PUBLIC MODELS "public/"

static pen_model *open_path(const char *path) {
    return tensorflow_open(path, NULL);
}

// As it is, written as a TensorFlow graph and read back, and written as ONNX and read back.
static void check_three_ways(const char *path, const char *name, const pen_import_options *options,
                             int64_t batch) {
    const char *graphdef = scratch_path("again.pb"), *onnx = scratch_path("again.onnx");
    pen_model *model = tensorflow_open(path, options);
    CHECK_OK(pen_graphdef_export(model, NULL, graphdef));
    const pen_onnx_export_options onnx_options = {.output_types = model->output_types,
                                                  .for_inference = true};
    CHECK_OK(pen_onnx_export(model->graph, &onnx_options, onnx));
    tensorflow_check(model, name, batch);
    pen_import_options again = {.outputs = options->outputs, .output_count = options->output_count};
    tensorflow_check(tensorflow_open(graphdef, &again), name, batch);
    tensorflow_check(open_path(onnx), name, batch);
}

static void images_give_what_tensorflow_gives(void **state) {
    (void)state;
    static const char *const outputs[] = {"Identity", "Identity_1"};
    const pen_import_options options = {.outputs = outputs, .output_count = 2};
    check_three_ways(MODELS "images.pb", "images", &options, 2);
}

static void tokens_give_what_tensorflow_gives(void **state) {
    (void)state;
    static const char *const outputs[] = {"Identity", "Identity_1", "Identity_2"};
    const pen_import_options options = {.outputs = outputs, .output_count = 3};
    check_three_ways(MODELS "tokens.pb", "tokens", &options, 3);
}

static void layers_are_normalised_as_keras_does(void **state) {
    (void)state;
    const pen_import_options options = {0};
    check_three_ways(MODELS "normed.pb", "normed", &options, 3);
}

static void what_is_picked_written_and_lost_is_tensorflows(void **state) {
    (void)state;
    static const pen_import_options plain;
    check_three_ways(MODELS "picked.pb", "picked", &plain, 4);
}

static void what_is_rolled_and_rounded_is_tensorflows(void **state) {
    (void)state;
    static const pen_import_options plain;
    check_three_ways(MODELS "rolled.pb", "rolled", &plain, 4);
}

static uint32_t count_op(const pen_model *model, const char *op) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(model->graph); n++) {
        count += strcmp(pen_graph_node(model->graph, (pen_node_id){n})->op->name, op) == 0 ? 1 : 0;
    }
    return count;
}

static void volumes_and_blocks_are_tensorflows(void **state) {
    (void)state;
    static const pen_import_options plain;
    check_three_ways(MODELS "volumes.pb", "volumes", &plain, 2);
    pen_model *model = tensorflow_open(MODELS "volumes.pb", NULL);
    assert_int_equal(count_op(model, "conv"), 2);
    for (uint32_t n = 0; n < pen_graph_node_count(model->graph); n++) {
        const pen_node *node = pen_graph_node(model->graph, (pen_node_id){n});
        if (strcmp(node->op->name, "conv") != 0) continue;
        const pen_node_id maker = pen_graph_value(model->graph, node->inputs[0])->producer;
        assert_string_not_equal(pen_graph_node(model->graph, maker)->op->name, "pad");
    }
    pen_model_destroy(model);
}

static void dropout_is_found_in_random_numbers(void **state) {
    (void)state;
    const pen_import_options trains = {.dropout_trains = true};
    pen_model *model = tensorflow_open(MODELS "dropped.pb", &trains);
    assert_int_equal(count_op(model, "dropout"), 1);
    pen_model_destroy(model);
    tensorflow_check(tensorflow_open(MODELS "dropped.pb", NULL), "dropped", 4);
}

static void sizes_and_indices_are_tensorflows(void **state) {
    (void)state;
    tensorflow_check(open_path(MODELS "sized.pb"), "sized", 3);
}

static void batch_normalization_uses_what_it_has_learnt(void **state) {
    (void)state;
    tensorflow_check(tensorflow_open(MODELS "normalized", NULL), "normalized", 8);
}

static void outputs_are_what_nobody_reads(void **state) {
    (void)state;
    tensorflow_check(open_path(MODELS "branches.pb"), "branches", 3);
}

static void a_constant_condition_takes_one_branch(void **state) {
    (void)state;
    const pen_import_options options = {0};
    check_three_ways(MODELS "switched.pb", "switched", &options, 2);
    static const char *const outputs[] = {"Identity"};
    const pen_import_options named = {.outputs = outputs, .output_count = 1};
    check_three_ways(MODELS "conditional.pb", "conditional", &named, 2);
}

static void a_saved_model_brings_its_variables(void **state) {
    (void)state;
    const pen_import_options options = {0};
    tensorflow_check(open_path(MODELS "classifier"), "classifier", 8);
    tensorflow_check(open_path(MODELS "classifier/saved_model.pb"), "classifier", 8);
    pen_model *model = tensorflow_open(MODELS "classifier", &options);
    static const struct {
        const char *name;
        pen_value_kind kind;
    } expected[] = {{"conv/filters", PEN_VALUE_PARAMETER}, {"dense/bias", PEN_VALUE_PARAMETER},
                    {"norm/gain", PEN_VALUE_PARAMETER},    {"norm/mean", PEN_VALUE_STATE},
                    {"norm/variance", PEN_VALUE_STATE},    {"image", PEN_VALUE_INPUT}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        pen_value_id id;
        CHECK_OK(pen_graph_find_value(model->graph, expected[i].name, &id));
        assert_int_equal(pen_graph_value(model->graph, id)->kind, expected[i].kind);
    }
    assert_string_equal(pen_value_name(model->graph, pen_graph_output(model->graph, 0)), "logits");
    pen_model_destroy(model);
}

static void constants_become_parameters_when_asked(void **state) {
    (void)state;
    const pen_import_options options = {.unfreeze = "conv|w"};
    pen_model *model = tensorflow_open(MODELS "switched.pb", &options);
    pen_value_id id;
    CHECK_OK(pen_graph_find_value(model->graph, "w", &id));
    assert_int_equal(pen_graph_value(model->graph, id)->kind, PEN_VALUE_PARAMETER);
    assert_true(pen_graph_value(model->graph, id)->trainable);
    tensorflow_check(model, "switched", 2);
    const pen_import_options none = {.unfreeze = "nothing is called so"};
    CHECK_ERROR(pen_model_open(MODELS "switched.pb", &none, &model), PEN_NOT_FOUND,
                "no constant of floats matches 'nothing is called so'");
}

// ---- public files

static void check_inputs_and_outputs(const char *path, uint32_t inputs, uint32_t outputs) {
    pen_model *model = open_path(path);
    assert_int_equal(pen_graph_input_count(model->graph), inputs);
    assert_int_equal(pen_graph_output_count(model->graph), outputs);
    tensorflow_bind(model, 2);
    pen_model_destroy(model);
}

static void public_files_import(void **state) {
    (void)state;
    check_inputs_and_outputs(PUBLIC "multi_type_inputs_outputs.pb", 5, 5);
    check_inputs_and_outputs(PUBLIC "tfnet.pb", 1, 1);
    check_inputs_and_outputs(PUBLIC "tfnet_training.pb", 2, 5);
    check_inputs_and_outputs(PUBLIC "saved-model-signature", 1, 1);
    tensorflow_check(open_path(PUBLIC "tfnet.pb"), "tfnet", 3);
    tensorflow_check(open_path(PUBLIC "saved-model-signature"), "signature", 3);
}

static void what_cannot_be_read_is_said(void **state) {
    (void)state;
    pen_model *model = NULL;
    CHECK_ERROR(pen_model_open(PUBLIC "tfnet_string.pb", NULL, &model), PEN_UNSUPPORTED,
                "an input of type string (1, as 'Placeholder'); StringToNumber (1");
    CHECK_ERROR(pen_model_open(PUBLIC "saved-model-not-resource", NULL, &model), PEN_NOT_FOUND,
                "variables.data-00000-of-00001");
    static const char *const outputs[] = {"there/is/none"};
    const pen_import_options options = {.outputs = outputs, .output_count = 1};
    CHECK_ERROR(pen_model_open(MODELS "switched.pb", &options, &model), PEN_NOT_FOUND,
                "no node 'there/is/none'");
    const pen_import_options signature = {.signature = "training"};
    CHECK_ERROR(pen_model_open(MODELS "classifier", &signature, &model), PEN_NOT_FOUND,
                "no signature 'training'; it has 'serving_default'");
    CHECK_ERROR(pen_model_open(scratch_file("empty.pb", "", 0), NULL, &model), PEN_INVALID_INPUT,
                "empty.pb");
    CHECK_ERROR(pen_model_open(scratch_file("text.pb", "hello, world", 12), NULL, &model),
                PEN_CORRUPT, "text.pb: error: at byte");
}

// A variable whose shard was changed after it was written.
static void changed_contents_are_noticed(void **state) {
    (void)state;
    static const char *const files[] = {"saved_model.pb", "variables/variables.index",
                                        "variables/variables.data-00000-of-00001"};
    char path[256], name[256];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        pen_mapping mapping;
        pen_arena *arena = check_arena();
        uint8_t *copy;
        snprintf(path, sizeof path, MODELS "classifier/%s", files[i]);
        snprintf(name, sizeof name, "changed/%s", files[i]);
        CHECK_OK(pen_mapping_open(path, &mapping));
        CHECK_OK(PEN_NEW(arena, mapping.length, &copy));
        memcpy(copy, mapping.bytes, mapping.length);
        if (i == 2) copy[8] ^= 1;
        scratch_file(name, copy, mapping.length);
        pen_mapping_close(&mapping);
        pen_arena_destroy(arena);
    }
    pen_model *model = NULL;
    CHECK_ERROR(pen_model_open(scratch_path("changed"), NULL, &model), PEN_CORRUPT,
                "have another checksum");
}

static void options_of_other_models_are_refused(void **state) {
    (void)state;
    const char *outputs[] = {"y"};
    const pen_import_options options[] = {{.unfreeze = "no_such_weights"},
                                          {.outputs = outputs, .output_count = 1},
                                          {.use_device_strings = true},
                                          {.signature = "serving_default"}};
    const char *messages[] = {"no floating constant matches", "model.outputs",
                              "model.use_device_strings", "model.signature"};
    pen_model *model;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        CHECK_ERROR(pen_model_open("examples/fashion-cnn/fashion_cnn.onnx", &options[i], &model),
                    PEN_INVALID_INPUT, messages[i]);
    }
    CHECK_ERROR(pen_model_open("examples/tensorflow-finetune/clothes.pb", &options[3], &model),
                PEN_INVALID_INPUT, "expected with a SavedModel of TensorFlow only");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_give_what_tensorflow_gives),
        cmocka_unit_test(tokens_give_what_tensorflow_gives),
        cmocka_unit_test(layers_are_normalised_as_keras_does),
        cmocka_unit_test(what_is_rolled_and_rounded_is_tensorflows),
        cmocka_unit_test(what_is_picked_written_and_lost_is_tensorflows),
        cmocka_unit_test(volumes_and_blocks_are_tensorflows),
        cmocka_unit_test(dropout_is_found_in_random_numbers),
        cmocka_unit_test(sizes_and_indices_are_tensorflows),
        cmocka_unit_test(batch_normalization_uses_what_it_has_learnt),
        cmocka_unit_test(outputs_are_what_nobody_reads),
        cmocka_unit_test(a_constant_condition_takes_one_branch),
        cmocka_unit_test(a_saved_model_brings_its_variables),
        cmocka_unit_test(constants_become_parameters_when_asked),
        cmocka_unit_test(public_files_import),
        cmocka_unit_test(what_cannot_be_read_is_said),
        cmocka_unit_test(changed_contents_are_noticed),
        cmocka_unit_test(options_of_other_models_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
