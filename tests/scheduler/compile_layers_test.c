// What PyTorch exports in several nodes arrives in a program as one.
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "scheduler/compile/compile.h"
#include "tests/support/check.h"
#include "tests/support/loss_request.h"

static uint32_t count_ops(const pen_program *program, const char *op) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < program->order_count; p++) {
        const pen_node *node = pen_graph_node(program->graph, program->order[p]);
        count += strcmp(node->op->name, op) == 0;
    }
    return count;
}

typedef struct expected_ops {
    const char *op;
    uint32_t count;
} expected_ops;

static void check_model(const char *path, pen_compile_mode mode, const pen_compile_input *input,
                        const expected_ops *expected) {
    const pen_compile_request request = {.model_path = path,
                                         .mode = mode,
                                         .microbatch_size = 8,
                                         .inputs = input,
                                         .input_count = 1,
                                         .losses = LOSS_REQUEST(PEN_LOSS_SOFTMAX_CROSS_ENTROPY),
                                         .loss_count = 1,
                                         .optimizer = {.kind = PEN_OPTIMIZER_SGD}};
    const pen_program *program;
    CHECK_OK(pen_compile(&request, &program));
    for (; expected->op != NULL; expected++) {
        const uint32_t found = count_ops(program, expected->op);
        CHECK(found == expected->count, "%u nodes are %s, expected %u", found, expected->op,
              expected->count);
    }
    pen_program_destroy(program);
}

static void transformers(void **state) {
    (void)state;
    static const int64_t dims[] = {6, 16};
    static const expected_ops expected[] = {{"layer_normalization", 6},
                                            {"layer_normalization_backward", 6},
                                            {"rms_normalization", 2},
                                            {"rms_normalization_backward", 2},
                                            {"gelu", 5},
                                            {"gelu_backward", 5},
                                            {"swish", 2},
                                            {"swish_backward", 2},
                                            {"erf", 0},
                                            {"tanh", 0},
                                            {"sigmoid", 0},
                                            {"pow", 0},
                                            {"sqrt", 0},
                                            {"div", 0},
                                            {"sub", 0},
                                            {NULL, 0}};
    const pen_compile_input input = {"input", 2, dims};
    check_model("tests/reference/normed_mlp/model.onnx", PEN_COMPILE_TRAIN, &input, expected);
}

static void images(void **state) {
    (void)state;
    static const int64_t dims[] = {3, 8, 8};
    static const expected_ops expected[] = {{"group_normalization", 2},
                                            {"group_normalization_backward", 2},
                                            {"instance_normalization", 2},
                                            {"layer_normalization", 1},
                                            {"gelu", 1},
                                            {"swish", 2},
                                            {"sigmoid", 0},
                                            {"erf", 0},
                                            {NULL, 0}};
    const pen_compile_input input = {"input", 3, dims};
    check_model("tests/reference/normed_cnn/model.onnx", PEN_COMPILE_TRAIN, &input, expected);
}

static void keras(void **state) {
    (void)state;
    static const int64_t dims[] = {6, 8};
    static const expected_ops expected[] = {
        {"layer_normalization", 2},    {"gelu", 2}, {"swish", 1}, {"reduce_mean", 0}, {"sub", 0},
        {"instance_normalization", 0}, {NULL, 0}};
    const pen_compile_input input = {"x", 2, dims};
    check_model("tests/reference/tensorflow/normed.pb", PEN_COMPILE_PREDICT, &input, expected);
}

// The output that a loss is of stays, whether anything is made one operator or not.
static void outputs_of_losses_stay(void **state) {
    (void)state;
    static const int64_t flat[] = {1, 28, 28}, states[] = {6, 16};
    const pen_compile_input inputs[] = {{"input", 3, flat}, {"input", 2, states}};
    static const char *const paths[] = {"tests/reference/mlp/model.onnx",
                                        "tests/reference/normed_mlp/model.onnx"};
    for (int i = 0; i < 2; i++) {
        const pen_compile_request request = {
            .model_path = paths[i],
            .mode = PEN_COMPILE_EVALUATE,
            .microbatch_size = 8,
            .inputs = &inputs[i],
            .input_count = 1,
            .losses = &(const pen_compile_loss){.spec = PLAIN_LOSS(PEN_LOSS_SOFTMAX_CROSS_ENTROPY),
                                                .output = "logits",
                                                .weight = 1},
            .loss_count = 1};
        const pen_program *program;
        CHECK_OK(pen_compile(&request, &program));
        assert_true(pen_value_is(program->loss));
        pen_program_destroy(program);
    }
}

// The mean in a variance is found though its gradient is stopped, and no stop is left.
static void stopped_gradients(void **state) {
    (void)state;
    static const int64_t dims[] = {8};
    static const expected_ops expected[] = {{"layer_normalization", 1},
                                            {"layer_normalization_backward", 1},
                                            {"round", 1},
                                            {"reduce_max_backward", 0},
                                            {"stop_gradient", 0},
                                            {NULL, 0}};
    const pen_compile_input input = {"x", 1, dims};
    check_model("tests/reference/tensorflow/stopped", PEN_COMPILE_TRAIN, &input, expected);
}

PEN_TEST_MAIN(cmocka_unit_test(transformers), cmocka_unit_test(images), cmocka_unit_test(keras),
              cmocka_unit_test(stopped_gradients), cmocka_unit_test(outputs_of_losses_stay))
