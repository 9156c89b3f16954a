#include "graph/passes/gradient/skip_stops.h"

#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/random_graph.h"

static const pen_tensor_type matrix = {PEN_FLOAT32, {2, {4, 6}}};
static const pen_tensor_type column = {PEN_FLOAT32, {2, {4, 1}}};

typedef struct variance { // mean((x - stop(mean(x, 1)))^2, axis), read by a tanh
    pen_arena *arena;
    pen_graph *graph;
    pen_value_id x, mean, stop, difference;
} variance;

static pen_value_id reduced(variance *v, const char *name, pen_value_id value, int64_t axis) {
    const pen_attribute_given keeps = pen_attribute_int("keepdims", 1);
    char axes_name[32];
    snprintf(axes_name, sizeof axes_name, "%s_axes", name);
    pen_value_id inputs[2] = {value}, made;
    CHECK_OK(pen_graph_constant_ints(v->graph, axes_name, 1, &axis, &inputs[1]));
    pen_node_spec spec = pen_node_spec_make("reduce_mean", name);
    spec.inputs = inputs;
    spec.input_count = 2;
    spec.attributes = &keeps;
    spec.attribute_count = 1;
    CHECK_OK(pen_graph_add_simple(v->graph, &spec, &made));
    return made;
}

static variance variance_make(int64_t axis) {
    variance v = {.arena = check_arena()};
    CHECK_OK(pen_graph_create(v.arena, "variance", &v.graph));
    v.x = graph_value_of(v.graph, "x", PEN_VALUE_PARAMETER, &matrix);
    v.mean = reduced(&v, "mean", v.x, 1);
    v.stop = graph_apply(v.graph, "stop_gradient", "stop", v.mean, PEN_VALUE_NONE, PEN_VALUE_NONE);
    v.difference = graph_apply(v.graph, "sub", "difference", v.x, v.stop, PEN_VALUE_NONE);
    const pen_value_id square =
        graph_apply(v.graph, "mul", "square", v.difference, v.difference, PEN_VALUE_NONE);
    const pen_value_id result = reduced(&v, "variance", square, axis);
    graph_apply(v.graph, "tanh", "result", result, PEN_VALUE_NONE, PEN_VALUE_NONE);
    return v;
}

// What the difference reads after the pass.
static pen_value_id subtracted(const variance *v) {
    const pen_node_id node = pen_graph_value(v->graph, v->difference)->producer;
    return pen_graph_node(v->graph, node)->inputs[1];
}

static void a_variance_needs_no_stop(void **state) {
    (void)state;
    variance v = variance_make(-1);
    CHECK_OK(pen_skip_idle_stops(v.graph));
    assert_int_equal(subtracted(&v).index, v.mean.index);
    pen_arena_destroy(v.arena);
}

// Along other dimensions, read by others, or of something else, the gradient is not 0.
static void others_stay_until_gradients_are_there(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        variance v = variance_make(i == 0 ? 0 : 1);
        if (i == 1) {
            graph_apply(v.graph, "exp", "more", v.difference, PEN_VALUE_NONE, PEN_VALUE_NONE);
        } else if (i == 2) {
            graph_apply(v.graph, "exp", "more", v.stop, PEN_VALUE_NONE, PEN_VALUE_NONE);
        } else if (i == 3) {
            const pen_value_id other =
                graph_value_of(v.graph, "other", PEN_VALUE_PARAMETER, &column);
            graph_apply(v.graph, "sub", "more", other, v.stop, PEN_VALUE_NONE);
        }
        CHECK_OK(pen_skip_idle_stops(v.graph));
        assert_int_equal(subtracted(&v).index, v.stop.index);
        CHECK_OK(pen_skip_stops(v.graph));
        assert_int_equal(subtracted(&v).index, v.mean.index);
        pen_arena_destroy(v.arena);
    }
}

static void stops_of_stops_are_skipped(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "stops", &graph));
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &matrix);
    pen_value_id value = x;
    value = graph_apply(graph, "stop_gradient", "a", value, PEN_VALUE_NONE, PEN_VALUE_NONE);
    value = graph_apply(graph, "stop_gradient", "b", value, PEN_VALUE_NONE, PEN_VALUE_NONE);
    value = graph_apply(graph, "add", "sum", value, x, PEN_VALUE_NONE);
    CHECK_OK(pen_skip_stops(graph));
    const pen_node *sum = pen_graph_node(graph, pen_graph_value(graph, value)->producer);
    assert_int_equal(sum->inputs[0].index, x.index);
    assert_int_equal(sum->inputs[1].index, x.index);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(a_variance_needs_no_stop),
              cmocka_unit_test(others_stay_until_gradients_are_there),
              cmocka_unit_test(stops_of_stops_are_skipped))
