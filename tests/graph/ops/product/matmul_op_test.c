#include "graph/passes/gradient/build_gradients.h"
#include "tests/support/dice.h"

static op_case matmul_case(const char *op, op_case_input a, op_case_input b) {
    return (op_case){.op = op, .input_count = 2, .inputs = {a, b}};
}

static op_case_input operand(pen_tensor_type type) {
    return (op_case_input){.type = type};
}

static op_case_input numbers(pen_tensor_type type, const void *data) {
    return (op_case_input){.type = type, .data = data};
}

static void give(op_case *c, pen_attribute_given attribute) {
    c->attributes[c->attribute_count++] = attribute;
}

static const double a23[] = {1, 2, 3, 4, 5, 6};
static const double b32[] = {7, 8, 9, 10, 11, 12};
static const double product22[] = {58, 64, 139, 154};

static void matmul_of_matrices(void **state) {
    (void)state;
    const op_case c = matmul_case("matmul", numbers(op_type(PEN_FLOAT64, 2, 2, 3), a23),
                                  numbers(op_type(PEN_FLOAT64, 2, 3, 2), b32));
    op_check_values(&c, 0, product22, 4, 0);
}

static void matmul_of_transposed_matrices(void **state) {
    (void)state;
    const double a32[] = {1, 4, 2, 5, 3, 6}, b23[] = {7, 9, 11, 8, 10, 12};
    op_case c = matmul_case("matmul", numbers(op_type(PEN_FLOAT64, 2, 3, 2), a32),
                            numbers(op_type(PEN_FLOAT64, 2, 2, 3), b23));
    give(&c, pen_attribute_int("transA", 1));
    give(&c, pen_attribute_int("transB", 1));
    op_check_values(&c, 0, product22, 4, 0);
}

static void matmul_of_vectors(void **state) {
    (void)state;
    const op_case_input vector = numbers(op_type(PEN_FLOAT64, 1, 3), a23);
    const op_case dot = matmul_case("matmul", vector, vector);
    op_check_values(&dot, 0, (const double[]){14}, 1, 0);
    const op_case row = matmul_case("matmul", vector, numbers(op_type(PEN_FLOAT64, 2, 3, 2), b32));
    op_check_values(&row, 0, product22, 2, 0);
    const op_case column =
        matmul_case("matmul", numbers(op_type(PEN_FLOAT64, 2, 2, 3), a23), vector);
    op_check_values(&column, 0, (const double[]){14, 32}, 2, 0);
}

// (2, 1, 1, 3) x (2, 3, 1): every row with every column.
static void matmul_broadcasts_batches(void **state) {
    (void)state;
    const op_case c = matmul_case("matmul", numbers(op_type(PEN_FLOAT64, 4, 2, 1, 1, 3), a23),
                                  numbers(op_type(PEN_FLOAT64, 3, 2, 3, 1), b32));
    op_check_values(&c, 0, (const double[]){50, 68, 122, 167}, 4, 0);
}

static void matmul_of_integers_is_exact(void **state) {
    (void)state;
    const int64_t a[] = {INT64_C(1) << 53, 1}, b[] = {1, 1};
    const op_case c = matmul_case("matmul", numbers(op_type(PEN_INT64, 1, 2), a),
                                  numbers(op_type(PEN_INT64, 1, 2), b));
    op_built built;
    run_graph run;
    CHECK_OK(op_build(&c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(&c, &built, 1, &run);
    CHECK_OK(run_graph_all(&run));
    assert_true(pen_tensor_get_int(&run.tensors[built.outputs[0].index], 0) ==
                (INT64_C(1) << 53) + 1);
    op_built_free(&built);
}

static void matmul_refuses_operands(void **state) {
    (void)state;
    op_case c = matmul_case("matmul", operand(op_type(PEN_FLOAT32, 2, 32, 512)),
                            operand(op_type(PEN_FLOAT32, 2, 256, 10)));
    op_check_error(&c, PEN_INVALID_INPUT,
                   "matmul 'subject': inner dimensions differ, [32,512] x [256,10]");
    c.inputs[1].type = op_type(PEN_FLOAT64, 2, 512, 10);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "input 1 ('input_1') is float64, but input 0 ('input_0') is float32");
    c.inputs[1].type = op_type(PEN_FLOAT32, 0);
    op_check_error(&c, PEN_INVALID_INPUT, "a scalar has no product, [32,512] x []");
    c = matmul_case("matmul", operand(op_type(PEN_INT8, 1, 3)), operand(op_type(PEN_INT8, 1, 3)));
    op_check_error(&c, PEN_INVALID_INPUT,
                   "input 0 ('input_0') is int8; it may be float32, float64, float16, bfloat16, "
                   "int32, int64, uint32, uint64");
    c = matmul_case("matmul", operand(op_type(PEN_FLOAT32, 3, 2, 3, 4)),
                    operand(op_type(PEN_FLOAT32, 3, 3, 4, 5)));
    op_check_error(&c, PEN_INVALID_INPUT, "batch dimensions do not broadcast, [2,3,4] x [3,4,5]");
    c = matmul_case("matmul", operand(op_type(PEN_FLOAT32, 1, 3)),
                    operand(op_type(PEN_FLOAT32, 2, 3, 4)));
    give(&c, pen_attribute_int("transA", 1));
    op_check_error(&c, PEN_INVALID_INPUT, "a vector cannot be transposed");
}

static void gemm_scales_and_adds(void **state) {
    (void)state;
    const double c2[] = {10, 20};
    op_case c = matmul_case("gemm", numbers(op_type(PEN_FLOAT64, 2, 2, 3), a23),
                            numbers(op_type(PEN_FLOAT64, 2, 3, 2), b32));
    c.inputs[2] = numbers(op_type(PEN_FLOAT64, 1, 2), c2);
    c.input_count = 3;
    give(&c, pen_attribute_float("alpha", 0.5));
    give(&c, pen_attribute_float("beta", 2));
    op_check_values(&c, 0, (const double[]){49, 72, 89.5, 117}, 4, 0);
}

static void gemm_refuses_operands(void **state) {
    (void)state;
    op_case c = matmul_case("gemm", operand(op_type(PEN_FLOAT32, 3, 2, 2, 3)),
                            operand(op_type(PEN_FLOAT32, 2, 3, 2)));
    op_check_error(&c, PEN_INVALID_INPUT, "operands must be matrices, [2,2,3] x [3,2]");
    c = matmul_case("gemm", operand(op_type(PEN_FLOAT32, 2, 2, 3)),
                    operand(op_type(PEN_FLOAT32, 2, 3, 2)));
    give(&c, pen_attribute_int("transB", 1));
    op_check_error(&c, PEN_INVALID_INPUT, "inner dimensions differ with the second transposed");
    c.attribute_count = 0;
    c.input_count = 3;
    c.inputs[2] = operand(op_type(PEN_FLOAT32, 1, 3));
    op_check_error(&c, PEN_INVALID_INPUT, "gemm 'subject'");
    c.inputs[2] = operand(op_type(PEN_FLOAT32, 3, 4, 2, 2));
    op_check_error(&c, PEN_INVALID_INPUT,
                   "c is [4,2,2], which does not broadcast to the product's [2,2]");
}

static void flops_are_counted(void **state) {
    (void)state;
    op_case c = matmul_case("matmul", operand(op_type(PEN_FLOAT32, 3, 5, 2, 3)),
                            operand(op_type(PEN_FLOAT32, 3, 5, 3, 7)));
    op_built built;
    CHECK_OK(op_build(&c, &built));
    assert_int_equal(pen_node_flops(built.graph, built.node), 2 * 5 * 2 * 3 * 7);
    op_built_free(&built);
    c.inputs[1].type = op_type(PEN_FLOAT32, 2, 3, 7);
    CHECK_OK(op_build(&c, &built));
    assert_int_equal(pen_node_flops(built.graph, built.node), 2 * 5 * 2 * 3 * 7);
    op_built_free(&built);
}

static void swap_last(op_case_input *input) {
    int64_t *dims = input->type.shape.dims + input->type.shape.rank - 2;
    const int64_t row = dims[0];
    dims[0] = dims[1];
    dims[1] = row;
}

// Batches of which either operand may miss dimensions in front, or have 1 for them.
static op_case random_matmul(dice *d) {
    op_case_input common = dice_tensor(d, (uint32_t)dice_between(d, 2, 5), 3);
    op_case_input inputs[2];
    const int64_t k = dice_between(d, 1, 4);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t rank = common.type.shape.rank;
        const uint32_t dropped = (uint32_t)dice_between(d, 0, rank - 2);
        inputs[i] = common;
        inputs[i].type.shape.rank = rank - dropped;
        for (uint32_t r = 0; r + dropped < rank; r++) {
            inputs[i].type.shape.dims[r] = r + dropped < rank - 2 && dice_between(d, 0, 2) == 0
                                               ? 1
                                               : common.type.shape.dims[r + dropped];
        }
        inputs[i].type.shape.dims[rank - dropped - (i == 0 ? 1 : 2)] = k;
    }
    op_case c = matmul_case("matmul", inputs[0], inputs[1]);
    for (uint32_t i = 0; i < 2; i++) {
        if (dice_between(d, 0, 2) != 0) continue;
        swap_last(&c.inputs[i]);
        give(&c, pen_attribute_int(i == 0 ? "transA" : "transB", 1));
    }
    return c;
}

// Vectors on either or both sides.
static op_case random_vector_product(dice *d) {
    const int64_t sides = dice_between(d, 1, 3);
    const int64_t k = dice_between(d, 1, 4);
    op_case c = matmul_case("matmul", dice_tensor(d, (uint32_t)dice_between(d, 2, 4), 3),
                            dice_tensor(d, (uint32_t)dice_between(d, 2, 4), 3));
    pen_shape *a = &c.inputs[0].type.shape, *b = &c.inputs[1].type.shape;
    if (sides & 1) a->rank = 1;
    if (sides & 2) b->rank = 1;
    a->dims[a->rank - 1] = k;
    b->dims[b->rank == 1 ? 0 : b->rank - 2] = k;
    return c;
}

static op_case random_gemm(dice *d) {
    op_case c = matmul_case("gemm", dice_tensor(d, 2, 4), dice_tensor(d, 2, 4));
    pen_shape *a = &c.inputs[0].type.shape, *b = &c.inputs[1].type.shape;
    b->dims[0] = a->dims[1];
    if (dice_between(d, 0, 2) != 0) {
        const uint32_t rank = (uint32_t)dice_between(d, 0, 2);
        c.input_count = 3;
        c.inputs[2] = (op_case_input){.type = {PEN_FLOAT64, {rank, {0}}}};
        for (uint32_t i = 0; i < rank; i++) {
            const int64_t whole = i + 2 - rank == 0 ? a->dims[0] : b->dims[1];
            c.inputs[2].type.shape.dims[i] = dice_between(d, 0, 1) == 0 ? 1 : whole;
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (dice_between(d, 0, 1) == 0) continue;
        swap_last(&c.inputs[i]);
        give(&c, pen_attribute_int(i == 0 ? "transA" : "transB", 1));
    }
    if (dice_between(d, 0, 1) == 0) give(&c, pen_attribute_float("alpha", 0.75));
    if (dice_between(d, 0, 1) == 0) give(&c, pen_attribute_float("beta", -1.5));
    return c;
}

static void gradients_match_differences(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        dice d = {.seed = seed};
        const op_case c = seed % 3 == 0   ? random_matmul(&d)
                          : seed % 3 == 1 ? random_gemm(&d)
                                          : random_vector_product(&d);
        op_check_gradient(&c, seed);
    }
}

// The gradient of a weight that all rows share is one product of matrices, so that it can
// accumulate: the only node of the weight half that computes.
static void shared_weight_gradient_is_one_product(void **state) {
    (void)state;
    const op_case c = matmul_case("matmul", operand(op_type(PEN_FLOAT64, 3, 4, 5, 6)),
                                  operand(op_type(PEN_FLOAT64, 2, 6, 7)));
    op_built built;
    CHECK_OK(op_build(&c, &built));
    const pen_value seed = {.name = "seed",
                            .kind = PEN_VALUE_INPUT,
                            .type = *pen_value_type(built.graph, built.outputs[0])};
    pen_value_id seed_id;
    CHECK_OK(pen_graph_add_value(built.graph, &seed, &seed_id));
    pen_gradients *gradients;
    CHECK_OK(pen_build_gradients(built.graph, built.outputs[0], seed_id, 1, &built.inputs[1],
                                 &gradients));
    assert_int_equal(gradients->items[0].use_count, 1);
    const pen_value *gradient = pen_graph_value(built.graph, gradients->items[0].uses[0]);
    const pen_node *node = pen_graph_node(built.graph, gradient->producer);
    assert_string_equal(node->op->name, "matmul");
    assert_int_equal(pen_node_int(node, "transA"), 1);
    assert_int_equal(pen_value_type(built.graph, node->inputs[0])->shape.rank, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const pen_value *rows = pen_graph_value(built.graph, node->inputs[i]);
        assert_true(pen_graph_node(built.graph, rows->producer)->op->is_view);
    }
    op_built_free(&built);
}

PEN_TEST_MAIN(cmocka_unit_test(matmul_of_matrices), cmocka_unit_test(matmul_of_transposed_matrices),
              cmocka_unit_test(matmul_of_vectors), cmocka_unit_test(matmul_broadcasts_batches),
              cmocka_unit_test(matmul_of_integers_is_exact),
              cmocka_unit_test(matmul_refuses_operands), cmocka_unit_test(gemm_scales_and_adds),
              cmocka_unit_test(gemm_refuses_operands), cmocka_unit_test(flops_are_counted),
              cmocka_unit_test(gradients_match_differences),
              cmocka_unit_test(shared_weight_gradient_is_one_product))
