#include "graph/tensor_type.h"

#include "tests/support/check.h"

static void counts_and_bytes(void **state) {
    (void)state;
    const pen_tensor_type scalar = {PEN_FLOAT64, {0, {0}}};
    assert_int_equal(pen_shape_element_count(&scalar.shape), 1);
    assert_int_equal(pen_tensor_type_bytes(&scalar), 8);
    const pen_tensor_type type = {PEN_INT16, {3, {2, 3, 5}}};
    assert_int_equal(pen_shape_element_count(&type.shape), 30);
    assert_int_equal(pen_shape_count(&type.shape, 1, 3), 15);
    assert_int_equal(pen_shape_count(&type.shape, 2, 2), 1);
    assert_int_equal(pen_tensor_type_bytes(&type), 60);
    const pen_tensor_type empty = {PEN_INT16, {2, {0, 7}}};
    assert_int_equal(pen_tensor_type_bytes(&empty), 0);
}

static pen_status check_dims(pen_element_type element, uint32_t rank, int64_t a, int64_t b) {
    const pen_tensor_type type = {element, {rank, {a, b}}};
    return pen_tensor_type_check(&type);
}

static void limits_are_checked(void **state) {
    (void)state;
    CHECK_OK(check_dims(PEN_FLOAT32, 2, 1 << 20, 1 << 20));
    CHECK_OK(check_dims(PEN_UINT8, 1, (int64_t)PEN_TENSOR_BYTES_LIMIT, 0));
    CHECK_ERROR(check_dims(PEN_UINT8, 1, (int64_t)PEN_TENSOR_BYTES_LIMIT + 1, 0), PEN_INVALID_INPUT,
                "above the limit");
    CHECK_ERROR(check_dims(PEN_FLOAT64, 1, (int64_t)PEN_TENSOR_BYTES_LIMIT / 8 + 1, 0),
                PEN_INVALID_INPUT, "above the limit");
    CHECK_ERROR(check_dims(PEN_UINT8, 2, INT64_MAX, INT64_MAX), PEN_INVALID_INPUT,
                "above the limit");
    // a dimension of 0 hides nothing
    CHECK_ERROR(check_dims(PEN_UINT8, 2, 0, INT64_MAX), PEN_INVALID_INPUT, "above the limit");
    CHECK_OK(check_dims(PEN_UINT8, 2, 0, 5));
    CHECK_ERROR(check_dims(PEN_UINT8, 2, 3, -1), PEN_INVALID_INPUT, "dimension 1 of [3,?]");
    CHECK_ERROR(check_dims(PEN_UINT8, PEN_RANK_LIMIT + 1, 1, 1), PEN_INVALID_INPUT, "rank 9");
}

static void axes_count_from_both_ends(void **state) {
    (void)state;
    uint32_t axis;
    for (int64_t i = 0; i < 3; i++) {
        CHECK_OK(pen_shape_axis(3, i, &axis));
        assert_int_equal(axis, i);
        CHECK_OK(pen_shape_axis(3, i - 3, &axis));
        assert_int_equal(axis, i);
    }
    CHECK_ERROR(pen_shape_axis(3, 3, &axis), PEN_INVALID_INPUT, "axis 3");
    CHECK_ERROR(pen_shape_axis(3, -4, &axis), PEN_INVALID_INPUT, "axis -4");
    CHECK_ERROR(pen_shape_axis(0, 0, &axis), PEN_INVALID_INPUT, "0 dimensions");
    CHECK_ERROR(pen_shape_axis(3, INT64_MIN, &axis), PEN_INVALID_INPUT, "axis");
}

static void shapes_broadcast(void **state) {
    (void)state;
    const pen_shape a = {3, {2, 1, 5}}, b = {2, {4, 1}}, scalar = {0, {0}}, empty = {1, {0}};
    pen_shape found;
    CHECK_OK(pen_shape_broadcast(&a, &b, &found));
    assert_true(pen_shape_equal(&found, &(pen_shape){3, {2, 4, 5}}));
    CHECK_OK(pen_shape_broadcast(&scalar, &a, &found));
    assert_true(pen_shape_equal(&found, &a));
    CHECK_OK(pen_shape_broadcast(&empty, &(pen_shape){1, {1}}, &found));
    assert_true(pen_shape_equal(&found, &empty));
    CHECK_ERROR(pen_shape_broadcast(&a, &(pen_shape){1, {4}}, &found), PEN_INVALID_INPUT,
                "[2,1,5] and [4]");
    CHECK_ERROR(pen_shape_broadcast(&empty, &(pen_shape){1, {2}}, &found), PEN_INVALID_INPUT,
                "[0] and [2]");
}

static void types_compare_and_print(void **state) {
    (void)state;
    const pen_tensor_type a = pen_tensor_type_make(PEN_FLOAT32, 2, (int64_t[]){32, 512});
    pen_tensor_type b = a;
    assert_true(pen_tensor_type_equal(&a, &b));
    b.shape.dims[5] = 7; // beyond the rank
    assert_true(pen_tensor_type_equal(&a, &b));
    b.element = PEN_INT32;
    assert_false(pen_tensor_type_equal(&a, &b));
    b = a;
    b.shape.rank = 1;
    assert_false(pen_tensor_type_equal(&a, &b));
    char text[PEN_SHAPE_TEXT_BYTES];
    assert_string_equal(pen_tensor_type_format(&a, text), "float32[32,512]");
    assert_string_equal(pen_shape_format(&(pen_shape){0, {0}}, text), "[]");
    pen_tensor_type longest = {PEN_BFLOAT16, {PEN_RANK_LIMIT, {0}}};
    for (int i = 0; i < PEN_RANK_LIMIT; i++) {
        longest.shape.dims[i] = INT64_MAX - i;
    }
    pen_tensor_type_format(&longest, text);
    assert_non_null(strstr(text, "9223372036854775800]"));
}

PEN_TEST_MAIN(cmocka_unit_test(counts_and_bytes), cmocka_unit_test(limits_are_checked),
              cmocka_unit_test(axes_count_from_both_ends), cmocka_unit_test(shapes_broadcast),
              cmocka_unit_test(types_compare_and_print))
