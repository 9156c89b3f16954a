#include "graph/passes/set_inference.h"

#include "tests/support/random_graph.h"
#include "tests/support/run_graph.h"

typedef struct trained_graph {
    pen_arena *arena;
    pen_graph *graph;
    pen_value_id x, y, mean, variance;
    pen_node_id normalization, dropout;
} trained_graph;

static trained_graph trained_graph_make(void) {
    trained_graph t = {.arena = check_arena()};
    CHECK_OK(pen_graph_create(t.arena, "trained", &t.graph));
    static const float ones[3] = {1, 1, 1}, means[3] = {1, 2, 3}, variances[3] = {4, 4, 4};
    const pen_tensor_type vector = {PEN_FLOAT32, {1, {3}}};
    const pen_tensor_type images = {PEN_FLOAT32, {4, {2, 3, 2, 2}}};
    t.x = graph_value_of(t.graph, "x", PEN_VALUE_INPUT, &images);
    pen_value parameter = {.name = "scale",
                           .kind = PEN_VALUE_PARAMETER,
                           .type = vector,
                           .data = ones,
                           .data_bytes = sizeof ones};
    pen_value_id scale, bias, on, ratio;
    CHECK_OK(pen_graph_add_value(t.graph, &parameter, &scale));
    parameter.name = "bias";
    parameter.data = NULL;
    CHECK_OK(pen_graph_add_value(t.graph, &parameter, &bias));
    pen_value statistic = {.name = "mean",
                           .kind = PEN_VALUE_STATE,
                           .type = vector,
                           .data = means,
                           .data_bytes = sizeof means};
    CHECK_OK(pen_graph_add_value(t.graph, &statistic, &t.mean));
    statistic.name = "variance";
    statistic.data = variances;
    CHECK_OK(pen_graph_add_value(t.graph, &statistic, &t.variance));
    const pen_value_id operands[5] = {t.x, scale, bias, t.mean, t.variance};
    const pen_attribute_given given[2] = {pen_attribute_int("training_mode", 1),
                                          pen_attribute_float("epsilon", 0)};
    pen_node_spec spec = pen_node_spec_make("batch_normalization", "bn");
    spec.inputs = operands;
    spec.input_count = 5;
    spec.output_count = 5;
    spec.attributes = given;
    spec.attribute_count = 2;
    CHECK_OK(pen_graph_add_node(t.graph, &spec, &t.normalization));
    const pen_value_id *outputs = pen_graph_node(t.graph, t.normalization)->outputs;
    pen_graph_set_replaces(t.graph, outputs[1], t.mean);
    pen_graph_set_replaces(t.graph, outputs[2], t.variance);
    CHECK_OK(pen_graph_constant_number(t.graph, "ratio", PEN_FLOAT32, 0.5, &ratio));
    CHECK_OK(pen_graph_constant_number(t.graph, "on", PEN_BOOL, 1, &on));
    const pen_value_id dropped[3] = {outputs[0], ratio, on};
    spec = pen_node_spec_make("dropout", "drop");
    spec.inputs = dropped;
    spec.input_count = 3;
    CHECK_OK(pen_graph_add_node(t.graph, &spec, &t.dropout));
    t.y = pen_graph_node(t.graph, t.dropout)->outputs[0];
    CHECK_OK(pen_graph_add_output(t.graph, t.y));
    return t;
}

static void running_statistics_are_used_and_kept(void **state) {
    (void)state;
    trained_graph t = trained_graph_make();
    CHECK_OK(pen_set_inference(t.graph));
    assert_int_equal(pen_graph_node(t.graph, t.normalization)->output_count, 1);
    for (uint32_t n = 0; n < pen_graph_node_count(t.graph); n++) {
        CHECK_OK(pen_graph_infer_node(t.graph, (pen_node_id){n}));
    }
    run_graph run;
    CHECK_OK(run_graph_init(&run, t.graph, t.arena));
    for (int64_t k = 0; k < 24; k++) {
        pen_tensor_set(&run.tensors[t.x.index], k, (double)k);
    }
    CHECK_OK(run_graph_all(&run));
    for (int64_t k = 0; k < 24; k++) { // (x − mean) / 2, nothing dropped
        const double expected = ((double)k - (double)(k / 4 % 3 + 1)) / 2;
        assert_true(pen_tensor_get(&run.tensors[t.y.index], k) == expected);
    }
    pen_arena_destroy(t.arena);
}

static void statistics_that_are_used_cannot_go(void **state) {
    (void)state;
    trained_graph t = trained_graph_make();
    const pen_value_id running = pen_graph_node(t.graph, t.normalization)->outputs[1];
    CHECK_OK(pen_graph_add_output(t.graph, running));
    CHECK_ERROR(pen_set_inference(t.graph), PEN_UNSUPPORTED, "batch_normalization 'bn'");
    pen_arena_destroy(t.arena);
    t = trained_graph_make();
    const pen_value_id saved = pen_graph_node(t.graph, t.normalization)->outputs[3];
    graph_apply(t.graph, "tanh", "reader", saved, PEN_VALUE_NONE, PEN_VALUE_NONE);
    CHECK_ERROR(pen_set_inference(t.graph), PEN_UNSUPPORTED, "'bn:3'");
    pen_arena_destroy(t.arena);
}

// What is saved for a gradient, and states that nothing reads, are left out.
static void recurrent_nodes_save_nothing(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "recurrent", &graph));
    const pen_tensor_type x = {PEN_FLOAT32, {3, {4, 2, 3}}}, w = {PEN_FLOAT32, {3, {1, 20, 3}}},
                          r = {PEN_FLOAT32, {3, {1, 20, 5}}};
    const pen_value_id operands[3] = {graph_value_of(graph, "x", PEN_VALUE_INPUT, &x),
                                      graph_value_of(graph, "w", PEN_VALUE_PARAMETER, &w),
                                      graph_value_of(graph, "r", PEN_VALUE_PARAMETER, &r)};
    pen_node_spec spec = pen_node_spec_make("lstm", "net");
    spec.inputs = operands;
    spec.input_count = 3;
    spec.output_count = 5;
    pen_node_id id;
    CHECK_OK(pen_graph_add_node(graph, &spec, &id));
    CHECK_OK(pen_graph_add_output(graph, pen_graph_node(graph, id)->outputs[1]));
    CHECK_OK(pen_set_inference(graph));
    const pen_node *node = pen_graph_node(graph, id);
    assert_int_equal(node->output_count, 2);
    assert_true(pen_value_is(node->outputs[0]) && pen_value_is(node->outputs[1]));
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(recurrent_nodes_save_nothing),
              cmocka_unit_test(running_statistics_are_used_and_kept),
              cmocka_unit_test(statistics_that_are_used_cannot_go))
