// Branches, loops and sequences of constant length become plain nodes (make_models.py has them).

#include <math.h>

#include "device/reference/reference_evaluate.h"
#include "graph/import/import.h"
#include "graph/passes/infer_shapes.h"
#include "tests/support/check.h"
#include "tests/support/run_graph.h"

#define MODELS "tests/graph/import/models/"

// Runs the model on x = [1,2]; its outputs are `expected`, one after the other.
static void check_model(const char *path, uint32_t count, const double *expected) {
    const pen_import_options reading = {.evaluate = pen_reference_evaluate};
    const pen_infer_options inferring = {.evaluate = pen_reference_evaluate};
    const float x[] = {1, 2};
    pen_arena *arena = check_arena();
    pen_model *model = NULL;
    run_graph run;
    CHECK_OK(pen_model_open(path, &reading, &model));
    CHECK_OK(pen_infer_shapes(model->graph, &inferring));
    CHECK_OK(run_graph_init(&run, model->graph, arena));
    memcpy(run.tensors[pen_graph_input(model->graph, 0).index].data, x, sizeof x);
    CHECK_OK(run_graph_all(&run));
    uint32_t at = 0;
    for (uint32_t i = 0; i < pen_graph_output_count(model->graph); i++) {
        const pen_tensor *y = &run.tensors[pen_graph_output(model->graph, i).index];
        for (int64_t k = 0; k < pen_tensor_count(y); k++) {
            CHECK(at < count, "%s gives more numbers", path);
            CHECK(fabs(pen_tensor_get(y, k) - expected[at]) < 1e-6, "%s: number %u is %g, not %g",
                  path, at, pen_tensor_get(y, k), expected[at]);
            at++;
        }
    }
    assert_int_equal(at, count);
    pen_model_destroy(model);
    pen_arena_destroy(arena);
}

static void takes_the_branch_of_a_constant_condition(void **state) {
    (void)state;
    check_model(MODELS "branch_then.onnx", 2, (const double[]){3, 8});
    check_model(MODELS "branch_else.onnx", 2, (const double[]){11, 22});
}

static void a_branchs_initializers_are_parameters(void **state) {
    (void)state;
    const pen_import_options reading = {.evaluate = pen_reference_evaluate};
    pen_model *model = NULL;
    pen_value_id factor, y;
    CHECK_OK(pen_model_open(MODELS "branch_then.onnx", &reading, &model));
    CHECK_OK(pen_graph_find_value(model->graph, "choice/factor", &factor));
    CHECK(pen_graph_value(model->graph, factor)->kind == PEN_VALUE_PARAMETER, "no parameter");
    CHECK_OK(pen_graph_find_value(model->graph, "y", &y)); // the branch's result has its name
    assert_int_equal(pen_graph_output(model->graph, 0).index, y.index);
    pen_model_destroy(model);
}

static void unrolls_loops(void **state) {
    (void)state;
    // rounds 0, 1, 2; the condition ends it after the third: y = 2 y + i
    check_model(MODELS "loop.onnx", 8, (const double[]){12, 20, 2, 4, 5, 9, 12, 20});
    check_model(MODELS "scan.onnx", 3, (const double[]){3, 2, 3});
}

static void folds_sequences_away(void **state) {
    (void)state;
    check_model(MODELS "sequence.onnx", 2, (const double[]){1, 2});
    check_model(MODELS "gradient_inside.onnx", 2, (const double[]){2, 4});
}

static void refuses_what_depends_on_data(void **state) {
    (void)state;
    const pen_import_options reading = {.evaluate = pen_reference_evaluate};
    pen_model *model = NULL;
    CHECK_ERROR(pen_model_open(MODELS "branch_on_data.onnx", &reading, &model), PEN_UNSUPPORTED,
                "'x' depends on data");
    CHECK_ERROR(pen_model_open(MODELS "branch_on_data.onnx", &reading, &model), PEN_UNSUPPORTED,
                "the condition must be known when the model is read");
    CHECK_ERROR(pen_model_open(MODELS "branch_then.onnx", NULL, &model), PEN_UNSUPPORTED,
                "depends on data, or on sizes that are not known");
    CHECK_ERROR(pen_model_open(MODELS "loop_endless.onnx", &reading, &model), PEN_UNSUPPORTED,
                "it has more than 4096 rounds");
}

PEN_TEST_MAIN(cmocka_unit_test(takes_the_branch_of_a_constant_condition),
              cmocka_unit_test(a_branchs_initializers_are_parameters),
              cmocka_unit_test(unrolls_loops), cmocka_unit_test(folds_sequences_away),
              cmocka_unit_test(refuses_what_depends_on_data))
