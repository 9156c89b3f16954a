#include "graph/passes/infer_shapes.h"

#include "base/limits.h"
#include "device/reference/reference_evaluate.h"
#include "graph/op.h"
#include "tests/support/random_graph.h"

typedef struct shaped_graph {
    pen_arena *arena;
    pen_graph *graph;
    pen_value_id x; // float32[batch, 3, width]
} shaped_graph;

static shaped_graph shaped_graph_make(void) {
    shaped_graph s = {.arena = check_arena()};
    int64_t batch, width;
    CHECK_OK(pen_graph_create(s.arena, "shaped", &s.graph));
    CHECK_OK(pen_graph_add_symbol(s.graph, "batch", &batch));
    CHECK_OK(pen_graph_add_symbol(s.graph, "width", &width));
    const pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, 3, (int64_t[]){batch, 3, width});
    s.x = graph_value_of(s.graph, "x", PEN_VALUE_INPUT, &type);
    return s;
}

static pen_status infer(const shaped_graph *s, int64_t batch, int64_t width, bool fold) {
    const pen_symbol_binding bindings[2] = {{"batch", batch}, {"width", width}};
    const pen_infer_options options = {
        .bindings = bindings, .binding_count = 2, .evaluate = fold ? pen_reference_evaluate : NULL};
    return pen_infer_shapes(s->graph, &options);
}

static pen_value_id apply(const shaped_graph *s, const char *op, const char *name, pen_value_id a,
                          pen_value_id b) {
    return graph_apply(s->graph, op, name, a, b, PEN_VALUE_NONE);
}

static void symbols_are_bound(void **state) {
    (void)state;
    shaped_graph s = shaped_graph_make();
    const pen_value_id y = apply(&s, "tanh", "t", s.x, PEN_VALUE_NONE);
    CHECK_OK(infer(&s, 5, 7, false));
    const pen_tensor_type expected = {PEN_FLOAT32, {3, {5, 3, 7}}};
    assert_true(pen_tensor_type_equal(pen_value_type(s.graph, s.x), &expected));
    assert_true(pen_tensor_type_equal(pen_value_type(s.graph, y), &expected));
    pen_arena_destroy(s.arena);
}

static void symbols_without_a_size_are_named(void **state) {
    (void)state;
    shaped_graph s = shaped_graph_make();
    const pen_symbol_binding bindings[1] = {{"batch", 5}};
    const pen_infer_options options = {.bindings = bindings, .binding_count = 1};
    CHECK_ERROR(pen_infer_shapes(s.graph, &options), PEN_INVALID_INPUT,
                "dimension 2 of input 'x' is 'width'");
    pen_arena_destroy(s.arena);
    s = shaped_graph_make();
    CHECK_ERROR(infer(&s, INT64_MAX, INT64_MAX, false), PEN_INVALID_INPUT, "as input 'x'");
    pen_arena_destroy(s.arena);
}

// x.reshape(x.shape[0], -1), as exporters write it.
static void shape_arithmetic_is_folded(void **state) {
    (void)state;
    shaped_graph s = shaped_graph_make();
    const int64_t minus_one = -1;
    pen_value_id zero, rest;
    CHECK_OK(pen_graph_constant_number(s.graph, "zero", PEN_INT64, 0, &zero));
    CHECK_OK(pen_graph_constant_ints(s.graph, "rest", 1, &minus_one, &rest));
    const pen_value_id shape = apply(&s, "shape", "shape", s.x, PEN_VALUE_NONE);
    const pen_value_id count = apply(&s, "gather", "gather", shape, zero);
    pen_value_id axes;
    CHECK_OK(pen_graph_constant_ints(s.graph, "axes", 1, (int64_t[]){0}, &axes));
    const pen_value_id listed = apply(&s, "unsqueeze", "unsqueeze", count, axes);
    pen_node_spec spec = pen_node_spec_make("concat", "concat");
    const pen_attribute_given axis = pen_attribute_int("axis", 0);
    const pen_value_id operands[2] = {listed, rest};
    spec.inputs = operands;
    spec.input_count = 2;
    spec.attributes = &axis;
    spec.attribute_count = 1;
    pen_value_id target;
    CHECK_OK(pen_graph_add_simple(s.graph, &spec, &target));
    const pen_value_id y = apply(&s, "reshape", "reshape", s.x, target);
    CHECK_OK(infer(&s, 5, 7, true));
    assert_int_equal(pen_graph_value(s.graph, target)->kind, PEN_VALUE_CONSTANT);
    uint32_t length;
    const int64_t *dims;
    CHECK_OK(pen_value_read_ints(s.graph, target, &length, &dims));
    assert_int_equal(length, 2);
    assert_true(dims[0] == 5 && dims[1] == -1);
    const pen_tensor_type expected = {PEN_FLOAT32, {2, {5, 21}}};
    assert_true(pen_tensor_type_equal(pen_value_type(s.graph, y), &expected));
    assert_int_equal(pen_graph_value(s.graph, y)->kind, PEN_VALUE_COMPUTED);
    pen_arena_destroy(s.arena);
}

static void shapes_that_depend_on_data_are_refused(void **state) {
    (void)state;
    shaped_graph s = shaped_graph_make();
    const pen_tensor_type type = {PEN_INT64, {1, {2}}};
    const pen_value_id target = graph_value_of(s.graph, "target", PEN_VALUE_INPUT, &type);
    const pen_value_id same = apply(&s, "identity", "same", target, PEN_VALUE_NONE);
    apply(&s, "reshape", "reshape", s.x, same);
    CHECK_ERROR(infer(&s, 5, 7, true), PEN_UNSUPPORTED,
                "reshape 'reshape': its input 'same:0' steers shapes, but depends on data");
    pen_arena_destroy(s.arena);
}

static void large_results_are_not_folded(void **state) {
    (void)state;
    shaped_graph s = shaped_graph_make();
    pen_value_id small, large;
    const int64_t small_dims[1] = {1000}, large_dims[2] = {PEN_FOLD_BYTES_LIMIT / 4, 2};
    CHECK_OK(pen_graph_constant_ints(s.graph, "small", 1, small_dims, &small));
    CHECK_OK(pen_graph_constant_ints(s.graph, "large", 2, large_dims, &large));
    const pen_value_id folded = apply(&s, "constant_of_shape", "few", small, PEN_VALUE_NONE);
    const pen_value_id kept = apply(&s, "constant_of_shape", "many", large, PEN_VALUE_NONE);
    CHECK_OK(infer(&s, 1, 1, true));
    assert_int_equal(pen_graph_value(s.graph, folded)->kind, PEN_VALUE_CONSTANT);
    assert_int_equal(pen_graph_value(s.graph, kept)->kind, PEN_VALUE_COMPUTED);
    pen_arena_destroy(s.arena);
}

// Parameters change: what is computed from them is no constant. Nor is what random ops give.
static void only_constants_are_folded(void **state) {
    (void)state;
    shaped_graph s = shaped_graph_make();
    const pen_tensor_type type = {PEN_FLOAT32, {0, {0}}};
    const pen_value_id w = graph_value_of(s.graph, "w", PEN_VALUE_PARAMETER, &type);
    pen_value_id two;
    CHECK_OK(pen_graph_constant_number(s.graph, "two", PEN_FLOAT32, 2, &two));
    const pen_value_id product = apply(&s, "mul", "product", w, two);
    const pen_value_id square = apply(&s, "mul", "square", two, two);
    const pen_value_id noisy = apply(&s, "dropout", "noisy", two, PEN_VALUE_NONE);
    CHECK_OK(infer(&s, 1, 1, true));
    assert_int_equal(pen_graph_value(s.graph, product)->kind, PEN_VALUE_COMPUTED);
    assert_int_equal(pen_graph_value(s.graph, noisy)->kind, PEN_VALUE_COMPUTED);
    double number;
    CHECK_OK(pen_value_read_number(s.graph, square, &number));
    assert_true(number == 4);
    pen_arena_destroy(s.arena);
}

static void mismatches_name_the_node(void **state) {
    (void)state;
    shaped_graph s = shaped_graph_make();
    const pen_tensor_type type = {PEN_FLOAT32, {1, {6}}};
    const pen_value_id w = graph_value_of(s.graph, "w", PEN_VALUE_PARAMETER, &type);
    apply(&s, "add", "bias", s.x, w);
    CHECK_ERROR(infer(&s, 2, 7, true), PEN_INVALID_INPUT, "add 'bias'");
    pen_arena_destroy(s.arena);
}

PEN_TEST_MAIN(cmocka_unit_test(symbols_are_bound),
              cmocka_unit_test(symbols_without_a_size_are_named),
              cmocka_unit_test(shape_arithmetic_is_folded),
              cmocka_unit_test(shapes_that_depend_on_data_are_refused),
              cmocka_unit_test(large_results_are_not_folded),
              cmocka_unit_test(only_constants_are_folded),
              cmocka_unit_test(mismatches_name_the_node))
