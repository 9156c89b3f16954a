#include "graph/passes/gradient/build_gradients.h"
#include "tests/support/dice.h"

static const bool training = true, inference = false;

static op_case dropout_case(pen_tensor_type x, const double *ratio, const bool *mode) {
    return (op_case){
        .op = "dropout",
        .input_count = 3,
        .inputs = {{.type = x},
                   {.type = op_type(PEN_FLOAT64, 0),
                    .data = ratio,
                    .is_constant = true,
                    .is_absent = ratio == NULL},
                   {.type = op_type(PEN_BOOL, 0), .data = mode, .is_constant = true}},
        .output_count = 2,
    };
}

typedef struct dropout_result {
    op_built built;
    run_graph run;
    const pen_tensor *x, *y, *mask;
} dropout_result;

static void dropout_run_case(const op_case *c, uint64_t step, dropout_result *result) {
    CHECK_OK(op_build(c, &result->built));
    CHECK_OK(run_graph_init(&result->run, result->built.graph, result->built.arena));
    result->run.seed = 5;
    result->run.step = step;
    op_fill(c, &result->built, 1, &result->run);
    CHECK_OK(run_graph_all(&result->run));
    result->x = &result->run.tensors[result->built.inputs[0].index];
    result->y = &result->run.tensors[result->built.outputs[0].index];
    result->mask = &result->run.tensors[result->built.outputs[1].index];
}

static uint32_t kept_count(const dropout_result *result) {
    uint32_t kept = 0;
    for (int64_t i = 0; i < pen_tensor_count(result->mask); i++) {
        kept += pen_tensor_get_int(result->mask, i) != 0;
    }
    return kept;
}

static void dropout_drops_its_share(void **state) {
    (void)state;
    const double ratio = 0.3;
    const op_case c = dropout_case(op_type(PEN_FLOAT64, 2, 100, 100), &ratio, &training);
    dropout_result result;
    dropout_run_case(&c, 1, &result);
    const uint32_t kept = kept_count(&result);
    // seven deviations of sqrt(10000 * 0.3 * 0.7) = 46
    CHECK(kept > 6680 && kept < 7320, "%u of 10000 are kept", kept);
    for (int64_t i = 0; i < 10000; i++) {
        const bool keeps = pen_tensor_get_int(result.mask, i) != 0;
        const double expected = keeps ? pen_tensor_get(result.x, i) / (1 - ratio) : 0;
        assert_true(pen_tensor_get(result.y, i) == expected);
    }
    op_built_free(&result.built);
}

static void masks_follow_step_and_seed(void **state) {
    (void)state;
    op_case c = dropout_case(op_type(PEN_FLOAT64, 1, 64), NULL, &training); // a ratio of 0.5
    dropout_result first, again, later, seeded, seeded_later;
    dropout_run_case(&c, 1, &first);
    dropout_run_case(&c, 1, &again);
    dropout_run_case(&c, 2, &later);
    assert_memory_equal(first.mask->data, again.mask->data, 64);
    assert_memory_not_equal(first.mask->data, later.mask->data, 64);
    c.attributes[c.attribute_count++] = pen_attribute_int("seed", 6);
    dropout_run_case(&c, 1, &seeded);
    dropout_run_case(&c, 2, &seeded_later);
    assert_memory_not_equal(first.mask->data, seeded.mask->data, 64);
    assert_memory_not_equal(seeded_later.mask->data, seeded.mask->data, 64);
    op_built_free(&first.built);
    op_built_free(&again.built);
    op_built_free(&later.built);
    op_built_free(&seeded.built);
    op_built_free(&seeded_later.built);
}

static void dropout_in_inference_keeps_all(void **state) {
    (void)state;
    const double ratio = 0.5;
    const op_case c = dropout_case(op_type(PEN_FLOAT64, 1, 40), &ratio, &inference);
    dropout_result result;
    dropout_run_case(&c, 1, &result);
    assert_int_equal(kept_count(&result), 40);
    assert_memory_equal(result.x->data, result.y->data, 40 * sizeof(double));
    op_built_free(&result.built);
}

static void dropout_refuses(void **state) {
    (void)state;
    const double ratios[] = {1, -0.5, 0.5};
    op_case c = dropout_case(op_type(PEN_FLOAT32, 1, 4), &ratios[0], &training);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "dropout 'subject': ratio is 1; it may be 0 or more, and below 1");
    c.inputs[1].data = &ratios[1];
    op_check_error(&c, PEN_INVALID_INPUT, "ratio is -0.5");
    c.inputs[1].data = ratios;
    c.inputs[1].type = op_type(PEN_FLOAT64, 1, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "ratio is not a scalar");
    c = dropout_case(op_type(PEN_INT32, 1, 4), &ratios[2], &training);
    op_check_error(&c, PEN_INVALID_INPUT, "input 0 ('input_0') is int32");
}

static void gradients_match_differences(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        dice d = {.seed = seed};
        const double ratio = (double)dice_between(&d, 0, 9) / 10;
        op_case c = dropout_case(dice_tensor(&d, (uint32_t)dice_between(&d, 0, 4), 4).type, &ratio,
                                 dice_between(&d, 0, 5) == 0 ? &inference : &training);
        op_check_gradient(&c, seed);
    }
}

static void gradient_needs_the_mask(void **state) {
    (void)state;
    op_case c = dropout_case(op_type(PEN_FLOAT64, 1, 4), NULL, &training);
    c.output_count = 1;
    op_built built;
    CHECK_OK(op_build(&c, &built));
    const pen_value seed = {.name = "seed",
                            .kind = PEN_VALUE_INPUT,
                            .type = *pen_value_type(built.graph, built.outputs[0])};
    pen_value_id seed_id;
    pen_gradients *gradients;
    CHECK_OK(pen_graph_add_value(built.graph, &seed, &seed_id));
    CHECK_ERROR(pen_build_gradients(built.graph, built.outputs[0], seed_id, 1, &built.inputs[0],
                                    &gradients),
                PEN_UNSUPPORTED, "dropout 'subject' does not keep its mask");
    op_built_free(&built);
}

PEN_TEST_MAIN(cmocka_unit_test(dropout_drops_its_share),
              cmocka_unit_test(masks_follow_step_and_seed),
              cmocka_unit_test(dropout_in_inference_keeps_all), cmocka_unit_test(dropout_refuses),
              cmocka_unit_test(gradients_match_differences),
              cmocka_unit_test(gradient_needs_the_mask))
