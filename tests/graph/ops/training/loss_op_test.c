#include <math.h>

#include "graph/passes/gradient/build_gradients.h"
#include "tests/support/op_check.h"
#include "tests/support/random_case.h"

// Log-probabilities of {0, 1, 2}.
#define L0 (-2.4076059644443806)
#define L1 (-1.4076059644443806)
#define L2 (-0.4076059644443806)
#define THIRD (-1.0986122886681098)

static const double scores[] = {0, 1, 2, 0, 0, 0, 5, 6, 7}; // [3,3]
static const int64_t labels[] = {2, 0, 1};
static const double class_weights[] = {1, 2, 4};

static op_case classes(const char *op, uint32_t input_count, const char *reduction) {
    return (op_case){
        .op = op,
        .input_count = input_count,
        .inputs = {{.type = op_type(PEN_FLOAT64, 2, 3, 3), .data = scores},
                   {.type = op_type(PEN_INT64, 1, 3), .data = labels},
                   {.type = op_type(PEN_FLOAT64, 1, 3), .data = class_weights, .is_fixed = true}},
        .attribute_count = 1,
        .attributes = {pen_attribute_text("reduction", reduction)}};
}

static void ignore(op_case *c, int64_t label) {
    c->attributes[c->attribute_count++] = pen_attribute_int("ignore_index", label);
}

static void cross_entropy(void **state) {
    (void)state;
    op_case each = classes("softmax_cross_entropy_loss", 2, "none");
    op_check_values(&each, 0, (const double[]){-L2, -THIRD, -L1}, 3, 1e-14);
    op_case sum = classes("softmax_cross_entropy_loss", 2, "sum");
    op_check_values(&sum, 0, (const double[]){-L2 - THIRD - L1}, 1, 1e-14);
    op_case mean = classes("softmax_cross_entropy_loss", 2, "mean");
    mean.output_count = 2;
    op_check_values(&mean, 0, (const double[]){(-L2 - THIRD - L1) / 3}, 1, 1e-14);
    op_check_values(&mean, 1, (const double[]){L0, L1, L2, THIRD, THIRD, THIRD, L0, L1, L2}, 9,
                    1e-14);
    op_case weighted = classes("softmax_cross_entropy_loss", 3, "mean");
    op_check_values(&weighted, 0, (const double[]){(-4 * L2 - THIRD - 2 * L1) / 7}, 1, 1e-14);
    ignore(&weighted, 0);
    op_check_values(&weighted, 0, (const double[]){(-4 * L2 - 2 * L1) / 6}, 1, 1e-14);
    ignore(&each, 2);
    op_check_values(&each, 0, (const double[]){0, -THIRD, -L1}, 3, 1e-14);
}

// With smoothing, every class has a share, weighed by its own weight.
static void labels_are_smoothed(void **state) {
    (void)state;
    const double all = -(L0 + L1 + L2) / 3, weighed = -(L0 + 2 * L1 + 4 * L2) / 3;
    op_case each = classes("softmax_cross_entropy_loss", 2, "none");
    each.attributes[each.attribute_count++] = pen_attribute_float("label_smoothing", 0.25);
    op_check_values(&each, 0,
                    (const double[]){-0.75 * L2 + 0.25 * all, -THIRD, -0.75 * L1 + 0.25 * all}, 3,
                    1e-14);
    each.attributes[1] = pen_attribute_float("label_smoothing", 1);
    op_check_values(&each, 0, (const double[]){all, -THIRD, all}, 3, 1e-14);
    op_case mean = classes("softmax_cross_entropy_loss", 3, "mean");
    mean.attributes[mean.attribute_count++] = pen_attribute_float("label_smoothing", 0.25);
    ignore(&mean, 0);
    const double sum = 0.75 * (-4 * L2 - 2 * L1) + 0.25 * 2 * weighed;
    op_check_values(&mean, 0, (const double[]){sum / 6}, 1, 1e-14);
    mean.attributes[1] = pen_attribute_float("label_smoothing", 1.5);
    op_check_error(&mean, PEN_INVALID_INPUT, "label_smoothing is 1.5; it may be 0 to 1");
}

static void likelihood(void **state) {
    (void)state;
    op_case each = classes("negative_log_likelihood_loss", 3, "none");
    op_check_values(&each, 0, (const double[]){-8, 0, -12}, 3, 0);
    op_case mean = classes("negative_log_likelihood_loss", 3, "mean");
    op_check_values(&mean, 0, (const double[]){-20.0 / 7}, 1, 1e-15);
    ignore(&mean, 2);
    op_check_values(&mean, 0, (const double[]){-12.0 / 3}, 1, 1e-15);
}

// Scores (1, 2 classes, 2): the classes are the second dimension.
static void dimensions_behind_the_classes(void **state) {
    (void)state;
    const double x[] = {1, 2, 3, 4};
    const int32_t at[] = {1, 0};
    op_case c = {.op = "negative_log_likelihood_loss",
                 .input_count = 2,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 3, 1, 2, 2), .data = x},
                            {.type = op_type(PEN_INT32, 2, 1, 2), .data = at}},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_text("reduction", "none")}};
    op_check_values(&c, 0, (const double[]){-3, -2}, 2, 0);
    op_case right = {.op = "accuracy_count", .input_count = 2};
    memcpy(right.inputs, c.inputs, sizeof c.inputs);
    op_check_values(&right, 0, (const double[]){1}, 1, 0);
}

static void accuracy(void **state) {
    (void)state;
    op_case c = classes("accuracy_count", 2, "mean");
    c.attribute_count = 0;
    op_check_values(&c, 0, (const double[]){2}, 1, 0); // equal scores: the first is chosen
    ignore(&c, 2);
    op_check_values(&c, 0, (const double[]){1}, 1, 0);
}

// Of equal scores the first classes are chosen: 3 of them are equal, and the last is among three.
static void accuracy_among_the_best(void **state) {
    (void)state;
    const double x[] = {1, 5, 5, 5, 4, 3, 2, 1};
    const int32_t at[] = {3, 2};
    op_case c = {.op = "accuracy_count",
                 .input_count = 2,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 4), .data = x},
                            {.type = op_type(PEN_INT32, 1, 2), .data = at}},
                 .attribute_count = 1};
    const double counts[] = {0, 0, 2, 2};
    for (int64_t top = 1; top <= 4; top++) {
        c.attributes[0] = pen_attribute_int("top", top);
        op_check_values(&c, 0, &counts[top - 1], 1, 0);
    }
}

static void check_run_error(const op_case *c, const char *text) {
    op_built built;
    run_graph run;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(c, &built, 1, &run);
    CHECK_ERROR(run_graph_all(&run), PEN_INVALID_INPUT, text);
    op_built_free(&built);
}

static void labels_must_be_classes(void **state) {
    (void)state;
    const int64_t high[] = {2, 3, 0}, low[] = {2, 1, -1};
    const char *const ops[] = {"softmax_cross_entropy_loss", "negative_log_likelihood_loss",
                               "accuracy_count"};
    for (int i = 0; i < 3; i++) {
        op_case c = classes(ops[i], 2, "mean");
        if (i == 2) c.attribute_count = 0;
        c.inputs[1].data = high;
        check_run_error(&c, "label 3 of target 1 is not one of 3 classes, 0 to 2");
        c.inputs[1].data = low;
        check_run_error(&c, "label -1 of target 2 is not one of 3 classes, 0 to 2");
        if (i == 2) continue;
        ignore(&c, -1);
        op_check_values(&c, 0, (const double[]){i == 0 ? (-L2 - THIRD) / 2 : -1}, 1, 1e-14);
    }
}

static void pairs(void **state) {
    (void)state;
    const double x[] = {0.5, 0, 1, 0.25}, target[] = {1, 0, 0, 0.5};
    op_case c = {.op = "mean_squared_error",
                 .input_count = 2,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = x},
                            {.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = target}}};
    op_check_values(&c, 0, (const double[]){(0.25 + 0 + 1 + 0.0625) / 4}, 1, 1e-15);
    c.op = "binary_cross_entropy"; // the third is held at 100
    const double last = -0.5 * log(0.25) - 0.5 * log(0.75);
    op_check_values(&c, 0, (const double[]){(log(2) + 0 + 100 + last) / 4}, 1, 1e-15);
    c.op = "binary_cross_entropy_with_logits";
    const double expected =
        log(1 + exp(-0.5)) + log(2) + log(1 + exp(1)) + (log(1 + exp(0.25)) - 0.125);
    op_check_values(&c, 0, (const double[]){expected / 4}, 1, 1e-15);
    const double large[] = {1000, -1000, -1000, 1000}, sure[] = {1, 0, 1, 0};
    c.inputs[0].data = large;
    c.inputs[1].data = sure;
    op_check_values(&c, 0, (const double[]){500}, 1, 1e-15);
}

static void distances_and_divergences(void **state) {
    (void)state;
    const double x[] = {0.5, 0, 3, -0.25}, target[] = {1, 0, 0, 0.5};
    op_case c = {.op = "l1",
                 .input_count = 2,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = x},
                            {.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = target}}};
    op_check_values(&c, 0, (const double[]){(0.5 + 0 + 3 + 0.75) / 4}, 1, 1e-15);
    c.op = "smooth_l1";
    const double squares = 0.5 * (0.25 + 0.5625);
    op_check_values(&c, 0, (const double[]){(squares + 2.5) / 4}, 1, 1e-15);
    c.attributes[c.attribute_count++] = pen_attribute_float("beta", 0.5);
    op_check_values(&c, 0, (const double[]){(0.25 + 2.75 + 0.5) / 4}, 1, 1e-15);
    c.attributes[0] = pen_attribute_float("beta", 0); // the same as l1
    op_check_values(&c, 0, (const double[]){(0.5 + 0 + 3 + 0.75) / 4}, 1, 1e-15);
    c.attributes[0] = pen_attribute_float("beta", -1);
    op_check_error(&c, PEN_INVALID_INPUT, "beta is -1; it may not be negative");
    c.op = "kl_divergence";
    c.attribute_count = 0;
    op_check_values(&c, 0, (const double[]){(-0.5 + 0 + 0 + 0.5 * log(0.5) + 0.125) / 4}, 1, 1e-15);
}

// Scores of rank 2 to 4, now and then with weights, ignored labels and both outputs.
static void gradients_over_classes(void **state) {
    (void)state;
    const char *const reductions[] = {"mean", "sum", "none"};
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_case random = {.seed = seed};
        const bool is_softmax = seed % 2 == 0;
        pen_tensor_type type = random_type(&random, 2, 4, 4, 60);
        type.element = PEN_FLOAT64;
        op_case c = {.op =
                         is_softmax ? "softmax_cross_entropy_loss" : "negative_log_likelihood_loss",
                     .input_count = 2 + (uint32_t)random_between(&random, 0, 1),
                     .output_count = is_softmax && random_chance(&random, 30) ? 2 : 1};
        c.inputs[0].type = type;
        c.inputs[1].type =
            (pen_tensor_type){seed % 3 == 0 ? PEN_INT32 : PEN_INT64, {type.shape.rank - 1, {0}}};
        for (uint32_t d = 0; d < type.shape.rank; d++) {
            if (d != 1) c.inputs[1].type.shape.dims[d == 0 ? 0 : d - 1] = type.shape.dims[d];
        }
        const bool with_ignored = random_chance(&random, 50);
        c.inputs[1].low = with_ignored ? -1 : 0;
        c.inputs[1].high = (double)type.shape.dims[1];
        c.inputs[2] =
            (op_case_input){.type = pen_tensor_type_make(PEN_FLOAT64, 1, &type.shape.dims[1]),
                            .low = 0.5,
                            .high = 2,
                            .is_fixed = true};
        // not every target may be ignored where the mean divides by their number
        const bool may_divide_by_zero =
            with_ignored && pen_shape_element_count(&c.inputs[1].type.shape) < 12;
        c.attributes[c.attribute_count++] = pen_attribute_text(
            "reduction", reductions[may_divide_by_zero ? 1 + seed % 2 : seed % 3]);
        if (with_ignored) ignore(&c, -1);
        if (is_softmax && random_chance(&random, 50)) {
            c.attributes[c.attribute_count++] = pen_attribute_float("label_smoothing", 0.3);
        }
        op_check_gradient(&c, seed);
    }
}

static void gradients_of_pairs(void **state) {
    (void)state;
    const char *const ops[] = {
        "mean_squared_error", "binary_cross_entropy", "binary_cross_entropy_with_logits", "l1",
        "smooth_l1",          "kl_divergence"};
    for (uint64_t seed = 0; seed < 120; seed++) {
        random_case random = {.seed = seed};
        pen_tensor_type type = random_type(&random, 0, 4, 4, 60);
        type.element = PEN_FLOAT64;
        const bool is_distance = seed % 6 == 0 || seed % 6 == 3 || seed % 6 == 4;
        op_case c = {.op = ops[seed % 6],
                     .input_count = 2,
                     .inputs = {{.type = type, .low = 0.05, .high = 0.95},
                                {.type = type, .high = 1, .is_fixed = !is_distance}}};
        if (seed % 6 == 4) c.attributes[c.attribute_count++] = pen_attribute_float("beta", 0.4);
        op_check_gradient(&c, seed);
    }
}

static void ignored_targets_have_no_gradient(void **state) {
    (void)state;
    const double dy = 1;
    const int64_t none[] = {7, 7, 7};
    op_case c = {.op = "softmax_cross_entropy_loss_backward",
                 .input_count = 3,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 0), .data = &dy},
                            {.type = op_type(PEN_FLOAT64, 2, 3, 3), .data = scores},
                            {.type = op_type(PEN_INT64, 1, 3), .data = none}}};
    ignore(&c, 7);
    op_check_values(&c, 0, (const double[9]){0}, 9, 0);
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    op_case c = classes("softmax_cross_entropy_loss", 3, "average");
    op_check_error(&c, PEN_INVALID_INPUT, "reduction is 'average'; it may be none, sum or mean");
    c = classes("softmax_cross_entropy_loss", 3, "mean");
    c.inputs[2].type = op_type(PEN_FLOAT64, 1, 4);
    op_check_error(&c, PEN_INVALID_INPUT, "input 2 ('input_2') is [4], expected [3]");
    c.inputs[1].type = op_type(PEN_INT64, 2, 3, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "input 1 ('input_1') is [3,3], expected [3]");
    c.inputs[1].type = op_type(PEN_FLOAT32, 1, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "is float32; it may be int32, int64");
    c.inputs[0].type = op_type(PEN_FLOAT64, 1, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "scores are [3], expected (examples, classes, …)");
    op_case mse = {
        .op = "mean_squared_error",
        .input_count = 2,
        .inputs = {{.type = op_type(PEN_FLOAT64, 1, 3)}, {.type = op_type(PEN_FLOAT64, 1, 1)}}};
    op_check_error(&mse, PEN_INVALID_INPUT, "is [1], expected [3]");
    mse.inputs[0].type = mse.inputs[1].type = op_type(PEN_FLOAT64, 1, 0);
    op_check_error(&mse, PEN_INVALID_INPUT, "the mean of no elements");
}

static void targets_are_not_trained(void **state) {
    (void)state;
    op_case c = {
        .op = "binary_cross_entropy",
        .input_count = 2,
        .inputs = {{.type = op_type(PEN_FLOAT64, 1, 3)}, {.type = op_type(PEN_FLOAT64, 1, 3)}}};
    op_built built;
    CHECK_OK(op_build(&c, &built));
    const pen_value seed = {
        .name = "seed", .kind = PEN_VALUE_INPUT, .type = {.element = PEN_FLOAT64}};
    pen_value_id seed_id;
    pen_gradients *gradients;
    CHECK_OK(pen_graph_add_value(built.graph, &seed, &seed_id));
    CHECK_ERROR(
        pen_build_gradients(built.graph, built.outputs[0], seed_id, 2, built.inputs, &gradients),
        PEN_UNSUPPORTED, "the target of a loss cannot be trained");
    op_built_free(&built);
}

PEN_TEST_MAIN(cmocka_unit_test(cross_entropy), cmocka_unit_test(likelihood),
              cmocka_unit_test(labels_are_smoothed), cmocka_unit_test(distances_and_divergences),
              cmocka_unit_test(dimensions_behind_the_classes), cmocka_unit_test(accuracy),
              cmocka_unit_test(accuracy_among_the_best), cmocka_unit_test(labels_must_be_classes),
              cmocka_unit_test(pairs), cmocka_unit_test(gradients_over_classes),
              cmocka_unit_test(gradients_of_pairs),
              cmocka_unit_test(ignored_targets_have_no_gradient),
              cmocka_unit_test(wrong_operands_are_refused),
              cmocka_unit_test(targets_are_not_trained))
