#include "graph/ops/product/convolution_geometry.h"
#include "tests/support/device_check.h"
#include "tests/support/layout_check.h"
#include "tests/support/random_case.h"

#define CONVOLUTION_CASES 200
#define CONVOLUTION_TOLERANCE 2e-5

// A random convolution: the case of the forward node, and what the others are made of.
typedef struct conv_trial {
    op_case forward;
    pen_conv_geometry geometry;
    pen_tensor_type y;
    pen_window_attributes window;
    int64_t kernel[3], strides[3], dilations[3], pads[6];
} conv_trial;

// Channels as they come: odd ones, and multiples of the blocks.
static int64_t conv_channels(random_case *random) {
    return random_chance(random, 40) ? 8 * random_between(random, 1, 5)
                                     : random_between(random, 1, 19);
}

static void conv_random_windows(conv_trial *trial, random_case *random, uint32_t rank,
                                pen_shape *x) {
    op_case *c = &trial->forward;
    static const char *const auto_pads[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    const bool is_auto = random_chance(random, 20);
    for (uint32_t i = 0; i < rank; i++) {
        trial->kernel[i] = random_between(random, 1, rank == 3 ? 3 : 4);
        trial->strides[i] = random_between(random, 1, 3);
        trial->dilations[i] = random_chance(random, 75) ? 1 : random_between(random, 2, 3);
        const int64_t extent = (trial->kernel[i] - 1) * trial->dilations[i] + 1;
        trial->pads[i] = random_between(random, 0, trial->kernel[i] - 1);
        trial->pads[rank + i] = random_between(random, 0, trial->kernel[i] - 1);
        x->dims[2 + i] = extent + random_between(random, 0, rank == 3 ? 4 : 9);
    }
    c->attributes[0] = pen_attribute_ints("kernel_shape", rank, trial->kernel);
    c->attributes[1] = pen_attribute_ints("strides", rank, trial->strides);
    c->attributes[2] = pen_attribute_ints("dilations", rank, trial->dilations);
    c->attributes[3] = is_auto
                           ? pen_attribute_text("auto_pad", auto_pads[random_between(random, 0, 2)])
                           : pen_attribute_ints("pads", 2 * rank, trial->pads);
    c->attribute_count = 5;
}

static void conv_random(conv_trial *trial, const char *op, uint64_t seed) {
    random_case random = {seed, 0};
    const bool is_transposed = strcmp(op, "conv_transpose") == 0;
    const bool is_depthwise = random_chance(&random, 10);
    const int64_t groups = is_depthwise                 ? conv_channels(&random)
                           : random_chance(&random, 70) ? 1
                                                        : random_between(&random, 2, 4);
    const int64_t in = is_depthwise ? 1 : conv_channels(&random);
    const int64_t out = is_depthwise ? random_between(&random, 1, 2) : conv_channels(&random);
    const uint32_t rank = random_chance(&random, 70) ? 2 : random_chance(&random, 50) ? 1 : 3;
    pen_shape x = {.rank = rank + 2, .dims = {random_between(&random, 1, 3), groups * in}};
    pen_shape w = {.rank = rank + 2, .dims = {groups * out, in}};
    if (is_transposed) w.dims[0] = groups * in, w.dims[1] = out;
    *trial = (conv_trial){.forward = {.op = op}};
    conv_random_windows(trial, &random, rank, &x);
    trial->forward.attributes[4] = pen_attribute_int("group", groups);
    for (uint32_t i = 0; i < rank; i++) {
        w.dims[2 + i] = trial->kernel[i];
    }
    trial->forward.inputs[0].type = (pen_tensor_type){PEN_FLOAT32, x};
    trial->forward.inputs[1].type = (pen_tensor_type){PEN_FLOAT32, w};
    trial->forward.inputs[2].type = op_type(PEN_FLOAT32, 1, (int)(groups * out));
    trial->forward.input_count = random_chance(&random, 50) ? 2 : 3;
}

static void conv_random_backward(conv_trial *trial, uint64_t seed) {
    op_built built;
    conv_random(trial, "conv", seed);
    CHECK_OK(op_build(&trial->forward, &built));
    trial->y = *pen_value_type(built.graph, built.outputs[0]);
    CHECK_OK(pen_conv_geometry_of(built.graph, pen_graph_node(built.graph, built.node),
                                  &trial->geometry));
    pen_window_attributes_make(&trial->geometry, &trial->window);
    op_built_free(&built);
}

static void conv_check(const op_case *c, uint64_t seed) {
    op_check_device(c, seed, CONVOLUTION_TOLERANCE);
    op_check_layout(c, seed, CONVOLUTION_TOLERANCE, NULL);
}

static void conv_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < CONVOLUTION_CASES; seed++) {
        conv_trial trial;
        conv_random(&trial, "conv", seed);
        conv_check(&trial.forward, seed);
    }
}

static void conv_transpose_equals_reference(void **state) {
    (void)state;
    uint32_t checked = 0;
    for (uint64_t seed = 0; checked < CONVOLUTION_CASES; seed++) {
        conv_trial trial;
        conv_random(&trial, "conv_transpose", seed);
        op_built built;
        const pen_status status = op_build(&trial.forward, &built);
        op_built_free(&built);
        if (status != PEN_OK) { // pads beyond the output
            pen_status_ignore(status, "another case");
            continue;
        }
        conv_check(&trial.forward, seed);
        checked++;
    }
}

static op_case conv_backward_case(conv_trial *trial, const char *op) {
    op_case c = {.op = op, .input_count = 2};
    for (uint32_t i = 0; i < trial->window.count; i++) {
        c.attributes[c.attribute_count++] = trial->window.given[i];
    }
    c.attributes[c.attribute_count++] = pen_attribute_int("group", trial->geometry.group_count);
    return c;
}

static void conv_backward_input_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < CONVOLUTION_CASES; seed++) {
        conv_trial trial;
        conv_random_backward(&trial, seed);
        op_case c = conv_backward_case(&trial, "conv_backward_input");
        const pen_shape x = pen_conv_input_shape(&trial.geometry);
        c.attributes[c.attribute_count++] = pen_attribute_ints("input_shape", x.rank, x.dims);
        c.inputs[0].type = trial.y;
        c.inputs[1].type = trial.forward.inputs[1].type;
        conv_check(&c, seed);
    }
}

static void conv_backward_weight_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < CONVOLUTION_CASES; seed++) {
        conv_trial trial;
        conv_random_backward(&trial, seed);
        op_case c = conv_backward_case(&trial, "conv_backward_weight");
        c.inputs[0].type = trial.forward.inputs[0].type;
        c.inputs[1].type = trial.y;
        conv_check(&c, seed);
    }
}

// Large enough that Winograd's algorithm is preferred where the instruction set has it.
static void large_windows_of_three_equal_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"conv", "conv_backward_input", "conv_backward_weight"};
    for (uint64_t seed = 0; seed < 6; seed++) {
        random_case random = {seed, 0};
        const int batch = (int)random_between(&random, 2, 3);
        const int size = (int)random_between(&random, 27, 29);
        const int64_t kernel[] = {3, 3}, pads[] = {1, 1, 1, 1};
        const int64_t input_shape[] = {batch, 64, size, size};
        const pen_tensor_type whole = op_type(PEN_FLOAT32, 4, batch, 64, size, size);
        op_case c = {.op = ops[seed % 3], .input_count = 2, .attribute_count = 2};
        c.inputs[0].type = c.inputs[1].type = whole;
        if (seed % 3 < 2) c.inputs[1].type = op_type(PEN_FLOAT32, 4, 64, 64, 3, 3);
        c.attributes[0] = pen_attribute_ints("kernel_shape", 2, kernel);
        c.attributes[1] = pen_attribute_ints("pads", 4, pads);
        if (seed % 3 == 1) {
            c.attributes[c.attribute_count++] = pen_attribute_ints("input_shape", 4, input_shape);
        }
        op_check_layout(&c, seed, 2e-4, NULL);
    }
}

// Of one channel, windows that cannot move sideways, with a stride all the same: oneDNN 3.7.2 by
// itself takes the second row for one that begins where the stride says.
static void windows_that_stand_still_equal_reference(void **state) {
    (void)state;
    const int64_t kernel[] = {3, 2}, strides[] = {1, 3};
    for (uint64_t seed = 0; seed < 8; seed++) {
        op_case c = {.op = "conv", .input_count = 2, .attribute_count = 2};
        c.inputs[0].type = op_type(PEN_FLOAT32, 4, 2, 1, 11, 2 + (int)seed % 3);
        c.inputs[1].type = op_type(PEN_FLOAT32, 4, 16 + (int)seed, 1, 3, 2);
        c.attributes[0] = pen_attribute_ints("kernel_shape", 2, kernel);
        c.attributes[1] = pen_attribute_ints("strides", 2, strides);
        conv_check(&c, seed);
    }
}

static void conv_backward_bias_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < CONVOLUTION_CASES; seed++) {
        random_case random = {seed, 0};
        const bool is_large = random_chance(&random, 20);
        op_case c = {.op = "conv_backward_bias", .input_count = 1};
        c.inputs[0].type = random_type(&random, 3, 5, is_large ? 70 : 20, is_large ? 90000 : 3000);
        op_check_device(&c, seed, CONVOLUTION_TOLERANCE);
        for (pen_layout layout = 1; layout <= 2; layout++) {
            const layout_wish wish = {layout, 1, 0};
            op_check_layout(&c, seed, CONVOLUTION_TOLERANCE, &wish);
        }
    }
}

// Kernels that depthwise convolutions have, over pictures on both sides of a vector and of a band.
static void depthwise_equals_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"conv_backward_input", "conv_backward_weight"};
    for (uint64_t seed = 0; seed < 80; seed++) {
        random_case random = {seed, 0};
        const int64_t widths[] = {5, 7}, channels = random_between(&random, 1, 40);
        const int64_t kernel[2] = {random_between(&random, 1, 8), widths[seed / 2 % 2]};
        const int64_t strides[2] = {random_between(&random, 1, 2), random_between(&random, 1, 2)};
        const int64_t pads[4] = {random_between(&random, 0, 3), random_between(&random, 0, 3),
                                 random_between(&random, 0, 3), random_between(&random, 0, 3)};
        const bool is_large = random_chance(&random, 10);
        const int64_t height = random_between(&random, 8, is_large ? 70 : 20);
        const int64_t width = random_between(&random, 7, is_large ? 130 : 40);
        const int64_t x[4] = {random_between(&random, 1, 3), channels, height, width};
        const int64_t down = (height + pads[0] + pads[2] - kernel[0]) / strides[0] + 1;
        const int64_t across = (width + pads[1] + pads[3] - kernel[1]) / strides[1] + 1;
        const pen_tensor_type picture = {PEN_FLOAT32, {4, {x[0], channels, height, width}}};
        const pen_tensor_type result = {PEN_FLOAT32, {4, {x[0], channels, down, across}}};
        const pen_tensor_type weight = {PEN_FLOAT32, {4, {channels, 1, kernel[0], kernel[1]}}};
        op_case c = {.op = ops[seed % 2], .input_count = 2, .attribute_count = 4};
        c.inputs[0].type = seed % 2 == 0 ? result : picture;
        c.inputs[1].type = seed % 2 == 1 ? result : weight;
        c.attributes[0] = pen_attribute_ints("kernel_shape", 2, kernel);
        c.attributes[1] = pen_attribute_ints("strides", 2, strides);
        c.attributes[2] = pen_attribute_ints("pads", 4, pads);
        c.attributes[3] = pen_attribute_int("group", channels);
        if (seed % 2 == 0) {
            c.attributes[c.attribute_count++] = pen_attribute_ints("input_shape", 4, x);
        }
        op_check_layout(&c, seed, CONVOLUTION_TOLERANCE, NULL);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(depthwise_equals_reference),
              cmocka_unit_test(large_windows_of_three_equal_reference),
              cmocka_unit_test(windows_that_stand_still_equal_reference),
              cmocka_unit_test(conv_backward_bias_equals_reference),
              cmocka_unit_test(conv_equals_reference),
              cmocka_unit_test(conv_transpose_equals_reference),
              cmocka_unit_test(conv_backward_input_equals_reference),
              cmocka_unit_test(conv_backward_weight_equals_reference))
