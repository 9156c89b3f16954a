// Files of PyTorch's exporter of today train as the model does in PyTorch, or are refused with what
// they have lost. tests/reference/make_onnx_exports.py made them, and the losses.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/training.h"

#define EXPORTS "tests/reference/exports/"
#define ONE "{name: a, threads: 1}"
#define GPU "{name: g, kind: cuda, memory: 1GiB}"
#define THREE "{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}"

static const pen_job *exports_job(pen_arena *arena, const char *model, const char *more,
                                  const char *devices) {
    return training_job(arena,
                        "version: 1\n"
                        "model: {file: " EXPORTS "%s.onnx%s}\n"
                        "data: {train: {format: npy, inputs: {x: " EXPORTS
                        "%s.x.npy}, labels: " EXPORTS "%s.t.npy}}\n"
                        "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, "
                        "batch: 4, epochs: 3, shuffle: false}\n"
                        "devices: [%s]\n",
                        model, more, model, model, devices);
}

static void check_losses(const char *model, const char *more, const char *devices) {
    char path[128];
    const char *text;
    size_t length;
    pen_arena *arena = check_arena();
    snprintf(path, sizeof path, EXPORTS "%s.losses", model);
    CHECK_OK(pen_file_read(path, 4096, arena, &text, &length));
    pen_trainer *trainer = training_start(exports_job(arena, model, more, devices));
    const char *note = pen_trainer_program(trainer)->note;
    CHECK(note != NULL && strstr(note, "`freeze` names them") != NULL,
          "%s: nothing is said of what may have been frozen", model);
    char *rest;
    for (int step = 0; step < 3; step++) {
        const double expected = strtod(text, &rest), found = training_step(trainer).loss;
        CHECK(rest != text, "%s has no loss %d", path, step);
        CHECK(fabs(found - expected) <= 1e-5 * expected, "%s: loss %d is %.9g, expected %.9g",
              model, step, found, expected);
        text = rest;
    }
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

static void files_train_as_pytorch_does(void **state) {
    static const char *const models[] = {"normed",    "scaled", "tokens",
                                         "tokens_23", "cloned", "recurrent_optimized"};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        check_losses(models[i], "", ONE);
        check_losses(models[i], "", GPU);
    }
    check_losses("tokens", "", THREE);
}

static void check_lost(const char *model, const char *lost) {
    pen_arena *arena = check_arena();
    pen_trainer *trainer = NULL;
    CHECK_ERROR(
        pen_trainer_create(exports_job(arena, model, "", ONE), &(pen_trainer_options){0}, &trainer),
        PEN_INVALID_INPUT, lost);
    trainer = training_start(exports_job(arena, model, ", train_what_is_left: true", ONE));
    training_step(trainer);
    pen_trainer_destroy(trainer);
    pen_arena_destroy(arena);
}

static void files_that_lost_parameters_are_refused(void **state) {
    (void)state;
    check_lost("normed_lossy", "'norm.weight': left out, or merged with others like it");
    check_lost("scaled_lossy", "'temperature': folded into 'exp'");
    check_lost("tokens_lossy", "'head.weight': no longer tied to 'val_80'");
    check_lost("tokens_lossy", "optimize=False");
}

static const pen_model_weight *find_weight(const pen_model *model, const char *name) {
    for (uint32_t i = 0; i < model->weight_count; i++) {
        if (strcmp(model->weights[i].name, name) == 0) return &model->weights[i];
    }
    CHECK(false, "no weight '%s'", name);
    return NULL;
}

static void weights_say_why_they_are_trained(void **state) {
    (void)state;
    pen_model *model;
    CHECK_OK(pen_model_open(EXPORTS "scaled_lossy.onnx", NULL, &model));
    assert_true(find_weight(model, "gain")->is_trained);
    assert_string_equal(find_weight(model, "gain")->reason, "the file marks it as a parameter");
    assert_true(find_weight(model, "val_1")->is_trained);
    assert_string_equal(find_weight(model, "val_1")->of, "slope.weight");
    assert_false(find_weight(model, "exp")->is_trained);
    assert_string_equal(find_weight(model, "exp")->of, "temperature");
    assert_false(find_weight(model, "val_2")->is_trained);
    pen_model_destroy(model);
    const pen_import_options options = {.unfreeze = "^exp$"};
    CHECK_OK(pen_model_open(EXPORTS "scaled_lossy.onnx", &options, &model));
    assert_true(find_weight(model, "exp")->is_trained);
    assert_string_equal(find_weight(model, "exp")->reason, "unfreeze names it");
    pen_model_destroy(model);
}

// The signature says that a run of the model changes the statistics.
static void statistics_learn_as_the_file_says(void **state) {
    (void)state;
    pen_model *model;
    CHECK_OK(pen_model_open(EXPORTS "normed.onnx", NULL, &model));
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(model->graph); n++) {
        const pen_node *node = pen_graph_node(model->graph, (pen_node_id){n});
        if (strcmp(node->op->name, "batch_normalization") != 0) continue;
        count += pen_node_int(node, "training_mode") == 1;
    }
    assert_int_equal(count, 1);
    pen_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_train_as_pytorch_does),
        cmocka_unit_test(files_that_lost_parameters_are_refused),
        cmocka_unit_test(weights_say_why_they_are_trained),
        cmocka_unit_test(statistics_learn_as_the_file_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
