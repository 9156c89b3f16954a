#include "graph/passes/remove_dead.h"

#include "graph/dump/dump_text.h"
#include "graph/op.h"
#include "graph/verify.h"
#include "tests/support/check.h"
#include "tests/support/same_outputs.h"
#include "tests/support/small_graph.h"

static const pen_verify_options typed = {.types = true};

static void keeps_what_lives(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    pen_graph *after;
    const pen_value_id *values;
    CHECK_OK(pen_remove_dead(small.graph, 0, NULL, &after, &values));
    const char *text[2];
    CHECK_OK(pen_dump_text(small.graph, arena, &text[0]));
    CHECK_OK(pen_dump_text(after, arena, &text[1]));
    assert_string_equal(text[0], text[1]);
    assert_int_equal(values[small.y.index].index, pen_graph_output(after, 0).index);
    pen_arena_destroy(arena);
}

static void drops_what_is_dead(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    pen_node_spec spec = pen_node_spec_make("transpose", "unread");
    spec.inputs = &small.hidden;
    spec.input_count = 1;
    pen_value_id unread, constant;
    CHECK_OK(pen_graph_add_simple(small.graph, &spec, &unread));
    CHECK_OK(pen_graph_constant_ints(small.graph, "nothing", 1, (const int64_t[]){1}, &constant));
    pen_graph *after;
    const pen_value_id *values;
    CHECK_OK(pen_remove_dead(small.graph, 0, NULL, &after, &values));
    assert_int_equal(pen_graph_node_count(after), 2);
    assert_false(pen_value_is(values[unread.index]));
    assert_false(pen_value_is(values[constant.index]));
    CHECK_OK(pen_remove_dead(small.graph, 1, &unread, &after, &values));
    assert_int_equal(pen_graph_node_count(after), 3);
    assert_string_equal(pen_value_name(after, values[unread.index]), "unread:0");
    // without outputs nothing lives, but what persists stays
    pen_graph *unread_graph;
    CHECK_OK(pen_graph_create(arena, "unread", &unread_graph));
    const pen_value weight = {
        .name = "w", .kind = PEN_VALUE_PARAMETER, .type = *pen_value_type(small.graph, small.y)};
    CHECK_OK(pen_graph_add_value(unread_graph, &weight, &unread));
    spec.inputs = &unread;
    CHECK_OK(pen_graph_add_simple(unread_graph, &spec, &constant));
    CHECK_OK(pen_remove_dead(unread_graph, 0, NULL, &after, &values));
    assert_int_equal(pen_graph_node_count(after), 0);
    assert_int_equal(pen_graph_value_count(after), 1);
    pen_arena_destroy(arena);
}

// Where outputs are no results, they go with what only they need.
static void drops_idle_outputs(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    pen_node_spec spec = pen_node_spec_make("transpose", "other");
    spec.inputs = &small.hidden;
    spec.input_count = 1;
    pen_value_id other;
    CHECK_OK(pen_graph_add_simple(small.graph, &spec, &other));
    CHECK_OK(pen_graph_add_output(small.graph, other));
    CHECK_OK(pen_graph_add_output(small.graph, small.hidden));
    pen_graph *after;
    const pen_value_id *values;
    CHECK_OK(pen_remove_dead(small.graph, 1, &small.y, &after, &values));
    assert_int_equal(pen_graph_node_count(after), 3);
    assert_int_equal(pen_graph_output_count(after), 3);
    CHECK_OK(pen_remove_idle(small.graph, 1, &small.y, &after, &values));
    CHECK_OK(pen_graph_verify(after, &typed));
    assert_int_equal(pen_graph_node_count(after), 2);
    assert_false(pen_value_is(values[other.index]));
    assert_int_equal(pen_graph_output_count(after), 2); // y, and what it is computed from
    assert_int_equal(pen_graph_output(after, 0).index, values[small.y.index].index);
    assert_int_equal(pen_graph_output(after, 1).index, values[small.hidden.index].index);
    CHECK_OK(pen_remove_idle(small.graph, 0, NULL, &after, &values));
    assert_int_equal(pen_graph_node_count(after), 0);
    assert_int_equal(pen_graph_output_count(after), 0);
    pen_arena_destroy(arena);
}

static void computes_the_same(void **state) {
    (void)state;
    uint32_t dropped = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        pen_arena *arena = check_arena();
        const small_graph small = small_graph_random(arena, seed, 20);
        pen_graph *after;
        const pen_value_id *values;
        CHECK_OK(pen_remove_dead(small.graph, 0, NULL, &after, &values));
        CHECK_OK(pen_graph_verify(after, &typed));
        check_same_outputs(small.graph, after);
        dropped += 20 - pen_graph_node_count(after);
        pen_graph *again;
        CHECK_OK(pen_remove_dead(after, 0, NULL, &again, &values));
        assert_int_equal(pen_graph_node_count(again), pen_graph_node_count(after));
        pen_arena_destroy(arena);
    }
    CHECK(dropped > 500, "only %u nodes of 2000 were dead", dropped);
}

PEN_TEST_MAIN(cmocka_unit_test(keeps_what_lives), cmocka_unit_test(drops_what_is_dead),
              cmocka_unit_test(drops_idle_outputs), cmocka_unit_test(computes_the_same))
