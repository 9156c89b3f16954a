#include <math.h>

#include "tests/support/op_check.h"

enum { STEPS = 4, BATCH = 3, INPUTS = 2, HIDDEN = 3 };

static void give(op_case *c, pen_attribute_given attribute) {
    c->attributes[c->attribute_count++] = attribute;
}

static uint32_t gate_count(const char *op) {
    return strcmp(op, "lstm") == 0 ? 4 : strcmp(op, "gru") == 0 ? 3 : 1;
}

// A node with all operands that `op` has but lengths and peepholes.
static op_case net_case(const char *op, const char *direction, int layout) {
    const int d = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    const int rows = (int)gate_count(op) * HIDDEN;
    const bool is_lstm = strcmp(op, "lstm") == 0;
    const pen_tensor_type state = layout == 0 ? op_type(PEN_FLOAT64, 3, d, BATCH, HIDDEN)
                                              : op_type(PEN_FLOAT64, 3, BATCH, d, HIDDEN);
    op_case c = {
        .op = op,
        .input_count = is_lstm ? 8 : 6,
        .output_count = is_lstm                  ? 5
                        : strcmp(op, "gru") == 0 ? 3
                                                 : 2,
        .output_mask = is_lstm ? 3 << 3 : 1 << 2,
        .inputs = {{.type = layout == 0 ? op_type(PEN_FLOAT64, 3, STEPS, BATCH, INPUTS)
                                        : op_type(PEN_FLOAT64, 3, BATCH, STEPS, INPUTS)},
                   {.type = op_type(PEN_FLOAT64, 3, d, rows, INPUTS)},
                   {.type = op_type(PEN_FLOAT64, 3, d, rows, HIDDEN)},
                   {.type = op_type(PEN_FLOAT64, 2, d, 2 * rows)},
                   {.is_absent = true},
                   {.type = state},
                   {.type = state},
                   {.is_absent = true}},
    };
    give(&c, pen_attribute_text("direction", direction));
    give(&c, pen_attribute_int("layout", layout));
    return c;
}

static const int32_t lengths[BATCH] = {4, 0, 2};

static void set_lengths(op_case *c) {
    c->inputs[4] = (op_case_input){.type = op_type(PEN_INT32, 1, BATCH), .data = lengths};
}

static const char *const directions[] = {"forward", "reverse", "bidirectional"};

static void check_directions(const char *op) {
    for (int i = 0; i < 3; i++) {
        for (int layout = 0; layout < 2; layout++) {
            op_case c = net_case(op, directions[i], layout);
            op_check_gradient(&c, 1);
            set_lengths(&c);
            op_check_gradient(&c, 2);
        }
    }
}

static void gradients_of_lstm(void **state) {
    (void)state;
    check_directions("lstm");
}

static void gradients_of_gru(void **state) {
    (void)state;
    check_directions("gru");
}

static void gradients_of_rnn(void **state) {
    (void)state;
    check_directions("rnn");
}

static void gradients_of_gru_with_a_linear_reset(void **state) {
    (void)state;
    op_case c = net_case("gru", "bidirectional", 0);
    give(&c, pen_attribute_int("linear_before_reset", 1));
    op_check_gradient(&c, 3);
    set_lengths(&c);
    op_check_gradient(&c, 4);
}

static void gradients_with_peepholes_and_coupled_gates(void **state) {
    (void)state;
    op_case c = net_case("lstm", "bidirectional", 0);
    c.inputs[7] = (op_case_input){.type = op_type(PEN_FLOAT64, 2, 2, 3 * HIDDEN)};
    op_check_gradient(&c, 5);
    set_lengths(&c);
    op_check_gradient(&c, 6);
    give(&c, pen_attribute_int("input_forget", 1));
    op_check_gradient(&c, 7);
}

static void gradients_without_optional_operands(void **state) {
    (void)state;
    static const char *const ops[] = {"lstm", "gru", "rnn"};
    for (int i = 0; i < 3; i++) {
        op_case c = net_case(ops[i], "forward", 0);
        c.input_count = 3;
        op_check_gradient(&c, 8);
    }
}

static void gradients_with_clipping(void **state) {
    (void)state;
    static const char *const ops[] = {"lstm", "gru", "rnn"};
    for (int i = 0; i < 3; i++) {
        op_case c = net_case(ops[i], "bidirectional", 0);
        give(&c, pen_attribute_float("clip", 0.7));
        op_check_gradient(&c, 9);
    }
}

static void gradients_of_every_activation(void **state) {
    (void)state;
    static const char *const names[] = {"Relu",       "Affine",      "LeakyRelu", "ThresholdedRelu",
                                        "ScaledTanh", "HardSigmoid", "Elu",       "Softsign",
                                        "Softplus",   "sigmoid",     "leaky_relu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        op_case c = net_case("rnn", "forward", 0);
        give(&c, pen_attribute_text("activations", names[i]));
        if (strcmp(names[i], "ThresholdedRelu") == 0) {
            static const double alpha = 0.3;
            const pen_attribute_given given = {
                "activation_alpha", PEN_ATTRIBUTE_FLOATS, {.count = 1, .numbers = &alpha}};
            give(&c, given);
        }
        op_check_gradient(&c, 10);
    }
    op_case c = net_case("lstm", "forward", 0);
    give(&c, pen_attribute_text("activations", "hard_sigmoid softsign ScaledTanh"));
    static const double alphas[] = {0.3, 0.8}, betas[] = {0.4, 0.6};
    const pen_attribute_given alpha = {
        "activation_alpha", PEN_ATTRIBUTE_FLOATS, {.count = 2, .numbers = alphas}};
    const pen_attribute_given beta = {
        "activation_beta", PEN_ATTRIBUTE_FLOATS, {.count = 2, .numbers = betas}};
    give(&c, alpha);
    give(&c, beta);
    op_check_gradient(&c, 11);
}

// ---- values

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

// One unit, one input, two steps: by hand.
static void lstm_of_one_unit(void **state) {
    (void)state;
    static const double x[] = {0.5, -1};
    static const double w[] = {0.1, 0.2, 0.3, 0.4}, r[] = {-0.4, 0.3, 0.2, 0.1};
    static const double b[] = {0.01, 0.02, 0.03, 0.04, 0.1, 0.2, 0.3, 0.4}, p[] = {0.5, 0.6, 0.7};
    const op_case c = {
        .op = "lstm",
        .input_count = 8,
        .output_count = 3,
        .inputs = {{.type = op_type(PEN_FLOAT64, 3, 2, 1, 1), .data = x},
                   {.type = op_type(PEN_FLOAT64, 3, 1, 4, 1), .data = w},
                   {.type = op_type(PEN_FLOAT64, 3, 1, 4, 1), .data = r},
                   {.type = op_type(PEN_FLOAT64, 2, 1, 8), .data = b},
                   {.is_absent = true},
                   {.is_absent = true},
                   {.is_absent = true},
                   {.type = op_type(PEN_FLOAT64, 2, 1, 3), .data = p}},
    };
    double h = 0, cell = 0, y[2];
    for (int t = 0; t < 2; t++) {
        double a[4];
        for (int k = 0; k < 4; k++) {
            a[k] = w[k] * x[t] + r[k] * h + b[k] + b[4 + k];
        }
        const double i = sigmoid(a[0] + p[0] * cell), f = sigmoid(a[2] + p[2] * cell);
        cell = f * cell + i * tanh(a[3]);
        h = y[t] = sigmoid(a[1] + p[1] * cell) * tanh(cell);
    }
    op_check_values(&c, 0, y, 2, 1e-15);
    op_check_values(&c, 1, &h, 1, 1e-15);
    op_check_values(&c, 2, &cell, 1, 1e-15);
}

// A sum over the steps that count, from the right for the direction back.
static void lengths_end_sequences(void **state) {
    (void)state;
    static const double x[] = {1, 10, 100, 2, 20, 200}; // 3 steps of 2 examples, batch first
    static const double ones[] = {1, 1};
    static const int32_t ends[] = {3, 2};
    op_case c = {
        .op = "rnn",
        .input_count = 5,
        .output_count = 2,
        .inputs = {{.type = op_type(PEN_FLOAT64, 3, 2, 3, 1), .data = x},
                   {.type = op_type(PEN_FLOAT64, 3, 2, 1, 1), .data = ones},
                   {.type = op_type(PEN_FLOAT64, 3, 2, 1, 1), .data = ones},
                   {.is_absent = true},
                   {.type = op_type(PEN_INT32, 1, 2), .data = ends}},
    };
    give(&c, pen_attribute_text("direction", "bidirectional"));
    give(&c, pen_attribute_text("activations", "Relu Relu"));
    give(&c, pen_attribute_int("layout", 1));
    const double y[] = {1, 111, 11, 110, 111, 100, 2, 22, 22, 20, 0, 0};
    const double last[] = {111, 111, 22, 22};
    op_check_values(&c, 0, y, 12, 0);
    op_check_values(&c, 1, last, 4, 0);
}

// ---- errors

static void wrong_operands_are_named(void **state) {
    (void)state;
    op_case c = net_case("lstm", "forward", 0);
    c.inputs[0].type = op_type(PEN_FLOAT64, 2, 4, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "the input is [4,2]; expected three dimensions");
    c = net_case("lstm", "forward", 0);
    c.inputs[1].type = op_type(PEN_FLOAT64, 3, 1, 12, 5);
    op_check_error(&c, PEN_INVALID_INPUT, "(input 1) are [1,12,5], expected [1,12,2]");
    c = net_case("gru", "forward", 0);
    c.inputs[2].type = op_type(PEN_FLOAT64, 3, 1, 12, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "(input 2) are [1,12,3], expected [1,9,3]");
    c = net_case("rnn", "forward", 0);
    c.inputs[2].type = op_type(PEN_FLOAT64, 2, 3, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "(input 2) are [3,3]; expected three dimensions");
    c = net_case("rnn", "bidirectional", 1);
    c.inputs[5].type = op_type(PEN_FLOAT64, 3, 2, 3, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "is [2,3,3], expected [3,2,3]");
    c = net_case("rnn", "forward", 0);
    c.inputs[3].type = op_type(PEN_FLOAT32, 2, 1, 6);
    op_check_error(&c, PEN_INVALID_INPUT, "float32");
    c = net_case("rnn", "forward", 0);
    set_lengths(&c);
    c.inputs[4].type = op_type(PEN_FLOAT32, 1, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "it may be");
}

static void check_attribute_error(const char *op, pen_attribute_given attribute,
                                  pen_status_code code, const char *text) {
    op_case c = net_case(op, "forward", 0);
    for (uint32_t i = 0; i < c.attribute_count; i++) {
        if (strcmp(c.attributes[i].name, attribute.name) == 0) c.attribute_count = i;
    }
    give(&c, attribute);
    op_check_error(&c, code, text);
}

static void wrong_attributes_are_named(void **state) {
    (void)state;
    const pen_status_code invalid = PEN_INVALID_INPUT;
    check_attribute_error("rnn", pen_attribute_text("direction", "back"), invalid,
                          "direction is 'back'; it may be forward, reverse or bidirectional");
    check_attribute_error("rnn", pen_attribute_int("layout", 2), invalid, "layout is 2");
    check_attribute_error("gru", pen_attribute_float("clip", -1), invalid, "clip is -1");
    check_attribute_error("lstm", pen_attribute_int("hidden_size", 7), invalid,
                          "(input 2) are [1,12,3], expected [1,28,7]");
    check_attribute_error("lstm", pen_attribute_int("hidden_size", -7), invalid,
                          "the hidden size is -7");
    check_attribute_error("lstm", pen_attribute_int("hidden_size", INT64_MAX), invalid,
                          "the hidden size is");
    check_attribute_error("lstm", pen_attribute_text("activations", "Tanh Tanh"), invalid,
                          "there are 2 activations; expected 3");
    check_attribute_error("rnn", pen_attribute_text("activations", "Tan"), PEN_UNSUPPORTED,
                          "there is no activation 'Tan'; there are Sigmoid");
}

static void lengths_out_of_range_are_errors(void **state) {
    (void)state;
    static const int32_t wrong[][BATCH] = {{4, 5, 0}, {4, -1, 0}};
    for (int i = 0; i < 2; i++) {
        op_case c = net_case("gru", "forward", 0);
        set_lengths(&c);
        c.inputs[4].data = wrong[i];
        op_built built;
        run_graph run;
        CHECK_OK(op_build(&c, &built));
        CHECK_OK(run_graph_init(&run, built.graph, built.arena));
        op_fill(&c, &built, 1, &run);
        CHECK_ERROR(run_graph_all(&run), PEN_INVALID_INPUT,
                    i == 0 ? "the length of sequence 1 is 5; it may be 0 to 4"
                           : "the length of sequence 1 is -1; it may be 0 to 4");
        op_built_free(&built);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(gradients_of_lstm), cmocka_unit_test(gradients_of_gru),
              cmocka_unit_test(gradients_of_rnn),
              cmocka_unit_test(gradients_of_gru_with_a_linear_reset),
              cmocka_unit_test(gradients_with_peepholes_and_coupled_gates),
              cmocka_unit_test(gradients_without_optional_operands),
              cmocka_unit_test(gradients_with_clipping),
              cmocka_unit_test(gradients_of_every_activation), cmocka_unit_test(lstm_of_one_unit),
              cmocka_unit_test(lengths_end_sequences), cmocka_unit_test(wrong_operands_are_named),
              cmocka_unit_test(wrong_attributes_are_named),
              cmocka_unit_test(lengths_out_of_range_are_errors))
