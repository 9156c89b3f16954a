// One function in the forms of operator sets 7 to 17 (make_models.py): after import all are the
// same graph in meaning, and their numbers are PyTorch's.

#include <math.h>

#include "base/system/file.h"
#include "device/reference/reference_evaluate.h"
#include "graph/import/import.h"
#include "graph/import/onnx/onnx_tensor.h"
#include "graph/op.h"
#include "graph/passes/infer_shapes.h"
#include "tests/support/check.h"
#include "tests/support/run_graph.h"

#define MODELS "tests/graph/import/models/"

static pen_tensor read_tensor(const char *path, pen_arena *arena) {
    const char *bytes;
    size_t length;
    const void *data;
    pen_protobuf_reader message;
    pen_onnx_tensor tensor;
    pen_external_files files;
    CHECK_OK(pen_file_read(path, 1 << 20, arena, &bytes, &length));
    pen_protobuf_init(&message, bytes, length);
    pen_external_files_init(&files, NULL, arena);
    CHECK_OK(pen_onnx_tensor_open(&message, arena, &tensor));
    CHECK_OK(pen_onnx_tensor_data(&tensor, &files, arena, &data));
    pen_tensor result = {.type = tensor.type};
    memcpy(&result.data, &data, sizeof result.data); // only read
    return result;
}

static void check_numbers(pen_model *model, const pen_tensor *x, const pen_tensor *y,
                          pen_arena *arena) {
    const pen_symbol_binding batch = {"n", x->type.shape.dims[0]};
    const pen_infer_options options = {
        .bindings = &batch, .binding_count = 1, .evaluate = pen_reference_evaluate};
    run_graph run;
    CHECK_OK(pen_infer_shapes(model->graph, &options));
    CHECK_OK(run_graph_init(&run, model->graph, arena));
    const pen_value_id input = pen_graph_input(model->graph, 0);
    const pen_value_id output = pen_graph_output(model->graph, 0);
    memcpy(run.tensors[input.index].data, x->data, pen_tensor_type_bytes(&x->type));
    CHECK_OK(run_graph_all(&run));
    const pen_tensor *found = &run.tensors[output.index];
    CHECK(pen_tensor_type_equal(&found->type, &y->type), "the output's type differs");
    for (int64_t i = 0; i < pen_tensor_count(y); i++) {
        const double expected = pen_tensor_get(y, i), is = pen_tensor_get(found, i);
        CHECK(fabs(is - expected) <= 1e-5 * (1 + fabs(expected)),
              "element %d is %.9g, expected %.9g", (int)i, is, expected);
    }
}

static void every_operator_set_means_the_same(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_tensor x = read_tensor(MODELS "opset_x.pb", arena);
    const pen_tensor y = read_tensor(MODELS "opset_y.pb", arena);
    for (int opset = 7; opset <= 17; opset++) {
        char path[256];
        pen_model *model = NULL;
        snprintf(path, sizeof path, MODELS "opset_%d.onnx", opset);
        CHECK_OK(pen_model_open(path, NULL, &model));
        assert_int_equal(model->opset, opset);
        check_numbers(model, &x, &y, arena);
        pen_model_destroy(model);
    }
    pen_arena_destroy(arena);
}

static void an_old_operand_is_matched_from_its_axis(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_model *model = NULL;
    const pen_tensor x = read_tensor(MODELS "broadcast_6_x.pb", arena);
    const pen_tensor y = read_tensor(MODELS "broadcast_6_y.pb", arena);
    CHECK_OK(pen_model_open(MODELS "broadcast_6.onnx", NULL, &model));
    check_numbers(model, &x, &y, arena);
    pen_model_destroy(model);
    pen_arena_destroy(arena);
}

static void shape_arithmetic_is_folded(void **state) {
    (void)state;
    pen_model *model = NULL;
    pen_value_id floats, y;
    const pen_symbol_binding batch = {"n", 5};
    const pen_infer_options options = {
        .bindings = &batch, .binding_count = 1, .evaluate = pen_reference_evaluate};
    CHECK_OK(pen_model_open(MODELS "shape_arithmetic.onnx", NULL, &model));
    CHECK_OK(pen_infer_shapes(model->graph, &options));
    CHECK_OK(pen_graph_find_value(model->graph, "floats", &floats));
    CHECK_OK(pen_graph_find_value(model->graph, "y", &y));
    const pen_value *folded = pen_graph_value(model->graph, floats);
    assert_int_equal(folded->kind, PEN_VALUE_CONSTANT);
    assert_int_equal(folded->type.shape.dims[0], 10);
    assert_true(((const float *)folded->data)[9] == 9);
    assert_int_equal(pen_value_type(model->graph, y)->shape.dims[0], 5);
    assert_int_equal(pen_value_type(model->graph, y)->shape.dims[1], 6);
    pen_model_destroy(model);
}

static void a_cast_takes_the_type_of_its_like(void **state) {
    (void)state;
    pen_model *model = NULL;
    CHECK_OK(pen_model_open(MODELS "cast_like.onnx", NULL, &model));
    const pen_node *node = pen_graph_node(model->graph, (pen_node_id){0});
    assert_string_equal(pen_node_text(node, "to"), "int32");
    assert_int_equal(node->input_count, 1);
    pen_model_destroy(model);
}

static const pen_node *find_node(const pen_model *model, const char *name) {
    pen_node_id id;
    CHECK_OK(pen_graph_find_node(model->graph, name, &id));
    return pen_graph_node(model->graph, id);
}

// What dropouts of old operator sets do is the reader's choice; newer ones say it themselves.
static void old_dropouts_train_when_asked(void **state) {
    (void)state;
    for (int trains = 0; trains <= 1; trains++) {
        const pen_import_options options = {.dropout_trains = trains != 0};
        pen_model *model = NULL;
        double ratio, mode;
        CHECK_OK(pen_model_open(MODELS "opset_11.onnx", &options, &model));
        const pen_node *node = find_node(model, "Dropout_dropped");
        assert_int_equal(node->input_count, 3);
        assert_int_equal(node->output_count, trains != 0 ? 2 : 1); // the mask is for the gradient
        CHECK_OK(pen_value_read_number(model->graph, node->inputs[1], &ratio));
        CHECK_OK(pen_value_read_number(model->graph, node->inputs[2], &mode));
        assert_true(ratio == 0.25 && mode == trains);
        pen_model_destroy(model);
        CHECK_OK(pen_model_open(MODELS "opset_12.onnx", &options, &model));
        assert_int_equal(find_node(model, "Dropout_dropped")->input_count, 2);
        pen_model_destroy(model);
    }
}

// A softmax over all but the first dimension, where the last alone would be another function.
static void an_old_softmax_is_taken_over_a_matrix(void **state) {
    (void)state;
    pen_model *model = NULL;
    CHECK_OK(pen_model_open(MODELS "opset_7.onnx", NULL, &model));
    assert_string_equal(find_node(model, "Softmax_soft4")->op->name, "reshape");
    assert_string_equal(find_node(model, "Softmax_soft4/matrix")->op->name, "flatten");
    assert_int_equal(pen_node_int(find_node(model, "Softmax_soft4/rows"), "axis"), -1);
    pen_model_destroy(model);
}

PEN_TEST_MAIN(cmocka_unit_test(every_operator_set_means_the_same),
              cmocka_unit_test(an_old_operand_is_matched_from_its_axis),
              cmocka_unit_test(shape_arithmetic_is_folded),
              cmocka_unit_test(a_cast_takes_the_type_of_its_like),
              cmocka_unit_test(old_dropouts_train_when_asked),
              cmocka_unit_test(an_old_softmax_is_taken_over_a_matrix))
