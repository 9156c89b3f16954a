// What names match stays as it is: parameters, and batch normalizations by their statistics.
#include <string.h>

#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/op.h"
#include "graph/passes/gradient/freeze_matching.h"
#include "tests/support/check.h"

static pen_model *open_training(void) {
    pen_model *model;
    CHECK_OK(pen_model_open("tests/graph/import/models/training.onnx", NULL, &model));
    return model;
}

static void check_frozen(const char *pattern, uint32_t trainable, bool trains) {
    pen_model *model = open_training();
    uint32_t count = 0;
    CHECK_OK(pen_freeze_matching(model->graph, pattern));
    for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
        const pen_value *value = pen_graph_value(model->graph, (pen_value_id){v});
        count += value->kind == PEN_VALUE_PARAMETER && value->trainable;
    }
    CHECK(count == trainable, "%s: %u parameters train", pattern, count);
    const pen_node *node = pen_graph_node(model->graph, (pen_node_id){0});
    CHECK((pen_node_int(node, "training_mode") != 0) == trains, "%s", pattern);
    assert_int_equal(node->output_count, trains ? 5 : 1);
    pen_model_destroy(model);
}

static void statistics_freeze_when_both_match(void **state) {
    (void)state;
    check_frozen(NULL, 2, true);
    check_frozen("^scale$", 1, true);
    check_frozen("^(scale|mean)$", 1, true);
    check_frozen("^(scale|bias|mean|variance)$", 0, false);
    check_frozen(".", 0, false);
}

static void patterns_are_checked(void **state) {
    (void)state;
    pen_model *model = open_training();
    CHECK_ERROR(pen_freeze_matching(model->graph, "("), PEN_INVALID_INPUT,
                "freeze: '(' is not a regular expression");
    CHECK_ERROR(pen_freeze_matching(model->graph, "^conv"), PEN_NOT_FOUND,
                "freeze: no parameter matches '^conv'");
    pen_model_destroy(model);
}

PEN_TEST_MAIN(cmocka_unit_test(statistics_freeze_when_both_match),
              cmocka_unit_test(patterns_are_checked))
