#include "graph/dump/dump_dot.h"

#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/small_graph.h"

static void training_step(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    const char *text;
    CHECK_OK(pen_dump_dot(small.graph, arena, &text));
    CHECK_GOLDEN("small_graph.dot", text);
    pen_arena_destroy(arena);
}

// Names cannot break out of their strings.
static void escapes_names(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "a\"];\\", &graph));
    const pen_value value = {.name = "in\"put\\", .kind = PEN_VALUE_INPUT};
    pen_value_id x, y;
    CHECK_OK(pen_graph_add_value(graph, &value, &x));
    pen_node_spec spec = pen_node_spec_make("identity", "line\nbreak\"");
    spec.inputs = &x;
    spec.input_count = 1;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &y));
    CHECK_OK(pen_graph_add_output(graph, x));
    const char *text;
    CHECK_OK(pen_dump_dot(graph, arena, &text));
    assert_non_null(strstr(text, "digraph \"a\\\"];\\\\\" {"));
    assert_non_null(strstr(text, "label=\"input\\nin\\\"put\\\\\"];"));
    assert_non_null(strstr(text, "label=\"identity\\nline break\\\"\"];"));
    assert_non_null(strstr(text, "v0 -> o0 [label=\"?\"];"));
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(training_step), cmocka_unit_test(escapes_names))
