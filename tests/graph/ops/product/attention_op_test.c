#include <math.h>

#include "tests/support/op_check.h"
#include "tests/support/random_case.h"

// The shape (batch…, heads, rows, numbers), or with rows and heads swapped.
static pen_tensor_type operand(const pen_shape *batch, bool by_row, int64_t rows, int64_t numbers) {
    pen_tensor_type type = {PEN_FLOAT64, *batch};
    type.shape.dims[type.shape.rank++] = rows;
    type.shape.dims[type.shape.rank++] = numbers;
    if (by_row) {
        type.shape.dims[batch->rank] = batch->dims[batch->rank - 1];
        type.shape.dims[batch->rank - 1] = rows;
    }
    return type;
}

static op_case random_attention(uint64_t seed) {
    random_case random = {.seed = seed};
    const pen_shape own = random_type(&random, 0, 2, 3, 6).shape; // of k and v
    pen_shape batch = own;
    if (batch.rank > 0 && random_chance(&random, 40)) batch.dims[batch.rank - 1] *= 2;
    const int64_t rows = random_between(&random, 1, 5), depth = random_between(&random, 1, 4);
    const bool causal = random_chance(&random, 40);
    const int64_t keys = random_between(&random, 1, 5), width = random_between(&random, 1, 4);
    bool by_row[4];
    for (int i = 0; i < 4; i++) {
        by_row[i] = batch.rank > 0 && random_chance(&random, 50);
    }
    op_case c = {.op = "attention", .input_count = 3};
    c.inputs[0].type = operand(&batch, by_row[0], rows, depth);
    c.inputs[1].type = operand(&own, by_row[1], keys, depth);
    c.inputs[2].type = operand(&own, by_row[2], keys, width);
    static const char *const names[] = {"q_by_row", "k_by_row", "v_by_row", "y_by_row"};
    for (int i = 0; i < 4; i++) {
        c.attributes[i] = pen_attribute_int(names[i], by_row[i]);
    }
    c.attributes[4] = pen_attribute_int("causal", causal);
    c.attributes[5] = pen_attribute_float("scale", 0.7);
    c.attribute_count = 6;
    if (random_chance(&random, 40)) {
        c.attributes[6] = pen_attribute_float("dropout", 0.4);
        c.attributes[7] = pen_attribute_text("stream", "drops");
        c.attribute_count = 8;
    }
    if (random_chance(&random, 60)) {
        const pen_tensor_type square = operand(&batch, false, rows, keys);
        c.input_count = 4;
        c.inputs[3].type = random_broadcast_of(&random, &square);
        if (random_chance(&random, 40)) { // rows may be hidden wholly
            c.inputs[3].type.element = PEN_BOOL;
            c.attributes[c.attribute_count++] =
                pen_attribute_float("fill", random_chance(&random, 50) ? -1e4 : 0.5);
        }
    }
    return c;
}

static void values(void **state) {
    (void)state;
    // two rows; scores are (0, 2) and (0, 0)
    const double q[] = {1, 0, 0, 1}, k[] = {0, 0, 1, 0}, v[] = {1, 2, 3, 4, 5, 6};
    op_case c = {.op = "attention",
                 .input_count = 3,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = q},
                            {.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = k},
                            {.type = op_type(PEN_FLOAT64, 2, 2, 3), .data = v}},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_float("scale", 2)}};
    const double p = 1 / (1 + exp(-2.0));
    op_check_values(&c, 0, (const double[]){1 + 3 * p, 2 + 3 * p, 3 + 3 * p, 2.5, 3.5, 4.5}, 6,
                    1e-15);
    c.attributes[1] = pen_attribute_int("causal", 1);
    c.attribute_count = 2;
    op_check_values(&c, 0, (const double[]){1, 2, 3, 2.5, 3.5, 4.5}, 6, 1e-15);
    const bool mask[] = {false, true};
    c.attribute_count = 1;
    c.input_count = 4;
    c.inputs[3] = (op_case_input){.type = op_type(PEN_BOOL, 1, 2), .data = mask};
    op_check_values(&c, 0, (const double[]){4, 5, 6, 4, 5, 6}, 6, 1e-15);
    // the first row is hidden wholly; of the second, the score 0 stays beside the fill
    const bool hides[] = {false, false, true, false};
    c.inputs[3] = (op_case_input){.type = op_type(PEN_BOOL, 2, 2, 2), .data = hides};
    c.attributes[1] = pen_attribute_float("fill", -2);
    c.attribute_count = 2;
    const double r = 1 / (1 + exp(2.0));
    op_check_values(&c, 0, (const double[]){2.5, 3.5, 4.5, 1 + 3 * r, 2 + 3 * r, 3 + 3 * r}, 6,
                    1e-15);
}

static void gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        const op_case c = random_attention(seed);
        op_check_gradient(&c, seed);
    }
}

// The probabilities that a dropout of the same stream leaves.
static void drops_as_a_dropout_does(void **state) {
    (void)state;
    double q[3 * 4 * 2] = {0}, v[3 * 5 * 5] = {0}, ones[3 * 4 * 5];
    for (int i = 0; i < 3 * 5; i++) {
        v[i * 5 + i % 5] = 1; // y is what multiplies v
    }
    for (int i = 0; i < 3 * 4 * 5; i++) {
        ones[i] = 0.2;
    }
    const double ratio = 0.3, training = 1;
    op_case drop = {
        .op = "dropout",
        .input_count = 3,
        .inputs = {{.type = op_type(PEN_FLOAT64, 3, 3, 4, 5), .data = ones},
                   {.type = op_type(PEN_FLOAT64, 0), .data = &ratio, .is_constant = true},
                   {.type = op_type(PEN_FLOAT64, 0), .data = &training, .is_constant = true}},
        .attribute_count = 1,
        .attributes = {pen_attribute_text("stream", "drops")}};
    op_built built;
    run_graph run;
    CHECK_OK(op_build(&drop, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(&drop, &built, 1, &run);
    CHECK_OK(run_graph_all(&run));
    const double *expected = run.tensors[built.outputs[0].index].data;
    op_case c = {.op = "attention",
                 .input_count = 3,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 3, 3, 4, 2), .data = q},
                            {.type = op_type(PEN_FLOAT64, 3, 3, 5, 2)},
                            {.type = op_type(PEN_FLOAT64, 3, 3, 5, 5), .data = v}},
                 .attribute_count = 2,
                 .attributes = {pen_attribute_text("stream", "drops"),
                                pen_attribute_float("dropout", ratio)}};
    op_check_values(&c, 0, expected, 3 * 4 * 5, 1e-15);
    op_built_free(&built);
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    op_case c = {.op = "attention", .input_count = 3};
    c.inputs[0].type = op_type(PEN_FLOAT32, 3, 2, 4, 8);
    c.inputs[1].type = op_type(PEN_FLOAT32, 3, 2, 5, 7);
    c.inputs[2].type = op_type(PEN_FLOAT32, 3, 2, 5, 3);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "attention 'subject': rows of q and k differ in length, [2,4,8] and [2,5,7]");
    c.inputs[1].type = op_type(PEN_FLOAT32, 3, 3, 5, 8);
    op_check_error(&c, PEN_INVALID_INPUT, "k and v differ in their heads, [3,5,8] and [2,5,3]");
    c.inputs[2].type = op_type(PEN_FLOAT32, 3, 3, 5, 3);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "the heads of q are not a multiple of those of k, [2,4,8] and [3,5,8]");
    c.inputs[0].type = op_type(PEN_FLOAT32, 4, 2, 3, 4, 8);
    c.inputs[1].type = op_type(PEN_FLOAT32, 4, 1, 3, 5, 8);
    c.inputs[2].type = op_type(PEN_FLOAT32, 4, 2, 3, 5, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "q and k differ in batch, [2,3,4,8] and [1,3,5,8]");
    c.inputs[0].type = op_type(PEN_FLOAT32, 3, 2, 4, 8);
    c.inputs[2].type = op_type(PEN_FLOAT32, 3, 2, 5, 3);
    c.inputs[1].type = op_type(PEN_FLOAT32, 3, 2, 6, 8);
    op_check_error(&c, PEN_INVALID_INPUT, "k and v differ in their count of rows");
    c.inputs[1].type = op_type(PEN_FLOAT32, 2, 5, 8);
    op_check_error(&c, PEN_INVALID_INPUT, "q and k differ in rank");
    c.inputs[1].type = op_type(PEN_FLOAT32, 3, 2, 5, 8);
    c.input_count = 4;
    c.inputs[3].type = op_type(PEN_FLOAT32, 2, 4, 4);
    op_check_error(&c, PEN_INVALID_INPUT, "broadcast");
    c.inputs[3].type = op_type(PEN_INT32, 2, 4, 5);
    op_check_error(&c, PEN_INVALID_INPUT, "int32");
    c.inputs[3].type = op_type(PEN_BOOL, 2, 4, 5);
    c.inputs[0].type = op_type(PEN_FLOAT32, 1, 8);
    op_check_error(&c, PEN_INVALID_INPUT, "q is [8], expected at least 2 dimensions");
    c.attributes[0] = pen_attribute_float("dropout", 1);
    c.attribute_count = 1;
    op_check_error(&c, PEN_INVALID_INPUT, "dropout is 1; it may be 0 or more, and below 1");
    c.attributes[0] = pen_attribute_float("dropout", 0.5);
    op_check_error(&c, PEN_INVALID_INPUT, "no stream of random numbers is named");
    c.attributes[0] = pen_attribute_float("fill", (double)NAN);
    op_check_error(&c, PEN_INVALID_INPUT, "fill is nan; it may be -inf or a finite number");
    c.attributes[0] = pen_attribute_float("fill", -1);
    c.inputs[3].type = op_type(PEN_FLOAT32, 2, 4, 5);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "fill is given, which needs a boolean mask; this one is added to the scores");
    c.input_count = 3;
    op_check_error(&c, PEN_INVALID_INPUT, "needs a boolean mask; there is none");
}

PEN_TEST_MAIN(cmocka_unit_test(values), cmocka_unit_test(gradients),
              cmocka_unit_test(drops_as_a_dropout_does),
              cmocka_unit_test(wrong_operands_are_refused))
