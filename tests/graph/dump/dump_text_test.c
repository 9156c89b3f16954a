#include "graph/dump/dump_text.h"

#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/small_graph.h"

static void training_step(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    const char *text;
    CHECK_OK(pen_dump_text(small.graph, arena, &text));
    CHECK_GOLDEN("small_graph.txt", text);
    pen_arena_destroy(arena);
}

// Every kind of name, constant, attribute and note that the other graph has not.
static void odd_things(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "odd \"graph\"", &graph));
    pen_value value = {.name = "the input", .kind = PEN_VALUE_INPUT};
    value.type = pen_tensor_type_make(PEN_FLOAT16, 2, (const int64_t[]){0, 3});
    CHECK_OK(pen_graph_add_symbol(graph, "batch size", &value.type.shape.dims[0]));
    pen_value_id x, id, shape;
    CHECK_OK(pen_graph_add_value(graph, &value, &x));
    value = (pen_value){.name = "frozen\n", .kind = PEN_VALUE_PARAMETER, .layout = 3};
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    CHECK_OK(pen_graph_constant_ints(graph, "shape", 2, (const int64_t[]){-1, 1}, &shape));
    CHECK_OK(pen_graph_constant_ints(graph, "none", 0, (const int64_t[]){0}, &id));
    CHECK_OK(pen_graph_constant_number(graph, "third", PEN_FLOAT32, 1.0 / 3, &id));
    CHECK_OK(pen_graph_constant_number(graph, "third64", PEN_FLOAT64, 1.0 / 3, &id));
    CHECK_OK(pen_graph_constant_number(graph, "yes", PEN_BOOL, 1, &id));
    static const uint16_t halves[10] = {0x3c00, 0xffff};
    const pen_tensor_type type = pen_tensor_type_make(PEN_BFLOAT16, 1, (const int64_t[]){10});
    CHECK_OK(pen_graph_constant(graph, "_", &type, halves, &id));
    pen_node_spec spec = pen_node_spec_make("pad", "pad \\ it");
    const pen_value_id operands[] = {x, shape, PEN_VALUE_NONE};
    const char *const names[] = {"padded"};
    spec.inputs = operands;
    spec.input_count = 3;
    spec.output_names = names;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node)); // not typed: the batch is not bound
    spec = pen_node_spec_make("transpose", "turn");
    const int64_t order[] = {1, 0};
    const pen_attribute_given perm = pen_attribute_ints("perm", 2, order);
    spec.attributes = &perm;
    spec.attribute_count = 1;
    spec.inputs = &x;
    spec.input_count = 1;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    CHECK_OK(pen_graph_add_output(graph, pen_graph_node(graph, node)->outputs[0]));
    const char *text;
    CHECK_OK(pen_dump_text(graph, arena, &text));
    CHECK_GOLDEN("odd_graph.txt", text);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(training_step), cmocka_unit_test(odd_things))
