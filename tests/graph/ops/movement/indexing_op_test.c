#include "tests/support/dice.h"

static const double counted[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static op_case_input counting(uint32_t rank, const int64_t *dims) {
    return (op_case_input){.type = pen_tensor_type_make(PEN_FLOAT64, rank, dims), .data = counted};
}

static op_case_input indices_of(uint32_t rank, const int64_t *dims, const int64_t *integers) {
    return (op_case_input){.type = pen_tensor_type_make(PEN_INT64, rank, dims), .data = integers};
}

// Building the case works; running it fails with `text`.
static void check_run_error(const op_case *c, const char *text) {
    op_built built;
    run_graph run;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(c, &built, 1, &run);
    CHECK_ERROR(run_graph_all(&run), PEN_INVALID_INPUT, text);
    op_built_free(&built);
}

static void gathers(void **state) {
    (void)state;
    op_case c = {
        .op = "gather",
        .input_count = 2,
        .inputs = {counting(2, (const int64_t[]){3, 2}),
                   indices_of(2, (const int64_t[]){1, 2}, (const int64_t[]){-1, 0})},
    };
    op_check_values(&c, 0, (const double[]){4, 5, 0, 1}, 4, 0);
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_int("axis", -1);
    op_check_values(&c, 0, (const double[]){1, 0, 3, 2, 5, 4}, 6, 0);
    c.inputs[1] = indices_of(0, NULL, (const int64_t[]){1});
    op_check_values(&c, 0, (const double[]){1, 3, 5}, 3, 0);
    c.inputs[1] = indices_of(1, (const int64_t[]){2}, (const int64_t[]){1, 2});
    check_run_error(&c, "gather 'subject': index 2 at position 1 is outside of [-2, 2)");
    c.inputs[1] = indices_of(1, (const int64_t[]){1}, (const int64_t[]){-3});
    check_run_error(&c, "gather 'subject': index -3 at position 0 is outside of [-2, 2)");
    c.inputs[1].type.element = PEN_FLOAT64;
    op_check_error(&c, PEN_INVALID_INPUT, "the indices are float64, they must be int32 or int64");
    c.inputs[1].type.element = PEN_INT64;
    c.inputs[0].type.shape.rank = 0;
    op_check_error(&c, PEN_INVALID_INPUT, "axis -1 is outside of a tensor with 0 dimensions");
}

static void picks_elements(void **state) {
    (void)state;
    op_case c = {
        .op = "gather_elements",
        .input_count = 2,
        .inputs = {counting(2, (const int64_t[]){3, 3}),
                   indices_of(2, (const int64_t[]){2, 3}, (const int64_t[]){1, 2, 0, -1, 0, 0})},
    };
    op_check_values(&c, 0, (const double[]){3, 7, 2, 6, 1, 2}, 6, 0);
    c.inputs[1].type.shape.dims[1] = 4;
    op_check_error(&c, PEN_INVALID_INPUT,
                   "indices of shape [2,4] do not lie within data of shape [3,3] (axis 0)");
    op_case scatter = {
        .op = "scatter_elements",
        .input_count = 3,
        .inputs = {counting(2, (const int64_t[]){1, 5}),
                   indices_of(2, (const int64_t[]){1, 2}, (const int64_t[]){1, -2}),
                   counting(2, (const int64_t[]){1, 2})},
        .attribute_count = 2,
        .attributes = {pen_attribute_int("axis", 1), pen_attribute_text("reduction", "none")},
    };
    op_check_values(&scatter, 0, (const double[]){0, 0, 2, 1, 4}, 5, 0);
    scatter.attributes[1] = pen_attribute_text("reduction", "add");
    op_check_values(&scatter, 0, (const double[]){0, 1, 2, 4, 4}, 5, 0);
    scatter.attributes[1] = pen_attribute_text("reduction", "mul");
    op_check_values(&scatter, 0, (const double[]){0, 0, 2, 3, 4}, 5, 0);
    scatter.attributes[1] = pen_attribute_text("reduction", "max");
    op_check_values(&scatter, 0, (const double[]){0, 1, 2, 3, 4}, 5, 0);
    scatter.attributes[1] = pen_attribute_text("reduction", "min");
    op_check_values(&scatter, 0, (const double[]){0, 0, 2, 1, 4}, 5, 0);
    scatter.attributes[1] = pen_attribute_text("reduction", "mean");
    op_check_error(&scatter, PEN_INVALID_INPUT,
                   "reduction is 'mean'; there are none, add, mul, max, min");
    scatter.attributes[1] = pen_attribute_text("reduction", "none");
    scatter.inputs[2].type.shape.dims[1] = 3;
    op_check_error(&scatter, PEN_INVALID_INPUT, "updates has shape [1,3], it must have [1,2]");
}

static void scatters_integers(void **state) {
    (void)state;
    static const uint8_t bytes[] = {250, 3};
    static const uint8_t updates[] = {10, 2};
    op_case c = {
        .op = "scatter_elements",
        .input_count = 3,
        .inputs = {{.type = {PEN_UINT8, {1, {2}}}, .data = bytes},
                   indices_of(1, (const int64_t[]){2}, (const int64_t[]){0, 1}),
                   {.type = {PEN_UINT8, {1, {2}}}, .data = updates}},
        .attribute_count = 1,
        .attributes = {pen_attribute_text("reduction", "add")},
    };
    op_check_values(&c, 0, (const double[]){4, 5}, 2, 0); // wraps
    c.attributes[0] = pen_attribute_text("reduction", "max");
    op_check_values(&c, 0, (const double[]){250, 3}, 2, 0);
    c.attributes[0] = pen_attribute_text("reduction", "min");
    op_check_values(&c, 0, (const double[]){10, 2}, 2, 0);
}

static void points_into_many_dimensions(void **state) {
    (void)state;
    op_case c = {
        .op = "gather_nd",
        .input_count = 2,
        .inputs = {counting(3, (const int64_t[]){2, 2, 2}),
                   indices_of(2, (const int64_t[]){2, 1}, (const int64_t[]){1, 0})},
        .attribute_count = 1,
        .attributes = {pen_attribute_int("batch_dims", 1)},
    };
    op_check_values(&c, 0, (const double[]){2, 3, 4, 5}, 4, 0);
    c.attributes[0] = pen_attribute_int("batch_dims", 0);
    op_check_values(&c, 0, (const double[]){4, 5, 6, 7, 0, 1, 2, 3}, 8, 0);
    c.inputs[1] = indices_of(2, (const int64_t[]){1, 3}, (const int64_t[]){1, -1, 0});
    op_check_values(&c, 0, (const double[]){6}, 1, 0);
    c.inputs[1] = indices_of(2, (const int64_t[]){1, 3}, (const int64_t[]){1, 2, 0});
    check_run_error(&c, "gather_nd 'subject': index 2 at position 1 is outside of [-2, 2)");
    c.inputs[1].type.shape.dims[1] = 4;
    op_check_error(&c, PEN_INVALID_INPUT,
                   "indices of shape [1,4] cannot point into data of shape [2,2,2]");
    op_case scatter = {
        .op = "scatter_nd",
        .input_count = 3,
        .inputs = {counting(2, (const int64_t[]){3, 2}),
                   indices_of(2, (const int64_t[]){2, 1}, (const int64_t[]){2, 0}),
                   counting(2, (const int64_t[]){2, 2})},
    };
    op_check_values(&scatter, 0, (const double[]){2, 3, 2, 3, 0, 1}, 6, 0);
    scatter.attribute_count = 1;
    scatter.attributes[0] = pen_attribute_text("reduction", "add");
    op_check_values(&scatter, 0, (const double[]){2, 4, 2, 3, 4, 6}, 6, 0);
}

// Indices of the type of `c.inputs[1]`, all within `dim`; each once along the only axis if
// `distinct` (then there are at most `dim`).
static void roll_indices(dice *d, op_case *c, int64_t *integers, int64_t dim, bool distinct) {
    const int64_t count = pen_shape_element_count(&c->inputs[1].type.shape);
    const int64_t start = dice_between(d, 0, dim - 1);
    for (int64_t k = 0; k < count; k++) {
        const int64_t index = distinct ? (start + k) % dim : dice_between(d, 0, dim - 1);
        integers[k] = dice_between(d, 0, 1) == 1 ? index : index - dim;
    }
    c->inputs[1].data = integers;
}

static void gather_gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        dice d = {.seed = seed};
        const uint32_t rank = (uint32_t)dice_between(&d, 1, 3);
        const int64_t axis = dice_between(&d, 0, rank - 1);
        int64_t integers[64];
        op_case c = {.op = seed % 2 == 0 ? "gather" : "gather_elements",
                     .input_count = 2,
                     .inputs = {dice_tensor(&d, rank, 3), dice_tensor(&d, 2, 3)},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_int("axis", axis - rank)}};
        if (seed % 2 == 1) {
            c.inputs[1] = c.inputs[0];
            c.inputs[1].type.shape.dims[axis] = dice_between(&d, 1, 4);
        }
        c.inputs[1].type.element = PEN_INT64;
        roll_indices(&d, &c, integers, c.inputs[0].type.shape.dims[axis], false);
        op_check_gradient(&c, seed);
    }
}

static void scatter_gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        dice d = {.seed = 500 + seed};
        const bool adds = dice_between(&d, 0, 1) == 1;
        const int64_t dim = dice_between(&d, 1, 5);
        const int64_t count = dice_between(&d, 1, dim);
        int64_t integers[64];
        op_case c = {.input_count = 3,
                     .inputs = {dice_tensor(&d, 1, 1), dice_tensor(&d, 1, 1)},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_text("reduction", adds ? "add" : "none")}};
        c.inputs[0].type.shape.dims[0] = dim;
        c.inputs[1].type.element = PEN_INT64;
        c.inputs[1].type.shape.dims[0] = count;
        c.inputs[2] = c.inputs[0];
        c.inputs[2].type.shape.dims[0] = count;
        roll_indices(&d, &c, integers, dim, !adds);
        c.op = "scatter_elements";
        if (seed % 2 == 1) { // rows of two
            c.op = "scatter_nd";
            c.inputs[1].type.shape = (pen_shape){2, {count, 1}};
            c.inputs[0].type.shape = (pen_shape){2, {dim, 2}};
            c.inputs[2].type.shape = (pen_shape){2, {count, 2}};
        }
        op_check_gradient(&c, seed);
    }
}

static void gather_nd_gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        dice d = {.seed = 900 + seed};
        const int64_t dim = dice_between(&d, 1, 3);
        int64_t integers[64];
        op_case c = {.op = "gather_nd",
                     .input_count = 2,
                     .inputs = {{.type = {PEN_FLOAT64, {3, {dim, dim, dim}}}},
                                {.type = {PEN_INT64, {3, {dim, 2, dice_between(&d, 1, 2)}}}}},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_int("batch_dims", dice_between(&d, 0, 1))}};
        roll_indices(&d, &c, integers, dim, false);
        op_check_gradient(&c, seed);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(gathers), cmocka_unit_test(picks_elements),
              cmocka_unit_test(scatters_integers), cmocka_unit_test(points_into_many_dimensions),
              cmocka_unit_test(gather_gradients), cmocka_unit_test(scatter_gradients),
              cmocka_unit_test(gather_nd_gradients))
