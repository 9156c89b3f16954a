// What names match stays as it is: parameters, and batch normalizations by their statistics.
#include <string.h>

#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/op.h"
#include "graph/passes/gradient/freeze_matching.h"
#include "graph/passes/gradient/match_groups.h"
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

// The first group that matches counts; the whole list is checked.
static void check_groups(uint32_t count, const pen_optimizer_group *groups, uint32_t trainable,
                         bool trains) {
    const pen_optimizer optimizer = {.groups = groups, .group_count = count};
    pen_model *model = open_training();
    pen_arena *arena = check_arena();
    uint32_t group, found = 0;
    CHECK_OK(pen_freeze_groups(model->graph, &optimizer, arena, &group));
    for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
        const pen_value *value = pen_graph_value(model->graph, (pen_value_id){v});
        found += value->kind == PEN_VALUE_PARAMETER && value->trainable;
    }
    assert_int_equal(found, trainable);
    const pen_node *node = pen_graph_node(model->graph, (pen_node_id){0});
    CHECK((pen_node_int(node, "training_mode") != 0) == trains, "%s", groups[0].match);
    pen_arena_destroy(arena);
    pen_model_destroy(model);
}

static void groups_freeze(void **state) {
    (void)state;
    const pen_optimizer_group rate = {.match = "^scale$", .lr_scale = 0.1};
    const pen_optimizer_group rest = {.match = ".", .freeze = true, .lr_scale = 1};
    check_groups(1, &rate, 2, true);
    check_groups(2, (pen_optimizer_group[]){rate, rest}, 1, false);
    check_groups(1, &rest, 0, false);
}

static void groups_are_checked(void **state) {
    (void)state;
    const struct {
        const char *match;
        pen_status_code code;
        const char *message;
    } cases[] = {
        {"(", PEN_INVALID_INPUT, "("},
        {"^conv", PEN_NOT_FOUND, "groups: no parameter matches '^conv'; one is called"},
        {"scale", PEN_INVALID_INPUT,
         "groups: all parameters that match 'scale' belong to groups before it, 'scale' to that "
         "of '^sc'"},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pen_optimizer_group groups[] = {{.match = "^sc", .lr_scale = 1},
                                              {.match = cases[i].match, .lr_scale = 1}};
        const pen_optimizer optimizer = {.groups = groups, .group_count = 2};
        pen_model *model = open_training();
        pen_arena *arena = check_arena();
        uint32_t group = 0;
        CHECK_ERROR(pen_check_groups(model->graph, &optimizer, arena, &group), cases[i].code,
                    cases[i].message);
        assert_int_equal(group, 1);
        pen_arena_destroy(arena);
        pen_model_destroy(model);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(statistics_freeze_when_both_match),
              cmocka_unit_test(patterns_are_checked), cmocka_unit_test(groups_freeze),
              cmocka_unit_test(groups_are_checked))
