#include <math.h>

#include "tests/support/op_check.h"
#include "tests/support/random_case.h"

// A differentiable function, where it can be, and f at 0.75 (1.75 where the domain begins at 1).
typedef struct unary_case {
    const char *op;
    double low;
    double high;
    double at;
    double expected;
} unary_case;

static const unary_case unary_cases[] = {
    {"neg", -1, 1, 0.75, -0.75},
    {"abs", -1, 1, -0.75, 0.75},
    {"reciprocal", 0.3, 2, 0.75, 4.0 / 3},
    {"exp", -2, 2, 0.75, 2.117000016612675},
    {"log", 0.2, 3, 0.75, -0.2876820724517809},
    {"sqrt", 0.2, 3, 0.75, 0.8660254037844386},
    {"erf", -2, 2, 0.75, 0.7111556336535151},
    {"sin", -3, 3, 0.75, 0.6816387600233342},
    {"cos", -3, 3, 0.75, 0.7316888688738209},
    {"tan", -1.2, 1.2, 0.75, 0.9315964599440725},
    {"asin", -0.9, 0.9, 0.75, 0.848062078981481},
    {"acos", -0.9, 0.9, 0.75, 0.7227342478134157},
    {"atan", -3, 3, 0.75, 0.6435011087932844},
    {"sinh", -2, 2, 0.75, 0.82231673193583},
    {"cosh", -2, 2, 0.75, 1.2946832846768448},
    {"asinh", -2, 2, 0.75, 0.6931471805599453},
    {"acosh", 1.2, 3, 1.75, 1.158810360429947},
    {"atanh", -0.9, 0.9, 0.75, 0.9729550745276566},
};
#define UNARY_CASES (sizeof unary_cases / sizeof *unary_cases)

static op_case one(const char *op, pen_tensor_type type, const void *data) {
    return (op_case){.op = op, .input_count = 1, .inputs = {{.type = type, .data = data}}};
}

static void values(void **state) {
    (void)state;
    for (size_t i = 0; i < UNARY_CASES; i++) {
        const op_case c = one(unary_cases[i].op, op_type(PEN_FLOAT64, 1, 1), &unary_cases[i].at);
        op_check_values(&c, 0, &unary_cases[i].expected, 1, 1e-14);
    }
}

static void gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 12 * UNARY_CASES; seed++) {
        const unary_case *chosen = &unary_cases[seed % UNARY_CASES];
        random_case random = {.seed = seed};
        pen_tensor_type type = random_type(&random, 0, 4, 5, 60);
        type.element = PEN_FLOAT64;
        op_case c = one(chosen->op, type, NULL);
        c.inputs[0].low = chosen->low;
        c.inputs[0].high = chosen->high;
        op_check_gradient(&c, seed);
    }
}

static void rounding(void **state) {
    (void)state;
    const double x[] = {-1.5, -0.5, 0, 0.5, 1.5, 2.5, 2.6};
    op_case c = one("round", op_type(PEN_FLOAT64, 1, 7), x);
    op_check_values(&c, 0, (const double[]){-2, 0, 0, 0, 2, 2, 3}, 7, 0);
    c.op = "floor";
    op_check_values(&c, 0, (const double[]){-2, -1, 0, 0, 1, 2, 2}, 7, 0);
    c.op = "ceil";
    op_check_values(&c, 0, (const double[]){-1, 0, 0, 1, 2, 3, 3}, 7, 0);
    c.op = "sign";
    op_check_values(&c, 0, (const double[]){-1, -1, 0, 1, 1, 1, 1}, 7, 0);
}

// Where steps are flat no gradient flows; the difference quotient is 0 too.
static void steps_have_no_gradient(void **state) {
    (void)state;
    const char *const ops[] = {"round", "floor", "ceil", "sign"};
    for (int i = 0; i < 4; i++) {
        op_case c = one(ops[i], op_type(PEN_FLOAT64, 1, 9), NULL);
        c.inputs[0].low = -3;
        c.inputs[0].high = 3;
        op_check_gradient(&c, 5);
    }
}

static void integers(void **state) {
    (void)state;
    const int8_t x[] = {-128, -3, 0, 7};
    op_case c = one("abs", op_type(PEN_INT8, 1, 4), x);
    op_check_values(&c, 0, (const double[]){-128, 3, 0, 7}, 4, 0);
    c.op = "neg";
    op_check_values(&c, 0, (const double[]){-128, 3, 0, -7}, 4, 0);
    c.op = "sign";
    op_check_values(&c, 0, (const double[]){-1, -1, 0, 1}, 4, 0);
    const uint64_t large[] = {UINT64_MAX, 0};
    op_case u = one("sign", op_type(PEN_UINT64, 1, 2), large);
    op_check_values(&u, 0, (const double[]){1, 0}, 2, 0);
    u.op = "abs";
    op_check_values(&u, 0, (const double[]){(double)UINT64_MAX, 0}, 2, 0);
}

static void halves(void **state) {
    (void)state;
    const uint16_t x[] = {0x3c00, 0xc000}; // 1, -2
    op_case c = one("exp", op_type(PEN_FLOAT16, 1, 2), x);
    op_check_values(&c, 0, (const double[]){2.718281828459045, 0.1353352832366127}, 2, 1e-3);
}

static void wrong_types_are_refused(void **state) {
    (void)state;
    op_case c = one("exp", op_type(PEN_INT32, 1, 2), NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "exp 'subject': input 0 ('input_0') is int32; it may be");
    c = one("neg", op_type(PEN_UINT8, 1, 2), NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "is uint8; it may be");
    c = one("abs", op_type(PEN_BOOL, 1, 2), NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "is bool; it may be");
    op_case backward = {
        .op = "exp_backward",
        .input_count = 2,
        .inputs = {{.type = op_type(PEN_FLOAT32, 1, 2)}, {.type = op_type(PEN_FLOAT32, 1, 3)}}};
    op_check_error(&backward, PEN_INVALID_INPUT, "is [3], expected [2]");
}

PEN_TEST_MAIN(cmocka_unit_test(values), cmocka_unit_test(gradients), cmocka_unit_test(rounding),
              cmocka_unit_test(steps_have_no_gradient), cmocka_unit_test(integers),
              cmocka_unit_test(halves), cmocka_unit_test(wrong_types_are_refused))
