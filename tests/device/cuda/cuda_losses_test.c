// Losses on an emulated GPU against the reference kernels, with all their options.
#include <math.h>
#include <string.h>

#include "tests/support/cuda_check.h"
#include "tests/support/random_case.h"

// Lengths of lines on both sides of each size of a team of threads.
static const int lengths[] = {1, 3, 16, 17, 64, 65, 300, 1024, 1025, 1500};
#define LENGTHS (sizeof lengths / sizeof *lengths)

// A loss over classes, of scores or of logarithms; bits of `options`: ignored labels, weights of
// classes, smoothing.
static op_case classes_case(bool of_scores, bool is_backward, const char *reduction, int classes,
                            uint32_t options) {
    static const char *const ops[2][2] = {
        {"negative_log_likelihood_loss", "negative_log_likelihood_loss_backward"},
        {"softmax_cross_entropy_loss", "softmax_cross_entropy_loss_backward"}};
    const bool has_scores = of_scores || !is_backward, each = strcmp(reduction, "none") == 0;
    const uint32_t labels = is_backward && of_scores ? 2 : 1;
    op_case c = {.op = ops[of_scores][is_backward], .input_count = labels + 2};
    c.attributes[c.attribute_count++] = pen_attribute_text("reduction", reduction);
    if (options & 1) c.attributes[c.attribute_count++] = pen_attribute_int("ignore_index", 0);
    if (options & 4 && of_scores)
        c.attributes[c.attribute_count++] = pen_attribute_float("label_smoothing", 0.2);
    const pen_tensor_type scores = op_type(PEN_FLOAT32, 3, 4, classes, 3);
    c.inputs[labels].type = op_type(PEN_INT64, 2, 4, 3);
    c.inputs[labels].high = classes;
    if (classes == 1 && options & 1) c.attributes[1] = pen_attribute_int("ignore_index", 7);
    c.inputs[labels + 1] =
        (op_case_input){.type = op_type(PEN_FLOAT32, 1, classes), .low = 0.5, .high = 2};
    c.inputs[labels + 1].is_absent = (options & 2) == 0;
    if (has_scores) c.inputs[labels - 1] = (op_case_input){.type = scores, .low = -9, .high = 0};
    if (is_backward)
        c.inputs[0].type = each ? op_type(PEN_FLOAT32, 2, 4, 3) : op_type(PEN_FLOAT32, 0);
    if (is_backward && !of_scores) {
        static int64_t shape[3] = {4, 0, 3};
        shape[1] = classes;
        c.attributes[c.attribute_count++] = pen_attribute_ints("shape", 3, shape);
    }
    c.output_count = of_scores && !is_backward && options % 3 == 0 ? 2 : 1;
    return c;
}

static void losses_over_classes(void **state) {
    (void)state;
    static const char *const reductions[] = {"mean", "sum", "none"};
    for (uint32_t seed = 0; seed < 96; seed++) {
        const op_case c = classes_case(seed % 4 < 2, seed % 2, reductions[seed % 3],
                                       lengths[seed / 4 % LENGTHS], seed / 4 % 8);
        cuda_check(&c, seed, 1e-5);
    }
}

// Where no label counts, nothing is learnt.
static void labels_that_are_all_ignored(void **state) {
    (void)state;
    static const int64_t labels[12] = {0};
    for (uint32_t seed = 0; seed < 4; seed++) {
        op_case c = classes_case(seed < 2, seed % 2, "sum", 17, 5);
        c.inputs[seed == 1 ? 2 : 1].data = labels;
        cuda_check(&c, seed, 0);
    }
}

static void losses_of_pairs(void **state) {
    (void)state;
    static const struct {
        const char *op;
        double low, high, target_low, target_high;
    } cases[] = {
        {"mean_squared_error", -3, 3, -3, 3},
        {"l1", -3, 3, -3, 3},
        {"smooth_l1", -3, 3, -3, 3},
        {"binary_cross_entropy", 0.001, 0.999, 0, 1},
        {"binary_cross_entropy_with_logits", -30, 30, 0, 1},
        {"kl_divergence", -9, 0, 0, 1},
    };
    static const int counts[] = {1, 300, 4096, 9000};
    for (uint32_t seed = 0; seed < 48; seed++) {
        char backward[64];
        const uint32_t i = seed % 6, x = seed / 6 % 2;
        snprintf(backward, sizeof backward, "%s_backward", cases[i].op);
        op_case c = {.op = x > 0 ? backward : cases[i].op, .input_count = x + 2};
        c.inputs[0].type = op_type(PEN_FLOAT32, 0); // dy
        c.inputs[x] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, counts[seed / 12]),
                                      .low = cases[i].low,
                                      .high = cases[i].high};
        c.inputs[x + 1] = (op_case_input){
            .type = c.inputs[x].type, .low = cases[i].target_low, .high = cases[i].target_high};
        if (i == 2)
            c.attributes[c.attribute_count++] = pen_attribute_float("beta", seed % 2 ? 0.5 : 0);
        cuda_check(&c, seed, 1e-5);
    }
}

// What is not inside of (0, 1) is held, and what is 0 is no logarithm.
static void pairs_at_the_ends(void **state) {
    (void)state;
    static const float x[] = {0, 1, 0, 1, 0.5f, 1e-30f, 1e-41f, 1 - 6e-8f};
    static const float targets[] = {0, 1, 1, 0, 0, 1, 1, 0};
    static const char *const ops[] = {"binary_cross_entropy", "kl_divergence",
                                      "binary_cross_entropy_with_logits"};
    for (uint32_t seed = 0; seed < 3; seed++) {
        op_case c = {.op = ops[seed], .input_count = 2};
        c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 8), .data = x};
        c.inputs[1] = (op_case_input){.type = op_type(PEN_FLOAT32, 1, 8), .data = targets};
        cuda_check(&c, seed, 1e-5);
    }
}

// Lines of every size of a team, sums, extrema and their gradients, and the count of what is right.
static void lines_of_all_lengths(void **state) {
    (void)state;
    static const char *const ops[] = {"reduce_sum", "reduce_max", "reduce_max_backward",
                                      "accuracy_count"};
    static const int64_t axis = 1;
    for (uint32_t seed = 0; seed < 4 * LENGTHS; seed++) {
        static float x[37 * 1500], found[37];
        const int length = lengths[seed / 4];
        const bool is_backward = seed % 4 == 2, counts = seed % 4 == 3;
        for (int i = 0; i < 37 * length; i++)
            x[i] = (float)(i * i % 11);
        for (int i = 0; i < 37; i++) {
            found[i] = x[i * length];
            for (int k = 1; k < length; k++)
                found[i] = fmaxf(found[i], x[i * length + k]);
        }
        op_case c = {.op = ops[seed % 4], .input_count = is_backward ? 3 : 2};
        const op_case_input lines = {.type = op_type(PEN_FLOAT32, 2, 37, length), .data = x};
        c.inputs[is_backward] = lines;
        if (is_backward) {
            c.inputs[0].type = op_type(PEN_FLOAT32, 2, 37, 1);
            c.inputs[2] = (op_case_input){.type = c.inputs[0].type, .data = found};
        } else if (counts) {
            c.inputs[1] = (op_case_input){.type = op_type(PEN_INT64, 1, 37), .high = length};
        } else {
            c.inputs[1] = (op_case_input){
                .type = op_type(PEN_INT64, 1, 1), .data = &axis, .is_constant = true};
        }
        cuda_check(&c, seed, 1e-6);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(losses_over_classes), cmocka_unit_test(labels_that_are_all_ignored),
              cmocka_unit_test(losses_of_pairs), cmocka_unit_test(pairs_at_the_ends),
              cmocka_unit_test(lines_of_all_lengths))
