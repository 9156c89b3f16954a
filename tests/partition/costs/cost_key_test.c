#include "partition/costs/cost_key.h"
#include "partition/costs/cost_table.h"
#include "tests/support/check.h"
#include "tests/support/small_graph.h"

static pen_value_id add_value(pen_graph *graph, const char *name, pen_value_kind kind,
                              pen_tensor_type type) {
    const pen_value value = {.name = name, .kind = kind, .type = type};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    return id;
}

static pen_value_id add_image(pen_graph *graph, const char *name, int64_t channels, int64_t side) {
    const int64_t dims[] = {8, channels, side, side};
    return add_value(graph, name, PEN_VALUE_INPUT, pen_tensor_type_make(PEN_FLOAT32, 4, dims));
}

static const char *key_of(const pen_graph *graph, pen_node_id node, pen_arena *arena) {
    const char *key;
    CHECK_OK(pen_cost_key(graph, node, arena, &key));
    return key;
}

static pen_node_id add_convolution(pen_graph *graph, pen_value_id x, int64_t stride) {
    const pen_value_id weight =
        add_value(graph, stride == 1 ? "w1" : "w2", PEN_VALUE_PARAMETER,
                  pen_tensor_type_make(PEN_FLOAT32, 4, (const int64_t[]){6, 16, 3, 3}));
    const int64_t strides[] = {stride, stride};
    const pen_attribute_given attributes[] = {pen_attribute_ints("strides", 2, strides)};
    const pen_value_id inputs[] = {x, weight};
    pen_node_spec spec = pen_node_spec_make("conv", "c");
    spec.inputs = inputs;
    spec.input_count = 2;
    spec.attributes = attributes;
    spec.attribute_count = 1;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    return node;
}

static void keys_say_what_decides_the_work(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    const pen_value_id x = add_image(graph, "x", 16, 12);
    const pen_node_id first = add_convolution(graph, x, 1);
    const pen_node_id second = add_convolution(graph, x, 2);
    const char *key = key_of(graph, first, arena);
    CHECK(strncmp(key, "float32[8,16,12,12] float32[6,16,3,3] -> float32[8,6,10,10];", 60) == 0,
          "%s", key);
    assert_non_null(strstr(key, " strides=1,1"));
    assert_string_not_equal(key, key_of(graph, second, arena));

    // layout and accumulation count, names do not
    pen_graph_set_layout(graph, x, 2);
    CHECK(strstr(key_of(graph, first, arena), "float32[8,16,12,12]@2 ") != NULL, "%s",
          key_of(graph, first, arena));
    pen_graph_set_layout(graph, x, PEN_LAYOUT_PLAIN);
    pen_graph_set_accumulates(graph, first, true);
    assert_non_null(strstr(key_of(graph, first, arena), "[8,6,10,10] +=;"));
    assert_string_not_equal(key, key_of(graph, first, arena));
    pen_graph_set_accumulates(graph, first, false);
    assert_string_equal(key, key_of(graph, first, arena));
    pen_arena_destroy(arena);
}

static pen_node_id add_binary(pen_graph *graph, const char *op, pen_value_id a, pen_value_id b) {
    const pen_value_id inputs[] = {a, b};
    pen_node_spec spec = pen_node_spec_make(op, op);
    spec.inputs = inputs;
    spec.input_count = 2;
    pen_node_id node;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    return node;
}

static void constants_that_steer_are_part_of_it(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    const pen_value_id x = add_image(graph, "x", 2, 3);
    const int64_t dims[] = {1, 3}, other_dims[] = {2, 3};
    pen_value_id axes, other, two;
    CHECK_OK(pen_graph_constant_ints(graph, "axes", 2, dims, &axes));
    CHECK_OK(pen_graph_constant_ints(graph, "axes", 2, other_dims, &other));
    CHECK_OK(pen_graph_constant_number(graph, "two", PEN_FLOAT32, 2, &two));
    const char *key = key_of(graph, add_binary(graph, "reduce_sum", x, axes), arena);
    CHECK(strncmp(key, "float32[8,2,3,3] int64[2]=1,3 -> float32[8,1,3,1];", 50) == 0, "%s", key);
    assert_string_not_equal(key, key_of(graph, add_binary(graph, "reduce_sum", x, other), arena));
    const char *power = key_of(graph, add_binary(graph, "pow", x, two), arena);
    CHECK(strstr(power, "float32[]=#") != NULL, "%s", power);
    const pen_value_id same = add_image(graph, "same", 2, 3);
    assert_string_equal(power, key_of(graph, add_binary(graph, "pow", same, two), arena));
    pen_arena_destroy(arena);
}

static void long_keys_are_cut_but_stay_apart(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "g", &graph));
    pen_value_id inputs[200];
    const char *keys[2];
    for (uint32_t i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%u", i);
        inputs[i] = add_image(graph, name, 2 + i / 199, 3); // the last is larger
    }
    for (uint32_t i = 0; i < 2; i++) {
        const pen_attribute_given attributes[] = {pen_attribute_int("axis", 1)};
        pen_node_spec spec = pen_node_spec_make("concat", "c");
        spec.inputs = inputs;
        spec.input_count = 200 - i;
        spec.attributes = attributes;
        spec.attribute_count = 1;
        pen_node_id node;
        CHECK_OK(pen_graph_add_node(graph, &spec, &node));
        keys[i] = key_of(graph, node, arena);
        CHECK(strlen(keys[i]) <= PEN_COST_KEY_BYTES_LIMIT, "%zu", strlen(keys[i]));
    }
    assert_string_not_equal(keys[0], keys[1]);
    pen_arena_destroy(arena);
}

static void equal_graphs_have_equal_keys(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph a = small_graph_training(arena);
    pen_arena *other = check_arena();
    const small_graph b = small_graph_training(other);
    assert_int_equal(pen_graph_node_count(a.graph), pen_graph_node_count(b.graph));
    for (uint32_t n = 0; n < pen_graph_node_count(a.graph); n++) {
        assert_string_equal(key_of(a.graph, (pen_node_id){n}, arena),
                            key_of(b.graph, (pen_node_id){n}, other));
    }
    pen_arena_destroy(arena);
    pen_arena_destroy(other);
}

PEN_TEST_MAIN(cmocka_unit_test(keys_say_what_decides_the_work),
              cmocka_unit_test(constants_that_steer_are_part_of_it),
              cmocka_unit_test(long_keys_are_cut_but_stay_apart),
              cmocka_unit_test(equal_graphs_have_equal_keys))
