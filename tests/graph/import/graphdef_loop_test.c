// Loops and recurrent nets of TensorFlow and Keras, against what Keras computed of them:
// tests/reference/tensorflow.

#include <string.h>

#include "base/system/file.h"
#include "device/reference/reference_evaluate.h"
#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_export.h"
#include "graph/op.h"
#include "graph/passes/infer_shapes.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/tensorflow_model.h"

static uint32_t count_op(const pen_model *model, const char *op) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(model->graph); n++) {
        count += strcmp(pen_graph_node(model->graph, (pen_node_id){n})->op->name, op) == 0 ? 1 : 0;
    }
    return count;
}

static void nets_of_keras_become_recurrent_operators(void **state) {
    (void)state;
    pen_model *model = tensorflow_open(TENSORFLOW_MODELS "recurrent", NULL);
    assert_int_equal(count_op(model, "lstm"), 1);
    assert_int_equal(count_op(model, "gru"), 2); // that reset after, and before
    assert_int_equal(count_op(model, "rnn"), 1);
    assert_int_equal(count_op(model, "tanh"), 0);
    tensorflow_check(model, "recurrent", 6);
}

static void other_loops_are_unrolled(void **state) {
    (void)state;
    pen_model *model = tensorflow_open(TENSORFLOW_MODELS "recurrent_loops.pb", NULL);
    assert_int_equal(count_op(model, "lstm") + count_op(model, "gru") + count_op(model, "rnn"), 0);
    // of five steps: two of the lstm, one of each gru, one of the plain net
    assert_int_equal(count_op(model, "tanh"), 25);
    tensorflow_check(model, "recurrent_loops", 6);
}

static void masks_and_directions_are_followed(void **state) {
    (void)state;
    tensorflow_check(tensorflow_open(TENSORFLOW_MODELS "masked", NULL), "masked", 4);
    pen_model *model = tensorflow_open(TENSORFLOW_MODELS "directions.pb", NULL);
    assert_int_equal(count_op(model, "gru"), 2);
    assert_int_equal(count_op(model, "lstm"),
                     1); // with relu; hard_sigmoid has no name in TensorFlow
    tensorflow_check(model, "directions", 2);
}

static void a_length_may_be_left_open(void **state) {
    (void)state;
    const pen_symbol_binding bindings[] = {{"batch", 2}, {"x_1", 3}};
    pen_model *model = tensorflow_open(TENSORFLOW_MODELS "open_length.pb", NULL);
    assert_int_equal(count_op(model, "lstm") + count_op(model, "gru"), 2);
    CHECK_OK(
        pen_infer_shapes(model->graph, &(pen_infer_options){.bindings = bindings,
                                                            .binding_count = 2,
                                                            .evaluate = pen_reference_evaluate}));
    tensorflow_check(model, "open_length", 0);
}

static void loops_of_the_older_kind_are_the_same(void **state) {
    (void)state;
    pen_model *model = tensorflow_open(TENSORFLOW_MODELS "convolved.pb", NULL);
    assert_int_equal(count_op(model, "conv") % 8, 1); // one before the loop, eight a round
    tensorflow_check(model, "convolved", 2);
}

static void a_loop_is_not_written_as_a_tensorflow_graph(void **state) {
    (void)state;
    pen_model *model = tensorflow_open(TENSORFLOW_MODELS "recurrent_loops.pb", NULL);
    const pen_status status = pen_graphdef_export(model, NULL, scratch_path("loops.pb"));
    CHECK_ERROR(status, PEN_UNSUPPORTED, "write the model as ONNX");
    pen_model_destroy(model);
}

// The file, with `from` overwritten by `to`, of the same length, wherever it is.
static pen_status open_changed(const char *path, const char *from, const char *to) {
    pen_mapping mapping;
    pen_model *model = NULL;
    pen_arena *arena = check_arena();
    uint8_t *bytes;
    const size_t length = strlen(from);
    assert_int_equal(strlen(to), length);
    CHECK_OK(pen_mapping_open(path, &mapping));
    CHECK_OK(PEN_NEW(arena, mapping.length, &bytes));
    memcpy(bytes, mapping.bytes, mapping.length);
    for (size_t i = 0; i + length <= mapping.length; i++) {
        if (memcmp(bytes + i, from, length) == 0) memcpy(bytes + i, to, length);
    }
    const pen_status status = pen_model_open_bytes(bytes, mapping.length, path, NULL, &model);
    pen_model_destroy(model);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
    return status;
}

static void what_is_wrong_with_a_loop_is_said(void **state) {
    (void)state;
    const char *loops = TENSORFLOW_MODELS "recurrent_loops.pb";
    const char *older = TENSORFLOW_MODELS "convolved.pb";
    // an operator within a loop, of those that Penstock has not
    CHECK_ERROR(open_changed(loops, "Sigmoid", "Sigmund"), PEN_UNSUPPORTED, "Sigmund (");
    CHECK_ERROR(open_changed(loops, "TensorListStack", "TensorListStick"), PEN_UNSUPPORTED,
                "TensorListStick (");
    CHECK_ERROR(open_changed(older, "NextIteration", "LastIteration"), PEN_INVALID_INPUT,
                "is not whole");
    CHECK_ERROR(open_changed(older, "LoopCond", "PoolCond"), PEN_UNSUPPORTED, "depends on itself");
    pen_model *model = NULL;
    CHECK_ERROR(pen_model_open(TENSORFLOW_MODELS "loop_long.pb", NULL, &model), PEN_UNSUPPORTED,
                "it has more than 4096 rounds");
    const pen_import_options few = {.round_nodes_limit = 1000};
    CHECK_ERROR(pen_model_open(TENSORFLOW_MODELS "loop_long.pb", &few, &model), PEN_UNSUPPORTED,
                "lead to more than 1000 nodes");
    CHECK_ERROR(pen_model_open(TENSORFLOW_MODELS "loop_data.pb", NULL, &model), PEN_UNSUPPORTED,
                "whether it goes on depends on data");
    CHECK_ERROR(pen_model_open(TENSORFLOW_MODELS "loop_open.pb", NULL, &model), PEN_UNSUPPORTED,
                "a size that the model leaves open");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nets_of_keras_become_recurrent_operators),
        cmocka_unit_test(other_loops_are_unrolled),
        cmocka_unit_test(masks_and_directions_are_followed),
        cmocka_unit_test(a_length_may_be_left_open),
        cmocka_unit_test(loops_of_the_older_kind_are_the_same),
        cmocka_unit_test(a_loop_is_not_written_as_a_tensorflow_graph),
        cmocka_unit_test(what_is_wrong_with_a_loop_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
