#include "tests/support/dice.h"

// The case's output has this shape.
static void check_shape(const op_case *c, uint32_t rank, const int64_t *dims) {
    op_built built;
    char found[PEN_SHAPE_TEXT_BYTES], wanted[PEN_SHAPE_TEXT_BYTES];
    CHECK_OK(op_build(c, &built));
    const pen_tensor_type expected = pen_tensor_type_make(PEN_FLOAT64, rank, dims);
    pen_tensor_type_format(&expected, wanted);
    pen_tensor_type_format(pen_value_type(built.graph, built.outputs[0]), found);
    assert_string_equal(found, wanted);
    op_built_free(&built);
}

static op_case case_of(const char *op, const op_case_input *data, uint32_t count,
                       const int64_t *integers) {
    op_case c = {.op = op, .input_count = 2, .inputs = {*data, constant_ints(count, integers)}};
    return c;
}

static const op_case_input cube = {.type = {PEN_FLOAT64, {3, {2, 3, 4}}}};
static const op_case_input thin = {.type = {PEN_FLOAT64, {4, {1, 3, 1, 5}}}};
static const op_case_input hollow = {.type = {PEN_FLOAT64, {3, {0, 3, 4}}}};

static void reshapes(void **state) {
    (void)state;
    op_case c = case_of("reshape", &cube, 2, (const int64_t[]){4, 6});
    check_shape(&c, 2, (const int64_t[]){4, 6});
    c = case_of("reshape", &cube, 3, (const int64_t[]){0, -1, 2});
    check_shape(&c, 3, (const int64_t[]){2, 6, 2});
    c = case_of("reshape", &hollow, 3, (const int64_t[]){3, 0, 7});
    c.attributes[c.attribute_count++] = pen_attribute_int("allowzero", 1);
    check_shape(&c, 3, (const int64_t[]){3, 0, 7});
    c = case_of("reshape", &(op_case_input){.type = {PEN_FLOAT64, {1, {1}}}}, 0,
                (const int64_t[]){0});
    check_shape(&c, 0, NULL);
}

static void reshape_refuses(void **state) {
    (void)state;
    op_case c = case_of("reshape", &cube, 2, (const int64_t[]){4, 5});
    op_check_error(&c, PEN_INVALID_INPUT,
                   "reshape 'subject': cannot reshape [2,3,4], of 24 elements, to [4,5]");
    c = case_of("reshape", &cube, 2, (const int64_t[]){-1, -1});
    op_check_error(&c, PEN_INVALID_INPUT, "dimension 1 of the new shape is -1; one dimension");
    c = case_of("reshape", &cube, 2, (const int64_t[]){-2, 12});
    op_check_error(&c, PEN_INVALID_INPUT, "dimension 0 of the new shape is -2");
    c = case_of("reshape", &cube, 2, (const int64_t[]){-1, 5});
    op_check_error(&c, PEN_INVALID_INPUT, "cannot reshape [2,3,4], of 24 elements, to [?,5]");
    c = case_of("reshape", &cube, 4, (const int64_t[]){2, 3, 4, 0});
    op_check_error(&c, PEN_INVALID_INPUT, "dimension 3 of the new shape is 0 (copy), but the");
    c = case_of("reshape", &cube, 9, (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 24});
    op_check_error(&c, PEN_INVALID_INPUT, "9 dimensions, at most 8 are possible");
    c = case_of("reshape", &cube, 3, (const int64_t[]){INT64_MAX, 3, 1});
    op_check_error(&c, PEN_INVALID_INPUT, "the new shape is too large");
    c = case_of("reshape", &cube, 1, (const int64_t[]){24});
    c.inputs[1].is_constant = false;
    op_check_error(&c, PEN_UNSUPPORTED, "subject");
}

static void flattens(void **state) {
    (void)state;
    op_case c = {.op = "flatten", .input_count = 1, .inputs = {cube}};
    check_shape(&c, 2, (const int64_t[]){2, 12});
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_int("axis", -1);
    check_shape(&c, 2, (const int64_t[]){6, 4});
    c.attributes[0] = pen_attribute_int("axis", 0);
    check_shape(&c, 2, (const int64_t[]){1, 24});
    c.attributes[0] = pen_attribute_int("axis", 3);
    check_shape(&c, 2, (const int64_t[]){24, 1});
    c.attributes[0] = pen_attribute_int("axis", 4);
    op_check_error(&c, PEN_INVALID_INPUT, "flatten 'subject': axis 4 is outside of [-3, 3]");
}

static void squeezes(void **state) {
    (void)state;
    op_case c = {.op = "squeeze", .input_count = 1, .inputs = {thin}};
    check_shape(&c, 2, (const int64_t[]){3, 5});
    c = case_of("squeeze", &thin, 1, (const int64_t[]){-2});
    check_shape(&c, 3, (const int64_t[]){1, 3, 5});
    c = case_of("squeeze", &thin, 1, (const int64_t[]){1});
    op_check_error(&c, PEN_INVALID_INPUT, "axis 1 of [1,3,1,5] has 3 elements, only 1 can be");
    c = case_of("squeeze", &thin, 2, (const int64_t[]){0, -4});
    op_check_error(&c, PEN_INVALID_INPUT, "axis 0 is named twice");
    c = case_of("squeeze", &thin, 1, (const int64_t[]){4});
    op_check_error(&c, PEN_INVALID_INPUT, "axis 4 is outside of a tensor with 4 dimensions");
}

static void unsqueezes(void **state) {
    (void)state;
    op_case c = case_of("unsqueeze", &cube, 2, (const int64_t[]){-1, 0});
    check_shape(&c, 5, (const int64_t[]){1, 2, 3, 4, 1});
    c = case_of("unsqueeze", &cube, 2, (const int64_t[]){3, 1});
    check_shape(&c, 5, (const int64_t[]){2, 1, 3, 1, 4});
    c = case_of("unsqueeze", &cube, 1, (const int64_t[]){4});
    op_check_error(&c, PEN_INVALID_INPUT, "axis 4 is outside of a tensor with 4 dimensions");
    c = case_of("unsqueeze", &cube, 6, (const int64_t[]){0, 1, 2, 3, 4, 5});
    op_check_error(&c, PEN_INVALID_INPUT, "6 axes added to 3 dimensions are above the limit of 8");
}

static void keeps_elements(void **state) {
    (void)state;
    static const int16_t numbers[] = {5, -3, 2, 9, 0, 7};
    const double expected[] = {5, -3, 2, 9, 0, 7};
    op_case c =
        case_of("reshape", &(op_case_input){.type = {PEN_INT16, {2, {2, 3}}}, .data = numbers}, 2,
                (const int64_t[]){3, 2});
    op_check_values(&c, 0, expected, 6, 0);
    c.op = "identity";
    c.input_count = 1;
    op_check_values(&c, 0, expected, 6, 0);
    c.op = "stop_gradient";
    op_check_values(&c, 0, expected, 6, 0);
}

static void gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        dice d = {.seed = seed};
        op_case c = {.input_count = 1};
        int64_t integers[PEN_RANK_LIMIT] = {0};
        const uint32_t rank = (uint32_t)dice_between(&d, 1, 4);
        c.inputs[0] = dice_tensor(&d, rank, 3);
        switch (seed % 5) {
        case 0:
            c.op = "reshape";
            integers[0] = -1;
            c.inputs[c.input_count++] = constant_ints(1, integers);
            break;
        case 1:
            c.op = "flatten";
            c.attributes[c.attribute_count++] =
                pen_attribute_int("axis", dice_between(&d, 0, rank));
            break;
        case 2:
            c.op = "squeeze";
            break;
        case 3:
            c.op = "unsqueeze";
            integers[0] = dice_between(&d, -(int64_t)rank, rank);
            c.inputs[c.input_count++] = constant_ints(1, integers);
            break;
        case 4:
            c.op = "identity";
            break;
        }
        op_check_gradient(&c, seed);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(reshapes), cmocka_unit_test(reshape_refuses),
              cmocka_unit_test(flattens), cmocka_unit_test(squeezes), cmocka_unit_test(unsqueezes),
              cmocka_unit_test(keeps_elements), cmocka_unit_test(gradients))
