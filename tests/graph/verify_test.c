#include "graph/verify.h"

#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/small_graph.h"

static const pen_verify_options typed = {.types = true};

static pen_node_id node_called(const pen_graph *graph, const char *name) {
    pen_node_id node;
    CHECK_OK(pen_graph_find_node(graph, name, &node));
    return node;
}

static pen_value_id value_called(const pen_graph *graph, const char *name) {
    pen_value_id value;
    CHECK_OK(pen_graph_find_value(graph, name, &value));
    return value;
}

static void accepts(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    CHECK_OK(pen_graph_verify(small_graph_forward(arena).graph, &typed));
    CHECK_OK(pen_graph_verify(small_graph_training(arena).graph, &typed));
    CHECK_OK(pen_graph_verify(small_graph_random(arena, 1, 40).graph, &typed));
    pen_arena_destroy(arena);
}

static void made_before_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    pen_graph_set_input(small.graph, node_called(small.graph, "fc1"), 0, small.y);
    CHECK_ERROR(pen_graph_verify(small.graph, &typed), PEN_INTERNAL,
                "matmul 'fc1' reads 'fc2:0', which 'fc2' makes later");
    pen_graph_set_input(small.graph, node_called(small.graph, "fc1"), 0, PEN_VALUE_NONE);
    CHECK_ERROR(pen_graph_verify(small.graph, &typed), PEN_INTERNAL,
                "matmul 'fc1' lacks its input 0");
    pen_graph_set_input(small.graph, node_called(small.graph, "fc1"), 0, (pen_value_id){99});
    CHECK_ERROR(pen_graph_verify(small.graph, &typed), PEN_INTERNAL,
                "matmul 'fc1' reads value 99, which is not there");
    pen_arena_destroy(arena);
}

static void types_known(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    const pen_tensor_type unknown = {0};
    pen_graph_set_type(small.graph, small.hidden, &unknown);
    CHECK_ERROR(pen_graph_verify(small.graph, &typed), PEN_INTERNAL, "value 'fc1:0' has no type");
    const pen_verify_options untyped = {.types = false};
    CHECK_OK(pen_graph_verify(small.graph, &untyped));
    pen_tensor_type symbolic = pen_tensor_type_make(PEN_FLOAT32, 1, (const int64_t[]){-1});
    pen_graph_set_type(small.graph, small.hidden, &symbolic);
    CHECK_ERROR(pen_graph_verify(small.graph, &typed), PEN_INVALID_INPUT,
                "as the type of value 'fc1:0'");
    pen_arena_destroy(arena);
}

static void roles_go_one_way(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    pen_graph_set_role(small.graph, node_called(small.graph, "fc1"), PEN_ROLE_UPDATE);
    CHECK_ERROR(pen_graph_verify(small.graph, &typed), PEN_INTERNAL,
                "matmul 'fc2' is forward, but reads 'fc1:0' of 'fc1', which is update");
    pen_graph_set_role(small.graph, node_called(small.graph, "fc1"), PEN_ROLE_FORWARD);
    pen_graph_set_role(small.graph, node_called(small.graph, "fc2/backward_a"), PEN_ROLE_FORWARD);
    CHECK_ERROR(pen_graph_verify(small.graph, &typed), PEN_INTERNAL,
                "matmul 'fc2/backward_a' is forward, but is the gradient of a node");
    pen_arena_destroy(arena);
}

static void replaces_soundly(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    pen_graph *graph = small.graph;
    const pen_value_id update = value_called(graph, "fc1.weight/update:0");
    pen_graph_set_replaces(graph, update, small.weights[1]);
    CHECK_ERROR(pen_graph_verify(graph, &typed), PEN_INTERNAL,
                "value 'fc1.weight/update:0' is float32[3,5], but replaces 'fc2.weight', which is "
                "float32[5,2]");
    pen_graph_set_replaces(graph, update, small.x);
    CHECK_ERROR(pen_graph_verify(graph, &typed), PEN_INTERNAL,
                "computed 'fc1.weight/update:0' replaces input 'x'");
    pen_graph_set_replaces(graph, update, value_called(graph, "fc1.weight/velocity"));
    CHECK_ERROR(pen_graph_verify(graph, &typed), PEN_INTERNAL,
                "both replace 'fc1.weight/velocity'");
    pen_graph_set_replaces(graph, update, small.weights[0]);
    CHECK_OK(pen_graph_verify(graph, &typed));
    pen_node_spec spec = pen_node_spec_make("identity", "late");
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = &small.weights[0];
    spec.input_count = 1;
    pen_value_id late;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &late));
    CHECK_ERROR(pen_graph_verify(graph, &typed), PEN_INTERNAL,
                "identity 'late' reads 'fc1.weight' after 'fc1.weight/update' has replaced it");
    pen_arena_destroy(arena);
}

static void steered_by_constants(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    pen_node_spec spec = pen_node_spec_make("reshape", "flat");
    pen_value_id operands[2] = {small.x}, flat;
    CHECK_OK(pen_graph_constant_ints(small.graph, "to", 1, (const int64_t[]){-1}, &operands[1]));
    spec.inputs = operands;
    spec.input_count = 2;
    CHECK_OK(pen_graph_add_simple(small.graph, &spec, &flat));
    CHECK_OK(pen_graph_verify(small.graph, &typed));
    pen_graph_set_input(small.graph, node_called(small.graph, "flat"), 1, small.x);
    CHECK_ERROR(pen_graph_verify(small.graph, &typed), PEN_INTERNAL,
                "reshape 'flat': input 1, 'x', is not a constant");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(accepts), cmocka_unit_test(made_before_read),
              cmocka_unit_test(types_known), cmocka_unit_test(roles_go_one_way),
              cmocka_unit_test(replaces_soundly), cmocka_unit_test(steered_by_constants))
