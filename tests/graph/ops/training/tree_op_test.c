// Shapes of stacks, and what is refused. What they add up to:
// tests/scheduler/runtime/executor/executor_lanes_test.c.

#include "tests/support/op_check.h"

static op_case sum_of(pen_tensor_type type, int64_t first, int64_t end) {
    return (op_case){
        .op = "tree_sum",
        .input_count = 1,
        .inputs = {{.type = type}},
        .attribute_count = 2,
        .attributes = {pen_attribute_int("first", first), pen_attribute_int("end", end)}};
}

static op_case total_of(pen_tensor_type type, const int64_t *bounds, uint32_t bound_count) {
    return (op_case){.op = "tree_total",
                     .input_count = 1,
                     .inputs = {{.type = type}},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_ints("bounds", bound_count, bounds)}};
}

static void check_shape(const op_case *c, pen_tensor_type expected) {
    op_built built;
    CHECK_OK(op_build(c, &built));
    const pen_tensor_type *found = pen_value_type(built.graph, built.outputs[0]);
    assert_true(pen_tensor_type_equal(found, &expected));
    op_built_free(&built);
}

static void stacks_have_a_place_for_each_block(void **state) {
    (void)state;
    op_case c = sum_of(op_type(PEN_FLOAT32, 2, 3, 4), 0, 8);
    check_shape(&c, op_type(PEN_FLOAT32, 3, 3, 3, 4));
    c = sum_of(op_type(PEN_FLOAT64, 0), 3, 8);
    check_shape(&c, op_type(PEN_FLOAT64, 1, 3));
    const int64_t bounds[] = {0, 8};
    c = total_of(op_type(PEN_FLOAT32, 3, 3, 3, 4), bounds, 2);
    check_shape(&c, op_type(PEN_FLOAT32, 2, 3, 4));
    const int64_t parts[] = {0, 3, 8};
    c = total_of(op_type(PEN_FLOAT64, 2, 2, 5), parts, 3);
    c.input_count = 2;
    c.inputs[1].type = op_type(PEN_FLOAT64, 2, 3, 5);
    check_shape(&c, op_type(PEN_FLOAT64, 1, 5));
    c.inputs[1].type = op_type(PEN_FLOAT64, 2, 2, 5); // blocks alone: of lane 3, of 4 to 7
    check_shape(&c, op_type(PEN_FLOAT64, 1, 5));
    c = total_of(op_type(PEN_FLOAT32, 2, 1, 4), bounds, 2);
    check_shape(&c, op_type(PEN_FLOAT32, 1, 4));
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    op_case c = sum_of(op_type(PEN_INT64, 1, 3), 0, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "found int64, expected float32 or float64");
    c = sum_of(op_type(PEN_FLOAT32, 1, 3), 2, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "found lanes 2 up to 2, expected at least one");
    c = sum_of(op_type(PEN_FLOAT32, 1, 3), -1, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "found lanes -1 up to 2");
    c = sum_of(op_type(PEN_FLOAT32, 1, 3), 0, (int64_t)1 << 40);
    op_check_error(&c, PEN_INVALID_INPUT, "expected at least one");
    c = sum_of(op_type(PEN_FLOAT32, 8, 1, 1, 1, 1, 1, 1, 1, 1), 0, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "sums of 8 dimensions leave none for lanes");
    const int64_t bounds[] = {0, 8};
    c = total_of(op_type(PEN_FLOAT32, 2, 2, 4), bounds, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "stack 0 is float32[2,4], expected float32[3,4]");
    c = total_of(op_type(PEN_FLOAT32, 2, 3, 4), bounds, 1);
    op_check_error(&c, PEN_INVALID_INPUT, "found 1 bounds of lanes for 1 stacks");
    c = total_of(op_type(PEN_FLOAT32, 0), bounds, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "stack 0 is float32");
}

PEN_TEST_MAIN(cmocka_unit_test(stacks_have_a_place_for_each_block),
              cmocka_unit_test(what_does_not_fit_is_refused))
