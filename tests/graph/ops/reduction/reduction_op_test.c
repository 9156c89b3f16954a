#include <math.h>

#include "tests/support/dice.h"
#include "tests/support/random_case.h"

static const double grid[] = {1, -2, 3, -4, 5, 6}; // [2,3]

static op_case reduce(const char *op, pen_tensor_type type, const void *data, uint32_t axis_count,
                      const int64_t *axes) {
    op_case c = {.op = op, .input_count = 2, .inputs = {{.type = type, .data = data}}};
    c.inputs[1] = constant_ints(axis_count, axes);
    c.inputs[1].is_absent = axis_count == 0;
    return c;
}

static void give(op_case *c, const char *name, int64_t integer) {
    c->attributes[c->attribute_count++] = pen_attribute_int(name, integer);
}

// The rows, the columns, and all of the grid.
typedef struct reduction_case {
    const char *op;
    double rows[2];
    double columns[3];
    double all;
} reduction_case;

static const reduction_case reduction_cases[] = {
    {"reduce_sum", {2, 7}, {-3, 3, 9}, 9},
    {"reduce_mean", {2.0 / 3, 7.0 / 3}, {-1.5, 1.5, 4.5}, 1.5},
    {"reduce_max", {3, 6}, {1, 5, 6}, 6},
    {"reduce_min", {-2, -4}, {-4, -2, 3}, -4},
    {"reduce_prod", {-6, -120}, {-4, -10, 18}, 720},
    {"reduce_l1", {6, 15}, {5, 7, 9}, 21},
    {"reduce_l2",
     {3.7416573867739413, 8.774964387392123},
     {4.123105625617661, 5.385164807134504, 6.708203932499369},
     9.539392014169456},
    {"reduce_sum_square", {14, 77}, {17, 29, 45}, 91},
    {"reduce_log_sum",
     {0.6931471805599453, 1.9459101490553132},
     {(double)NAN, 1.0986122886681098, 2.1972245773362196},
     2.1972245773362196},
    {"reduce_log_sum_exp",
     {3.1328452337275756, 6.313294876975569},
     {1.006715348489118, 5.000911466453774, 6.048587351573742},
     6.354021149105345},
};
#define REDUCTION_CASES (sizeof reduction_cases / sizeof *reduction_cases)

static void values(void **state) {
    (void)state;
    const int64_t rows[] = {-1}, columns[] = {0}, both[] = {1, 0};
    const pen_tensor_type type = op_type(PEN_FLOAT64, 2, 2, 3);
    for (size_t i = 0; i < REDUCTION_CASES; i++) {
        const reduction_case *r = &reduction_cases[i];
        op_case c = reduce(r->op, type, grid, 1, rows);
        op_check_values(&c, 0, r->rows, 2, 1e-14);
        c = reduce(r->op, type, grid, 1, columns);
        op_check_values(&c, 0, r->columns, 3, 1e-14);
        c = reduce(r->op, type, grid, 2, both);
        op_check_values(&c, 0, &r->all, 1, 1e-14);
        c = reduce(r->op, type, grid, 0, NULL);
        op_check_values(&c, 0, &r->all, 1, 1e-14);
    }
}

static void shapes(void **state) {
    (void)state;
    const int64_t axes[] = {0, -1};
    const struct {
        uint32_t axis_count;
        int64_t keepdims, noop;
        pen_tensor_type expected;
    } cases[] = {
        {2, 1, 0, op_type(PEN_FLOAT32, 3, 1, 3, 1)}, {2, 0, 0, op_type(PEN_FLOAT32, 1, 3)},
        {0, 1, 0, op_type(PEN_FLOAT32, 3, 1, 1, 1)}, {0, 0, 0, op_type(PEN_FLOAT32, 0)},
        {0, 1, 1, op_type(PEN_FLOAT32, 3, 2, 3, 4)}, {0, 0, 1, op_type(PEN_FLOAT32, 3, 2, 3, 4)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_case c =
            reduce("reduce_max", op_type(PEN_FLOAT32, 3, 2, 3, 4), NULL, cases[i].axis_count, axes);
        give(&c, "keepdims", cases[i].keepdims);
        give(&c, "noop_with_empty_axes", cases[i].noop);
        op_built built;
        CHECK_OK(op_build(&c, &built));
        const pen_tensor_type *found = pen_value_type(built.graph, built.outputs[0]);
        char text[PEN_SHAPE_TEXT_BYTES];
        CHECK(pen_tensor_type_equal(found, &cases[i].expected), "case %zu is %s", i,
              pen_tensor_type_format(found, text));
        op_built_free(&built);
    }
}

static void integers_are_exact(void **state) {
    (void)state;
    const int64_t x[] = {(1LL << 53) + 1, 1, -3, 0}, first[] = {-1};
    const pen_tensor_type type = op_type(PEN_INT64, 2, 2, 2);
    op_case c = reduce("reduce_sum", type, x, 1, first);
    op_check_values(&c, 0, (const double[]){(double)((1LL << 53) + 2), -3}, 2, 0);
    c = reduce("reduce_prod", type, x, 1, first);
    op_check_values(&c, 0, (const double[]){(double)((1LL << 53) + 1), 0}, 2, 0);
    c = reduce("reduce_mean", type, (const int64_t[]){7, 2, -3, -4}, 1, first);
    op_check_values(&c, 0, (const double[]){4, -3}, 2, 0);
    const uint8_t bytes[] = {3, 255, 128, 7};
    c = reduce("reduce_max", op_type(PEN_UINT8, 2, 2, 2), bytes, 1, first);
    op_check_values(&c, 0, (const double[]){255, 128}, 2, 0);
}

static void reductions_of_nothing(void **state) {
    (void)state;
    const int64_t first[] = {0};
    op_case c = reduce("reduce_sum", op_type(PEN_FLOAT64, 2, 0, 2), NULL, 1, first);
    op_check_values(&c, 0, (const double[]){0, 0}, 2, 0);
    c.op = "reduce_prod";
    op_check_values(&c, 0, (const double[]){1, 1}, 2, 0);
    c.op = "reduce_log_sum_exp";
    op_check_values(&c, 0, (const double[]){-(double)INFINITY, -(double)INFINITY}, 2, 0);
    c.op = "reduce_max";
    op_check_error(&c, PEN_INVALID_INPUT, "input 0 is [0,2]: there is no element");
}

static void large_numbers_do_not_overflow(void **state) {
    (void)state;
    const double x[] = {1000, 1000}, infinite[] = {-(double)INFINITY, -(double)INFINITY};
    op_case c = reduce("reduce_log_sum_exp", op_type(PEN_FLOAT64, 1, 2), x, 0, NULL);
    op_check_values(&c, 0, (const double[]){1000.6931471805599}, 1, 1e-15);
    c = reduce("reduce_log_sum_exp", op_type(PEN_FLOAT64, 1, 2), infinite, 0, NULL);
    op_check_values(&c, 0, infinite, 1, 0);
}

static void positions(void **state) {
    (void)state;
    const double x[] = {2, 2, 1, 3, 10, 10};
    op_case c = {.op = "arg_max",
                 .input_count = 1,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 3), .data = x}}};
    op_check_values(&c, 0, (const double[]){1, 1, 1}, 3, 0);
    give(&c, "axis", -1);
    op_check_values(&c, 0, (const double[]){0, 1}, 2, 0);
    give(&c, "select_last_index", 1);
    op_check_values(&c, 0, (const double[]){1, 2}, 2, 0);
    c.op = "arg_min";
    op_check_values(&c, 0, (const double[]){2, 0}, 2, 0);
    c.attributes[0].value.integer = 2;
    op_check_error(&c, PEN_INVALID_INPUT,
                   "arg_min 'subject': axis 2 is outside of a tensor with 2 dimensions");
}

static void equals_share_the_gradient(void **state) {
    (void)state;
    const double dy[] = {6, 6}, x[] = {1, 3, 3, 2, 0, 2}, y[] = {3, 2};
    op_case c = {.op = "reduce_max_backward",
                 .input_count = 3,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 1), .data = dy},
                            {.type = op_type(PEN_FLOAT64, 2, 2, 3), .data = x},
                            {.type = op_type(PEN_FLOAT64, 2, 2, 1), .data = y}}};
    op_check_values(&c, 0, (const double[]){0, 3, 3, 3, 0, 3}, 6, 0);
}

static void products_with_zeros(void **state) {
    (void)state;
    const double dy[] = {1, 1, 1}, x[] = {2, 3, 4, 0, 3, 4, 0, 0, 4};
    op_case c = {.op = "reduce_prod_backward",
                 .input_count = 2,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 3, 1), .data = dy},
                            {.type = op_type(PEN_FLOAT64, 2, 3, 3), .data = x}}};
    op_check_values(&c, 0, (const double[]){12, 8, 6, 12, 0, 0, 0, 0, 0}, 9, 0);
}

static void gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 25 * REDUCTION_CASES; seed++) {
        random_case random = {.seed = seed};
        pen_tensor_type type = random_type(&random, 0, 4, 4, 60);
        type.element = PEN_FLOAT64;
        int64_t axes[PEN_RANK_LIMIT];
        uint32_t axis_count = 0;
        for (uint32_t d = 0; d < type.shape.rank; d++) {
            const int64_t from_end = random_chance(&random, 30) ? type.shape.rank : 0;
            if (random_chance(&random, 50)) axes[axis_count++] = (int64_t)d - from_end;
        }
        op_case c =
            reduce(reduction_cases[seed % REDUCTION_CASES].op, type, NULL, axis_count, axes);
        give(&c, "keepdims", random_chance(&random, 50));
        give(&c, "noop_with_empty_axes", random_chance(&random, 20));
        if (strcmp(c.op, "reduce_log_sum") == 0) {
            c.inputs[0].low = 0.5;
            c.inputs[0].high = 2;
        }
        op_check_gradient(&c, seed);
    }
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    const int64_t far[] = {2}, twice[] = {1, -1};
    op_case c = reduce("reduce_sum", op_type(PEN_FLOAT64, 2, 2, 3), NULL, 1, far);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "reduce_sum 'subject': axis 2 is outside of a tensor with 2 dimensions");
    c = reduce("reduce_sum", op_type(PEN_FLOAT64, 2, 2, 3), NULL, 2, twice);
    op_check_error(&c, PEN_INVALID_INPUT, "axis -1 is given twice");
    c.inputs[1].is_constant = false;
    op_check_error(&c, PEN_UNSUPPORTED, "steers shapes, but depends on data");
    c = reduce("reduce_sum", op_type(PEN_INT8, 1, 3), NULL, 0, NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "is int8; it may be");
    const pen_attribute_given shape = pen_attribute_ints("shape", 1, far);
    op_case backward = {.op = "reduce_sum_backward",
                        .input_count = 1,
                        .inputs = {{.type = op_type(PEN_FLOAT32, 1, 3)}},
                        .attribute_count = 1,
                        .attributes = {shape}};
    op_check_error(&backward, PEN_INVALID_INPUT, "shapes [3] and [2] do not broadcast");
}

PEN_TEST_MAIN(cmocka_unit_test(values), cmocka_unit_test(shapes),
              cmocka_unit_test(integers_are_exact), cmocka_unit_test(reductions_of_nothing),
              cmocka_unit_test(large_numbers_do_not_overflow), cmocka_unit_test(positions),
              cmocka_unit_test(equals_share_the_gradient), cmocka_unit_test(products_with_zeros),
              cmocka_unit_test(gradients), cmocka_unit_test(wrong_operands_are_refused))
