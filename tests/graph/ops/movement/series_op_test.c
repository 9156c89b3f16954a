#include "tests/support/dice.h"

static const double counted[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static op_case_input counting(uint32_t rank, const int64_t *dims) {
    return (op_case_input){.type = pen_tensor_type_make(PEN_FLOAT64, rank, dims), .data = counted};
}

static op_case_input integer(const int64_t *value) {
    return (op_case_input){
        .type = pen_tensor_type_make(PEN_INT64, 0, NULL), .data = value, .is_constant = true};
}

static void triangles(void **state) {
    (void)state;
    static const int64_t one = 1, below = -1, far = INT64_MAX;
    op_case c = {.op = "trilu", .input_count = 2, .inputs = {counting(2, (const int64_t[]){3, 3})}};
    c.inputs[1].is_absent = true;
    op_check_values(&c, 0, (const double[]){1, 2, 3, 0, 5, 6, 0, 0, 9}, 9, 0);
    c.inputs[1] = integer(&one);
    op_check_values(&c, 0, (const double[]){0, 2, 3, 0, 0, 6, 0, 0, 0}, 9, 0);
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_int("upper", 0);
    op_check_values(&c, 0, (const double[]){1, 2, 0, 4, 5, 6, 7, 8, 9}, 9, 0);
    c.inputs[1] = integer(&below);
    op_check_values(&c, 0, (const double[]){0, 0, 0, 4, 0, 0, 7, 8, 0}, 9, 0);
    c.inputs[1] = integer(&far);
    op_check_values(&c, 0, (const double[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, 9, 0);
    c.inputs[0].type.shape.rank = 1;
    op_check_error(&c, PEN_INVALID_INPUT, "the input has 1 dimensions, at least 2 are needed");
}

static void running_sums(void **state) {
    (void)state;
    static const int64_t rows = 0, columns = -1, beyond = 2;
    op_case c = {.op = "cum_sum",
                 .input_count = 2,
                 .inputs = {counting(2, (const int64_t[]){2, 3}), integer(&columns)}};
    op_check_values(&c, 0, (const double[]){1, 3, 6, 4, 9, 15}, 6, 0);
    c.attribute_count = 2;
    c.attributes[0] = pen_attribute_int("exclusive", 1);
    c.attributes[1] = pen_attribute_int("reverse", 0);
    op_check_values(&c, 0, (const double[]){0, 1, 3, 0, 4, 9}, 6, 0);
    c.attributes[1] = pen_attribute_int("reverse", 1);
    op_check_values(&c, 0, (const double[]){5, 3, 0, 11, 6, 0}, 6, 0);
    c.inputs[1] = integer(&rows);
    c.attributes[0] = pen_attribute_int("exclusive", 0);
    op_check_values(&c, 0, (const double[]){5, 7, 9, 4, 5, 6}, 6, 0);
    c.inputs[1] = integer(&beyond);
    op_check_error(&c, PEN_INVALID_INPUT, "axis 2 is outside of a tensor with 2 dimensions");
}

static void reversed_sequences(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, 3}, wrong[] = {1, 4};
    const int64_t two = 2;
    op_case c = {
        .op = "reverse_sequence",
        .input_count = 2,
        .inputs = {counting(2, (const int64_t[]){3, 2}),
                   {.type = pen_tensor_type_make(PEN_INT64, 1, &two), .data = lengths}},
    };
    op_check_values(&c, 0, (const double[]){1, 6, 3, 4, 5, 2}, 6, 0);
    c.inputs[1].data = wrong;
    op_built built;
    run_graph run;
    CHECK_OK(op_build(&c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(&c, &built, 1, &run);
    CHECK_ERROR(run_graph_all(&run), PEN_INVALID_INPUT, "length 4 at position 1 is not 0 to 3");
    op_built_free(&built);
    c.inputs[1].type.shape.dims[0] = 3;
    op_check_error(&c, PEN_INVALID_INPUT, "the lengths have shape [3], they must have one of 2");
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_int("batch_axis", 0);
    op_check_error(&c, PEN_INVALID_INPUT, "batch_axis and time_axis are both 0");
}

static void gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        dice d = {.seed = seed};
        const int64_t number = dice_between(&d, -2, 2);
        op_case c = {.op = "trilu",
                     .input_count = 2,
                     .inputs = {dice_tensor(&d, 3, 3), integer(&number)},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_int("upper", dice_between(&d, 0, 1))}};
        op_check_gradient(&c, seed);
        c.op = "cum_sum";
        c.attribute_count = 2;
        c.attributes[0] = pen_attribute_int("exclusive", dice_between(&d, 0, 1));
        c.attributes[1] = pen_attribute_int("reverse", dice_between(&d, 0, 1));
        op_check_gradient(&c, seed);
    }
    static const int64_t lengths[] = {2, 0, 3};
    op_case c = {.op = "reverse_sequence",
                 .input_count = 2,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 3, 3, 3, 2)},
                            {.type = op_type(PEN_INT64, 1, 3), .data = lengths}}};
    op_check_gradient(&c, 1);
}

PEN_TEST_MAIN(cmocka_unit_test(triangles), cmocka_unit_test(running_sums),
              cmocka_unit_test(reversed_sequences), cmocka_unit_test(gradients))
