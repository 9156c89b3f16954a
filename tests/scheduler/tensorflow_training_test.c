// Training models that came from TensorFlow, against TensorFlow's own step, and on three devices.

#include <math.h>
#include <stdio.h>

#include "base/format/npy.h"
#include "base/system/file.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "scheduler/checkpoint/model_export.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/training.h"

#define MODELS "tests/reference/tensorflow/"
#define ONE "devices: [{name: a, threads: 1}]\n"
#define THREE "devices: [{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}]\n"

static const pen_job *classifier_job(pen_arena *arena, const char *model, const char *devices) {
    return training_job(arena,
                        "version: 1\n"
                        "model: {%s}\n"
                        "data: {train: {format: npy, inputs: {%s: " MODELS
                        "classifier.input_0.npy}, labels: " MODELS "classifier.labels.npy}}\n"
                        "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, "
                        "batch: 8, microbatches: 1, steps: 1, shuffle: false}\n"
                        "%s",
                        model, strstr(model, ".pb") != NULL ? "serving_default_image" : "image",
                        devices);
}

// The largest difference of a parameter from what TensorFlow has after the same step, and its
// largest element.
static void check_parameter(const pen_tensor_store *store, const char *model, const char *ours_name,
                            const char *name, pen_arena *arena) {
    char path[256];
    snprintf(path, sizeof path, MODELS "%s.step_%s.npy", model, name);
    for (char *c = path + strlen(MODELS); *c != '\0'; c++) {
        if (*c == '/') *c = '+';
    }
    pen_mapping mapping;
    pen_npy_header header;
    CHECK_OK(pen_mapping_open(path, &mapping));
    CHECK_OK(pen_npy_read_header(mapping.bytes, mapping.length, path, &header));
    const uint32_t index = training_find(store, ours_name);
    assert_int_equal(store->tensors[index].bytes, header.data_bytes);
    float *ours, expected;
    CHECK_OK(PEN_NEW(arena, header.element_count, &ours));
    CHECK_OK(pen_tensor_store_read(store, index, ours, header.data_bytes));
    double largest = 0, difference = 0;
    for (uint64_t i = 0; i < header.element_count; i++) {
        memcpy(&expected, mapping.bytes + header.data_offset + i * sizeof expected,
               sizeof expected);
        largest = fmax(largest, fabs((double)expected));
        difference = fmax(difference, fabs((double)expected - (double)ours[i]));
    }
    CHECK(difference <= 1e-5 * largest, "%s differs by %g of %g", name, difference, largest);
    pen_mapping_close(&mapping);
}

static void a_step_is_tensorflows(void **state) {
    (void)state;
    static const char *const names[] = {"conv/filters", "conv/bias",     "norm/gain",
                                        "norm/offset",  "dense/weights", "dense/bias"};
    pen_arena *arena = check_arena();
    pen_trainer *trainer = training_start(classifier_job(arena, "file: " MODELS "classifier", ONE));
    training_step(trainer);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_parameter(pen_trainer_tensors(trainer), "classifier", names[i], names[i], arena);
    }
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

static pen_trainer *stopped_step(pen_arena *arena, const char *file, const char *devices) {
    pen_trainer *trainer = training_start(
        training_job(arena,
                     "version: 1\n"
                     "model: {file: '%s'}\n"
                     "data: {train: {format: npy, inputs: {x: " MODELS
                     "stopped.input_0.npy}, labels: " MODELS "stopped.labels.npy}}\n"
                     "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 8, "
                     "microbatches: 1, steps: 1, shuffle: false}\n%s",
                     file, devices));
    training_step(trainer);
    return trainer;
}

// Also of what is written as ONNX and read again, on one device and on three.
static void gradients_stop_where_tensorflow_stops_them(void **state) {
    (void)state;
    static const char *const names[] = {"first/weights", "norm/scale", "target/weights",
                                        "last/weights"};
    pen_arena *arena = check_arena();
    const char *path = scratch_path("stopped.onnx");
    uint32_t count;
    pen_model *model;
    CHECK_OK(pen_model_open(MODELS "stopped", NULL, &model));
    CHECK_OK(pen_model_export_file(model, NULL, path, &count));
    pen_model_destroy(model);
    const char *const files[] = {MODELS "stopped", MODELS "stopped", path};
    const char *const devices[] = {ONE, THREE, ONE};
    uint64_t counts[3];
    float *parameters[3];
    for (int i = 0; i < 3; i++) {
        pen_trainer *trainer = stopped_step(arena, files[i], devices[i]);
        parameters[i] = training_read(pen_trainer_tensors(trainer), arena, &counts[i]);
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            check_parameter(pen_trainer_tensors(trainer), "stopped", names[k], names[k], arena);
        }
        pen_trainer_destroy(trainer);
    }
    assert_true(counts[0] == counts[1]);
    assert_memory_equal(parameters[0], parameters[1], counts[0] * sizeof(float));
    pen_arena_destroy(arena);
}

// ---- Keras

static pen_trainer *keras_step(pen_arena *arena, const char *model_text, const char *name,
                               int batch) {
    pen_trainer *trainer = training_start(
        training_job(arena,
                     "version: 1\n"
                     "model: {%s}\n"
                     "data: {train: {format: npy, inputs: {x: " MODELS
                     "%s.input_0.npy}, labels: " MODELS "%s.labels.npy}}\n"
                     "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: %d, "
                     "microbatches: 1, steps: 1, shuffle: false}\n" ONE,
                     model_text, name, name, batch));
    training_step(trainer);
    return trainer;
}

static const char *const recurrent_names[] = {
    "lstm/lstm_cell/kernel",
    "lstm/lstm_cell/recurrent_kernel",
    "lstm/lstm_cell/bias",
    "gru/gru_cell/kernel",
    "gru/gru_cell/recurrent_kernel",
    "gru/gru_cell/bias",
    "gru_before/gru_cell_1/kernel",
    "gru_before/gru_cell_1/recurrent_kernel",
    "gru_before/gru_cell_1/bias",
    "rnn/simple_rnn_cell/kernel",
    "rnn/simple_rnn_cell/bias",
    "dense/kernel",
    "dense/bias",
};

static void a_step_of_recurrent_nets_is_kerass(void **state) {
    (void)state;
    static const char *const masked_names[] = {
        "table/embeddings",
        "both/forward_gru/gru_cell_5/kernel",
        "both/forward_gru/gru_cell_5/recurrent_kernel",
        "both/forward_gru/gru_cell_5/bias",
        "both/backward_gru/gru_cell_6/kernel",
        "both/backward_gru/gru_cell_6/bias",
        "dense/kernel",
    };
    pen_arena *arena = check_arena();
    pen_trainer *trainer = keras_step(arena, "file: " MODELS "recurrent", "recurrent", 6);
    for (size_t i = 0; i < sizeof recurrent_names / sizeof recurrent_names[0]; i++) {
        check_parameter(pen_trainer_tensors(trainer), "recurrent", recurrent_names[i],
                        recurrent_names[i], arena);
    }
    pen_trainer_destroy(trainer);
    trainer = keras_step(arena, "file: " MODELS "masked", "masked", 4);
    for (size_t i = 0; i < sizeof masked_names / sizeof masked_names[0]; i++) {
        check_parameter(pen_trainer_tensors(trainer), "masked", masked_names[i], masked_names[i],
                        arena);
    }
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

static void batch_normalization_is_trained_as_keras_does(void **state) {
    (void)state;
    static const char *const names[] = {
        "conv/kernel",
        "norm/gamma",
        "norm/beta",
        "norm/moving_mean",
        "norm/moving_variance",
        "norm_sequence/beta",
        "norm_sequence/moving_mean",
        "norm_sequence/moving_variance",
        "hidden/kernel",
        "norm_vector/gamma",
        "norm_vector/moving_mean",
        "norm_vector/moving_variance",
        "dense/kernel",
    };
    pen_arena *arena = check_arena();
    pen_trainer *trainer = keras_step(arena,
                                      "file: " MODELS "normalized, train_batch_norm: true, "
                                      "batch_norm_momentum: 0.9",
                                      "normalized", 8);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_parameter(pen_trainer_tensors(trainer), "normalized", names[i], names[i], arena);
    }
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

// A frozen graph's statistics are constants, which become states where scale or offset is trained.
static void constants_are_statistics_when_asked(void **state) {
    (void)state;
    const pen_import_options frozen = {.unfreeze = "dense"};
    const pen_import_options options = {
        .unfreeze = ".", .train_batch_norm = true, .batch_norm_momentum = 0.9};
    const pen_import_options partly = {
        .unfreeze = "dense", .train_batch_norm = true, .batch_norm_momentum = 0.9};
    const struct {
        const pen_import_options *options;
        uint32_t replaced;
    } cases[] = {{&frozen, 0}, {&options, 6}, {&partly, 0}};
    const char *path = scratch_path("normalized.pb");
    pen_model *model = NULL;
    uint32_t count = 0;
    CHECK_OK(pen_model_open(MODELS "normalized", NULL, &model));
    CHECK_OK(pen_model_export_file(model, NULL, path, &count));
    pen_model_destroy(model);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t replaced = 0;
        CHECK_OK(pen_model_open(path, cases[i].options, &model));
        for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
            const pen_value *value = pen_graph_value(model->graph, (pen_value_id){v});
            replaced += pen_value_is(value->replaces) ? 1 : 0;
        }
        assert_int_equal(replaced, cases[i].replaced);
        pen_model_destroy(model);
    }
}

// Frozen, and of functions that have no name, so that the loops are unrolled: the same step.
static void an_unrolled_step_is_kerass(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"model_1/lstm/lstm_cell_1/MatMul/ReadVariableOp/resource", "lstm/lstm_cell/kernel"},
        {"model_1/lstm/lstm_cell_1/BiasAdd/ReadVariableOp/resource", "lstm/lstm_cell/bias"},
        {"model_1/gru/gru_cell_2/ReadVariableOp/resource", "gru/gru_cell/bias"},
        {"model_1/gru/gru_cell_2/MatMul_1/ReadVariableOp/resource",
         "gru/gru_cell/recurrent_kernel"},
        {"model_1/gru_before/gru_cell_3/ReadVariableOp/resource",
         "gru_before/gru_cell_1/recurrent_kernel"},
        {"model_1/rnn/simple_rnn_cell_1/MatMul_1/ReadVariableOp/resource",
         "rnn/simple_rnn_cell/recurrent_kernel"},
    };
    pen_arena *arena = check_arena();
    pen_trainer *trainer =
        keras_step(arena, "file: " MODELS "recurrent_loops.pb, unfreeze: .", "recurrent", 6);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_parameter(pen_trainer_tensors(trainer), "recurrent", names[i][0], names[i][1], arena);
    }
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

// Frozen first (written as a GraphDef, of constants), then unfrozen again.
static void a_frozen_graph_is_trained_on_as_many_devices(void **state) {
    (void)state;
    static const char *const outputs[] = {"StatefulPartitionedCall"};
    const char *path = scratch_path("frozen.pb");
    char model_text[512];
    pen_arena *arena = check_arena();
    uint32_t count = 0;
    pen_model *model = NULL;
    CHECK_OK(pen_model_open(MODELS "classifier", NULL, &model));
    CHECK_OK(pen_model_export_file(model, NULL, path, &count));
    assert_int_equal(count, 8);
    pen_model_destroy(model);
    const pen_import_options plain = {.outputs = outputs, .output_count = 1};
    CHECK_OK(pen_model_open(path, &plain, &model));
    for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
        assert_int_not_equal(pen_graph_value(model->graph, (pen_value_id){v})->kind,
                             PEN_VALUE_PARAMETER);
    }
    pen_model_destroy(model);
    snprintf(model_text, sizeof model_text,
             "file: %s, unfreeze: '^(conv|dense|norm)/', outputs: "
             "[StatefulPartitionedCall]",
             path);
    uint64_t hashes[2], counts[2];
    float *parameters[2];
    for (int i = 0; i < 2; i++) {
        pen_trainer *trainer =
            training_start(classifier_job(arena, model_text, i == 0 ? ONE : THREE));
        training_step(trainer);
        hashes[i] = training_hash(trainer);
        parameters[i] = training_read(pen_trainer_tensors(trainer), arena, &counts[i]);
        pen_trainer_destroy(trainer);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(counts[0] == counts[1]);
    assert_memory_equal(parameters[0], parameters[1], counts[0] * sizeof(float));
    pen_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_tensorflows),
        cmocka_unit_test(gradients_stop_where_tensorflow_stops_them),
        cmocka_unit_test(a_step_of_recurrent_nets_is_kerass),
        cmocka_unit_test(batch_normalization_is_trained_as_keras_does),
        cmocka_unit_test(constants_are_statistics_when_asked),
        cmocka_unit_test(an_unrolled_step_is_kerass),
        cmocka_unit_test(a_frozen_graph_is_trained_on_as_many_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
