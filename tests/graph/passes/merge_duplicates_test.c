#include "graph/passes/merge_duplicates.h"

#include "graph/op.h"
#include "graph/verify.h"
#include "tests/support/check.h"
#include "tests/support/same_outputs.h"
#include "tests/support/small_graph.h"

static const pen_verify_options typed = {.types = true};

static pen_value_id add(pen_graph *graph, const char *op, const char *name,
                        const pen_value_id *operands, uint32_t count) {
    pen_node_spec spec = pen_node_spec_make(op, name);
    spec.inputs = operands;
    spec.input_count = count;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &output));
    return output;
}

// Two reshapes of x by equal constants, and what follows from them.
static void merges_chains(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    pen_value_id turned[2];
    for (int i = 0; i < 2; i++) {
        pen_value_id operands[2] = {small.x};
        CHECK_OK(
            pen_graph_constant_ints(small.graph, "to", 2, (const int64_t[]){6, 2}, &operands[1]));
        const pen_value_id shaped = add(small.graph, "reshape", "shaped", operands, 2);
        turned[i] = add(small.graph, "transpose", "turned", &shaped, 1);
    }
    const pen_value_id product = add(
        small.graph, "matmul", "product",
        (const pen_value_id[]){turned[0], add(small.graph, "transpose", "back", &turned[1], 1)}, 2);
    CHECK_OK(pen_graph_add_output(small.graph, product));
    pen_graph *after;
    const pen_value_id *values;
    CHECK_OK(pen_merge_duplicates(small.graph, 0, NULL, &after, &values));
    CHECK_OK(pen_graph_verify(after, &typed));
    assert_int_equal(pen_graph_node_count(after), pen_graph_node_count(small.graph) - 2);
    assert_int_equal(values[turned[0].index].index, values[turned[1].index].index);
    assert_string_equal(pen_value_name(after, values[turned[1].index]), "turned:0");
    check_same_outputs(small.graph, after);
    pen_arena_destroy(arena);
}

static void leaves_what_differs(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    const pen_value_id copies[] = {add(small.graph, "identity", "a", &small.x, 1),
                                   add(small.graph, "identity", "b", &small.x, 1),
                                   add(small.graph, "identity", "c", &small.x, 1),
                                   add(small.graph, "transpose", "d", &small.x, 1)};
    pen_graph_set_role(small.graph, (pen_node_id){4}, PEN_ROLE_UPDATE); // c
    CHECK_OK(pen_graph_add_output(small.graph, copies[1]));
    pen_graph *after;
    const pen_value_id *values;
    CHECK_OK(pen_merge_duplicates(small.graph, 0, NULL, &after, &values));
    assert_int_equal(pen_graph_node_count(after), 6); // b is known by name, c has another role
    pen_graph_set_role(small.graph, (pen_node_id){4}, PEN_ROLE_FORWARD);
    CHECK_OK(pen_merge_duplicates(small.graph, 0, NULL, &after, &values));
    assert_int_equal(pen_graph_node_count(after), 5); // c is a
    assert_int_equal(values[copies[2].index].index, values[copies[0].index].index);
    CHECK_OK(pen_merge_duplicates(small.graph, 1, &copies[2], &after, &values));
    assert_int_equal(pen_graph_node_count(after), 6);
    pen_graph_set_accumulates(small.graph, (pen_node_id){4}, true);
    CHECK_OK(pen_merge_duplicates(small.graph, 0, NULL, &after, &values));
    assert_int_equal(pen_graph_node_count(after), 6);
    CHECK_OK(pen_graph_verify(after, &typed));
    pen_arena_destroy(arena);
}

static void leaves_random_nodes(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    const pen_op *dropout;
    CHECK_OK(pen_op_find("dropout", &dropout));
    assert_true(dropout->is_random);
    add(small.graph, "dropout", "a", &small.x, 1);
    add(small.graph, "dropout", "b", &small.x, 1);
    pen_graph *after;
    const pen_value_id *values;
    CHECK_OK(pen_merge_duplicates(small.graph, 0, NULL, &after, &values));
    assert_int_equal(pen_graph_node_count(after), 4);
    pen_arena_destroy(arena);
}

static void leaves_updates(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    pen_graph *after;
    const pen_value_id *values;
    CHECK_OK(pen_merge_duplicates(small.graph, 0, NULL, &after, &values));
    assert_int_equal(pen_graph_node_count(after), pen_graph_node_count(small.graph));
    CHECK_OK(pen_graph_verify(after, &typed));
    pen_arena_destroy(arena);
}

static void computes_the_same(void **state) {
    (void)state;
    uint32_t merged = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        pen_arena *arena = check_arena();
        const small_graph small = small_graph_random(arena, seed, 40);
        pen_graph *after, *again;
        const pen_value_id *values;
        CHECK_OK(pen_merge_duplicates(small.graph, 0, NULL, &after, &values));
        CHECK_OK(pen_graph_verify(after, &typed));
        check_same_outputs(small.graph, after);
        merged += 40 - pen_graph_node_count(after);
        CHECK_OK(pen_merge_duplicates(after, 0, NULL, &again, &values));
        assert_int_equal(pen_graph_node_count(again), pen_graph_node_count(after));
        pen_arena_destroy(arena);
    }
    CHECK(merged > 200, "only %u nodes of 4000 were duplicates", merged);
}

PEN_TEST_MAIN(cmocka_unit_test(merges_chains), cmocka_unit_test(leaves_what_differs),
              cmocka_unit_test(leaves_random_nodes), cmocka_unit_test(leaves_updates),
              cmocka_unit_test(computes_the_same))
