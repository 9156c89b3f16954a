#include "graph/passes/gradient/attach_loss.h"

#include <math.h>

#include "graph/op.h"
#include "tests/support/loss_request.h"
#include "tests/support/random_graph.h"
#include "tests/support/run_graph.h"

static pen_graph *graph_with(pen_arena *arena, const pen_tensor_type *type, pen_value_id *out_y) {
    pen_graph *graph = NULL;
    CHECK_OK(pen_graph_create(arena, "model", &graph));
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, type);
    *out_y = graph_apply(graph, "identity", "y", x, PEN_VALUE_NONE, PEN_VALUE_NONE);
    return graph;
}

static void losses_over_classes_count_right_answers(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    // two examples of three words each, four classes
    const pen_tensor_type type = {PEN_FLOAT32, {3, {2, 3, 4}}};
    pen_value_id y;
    pen_graph *graph = graph_with(arena, &type, &y);
    pen_attached_loss loss;
    CHECK_OK(attach_plain_loss(graph, PEN_LOSS_SOFTMAX_CROSS_ENTROPY, y, PEN_VALUE_NONE, &loss));
    const pen_tensor_type labels = {PEN_INT64, {2, {2, 3}}};
    assert_true(pen_tensor_type_equal(pen_value_type(graph, loss.labels), &labels));
    assert_int_equal(pen_shape_element_count(&pen_value_type(graph, loss.loss)->shape), 1);
    assert_int_equal(pen_value_type(graph, loss.accuracy)->element, PEN_INT64);
    run_graph run;
    CHECK_OK(run_graph_init(&run, graph, arena));
    double expected = 0;
    for (int64_t t = 0; t < 6; t++) {
        double sum = 0;
        for (int64_t k = 0; k < 4; k++) {
            const double score = sin((double)(4 * t + k));
            pen_tensor_set(&run.tensors[pen_graph_input(graph, 0).index], 4 * t + k, score);
            sum += exp(score);
        }
        const int64_t label = t % 4;
        pen_tensor_set_int(&run.tensors[loss.labels.index], t, label);
        expected += (log(sum) - sin((double)(4 * t + label))) / 6;
    }
    CHECK_OK(run_graph_all(&run));
    const double found = pen_tensor_get(&run.tensors[loss.loss.index], 0);
    CHECK(fabs(found - expected) < 1e-6, "the loss is %g, expected %g", found, expected);
    const int64_t right = pen_tensor_get_int(&run.tensors[loss.accuracy.index], 0);
    int64_t expected_right = 0;
    for (int64_t t = 0; t < 6; t++) {
        int64_t best = 0;
        for (int64_t k = 1; k < 4; k++) {
            if (sin((double)(4 * t + k)) > sin((double)(4 * t + best))) best = k;
        }
        expected_right += best == t % 4;
    }
    assert_int_equal(right, expected_right);
    pen_arena_destroy(arena);
}

// Two examples of three words, of which four count. So right answers are those of the four, and the
// distance that is told is theirs once it is divided by their share.
static void a_mask_leaves_out_targets(void **state) {
    (void)state;
    static const pen_loss_kind kinds[] = {
        PEN_LOSS_SOFTMAX_CROSS_ENTROPY, PEN_LOSS_MEAN_SQUARED_ERROR, PEN_LOSS_BINARY_CROSS_ENTROPY,
        PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS};
    static const bool counts[6] = {true, false, true, true, false, true};
    const pen_tensor_type type = {PEN_FLOAT32, {3, {2, 3, 4}}};
    const pen_tensor_type mask_type = {PEN_BOOL, {2, {2, 3}}};
    const pen_tensor_type some = {PEN_FLOAT32, {3, {1, 4, 4}}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        pen_arena *arena = check_arena();
        pen_value_id y, part;
        double losses[2], distances[2] = {0, 0}, shares[2] = {1, 1};
        int64_t right[2] = {0, 0};
        for (uint32_t masked = 0; masked < 2; masked++) { // the four alone, then with the mask
            pen_graph *graph = graph_with(arena, masked == 1 ? &type : &some, &y);
            pen_value_id mask = PEN_VALUE_NONE;
            pen_attached_loss loss;
            run_graph run;
            if (masked == 1) mask = graph_value_of(graph, "mask", PEN_VALUE_INPUT, &mask_type);
            CHECK_OK(attach_plain_loss(graph, kinds[k], y, mask, &loss));
            pen_value_id distance = PEN_VALUE_NONE;
            const pen_loss_place place = {.output = y, .mask = mask, .example_count = 2};
            if (k > 0) {
                CHECK_OK(pen_attach_error(graph, PEN_LOSS_L1, &place, loss.labels, &distance));
            }
            assert_int_equal(pen_value_is(loss.counted), masked == 1);
            CHECK_OK(run_graph_init(&run, graph, arena));
            part = pen_graph_input(graph, 0);
            int64_t to = 0;
            for (int64_t t = 0; t < 6; t++) {
                if (masked == 0 && !counts[t]) continue;
                if (masked == 1) pen_tensor_set(&run.tensors[mask.index], t, counts[t] ? 1 : 0);
                for (int64_t c = 0; c < 4; c++) {
                    const double number = 0.5 + 0.45 * sin((double)(4 * t + c));
                    pen_tensor_set(&run.tensors[part.index], 4 * to + c, number);
                    if (k == 0) continue;
                    pen_tensor_set(&run.tensors[loss.labels.index], 4 * to + c,
                                   (double)((t + c) % 2));
                }
                const int64_t label = counts[t] ? t % 4 : 99; // no class, where nothing counts
                if (k == 0) pen_tensor_set_int(&run.tensors[loss.labels.index], to, label);
                to++;
            }
            CHECK_OK(run_graph_all(&run));
            losses[masked] = pen_tensor_get(&run.tensors[loss.loss.index], 0);
            if (k == 0) right[masked] = pen_tensor_get_int(&run.tensors[loss.accuracy.index], 0);
            if (k > 0) distances[masked] = pen_tensor_get(&run.tensors[distance.index], 0);
            if (masked == 1) shares[1] = pen_tensor_get(&run.tensors[loss.counted.index], 0);
        }
        CHECK(fabs(losses[0] - losses[1]) < 1e-6, "kind %zu: %g and %g", k, losses[0], losses[1]);
        assert_int_equal(right[1], right[0]);
        CHECK(fabs(shares[1] - 4.0 / 6) < 1e-7, "a share of %g", shares[1]);
        CHECK(fabs(distances[1] / shares[1] - distances[0]) < 1e-6, "kind %zu: %g of %g, and %g", k,
              distances[1], shares[1], distances[0]);
        pen_arena_destroy(arena);
    }
}

// Each target weighs what its class does. Where none counts, the mean is 0 and no NaN.
static void a_mask_goes_with_weights_of_classes(void **state) {
    (void)state;
    static const float weights[4] = {1, 2, 0.5f, 3};
    static const bool counts[6] = {true, false, true, true, false, true};
    const pen_tensor_type type = {PEN_FLOAT32, {3, {2, 3, 4}}};
    const pen_tensor_type mask_type = {PEN_BOOL, {2, {2, 3}}};
    for (int i = 0; i < 4; i++) {
        const bool is_weighted = i & 1, is_empty = i & 2;
        pen_arena *arena = check_arena();
        pen_value_id y;
        pen_attached_loss loss;
        run_graph run;
        pen_graph *graph = graph_with(arena, &type, &y);
        const pen_value_id mask = graph_value_of(graph, "mask", PEN_VALUE_INPUT, &mask_type);
        const pen_loss_spec spec = {.kind = PEN_LOSS_SOFTMAX_CROSS_ENTROPY,
                                    .class_axis = -1,
                                    .class_weights = is_weighted ? weights : NULL,
                                    .class_weight_count = is_weighted ? 4 : 0};
        const pen_loss_place place = {
            .output = y, .labels = "labels", .mask = mask, .scale = "scale", .example_count = 2};
        CHECK_OK(pen_attach_loss(graph, &spec, &place, &loss));
        CHECK_OK(run_graph_init(&run, graph, arena));
        double sum = 0, weight = 0;
        for (int64_t t = 0; t < 6; t++) {
            const bool is_counted = counts[t] && !is_empty;
            double all = 0;
            pen_tensor_set(&run.tensors[mask.index], t, is_counted);
            pen_tensor_set_int(&run.tensors[loss.labels.index], t, t % 4);
            for (int64_t c = 0; c < 4; c++) {
                const double score = sin((double)(4 * t + c));
                all += exp(score);
                pen_tensor_set(&run.tensors[pen_graph_input(graph, 0).index], 4 * t + c, score);
            }
            if (!is_counted) continue;
            const double own = is_weighted ? (double)weights[t % 4] : 1;
            sum += own * (log(all) - sin((double)(4 * t + t % 4)));
            weight += own;
        }
        CHECK_OK(run_graph_all(&run));
        const double found = pen_tensor_get(&run.tensors[loss.loss.index], 0);
        const double expected = is_empty ? 0 : sum / weight;
        CHECK(fabs(found - expected) < 1e-6, "case %d: %g, expected %g", i, found, expected);
        pen_arena_destroy(arena);
    }
}

// A model that ends with softmax is trained by what that reads.
static void a_softmax_at_the_end_is_left_out(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_tensor_type type = {PEN_FLOAT32, {2, {3, 4}}};
    for (int axis = -1; axis < 2; axis++) {
        pen_value_id logits, shares;
        pen_graph *graph = graph_with(arena, &type, &logits);
        const pen_attribute_given along = pen_attribute_int("axis", axis);
        pen_node_spec spec = pen_node_spec_make("softmax", "shares");
        spec.inputs = &logits;
        spec.input_count = 1;
        spec.attributes = &along;
        spec.attribute_count = 1;
        CHECK_OK(pen_graph_add_simple(graph, &spec, &shares));
        pen_attached_loss loss;
        CHECK_OK(attach_plain_loss(graph, PEN_LOSS_SOFTMAX_CROSS_ENTROPY, shares, PEN_VALUE_NONE,
                                   &loss));
        const pen_node_id node = pen_graph_value(graph, loss.loss)->producer;
        const pen_value_id read = pen_graph_node(graph, node)->inputs[0];
        assert_true(pen_value_same(read, axis == 0 ? shares : logits));
    }
    pen_arena_destroy(arena);
}

static void losses_over_elements_take_targets_like_the_output(void **state) {
    (void)state;
    static const pen_loss_kind kinds[] = {PEN_LOSS_MEAN_SQUARED_ERROR,
                                          PEN_LOSS_BINARY_CROSS_ENTROPY,
                                          PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS};
    const pen_tensor_type type = {PEN_FLOAT32, {2, {5, 2}}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        pen_arena *arena = check_arena();
        pen_value_id y;
        pen_graph *graph = graph_with(arena, &type, &y);
        pen_attached_loss loss;
        CHECK_OK(attach_plain_loss(graph, kinds[i], y, PEN_VALUE_NONE, &loss));
        assert_true(pen_tensor_type_equal(pen_value_type(graph, loss.labels), &type));
        assert_int_equal(pen_shape_element_count(&pen_value_type(graph, loss.loss)->shape), 1);
        assert_false(pen_value_is(loss.accuracy));
        pen_arena_destroy(arena);
    }
}

static pen_status attach(pen_loss_kind kind, pen_tensor_type type, pen_attached_loss *out_loss) {
    pen_arena *arena = check_arena();
    pen_value_id y;
    pen_graph *graph = graph_with(arena, &type, &y);
    const pen_status status = attach_plain_loss(graph, kind, y, PEN_VALUE_NONE, out_loss);
    pen_arena_destroy(arena);
    return status;
}

static void outputs_must_suit_the_loss(void **state) {
    (void)state;
    pen_attached_loss loss;
    CHECK_ERROR(
        attach(PEN_LOSS_SOFTMAX_CROSS_ENTROPY, (pen_tensor_type){PEN_FLOAT32, {1, {4}}}, &loss),
        PEN_INVALID_INPUT, "'y:0' is float32[4], expected (examples, …, classes)");
    CHECK_ERROR(attach(PEN_LOSS_OUTPUT, (pen_tensor_type){PEN_FLOAT32, {1, {4}}}, &loss),
                PEN_INVALID_INPUT, "expected one element to be the loss");
    CHECK_ERROR(attach(PEN_LOSS_OUTPUT, (pen_tensor_type){PEN_INT64, {0, {0}}}, &loss),
                PEN_INVALID_INPUT, "is int64");
    CHECK_ERROR(
        attach(PEN_LOSS_SOFTMAX_CROSS_ENTROPY, (pen_tensor_type){PEN_FLOAT32, {2, {4, 0}}}, &loss),
        PEN_INVALID_INPUT, "");
    CHECK_OK(attach(PEN_LOSS_OUTPUT, (pen_tensor_type){PEN_FLOAT32, {2, {1, 1}}}, &loss));
    assert_false(pen_value_is(loss.labels));
}

// A model with an input called "labels" gets another one beside it.
static void labels_find_a_free_name(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_tensor_type type = {PEN_FLOAT32, {2, {5, 2}}};
    pen_value_id y;
    pen_graph *graph = graph_with(arena, &type, &y);
    graph_value_of(graph, "labels", PEN_VALUE_INPUT, &type);
    pen_attached_loss loss;
    CHECK_OK(attach_plain_loss(graph, PEN_LOSS_SOFTMAX_CROSS_ENTROPY, y, PEN_VALUE_NONE, &loss));
    assert_string_equal(pen_value_name(graph, loss.labels), "labels_2");
    pen_arena_destroy(arena);
}

static void kinds_have_names(void **state) {
    (void)state;
    assert_null(pen_loss_kind_names[PEN_LOSS_KIND_COUNT]);
    for (int a = 0; a < PEN_LOSS_KIND_COUNT; a++) {
        assert_non_null(pen_loss_kind_names[a]);
        for (int b = 0; b < a; b++) {
            assert_string_not_equal(pen_loss_kind_names[a], pen_loss_kind_names[b]);
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(a_mask_leaves_out_targets),
              cmocka_unit_test(a_mask_goes_with_weights_of_classes),
              cmocka_unit_test(losses_over_classes_count_right_answers),
              cmocka_unit_test(a_softmax_at_the_end_is_left_out),
              cmocka_unit_test(losses_over_elements_take_targets_like_the_output),
              cmocka_unit_test(outputs_must_suit_the_loss),
              cmocka_unit_test(labels_find_a_free_name), cmocka_unit_test(kinds_have_names))
