#include "graph/op.h"

#include <math.h>

#include "tests/support/op_check.h"
#include "tests/support/random_case.h"
#include "tests/support/random_graph.h"

static const pen_tensor_type square = {PEN_FLOAT32, {2, {3, 3}}};

static pen_graph *empty_graph(pen_arena *arena) {
    pen_graph *graph = NULL;
    CHECK_OK(pen_graph_create(arena, "test", &graph));
    return graph;
}

static void attributes_are_read_by_name(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const pen_tensor_type images = {PEN_FLOAT32, {4, {1, 2, 6, 6}}};
    const pen_tensor_type filters = {PEN_FLOAT32, {4, {4, 2, 3, 3}}};
    const pen_value_id operands[2] = {graph_value_of(graph, "x", PEN_VALUE_INPUT, &images),
                                      graph_value_of(graph, "w", PEN_VALUE_PARAMETER, &filters)};
    int64_t strides[2] = {2, 1};
    char padding[16] = "SAME_UPPER";
    const pen_attribute_given given[2] = {pen_attribute_ints("strides", 2, strides),
                                          pen_attribute_text("auto_pad", padding)};
    pen_node_spec spec = pen_node_spec_make("conv", "c");
    pen_node_id id;
    spec.inputs = operands;
    spec.input_count = 2;
    spec.attributes = given;
    spec.attribute_count = 2;
    CHECK_OK(pen_graph_add_node(graph, &spec, &id));
    strides[0] = 7; // what was given was copied
    padding[0] = 'X';
    const pen_node *node = pen_graph_node(graph, id);
    uint32_t count = 0;
    const int64_t *read = pen_node_ints(node, "strides", &count);
    assert_int_equal(count, 2);
    assert_true(read[0] == 2 && read[1] == 1);
    assert_string_equal(pen_node_text(node, "auto_pad"), "SAME_UPPER");
    assert_int_equal(pen_node_int(node, "group"), 1); // its default
    assert_true(pen_node_has(node, "group"));
    pen_arena_destroy(arena);
}

static void flops_and_bytes_are_counted(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const pen_tensor_type a = {PEN_FLOAT32, {2, {4, 5}}}, b = {PEN_FLOAT32, {2, {5, 6}}};
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &a);
    graph_apply(graph, "matmul", "product", x, graph_value_of(graph, "w", PEN_VALUE_INPUT, &b),
                PEN_VALUE_NONE);
    pen_value_id target;
    CHECK_OK(pen_graph_constant_ints(graph, "t", 1, (int64_t[]){20}, &target));
    graph_apply(graph, "reshape", "view", x, target, PEN_VALUE_NONE);
    assert_int_equal(pen_node_flops(graph, (pen_node_id){0}), 2 * 4 * 5 * 6);
    assert_int_equal(pen_node_bytes(graph, (pen_node_id){0}), 4 * (20 + 30 + 24));
    assert_int_equal(pen_node_flops(graph, (pen_node_id){1}), 0);
    assert_int_equal(pen_node_bytes(graph, (pen_node_id){1}), 0);
    pen_arena_destroy(arena);
}

// The gradient of a broadcast operand has its shape, whatever was repeated.
static void broadcasts_are_undone(void **state) {
    (void)state;
    random_case dice = {.seed = 7};
    for (uint64_t seed = 0; seed < 300; seed++) {
        op_case c = {.op = "mul", .input_count = 2};
        c.inputs[0].type = random_type(&dice, 0, 4, 4, 60);
        c.inputs[0].type.element = PEN_FLOAT64;
        c.inputs[1].type = random_broadcast_of(&dice, &c.inputs[0].type);
        if (random_chance(&dice, 50)) {
            const op_case_input swapped = c.inputs[0];
            c.inputs[0] = c.inputs[1];
            c.inputs[1] = swapped;
        }
        op_check_gradient(&c, seed);
    }
}

static void errors_begin_with_the_node(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &square);
    const pen_tensor_type other = {PEN_INT64, {2, {3, 3}}};
    const pen_value_id operands[2] = {x, graph_value_of(graph, "y", PEN_VALUE_INPUT, &other)};
    pen_node_spec spec = pen_node_spec_make("add", "sum");
    pen_node_id node;
    spec.inputs = operands;
    spec.input_count = 2;
    CHECK_ERROR(pen_graph_add_node(graph, &spec, &node), PEN_INVALID_INPUT, "add 'sum': ");
    spec = pen_node_spec_make("reshape", "steered");
    spec.inputs = operands;
    spec.input_count = 2;
    CHECK_ERROR(pen_graph_add_node(graph, &spec, &node), PEN_UNSUPPORTED,
                "reshape 'steered': its input 'y' steers shapes, but depends on data");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(attributes_are_read_by_name),
              cmocka_unit_test(flops_and_bytes_are_counted),
              cmocka_unit_test(broadcasts_are_undone), cmocka_unit_test(errors_begin_with_the_node))
