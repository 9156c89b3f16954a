#include "graph/graph.h"

#include "base/memory.h"
#include "graph/op.h"
#include "tests/support/random_graph.h"

static const pen_tensor_type square = {PEN_FLOAT32, {2, {3, 3}}};

static pen_graph *empty_graph(pen_arena *arena) {
    pen_graph *graph = NULL;
    CHECK_OK(pen_graph_create(arena, "test", &graph));
    return graph;
}

static void names_are_found(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    pen_value_id value;
    pen_node_id node;
    CHECK_ERROR(pen_graph_find_value(graph, "x", &value), PEN_NOT_FOUND, "'x'");
    CHECK_ERROR(pen_graph_find_node(graph, "x", &node), PEN_NOT_FOUND, "'x'");
    const pen_value_id x = graph_value_of(graph, "layer1.weight", PEN_VALUE_INPUT, &square);
    graph_value_of(graph, "layer2.bias", PEN_VALUE_INPUT, &square);
    const pen_value_id y =
        graph_apply(graph, "tanh", "layer1/act", x, PEN_VALUE_NONE, PEN_VALUE_NONE);
    CHECK_OK(pen_graph_find_value(graph, "layer1.weight", &value));
    assert_true(pen_value_same(value, x));
    CHECK_OK(pen_graph_find_value(graph, "layer1/act:0", &value));
    assert_true(pen_value_same(value, y));
    CHECK_OK(pen_graph_find_node(graph, "layer1/act", &node));
    assert_int_equal(node.index, 0);
    CHECK_ERROR(pen_graph_find_value(graph, "layer2.weight", &value), PEN_NOT_FOUND,
                "nearest is 'layer2.bias'");
    CHECK_ERROR(pen_graph_find_node(graph, "layer1/xyz", &node), PEN_NOT_FOUND,
                "nearest is 'layer1/act'");
    pen_arena_destroy(arena);
}

// Values that are there stay, and what is added takes no array but its own.
static void reserved_room_is_used(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_STATE, &square);
    CHECK_OK(pen_graph_reserve(graph, 1000, 1001));
    const pen_value *first = pen_graph_value(graph, x);
    CHECK_OK(pen_graph_reserve(graph, 10, 10));
    pen_value_id last = x;
    for (int i = 0; i < 1000; i++) {
        last = graph_apply(graph, "tanh", "act", last, PEN_VALUE_NONE, PEN_VALUE_NONE);
    }
    assert_true(pen_graph_value(graph, x) == first);
    assert_string_equal(first->name, "x");
    assert_int_equal(pen_graph_node_count(graph), 1000);
    pen_arena_destroy(arena);
}

static void names_stay_unique(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const pen_value spec = {.name = "x", .kind = PEN_VALUE_INPUT, .type = square};
    pen_value_id x, second, third;
    CHECK_OK(pen_graph_add_value(graph, &spec, &x));
    CHECK_ERROR(pen_graph_add_value(graph, &spec, &second), PEN_INVALID_INPUT,
                "two values are called 'x'");
    CHECK_OK(pen_graph_add_own_value(graph, &spec, &second));
    CHECK_OK(pen_graph_add_own_value(graph, &spec, &third));
    assert_string_equal(pen_value_name(graph, second), "x_2");
    assert_string_equal(pen_value_name(graph, third), "x_3");
    for (int i = 0; i < 3; i++) {
        graph_apply(graph, "tanh", "t", x, PEN_VALUE_NONE, PEN_VALUE_NONE);
    }
    assert_string_equal(pen_node_name(graph, (pen_node_id){2}), "t_3");
    CHECK_OK(pen_graph_rename_value(graph, third, "x_2"));
    assert_string_equal(pen_value_name(graph, third), "x_2_2");
    pen_value_id found;
    CHECK_OK(pen_graph_find_value(graph, "x_2_2", &found));
    assert_true(pen_value_same(found, third));
    assert_int_equal(pen_graph_input_count(graph), 3);
    pen_arena_destroy(arena);
}

static void counts_of_operands_are_checked(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &square);
    const pen_value_id operands[3] = {x, x, x};
    const pen_value_id missing[2] = {x, PEN_VALUE_NONE};
    pen_node_spec spec = pen_node_spec_make("matmul", "m");
    pen_node_id node;
    spec.inputs = operands;
    spec.input_count = 3;
    CHECK_ERROR(pen_graph_add_node(graph, &spec, &node), PEN_INVALID_INPUT,
                "matmul 'm' takes 2 to 2 inputs, found 3");
    spec.input_count = 1;
    CHECK_ERROR(pen_graph_add_node(graph, &spec, &node), PEN_INVALID_INPUT, "found 1");
    spec.inputs = missing;
    spec.input_count = 2;
    CHECK_ERROR(pen_graph_add_node(graph, &spec, &node), PEN_INVALID_INPUT,
                "matmul 'm' needs its input 1");
    spec.inputs = operands;
    spec.output_count = 2;
    CHECK_ERROR(pen_graph_add_node(graph, &spec, &node), PEN_INVALID_INPUT,
                "matmul 'm' gives 1 to 1 outputs, found 2");
    spec.output_count = 0;
    CHECK_ERROR(pen_graph_add_node(graph, &spec, &node), PEN_INVALID_INPUT, "found 0");
    assert_int_equal(pen_graph_node_count(graph), 0);
    pen_value_id *many;
    CHECK_OK(PEN_NEW(arena, PEN_NODE_ARITY_LIMIT + 1, &many));
    for (uint32_t i = 0; i <= PEN_NODE_ARITY_LIMIT; i++) {
        many[i] = x;
    }
    spec = pen_node_spec_make("max", "wide");
    spec.inputs = many;
    spec.input_count = PEN_NODE_ARITY_LIMIT + 1;
    CHECK_ERROR(pen_graph_add_node(graph, &spec, &node), PEN_INVALID_INPUT, "1 to 4096 inputs");
    spec.input_count = PEN_NODE_ARITY_LIMIT;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    pen_arena_destroy(arena);
}

static pen_status add_concat(pen_graph *graph, pen_value_id x, const pen_attribute_given *given,
                             uint32_t count) {
    pen_node_spec spec = pen_node_spec_make("concat", "c");
    pen_node_id node;
    spec.inputs = &x;
    spec.input_count = 1;
    spec.attributes = given;
    spec.attribute_count = count;
    return pen_graph_add_node(graph, &spec, &node);
}

static void attributes_follow_the_schema(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &square);
    CHECK_ERROR(add_concat(graph, x, NULL, 0), PEN_INVALID_INPUT,
                "concat 'c' needs its attribute 'axis'");
    const pen_attribute_given wrong_kind = pen_attribute_float("axis", 1);
    CHECK_ERROR(add_concat(graph, x, &wrong_kind, 1), PEN_INVALID_INPUT,
                "attribute 'axis' is a number, expected an integer");
    const pen_attribute_given unknown = pen_attribute_int("axes", 1);
    CHECK_ERROR(add_concat(graph, x, &unknown, 1), PEN_INVALID_INPUT, "there is 'axis'");
    const pen_attribute_given axis = pen_attribute_int("axis", 1);
    CHECK_OK(add_concat(graph, x, &axis, 1));
    const pen_node *node = pen_graph_node(graph, (pen_node_id){0});
    assert_int_equal(pen_node_int(node, "axis"), 1);
    assert_true(pen_node_has(node, "axis"));
    assert_false(pen_node_has(node, "nothing"));
    pen_graph_set_int(graph, (pen_node_id){0}, "axis", 0);
    assert_int_equal(pen_node_int(node, "axis"), 0);
    pen_arena_destroy(arena);
}

static void types_are_inferred_at_once_where_known(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    int64_t batch, again, other;
    CHECK_OK(pen_graph_add_symbol(graph, "batch", &batch));
    CHECK_OK(pen_graph_add_symbol(graph, "length", &other));
    CHECK_OK(pen_graph_add_symbol(graph, "batch", &again));
    assert_true(batch == again && batch != other && batch < 0);
    assert_int_equal(pen_graph_symbol_count(graph), 2);
    assert_string_equal(pen_graph_symbol_name(graph, other), "length");
    assert_null(pen_graph_symbol_name(graph, 0));
    assert_null(pen_graph_symbol_name(graph, -3));
    assert_null(pen_graph_symbol_name(graph, INT64_MIN));
    const pen_tensor_type open = pen_tensor_type_make(PEN_FLOAT32, 2, (int64_t[]){batch, 3});
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &open);
    const pen_value_id y = graph_apply(graph, "tanh", "t", x, PEN_VALUE_NONE, PEN_VALUE_NONE);
    assert_int_equal(pen_value_type(graph, y)->element, PEN_ELEMENT_UNKNOWN);
    pen_graph_set_type(graph, x, &square);
    CHECK_OK(pen_graph_infer_node(graph, (pen_node_id){0}));
    assert_true(pen_tensor_type_equal(pen_value_type(graph, y), &square));
    pen_arena_destroy(arena);
}

static void errors_have_the_position_in_the_model(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const pen_tensor_type narrow = {PEN_FLOAT32, {2, {2, 3}}};
    const pen_value_id operands[2] = {graph_value_of(graph, "a", PEN_VALUE_INPUT, &square),
                                      graph_value_of(graph, "b", PEN_VALUE_INPUT, &narrow)};
    pen_node_spec spec = pen_node_spec_make("matmul", "fc2");
    pen_node_id node;
    spec.inputs = operands;
    spec.input_count = 2;
    spec.source = (pen_source){"mlp.yaml", 14, 5, 0};
    CHECK_ERROR(pen_graph_add_node(graph, &spec, &node), PEN_INVALID_INPUT,
                "mlp.yaml:14:5: error: matmul 'fc2'");
    pen_arena_destroy(arena);
}

static void optional_outputs_may_be_left_out(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &square);
    const char *const names[2] = {"", ""};
    pen_node_spec spec = pen_node_spec_make("dropout", "d");
    pen_node_id node;
    spec.inputs = &x;
    spec.input_count = 1;
    spec.output_count = 2;
    spec.output_names = names;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    const pen_node *added = pen_graph_node(graph, node);
    assert_true(pen_value_is(added->outputs[0]));  // the op must give it
    assert_false(pen_value_is(added->outputs[1])); // it need not
    assert_string_equal(pen_value_name(graph, added->outputs[0]), "d:0");
    spec.output_names = NULL;
    CHECK_OK(pen_graph_add_node(graph, &spec, &node));
    assert_true(pen_value_is(pen_graph_node(graph, node)->outputs[1]));
    pen_graph_drop_output(graph, node, 1);
    assert_int_equal(pen_graph_node(graph, node)->output_count, 1);
    pen_arena_destroy(arena);
}

static void constants_are_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    const struct {
        pen_element_type element;
        const void *data;
        int64_t expected[2];
    } cases[] = {
        {PEN_INT8, (const int8_t[]){-1, 127}, {-1, 127}},
        {PEN_UINT8, (const uint8_t[]){255, 1}, {255, 1}},
        {PEN_BOOL, (const uint8_t[]){0, 1}, {0, 1}},
        {PEN_INT16, (const int16_t[]){-300, 300}, {-300, 300}},
        {PEN_UINT16, (const uint16_t[]){65535, 0}, {65535, 0}},
        {PEN_INT32, (const int32_t[]){INT32_MIN, 7}, {INT32_MIN, 7}},
        {PEN_UINT32, (const uint32_t[]){UINT32_MAX, 7}, {UINT32_MAX, 7}},
        {PEN_INT64, (const int64_t[]){INT64_MIN, 7}, {INT64_MIN, 7}},
    };
    uint32_t count;
    const int64_t *integers;
    double number;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pen_tensor_type type = pen_tensor_type_make(cases[i].element, 1, (int64_t[]){2});
        pen_value_id value;
        CHECK_OK(pen_graph_constant(graph, "c", &type, cases[i].data, &value));
        CHECK_OK(pen_value_read_ints(graph, value, &count, &integers));
        assert_int_equal(count, 2);
        assert_memory_equal(integers, cases[i].expected, sizeof cases[i].expected);
        CHECK_ERROR(pen_value_read_number(graph, value, &number), PEN_INVALID_INPUT,
                    "expected one number");
    }
    static const pen_element_type numbers[] = {PEN_FLOAT32, PEN_FLOAT64, PEN_INT32, PEN_INT64,
                                               PEN_BOOL};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        pen_value_id value;
        CHECK_OK(pen_graph_constant_number(graph, "n", numbers[i], 1, &value));
        CHECK_OK(pen_value_read_number(graph, value, &number));
        assert_true(number == 1);
    }
    pen_value_id value;
    CHECK_OK(pen_graph_constant_number(graph, "half", PEN_FLOAT32, 0.5, &value));
    CHECK_ERROR(pen_value_read_ints(graph, value, &count, &integers), PEN_INVALID_INPUT,
                "expected a list of integers");
    CHECK_ERROR(pen_graph_constant_number(graph, "n", PEN_FLOAT16, 1, &value), PEN_UNSUPPORTED,
                "float16");
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &square);
    CHECK_ERROR(pen_value_read_ints(graph, x, &count, &integers), PEN_UNSUPPORTED,
                "'x' must be constant");
    pen_arena_destroy(arena);
}

static void refused_memory_is_an_error(void **state) {
    (void)state;
    for (uint64_t call = 1; call < 200; call++) {
        pen_arena *arena = check_arena();
        pen_memory_fail_at(call, 1);
        pen_graph *graph;
        pen_status status = pen_graph_create(arena, "test", &graph);
        pen_value_id last = PEN_VALUE_NONE;
        for (int i = 0; status == PEN_OK && i < 3000; i++) {
            const pen_value value = {.name = "v", .kind = PEN_VALUE_INPUT, .type = square};
            status = pen_graph_add_own_value(graph, &value, &last);
            pen_node_spec spec = pen_node_spec_make("tanh", "t");
            spec.inputs = &last;
            spec.input_count = 1;
            if (i % 10 == 0 && status == PEN_OK) status = pen_graph_add_simple(graph, &spec, &last);
        }
        pen_memory_fail_at(0, 0);
        pen_arena_destroy(arena);
        if (status == PEN_OK) {
            assert_true(call > 3);
            return;
        }
        CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
    }
    fail();
}

static void everything_has_a_word(void **state) {
    (void)state;
    assert_string_equal(pen_role_name(PEN_ROLE_BACKWARD_WEIGHT), "backward_weight");
    assert_string_equal(pen_value_kind_name(PEN_VALUE_STATE), "state");
    assert_string_equal(pen_attribute_kind_name(PEN_ATTRIBUTE_INTS), "a list of integers");
    pen_arena *arena = check_arena();
    pen_graph *graph = empty_graph(arena);
    assert_string_equal(pen_graph_name(graph), "test");
    assert_true(pen_graph_arena(graph) == arena);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(names_are_found), cmocka_unit_test(reserved_room_is_used),
              cmocka_unit_test(names_stay_unique), cmocka_unit_test(counts_of_operands_are_checked),
              cmocka_unit_test(attributes_follow_the_schema),
              cmocka_unit_test(types_are_inferred_at_once_where_known),
              cmocka_unit_test(errors_have_the_position_in_the_model),
              cmocka_unit_test(optional_outputs_may_be_left_out),
              cmocka_unit_test(constants_are_read), cmocka_unit_test(refused_memory_is_an_error),
              cmocka_unit_test(everything_has_a_word))
