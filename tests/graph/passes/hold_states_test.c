// Readers of a state that changes get what it was, or became, and what a model computes stays.
#include "graph/passes/hold_states.h"

#include "graph/op.h"
#include "graph/verify.h"
#include "tests/support/random_graph.h"

typedef struct held {
    pen_arena *arena;
    pen_graph *graph, *after;
    pen_value_id x, state;
    const pen_value_id *map;
} held;

static held held_begin(void) {
    held h = {.arena = check_arena()};
    const pen_tensor_type type = {PEN_FLOAT32, {1, {3}}};
    static const float numbers[3] = {1, 2, 3};
    const pen_value state = {.name = "average",
                             .kind = PEN_VALUE_STATE,
                             .type = type,
                             .data = numbers,
                             .data_bytes = sizeof numbers};
    CHECK_OK(pen_graph_create(h.arena, "held", &h.graph));
    h.x = graph_value_of(h.graph, "x", PEN_VALUE_INPUT, &type);
    CHECK_OK(pen_graph_add_value(h.graph, &state, &h.state));
    return h;
}

static pen_value_id held_apply(const held *h, const char *op, const char *name, pen_value_id a,
                               pen_value_id b) {
    return graph_apply(h->graph, op, name, a, b, PEN_VALUE_NONE);
}

static void held_run(held *h, pen_value_id changed) {
    pen_graph_set_replaces(h->graph, changed, h->state);
    CHECK_OK(pen_hold_states(h->graph, 0, NULL, &h->after, &h->map));
    CHECK_OK(pen_graph_verify(h->after, &(pen_verify_options){0}));
}

// Of how many operands of the new graph's nodes the state is one.
static uint32_t held_reads(const held *h) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(h->after); n++) {
        const pen_node *node = pen_graph_node(h->after, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            count += pen_value_same(node->inputs[i], h->map[h->state.index]);
        }
    }
    return count;
}

// What replaces the state in the new graph.
static const pen_value *held_successor(const held *h) {
    for (uint32_t v = 0; v < pen_graph_value_count(h->after); v++) {
        const pen_value *value = pen_graph_value(h->after, (pen_value_id){v});
        if (pen_value_same(value->replaces, h->map[h->state.index])) return value;
    }
    CHECK(false, "nothing replaces the state");
    return NULL;
}

static void readers_get_what_it_was(void **state) {
    (void)state;
    held h = held_begin();
    const pen_value_id part = held_apply(&h, "mul", "part", h.x, h.state);
    const pen_value_id old = held_apply(&h, "add", "old", h.state, h.x);
    held_run(&h, held_apply(&h, "add", "new", part, old));
    assert_int_equal(pen_graph_node_count(h.after), 4);
    const pen_node *copy = pen_graph_node(h.after, (pen_node_id){0});
    assert_string_equal(copy->op->name, "copy");
    assert_string_equal(copy->name, "average/held");
    assert_int_equal(held_reads(&h), 1);
    assert_string_equal(held_successor(&h)->name, "new:0");
    pen_arena_destroy(h.arena);
}

static void a_change_in_place_needs_no_copy(void **state) {
    (void)state;
    held h = held_begin();
    held_run(&h, held_apply(&h, "add", "new", h.state, h.x));
    assert_int_equal(pen_graph_node_count(h.after), 1);
    assert_int_equal(held_reads(&h), 1);
    pen_arena_destroy(h.arena);
}

// A transpose writes elements that it has yet to read.
static void a_change_that_reads_elsewhere_does(void **state) {
    (void)state;
    held h = held_begin();
    held_run(&h, held_apply(&h, "transpose", "new", h.state, PEN_VALUE_NONE));
    assert_int_equal(pen_graph_node_count(h.after), 2);
    assert_string_equal(pen_graph_node(h.after, (pen_node_id){0})->op->name, "copy");
    pen_arena_destroy(h.arena);
}

static void what_is_read_of_a_change_is_another(void **state) {
    (void)state;
    held h = held_begin();
    const pen_value_id changed = held_apply(&h, "add", "new", h.state, h.x);
    const pen_value_id read = held_apply(&h, "tanh", "read", changed, PEN_VALUE_NONE);
    CHECK_OK(pen_graph_add_output(h.graph, read));
    held_run(&h, changed);
    assert_int_equal(pen_graph_node_count(h.after), 3);
    const pen_value *successor = held_successor(&h);
    assert_string_equal(successor->name, "average/changed:0");
    assert_int_equal(held_reads(&h), 1);
    pen_arena_destroy(h.arena);
}

// A view writes nothing where the state lies.
static void a_view_is_copied(void **state) {
    (void)state;
    held h = held_begin();
    const pen_value_id next = held_apply(&h, "tanh", "next", h.x, PEN_VALUE_NONE);
    const pen_value_id changed = held_apply(&h, "identity", "new", next, PEN_VALUE_NONE);
    pen_graph_set_replaces(h.graph, changed, h.state);
    CHECK_ERROR(pen_graph_verify(h.graph, &(pen_verify_options){0}), PEN_INTERNAL,
                "identity only looks at its input");
    held_run(&h, changed);
    assert_string_equal(held_successor(&h)->name, "average/changed:0");
    pen_arena_destroy(h.arena);
}

PEN_TEST_MAIN(cmocka_unit_test(readers_get_what_it_was),
              cmocka_unit_test(a_change_in_place_needs_no_copy),
              cmocka_unit_test(a_change_that_reads_elsewhere_does),
              cmocka_unit_test(what_is_read_of_a_change_is_another),
              cmocka_unit_test(a_view_is_copied))
