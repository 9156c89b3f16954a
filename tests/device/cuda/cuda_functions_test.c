// Functions, softmax, normalization and updates on an emulated GPU against the reference kernels.
#include <math.h>

#include "tests/support/cuda_check.h"
#include "tests/support/random_case.h"

static void functions(void **state) {
    (void)state;
    static const struct {
        const char *op;
        double low, high;
        double backward_low, backward_high; // of what the derivative is of
    } cases[] = {
        {"abs", -3, 3, -3, 3},        {"reciprocal", 0.25, 4, -2, 2}, {"sqrt", 0, 9, 0.25, 3},
        {"exp", -20, 3, 0, 5},        {"erf", -5, 5, -5, 5},          {"tanh", -12, 12, -1, 1},
        {"sigmoid", -30, 30, 0, 1},   {"gelu", -7, 7, -7, 7},         {"swish", -20, 20, -20, 20},
        {"leaky_relu", -3, 3, -3, 3}, {"hard_sigmoid", -5, 5, 0, 1},  {"hard_swish", -5, 5, -5, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char backward[32];
        op_case c = {.op = cases[i].op, .input_count = 1};
        c.inputs[0] = (op_case_input){
            .type = op_type(PEN_FLOAT32, 2, 5, 70), .low = cases[i].low, .high = cases[i].high};
        cuda_check(&c, i, 3e-6);
        snprintf(backward, sizeof backward, "%s_backward", cases[i].op);
        c.op = backward;
        c.input_count = 2;
        c.inputs[0].low = -1, c.inputs[0].high = 1;
        c.inputs[1] = (op_case_input){
            .type = c.inputs[0].type, .low = cases[i].backward_low, .high = cases[i].backward_high};
        cuda_check(&c, i + 1, 3e-6);
    }
    op_case negative = {.op = "neg", .input_count = 1};
    negative.inputs[0].type = op_type(PEN_FLOAT32, 1, 300);
    cuda_check(&negative, 1, 0);
    for (uint32_t backward = 0; backward < 2; backward++) {
        op_case c = {.op = backward ? "gelu_backward" : "gelu", .attribute_count = 1};
        c.input_count = 1 + backward;
        c.attributes[0] = pen_attribute_text("approximate", "tanh");
        c.inputs[0].type = c.inputs[1].type = op_type(PEN_FLOAT32, 2, 5, 70);
        c.inputs[backward].low = -7, c.inputs[backward].high = 7;
        cuda_check(&c, backward, 3e-6);
    }
}

// What is infinite, or not a number, stays so.
static void functions_at_the_ends(void **state) {
    (void)state;
    static const float ends[] = {INFINITY, -INFINITY, 0.0f, -0.0f, 100.0f, -100.0f, 1e-30f, -1e-4f};
    static const char *const ops[] = {"exp", "erf", "tanh", "sigmoid", "abs"};
    for (uint32_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        op_case c = {.op = ops[i], .input_count = 1};
        c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 8), .data = ends};
        cuda_check(&c, i, 1e-6);
    }
}

// With both limits, and with one.
static void clips(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        const uint32_t x = seed % 2;
        op_case c = {.op = x > 0 ? "clip_backward" : "clip", .input_count = x + 3};
        for (uint32_t i = 0; i <= x; i++)
            c.inputs[i] = (op_case_input){.type = op_type(PEN_FLOAT32, 2, 5, 70), .high = 6};
        c.inputs[x].low = -6;
        c.inputs[x + 1] = (op_case_input){.type = op_type(PEN_FLOAT32, 0), .low = -1, .high = 1};
        c.inputs[x + 2] = (op_case_input){.type = op_type(PEN_FLOAT32, 0), .low = 2, .high = 4};
        c.inputs[x + 1].is_absent = seed / 2 == 1;
        c.inputs[x + 2].is_absent = seed / 2 == 2;
        cuda_check(&c, seed, 1e-6); // of what is added to
    }
    for (uint64_t seed = 0; seed < 6; seed++) {
        const pen_element_type element = seed % 2 ? PEN_INT64 : PEN_INT32;
        op_case c = {.op = "clip", .input_count = 3};
        c.inputs[0] = (op_case_input){.type = op_type(element, 2, 5, 70), .low = -9, .high = 9};
        c.inputs[1] = (op_case_input){.type = op_type(element, 0), .low = -4, .high = 1};
        c.inputs[2] = (op_case_input){.type = op_type(element, 0), .low = 2, .high = 6};
        c.inputs[1].is_absent = seed / 2 == 1;
        c.inputs[2].is_absent = seed / 2 == 2;
        cuda_check(&c, seed, 0);
    }
}

static void softmaxes(void **state) {
    (void)state;
    static const char *const ops[] = {"softmax", "log_softmax", "softmax_backward",
                                      "log_softmax_backward"};
    for (uint64_t seed = 0; seed < 12; seed++) {
        const bool is_backward = seed % 4 > 1;
        op_case c = {.op = ops[seed % 4], .attribute_count = 1};
        c.input_count = is_backward ? 2 : 1;
        c.attributes[0] = pen_attribute_int("axis", seed < 4 ? -1 : seed < 8 ? 1 : 0);
        const pen_tensor_type type =
            seed < 4 ? op_type(PEN_FLOAT32, 2, 3, 600) : op_type(PEN_FLOAT32, 3, 2, 40, 3);
        c.inputs[0] = (op_case_input){.type = type, .low = -9, .high = 9};
        const bool is_logarithm = seed % 4 == 3; // of a softmax's result, or the result
        c.inputs[1] = (op_case_input){
            .type = type, .low = is_logarithm ? -9 : 0, .high = is_logarithm ? -5 : 1};
        cuda_check(&c, seed, 1e-5);
    }
}

static void normalizations(void **state) {
    (void)state;
    static const char *const ops[] = {"layer_normalization", "layer_normalization_backward",
                                      "rms_normalization", "rms_normalization_backward"};
    for (uint64_t seed = 0; seed < 16; seed++) {
        const bool is_backward = seed % 2 == 1, is_centred = seed % 4 < 2;
        const uint32_t x = is_backward;
        const int rows = seed < 8 ? 2 : 35, columns = seed < 8 ? 600 : 24;
        op_case c = {.op = ops[seed % 4], .attribute_count = 1};
        c.attributes[0] = pen_attribute_float("epsilon", 1e-3);
        c.input_count = is_centred && !is_backward ? x + 3 : x + 2;
        c.output_count = is_centred ? 3 : is_backward ? 2 : 1;
        c.inputs[0].type = op_type(PEN_FLOAT32, 3, rows, 2, columns);
        c.inputs[x] = (op_case_input){.type = c.inputs[0].type, .low = 2, .high = 5};
        c.inputs[x + 1].type = c.inputs[x + 2].type = op_type(PEN_FLOAT32, 1, columns);
        if (is_backward && seed >= 12) c.absent_outputs = 2; // nobody wants the scale's
        cuda_check(&c, seed, 1e-5);
    }
}

static void adam(void **state) {
    (void)state;
    static const double steps[] = {1, 2, 3, 1000, 123456};
    for (uint64_t seed = 0; seed < 10; seed++) {
        op_case c = {.op = "adam_update", .input_count = 7, .output_count = 3};
        const double step = steps[seed % 5];
        c.attribute_count = 4;
        c.attributes[0] = pen_attribute_int("decoupled", seed % 2);
        c.attributes[1] = pen_attribute_float("weight_decay", seed % 3 == 0 ? 0.1 : 0);
        c.attributes[2] = pen_attribute_float("clip_value", seed % 4 == 0 ? 0.25 : 0);
        c.attributes[3] = pen_attribute_float("lr_scale", 0.3);
        for (uint32_t i = 0; i < 4; i++)
            c.inputs[i].type = op_type(PEN_FLOAT32, 2, 9, 91);
        c.inputs[3].high = 1; // squares
        c.inputs[4] = (op_case_input){.type = op_type(PEN_FLOAT32, 0), .high = 0.1};
        c.inputs[5] = (op_case_input){.type = op_type(PEN_FLOAT64, 0), .data = &step};
        c.inputs[6].type = op_type(seed % 2 ? PEN_FLOAT64 : PEN_FLOAT32, 0);
        c.inputs[6].is_absent = seed % 3 == 1;
        cuda_check(&c, seed, 1e-5);
    }
}

static void norms(void **state) {
    (void)state;
    static const int counts[] = {1, 255, 4096, 4097, 30000};
    for (uint64_t seed = 0; seed < 5; seed++) {
        op_case c = {.op = "squared_norm", .input_count = 1};
        c.inputs[0].type = op_type(PEN_FLOAT32, 1, counts[seed]);
        cuda_check(&c, seed, 1e-6);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(functions), cmocka_unit_test(functions_at_the_ends),
              cmocka_unit_test(clips), cmocka_unit_test(softmaxes),
              cmocka_unit_test(normalizations), cmocka_unit_test(adam), cmocka_unit_test(norms))
