#include "graph/ops/product/convolution_geometry.h"
#include "graph/passes/gradient/build_gradients.h"
#include "tests/support/dice.h"

static op_case conv_case(const char *op, pen_tensor_type x, pen_tensor_type w) {
    return (op_case){.op = op, .input_count = 2, .inputs = {{.type = x}, {.type = w}}};
}

static void give(op_case *c, pen_attribute_given attribute) {
    c->attributes[c->attribute_count++] = attribute;
}

#define GIVE_INTS(c, name, ...)                                                                    \
    give((c), pen_attribute_ints((name), sizeof((const int64_t[]){__VA_ARGS__}) / 8,               \
                                 (const int64_t[]){__VA_ARGS__}))

static const double grid[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const double square[] = {1, 0, 0, -1};

static op_case grid_case(const char *op) {
    op_case c =
        conv_case(op, op_type(PEN_FLOAT64, 4, 1, 1, 3, 3), op_type(PEN_FLOAT64, 4, 1, 1, 2, 2));
    c.inputs[0].data = grid;
    c.inputs[1].data = square;
    return c;
}

static void conv_sums_windows(void **state) {
    (void)state;
    op_case c = grid_case("conv");
    op_check_values(&c, 0, (const double[]){-4, -4, -4, -4}, 4, 0);
    const double bias[] = {10};
    c.input_count = 3;
    c.inputs[2] = (op_case_input){.type = op_type(PEN_FLOAT64, 1, 1), .data = bias};
    GIVE_INTS(&c, "pads", 1, 0, 0, 1);
    // rows -1 … 2, columns 0 … 3
    op_check_values(&c, 0, (const double[]){8, 7, 10, 6, 6, 13, 6, 6, 16}, 9, 0);
}

static void conv_strides_and_dilates(void **state) {
    (void)state;
    op_case c = grid_case("conv");
    GIVE_INTS(&c, "dilations", 2, 2);
    op_check_values(&c, 0, (const double[]){-8}, 1, 0);
    c = grid_case("conv");
    GIVE_INTS(&c, "strides", 2, 1);
    op_check_values(&c, 0, (const double[]){-4, -4}, 2, 0);
}

static void conv_keeps_groups_apart(void **state) {
    (void)state;
    const double x[] = {1, 2, 10, 20}, w[] = {3, 5};
    op_case c =
        conv_case("conv", op_type(PEN_FLOAT64, 3, 1, 2, 2), op_type(PEN_FLOAT64, 3, 2, 1, 1));
    c.inputs[0].data = x;
    c.inputs[1].data = w;
    give(&c, pen_attribute_int("group", 2));
    op_check_values(&c, 0, (const double[]){3, 6, 50, 100}, 4, 0);
}

static void conv_transpose_spreads_windows(void **state) {
    (void)state;
    const double x[] = {1, 2, 3}, w[] = {1, 10};
    op_case c = conv_case("conv_transpose", op_type(PEN_FLOAT64, 3, 1, 1, 3),
                          op_type(PEN_FLOAT64, 3, 1, 1, 2));
    c.inputs[0].data = x;
    c.inputs[1].data = w;
    op_check_values(&c, 0, (const double[]){1, 12, 23, 30}, 4, 0);
    GIVE_INTS(&c, "strides", 2);
    GIVE_INTS(&c, "output_padding", 1);
    op_check_values(&c, 0, (const double[]){1, 10, 2, 20, 3, 30, 0}, 7, 0);
    GIVE_INTS(&c, "output_shape", 5); // two of the seven are pads, one at each end
    op_check_values(&c, 0, (const double[]){10, 2, 20, 3, 30}, 5, 0);
}

static void check_output(const op_case *c, const pen_tensor_type *expected) {
    op_built built;
    char found[PEN_SHAPE_TEXT_BYTES], wanted[PEN_SHAPE_TEXT_BYTES];
    CHECK_OK(op_build(c, &built));
    assert_string_equal(
        pen_tensor_type_format(pen_value_type(built.graph, built.outputs[0]), found),
        pen_tensor_type_format(expected, wanted));
    op_built_free(&built);
}

static void conv_shapes(void **state) {
    (void)state;
    op_case c = conv_case("conv", op_type(PEN_FLOAT32, 4, 8, 3, 224, 224),
                          op_type(PEN_FLOAT32, 4, 64, 3, 7, 7));
    GIVE_INTS(&c, "strides", 2, 2);
    GIVE_INTS(&c, "pads", 3, 3, 3, 3);
    pen_tensor_type expected = op_type(PEN_FLOAT32, 4, 8, 64, 112, 112);
    check_output(&c, &expected);
    c.attributes[1] = pen_attribute_text("auto_pad", "SAME_LOWER");
    check_output(&c, &expected);
    c.attributes[1] = pen_attribute_text("auto_pad", "VALID");
    expected = op_type(PEN_FLOAT32, 4, 8, 64, 109, 109);
    check_output(&c, &expected);
    op_case transposed = conv_case("conv_transpose", op_type(PEN_FLOAT32, 3, 2, 6, 10),
                                   op_type(PEN_FLOAT32, 3, 6, 2, 4));
    give(&transposed, pen_attribute_int("group", 3));
    GIVE_INTS(&transposed, "strides", 3);
    expected = op_type(PEN_FLOAT32, 3, 2, 6, 31);
    check_output(&transposed, &expected);
    give(&transposed, pen_attribute_text("auto_pad", "SAME_UPPER"));
    expected = op_type(PEN_FLOAT32, 3, 2, 6, 30);
    check_output(&transposed, &expected);
}

// SAME_UPPER puts the odd pad behind, SAME_LOWER in front.
static void same_pads_split(void **state) {
    (void)state;
    for (uint32_t lower = 0; lower < 2; lower++) {
        op_case c = grid_case("conv");
        give(&c, pen_attribute_text("auto_pad", lower ? "SAME_LOWER" : "SAME_UPPER"));
        op_built built;
        pen_conv_geometry geometry;
        CHECK_OK(op_build(&c, &built));
        CHECK_OK(
            pen_conv_geometry_of(built.graph, pen_graph_node(built.graph, built.node), &geometry));
        assert_int_equal(geometry.pad_begin[2], lower);
        assert_int_equal(geometry.pad_end[2], 1 - lower);
        assert_int_equal(geometry.pad_begin[0], 0); // a dimension that the model has not
        op_built_free(&built);
    }
}

static void conv_refuses_operands(void **state) {
    (void)state;
    op_case c =
        conv_case("conv", op_type(PEN_FLOAT32, 4, 1, 4, 5, 5), op_type(PEN_FLOAT32, 4, 6, 3, 3, 3));
    op_check_error(&c, PEN_INVALID_INPUT,
                   "conv 'subject': 4 channels in 1 groups do not go with a weight for 3 channels");
    c.inputs[1].type = op_type(PEN_FLOAT32, 4, 6, 4, 3, 9);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "a window of 9 does not fit the input's 5 with pads 0 and 0");
    c.inputs[1].type = op_type(PEN_FLOAT32, 3, 6, 4, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "the weight [6,4,3] does not have as many dimensions");
    c.inputs[1].type = op_type(PEN_FLOAT32, 4, 6, 4, 3, 3);
    c.input_count = 3;
    c.inputs[2].type = op_type(PEN_FLOAT32, 1, 5);
    op_check_error(&c, PEN_INVALID_INPUT, "input 2 ('input_2') is [5], expected [6]");
    c.input_count = 2;
    c.inputs[0].type = op_type(PEN_INT32, 4, 1, 4, 5, 5);
    op_check_error(&c, PEN_INVALID_INPUT, "input 0 ('input_0') is int32; it may be float32");
    c.inputs[0].type = op_type(PEN_FLOAT32, 6, 1, 4, 5, 5, 5, 5);
    op_check_error(&c, PEN_INVALID_INPUT, "1 to 3 spatial dimensions");
}

static void check_attribute_error(pen_attribute_given attribute, const char *text) {
    op_case c =
        conv_case("conv", op_type(PEN_FLOAT32, 4, 1, 4, 5, 5), op_type(PEN_FLOAT32, 4, 6, 4, 3, 3));
    give(&c, attribute);
    op_check_error(&c, PEN_INVALID_INPUT, text);
}

static void conv_refuses_attributes(void **state) {
    (void)state;
    const int64_t bad[] = {0, 1, -1, 1}, huge[] = {1, INT64_MAX};
    check_attribute_error(pen_attribute_ints("strides", 2, bad), "strides is 0 at index 0");
    check_attribute_error(pen_attribute_ints("strides", 3, bad),
                          "strides has 3 values, expected 2");
    check_attribute_error(pen_attribute_ints("dilations", 2, huge),
                          "dilations is 9223372036854775807 at index 1; it may be 1 to 2147483647");
    check_attribute_error(pen_attribute_ints("pads", 4, bad), "pads is -1 at index 2");
    check_attribute_error(pen_attribute_ints("kernel_shape", 2, (const int64_t[]){3, 4}),
                          "kernel_shape says 4 at index 1, the weight has 3");
    check_attribute_error(pen_attribute_text("auto_pad", "same"),
                          "auto_pad is 'same'; it may be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
    check_attribute_error(pen_attribute_int("group", 0), "group is 0");
    check_attribute_error(pen_attribute_int("group", INT64_MIN), "group is -9223372036854775808");
}

static void conv_transpose_refuses(void **state) {
    (void)state;
    op_case c = conv_case("conv_transpose", op_type(PEN_FLOAT32, 3, 1, 4, 5),
                          op_type(PEN_FLOAT32, 3, 3, 2, 3));
    op_check_error(&c, PEN_INVALID_INPUT,
                   "4 channels in 1 groups do not go with a weight for 3 channels");
    c.inputs[1].type = op_type(PEN_FLOAT32, 3, 4, 2, 3);
    GIVE_INTS(&c, "output_padding", 1);
    op_check_error(&c, PEN_INVALID_INPUT, "output_padding 1 is not below stride 1");
    c.attribute_count = 0;
    GIVE_INTS(&c, "pads", 4, 4);
    op_check_error(&c, PEN_INVALID_INPUT, "the output would have size -1");
    c.attribute_count = 0;
    GIVE_INTS(&c, "output_shape", 4, 4);
    op_check_error(&c, PEN_INVALID_INPUT, "output_shape has 2 values, expected 1");
}

static void flops_are_counted(void **state) {
    (void)state;
    op_case c =
        conv_case("conv", op_type(PEN_FLOAT32, 4, 2, 4, 8, 8), op_type(PEN_FLOAT32, 4, 6, 2, 3, 3));
    give(&c, pen_attribute_int("group", 2));
    op_built built;
    CHECK_OK(op_build(&c, &built));
    assert_int_equal(pen_node_flops(built.graph, built.node), 2 * 2 * 6 * (6 * 6) * 2 * (3 * 3));
    op_built_free(&built);
}

// Room for the attribute lists of one random case.
typedef struct random_lists {
    int64_t strides[3], dilations[3], pads[6], output_padding[3];
} random_lists;

static void random_window(dice *d, op_case *c, uint32_t spatial, random_lists *lists) {
    for (uint32_t i = 0; i < spatial; i++) {
        lists->strides[i] = dice_between(d, 1, 3);
        lists->dilations[i] = dice_between(d, 1, 2);
        lists->pads[i] = dice_between(d, 0, 2);
        lists->pads[spatial + i] = dice_between(d, 0, 2);
    }
    if (dice_between(d, 0, 3) != 0) {
        give(c, pen_attribute_ints("strides", spatial, lists->strides));
    }
    if (dice_between(d, 0, 1) == 0) {
        give(c, pen_attribute_ints("dilations", spatial, lists->dilations));
    }
    const char *const modes[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const int64_t mode = dice_between(d, 0, 5);
    if (mode < 4) {
        give(c, pen_attribute_text("auto_pad", modes[mode]));
    } else {
        give(c, pen_attribute_ints("pads", 2 * spatial, lists->pads));
    }
}

// A convolution whose windows fit: the kernel's extent is at most 5.
static op_case random_conv(dice *d, random_lists *lists, bool transposed) {
    const uint32_t spatial = (uint32_t)dice_between(d, 1, 3);
    const int64_t groups = dice_between(d, 1, 3);
    const int64_t channels = groups * dice_between(d, 1, 2);
    const int64_t outputs_of_group = dice_between(d, 1, 2);
    const int64_t least = spatial == 3 && !transposed ? 4 : 5;
    op_case c = {.op = transposed ? "conv_transpose" : "conv", .input_count = 2};
    pen_shape x = {spatial + 2, {dice_between(d, 1, 2), channels}};
    pen_shape w = {spatial + 2, {groups * outputs_of_group, channels / groups}};
    if (transposed) {
        w.dims[0] = channels;
        w.dims[1] = outputs_of_group;
    }
    for (uint32_t i = 0; i < spatial; i++) {
        w.dims[2 + i] = dice_between(d, 1, spatial == 3 ? 2 : 3);
        x.dims[2 + i] = transposed ? dice_between(d, 3, spatial == 3 ? 3 : 4)
                                   : dice_between(d, least, least + (spatial == 1 ? 3 : 1));
    }
    c.inputs[0].type = (pen_tensor_type){PEN_FLOAT64, x};
    c.inputs[1].type = (pen_tensor_type){PEN_FLOAT64, w};
    if (dice_between(d, 0, 1) == 0) {
        c.input_count = 3;
        c.inputs[2].type = op_type(PEN_FLOAT64, 1, (int)(groups * outputs_of_group));
    }
    give(&c, pen_attribute_int("group", groups));
    random_window(d, &c, spatial, lists);
    return c;
}

static void conv_gradients_match_differences(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 160; seed++) {
        dice d = {.seed = seed};
        random_lists lists;
        const op_case c = random_conv(&d, &lists, false);
        op_check_gradient(&c, seed);
    }
}

static void conv_transpose_gradients_match_differences(void **state) {
    (void)state;
    uint32_t checked = 0;
    for (uint64_t seed = 0; checked < 80; seed++) {
        dice d = {.seed = seed};
        random_lists lists;
        op_case c = random_conv(&d, &lists, true);
        bool has_strides = false;
        for (uint32_t i = 0; i < c.attribute_count; i++) {
            has_strides |= strcmp(c.attributes[i].name, "strides") == 0;
        }
        for (uint32_t i = 0; i < 3; i++) {
            lists.output_padding[i] = has_strides ? dice_between(&d, 0, lists.strides[i] - 1) : 0;
        }
        give(&c, pen_attribute_ints("output_padding", c.inputs[0].type.shape.rank - 2,
                                    lists.output_padding));
        op_built built;
        const pen_status status = op_build(&c, &built);
        op_built_free(&built);
        if (status != PEN_OK) { // pads that leave nothing
            pen_status_ignore(status, "another case is drawn");
            continue;
        }
        op_check_gradient(&c, seed);
        checked++;
    }
}

static void conv_transpose_without_way_back(void **state) {
    (void)state;
    op_case c = conv_case("conv_transpose", op_type(PEN_FLOAT64, 3, 1, 1, 3),
                          op_type(PEN_FLOAT64, 3, 1, 1, 2));
    GIVE_INTS(&c, "output_shape", 7);
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
                PEN_UNSUPPORTED,
                "conv_transpose 'subject': no gradient for an output that extends");
    op_built_free(&built);
}

PEN_TEST_MAIN(cmocka_unit_test(conv_sums_windows), cmocka_unit_test(conv_strides_and_dilates),
              cmocka_unit_test(conv_keeps_groups_apart),
              cmocka_unit_test(conv_transpose_spreads_windows), cmocka_unit_test(conv_shapes),
              cmocka_unit_test(same_pads_split), cmocka_unit_test(conv_refuses_operands),
              cmocka_unit_test(conv_refuses_attributes), cmocka_unit_test(conv_transpose_refuses),
              cmocka_unit_test(flops_are_counted),
              cmocka_unit_test(conv_gradients_match_differences),
              cmocka_unit_test(conv_transpose_gradients_match_differences),
              cmocka_unit_test(conv_transpose_without_way_back))
