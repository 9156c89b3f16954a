
#include "tests/support/dice.h"

static const double counted[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static op_case_input counting(uint32_t rank, const int64_t *dims) {
    return (op_case_input){.type = pen_tensor_type_make(PEN_FLOAT64, rank, dims), .data = counted};
}

// slice of `data` along one axis.
static op_case slice_case(const op_case_input *data, const int64_t numbers[4]) {
    op_case c = {.op = "slice", .input_count = 5, .inputs = {*data}};
    for (uint32_t i = 0; i < 4; i++) {
        c.inputs[1 + i] = constant_ints(1, &numbers[i]);
    }
    return c;
}

static void slices(void **state) {
    (void)state;
    const op_case_input row = counting(1, (const int64_t[]){6});
    op_case c = slice_case(&row, (const int64_t[]){1, 4, 0, 1});
    op_check_values(&c, 0, (const double[]){1, 2, 3}, 3, 0);
    c = slice_case(&row, (const int64_t[]){-2, INT64_MAX, -1, 1});
    op_check_values(&c, 0, (const double[]){4, 5}, 2, 0);
    c = slice_case(&row, (const int64_t[]){INT64_MAX, INT64_MIN, 0, -2});
    op_check_values(&c, 0, (const double[]){5, 3, 1}, 3, 0);
    c = slice_case(&row, (const int64_t[]){INT64_MIN, INT64_MAX, 0, INT64_MAX});
    op_check_values(&c, 0, (const double[]){0}, 1, 0);
    c = slice_case(&row, (const int64_t[]){-1, INT64_MIN, 0, INT64_MIN});
    op_check_values(&c, 0, (const double[]){5}, 1, 0);
    c = slice_case(&row, (const int64_t[]){4, 1, 0, 1});
    op_check_values(&c, 0, NULL, 0, 0);
    c = slice_case(&row, (const int64_t[]){0, 3, 0, -1});
    op_check_values(&c, 0, NULL, 0, 0);
    const op_case_input table = counting(2, (const int64_t[]){3, 4});
    op_case both = {
        .op = "slice",
        .input_count = 3,
        .inputs = {table, constant_ints(2, (const int64_t[]){1, 2}),
                   constant_ints(2, (const int64_t[]){3, -1})},
    };
    op_check_values(&both, 0, (const double[]){6, 10}, 2, 0);
}

static void slice_refuses(void **state) {
    (void)state;
    const op_case_input row = counting(1, (const int64_t[]){6});
    op_case c = slice_case(&row, (const int64_t[]){1, 4, 0, 0});
    op_check_error(&c, PEN_INVALID_INPUT, "slice 'subject': the step along axis 0 is 0");
    c = slice_case(&row, (const int64_t[]){1, 4, 1, 1});
    op_check_error(&c, PEN_INVALID_INPUT, "axis 1 is outside of a tensor with 1 dimensions");
    c.inputs[2] = constant_ints(2, (const int64_t[]){1, 1});
    op_check_error(&c, PEN_INVALID_INPUT, "ends has 2 numbers, but starts has 1");
    static const int64_t zeros[] = {0, 0};
    op_case twice = {
        .op = "slice",
        .input_count = 4,
        .inputs = {row, constant_ints(2, zeros), constant_ints(2, zeros), constant_ints(2, zeros)}};
    op_check_error(&twice, PEN_INVALID_INPUT, "axis 0 is named twice");
}

static op_case pad_case(const op_case_input *data, const char *mode, uint32_t count,
                        const int64_t *pads) {
    return (op_case){.op = "pad",
                     .input_count = 2,
                     .inputs = {*data, constant_ints(count, pads)},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_text("mode", mode)}};
}

static void pads(void **state) {
    (void)state;
    const op_case_input row = counting(1, (const int64_t[]){3});
    op_case c = pad_case(&row, "reflect", 2, (const int64_t[]){3, 6});
    op_check_values(&c, 0, (const double[]){1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0}, 12, 0);
    c = pad_case(&row, "edge", 2, (const int64_t[]){2, 1});
    op_check_values(&c, 0, (const double[]){0, 0, 0, 1, 2, 2}, 6, 0);
    c = pad_case(&row, "constant", 2, (const int64_t[]){1, -1});
    op_check_values(&c, 0, (const double[]){0, 0, 1}, 3, 0);
    static const double seven = 7;
    c.input_count = 3;
    c.inputs[2] = (op_case_input){.type = {PEN_FLOAT64, {0, {0}}}, .data = &seven};
    c.inputs[1] = constant_ints(2, (const int64_t[]){-1, 2});
    op_check_values(&c, 0, (const double[]){1, 2, 7, 7}, 4, 0);
    const op_case_input table = counting(2, (const int64_t[]){2, 2});
    c = pad_case(&table, "constant", 4, (const int64_t[]){1, 0, 0, 1});
    op_check_values(&c, 0, (const double[]){0, 0, 0, 0, 1, 0, 2, 3, 0}, 9, 0);
}

static void pad_refuses(void **state) {
    (void)state;
    const op_case_input row = counting(1, (const int64_t[]){3});
    op_case c = pad_case(&row, "wrap", 2, (const int64_t[]){1, 1});
    op_check_error(&c, PEN_INVALID_INPUT, "mode is 'wrap'; there are constant, reflect, edge");
    c = pad_case(&row, "constant", 3, (const int64_t[]){1, 1, 1});
    op_check_error(&c, PEN_INVALID_INPUT, "pads has 3 numbers, 1 dimensions need 2");
    c = pad_case(&row, "constant", 2, (const int64_t[]){-2, -2});
    op_check_error(&c, PEN_INVALID_INPUT, "pads of -2 and -2 do not fit dimension 0, of 3");
    c = pad_case(&row, "constant", 2, (const int64_t[]){INT64_MIN, INT64_MAX});
    op_check_error(&c, PEN_INVALID_INPUT, "do not fit dimension 0, of 3");
    const op_case_input nothing = counting(1, (const int64_t[]){0});
    c = pad_case(&nothing, "edge", 2, (const int64_t[]){1, 1});
    op_check_error(&c, PEN_INVALID_INPUT, "mode 'edge' has nothing to repeat");
    c = pad_case(&row, "constant", 2, (const int64_t[]){1, 1});
    c.input_count = 3;
    c.inputs[2] = row;
    op_check_error(&c, PEN_INVALID_INPUT, "the constant value has shape [3], it must be one");
}

static void slice_gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        dice d = {.seed = seed};
        const uint32_t rank = (uint32_t)dice_between(&d, 1, 3);
        const uint32_t count = (uint32_t)dice_between(&d, 1, rank);
        op_case c = {.op = "slice", .input_count = 5, .inputs = {dice_tensor(&d, rank, 5)}};
        int64_t integers[4][3];
        for (uint32_t i = 0; i < count; i++) {
            integers[0][i] = dice_between(&d, -6, 6);
            integers[1][i] = dice_between(&d, -6, 6);
            integers[2][i] = dice_between(&d, 0, 1) == 1 ? i : (int64_t)i - rank;
            integers[3][i] = dice_between(&d, 1, 3) * (dice_between(&d, 0, 1) * 2 - 1);
        }
        for (uint32_t i = 0; i < 4; i++) {
            c.inputs[1 + i] = constant_ints(count, integers[i]);
        }
        if (dice_between(&d, 0, 3) == 0) c.inputs[3].is_absent = true;
        if (dice_between(&d, 0, 3) == 0) c.input_count = 4;
        op_check_gradient(&c, seed);
    }
}

static void pad_gradients(void **state) {
    (void)state;
    static const char *const modes[] = {"constant", "reflect", "edge"};
    for (uint64_t seed = 0; seed < 120; seed++) {
        dice d = {.seed = 1000 + seed};
        const uint32_t rank = (uint32_t)dice_between(&d, 1, 3);
        const op_case_input data = dice_tensor(&d, rank, 4);
        int64_t numbers[6];
        for (uint32_t i = 0; i < rank; i++) {
            numbers[i] = dice_between(&d, -1, 3);
            numbers[rank + i] = dice_between(&d, numbers[i] < 0 ? 0 : -1, 3);
        }
        op_case c = pad_case(&data, modes[seed % 3], 2 * rank, numbers);
        if (seed % 3 == 0 && dice_between(&d, 0, 1) == 1) {
            c.input_count = 3;
            c.inputs[2] = dice_tensor(&d, (uint32_t)dice_between(&d, 0, 1), 1);
        }
        op_check_gradient(&c, seed);
    }
}

static void put_position(void **state) {
    (void)state;
    static const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, part[] = {-1, -2, -3, -4};
    static const int64_t second = 1, beyond = 3, before = -1;
    op_case c = {.op = "put_position",
                 .input_count = 3,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 3, 2, 3, 2), .data = x},
                            {.type = op_type(PEN_FLOAT64, 3, 2, 1, 2), .data = part},
                            {.type = op_type(PEN_INT64, 1, 1), .data = &second}},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_int("axis", -2)}};
    op_check_values(&c, 0, (const double[]){1, 2, -1, -2, 5, 6, 7, 8, -3, -4, 11, 12}, 12, 0);
    const int64_t *const outside[] = {&beyond, &before};
    for (int i = 0; i < 2; i++) {
        op_built built;
        run_graph run;
        c.inputs[2].data = outside[i];
        CHECK_OK(op_build(&c, &built));
        CHECK_OK(run_graph_init(&run, built.graph, built.arena));
        op_fill(&c, &built, 1, &run);
        CHECK_ERROR(run_graph_all(&run), PEN_INVALID_INPUT, "is outside of 3");
        op_built_free(&built);
    }
    c.inputs[1].type = op_type(PEN_FLOAT64, 3, 2, 2, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "[2,1,2]");
    c.attributes[0] = pen_attribute_int("axis", 3);
    op_check_error(&c, PEN_INVALID_INPUT, "axis 3 is outside");
}

PEN_TEST_MAIN(cmocka_unit_test(put_position), cmocka_unit_test(slices),
              cmocka_unit_test(slice_refuses), cmocka_unit_test(pads),
              cmocka_unit_test(pad_refuses), cmocka_unit_test(slice_gradients),
              cmocka_unit_test(pad_gradients))
