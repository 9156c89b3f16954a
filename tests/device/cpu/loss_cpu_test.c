// Softmax, losses and dropout.
#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

static pen_tensor_type loss_scores(random_case *random) {
    pen_tensor_type type = random_type(random, 2, 4, 9, 400);
    type.shape.dims[1] = random_between(random, 1, random_chance(random, 5) ? 1300 : 20);
    if (random_chance(random, 10)) type.shape.dims[0] += 100;
    if (type.shape.rank > 2 && random_chance(random, 20)) type.shape.dims[2] += 120;
    return type;
}

static void softmax_equals_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"softmax", "log_softmax", "softmax_backward",
                                      "log_softmax_backward"};
    for (uint64_t seed = 0; seed < 240; seed++) {
        random_case random = {seed, 0};
        const bool is_backward = seed % 4 >= 2;
        op_case c = {.op = ops[seed % 4], .input_count = is_backward ? 2 : 1, .attribute_count = 1};
        const pen_tensor_type type = loss_scores(&random);
        const int64_t rank = type.shape.rank;
        c.attributes[0] = pen_attribute_int("axis", random_between(&random, -rank, rank - 1));
        c.inputs[0].type = c.inputs[1].type = type;
        c.inputs[0].low = -5;
        c.inputs[0].high = 5;
        if (is_backward) { // the output of softmax, or of its logarithm
            c.inputs[1].low = seed % 4 == 2 ? 0 : -5;
            c.inputs[1].high = seed % 4 == 2 ? 0.01 : -3;
            c.inputs[0].low = c.inputs[0].high = 0;
        }
        op_check_device(&c, seed, 5e-6);
    }
}

static void loss_set_classes(random_case *random, op_case *c, uint32_t labels,
                             const pen_tensor_type *scores) {
    static const char *const reductions[] = {"mean", "sum", "none"};
    pen_tensor_type type = *scores;
    type.element = random_chance(random, 50) ? PEN_INT64 : PEN_INT32;
    type.shape.rank -= 1;
    for (uint32_t d = 1; d < type.shape.rank; d++) {
        type.shape.dims[d] = scores->shape.dims[d + 1];
    }
    c->inputs[labels].type = type;
    c->inputs[labels].high = (double)scores->shape.dims[1];
    c->input_count = labels + 1;
    c->attributes[0] = pen_attribute_text("reduction", reductions[random_between(random, 0, 2)]);
    c->attribute_count = 1;
    if (random_chance(random, 40)) { // label -1 is ignored
        c->inputs[labels].low = scores->shape.dims[1] == 1 ? 0 : -1;
        c->attributes[c->attribute_count++] = pen_attribute_int("ignore_index", -1);
    }
    if (random_chance(random, 40)) {
        c->inputs[labels + 1].type = op_type(PEN_FLOAT32, 1, (int)scores->shape.dims[1]);
        c->inputs[labels + 1].low = 0.25;
        c->inputs[labels + 1].high = 2;
        c->input_count = labels + 2;
    }
}

static void loss_smooth(random_case *random, op_case *c) {
    if (random_chance(random, 60)) return;
    c->attributes[c->attribute_count++] = pen_attribute_float("label_smoothing", 0.2);
}

static void class_losses_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_case random = {seed, 0};
        const pen_tensor_type scores = loss_scores(&random);
        op_case forward = {.op = seed % 2 == 0 ? "softmax_cross_entropy_loss"
                                               : "negative_log_likelihood_loss"};
        forward.inputs[0].type = scores;
        forward.inputs[0].low = -4;
        forward.inputs[0].high = 4;
        loss_set_classes(&random, &forward, 1, &scores);
        if (seed % 2 == 0 && random_chance(&random, 50)) forward.output_count = 2;
        if (seed % 2 == 0) loss_smooth(&random, &forward);
        op_check_device(&forward, seed, 1e-5);
    }
}

static void class_gradients_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_case random = {seed, 0};
        const bool takes_scores = seed % 2 == 0;
        const pen_tensor_type scores = loss_scores(&random);
        op_case c = {.op = takes_scores ? "softmax_cross_entropy_loss_backward"
                                        : "negative_log_likelihood_loss_backward"};
        loss_set_classes(&random, &c, takes_scores ? 2 : 1, &scores);
        const bool is_none = c.attributes[0].value.text[0] == 'n';
        c.inputs[0].type = is_none ? c.inputs[takes_scores ? 2 : 1].type : op_type(PEN_FLOAT32, 0);
        c.inputs[0].type.element = PEN_FLOAT32;
        if (takes_scores) {
            loss_smooth(&random, &c);
            c.inputs[1].type = scores;
            c.inputs[1].low = -4;
            c.inputs[1].high = 4;
        } else {
            c.attributes[c.attribute_count++] =
                pen_attribute_ints("shape", scores.shape.rank, scores.shape.dims);
        }
        op_check_device(&c, seed, 1e-5);
    }
}

static void pair_losses_equal_reference(void **state) {
    (void)state;
    static const char *const ops[] = {
        "mean_squared_error", "binary_cross_entropy", "binary_cross_entropy_with_logits", "l1",
        "smooth_l1",          "kl_divergence"};
    for (uint64_t seed = 0; seed < 300; seed++) {
        random_case random = {seed, 0};
        char name[64];
        const uint64_t kind = seed % 6;
        const bool is_backward = seed / 6 % 2 == 1;
        snprintf(name, sizeof name, "%s%s", ops[kind], is_backward ? "_backward" : "");
        op_case c = {.op = name, .input_count = is_backward ? 3 : 2};
        const uint32_t x = is_backward ? 1 : 0;
        c.inputs[0].type = op_type(PEN_FLOAT32, 0);
        c.inputs[x].type = random_chance(&random, 10) ? op_type(PEN_FLOAT32, 2, 13, 1500)
                                                      : random_type(&random, 0, 4, 12, 900);
        c.inputs[x + 1].type = c.inputs[x].type;
        c.inputs[x].low = kind == 1 ? 0.02 : -3;
        c.inputs[x].high = kind == 1 ? 0.98 : 3;
        c.inputs[x + 1].high = 1;
        if (kind == 4) c.attributes[c.attribute_count++] = pen_attribute_float("beta", 0.4);
        op_check_device(&c, seed, 1e-5);
    }
}

static void accuracy_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "accuracy_count"};
        c.inputs[0].type = loss_scores(&random);
        loss_set_classes(&random, &c, 1, &c.inputs[0].type);
        c.attribute_count -= 1;
        c.attributes[0] = c.attributes[1]; // what is ignored, if anything is
        c.input_count = 2;
        op_check_device(&c, seed, 0);
        c.attributes[c.attribute_count++] = pen_attribute_int("top", 1 + (int64_t)(seed % 4));
        op_check_device(&c, seed, 0);
    }
}

static void wrong_labels_are_named(void **state) {
    (void)state;
    static const int64_t labels[] = {0, 1, 7};
    const pen_device_kind *kind;
    const pen_device_options options = {.name = "tested", .thread_count = 1};
    op_case c = {.op = "softmax_cross_entropy_loss", .input_count = 2};
    c.inputs[0].type = op_type(PEN_FLOAT32, 2, 3, 4);
    c.inputs[1].type = op_type(PEN_INT64, 1, 3);
    op_built built;
    CHECK_OK(op_build(&c, &built));
    for (uint32_t k = 0; k < pen_device_kind_count(); k++) {
        pen_device *device;
        pen_kernel *kernel;
        pen_launch *launch;
        pen_buffer *buffer;
        kind = pen_device_kind_at(k);
        if (!op_check_is_here(kind)) continue;
        CHECK_OK(kind->open(&options, &device));
        CHECK_OK(kind->prepare(device, built.graph, built.node, built.arena, &kernel));
        CHECK_OK(kind->buffer_create(device, 4096, &buffer));
        const pen_operand inputs[2] = {{buffer, 0}, {buffer, 512}};
        const pen_operand outputs[1] = {{buffer, 1024}};
        const pen_binding binding = {inputs, outputs, {buffer, 2048}};
        CHECK_OK(kind->write(device, inputs[1], labels, sizeof labels));
        CHECK_OK(kind->bind(device, kernel, &binding, built.arena, &launch));
        const pen_run_context run = {.first_microbatch = true};
        pen_status status = kind->enqueue(device, launch, &run);
        if (status == PEN_OK) status = kind->synchronize(device);
        CHECK_ERROR(status, PEN_INVALID_INPUT, "label 7 of target 2");
        kind->release(device, kernel);
        kind->buffer_destroy(device, buffer);
        kind->close(device);
    }
    op_built_free(&built);
}

static void dropout_equals_reference(void **state) {
    (void)state;
    static const float ratios[] = {0.1f, 0.5f, 0.9f, 0};
    static const uint8_t training[] = {1, 0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "dropout", .input_count = 3, .output_count = 2};
        c.inputs[0].type = random_chance(&random, 20) ? op_type(PEN_FLOAT32, 2, 11, 1237)
                                                      : random_type(&random, 1, 4, 12, 900);
        c.inputs[1].type = op_type(PEN_FLOAT32, 0);
        c.inputs[1].data = &ratios[random_between(&random, 0, 3)];
        c.inputs[2].type = op_type(PEN_BOOL, 0);
        c.inputs[2].data = &training[random_chance(&random, 15)];
        c.inputs[1].is_constant = c.inputs[2].is_constant = true;
        c.inputs[1].is_absent = random_chance(&random, 20);
        if (random_chance(&random, 30)) c.output_count = 1;
        if (random_chance(&random, 30)) {
            c.attributes[c.attribute_count++] = pen_attribute_int("seed", 5);
        }
        op_check_device(&c, seed, 1e-6);
        op_case backward = {.op = "dropout_backward", .input_count = 2, .attribute_count = 1};
        backward.attributes[0] = pen_attribute_float("ratio", 0.3);
        backward.inputs[0].type = backward.inputs[1].type = c.inputs[0].type;
        backward.inputs[1].type.element = PEN_BOOL;
        backward.inputs[1].high = 2;
        op_check_device(&backward, seed, 1e-6);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(softmax_equals_reference),
              cmocka_unit_test(class_losses_equal_reference),
              cmocka_unit_test(class_gradients_equal_reference),
              cmocka_unit_test(pair_losses_equal_reference),
              cmocka_unit_test(accuracy_equals_reference), cmocka_unit_test(wrong_labels_are_named),
              cmocka_unit_test(dropout_equals_reference))
