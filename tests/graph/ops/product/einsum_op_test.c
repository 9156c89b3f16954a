#include "graph/ops/product/einsum_equation.h"

#include "tests/support/dice.h"

static const double counted[] = {1, 2, 3, 4, 5, 6, 7, 8};

static op_case einsum_case(const char *equation) {
    return (op_case){.op = "einsum",
                     .input_count = 2,
                     .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = counted},
                                {.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = counted + 4}},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_text("equation", equation)}};
}

static void sums_products(void **state) {
    (void)state;
    op_case c = einsum_case("ij,jk->ik");
    op_check_values(&c, 0, (const double[]){19, 22, 43, 50}, 4, 0);
    c = einsum_case("ij, kj");
    op_check_values(&c, 0, (const double[]){17, 23, 39, 53}, 4, 0);
    c = einsum_case("ij,ij->");
    op_check_values(&c, 0, (const double[]){70}, 1, 0);
    c = einsum_case("...j,...j->j...");
    op_check_values(&c, 0, (const double[]){5, 21, 12, 32}, 4, 0);
    c.input_count = 1;
    c.attributes[0] = pen_attribute_text("equation", "ii->i");
    op_check_values(&c, 0, (const double[]){1, 4}, 2, 0);
    c.attributes[0] = pen_attribute_text("equation", "ba");
    op_check_values(&c, 0, (const double[]){1, 3, 2, 4}, 4, 0);
}

static void refuses_what_is_no_equation(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"ij,jk->im", "the result has a dimension that no operand has"},
        {"ij,jk->ii", "the result has a dimension twice"},
        {"ij->ij", "it has too few terms"},
        {"ij,jk,kl", "it has too many terms"},
        {"i1,jk", "a term may have letters"},
        {"......,ij", "a term has '...' twice"},
        {"ijk,jk", "operand 0 has 2 dimensions, its term 3"},
        {"ij,jk->ik->", "text follows the result"},
        {"", "operand 0 has 2 dimensions, its term 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        op_case c = einsum_case(bad[i][0]);
        op_check_error(&c, PEN_INVALID_INPUT, bad[i][1]);
    }
    op_case c = einsum_case("ij,jk->ik");
    c.inputs[1].type.shape.dims[0] = 3;
    op_check_error(&c, PEN_INVALID_INPUT, "'j' is both 2 and 3 elements");
}

static void writes_equations(void **state) {
    (void)state;
    const pen_shape shape = {3, {2, 3, 4}};
    const pen_shape *shapes[] = {&shape, &shape};
    pen_einsum einsum;
    char text[PEN_EINSUM_TEXT_BYTES];
    CHECK_OK(pen_einsum_read("...xy,...zy->...zx", 2, shapes, &einsum));
    CHECK_OK(pen_einsum_write(einsum.operands, 2, &einsum.output, text));
    assert_string_equal(text, "abc,adc->adb");
}

// Sizes by letter: every operand of a case has the same.
static op_case_input letters_tensor(const char *letters) {
    op_case_input input = {.type = {.element = PEN_FLOAT64}};
    for (const char *c = letters; *c != '\0'; c++) {
        const int64_t size = *c == '1' ? 1 : 2 + (*c - 'a') % 2;
        input.type.shape.dims[input.type.shape.rank++] = size;
    }
    return input;
}

static void gradients(void **state) {
    (void)state;
    static const char *const cases[][4] = {
        {"ab,bc->ac", "ab", "bc"},
        {"abc,acd->abd", "abc", "acd"},
        {"bhqd,bhkd->bhqk", "abcd", "abed"},
        {"a,b->ab", "a", "b"},
        {"ab->", "ab"},
        {"ab->b", "ab"},
        {"aa->a", "aa"},
        {"baa->ba", "baa"},
        {"aa,ab->b", "aa", "ab"},
        {"aa->", "aa"},
        {"ab,bc,cd->ad", "ab", "bc", "cd"},
        {"...ab,...bc->...ac", "eab", "bc"},
        {"ab,ab->ab", "a1", "ab"},
        {"abcd,cde->abe", "abcd", "cde"},
        {"ab,cd->cb", "ab", "cd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_case c = {.op = "einsum",
                     .attribute_count = 1,
                     .attributes = {pen_attribute_text("equation", cases[i][0])}};
        while (c.input_count < 3 && cases[i][c.input_count + 1] != NULL) {
            c.inputs[c.input_count] = letters_tensor(cases[i][c.input_count + 1]);
            c.input_count++;
        }
        op_check_gradient(&c, i);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(sums_products), cmocka_unit_test(refuses_what_is_no_equation),
              cmocka_unit_test(writes_equations), cmocka_unit_test(gradients))
